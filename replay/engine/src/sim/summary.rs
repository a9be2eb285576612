//! The summary of a run, per flow: the numbers of the `runs` table.
//!
//! Does not depend on how they came about. Counters are sums over all legs; times, states and RTT samples of a sender
//! are those of leg 0, which leaves the data source.

use super::assembly::{Leg, Transport};
use super::histogram::Histogram;
use super::node::Node;
use super::time::{NEVER, Nanos, SECOND};
use crate::app::sink::Sink;
use crate::app::source::Source;
use crate::app::{Browser, ProgressSummary, WriteDelays};
use crate::config::{FlowConfig, ProxyKind};
use crate::net::cross_traffic::DatagramSink;
use crate::net::link::{DropCause, LinkDirection};
use crate::proxy::{AgentNode, Proxy, ProxyCounts};
use crate::tcp::segment::Segment;
use crate::tcp::sender::{Sender, SenderCounters};

/// What links did to the packets of a flow or a stream of datagrams; losses of those with data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Lost by the channel.
    pub channel_losses: u64,
    /// Dropped by full queues.
    pub queue_losses: u64,
    /// Dropped by active queue management.
    pub aqm_losses: u64,
    /// Lost in outages.
    pub outage_losses: u64,
    /// Marked by queues.
    pub ecn_marks: u64,
}

/// Counters of a flow during the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowTally {
    start: Nanos,
    finished_at: Option<Nanos>,
    over: bool,
    links: LinkCounts,
    control_losses: u64,
    filtered_acks: u64,
    /// A queue filters its ACKs.
    filters: bool,
}

impl FlowTally {
    /// Nothing has been counted.
    pub fn new(start: Nanos) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// The tally of `flow`.
    pub fn of(flow: &FlowConfig) -> Self {
        let filters = (flow.proxies.iter()).any(|proxy| proxy.kind == ProxyKind::AckFilter);
        Self {
            filters,
            ..Self::new(flow.start_ns)
        }
    }

    /// A packet of the flow was lost; counted by its cause if it carried data.
    pub fn note_drop(&mut self, segment: &Segment, cause: DropCause) {
        if cause == DropCause::Filtered {
            self.filtered_acks += 1;
            return;
        }
        if segment.payload_bytes == 0 {
            self.control_losses += 1;
            return;
        }
        match cause {
            DropCause::Channel => self.links.channel_losses += 1,
            DropCause::Queue => self.links.queue_losses += 1,
            DropCause::Aqm => self.links.aqm_losses += 1,
            DropCause::Outage => self.links.outage_losses += 1,
            DropCause::Filtered => {}
        }
    }

    /// A queue marked a packet of the flow.
    pub fn note_mark(&mut self) {
        self.links.ecn_marks += 1;
    }

    /// Nothing more will happen to the flow. Returns whether that was not known before.
    pub fn ends(&mut self) -> bool {
        !std::mem::replace(&mut self.over, true)
    }

    /// Whether the flow has finished just now, its last octet has been read, or will be by `end`, and nothing more will
    /// happen to it.
    #[inline]
    pub fn finishes(&mut self, sink: &Sink, now: Nanos, end: Nanos) -> bool {
        let Some(last) = sink.last() else {
            return false;
        };
        let receiver = sink.receiver();
        if self.finished_at.is_some() || receiver.rcv_nxt() < last {
            return false;
        }
        let read_at = receiver.read_at(last, now);
        self.finished_at = (read_at <= end).then_some(read_at);
        self.finished_at.is_some() && !receiver.closes() && self.ends()
    }
}

/// One flow of a finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSummary {
    /// When the flow started.
    pub start_ns: Nanos,
    /// When its connection (of leg 0) was established.
    pub established_ns: Option<Nanos>,
    /// When the first of its senders gave up or was reset.
    pub reset_ns: Option<Nanos>,
    /// From its start to its end, its reset, or the end of the run.
    pub duration_ns: Nanos,
    /// Its whole size was read before the run ended.
    pub completed: bool,
    /// Octets that the receiving application read in order.
    pub delivered_bytes: u64,
    /// `delivered_bytes` x 8 / duration.
    pub goodput_bps: f64,
    /// Counters of its senders: with proxies the sums over all legs.
    pub sender: SenderCounters,
    /// What links did to its packets.
    pub links: LinkCounts,
    /// Packets without data that were lost, for whatever cause.
    pub control_losses: u64,
    /// Mean of the sender's RTT samples.
    pub rtt_mean_ns: Option<Nanos>,
    /// Their 95th percentile, to 1/64.
    pub rtt_p95_ns: Option<Nanos>,
    /// Median, over the octets that arrived, of the times from their first transmission by the data sender to their first
    /// arrival at the receiver's host, to 1/64. Of a long flow octets are measured at distances of 1/1024 of what was sent
    /// before them.
    pub one_way_delay_p50_ns: Option<Nanos>,
    /// Their 95th percentile.
    pub one_way_delay_p95_ns: Option<Nanos>,
    /// Median of the times from the write of octets to their reading in order, one value per write, to 1/64. Writes
    /// that were not read do not count.
    pub app_delay_p50_ns: Option<Nanos>,
    /// Their 95th percentile, to 1/64.
    pub app_delay_p95_ns: Option<Nanos>,
    /// Their 99th percentile, to 1/64.
    pub app_delay_p99_ns: Option<Nanos>,
    /// Their maximum.
    pub app_delay_max_ns: Option<Nanos>,
    /// How its data arrived over time.
    pub progress: ProgressSummary,
    /// Stalls of a stream; none without a stream.
    pub stalls: Option<u64>,
    /// Total time of the stalls.
    pub stalled_ns: Option<Nanos>,
    /// Pages that were loaded; none without pages.
    pub pages: Option<u64>,
    /// Median of the times from the request of a page to the reading of its last octet, to 1/64.
    pub page_load_p50_ns: Option<Nanos>,
    /// Their 95th percentile, to 1/64.
    pub page_load_p95_ns: Option<Nanos>,
    /// Maximum number of octets that a proxy had acknowledged upstream and that were unacknowledged downstream; none
    /// without a proxy.
    pub proxy_held_max_bytes: Option<u64>,
    /// Maximum number of octets in the memory of a proxy; none without a proxy.
    pub proxy_stored_max_bytes: Option<u64>,
    /// Their mean over time, in the proxy that stores most.
    pub proxy_stored_mean_bytes: Option<u64>,
    /// Mean time of an octet in the proxies, summed over them.
    pub proxy_delay_mean_ns: Option<Nanos>,
    /// Octets whose delivery the data sender takes for certain and that the receiver cannot get any more: after a reset or
    /// a fault; none without a proxy.
    pub proxy_lost_bytes: Option<u64>,
    /// Octets that the receiver read and a proxy had damaged; none without a proxy.
    pub proxy_corrupted_bytes: Option<u64>,
    /// What its proxies counted; none without a proxy.
    pub proxy_counts: Option<ProxyCounts>,
}

/// One stream of datagrams of a finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramSummary {
    /// When it started.
    pub start_ns: Nanos,
    /// From its start to the end of the run; if it stops before, to its stop or to the last arrival after that.
    pub duration_ns: Nanos,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Octets of payload received.
    pub delivered_bytes: u64,
    /// `delivered_bytes` x 8 / duration.
    pub goodput_bps: f64,
    /// What links did to them.
    pub links: LinkCounts,
    /// Median of the one-way delays, to 1/64.
    pub delay_p50_ns: Option<Nanos>,
    /// Their 95th percentile, to 1/64.
    pub delay_p95_ns: Option<Nanos>,
    /// Their 99th percentile, to 1/64.
    pub delay_p99_ns: Option<Nanos>,
    /// Their maximum.
    pub delay_max_ns: Option<Nanos>,
    /// Mean difference between the delays of consecutive datagrams.
    pub jitter_ns: Option<Nanos>,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// By flow, in the order of the configuration.
    pub flows: Vec<FlowSummary>,
    /// By stream of datagrams, in the order of the configuration.
    pub datagrams: Vec<DatagramSummary>,
    /// Packets after the end of a replayed loss trace.
    pub trace_beyond_pkts: u64,
}

/// What the summary is made from.
#[derive(Clone, Copy)]
pub struct SummaryInputs<'a> {
    /// Counters per flow.
    pub tallies: &'a [FlowTally],
    /// The connections, in the order of their flows.
    pub legs: &'a [Leg],
    /// Their ends.
    pub nodes: &'a [Node],
    /// End of the run.
    pub end: Nanos,
}

impl<'a> SummaryInputs<'a> {
    /// The summary; `closed` has those of the flows that ended before the run, and nothing that happened since changes
    /// them.
    pub fn summarise(&self, closed: &[Option<FlowSummary>], links: &[LinkDirection]) -> RunSummary {
        let mut flows = Vec::new();
        let mut datagrams = Vec::new();
        for number in 0..self.tallies.len() {
            match self.legs_of(number).next() {
                Some(leg) if leg.transport == Transport::Datagrams => {
                    datagrams.push(self.datagrams(leg));
                }
                _ => {
                    let known = closed.get(number).cloned().flatten();
                    flows.push(known.unwrap_or_else(|| self.flow(number)));
                }
            }
        }
        RunSummary {
            flows,
            datagrams,
            trace_beyond_pkts: links.iter().map(LinkDirection::beyond_pkts).sum(),
        }
    }

    fn legs_of(&self, flow: usize) -> impl Iterator<Item = &'a Leg> {
        let first = self.legs.partition_point(|leg| leg.flow < flow);
        (self.legs[first..].iter()).take_while(move |leg| leg.flow == flow)
    }

    fn senders(&self, flow: usize) -> impl Iterator<Item = &'a Sender> {
        let nodes = self.nodes;
        self.legs_of(flow)
            .filter_map(move |leg| nodes[leg.source].sender())
    }

    /// When the first of the connections of flow number `flow` was reset.
    fn reset_of(&self, flow: usize) -> Option<Nanos> {
        self.senders(flow).filter_map(Sender::reset_at).min()
    }

    /// When flow number `flow` ends: its own end or its reset, otherwise the end of the run.
    pub fn end_of(&self, flow: usize) -> Nanos {
        let reset = self.reset_of(flow);
        self.tallies[flow].finished_at.or(reset).unwrap_or(self.end)
    }

    /// The numbers of flow number `flow`.
    pub fn flow(&self, number: usize) -> FlowSummary {
        let (tally, nodes) = (&self.tallies[number], self.nodes);
        let legs: Vec<&Leg> = self.legs_of(number).collect();
        let sender = self.senders(number).next();
        let receiver = legs.last().and_then(|leg| nodes[leg.sink].receiver());
        let stop = self.end_of(number);
        let duration_ns = stop - tally.start;
        let delivered_bytes = receiver.map_or(0, |receiver| receiver.delivered(stop));
        let mut counters = SenderCounters::default();
        for sender in self.senders(number) {
            counters += sender.counters();
        }
        let histogram = sender.map(Sender::rtt_histogram);
        let source = legs.first().and_then(|leg| nodes[leg.source].source());
        let sink = legs.last().and_then(|leg| nodes[leg.sink].sink());
        let at = OnTheWay::of(&legs, nodes);
        let delays = source.map(Source::delays).map(WriteDelays::histogram);
        let one_way = source.map(|source| source.one_way().histogram());
        let stalls = (sink.and_then(Sink::playout)).map(|playout| playout.stalls(stop));
        let loads = sink.and_then(Sink::browser).map(Browser::loads);
        FlowSummary {
            start_ns: tally.start,
            established_ns: sender.and_then(Sender::established_at),
            reset_ns: self.reset_of(number),
            duration_ns,
            completed: tally.finished_at.is_some(),
            delivered_bytes,
            goodput_bps: goodput(delivered_bytes, duration_ns),
            sender: counters,
            links: tally.links,
            control_losses: tally.control_losses,
            rtt_mean_ns: histogram.and_then(Histogram::mean),
            rtt_p95_ns: histogram.and_then(|histogram| histogram.quantile(0.95)),
            one_way_delay_p50_ns: quantile(one_way, 0.5),
            one_way_delay_p95_ns: quantile(one_way, 0.95),
            app_delay_p50_ns: quantile(delays, 0.5),
            app_delay_p95_ns: quantile(delays, 0.95),
            app_delay_p99_ns: quantile(delays, 0.99),
            app_delay_max_ns: delays.and_then(Histogram::max),
            progress: sink.map_or_else(ProgressSummary::default, |sink| {
                sink.progress().summary(stop, tally.finished_at.is_some())
            }),
            stalls: stalls.map(|(count, _)| count),
            stalled_ns: stalls.map(|(_, time)| time),
            pages: loads.map(Histogram::count),
            page_load_p50_ns: quantile(loads, 0.5),
            page_load_p95_ns: quantile(loads, 0.95),
            proxy_held_max_bytes: at.max_of(Proxy::buffered_max_bytes, AgentNode::held_max_bytes),
            proxy_stored_max_bytes: at.max_of(
                |proxy| proxy.occupancy().max_bytes(),
                AgentNode::stored_max_bytes,
            ),
            proxy_stored_mean_bytes: (at.proxies.iter())
                .map(|proxy| proxy.occupancy().mean_bytes(stop))
                .max(),
            proxy_delay_mean_ns: delay_of(&at.proxies, stop),
            proxy_lost_bytes: at.any().then(|| {
                let lost = self.reset_of(number).is_some() || at.have_crashed();
                let acknowledged = sender.map_or(0, Sender::acknowledged_octets);
                let arrived = receiver.map_or(0, |receiver| receiver.rcv_nxt() - 1);
                u64::from(lost) * acknowledged.saturating_sub(arrived)
            }),
            proxy_corrupted_bytes: at.any().then(|| sink.map_or(0, Sink::damaged_bytes)),
            proxy_counts: (at.any() || tally.filters).then(|| ProxyCounts {
                filtered_acks: tally.filtered_acks,
                ..at.counts()
            }),
        }
    }

    fn datagrams(&self, leg: &Leg) -> DatagramSummary {
        let tally = &self.tallies[leg.flow];
        let ends = [&self.nodes[leg.source], &self.nodes[leg.sink]];
        let source = ends.iter().find_map(|node| node.datagram_source());
        let sink = ends.iter().find_map(|node| node.datagram_sink());
        let delivered_bytes = sink.map_or(0, |sink| sink.octets);
        let stop = source.map_or(NEVER, |source| source.stop);
        let last_at = sink.map_or(0, |sink| sink.last_at);
        let duration_ns = stop.max(last_at).min(self.end) - tally.start;
        let delays = sink.map(|sink| &sink.delays);
        DatagramSummary {
            start_ns: tally.start,
            duration_ns,
            sent: source.map_or(0, |source| source.sent),
            received: sink.map_or(0, |sink| sink.received),
            delivered_bytes,
            goodput_bps: goodput(delivered_bytes, duration_ns),
            links: tally.links,
            delay_p50_ns: quantile(delays, 0.5),
            delay_p95_ns: quantile(delays, 0.95),
            delay_p99_ns: quantile(delays, 0.99),
            delay_max_ns: delays.and_then(Histogram::max),
            jitter_ns: sink.and_then(DatagramSink::jitter),
        }
    }
}

/// The proxies and agents of a flow.
struct OnTheWay<'a> {
    proxies: Vec<&'a Proxy>,
    agents: Vec<&'a AgentNode>,
}

impl<'a> OnTheWay<'a> {
    fn of(legs: &[&Leg], nodes: &'a [Node]) -> Self {
        let inner = || legs.iter().map(|leg| &nodes[leg.sink]);
        Self {
            proxies: inner().filter_map(Node::proxy).collect(),
            agents: inner().filter_map(Node::agent).collect(),
        }
    }

    fn any(&self) -> bool {
        !self.proxies.is_empty() || !self.agents.is_empty()
    }

    /// The maximum of a number of each of them.
    fn max_of(&self, proxy: fn(&Proxy) -> u64, agent: fn(&AgentNode) -> u64) -> Option<u64> {
        let proxies = self.proxies.iter().map(|each| proxy(each));
        let agents = self.agents.iter().map(|each| agent(each));
        proxies.chain(agents).max()
    }

    fn have_crashed(&self) -> bool {
        self.proxies.iter().any(|proxy| proxy.has_crashed())
            || self.agents.iter().any(|agent| agent.has_crashed())
    }

    fn counts(&self) -> ProxyCounts {
        let mut all = ProxyCounts::default();
        let proxies = self.proxies.iter().map(|proxy| proxy.counts());
        for counts in proxies.chain(self.agents.iter().map(|agent| agent.counts())) {
            all += counts;
        }
        all
    }
}

/// Mean time of an octet in these proxies, of which there is at least one; none: none has passed one of them.
fn delay_of(proxies: &[&Proxy], stop: Nanos) -> Option<Nanos> {
    let stays = proxies.iter().map(|proxy| {
        let passed = proxy.downstream().acknowledged_octets();
        proxy.occupancy().mean_stay(passed, stop)
    });
    (!proxies.is_empty()).then(|| stays.sum()).flatten()
}

/// A quantile to 1/64, but no more than the maximum.
fn quantile(times: Option<&Histogram>, share: f64) -> Option<Nanos> {
    times.and_then(|times| times.quantile(share).min(times.max()))
}

fn goodput(octets: u64, duration_ns: Nanos) -> f64 {
    if duration_ns == 0 {
        0.0
    } else {
        octets as f64 * 8.0 * SECOND as f64 / duration_ns as f64
    }
}

#[cfg(test)]
mod tests;
