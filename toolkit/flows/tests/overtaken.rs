//! Which transmission of a range arrived, where the order of arrival shows it, or an ACK that is missing.
//! `support/mod.rs` explains the notation.

mod support;

use std::fmt::Write;

use hindflight_flows::EventKind;
use support::{Outcome, losses, run};

/// First octet and record of the transmissions of which the fate is undecided.
fn undecided(outcome: &Outcome) -> Vec<(Option<i64>, Option<u64>)> {
    let events = outcome.events.iter();
    let events = events.filter(|event| event.kind == EventKind::Undecided);
    events
        .map(|event| (event.seq_start, event.record))
        .collect()
}

/// The records of the retransmissions that were spurious.
fn spurious(outcome: &Outcome) -> Vec<Option<u64>> {
    let events = outcome.events.iter();
    let events = events.filter(|event| event.spurious == Some(true));
    events.map(|event| event.record).collect()
}

#[test]
fn a_retransmission_does_not_overtake_what_was_sent_before_it() {
    // From 215 on the round trip takes 20 ms, and not 100 ms. 1001:2001 is overtaken, and so are 2001:3001 and
    // 4001:5001; 3001:4001 is lost. The retransmission of 2001:3001 is lost, that of 4001:5001 arrives.
    let outcome = run("  0.0 a>b S  0 mss 1000 sackok
         100.0 b>a SA 0 ack 1 mss 1000 sackok id 1
         100.1 a>b A  1 ack 1
         110.0 a>b A 1:1001    ack 1
         137.5 a>b A 1001:2001 ack 1
         150.0 a>b A 2001:3001 ack 1     # 6
         151.0 a>b A 3001:4001 ack 1
         152.0 a>b A 4001:5001 ack 1
         201.0 b>a A 1 ack 1 win 61000 id 2
         202.0 b>a A 1 ack 1 win 62000 id 3
         203.0 b>a A 1 ack 1 win 63000 id 4
         204.0 b>a A 1 ack 1 win 64000 id 5
         210.0 b>a A 1 ack 1001 id 6
         216.0 a>b A 5001:6001 ack 1
         217.0 a>b A 6001:7001 ack 1
         218.0 a>b A 7001:8001 ack 1
         231.0 a>b A 8001:9001 ack 1
         232.0 a>b A 9001:10001 ack 1
         236.0 b>a A 1 ack 1001 sack 5001-6001 id 7
         237.0 b>a A 1 ack 1001 sack 5001-7001 id 8
         237.5 b>a A 1 ack 2001 sack 5001-7001 id 9
         238.0 b>a A 1 ack 2001 sack 5001-8001 id 10
         238.1 a>b A 2001:3001 ack 1     # 23
         238.2 a>b A 3001:4001 ack 1
         238.3 a>b A 4001:5001 ack 1     # 25
         250.0 b>a A 1 ack 3001 sack 5001-8001 id 11
         251.0 b>a A 1 ack 3001 sack 5001-9001 id 12
         252.0 b>a A 1 ack 3001 sack 4001-9001 id 13
         252.1 b>a A 1 ack 3001 sack 4001-10001 id 14
         258.2 b>a A 1 ack 10001 id 15
         258.3 b>a A 1 ack 10001 sack 4001-5001 id 16
         300.0 a>b A 10001:11001 ack 1
         320.0 b>a A 1 ack 11001 id 17");
    assert_eq!(
        losses(&outcome),
        [
            (Some(2001), Some(2), Some(23)),
            (Some(3001), Some(1), Some(7))
        ]
    );
    assert_eq!(spurious(&outcome), [Some(23), Some(25)]);
    assert!(outcome.evidence(EventKind::Retransmission, 23).ends_with(
        "it would have overtaken record 17, which was sent before it and arrived later"
    ));
}

#[test]
fn a_retransmission_may_overtake_what_was_sent_before_the_path_became_shorter() {
    // The same path, but only the retransmission of 1001:2001 takes the shorter one: no segment was overtaken that was
    // sent before it.
    let outcome = run("  0.0 a>b S  0 mss 1000 sackok
         100.0 b>a SA 0 ack 1 mss 1000 sackok
         100.1 a>b A  1 ack 1
         110.0 a>b A 1:1001    ack 1
         150.0 a>b A 1001:2001 ack 1     # lost
         151.0 a>b A 2001:3001 ack 1
         152.0 a>b A 3001:4001 ack 1
         153.0 a>b A 4001:5001 ack 1
         210.0 b>a A 1 ack 1001
         220.0 a>b A 5001:6001 ack 1
         251.0 b>a A 1 ack 1001 sack 2001-3001
         252.0 b>a A 1 ack 1001 sack 2001-4001
         253.0 b>a A 1 ack 1001 sack 2001-5001
         253.1 a>b A 1001:2001 ack 1
         313.1 b>a A 1 ack 5001
         320.0 b>a A 1 ack 6001");
    assert_eq!(losses(&outcome), [(Some(1001), Some(1), Some(5))]);
    assert_eq!(spurious(&outcome), []);
}

#[test]
fn a_retransmission_does_not_overtake_one_that_the_receiver_reports_as_a_duplicate() {
    // 5001:6001 overtakes four segments, which arrive 100 ms after they were sent. They have been retransmitted by
    // then: the first and the third retransmission are duplicates, the second and the fourth are lost.
    let outcome = run("  0.0 a>b S  0 mss 1000 sackok
          20.0 b>a SA 0 ack 1 mss 1000 sackok
          20.1 a>b A  1 ack 1
          30.0 a>b A 1:1001    ack 1
          50.0 b>a A 1 ack 1001
          60.0 a>b A 1001:2001 ack 1     # 6
          61.0 a>b A 2001:3001 ack 1
          62.0 a>b A 3001:4001 ack 1
          63.0 a>b A 4001:5001 ack 1
          64.0 a>b A 5001:6001 ack 1
          84.0 b>a A 1 ack 1001 sack 5001-6001
         148.0 a>b A 1001:2001 ack 1     # 12
         148.1 a>b A 2001:3001 ack 1
         148.2 a>b A 3001:4001 ack 1
         148.3 a>b A 4001:5001 ack 1     # 15
         160.0 b>a A 1 ack 2001 sack 5001-6001
         161.0 b>a A 1 ack 3001 sack 5001-6001
         170.0 b>a A 1 ack 4001 sack 5001-6001
         171.0 b>a A 1 ack 6001
         240.0 b>a A 1 ack 6001 sack 1001-2001
         241.0 b>a A 1 ack 6001 sack 3001-4001");
    assert_eq!(losses(&outcome), []);
    assert_eq!(spurious(&outcome), [Some(12), Some(13), Some(14), Some(15)]);
    assert!(outcome.evidence(EventKind::Retransmission, 15).ends_with(
        "it would have overtaken record 14, which was sent before it and arrived later"
    ));
}

#[test]
fn a_retransmission_may_overtake_a_duplicate_if_a_segment_sent_after_that_did() {
    // From 150 on the round trip takes 20 ms again, and not 100 ms: the retransmission of 2001:3001, which was lost,
    // overtakes that of 1001:2001, and so does 6001:7001.
    let outcome = run("  0.0 a>b S  0 mss 1000 sackok
          20.0 b>a SA 0 ack 1 mss 1000 sackok
          20.1 a>b A  1 ack 1
          30.0 a>b A 1:1001    ack 1
          50.0 b>a A 1 ack 1001
          60.0 a>b A 1001:2001 ack 1
          61.0 a>b A 2001:3001 ack 1     # 7, lost
          64.0 a>b A 5001:6001 ack 1
          84.0 b>a A 1 ack 1001 sack 5001-6001
         148.0 a>b A 1001:2001 ack 1     # 10
         152.0 a>b A 6001:7001 ack 1
         160.0 b>a A 1 ack 2001 sack 5001-6001
         165.0 a>b A 2001:3001 ack 1     # 13
         172.0 b>a A 1 ack 2001 sack 5001-7001
         185.0 b>a A 1 ack 3001 sack 5001-7001
         248.0 b>a A 1 ack 3001 sack 1001-2001 5001-7001");
    assert!(losses(&outcome).contains(&(Some(2001), Some(1), Some(7))));
    assert_eq!(spurious(&outcome), [Some(10)]);
}

#[test]
fn a_retransmission_that_overtook_nothing_in_a_queue_was_the_duplicate() {
    // From 430 on the round trip takes 20 ms, and not 200 ms, and a segment leaves the queue each 15 ms. 1001:4001 is
    // overtaken, and retransmitted 1 ms after new data that are queued until 544. The second retransmissions are lost.
    let outcome = run("  0.0 a>b S  0 mss 1000 sackok
         200.0 b>a SA 0 ack 1 mss 1000 sackok id 1
         200.1 a>b A  1 ack 1
         200.2 a>b A 1:1001    ack 1
         400.2 b>a A 1 ack 1001 id 2
         401.0 b>a A 1 ack 1001 win 61000 id 3
         402.0 b>a A 1 ack 1001 win 62000 id 4
         403.0 b>a A 1 ack 1001 win 63000 id 5
         404.0 b>a A 1 ack 1001 win 64000 id 6
         410.0 a>b A 1001:2001 ack 1     # 10
         411.0 a>b A 2001:3001 ack 1
         412.0 a>b A 3001:4001 ack 1
         460.0 a>b A 4001:5001 ack 1
         479.0 a>b A 5001:6001 ack 1
         479.1 a>b A 6001:7001 ack 1
         479.2 a>b A 7001:8001 ack 1
         479.3 a>b A 8001:9001 ack 1
         480.0 b>a A 1 ack 1001 sack 4001-5001 id 7
         480.1 a>b A 1001:2001 ack 1     # 19
         480.2 a>b A 2001:3001 ack 1
         480.3 a>b A 3001:4001 ack 1     # 21
         499.0 b>a A 1 ack 1001 sack 4001-6001 id 8
         500.0 a>b A 9001:10001 ack 1
         514.0 b>a A 1 ack 1001 sack 4001-7001 id 9
         515.0 a>b A 2001:3001 ack 1     # 25, lost
         515.5 a>b A 3001:4001 ack 1     # 26, lost
         520.0 b>a A 1 ack 2001 sack 4001-7001 id 10
         521.0 b>a A 1 ack 3001 sack 4001-7001 id 11
         522.0 b>a A 1 ack 7001 id 12
         529.0 b>a A 1 ack 8001 id 13
         544.0 b>a A 1 ack 9001 id 14
         559.0 b>a A 1 ack 9001 sack 1001-2001 id 15
         574.0 b>a A 1 ack 9001 sack 2001-3001 id 16
         589.0 b>a A 1 ack 9001 sack 3001-4001 id 17
         604.0 b>a A 1 ack 10001 id 18
         620.0 a>b A 10001:11001 ack 1
         640.0 b>a A 1 ack 11001 id 19");
    let lost = [
        (Some(2001), Some(3), Some(25)),
        (Some(3001), Some(3), Some(26)),
    ];
    assert_eq!(losses(&outcome), lost);
    assert_eq!(undecided(&outcome), []);
    assert_eq!(
        spurious(&outcome),
        [Some(19), Some(20), Some(25), Some(21), Some(26)]
    );
}

#[test]
fn what_was_sent_before_a_segment_that_arrived_late_is_not_discarded_later() {
    // From 255 on the round trip takes 20 ms, and not 100 ms. 1001:3001 is lost, 3001:4001 overtaken. When 4001:5001
    // arrives, its timestamp is too old, and the receiver discards it (PAWS).
    let outcome = run("  0.0 a>b S  0 mss 1000 sackok ts 0/0
         140.0 b>a SA 0 ack 1 mss 1000 sackok ts 70/0
         140.1 a>b A  1 ack 1 ts 140/70
         150.0 a>b A 1:1001    ack 1 ts 150/70
         170.0 a>b A 1001:2001 ack 1 ts 170/70
         171.0 a>b A 2001:3001 ack 1 ts 171/70
         177.0 a>b A 3001:4001 ack 1 ts 177/70
         200.0 a>b A 4001:5001 ack 1 ts 200/70
         249.0 a>b A 1:1001    ack 1 ts 249/70
         250.0 b>a A 1 ack 1001 ts 200/150
         254.0 b>a A 1 ack 1001 sack 1-1001 ts 201/150
         256.0 a>b A 5001:6001 ack 1 ts 256/200
         257.0 a>b A 6001:7001 ack 1 ts 257/200
         258.0 a>b A 7001:8001 ack 1 ts 258/200
         276.0 b>a A 1 ack 1001 sack 5001-6001 ts 266/150
         277.0 b>a A 1 ack 1001 sack 3001-4001 5001-7001 ts 267/150
         278.0 b>a A 1 ack 1001 sack 5001-8001 3001-4001 ts 268/150
         278.1 a>b A 1001:2001 ack 1 ts 278/268
         298.1 b>a A 1 ack 2001 sack 5001-8001 3001-4001 ts 288/278
         300.0 b>a A 1 ack 2001 sack 5001-8001 3001-4001 ts 289/278
         300.1 a>b A 2001:3001 ack 1 ts 300/289
         300.2 a>b A 4001:5001 ack 1 ts 300/289
         320.1 b>a A 1 ack 4001 sack 5001-8001 ts 310/300
         320.2 b>a A 1 ack 8001 ts 310/300");
    let lost = [
        (Some(1001), Some(1), Some(5)),
        (Some(2001), Some(1), Some(6)),
    ];
    assert_eq!(losses(&outcome), lost);
    assert_eq!(undecided(&outcome), []);
}

#[test]
fn octets_that_a_new_sack_block_reports_again_arrived_twice() {
    // The receiver remembers three blocks. When the retransmission of 2001:3001 arrives, it has forgotten 1001-4001.
    // The ACK that reports it has the next ID, or that of the one that is missing before.
    let duplicate = |id: u32| {
        let next = id.max(12) + 1;
        run(&format!(
            "  0.0 a>b S  0 mss 1000 sackok
             100.0 b>a SA 0 ack 1 mss 1000 sackok id 1
             100.1 a>b A  1 ack 1
             110.0 a>b A 1:1001    ack 1
             111.0 a>b A 1001:2001 ack 1
             112.0 a>b A 2001:3001 ack 1
             113.0 a>b A 3001:4001 ack 1
             116.0 a>b A 4001:5001 ack 1
             117.0 a>b A 5001:6001 ack 1
             118.0 a>b A 6001:7001 ack 1
             119.0 a>b A 7001:8001 ack 1
             120.0 a>b A 8001:9001 ack 1
             121.0 a>b A 9001:10001 ack 1
             134.0 a>b A 2001:3001 ack 1     # 14
             211.0 b>a A 1 ack 1 sack 1001-2001 id 3
             212.0 b>a A 1 ack 1 sack 1001-3001 id 4
             213.0 b>a A 1 ack 1 sack 1001-4001 id 5
             217.0 b>a A 1 ack 1 sack 5001-6001 1001-4001 id 6
             219.0 b>a A 1 ack 1 sack 7001-8001 5001-6001 1001-4001 id 7
             220.0 b>a A 1 ack 1 sack 9001-10001 7001-8001 5001-6001 id 8
             220.1 a>b A 1:1001    ack 1
             220.2 a>b A 4001:5001 ack 1
             220.3 a>b A 6001:7001 ack 1
             220.4 a>b A 8001:9001 ack 1
             258.0 b>a A 1 ack 1 win 61000 sack 9001-10001 7001-8001 5001-6001 id 9
             259.0 b>a A 1 ack 1 win 62000 sack 9001-10001 7001-8001 5001-6001 id 10
             260.0 b>a A 1 ack 1 win 63000 sack 9001-10001 7001-8001 5001-6001 id 11
             261.0 b>a A 1 ack 1 win 64000 sack 9001-10001 7001-8001 5001-6001 id 12
             262.0 b>a A 1 ack 1 sack 2001-3001 9001-10001 7001-8001 id {id}
             320.1 b>a A 1 ack 4001 sack 9001-10001 7001-8001 5001-6001 id {next}
             320.4 b>a A 1 ack 10001 id {}",
            next + 1
        ))
    };
    let outcome = duplicate(13);
    let reports = |outcome: &Outcome| outcome.evidence(EventKind::Retransmission, 14);
    assert!(
        reports(&outcome)
            .ends_with("reports its octets again, in another SACK block (a duplicate)")
    );
    assert_eq!(undecided(&outcome), []);
    assert_eq!(spurious(&outcome), [Some(14)]);
    assert_eq!(
        spurious(&duplicate(2)),
        [],
        "an ACK that was overtaken reports again what is known"
    );
}

#[test]
fn what_arrived_without_an_ack_was_sent_before_the_last_ack_that_is_missing() {
    // The ACKs of 401 to 407 are lost, so that none reports 10001:11001; the next one has no place for it.
    let mut ladder = String::from(
        "  0.0 a>b S  0 mss 1000 sackok
         100.0 b>a SA 0 ack 1 mss 1000 sackok id 1
         100.1 a>b A  1 ack 1
        ",
    );
    for number in 0..9 {
        let (start, end) = (1 + number * 1000, 1 + (number + 1) * 1000);
        writeln!(ladder, "{}.0 a>b A {start}:{end} ack 1", 110 + number).expect("text");
    }
    for number in 0..9 {
        let (end, id) = (1 + (number + 1) * 1000, 2 + number);
        writeln!(ladder, "{}.0 b>a A 1 ack {end} id {id}", 210 + number).expect("text");
    }
    for number in 0..10 {
        let (start, end) = (9001 + number * 1000, 10001 + number * 1000);
        writeln!(ladder, "{}.0 a>b A {start}:{end} ack 1", 300 + number).expect("text");
    }
    let outcome = run(&format!(
        "{ladder}
         409.0 b>a A 1 ack 9001 sack 18001-19001 16001-17001 14001-15001 12001-13001 id 15
         410.0 a>b A 9001:10001  ack 1       # 33, lost
         410.1 a>b A 10001:11001 ack 1       # 34, lost
         520.0 a>b A 9001:10001  ack 1
         520.1 a>b A 10001:11001 ack 1
         620.0 b>a A 1 ack 11001 sack 18001-19001 16001-17001 14001-15001 12001-13001 id 16
         620.1 b>a A 1 ack 11001 sack 10001-11001 18001-19001 16001-17001 14001-15001 id 17
         620.2 a>b A 11001:12001 ack 1
         620.3 a>b A 13001:14001 ack 1
         620.4 a>b A 15001:16001 ack 1
         620.5 a>b A 17001:18001 ack 1
         720.5 b>a A 1 ack 19001 id 18"
    ));
    let lost = |start: i64, copy: u32, record: u64| (Some(start), Some(copy), Some(record));
    let holes = (0..4).map(|number| lost(11_001 + 2000 * number, 1, 24 + 2 * number as u64));
    let below = [lost(9001, 1, 22), lost(9001, 2, 33), lost(10_001, 2, 34)];
    assert_eq!(
        losses(&outcome),
        below.into_iter().chain(holes).collect::<Vec<_>>()
    );
    assert_eq!(undecided(&outcome), []);
}

/// Two segments are repeated after a timeout and acknowledged 20 ms later; new data take `new_ms`. The first ACK
/// reports a duplicate, if the receiver `reports` any.
fn after_timeout(new_ms: u32, reports: bool) -> Outcome {
    let duplicate = if reports { "sack 1-1001" } else { "" };
    run(&format!(
        "  0.0 a>b S  0 mss 1000 sackok
         100.0 b>a SA 0 ack 1 mss 1000 sackok id 1
         100.1 a>b A  1 ack 1
         110.0 a>b A 1:1001    ack 1
         110.1 a>b A 1001:2001 ack 1     # 5
         110.2 a>b A 2001:3001 ack 1
         210.0 b>a A 1 ack 1001 id 2
         211.0 b>a A 1 ack 1001 {duplicate} id 3
         520.0 a>b A 1001:2001 ack 1     # 9
         540.0 b>a A 1 ack 2001 id 4
         540.1 a>b A 2001:3001 ack 1     # 11
         560.1 b>a A 1 ack 3001 id 5
         560.2 a>b A 3001:4001 ack 1
         {}.2 b>a A 1 ack 4001 id 6
        2000.0 a>b A 4001:5001 ack 1
        2100.0 b>a A 1 ack 5001 id 7",
        560 + new_ms
    ))
}

#[test]
fn what_a_timeout_repeats_may_arrive_early_if_the_path_became_shorter() {
    // 60 ms, in a queue: the path became shorter, and nothing says by how much.
    let shorter = after_timeout(60, true);
    assert_eq!(
        losses(&shorter),
        [
            (Some(1001), Some(1), Some(5)),
            (Some(2001), Some(1), Some(6))
        ]
    );
    assert_eq!(spurious(&shorter), []);
    // Duplicates are not reported, so that the originals may have been late.
    let unreported = after_timeout(60, false);
    assert_eq!(spurious(&unreported), [Some(9), Some(11)]);
    // 80 ms are within the reordering window of the 100 ms before, so that 20 ms are too early.
    let as_before = after_timeout(80, true);
    assert_eq!(spurious(&as_before), [Some(9), Some(11)]);
}
