//! What must hold in every run, checked over random scenarios by a tap that keeps books of its own: naive ones, which
//! share no code with the engine.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use crate::config::{
    ApplicationConfig, BurstConfig, CodelConfig, Config, DatagramConfig, DirectionConfig,
    DropTailConfig, DrrConfig, FlowConfig, LinkConfig, LossConfig, LossScope, NagleRule,
    PathConfig, PieConfig, PriorityConfig, Profile, ProxyConfig, QueueConfig, RedConfig, Spread,
    StackOverrides,
};
use crate::controller::ParamValues;
use crate::segment::{Direction, Ecn, Purpose, Segment, flags};
use crate::summary::{FlowSummary, RunSummary};
use crate::tap::{Event, Tap};
use crate::time::{MILLISECOND, Nanos, SECOND};
use crate::world::World;

/// What the books know of one leg.
#[derive(Default)]
struct LegBook {
    /// First octets of the segments that reached the receiver and are not in order yet, with their ends.
    arrived: BTreeSet<(u64, u64)>,
    rcv_nxt: u64,
    /// Right edge that the sender has been told, and the latest one promised.
    edge_known: u64,
    edge_promised: u64,
    data_sent: u64,
    data_arrived: u64,
    data_dropped: u64,
    highest_sent: u64,
}

#[derive(Default)]
struct Bookkeeper {
    last: Nanos,
    legs: HashMap<u16, LegBook>,
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
        self.data_sent += 1;
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
            "it must not be marked"
        );
        // RFC 9293 §3.8.6: nothing beyond the window that the receiver has told.
        assert!(
            segment.end() <= self.edge_known,
            "sent {} beyond {}",
            segment.end(),
            self.edge_known
        );
        self.highest_sent = self.highest_sent.max(segment.end());
    }

    fn data_arrives(&mut self, segment: &Segment) {
        self.data_arrived += 1;
        self.arrived.insert((segment.seq, segment.end()));
        while let Some(&(seq, end)) = self.arrived.first().filter(|first| first.0 <= self.rcv_nxt) {
            self.rcv_nxt = self.rcv_nxt.max(end);
            self.arrived.remove(&(seq, end));
        }
    }

    fn ack_leaves(&mut self, segment: &Segment) {
        assert_eq!(
            segment.ack, self.rcv_nxt,
            "acknowledges exactly what has arrived in order"
        );
        let edge = segment.ack + u64::from(segment.wnd_bytes);
        assert!(edge >= self.edge_promised, "the right edge moved left");
        self.edge_promised = edge;
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
                "SACK block {left}-{right} reports what has not arrived"
            );
        }
    }
}

impl Tap for Bookkeeper {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Sent(segment) | Event::Arrived(segment) => {
                assert!(now >= self.last, "time went back");
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
                self.leg(segment).data_sent += 1;
            }
            Event::Arrived(segment) if segment.purpose == Purpose::Datagram => {
                self.leg(segment).data_arrived += 1;
            }
            Event::Sent(segment) if segment.has(flags::SYN) => {}
            Event::Sent(segment) if carries_data(segment) => {
                self.leg(segment).data_leaves(segment);
            }
            Event::Sent(segment) if segment.direction == Direction::Reverse => {
                self.leg(segment).ack_leaves(segment);
            }
            Event::Arrived(segment) if carries_data(segment) => {
                self.leg(segment).data_arrives(segment);
            }
            Event::Arrived(segment) if segment.direction == Direction::Reverse => {
                self.leg(segment).edge_known = segment.ack + u64::from(segment.wnd_bytes);
            }
            Event::Dropped { segment, .. } if carries_data(segment) => {
                self.leg(segment).data_dropped += 1;
            }
            _ => {}
        }
    }
}

/// Whether it is one of those that the books count: requests are not.
fn carries_data(segment: &Segment) -> bool {
    segment.payload_bytes > 0 && segment.purpose != Purpose::Request
}

fn loss() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        Just(LossConfig::None),
        (0.0..0.08).prop_map(|per| LossConfig::Bernoulli { per }),
        (0.0..5e-6).prop_map(|ber| LossConfig::Ber { ber }),
        (0.0..0.01, 0.1..1.0).prop_map(|(p, r)| LossConfig::GilbertElliott {
            p,
            r,
            h: 0.0,
            k: 1.0
        }),
    ]
}

fn direction() -> impl Strategy<Value = DirectionConfig> {
    let rate = prop_oneof![Just(None), (1e5..2e7).prop_map(Some)];
    (rate, 1..200_u64, queue(), loss(), any::<bool>()).prop_map(
        |(rate_bps, delay_ms, queue, loss, all)| DirectionConfig {
            rate_bps,
            delay_ns: delay_ms * MILLISECOND,
            queue: if rate_bps.is_some() {
                queue
            } else {
                QueueConfig::default()
            },
            loss,
            loss_applies_to: if all { LossScope::All } else { LossScope::Data },
            in_order: false,
            schedule: Vec::new(),
        },
    )
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let limit = 1..80_u32;
    let bytes = (3000..120_000_u64).prop_map(|limit_bytes| {
        QueueConfig::DropTail(DropTailConfig {
            limit_pkts: None,
            limit_bytes: Some(limit_bytes),
        })
    });
    let red =
        (limit.clone(), 0.0..10.0, any::<bool>()).prop_map(|(limit_pkts, min_pkts, gentle)| {
            QueueConfig::Red(RedConfig {
                limit_pkts,
                min_pkts,
                max_pkts: 3.0 * min_pkts + 1.0,
                gentle,
                weight: 0.02,
                ..RedConfig::default()
            })
        });
    let pie = (limit.clone(), 1..100_u64).prop_map(|(limit_pkts, target_ms)| {
        QueueConfig::Pie(PieConfig {
            limit_pkts,
            target_ns: target_ms * MILLISECOND,
            ..PieConfig::default()
        })
    });
    let codel = (limit.clone(), 1..100_u64).prop_map(|(limit_pkts, target_ms)| {
        QueueConfig::Codel(CodelConfig {
            limit_pkts,
            target_ns: target_ms * MILLISECOND,
            ..CodelConfig::default()
        })
    });
    let priority = limit.clone().prop_map(|limit_pkts| {
        QueueConfig::Priority(PriorityConfig {
            limit_pkts,
            ..PriorityConfig::default()
        })
    });
    let drr = (limit.clone(), 100..3000_u32).prop_map(|(limit_pkts, quantum_bytes)| {
        QueueConfig::Drr(DrrConfig {
            quantum_bytes,
            limit_pkts,
        })
    });
    prop_oneof![
        2 => limit.prop_map(QueueConfig::packets),
        1 => bytes,
        1 => red,
        1 => pie,
        1 => codel,
        1 => priority,
        1 => drr,
    ]
}

fn stack() -> impl Strategy<Value = StackOverrides> {
    let read = prop_oneof![3 => Just(None), 1 => (5e4..5e6).prop_map(Some)];
    let base = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        1..20_u32,
        2..200_u64,
        read,
        proptest::sample::select(vec![NagleRule::Off, NagleRule::Rfc, NagleRule::Minshall]),
    )
        .prop_map(
            |(handshake, timestamps, delayed_ack, window, buffer, read_rate_bps, nagle)| {
                StackOverrides {
                    handshake: Some(handshake),
                    timestamps: Some(timestamps),
                    delayed_ack: Some(delayed_ack),
                    initial_window_pkts: Some(window),
                    receive_buffer_bytes: Some(buffer * 1500),
                    read_rate_bps,
                    nagle: Some(nagle),
                    ..StackOverrides::default()
                }
            },
        );
    (base, any::<bool>()).prop_map(|(base, ecn)| StackOverrides {
        ecn: Some(ecn),
        ..base
    })
}

/// A flow's size and application, that comes to an end or does not.
fn application(endless: bool) -> BoxedStrategy<(Option<u64>, ApplicationConfig)> {
    let spread =
        || proptest::sample::select(vec![Spread::Fixed, Spread::Exponential, Spread::Pareto]);
    let pages = (1..60_000_u64, 0..5000_u64, spread(), 1..1400_u16, 1..6_u64).prop_map(
        move |(page_bytes, think_ms, spread, request_bytes, pages)| ApplicationConfig::Pages {
            page_bytes,
            think_ns: think_ms * MILLISECOND,
            spread,
            request_bytes,
            pages: (!endless).then_some(pages),
        },
    );
    if endless {
        let on_off = (1e4..2e6, 1..3000_u64, 0..3000_u64, spread()).prop_map(
            |(rate_bps, on_ms, off_ms, spread)| ApplicationConfig::OnOff {
                rate_bps,
                on_ns: on_ms * MILLISECOND,
                off_ns: off_ms * MILLISECOND,
                spread,
                write_bytes: None,
            },
        );
        let stream =
            (1e4..2e6, 0..2000_u64, 0..2000_u64).prop_map(|(rate_bps, startup_ms, resume_ms)| {
                ApplicationConfig::Stream {
                    rate_bps,
                    write_every_ns: 40 * MILLISECOND,
                    startup_ns: startup_ms * MILLISECOND,
                    resume_ns: resume_ms * MILLISECOND,
                }
            });
        let greedy = Just(ApplicationConfig::default());
        prop_oneof![pages, on_off, stream, greedy]
            .prop_map(|kind| (None, kind))
            .boxed()
    } else {
        let greedy = (1..300_000_u64, proptest::option::of(1..70_000_u32)).prop_map(
            |(size, write_bytes)| (Some(size), ApplicationConfig::Greedy { write_bytes }),
        );
        let writes = proptest::collection::vec((0..3000_u64, 1..20_000_u32), 1..20).prop_map(
            |mut writes| {
                writes.sort_unstable();
                let (at_ms, bytes): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
                ApplicationConfig::Writes {
                    at_ns: at_ms.iter().map(|at| at * MILLISECOND).collect(),
                    bytes,
                }
            },
        );
        prop_oneof![3 => greedy, 1 => pages.prop_map(|kind| (None, kind)), 1 => writes.prop_map(|kind| (None, kind))]
            .boxed()
    }
}

fn flow(inner: Vec<String>, endless: bool) -> impl Strategy<Value = FlowConfig> {
    let names: Vec<&str> = crate::catalogue::VARIANTS
        .iter()
        .map(|info| info.name)
        .collect();
    let split = proptest::collection::vec((any::<bool>(), 4..60_u32), inner.len());
    let buffer = (3000..200_000_u64, any::<bool>());
    let buffer = proptest::option::weighted(0.4, buffer);
    (
        proptest::sample::select(names),
        any::<bool>(),
        stack(),
        application(endless),
        0..3000_u64,
        (split, buffer),
    )
        .prop_map(
            move |(
                variant,
                linux,
                mut stack,
                (size_bytes, mut application),
                start_ms,
                (split, buffer),
            )| {
                stack.send_buffer_bytes = buffer.map(|(bytes, _)| bytes);
                stack.send_buffer_max_bytes =
                    buffer.and_then(|(bytes, grows)| grows.then_some(4 * bytes));
                match &mut application {
                    ApplicationConfig::Greedy { write_bytes } if buffer.is_none() => {
                        *write_bytes = None;
                    }
                    ApplicationConfig::Stream { .. } => stack.read_rate_bps = None,
                    _ => {}
                }
                FlowConfig {
                    name: "flow".into(),
                    from: None,
                    to: None,
                    dscp: if linux { 46 } else { 0 },
                    start_ns: start_ms * MILLISECOND,
                    size_bytes,
                    application,
                    variant: variant.into(),
                    params: ParamValues::new(),
                    profile: if linux { Profile::Linux } else { Profile::Rfc },
                    stack,
                    proxies: inner
                        .iter()
                        .zip(split)
                        .filter(|(_, (present, _))| *present)
                        .map(|(node, (_, buffer_pkts))| ProxyConfig {
                            node: node.clone(),
                            buffer_pkts,
                            variant: None,
                            params: ParamValues::new(),
                            advertise: crate::config::AdvertisePolicy::default(),
                        })
                        .collect(),
                }
            },
        )
}

/// Slow and over before long, so that the flows come to their end.
fn datagrams(nodes: Vec<String>) -> impl Strategy<Value = DatagramConfig> {
    let spread = proptest::sample::select(vec![Spread::Fixed, Spread::Exponential, Spread::Pareto]);
    let bursts = (1..500_u64, 0..500_u64, spread).prop_map(|(on_ms, off_ms, spread)| BurstConfig {
        on_ns: on_ms * MILLISECOND,
        off_ns: off_ms * MILLISECOND,
        spread,
    });
    let ends = proptest::sample::subsequence(nodes, 2).prop_shuffle();
    (
        0..3000_u64,
        ends,
        29..1500_u16,
        1e3..1e6,
        proptest::option::of(bursts),
    )
        .prop_map(
            |(start_ms, ends, packet_bytes, rate_bps, bursts)| DatagramConfig {
                name: "datagrams".into(),
                start_ns: start_ms * MILLISECOND,
                stop_ns: Some((start_ms + 5000) * MILLISECOND),
                from: Some(ends[0].clone()),
                to: Some(ends[1].clone()),
                dscp: packet_bytes as u8 % 64,
                packet_bytes,
                rate_bps,
                bursts,
            },
        )
}

/// Runs to the end of all flows, or for some seconds of flows without end.
fn scenario(endless: bool) -> impl Strategy<Value = Config> {
    (1..4_usize).prop_flat_map(move |hops| {
        let nodes: Vec<String> = (0..=hops).map(|n| format!("n{n}")).collect();
        let inner = nodes[1..hops].to_vec();
        let links = proptest::collection::vec((direction(), direction()), hops);
        let flows = proptest::collection::vec(flow(inner, endless), 1..4);
        let others = proptest::collection::vec(datagrams(nodes.clone()), 0..3);
        (links, flows, others).prop_map(move |(links, flows, others)| Config {
            datagrams: others,
            duration_ns: if endless {
                8 * SECOND
            } else {
                4 * 3600 * SECOND
            },
            path: PathConfig {
                nodes: nodes.clone(),
                links: links
                    .into_iter()
                    .map(|(forward, reverse)| LinkConfig {
                        name: "link".into(),
                        forward,
                        reverse,
                    })
                    .collect(),
            },
            flows,
        })
    })
}

/// Runs with a bookkeeper and checks what must balance at the end.
fn check(config: &Config, seed: u64) -> (RunSummary, u64) {
    let mut books = Bookkeeper::default();
    let mut world = World::new(config, seed, &mut books).expect("a valid scenario");
    let promised: Vec<_> = world
        .nodes()
        .iter()
        .map(|node| node.receiver().map_or(0, |r| 1 + r.window()))
        .collect();
    world.introduce(|books, legs| {
        for (number, leg) in legs.iter().enumerate() {
            let book = books.book(number as u16);
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
        *flying.entry(segment.leg).or_default() += 1;
    }
    for proxy in world.nodes().iter().filter_map(|node| node.proxy()) {
        let (stored, capacity) = proxy.stored_max_bytes();
        assert!(stored <= capacity, "a proxy held {stored} of {capacity}");
        assert!(proxy.held_max_bytes() <= stored);
    }
    for (leg, book) in &books.legs {
        let on_the_way = flying.get(leg).copied().unwrap_or(0);
        assert_eq!(
            book.data_sent,
            book.data_arrived + book.data_dropped + on_the_way,
            "packets are conserved"
        );
    }
    for other in &summary.datagrams {
        let lost =
            other.channel_losses + other.queue_losses + other.aqm_losses + other.outage_losses;
        // What a link further on will drop is known, and counted, before it gets there.
        assert!(other.received + lost <= other.sent, "{other:?}");
        assert!(other.delay_p50_ns <= other.delay_p95_ns && other.jitter_ns <= other.delay_max_ns);
    }
    for (number, flow) in summary.flows.iter().enumerate() {
        check_flow(&config.flows[number], flow);
    }
    (summary, books.digest)
}

/// One that has an end reaches it, with every octet once.
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
        ApplicationConfig::OnOff { .. } | ApplicationConfig::Stream { .. } => None,
    };
    assert!(
        due.is_none_or(|due| flow.delivered_bytes == due),
        "{config:?} {flow:?}"
    );
    assert!(flow.app_delay_p50_ns <= flow.app_delay_p95_ns);
    assert!(
        flow.stalled_ns
            .is_none_or(|stalled| stalled <= flow.duration_ns)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_keeps_its_books(config in scenario(false), seed in any::<u64>()) {
        check(&config, seed);
    }

    #[test]
    fn flows_without_end_keep_their_books(config in scenario(true), seed in any::<u64>()) {
        check(&config, seed);
    }

    #[test]
    fn equal_seeds_give_equal_runs_whoever_listens(config in scenario(false), seed in any::<u64>()) {
        let (summary, digest) = check(&config, seed);
        prop_assert_eq!(&check(&config, seed), &(summary.clone(), digest));
        prop_assert_eq!(crate::world::run(&config, seed).expect("a valid scenario"), summary);
    }
}
