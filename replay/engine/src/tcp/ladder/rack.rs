//! Packet ladders of RACK by the RFC alone, without what Linux adds. The script's language is `ladder`'s.
//! Read RFC 8985 §6.2 first.

use super::{avoiding, check, sender};
use crate::cc::catalogue::Variant;
use crate::config::{Profile, RecoveryKind, StackOverrides};
use crate::tcp::sender::Sender;

fn rack_by_rfc8985() -> Sender {
    let overrides = StackOverrides {
        recovery: Some(RecoveryKind::RackPrr),
        undo: Some(false),
        ..avoiding(10)
    };
    sender(Variant::LinuxReno, Profile::Rfc, overrides)
}

#[test]
fn rfc8985_reordering_seen_gives_late_segments_a_quarter_of_the_least_rtt() {
    // 3 comes after 4 and 5: four are sacked above 6, and it has 25 ms left to come all the same.
    check(
        rack_by_rfc8985(),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 avoidance)
         0.100 < ack 3
         0.100 > 11 12 (cwnd 10 avoidance)
         0.101 < ack 3 sack 4-4
         0.101 > 13 (cwnd 10 avoidance)
         0.102 < ack 3 sack 4-5
         0.102 > 14 (cwnd 10 avoidance)
         0.103 < ack 6
         0.103 > 15 (cwnd 10 avoidance)
         0.104 < ack 6 sack 7-10
         0.104 > 16 17 18 19 (cwnd 10 avoidance)
         0.129 > R6 (cwnd 10 recovery)
         0.140 end",
    );
}

#[test]
fn rfc8985_without_reordering_three_sacked_segments_leave_no_time() {
    check(
        rack_by_rfc8985(),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 avoidance)
         0.100 < ack 3
         0.100 > 11 12 (cwnd 10 avoidance)
         0.103 < ack 6
         0.103 > 13 14 15 (cwnd 10 avoidance)
         0.104 < ack 6 sack 7-10
         0.104 > R6 (cwnd 6 recovery)
         0.140 end",
    );
}

/// The retransmission of 3 was spurious; then a single SACK makes 14 a suspect at 0.208.
fn spurious_retransmission(report: &str, retransmission: &str) -> String {
    format!(
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 avoidance)
         0.100 < ack 3
         0.100 > 11 12 (cwnd 10 avoidance)
         0.104 < ack 3 sack 4-6
         0.104 > R3 13 (cwnd 8 recovery)
         0.106 < ack 11
         0.106 > 14 15 (cwnd 5 recovery)
         0.202 < ack 14
         0.202 > 16 17 18 (cwnd 5 avoidance)
         {report}
         0.208 < ack 14 sack 15-15
         0.208 > 19 (cwnd 5 avoidance)
         {retransmission}
         0.290 end"
    )
}

#[test]
fn rfc8985_a_dsack_widens_the_reordering_window_by_a_quarter_of_the_min_rtt() {
    let twice = spurious_retransmission("0.204 < ack 14 sack 3-3", "0.257 > R14 (cwnd 5 recovery)");
    check(rack_by_rfc8985(), &twice);
}

#[test]
fn rfc8985_without_a_dsack_the_reordering_window_stays_a_quarter() {
    let once = spurious_retransmission("0.204 < ack 14", "0.233 > R14 (cwnd 5 recovery)");
    check(rack_by_rfc8985(), &once);
}
