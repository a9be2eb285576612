//! Captures at the receiver: original transmissions that arrive after their retransmissions. `support/mod.rs` explains the
//! notation.

mod support;

use hindflight_flows::{Event, EventKind};
use support::{Outcome, losses, run};

/// Two segments arrive after their retransmissions, on a path that became shorter, if their timestamps are `older`.
fn arrived_after_retransmissions(older: (u32, u32)) -> Outcome {
    run(&format!(
        "  0.00 a>b S  0 mss 1000 sackok ts 1/0
           0.05 b>a SA 0 ack 1 mss 1000 sackok ts 501/1
         100.00 a>b A  1 ack 1 ts 101/501
         110.00 a>b A 1:1001    ack 1 ts 110/501
         110.02 b>a A 1 ack 1001 ts 611/110
         111.00 a>b A 3001:4001 ack 1 ts 180/501
         111.02 b>a A 1 ack 1001 sack 3001-4001 ts 612/110
         111.20 a>b A 4001:5001 ack 1 ts 181/501
         111.22 b>a A 1 ack 1001 sack 3001-5001 ts 612/110
         111.40 a>b A 5001:6001 ack 1 ts 182/501
         111.42 b>a A 1 ack 1001 sack 3001-6001 ts 612/110
         131.00 a>b A 1001:2001 ack 1 ts 200/612
         131.02 b>a A 1 ack 2001 sack 3001-6001 ts 632/200
         131.20 a>b A 2001:3001 ack 1 ts 201/612
         131.22 b>a A 1 ack 6001 ts 632/201
         140.00 a>b A 1001:2001 ack 1 ts {}/501
         140.02 b>a A 1 ack 6001 sack 1001-2001 ts 641/201
         141.00 a>b A 2001:3001 ack 1 ts {}/501
         141.02 b>a A 1 ack 6001 sack 2001-3001 ts 642/201",
        older.0, older.1
    ))
}

#[test]
fn an_original_that_its_retransmission_overtook_was_not_lost() {
    let outcome = arrived_after_retransmissions((111, 112));
    assert_eq!(losses(&outcome), []);
    let spurious = |event: &&Event| event.spurious == Some(true);
    let spurious = outcome.events.iter().filter(spurious);
    let mut records: Vec<_> = spurious.filter_map(|event| event.record).collect();
    records.sort_unstable();
    assert_eq!(records, [12, 14]);
    assert!(
        outcome
            .evidence(EventKind::Reordering, 16)
            .starts_with("record 12, a retransmission")
    );
    let later = arrived_after_retransmissions((210, 211));
    assert_eq!(
        losses(&later),
        [(Some(1001), Some(1), None), (Some(2001), Some(1), None)],
        "sent after the retransmissions, so repetitions"
    );
}

#[test]
fn a_loss_counts_once_if_the_segment_is_repeated_after_a_sack_block_reported_it() {
    let outcome = run("  0.00 a>b S  0 mss 1000 sackok ts 1/0
           0.05 b>a SA 0 ack 1 mss 1000 sackok ts 501/1
         100.00 a>b A  1 ack 1 ts 101/501
         110.00 a>b A 1:1001    ack 1 ts 110/501
         110.02 b>a A 1 ack 1001 ts 611/110
         111.00 a>b A 3001:4001 ack 1 ts 111/501      # 1001:3001 was lost
         111.02 b>a A 1 ack 1001 sack 3001-4001 ts 612/110
         211.00 a>b A 2001:3001 ack 1 ts 211/612
         211.02 b>a A 1 ack 1001 sack 2001-4001 ts 712/110
         311.00 a>b A 2001:3001 ack 1 ts 311/712
         311.02 b>a A 1 ack 1001 sack 2001-3001 2001-4001 ts 812/110
         411.00 a>b A 1001:2001 ack 1 ts 411/812
         411.02 b>a A 1 ack 4001 ts 912/411");
    let of_second = losses(&outcome)
        .into_iter()
        .filter(|row| row.0 == Some(2001));
    assert_eq!(of_second.collect::<Vec<_>>(), [(Some(2001), Some(1), None)]);
}
