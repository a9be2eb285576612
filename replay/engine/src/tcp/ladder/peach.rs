//! Ladders of TCP-Peach, worked by hand from Akyildiz, Morabito and Palazzo 2001 §III. Notation as in `ladder`; P is a
//! dummy segment, `dummy` its answer.

use super::{check, sender, window};
use crate::cc::catalogue::Variant;
use crate::config::Profile;
use crate::tcp::sender::Sender;
use crate::tcp::sender::probe_segments::LowPriorityProbes;

fn peach(pkts: u32) -> Sender {
    sender(Variant::Peach, Profile::Rfc, window(pkts))
}

#[test]
fn sudden_start_spreads_its_segments_over_a_round_trip_and_each_answer_buys_one_of_data() {
    // The first ACK shows the round trip of 0.5 s: five segments of the receiver's window, one per 0.1 s.
    check(
        peach(1),
        "0.000 > 1 (cwnd 1 avoidance)
         0.500 < ack 2 wnd 5
         0.500 > 2 3 (cwnd 2 avoidance)
         0.600 > P3 (cwnd 2 avoidance)
         0.700 > P3 (cwnd 2 avoidance)
         0.800 > P3 (cwnd 2 avoidance)
         0.900 > P3 (cwnd 2 avoidance)
         1.000 < ack 4 wnd 5
         1.000 > 4 5 6 (cwnd 3 avoidance)
         1.100 < ack 1 dummy 1
         1.100 > 7 (cwnd 4 avoidance)
         1.200 < ack 1 dummy 1
         1.200 > 8 (cwnd 5 avoidance)",
    );
}

#[test]
fn rapid_recovery_sends_a_dummy_per_ack_and_answers_beyond_half_the_window_buy_data() {
    // Segment 1 of 4 is lost: cwnd 4 / 2 = 2. Up to four dummy segments may leave; recovery's three ACKs let three. The
    // first two answers are those that a full queue would let through as well; the third increases the window by a segment.
    check(
        peach(4),
        "0.000 > 1 2 3 4 (cwnd 4 avoidance)
         0.500 < ack 1 sack 2-2
         0.500 > 5 (cwnd 4 avoidance)
         0.501 < ack 1 sack 2-3
         0.501 > 6 (cwnd 4 avoidance)
         0.502 < ack 1 sack 2-4
         0.502 > R1 P6 (cwnd 2 recovery)
         1.000 < ack 1 sack 2-5
         1.000 > P6 (cwnd 2 recovery)
         1.001 < ack 1 sack 2-6
         1.001 > 7 P7 (cwnd 2 recovery)
         1.002 < ack 7
         1.002 > 8 (cwnd 2 avoidance)
         1.003 < ack 1 dummy 1
         1.500 < ack 1 dummy 1
         1.501 < ack 1 dummy 1
         1.501 > 9 (cwnd 3 avoidance)",
    );
}

#[test]
fn rapid_recovery_sends_a_dummy_per_segment_delivered_where_one_ack_reports_several() {
    check(
        peach(6),
        "0.000 > 1 2 3 4 5 6 (cwnd 6 avoidance)
         0.502 < ack 1 sack 2-4
         0.502 > R1 P6 P6 P6 (cwnd 3 recovery)
         0.503 < ack 1 sack 2-6
         0.503 > 7 8 P8 P8 (cwnd 3 recovery)",
    );
}

#[test]
fn a_timeout_starts_suddenly_again_with_ssthresh() {
    // RTO = 0.5 + 4 * 0.25 s; the receiver takes five segments, so that four dummy segments follow the first one of data.
    // After the timeout it is ssthresh, two segments: one dummy half a round trip after the segment of data.
    check(
        peach(2),
        "0.000 > 1 2 (cwnd 2 avoidance)
         0.500 < ack 3 wnd 5
         0.500 > 3 4 5 (cwnd 3 avoidance)
         0.600 > P5 (cwnd 3 avoidance)
         0.700 > P5 (cwnd 3 avoidance)
         0.800 > P5 (cwnd 3 avoidance)
         0.900 > P5 (cwnd 3 avoidance)
         2.000 > R3 (cwnd 1 loss)
         2.250 > P5 (cwnd 1 loss)
         2.500 end",
    );
}

#[test]
fn segments_of_low_priority_may_carry_what_is_not_acknowledged_the_oldest_first() {
    let mut sender = peach(2);
    let nil = sender
        .params
        .low_priority_probes
        .map(|rule| crate::config::ProbeSegments {
            carry_unacknowledged: true,
            ..rule
        });
    sender.low_priority_probes = nil.map(|rule| Box::new(LowPriorityProbes::new(rule, 2.0)));
    check(
        sender,
        "0.000 > 1 2 (cwnd 2 avoidance)
         0.500 < ack 3 wnd 5
         0.500 > 3 4 5 (cwnd 3 avoidance)
         0.600 > P3 (cwnd 3 avoidance)
         0.700 > P4 (cwnd 3 avoidance)
         0.800 > P5 (cwnd 3 avoidance)
         0.900 > P5 (cwnd 3 avoidance)
         1.000 end",
    );
}
