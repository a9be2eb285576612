//! Captures at the receiver, with SACK, of a sender that increments IPv4 IDs: what was lost again after a timeout.
//! `support/mod.rs` explains the notation.

mod support;

use support::{losses, run, ten_segments};

/// Losses of copy `copy`, from 1, of the segments at `starts`, for each item, in the order of `losses`.
fn lost(copies: &[(u32, &[i64])]) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let rows = copies.iter().flat_map(|&(copy, starts)| {
        let row = move |&start: &i64| (Some(start), Some(copy), None);
        starts.iter().map(row)
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

#[test]
fn after_a_timeout_in_recovery_the_end_of_the_flight_is_repeated_before_new_data() {
    let outcome = run(&format!(
        "{}
          121.0 a>b A 11001:12001 ack 1 id 14    # 13: a hole
          121.1 b>a A 1 ack 10001 sack 11001-12001
          621.0 a>b A 10001:11001 ack 1 id 17    # 15: the hole, 16: new data
          621.1 b>a A 1 ack 12001
         1021.0 a>b A 12001:13001 ack 1 id 20    # 18: the same, 19: new data
         1021.1 b>a A 1 ack 13001
         1421.0 a>b A 13001:14001 ack 1 id 23    # 21: the same, 22: new data
         1421.1 b>a A 1 ack 14001
         1521.0 a>b A 14001:15001 ack 1 id 24
         1521.1 b>a A 1 ack 15001
         1522.0 a>b A 15001:16001 ack 1 id 25    # new data
         1522.1 b>a A 1 ack 16001",
        ten_segments()
    ));
    let first: &[i64] = &[10_001, 12_001, 13_001, 14_001];
    let expected = lost(&[(1, first), (2, &[10_001, 12_001, 13_001])]);
    assert_eq!(losses(&outcome), expected);
}

#[test]
fn after_a_timeout_outside_of_recovery_new_data_come_first() {
    let outcome = run(&format!(
        "{}
          619.0 a>b A 10001:11001 ack 1 id 15    # 13: the end of the flight, 14: a probe of new data
          619.1 b>a A 1 ack 11001
         1019.0 a>b A 11001:12001 ack 1 id 18    # F-RTO, 16 and 17: new data
         1019.1 b>a A 1 ack 12001
         1119.0 a>b A 12001:13001 ack 1 id 19
         1119.1 b>a A 1 ack 13001
         1120.0 a>b A 13001:14001 ack 1 id 20
         1120.1 b>a A 1 ack 14001
         1220.0 a>b A 14001:15001 ack 1 id 21    # new data
         1220.1 b>a A 1 ack 15001",
        ten_segments()
    ));
    let first: &[i64] = &[10_001, 11_001, 12_001, 13_001];
    assert_eq!(losses(&outcome), lost(&[(1, first)]));
}

#[test]
fn a_hole_of_two_segments_is_repeated_whole_before_a_timeout() {
    let outcome = run(&format!(
        "{}
          122.0 a>b A 12001:13001 ack 1 id 15    # 13 and 14: a hole
          122.1 b>a A 1 ack 10001 sack 12001-13001
          622.0 a>b A 10001:11001 ack 1 id 18    # 16 and 17: both again
          622.1 b>a A 1 ack 11001 sack 12001-13001
         1022.0 a>b A 11001:12001 ack 1 id 21    # 19: the same, 20: new data
         1022.1 b>a A 1 ack 13001
         1122.0 a>b A 13001:14001 ack 1 id 22
         1122.1 b>a A 1 ack 14001
         1123.0 a>b A 14001:15001 ack 1 id 23    # new data
         1123.1 b>a A 1 ack 15001",
        ten_segments()
    ));
    let holes: &[i64] = &[10_001, 11_001];
    let expected = lost(&[(1, holes), (1, &[13_001]), (2, holes), (3, &[11_001])]);
    assert_eq!(losses(&outcome), expected);
}

/// A hole that the capture shows filled after `waited_ms`, with two packets missing before.
fn filled_after(waited_ms: u32, stamped: bool) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let (at, next) = (210 + waited_ms, 310 + waited_ms);
    let mut ladder = format!(
        "{}
          210.0 a>b A 12001:13001 ack 1 id 15 ts 1000/7    # 13 and 14: a hole
          210.1 b>a A 1 ack 10001 sack 12001-13001 ts 8/1000
         {at}.0 a>b A 10001:11001 ack 1 id 18 ts 1500/8    # 16 and 17
         {at}.1 b>a A 1 ack 11001 sack 12001-13001 ts 9/1500
         {next}.0 a>b A 11001:12001 ack 1 id 19 ts 1600/9
         {next}.1 b>a A 1 ack 13001 ts 10/1600",
        ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n")
    );
    if !stamped {
        let lines = ladder.lines().map(|line| line.split(" ts ").next());
        ladder = lines.flatten().collect::<Vec<_>>().join("\n");
    }
    losses(&run(&ladder))
}

#[test]
fn the_length_of_a_silence_shows_what_was_repeated_in_it() {
    let holes: &[i64] = &[10_001, 11_001];
    // The RTO is 0.3 s, or less where the round trip is shorter than on the mean.
    let one = lost(&[(1, holes), (2, holes)]);
    assert_eq!(filled_after(500, true), one, "one timeout");
    let two = lost(&[(1, holes), (2, &[10_001]), (3, &[10_001])]);
    assert_eq!(filled_after(850, true), two, "two timeouts");
    assert_eq!(filled_after(850, false), one, "the RTO may be longer");
}

/// A flow of which two segments are lost twice, as a retransmission shows that passes them. A silence follows, which a
/// retransmission that echoes `ts_ecr` ends.
fn passed_before_a_silence(
    ts_ecr: u32,
    missing: u32,
) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let id = |number: u32| 20 + missing + number;
    losses(&run(&format!(
        "{}
          210.0 a>b A 13001:14001 ack 1 id 16 ts 1000/7    # 13 to 15: a hole
          210.1 b>a A 1 ack 10001 sack 13001-14001 ts 8/1000
          312.0 a>b A 12001:13001 ack 1 id 19 ts 1102/8    # 17 and 18: the first two
          312.1 b>a A 1 ack 10001 sack 12001-14001 ts 9/1102
          912.0 a>b A 10001:11001 ack 1 id {} ts 1702/{ts_ecr}
          912.1 b>a A 1 ack 11001 sack 12001-14001 ts 10/1702
         1012.0 a>b A 11001:12001 ack 1 id {} ts 1802/10
         1012.1 b>a A 1 ack 14001 ts 11/1802
         1112.0 a>b A 14001:15001 ack 1 id {} ts 1902/11   # new data
         1112.1 b>a A 1 ack 15001 ts 12/1902",
        ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n"),
        id(0),
        id(1),
        id(2)
    )))
}

#[test]
fn what_a_retransmission_passed_before_a_silence_was_repeated_in_it() {
    let two: &[i64] = &[10_001, 11_001];
    let twice = lost(&[(1, two), (1, &[12_001]), (2, two)]);
    let expected = lost(&[(1, two), (1, &[12_001]), (2, two), (3, two)]);
    assert_eq!(passed_before_a_silence(9, 2), expected);
    assert_eq!(passed_before_a_silence(8, 0), twice, "an ACK was lost");
}

#[test]
fn a_silence_that_the_first_ack_of_a_hole_ends_had_no_timeout() {
    let outcome = run(&format!(
        "{}
          210.0 a>b A 12001:13001 ack 1 id 15 ts 1000/7    # 13 and 14: a hole
          210.1 b>a A 1 ack 10001 sack 12001-13001 ts 8/1000
          360.0 a>b A 10001:11001 ack 1 id 18 ts 1150/8    # 16 and 17: the end of the flight
          360.1 b>a A 1 ack 11001 sack 12001-13001 ts 9/1150
          510.0 a>b A 11001:12001 ack 1 id 19 ts 1300/9
          510.1 b>a A 1 ack 13001 ts 10/1300
          511.0 a>b A 13001:14001 ack 1 id 20 ts 1301/9
          511.1 b>a A 1 ack 14001 ts 11/1301
          660.0 a>b A 14001:15001 ack 1 id 21 ts 1450/11
          660.1 b>a A 1 ack 15001 ts 12/1450",
        ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n")
    ));
    let first: &[i64] = &[10_001, 11_001, 13_001, 14_001];
    assert_eq!(losses(&outcome), lost(&[(1, first)]));
}

/// Ten segments with increasing IDs and one more, with timestamps.
fn stamped() -> String {
    format!(
        "{}
          210.0 a>b A 10001:11001 ack 1 id 13 ts 1000/7
          210.1 b>a A 1 ack 11001 ts 8/1000",
        ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n")
    )
}

#[test]
fn after_new_data_a_probe_precedes_the_next_timeout_again() {
    let outcome = run(&format!(
        "{}
          710.0 a>b A 11001:12001 ack 1 id 16 ts 1500/8     # 14 and 15: the end of the flight
          710.1 b>a A 1 ack 12001 ts 9/1500
          810.0 a>b A 12001:13001 ack 1 id 17 ts 1600/9
          810.1 b>a A 1 ack 13001 ts 10/1600
          811.0 a>b A 13001:14001 ack 1 id 18 ts 1601/9     # new data
          811.1 b>a A 1 ack 14001 ts 11/1601
          910.0 a>b A 14001:15001 ack 1 id 19 ts 1700/11
          910.1 b>a A 1 ack 15001 ts 12/1700
         1610.0 a>b A 15001:16001 ack 1 id 22 ts 2400/12    # 20: the end of the flight, 21: a probe of new data
         1610.1 b>a A 1 ack 16001 ts 13/2400
         1710.0 a>b A 16001:17001 ack 1 id 23 ts 2500/13
         1710.1 b>a A 1 ack 17001 ts 14/2500",
        stamped()
    ));
    let first: &[i64] = &[11_001, 12_001, 15_001, 16_001];
    assert_eq!(losses(&outcome), lost(&[(1, first)]));
}

/// Losses of a flight whose end a timeout repeats, after F-RTO has sent new data. Before the second segment of these, so
/// many segments without data are `missing`.
fn recovery_after_f_rto(missing: u32) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let [second, timer, after] = [19, 22, 23].map(|id| id + missing);
    losses(&run(&format!(
        "{}
          710.0 a>b A 11001:12001 ack 1 id 17 ts 1500/8     # 14 and 15: the end of the flight, 16: a probe
          710.1 b>a A 1 ack 12001 ts 9/1500
          810.0 a>b A 14001:15001 ack 1 id 18 ts 1600/9     # F-RTO
          810.1 b>a A 1 ack 12001 sack 14001-15001 ts 10/1600
          811.0 a>b A 15001:16001 ack 1 id {second} ts 1601/9
          811.1 b>a A 1 ack 12001 sack 14001-16001 ts 11/1601
         1511.0 a>b A 12001:13001 ack 1 id {timer} ts 2301/11    # the same twice: by recovery, and by a timeout
         1511.1 b>a A 1 ack 13001 sack 14001-16001 ts 12/2301
         1611.0 a>b A 13001:14001 ack 1 id {after} ts 2401/12
         1611.1 b>a A 1 ack 16001 ts 13/2401",
        stamped()
    )))
}

#[test]
fn new_data_by_f_rto_do_not_end_the_recovery_from_a_timeout() {
    let first: &[i64] = &[11_001, 12_001, 13_001];
    let expected = lost(&[(1, first), (2, &[12_001]), (3, &[12_001])]);
    assert_eq!(recovery_after_f_rto(0), expected);
    assert_eq!(
        recovery_after_f_rto(1),
        expected,
        "nor if a packet is missing before them"
    );
}

#[test]
fn what_is_lost_a_third_time_at_the_end_of_the_flight_was_lost_twice_before() {
    let outcome = run(&format!(
        "{}
          121.0 a>b A 11001:12001 ack 1 id 14    # 13: a hole
          121.1 b>a A 1 ack 10001 sack 11001-12001
          621.0 a>b A 10001:11001 ack 1 id 20    # 15: the hole, 16 to 19: new data
          621.1 b>a A 1 ack 12001
         1021.0 a>b A 12001:13001 ack 1 id 24    # 21 to 23: the first three
         1021.1 b>a A 1 ack 13001
         1121.0 a>b A 15001:16001 ack 1 id 27    # 25 and 26: the second and the third
         1121.1 b>a A 1 ack 13001 sack 15001-16001
         1221.0 a>b A 13001:14001 ack 1 id 28
         1221.1 b>a A 1 ack 14001 sack 15001-16001
         1222.0 a>b A 14001:15001 ack 1 id 29
         1222.1 b>a A 1 ack 16001",
        ten_segments()
    ));
    let first: &[i64] = &[10_001, 12_001, 13_001, 14_001, 15_001];
    let twice: &[i64] = &[10_001, 12_001, 13_001, 14_001];
    let expected = lost(&[(1, first), (2, twice), (3, &[13_001, 14_001])]);
    assert_eq!(losses(&outcome), expected);
}

#[test]
fn a_silence_without_a_timeout_that_a_second_retransmission_ends_lost_those_of_the_holes_above() {
    let outcome = run(&format!(
        "{}
          310.0 a>b A 12001:13001 ack 1 id 15 ts 1100/8     # 14: a hole
          310.1 b>a A 1 ack 11001 sack 12001-13001 ts 9/1100
          311.0 a>b A 14001:15001 ack 1 id 17 ts 1101/8     # 16: a hole
          311.1 b>a A 1 ack 11001 sack 12001-13001 14001-15001 ts 10/1101
          412.0 a>b A 15001:16001 ack 1 id 20 ts 1202/10    # 18 and 19: both
          412.1 b>a A 1 ack 11001 sack 12001-13001 14001-16001 ts 11/1202
          632.0 a>b A 11001:12001 ack 1 id 23 ts 1422/11    # 21 and 22: both again
          632.1 b>a A 1 ack 13001 sack 14001-16001 ts 12/1422",
        stamped()
    ));
    let holes: &[i64] = &[11_001, 13_001];
    let expected = lost(&[(1, holes), (2, holes), (3, holes)]);
    assert_eq!(losses(&outcome), expected);
}

#[test]
fn the_end_of_the_flight_is_repeated_although_a_hole_below_was_lost_again() {
    let outcome = run(&format!(
        "{}
          121.0 a>b A 11001:12001 ack 1 id 14    # 13: a hole
          121.1 b>a A 1 ack 10001 sack 11001-12001
          123.0 a>b A 13001:14001 ack 1 id 16    # 15: a hole
          123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
          621.0 a>b A 10001:11001 ack 1 id 21    # 17 and 18: the holes, 19 and 20: new data
          621.1 b>a A 1 ack 12001 sack 13001-14001
          721.0 a>b A 14001:15001 ack 1 id 23    # 22: the second hole
          721.1 b>a A 1 ack 12001 sack 13001-15001
          722.0 a>b A 15001:16001 ack 1 id 24
          722.1 b>a A 1 ack 12001 sack 13001-16001
          723.0 a>b A 16001:17001 ack 1 id 25    # new data
          723.1 b>a A 1 ack 12001 sack 13001-17001
          821.0 a>b A 12001:13001 ack 1 id 26
          821.1 b>a A 1 ack 17001",
        ten_segments()
    ));
    let first: &[i64] = &[10_001, 12_001, 14_001, 15_001];
    let expected = lost(&[(1, first), (2, &[10_001, 12_001]), (3, &[12_001])]);
    assert_eq!(losses(&outcome), expected);
}

#[test]
fn what_was_passed_before_a_silence_is_not_missing_in_it() {
    let outcome = run(&format!(
        "{}
          121.0 a>b A 11001:12001 ack 1 id 14    # 13, 15, 17: holes
          121.1 b>a A 1 ack 10001 sack 11001-12001
          123.0 a>b A 13001:14001 ack 1 id 16
          123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
          125.0 a>b A 15001:16001 ack 1 id 18
          125.1 b>a A 1 ack 10001 sack 15001-16001 13001-14001 11001-12001
          221.0 a>b A 12001:13001 ack 1 id 20    # 19: the first hole
          221.1 b>a A 1 ack 10001 sack 11001-14001 15001-16001
          223.0 a>b A 16001:17001 ack 1 id 22    # 21: the third hole
          223.1 b>a A 1 ack 10001 sack 15001-17001 11001-14001
          324.0 a>b A 14001:15001 ack 1 id 24    # 23: the first hole
          324.1 b>a A 1 ack 10001 sack 11001-17001
          325.0 a>b A 17001:18001 ack 1 id 25
          325.1 b>a A 1 ack 10001 sack 11001-18001
          824.0 a>b A 10001:11001 ack 1 id 28    # 26 and 27: new data
          824.1 b>a A 1 ack 18001
          924.0 a>b A 18001:19001 ack 1 id 29
          924.1 b>a A 1 ack 19001
          925.0 a>b A 19001:20001 ack 1 id 30
          925.1 b>a A 1 ack 20001
          926.0 a>b A 20001:21001 ack 1 id 31    # new data
          926.1 b>a A 1 ack 21001",
        ten_segments()
    ));
    let first: &[i64] = &[10_001, 12_001, 14_001, 18_001, 19_001];
    let expected = lost(&[(1, first), (2, &[10_001, 14_001]), (3, &[10_001])]);
    assert_eq!(losses(&outcome), expected);
}
