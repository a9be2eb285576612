//! Ladders of Super TCP, worked by hand: the gap of one burst, of two bursts, and the needless retransmissions where a gap
//! is not a burst. Notation as in `ladder`.

use super::{check, holding};
use crate::cc::catalogue::Variant;

#[test]
fn a_burst_is_retransmitted_on_the_first_duplicate_and_the_first_partial_ack() {
    // 1, 2 and 3 of 8 are lost. Five duplicates report 4 to 8; each but the first releases a new segment. The ACK of 1
    // leaves seven below the recovery point, of which five have arrived: 2 and 3 are sent at once.
    check(
        holding(Variant::Supertcp, 8),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 avoidance)
         0.500 < ack 1
         0.500 > R1 9 (cwnd 8 recovery)
         0.501 < ack 1
         0.501 > 10 (cwnd 8 recovery)
         0.502 < ack 1
         0.502 > 11 (cwnd 8 recovery)
         0.503 < ack 1
         0.503 > 12 (cwnd 8 recovery)
         0.504 < ack 1
         0.504 > 13 (cwnd 8 recovery)
         1.000 < ack 2
         1.000 > R2 R3 14 (cwnd 8 recovery)
         1.500 < ack 3
         1.500 > 15 (cwnd 8 recovery)
         1.501 < ack 14
         1.501 > 16 17 18 19 20 21 (cwnd 8 avoidance)",
    );
}

#[test]
fn a_gap_that_is_no_burst_leads_to_needless_retransmissions() {
    // 1, 4 and 6 of 8 are lost. The ACK of 1 (and 2, 3) leaves five, of which three have arrived: 4 and, needlessly, 5. The
    // ACK of 4 shows the hole at 6; the second copy of 5 brings a duplicate.
    check(
        holding(Variant::Supertcp, 8),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 avoidance)
         0.500 < ack 1
         0.500 > R1 9 (cwnd 8 recovery)
         0.501 < ack 1
         0.501 > 10 (cwnd 8 recovery)
         0.502 < ack 1
         0.502 > 11 (cwnd 8 recovery)
         0.503 < ack 1
         0.503 > 12 (cwnd 8 recovery)
         0.504 < ack 1
         0.504 > 13 (cwnd 8 recovery)
         1.000 < ack 4
         1.000 > R4 R5 14 (cwnd 8 recovery)
         1.500 < ack 6
         1.500 > R6 (cwnd 8 recovery)
         1.501 < ack 6
         1.501 > 15 (cwnd 8 recovery)
         2.000 < ack 14
         2.000 > 16 17 18 19 20 21 (cwnd 8 avoidance)",
    );
}

#[test]
fn a_lost_retransmission_waits_for_the_timeout_which_sends_the_window_again() {
    // RTO = 0.5 + 4 * 0.25 s after the first sample. Of 2 to 5 only 2 is missing, which the sender cannot know.
    check(
        holding(Variant::Supertcp, 4),
        "0.000 > 1 2 3 4 (cwnd 4 avoidance)
         0.500 < ack 2
         0.500 > 5 (cwnd 4 avoidance)
         0.510 < ack 2
         0.510 > R2 6 (cwnd 4 recovery)
         2.010 > R2 R3 R4 R5 (cwnd 4 loss)
         2.100 end",
    );
}
