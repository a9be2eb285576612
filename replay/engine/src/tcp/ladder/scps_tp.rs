//! Ladders of SCPS-TP's loss recovery: a hole is retransmitted when it is reported, and once more when the retransmission
//! is lost too. Notation as in `ladder`.

use super::{check, sender, window};
use crate::cc::catalogue::Variant;
use crate::config::Profile;
use crate::tcp::sender::Sender;

fn scps_tp(pkts: u32) -> Sender {
    sender(Variant::ScpsTp, Profile::Rfc, window(pkts))
}

#[test]
fn every_reported_hole_is_retransmitted_at_once_and_the_window_stays() {
    // 1 and 3 of 6 are lost, as one report shows: the sender does not wait for three duplicates and does not halve the
    // window.
    check(
        scps_tp(6),
        "0.000 > 1 2 3 4 5 6 (cwnd 6 slow start)
         0.500 < ack 1 sack 4-4,2-2
         0.500 > R1 R3 7 8 (cwnd 6 recovery)",
    );
}

#[test]
fn a_lost_retransmission_is_repeated_when_a_later_segment_is_reported() {
    check(
        scps_tp(3),
        "0.000 > 1 2 3 (cwnd 3 slow start)
         0.500 < ack 1 sack 2-2
         0.500 > R1 4 (cwnd 3 recovery)
         0.510 < ack 1 sack 2-3
         0.510 > 5 6 (cwnd 4 recovery)
         1.000 < ack 1 sack 2-4
         1.000 > R1 7 8 (cwnd 5 recovery)
         1.500 < ack 7
         1.500 > 9 (cwnd 8 slow start)",
    );
}
