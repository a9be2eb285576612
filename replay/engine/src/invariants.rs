//! What must hold in every run, checked over random scenarios by a tap that keeps books of its own: naive ones, which
//! share no code with the engine.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use crate::config::{
    ApplicationConfig, Config, DirectionConfig, FlowConfig, LinkConfig, LossConfig, LossScope,
    NagleRule, PathConfig, Profile, ProxyConfig, StackOverrides,
};
use crate::controller::ParamValues;
use crate::segment::{Direction, Purpose, Segment, flags};
use crate::summary::RunSummary;
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
            Event::Dropped { cause, segment, .. } => self.note(&[cause as u64, segment.seq]),
            Event::State { sample, .. } => self.note(&[sample.cwnd_bytes as u64, sample.snd_una]),
        }
        match event {
            Event::Sent(segment) if segment.has(flags::SYN) => {}
            Event::Sent(segment) if segment.payload_bytes > 0 => {
                self.leg(segment).data_leaves(segment);
            }
            Event::Sent(segment) if segment.direction == Direction::Reverse => {
                self.leg(segment).ack_leaves(segment);
            }
            Event::Arrived(segment) if segment.payload_bytes > 0 => {
                self.leg(segment).data_arrives(segment);
            }
            Event::Arrived(segment) if segment.direction == Direction::Reverse => {
                self.leg(segment).edge_known = segment.ack + u64::from(segment.wnd_bytes);
            }
            Event::Dropped { segment, .. } if segment.payload_bytes > 0 => {
                self.leg(segment).data_dropped += 1;
            }
            _ => {}
        }
    }
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
    (rate, 1..200_u64, 1..80_u32, loss(), any::<bool>()).prop_map(
        |(rate_bps, delay_ms, queue_pkts, loss, all)| DirectionConfig {
            rate_bps,
            delay_ns: delay_ms * MILLISECOND,
            queue_pkts,
            loss,
            loss_applies_to: if all { LossScope::All } else { LossScope::Data },
            in_order: false,
            schedule: Vec::new(),
        },
    )
}

fn stack() -> impl Strategy<Value = StackOverrides> {
    let read = prop_oneof![3 => Just(None), 1 => (5e4..5e6).prop_map(Some)];
    (
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
        )
}

fn flow(inner: Vec<String>) -> impl Strategy<Value = FlowConfig> {
    let names: Vec<&str> = crate::catalogue::VARIANTS
        .iter()
        .map(|info| info.name)
        .collect();
    let split = proptest::collection::vec((any::<bool>(), 4..60_u32), inner.len());
    // A send buffer that grows or not, and the octets of one write into it.
    let buffered = (
        3000..200_000_u64,
        any::<bool>(),
        proptest::option::of(1..70_000_u32),
    );
    let buffered = proptest::option::weighted(0.4, buffered);
    (
        proptest::sample::select(names),
        any::<bool>(),
        stack(),
        1..300_000_u64,
        0..3000_u64,
        (split, buffered),
    )
        .prop_map(
            move |(variant, linux, mut stack, size, start_ms, (split, buffered))| {
                let mut write_bytes = None;
                if let Some((bytes, grows, write)) = buffered {
                    stack.send_buffer_bytes = Some(bytes);
                    stack.send_buffer_max_bytes = grows.then_some(4 * bytes);
                    write_bytes = write;
                }
                FlowConfig {
                    name: "flow".into(),
                    start_ns: start_ms * MILLISECOND,
                    size_bytes: Some(size),
                    application: ApplicationConfig::Greedy { write_bytes },
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

fn scenario() -> impl Strategy<Value = Config> {
    (1..4_usize).prop_flat_map(|hops| {
        let nodes: Vec<String> = (0..=hops).map(|n| format!("n{n}")).collect();
        let inner = nodes[1..hops].to_vec();
        let links = proptest::collection::vec((direction(), direction()), hops);
        let flows = proptest::collection::vec(flow(inner), 1..4);
        (links, flows).prop_map(move |(links, flows)| Config {
            duration_ns: 4 * 3600 * SECOND,
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
    for segment in world
        .in_flight()
        .filter(|segment| segment.payload_bytes > 0)
    {
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
    for (number, flow) in summary.flows.iter().enumerate() {
        let size = config.flows[number].size_bytes;
        assert!(flow.completed, "flow {number} never finished: {flow:?}");
        assert_eq!(Some(flow.delivered_bytes), size, "every octet once");
    }
    (summary, books.digest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_keeps_its_books(config in scenario(), seed in any::<u64>()) {
        check(&config, seed);
    }

    #[test]
    fn equal_seeds_give_equal_runs_whoever_listens(config in scenario(), seed in any::<u64>()) {
        let (summary, digest) = check(&config, seed);
        prop_assert_eq!(&check(&config, seed), &(summary.clone(), digest));
        prop_assert_eq!(crate::world::run(&config, seed).expect("a valid scenario"), summary);
    }
}
