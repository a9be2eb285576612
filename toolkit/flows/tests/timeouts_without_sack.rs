//! Captures at the receiver of a sender without SACK that increments IPv4 IDs: how many timeouts a silence had, and
//! what else was lost in it. `support/mod.rs` explains the notation.

mod support;

use hindflight_flows::EventKind;
use support::{losses, run, second_of_twelve_lost, ten_segments};

/// Rows of `losses`: starts and copies.
fn copies(rows: &[(i64, u32)]) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let mut rows: Vec<_> = rows
        .iter()
        .map(|&(start, copy)| (Some(start), Some(copy), None))
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn the_time_of_a_silence_shows_how_many_timeouts_it_had() {
    // Go-back-N has come to 7001 when a silence begins, in which three packets are missing.
    let ended_at = |t_ms: u32| {
        losses(&run(&format!(
            "{}
             520.0 a>b A 1001:2001 ack 1 id 15
             520.1 b>a A 1 ack 6001
             620.0 a>b A 6001:7001 ack 1 id 16
             620.1 b>a A 1 ack 7001
             {t_ms}.0 a>b A 7001:8001 ack 1 id 20
             {t_ms}.1 b>a A 1 ack 8001
             {}.0 a>b A 8001:9001 ack 1 id 21
             {}.1 b>a A 1 ack 12001",
            second_of_twelve_lost(&[6, 7, 8]),
            t_ms + 100,
            t_ms + 100
        )))
    };
    let first = [(1001, 1), (6001, 1), (7001, 1), (8001, 1)];
    let with = |again: &[(i64, u32)]| copies(&[&first, again].concat());
    let one = [(7001, 2), (8001, 2), (9001, 2)];
    assert_eq!(ended_at(1020), with(&one), "one timeout, of 0.3 s");
    let two = [(7001, 2), (8001, 2), (7001, 3)];
    assert_eq!(ended_at(1620), with(&two), "two timeouts");
}

#[test]
fn new_data_without_a_gap_show_that_timeouts_repeated_the_oldest_segment() {
    // Fast retransmission and one of the two timeouts were lost, after new data.
    let outcome = run(&format!(
        "{}
         222.0 a>b A 12001:13001 ack 1 id 15
         222.1 b>a A 1 ack 1001
        1320.0 a>b A 1001:2001 ack 1 id 18
        1320.1 b>a A 1 ack 13001
        1420.0 a>b A 13001:14001 ack 1 id 19
        1420.1 b>a A 1 ack 14001",
        second_of_twelve_lost(&[])
    ));
    assert_eq!(losses(&outcome), copies(&[(1001, 1), (1001, 2), (1001, 3)]));
}

#[test]
fn in_a_silence_with_all_acknowledged_new_data_were_lost() {
    let outcome = run(&format!(
        "{}
         520.0 a>b A 1001:2001 ack 1 id 15
         520.1 b>a A 1 ack 6001
         620.0 a>b A 6001:7001 ack 1 id 16
         620.1 b>a A 1 ack 12001
        1020.0 a>b A 12001:13001 ack 1 id 22     # 17 to 21: as many as 7001:12001 has
        1020.1 b>a A 1 ack 13001
        1120.0 a>b A 13001:14001 ack 1 id 23
        1120.1 b>a A 1 ack 14001",
        second_of_twelve_lost(&[6])
    ));
    let rows = losses(&outcome);
    assert!(!rows.contains(&(Some(7001), Some(2), None)), "{rows:?}");
    assert!(rows.contains(&(Some(12_001), Some(1), None)), "{rows:?}");
    assert!(rows.contains(&(Some(13_001), Some(1), None)), "{rows:?}");
}

#[test]
fn go_back_n_continues_above_where_an_ack_jumped_to() {
    let outcome = run(&format!(
        "{}
         520.0 a>b A 1001:2001 ack 1 id 15
         520.1 b>a A 1 ack 6001
         620.0 a>b A 6001:7001 ack 1 id 16
         620.1 b>a A 1 ack 10001
         710.0 a>b A 11001:12001 ack 1 id 19      # 17: 7001:8001, before the jump, 18: 10001:11001
         710.1 b>a A 1 ack 10001",
        second_of_twelve_lost(&[6, 10])
    ));
    let rows = losses(&outcome);
    assert!(rows.contains(&(Some(7001), Some(2), None)), "{rows:?}");
    let again: Vec<_> = rows.iter().filter(|row| row.1 == Some(2)).collect();
    assert!(again.iter().all(|row| row.0 != Some(8001)), "{rows:?}");
}

#[test]
fn between_new_data_and_the_oldest_hole_new_data_were_lost() {
    let outcome = run(&format!(
        "{}
         520.0 a>b A 1001:2001 ack 1 id 15
         520.1 b>a A 1 ack 6001
         620.0 a>b A 12001:13001 ack 1 id 16      # F-RTO: new data
         620.1 b>a A 1 ack 6001
         630.0 a>b A 6001:7001 ack 1 id 18        # 17: the second of F-RTO
         630.1 b>a A 1 ack 8001
         730.0 a>b A 8001:9001 ack 1 id 19
         730.1 b>a A 1 ack 13001
         830.0 a>b A 13001:14001 ack 1 id 20
         830.1 b>a A 1 ack 14001",
        second_of_twelve_lost(&[6, 8])
    ));
    assert_eq!(
        losses(&outcome),
        copies(&[(1001, 1), (6001, 1), (8001, 1), (13_001, 1)])
    );
}

#[test]
fn recovery_repeats_a_hole_only_after_a_timeout() {
    // The sender waited for more duplicate ACKs than three.
    let outcome = run(&format!(
        "{}
         222.0 a>b A 12001:13001 ack 1 id 15
         222.1 b>a A 1 ack 1001
         300.0 a>b A 13001:14001 ack 1 id 16
         300.1 b>a A 1 ack 1001
         330.0 a>b A 1001:2001 ack 1 id 18        # 17: new data
         330.1 b>a A 1 ack 14001
         400.0 a>b A 15001:16001 ack 1 id 19
         400.1 b>a A 1 ack 14001
         430.0 a>b A 14001:15001 ack 1 id 20
         430.1 b>a A 1 ack 16001",
        second_of_twelve_lost(&[])
    ));
    assert_eq!(losses(&outcome), copies(&[(1001, 1), (14_001, 1)]));
}

/// A flow without SACK and IDs, of whose ten segments all but the second arrived. From the third on, those `captured`
/// are in this order. A timeout retransmits the second, and the sender goes on before it learns that all have arrived.
/// Returns the retransmissions that were lost, whose `lines` follow.
fn lost_in_go_back_n(
    captured: &[u32],
    lines: &str,
) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let mut ladder = String::from(
        "  0.00 a>b S  0 mss 1000 ts 1/0
           0.05 b>a SA 0 ack 1 mss 1000 ts 5/1
         100.00 a>b A  1 ack 1 ts 101/5
         110.00 a>b A 1:1001 ack 1 ts 110/5
         110.01 b>a A 1 ack 1001 ts 10/110\n",
    );
    for (place, number) in captured.iter().enumerate() {
        let (t_ms, val, start) = (112 + place, 110 + number, 1 + 1000 * number);
        let end = start + 1000;
        let lines = format!(
            "{t_ms}.0 a>b A {start}:{end} ack 1 ts {val}/5
             {t_ms}.1 b>a A 1 ack 1001 ts 11/110\n"
        );
        ladder.push_str(&lines);
    }
    let outcome = run(&format!(
        "{ladder}
         520.0 a>b A 1001:2001 ack 1 ts 520/11
         520.1 b>a A 1 ack 2001 ts 50/520
         521.0 a>b A 2001:3001 ack 1 ts 521/11
         521.1 b>a A 1 ack 10001 ts 51/521
         {lines}"
    ));
    let rows = losses(&outcome).into_iter();
    rows.filter(|row| row.1 > Some(1)).collect()
}

const IN_ORDER: &[u32] = &[2, 3, 4, 5, 6, 7, 8, 9];

#[test]
fn without_ids_the_echo_shows_what_was_repeated_in_order() {
    let jump = |captured, ts_ecr: u32| {
        lost_in_go_back_n(
            captured,
            &format!(
                "522.0 a>b A 4001:5001 ack 1 ts 522/{ts_ecr}
                 522.1 b>a A 1 ack 10001 ts 52/522
                 720.0 a>b A 10001:11001 ack 1 ts 720/52
                 720.1 b>a A 1 ack 11001 ts 70/720"
            ),
        )
    };
    assert_eq!(jump(IN_ORDER, 11), copies(&[(3001, 2)]));
    assert_eq!(jump(IN_ORDER, 51), [], "it knew that they had arrived");
    assert_eq!(jump(&[2, 4, 3, 5, 6, 7, 8, 9], 11), [], "the path reorders");
}

#[test]
fn without_ids_reordered_retransmissions_are_not_lost() {
    let swap = lost_in_go_back_n(
        IN_ORDER,
        "522.0 a>b A 4001:5001 ack 1 ts 523/11
         522.1 a>b A 3001:4001 ack 1 ts 522/11
         522.2 a>b A 5001:6001 ack 1 ts 524/11
         720.0 a>b A 10001:11001 ack 1 ts 720/51",
    );
    assert_eq!(swap, []);
    let late = |lines: &str| {
        let lines = format!(
            "522.0 a>b A 4001:5001 ack 1 ts 523/11
             {lines}
             720.0 a>b A 10001:11001 ack 1 ts 720/51"
        );
        lost_in_go_back_n(IN_ORDER, &lines)
    };
    let after_two = "522.1 a>b A 5001:6001 ack 1 ts 524/11
                     522.2 a>b A 3001:4001 ack 1 ts 522/11";
    assert_eq!(late(after_two), [], "before DupThresh");
    let after_three = "522.1 a>b A 5001:6001 ack 1 ts 524/11
                       522.2 a>b A 6001:7001 ack 1 ts 525/11
                       522.3 a>b A 3001:4001 ack 1 ts 522/11";
    assert_eq!(late(after_three), copies(&[(3001, 2)]), "DupThresh");
}

#[test]
fn without_ids_a_segment_stored_after_its_ack_does_not_show_a_loss() {
    // The seventh of the ten.
    let rows = lost_in_go_back_n(
        &[2, 3, 4, 5, 7, 8, 9],
        "521.3 a>b A 6001:7001 ack 1 ts 116/11
         522.0 a>b A 3001:4001 ack 1 ts 522/11
         720.0 a>b A 10001:11001 ack 1 ts 720/51",
    );
    assert_eq!(rows, []);
}

#[test]
fn without_ids_what_is_skipped_is_open_for_the_reordering_window() {
    let ended = |t_ms: u32| {
        let lines = format!(
            "522.0 a>b A 4001:5001 ack 1 ts 522/11
             {t_ms}.1 b>a A 1 ack 10001 ts 52/522"
        );
        lost_in_go_back_n(IN_ORDER, &lines)
    };
    assert_eq!(ended(530), []);
    assert_eq!(ended(550), copies(&[(3001, 2)]));
}

#[test]
fn without_ids_a_sender_that_goes_back_again_loses_the_same_octets_again() {
    let rows = lost_in_go_back_n(
        IN_ORDER,
        "522.0 a>b A 4001:5001 ack 1 ts 522/11
         920.0 a>b A 1001:2001 ack 1 ts 920/11
         921.0 a>b A 3001:4001 ack 1 ts 921/11
         922.0 a>b A 5001:6001 ack 1 ts 922/11
         990.0 a>b A 10001:11001 ack 1 ts 990/51",
    );
    assert_eq!(rows, copies(&[(2001, 3), (3001, 2), (4001, 3)]));
}

#[test]
fn of_two_packets_missing_in_a_silence_of_three_rtos_one_was_the_rest_of_the_flight() {
    let outcome = run(&format!(
        "{}
         1029.0 a>b A 10001:11001 ack 1 id 15    # 13 and 14: the end of the flight
         1029.1 b>a A 1 ack 11001
         1129.0 a>b A 11001:12001 ack 1 id 16
         1129.1 b>a A 1 ack 12001
         1130.0 a>b A 12001:13001 ack 1 id 17
         1130.1 b>a A 1 ack 13001",
        ten_segments().replace(" sackok", "")
    ));
    assert_eq!(losses(&outcome), copies(&[(10_001, 1), (11_001, 1)]));
}

#[test]
fn what_f_rto_sent_after_a_timeout_is_not_repeated() {
    let outcome = run(&format!(
        "{}
         520.0 a>b A 1001:2001 ack 1 id 15
         520.1 b>a A 1 ack 6001
         620.0 a>b A 12001:13001 ack 1 id 16      # F-RTO: new data
         620.1 b>a A 1 ack 6001
         621.0 a>b A 13001:14001 ack 1 id 17
         621.1 b>a A 1 ack 6001
         720.0 a>b A 6001:7001 ack 1 id 18
         720.1 b>a A 1 ack 9001
         820.0 a>b A 15001:16001 ack 1 id 23      # 19 to 21: 9001:12001, 22: 14001:15001
         820.1 b>a A 1 ack 9001
         920.0 a>b A 9001:10001 ack 1 id 24
         920.1 b>a A 1 ack 10001",
        second_of_twelve_lost(&[6, 9, 10])
    ));
    let again = [(9001, 2), (10_001, 2), (11_001, 2)];
    let expected = [(1001, 1), (6001, 1), (9001, 1), (10_001, 1), (14_001, 1)];
    assert_eq!(losses(&outcome), copies(&[&expected[..], &again].concat()));
}

#[test]
fn a_duplicate_ack_after_the_new_data_of_f_rto_begins_go_back_n() {
    let outcome = run(&format!(
        "{}
         520.0 a>b A 1001:2001 ack 1 id 15
         520.1 b>a A 1 ack 6001
         620.0 a>b A 12001:13001 ack 1 id 16      # F-RTO: new data
         620.1 b>a A 1 ack 6001
         621.0 a>b A 13001:14001 ack 1 id 17
         621.1 b>a A 1 ack 6001
        1021.0 a>b A 6001:7001 ack 1 id 20        # 18 and 19: 6001:8001, one for each duplicate ACK
        1021.1 b>a A 1 ack 14001
        1121.0 a>b A 14001:15001 ack 1 id 21
        1121.1 b>a A 1 ack 15001",
        second_of_twelve_lost(&[6])
    ));
    assert_eq!(
        losses(&outcome),
        copies(&[(1001, 1), (6001, 1), (6001, 2), (7001, 2)])
    );
}

#[test]
fn without_sack_the_end_of_a_flight_is_repeated_by_a_timeout_not_by_a_probe() {
    // A round trip before the capture point takes 100 ms, so that the RTO is about 0.3 s.
    let outcome = run(&format!(
        "{}
         520.0 a>b A 1001:2001 ack 1 id 15
         520.1 b>a A 1 ack 12001
         940.0 a>b A 12001:13001 ack 1 id 18      # 16 and 17: 12001:14001
         940.1 b>a A 1 ack 13001
        1360.0 a>b A 13001:14001 ack 1 id 20      # 19: 13001:14001 again, as the ACK triggered it
        1360.1 b>a A 1 ack 14001",
        second_of_twelve_lost(&[])
    ));
    let kinds = outcome.events.iter().map(|event| event.kind);
    let timeouts = kinds.filter(|kind| *kind == EventKind::Rto);
    assert_eq!(timeouts.count(), 3);
    assert_eq!(
        losses(&outcome),
        copies(&[(1001, 1), (12_001, 1), (13_001, 1), (13_001, 2)])
    );
}

#[test]
fn once_all_is_repeated_new_data_are_lost_in_a_silence() {
    let outcome = run(&format!(
        "{}
         520.0 a>b A 1001:2001 ack 1 id 15
         520.1 b>a A 1 ack 6001
         620.0 a>b A 6001:7001 ack 1 id 16
         620.1 b>a A 1 ack 8001
         720.0 a>b A 9001:10001 ack 1 id 18       # 17: 8001:9001
         720.1 b>a A 1 ack 8001
         721.0 a>b A 10001:11001 ack 1 id 19
         721.1 b>a A 1 ack 8001
         722.0 a>b A 11001:12001 ack 1 id 20
         722.1 b>a A 1 ack 8001
         723.0 a>b A 12001:13001 ack 1 id 21
         723.1 b>a A 1 ack 8001
        1123.0 a>b A 8001:9001 ack 1 id 24        # 22 and 23: 13001:15001
        1123.1 b>a A 1 ack 13001
        1223.0 a>b A 13001:14001 ack 1 id 25
        1223.1 b>a A 1 ack 14001
        1224.0 a>b A 14001:15001 ack 1 id 26
        1224.1 b>a A 1 ack 15001",
        second_of_twelve_lost(&[6, 8])
    ));
    let first = [(1001, 1), (6001, 1), (8001, 1), (13_001, 1), (14_001, 1)];
    assert_eq!(
        losses(&outcome),
        copies(&[&first[..], &[(8001, 2)]].concat())
    );
}
