//! Packet ladders of rules that only Linux has: RACK and the tail loss probe, undo, recovery without SACK, bursts.
//! The script's language is `ladder`'s.

use super::{SMSS, avoiding, check, finite, parse, sender, window};
use crate::cc::Pace;
use crate::cc::catalogue::Variant;
use crate::config::{Profile, StackOverrides};
use crate::sim::time::MILLISECOND;
use crate::tcp::sender::Sender;
use crate::tcp::sender::pacing::Pacer;
use crate::tcp::sender::send_queue::SendQueue;

fn unprobed(pkts: u32) -> StackOverrides {
    StackOverrides {
        tail_loss_probe: Some(false),
        ..window(pkts)
    }
}

#[test]
fn rfc8985_rack_finds_a_lost_retransmission_without_a_timeout() {
    // Segment 1 and its retransmission are lost; the SACK of segment 13, sent after the retransmission, shows it.
    check(
        sender(Variant::LinuxReno, Profile::Linux, window(10)),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 2-2
         0.100 > 11 (cwnd 10 slow start)
         0.102 < ack 1 sack 2-3
         0.102 > 12 (cwnd 10 slow start)
         0.103 < ack 1 sack 2-4
         0.103 > R1 (cwnd 9 recovery)
         0.103 < ack 1 sack 2-5
         0.104 < ack 1 sack 2-6
         0.104 > 13 (cwnd 8 recovery)
         0.105 < ack 1 sack 2-7
         0.106 < ack 1 sack 2-8
         0.106 > 14 (cwnd 7 recovery)
         0.107 < ack 1 sack 2-9
         0.108 < ack 1 sack 2-10
         0.200 < ack 1 sack 2-11
         0.200 > 15 (cwnd 5 recovery)
         0.201 < ack 1 sack 2-12
         0.201 > 16 (cwnd 5 recovery)
         0.204 < ack 1 sack 2-13
         0.204 > R1 17 (cwnd 5 recovery)
         0.206 < ack 1 sack 2-14
         0.206 > 18 (cwnd 5 recovery)
         0.300 < ack 1 sack 2-15
         0.300 > 19 (cwnd 5 recovery)
         0.301 < ack 1 sack 2-16
         0.301 > 20 (cwnd 5 recovery)
         0.304 < ack 17
         0.304 > 21 (cwnd 5 avoidance)",
    );
}

#[test]
fn rfc8985_rack_waits_a_quarter_round_trip_for_a_lone_sack() {
    // Two segments, the first lost: one SACK is no proof; the reordering window of 25 ms closes at 0.125, Linux's timer
    // 2 ms later, at the tick behind the one that is up then.
    check(
        finite(sender(Variant::LinuxReno, Profile::Linux, window(2)), 2),
        "0.000 > 1 2 (cwnd 2 slow start)
         0.100 < ack 1 sack 2-2
         0.132 > R1 (cwnd 1 recovery)
         0.225 < ack 3
         5.000 end",
    );
}

#[test]
fn rfc8985_tail_loss_probe_takes_the_place_of_the_timeout() {
    // Two round trips and 200 ms for a lone segment would be 0.6; the RTO of 0.3 s from 0.2 on comes sooner: 75
    // ticks, after which the timer fires at the next step of eight.
    check(
        finite(sender(Variant::LinuxReno, Profile::Linux, window(4)), 8),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         0.100 < ack 5
         0.100 > 5 6 7 8 (cwnd 8 limited)
         0.200 < ack 8
         0.512 > P8 (cwnd 8 limited)
         0.700 < ack 9
         5.000 end",
    );
}

#[test]
fn linux_room_for_one_waits_for_the_next_ack_if_that_is_due() {
    // A pair left at 0.100 and the ACK of segment 4 is due: at 0.101 room for one waits, and leaves as a pair at 0.102.
    // At 0.150 the last segment left long ago: room for one is used.
    check(
        sender(Variant::LinuxReno, Profile::Linux, avoiding(12)),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 11 12 (cwnd 12 avoidance)
         0.100 < ack 3
         0.100 > 13 14 (cwnd 12 avoidance)
         0.101 < ack 4
         0.102 < ack 5
         0.102 > 15 16 (cwnd 12 avoidance)
         0.150 < ack 6
         0.150 > 17 (cwnd 12 avoidance)",
    );
}

#[test]
fn linux_room_for_one_in_the_receivers_window_waits_as_well() {
    // The congestion window has room for more. At 0.101 the receiver's has room for segment 15 alone, which leaves with 16 at
    // 0.102; at 0.150 no ACK is due soon, and room for one is used.
    check(
        sender(Variant::LinuxReno, Profile::Linux, window(12)),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 11 12 (cwnd 12 slow start)
         0.100 < ack 3 wnd 12
         0.100 > 13 14 (cwnd 14 limited)
         0.101 < ack 4 wnd 12
         0.102 < ack 5 wnd 12
         0.102 > 15 16 (cwnd 16 limited)
         0.150 < ack 6 wnd 12
         0.150 > 17 (cwnd 17 limited)",
    );
}

#[test]
fn linux_the_smaller_window_is_what_a_deferred_burst_waits_for() {
    // At 0.101 the congestion window has room for one; the receiver's for one, too, or for two.
    let waits_for_cwnd = |wnd: u32| {
        let mut sender = sender(Variant::LinuxReno, Profile::Linux, avoiding(12));
        for (at, acked) in [(0, None), (100, Some(3)), (101, Some(4))] {
            let now = at * MILLISECOND;
            if let Some(acked) = acked {
                sender.receive(&parse(&format!("ack {acked} wnd {wnd}"), now), now);
            }
            while sender.poll_transmit(now).is_some() {}
        }
        sender.awaits_room(101 * MILLISECOND)
    };
    assert_eq!([12, 13].map(waits_for_cwnd), [false, true]);
}

#[test]
fn linux_room_for_one_waits_up_to_a_millisecond_after_pacing_lets_it_leave() {
    // As above, but what left at 0.100 is paced: the next may leave at 0.104.
    let mut sender = sender(Variant::LinuxReno, Profile::Linux, avoiding(12));
    for (at, acked) in [(0, None), (100, Some(3)), (101, Some(4))] {
        let now = at * MILLISECOND;
        if let Some(acked) = acked {
            sender.receive(&parse(&format!("ack {acked}"), now), now);
        }
        while sender.poll_transmit(now).is_some() {}
    }
    let waits = |sender: &Sender| {
        let times = [1010, 1011, 1049, 1050, 1051].map(|at| at * MILLISECOND / 10);
        times.map(|now| sender.awaits_room(now))
    };
    assert_eq!(waits(&sender), [true, false, false, false, false]);
    let mut pacer = Pacer::default();
    // 1000 octets take 8 ms, half of them saved by the credit of the first 100 ms.
    pacer.set_pace(Pace::new(125.0, 2), 1000, None);
    pacer.on_send(1, 1000, 10, 100 * MILLISECOND);
    sender.pacer = Some(pacer);
    assert_eq!(waits(&sender), [true, true, true, true, false]);
}

#[test]
fn linux_a_piece_that_a_write_has_just_filled_does_not_wait() {
    // As above, but nothing is written at 0.101; what is written then fills a piece, so that room for one is used.
    let overrides = StackOverrides {
        initial_ssthresh_pkts: Some(2),
        send_buffer_bytes: Some(1 << 20),
        ..window(12)
    };
    let mut sender = sender(Variant::LinuxReno, Profile::Linux, overrides);
    sender.write_end = 1 + 14 * SMSS;
    sender.send_queue = SendQueue::default();
    let (mut now, mut left) = (0, Vec::new());
    let mut poll = |sender: &mut Sender, now| {
        while let Some(segment) = sender.poll_transmit(now) {
            left.push((now / MILLISECOND, segment.seq / SMSS));
        }
    };
    poll(&mut sender, now);
    for (at, ack) in [(100, 3), (101, 4)] {
        now = at * MILLISECOND;
        let ack = parse(&format!("ack {ack} wnd 1000"), now);
        sender.receive(&ack, now);
        poll(&mut sender, now);
    }
    sender.write_to(sender.write_end() + sender.piece_room(), false);
    poll(&mut sender, now);
    assert_eq!(left[12..], [(100, 12), (100, 13), (101, 14)]);
}

#[test]
fn linux_a_write_ends_the_wait_for_more() {
    // Room for one waits at 0.101. At 0.103 no segment has left within a millisecond: a write uses that room, and time alone
    // does not.
    let left_at_103 = |writes: bool| {
        let overrides = StackOverrides {
            send_buffer_bytes: Some(1 << 20),
            ..avoiding(12)
        };
        let mut sender = sender(Variant::LinuxReno, Profile::Linux, overrides);
        sender.write_end = 1 + 40 * SMSS;
        sender.send_queue = SendQueue::default();
        for (at, acked) in [(0, None), (100, Some(3)), (101, Some(4))] {
            let now = at * MILLISECOND;
            if let Some(acked) = acked {
                sender.receive(&parse(&format!("ack {acked}"), now), now);
            }
            while sender.poll_transmit(now).is_some() {}
        }
        if writes {
            sender.write_to(sender.write_end() + 10, false);
        }
        sender.poll_transmit(103 * MILLISECOND).is_some()
    };
    assert_eq!([false, true].map(left_at_103), [false, true]);
}

/// Four segments; three SACKs trigger Linux's retransmission of the first one at 0.104.
const RETRANSMITTED: &str = "0.000 > 1 2 3 4 (cwnd 4 avoidance)
    0.100 < ack 1 echo 1 sack 2-2
    0.100 > 5 (cwnd 4 avoidance)
    0.102 < ack 1 echo 1 sack 2-3
    0.102 > 6 (cwnd 4 avoidance)
    0.104 < ack 1 echo 1 sack 2-4
    0.104 > R1 (cwnd 3 recovery)
";

fn after_retransmission(rest: &str) {
    check(
        sender(Variant::LinuxReno, Profile::Linux, avoiding(4)),
        &format!("{RETRANSMITTED}{rest}"),
    );
}

#[test]
fn rfc3522_an_echo_older_than_the_retransmission_undoes_the_decrease() {
    after_retransmission(
        "0.106 < ack 7 echo 1
         0.106 > 7 8 9 10 (cwnd 4 avoidance)",
    );
}

#[test]
fn rfc3522_an_echo_of_the_retransmission_does_not() {
    after_retransmission(
        "0.206 < ack 7 echo 104
         0.206 > 7 8 9 (cwnd 3 avoidance)",
    );
}

#[test]
fn rfc3708_a_dsack_of_the_only_retransmission_undoes_the_decrease() {
    after_retransmission(
        "0.206 < ack 7 echo 104
         0.206 > 7 8 9 (cwnd 3 avoidance)
         0.208 < ack 7 echo 104 sack 1-1
         0.208 > 10 (cwnd 4 avoidance)",
    );
}

#[test]
fn rfc5682_new_data_shows_that_a_timeout_was_spurious() {
    check(
        sender(Variant::LinuxReno, Profile::Linux, unprobed(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         1.024 > R1 (cwnd 1 loss)
         1.100 < ack 2 echo 1024
         1.100 > 5 6 (cwnd 2 loss)
         1.102 < ack 3 echo 1024
         1.102 > 7 (cwnd 5 slow start)",
    );
}

/// RFC 8985 §6.2 step 2: the echo shows that the first transmission of 1 has arrived, so that 2 to 4, which left before
/// the second, are not late.
#[test]
fn rfc8985_a_retransmission_newer_than_the_echo_shows_nothing_of_what_left_before_it() {
    check(
        sender(Variant::LinuxReno, Profile::Linux, unprobed(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         1.024 > R1 (cwnd 1 loss)
         1.100 < ack 2 echo 1
         1.100 > 5 6 (cwnd 5 slow start)",
    );
}

/// Linux (`tcp_tsq_write`): the timer of pacing looks for lost segments first, whatever the last ACK held back.
#[test]
fn linux_new_data_comes_first_only_while_the_ack_is_dealt_with() {
    check(
        sender(Variant::Bbr, Profile::Linux, unprobed(12)),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 11 12 (cwnd 12 slow start)
         1.024 > R1 (cwnd 1 loss)
         1.100 < ack 2 echo 1024
         1.100 > 13 (cwnd 4 loss)
         1.113 > R2 (cwnd 4 loss)
         1.140 > R3 (cwnd 4 loss)
         1.150 end",
    );
}

/// `tcp_cwnd_validate` is not called for what a timeout retransmits: the receiver's window was the limit, and still is.
#[test]
fn linux_a_timeout_does_not_make_the_window_the_limit() {
    let mut limited = sender(Variant::LinuxReno, Profile::Linux, unprobed(16));
    limited.edge = 4001;
    check(
        limited,
        "0.000 > 1 2 3 4 (cwnd 16 limited)
         1.024 > R1 (cwnd 1 loss)
         1.100 < ack 5 echo 1024 wnd 4
         1.100 > 5 6 7 8 (cwnd 16 limited)",
    );
}

#[test]
fn rfc5682_sack_of_the_new_data_shows_that_it_was_not() {
    check(
        sender(Variant::LinuxReno, Profile::Linux, unprobed(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         1.024 > R1 (cwnd 1 loss)
         1.100 < ack 2 echo 1024
         1.100 > 5 6 (cwnd 2 loss)
         1.200 < ack 2 echo 1000 sack 5-5
         1.200 > R2 (cwnd 2 loss)
         1.300 < ack 3 echo 1200 sack 5-6
         1.300 > R3 R4 7 (cwnd 3 loss)",
    );
}

#[test]
fn linux_without_sack_counts_duplicates_and_retransmits_one_hole_per_round_trip() {
    let overrides = StackOverrides {
        sack: Some(false),
        ..avoiding(8)
    };
    check(
        sender(Variant::LinuxReno, Profile::Linux, overrides),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 avoidance)
         0.100 < ack 1 echo 1
         0.100 > 9 (cwnd 8 avoidance)
         0.102 < ack 1 echo 1
         0.102 > 10 (cwnd 8 avoidance)
         0.104 < ack 1 echo 1
         0.104 > R1 (cwnd 7 recovery)
         0.106 < ack 1 echo 1
         0.108 < ack 1 echo 1
         0.108 > 11 (cwnd 6 recovery)
         0.204 < ack 5 echo 104
         0.206 < ack 5 echo 104
         0.206 > R5 (cwnd 4 recovery)",
    );
}

fn without_sack(script: &str) {
    let overrides = StackOverrides {
        sack: Some(false),
        ..unprobed(4)
    };
    check(
        sender(Variant::LinuxReno, Profile::Linux, overrides),
        script,
    );
}

#[test]
fn linux_without_sack_goes_on_after_a_late_echo_until_something_sent_only_once_arrives() {
    // The echo undoes the decrease; 2 ends loss recovery.
    without_sack(
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         1.024 > R1 (cwnd 1 loss)
         1.100 < ack 2 echo 1
         1.100 > 5 6 (cwnd 5 loss)
         1.102 < ack 3 echo 1
         1.102 > 7 8 (cwnd 6 slow start)",
    );
}

#[test]
fn linux_without_sack_an_ack_that_covers_the_retransmission_decides_nothing() {
    // 2 has arrived, but perhaps only the retransmission of 1 let it be acknowledged.
    without_sack(
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         1.024 > R1 (cwnd 1 loss)
         1.100 < ack 3 echo 1024
         1.100 > 5 6 (cwnd 2 loss)
         1.102 < ack 4 echo 1024
         1.102 > 7 8 (cwnd 5 slow start)",
    );
}

#[test]
fn linux_without_sack_counts_no_duplicate_in_recovery_from_a_timeout() {
    // Three duplicates of 6 are enough: that of 1 has not been taken for reordering.
    without_sack(
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         1.024 > R1 (cwnd 1 loss)
         1.030 < ack 1 echo 1
         1.100 < ack 5 echo 1024
         1.100 > 5 6 7 (cwnd 3 loss)
         1.200 < ack 6 echo 1100
         1.200 > 8 (cwnd 3 avoidance)
         1.300 < ack 6 echo 1100
         1.300 > 9 (cwnd 3 avoidance)
         1.302 < ack 6 echo 1100
         1.302 > 10 (cwnd 3 avoidance)
         1.304 < ack 6 echo 1100
         1.304 > R6 (cwnd 2 recovery)",
    );
}

#[test]
fn linux_learns_reordering_and_then_waits_for_late_segments() {
    // 1 arrives after 2 to 4, before its RTT has led to a retransmission: no loss is left, and the next three SACKs wait
    // a quarter of the minimum RTT.
    check(
        sender(Variant::LinuxReno, Profile::Linux, avoiding(8)),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 avoidance)
         0.100 < ack 1 echo 1 sack 2-2
         0.100 > 9 (cwnd 8 avoidance)
         0.102 < ack 1 echo 1 sack 2-3
         0.102 > 10 (cwnd 8 avoidance)
         0.103 < ack 4 echo 1
         0.104 < ack 4 echo 1 sack 5-8
         0.104 > 11 12 13 14 (cwnd 8 avoidance)
         0.128 end
         0.136 > R4 (cwnd 7 recovery)
         0.137 end",
    );
}

#[test]
fn linux_counts_what_came_twice_as_delivered_and_sends_lost_segments_behind_one_burst_of_new_data()
{
    // Both copies of 1 that the timeouts sent arrive, the second one as a duplicate: the window grows by two.
    check(
        sender(Variant::LinuxReno, Profile::Linux, unprobed(8)),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
         1.024 > R1 (cwnd 1 loss)
         3.040 > R1 (cwnd 1 loss)
         3.100 < ack 2 sack 1-1
         3.100 > 9 10 R2 (cwnd 3 loss)",
    );
}

/// The ACK of segment 3 was lost, and with it all that left since. What was sent again arrives twice: the timeout is undone
/// (`tcp_sacktag_one`, before `tcp_clean_rtx_queue`), and RACK, which knows now that the rest is lost, begins recovery.
#[test]
fn linux_a_dsack_of_what_its_ack_covers_undoes_a_timeout() {
    check(
        sender(Variant::LinuxReno, Profile::Linux, avoiding(4)),
        "0.000 > 1 2 3 4 (cwnd 4 avoidance)
         0.100 < ack 2 echo 0
         0.100 > 5 (cwnd 4 avoidance)
         0.101 < ack 3 echo 0
         0.308 > P6 (cwnd 4 avoidance)
         0.640 > R3 (cwnd 1 loss)
         0.745 < ack 4 echo 640 sack 3-3
         0.745 > R4 R5 (cwnd 2 recovery)",
    );
}
