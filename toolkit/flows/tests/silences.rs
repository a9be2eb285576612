//! Silences in captures at the receiver: what was lost in them. `support/mod.rs` explains the notation.

mod support;

use std::fmt::Write;

use hindflight_flows::EventKind;
use support::{Outcome, losses, run, second_of_twelve_lost, ten_segments};

/// A flow without SACK: of twelve segments the second and the seventh were lost, and a timeout repeats from the second
/// on. The rest of what it repeats is lost with two new segments and a timeout, before the packet with `id`.
fn rest_of_go_back_n_lost(id: u16) -> Outcome {
    let ladder = second_of_twelve_lost(&[6]);
    let ids = [id, id + 1, id + 2, id + 3];
    run(&format!(
        "{ladder}
          520.0 a>b A 1001:2001 ack 1 id 15       # a timeout
          520.1 b>a A 1 ack 6001
          620.0 a>b A 7001:8001 ack 1 id 17       # 16: 6001:7001
          620.1 b>a A 1 ack 6001
         1720.0 a>b A 6001:7001 ack 1 id {}       # the second timeout
         1720.1 b>a A 1 ack 12001
         1820.0 a>b A 14001:15001 ack 1 id {}     # F-RTO: new data
         1820.1 b>a A 1 ack 12001
         1920.0 a>b A 12001:13001 ack 1 id {}
         1920.1 b>a A 1 ack 13001
         1921.0 a>b A 13001:14001 ack 1 id {}
         1921.1 b>a A 1 ack 15001",
        ids[0], ids[1], ids[2], ids[3]
    ))
}

#[test]
fn the_rest_of_go_back_n_was_lost_in_a_silence_without_sack() {
    let first = [1001, 6001, 12_001, 13_001].map(|start| (Some(start), Some(1), None));
    let again = [8001, 9001, 10_001, 11_001].map(|start| (Some(start), Some(2), None));
    let hole = (Some(6001), Some(2), None);
    let timeout = (Some(6001), Some(3), None);
    let sorted = |parts: &[&[_]]| {
        let mut rows = parts.concat();
        rows.sort_unstable();
        rows
    };
    // 18 to 21: the rest of go-back-N, 22 and 23: new data, 24: the first timeout.
    assert_eq!(
        losses(&rest_of_go_back_n_lost(25)),
        sorted(&[&first, &again, &[hole, timeout]])
    );
    assert_eq!(
        losses(&rest_of_go_back_n_lost(24)),
        sorted(&[&first, &again, &[hole]]),
        "no timeout"
    );
    assert_eq!(
        losses(&rest_of_go_back_n_lost(23)),
        sorted(&[&first, &again[..2], &[hole]]),
        "a part of go-back-N, which goes on in order, and one more or a timeout"
    );
}

/// A flow without SACK: of twelve segments the second, the seventh and the ninth were lost, and a timeout repeats from
/// the second on. Go-back-N has come to 10001 when a silence begins, which one timeout ends with the packet `id`. The
/// receiver has `wnd_bytes` of window. The lines `then` follow.
fn lost_before_one_timeout(id: u16, wnd_bytes: u32, then: &str) -> Outcome {
    run(&format!(
        "{}
          520.0 a>b A 1001:2001 ack 1 id 15       # a timeout
          520.1 b>a A 1 ack 6001
          620.0 a>b A 6001:7001 ack 1 id 16
          620.1 b>a A 1 ack 8001
          720.0 a>b A 9001:10001 ack 1 id 18      # 17: 8001:9001
          720.1 b>a A 1 ack 8001 win {wnd_bytes}
         1120.0 a>b A 8001:9001 ack 1 id {id}     # the second timeout
         1120.1 b>a A 1 ack 12001
         {then}",
        second_of_twelve_lost(&[6, 8])
    ))
}

#[test]
fn the_rest_of_go_back_n_may_be_all_that_was_lost_in_a_silence() {
    // 19 and 20: the rest of go-back-N.
    let then = "1220.0 a>b A 12001:13001 ack 1 id 22
                1220.1 b>a A 1 ack 13001";
    let outcome = lost_before_one_timeout(21, 60_000, then);
    let copies = [
        (1001, 1),
        (6001, 1),
        (8001, 1),
        (8001, 2),
        (10_001, 2),
        (11_001, 2),
    ];
    let expected = copies.map(|(start, copy)| (Some(start), Some(copy), None));
    assert_eq!(losses(&outcome), expected);
}

#[test]
fn what_exceeds_the_window_was_not_the_end_of_the_flight() {
    // 19 to 22: one segment at most fits into the window.
    let then = |seq: &str| {
        format!(
            "1221.0 a>b A {seq} ack 1 id 24
             1221.1 b>a A 1 ack 12001"
        )
    };
    let rows = |wnd_bytes, seq: &str| losses(&lost_before_one_timeout(23, wnd_bytes, &then(seq)));
    let again = |start| (Some(start), Some(2), None);
    let rest = [again(10_001), again(11_001)];
    let fits = rows(60_000, "12001:13001");
    assert!(fits.contains(&(Some(12_001), Some(1), None)), "{fits:?}");
    let left = rows(5000, "12001:13001");
    assert!(
        !rest.iter().any(|row| left.contains(row)),
        "new data do not show what it was: {left:?}"
    );
    let shown = rows(5000, "14001:15001");
    assert!(
        rest.iter().all(|row| shown.contains(row)),
        "the gap below new data shows it: {shown:?}"
    );
}

#[test]
fn what_was_repeated_as_new_data_is_not_counted_again() {
    let outcome = run(&format!(
        "{}
         519.0 a>b A 9001:10001 ack 1 id 15     # 13 and 14: the end of the flight
         519.1 b>a A 1 ack 10001 sack 9001-10001
         619.0 a>b A 10001:11001 ack 1 id 16
         619.1 b>a A 1 ack 11001
         620.0 a>b A 12001:13001 ack 1 id 17
         620.1 b>a A 1 ack 11001 sack 12001-13001
         720.0 a>b A 11001:12001 ack 1 id 18
         720.1 b>a A 1 ack 13001",
        ten_segments()
    ));
    let ends = [10_001, 11_001].map(|start| (Some(start), Some(1), None));
    assert_eq!(losses(&outcome), ends);
}

/// Ten segments, then more with timestamps: the round trip to the sender takes 100 ms, then 300 ms. Returns the next
/// position, ID and time.
fn longer_round_trips() -> (String, i64, u16, u32) {
    let mut ladder = ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n");
    let (mut t_ms, mut start, mut id, mut ecr) = (210, 10_001, 13, 7);
    for round in 0..12 {
        let (end, val) = (start + 1000, 1000 + round);
        writeln!(
            ladder,
            "{t_ms}.1 a>b A {start}:{end} ack 1 id {id} ts {val}/{ecr}"
        )
        .expect("text");
        ecr = 8 + round;
        writeln!(ladder, "{t_ms}.2 b>a A 1 ack {end} ts {ecr}/{val}").expect("text");
        (t_ms, start, id) = (t_ms + 300, end, id + 1);
    }
    (ladder, start, id, t_ms)
}

#[test]
fn repeats_of_a_segment_whose_ack_was_not_captured_are_lost_before_the_one_that_arrived() {
    let (mut ladder, start, id, t_ms) = longer_round_trips();
    let (end, gap_end) = (start + 1000, start + 4000);
    let silent_ms = t_ms + 2500;
    // Two timeouts and the end of the flight are missing.
    for (t_ms, seq, id) in [
        (t_ms, format!("{start}:{end}"), id),
        (silent_ms, format!("{start}:{end}"), id + 6),
        (
            silent_ms + 300,
            format!("{gap_end}:{}", gap_end + 1000),
            id + 7,
        ),
    ] {
        writeln!(ladder, "{t_ms}.1 a>b A {seq} ack 1 id {id} ts 2000/19").expect("text");
    }
    writeln!(
        ladder,
        "{}.2 b>a A 1 ack {end} sack {gap_end}-{} ts 20/2000",
        silent_ms + 300,
        gap_end + 1000
    )
    .expect("text");
    let outcome = run(&ladder);
    let copies: Vec<_> = losses(&outcome)
        .into_iter()
        .filter(|row| row.0 == Some(start))
        .map(|row| row.1)
        .collect();
    assert_eq!(copies, [Some(2), Some(3)]);
    let retransmitted = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Retransmission);
    assert_eq!(retransmitted.count(), 1, "the one that arrived");
}

#[test]
fn a_reset_shows_what_was_lost_in_the_silence_before_it() {
    let ended = |seq: i64, t_ms: u32, id: u16| {
        losses(&run(&format!(
            "{}
             {t_ms}.0 a>b RA {seq} ack 1 id {id}
             {}.0 a>b R 9001",
            ten_segments(),
            t_ms + 40
        )))
    };
    let first = |starts: &[i64]| -> Vec<_> {
        starts
            .iter()
            .map(|&start| (Some(start), Some(1), None))
            .collect()
    };
    let two = first(&[10_001, 11_001]);
    let and = |again: &[(i64, u32)]| -> Vec<_> {
        let again = again
            .iter()
            .map(|&(start, copy)| (Some(start), Some(copy), None));
        let mut rows: Vec<_> = two.iter().copied().chain(again).collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(ended(12_001, 120, 15), two);
    assert_eq!(ended(12_001, 120, 16), and(&[(11_001, 2)]), "a probe");
    assert_eq!(ended(12_001, 120, 900), [], "too soon for timeouts");
    assert_eq!(ended(12_001, 420, 16), and(&[(10_001, 2)]), "a timeout");
    let both = and(&[(10_001, 2), (11_001, 2)]);
    assert_eq!(ended(12_001, 420, 17), both, "a timeout and a probe");
    let repeated = [(10_001, 2), (10_001, 3), (10_001, 4), (10_001, 5)];
    assert_eq!(ended(12_001, 4720, 19), and(&repeated), "four timeouts");
    assert_eq!(ended(12_002, 120, 16), two, "and a FIN");
    assert_eq!(ended(12_002, 420, 17), and(&[(10_001, 2)]), "and a FIN");
    assert_eq!(ended(10_002, 120, 14), [], "the FIN alone");
}

#[test]
fn an_ack_of_no_length_shows_what_was_lost_in_the_silence_before_it() {
    let ended = |seq: i64, t_ms: u32, id: u16| {
        losses(&run(&format!(
            "{}
             {t_ms}.0 b>a FA 1 ack 10001
             {}.0 a>b A {seq} ack 2 id {id}
             {}.0 b>a A 2 ack 10001",
            ten_segments(),
            t_ms + 100,
            t_ms + 140
        )))
    };
    let first = (Some(10_001), Some(1), None);
    let again = |copy: u32| (Some(10_001), Some(copy), None);
    let end = (Some(11_001), Some(1), None);
    assert_eq!(ended(12_001, 320, 16), [first, again(2), end], "a timeout");
    assert_eq!(ended(10_001, 320, 13), [], "nothing is missing");
    assert_eq!(ended(12_001, 320, 900), [], "another counter");
}

#[test]
fn of_segments_of_unknown_length_only_the_repeated_first_one_is_named() {
    // Every other segment ends a write.
    let mut ladder = String::from(
        "0 a>b S 0 mss 1000 sackok id 1
         0.05 b>a SA 0 ack 1 mss 1000 sackok
         100 a>b A 1 ack 1 id 2
         105 b>a A 1 ack 1 ts 7/0\n",
    );
    for number in 0..6 {
        let (t_ms, start, id) = (200 + 100 * number, 1 + 1300 * number, 3 + 2 * number);
        writeln!(
            ladder,
            "{t_ms}.0 a>b A {start}:{middle} ack 1 id {id} ts {t_ms}/7
             {t_ms}.1 b>a A 1 ack {middle} ts {t_ms}/{t_ms}
             {t_ms}.2 a>b PA {middle}:{end} ack 1 id {next} ts {t_ms}/{t_ms}
             {t_ms}.3 b>a A 1 ack {end} ts {t_ms}/{t_ms}",
            middle = start + 1000,
            end = start + 1300,
            next = id + 1
        )
        .expect("text");
    }
    let ended = |id: u16| {
        run(&format!(
            "{ladder}
             30000 b>a FA 1 ack 7801 ts 30000/700
             30100 a>b A 10401 ack 2 id {id} ts 30100/30000"
        ))
    };
    // 1000, 300, 1000 and 300 octets, and timeouts: at least six within 29.4 s, as no RTO is longer than 0.45 s.
    let outcome = ended(25);
    let copies: Vec<_> = (1..=7).map(|copy| (Some(7801), Some(copy), None)).collect();
    assert_eq!(losses(&outcome), copies);
    let undecided: Vec<_> = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Undecided)
        .map(|event| (event.seq_start, event.seq_end, event.copy))
        .collect();
    assert_eq!(undecided, [(Some(7801), Some(10_401), None)]);
    assert_eq!(losses(&ended(17)), [], "two packets cannot be 2600 octets");
}

#[test]
fn a_reset_shows_what_was_lost_of_the_only_hole() {
    let ended = |above: &str, seq: u32, id: u16| {
        let missing: Vec<_> = losses(&run(&format!(
            "{}
             131.0 a>b A 11001:12001 ack 1 id 14
             131.1 b>a A 1 ack 10001 sack 11001-12001
             {above}
             2000.0 a>b RA {seq} ack 1 id {id}",
            ten_segments()
        )));
        let again = missing.iter().filter(|row| row.1 > Some(1));
        again.map(|row| (row.0, row.1)).collect::<Vec<_>>()
    };
    // 15 to 17 are the end of the flight.
    assert_eq!(ended("", 15_001, 18), []);
    let copies =
        |count: u32| -> Vec<_> { (0..count).map(|n| (Some(10_001), Some(2 + n))).collect() };
    assert_eq!(ended("", 15_001, 19), copies(1), "in recovery");
    assert_eq!(ended("", 15_001, 21), copies(3), "and two timeouts");
    assert_eq!(ended("", 15_001, 24), [], "too many for timeouts");
    assert_eq!(ended("", 12_001, 18), copies(3), "no end of the flight");
    // Two holes: both were repeated in recovery, the older one again by two timeouts.
    let two = "132.0 a>b A 13001:14001 ack 1 id 16
               132.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001";
    let both = [
        (Some(10_001), Some(2)),
        (Some(10_001), Some(3)),
        (Some(10_001), Some(4)),
        (Some(12_001), Some(2)),
    ];
    assert_eq!(ended(two, 15_001, 22), both);
    let hole = "132.0 a>b A 13001:14001 ack 1 id 16
                132.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001";
    assert_eq!(ended(hole, 15_001, 19), [], "of either hole");
}

#[test]
fn a_reset_echoes_which_segment_the_timeouts_repeated() {
    let ended = |ts_ecr: u32| {
        let (mut ladder, start, id, t_ms) = longer_round_trips();
        // The ACK of the last segment, with timestamp 19, and that before, 18; 25 is that of no ACK.
        writeln!(
            ladder,
            "{t_ms}.0 b>a . 1 ts 25/0
             {}.0 a>b RA {} ack 1 id {} ts 3000/{ts_ecr}",
            t_ms + 4000,
            start + 2000,
            id + 4
        )
        .expect("text");
        let rows = losses(&run(&ladder));
        let starts = rows.into_iter().map(|row| row.0.map(|at| at - start));
        starts.collect::<Vec<_>>()
    };
    // Two timeouts and two new segments are missing.
    assert_eq!(ended(19), [Some(0), Some(0), Some(0), Some(1000)]);
    assert_eq!(
        ended(18),
        [Some(-1000), Some(-1000), Some(0), Some(1000)],
        "the ACK of the last segment was lost"
    );
    assert_eq!(ended(25), ended(19), "no ACK");
}

#[test]
fn a_gap_is_open_for_a_quarter_of_the_minimum_rtt_until_it_was_lost() {
    let open_for = |wait_ms: u32| {
        let (mut ladder, start, id, t_ms) = longer_round_trips();
        let (above, end) = (start + 1000, start + 2000);
        writeln!(
            ladder,
            "{t_ms}.1 a>b A {above}:{end} ack 1 id {} ts 2000/19
             {t_ms}.2 b>a A 1 ack {start} sack {above}-{end} ts 20/2000
             {} b>a A 1 ack {start} sack {above}-{end} ts 21/2000",
            id + 1,
            t_ms + wait_ms
        )
        .expect("text");
        losses(&run(&ladder)).len()
    };
    assert_eq!(open_for(24), 0);
    assert_eq!(open_for(27), 1, "the minimum is 100 ms");
}

#[test]
fn a_probe_precedes_the_first_timeout() {
    // The end of the flight is lost with a probe, and a timeout repeats 9001:10001, of which the ACK was lost. Two
    // timeouts take 900 ms.
    let after = |wait_ms: u32| {
        let t_ms = 119 + wait_ms;
        losses(&run(&format!(
            "{}
             {t_ms}.0 a>b A 9001:10001 ack 1 id 16    # 13 to 15
             {t_ms}.1 b>a A 1 ack 10001 sack 9001-10001
             {}.0 a>b A 12001:13001 ack 1 id 17
             {}.1 b>a A 1 ack 10001 sack 12001-13001
             {}.0 a>b A 10001:11001 ack 1 id 18
             {}.1 b>a A 1 ack 11001 sack 12001-13001
             {}.0 a>b A 11001:12001 ack 1 id 19
             {}.1 b>a A 1 ack 13001",
            ten_segments(),
            t_ms + 101,
            t_ms + 101,
            t_ms + 202,
            t_ms + 202,
            t_ms + 203,
            t_ms + 203
        )))
    };
    let lost = |at: i64, copy: u32| (Some(at), Some(copy), None);
    let first = [lost(10_001, 1), lost(11_001, 1)];
    assert_eq!(after(950), [&first[..], &[lost(11_001, 2)]].concat());
    assert_eq!(after(1150), [&[lost(9001, 2)], &first[..]].concat());
}

#[test]
fn a_short_segment_among_several_need_not_be_the_last() {
    let ended = |end: i64, id: u16| {
        losses(&run(&format!(
            "{}
             120.0 a>b A 10001:{end} ack 1 id 13
             120.1 b>a A 1 ack {end}
             121.0 a>b A {end}:11501 ack 1 id 14
             121.1 b>a A 1 ack 11501
             900.0 a>b RA 14001 ack 1 id {id}",
            ten_segments()
        )))
    };
    // 15 to 17 are missing.
    assert_eq!(ended(10_501, 18), []);
}

#[test]
fn the_end_of_the_flight_leaves_fewer_timeouts_in_a_silence() {
    // 13 to 17 are missing: first 10001:11001, which is repeated now. Four timeouts take 4.5 s, but the application may
    // have paused. New data reveal how many segments the end of the flight had.
    let losses_above = |gap_segments: i64| {
        let start = 11_001 + 1000 * gap_segments;
        let end = start + 1000;
        let mut ladder = format!(
            "{}
             5121.0 a>b A 10001:11001 ack 1 id 18
             5121.1 b>a A 1 ack 11001
             5221.0 a>b A {start}:{end} ack 1 id 19
             5221.1 b>a A 1 ack 11001 sack {start}-{end}
            ",
            ten_segments()
        );
        for (seq, id) in (11_001..start).step_by(1000).zip(20..) {
            let next = seq + 1000;
            writeln!(ladder, "53{id}.0 a>b A {seq}:{next} ack 1 id {id}").expect("text");
            writeln!(
                ladder,
                "53{id}.1 b>a A 1 ack {}",
                if next == start { end } else { next }
            )
            .expect("text");
        }
        losses(&run(&ladder))
    };
    let lost = |copies: u32, gap: std::ops::Range<i64>| {
        let head = (1..=copies).map(|copy| (Some(10_001), Some(copy), None));
        let above = gap.map(|number| (Some(11_001 + 1000 * number), Some(1), None));
        head.chain(above).collect::<Vec<_>>()
    };
    assert_eq!(losses_above(4), lost(1, 0..4));
    assert_eq!(losses_above(3), lost(2, 0..3));
    assert_eq!(losses_above(1), lost(4, 0..1));
}
