//! What IPv4 IDs of ACKs show: which ACKs were lost, and so what a silence or a missing DSACK says. `support/mod.rs`
//! explains the notation.

mod support;

use std::fmt::Write;

use hindflight_flows::EventKind;
use support::{Outcome, losses, run};

/// A handshake and ten segments, each acknowledged; the IDs of the ACKs are 1 to 11.
fn ten_acknowledged(options: &str) -> String {
    acknowledged(10, options)
}

/// A handshake and so many segments, each acknowledged; the IDs of the ACKs start at 1.
fn acknowledged(segments_n: u32, options: &str) -> String {
    let mut ladder = format!(
        "   0.0 a>b S 0 mss 1000 {options}
          100.0 b>a SA 0 ack 1 mss 1000 {options} id 1
          100.1 a>b A 1 ack 1\n"
    );
    for number in 0..segments_n {
        let (t_ms, start) = (110 + 10 * number, 1 + 1000 * number);
        let end = start + 1000;
        writeln!(ladder, "{t_ms} a>b A {start}:{end} ack 1").expect("writes");
        writeln!(
            ladder,
            "{}.9 b>a A 1 ack {end} id {}",
            t_ms + 99,
            2 + number
        )
        .expect("writes");
    }
    ladder
}

fn records(outcome: &Outcome, kind: EventKind) -> Vec<Option<u64>> {
    let events = outcome.events.iter().filter(|event| event.kind == kind);
    let mut records: Vec<_> = events.map(|event| event.record).collect();
    records.sort_unstable();
    records
}

#[test]
fn without_sack_a_timeout_after_a_lost_ack_does_not_show_a_loss() {
    let timeouts = |id: u16| {
        run(&format!(
            "{}
             310 a>b A 10001:11001 ack 1
             311 a>b A 11001:12001 ack 1
             720 a>b A 10001:11001 ack 1
            1540 a>b A 10001:11001 ack 1
            1640 b>a A 1 ack 11001 id {id}
            1641 a>b A 11001:12001 ack 1
            1741 b>a A 1 ack 12001 id {}",
            ten_acknowledged(""),
            id + 1
        ))
    };
    let all_captured = timeouts(12);
    assert_eq!(
        records(&all_captured, EventKind::Loss),
        [Some(24), Some(25), Some(26)]
    );
    assert_eq!(records(&all_captured, EventKind::Undecided), []);
    let one_lost = timeouts(13);
    assert_eq!(records(&one_lost, EventKind::Undecided), [Some(24)]);
    assert_eq!(
        records(&one_lost, EventKind::Loss),
        [Some(25), Some(26)],
        "the path broke once, so the retransmission in the silence was lost"
    );
    assert!(
        one_lost
            .evidence(EventKind::Undecided, 24)
            .starts_with("an ACK was lost before record 28")
    );
}

#[test]
fn without_sack_a_lost_ack_of_a_single_segment_may_be_that_of_either_transmission() {
    let outcome = run(&format!(
        "{}
         310 a>b A 10001:11001 ack 1
         720 a>b A 10001:11001 ack 1
        1540 a>b A 10001:11001 ack 1
        1640 b>a A 1 ack 11001 id 13",
        ten_acknowledged("")
    ));
    assert_eq!(
        records(&outcome, EventKind::Undecided),
        [Some(24), Some(25)]
    );
    assert_eq!(losses(&outcome), []);
}

/// A retransmission that is too early for its ACK, followed by new data; `dsack` reports an earlier duplicate.
fn spurious(dsack: &str, later: &str) -> Outcome {
    run(&format!(
        "{}
         310 a>b A 10001:11001 ack 1
         310.1 a>b A 11001:12001 ack 1
         409 b>a A 1 ack 10001 sack 11001-12001 id 12
         409.1 a>b A 10001:11001 ack 1
         410 b>a A 1 ack 12001 id 13
         {dsack}
         {later}",
        ten_acknowledged("sackok")
    ))
}

#[test]
fn a_spurious_retransmission_that_no_dsack_reports_was_lost() {
    let report = "410.1 b>a A 1 ack 12001 sack 9001-10001 id 14";
    let later = "411 a>b A 12001:13001 ack 1
                 511 b>a A 1 ack 13001 id 15";
    let lost = spurious(report, later);
    assert_eq!(records(&lost, EventKind::Loss), [Some(27)]);
    assert!(
        lost.evidence(EventKind::Loss, 27)
            .starts_with("its octets had arrived, no ACK is missing")
    );
    let undecided = |outcome: &Outcome| {
        assert_eq!(records(outcome, EventKind::Loss), []);
        assert_eq!(records(outcome, EventKind::Undecided), [Some(27)]);
    };
    undecided(&spurious(report, &later.replace("id 15", "id 16")));
    undecided(&spurious(report, ""));
    undecided(&spurious("", &later.replace("id 15", "id 14")));
    let arrived = format!("{later}\n510.9 b>a A 1 ack 12001 sack 10001-11001 id 16");
    let arrived = spurious(report, &arrived);
    assert_eq!(records(&arrived, EventKind::Loss), []);
    assert_eq!(records(&arrived, EventKind::Undecided), []);
}

#[test]
fn a_late_ack_does_not_hide_that_another_one_was_lost() {
    // The original of 20001:21001 arrived, and nothing reports its retransmission. ACK 22 is late, 26 may be missing.
    let outcome = |id: u16| {
        run(&format!(
            "{}
             410 a>b A 20001:21001 ack 1
             410.1 a>b A 21001:22001 ack 1
             509 b>a A 1 ack 20001 sack 21001-22001 id 23
             509.1 a>b A 20001:21001 ack 1
             510 b>a A 1 ack 22001 id 24
             510.1 b>a A 1 ack 22001 sack 19001-20001 id 25
             510.2 b>a A 1 ack 20001 id 22
             511 a>b A 22001:23001 ack 1
             611 b>a A 1 ack 23001 id {id}",
            acknowledged(20, "sackok")
        ))
    };
    let one_lost = outcome(27);
    assert_eq!(records(&one_lost, EventKind::Loss), []);
    assert_eq!(records(&one_lost, EventKind::Undecided), [Some(47)]);
    let all_captured = outcome(26);
    assert_eq!(records(&all_captured, EventKind::Loss), [Some(47)]);
    assert_eq!(records(&all_captured, EventKind::Undecided), []);
}
