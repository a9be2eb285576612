//! Captures at the receiver of a sender that increments IPv4 IDs: what the packets were whose IDs are missing during
//! loss recovery. `support/mod.rs` explains the notation.

mod support;

use std::fmt::Write;

use support::{losses, run, second_of_twelve_lost, ten_segments};

/// Losses of the first transmissions of the segments at `first`, and of the second ones at `second`, in the order of
/// `losses`.
fn lost(first: &[i64], second: &[i64]) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let copies = |starts: &[i64], copy| -> Vec<_> {
        let row = |&start: &i64| (Some(start), Some(copy), None);
        starts.iter().map(row).collect()
    };
    let mut rows = [copies(first, 1), copies(second, 2)].concat();
    rows.sort_unstable();
    rows
}

#[test]
fn a_retransmission_that_was_overtaken_on_the_path_is_not_repeated() {
    let outcome = run(&format!(
        "{}
         130.0 a>b A 13001:14001 ack 1 id 16     # 13 to 15: three holes
         130.1 b>a A 1 ack 10001 sack 13001-14001
         230.0 a>b A 12001:13001 ack 1 id 19     # 17: the first hole
         230.1 b>a A 1 ack 10001 sack 12001-14001
         231.0 a>b A 11001:12001 ack 1 id 18     # sent before 19
         231.1 b>a A 1 ack 10001 sack 11001-14001
         330.0 a>b A 10001:11001 ack 1 id 20
         330.1 b>a A 1 ack 14001",
        ten_segments()
    ));
    assert_eq!(losses(&outcome), lost(&[10_001, 11_001, 12_001], &[10_001]));
}

#[test]
fn what_is_missing_before_the_first_retransmission_is_the_end_of_the_flight() {
    let ladder = format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14     # 13: a hole
         121.1 b>a A 1 ack 10001 sack 11001-12001
         221.0 a>b A 10001:11001 ack 1 id 18     # 15 to 17: the end of the flight
         221.1 b>a A 1 ack 12001
         321.0 a>b A 13001:14001 ack 1 id 20     # 19: 12001:13001
         321.1 b>a A 1 ack 12001 sack 13001-14001
         421.0 a>b A 12001:13001 ack 1 id 21
         421.1 b>a A 1 ack 14001
         421.5 a>b A 14001:15001 ack 1 id 22
         421.6 b>a A 1 ack 15001
         422.0 a>b A 15001:16001 ack 1 id 23
         422.1 b>a A 1 ack 16001",
        ten_segments()
    );
    assert_eq!(
        losses(&run(&ladder)),
        lost(&[10_001, 12_001, 13_001, 14_001], &[12_001])
    );
    // The receiver has no room for more than one segment.
    let small = ladder.replace(
        "ack 10001 sack 11001-12001",
        "ack 10001 win 4000 sack 11001-12001",
    );
    let ends = losses(&run(&small));
    assert!(!ends.contains(&(Some(14_001), Some(1), None)), "{ends:?}");
}

#[test]
fn ids_that_a_host_spends_on_other_connections_are_no_lost_packets() {
    // The host counts all its packets, and sent no other ones in the handshake.
    let mut ladder = ten_segments();
    let mut spent = 0;
    for number in 0..10 {
        spent += 1 + number % 4;
        let own = format!("ack 1 id {}\n", 3 + number);
        assert!(ladder.contains(&own));
        ladder = ladder.replace(&own, &format!("ack 1 ID {}\n", 3 + number + spent));
    }
    ladder = ladder.replace("ID", "id");
    let hole = format!(
        "131.0 a>b A 11001:12001 ack 1 id {}
         131.1 b>a A 1 ack 10001 sack 11001-12001
         231.0 a>b A 10001:11001 ack 1 id {}
         231.1 b>a A 1 ack 12001
         241.0 a>b A 12001:13001 ack 1 id {}
         900.0 b>a A 1 ack 13001",
        20 + spent,
        24 + spent,
        25 + spent
    );
    assert_eq!(losses(&run(&(ladder + &hole))), lost(&[10_001], &[]));
}

#[test]
fn what_is_missing_before_a_second_retransmission_can_come_is_the_end_of_the_flight() {
    // 16 is the end of the flight, or a retransmission before, sent after 15. A round trip takes 100 ms, or 75 at least.
    let ladder = |t_ms: u32| {
        losses(&run(&format!(
            "{}
             121.0 a>b A 11001:12001 ack 1 id 14     # 13: a hole
             121.1 b>a A 1 ack 10001 sack 11001-12001
             240.0 a>b A 12001:13001 ack 1 id 15
             240.1 b>a A 1 ack 10001 sack 11001-13001
             {t_ms}.0 a>b A 10001:11001 ack 1 id 17
             {t_ms}.1 b>a A 1 ack 13001
             900.0 b>a A 1 ack 13001",
            ten_segments()
        )))
    };
    assert_eq!(ladder(290), lost(&[10_001, 13_001], &[]));
    assert_eq!(ladder(314), lost(&[10_001, 13_001], &[]));
    assert_eq!(ladder(316), lost(&[10_001], &[]));
}

#[test]
fn a_short_segment_at_the_end_of_the_flight_leaves_no_gap_above_it() {
    let ladder = |last: &str| {
        losses(&run(&format!(
            "{}
             121.0 a>b A 11001:12001 ack 1 id 14     # 13: a hole
             121.1 b>a A 1 ack 10001 sack 11001-12001
             221.0 a>b A 10001:11001 ack 1 id 17     # 15 and 16: the end of the flight
             221.1 b>a A 1 ack 12001
             321.0 a>b A 12001:13001 ack 1 id 18
             321.1 b>a A 1 ack 13001
             321.5 a>b {last} ack 1 id 19
             321.6 b>a A 1 ack 13301
             421.0 a>b A 13301:14301 ack 1 id 20
             421.1 b>a A 1 ack 14301",
            ten_segments()
        )))
    };
    let expected = lost(&[10_001, 12_001, 13_001], &[]);
    assert_eq!(ladder("PA 13001:13301"), expected);
    let ended = losses(&run(&format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14         # 13: a hole
         121.1 b>a A 1 ack 10001 sack 11001-12001
         221.0 a>b A 10001:11001 ack 1 id 18         # 15 to 17: the end of the flight
         221.1 b>a A 1 ack 12001
         321.0 a>b A 12001:13001 ack 1 id 19
         321.1 b>a A 1 ack 13001
         321.5 a>b FA 13001:14001 ack 1 id 20
         321.6 b>a A 1 ack 14002
         900.0 b>a A 1 ack 14002",
        ten_segments()
    )));
    assert_eq!(ended, lost(&[10_001, 12_001, 13_001], &[]), "a FIN");
}

#[test]
fn a_short_segment_below_the_end_of_the_flight_says_nothing_about_it() {
    // 12001:12301 is a small write. 17 and 18: the end of the flight, of two full segments.
    let ladder = |repeated: &[&str]| {
        let mut ladder = format!(
            "{}
             121.0 a>b A 11001:12001 ack 1 id 14     # 13: a hole
             121.1 b>a A 1 ack 10001 sack 11001-12001
             122.0 a>b PA 12001:12301 ack 1 id 15
             122.1 b>a A 1 ack 10001 sack 11001-12301
             123.0 a>b A 12301:13301 ack 1 id 16
             123.1 b>a A 1 ack 10001 sack 11001-13301
             221.0 a>b A 10001:11001 ack 1 id 19
            ",
            ten_segments()
        );
        let more = ["13301:14301", "14301:15301", "15301:16301"];
        for (number, seq) in (0..).zip(repeated.iter().chain(&more)) {
            let (t_ms, id) = (321 + number, 20 + number);
            writeln!(ladder, "{t_ms}.0 a>b A {seq} ack 1 id {id}").expect("text");
        }
        ladder += "400.0 b>a A 1 ack 16301";
        losses(&run(&ladder))
    };
    let expected = lost(&[10_001, 13_301, 14_301], &[]);
    assert_eq!(ladder(&[]), expected);
    assert_eq!(ladder(&["12001:12301"]), expected, "a small write");
    assert_eq!(ladder(&["12001:12301", "12001:12301"]), expected, "twice");
    assert_eq!(ladder(&["10001:10002"]), expected, "a probe");
}

#[test]
fn small_writes_at_the_end_of_the_flight_each_leave_less_of_it() {
    // 15 to 17: the end of the flight, of three small writes.
    let mut ladder = format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14         # 13: a hole
         121.1 b>a A 1 ack 10001 sack 11001-12001
         221.0 a>b A 10001:11001 ack 1 id 18
         221.1 b>a A 1 ack 12001
        ",
        ten_segments()
    );
    let writes = ["12001:12301", "12301:12601", "12601:12901", "12901:13901"];
    for (number, seq) in (0..).zip(writes) {
        let (t_ms, id) = (321 + number, 19 + number);
        writeln!(ladder, "{t_ms}.0 a>b PA {seq} ack 1 id {id}").expect("text");
    }
    ladder += "400.0 b>a A 1 ack 13901";
    assert_eq!(
        losses(&run(&ladder)),
        lost(&[10_001, 12_001, 12_301, 12_601], &[])
    );
}

#[test]
fn before_a_repeated_retransmission_the_next_hole_was_sent() {
    let outcome = run(&format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14     # 13, 15, 17: three holes
         121.1 b>a A 1 ack 10001 sack 11001-12001
         123.0 a>b A 13001:14001 ack 1 id 16
         123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
         125.0 a>b A 15001:16001 ack 1 id 18
         125.1 b>a A 1 ack 10001 sack 15001-16001 13001-14001 11001-12001
         200.0 a>b A 16001:17001 ack 1 id 19
         200.1 b>a A 1 ack 10001 sack 15001-17001 13001-14001 11001-12001
         226.0 a>b A 12001:13001 ack 1 id 21     # 20: the first hole
         226.1 b>a A 1 ack 10001 sack 11001-14001 15001-17001
         290.0 a>b A 17001:18001 ack 1 id 22
         290.1 b>a A 1 ack 10001 sack 15001-18001 11001-14001
         320.0 a>b A 10001:11001 ack 1 id 24     # 23: the third hole
         320.1 b>a A 1 ack 14001 sack 15001-18001
         421.0 a>b A 14001:15001 ack 1 id 25
         421.1 b>a A 1 ack 18001",
        ten_segments()
    ));
    assert_eq!(
        losses(&outcome),
        lost(&[10_001, 12_001, 14_001], &[10_001, 14_001])
    );
}

#[test]
fn without_sack_the_packet_missing_among_new_data_was_the_oldest_hole() {
    let ladder = |id: u16| {
        run(&format!(
            "{}
             221.0 a>b A 1001:2001 ack 1 id 15
             221.1 b>a A 1 ack 6001              # a partial ACK
             222.0 a>b A 12001:13001 ack 1 id 16
             222.1 b>a A 1 ack 6001
             322.0 a>b A 13001:14001 ack 1 id {}
             322.1 b>a A 1 ack 6001
             500.0 a>b A 14001:15001 ack 1 id {}
             500.1 b>a A 1 ack 6001
             650.0 a>b A 15001:16001 ack 1 id {}
             650.1 b>a A 1 ack 6001
             720.0 a>b A 6001:7001 ack 1 id {}
             720.1 b>a A 1 ack 16001",
            second_of_twelve_lost(&[6]),
            id,
            id + 1,
            id + 2,
            id + 3
        ))
    };
    assert_eq!(losses(&ladder(18)), lost(&[1001, 6001], &[6001]));
    assert_eq!(
        losses(&ladder(17)),
        lost(&[1001, 6001], &[]),
        "none is missing"
    );
}

#[test]
fn go_back_n_stops_where_an_ack_jumps_over_the_rest() {
    let outcome = run(&format!(
        "{}
         520.0 a>b A 1001:2001 ack 1 id 15       # a timeout
         520.1 b>a A 1 ack 6001
         620.0 a>b A 6001:7001 ack 1 id 16
         620.1 b>a A 1 ack 12001
         620.5 a>b A 7001:8001 ack 1 id 17
         620.6 b>a A 1 ack 12001
         710.0 a>b A 12001:13001 ack 1 id 20     # 18 and 19: go-back-N
         710.1 b>a A 1 ack 13001",
        second_of_twelve_lost(&[6])
    ));
    assert_eq!(losses(&outcome), lost(&[1001, 6001], &[8001, 9001]));
}

#[test]
fn without_sack_one_timeout_leaves_the_end_of_the_flight() {
    let ladder = |timeout_ms: u32| {
        format!(
            "{}
             {timeout_ms}.0 a>b A 1001:2001 ack 1 id 18    # 15 and 16: new data, 17: fast
             {timeout_ms}.1 b>a A 1 ack 12001
             {}.0 a>b A 12001:13001 ack 1 id 19
             {}.1 b>a A 1 ack 13001
             {}.0 a>b A 13001:14001 ack 1 id 20
             {}.1 b>a A 1 ack 14001",
            second_of_twelve_lost(&[]),
            timeout_ms + 90,
            timeout_ms + 90,
            timeout_ms + 91,
            timeout_ms + 91
        )
    };
    assert_eq!(
        losses(&run(&ladder(520))),
        lost(&[1001, 12_001, 13_001], &[1001])
    );
    let twice = losses(&run(&ladder(1520)));
    assert!(
        !twice.contains(&(Some(13_001), Some(1), None)),
        "two timeouts, or new data: {twice:?}"
    );
}

#[test]
fn the_handshake_shows_that_the_first_flight_was_lost() {
    let ladder = |id: u16| {
        format!(
            "  0.00 a>b S  0 mss 1000 id {id}
               0.05 b>a SA 0 ack 1 mss 1000
             100.00 a>b A  1 ack 1 id 2
             500.0 a>b A 1:1001 ack 1 id 7           # 3 to 6: the first flight
             500.1 b>a A 1 ack 1001
             600.0 a>b A 2001:3001 ack 1 id 9        # 8: 1001:2001
             600.1 b>a A 1 ack 1001
             601.0 a>b A 3001:4001 ack 1 id 10
             601.1 b>a A 1 ack 1001
             700.0 a>b A 1001:2001 ack 1 id 11
             700.1 b>a A 1 ack 4001"
        )
    };
    assert_eq!(
        losses(&run(&ladder(1))),
        lost(&[1, 1001, 2001, 3001], &[1001])
    );
    assert_eq!(
        losses(&run(&ladder(40_000))),
        lost(&[1001], &[]),
        "the IDs do not increment"
    );
}

#[test]
fn with_sack_the_end_of_a_flight_that_is_repeated_may_be_lost_again() {
    let outcome = run(&format!(
        "{}
         519.0 a>b A 9001:10001 ack 1 id 17     # 13 to 16: the end of the flight
         519.1 b>a A 1 ack 10001 sack 9001-10001
         619.0 a>b A 10001:11001 ack 1 id 18
         619.1 b>a A 1 ack 11001
         620.0 a>b A 12001:13001 ack 1 id 20    # 19: 11001:12001 again
         620.1 b>a A 1 ack 11001 sack 12001-13001
         621.0 a>b A 13001:14001 ack 1 id 21
         621.1 b>a A 1 ack 11001 sack 12001-14001
         720.0 a>b A 11001:12001 ack 1 id 22
         720.1 b>a A 1 ack 14001
         721.0 a>b A 14001:15001 ack 1 id 23    # new data
         721.1 b>a A 1 ack 15001",
        ten_segments()
    ));
    let first = [10_001, 11_001, 12_001, 13_001];
    assert_eq!(losses(&outcome), lost(&first, &[11_001]));
}

#[test]
fn new_data_that_come_too_soon_to_be_repeated_were_not_the_end_of_the_flight() {
    let outcome = run(&format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14     # 13: a hole
         121.1 b>a A 1 ack 10001 sack 11001-12001
         221.0 a>b A 10001:11001 ack 1 id 16     # 15: a repetition of what had arrived late
         221.1 b>a A 1 ack 12001
         222.0 a>b A 12001:13001 ack 1 id 17
         222.1 b>a A 1 ack 13001",
        ten_segments()
    ));
    assert_eq!(losses(&outcome), lost(&[10_001], &[]));
}

#[test]
fn the_echo_of_new_data_shows_whether_they_repeat_the_end_of_the_flight() {
    let echoing = |ts_ecr: u32| {
        losses(&run(&format!(
            "{}
             210.0 a>b A 11001:12001 ack 1 id 14 ts 1000/7      # 13: a hole
             210.1 b>a A 1 ack 10001 sack 11001-12001 ts 8/1000
             309.0 a>b A 10001:11001 ack 1 id 16 ts 1100/8      # 15: new data, as far as it shows
             309.1 b>a A 1 ack 12001 ts 9/1100
             390.0 a>b A 12001:13001 ack 1 id 17 ts 1180/{ts_ecr}
             390.1 b>a A 1 ack 13001 ts 10/1180",
            ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n")
        )))
    };
    assert_eq!(echoing(8), lost(&[10_001], &[]), "it left before the ACK");
    assert_eq!(echoing(9), lost(&[10_001, 12_001], &[]));
}

#[test]
fn the_echo_of_new_data_shows_of_which_holes_the_sender_knew() {
    // The round trip has become shorter: 150 ms after 400 ms. 31: the hole again.
    let echoing = |ts_ecr: u32| {
        let mut ladder = ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n");
        let (mut t_ms, mut end, mut ecr) = (510, 11_001, 7);
        for id in 13..29 {
            let (start, val) = (end - 1000, 1000 + id);
            writeln!(
                ladder,
                "{t_ms}.0 a>b A {start}:{end} ack 1 id {id} ts {val}/{ecr}"
            )
            .expect("text");
            ecr += 1;
            writeln!(ladder, "{t_ms}.1 b>a A 1 ack {end} ts {ecr}/{val}").expect("text");
            (t_ms, end) = (t_ms + 400, end + 1000);
        }
        write!(
            ladder,
            "7000.0 a>b A 27001:28001 ack 1 id 30 ts 9000/23    # 29: a hole
             7000.1 b>a A 1 ack 26001 sack 27001-28001 ts 24/9000
             7150.0 a>b A 28001:29001 ack 1 id 32 ts 9150/{ts_ecr}
             7150.1 b>a A 1 ack 26001 sack 27001-29001 ts 25/9150
             7290.0 a>b A 26001:27001 ack 1 id 33 ts 9290/25
             7290.1 b>a A 1 ack 29001 ts 26/9290"
        )
        .expect("text");
        losses(&run(&ladder))
    };
    assert_eq!(echoing(24), lost(&[26_001], &[26_001]));
    assert_eq!(echoing(23), lost(&[26_001], &[]), "it did not know of it");
}

#[test]
fn what_is_missing_between_duplicates_had_been_repeated_before() {
    let until = |id: u16| {
        losses(&run(&format!(
            "{}
             121.0 a>b A 11001:12001 ack 1 id 14     # 13, 15, 17: holes
             121.1 b>a A 1 ack 10001 sack 11001-12001
             123.0 a>b A 13001:14001 ack 1 id 16
             123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
             125.0 a>b A 15001:16001 ack 1 id 18
             125.1 b>a A 1 ack 10001 sack 15001-16001 13001-14001 11001-12001
             221.0 a>b A 10001:11001 ack 1 id 19
             221.1 b>a A 1 ack 12001 sack 15001-16001 13001-14001
             223.0 a>b A 12001:13001 ack 1 id 20
             223.1 b>a A 1 ack 14001 sack 15001-16001
             225.0 a>b A 14001:15001 ack 1 id 21
             225.1 b>a A 1 ack 16001
             281.0 a>b A 10001:11001 ack 1 id 22
             281.1 b>a A 1 ack 16001 sack 10001-11001
             285.0 a>b A 14001:15001 ack 1 id {id}
             285.1 b>a A 1 ack 16001 sack 14001-15001
             900.0 b>a A 1 ack 16001",
            ten_segments()
        )))
    };
    let mut expected = lost(&[10_001, 12_001, 14_001], &[]);
    assert_eq!(until(23), expected);
    assert_eq!(until(25), expected, "more than the segment between the two");
    expected.insert(2, (Some(12_001), Some(3), None));
    assert_eq!(until(24), expected);
}

#[test]
fn short_segments_missing_between_duplicates_do_not_overlap() {
    // 12001:12501 and 12501:13501 had been repeated, and are missing between two duplicates.
    let outcome = run(&format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14     # 13, 15, 16, 18: holes
         121.1 b>a A 1 ack 10001 sack 11001-12001
         124.0 a>b A 13501:14501 ack 1 id 17
         124.1 b>a A 1 ack 10001 sack 13501-14501 11001-12001
         126.0 a>b A 15501:16501 ack 1 id 19
         126.1 b>a A 1 ack 10001 sack 15501-16501 13501-14501 11001-12001
         221.0 a>b A 10001:11001 ack 1 id 20
         221.1 b>a A 1 ack 12001 sack 15501-16501 13501-14501
         223.0 a>b A 12001:12501 ack 1 id 21
         223.1 b>a A 1 ack 12501 sack 15501-16501 13501-14501
         224.0 a>b A 12501:13501 ack 1 id 22
         224.1 b>a A 1 ack 14501 sack 15501-16501
         226.0 a>b A 14501:15501 ack 1 id 23
         226.1 b>a A 1 ack 16501
         281.0 a>b A 10001:11001 ack 1 id 24
         281.1 b>a A 1 ack 16501 sack 10001-11001
         285.0 a>b A 14501:15501 ack 1 id 27
         285.1 b>a A 1 ack 16501 sack 14501-15501
         900.0 b>a A 1 ack 16501",
        ten_segments()
    ));
    let again = outcome.events.iter().filter(|event| event.copy == Some(3));
    let octets: Vec<_> = again
        .map(|event| (event.seq_start, event.seq_end))
        .collect();
    assert_eq!(
        octets,
        [(Some(12_001), Some(12_501)), (Some(12_501), Some(13_501))]
    );
}
