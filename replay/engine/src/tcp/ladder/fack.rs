//! Ladders of FACK, worked by hand from Mathis and Mahdavi 1996. Notation as in `ladder`.

use super::{check, sender, sender_with, window};
use crate::cc::catalogue::Variant;
use crate::config::Profile;
use crate::tcp::sender::Sender;

fn fack(values: &str) -> Sender {
    sender_with((Variant::Fack, values), Profile::Rfc, window(10))
}

#[test]
fn a_hole_of_more_than_three_segments_is_retransmitted_at_the_first_sack_above_it() {
    // 1, 2 and 3 of 10 are lost: snd.fack - snd.una = 4 segments. awnd = 6 and the retransmission; cwnd 5. Each further
    // SACK takes one from awnd: the retransmissions are sent, then new data. RFC 6675 would wait for two more duplicates.
    let script = "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 4-4
         0.100 > R1 (cwnd 5 recovery)
         0.101 < ack 1 sack 4-5
         0.102 < ack 1 sack 4-6
         0.103 < ack 1 sack 4-7
         0.103 > R2 (cwnd 5 recovery)
         0.104 < ack 1 sack 4-8
         0.104 > R3 (cwnd 5 recovery)
         0.105 < ack 1 sack 4-9
         0.105 > 11 (cwnd 5 recovery)
         0.106 < ack 1 sack 4-10
         0.106 > 12 (cwnd 5 recovery)
         0.200 < ack 2 sack 4-10
         0.200 > 13 (cwnd 5 recovery)
         0.203 < ack 3 sack 4-10
         0.203 > 14 (cwnd 5 recovery)
         0.204 < ack 11
         0.204 > 15 (cwnd 5 avoidance)";
    check(fack("{}"), script);
}

#[test]
fn a_single_hole_waits_for_the_third_duplicate_and_counts_as_gone_meanwhile() {
    // Before the trigger awnd is what lies beyond snd.fack already: the first SACK above 1 lets two segments leave.
    let script = "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 2-2
         0.100 > 11 12 (cwnd 10 slow start)
         0.101 < ack 1 sack 2-3
         0.101 > 13 (cwnd 10 slow start)
         0.102 < ack 1 sack 2-4
         0.102 > R1 (cwnd 5 recovery)";
    check(fack("{}"), script);
    let sack = sender(Variant::Sack, Profile::Rfc, window(10));
    check(sack, &script.replace("11 12", "11").replace("> 13", "> 12"));
}

#[test]
fn rampdown_sends_one_segment_for_two_that_left_and_overdamping_one_for_four() {
    // awnd = 9 beyond snd.fack at the third duplicate. Rampdown: 4.5 above cwnd 5, half a segment less per segment.
    check(
        fack(r#"{"rampdown": true}"#),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 2-2
         0.100 > 11 12 (cwnd 10 slow start)
         0.101 < ack 1 sack 2-3
         0.101 > 13 (cwnd 10 slow start)
         0.102 < ack 1 sack 2-4
         0.102 > R1 (cwnd 9 recovery)
         0.103 < ack 1 sack 2-5
         0.104 < ack 1 sack 2-6
         0.105 < ack 1 sack 2-7
         0.105 > 14 (cwnd 8 recovery)
         0.106 < ack 1 sack 2-8
         0.107 < ack 1 sack 2-9
         0.107 > 15 (cwnd 7 recovery)
         0.108 < ack 1 sack 2-10
         0.200 < ack 11
         0.200 > 16 (cwnd 6 recovery)
         0.203 < ack 14
         0.203 > 17 18 (cwnd 5 avoidance)",
    );
    // In slow start from 10 to 2.5: 6.75 above it, three quarters of a segment less per segment.
    check(
        fack(r#"{"rampdown": true, "overdamping": true}"#),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 2-2
         0.100 > 11 12 (cwnd 10 slow start)
         0.101 < ack 1 sack 2-3
         0.101 > 13 (cwnd 10 slow start)
         0.102 < ack 1 sack 2-4
         0.102 > R1 (cwnd 9 recovery)
         0.103 < ack 1 sack 2-5
         0.104 < ack 1 sack 2-6
         0.105 < ack 1 sack 2-7
         0.106 < ack 1 sack 2-8
         0.107 < ack 1 sack 2-9
         0.108 < ack 1 sack 2-10
         0.200 < ack 11
         0.200 > 14 (cwnd 4 recovery)
         0.201 < ack 12
         0.201 > 15 (cwnd 4 recovery)
         0.202 < ack 14",
    );
}

#[test]
fn what_snd_fack_has_passed_is_retransmitted_although_nothing_above_it_comes_in_order() {
    // Every other segment is lost: at the second SACK snd.fack is four above snd.una, and awnd 8 and the retransmission.
    check(
        fack("{}"),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 2-2
         0.100 > 11 12 (cwnd 10 slow start)
         0.101 < ack 1 sack 4-4,2-2
         0.101 > R1 (cwnd 5 recovery)
         0.102 < ack 1 sack 6-6,4-4,2-2
         0.103 < ack 1 sack 8-8,6-6,4-4
         0.104 < ack 1 sack 10-10,8-8,6-6
         0.104 > R3 R5 (cwnd 5 recovery)
         0.200 < ack 1 sack 10-12,8-8,6-6
         0.200 > R7 R9 (cwnd 5 recovery)",
    );
}
