//! Runs the receiving end of a run's only connection ahead of the clock: its reaction to a segment is computed when the
//! segment is sent, so that a segment and its ACK are one event of the run instead of two.
//!
//! The condition: only segments of the sending end reach the receiving end, in the order in which they were sent, and no
//! other traffic shares the links of its ACKs. Its state at any time then follows from what has been sent by that time, and
//! each of its calls has the time and the order that it would have in the run. It never works beyond the end of the run, nor
//! beyond the last octet of a flow, which may be that end.
//!
//! Does not depend on TCP. Read `world` and `network` first.

use super::World;
use crate::config::{ApplicationConfig, Config};
use crate::net::network::Network;
use crate::sim::assembly::{Leg, Transport};
use crate::sim::node::{Endpoint, Node};
use crate::sim::packet_pool::PacketHandle;
use crate::sim::time::{NEVER, Nanos};
use crate::sim::trace::Tap;

/// Numbers of the node that sends and of the one that receives.
const SOURCE: usize = 0;
pub(super) const SINK: usize = 1;
/// Maximum number of further calls of the sending end within one visit.
const MAX_CALLS: u32 = 64;

/// Whether the condition holds: one connection, which only its last octet can end, over a path whose arrival times are
/// known when a segment is sent; an application that reads at once and sends no requests; a receiving end that sends only
/// when a segment arrives or a delayed ACK is due, which excludes a forecast of outages.
pub fn is_possible<T: Tap>(
    config: &Config,
    (legs, ways): (&[Leg], &[Vec<usize>]),
    network: &Network<'_, T>,
) -> bool {
    let (&[leg], [way], [flow]) = (legs, ways, &config.flows[..]) else {
        return false;
    };
    leg.transport == Transport::Tcp
        && (flow.is_endless() || !leg.params.may_end())
        && flow.stop_ns.is_none()
        && leg.params.read_rate_bps.is_none()
        && leg.params.freeze_warning_ns.is_none()
        && !matches!(flow.application, ApplicationConfig::Pages { .. })
        && network.is_foreseeable(way)
}

/// What a visit of the sending end comes to.
#[derive(Clone, Copy, Debug, Default)]
struct Visit {
    /// Its deadline is another one now.
    moves: bool,
    /// The connection is over: then the run closes its books before anything else.
    over: bool,
}

impl<T: Tap> World<'_, T> {
    /// Visits one of the ends, and lets the receiving one process what has been sent to it.
    #[inline]
    pub(super) fn visit_pair(&mut self, number: usize, came: Option<PacketHandle>, now: Nanos) {
        if number == SINK {
            self.visit_one(number, came, now);
            self.work_ahead(now);
        } else if self.paced {
            self.visit_paced_source(came, now);
        } else {
            self.visit_source(came, now);
        }
    }

    /// The sending end takes one ACK after another while there is no other event.
    #[inline(always)]
    fn visit_source(&mut self, came: Option<PacketHandle>, now: Nanos) {
        let mut more = if self.unobserved { MAX_CALLS } else { 0 };
        let (mut came, mut now) = (came, now);
        loop {
            let Visit { moves, over } = self.let_source_send(came, now);
            if moves {
                self.call_source();
            }
            if !self.network.lane_is_clear() {
                return self.work_ahead(now);
            }
            if more == 0 || over {
                return;
            }
            more -= 1;
            let Some((handle, arrival)) = self.network.take_answer(NEVER) else {
                return;
            };
            (came, now) = (Some(handle), arrival);
        }
    }

    /// The same where pacing releases most segments: the deadlines of the end in between are not in the calendar. An ACK
    /// that arrives at the same time goes first, as a link before a node.
    #[inline(never)]
    fn visit_paced_source(&mut self, came: Option<PacketHandle>, now: Nanos) {
        self.network.call(SOURCE, NEVER);
        let mut more = MAX_CALLS;
        let (mut came, mut now) = (came, now);
        loop {
            let Visit { over, .. } = self.let_source_send(came, now);
            if more == 0 || over || !self.network.lane_is_clear() {
                break;
            }
            more -= 1;
            let deadline = self.source_deadline;
            (came, now) = if let Some((handle, arrival)) =
                self.network.take_answer(deadline.saturating_add(1))
            {
                (Some(handle), arrival)
            } else if deadline < self.network.next_reported() {
                (None, deadline)
            } else {
                break;
            };
        }
        self.call_source();
        if !self.network.lane_is_clear() {
            self.work_ahead(now);
        }
    }

    #[inline]
    fn call_source(&mut self) {
        self.network.call(SOURCE, self.source_deadline);
    }

    /// Lets the sending end take what has come, and the receiving end what it sends.
    #[inline(always)]
    fn let_source_send(&mut self, came: Option<PacketHandle>, now: Nanos) -> Visit {
        let [Node::Source(source), Node::Sink(sink)] = &mut self.nodes[..] else {
            return Visit::default();
        };
        let (network, mut free) = (&mut self.network, came);
        network.hand(&mut **source, came, now);
        while let Some((outgoing, last)) = network.write(&mut **source, &mut free, now) {
            if let Some(flight) = network.send_over_lane(&outgoing, now) {
                let arrival = flight.arrival;
                // What arrives at the instant of its departure takes its turn, for the sake of those that leave with it.
                if arrival <= now
                    || arrival > self.end.min(self.sink_deadline)
                    || outgoing.end >= self.last
                {
                    network.put_on_lane(flight);
                } else {
                    let handle = network.hand_from_lane(&mut **sink, flight);
                    source.note_arrives(sink, arrival);
                    network.send_all(&mut **sink, Some(handle), arrival);
                    let deadline = sink.next_deadline();
                    if deadline != self.sink_deadline {
                        self.sink_deadline = deadline;
                        network.call(SINK, deadline);
                    }
                }
            }
            if last {
                break;
            }
        }
        network.free(free);
        let deadline = source.next_deadline();
        let moves = deadline != self.source_deadline;
        self.source_deadline = deadline;
        let over = self.may_end && source.sender().has_ended();
        Visit { moves, over }
    }

    /// Lets the receiving end take what is on the lane, and do what it has to do in between.
    #[inline(never)]
    fn work_ahead(&mut self, now: Nanos) {
        let [Node::Source(source), Node::Sink(sink)] = &mut self.nodes[..] else {
            return;
        };
        let network = &mut self.network;
        while let Some((segment, arrival)) = network.first_on_lane() {
            if arrival <= now || arrival > self.end {
                break;
            }
            let deadline = sink.next_deadline();
            if deadline < arrival {
                network.serve(&mut **sink, None, deadline);
                continue;
            }
            if segment.end() >= self.last {
                network.call(SINK, deadline);
                return network.close_lane();
            }
            let handle = network.take_from_lane();
            network.serve(&mut **sink, handle, arrival);
            source.note_arrives(sink, arrival);
        }
        self.sink_deadline = sink.next_deadline();
        network.call(SINK, self.sink_deadline);
        network.call_lane();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;
    use crate::config::{ChangeConfig, DirectionConfig, Profile, QueueConfig};
    use crate::sim::invariants::scenarios::scenario;
    use crate::sim::summary::RunSummary;
    use crate::sim::time::MILLISECOND;

    fn change() -> impl Strategy<Value = ChangeConfig> {
        let switch = || proptest::option::weighted(0.2, any::<bool>());
        (
            1..8000_u64,
            1e5..2e7,
            proptest::option::of(0..200_u64),
            (switch(), switch()),
        )
            .prop_map(|(at_ms, rate_bps, delay_ms, (outage, hold))| ChangeConfig {
                at_ns: at_ms * MILLISECOND,
                rate_bps: Some(rate_bps),
                delay_ns: delay_ms.map(|ms| ms * MILLISECOND),
                outage,
                hold,
                overlap_ns: None,
            })
    }

    /// A schedule that ends with the link up.
    fn schedule() -> impl Strategy<Value = Vec<ChangeConfig>> {
        proptest::collection::vec(change(), 0..4).prop_map(|mut changes| {
            changes.sort_unstable_by_key(|change| change.at_ns);
            changes.dedup_by_key(|change| change.at_ns);
            if let Some(last) = changes.last_mut() {
                (last.outage, last.hold) = (Some(false), Some(false));
            }
            changes
        })
    }

    fn prepare(direction: &mut DirectionConfig, changes: Vec<ChangeConfig>) {
        direction.in_order = true;
        if let QueueConfig::Codel(_) | QueueConfig::Priority(_) | QueueConfig::Drr(_) =
            direction.queue
        {
            direction.queue = QueueConfig::packets(20);
        }
        if direction.rate_bps.is_some() {
            direction.schedule = changes;
        }
    }

    /// One flow under the condition, of any variant and with any other setting.
    fn foreseeable(endless: bool) -> impl Strategy<Value = Config> {
        let schedules = proptest::collection::vec((schedule(), schedule()), 7);
        (scenario(endless), schedules).prop_map(move |(mut config, schedules)| {
            config.datagrams.clear();
            config.flows.truncate(1);
            for (link, (forward, reverse)) in config.path.links.iter_mut().zip(schedules) {
                prepare(&mut link.forward, forward);
                prepare(&mut link.reverse, reverse);
            }
            let flow = &mut config.flows[0];
            flow.proxies.clear();
            flow.stack.read_rate_bps = None;
            flow.stack.freeze_warning_ns = None;
            if flow.variant == "freeze-tcp" {
                (flow.variant, flow.params) = ("newreno".into(), crate::cc::ParamValues::default());
            }
            if let ApplicationConfig::Pages { .. } = flow.application {
                flow.application = ApplicationConfig::default();
                flow.size_bytes = (!endless).then_some(100_000);
            }
            if !endless {
                flow.profile = Profile::Rfc;
                (flow.stack.retry_limit, flow.stack.syn_retry_limit) = (None, None);
            }
            config
        })
    }

    /// What a run comes to, and what its receiver counted; `ahead`: or all at its time.
    fn outcome(config: &Config, seed: u64, ahead: bool) -> (RunSummary, String) {
        let mut tap = ();
        let mut world = World::new(config, seed, &mut tap).expect("a valid scenario");
        assert!(world.network.has_lane(), "else the test compares nothing");
        if !ahead {
            world.network.close_lane();
        }
        let summary = world.run(&AtomicBool::new(false));
        let receiver = world.nodes()[1].receiver().map(|r| format!("{r:?}"));
        (
            summary.expect("nobody interrupts"),
            receiver.unwrap_or_default(),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_flow_without_end_comes_to_the_same(config in foreseeable(true), seed in any::<u64>()) {
            prop_assert_eq!(outcome(&config, seed, true), outcome(&config, seed, false));
        }

        #[test]
        fn a_flow_with_an_end_comes_to_the_same(config in foreseeable(false), seed in any::<u64>()) {
            prop_assert_eq!(outcome(&config, seed, true), outcome(&config, seed, false));
        }
    }
}
