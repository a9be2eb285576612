//! Ladders of the recovery of ns-2's TCP/Linux, worked by hand. Notation as in `ladder`.

use super::{avoiding, check, finite, sender, window};
use crate::cc::catalogue::Variant;
use crate::config::{Profile, RecoveryKind, StackOverrides};
use crate::tcp::sender::Sender;

#[allow(
    clippy::large_types_passed_by_value,
    reason = "each test writes its own"
)]
fn of(variant: Variant, overrides: StackOverrides) -> Sender {
    sender(variant, Profile::Ns2, overrides)
}

/// Segment 1 of eight is lost. SACK lets new segments leave until the fourth block shows the loss: pipe 11 - 4 - 1 = 6. The
/// retransmission makes it 7, and from then on every second ACK lets a segment leave.
const ONE_LOSS: &str = "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 avoidance)
    0.500 < ack 1 sack 2-2
    0.500 > 9 (cwnd 8 avoidance)
    0.501 < ack 1 sack 2-3
    0.501 > 10 (cwnd 8 avoidance)
    0.502 < ack 1 sack 2-4
    0.502 > 11 (cwnd 8 avoidance)
    0.503 < ack 1 sack 2-5
    0.503 > R1 (cwnd 6 recovery)
    0.504 < ack 1 sack 2-6
    0.505 < ack 1 sack 2-7
    0.505 > 12 (cwnd 5 recovery)
    0.506 < ack 1 sack 2-8
    1.000 < ack 1 sack 2-9
    1.000 > 13 (cwnd 4 recovery)
    1.001 < ack 1 sack 2-10
    1.002 < ack 1 sack 2-11
    1.002 > 14 (cwnd 3 recovery)
";

#[test]
fn recovery_halves_the_rate_and_ends_at_ssthresh() {
    // 12 to 14 are in flight: cwnd rises from 2 to ssthresh, 4, for which a burst of three has room.
    check(
        of(Variant::LinuxReno, avoiding(8)),
        &format!(
            "{ONE_LOSS}1.003 < ack 12
             1.003 > 15 (cwnd 4 avoidance)
             1.505 < ack 13
             1.505 > 16 17 (cwnd 5 avoidance)"
        ),
    );
}

#[test]
fn a_retransmission_is_lost_when_sack_reports_what_left_after_it() {
    // Segment 12 left after R1. Pipe 14 - 11 - 1 = 2.
    check(
        of(Variant::LinuxReno, avoiding(8)),
        &format!(
            "{ONE_LOSS}1.005 < ack 1 sack 2-12
             1.005 > R1 (cwnd 2 recovery)"
        ),
    );
}

#[test]
fn a_retransmission_is_lost_when_more_than_four_after_it_have_come() {
    // The retransmissions of 1, 2, 3, 4, 5 and 6 leave in this order; there is no new data to tell of a loss. When that of
    // 6 is reported, R1 is five behind it: lost, as the next ACK finds.
    let sixteen = finite(of(Variant::Cubic, avoiding(16)), 16);
    check(
        sixteen,
        "0.000 > 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 (cwnd 16 avoidance)
         0.500 < ack 1 sack 7-10
         0.500 > R1 R2 R3 R4 R5 (cwnd 11 recovery)
         0.501 < ack 1 sack 7-11
         0.501 > R6 (cwnd 11 recovery)
         1.000 < ack 1 sack 2-11
         1.001 < ack 1 sack 2-12
         1.001 > R1 (cwnd 11 recovery)",
    );
}

#[test]
fn a_timeout_takes_all_but_what_sack_reported_for_lost() {
    // The sample of 0.5 s makes the timeout 1.5 s. The ACK opens the window to ssthresh, half of 4.
    check(
        of(Variant::LinuxReno, window(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         0.500 < ack 1 sack 3-4
         0.500 > 5 6 (cwnd 4 slow start)
         2.000 > R1 (cwnd 1 loss)
         2.500 < ack 2 sack 3-4 echo 2000
         2.500 > R2 R5 (cwnd 2 loss)
         3.000 < ack 5 echo 2500
         3.000 > R6 7 (cwnd 3 loss)",
    );
}

#[test]
fn a_duplicate_without_sack_restarts_the_timer_and_lets_nothing_leave() {
    // Without it the timer would expire at 2.0 s: a timeout of 1.5 s from 0.5 s on. The sample of 0.6 s makes it
    // 4100 / 8 + (1000 + 100 - 250) = 512 + 850 ms from 0.6 s on.
    check(
        of(Variant::LinuxReno, window(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         0.500 < ack 1 sack 3-4
         0.500 > 5 6 (cwnd 4 slow start)
         0.600 < ack 1 sack 3-4
         1.962 > R1 (cwnd 1 loss)
         2.100 end",
    );
}

#[test]
fn another_profile_keeps_its_timer_and_its_windows() {
    let overrides = StackOverrides {
        recovery: Some(RecoveryKind::Ns2TcpLinux),
        limited_transmit: Some(false),
        ..window(4)
    };
    check(
        sender(Variant::Cubic, Profile::Rfc, overrides),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         0.100 < ack 1 sack 3-4
         0.100 > 5 6 (cwnd 4 slow start)
         1.100 > R1 (cwnd 1 loss)
         1.200 end",
    );
}
