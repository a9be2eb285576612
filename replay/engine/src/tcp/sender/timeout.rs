//! The sender's timers: retransmission (RFC 6298 §5), zero window (RFC 9293 §3.8.6.1), RACK's reordering timer and
//! the tail loss probe.
//!
//! Does not depend on the window increase.

use super::Sender;
use super::connection::ConnectionState;
use crate::cc::{Signal, SignalEvidence};
use crate::sim::time::{NEVER, Nanos, SECOND};
use crate::tcp::recovery::Ack;
use crate::tcp::recovery::rack::Probe;
use crate::tcp::recovery::undo::Hold;
use crate::tcp::segment::Segment;

impl Sender {
    /// When it needs to be called, while it is on the fast path.
    #[inline]
    pub fn fast_path_deadline(&self) -> Option<Nanos> {
        self.fast_path_until.map(|rarer| self.deadline_with(rarer))
    }

    /// When it needs to be called.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        (self.fast_path_deadline()).unwrap_or_else(|| self.deadline_with(self.rarer_deadline()))
    }

    /// The earliest of `rarer` and of the timers that the fast path sets.
    #[inline]
    fn deadline_with(&self, rarer: Nanos) -> Nanos {
        let paced = self.pacer.as_ref().map(|pacer| pacer.timer.armed());
        (self.timeout_deadline().min(rarer)).min(paced.unwrap_or(NEVER))
    }

    /// The earliest of the timers that the fast path does not set.
    pub(in crate::tcp) fn rarer_deadline(&self) -> Nanos {
        let probes = (self.low_priority_probes.as_ref()).map(|probes| probes.timer.armed());
        (self.persist_timer.armed().min(self.next_handover()))
            .min(self.rack.reordering_timer.armed())
            .min(probes.unwrap_or(NEVER))
    }

    /// When the first of timeout and tail loss probe is due.
    #[inline]
    pub(in crate::tcp) fn timeout_deadline(&self) -> Nanos {
        (self.rto_timer.armed()).min(self.rack.probe_timer.armed())
    }

    /// Whether a timer has expired. Linux does not move the one that paces: where it runs it expires when it was armed for.
    fn is_due(&self, now: Nanos) -> bool {
        let probes = (self.low_priority_probes.as_ref()).map(|probes| probes.timer.deadline());
        let paced = self.pacer.as_ref().map(|pacer| pacer.timer.armed());
        let timeout = (self.rto_timer.deadline()).min(self.rack.probe_timer.deadline());
        let rarer = (self.persist_timer.deadline()).min(self.rack.reordering_timer.deadline());
        (timeout.min(rarer).min(self.next_handover()))
            .min(probes.unwrap_or(NEVER))
            .min(paced.unwrap_or(NEVER))
            <= now
    }

    /// Its deadline has expired.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.is_released(now) {
            return;
        }
        self.window_use.called_early_at = (!self.is_due(now)).then_some(now);
        self.fast_path_until = None;
        self.take_news(now);
        // RFC 8985 §7.2: where both are due the probe leaves first, and the timeout restarts.
        if self.rack.probe_timer.fires(now) && self.board.outstanding() > 0 {
            self.rules.algorithm.on_probe_timer(self, now);
        }
        if self.rto_timer.fires(now) {
            self.on_retransmission_timeout(now);
        }
        if self.persist_timer.fires(now) && !self.gives_up_window(now) {
            self.persist_due = true;
            self.persist_backoff += 1;
            self.arm_persist(now);
        }
        if let Some(pacer) = &mut self.pacer
            && pacer.timer.fires(now)
            && self.rules.holds_for_one_ack
        {
            // Linux (`tcp_tsq_write`): what an ACK held back stays behind for as long as that ACK is dealt with.
            self.undo_state.hold = Hold::Nothing;
        }
        if let Some(low_priority_probes) = &mut self.low_priority_probes {
            low_priority_probes.on_deadline(now);
        }
        if self.rack.reordering_timer.fires(now) {
            self.rules.algorithm.on_reordering_timer(self, now);
        }
    }

    pub(in crate::tcp) fn on_retransmission_timeout(&mut self, now: Nanos) {
        if self.state == ConnectionState::SynSent {
            self.on_syn_timeout(now);
            return;
        }
        if self.gives_up_data(now) {
            return;
        }
        // RFC 6298 §5.5.
        self.rtt.back_off();
        self.counters.rtos += 1;
        self.board.forget_reneged();
        self.rules.algorithm.on_timeout(self, now);
    }

    /// RFC 6298 §5.2 and §5.3.
    pub(in crate::tcp) fn rearm_after_ack(&mut self, ack: &Ack) {
        self.note_probe_answer(ack);
        if self.stops_timers() {
            return;
        }
        if self.board.outstanding() == 0 {
            self.rto_timer.stop();
            self.rack.stop_timers();
            return;
        }
        self.rules.algorithm.restart_timers(self, ack);
    }

    /// RFC 8985 §7.4.2: a duplicate ACK without SACK at the probe's very end: the original came too, nothing was lost.
    /// Asked before the window is taken from `segment`: an update of it is no duplicate.
    pub(in crate::tcp) fn note_probe_duplicate(&mut self, segment: &Segment, advances: bool) {
        let plain = segment.sack_len == 0
            && segment.payload_bytes == 0
            && segment.wnd_bytes == self.last_wnd_bytes;
        if !advances && plain {
            self.rack
                .probe
                .take_if(|probe| probe.high_seq == segment.ack);
        }
    }

    /// RFC 8985 §7.4.2: a probe that repeated old data hid a loss where ACKs pass its end without a sign of the
    /// original; a DSACK of it has ended the episode by now. At its very end the sign may still come.
    fn note_probe_answer(&mut self, ack: &Ack) {
        let Some(Probe {
            high_seq,
            retransmission,
        }) = self.rack.probe
        else {
            return;
        };
        if self.snd_una < high_seq || retransmission && self.snd_una == high_seq {
            return;
        }
        self.rack.probe = None;
        if retransmission && !self.in_loss_recovery() {
            let flight = f64::from(self.board.outstanding() + ack.digest.acked);
            self.controller.on_congestion(&SignalEvidence {
                now: ack.now,
                flight,
                lost_total: self.board.lost_total(),
                signal: Signal::Loss,
            });
        }
    }

    /// RFC 9293 §3.8.6.1: probes a closed window at the RTO, doubling up to a minute.
    pub(in crate::tcp) fn arm_persist(&mut self, now: Nanos) {
        let interval = self
            .rtt
            .rto()
            .saturating_mul(1 << self.persist_backoff.min(16));
        let due = now + interval.min(60 * SECOND);
        self.persist_timer.set(self.next_probe(due, now));
    }
}

#[cfg(test)]
mod tests {
    use crate::cc::catalogue::Variant;
    use crate::config::{Profile, StackOverrides};
    use crate::tcp::ladder::{check, sender, window};
    use crate::tcp::sender::Sender;

    #[allow(
        clippy::large_types_passed_by_value,
        reason = "each test writes its own"
    )]
    fn linux(overrides: StackOverrides) -> Sender {
        sender(Variant::LinuxReno, Profile::Linux, overrides)
    }

    /// The window takes no new data, so the probe repeats segment 8, and is acknowledged up to its end. 75 ticks from tick
    /// 50 on the timer fires at the next step of eight.
    const PROBED: &str = "0.000 > 1 2 3 4 (cwnd 4 slow start)
        0.100 < ack 5 wnd 4
        0.100 > 5 6 7 8 (cwnd 8 limited)
        0.200 < ack 8 wnd 1
        0.512 > P8 (cwnd 8 limited)
        0.600 < ack 9 wnd 2
        0.600 > 9 10 (cwnd 8 limited)
";

    fn probed(rest: &str) {
        check(linux(window(4)), &format!("{PROBED}{rest}"));
    }

    #[test]
    fn rfc8985_what_passes_the_end_of_a_probe_without_a_dsack_shows_that_it_hid_a_loss() {
        probed(
            "0.700 < ack 11 wnd 4
             0.700 > 11 12 13 14 (cwnd 4 avoidance)",
        );
    }

    #[test]
    fn rfc8985_a_dsack_of_the_probe_shows_that_the_original_was_late() {
        probed(
            "0.610 < ack 9 wnd 2 sack 8-8
             0.700 < ack 11 wnd 4
             0.700 > 11 12 13 14 (cwnd 8 limited)",
        );
        // Also on the very ACK that passes the end.
        probed(
            "0.700 < ack 11 wnd 4 sack 8-8
             0.700 > 11 12 13 14 (cwnd 8 limited)",
        );
        // That of another segment is not of the probe.
        probed(
            "0.610 < ack 9 wnd 2 sack 7-7
             0.700 < ack 11 wnd 4
             0.700 > 11 12 13 14 (cwnd 4 avoidance)",
        );
    }

    #[test]
    fn rfc8985_so_does_a_duplicate_ack_without_sack_but_not_a_window_update() {
        probed(
            "0.610 < ack 9 wnd 2
             0.700 < ack 11 wnd 4
             0.700 > 11 12 13 14 (cwnd 8 limited)",
        );
        probed(
            "0.610 < ack 9 wnd 3
             0.610 > 11 (cwnd 8 limited)
             0.700 < ack 12 wnd 4
             0.700 > 12 13 14 15 (cwnd 4 avoidance)",
        );
    }

    #[test]
    fn a_timeout_amid_many_sacked_segments_halves_the_window_not_what_is_outstanding() {
        // Segment 1 and its retransmission are lost: cwnd is 4 and 20 are outstanding when the timer expires. ssthresh: 2.
        let rfc = sender(Variant::Sack, Profile::Rfc, window(8));
        check(
            rfc,
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
             0.100 < ack 1 sack 2-4
             0.100 > R1 (cwnd 4 recovery)
             0.110 < ack 1 sack 2-8
             0.110 > 9 10 11 (cwnd 4 recovery)
             0.210 < ack 1 sack 2-11
             0.210 > 12 13 14 (cwnd 4 recovery)
             0.310 < ack 1 sack 2-14
             0.310 > 15 16 17 (cwnd 4 recovery)
             1.100 > R1 (cwnd 1 loss)
             1.200 < ack 15
             1.200 > R15 R16 (cwnd 2 loss)
             1.300 < ack 16
             1.300 > R17 (cwnd 2 loss)",
        );
    }

    #[test]
    fn a_timeout_amid_many_duplicates_halves_the_window_not_what_they_let_out() {
        // The same without SACK: cwnd is 4 and eleven are outstanding when the timer expires. ssthresh: 2, not 5.
        check(
            sender(Variant::Newreno, Profile::Rfc, window(8)),
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
             0.100 < ack 1
             0.100 > 9 (cwnd 9 slow start)
             0.100 < ack 1
             0.100 > 10 (cwnd 10 slow start)
             0.100 < ack 1
             0.100 > R1 (cwnd 7 recovery)
             0.100 < ack 1
             0.100 < ack 1
             0.100 < ack 1
             0.100 < ack 1
             0.100 > 11 (cwnd 11 recovery)
             1.100 > R1 (cwnd 1 loss)
             1.200 < ack 5
             1.200 > R5 R6 R7 (cwnd 3 loss)
             1.210 < ack 6
             1.210 > R8 (cwnd 3 loss)
             1.220 < ack 7
             1.220 > R9 R10 (cwnd 4 loss)",
        );
    }

    #[test]
    fn a_timeout_with_less_outstanding_than_the_window_halves_that() {
        // The receiver lets 8 of 16 leave. ssthresh: 4.
        let mut limited = sender(Variant::Sack, Profile::Rfc, window(16));
        limited.edge = 8001;
        check(
            limited,
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 16 limited)
             1.000 > R1 (cwnd 1 loss)
             1.100 < ack 2
             1.100 > R2 R3 (cwnd 2 loss)
             1.200 < ack 3
             1.200 > R4 R5 (cwnd 3 loss)
             1.210 < ack 4
             1.210 > R6 R7 (cwnd 4 loss)
             1.300 < ack 9 wnd 8
             1.300 > 9 10 11 12 13 (cwnd 5 avoidance)",
        );
    }

    #[test]
    fn linux_bbr_retransmits_after_a_timeout_although_late_segments_are_still_in_flight() {
        let overrides = StackOverrides {
            tail_loss_probe: Some(false),
            ..window(4)
        };
        check(
            sender(Variant::Bbr, Profile::Linux, overrides),
            "0.000 > 1 2 3 4 (cwnd 4 slow start)
             0.100 < ack 2 wnd 3
             0.350 < ack 2 wnd 5
             0.350 > 5 6 (cwnd 5 slow start)
             0.416 > R2 (cwnd 3 loss)
             0.450 end",
        );
    }
    /// RFC 2018 §8. A receiver discarded what it had reported, or a proxy withholds its ACK.
    #[test]
    fn a_timeout_with_the_first_segment_sacked_retransmits_all() {
        check(
            sender(Variant::Sack, Profile::Rfc, window(4)),
            "0.000 > 1 2 3 4 (cwnd 4 slow start)
             0.100 < ack 1 wnd 4 sack 2-4
             0.100 > R1 R1 (cwnd 2 recovery)
             0.200 < ack 2 wnd 3
             1.200 > R2 (cwnd 1 loss)
             2.500 < ack 3 wnd 2
             2.500 > R3 R4 (cwnd 2 loss)
             3.000 end",
        );
        check(
            linux(window(4)),
            "0.000 > 1 2 3 4 (cwnd 4 slow start)
             0.100 < ack 1 wnd 4 sack 2-4
             0.100 > R1 (cwnd 2 recovery)
             0.200 < ack 2 wnd 3
             0.576 > R2 (cwnd 1 loss)
             1.312 > R2 (cwnd 1 loss)
             2.500 < ack 3 wnd 2
             2.500 > R3 R4 (cwnd 2 loss)
             3.000 end",
        );
    }
}
