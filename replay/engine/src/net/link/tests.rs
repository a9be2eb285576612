//! One direction of a link, packet by packet, compared with times computed by hand.

use super::*;
use crate::config::{ChangeConfig, JitterConfig, LossConfig, QueueConfig};
use crate::sim::packet_pool::PacketPool;
use crate::sim::time::MILLISECOND;
use crate::tcp::segment::Direction;
use hindflight_kernels::{Purpose, StreamKey};
use proptest::prelude::*;

fn config(rate_bps: Option<f64>, delay_ms: u64, queue_pkts: u32) -> DirectionConfig {
    DirectionConfig {
        rate_bps,
        rate_trace: None,
        delay_ns: delay_ms * MILLISECOND,
        queue: QueueConfig::packets(queue_pkts),
        loss: LossConfig::None,
        loss_applies_to: LossScope::Data,
        jitter: None,
        in_order: false,
        schedule: Vec::new(),
    }
}

fn link(config: &DirectionConfig) -> LinkDirection {
    let key = StreamKey {
        seed: 1,
        owner: 0,
        direction: 0,
        purpose: Purpose::Queue,
    };
    LinkDirection::new(config, LossProcess::None, StreamRng::new(key))
}

/// Puts a packet in flight.
fn launch(link: &mut LinkDirection, handle: PacketHandle, arrival: Nanos) {
    link.launch(Flight {
        arrival,
        packet: RoutedPacket::new(handle, 0),
    });
}

/// What happens to the packet in a slot; the fast path if it applies.
fn pass(
    link: &mut LinkDirection,
    pool: &mut PacketPool,
    handle: PacketHandle,
    now: Nanos,
) -> LinkOutcome {
    let segment = pool.slot(handle);
    match link.pass_fast(segment.ip_bytes, segment.payload_bytes > 0, now) {
        FastOutcome::Arrives(arrival) => LinkOutcome::Arrives(arrival),
        FastOutcome::Lost => LinkOutcome::Lost(DropCause::Channel),
        FastOutcome::Unknown => link.pass(handle, segment, now),
    }
}

/// Offers a full packet at `now`; packets are numbered in the order in which they are offered.
fn offer(link: &mut LinkDirection, pool: &mut PacketPool, now: Nanos) -> Result<Nanos, DropCause> {
    let handle = pool.take();
    *pool.slot(handle) = Segment {
        ip_bytes: 1500,
        payload_bytes: 1448,
        ..Segment::new(0, Direction::Forward)
    };
    match pass(link, pool, handle, now) {
        LinkOutcome::Arrives(arrival) | LinkOutcome::Marked(arrival) => {
            launch(link, handle, arrival);
            Ok(arrival)
        }
        LinkOutcome::Lost(cause) => Err(cause),
        LinkOutcome::Waits => Ok(NEVER),
    }
}

fn arrivals(link: &mut LinkDirection) -> Vec<(u32, Nanos)> {
    let mut out = Vec::new();
    while let Some(flight) = link.take() {
        out.push((
            flight.packet.handle().number(),
            flight.arrival / MILLISECOND,
        ));
    }
    out
}

/// A schedule from its changes: milliseconds since the one before, and kind.
fn schedule(changes: &[(u64, u8)]) -> Vec<ChangeConfig> {
    let mut now = 0;
    let mut schedule: Vec<ChangeConfig> = Vec::new();
    for &(after, which) in changes {
        now += after;
        let before = schedule.last();
        let (down, held) = before.map_or((false, false), |last| {
            (last.outage == Some(true), last.hold == Some(true))
        });
        let mut change = ChangeConfig {
            outage: down.then_some(false),
            hold: held.then_some(false),
            ..at(now)
        };
        match which {
            0 => change.rate_bps = Some(3e6),
            1 => change.rate_bps = Some(2e5),
            2 => change.delay_ns = Some(2 * MILLISECOND),
            3 => change.delay_ns = Some(80 * MILLISECOND),
            4 => change.outage = Some(true),
            _ => change.hold = Some(true),
        }
        schedule.push(change);
    }
    schedule
}

proptest! {
    #[test]
    fn the_fast_path_agrees_with_the_slow_path(
        changes in prop::collection::vec((1_u64..60, 0_u8..6), 0..8),
        packets in prop::collection::vec((0_u64..15_000, 40_u16..1500, any::<bool>()), 1..120),
        in_order: bool,
        queue_pkts in 0_u32..30,
    ) {
        let config = DirectionConfig {
            in_order,
            schedule: schedule(&changes),
            loss: LossConfig::Bernoulli { per: 0.1 },
            ..config(Some(1e6), 20, queue_pkts)
        };
        let key = StreamKey {
            seed: 1,
            owner: 0,
            direction: 0,
            purpose: Purpose::Loss,
        };
        let loss = || config.loss.process(key);
        let mut links = [0, 1].map(|_| LinkDirection::new(&config, loss(), StreamRng::new(key)));
        let mut pool = PacketPool::default();
        let handle = pool.take();
        let mut now = 0;
        for (after_us, ip_bytes, carries_data) in packets {
            now += after_us * MILLISECOND / 1000;
            *pool.slot(handle) = Segment {
                ip_bytes,
                payload_bytes: u16::from(carries_data),
                ..Segment::new(0, Direction::Forward)
            };
            let [short, long] = &mut links;
            let led = pass(short, &mut pool, handle, now);
            prop_assert_eq!(led, long.pass(handle, pool.slot(handle), now));
        }
    }
}

#[test]
fn serialises_at_the_rate_and_then_propagates() {
    let mut link = link(&config(Some(1e6), 100, 10));
    let mut pool = PacketPool::default();
    for _ in 0..3 {
        assert!(offer(&mut link, &mut pool, 0).is_ok());
    }
    assert_eq!(arrivals(&mut link), [(0, 112), (1, 124), (2, 136)]);
}

#[test]
fn the_limit_does_not_count_the_packet_in_service() {
    let mut link = link(&config(Some(1e6), 0, 2));
    let mut pool = PacketPool::default();
    let outcomes: Vec<_> = (0..4).map(|_| offer(&mut link, &mut pool, 0)).collect();
    assert!(outcomes[..3].iter().all(|&outcome| outcome.is_ok()));
    assert_eq!(outcomes[3], Err(DropCause::Queue));
    // One leaves at 12 ms: from then on there is space for exactly one more.
    assert!(offer(&mut link, &mut pool, 12 * MILLISECOND).is_ok());
    assert_eq!(
        offer(&mut link, &mut pool, 12 * MILLISECOND),
        Err(DropCause::Queue)
    );
}

#[test]
fn a_link_without_a_rate_only_delays() {
    let mut link = link(&config(None, 5, 0));
    let mut pool = PacketPool::default();
    for _ in 0..3 {
        assert!(offer(&mut link, &mut pool, 0).is_ok());
    }
    assert_eq!(arrivals(&mut link), [(0, 5), (1, 5), (2, 5)]);
}

fn at(ms: u64) -> ChangeConfig {
    ChangeConfig {
        at_ns: ms * MILLISECOND,
        rate_bps: None,
        delay_ns: None,
        outage: None,
        hold: None,
        overlap_ns: None,
    }
}

#[test]
fn a_new_rate_applies_from_the_next_packet_in_service() {
    let mut config = config(Some(1e6), 0, 10);
    config.schedule = vec![ChangeConfig {
        rate_bps: Some(2e6),
        ..at(6)
    }];
    let mut link = link(&config);
    let mut pool = PacketPool::default();
    for _ in 0..3 {
        assert!(offer(&mut link, &mut pool, 0).is_ok());
    }
    assert_eq!(arrivals(&mut link), [(0, 12), (1, 18), (2, 24)]);
}

#[test]
fn packets_overtake_when_the_delay_decreases_unless_in_order() {
    for (in_order, expected) in [(false, [(1, 24), (0, 112)]), (true, [(0, 112), (1, 112)])] {
        let mut config = config(Some(1e6), 100, 10);
        config.in_order = in_order;
        config.schedule = vec![ChangeConfig {
            delay_ns: Some(0),
            ..at(20)
        }];
        let mut link = link(&config);
        let mut pool = PacketPool::default();
        assert!(offer(&mut link, &mut pool, 0).is_ok());
        assert!(offer(&mut link, &mut pool, 0).is_ok());
        assert_eq!(arrivals(&mut link), expected);
    }
}

/// Offers a packet at each time of `offered` (ms), runs the link to 300 ms, and returns the arrivals.
fn carried(config: &DirectionConfig, offered: &[u64]) -> Vec<(u32, Nanos)> {
    let mut link = link(config);
    let mut pool = PacketPool::default();
    for now in 0..300 {
        for _ in offered.iter().filter(|at| **at == now) {
            offer(&mut link, &mut pool, now * MILLISECOND).ok();
        }
        while link.serves(now * MILLISECOND) {
            let released = link.release(&mut pool, now * MILLISECOND);
            if let Some((handle, LinkOutcome::Arrives(arrival))) = released {
                launch(&mut link, handle, arrival);
            }
        }
    }
    arrivals(&mut link)
}

#[test]
fn during_a_handover_both_links_serve_their_own_queue() {
    for scheduled in [false, true] {
        let mut config = config(Some(1e6), 100, 10);
        if scheduled {
            config.queue = serde_json::from_str(r#"{"kind":"drr"}"#).expect("a queue");
        }
        let change = |overlap| ChangeConfig {
            rate_bps: Some(12e6),
            delay_ns: Some(10 * MILLISECOND),
            overlap_ns: overlap,
            ..at(20)
        };
        // One link: of four packets at 0, those still in the queue at 20 ms leave at the new rate, followed by the
        // fifth.
        config.schedule = vec![change(None)];
        let offered = [0, 0, 0, 0, 21];
        let one = carried(&config, &offered);
        assert_eq!(one, [(1, 34), (2, 35), (3, 36), (4, 37), (0, 112)]);
        // Two links: the old one serves all four at its own rate and delay, and the fifth overtakes them all.
        config.schedule = vec![change(Some(200 * MILLISECOND))];
        let two = carried(&config, &offered);
        assert_eq!(two, [(4, 32), (0, 112), (1, 124), (2, 136), (3, 148)]);
        // The old link ends 110 ms after the handover: packets that would arrive later are lost.
        config.schedule = vec![change(Some(110 * MILLISECOND))];
        let cut = carried(&config, &offered);
        assert_eq!(cut, [(4, 32), (0, 112), (1, 124)]);
    }
}

#[test]
fn delayed_packets_are_overtaken_unless_in_order() {
    for (in_order, expected) in [
        (false, [(1, 11), (2, 12), (0, 30)]),
        (true, [(0, 30), (1, 30), (2, 30)]),
    ] {
        let mut config = config(None, 10, 10);
        config.in_order = in_order;
        config.loss = serde_json::from_str(
            r#"{"kind":"trace","mode":"replayed","positions":[3],"known_pkts":4,"late":[[0,20000000]]}"#,
        )
        .expect("a loss");
        let key = StreamKey {
            seed: 1,
            owner: 0,
            direction: 0,
            purpose: Purpose::Loss,
        };
        let process = config.loss.process(key);
        let mut link = LinkDirection::new(&config, process, StreamRng::new(key));
        assert_eq!(link.keeps_order(), in_order);
        let mut pool = PacketPool::default();
        let outcomes = [0, 1, 2, 3].map(|ms| offer(&mut link, &mut pool, ms * MILLISECOND));
        assert_eq!(outcomes[3], Err(DropCause::Channel));
        assert_eq!(arrivals(&mut link), expected);
    }
}

#[test]
fn packets_long_after_a_change_stay_in_order() {
    let mut config = config(None, 100, 10);
    config.in_order = true;
    config.schedule = vec![ChangeConfig {
        delay_ns: Some(0),
        ..at(20)
    }];
    let mut link = link(&config);
    let mut pool = PacketPool::default();
    for entered in [15, 30, 60, 120] {
        assert!(offer(&mut link, &mut pool, entered * MILLISECOND).is_ok());
    }
    assert_eq!(
        arrivals(&mut link),
        [(0, 115), (1, 115), (2, 115), (3, 120)]
    );
}

#[test]
fn an_outage_loses_packets_that_leave_or_would_arrive_in_it() {
    let mut config = config(Some(1e6), 10, 10);
    config.schedule = vec![
        ChangeConfig {
            outage: Some(true),
            ..at(30)
        },
        ChangeConfig {
            outage: Some(false),
            ..at(50)
        },
    ];
    let mut link = link(&config);
    let mut pool = PacketPool::default();
    // Service ends at 12, 24, 36, 48, 60; arrivals at 22, 34 (down), -, -, 70.
    let outcomes: Vec<_> = (0..5)
        .map(|_| offer(&mut link, &mut pool, 0).is_ok())
        .collect();
    assert_eq!(outcomes, [true, false, false, false, true]);
}

#[test]
fn a_suspended_link_keeps_its_queue_until_it_resumes() {
    for scheduled in [false, true] {
        let mut config = config(Some(1e6), 10, 10);
        if scheduled {
            config.queue = serde_json::from_str(r#"{"kind":"codel"}"#).expect("a queue");
        }
        config.schedule = vec![
            ChangeConfig {
                hold: Some(true),
                ..at(20)
            },
            ChangeConfig {
                hold: Some(false),
                delay_ns: Some(5 * MILLISECOND),
                ..at(100)
            },
        ];
        let mut link = link(&config);
        let mut pool = PacketPool::default();
        for _ in 0..3 {
            assert!(offer(&mut link, &mut pool, 0).is_ok());
        }
        let mut now = 0;
        while now < 200 * MILLISECOND {
            if now == 50 * MILLISECOND {
                assert!(offer(&mut link, &mut pool, now).is_ok());
            }
            while link.serves(now) {
                let Some((handle, outcome)) = link.release(&mut pool, now) else {
                    break;
                };
                if let LinkOutcome::Arrives(arrival) = outcome {
                    launch(&mut link, handle, arrival);
                }
            }
            now += MILLISECOND;
        }
        // Two are served before and while transmission is suspended; the others wait for 100 ms.
        assert_eq!(arrivals(&mut link), [(0, 22), (1, 34), (2, 117), (3, 129)]);
    }
}

#[test]
fn a_link_that_never_resumes_loses_what_arrives() {
    let mut config = config(Some(1e6), 10, 10);
    config.schedule = vec![ChangeConfig {
        hold: Some(true),
        ..at(5)
    }];
    let mut link = link(&config);
    let mut pool = PacketPool::default();
    assert!(offer(&mut link, &mut pool, 0).is_ok());
    assert_eq!(
        offer(&mut link, &mut pool, 6 * MILLISECOND),
        Err(DropCause::Outage)
    );
}

/// Delays in milliseconds and numbers, in order of arrival, of 200 packets, one per millisecond, over 10 ms and jitter.
fn with_jitter(in_order: bool) -> (Vec<f64>, Vec<u32>) {
    let config = DirectionConfig {
        in_order,
        ..config(None, 10, 1000)
    };
    let key = StreamKey {
        seed: 1,
        owner: 0,
        direction: 0,
        purpose: Purpose::Delay,
    };
    let law = JitterConfig::Uniform {
        spread_ns: 20 * MILLISECOND,
    };
    let mut link = link(&config).with_jitter(Some(Jitter::new(law, StreamRng::new(key))));
    assert_eq!(link.keeps_order(), in_order);
    let mut pool = PacketPool::default();
    let delays = (0..200)
        .map(|i| {
            let now = i * MILLISECOND;
            let arrival = offer(&mut link, &mut pool, now).expect("nothing is lost");
            (arrival - now) as f64 / MILLISECOND as f64
        })
        .collect();
    let order = arrivals(&mut link)
        .iter()
        .map(|&(number, _)| number)
        .collect();
    (delays, order)
}

#[test]
fn with_jitter_packets_overtake_unless_in_order() {
    let (delays, order) = with_jitter(false);
    assert!(delays.iter().all(|delay| (10.0..=30.0).contains(delay)));
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((mean - 20.0).abs() < 1.0, "{mean}");
    assert!(!order.is_sorted());
    let (lumped, order) = with_jitter(true);
    assert!(order.is_sorted());
    assert!(
        lumped
            .iter()
            .zip(&delays)
            .all(|(later, delay)| later >= delay)
    );
    assert!(
        lumped.iter().all(|delay| *delay <= 30.0),
        "no longer than the longest wait before it"
    );
}
