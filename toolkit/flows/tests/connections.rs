//! Connections: directions, start and end, sequence numbers, and the capture point. `support/mod.rs` explains the
//! notation.

mod support;

use std::fmt::Write;

use hindflight_decoder::flags;
use hindflight_flows::{Direction, EventKind, Note, Tracker, Vantage};
use support::{ISN, blank, run, segments, track};

const TRANSFER: &str = "
      0.00 a>b S  0 mss 1000 ws 2 sackok
    100.00 b>a SA 0 ack 1 mss 1400 ws 3 sackok win 500
    100.01 a>b A  1 ack 1 win 700
    110.00 a>b A 1:1001    ack 1
    110.01 a>b A 1001:2001 ack 1
    110.02 a>b A 2001:3001 ack 1
    210.01 b>a A 1 ack 1 sack 1001-2001 win 600
    210.02 b>a A 1 ack 1 sack 1001-3001 win 600
    210.03 a>b A 1:1001    ack 1
    310.03 b>a PA 1:101 ack 3001
    320.00 a>b FA 3001 ack 101
    420.00 b>a FA 101 ack 3002
    420.01 a>b A 3002 ack 102
";

#[test]
fn numbers_are_relative_to_the_syn_and_windows_are_scaled() {
    let outcome = run(TRANSFER);
    let seen: Vec<(i64, Option<i64>)> = outcome
        .notes
        .iter()
        .map(|note| (note.seq, note.ack))
        .collect();
    assert_eq!(
        &seen[..4],
        &[(0, None), (0, Some(1)), (1, Some(1)), (1, Some(1))]
    );
    assert_eq!(seen[12], (3002, Some(102)));
    let windows: Vec<Option<i64>> = [2, 3, 7]
        .iter()
        .map(|&number| outcome.note(number).wnd_bytes)
        .collect();
    assert_eq!(
        windows,
        [Some(500), Some(700 << 2), Some(600 << 3)],
        "the window of a SYN is not scaled"
    );
    assert_eq!(outcome.note(8).sack.as_slice(), [1001, 3001]);
    let flow = &outcome.flows[0];
    let [a2b, b2a] = &flow.directions;
    assert_eq!(
        (flow.syn, flow.syn_ack, flow.fin, flow.rst),
        (true, true, 2, false)
    );
    assert_eq!(
        (flow.handshake_rtt_ns, flow.data_direction),
        (Some(100_010_000), Direction::A2b)
    );
    assert_eq!(
        (a2b.mss_bytes, a2b.wscale, b2a.mss_bytes, b2a.wscale),
        (Some(1000), Some(2), Some(1400), Some(3))
    );
    assert_eq!(
        (
            a2b.segments,
            a2b.data_segments,
            a2b.payload_bytes,
            a2b.unique_bytes
        ),
        (8, 4, 4000, 3000)
    );
    assert_eq!(
        (a2b.acked_bytes, b2a.acked_bytes, b2a.unique_bytes),
        (3000, 100, 100)
    );
    assert_eq!(
        (
            a2b.flight_max_bytes,
            a2b.max_segment_bytes,
            b2a.sack_segments
        ),
        (Some(3000), 1000, 2)
    );
    assert_eq!(
        outcome.note(13).flight_bytes,
        Some(0),
        "the FIN is acknowledged"
    );
}

fn notes(ladder: &str, isn: [u32; 2]) -> Vec<Note> {
    track(&segments(ladder, isn)).notes
}

#[test]
fn notes_do_not_depend_on_the_position_of_a_wrap() {
    let expected = notes(TRANSFER, ISN);
    for back in [0, 1, 2, 500, 1001, 1500, 2999, 3001, 3002] {
        let isn = [0_u32.wrapping_sub(back), 0_u32.wrapping_sub(back % 103)];
        assert_eq!(
            notes(TRANSFER, isn),
            expected,
            "wrap {back} octets after the SYN"
        );
    }
}

#[test]
fn positions_increase_through_many_wraps() {
    let mut tracker = Tracker::new(1);
    let step = 1_000_000_000_u32;
    let mut seq = 5_u32;
    for number in 0..20_u64 {
        let mut data = blank(2 * number + 1, number as i64 * 1_000_000, true, 5000);
        (data.seq, data.payload_bytes, data.flags) = (seq, 1000, flags::ACK);
        let note = tracker.push(&data);
        assert_eq!(note.seq, 1 + number as i64 * i64::from(step));
        let mut ack = blank(2 * number + 2, number as i64 * 1_000_000 + 500, false, 5000);
        (ack.ack, ack.flags) = (seq.wrapping_add(step), flags::ACK);
        assert_eq!(tracker.push(&ack).ack, Some(note.seq + i64::from(step)));
        seq = seq.wrapping_add(step);
    }
    tracker.finish();
    let flows = tracker.take_finished_flows();
    assert_eq!(
        (flows.len(), flows[0].directions[0].retransmitted_segments),
        (1, 0)
    );
}

#[test]
fn a_capture_can_start_within_a_connection() {
    let outcome = run("
        0.0 b>a A 1 ack 5001
        0.1 a>b A 9001:10001 ack 1              # 5001:9001 was sent before the capture
        0.2 b>a A 1 ack 7001
        0.3 a>b A 8001:9001 ack 1               # retransmission of a segment sent before the capture
        0.4 b>a A 1 ack 10001
    ");
    let flow = &outcome.flows[0];
    assert_eq!(
        (flow.a_port, flow.syn, flow.vantage),
        (80, false, Vantage::Unknown),
        "the sender of the first segment is a"
    );
    let seqs: Vec<i64> = outcome.notes.iter().map(|note| note.seq).collect();
    assert_eq!(seqs, [1, 4001, 1, 3001, 1], "1 is the first number seen");
    assert_eq!(outcome.note(1).ack, Some(1));
    assert!(
        outcome.notes.iter().all(|note| note.wnd_bytes.is_none()),
        "the window scale is unknown"
    );
    let flights: Vec<Option<i64>> = outcome.notes.iter().map(|note| note.flight_bytes).collect();
    assert_eq!(
        flights,
        [None, Some(5000), Some(3000), Some(3000), Some(0)],
        "nothing was captured before the first ACK"
    );
}

#[test]
fn acks_below_the_first_segment_show_the_flight_before_the_capture() {
    let outcome = run("
        0.0 a>b A 9001:10001 ack 1
        0.1 b>a A 1 ack 6001
        0.2 a>b A 7001:8001 ack 1
        0.3 b>a A 1 ack 10001
    ");
    let flights: Vec<Option<i64>> = outcome.notes.iter().map(|note| note.flight_bytes).collect();
    assert_eq!(flights, [1000, 4000, 4000, 0].map(Some));
    assert!(
        outcome.note(3).retransmission,
        "its octets were sent before the capture"
    );
    assert_eq!(outcome.flows[0].directions[0].unique_bytes, 1000);
}

#[test]
fn a_syn_with_another_sequence_number_is_another_connection() {
    let first = segments(TRANSFER, ISN);
    let mut second = segments(TRANSFER, [77_000_000, 88_000_000]);
    for segment in &mut second {
        segment.t_ns += 500_000_000;
        segment.record += 13;
    }
    let all: Vec<_> = first.iter().chain(&second).copied().collect();
    let outcome = track(&all);
    assert_eq!(
        outcome
            .flows
            .iter()
            .map(|flow| flow.flow_id)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(outcome.flows[0].directions, outcome.flows[1].directions);
    assert_eq!(outcome.note(14).flow_id, 2);
    assert_eq!(outcome.flows[0].end_ns, 420_010_000);
}

#[test]
fn a_retransmitted_syn_is_the_same_connection() {
    let outcome = run("
           0.0 a>b S  0 mss 1000
        1000.0 a>b S  0 mss 1000
        1100.0 b>a SA 0 ack 1 mss 1000
        1100.1 a>b A  1 ack 1
    ");
    assert_eq!(outcome.flows.len(), 1);
    outcome.assert_events(
        "0 loss unknown #1 0:1
         1000 retransmission rto #2 0:1
         1000 rto rto #2 0:1",
    );
    let flow = &outcome.flows[0];
    assert_eq!(
        (
            flow.handshake_rtt_ns,
            flow.directions[0].retransmitted_segments
        ),
        (None, 0)
    );
    assert_eq!(
        flow.directions[0].rtt_samples, 0,
        "Karn: a retransmitted SYN gives no sample"
    );
}

#[test]
fn the_receiver_of_a_syn_ack_opened_the_connection() {
    let outcome = run("
        0.0 b>a SA 0 ack 1 mss 1000 ws 7
        0.1 a>b A 1 ack 1
        0.2 a>b A 1:1001 ack 1
    ");
    let flow = &outcome.flows[0];
    assert_eq!(
        (flow.a_port, flow.b_port, flow.syn, flow.syn_ack),
        (5000, 80, false, true)
    );
    assert_eq!(outcome.note(3).direction, Direction::A2b);
    assert_eq!((outcome.note(3).seq, outcome.note(1).ack), (1, Some(1)));
    assert_eq!(
        outcome.note(3).wnd_bytes,
        None,
        "scaling depends on both SYNs"
    );
}

#[test]
fn a_window_scale_in_one_syn_only_is_not_used() {
    let outcome = run("
        0.0 a>b S  0 mss 1000 ws 7
        0.1 b>a SA 0 ack 1 mss 1000
        0.2 a>b A 1 ack 1 win 700
    ");
    assert_eq!(outcome.note(3).wnd_bytes, Some(700));
}

fn vantage(syn_ack_ms: f64, ack_ms: f64) -> Vantage {
    let ladder = format!(
        "0 a>b S 0\n{syn_ack_ms} b>a SA 0 ack 1\n{ack_ms} a>b A 1 ack 1\n{ack_ms} a>b A 1:9 ack 1"
    );
    run(&ladder).flows[0].vantage
}

#[test]
fn the_handshake_determines_the_capture_point() {
    assert_eq!(vantage(100.0, 100.02), Vantage::Sender);
    assert_eq!(vantage(0.05, 100.0), Vantage::Receiver);
    assert_eq!(vantage(60.0, 100.0), Vantage::Middle);
    assert_eq!(vantage(0.05, 0.1), Vantage::Unknown, "the RTT is too short");
}

#[test]
fn timestamps_determine_the_capture_point_without_a_handshake() {
    let mut ladder = String::new();
    for round in 0..12 {
        let (t, seq, ts) = (f64::from(round) * 100.0, 1 + round * 1000, round * 100);
        let _ = writeln!(
            ladder,
            "{t} a>b A {seq}:{} ack 1 ts {ts}/{}",
            seq + 1000,
            7000 + ts - 100
        );
        let _ = writeln!(
            ladder,
            "{} b>a A 1 ack {} ts {}/{ts}",
            t + 99.0,
            seq + 1000,
            7000 + ts
        );
    }
    assert_eq!(run(&ladder).flows[0].vantage, Vantage::Sender);
}

#[test]
fn a_gap_filled_at_the_receiver_is_a_loss_before_the_capture_point() {
    let outcome = run("
          0.00 a>b S  0 mss 1000 sackok ts 1/0
          0.05 b>a SA 0 ack 1 mss 1000 sackok ts 501/1
        100.00 a>b A  1 ack 1 ts 101/501
        100.01 a>b A 1:1001    ack 1 ts 101/501
        100.02 a>b A 2001:3001 ack 1 ts 101/501 # 1001:2001 is lost
        100.03 b>a A 1 ack 1001 sack 2001-3001 ts 601/101
        100.04 a>b A 3001:4001 ack 1 ts 101/501
        100.05 b>a A 1 ack 1001 sack 2001-4001 ts 601/101
        200.05 a>b A 1001:2001 ack 1 ts 201/601
        200.06 b>a A 1 ack 4001 ts 701/201
    ");
    outcome.assert_events(
        "100.02 loss unknown #- 1001:2001
         200.05 retransmission fast #9 1001:2001
         200.05-200.06 recovery fast #9 1001:4001",
    );
    let a2b = outcome.flows[0].directions[0];
    assert_eq!(
        (
            outcome.flows[0].vantage,
            a2b.out_of_order_segments,
            a2b.retransmitted_segments
        ),
        (Vantage::Receiver, 0, 1)
    );
    assert!(outcome.note(9).retransmission);
    assert_eq!(
        (a2b.unique_bytes, a2b.payload_bytes, a2b.retransmitted_bytes),
        (4000, 4000, 1000)
    );
    let loss = outcome
        .events
        .iter()
        .find(|event| event.kind == EventKind::Loss)
        .and_then(|event| event.evidence);
    let evidence = loss.map(|evidence| evidence.to_string());
    assert_eq!(
        evidence.as_deref(),
        Some("lost before the capture point: gap below record 5, filled by record 9")
    );
}

#[test]
fn a_late_segment_with_an_older_timestamp_was_reordered() {
    let outcome = run("
          0.00 a>b S  0 mss 1000 sackok ts 1/0
          0.05 b>a SA 0 ack 1 mss 1000 sackok ts 501/1
        100.00 a>b A  1 ack 1 ts 101/501
        110.02 a>b A 1001:2001 ack 1 ts 111/501
        310.03 a>b A 1:1001    ack 1 ts 101/501
        310.04 b>a A 1 ack 2001 ts 701/101
    ");
    outcome.assert_events("310.03 reordering unknown #5 1:1001");
    let a2b = outcome.flows[0].directions[0];
    assert_eq!(
        (
            a2b.out_of_order_segments,
            a2b.retransmitted_segments,
            a2b.unique_bytes
        ),
        (1, 0, 2000)
    );
}

#[test]
fn incrementing_ip_ids_decide_without_timestamps() {
    let mut ladder =
        String::from("0.00 a>b S 0 id 1\n0.05 b>a SA 0 ack 1\n100 a>b A 1 ack 1 id 2\n");
    for number in 0..10 {
        let (t, seq) = (101 + number, 1 + number * 1000);
        let _ = writeln!(
            ladder,
            "{t} a>b A {seq}:{} ack 1 id {}",
            seq + 1000,
            3 + number
        );
        let _ = writeln!(ladder, "{t}.05 b>a A 1 ack {}", seq + 1000);
    }
    let gap = "120 a>b A 11001:12001 ack 1 id 14\n120.1 b>a A 1 ack 10001\n";
    let reordered = run(&format!(
        "{ladder}{gap}120.2 a>b A 10001:11001 ack 1 id 13\n"
    ));
    reordered.assert_events("120.2 reordering unknown #26 10001:11001");
    let retransmitted = run(&format!(
        "{ladder}{gap}120.2 a>b A 10001:11001 ack 1 id 15\n"
    ));
    assert_eq!(
        retransmitted.flows[0].directions[0].retransmitted_segments,
        1
    );
}

#[test]
fn the_delay_decides_without_timestamps_and_ip_ids() {
    let handshake =
        "0 a>b S 0\n0.05 b>a SA 0 ack 1\n100 a>b A 1 ack 1\n101 a>b A 1001:2001 ack 1\n";
    let soon = run(&format!("{handshake}120 a>b A 1:1001 ack 1"));
    assert_eq!(soon.flows[0].directions[0].out_of_order_segments, 1);
    let late = run(&format!("{handshake}202 a>b A 1:1001 ack 1"));
    assert_eq!(late.flows[0].directions[0].retransmitted_segments, 1);
}

#[test]
fn a_segment_captured_at_the_receiver_was_not_lost() {
    run("
          0.00 a>b S  0 mss 1000
          0.05 b>a SA 0 ack 1 mss 1000
        100.00 a>b A  1 ack 1
        100.01 a>b A 1:1001 ack 1
        100.02 b>a A 1 ack 1# its ACK is late
        500.00 a>b A 1:1001 ack 1
        500.01 b>a A 1 ack 1001
    ")
    .assert_events(
        "500 retransmission spurious #6 1:1001
         500 rto rto #6 1:1001",
    );
}

#[test]
fn duplicate_acks_with_and_without_sack() {
    let open = "0 a>b S 0\n100 b>a SA 0 ack 1\n100.1 a>b A 1 ack 1\n110 a>b A 1:1001 ack 1\n111 a>b A 1001:2001 ack 1\n";
    let plain = run(&format!(
        "{open}210 b>a A 1 ack 1 win 60000          # duplicate
               211 b>a A 1 ack 1 win 50000          # window update
               212 b>a PA 1:11 ack 1 win 50000      # with data
               213 b>a A 11 ack 2001 win 50000      # new data
               214 b>a A 11 ack 2001 win 50000      # no data outstanding"
    ));
    let marked: Vec<usize> = (1..=10)
        .filter(|&number| plain.note(number).dup_ack)
        .collect();
    assert_eq!(marked, [6]);
    let sack_open = open
        .replace("S 0", "S 0 sackok")
        .replace("SA 0 ack 1", "SA 0 ack 1 sackok");
    let sack = run(&format!(
        "{sack_open}210 b>a A 1 ack 1               # no new SACK block
                    211 b>a A 1 ack 1 sack 1001-2001 win 50000
                    212 b>a A 1 ack 1 sack 1001-2001 win 50000"
    ));
    let marked: Vec<usize> = (1..=8)
        .filter(|&number| sack.note(number).dup_ack)
        .collect();
    assert_eq!(marked, [7]);
}

#[test]
fn closed_and_idle_connections_are_retired() {
    let mut tracker = Tracker::new(7);
    let hour = 3600 * 1_000_000_000_i64;
    for segment in segments(TRANSFER, ISN) {
        tracker.push(&segment);
    }
    let mut idle = blank(20, 500_000_000, true, 6000);
    idle.flags = flags::SYN;
    tracker.push(&idle);
    assert_eq!(tracker.take_finished_flows().len(), 0);
    let mut other = blank(21, 100_000_000_000, true, 6001);
    other.flags = flags::SYN;
    tracker.push(&other);
    let closed = tracker.take_finished_flows();
    assert_eq!(
        closed.iter().map(|flow| flow.flow_id).collect::<Vec<_>>(),
        [7]
    );
    for number in 0..10 {
        let mut again = other;
        (again.record, again.t_ns) = (22 + number, (number as i64 + 1) * hour);
        tracker.push(&again);
    }
    let expired = tracker.take_finished_flows();
    assert_eq!(
        expired.iter().map(|flow| flow.flow_id).collect::<Vec<_>>(),
        [8],
        "6001 still sends"
    );
    tracker.finish();
    assert_eq!(
        tracker
            .take_finished_flows()
            .iter()
            .map(|flow| flow.flow_id)
            .collect::<Vec<_>>(),
        [9]
    );
}

#[test]
fn a_repeated_syn_gives_no_round_trip_time_without_timestamps() {
    let rtt = |syn: &str, again: &str, answer: &str| {
        let outcome = run(&format!(
            "   0.0 a>b S  0 mss 1000 {syn}
             1000.0 a>b S  0 mss 1000 {again}
             1100.0 b>a SA 0 ack 1 mss 1000 {answer}
             1100.1 a>b A  1 ack 1"
        ));
        outcome.flows[0].handshake_rtt_ns
    };
    assert_eq!(rtt("", "", ""), None);
    assert_eq!(rtt("ts 1/0", "ts 1001/0", "ts 9/1"), None);
    assert_eq!(rtt("ts 1/0", "ts 1001/0", "ts 9/1001"), Some(100_100_000));
}

#[test]
fn a_keep_alive_of_the_other_end_is_no_duplicate_ack() {
    let outcome = run("
          0.0 a>b S  0 mss 1000
        100.0 b>a SA 0 ack 1 mss 1000
        100.1 a>b A  1 ack 1
        110.0 a>b A 1:1001 ack 1
        115.0 b>a A 0 ack 1     # a keep-alive
        210.0 b>a A 1 ack 1001
    ");
    assert_eq!(outcome.flows[0].directions[1].dup_acks, 0);
}

#[test]
fn a_fin_that_is_repeated_is_no_keep_alive() {
    let outcome = run("
          0.00 a>b S  0 mss 1000
          0.05 b>a SA 0 ack 1 mss 1000
        100.0 a>b A  1 ack 1
        110.0 a>b A 1:1001 ack 1
        110.1 b>a A 1 ack 1001
        120.0 a>b FA 1001 ack 1
        120.1 b>a A 1 ack 1002
        520.0 a>b FA 1001 ack 1
    ");
    let repeats: Vec<_> = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Retransmission)
        .map(|event| event.mechanism)
        .collect();
    assert_eq!(repeats.len(), 1);
    assert_ne!(repeats[0], Some(hindflight_flows::Mechanism::KeepAlive));
}

#[test]
fn acks_alone_do_not_show_the_flight_of_the_data() {
    // The captured direction opened the connection, or not; the other one sends data, and none of it is captured.
    let acks = "
        0.0 a>b A 1 ack 1001
        0.1 a>b A 1 ack 3001
        0.2 a>b A 1 ack 9001
    ";
    for ladder in [acks.to_owned(), format!("0.0 a>b S 0\n{acks}")] {
        let outcome = run(&ladder);
        let flow = &outcome.flows[0];
        assert_eq!(
            flow.data_direction,
            Direction::B2a,
            "of which more was acknowledged"
        );
        let [a2b, b2a] = &flow.directions;
        assert_eq!((a2b.flight_max_bytes, b2a.flight_max_bytes), (None, None));
        assert_eq!(
            (b2a.segments, b2a.rtt_min_ns, b2a.not_captured_bytes),
            (0, None, None)
        );
        let acked = outcome.notes.iter().filter(|note| note.ack.is_some());
        assert!(
            acked.clone().count() == 3 && acked.clone().all(|note| note.flight_bytes.is_none())
        );
    }
    // The handshake was captured in both directions, and the data were not.
    let outcome = run("
        0.0 a>b S 0
        0.1 b>a SA 0 ack 1
        0.2 a>b A 1 ack 1
        0.3 a>b A 1 ack 9001
    ");
    assert_eq!(outcome.flows[0].directions[1].flight_max_bytes, None);
    assert_eq!(outcome.note(3).flight_bytes, Some(0), "of the handshake");
    assert_eq!(outcome.note(4).flight_bytes, None);
    // A direction that only acknowledges has nothing in flight, which the capture shows.
    let outcome = run("
        0.0 a>b A 1:1001 ack 1
        0.1 b>a A 1 ack 1001
        0.2 a>b A 1001:2001 ack 1
        0.3 b>a A 1 ack 2001
    ");
    let [a2b, b2a] = &outcome.flows[0].directions;
    assert_eq!(
        (a2b.flight_max_bytes, b2a.flight_max_bytes),
        (Some(1000), Some(0))
    );
}
