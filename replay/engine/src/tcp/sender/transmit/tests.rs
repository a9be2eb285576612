use super::*;
use crate::cc::catalogue::Variant;
use crate::config::{Profile, StackOverrides};
use crate::sim::time::MILLISECOND;
use crate::tcp::ladder::{SMSS, parse as ack, sender, window};
use crate::tcp::sender::freeze::Freeze;

#[test]
fn what_was_acknowledged_while_nothing_could_leave_is_not_sent_again() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let mut sender = sender(Variant::FreezeTcp, profile, window(4));
        let poll = |sender: &mut Sender, now| {
            std::iter::from_fn(|| sender.poll_transmit(now)).collect::<Vec<_>>()
        };
        assert_eq!(poll(&mut sender, 0).len(), 4);
        let first = sender.board.first().expect("four are outstanding");
        sender.board.mark_lost(first);
        (sender.forced, sender.second_copy) = (Some(first), Some(first));
        sender.freeze = Freeze::Frozen;
        let now = 100 * MILLISECOND;
        assert!(poll(&mut sender, now).is_empty());
        sender.receive(&ack("ack 3", now), now);
        sender.freeze = Freeze::Flowing;
        let una = sender.snd_una();
        let sent = poll(&mut sender, now);
        assert!(
            sent.iter().all(|segment| segment.seq >= una),
            "{profile:?}: {sent:?}"
        );
        assert_eq!(sender.counters().retransmissions, 0, "{profile:?}");
    }
}

#[test]
fn a_writer_that_waits_for_the_send_buffer_limits_the_rate_once_it_writes() {
    for waits in [true, false] {
        let mut sender = sender(Variant::Bbr, Profile::Linux, window(4));
        sender.write_end = 1;
        sender.write_to(1 + 4 * SMSS, false);
        sender.note_writer(waits);
        let mut now = 0;
        for number in 2..=5 {
            while sender.poll_transmit(now).is_some() {}
            now += 100 * MILLISECOND;
            sender.receive(&ack(&format!("ack {number}"), now), now);
        }
        let limited = |sender: &Sender| sender.rates.as_ref().map(|rates| rates.is_app_limited());
        assert_eq!(limited(&sender), Some(!waits));
        sender.note_writer(false);
        assert_eq!(limited(&sender), Some(true));
    }
}

/// Flags and octets of what leaves of `octets` written into a send buffer, and the pieces that hold it.
fn written(octets: u64, buffer: Option<u64>) -> (Vec<(bool, u64)>, u32) {
    let overrides = StackOverrides {
        send_buffer_bytes: buffer,
        ..window(12)
    };
    let mut sender = sender(Variant::LinuxReno, Profile::Linux, overrides);
    sender.write_end = 1;
    sender.write_to(1 + octets, false);
    let sent = std::iter::from_fn(|| sender.poll_transmit(0));
    let sent = sent.map(|segment| (segment.has(flags::PSH), segment.payload_bytes.into()));
    (sent.collect(), sender.board.pieces())
}

#[test]
fn linux_pushes_the_end_of_a_write() {
    let pushed = |buffer| written(SMSS, buffer).0;
    assert_eq!(pushed(Some(1 << 20)), [(true, SMSS)]);
    assert_eq!(pushed(None), [(false, SMSS)]);
}

#[test]
fn the_partial_end_of_what_is_written_leaves_with_the_segment_before() {
    let sent = [(false, SMSS), (true, SMSS), (false, SMSS), (true, 300)];
    assert_eq!(
        written(3 * SMSS + 300, Some(1 << 20)),
        (sent.to_vec(), 2),
        "two bursts"
    );
}

#[test]
fn a_late_write_does_not_limit_the_rate_while_what_was_lost_waits() {
    let mut sender = sender(Variant::Bbr, Profile::Linux, window(4));
    sender.write_end = 1;
    sender.write_to(1 + 4 * SMSS, false);
    sender.note_writer(true);
    while sender.poll_transmit(0).is_some() {}
    let now = 100 * MILLISECOND;
    sender.receive(&ack("ack 2", now), now);
    let first = sender.board.first().expect("three are outstanding");
    sender.board.mark_lost(first);
    sender.note_writer(false);
    let limited = sender.rates.as_ref().map(|rates| rates.is_app_limited());
    assert_eq!(limited, Some(false));
}

#[test]
fn a_tail_loss_probe_takes_new_data_that_nagles_algorithm_holds_back() {
    let mut sender = sender(Variant::LinuxReno, Profile::Linux, window(4));
    sender.write_end = 1;
    sender.write_to(1 + SMSS + 10, false);
    let sent = |sender: &mut Sender, now| sender.poll_transmit(now).map(|sent| sent.payload_bytes);
    assert_eq!(sent(&mut sender, 0), Some(SMSS as u16));
    sender.receive(&ack("ack 2", 1), 100 * MILLISECOND);
    assert_eq!(sent(&mut sender, 100 * MILLISECOND), Some(10));
    sender.write_to(1 + SMSS + 30, false);
    assert_eq!(
        sent(&mut sender, 101 * MILLISECOND),
        None,
        "one is out that is not full"
    );
    let due = sender.next_deadline();
    sender.on_deadline(due);
    assert_eq!(sent(&mut sender, due), Some(20));
    assert_eq!(sender.counters().retransmissions, 0);
}
