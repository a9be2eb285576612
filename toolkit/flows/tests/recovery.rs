//! Losses, retransmissions and their causes. `support/mod.rs` explains the notation.

mod support;

use hindflight_flows::{EventKind, Mechanism};
use support::{HANDSHAKE_WITHOUT_SACK, Outcome, after_handshake, run};

/// Four segments, of which the first is lost.
const FIRST_OF_FOUR_LOST: &str = "
    110.00 a>b A 1:1001    ack 1           # lost
    110.01 a>b A 1001:2001 ack 1
    110.02 a>b A 2001:3001 ack 1
    110.03 a>b A 3001:4001 ack 1
";

#[test]
fn a_transfer_without_loss_has_no_events() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1
         110.01 a>b A 1001:2001 ack 1
         210.02 b>a A 1         ack 2001",
    ));
    outcome.assert_events("");
    assert_eq!(
        outcome.note(6).rtt_ns,
        Some(100_010_000),
        "the sample is from the last segment acknowledged"
    );
    assert_eq!(
        (
            outcome.note(4).flight_bytes,
            outcome.note(5).flight_bytes,
            outcome.note(6).flight_bytes
        ),
        (Some(1000), Some(2000), Some(0))
    );
    let a2b = outcome.flows[0].directions[0];
    assert_eq!(
        (
            a2b.data_segments,
            a2b.unique_bytes,
            a2b.acked_bytes,
            a2b.retransmitted_segments
        ),
        (2, 2000, 2000, 0)
    );
    assert_eq!(
        (a2b.rtt_samples, a2b.rtt_min_ns, a2b.rtt_max_ns),
        (2, Some(100_000_000), Some(100_010_000))
    );
}

#[test]
fn fast_retransmit_after_sack() {
    let outcome = run(&after_handshake(&format!(
        "{FIRST_OF_FOUR_LOST}
         210.01 b>a A 1 ack 1 sack 1001-2001
         210.02 b>a A 1 ack 1 sack 1001-3001
         210.03 b>a A 1 ack 1 sack 1001-4001
         210.04 a>b A 1:1001    ack 1
         310.04 b>a A 1 ack 4001
         410.00 a>b A 4001:5001 ack 1
         510.00 b>a A 1 ack 5001"
    )));
    outcome.assert_events(
        "110 loss unknown #4 1:1001
         210.04 retransmission fast #11 1:1001
         210.04-310.04 recovery fast #11 1:4001",
    );
    assert_eq!(
        outcome.evidence(EventKind::Loss, 4),
        "retransmitted as record 11, acknowledged 100.000 ms later"
    );
    assert!(
        [8, 9, 10]
            .iter()
            .all(|&number| outcome.note(number).dup_ack)
    );
    assert_eq!(
        outcome.note(10).flight_bytes,
        Some(1000),
        "SACKed octets are not in flight"
    );
    assert_eq!(
        outcome.note(10).rtt_ns,
        Some(100_000_000),
        "a SACK block gives a sample"
    );
    assert_eq!(
        outcome.note(12).rtt_ns,
        None,
        "Karn: a retransmitted segment gives no sample"
    );
    assert!(outcome.note(11).retransmission && !outcome.note(13).retransmission);
    let flow = &outcome.flows[0];
    assert_eq!(
        (
            flow.directions[0].recoveries,
            flow.directions[0].rtos,
            flow.directions[1].dup_acks
        ),
        (1, 0, 3)
    );
    assert_eq!(
        (
            flow.directions[0].retransmitted_segments,
            flow.directions[0].retransmitted_bytes
        ),
        (1, 1000)
    );
}

#[test]
fn partial_acks_without_sack_recover_two_losses() {
    let outcome = run(&format!(
        "{HANDSHAKE_WITHOUT_SACK}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1           # lost
         110.03 a>b A 3001:4001 ack 1
         110.04 a>b A 4001:5001 ack 1
         210.01 b>a A 1 ack 1
         210.02 b>a A 1 ack 1
         210.03 b>a A 1 ack 1
         210.04 a>b A 1:1001    ack 1
         310.04 b>a A 1 ack 2001                # partial
         310.05 a>b A 2001:3001 ack 1
         410.05 b>a A 1 ack 5001"
    ));
    outcome.assert_events(
        "110 loss unknown #4 1:1001
         110.02 loss unknown #6 2001:3001
         210.04 retransmission fast #12 1:1001
         210.04-410.05 recovery fast #12 1:5001
         310.05 retransmission fast #14 2001:3001",
    );
    assert_eq!(outcome.flows[0].directions[1].dup_acks, 3);
    assert_eq!(
        outcome.note(15).rtt_ns,
        None,
        "segments above the gap arrived before the ACK"
    );
}

#[test]
fn a_retransmission_after_the_rto_is_a_timeout() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1           # both lost
         110.01 a>b A 1001:2001 ack 1
         520.00 a>b A 1:1001    ack 1           # timer
         620.00 b>a A 1 ack 1001
         620.01 a>b A 1001:2001 ack 1           # slow start after the timeout
         720.01 b>a A 1 ack 2001",
    ));
    outcome.assert_events(
        "110 loss unknown #4 1:1001
         110.01 loss unknown #5 1001:2001
         520 retransmission rto #6 1:1001
         520 rto rto #6 1:1001
         620.01 retransmission rto #8 1001:2001",
    );
    assert_eq!(
        (
            outcome.flows[0].directions[0].rtos,
            outcome.flows[0].directions[0].recoveries
        ),
        (1, 0)
    );
    assert_eq!(
        outcome.evidence(EventKind::Rto, 6),
        "no new data acknowledged for 410.000 ms, RTO about 300.000 ms"
    );
}

#[test]
fn a_dsack_proves_a_timeout_spurious() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1           # delayed by 500 ms
         110.01 a>b A 1001:2001 ack 1
         520.00 a>b A 1:1001    ack 1           # timer
         610.00 b>a A 1 ack 1001
         610.01 b>a A 1 ack 2001
         620.00 b>a A 1 ack 2001 sack 1-1001    # the copy",
    ));
    outcome.assert_events(
        "520 retransmission spurious #6 1:1001
         520 rto rto #6 1:1001",
    );
    assert!(
        outcome
            .evidence(EventKind::Retransmission, 6)
            .ends_with("but record 9 reports a duplicate (DSACK)")
    );
    assert_eq!(outcome.flows[0].directions[1].dsack_segments, 1);
}

#[test]
fn an_echo_of_the_original_timestamp_proves_a_timeout_spurious() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1 ts 110/501
         110.01 a>b A 1001:2001 ack 1 ts 110/501
         520.00 a>b A 1:1001    ack 1 ts 520/501
         630.00 b>a A 1 ack 1001 ts 1030/110",
    ));
    outcome.assert_events(
        "110.01 undecided unknown #5 1001:2001
         520 retransmission spurious #6 1:1001
         520 rto rto #6 1:1001
         520 undecided unknown #6 1:1001",
    );
    assert!(
        outcome
            .evidence(EventKind::Retransmission, 6)
            .ends_with("echoes timestamp 110, which is older than its own, 520")
    );
}

/// Three segments are delayed by 530 ms. The echo of the first one shows that its retransmission is spurious.
const SPURIOUS_TIMEOUT: &str = "
    110.00 a>b A 1:1001    ack 1 ts 110/501
    111.00 a>b A 1001:2001 ack 1 ts 111/501
    112.00 a>b A 2001:3001 ack 1 ts 112/501
    520.00 a>b A 1:1001    ack 1 ts 520/501     # timer
    740.00 b>a A 1 ack 1001 ts 1140/110
";

#[test]
fn going_back_after_a_spurious_timeout_is_not_another_timeout() {
    let outcome = run(&after_handshake(&format!(
        "{SPURIOUS_TIMEOUT}
         740.01 a>b A 1001:2001 ack 1 ts 740/1140
         741.00 b>a A 1 ack 2001 ts 1141/111
         741.01 a>b A 2001:3001 ack 1 ts 741/1141
         742.00 b>a A 1 ack 3001 ts 1142/112"
    )));
    outcome.assert_events(
        "520 retransmission spurious #7 1:1001
         520 rto rto #7 1:1001
         520 undecided unknown #7 1:1001
         740.01 retransmission spurious #9 1001:2001
         740.01 undecided unknown #9 1001:2001
         741.01 retransmission spurious #11 2001:3001
         741.01 undecided unknown #11 2001:3001",
    );
    assert_eq!(outcome.flows[0].directions[0].rtos, 1);
    assert!(
        outcome
            .evidence(EventKind::Retransmission, 9)
            .starts_with("after a timeout, recovery point 3001")
    );
}

#[test]
fn a_probe_after_a_spurious_timeout_repeats_the_last_segment_alone() {
    let outcome = run(&after_handshake(&format!(
        "{SPURIOUS_TIMEOUT}
         740.01 a>b A 3001:4001 ack 1 ts 740/1140
         740.02 a>b A 4001:5001 ack 1 ts 740/1140
         820.00 a>b A 4001:5001 ack 1 ts 820/1140"
    )));
    let mut latest = outcome.events.iter().rev();
    let mechanism = latest.find_map(|event| event.mechanism);
    assert_eq!(mechanism, Some(Mechanism::Tlp));
}

#[test]
fn an_rto_after_a_spurious_timeout_is_another_timeout() {
    let outcome = run(&after_handshake(&format!(
        "{SPURIOUS_TIMEOUT}
         1640.00 a>b A 1001:2001 ack 1 ts 1640/1140 # the rest was lost
         1740.00 b>a A 1 ack 2001 ts 2140/1640
         1740.01 a>b A 2001:3001 ack 1 ts 1740/2140
         1840.01 b>a A 1 ack 3001 ts 2240/1740"
    )));
    outcome.assert_events(
        "111 loss unknown #5 1001:2001
         112 loss unknown #6 2001:3001
         520 retransmission spurious #7 1:1001
         520 rto rto #7 1:1001
         520 undecided unknown #7 1:1001
         1640 retransmission rto #9 1001:2001
         1640 rto rto #9 1001:2001
         1740.01 retransmission rto #11 2001:3001",
    );
    assert_eq!(outcome.flows[0].directions[0].rtos, 2);
}

#[test]
fn a_spurious_recovery_is_undone() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1 ts 110/501 # reordered behind the next three
         111.01 a>b A 1001:2001 ack 1 ts 111/501
         112.02 a>b A 2001:3001 ack 1 ts 112/501
         113.03 a>b A 3001:4001 ack 1 ts 113/501
         210.03 b>a A 1 ack 1 sack 1001-4001 ts 611/101
         210.04 a>b A 1:1001    ack 1 ts 210/611
         220.00 b>a A 1 ack 4001 ts 621/110
         310.00 b>a A 1 ack 4001 ts 711/110 sack 1-1001",
    ));
    outcome.assert_events(
        "210.04 retransmission spurious #9 1:1001
         210.04-220 recovery fast #9 1:4001",
    );
    let timeout = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1 ts 110/501 # delayed, and what follows is lost
         111.01 a>b A 1001:2001 ack 1 ts 111/501
         112.02 a>b A 2001:3001 ack 1 ts 112/501
         620.00 a>b A 1:1001    ack 1 ts 620/501
         630.00 b>a A 1 ack 1001 ts 921/110       # undoes the timeout
         630.01 a>b A 3001:4001 ack 1 ts 630/921
         730.01 b>a A 1 ack 1001 ts 1021/110 sack 3001-4001
         730.02 a>b A 1001:2001 ack 1 ts 730/1021
         730.03 a>b A 2001:3001 ack 1 ts 730/1021
         830.03 b>a A 1 ack 4001 ts 1121/730",
    ));
    timeout.assert_events(
        "111.01 loss unknown #5 1001:2001
         112.02 loss unknown #6 2001:3001
         620 retransmission spurious #7 1:1001
         620 rto rto #7 1:1001
         620 undecided unknown #7 1:1001
         730.02 retransmission fast #11 1001:2001
         730.02-830.03 recovery fast #11 1001:4001
         730.03 retransmission fast #12 2001:3001",
    );
}

#[test]
fn a_lost_retransmission_is_another_loss() {
    let outcome = run(&after_handshake(&format!(
        "{FIRST_OF_FOUR_LOST}
         210.03 b>a A 1 ack 1 sack 1001-4001
         210.04 a>b A 1:1001    ack 1           # lost again
         210.05 a>b A 4001:5001 ack 1
         310.05 b>a A 1 ack 1 sack 1001-5001
         310.06 a>b A 1:1001    ack 1
         410.06 b>a A 1 ack 5001"
    )));
    outcome.assert_events(
        "110 loss unknown #4 1:1001
         210.04 loss unknown #9 1:1001
         210.04 retransmission fast #9 1:1001
         210.04-410.06 recovery fast #9 1:4001
         310.06 retransmission fast #12 1:1001",
    );
}

/// A segment arrives, and its ACK is lost. It is repeated at 520 and at 1330 ms; then come `acks`.
fn repeated_twice(acks: &str) -> Outcome {
    run(&after_handshake(&format!(
        "110.00 a>b A 1:1001    ack 1 ts 110/501
         520.00 a>b A 1:1001    ack 1 ts 520/501
        1330.00 a>b A 1:1001    ack 1 ts 1330/501
        {acks}"
    )))
}

#[test]
fn with_one_dsack_the_other_retransmission_was_lost() {
    let outcome = repeated_twice("1430.00 b>a A 1 ack 1001 ts 1930/110 sack 1-1001");
    outcome.assert_events(
        "520 loss unknown #5 1:1001
         520 retransmission spurious #5 1:1001
         1330 retransmission spurious #6 1:1001
         1330 rto rto #6 1:1001",
    );
}

#[test]
fn the_echo_of_a_dsack_names_the_duplicate() {
    // The other one is lost, or still on its way.
    let outcome = repeated_twice("1430.00 b>a A 1 ack 1001 ts 1930/520 sack 1-1001");
    outcome.assert_events(
        "520 retransmission spurious #5 1:1001
         1330 retransmission spurious #6 1:1001
         1330 rto rto #6 1:1001
         1330 undecided unknown #6 1:1001",
    );
}

#[test]
fn a_report_of_the_last_duplicate_is_awaited() {
    // It arrives after 3 s.
    let outcome = repeated_twice(
        "1430.00 b>a A 1 ack 1001 ts 1930/520 sack 1-1001
         4000.00 b>a A 1 ack 1001 ts 4500/520 win 60000
         4430.00 b>a A 1 ack 1001 ts 4930/1330 sack 1-1001",
    );
    outcome.assert_events(
        "520 retransmission spurious #5 1:1001
         1330 retransmission spurious #6 1:1001
         1330 rto rto #6 1:1001",
    );
}

#[test]
fn with_one_dsack_after_a_silence_what_was_sent_before_it_arrived() {
    let original = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1           # arrives, its ACK is lost with the link
         520.00 a>b A 1:1001    ack 1           # lost
        1330.00 a>b A 1:1001    ack 1           # lost
        2950.00 a>b A 1:1001    ack 1
        3050.00 b>a A 1 ack 1001 sack 1-1001",
    ));
    original.assert_events(
        "520 loss unknown #5 1:1001
         520 retransmission spurious #5 1:1001
         1330 loss unknown #6 1:1001
         1330 retransmission spurious #6 1:1001
         1330 rto rto #6 1:1001
         2950 retransmission spurious #7 1:1001
         2950 rto rto #7 1:1001",
    );
    let retransmission = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1           # lost
         111.00 a>b A 1001:2001 ack 1
         112.00 a>b A 2001:3001 ack 1
         113.00 a>b A 3001:4001 ack 1
         211.00 b>a A 1 ack 1 sack 1001-2001
         212.00 b>a A 1 ack 1 sack 1001-3001
         213.00 b>a A 1 ack 1 sack 1001-4001
         213.01 a>b A 1:1001    ack 1           # arrives, its ACK is lost with the link
         620.00 a>b A 1:1001    ack 1           # lost
        1430.00 a>b A 1:1001    ack 1
        1530.00 b>a A 1 ack 4001 sack 1-1001",
    ));
    retransmission.assert_events(
        "110 loss unknown #4 1:1001
         213.01 retransmission fast #11 1:1001
         213.01-620 recovery fast #11 1:4001
         620 loss unknown #12 1:1001
         620 retransmission spurious #12 1:1001
         620 rto rto #12 1:1001
         1430 retransmission spurious #13 1:1001
         1430 rto rto #13 1:1001",
    );
}

#[test]
fn one_lost_ack_and_one_lost_segment_do_not_show_which_segment() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1           # one of the two is lost, and the ACK of the other
         520.00 a>b A 1:1001    ack 1
        1330.00 a>b A 1:1001    ack 1
        1430.00 b>a A 1 ack 1001 sack 1-1001",
    ));
    outcome.assert_events(
        "110 undecided unknown #4 1:1001
         520 retransmission probe #5 1:1001
         520 undecided unknown #5 1:1001
         1330 retransmission spurious #6 1:1001
         1330 rto rto #6 1:1001",
    );
}

#[test]
fn two_dsacks_after_a_silence_report_two_duplicates() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1           # arrives late, as does all that follows
         520.00 a>b A 1:1001    ack 1
        1330.00 a>b A 1:1001    ack 1
        1430.00 b>a A 1 ack 1001
        1430.01 b>a A 1 ack 1001 sack 1-1001
        1430.02 b>a A 1 ack 1001 sack 1-1001",
    ));
    outcome.assert_events(
        "520 retransmission spurious #5 1:1001
         1330 retransmission spurious #6 1:1001
         1330 rto rto #6 1:1001",
    );
}

#[test]
fn a_tail_loss_probe_is_not_a_timeout() {
    let lost = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1
         110.01 a>b A 1001:2001 ack 1           # lost
         210.00 b>a A 1 ack 1001
         420.00 a>b A 1001:2001 ack 1           # tail loss probe
         520.00 b>a A 1 ack 2001",
    ));
    lost.assert_events(
        "110.01 loss unknown #5 1001:2001
         420 retransmission probe #7 1001:2001",
    );
    let delayed = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1
         110.01 a>b A 1001:2001 ack 1
         210.00 b>a A 1 ack 1001
         420.00 a>b A 1001:2001 ack 1
         421.00 b>a A 1 ack 2001
         520.00 b>a A 1 ack 2001 sack 1001-2001",
    ));
    delayed.assert_events("420 retransmission spurious #7 1001:2001");
    assert_eq!(
        (
            lost.flows[0].directions[0].rtos,
            delayed.flows[0].directions[0].rtos
        ),
        (0, 0)
    );
}

#[test]
fn zero_window_probes_and_keep_alives_are_probes() {
    run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1
         210.00 b>a A 1 ack 1001 win 0
         500.00 a>b A 1001:1002 ack 1           # first probe: new octet
         600.00 b>a A 1 ack 1001 win 0
        1300.00 a>b A 1001:1002 ack 1           # second probe
        1400.00 b>a A 1 ack 1002 win 60000
       90000.00 a>b A 1001:1002 ack 1           # keep-alive with its octet
       90100.00 b>a A 1 ack 1002",
    ))
    .assert_events(
        "1300 retransmission probe #8 1001:1002
         90000 retransmission probe #10 1001:1002",
    );
}

#[test]
fn the_octet_of_refused_probes_is_sent_as_new_data_when_the_window_opens() {
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1
         210.00 b>a A 1 ack 1001 win 0
         500.00 a>b A 1001:1002 ack 1
         600.00 b>a A 1 ack 1001 win 0
        1300.00 a>b A 1001:1002 ack 1
        1400.00 b>a A 1 ack 1001 win 0
        2000.00 b>a A 1 ack 1001 win 60000      # the window opens
        2010.00 a>b A 1001:2001 ack 1
        2110.00 b>a A 1 ack 2001 win 60000",
    ));
    outcome.assert_events("1300 retransmission probe #8 1001:1002");
    let row = outcome.flows[0].directions[0];
    assert_eq!((row.unique_bytes, row.rtos, row.recoveries), (2000, 0, 0));
    assert_eq!(row.retransmitted_segments, 1, "the second probe");
}

#[test]
fn packets_of_a_segment_captured_before_offload_are_separate_losses() {
    run(&after_handshake(
        "110.00 a>b A 1:4001    ack 1           # before segmentation offload; 1:1001 and 2001:3001 are lost
         210.01 b>a A 1 ack 1 sack 1001-2001
         210.02 b>a A 1 ack 1 sack 3001-4001 1001-2001
         210.03 a>b A 1:1001    ack 1
         210.04 a>b A 2001:3001 ack 1
         310.03 b>a A 1 ack 2001 sack 3001-4001
         310.04 b>a A 1 ack 4001",
    ))
    .assert_events(
        "110 loss unknown #4 1:1001
         110 loss unknown #4 2001:3001
         210.03 retransmission fast #7 1:1001
         210.03-310.04 recovery fast #7 1:4001
         210.04 retransmission fast #8 2001:3001",
    );
}

#[test]
fn one_retransmission_of_two_segments_shows_two_losses() {
    run(&after_handshake(
        "110.00 a>b A 1:301     ack 1           # both lost
         110.01 a>b A 301:601   ack 1
         110.02 a>b A 601:1601  ack 1
         210.02 b>a A 1 ack 1 sack 601-1601
         210.03 a>b A 1:601     ack 1           # one retransmission
         310.03 b>a A 1 ack 1601",
    ))
    .assert_events(
        "110 loss unknown #4 1:301
         110.01 loss unknown #5 301:601
         210.03 retransmission fast #8 1:601
         210.03-310.03 recovery fast #8 1:1601",
    );
}

#[test]
fn an_unacknowledged_segment_is_lost_only_if_a_later_one_arrived() {
    run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1           # a later segment arrived: lost
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1           # no later segment arrived: unknown
         210.01 b>a A 1 ack 1 sack 1001-2001",
    ))
    .assert_events(
        "110 loss unknown #4 1:1001
         110.02 undecided unknown #6 2001:3001",
    );
}
