//! Packet ladders of spurious retransmissions and timeouts under the profile `rfc`. The script's language is `ladder`'s.
//! Read RFC 3522 §3.2 and RFC 5682 §2.1 first.

use super::{avoiding, check, sender, window};
use crate::cc::catalogue::Variant;
use crate::config::{Profile, StackOverrides};
use crate::tcp::sender::Sender;

fn newreno(timestamps: bool, change: fn(&mut StackOverrides)) -> Sender {
    let mut overrides = StackOverrides {
        timestamps: Some(timestamps),
        ..window(4)
    };
    change(&mut overrides);
    sender(Variant::Newreno, Profile::Rfc, overrides)
}

const TIMED_OUT: &str = "0.000 > 1 2 3 4 (cwnd 4 slow start)
    1.000 > R1 (cwnd 1 loss)
";

#[test]
fn rfc3522_an_echo_older_than_the_retransmission_undoes_a_timeout() {
    check(
        newreno(true, |_| ()),
        &format!(
            "{TIMED_OUT}1.100 < ack 2 echo 1
             1.100 > 5 (cwnd 4 slow start)"
        ),
    );
}

#[test]
fn rfc3522_an_echo_of_the_retransmission_does_not() {
    check(
        newreno(true, |_| ()),
        &format!(
            "{TIMED_OUT}1.100 < ack 2 echo 1000
             1.100 > R2 R3 (cwnd 2 loss)"
        ),
    );
}

#[test]
fn without_undo_an_old_echo_does_not_either() {
    check(
        newreno(true, |overrides| overrides.undo = Some(false)),
        &format!(
            "{TIMED_OUT}1.100 < ack 2 echo 1
             1.100 > R2 R3 (cwnd 2 loss)"
        ),
    );
}

#[test]
fn rfc5682_without_timestamps_new_data_shows_that_a_timeout_was_spurious() {
    check(
        newreno(false, |_| ()),
        &format!(
            "{TIMED_OUT}1.100 < ack 2
             1.100 > 5 6 (cwnd 2 loss)
             1.102 < ack 3
             1.104 < ack 4
             1.104 > 7 8 (cwnd 5 slow start)"
        ),
    );
}

#[test]
fn rfc5682_a_duplicate_after_new_data_shows_that_it_was_not() {
    check(
        newreno(false, |_| ()),
        &format!(
            "{TIMED_OUT}1.100 < ack 2
             1.100 > 5 6 (cwnd 2 loss)
             1.200 < ack 2
             1.200 > R2 (cwnd 3 loss)
             1.300 < ack 3
             1.300 > R3 (cwnd 3 loss)"
        ),
    );
}

#[test]
fn rfc5682_a_duplicate_before_any_other_ack_ends_frto() {
    check(
        newreno(false, |_| ()),
        &format!(
            "{TIMED_OUT}1.100 < ack 1
             1.102 < ack 2
             1.102 > R2 R3 (cwnd 2 loss)"
        ),
    );
}

#[test]
fn without_frto_retransmissions_go_first() {
    check(
        newreno(false, |overrides| overrides.frto = Some(false)),
        &format!(
            "{TIMED_OUT}1.100 < ack 2
             1.100 > R2 R3 (cwnd 2 loss)"
        ),
    );
}

/// Segment 1 was late, not lost: three duplicate ACKs led to a spurious retransmission.
fn spurious_recovery(rest: &str) {
    let sack = sender(Variant::Sack, Profile::Rfc, avoiding(8));
    check(
        sack,
        &format!(
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 avoidance)
             0.100 < ack 1 echo 1 sack 2-2
             0.100 > 9 (cwnd 8 avoidance)
             0.102 < ack 1 echo 1 sack 2-3
             0.102 > 10 (cwnd 8 avoidance)
             0.104 < ack 1 echo 1 sack 2-4
             0.104 > R1 (cwnd 4 recovery)
             {rest}"
        ),
    );
}

#[test]
fn rfc3522_an_echo_older_than_the_retransmission_undoes_a_recovery() {
    spurious_recovery(
        "0.106 < ack 5 echo 1
         0.106 > 11 12 (cwnd 8 avoidance)",
    );
}

#[test]
fn rfc3522_an_echo_of_the_retransmission_does_not_undo_it() {
    spurious_recovery(
        "0.204 < ack 11 echo 104
         0.204 > 11 12 13 14 (cwnd 4 avoidance)",
    );
}

#[test]
fn rfc3708_a_dsack_undoes_a_recovery_that_has_ended() {
    spurious_recovery(
        "0.204 < ack 11 echo 104
         0.204 > 11 12 13 14 (cwnd 4 avoidance)
         0.206 < ack 11 echo 104 sack 1-1
         0.206 > 15 16 17 18 (cwnd 8 avoidance)",
    );
}
