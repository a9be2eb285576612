//! Captures at the sender: a path becomes longer than the retransmission timeout, so that the sender repeats a flight that
//! arrives. `support/mod.rs` explains the notation.

mod support;

use std::fmt::Write;

use hindflight_flows::{Event, EventKind};
use support::{Outcome, losses, run};

const SEGMENTS: i64 = 10;

/// Octets of segment `k` of the flight, from 0.
fn octets(k: i64) -> (i64, i64) {
    (20_001 + 1000 * k, 21_001 + 1000 * k)
}

/// The round trip takes 20 ms for twenty segments, then 560. A timeout repeats the flight of ten, whose ACKs are on their
/// way; two of them acknowledge two segments each. The receiver reports each duplicate.
/// The capture ends at `until_ms`.
fn repeated_flight(until_ms: f64) -> Outcome {
    let mut ladder = String::from(
        "  0.0 a>b S  0 mss 1000 ws 0 sackok ts 1/0
          20.0 b>a SA 0 ack 1 mss 1000 ws 0 sackok ts 501/1 id 0
          20.1 a>b A  1 ack 1 ts 21/501\n",
    );
    let mut rows: Vec<(f64, String)> = Vec::new();
    let mut row = |ms: f64, text: String| rows.push((ms, text));
    for k in 0..20_i32 {
        let sent_ms = 100 + 20 * k;
        let (start, end) = (1 + 1000 * k, 1001 + 1000 * k);
        let sent = f64::from(sent_ms);
        row(
            sent,
            format!("a>b A {start}:{end} ack 1 ts {sent_ms}/501 win 60000"),
        );
        row(
            sent + 19.9,
            format!("b>a A 1 ack {end} ts {}/{sent_ms}", 500 + sent_ms),
        );
    }
    // The flight, the timeout of its first segment, and its other segments again once the first is acknowledged.
    for k in 0..SEGMENTS {
        let (start, end) = octets(k);
        let sent = 1000 + 15 * k;
        let again = if k == 0 { 1230 } else { 1561 + 5 * k };
        for at in [sent, again] {
            row(
                at as f64,
                format!("a>b A {start}:{end} ack 1 ts {at}/501 win 60000"),
            );
        }
        // Segments 5 and 6 are acknowledged together, 7 and 8, too.
        let pair = k == 6 || k == 8;
        let echoed = if pair { sent - 15 } else { sent };
        if k != 5 && k != 7 {
            row(
                (sent + 560) as f64,
                format!("b>a A 1 ack {end} ts {}/{echoed}", 780 + sent),
            );
        }
        let (until, highest) = (octets(SEGMENTS - 1).1, 1000 + 15 * (SEGMENTS - 1));
        row(
            (again + 560) as f64,
            format!(
                "b>a A 1 ack {until} sack {start}-{end} ts {}/{highest}",
                780 + again
            ),
        );
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut id = 0;
    for (ms, text) in rows.into_iter().filter(|row| row.0 <= until_ms) {
        id += i32::from(text.starts_with("b>a"));
        let id = if text.starts_with("b>a") {
            format!(" id {id}")
        } else {
            String::new()
        };
        writeln!(ladder, "{ms:.1} {text}{id}").unwrap();
    }
    run(&ladder)
}

fn retransmissions(outcome: &Outcome) -> Vec<Option<bool>> {
    let again = |event: &&Event| event.kind == EventKind::Retransmission;
    let again = outcome.events.iter().filter(again);
    again.map(|event| event.spurious).collect()
}

fn undecided(outcome: &Outcome) -> usize {
    let undecided = |event: &&Event| event.kind == EventKind::Undecided;
    outcome.events.iter().filter(undecided).count()
}

#[test]
fn duplicates_that_are_reported_after_twice_the_old_timeout_were_not_lost() {
    let outcome = repeated_flight(f64::INFINITY);
    assert_eq!(losses(&outcome), []);
    assert_eq!(undecided(&outcome), 0);
    assert_eq!(retransmissions(&outcome), vec![Some(true); 10]);
}

#[test]
fn a_capture_that_ends_before_the_reports_leaves_open_what_became_of_the_duplicates() {
    let outcome = repeated_flight(1651.0);
    // Nothing that arrived later shows that the last ACK was not that of the retransmission.
    let lost: Vec<_> = losses(&outcome).into_iter().map(|row| row.0).collect();
    assert_eq!(lost, [Some(octets(6).0)]);
    assert_eq!(
        undecided(&outcome),
        12,
        "the second copies of six, and both copies of three"
    );
}
