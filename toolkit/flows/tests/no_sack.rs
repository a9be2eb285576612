//! Flows without SACK, timeouts that are spurious, and timeouts at a handover. `support/mod.rs` explains the notation.

mod support;

use hindflight_flows::{EventKind, Mechanism};
use support::{HANDSHAKE_WITHOUT_SACK, Outcome, losses, run};

fn mechanisms(outcome: &Outcome) -> Vec<(Option<u64>, Option<Mechanism>, Option<bool>)> {
    let mut rows: Vec<_> = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Retransmission)
        .map(|event| (event.record, event.mechanism, event.spurious))
        .collect();
    rows.sort_by_key(|row| row.0);
    rows
}

fn lost_records(outcome: &Outcome) -> Vec<Option<u64>> {
    losses(outcome).into_iter().map(|row| row.2).collect()
}

/// Every second segment is lost, and the timeout repeats them all; the last one leaves at `last_ms`.
fn every_second_lost(last_ms: &str, answered_ms: &str) -> Outcome {
    run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1           # lost
         110.03 a>b A 3001:4001 ack 1
         210.01 b>a A 1 ack 1
         210.03 b>a A 1 ack 1
         415.00 a>b A 1:1001    ack 1
         515.00 b>a A 1 ack 2001                # jumps over 1001:2001
         515.01 a>b A 2001:3001 ack 1
         {last_ms} a>b A 3001:4001 ack 1
         615.01 b>a A 1 ack 4001                # jumps over 3001:4001
         {answered_ms} b>a A 1 ack 4001"
    ))
}

#[test]
fn a_jump_of_the_ack_shows_what_had_arrived() {
    let outcome = every_second_lost("560.00", "660.00");
    outcome.assert_events(
        "110 loss unknown #4 1:1001
         110.02 loss unknown #6 2001:3001
         415 retransmission rto #10 1:1001
         415 rto rto #10 1:1001
         515.01 retransmission rto #12 2001:3001
         560 retransmission spurious #13 3001:4001
         560 undecided unknown #13 3001:4001",
    );
    assert_eq!(
        mechanisms(&outcome),
        [
            (Some(10), Some(Mechanism::Rto), Some(false)),
            (Some(12), Some(Mechanism::AfterRto), Some(false)),
            (Some(13), Some(Mechanism::AfterRto), Some(true)),
        ]
    );
}

#[test]
fn a_jump_over_what_may_have_arrived_twice_decides_nothing() {
    let outcome = every_second_lost("515.02", "615.02");
    outcome.assert_events(
        "110 loss unknown #4 1:1001
         110.02 loss unknown #6 2001:3001
         110.03 undecided unknown #7 3001:4001
         415 retransmission rto #10 1:1001
         415 rto rto #10 1:1001
         515.01 retransmission rto #12 2001:3001
         515.02 retransmission rto #13 3001:4001
         515.02 undecided unknown #13 3001:4001",
    );
    let last = (Some(13), Some(Mechanism::AfterRto), None);
    assert_eq!(mechanisms(&outcome).last(), Some(&last));
}

/// Two segments of four wait for the second. All three are repeated, and the next ACK covers them.
fn two_wait(echo: u32) -> Outcome {
    run(&format!(
        "  0.00 a>b S  0 mss 1000 ts 0/0
         100.00 b>a SA 0 ack 1 mss 1000 ts 500/0
         100.01 a>b A  1 ack 1 ts 100/500
         110.00 a>b A 1:1001    ack 1 ts 110/500
         111.00 a>b A 1001:2001 ack 1 ts 111/500    # lost
         112.00 a>b A 2001:3001 ack 1 ts 112/500
         113.00 a>b A 3001:4001 ack 1 ts 113/500
         210.00 b>a A 1 ack 1001 ts 610/110
         212.00 b>a A 1 ack 1001 ts 612/110
         213.00 b>a A 1 ack 1001 ts 613/110
         620.00 a>b A 1001:2001 ack 1 ts 620/613
         621.00 a>b A 2001:3001 ack 1 ts 621/613
         622.00 a>b A 3001:4001 ack 1 ts 622/613
         722.00 b>a A 1 ack 4001 ts 1120/{echo}"
    ))
}

#[test]
fn the_echo_of_what_filled_the_hole_shows_that_the_rest_had_arrived() {
    let spurious = |echo| mechanisms(&two_wait(echo)).into_iter().map(|row| row.2);
    let both: Vec<_> = spurious(620).collect();
    assert_eq!(both, [Some(false), Some(true), Some(true)]);
    assert_eq!(lost_records(&two_wait(620)), [Some(5)]);
    let larger: Vec<_> = spurious(621).collect();
    assert_eq!(larger[1], Some(false), "the hole had two segments");
}

#[test]
fn duplicates_on_their_way_at_the_end_of_a_flight_do_not_show_a_hole_in_the_next() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1
         110.03 a>b A 3001:4001 ack 1
         210.01 b>a A 1 ack 1
         210.02 b>a A 1 ack 1
         210.03 b>a A 1 ack 1
         210.04 a>b A 1:1001    ack 1
         275.00 a>b A 1001:2001 ack 1           # duplicates
         275.01 a>b A 2001:3001 ack 1
         275.02 a>b A 3001:4001 ack 1
         310.04 b>a A 1 ack 4001
         310.05 a>b A 4001:5001 ack 1
         310.06 a>b A 5001:6001 ack 1
         375.00 b>a A 1 ack 4001                # of the duplicates
         375.01 b>a A 1 ack 4001
         375.02 b>a A 1 ack 4001
         375.03 a>b A 4001:5001 ack 1
         410.05 b>a A 1 ack 5001
         410.06 a>b A 5001:6001 ack 1
         410.07 b>a A 1 ack 6001"
    ));
    assert_eq!(lost_records(&outcome), [Some(4)]);
}

#[test]
fn a_delayed_ack_of_two_retransmissions_is_not_a_jump() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # all lost: no duplicate ACK
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1
         415.00 a>b A 1:1001    ack 1
         515.00 b>a A 1 ack 1001
         515.01 a>b A 1001:2001 ack 1
         515.02 a>b A 2001:3001 ack 1
         615.02 b>a A 1 ack 3001"
    ));
    assert_eq!(losses(&outcome).len(), 3);
    assert!(mechanisms(&outcome).iter().all(|row| row.2 == Some(false)));
}

#[test]
fn the_end_of_a_capture_shows_nothing_above_the_first_hole() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1           # lost
         110.02 a>b A 2001:3001 ack 1
         110.03 a>b A 3001:4001 ack 1
         110.04 a>b A 4001:5001 ack 1
         210.02 b>a A 1 ack 1
         210.03 b>a A 1 ack 1
         210.04 b>a A 1 ack 1
         210.05 a>b A 1:1001    ack 1
         310.05 b>a A 1 ack 1001"
    ));
    assert_eq!(lost_records(&outcome), [Some(4), Some(5)]);
}

#[test]
fn a_timer_that_expires_with_the_arrival_of_a_late_duplicate_ack_is_a_timeout() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1
         155.00 a>b A 2001:3001 ack 1
         200.00 a>b A 3001:4001 ack 1
         245.00 a>b A 4001:5001 ack 1
         290.00 a>b A 5001:6001 ack 1
         255.00 b>a A 1 ack 1
         300.00 b>a A 1 ack 1
         345.00 b>a A 1 ack 1
         390.00 b>a A 1 ack 1
         435.00 b>a A 1 ack 1
         435.01 a>b A 1:1001 ack 1"
    ));
    assert_eq!(mechanisms(&outcome)[0].1, Some(Mechanism::Rto));
}

#[test]
fn a_timeout_that_f_rto_finds_spurious_ends_at_once() {
    let outcome = run("  0.00 a>b S  0 mss 1000 sackok
         100.00 b>a SA 0 ack 1 mss 1000 sackok
         100.01 a>b A  1 ack 1
         110.00 a>b A 1:1001    ack 1
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1           # lost
         110.03 a>b A 3001:4001 ack 1
         415.00 a>b A 1:1001    ack 1           # the path was slower for a while
         450.00 b>a A 1 ack 2001                # acknowledges data never retransmitted
         450.01 a>b A 4001:5001 ack 1           # new data, not a retransmission
         455.00 b>a A 1 ack 2001 sack 3001-4001
         480.10 a>b A 2001:3001 ack 1           # the reordering window is 25 ms
         550.01 b>a A 1 ack 2001 sack 3001-5001
         580.10 b>a A 1 ack 5001");
    let rows = mechanisms(&outcome);
    assert_eq!(rows[0].1, Some(Mechanism::Rto));
    assert_eq!(rows[1].1, Some(Mechanism::Sack));
}

#[test]
fn a_retransmission_over_a_shorter_path_is_not_spurious() {
    let outcome = run("   0.00 a>b S  0 mss 1000 sackok ts 1/0
          500.00 b>a SA 0 ack 1 mss 1000 sackok ts 9001/1
          500.01 a>b A  1 ack 1 ts 501/9001
          510.00 a>b A 1:1001    ack 1 ts 511/9001
         1010.00 b>a A 1 ack 1001 ts 9511/511
         1010.01 a>b A 1001:2001 ack 1 ts 1011/9511   # lost in the handover
         2600.00 a>b A 1001:2001 ack 1 ts 2601/9511
         2650.00 b>a A 1 ack 2001 ts 11101/2601       # 50 ms later: the new path is shorter");
    outcome.assert_events(
        "1010.01 loss unknown #6 1001:2001
         2600 retransmission probe #7 1001:2001",
    );
    assert_eq!(outcome.flows[0].directions[0].rtt_min_ns, Some(50_000_000));
}

#[test]
fn a_retransmission_long_before_the_timeout_is_none() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1
         210.01 b>a A 1 ack 1
         240.00 a>b A 1:1001    ack 1           # not a timeout: the RTO is about 300 ms
         340.00 b>a A 1 ack 3001"
    ));
    assert_eq!(outcome.flows[0].directions[0].rtos, 0);
}

#[test]
fn two_retransmissions_without_an_ack_between_are_not_a_timeout() {
    let outcome = run("  0.00 a>b S  0 mss 1000 sackok
         100.00 b>a SA 0 ack 1 mss 1000 sackok
         100.01 a>b A  1 ack 1
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1           # lost
         110.02 a>b A 2001:3001 ack 1
         210.02 b>a A 1 ack 1 sack 2001-3001
         600.00 a>b A 1:1001    ack 1
         600.10 a>b A 1001:2001 ack 1
         700.00 b>a A 1 ack 1001 sack 2001-3001
         700.10 b>a A 1 ack 3001");
    assert_eq!(outcome.flows[0].directions[0].rtos, 0);
    assert!(
        mechanisms(&outcome)
            .iter()
            .all(|row| row.1 == Some(Mechanism::Sack))
    );
}

/// Two of four segments are lost while the path becomes shorter; the ACK at `repaired_ms` follows the retransmission.
const HOLES_OF_A_SHORTER_PATH: &str = "
     110.00 a>b A 1:1001    ack 1           # lost
     110.01 a>b A 1001:2001 ack 1           # lost
     110.02 a>b A 2001:3001 ack 1
     110.03 a>b A 3001:4001 ack 1
     110.04 a>b A 4001:5001 ack 1
     140.02 b>a A 1 ack 1
     140.03 b>a A 1 ack 1
     140.04 b>a A 1 ack 1
     140.05 a>b A 1:1001    ack 1";

#[test]
fn a_hole_that_duplicate_acks_show_was_lost_though_the_path_became_shorter() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK} {HOLES_OF_A_SHORTER_PATH}
         170.05 b>a A 1 ack 1001                # RFC 6582: a partial ACK
         170.06 a>b A 1001:2001 ack 1
         200.06 b>a A 1 ack 5001
         200.07 a>b A 5001:6001 ack 1
         230.07 b>a A 1 ack 6001                # no retransmission: the path is shorter"
    ));
    assert_eq!(
        mechanisms(&outcome),
        [
            (Some(12), Some(Mechanism::Fast), Some(false)),
            (Some(14), Some(Mechanism::Fast), Some(false)),
        ]
    );
}

#[test]
fn an_echo_shows_a_late_original_against_duplicate_acks() {
    let outcome = run("   0.00 a>b S  0 mss 1000 ts 1/0
         100.00 b>a SA 0 ack 1 mss 1000 ts 9001/1
         100.01 a>b A  1 ack 1 ts 101/9001
         110.00 a>b A 1:1001    ack 1 ts 111/9001
         110.01 a>b A 1001:2001 ack 1 ts 111/9001
         110.02 a>b A 2001:3001 ack 1 ts 111/9001
         110.03 a>b A 3001:4001 ack 1 ts 111/9001
         110.04 a>b A 4001:5001 ack 1 ts 111/9001
         210.02 b>a A 1 ack 1 ts 9111/101
         210.03 b>a A 1 ack 1 ts 9111/101
         210.04 b>a A 1 ack 1 ts 9111/101
         210.05 a>b A 1:1001    ack 1 ts 211/9111
         211.00 b>a A 1 ack 1001 ts 9112/111      # the original, late
         211.10 b>a A 1 ack 5001 ts 9112/111
         220.00 a>b A 5001:6001 ack 1 ts 221/9112
         320.00 b>a A 1 ack 6001 ts 9221/221");
    let spurious: Vec<_> = mechanisms(&outcome).iter().map(|row| row.2).collect();
    assert_eq!((losses(&outcome), spurious), (vec![], vec![Some(true)]));
}

#[test]
fn duplicate_acks_alone_do_not_show_that_the_path_became_shorter() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK} {HOLES_OF_A_SHORTER_PATH}
         140.06 b>a A 1 ack 1001                # sooner than any RTT, and yet a partial ACK
         170.06 a>b A 1001:2001 ack 1
         170.07 b>a A 1 ack 5001
         170.08 a>b A 5001:6001 ack 1
         270.08 b>a A 1 ack 6001                # the path is as long as before"
    ));
    assert_eq!(losses(&outcome), []);
    let spurious: Vec<_> = mechanisms(&outcome).iter().map(|row| row.2).collect();
    assert_eq!(spurious, [None, Some(true)]);
    assert_eq!(outcome.flows[0].directions[0].rtt_min_ns, Some(100_000_000));
}

#[test]
fn an_early_ack_of_all_that_waited_is_reordering() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK} {HOLES_OF_A_SHORTER_PATH}
         140.06 b>a A 1 ack 5001"
    ));
    let spurious: Vec<_> = mechanisms(&outcome).iter().map(|row| row.2).collect();
    assert_eq!(spurious, [Some(true)]);
}

#[test]
fn what_waits_above_the_next_hole_shows_it_too() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1           # lost
         110.02 a>b A 2001:3001 ack 1           # lost
         110.03 a>b A 3001:4001 ack 1
         110.04 a>b A 4001:5001 ack 1
         110.05 a>b A 5001:6001 ack 1
         140.03 b>a A 1 ack 1
         140.04 b>a A 1 ack 1
         140.05 b>a A 1 ack 1
         140.06 a>b A 1:1001    ack 1           # lost
         640.00 a>b A 1:1001    ack 1
         670.00 b>a A 1 ack 1001
         670.01 a>b A 1001:2001 ack 1
         700.01 b>a A 1 ack 2001
         700.02 a>b A 2001:3001 ack 1
         730.02 b>a A 1 ack 6001
         730.03 a>b A 6001:7001 ack 1
         760.03 b>a A 1 ack 7001"
    ));
    outcome.assert_events(
        "110 loss unknown #4 1:1001
         110.01 loss unknown #5 1001:2001
         110.02 loss unknown #6 2001:3001
         140.06 loss unknown #13 1:1001
         140.06 retransmission fast #13 1:1001
         140.06-640 recovery fast #13 1:6001
         640 retransmission rto #14 1:1001
         640 rto rto #14 1:1001
         670.01 retransmission rto #16 1001:2001
         700.02 retransmission rto #18 2001:3001",
    );
}

/// The mechanism of the retransmission in `record`.
fn mechanism_of(outcome: &Outcome, record: u64) -> Option<Mechanism> {
    let found = mechanisms(outcome)
        .into_iter()
        .find(|row| row.0 == Some(record));
    found.and_then(|row| row.1)
}

#[test]
fn duplicate_acks_that_remain_after_an_undo_start_another_recovery() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1 ts 10/1
         110.01 a>b A 1001:2001 ack 1 ts 10/1
         110.02 a>b A 2001:3001 ack 1 ts 10/1
         210.00 b>a A 1 ack 1 ts 2/1            # of segments that had been repeated before
         210.01 b>a A 1 ack 1 ts 2/1
         210.02 b>a A 1 ack 1 ts 2/1
         210.03 a>b A 1:1001    ack 1 ts 20/2
         210.04 b>a A 1 ack 1 ts 2/1
         210.05 b>a A 1 ack 1 ts 2/1
         215.00 b>a A 1 ack 1001 ts 3/10        # the original: undone
         215.01 a>b A 1001:2001 ack 1 ts 25/3"
    ));
    assert_eq!(mechanism_of(&outcome, 14), Some(Mechanism::Fast));
}

#[test]
fn a_sender_that_goes_on_with_new_data_had_no_timeout() {
    let late_duplicates = |then: &str| {
        run(&format!(
            "{HANDSHAKE_WITHOUT_SACK}
             110.00 a>b A 1:1001    ack 1
             110.01 a>b A 1001:2001 ack 1           # lost
             110.02 a>b A 2001:3001 ack 1
             210.00 b>a A 1 ack 1001
             210.02 b>a A 1 ack 1001
             210.03 a>b A 3001:4001 ack 1
             310.03 b>a A 1 ack 1001
             310.04 a>b A 4001:5001 ack 1
             410.04 b>a A 1 ack 1001
             410.05 a>b A 5001:6001 ack 1
             510.05 b>a A 1 ack 1001
             510.06 a>b A 1001:2001 ack 1           # after an RTO, or after more duplicate ACKs than usual
             511.00 b>a A 1 ack 1001
             {then}
             610.06 b>a A 1 ack 6001"
        ))
    };
    let new_data = late_duplicates("511.01 a>b A 6001:7001 ack 1");
    assert_eq!(mechanism_of(&new_data, 15), Some(Mechanism::Fast));
    assert_eq!(new_data.flows[0].directions[0].rtos, 0);
    let silent = late_duplicates("511.01 b>a A 1 ack 1001");
    assert_eq!(mechanism_of(&silent, 15), Some(Mechanism::Rto));
    assert_eq!(silent.flows[0].directions[0].rtos, 1);
}

#[test]
fn after_a_silence_without_sack_only_a_timeout_retransmits() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
          110.00 a>b A 1:1001    ack 1
          610.00 b>a A 1 ack 1001                # RTT 500 ms: the RTO is about 700 ms
          610.01 a>b A 1001:2001 ack 1           # lost
          610.02 a>b A 2001:3001 ack 1           # lost
         1310.01 a>b A 1001:2001 ack 1
         1460.00 b>a A 1 ack 2001                # sent later than 2001:3001
         1860.00 a>b A 2001:3001 ack 1"
    ));
    assert_eq!(mechanism_of(&outcome, 10), Some(Mechanism::Rto));
}

#[test]
fn what_a_later_segment_overtook_is_lost_on_a_path_that_became_shorter() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # all lost
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1
         410.00 a>b A 1:1001    ack 1
         510.00 b>a A 1 ack 1001
         510.01 a>b A 1001:2001 ack 1           # lost
         510.02 a>b A 2001:3001 ack 1           # lost
         810.00 a>b A 1001:2001 ack 1
         910.00 b>a A 1 ack 2001                # without the retransmission sent 300 ms earlier
         910.01 a>b A 2001:3001 ack 1
         940.00 b>a A 1 ack 3001                # sooner than half of the RTT before"
    ));
    outcome.assert_events(
        "110 loss unknown #4 1:1001
         110.01 loss unknown #5 1001:2001
         110.02 loss unknown #6 2001:3001
         410 retransmission rto #7 1:1001
         410 rto rto #7 1:1001
         510.01 loss unknown #9 1001:2001
         510.01 retransmission rto #9 1001:2001
         510.02 loss unknown #10 2001:3001
         510.02 retransmission rto #10 2001:3001
         810 retransmission rto #11 1001:2001
         810 rto rto #11 1001:2001
         910.01 retransmission rto #13 2001:3001",
    );
}

#[test]
fn a_pause_of_the_application_is_no_silence_of_the_path() {
    let outcome = run("  0.00 a>b S  0 mss 1000 sackok
         100.00 b>a SA 0 ack 1 mss 1000 sackok
         100.01 a>b A  1 ack 1
         110.00 a>b A 1:1001    ack 1
         210.00 b>a A 1 ack 1001
        5000.00 a>b A 1001:2001 ack 1           # lost
        5310.00 a>b A 1001:2001 ack 1           # its ACK is lost
        5910.00 a>b A 1001:2001 ack 1
        6010.00 b>a A 1 ack 2001 sack 1001-2001 # one duplicate");
    assert_eq!(lost_records(&outcome), [Some(6)]);
}

#[test]
fn the_echo_of_an_original_shows_that_no_later_retransmission_had_arrived() {
    // The timeout is spurious: all four wait in a queue. One ACK covers the second and the third, and echoes the second.
    let covered = |next_echo: u32| {
        run(&format!(
            "  0.00 a>b S  0 mss 1000 ts 0/0
             100.00 b>a SA 0 ack 1 mss 1000 ts 500/0
             100.01 a>b A  1 ack 1 ts 100/500
             110.00 a>b A 1:1001    ack 1 ts 110/500
             140.00 a>b A 1001:2001 ack 1 ts 140/500
             170.00 a>b A 2001:3001 ack 1 ts 170/500
             200.00 a>b A 3001:4001 ack 1 ts 200/500
             500.00 a>b A 1:1001    ack 1 ts 500/500
             510.00 b>a A 1 ack 1001 ts 910/110
             510.01 a>b A 1001:2001 ack 1 ts 510/910
             510.02 a>b A 2001:3001 ack 1 ts 510/910
             510.03 a>b A 3001:4001 ack 1 ts 510/910
             570.00 b>a A 1 ack 3001 ts 970/140
             620.00 b>a A 1 ack 4001 ts 1020/{next_echo}"
        ))
    };
    let outcome = covered(200);
    assert_eq!(lost_records(&outcome), []);
    assert!(
        outcome.evidence(EventKind::Retransmission, 11).ends_with(
            "it would have overtaken record 7, which was sent before it and arrived later"
        )
    );
    // Nothing shows the order if the next segment that arrives in order is a retransmission, too.
    assert_eq!(lost_records(&covered(510)), [Some(6), Some(7)]);
}
