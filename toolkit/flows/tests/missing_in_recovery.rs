//! Captures at the receiver of a sender that increments IPv4 IDs: what the packets were whose IDs are missing between
//! retransmissions, with SACK. `support/mod.rs` explains the notation.

mod support;

use support::{losses, run, ten_segments};

/// Losses of the transmissions with the numbers 1, 2 and 3 of the segments at these octets, in the order of `losses`.
fn lost(copies: [&[i64]; 3]) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let rows = (1..).zip(copies).flat_map(|(copy, starts)| {
        let row = move |&start: &i64| (Some(start), Some(copy), None);
        starts.iter().map(row)
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

#[test]
fn what_is_missing_between_two_retransmissions_are_those_of_the_holes_between() {
    // The round trip takes 100 ms, then 60 ms.
    let ladder = format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14 ts 1000/5      # 13, 15, 17, 19: holes
         121.1 b>a A 1 ack 10001 sack 11001-12001 ts 8/1000
         123.0 a>b A 13001:14001 ack 1 id 16 ts 1002/5
         123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001 ts 9/1002
         125.0 a>b A 15001:16001 ack 1 id 18 ts 1004/5
         125.1 b>a A 1 ack 10001 sack 15001-16001 13001-14001 11001-12001 ts 10/1004
         127.0 a>b A 17001:18001 ack 1 id 20 ts 1006/5
         127.1 b>a A 1 ack 10001 sack 17001-18001 15001-16001 13001-14001 11001-12001 ts 11/1006
         180.0 a>b A 18001:19001 ack 1 id 21 ts 1060/5
         180.1 b>a A 1 ack 10001 sack 17001-19001 15001-16001 13001-14001 11001-12001 ts 12/1060
         225.0 a>b A 14001:15001 ack 1 id 24 ts 1104/10     # 22 and 23: two holes
         225.1 b>a A 1 ack 10001 sack 13001-16001 17001-19001 11001-12001 ts 13/1104
         285.0 a>b A 10001:11001 ack 1 id 25 ts 1164/13
         285.1 b>a A 1 ack 12001 sack 13001-16001 17001-19001 ts 14/1164
         287.0 a>b A 16001:17001 ack 1 id 27 ts 1166/13     # 26: the second one again
         287.1 b>a A 1 ack 12001 sack 13001-19001 ts 15/1166
         347.0 a>b A 12001:13001 ack 1 id 28 ts 1226/15
         347.1 b>a A 1 ack 19001 ts 16/1226",
        ten_segments().replace("b>a A 1 ack 1001\n", "b>a A 1 ack 1001 ts 7/0\n")
    );
    assert_eq!(
        losses(&run(&ladder)),
        lost([
            &[10_001, 12_001, 14_001, 16_001],
            &[10_001, 12_001],
            &[12_001]
        ])
    );
}

#[test]
fn what_is_missing_between_two_retransmissions_is_new_data_if_there_is_no_hole_between() {
    let ladder = format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14     # 13, 15, 17: holes
         121.1 b>a A 1 ack 10001 sack 11001-12001
         123.0 a>b A 13001:14001 ack 1 id 16
         123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
         125.0 a>b A 15001:16001 ack 1 id 18
         125.1 b>a A 1 ack 10001 sack 15001-16001 13001-14001 11001-12001
         221.0 a>b A 10001:11001 ack 1 id 19
         221.1 b>a A 1 ack 12001 sack 15001-16001 13001-14001
         223.0 a>b A 12001:13001 ack 1 id 21     # 20: new data
         223.1 b>a A 1 ack 14001 sack 15001-16001
         323.0 a>b A 16001:17001 ack 1 id 23     # 22: the third hole
         323.1 b>a A 1 ack 14001 sack 15001-17001
         423.0 a>b A 14001:15001 ack 1 id 24
         423.1 b>a A 1 ack 17001",
        ten_segments()
    );
    assert_eq!(
        losses(&run(&ladder)),
        lost([&[10_001, 12_001, 14_001, 16_001], &[14_001], &[]])
    );
}

#[test]
fn a_sender_that_does_not_know_what_arrived_repeats_all_segments() {
    // The ACKs from 8001 on were lost.
    let until = |id: u16| {
        losses(&run(&format!(
            "{}
             121.0 a>b A 11001:12001 ack 1 id 14     # 13, 15: holes
             121.1 b>a A 1 ack 10001 sack 11001-12001
             123.0 a>b A 13001:14001 ack 1 id 16
             123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
             221.0 a>b A 8001:9001 ack 1 id 17
             221.1 b>a A 1 ack 10001 sack 8001-9001 13001-14001 11001-12001
             223.0 a>b A 12001:13001 ack 1 id {id}   # 18 to 20: all between
             223.1 b>a A 1 ack 10001 sack 11001-14001
             323.0 a>b A 10001:11001 ack 1 id {}
             323.1 b>a A 1 ack 14001",
            ten_segments(),
            id + 1
        )))
    };
    let again = [9001, 10_001, 11_001];
    assert_eq!(until(21), lost([&[10_001, 12_001], &again, &[]]));
    assert_eq!(
        until(19),
        lost([&[10_001, 12_001], &[10_001], &[]]),
        "the hole alone"
    );
}

#[test]
fn a_segment_that_a_sack_block_reported_keeps_the_number_of_its_transmissions() {
    // The ACKs from 8001 on were lost, after 11001:12001 had been repeated.
    let ladder = format!(
        "{}
         123.0 a>b A 13001:14001 ack 1 id 16     # 13 to 15: holes
         123.1 b>a A 1 ack 10001 sack 13001-14001
         223.0 a>b A 11001:12001 ack 1 id 18     # 17: the first one
         223.1 b>a A 1 ack 10001 sack 11001-12001 13001-14001
         321.0 a>b A 8001:9001 ack 1 id 19
         321.1 b>a A 1 ack 10001 sack 8001-9001 11001-12001 13001-14001
         323.0 a>b A 12001:13001 ack 1 id 23     # 20 to 22: all between
         323.1 b>a A 1 ack 10001 sack 11001-14001
         423.0 a>b A 10001:11001 ack 1 id 24
         423.1 b>a A 1 ack 14001",
        ten_segments()
    );
    assert_eq!(
        losses(&run(&ladder)),
        lost([
            &[10_001, 11_001, 12_001],
            &[9001, 10_001],
            &[10_001, 11_001]
        ])
    );
}

#[test]
fn what_is_missing_between_segments_that_had_arrived_were_those_between() {
    let until = |id: u16| {
        losses(&run(&format!(
            "{}
             160.0 a>b A 5001:6001 ack 1 id 13
             160.1 b>a A 1 ack 10001 sack 5001-6001
             163.0 a>b A 8001:9001 ack 1 id {id}
             163.1 b>a A 1 ack 10001 sack 8001-9001
             900.0 b>a A 1 ack 10001",
            ten_segments()
        )))
    };
    assert_eq!(until(16), lost([&[], &[6001, 7001], &[]]));
    assert_eq!(until(15), lost([&[]; 3]), "one of two segments");
}

#[test]
fn a_retransmission_is_not_repeated_before_a_round_trip() {
    // The round trip takes 100 ms, then 115 ms.
    let ladder = format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14     # 13, 15: holes
         121.1 b>a A 1 ack 10001 sack 11001-12001
         123.0 a>b A 13001:14001 ack 1 id 16
         123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
         223.0 a>b A 12001:13001 ack 1 id 18     # 17: the first hole
         223.1 b>a A 1 ack 10001 sack 11001-14001
         235.0 a>b A 15001:16001 ack 1 id 20     # 19: a third one
         235.1 b>a A 1 ack 10001 sack 15001-16001 11001-14001
         338.0 a>b A 16001:17001 ack 1 id 21
         338.1 b>a A 1 ack 10001 sack 15001-17001 11001-14001
         345.0 a>b A 10001:11001 ack 1 id 23     # 22: the third one, or new data
         345.1 b>a A 1 ack 14001 sack 15001-17001
         350.0 a>b A 14001:15001 ack 1 id 24     # so it was new data
         350.1 b>a A 1 ack 17001
         352.0 a>b A 18001:19001 ack 1 id 25
         352.1 b>a A 1 ack 17001 sack 18001-19001
         470.0 a>b A 17001:18001 ack 1 id 26
         470.1 b>a A 1 ack 19001",
        ten_segments()
    );
    assert_eq!(
        losses(&run(&ladder)),
        lost([&[10_001, 12_001, 14_001, 17_001], &[10_001], &[]])
    );
}

#[test]
fn a_higher_hole_is_not_repeated_before_a_lower_one_that_was_lost_again() {
    // 17 and 18 are the first two holes. 23 is not the third one, as the second one is still to be repeated.
    let ladder = format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14     # 13, 15: holes
         121.1 b>a A 1 ack 10001 sack 11001-12001
         123.0 a>b A 13001:14001 ack 1 id 16
         123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
         225.0 a>b A 14001:15001 ack 1 id 19
         225.1 b>a A 1 ack 10001 sack 13001-15001 11001-12001
         230.0 a>b A 16001:17001 ack 1 id 21     # 20: a third one
         230.1 b>a A 1 ack 10001 sack 16001-17001 13001-15001 11001-12001
         338.0 a>b A 17001:18001 ack 1 id 22
         338.1 b>a A 1 ack 10001 sack 16001-18001 13001-15001 11001-12001
         340.0 a>b A 10001:11001 ack 1 id 24     # 23: new data
         340.1 b>a A 1 ack 12001 sack 16001-18001 13001-15001
         341.0 a>b A 12001:13001 ack 1 id 25
         341.1 b>a A 1 ack 15001 sack 16001-18001
         345.0 a>b A 19001:20001 ack 1 id 26
         345.1 b>a A 1 ack 15001 sack 19001-20001 16001-18001
         460.0 a>b A 15001:16001 ack 1 id 27
         460.1 b>a A 1 ack 18001 sack 19001-20001
         462.0 a>b A 18001:19001 ack 1 id 28
         462.1 b>a A 1 ack 20001",
        ten_segments()
    );
    assert_eq!(
        losses(&run(&ladder)),
        lost([&[10_001, 12_001, 15_001, 18_001], &[10_001, 12_001], &[]])
    );
}

#[test]
fn a_hole_that_was_not_known_before_was_not_repeated() {
    // The round trip takes 400 ms, then 160 ms. When 21 is missing, 13001:14001 is the only hole.
    let ladder = format!(
        "{}
          121.0 a>b A 11001:12001 ack 1 id 14     # 13: a hole
          121.1 b>a A 1 ack 10001 sack 11001-12001
          521.0 a>b A 10001:11001 ack 1 id 15
          521.1 b>a A 1 ack 12001
          531.0 a>b A 12001:13001 ack 1 id 16
          531.1 b>a A 1 ack 13001
          541.0 a>b A 14001:15001 ack 1 id 18     # 17: a hole
          541.1 b>a A 1 ack 13001 sack 14001-15001
          741.0 a>b A 15001:16001 ack 1 id 19
          741.1 b>a A 1 ack 13001 sack 14001-16001
          941.0 a>b A 17001:18001 ack 1 id 22     # 20: another one
          941.1 b>a A 1 ack 13001 sack 17001-18001 14001-16001
         1101.0 a>b A 13001:14001 ack 1 id 23
         1101.1 b>a A 1 ack 16001 sack 17001-18001
         1111.0 a>b A 16001:17001 ack 1 id 24
         1111.1 b>a A 1 ack 18001",
        ten_segments()
    );
    assert_eq!(
        losses(&run(&ladder)),
        lost([&[10_001, 13_001, 16_001], &[13_001], &[]])
    );
}

#[test]
fn a_retransmission_that_was_delayed_was_not_lost() {
    let ladder = format!(
        "{}
         121.0 a>b A 11001:12001 ack 1 id 14     # 13, 15, 17: holes
         121.1 b>a A 1 ack 10001 sack 11001-12001
         123.0 a>b A 13001:14001 ack 1 id 16
         123.1 b>a A 1 ack 10001 sack 13001-14001 11001-12001
         125.0 a>b A 15001:16001 ack 1 id 18
         125.1 b>a A 1 ack 10001 sack 15001-16001 13001-14001 11001-12001
         221.0 a>b A 10001:11001 ack 1 id 19
         221.1 b>a A 1 ack 12001 sack 15001-16001 13001-14001
         222.0 a>b A 14001:15001 ack 1 id 21     # sent after 20
         222.1 b>a A 1 ack 12001 sack 13001-16001
         223.0 a>b A 12001:13001 ack 1 id 20
         223.1 b>a A 1 ack 16001",
        ten_segments()
    );
    assert_eq!(
        losses(&run(&ladder)),
        lost([&[10_001, 12_001, 14_001], &[], &[]])
    );
}
