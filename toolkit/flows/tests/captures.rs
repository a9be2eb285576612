//! Artefacts of captures, and bounds on memory and time. `support/mod.rs` explains the notation.

mod support;

use std::fmt::Write;

use hindflight_decoder::{Segment, flags};
use hindflight_flows::{Direction, EventCause, EventKind, Tracker};
use support::{blank, run, track};

#[test]
fn data_stored_after_their_ack_are_not_a_retransmission() {
    let outcome = run("
        0.000 a>b S 0
        10.00 b>a SA 0 ack 1
        10.01 a>b A 1 ack 1
        10.02 a>b A 1:1001 ack 1
        20.02 b>a A 1 ack 3001                  # stored before the data
        20.03 a>b A 1001:2001 ack 1
        20.04 a>b A 2001:3001 ack 1
        20.05 a>b A 2001:3001 ack 1             # a retransmission
    ");
    outcome.assert_events("20.05 retransmission spurious #8 2001:3001");
    let a2b = outcome.flows[0].directions[0];
    assert_eq!(
        (
            a2b.unique_bytes,
            a2b.retransmitted_segments,
            a2b.acked_bytes
        ),
        (3000, 1, 3000)
    );
}

#[test]
fn a_packet_stored_twice_is_one_transmission() {
    let outcome = run("
        0.000 a>b S 0 id 1
        10.00 b>a SA 0 ack 1
        10.01 a>b A 1 ack 1 id 2
        10.02 a>b A 1:1001    ack 1 id 3 ts 10/0
        10.03 a>b A 1:1001    ack 1 id 3 ts 10/0
        10.04 a>b A 1001:2001 ack 1 id 4 ts 10/0
        10.05 a>b A 1001:2001 ack 1 id 5 ts 10/0 # another IPv4 ID: a retransmission
    ");
    let marked: Vec<usize> = (1..=7)
        .filter(|&number| outcome.note(number).retransmission)
        .collect();
    assert_eq!(marked, [7]);
    let a2b = outcome.flows[0].directions[0];
    assert_eq!(
        (a2b.segments, a2b.data_segments, a2b.retransmitted_segments),
        (6, 3, 1)
    );
}

#[test]
fn a_direction_without_acks_takes_bounded_memory_and_shows_retransmissions() {
    let mut tracker = Tracker::new(1);
    let (mut retransmissions, mut flight) = (0, 0);
    for number in 0..50_000_u32 {
        let retransmission = number % 100 == 99;
        let mut segment = blank(
            u64::from(number) + 1,
            i64::from(number) * 1_000_000,
            true,
            5000,
        );
        segment.seq = (number - u32::from(retransmission) * 50) * 1000;
        (segment.flags, segment.payload_bytes) = (flags::ACK, 1000);
        let note = tracker.push(&segment);
        retransmissions += u32::from(note.retransmission);
        flight = flight.max(note.flight_bytes.expect("data were captured"));
    }
    assert_eq!(retransmissions, 500);
    assert!(
        flight <= 5_000_000,
        "discarded ranges are not in flight: {flight}"
    );
    tracker.finish();
    let events = tracker.take_events();
    assert_eq!(
        events
            .iter()
            .filter(|event| event.kind == EventKind::Retransmission)
            .count(),
        500
    );
    assert!(
        events.iter().all(|event| event.kind != EventKind::Loss),
        "without ACKs, no loss is certain"
    );
}

#[test]
fn a_scan_is_retired_after_minutes_and_an_idle_connection_after_hours() {
    let mut tracker = Tracker::new(1);
    let second = 1_000_000_000_i64;
    for segment in support::segments(
        "0 a>b:9999 S 0\n1 b>a:9999 SA 0 ack 1\n2 a>b:9999 A 1 ack 1",
        support::ISN,
    ) {
        tracker.push(&segment);
    }
    for number in 0..20_000_u16 {
        let mut syn = blank(
            10 + u64::from(number),
            second + i64::from(number) * 100_000_000,
            true,
            10_000 + number,
        );
        syn.flags = flags::SYN;
        tracker.push(&syn);
    }
    let live = 20_001 - tracker.take_finished_flows().len();
    assert!(
        (1801..=1803).contains(&live),
        "{live}: ten per second for 180 s, and the idle one"
    );
    tracker.finish();
    assert_eq!(tracker.take_finished_flows().len(), live);
}

#[test]
fn an_ignored_reset_does_not_end_the_connection() {
    let mut ladder = String::from("0 a>b S 0\n10 b>a SA 0 ack 1\n10.1 a>b A 1 ack 1\n11 b>a R 1\n");
    for number in 0..200 {
        let t = 20.0 + f64::from(number) * 1000.0;
        let _ = writeln!(
            ladder,
            "{t} a>b A {}:{} ack 1",
            1 + number * 10,
            11 + number * 10
        );
        let _ = writeln!(ladder, "{} b>a A 1 ack {}", t + 10.0, 11 + number * 10);
    }
    let outcome = run(&ladder);
    assert_eq!((outcome.flows.len(), outcome.flows[0].rst), (1, true));
    assert_eq!(outcome.flows[0].directions[0].acked_bytes, 2000);
}

/// A window in which every second segment is lost: the worst case for the scoreboard.
fn every_second_lost(segments: u32) -> Vec<Segment> {
    let mut out = Vec::new();
    let mut push =
        |t_us: u32, from_a: bool, seq: u32, ack: u32, payload: u32, sack: Option<(u32, u32)>| {
            let mut segment = blank(out.len() as u64 + 1, i64::from(t_us) * 1000, from_a, 5000);
            (
                segment.seq,
                segment.ack,
                segment.flags,
                segment.payload_bytes,
            ) = (seq, ack, flags::ACK, payload);
            if let Some((left, right)) = sack {
                segment.options.sack.push(left, right);
            }
            out.push(segment);
        };
    for number in 0..segments {
        push(number, true, 1 + number * 100, 1, 100, None);
    }
    let odd = (1..segments).step_by(2);
    for number in odd.clone() {
        push(
            200_000 + number,
            false,
            1,
            1,
            0,
            Some((1 + number * 100, 101 + number * 100)),
        );
    }
    for number in (0..segments).step_by(2) {
        push(400_000 + number, true, 1 + number * 100, 1, 100, None);
    }
    for number in (0..segments).step_by(2) {
        push(600_000 + number, false, 1, 1 + (number + 2) * 100, 0, None);
    }
    // A DSACK for every segment.
    for number in 0..segments {
        push(
            700_000 + number,
            false,
            1,
            1 + segments * 100,
            0,
            Some((1 + number * 100, 101 + number * 100)),
        );
    }
    out
}

#[test]
fn the_cost_per_segment_does_not_depend_on_the_window() {
    // With quadratic cost, this would take minutes.
    let outcome = track(&every_second_lost(200_000));
    let losses = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Loss)
        .count();
    let spurious = outcome
        .events
        .iter()
        .filter(|event| event.cause == EventCause::Spurious)
        .count();
    assert_eq!(
        outcome.flows[0].directions[0].retransmitted_segments,
        100_000
    );
    assert_eq!(
        (losses, spurious),
        (0, 100_000),
        "the DSACKs show that both transmissions arrived"
    );
}

#[test]
fn one_octet_sent_a_hundred_thousand_times() {
    let mut segments = Vec::new();
    for number in 0..100_000_u32 {
        let mut segment = blank(
            u64::from(number) + 1,
            i64::from(number) * 60_000_000_000,
            true,
            5000,
        );
        (segment.seq, segment.flags, segment.payload_bytes) = (1, flags::ACK, 1);
        segments.push(segment);
    }
    let outcome = track(&segments);
    assert_eq!(
        outcome.flows[0].directions[0].retransmitted_segments,
        99_999
    );
}

#[test]
fn only_the_first_reset_of_a_connection_is_an_event() {
    let outcome = run("0 a>b S 0
        10 b>a SA 0 ack 1
        10.1 a>b A 1:11 ack 1
        20 b>a R 1
        21 b>a R 1
        30 a>b A 11:21 ack 1
");
    let resets: Vec<_> = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Reset)
        .map(|event| (event.t_ns, event.direction, event.record, event.seq_start))
        .collect();
    assert_eq!(resets, [(20_000_000, Direction::B2a, Some(4), Some(1))]);
}
