//! Invariants of every run, checked over random scenarios by a tap with its own bookkeeping, which is naive and shares
//! no code with the engine.

mod disturbed;
pub mod scenarios;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::summary::{DatagramSummary, FlowSummary, RunSummary};
use super::time::Nanos;
use super::trace::{Event, Tap};
use super::world::World;
use crate::config::{ApplicationConfig, BurstConfig, Config, DatagramConfig, FlowConfig, Spread};
use crate::proxy::Proxy;
use crate::tcp::segment::{Direction, Ecn, Purpose, Segment, flags};
use scenarios::scenario;

/// What the tap has recorded of a leg.
#[derive(Default)]
struct LegBook {
    /// Segments that arrived out of order: first octet and end.
    arrived: BTreeSet<(u64, u64)>,
    rcv_nxt: u64,
    /// Right edge of the window that the sender knows, and the latest one that the receiver has offered.
    edge_known: u64,
    edge_promised: u64,
    /// Highest number that the sender knows to be acknowledged; it looks at nothing that comes after a reset.
    acknowledged: u64,
    is_over: bool,
    data_sent: u64,
    data_arrived: u64,
    data_dropped: u64,
    highest_sent: u64,
    /// A proxy at its end withholds acknowledgements.
    withholds: bool,
    /// It is a part of a connection that passes an agent, which may send segments again and acknowledge ahead.
    passes_agent: bool,
    /// A proxy at one of its ends moves, and misses what arrives meanwhile.
    moves: bool,
    /// Data segments sent, and those of them that had been sent before.
    segments: (u64, u64),
}

#[derive(Default)]
struct Bookkeeper {
    last: Nanos,
    legs: HashMap<u16, LegBook>,
    /// Flow of each leg.
    flows: Vec<usize>,
    digest: u64,
}

impl Bookkeeper {
    fn leg(&mut self, segment: &Segment) -> &mut LegBook {
        self.book(segment.leg)
    }

    fn book(&mut self, leg: u16) -> &mut LegBook {
        self.legs.entry(leg).or_insert_with(|| LegBook {
            rcv_nxt: 1,
            ..LegBook::default()
        })
    }

    fn note(&mut self, values: &[u64]) {
        for value in values {
            self.digest = (self.digest ^ value)
                .wrapping_mul(0x0100_0000_01B3)
                .rotate_left(17);
        }
    }
}

impl LegBook {
    fn data_leaves(&mut self, segment: &Segment) {
        self.data_sent += u64::from(segment.payload_bytes);
        if self.passes_agent {
            return;
        }
        let again = matches!(
            segment.purpose,
            Purpose::FastRetransmission | Purpose::TimeoutRetransmission
        );
        assert!(
            !again || segment.end() <= self.highest_sent,
            "a retransmission of what was never sent"
        );
        // RFC 3168 §6.1.5.
        assert!(
            !again || segment.ecn == Ecn::NotEct,
            "a retransmission must not be ECN-capable"
        );
        // RFC 9293 §3.8.6: no data beyond the offered window.
        assert!(
            segment.end() <= self.edge_known,
            "sent {} beyond {}",
            segment.end(),
            self.edge_known
        );
        self.segments.0 += 1;
        // Octets of a SYN were sent if they are acknowledged, else they leave as new ones.
        let sent = self.highest_sent.max(self.acknowledged);
        self.segments.1 += u64::from(segment.end() <= sent);
        self.highest_sent = self.highest_sent.max(segment.end());
    }

    /// Its data precede the first window, and are sent again as new ones if their answer shows that there was no room.
    fn syn_leaves(&mut self, segment: &Segment) {
        self.data_sent += u64::from(segment.payload_bytes);
        self.segments.0 += u64::from(segment.payload_bytes > 0);
        if segment.direction == Direction::Reverse && segment.ack == 1 {
            self.rcv_nxt = 1;
            self.arrived.clear();
        }
    }

    fn data_arrives(&mut self, segment: &Segment) {
        self.data_arrived += u64::from(segment.payload_bytes);
        self.arrived.insert((segment.seq, segment.seq_end()));
        while let Some(&(seq, end)) = self.arrived.first().filter(|first| first.0 <= self.rcv_nxt) {
            self.rcv_nxt = self.rcv_nxt.max(end);
            self.arrived.remove(&(seq, end));
        }
    }

    fn ack_leaves(&mut self, segment: &Segment) {
        if self.passes_agent {
            return;
        }
        let edge = segment.ack + u64::from(segment.wnd_bytes);
        assert!(edge >= self.edge_promised, "the right edge moved left");
        self.edge_promised = edge;
        if self.moves {
            return;
        }
        let acknowledged = segment.ack.cmp(&self.rcv_nxt);
        assert!(
            acknowledged.is_eq() || self.withholds && acknowledged.is_lt(),
            "an ACK covers exactly what has arrived in order, or less at a proxy that withholds it: {segment:?}, not {}",
            self.rcv_nxt
        );
        for (left, right) in segment.sack_blocks().filter(|block| block.0 > segment.ack) {
            let mut at = left;
            for &(seq, end) in self.arrived.range((left, 0)..) {
                if seq > at || at >= right {
                    break;
                }
                at = at.max(end);
            }
            assert!(
                at >= right,
                "SACK block {left}-{right} covers data that have not arrived"
            );
        }
    }
}

impl Tap for Bookkeeper {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Sent(segment) | Event::Arrived(segment) => {
                assert!(now >= self.last, "time went backwards");
                self.last = now;
                self.note(&[
                    now,
                    segment.seq,
                    segment.ack,
                    u64::from(segment.flags),
                    u64::from(segment.wnd_bytes),
                ]);
            }
            Event::Marked { segment, .. } => self.note(&[segment.seq]),
            Event::Dropped { cause, segment, .. } => self.note(&[cause as u64, segment.seq]),
            Event::State { sample, .. } => self.note(&[sample.cwnd_bytes as u64, sample.snd_una]),
        }
        match event {
            Event::Sent(segment) if segment.purpose == Purpose::Datagram => {
                self.leg(segment).data_sent += u64::from(segment.payload_bytes);
            }
            Event::Arrived(segment) if segment.purpose == Purpose::Datagram => {
                self.leg(segment).data_arrived += u64::from(segment.payload_bytes);
            }
            Event::Arrived(segment) if segment.has(flags::RST) && !carries_data(segment) => {
                self.leg(segment).is_over |= segment.direction == Direction::Reverse;
            }
            Event::Sent(segment) if segment.has(flags::RST) && !carries_data(segment) => {}
            Event::Sent(segment) if segment.has(flags::SYN) => {
                self.leg(segment).syn_leaves(segment);
            }
            Event::Sent(segment) if carries_data(segment) => {
                self.leg(segment).data_leaves(segment);
            }
            Event::Sent(segment) if segment.direction == Direction::Reverse => {
                self.leg(segment).ack_leaves(segment);
            }
            Event::Arrived(segment)
                if carries_data(segment)
                    || segment.direction == Direction::Forward && segment.has(flags::FIN) =>
            {
                self.leg(segment).data_arrives(segment);
            }
            Event::Arrived(segment) if segment.direction == Direction::Reverse => {
                // An ACK that was overtaken may report an older edge.
                let edge = segment.ack + u64::from(segment.wnd_bytes);
                let book = self.leg(segment);
                book.edge_known = book.edge_known.max(edge);
                // The number in the answer to a dummy segment is not read.
                if !book.is_over && !segment.has(flags::DUMMY) {
                    book.acknowledged = book.acknowledged.max(segment.ack);
                }
            }
            Event::Dropped { segment, .. } if carries_data(segment) => {
                self.leg(segment).data_dropped += u64::from(segment.payload_bytes);
            }
            _ => {}
        }
    }
}

/// Whether the tap counts the segment: requests do not count.
fn carries_data(segment: &Segment) -> bool {
    segment.payload_bytes > 0 && segment.purpose != Purpose::Request
}

/// Runs a scenario with the tap. Checks at the end that octets were conserved, and stored only where there is room.
fn play(config: &Config, seed: u64) -> (RunSummary, Bookkeeper) {
    let mut books = Bookkeeper::default();
    let mut world = World::new(config, seed, &mut books).expect("a valid scenario");
    let promised: Vec<_> = (world.nodes().iter())
        .map(|node| node.receiver().map_or(0, |r| 1 + r.window()))
        .collect();
    let withholds: Vec<_> = (world.nodes().iter())
        .map(|node| node.proxy().is_some_and(Proxy::withholds))
        .collect();
    let agents: Vec<_> = (world.nodes().iter())
        .map(|node| node.agent().is_some())
        .collect();
    world.introduce(|books, legs| {
        books.flows = legs.iter().map(|leg| leg.flow).collect();
        for (number, leg) in legs.iter().enumerate() {
            let proxies = config.flows.get(leg.flow).map_or(&[][..], |f| &f.proxies);
            let book = books.book(number as u16);
            book.withholds = withholds[leg.sink];
            // Beyond a limit, a proxy passes its connection on, as an agent does.
            book.passes_agent = agents[leg.sink]
                || agents[leg.source]
                || proxies.iter().any(|proxy| proxy.limit.is_some());
            book.moves = (proxies.iter().flat_map(|proxy| &proxy.faults))
                .any(|fault| fault.transfer_ns.is_some());
            if !leg.params.handshake {
                (book.edge_known, book.edge_promised) = (promised[leg.sink], promised[leg.sink]);
            }
        }
    });
    let summary = world
        .run(&AtomicBool::new(false))
        .expect("nobody interrupts");
    let mut flying: HashMap<u16, u64> = HashMap::new();
    for segment in world.in_flight().filter(|segment| carries_data(segment)) {
        *flying.entry(segment.leg).or_default() += u64::from(segment.payload_bytes);
    }
    for proxy in world.nodes().iter().filter_map(|node| node.proxy()) {
        let (stored, capacity) = (proxy.occupancy().max_bytes(), proxy.capacity_bytes());
        assert!(stored <= capacity, "a proxy stored {stored} of {capacity}");
        assert!(proxy.buffered_max_bytes() <= stored);
    }
    for (leg, book) in &books.legs {
        let on_the_way = flying.get(leg).copied().unwrap_or(0);
        assert_eq!(
            book.data_sent,
            book.data_arrived + book.data_dropped + on_the_way,
            "octets are conserved"
        );
    }
    (summary, books)
}

/// Runs a scenario with the tap and checks the invariants at the end.
fn check(config: &Config, seed: u64) -> (RunSummary, u64) {
    let (summary, books) = play(config, seed);
    for (other, sent) in config.datagrams.iter().zip(&summary.datagrams) {
        check_datagrams(other, sent, config.duration_ns);
    }
    for (number, flow) in summary.flows.iter().enumerate() {
        check_flow(&config.flows[number], flow);
        assert!(flow.start_ns + flow.duration_ns <= config.duration_ns);
        // What agents send again is no sender's.
        if config.flows[number]
            .proxies
            .iter()
            .all(|proxy| !proxy.kind.is_agent())
        {
            check_counts(&books, number, flow);
        }
    }
    (summary, books.digest)
}

/// The counters of a flow agree with those of the tap over all its legs.
fn check_counts(books: &Bookkeeper, number: usize, flow: &FlowSummary) {
    let own = books
        .flows
        .iter()
        .enumerate()
        .filter(|leg| *leg.1 == number);
    let (mut segments, mut again) = (0, 0);
    for book in own.filter_map(|(leg, _)| books.legs.get(&(leg as u16))) {
        segments += book.segments.0;
        again += book.segments.1;
    }
    // After its end a flow may send more while other flows keep the run going.
    let reported = flow.sender;
    assert!(reported.segments_out <= segments && reported.retransmissions <= again);
    if !flow.completed {
        assert_eq!(
            (reported.segments_out, reported.retransmissions),
            (segments, again)
        );
    }
}

/// A source sends the datagrams that are due, and each of them is received, lost or in flight.
fn check_datagrams(config: &DatagramConfig, other: &DatagramSummary, duration: Nanos) {
    let links = other.links;
    let lost = links.channel_losses + links.queue_losses + links.aqm_losses + links.outage_losses;
    // The loss of a packet is computed, and counted, before the time at which it happens.
    assert!(other.received + lost <= other.sent, "{other:?}");
    assert!(other.delay_p50_ns <= other.delay_p95_ns && other.jitter_ns <= other.delay_max_ns);
    let span = config.stop_ns.unwrap_or(duration).min(duration) - config.start_ns;
    assert!(other.duration_ns >= span && config.start_ns + other.duration_ns <= duration);
    let on = match config.bursts {
        None => span,
        Some(BurstConfig {
            on_ns,
            off_ns,
            spread: Spread::Fixed,
        }) => span / (on_ns + off_ns) * on_ns + (span % (on_ns + off_ns)).min(on_ns),
        Some(_) => return,
    };
    let packet_bits = f64::from(config.packet_bytes) * 8.0;
    let due = on as f64 * config.rate_bps / 1e9 / packet_bits;
    // The first one leaves immediately.
    let difference = other.sent as f64 - due;
    assert!(
        (-0.01..1.01).contains(&difference),
        "{due} {config:?} {other:?}"
    );
    let max_bps = (due + 1.01) * packet_bits * 1e9 / span.max(1) as f64;
    assert!(other.goodput_bps <= max_bps, "{config:?} {other:?}");
}

/// A flow that has an end reaches it and delivers every octet once.
fn check_flow(config: &FlowConfig, flow: &FlowSummary) {
    assert_eq!(flow.completed, !config.is_endless(), "{config:?} {flow:?}");
    let due = match &config.application {
        ApplicationConfig::Greedy { .. } => config.size_bytes,
        ApplicationConfig::Writes { bytes, .. } => Some(bytes.iter().copied().map(u64::from).sum()),
        ApplicationConfig::Pages { pages, .. } => {
            assert!(
                pages.is_none_or(|pages| flow.pages == Some(pages)),
                "{config:?} {flow:?}"
            );
            None
        }
        ApplicationConfig::OnOff { .. }
        | ApplicationConfig::Stream { .. }
        | ApplicationConfig::Bursts { .. } => None,
    };
    assert!(
        due.is_none_or(|due| flow.delivered_bytes == due),
        "{config:?} {flow:?}"
    );
    assert!(flow.app_delay_p50_ns <= flow.app_delay_p95_ns);
    assert!(flow.app_delay_p95_ns <= flow.app_delay_max_ns);
    // No time is longer than the flow.
    let longest = [
        flow.app_delay_max_ns,
        flow.page_load_p50_ns,
        flow.rtt_mean_ns,
    ];
    assert!(
        longest.iter().all(|time| *time <= Some(flow.duration_ns)),
        "{config:?} {flow:?}"
    );
    assert!(
        flow.stalled_ns
            .is_none_or(|stalled| stalled <= flow.duration_ns)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flows_that_end_satisfy_the_invariants(config in scenario(false), seed in any::<u64>()) {
        check(&config, seed);
    }

    #[test]
    fn endless_flows_satisfy_the_invariants(config in scenario(true), seed in any::<u64>()) {
        check(&config, seed);
    }

    #[test]
    fn equal_seeds_give_equal_runs_with_any_tap(config in scenario(false), seed in any::<u64>()) {
        let (summary, digest) = check(&config, seed);
        prop_assert_eq!(&check(&config, seed), &(summary.clone(), digest));
        prop_assert_eq!(super::world::run(&config, seed).expect("a valid scenario"), summary);
    }
}
