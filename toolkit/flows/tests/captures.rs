//! What captures do to segments, and what odd captures must not do to memory or time. Read `support/mod.rs` first.

mod support;

use std::fmt::Write;

use hindflight_decoder::{Segment, flags};
use hindflight_flows::{Direction, EventCause, EventKind, Tracker};
use support::{blank, run, track};

#[test]
fn data_stored_after_its_acknowledgement_is_late_and_nothing_else() {
    let outcome = run("
        0.000 a>b S 0
        10.00 b>a SA 0 ack 1
        10.01 a>b A 1 ack 1
        10.02 a>b A 1:1001 ack 1
        20.02 b>a A 1 ack 3001                  # stored before what it acknowledges
        20.03 a>b A 1001:2001 ack 1
        20.04 a>b A 2001:3001 ack 1
        20.05 a>b A 2001:3001 ack 1             # and this is sent again
    ");
    outcome.tells("20.05 retransmission spurious #8 2001:3001");
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
        10.05 a>b A 1001:2001 ack 1 id 5 ts 10/0 # another IPv4 ID: sent again
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
fn a_direction_that_nobody_acknowledges_takes_little_memory_and_shows_its_repeats() {
    let mut tracker = Tracker::new(1);
    let (mut repeats, mut flight) = (0, 0);
    for number in 0..50_000_u32 {
        let again = number % 100 == 99;
        let mut segment = blank(
            u64::from(number) + 1,
            i64::from(number) * 1_000_000,
            true,
            5000,
        );
        segment.seq = (number - u32::from(again) * 50) * 1000;
        (segment.flags, segment.payload_bytes) = (flags::ACK, 1000);
        let note = tracker.push(&segment);
        repeats += u32::from(note.retransmission);
        flight = flight.max(note.flight_bytes);
    }
    assert_eq!(repeats, 500);
    assert!(
        flight <= 5_000_000,
        "what was forgotten is not in flight: {flight}"
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
        "without ACKs nobody knows"
    );
}

#[test]
fn a_scan_is_forgotten_in_minutes_and_a_quiet_connection_in_hours() {
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
    let live = tracker.live_connections();
    assert!(
        (1801..=1803).contains(&live),
        "{live}: ten a second for 180 s, and the quiet one"
    );
    tracker.finish();
    assert_eq!(tracker.take_finished_flows().len(), 20_001);
}

#[test]
fn a_reset_that_is_ignored_does_not_end_the_connection() {
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

/// A window lost as a whole but for its end, then sent again: as bad as it gets for the scoreboard.
fn burst(segments: u32) -> Vec<Segment> {
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
    // And every octet once more, needlessly, with a DSACK for each.
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
fn a_window_of_holes_costs_no_more_per_segment_than_a_small_one() {
    // Quadratic work would take minutes here, not milliseconds.
    let outcome = track(&burst(200_000));
    let losses = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Loss)
        .count();
    let needless = outcome
        .events
        .iter()
        .filter(|event| event.cause == EventCause::Spurious)
        .count();
    assert_eq!(
        outcome.flows[0].directions[0].retransmitted_segments,
        100_000
    );
    assert_eq!(
        (losses, needless),
        (0, 100_000),
        "DSACK says that both copies of each arrived"
    );
}

#[test]
fn one_octet_sent_a_hundred_thousand_times_is_taken_in_stride() {
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
fn the_first_reset_of_a_connection_is_an_event() {
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
