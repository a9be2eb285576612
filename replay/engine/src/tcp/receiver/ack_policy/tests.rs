//! The rules of acknowledgement, one by one.

use super::*;
use crate::config::{Profile, StackOverrides};
use crate::tcp::receiver::{Receiver, Space};
use crate::tcp::segment::{Direction, Segment, flags};

const SMSS: u64 = 1000;

fn policy(profile: Profile) -> AckPolicy {
    let overrides = StackOverrides {
        smss_bytes: Some(SMSS as u32),
        ..StackOverrides::default()
    };
    policy_of(&StackParams::resolve(profile, &overrides))
}

fn policy_of(params: &StackParams) -> AckPolicy {
    AckPolicy::new(params, AckRules::of(params))
}

fn plain(segments: u64) -> InOrder {
    InOrder {
        unacknowledged: segments * SMSS,
        rcv_nxt: 1,
        fills_gap: false,
        gap_left: false,
        edge_moves: true,
        pushed: false,
        read: true,
        slow_start: false,
        echo: 0,
    }
}

#[test]
fn acks_are_delayed_only_after_slow_start_where_the_sender_tells_of_it() {
    let starting = InOrder {
        slow_start: true,
        ..plain(1)
    };
    for profile in [Profile::Rfc, Profile::Linux] {
        let mut policy = policy(profile);
        for n in 0..40 {
            assert!(
                policy.in_order(&starting, n * MILLISECOND),
                "{profile:?} {n}"
            );
            policy.note_sent();
        }
        assert!(!policy.in_order(&plain(1), 50 * MILLISECOND));
    }
}

#[test]
fn every_second_full_segment_is_acknowledged_and_a_lone_one_after_the_delay() {
    let mut policy = policy(Profile::Rfc);
    policy.note_arrival(1 << 20, 0);
    assert!(!policy.in_order(&plain(1), 0));
    assert_eq!(policy.next_deadline(), 200 * MILLISECOND);
    assert!(!policy.on_deadline(199 * MILLISECOND));
    assert!(policy.on_deadline(200 * MILLISECOND));
    policy.note_sent();
    assert!(policy.in_order(&plain(2), 0));
}

#[test]
fn a_train_of_segments_brings_the_delay_to_where_it_stays() {
    for shortest_ms in [1, 25, 40, 77] {
        let overrides = StackOverrides {
            delayed_ack_timeout_ns: Some(shortest_ms * MILLISECOND),
            ..StackOverrides::default()
        };
        let mut policy = policy_of(&StackParams::resolve(Profile::Linux, &overrides));
        let mut expected = shortest_ms * MILLISECOND;
        for n in 0..60 {
            policy.note_arrival(1 << 20, n * MILLISECOND / 4);
            // The first segment has no pause before it.
            if n > 0 {
                expected = within_train(expected, shortest_ms * MILLISECOND);
            }
            assert_eq!(policy.delay, Some(expected), "{shortest_ms} {n}");
        }
        assert_eq!(policy.delay, Some(policy.steady_delay), "{shortest_ms}");
    }
}

#[test]
fn linux_acknowledges_sixteen_quickly_then_delays() {
    let mut policy = policy(Profile::Linux);
    for n in 0..16 {
        policy.note_arrival(1 << 20, n);
        assert!(policy.in_order(&plain(1), n), "segment {n}");
        policy.note_sent();
    }
    assert!(!policy.in_order(&plain(1), 16));
}

#[test]
fn a_window_that_grows_keeps_acks_quick() {
    let mut policy = policy(Profile::Linux);
    let mut prompt = 0;
    for n in 0..60 {
        policy.note_arrival(1 << 20, n);
        if n < 40 {
            policy.note_window_update();
        }
        if policy.in_order(&plain(1), n) {
            prompt += 1;
            policy.note_sent();
        }
    }
    // Forty while it grows, then the sixteen that the first segment gave.
    assert_eq!(prompt, 56);
}

#[test]
fn a_first_segment_in_order_gives_no_quick_acks_once_others_came_out_of_order_and_let_the_window_grow()
 {
    for (pause_ms, prompt) in [(200, 1), (400, 16)] {
        let mut policy = policy(Profile::Linux);
        policy.note_handshake(50 * MILLISECOND);
        policy.note_window_update();
        assert!(policy.beyond_gap(true, 1, MILLISECOND));
        policy.note_sent();
        let mut now = pause_ms * MILLISECOND;
        policy.note_window_update();
        let quick = (0..20).filter(|_| {
            policy.note_arrival(1 << 20, now);
            now += MILLISECOND;
            let sends = policy.in_order(&plain(1), now);
            if sends {
                policy.note_sent();
            }
            sends
        });
        // After a pause longer than the receiver's own RTO, 252 ms, a refill of sixteen; after a shorter one the ACK alone that
        // reports the window's growth.
        assert_eq!(quick.count(), prompt, "{pause_ms}");
    }
}

#[test]
fn the_end_of_quick_acks_shortens_the_delay() {
    let mut policy = policy(Profile::Linux);
    policy.note_arrival(1 << 20, 0);
    policy.quick = 2;
    policy.delay = Some(160 * MILLISECOND);
    policy.note_sent();
    assert_eq!(policy.delay, Some(160 * MILLISECOND));
    policy.note_sent();
    assert_eq!(policy.delay, Some(40 * MILLISECOND));
}

#[test]
fn a_pause_beyond_the_receivers_own_rto_makes_acks_quick_again() {
    for (pause_ms, quick) in [(255, 0), (256, 16)] {
        let mut policy = policy(Profile::Linux);
        // 50 ms and the minimum of 200 ms on top, up to a tick; the pause in whole ticks.
        policy.note_handshake(50 * MILLISECOND);
        policy.note_arrival(1 << 20, 0);
        policy.quick = 0;
        policy.note_arrival(1 << 20, pause_ms * MILLISECOND);
        assert_eq!(policy.quick, quick);
    }
}

#[test]
fn a_small_window_gives_fewer_quick_acks() {
    let mut policy = policy(Profile::Linux);
    policy.note_arrival(8 * SMSS, 0);
    assert_eq!(policy.quick, 4);
    policy.enter_quick_ack_mode(2 * SMSS);
    assert_eq!(policy.quick, 4);
    policy.quick = 0;
    policy.enter_quick_ack_mode(2 * SMSS);
    assert_eq!(policy.quick, 2);
}

#[test]
fn the_first_three_of_a_gap_are_told_at_once_and_the_next_together() {
    let mut policy = policy(Profile::Linux);
    for _ in 0..3 {
        assert!(policy.out_of_order(7, 0));
        policy.note_sent();
    }
    assert!(!policy.out_of_order(7, 0));
    assert!(!policy.out_of_order(7, MILLISECOND));
    assert_eq!(policy.next_deadline(), GAP_DELAY);
    assert!(policy.on_deadline(GAP_DELAY));
    policy.note_sent();
    // A gap elsewhere restarts the count.
    assert!(policy.out_of_order(8, GAP_DELAY));
}

#[test]
fn a_gap_filled_wholly_is_told_at_once_in_part_only_by_rfc() {
    let whole = InOrder {
        fills_gap: true,
        ..plain(1)
    };
    let part = InOrder {
        gap_left: true,
        ..whole
    };
    let (mut rfc, mut linux) = (policy(Profile::Rfc), policy(Profile::Linux));
    assert!(rfc.in_order(&whole, 0) && rfc.in_order(&part, 0));
    assert!(linux.in_order(&whole, 0));
    (linux.gap.rcv_nxt, linux.gap.prompt) = (1, 3);
    assert!(!linux.in_order(&part, 0));
}

#[test]
fn acks_may_be_so_many_per_round_trip_time_and_the_first_after_a_pause_is_not_late() {
    let mut params = StackParams::resolve(Profile::Rfc, &StackOverrides::default());
    params.acks_per_round_trip = Some(4.0);
    let mut policy = policy_of(&params);
    policy.note_handshake(400 * MILLISECOND);
    assert!(policy.in_order(&plain(1), 500 * MILLISECOND));
    policy.note_sent();
    // However many come, the next one is of what comes a hundred milliseconds later.
    for n in 1..100 {
        assert!(!policy.in_order(&plain(n), (500 + n) * MILLISECOND));
    }
    assert!(policy.in_order(&plain(100), 600 * MILLISECOND));
    assert!(!policy.note_sent());
    // If nothing arrives then, the last one is acknowledged another hundred milliseconds later, and that ACK says that it
    // was delayed.
    assert!(!policy.in_order(&plain(1), 610 * MILLISECOND));
    assert!(!policy.on_deadline(799 * MILLISECOND));
    assert!(policy.on_deadline(800 * MILLISECOND));
    assert!(policy.note_sent());
    assert!(!policy.in_order(&plain(1), 899 * MILLISECOND));
    assert!(!policy.note_sent());
    assert!(policy.in_order(&plain(1), 900 * MILLISECOND));
}

#[test]
fn where_no_handshake_shows_the_path_data_do_that_answer_an_ack() {
    let period = |handshake| {
        let mut params = StackParams::resolve(Profile::Rfc, &StackOverrides::default());
        (params.acks_per_round_trip, params.handshake) = (Some(4.0), handshake);
        let mut policy = policy_of(&params);
        let mut answer = |echo, now_ms: u64| {
            let data = InOrder { echo, ..plain(1) };
            policy.in_order(&data, now_ms * MILLISECOND);
            policy.periodic.as_ref().map(|p| p.period / MILLISECOND)
        };
        [
            answer(0, 900),
            answer(900, 940),
            answer(900, 948),
            answer(948, 984),
        ]
    };
    assert_eq!(period(false), [50, 10, 10, 9].map(Some));
    assert_eq!(period(true), [Some(50); 4]);
}

#[test]
fn few_acks_still_tell_at_once_of_a_gap_that_opens_or_closes_and_of_no_other() {
    let mut params = StackParams::resolve(Profile::Rfc, &StackOverrides::default());
    params.acks_per_round_trip = Some(4.0);
    let mut policy = policy_of(&params);
    assert!(policy.in_order(&plain(1), 500 * MILLISECOND));
    policy.note_sent();
    assert!(policy.beyond_gap(true, 1, 501 * MILLISECOND));
    assert!(!policy.beyond_gap(false, 1, 502 * MILLISECOND));
    let fills = InOrder {
        fills_gap: true,
        ..plain(1)
    };
    assert!(policy.in_order(&fills, 503 * MILLISECOND));
}

#[test]
fn what_was_pushed_and_read_is_not_delayed_under_linux() {
    let pushed = InOrder {
        pushed: true,
        ..plain(1)
    };
    assert!(policy(Profile::Linux).in_order(&pushed, 0));
    assert!(!policy(Profile::Rfc).in_order(&pushed, 0));
}

#[test]
fn more_than_a_segment_of_a_gap_counts_as_one_of_its_first_three_where_the_windows_edge_stays() {
    let prompt = |profile, edge_moves| {
        let mut policy = policy(profile);
        let part = InOrder {
            gap_left: true,
            edge_moves,
            ..plain(5)
        };
        assert!(policy.in_order(&part, 0));
        policy.note_sent();
        (1..6)
            .filter(|&n| {
                let sent = policy.beyond_gap(false, part.rcv_nxt, n * MILLISECOND / 10);
                policy.note_sent();
                sent
            })
            .count()
    };
    assert_eq!(prompt(Profile::Linux, false), 2);
    assert_eq!(prompt(Profile::Linux, true), 3);
    assert_eq!(prompt(Profile::Rfc, false), 5);
}

#[test]
fn linux_delays_the_ack_of_what_waits_to_be_read_while_the_windows_edge_stays() {
    let prompt = |profile, edge_moves| {
        let part = InOrder {
            edge_moves,
            ..plain(5)
        };
        let mut policy = policy(profile);
        let prompt = policy.in_order(&part, 0);
        assert_eq!(policy.is_due_on_read(SMSS + 1, 1), !prompt);
        prompt
    };
    assert!(!prompt(Profile::Linux, false));
    assert!(prompt(Profile::Linux, true));
    assert!(prompt(Profile::Rfc, false));
}

#[test]
fn linux_waits_no_longer_than_a_round_trip_or_40_ms() {
    for (rtt_ms, waits_ms) in [
        (None, 160),
        (Some(500), 160),
        (Some(90), 92),
        (Some(20), 40),
    ] {
        let mut policy = policy(Profile::Linux);
        if let Some(rtt_ms) = rtt_ms {
            policy.note_handshake(rtt_ms * MILLISECOND);
        }
        policy.delay = Some(160 * MILLISECOND);
        assert!(!policy.in_order(&plain(1), 0));
        let fires = jiffies::fires(0, waits_ms * MILLISECOND);
        assert_eq!(policy.next_deadline(), fires, "{rtt_ms:?}");
    }
}

#[test]
fn linuxs_longest_delay_is_a_tick_short_of_the_least_rto() {
    for (min_rto_ms, longest_ms) in [(1, 4), (100, 96), (200, 196), (1000, 200)] {
        let found = longest_delay(min_rto_ms * MILLISECOND);
        assert_eq!(found, longest_ms * MILLISECOND, "{min_rto_ms}");
    }
}

#[test]
fn linuxs_delay_doubles_when_missed_and_falls_back_with_dense_segments() {
    let mut policy = policy(Profile::Linux);
    policy.note_arrival(0, 0);
    policy.quick = 0;
    assert!(!policy.in_order(&plain(1), 0));
    assert_eq!(policy.next_deadline(), 44 * MILLISECOND);
    assert!(policy.on_deadline(44 * MILLISECOND));
    assert_eq!(policy.delay, Some(80 * MILLISECOND));
    // Half of it and the pause of eleven ticks.
    policy.note_arrival(0, 45 * MILLISECOND);
    assert_eq!(policy.delay, Some(84 * MILLISECOND));
    for n in 0..20 {
        policy.note_arrival(0, (46 + n) * MILLISECOND);
    }
    assert_eq!(policy.delay, Some(40 * MILLISECOND));
}

/// A connection whose handshake ended 100 ms after `repeat` sent the last SYN-ACK, and that time.
fn connection(repeat: fn(&mut Receiver) -> Nanos) -> (Receiver, Nanos) {
    let params = StackParams::resolve(Profile::Linux, &StackOverrides::default());
    let space = Space::Application {
        buffer_bytes: 1_000_000,
        octets_per_ns: None,
    };
    let mut receiver = Receiver::new(0, &params, space);
    receiver.receive(&syn(), 0);
    assert!(receiver.transmit(0, &mut slot()));
    let end = repeat(&mut receiver) + 100 * MILLISECOND;
    receiver.receive(&Segment::new(0, Direction::Forward), end);
    assert!(receiver.is_established());
    (receiver, end)
}

/// The SYN-ACK leaves again by its timer.
fn by_timer(receiver: &mut Receiver) -> Nanos {
    let due = receiver.next_deadline();
    receiver.on_deadline(due);
    assert!(receiver.transmit(due, &mut slot()));
    due
}

/// The same, because the SYN came again.
fn by_syn(receiver: &mut Receiver) -> Nanos {
    receiver.receive(&syn(), SECOND / 2);
    assert!(receiver.transmit(SECOND / 2, &mut slot()));
    SECOND / 2
}

#[test]
fn karn_a_syn_ack_that_was_sent_twice_measures_nothing() {
    let rto = |repeat: fn(&mut Receiver) -> Nanos| connection(repeat).0.policy.rto;
    assert_eq!(rto(|_| 0), 300 * MILLISECOND);
    assert_eq!(rto(by_timer), FIRST_RTO);
    assert_eq!(rto(by_syn), FIRST_RTO);
}

/// The first segment is lost, and the second lets the window grow: the ACK that reports it ends quick ACKs. The first one's
/// retransmission comes `pause` after the handshake.
#[test]
fn after_a_lost_syn_ack_the_pause_before_the_first_segment_begins_with_the_end_of_the_handshake() {
    for (pause, quick) in [(FIRST_RTO, 0), (FIRST_RTO + 2 * jiffies::TICK, 16)] {
        let (mut receiver, end) = connection(by_timer);
        assert!(end > FIRST_RTO);
        receiver.policy.note_window_update();
        assert!(receiver.policy.beyond_gap(true, 1, end + MILLISECOND));
        receiver.policy.note_sent();
        receiver.policy.note_arrival(1 << 20, end + pause);
        assert_eq!(receiver.policy.quick, quick, "{pause}");
    }
}

fn slot() -> Segment {
    Segment::new(0, Direction::Reverse)
}

fn syn() -> Segment {
    Segment {
        flags: flags::SYN,
        ..Segment::new(0, Direction::Forward)
    }
}
