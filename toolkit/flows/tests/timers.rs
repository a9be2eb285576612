//! Which timer a sender with SACK retransmits by: that of reordering, or the retransmission timer. `support/mod.rs`
//! explains the notation.

mod support;

use std::fmt::Write;

use hindflight_flows::{EventKind, Mechanism};
use support::{Outcome, after_handshake, run};

/// The mechanism of the last retransmission.
fn last_mechanism(outcome: &Outcome) -> Option<Mechanism> {
    let events = outcome.events.iter();
    let repeated = events.filter(|event| event.kind == EventKind::Retransmission);
    repeated
        .max_by_key(|event| event.record)
        .and_then(|event| event.mechanism)
}

#[test]
fn the_reordering_timer_counts_from_the_rtt_of_what_is_acknowledged() {
    // The path holds 1:1001 back. The ACK of it reports 2001:3001, too, which a probe sent later, in a shorter time.
    let repeated = |t_ms: &str| {
        last_mechanism(&run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1
             112.00 a>b A 1001:2001 ack 1    # lost
             300.00 a>b A 2001:3001 ack 1
             420.00 b>a A 1 ack 1001 sack 2001-3001
             {t_ms} a>b A 1001:2001 ack 1
             900.00 b>a A 1 ack 3001"
        ))))
    };
    assert_eq!(repeated("460.00"), Some(Mechanism::Sack));
    assert_eq!(repeated("730.00"), Some(Mechanism::Rto));
}

#[test]
fn what_the_last_ack_would_have_triggered_waits_for_no_reordering_timer() {
    // The retransmission of 1:1001 is lost, too: its time was up at 337 ms, before the ACK of 481 ms. That of 4001:5001
    // was not.
    let outcome = run(&after_handshake(
        "110.00 a>b A 1:1001    ack 1    # lost
         110.01 a>b A 1001:2001 ack 1
         210.01 b>a A 1 ack 1 sack 1001-2001
         212.00 a>b A 1:1001    ack 1    # lost
         212.01 a>b A 2001:3001 ack 1
         312.01 b>a A 1 ack 1 sack 1001-3001
         330.00 a>b A 3001:4001 ack 1
         380.00 a>b A 4001:5001 ack 1    # lost
         380.01 a>b A 5001:6001 ack 1
         430.00 b>a A 1 ack 1 sack 1001-4001
         481.00 b>a A 1 ack 1 sack 5001-6001 1001-4001
         520.00 a>b A 1:1001    ack 1
         620.00 b>a A 1 ack 4001 sack 5001-6001",
    ));
    assert_eq!(last_mechanism(&outcome), Some(Mechanism::Rto));
}

#[test]
fn a_full_window_leaves_the_retransmission_to_its_timer() {
    // The first round trip takes 500 ms, all others 1 s. Three SACKs begin the recovery, and the window has no room.
    let mut ladder = String::from(
        "  0.00 a>b S  0 mss 1000 sackok
         500.00 b>a SA 0 ack 1 mss 1000 sackok
         500.01 a>b A  1 ack 1
        ",
    );
    let (mut t_ms, mut start) = (600, 1);
    for _ in 0..60 {
        let end = start + 1000;
        writeln!(ladder, "{t_ms} a>b A {start}:{end} ack 1").expect("text");
        t_ms += 1000;
        writeln!(ladder, "{t_ms} b>a A 1 ack {end}").expect("text");
        start = end;
    }
    let edge = |number: i64| start + number * 1000;
    for number in 0..4 {
        let (left, right) = (edge(number), edge(number + 1));
        writeln!(ladder, "{t_ms}.{number} a>b A {left}:{right} ack 1").expect("text");
    }
    let sacked_ms = t_ms + 1000;
    for number in 1..4 {
        let (left, right) = (edge(1), edge(number + 1));
        writeln!(
            ladder,
            "{sacked_ms}.{number} b>a A 1 ack {start} sack {left}-{right}"
        )
        .expect("text");
    }
    let repeated = |waited_ms: i64| {
        let repeated_ms = sacked_ms + waited_ms;
        last_mechanism(&run(&format!(
            "{ladder}{repeated_ms} a>b A {start}:{} ack 1",
            edge(1)
        )))
    };
    assert_eq!(repeated(130), Some(Mechanism::Sack), "a quarter of 500 ms");
    assert_eq!(repeated(210), Some(Mechanism::Rto));
}

#[test]
fn after_an_undone_timeout_the_timer_counts_from_the_transmission() {
    let repeated = |t_ms: &str| {
        last_mechanism(&run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1 ts 110/501
             110.01 a>b A 1001:2001 ack 1 ts 110/501    # lost
             110.02 a>b A 2001:3001 ack 1 ts 110/501
             420.00 a>b A 1:1001    ack 1 ts 420/501
             900.00 b>a A 1 ack 1001 sack 2001-3001 ts 1301/110
             {t_ms} a>b A 1001:2001 ack 1 ts {t_ms}/1301"
        ))))
    };
    assert_eq!(repeated("930"), Some(Mechanism::Sack));
    assert_eq!(repeated("1200"), Some(Mechanism::Rto));
}

#[test]
fn a_timer_that_was_due_before_the_evidence_of_a_loss_did_not_expire_after_it() {
    // The sender answers the report late.
    let repeated = |sent_ms: i64, reported_ms: i64, t_ms: i64| {
        last_mechanism(&run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1    # lost
             {sent_ms} a>b A 1001:2001 ack 1
             {reported_ms} b>a A 1 ack 1 sack 1001-2001
             {t_ms} a>b A 1:1001    ack 1"
        ))))
    };
    assert_eq!(repeated(350, 450, 452), Some(Mechanism::Sack));
    assert_eq!(repeated(290, 390, 412), Some(Mechanism::Rto));
}

#[test]
fn a_timer_that_an_ack_restarted_may_expire_after_the_evidence_of_a_loss() {
    // The RTO of 300 ms has passed since 1001:2001 was sent at 412 ms, and since the ACK of 1:1001 at 510 ms.
    let repeated = |t_ms: &str| {
        last_mechanism(&run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1
             112.00 a>b A 1001:2001 ack 1    # lost
             210.00 b>a A 1 ack 1001
             395.00 a>b A 2001:3001 ack 1
             495.00 b>a A 1 ack 1001 sack 2001-3001
             {t_ms} a>b A 1001:2001 ack 1"
        ))))
    };
    assert_eq!(repeated("500.00"), Some(Mechanism::Sack));
    assert_eq!(repeated("512.00"), Some(Mechanism::Rto));
}

#[test]
fn what_the_pacer_held_back_is_no_timeout() {
    // A segment each 40 ms. Those of the first 240 ms are lost. The report comes when the RTO has passed.
    let repeated = |t_ms: &str| {
        last_mechanism(&run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1    # lost
             150.00 a>b A 1001:2001 ack 1    # lost
             190.00 a>b A 2001:3001 ack 1    # lost
             230.00 a>b A 3001:4001 ack 1    # lost
             270.00 a>b A 4001:5001 ack 1    # lost
             310.00 a>b A 5001:6001 ack 1    # lost
             350.00 a>b A 6001:7001 ack 1
             390.00 a>b A 7001:8001 ack 1
             430.00 a>b A 8001:9001 ack 1
             450.00 b>a A 1 ack 1 sack 6001-7001
             {t_ms} a>b A 1:1001    ack 1"
        ))))
    };
    assert_eq!(repeated("470.00"), Some(Mechanism::Sack));
    assert_eq!(repeated("620.00"), Some(Mechanism::Rto), "a silence");
}

#[test]
fn the_wait_for_a_timer_is_not_pacing() {
    // The second timeout came 600 ms after the first. The ACK that undoes it shows a round trip of 930 ms.
    let (mut ladder, mut start) = (after_handshake(""), 1);
    for round in 1..16 {
        let (sent_ms, end) = (round * 100 + 10, start + 1000);
        writeln!(ladder, "{sent_ms} a>b A {start}:{end} ack 1").expect("text");
        writeln!(ladder, "{}.9 b>a A 1 ack {end}", sent_ms + 99).expect("text");
        start = end;
    }
    let edge = |number: i64| start + number * 1000;
    let (first, second, third) = (edge(1), edge(2), edge(3));
    let outcome = run(&format!(
        "{ladder}
         2000.00 a>b A {start}:{first}  ack 1
         2000.01 a>b A {first}:{second} ack 1    # lost
         2000.02 a>b A {second}:{third} ack 1
         2310.00 a>b A {start}:{first}  ack 1
         2910.00 a>b A {start}:{first}  ack 1
         2930.00 b>a A 1 ack {first} sack {second}-{third}
         3010.00 a>b A {first}:{second} ack 1"
    ));
    assert_eq!(last_mechanism(&outcome), Some(Mechanism::Rto));
}

#[test]
fn in_fast_recovery_the_timer_counts_from_the_last_ack_of_new_data() {
    // The sender answers the ACK of 600.01 ms late.
    let repeated = |t_ms: &str| {
        last_mechanism(&run(&after_handshake(&format!(
            "110.00 a>b A 1:1001    ack 1    # lost
             110.01 a>b A 1001:2001 ack 1    # lost
             400.00 a>b A 2001:3001 ack 1
             500.00 b>a A 1 ack 1 sack 2001-3001
             500.01 a>b A 1:1001    ack 1
             600.01 b>a A 1 ack 1001 sack 2001-3001
             {t_ms} a>b A 1001:2001 ack 1"
        ))))
    };
    assert_eq!(repeated("600.40"), Some(Mechanism::Sack));
    assert_eq!(repeated("1000.00"), Some(Mechanism::Rto));
}
