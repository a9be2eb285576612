//! Segments that the receiver discards because their timestamps are too old. `support/mod.rs` explains the notation.

mod support;

use hindflight_flows::EventKind;
use support::{Outcome, run};

#[test]
fn what_the_receiver_discards_for_its_old_timestamp_was_not_lost() {
    // From 215 on the round trip takes 20 ms, and not 100 ms. The retransmission of 1001:2001 overtakes the segments
    // sent before, which the receiver discards: their timestamps are older (PAWS).
    let with = |duplicate: &str, answers: &str| {
        run(&format!(
            "  0.0 a>b S  0 mss 1000 sackok ts 0/0
             100.0 b>a SA 0 ack 1 mss 1000 sackok ts 50/0
             100.1 a>b A  1 ack 1 ts 100/50
             110.0 a>b A 1:1001    ack 1 ts 110/50
             210.0 b>a A 1 ack 1001 ts 160/110
             212.0 a>b A 1001:2001 ack 1 ts 212/160
             213.0 a>b A 2001:3001 ack 1 ts 213/160
             214.0 a>b A 3001:4001 ack 1 ts 214/160
             216.0 a>b A 4001:5001 ack 1 ts 216/160
             217.0 a>b A 5001:6001 ack 1 ts 217/160
             218.0 a>b A 6001:7001 ack 1 ts 218/160
             236.0 b>a A 1 ack 1001 sack 4001-5001 ts 226/110
             237.0 b>a A 1 ack 1001 sack 4001-6001 ts 227/110
             238.0 b>a A 1 ack 1001 sack 4001-7001 ts 228/110
             238.1 a>b A 1001:2001 ack 1 ts 238/228
             258.1 b>a A 1 ack 2001 sack 4001-7001 ts 248/238
             265.0 a>b A 2001:3001 ack 1 ts 265/248
             266.0 a>b A 3001:4001 ack 1 ts 266/248
             272.0 b>a A 1 ack 2001 sack {duplicate}4001-7001 ts 262/238
             {answers}
             285.0 b>a A 1 ack 3001 sack 4001-7001 ts 275/265
             286.0 b>a A 1 ack 7001 ts 276/266"
        ))
    };
    let of = |kind: EventKind, duplicate: &str, answers: &str| {
        let outcome = with(duplicate, answers);
        let events = outcome.events.iter().filter(|event| event.kind == kind);
        events.map(|event| event.seq_start).collect::<Vec<_>>()
    };
    let lost = |answers: &str| of(EventKind::Loss, "1001-2001 ", answers);
    let undecided = |answers: &str| of(EventKind::Undecided, "1001-2001 ", answers);
    let empty = "273.0 b>a A 1 ack 2001 sack 4001-7001 ts 263/238";
    let two = format!("{empty}\n{}", empty.replace("273", "274"));
    assert_eq!((lost(&two), undecided(&two)), (vec![], vec![]));
    assert_eq!(
        (lost(empty), undecided(empty)),
        (vec![], vec![Some(3001)]),
        "one answer, one segment: the other may be hidden by the ACK of another segment"
    );
    assert_eq!(lost(""), [Some(2001), Some(3001)], "no answer");
    let update = empty.replace("ts", "win 65000 ts");
    assert_eq!(lost(&update), [Some(2001), Some(3001)], "of the window");
    let unreported = |kind: EventKind| of(kind, "", empty);
    assert_eq!(
        (
            unreported(EventKind::Loss),
            unreported(EventKind::Undecided)
        ),
        (vec![Some(1001)], vec![Some(2001), Some(3001)]),
        "a receiver that does not report duplicates answers them, too"
    );
}

/// The path of the test above becomes shorter twice, at 215 ms and at 2250 ms. `second` is what follows the second
/// time.
fn shorter_twice(second: &str) -> Outcome {
    run(&format!(
        "  0.0 a>b S  0 mss 1000 sackok ts 0/0
         100.0 b>a SA 0 ack 1 mss 1000 sackok ts 50/0
         100.1 a>b A  1 ack 1 ts 100/50
         110.0 a>b A 1:1001    ack 1 ts 110/50
         210.0 b>a A 1 ack 1001 ts 160/110
         212.0 a>b A 1001:2001 ack 1 ts 212/160
         213.0 a>b A 2001:3001 ack 1 ts 213/160
         216.0 a>b A 3001:4001 ack 1 ts 216/160
         236.0 b>a A 1 ack 1001 sack 3001-4001 ts 226/110
         236.1 a>b A 1001:2001 ack 1 ts 236/226
         256.1 b>a A 1 ack 2001 sack 3001-4001 ts 246/236
         272.0 b>a A 1 ack 2001 sack 1001-2001 3001-4001 ts 262/236
         273.0 b>a A 1 ack 2001 sack 3001-4001 ts 263/236    # for 2001:3001
         274.0 a>b A 2001:3001 ack 1 ts 274/263
         294.0 b>a A 1 ack 4001 ts 284/274
        2101.0 a>b A 4001:5001 ack 1 ts 2101/284    # lost
        2102.0 a>b A 5001:6001 ack 1 ts 2102/284    # lost
        2103.0 a>b A 6001:7001 ack 1 ts 2103/284
        2203.0 b>a A 1 ack 4001 sack 6001-7001 ts 2153/274
        2230.0 a>b A 7001:8001 ack 1 ts 2230/2153
        2231.0 a>b A 8001:9001 ack 1 ts 2231/2153
        2251.0 a>b A 4001:5001 ack 1 ts 2251/2153
        2271.0 b>a A 1 ack 5001 sack 6001-7001 ts 2261/2251
        {second}"
    ))
}

#[test]
fn what_is_overtaken_in_one_flight_decides_nothing_in_another() {
    let outcome = shorter_twice(
        "2290.0 b>a A 1 ack 5001 sack 6001-7001 ts 2280/2251    # for 7001:8001
         2300.0 a>b A 5001:6001 ack 1 ts 2300/2280
         2320.0 b>a A 1 ack 7001 ts 2310/2300
         2320.1 a>b A 7001:8001 ack 1 ts 2320/2310
         2320.2 a>b A 8001:9001 ack 1 ts 2320/2310
         2340.1 b>a A 1 ack 8001 ts 2330/2320
         2340.2 b>a A 1 ack 9001 ts 2330/2320",
    );
    let of = |kind: EventKind| {
        let events = outcome.events.iter().filter(|event| event.kind == kind);
        events.map(|event| event.seq_start).collect::<Vec<_>>()
    };
    assert_eq!(
        (of(EventKind::Loss), of(EventKind::Undecided)),
        (vec![Some(4001), Some(5001)], vec![Some(8001)]),
        "5001:6001 was sent a round trip before the path became shorter"
    );
    assert!(
        outcome
            .evidence(EventKind::Undecided, 21)
            .starts_with("it may have arrived late: record 24 reports nothing new")
    );
}

#[test]
fn an_empty_ack_after_a_retransmission_that_no_ack_echoes_may_answer_a_duplicate() {
    // The path has not changed: 2001:3001 is lost, and its retransmission too. 1001:2001 arrives late, so that its
    // retransmission is a duplicate, which this receiver does not report.
    run("  0.0 a>b S  0 mss 1000 sackok ts 0/0
         100.0 b>a SA 0 ack 1 mss 1000 sackok ts 50/0
         100.1 a>b A  1 ack 1 ts 100/50
         110.0 a>b A 1:1001    ack 1 ts 110/50
         111.0 a>b A 1001:2001 ack 1 ts 111/50
         112.0 a>b A 2001:3001 ack 1 ts 112/50
         113.0 a>b A 3001:4001 ack 1 ts 113/50
         213.0 b>a A 1 ack 1 sack 3001-4001 ts 163/0
         213.1 a>b A 1:1001    ack 1 ts 213/163
         213.2 a>b A 1001:2001 ack 1 ts 214/163
         213.3 a>b A 2001:3001 ack 1 ts 214/163
         240.0 b>a A 1 ack 1 sack 1001-2001 3001-4001 ts 190/0
         313.1 b>a A 1 ack 2001 sack 3001-4001 ts 263/213
         313.2 b>a A 1 ack 2001 sack 3001-4001 ts 263/213
         413.4 a>b A 2001:3001 ack 1 ts 413/263
         513.4 b>a A 1 ack 4001 ts 463/413")
    .assert_events(
        "110 loss unknown #4 1:1001
         112 loss unknown #6 2001:3001
         213.1 retransmission fast #9 1:1001
         213.1-513.4 recovery fast #9 1:4001
         213.2 retransmission spurious #10 1001:2001
         213.2 undecided unknown #10 1001:2001
         213.3 loss unknown #11 2001:3001
         213.3 retransmission fast #11 2001:3001
         413.4 retransmission fast #15 2001:3001",
    );
}

#[test]
fn an_original_is_discarded_after_a_sack_block_reported_its_retransmission() {
    // From 215 on the round trip takes 20 ms, and not 100 ms. The retransmission of 3001:4001 arrives before the
    // original, which is the second that the receiver discards. 7001:8001 is lost.
    let outcome = run("  0.0 a>b S  0 mss 1000 sackok ts 0/0
         100.0 b>a SA 0 ack 1 mss 1000 sackok ts 50/0
         100.1 a>b A  1 ack 1 ts 100/50
         110.0 a>b A 1:1001    ack 1 ts 110/50
         210.0 b>a A 1 ack 1001 ts 160/110
         212.0 a>b A 1001:2001 ack 1 ts 212/160
         213.0 a>b A 2001:3001 ack 1 ts 213/160
         214.0 a>b A 3001:4001 ack 1 ts 214/160
         216.0 a>b A 4001:5001 ack 1 ts 216/160
         217.0 a>b A 5001:6001 ack 1 ts 217/160
         218.0 a>b A 6001:7001 ack 1 ts 218/160
         219.0 a>b A 7001:8001 ack 1 ts 219/160    # lost
         236.0 b>a A 1 ack 1001 sack 4001-5001 ts 226/110
         237.0 b>a A 1 ack 1001 sack 4001-6001 ts 227/110
         238.0 b>a A 1 ack 1001 sack 4001-7001 ts 228/110
         238.1 a>b A 1001:2001 ack 1 ts 238/228
         250.0 a>b A 3001:4001 ack 1 ts 250/228
         258.1 b>a A 1 ack 2001 sack 4001-7001 ts 248/238
         265.0 a>b A 2001:3001 ack 1 ts 265/248
         270.0 b>a A 1 ack 2001 sack 3001-7001 ts 260/238
         272.0 b>a A 1 ack 2001 sack 1001-2001 3001-7001 ts 262/238
         273.0 b>a A 1 ack 2001 sack 3001-7001 ts 263/238
         274.0 b>a A 1 ack 2001 sack 3001-7001 ts 264/238
         285.0 b>a A 1 ack 7001 ts 275/265
         290.0 a>b A 7001:8001 ack 1 ts 290/275
         310.0 b>a A 1 ack 8001 ts 300/290");
    let of = |kind: EventKind| {
        let events = outcome.events.iter().filter(|event| event.kind == kind);
        events.map(|event| event.seq_start).collect::<Vec<_>>()
    };
    assert_eq!(of(EventKind::Loss), []);
    assert_eq!(
        of(EventKind::Undecided),
        [Some(7001)],
        "the ACK of another segment may hide the answer to it"
    );
}
