//! Ladders of AeroTCP: the paper's Fig. 4 to the packet, and what it leaves open. Notation as in `ladder`.

use super::{check, holding};
use crate::cc::catalogue::Variant;

#[test]
fn figure_4_to_the_packet() {
    // Packets 1 and 2 of the window 1..8 are lost. The first duplicate triggers the retransmission of 1, the second that of
    // 2; each of the others releases one new packet, the partial ACK two.
    check(
        holding(Variant::Aerotcp, 8),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 avoidance)
         0.500 < ack 1 sack 3-3
         0.500 > R1 (cwnd 8 recovery)
         0.501 < ack 1 sack 3-4
         0.501 > R2 (cwnd 8 recovery)
         0.502 < ack 1 sack 3-5
         0.502 > 9 (cwnd 8 recovery)
         0.503 < ack 1 sack 3-6
         0.503 > 10 (cwnd 8 recovery)
         0.504 < ack 1 sack 3-7
         0.504 > 11 (cwnd 8 recovery)
         0.505 < ack 1 sack 3-8
         0.505 > 12 (cwnd 8 recovery)
         1.000 < ack 2 sack 3-8
         1.000 > 13 14 (cwnd 8 recovery)
         1.001 < ack 9
         1.001 > 15 16 (cwnd 8 avoidance)
         1.002 < ack 10
         1.002 > 17 (cwnd 8 avoidance)
         1.003 < ack 11
         1.003 > 18 (cwnd 8 avoidance)
         1.004 < ack 12
         1.004 > 19 (cwnd 8 avoidance)
         1.005 < ack 13
         1.005 > 20 (cwnd 8 avoidance)
         1.500 < ack 14
         1.500 > 21 (cwnd 8 avoidance)",
    );
}

#[test]
fn a_lost_retransmission_is_sent_twice_after_a_timeout_and_the_window_stays() {
    // RTO = 0.5 + 4 * 0.25 s after the first sample; nothing backs off.
    check(
        holding(Variant::Aerotcp, 4),
        "0.000 > 1 2 3 4 (cwnd 4 avoidance)
         0.500 < ack 2
         0.500 > 5 (cwnd 4 avoidance)
         0.510 < ack 2 sack 3-3
         0.510 > R2 (cwnd 4 recovery)
         0.520 < ack 2 sack 3-4
         0.520 > 6 (cwnd 4 recovery)
         2.010 > R2 R2 R5 R6 (cwnd 4 recovery)
         3.510 > R2 R2 R5 R6 (cwnd 4 recovery)
         3.600 end",
    );
}

#[test]
fn a_duplicate_without_new_sack_changes_nothing() {
    check(
        holding(Variant::Aerotcp, 4),
        "0.000 > 1 2 3 4 (cwnd 4 avoidance)
         0.500 < ack 2
         0.500 > 5 (cwnd 4 avoidance)
         0.510 < ack 2
         0.520 < ack 2 wnd 900",
    );
}
