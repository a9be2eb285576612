//! Ladders of the profile `ns2`: where it leaves the RFCs for what ns-2's agents do. Notation as in `ladder`.

use super::{check, parse, sender, window};
use crate::cc::catalogue::Variant;
use crate::config::{Profile, RecoveryKind, StackOverrides};
use crate::sim::time::{MILLISECOND, Nanos};
use crate::tcp::segment::{Direction, Segment};

#[test]
fn an_ack_buys_one_segment_whatever_it_acknowledges() {
    check(
        sender(Variant::Newreno, Profile::Ns2, window(2)),
        "0.000 > 1 2 (cwnd 2 slow start)
         0.500 < ack 3
         0.500 > 3 4 5 (cwnd 3 slow start)",
    );
}

#[test]
fn newreno_takes_large_partial_acks_out_of_cwnd_for_good() {
    // At 1.0 s five segments are acknowledged: three come out of the inflation, two out of cwnd (4), which grows by
    // one when recovery ends.
    check(
        sender(Variant::Newreno, Profile::Ns2, window(8)),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
         0.500 < ack 1
         0.500 > 9 (cwnd 9 slow start)
         0.501 < ack 1
         0.501 > 10 (cwnd 10 slow start)
         0.502 < ack 1
         0.502 > R1 (cwnd 7 recovery)
         1.000 < ack 6
         1.000 > R6 (cwnd 3 recovery)
         1.500 < ack 11
         1.500 > 11 12 13 (cwnd 3 slow start)",
    );
}

#[test]
fn sack_counts_its_own_pipe_and_retransmits_any_hole_below_the_highest_block() {
    // 12 outstanding less 3 duplicates leave 9; four more leave 5 = cwnd; a partial ACK takes two.
    check(
        sender(Variant::Sack, Profile::Ns2, window(10)),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.500 < ack 1 sack 2-2
         0.500 > 11 (cwnd 11 slow start)
         0.501 < ack 1 sack 2-3
         0.501 > 12 (cwnd 12 slow start)
         0.502 < ack 1 sack 2-3,5-5
         0.502 > R1 (cwnd 5 recovery)
         0.503 < ack 1 sack 2-3,5-6
         0.504 < ack 1 sack 2-3,5-7
         0.505 < ack 1 sack 2-3,5-8
         0.506 < ack 1 sack 2-3,5-9
         1.000 < ack 4 sack 5-9
         1.000 > R4 13 (cwnd 5 recovery)",
    );
}

#[test]
fn after_a_timeout_what_sack_reported_is_sent_again() {
    check(
        sender(Variant::Sack, Profile::Ns2, window(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         0.500 < ack 1 sack 3-4
         0.500 > 5 (cwnd 5 slow start)
         3.000 > R1 (cwnd 1 loss)
         3.500 < ack 2 sack 3-4
         3.500 > R2 R3 (cwnd 2 loss)",
    );
}

#[test]
fn after_a_timeout_a_duplicate_lets_a_segment_out() {
    check(
        sender(Variant::Newreno, Profile::Ns2, window(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         3.000 > R1 (cwnd 1 loss)
         4.000 < ack 1
         4.000 > R2 (cwnd 2 loss)
         4.500 < ack 3
         4.500 > R3 R4 (cwnd 2 loss)",
    );
}

#[test]
fn reno_and_newreno_do_not_answer_duplicates_of_what_was_out_when_the_last_recovery_began() {
    for variant in [Variant::Reno, Variant::Newreno] {
        check(
            sender(variant, Profile::Ns2, window(4)),
            "0.000 > 1 2 3 4 (cwnd 4 slow start)
             3.000 > R1 (cwnd 1 loss)
             3.500 < ack 2
             3.500 > R2 R3 (cwnd 2 loss)
             3.600 < ack 2
             3.600 > R4 (cwnd 3 loss)
             3.700 < ack 2
             3.700 > 5 (cwnd 4 loss)
             3.800 < ack 2",
        );
    }
}

#[test]
fn every_ack_times_the_path_and_one_segment_per_round_trip_the_timeout() {
    let as_sack1 = StackOverrides {
        recovery: Some(RecoveryKind::Sack),
        ..window(4)
    };
    let mut sender = sender(Variant::Vegas, Profile::Ns2, as_sack1);
    let mut segment = Segment::new(0, Direction::Forward);
    while sender.transmit(0, &mut segment) {}
    let mut estimates = |ack: u64, ms: Nanos| {
        let now = ms * MILLISECOND;
        sender.receive(&parse(&format!("ack {ack}"), now), now);
        let rtt = &sender.rtt;
        [rtt.path_srtt(), rtt.srtt(), rtt.min_rtt()].map(|time| time.unwrap_or(0) / 1000)
    };
    assert_eq!(estimates(2, 540), [540_000, 500_000, 540_000]);
    // 7/8 540 + 1/8 532, then + 1/8 600; the first alone was timed by the clock of 100 ms.
    assert_eq!(estimates(3, 532), [539_000, 500_000, 532_000]);
    assert_eq!(estimates(4, 600), [546_625, 500_000, 532_000]);
}
