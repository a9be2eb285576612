//! The event loop of a run: processes the earliest event until the end. At equal times the source with the lower number
//! comes first: link directions in the order of the path, then nodes.
//!
//! Does not depend on TCP. Read ARCHITECTURE.md, "The engine", first.

mod ahead;
mod followers;

pub use followers::run_alike;

use std::sync::atomic::{AtomicBool, Ordering};

use super::assembly::{Leg, Parts, application_space, build};
use super::node::{Endpoint, Node};
use super::packet_pool::PacketHandle;
use super::summary::{FlowSummary, FlowTally, RunSummary, SummaryInputs};
use super::time::{NEVER, Nanos};
use super::trace::{Event, Tap};
use crate::app::sink::Sink;
use crate::config::{Config, ConfigErrors, FlowConfig, ProxyConfig};
use crate::net::network::{Delivery, Network};
use crate::proxy::Proxy;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::Segment;
use crate::tcp::sender::{Headline, ProxySample, Sender, SenderSample};
use followers::Followers;

/// Events between two looks at the interrupt.
const INTERRUPT_EVERY: u32 = 4096;

/// Why a run gave no result.
#[derive(Clone, Debug, PartialEq)]
pub enum RunError {
    /// The configuration makes no sense.
    Config(ConfigErrors),
    /// Someone asked it to stop.
    Interrupted,
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<ConfigErrors> for RunError {
    fn from(error: ConfigErrors) -> Self {
        Self::Config(error)
    }
}

/// What a node belongs to.
#[derive(Clone, Copy, Debug, Default)]
struct Belongs {
    flow: usize,
    source: usize,
}

/// A run in progress.
pub struct World<'a, T: Tap> {
    network: Network<'a, T>,
    nodes: Vec<Node>,
    legs: Vec<Leg>,
    /// Of each node: its flow, and the node that sends that flow's data.
    belongs: Vec<Belongs>,
    /// Next deadline of the receiving end, which works ahead of the calendar, and of the sending end.
    sink_deadline: Nanos,
    source_deadline: Nanos,
    /// No tap listens, so that nothing has to be reported after each ACK.
    unobserved: bool,
    /// The same, and pacing releases most segments of the sending end.
    paced: bool,
    /// Offset after the last octet of the stream that it receives.
    last: u64,
    /// The state last reported to the tap, by leg.
    reported: Vec<Option<(Headline, Option<ProxySample>)>>,
    end: Nanos,
    /// Flows of a fixed size that have not finished; none where the run goes on without them: a flow is endless, or there
    /// are datagrams.
    unfinished: Option<usize>,
    /// Of each flow that has come to its end: its numbers as they were then.
    closed: Vec<Option<FlowSummary>>,
    /// Some connection may end before the run does.
    may_end: bool,
    /// Senders that send what the first one does.
    followers: Followers,
}

impl<'a, T: Tap> World<'a, T> {
    /// Sets up a run of `config` with `seed`.
    ///
    /// # Errors
    /// The first value that makes no sense.
    pub fn new(config: &Config, seed: u64, tap: &'a mut T) -> Result<Self, ConfigErrors> {
        let Parts {
            links,
            nodes,
            legs,
            ways,
            ..
        } = build(config, seed)?;
        let flows = config.flows.iter().map(FlowTally::of);
        let datagrams = config.datagrams.iter().map(|datagrams| datagrams.start_ns);
        let tallies = flows.chain(datagrams.map(FlowTally::new)).collect();
        let end = config.duration_ns;
        let mut network = Network::new(links, (&legs, &ways), nodes.len(), (tallies, end), tap);
        for (number, node) in nodes.iter().enumerate() {
            network.call(number, node.next_deadline());
        }
        let fails = |flow: &FlowConfig| flow.proxies.iter().any(ProxyConfig::may_end);
        let may_end = legs.iter().any(|leg| leg.params.may_end()) || config.flows.iter().any(fails);
        let unobserved = !T::LISTENS;
        let endless = config.flows.iter().any(FlowConfig::is_endless);
        let goes_on = endless || !config.datagrams.is_empty();
        if !T::FOLLOWS_RECEIVERS && ahead::is_possible(config, (&legs, &ways), &network) {
            network.open_lane();
        }
        let sender = nodes.first().and_then(Node::sender);
        let sink = nodes.get(ahead::SINK).and_then(Node::sink);
        Ok(Self {
            reported: vec![None; legs.len()],
            sink_deadline: NEVER,
            last: sink.and_then(Sink::last).unwrap_or(u64::MAX),
            paced: unobserved && sender.is_some_and(Sender::is_paced),
            source_deadline: nodes.first().map_or(NEVER, Endpoint::next_deadline),
            belongs: belongs(&legs, nodes.len()),
            end,
            unobserved,
            may_end,
            unfinished: (!goes_on).then_some(config.flows.len()),
            closed: vec![None; config.flows.len()],
            followers: Followers::default(),
            network,
            nodes,
            legs,
        })
    }

    /// Runs to the end, or until `interrupt` is raised.
    ///
    /// # Errors
    /// [`RunError::Interrupted`].
    pub fn run(&mut self, interrupt: &AtomicBool) -> Result<RunSummary, RunError> {
        let mut until_look = INTERRUPT_EVERY;
        while self.unfinished != Some(0) {
            let (source, now) = self.network.next();
            if now > self.end {
                break;
            }
            self.step(source, now);
            until_look -= 1;
            if until_look == 0 {
                if interrupt.load(Ordering::Relaxed) {
                    return Err(RunError::Interrupted);
                }
                until_look = INTERRUPT_EVERY;
            }
        }
        for flow in 0..self.closed.len() {
            self.settle(flow);
        }
        let books = self.books();
        Ok(books.summarise(&self.closed, self.network.links()))
    }

    fn books(&self) -> SummaryInputs<'_> {
        SummaryInputs {
            tallies: self.network.tallies(),
            legs: &self.legs,
            nodes: &self.nodes,
            end: self.end,
        }
    }

    /// Tells both ends of a flow that its time is up.
    fn settle(&mut self, flow: usize) {
        let end = self.books().end_of(flow);
        for (node, belongs) in self.nodes.iter_mut().zip(&self.belongs) {
            match node {
                Node::Source(source) if belongs.flow == flow => source.settle(end),
                Node::Sink(sink) if belongs.flow == flow => sink.settle(end),
                _ => {}
            }
        }
        if flow == 0 {
            self.followers.settle(end);
        }
    }

    /// A flow has come to its end: what its ends and packets on their way still do is no part of its numbers, whoever else
    /// keeps the run going.
    #[cold]
    fn close_books(&mut self, flow: usize) {
        self.settle(flow);
        self.closed[flow] = Some(self.books().flow(flow));
        if flow == 0 {
            self.close_books_of_followers();
        }
        self.unfinished = self.unfinished.map(|flows| flows - 1);
    }

    /// Introduces the tap to the legs before the run.
    pub fn introduce(&mut self, introduction: impl FnOnce(&mut T, &[Leg])) {
        introduction(self.network.tap(), &self.legs);
    }

    /// The legs, for a tap that wants to know what the numbers in segments mean.
    pub fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// Segments that are on their way.
    pub fn in_flight(&self) -> impl Iterator<Item = &Segment> + '_ {
        self.network.in_flight()
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    #[inline]
    fn step(&mut self, source: usize, now: Nanos) {
        let links = self.network.links().len();
        if source >= links {
            self.visit(source - links, None, now);
        } else if let Some(Delivery { node, handle }) = self.network.turn(source, now) {
            self.visit(node, Some(handle), now);
        }
    }

    /// Hands a node what has come for it, or calls it at its deadline, and sends what it has to send.
    #[inline]
    fn visit(&mut self, number: usize, came: Option<PacketHandle>, now: Nanos) {
        if self.network.has_lane() {
            self.visit_pair(number, came, now);
        } else {
            self.visit_one(number, came, now);
        }
        if self.may_end {
            self.note_ends(number);
        }
        if T::LISTENS {
            self.trace_state(number, now);
        }
    }

    #[inline(never)]
    fn visit_one(&mut self, number: usize, came: Option<PacketHandle>, now: Nanos) {
        if number == 0 && !self.followers.is_empty() {
            if let Some(flow) = self.visit_followed(came, now) {
                self.close_books(flow);
            }
            return;
        }
        // A flow's nodes stand in the order of the path.
        let (before, after) = self.nodes.split_at_mut(number);
        let mut finished = None;
        match &mut after[0] {
            Node::Source(source) => {
                self.network.exchange(&mut **source, number, came, now);
                if let Some(end) = source.take_stop() {
                    finished = self.end_stream(number, end, now);
                }
            }
            Node::Sink(sink) => {
                self.network.exchange(&mut **sink, number, came, now);
                let Belongs { flow, source } = self.belongs[number];
                if let Node::Source(source) = &mut before[source] {
                    source.note_arrived(sink, now);
                }
                if source == 0 {
                    self.followers.note_arrived(sink, now);
                }
                if self.network.tally(flow).finishes(sink, now, self.end) {
                    finished = Some(flow);
                }
            }
            node => {
                let passed = node.passes();
                self.network.hand(node, came, now);
                if !passed && node.passes() {
                    // Before the SYN leaves.
                    self.unsplit(number);
                }
                let node = &mut self.nodes[number];
                self.network.send_all(node, came, now);
                self.network.call(number, node.next_deadline());
            }
        }
        if let Some(flow) = finished {
            self.close_books(flow);
        }
    }

    /// The proxy `number` passes its connection on unsplit: the next end is the receiving end of the connection upstream, and
    /// all legs between its ends are parts of one connection. Those of a flow are next to each other, in the order of its way,
    /// whatever proxies it has (`add_connection` of the assembly).
    #[cold]
    fn unsplit(&mut self, number: usize) {
        let Some(upstream) = self.legs.iter().position(|leg| leg.sink == number) else {
            return;
        };
        let Leg { params, isn, .. } = self.legs[upstream];
        let mut last = upstream;
        let wscale = loop {
            let next = self.legs[last].sink;
            let Some(onward) = self.legs.iter().position(|leg| leg.source == next) else {
                return;
            };
            last = onward;
            (self.legs[onward].params, self.legs[onward].isn) = (params, isn);
            match &mut self.nodes[self.legs[onward].sink] {
                Node::Sink(sink) => {
                    let space = application_space(&params);
                    break sink.adopt(Receiver::new(onward as u16, &params, space));
                }
                Node::Proxy(proxy) => break proxy.adopt(&params),
                Node::Agent(agent) => agent.adopt(&params),
                _ => {}
            }
        };
        let mut first = upstream;
        while self.nodes[self.legs[first].source].sender().is_none() {
            first -= 1;
        }
        for leg in first..=last {
            self.legs[leg].wscale = wscale;
            self.network.tap().leg_changes(leg as u16, &self.legs[leg]);
        }
    }

    /// The application of the flow that `source` sends has stopped, at stream offset `end`: returns the flow if all has been
    /// read.
    #[cold]
    fn end_stream(&mut self, source: usize, end: u64, now: Nanos) -> Option<usize> {
        let flow = self.belongs[source].flow;
        let own = self.legs.iter().rfind(|leg| leg.flow == flow)?;
        let Node::Sink(sink) = &mut self.nodes[own.sink] else {
            return None;
        };
        sink.stop_at(end);
        let tally = self.network.tally(flow);
        tally.finishes(sink, now, self.end).then_some(flow)
    }

    /// If a connection has ended at `node`: whether that was the last of its flow.
    fn note_ends(&mut self, node: usize) {
        let flow = self.belongs[node].flow;
        let node = &self.nodes[node];
        if node.sender().is_some_and(Sender::has_ended)
            || node.receiver().is_some_and(Receiver::has_ended)
        {
            self.note_end(flow);
        }
    }

    #[cold]
    fn note_end(&mut self, flow: usize) {
        let mut own = self.legs.iter().filter(|leg| leg.flow == flow);
        let mut was_reset = false;
        let over = own.all(|leg| {
            let sender = self.nodes[leg.source].sender();
            let receiver = self.nodes[leg.sink].receiver();
            let reset = sender.is_some_and(|sender| sender.reset_at().is_some());
            was_reset |= reset;
            reset
                || sender.is_none_or(Sender::has_ended) && receiver.is_none_or(Receiver::has_ended)
        });
        if !over || !self.network.tally(flow).ends() {
            return;
        }
        if was_reset {
            // What is on its way still arrives, and is read.
            self.unfinished = self.unfinished.map(|flows| flows - 1);
        } else {
            self.close_books(flow);
        }
    }

    fn trace_state(&mut self, node: usize, now: Nanos) {
        let Some(sender) = self.nodes[node].sender() else {
            return;
        };
        if sender.established_at().is_none() {
            return;
        }
        let proxy = self.nodes[node].proxy().map(Proxy::sample);
        let (leg, news) = (sender.leg(), (sender.headline(), proxy));
        let reported = &mut self.reported[usize::from(leg)];
        if reported.as_ref() != Some(&news) {
            *reported = Some(news);
            let sample = &SenderSample {
                proxy,
                ..sender.sample()
            };
            self.network.tap().event(now, Event::State { leg, sample });
        }
    }
}

/// What each node belongs to. The legs of a flow stand in the order of the path.
fn belongs(legs: &[Leg], nodes: usize) -> Vec<Belongs> {
    let mut belongs = vec![Belongs::default(); nodes];
    let mut source = 0;
    for leg in legs {
        if leg.index == 0 {
            source = leg.source;
        }
        let flow = leg.flow;
        (belongs[leg.source], belongs[leg.sink]) =
            (Belongs { flow, source }, Belongs { flow, source });
    }
    belongs
}

/// Runs `config` with `seed` to its end without a listener.
///
/// # Errors
/// The first value of the configuration that makes no sense.
pub fn run(config: &Config, seed: u64) -> Result<RunSummary, RunError> {
    World::new(config, seed, &mut ())?.run(&AtomicBool::new(false))
}
