//! The one-way delay of data: from the first transmission of an octet by the data sender to its first arrival at the host of
//! the receiver, in order or not, through whatever proxies.
//!
//! Does not depend on windows, recovery or reading. One octet of each segment is measured; of a longer flow, the distance
//! to the next one is 1/1024 of the octets sent before. An octet represents those up to the next one; the last one of a long
//! flow may represent some that were never sent, up to 1/1024 of the stream.

use std::collections::VecDeque;

use crate::sim::histogram::Histogram;
use crate::sim::time::Nanos;
use crate::tcp::segment::Segment;

/// The distance from a measured octet to the next one is its position in the stream divided by this, or the rest of its
/// segment if that is longer.
const SHARE: u64 = 1024;

/// An octet that is on its way.
#[derive(Clone, Copy, Debug)]
struct Measured {
    octet: u64,
    sent_at: Nanos,
    /// Number of octets that it represents; 0 once it has arrived.
    represents: u64,
}

/// One-way delays of a flow, weighted by octets.
#[derive(Debug)]
pub struct OneWayDelays {
    /// The next octet to be measured, the first one that no earlier one represents.
    next: u64,
    /// In the order of their transmission, which is that of the stream.
    on_the_way: VecDeque<Measured>,
    /// The first of those; beyond every segment without one.
    awaited: u64,
    delays: Histogram,
}

impl Default for OneWayDelays {
    fn default() -> Self {
        Self {
            next: 1,
            on_the_way: VecDeque::new(),
            awaited: u64::MAX,
            delays: Histogram::default(),
        }
    }
}

impl OneWayDelays {
    /// The data sender sends a segment.
    #[inline(always)]
    pub fn note_departure(&mut self, segment: &Segment, now: Nanos) {
        if segment.end() > self.next {
            self.measure(segment.end(), now);
        }
    }

    /// New octets leave in order, so that the next one to be measured is in the segment that ends at `end`.
    #[cold]
    #[inline(never)]
    fn measure(&mut self, end: u64, sent_at: Nanos) {
        let octet = self.next;
        self.next = end.max(octet + octet / SHARE);
        self.on_the_way.push_back(Measured {
            octet,
            sent_at,
            represents: self.next - octet,
        });
        self.awaited = self.awaited.min(octet);
    }

    /// Octets from `came.0` up to `came.1` have arrived, perhaps not for the first time.
    #[inline(always)]
    pub fn note_arrival(&mut self, came: (u64, u64), now: Nanos) {
        if came.1 > self.awaited {
            self.take(came, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn take(&mut self, (start, end): (u64, u64), now: Nanos) {
        let on_the_way = &mut self.on_the_way;
        let first = on_the_way.partition_point(|measured| measured.octet < start);
        for measured in on_the_way.range_mut(first..) {
            if measured.octet >= end {
                break;
            }
            let represents = std::mem::take(&mut measured.represents);
            self.delays.add(now - measured.sent_at, represents);
        }
        while on_the_way
            .front()
            .is_some_and(|first| first.represents == 0)
        {
            on_the_way.pop_front();
        }
        self.awaited = on_the_way.front().map_or(u64::MAX, |first| first.octet);
    }

    /// The delays, weighted by the octets that each measured one represents.
    pub fn histogram(&self) -> &Histogram {
        &self.delays
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::config::Config;
    use crate::sim::summary::FlowSummary;
    use crate::sim::trace::{Event, Tap};
    use crate::sim::world::World;
    use crate::tcp::segment::Direction;

    /// What left the first leg and arrived at the end of the last one for the first time.
    struct Exact {
        last_leg: u16,
        /// By last octet of a segment: its first one and when it left.
        sent: BTreeMap<u64, (u64, Nanos)>,
        arrived: BTreeMap<u64, Nanos>,
    }

    impl Tap for Exact {
        fn event(&mut self, now: Nanos, event: Event<'_>) {
            match event {
                Event::Sent(segment)
                    if segment.leg == 0 && segment.direction == Direction::Forward =>
                {
                    let new = self
                        .sent
                        .keys()
                        .next_back()
                        .is_none_or(|&end| segment.end() > end);
                    if segment.payload_bytes > 0 && new {
                        self.sent.insert(segment.end(), (segment.seq, now));
                    }
                }
                Event::Arrived(segment)
                    if segment.leg == self.last_leg && segment.direction == Direction::Forward =>
                {
                    for octet in segment.seq..segment.end() {
                        self.arrived.entry(octet).or_insert(now);
                    }
                }
                _ => {}
            }
        }
    }

    impl Exact {
        /// The delay that `share` of the octets do not exceed.
        fn quantile(&self, share: f64) -> f64 {
            let mut delays = Vec::new();
            for (&end, &(start, sent)) in &self.sent {
                delays.extend(
                    (start..end).filter_map(|octet| Some(self.arrived.get(&octet)? - sent)),
                );
            }
            delays.sort_unstable();
            delays[(share * delays.len() as f64) as usize - 1] as f64
        }
    }

    /// A flow over a queue, and a second link of another rate that loses packets.
    fn run(flow: &str, last_leg: u16) -> (FlowSummary, Exact) {
        let config = format!(
            r#"{{"duration_ns": 40000000000, "path": {{"nodes": ["a", "b", "c"], "links": [
                {{"name": "ab", "forward": {{"rate_bps": 10e6, "delay_ns": 20000000,
                    "queue": {{"kind": "drop_tail", "limit_pkts": 60}}}},
                  "reverse": {{"rate_bps": 10e6, "delay_ns": 20000000}}}},
                {{"name": "bc", "forward": {{"rate_bps": 8e6, "delay_ns": 50000000,
                    "queue": {{"kind": "drop_tail", "limit_pkts": 60}},
                    "loss": {{"kind": "bernoulli", "per": 0.004}}}},
                  "reverse": {{"rate_bps": 10e6, "delay_ns": 50000000}}}}]}},
                "flows": [{{"name": "f", {flow}}}]}}"#
        );
        let config: Config = serde_json::from_str(&config).expect("well-formed");
        let mut exact = Exact {
            last_leg,
            sent: BTreeMap::new(),
            arrived: BTreeMap::new(),
        };
        let mut world = World::new(&config, 1, &mut exact).expect("valid");
        let mut summary = world.run(&AtomicBool::new(false)).expect("runs");
        (summary.flows.remove(0), exact)
    }

    #[test]
    fn percentiles_are_those_of_the_octets_whether_they_were_lost_or_split() {
        for (flow, last_leg) in [
            (r#""variant": "sack", "size_bytes": 900000"#, 0),
            (
                r#""variant": "newreno", "size_bytes": 700000, "proxies": [{"node": "b"}]"#,
                1,
            ),
            (r#""variant": "cubic", "profile": "linux""#, 0),
            (
                r#""variant": "sack", "application": {"kind": "stream", "rate_bps": 400000,
                    "write_every_ns": 20000000}"#,
                0,
            ),
        ] {
            let (reported, exact) = run(flow, last_leg);
            assert!(reported.sender.retransmissions > 0, "{flow}: {reported:?}");
            for (share, got) in [
                (0.5, reported.one_way_delay_p50_ns),
                (0.95, reported.one_way_delay_p95_ns),
            ] {
                let (exact, got) = (exact.quantile(share), got.expect("data arrived") as f64);
                assert!(
                    (got / exact - 1.0).abs() < 0.01,
                    "{flow} {share}: {got} against {exact}"
                );
            }
        }
    }

    fn measured(delays: &mut OneWayDelays, pieces: &[(u64, u16, Nanos)]) {
        for &(seq, payload_bytes, now) in pieces {
            let segment = Segment {
                seq,
                payload_bytes,
                ..Segment::new(0, Direction::Forward)
            };
            delays.note_departure(&segment, now);
        }
    }

    #[test]
    fn an_octet_counts_once_from_its_first_transmission_to_its_first_arrival() {
        let mut delays = OneWayDelays::default();
        // The first segment is sent three times.
        measured(
            &mut delays,
            &[
                (1, 1000, 0),
                (1001, 1000, 5),
                (1, 1000, 30),
                (2001, 500, 31),
                (1, 1000, 40),
            ],
        );
        delays.note_arrival((1001, 2001), 17);
        assert_eq!(
            (delays.histogram().count(), delays.histogram().max()),
            (1000, Some(12))
        );
        delays.note_arrival((1, 1001), 60);
        delays.note_arrival((1, 1001), 90);
        delays.note_arrival((1001, 2001), 91);
        assert_eq!(
            (delays.histogram().count(), delays.histogram().max()),
            (2000, Some(60))
        );
        // Behind a proxy, pieces are others.
        delays.note_arrival((1801, 2101), 50);
        delays.note_arrival((2101, 2501), 52);
        assert_eq!(
            (delays.histogram().count(), delays.histogram().quantile(0.5)),
            (2500, Some(19))
        );
        assert!(delays.on_the_way.is_empty() && delays.awaited == u64::MAX);
    }

    #[test]
    fn a_long_flow_is_measured_at_distances_of_a_thousandth_of_it() {
        let mut delays = OneWayDelays::default();
        let mut number = 0;
        for seq in (1..1_000_000_000).step_by(1000) {
            measured(&mut delays, &[(seq, 1000, 0)]);
            number += delays.on_the_way.len();
            delays.note_arrival((seq, seq + 1000), 7);
        }
        // 1024 at first, then as many in each e-fold.
        assert!((7000..9000).contains(&number), "{number}");
        assert!(delays.histogram().count() >= 1_000_000_000);
    }
}
