//! Captures at the receiver: losses before the capture point. `support/mod.rs` explains the notation.

mod support;

use hindflight_flows::{EventKind, Vantage};
use support::{Outcome, run};

/// Sequence number, copy and record of each loss.
fn losses(outcome: &Outcome) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let mut rows: Vec<_> = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Loss)
        .map(|event| (event.seq_start, event.copy, event.record))
        .collect();
    rows.sort_unstable();
    rows
}

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
