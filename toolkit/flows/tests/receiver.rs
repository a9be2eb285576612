//! Captures at the receiver: losses before the capture point. `support/mod.rs` explains the notation.

mod support;

use std::fmt::Write;

use hindflight_flows::{Event, EventKind, Vantage};
use support::{Outcome, losses, run, second_of_twelve_lost, ten_segments};

#[test]
fn a_retransmission_that_passes_an_open_hole_shows_a_lost_retransmission() {
    let outcome = run("  0.00 a>b S  0 mss 1000 sackok
           0.05 b>a SA 0 ack 1 mss 1000 sackok
         100.00 a>b A  1 ack 1
         110.00 a>b A 1:1001    ack 1           # 1001:2001 and 3001:4001 were lost
         110.02 b>a A 1 ack 1001
         110.10 a>b A 2001:3001 ack 1
         110.12 b>a A 1 ack 1001 sack 2001-3001
         110.20 a>b A 4001:5001 ack 1
         110.22 b>a A 1 ack 1001 sack 4001-5001 2001-3001
         210.30 a>b A 3001:4001 ack 1           # the retransmission of 1001:2001 was lost
         210.32 b>a A 1 ack 1001 sack 2001-5001
         310.40 a>b A 1001:2001 ack 1
         310.42 b>a A 1 ack 5001");
    assert_eq!(outcome.flows[0].vantage, Vantage::Receiver);
    assert_eq!(
        losses(&outcome),
        [
            (Some(1001), Some(1), None),
            (Some(1001), Some(2), None),
            (Some(3001), Some(1), None),
        ]
    );
}

#[test]
fn after_a_timeout_without_sack_a_segment_left_out_was_lost() {
    let outcome = run("  0.00 a>b S  0 mss 1000
           0.05 b>a SA 0 ack 1 mss 1000
         100.00 a>b A  1 ack 1
         110.00 a>b A 1:1001    ack 1           # 1001:2001 was lost
         110.02 b>a A 1 ack 1001
         110.10 a>b A 2001:3001 ack 1
         110.12 b>a A 1 ack 1001
         110.20 a>b A 3001:4001 ack 1
         110.22 b>a A 1 ack 1001
         110.30 a>b A 4001:5001 ack 1
         110.32 b>a A 1 ack 1001
         510.00 a>b A 2001:3001 ack 1           # all is repeated; 1001:2001 and 3001:4001 are lost
         510.02 b>a A 1 ack 1001
         510.10 a>b A 4001:5001 ack 1
         510.12 b>a A 1 ack 1001
         910.00 a>b A 1001:2001 ack 1
         910.02 b>a A 1 ack 5001");
    assert_eq!(
        losses(&outcome),
        [
            (Some(1001), Some(1), None),
            (Some(1001), Some(2), None),
            (Some(3001), Some(2), None),
        ]
    );
}

#[test]
fn a_missing_id_shows_a_loss_at_the_end_of_a_flight() {
    let outcome = run(&format!(
        "{}
         519.0 a>b A 10001:11001 ack 1 id 14    # 13 was lost, with nothing above it
         519.1 b>a A 1 ack 11001
         619.0 a>b A 11001:12001 ack 1 id 15
         619.1 b>a A 1 ack 12001",
        ten_segments()
    ));
    assert_eq!(losses(&outcome), [(Some(10_001), Some(1), None)]);
    assert_eq!(outcome.flows[0].directions[0].retransmitted_segments, 1);
}

#[test]
fn a_reset_shows_what_is_missing_below_it() {
    let ended = |id: u16| {
        run(&format!(
            "{}
             120.0 a>b RA 12001 ack 1 id {id}       # SND.NXT
             160.0 a>b R  9001",
            ten_segments()
        ))
    };
    let expected = [(Some(10_001), Some(1), None), (Some(11_001), Some(1), None)];
    assert_eq!(losses(&ended(15)), expected);
    assert_eq!(losses(&ended(14)), [], "one packet cannot be two segments");
}

#[test]
fn a_hole_that_is_filled_a_round_trip_late_shows_a_lost_retransmission() {
    let late_with = |ecr: u32, t_ms: f64, id: u16| {
        let flow = ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n");
        run(&format!(
            "{flow}
             210.1 a>b A 10001:11001 ack 1 id 13 ts 60/{ecr}
             210.2 b>a A 1 ack 11001
             220.0 a>b A 12001:13001 ack 1 id 15    # 11001:12001 was lost
             220.1 b>a A 1 ack 11001 sack 12001-13001
             {t_ms} a>b A 11001:12001 ack 1 id {id}
             {t_ms}1 b>a A 1 ack 13001"
        ))
    };
    let late = |t_ms: f64, id: u16| late_with(7, t_ms, id);
    assert_eq!(losses(&late(320.1, 16)), [(Some(11_001), Some(1), None)]);
    assert_eq!(
        losses(&late(420.1, 17)),
        [(Some(11_001), Some(1), None), (Some(11_001), Some(2), None)]
    );
    assert_eq!(
        losses(&late(420.1, 16)).len(),
        1,
        "no ID is missing: the sender was late"
    );
    assert_eq!(
        losses(&late_with(0, 420.1, 17)).len(),
        1,
        "without an echo, a queue before the capture point may delay it"
    );
}

#[test]
fn packets_missing_before_a_retransmission_could_come_were_not_that_retransmission() {
    let outcome = run(&format!(
        "{}
         120.0 a>b A 11001:12001 ack 1 id 14    # 10001:11001 was lost
         120.1 b>a A 1 ack 10001 sack 11001-12001
         121.0 a>b A 12001:13001 ack 1 id 17    # two packets are missing, a round trip too early
         121.1 b>a A 1 ack 10001 sack 11001-13001
         320.1 a>b A 10001:11001 ack 1 id 18
         320.2 b>a A 1 ack 13001",
        ten_segments()
    ));
    assert_eq!(losses(&outcome), [(Some(10_001), Some(1), None)]);
}

#[test]
fn the_end_of_a_flight_before_a_silence_was_lost_though_holes_are_filled_first() {
    let outcome = run(&format!(
        "{}
         120.0 a>b A 11001:12001 ack 1 id 14    # 10001:11001 was lost
         120.1 b>a A 1 ack 10001 sack 11001-12001
         121.0 a>b A 13001:14001 ack 1 id 16    # 12001:13001 was lost
         121.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
         519.0 a>b A 10001:11001 ack 1 id 21    # 17, 18: the end of the flight, 19, 20: retransmissions
         519.1 b>a A 1 ack 12001 sack 13001-14001
         520.0 a>b A 12001:13001 ack 1 id 22
         520.1 b>a A 1 ack 14001
         719.0 a>b A 14001:15001 ack 1 id 23
         720.0 a>b A 15001:16001 ack 1 id 24
         720.1 b>a A 1 ack 16001
         721.0 a>b A 16001:17001 ack 1 id 25
         721.1 b>a A 1 ack 17001",
        ten_segments()
    ));
    let mut found = losses(&outcome);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            (Some(10_001), Some(1), None),
            (Some(10_001), Some(2), None),
            (Some(12_001), Some(1), None),
            (Some(12_001), Some(2), None),
            (Some(14_001), Some(1), None),
            (Some(15_001), Some(1), None),
        ]
    );
}

#[test]
fn a_gap_that_is_open_at_the_end_of_the_capture_was_lost() {
    let flow = "  0.00 a>b S  0 mss 1000 sackok
           0.05 b>a SA 0 ack 1 mss 1000 sackok
         100.00 a>b A  1 ack 1
         110.00 a>b A 1:1001    ack 1           # 1001:3501 were lost
         110.02 b>a A 1 ack 1001
         110.10 a>b A 3501:4501 ack 1
         110.12 b>a A 1 ack 1001 sack 3501-4501";
    let later = "
         900.00 a>b A 4501:5501 ack 1
         900.02 b>a A 1 ack 1001 sack 3501-5501";
    let expected = [
        (Some(1001), Some(1), None),
        (Some(2001), Some(1), None),
        (Some(3001), Some(1), None),
    ];
    assert_eq!(losses(&run(&format!("{flow}{later}"))), expected);
    assert_eq!(losses(&run(flow)), [], "it may be reordered");
    let fin = |t_ms: u32| run(&format!("{flow}\n {t_ms} a>b FA 4501 ack 1"));
    assert_eq!(losses(&fin(134)), [], "within a quarter of the round trip");
    assert_eq!(losses(&fin(137)), expected);
    let dup_thresh = "
         110.20 a>b A 4501:5501 ack 1
         110.30 a>b A 5501:6501 ack 1
         110.32 b>a A 1 ack 1001 sack 3501-6501";
    assert_eq!(losses(&run(&format!("{flow}{dup_thresh}"))), expected);
}

#[test]
fn a_gap_of_more_segments_than_the_capture_has_is_undecided() {
    let outcome = run("  0.00 a>b S  0 mss 1000 ws 14 sackok
           0.05 b>a SA 0 ack 1 mss 1000 ws 14 sackok
         100.00 a>b A  1 ack 1
         110.00 a>b A 1:2       ack 1
         110.02 b>a A 1 ack 2
         110.10 a>b A 1000000002:1000000003 ack 1
         110.12 b>a A 1 ack 2 sack 1000000002-1000000003
         900.00 a>b A 1000000003:1000000004 ack 1
         900.02 b>a A 1 ack 2 sack 1000000002-1000000004");
    assert_eq!(losses(&outcome), [(Some(2), Some(1), None)]);
    let undecided = |event: &&Event| event.kind == EventKind::Undecided;
    let octets: Vec<_> = (outcome.events.iter().filter(undecided))
        .map(|event| (event.seq_start, event.seq_end))
        .collect();
    assert_eq!(octets, [(Some(2), Some(1_000_000_002))]);
}

#[test]
fn a_gap_of_one_segment_is_a_loss_behind_any_number_of_others() {
    let mut ladder = String::from(
        "  0.00 a>b S  0 mss 1000 ws 14 sackok
           0.05 b>a SA 0 ack 1 mss 1000 ws 14 sackok
         100.00 a>b A  1 ack 1
         110.00 a>b A 1:1001    ack 1
         110.02 b>a A 1 ack 1001
         110.10 a>b A 256001:257001 ack 1           # 255 lost, then one lost before each of ten
         110.12 b>a A 1 ack 1001 sack 256001-257001",
    );
    for number in 0..10 {
        let (start, t_ms) = (258_001 + 2000 * number, 120 + number);
        let _ = write!(ladder, "\n {t_ms}.0 a>b A {start}:{} ack 1", start + 1000);
    }
    ladder.push_str("\n 900.0 a>b A 277001:278001 ack 1\n 900.1 b>a A 1 ack 1001");
    let outcome = run(&ladder);
    assert_eq!(losses(&outcome).len(), 255 + 10);
    assert!(
        (outcome.events.iter()).all(|event| event.kind != EventKind::Undecided),
        "the segments of each gap are known"
    );
}

#[test]
fn without_sack_a_lost_repetition_of_what_had_arrived_shows_by_its_id() {
    let mut ladder = second_of_twelve_lost(&[]);
    ladder.push_str(
        " 520.0 a>b A 1001:2001 ack 1 id 15      # all is repeated after a timeout
          520.1 b>a A 1 ack 12001
          620.0 a>b A 2001:3001 ack 1 id 16
          620.1 b>a A 1 ack 12001
          622.0 a>b A 5001:6001 ack 1 id 19      # 3001:5001 is lost
          622.1 b>a A 1 ack 12001
          625.0 a>b A 8001:9001 ack 1 id 21      # two segments, one packet: not known
          625.1 b>a A 1 ack 12001
          628.0 a>b A 13001:14001 ack 1 id 26    # 9001:13001 is lost, the end of it for the first time
          628.1 b>a A 1 ack 12001",
    );
    let repeated: Vec<_> = losses(&run(&ladder))
        .into_iter()
        .filter(|row| row.1 != Some(1))
        .collect();
    assert_eq!(
        repeated,
        [3001, 4001, 9001, 10_001, 11_001].map(|start| (Some(start), Some(2), None))
    );
}

#[test]
fn what_was_sent_after_a_timeout_is_not_repeated() {
    let mut ladder = second_of_twelve_lost(&[]);
    ladder.push_str(
        " 520.0 a>b A 1001:2001 ack 1 id 15      # a timeout
          520.1 b>a A 1 ack 12001
          620.0 a>b A 12001:13001 ack 1 id 16    # F-RTO
          620.1 b>a A 1 ack 13001
          620.2 a>b A 13001:14001 ack 1 id 17
          620.3 b>a A 1 ack 14001
          722.0 a>b A 9001:10001 ack 1 id 18
          722.1 b>a A 1 ack 14001
          724.0 a>b A 15001:16001 ack 1 id 22    # 10001:12001 is lost, and 14001:15001
          724.1 b>a A 1 ack 14001",
    );
    let repeated: Vec<_> = losses(&run(&ladder))
        .into_iter()
        .filter(|row| row.1 != Some(1))
        .collect();
    assert_eq!(
        repeated,
        [10_001, 11_001].map(|start| (Some(start), Some(2), None))
    );
}

#[test]
fn what_is_missing_in_a_silence_besides_the_end_of_the_flight_was_sent_again() {
    // 10001:13001 is the end of the flight; 9001:10001 arrived, its ACK did not.
    let with_gap = |ended_ms: u32, id: u16, end: u32| {
        let mut ladder = ten_segments();
        let mut add = |wait_ms: u32, seq: &str, id: u16, ack: &str| {
            let t_ms = ended_ms + wait_ms;
            writeln!(ladder, "{t_ms}.0 a>b A {seq} ack 1 id {id}").expect("text");
            writeln!(ladder, "{t_ms}.1 b>a A 1 ack {ack}").expect("text");
        };
        add(0, "9001:10001", id, "10001 sack 9001-10001");
        let sack = format!("sack {end}-14001");
        let (above, last) = (format!("{end}:14001"), format!("12001:{end}"));
        add(100, &above, id + 1, &format!("10001 {sack}"));
        add(200, "10001:11001", id + 2, &format!("11001 {sack}"));
        add(201, "11001:12001", id + 3, &format!("12001 {sack}"));
        add(202, &last, id + 4, "14001");
        losses(&run(&ladder))
    };
    let with = |ended_ms, id| with_gap(ended_ms, id, 13_001);
    let first = [10_001, 11_001, 12_001].map(|start| (Some(start), Some(1), None));
    assert_eq!(with(519, 16), first);
    let probe = (Some(12_001), Some(2), None);
    assert_eq!(with(519, 17), [&first[..], &[probe]].concat());
    assert_eq!(
        with(519, 18),
        first,
        "more than a probe, too soon for a timeout"
    );
    let timeout = (Some(9001), Some(2), None);
    assert_eq!(with(1200, 17), [&[timeout], &first[..]].concat());
    assert_eq!(with(1200, 18), [&[timeout], &first[..], &[probe]].concat());
    let short = with_gap(519, 17, 12_501);
    assert!(
        short.iter().all(|row| row.1 == Some(1)),
        "four packets may be four segments"
    );
}

#[test]
fn after_an_outage_each_known_hole_had_been_repeated_in_vain() {
    let outcome = run(&format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14    # 10001:11001 was lost
         121.1 b>a A 1 ack 10001 sack 11001-12001
         123.0 a>b A 13001:14001 ack 1 id 16    # 12001:13001 was lost
         123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
         125.0 a>b A 15001:16001 ack 1 id 18    # 14001:15001 was lost
         125.1 b>a A 1 ack 10001 sack 15001-16001 13001-14001 11001-12001
        1122.0 a>b A 10001:11001 ack 1 id 23    # 19 to 21: retransmissions, 22: the first timeout
        1122.1 b>a A 1 ack 12001 sack 15001-16001 13001-14001
        1222.0 a>b A 12001:13001 ack 1 id 24
        1222.1 b>a A 1 ack 14001 sack 15001-16001
        1222.2 a>b A 14001:15001 ack 1 id 25
        1222.3 b>a A 1 ack 16001
        1323.0 a>b A 16001:17001 ack 1 id 26
        1323.1 b>a A 1 ack 17001
        1324.0 a>b A 17001:18001 ack 1 id 27
        1324.1 b>a A 1 ack 18001",
        ten_segments()
    ));
    let copies = |start: i64| {
        losses(&outcome)
            .iter()
            .filter(|row| row.0 == Some(start))
            .count()
    };
    assert_eq!([10_001, 12_001, 14_001].map(copies), [3, 2, 2]);
    assert_eq!([16_001, 17_001].map(copies), [0, 0], "new data");
}

#[test]
fn a_hole_without_sack_that_waits_for_a_timeout_shows_a_lost_fast_retransmission() {
    let late = |ids: [u16; 2]| {
        let flow = ten_segments().replace(" sackok", "");
        let [above, filled] = ids;
        run(&format!(
            "{flow}
             120.0 a>b A 11001:12001 ack 1 id 14    # 10001:11001 was lost
             120.1 b>a A 1 ack 10001
             121.0 a>b A 12001:13001 ack 1 id 15
             121.1 b>a A 1 ack 10001
             122.0 a>b A 13001:14001 ack 1 id 16
             122.1 b>a A 1 ack 10001                # the third duplicate ACK
             240.0 a>b A 14001:15001 ack 1 id {above}
             240.1 b>a A 1 ack 10001
             640.0 a>b A 10001:11001 ack 1 id {filled}
             640.1 b>a A 1 ack 15001"
        ))
    };
    let both = [(Some(10_001), Some(1), None), (Some(10_001), Some(2), None)];
    assert_eq!(losses(&late([18, 19])), both);
    assert_eq!(losses(&late([17, 18])), both[..1], "no ID is missing");
}

#[test]
fn a_packet_missing_before_new_data_in_order_was_a_retransmission_of_the_hole() {
    let with = |id: u16| {
        let flow = ten_segments();
        run(&format!(
            "{flow}
             120.0 a>b A 11001:12001 ack 1 id 14    # 10001:11001 was lost
             120.1 b>a A 1 ack 10001 sack 11001-12001
             240.0 a>b A 12001:13001 ack 1 id 15
             240.1 b>a A 1 ack 10001 sack 11001-13001
             242.0 a>b A 13001:14001 ack 1 id {id}
             242.1 b>a A 1 ack 10001 sack 11001-14001
             360.0 a>b A 10001:11001 ack 1 id {}
             360.1 b>a A 1 ack 14001",
            id + 1
        ))
    };
    let both = [(Some(10_001), Some(1), None), (Some(10_001), Some(2), None)];
    assert_eq!(losses(&with(17)), both);
    assert_eq!(losses(&with(16)), both[..1], "no ID is missing");
}

#[test]
fn new_data_lost_among_the_retransmissions_of_holes_are_the_end_of_the_flight() {
    let outcome = run(&format!(
        "{}
         120.0 a>b A 11001:12001 ack 1 id 14    # 10001:11001 was lost
         120.1 b>a A 1 ack 10001 sack 11001-12001
         121.0 a>b A 13001:14001 ack 1 id 16    # 12001:13001 was lost
         121.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
         122.0 a>b A 15001:16001 ack 1 id 18    # 14001:15001 was lost
         122.1 b>a A 1 ack 10001 sack 15001-16001 13001-14001 11001-12001
         221.0 a>b A 10001:11001 ack 1 id 19
         221.1 b>a A 1 ack 12001 sack 15001-16001 13001-14001
         223.0 a>b A 12001:13001 ack 1 id 21    # 20 and 22: new data after each retransmission
         223.1 b>a A 1 ack 14001 sack 15001-16001
         225.0 a>b A 14001:15001 ack 1 id 23
         225.1 b>a A 1 ack 16001
         330.0 a>b A 16001:17001 ack 1 id 24
         331.0 a>b A 17001:18001 ack 1 id 25
         331.1 b>a A 1 ack 18001
         332.0 a>b A 18001:19001 ack 1 id 26
         332.1 b>a A 1 ack 19001",
        ten_segments()
    ));
    let firsts = [10_001, 12_001, 14_001, 16_001, 17_001];
    assert_eq!(
        losses(&outcome),
        firsts.map(|start| (Some(start), Some(1), None))
    );
}

/// Ten segments, then data and ACKs with timestamps: the round trip to the sender takes 100 ms.
fn with_timestamps(later: &str) -> Outcome {
    let flow = ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n");
    run(&format!(
        "{flow}
         210.1 a>b A 10001:11001 ack 1 id 13 ts 60/7
         210.2 b>a A 1 ack 11001 ts 107/60
         {later}"
    ))
}

#[test]
fn with_sack_no_hole_is_repeated_before_one_below_it() {
    let outcome = with_timestamps(
        "220.0 a>b A 14001:15001 ack 1 id 17    # 11001:14001 were lost
         220.1 b>a A 1 ack 11001 sack 14001-15001
         300.0 a>b A 15001:16001 ack 1 id 18
         300.1 b>a A 1 ack 11001 sack 14001-16001
         330.0 a>b A 11001:12001 ack 1 id 22    # 19 to 21: the end of the flight
         330.1 b>a A 1 ack 12001 sack 14001-16001
         530.0 a>b A 12001:13001 ack 1 id 23
         532.0 a>b A 13001:14001 ack 1 id 24
         532.1 b>a A 1 ack 16001
         730.0 a>b A 16001:17001 ack 1 id 25
         731.0 a>b A 17001:18001 ack 1 id 26
         732.0 a>b A 18001:19001 ack 1 id 27
         733.0 a>b A 19001:20001 ack 1 id 28
         733.1 b>a A 1 ack 20001",
    );
    let firsts = [11_001, 12_001, 13_001, 16_001, 17_001, 18_001];
    assert_eq!(
        losses(&outcome),
        firsts.map(|start| (Some(start), Some(1), None))
    );
}

#[test]
fn a_sender_that_did_not_know_of_a_hole_did_not_repeat_it() {
    let after = |ts_ecr: u32| {
        with_timestamps(&format!(
            "220.0 a>b A 12001:13001 ack 1 id 15 ts 70/7    # 11001:12001 was lost
             220.1 b>a A 1 ack 11001 sack 12001-13001 ts 117/60
             700.0 a>b A 11001:12001 ack 1 id 19 ts 550/{ts_ecr}    # after a timeout
             700.1 b>a A 1 ack 13001 ts 597/550
             900.0 a>b A 13001:14001 ack 1 id 20 ts 750/597
             901.0 a>b A 14001:15001 ack 1 id 21 ts 751/597
             902.0 a>b A 15001:16001 ack 1 id 22 ts 752/597
             902.1 b>a A 1 ack 16001 ts 799/752
             903.0 a>b A 16001:17001 ack 1 id 23 ts 753/597
             903.1 b>a A 1 ack 17001 ts 800/753"
        ))
    };
    let firsts = [11_001, 13_001, 14_001, 15_001].map(|start| (Some(start), Some(1), None));
    assert_eq!(
        losses(&after(107)),
        firsts,
        "16 to 18: the end of the flight"
    );
    let known = [
        firsts[0],
        (Some(11_001), Some(2), None),
        firsts[1],
        firsts[2],
    ];
    assert_eq!(losses(&after(117)), known, "16: fast retransmission");
}

#[test]
fn the_silence_before_a_timeout_is_no_round_trip() {
    let outcome = with_timestamps(
        "220.0 a>b A 12001:13001 ack 1 id 15 ts 70/107    # 11001:12001 was lost
         220.1 b>a A 1 ack 11001 sack 12001-13001 ts 117/60
        5000.0 a>b A 11001:12001 ack 1 id 20 ts 4850/117    # 16: fast retransmission, 17 to 19: timeouts
        5000.1 b>a A 1 ack 13001 ts 4897/4850
        5100.1 a>b A 13001:14001 ack 1 id 21 ts 4950/4897
        5100.2 b>a A 1 ack 14001 ts 4997/4950",
    );
    let copies = [1, 2, 3, 4, 5];
    assert_eq!(
        losses(&outcome),
        copies.map(|copy| (Some(11_001), Some(copy), None))
    );
}

#[test]
fn the_silence_before_a_timeout_is_no_round_trip_though_the_octets_are_new_to_the_capture() {
    let outcome = with_timestamps(
        "5000.0 a>b A 11001:12001 ack 1 id 19 ts 4850/107    # 14, 15: the end of the flight, 16 to 18: timeouts
         5000.1 b>a A 1 ack 12001 ts 4897/4850",
    );
    let copies = [1, 2, 3, 4];
    assert_eq!(
        losses(&outcome),
        copies.map(|copy| (Some(11_001), Some(copy), None))
    );
}
