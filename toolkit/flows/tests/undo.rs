//! Timeouts and recoveries that DSACKs, or SACKs of what was never retransmitted, undo, and timeouts after which fast
//! recovery begins. `support/mod.rs` explains the notation.

mod support;

use hindflight_flows::{EventKind, Mechanism};
use support::{Outcome, after_handshake, run};

/// The mechanism of each retransmission.
fn mechanisms(outcome: &Outcome) -> Vec<Option<Mechanism>> {
    let events = outcome.events.iter();
    let repeated = events.filter(|event| event.kind == EventKind::Retransmission);
    repeated.map(|event| event.mechanism).collect()
}

#[test]
fn a_timeout_of_which_dsacks_report_all_retransmissions_is_undone() {
    // The first segment arrived, and its ACK was lost with the others. What follows is lost, as the echo shows.
    let outcome = |dsack: &str| {
        run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1 ts 110/501
             111.00 a>b A 1001:2001 ack 1 ts 111/501    # lost
             112.00 a>b A 2001:3001 ack 1 ts 112/501    # lost
             620.00 a>b A 1:1001    ack 1 ts 620/501
             720.00 b>a A 1 ack 1001 ts 1121/620 {dsack}
             720.01 a>b A 1001:2001 ack 1 ts 720/1121
             720.02 a>b A 2001:3001 ack 1 ts 720/1121
             820.02 b>a A 1 ack 3001 ts 1221/720"
        )))
    };
    let [rto, after, sack] = [Mechanism::Rto, Mechanism::AfterRto, Mechanism::Sack].map(Some);
    assert_eq!(mechanisms(&outcome("sack 1-1001")), [rto, sack, sack]);
    assert_eq!(mechanisms(&outcome("")), [rto, after, after]);
}

#[test]
fn an_ack_far_above_all_that_was_sent_undoes_no_timeout() {
    // The ACK of the first segment was late. The DSACK of its retransmission acknowledges nothing new.
    let last = |acks: &str| {
        let outcome = run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1
             110.01 a>b A 1001:2001 ack 1    # lost
             110.02 a>b A 2001:3001 ack 1    # lost
             420.00 a>b A 1:1001    ack 1
             425.00 b>a A 1 ack 1001
             425.01 a>b A 3001:4001 ack 1
             520.00 b>a A 1 ack 1001 sack 1-1001
             525.01 b>a A 1 ack 1001 sack 3001-4001
             {acks}
             526.01 a>b A 1001:2001 ack 1
             626.01 b>a A 1 ack 2001 sack 3001-4001"
        )));
        mechanisms(&outcome).last().copied().flatten()
    };
    assert_eq!(last(""), Some(Mechanism::AfterRto));
    let far = "526.00 b>a A 1 ack 1200000000";
    assert_eq!(last(far), Some(Mechanism::AfterRto));
}

#[test]
fn a_timeout_is_undone_when_dsacks_report_all_segments_of_offloaded_records() {
    // Each record has two segments. The first and second arrived, and their ACKs were lost. The third is lost.
    let last = |dsack: &str| {
        let outcome = run(&after_handshake(&format!(
            "110.00 a>b A 1:2001    ack 1 ts 110/501
             111.00 a>b A 2001:4001 ack 1 ts 111/501
             112.00 a>b A 4001:6001 ack 1 ts 112/501    # lost
             620.00 a>b A 1:2001    ack 1 ts 620/501
             621.00 a>b A 2001:4001 ack 1 ts 621/501
             720.00 b>a A 1 ack 4001 ts 1121/620 {dsack}
             720.01 a>b A 4001:6001 ack 1 ts 720/1121
             820.01 b>a A 1 ack 6001 ts 1221/720"
        )));
        mechanisms(&outcome).last().copied().flatten()
    };
    assert_eq!(last("sack 1-2001"), Some(Mechanism::AfterRto));
    assert_eq!(last("sack 1-4001"), Some(Mechanism::Sack));
}

#[test]
fn a_timeout_in_fast_recovery_counts_the_retransmissions_before_it() {
    // The retransmission of the first segment, which was lost, comes before 4001:5001, whose ACK is lost.
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1 ts 110/501    # lost
         110.01 a>b A 1001:2001 ack 1 ts 110/501
         110.02 a>b A 2001:3001 ack 1 ts 110/501
         110.03 a>b A 3001:4001 ack 1 ts 110/501
         205.00 a>b A 4001:5001 ack 1 ts 205/501
         205.01 a>b A 5001:6001 ack 1 ts 205/501    # lost
         210.01 b>a A 1 ack 1 sack 1001-2001 ts 611/101
         210.02 b>a A 1 ack 1 sack 1001-3001 ts 611/101
         210.03 b>a A 1 ack 1 sack 1001-4001 ts 611/101
         210.04 a>b A 1:1001    ack 1 ts 210/611
         300.04 b>a A 1 ack 4001 ts 701/210
        1200.00 a>b A 4001:5001 ack 1 ts 1200/701
        1300.00 b>a A 1 ack 5001 sack 4001-5001 ts 1701/1200
        1300.01 a>b A 5001:6001 ack 1 ts 1300/1701
        1400.01 b>a A 1 ack 6001 ts 1801/1300",
    ));
    let [rto, after, sack] = [Mechanism::Rto, Mechanism::AfterRto, Mechanism::Sack].map(Some);
    assert_eq!(mechanisms(&outcome), [sack, rto, after]);
}

#[test]
fn a_timeout_is_undone_when_a_sack_reports_what_was_sent_before_it() {
    // The ACK acknowledges nothing new: the first two segments are lost.
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1    # lost
         110.01 a>b A 1001:2001 ack 1    # lost
         110.02 a>b A 2001:3001 ack 1
         420.00 a>b A 1:1001    ack 1
         430.00 b>a A 1 ack 1 sack 2001-3001
         430.01 a>b A 1001:2001 ack 1
         530.01 b>a A 1 ack 3001",
    ));
    let [rto, sack] = [Mechanism::Rto, Mechanism::Sack].map(Some);
    assert_eq!(mechanisms(&outcome), [rto, sack]);
}

#[test]
fn no_sack_undoes_a_timeout_in_a_recovery_whose_retransmission_a_full_window_held() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1    # lost
         110.01 a>b A 1001:2001 ack 1    # lost
         110.02 a>b A 2001:3001 ack 1
         110.03 a>b A 3001:4001 ack 1
         210.02 b>a A 1 ack 1 sack 2001-3001
         420.00 a>b A 1:1001    ack 1
         430.00 b>a A 1 ack 1 sack 2001-4001
         430.01 a>b A 1001:2001 ack 1
         530.01 b>a A 1 ack 4001",
    ));
    let [rto, after] = [Mechanism::Rto, Mechanism::AfterRto].map(Some);
    assert_eq!(mechanisms(&outcome), [rto, after]);
}

#[test]
fn recovery_begins_with_one_sack_if_the_oldest_segment_is_older_than_the_reordering_window() {
    // RACK.rtt is 100 ms: 1:1001 is lost as soon as the ACK of 400 ms arrives, 10 ms before its timer expires.
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1    # lost
         110.01 a>b A 1001:2001 ack 1    # lost
         110.02 a>b A 2001:3001 ack 1
         300.00 a>b A 3001:4001 ack 1
         400.00 b>a A 1 ack 1 sack 3001-4001
         420.00 a>b A 1:1001    ack 1
         430.00 b>a A 1 ack 1 sack 2001-4001
         430.01 a>b A 1001:2001 ack 1
         530.01 b>a A 1 ack 4001",
    ));
    let [rto, after] = [Mechanism::Rto, Mechanism::AfterRto].map(Some);
    assert_eq!(mechanisms(&outcome), [rto, after]);
}

#[test]
fn a_retransmission_that_is_lost_after_a_timeout_starts_fast_recovery() {
    let mechanisms = |after_timeout: &str| {
        mechanisms(&run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1    # lost
             110.01 a>b A 1001:2001 ack 1    # lost
             110.02 a>b A 2001:3001 ack 1    # lost
             420.00 a>b A 1:1001    ack 1
             520.00 b>a A 1 ack 1001
             {after_timeout}"
        ))))
    };
    let [rto, after, sack] = [Mechanism::Rto, Mechanism::AfterRto, Mechanism::Sack].map(Some);
    let retransmission = "
         520.01 a>b A 1001:2001 ack 1    # lost
         520.02 a>b A 2001:3001 ack 1
         620.02 b>a A 1 ack 1001 sack 2001-3001
         620.03 a>b A 1001:2001 ack 1
         720.03 b>a A 1 ack 3001";
    assert_eq!(mechanisms(retransmission), [rto, after, after, sack]);
    let new_data = "
         520.01 a>b A 3001:4001 ack 1    # lost
         520.02 a>b A 4001:5001 ack 1
         620.02 b>a A 1 ack 1001 sack 4001-5001
         620.03 a>b A 1001:2001 ack 1
         620.04 a>b A 2001:3001 ack 1
         620.05 a>b A 3001:4001 ack 1
         720.05 b>a A 1 ack 5001";
    assert_eq!(mechanisms(new_data), [rto, after, after, after]);
}

#[test]
fn a_retransmission_that_a_timeout_leaves_out_starts_fast_recovery_if_it_is_lost() {
    // The first hole is repeated at 210 ms, the second one at `ms`, before the timeout; both are lost again.
    let mechanisms = |ms: u32, rest: &str| {
        mechanisms(&run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1    # lost
             110.01 a>b A 1001:2001 ack 1    # lost
             110.02 a>b A 2001:3001 ack 1    # lost
             110.03 a>b A 3001:4001 ack 1
             110.04 a>b A 4001:5001 ack 1
             110.05 a>b A 5001:6001 ack 1
             210.05 b>a A 1 ack 1 sack 3001-6001
             210.06 a>b A 1:1001    ack 1    # lost
             {ms}.07 a>b A 1001:2001 ack 1    # lost
             520.00 a>b A 1:1001    ack 1
             {rest}"
        ))))
    };
    let [rto, after, sack] = [Mechanism::Rto, Mechanism::AfterRto, Mechanism::Sack].map(Some);
    let in_order = "620.00 b>a A 1 ack 1001 sack 3001-6001
             620.01 a>b A 1001:2001 ack 1
             620.02 a>b A 2001:3001 ack 1
             720.01 b>a A 1 ack 6001";
    assert_eq!(
        mechanisms(500, in_order),
        [sack, rto, sack, after, after],
        "the sender repeats all in order"
    );
    let left_out = "620.00 b>a A 1 ack 1001 sack 3001-6001
             620.01 a>b A 2001:3001 ack 1
             720.01 b>a A 1 ack 1001 sack 2001-6001
             720.02 a>b A 1001:2001 ack 1
             820.02 b>a A 1 ack 6001";
    assert_eq!(mechanisms(500, left_out), [sack, rto, after, sack, sack]);
    assert_eq!(
        mechanisms(210, left_out),
        [sack, rto, after, sack, after],
        "over a round trip old, so that the timer took it for lost"
    );
}
