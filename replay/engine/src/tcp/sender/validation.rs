//! Congestion window validation: what becomes of a window that the application does not use.
//!
//! Does not depend on how a controller moves the window. Read RFC 2861 §3 first, which Linux follows (`tcp_cwnd_restart`,
//! `tcp_cwnd_validate`).

use super::Sender;
use super::phase::Phase;
use crate::cc::{Adjustment, ConnectionEvent, Window};
use crate::sim::time::Nanos;

/// How a stack treats a window that the application does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum UnusedWindow {
    /// It stays as it is (ns-2, and models of the path).
    Kept,
    /// It restarts from the initial window after an idle time longer than the RTO (RFC 5681 §4.1).
    Restarts,
    /// It is halved for every RTO of an idle time, and approaches what is used while the application limits the sender
    /// (RFC 2861; Linux).
    Decays,
}

/// What was used of the window (Linux: `snd_cwnd_used`, `snd_cwnd_stamp`).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct WindowUse {
    /// Most segments outstanding since `since`.
    used_pkts: u32,
    /// When the window was last full or validated, or an ACK could increase it.
    since: Nanos,
    /// Next octet to send when that was last looked at.
    snd_nxt: u64,
    /// When the last segment before an idle time left that has been taken into account.
    idle_since: Nanos,
    /// When it was called while no timer was due, by a lazy one or for the application, and nothing has happened since.
    pub(in crate::tcp) called_early_at: Option<Nanos>,
}

impl WindowUse {
    fn restart(&mut self, now: Nanos) {
        self.used_pkts = 0;
        self.since = now;
    }

    /// An ACK let the controller increase the window, whether or not it did (Linux: `tcp_cong_avoid`). While ACKs advance
    /// within every RTO, a window that the application does not fill therefore stays.
    #[inline(always)]
    pub(in crate::tcp) fn note_increase(&mut self, now: Nanos) {
        self.since = now;
    }
}

impl Sender {
    /// Before data leaves with nothing outstanding: the window restarts if that comes after an idle time.
    pub(in crate::tcp) fn restart_if_idle(&mut self, now: Nanos) {
        let idle = now - self.last_sent_at;
        let unsent = self.write_end > self.snd_nxt && !self.persist_timer.is_set();
        if self.counters.segments_out == 0 || !unsent || idle <= self.rtt.rto() {
            return;
        }
        let initial = f64::from(self.params.initial_window_pkts);
        match self.rules.unused_window {
            UnusedWindow::Kept => {}
            UnusedWindow::Restarts => {
                (self.controller).on_event(&ConnectionEvent::Idle(initial, idle));
            }
            UnusedWindow::Decays if self.window_use.idle_since == self.last_sent_at => {}
            UnusedWindow::Decays => self.decay_by_idle_time(initial, idle, now),
        }
    }

    /// RFC 2861 §3.2: half for every RTO, not below the initial window; ssthresh remembers three quarters of it.
    fn decay_by_idle_time(&mut self, initial: f64, idle: Nanos, now: Nanos) {
        let window = self.controller.window();
        let floor = initial.min(window.cwnd);
        let mut cwnd = window.cwnd.floor();
        let mut left = idle;
        while left > self.rtt.rto() && cwnd > floor {
            left -= self.rtt.rto();
            cwnd = (cwnd / 2.0).floor();
        }
        let cwnd = cwnd.max(floor);
        self.controller.on_event(&ConnectionEvent::Idle(cwnd, idle));
        self.validate_to(window, cwnd);
        self.window_use.restart(now);
        self.window_use.idle_since = self.last_sent_at;
    }

    /// Transmission stops: notes what is used of the window, and lets one that has not been full for an RTO approach that.
    ///
    /// Linux (`tcp_write_xmit`) asks where it has sent something or the window is full; a timer that is not due yet does not
    /// get that far.
    #[inline]
    pub(in crate::tcp) fn validate_window(&mut self, limited: bool, now: Nanos) {
        let full = limited && self.window_use.called_early_at != Some(now);
        if !full && self.snd_nxt == self.window_use.snd_nxt {
            return;
        }
        self.window_use.snd_nxt = self.snd_nxt;
        let cwnd = self.controller.window().cwnd;
        if (self.usage).is_limited(cwnd, || self.controller.in_slow_start()) {
            self.window_use.restart(now);
        } else {
            self.note_unused_window(now);
        }
    }

    #[inline(never)]
    fn note_unused_window(&mut self, now: Nanos) {
        let outstanding = self.board.outstanding();
        self.window_use.used_pkts = self.window_use.used_pkts.max(outstanding);
        if now - self.window_use.since < self.rtt.rto() {
            return;
        }
        // Linux: not where the application waits for room in the send buffer (SOCK_NOSPACE). Without a limit of that buffer
        // it waits where a segment waits for the receiver's window.
        let waits = self.send_queue.writer_waits || self.has_unsent_segment();
        let open = matches!(self.phase, Phase::Open { dup_acks: 0 }) && self.board.is_unmarked();
        if open && !waits {
            let window = self.controller.window();
            let used = self
                .window_use
                .used_pkts
                .max(self.params.initial_window_pkts);
            if f64::from(used) < window.cwnd.floor() {
                let cwnd = f64::midpoint(window.cwnd.floor(), f64::from(used)).floor();
                self.validate_to(window, cwnd);
            }
            self.window_use.used_pkts = 0;
        }
        self.window_use.since = now;
    }

    /// Lowers cwnd from where it was in `before`.
    fn validate_to(&mut self, before: Window, cwnd: f64) {
        // Linux (`tcp_current_ssthresh`): a half and a quarter, each of whole segments.
        let whole = before.cwnd.floor();
        let remembered = (whole / 2.0).floor() + (whole / 4.0).floor();
        let ssthresh = before.ssthresh.max(remembered);
        self.controller
            .adjust(Adjustment::Validate(Window { cwnd, ssthresh }));
    }

    /// New data leaves while nothing is in the network (Linux: CA_EVENT_TX_START).
    pub(in crate::tcp) fn note_resumption(&mut self, now: Nanos) {
        if self.counters.segments_out > 0 && self.rules.unused_window == UnusedWindow::Decays {
            let idle = now - self.last_sent_at;
            (self.controller).on_event(&ConnectionEvent::Resume { idle, now });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::catalogue::Variant;
    use crate::config::Profile;
    use crate::sim::time::MILLISECOND;
    use crate::tcp::ladder::{SMSS, sender, window};
    use crate::tcp::segment::{Direction, Segment, flags};

    const CWND: f64 = 41.0;

    /// A sender with a window of 41 segments, ssthresh 8, of an initial window of 4, that has written `segments`, each as
    /// the one before it is acknowledged, 100 ms after it left; and the time of the last ACK.
    fn after_writing(profile: Profile, segments: u64) -> (Sender, Nanos) {
        let mut sender = sender(Variant::LinuxReno, profile, window(4));
        sender.write_end = 1;
        sender.controller.adjust(Adjustment::Set(Window {
            cwnd: CWND,
            ssthresh: 8.0,
        }));
        let mut now = 0;
        for _ in 0..segments {
            write(&mut sender, 1, now);
            now += 100 * MILLISECOND;
            let mut ack = Segment::new(0, Direction::Reverse);
            ack.flags = flags::ACK;
            ack.ack = sender.snd_nxt;
            ack.wnd_bytes = 1 << 20;
            sender.receive(&ack, now);
        }
        (sender, now)
    }

    fn write(sender: &mut Sender, segments: u64, now: Nanos) {
        sender.write_to(sender.write_end() + segments * SMSS, false);
        let mut slot = Segment::new(0, Direction::Forward);
        while sender.transmit(now, &mut slot) {}
    }

    #[test]
    fn rfc2861_an_idle_window_is_halved_for_every_rto() {
        let (mut sender, now) = after_writing(Profile::Linux, 2);
        sender.write_to(sender.write_end() + SMSS, false);
        let idle = 2 * sender.rtt.rto() + MILLISECOND;
        let begin = sender.last_sent_at;
        assert!(begin + idle > now);
        sender.restart_if_idle(begin + idle);
        let window = sender.controller.window();
        // 41, 20, 10; three quarters of 41 are 20 + 10.
        assert_eq!((window.cwnd, window.ssthresh), (10.0, 30.0));
        sender.restart_if_idle(begin + idle + MILLISECOND);
        assert_eq!(
            sender.controller.window().cwnd,
            10.0,
            "once for an idle time"
        );
    }

    #[test]
    fn rfc2861_the_initial_window_is_left_however_long_the_idle_time() {
        let (mut sender, now) = after_writing(Profile::Linux, 2);
        sender.write_to(sender.write_end() + SMSS, false);
        sender.restart_if_idle(now + 100 * sender.rtt.rto());
        assert_eq!(sender.controller.window().cwnd, 4.0);
    }

    #[test]
    fn rfc5681_an_idle_window_restarts_from_the_initial_one() {
        let (mut sender, _) = after_writing(Profile::Rfc, 2);
        sender.write_to(sender.write_end() + SMSS, false);
        let idle = sender.rtt.rto() + MILLISECOND;
        sender.restart_if_idle(sender.last_sent_at + idle);
        let window = sender.controller.window();
        assert_eq!((window.cwnd, window.ssthresh), (4.0, 8.0));
    }

    #[test]
    fn rfc2861_a_window_that_is_not_filled_approaches_what_is_used_where_no_ack_advances() {
        let (mut sender, now) = after_writing(Profile::Linux, 2);
        write(&mut sender, 1, now);
        // No ACK from here on; no idle time is as long as the RTO.
        let at = now + sender.rtt.rto();
        write(&mut sender, 1, at - MILLISECOND);
        assert_eq!(sender.controller.window().cwnd, CWND, "no RTO has passed");
        write(&mut sender, 1, at);
        let window = sender.controller.window();
        // Three are outstanding, of 4 at least.
        assert_eq!((window.cwnd, window.ssthresh), (22.0, 30.0));
    }

    #[test]
    fn a_window_that_is_not_filled_stays_while_acks_advance() {
        // A segment every 100 ms, where the RTO is 300 ms.
        let (sender, now) = after_writing(Profile::Linux, 20);
        assert!(sender.rtt.rto() > 100 * MILLISECOND && 4 * sender.rtt.rto() < now);
        assert_eq!(sender.controller.window().cwnd, CWND);
    }

    #[test]
    fn a_timer_that_is_not_due_leaves_no_trace_of_a_full_window() {
        let (mut sender, now) = after_writing(Profile::Linux, 1);
        let mut slot = Segment::new(0, Direction::Forward);
        write(&mut sender, 60, now);
        assert!(sender.is_window_full());
        let [early, late] = [1, 2].map(|ms| now + ms * MILLISECOND);
        for timer in [&mut sender.rto_timer, &mut sender.rack.probe_timer] {
            timer.stop();
            timer.set(early);
            timer.set(late);
        }
        sender.on_deadline(early);
        for _ in 0..2 {
            assert!(!sender.transmit(early, &mut slot), "a relay asks twice");
        }
        assert_eq!(sender.window_use.since, now, "called, and not due");
        sender.on_deadline(late);
        sender.transmit(late, &mut slot);
        sender.transmit(late, &mut slot);
        assert_eq!(
            sender.window_use.since, late,
            "due, and nothing more can leave"
        );
    }

    #[test]
    fn the_end_of_what_is_written_is_no_early_call() {
        for ends in [
            |sender: &mut Sender| sender.write_to(sender.write_end(), true),
            |sender: &mut Sender| sender.stop_at(sender.write_end()),
        ] {
            let (mut sender, now) = after_writing(Profile::Linux, 1);
            sender.params.close = true;
            write(&mut sender, 60, now);
            let early = now + MILLISECOND;
            sender.on_deadline(early);
            ends(&mut sender);
            sender.transmit(early, &mut Segment::new(0, Direction::Forward));
            assert_eq!(sender.window_use.since, early, "the window holds it back");
        }
    }

    #[test]
    fn a_writer_that_waits_for_the_send_buffer_keeps_its_window() {
        let (mut sender, now) = after_writing(Profile::Linux, 1);
        sender.note_writer(true);
        sender.window_use.since = 0;
        sender.note_unused_window(now + 10 * sender.rtt.rto());
        assert_eq!(sender.controller.window().cwnd, CWND);
    }
}
