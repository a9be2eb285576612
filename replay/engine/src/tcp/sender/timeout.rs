//! The sender's timers: retransmission (RFC 6298 §5), zero window (RFC 9293 §3.8.6.1), RACK's and the probe's.
//!
//! Does not depend on how a window grows.

use super::connection::ConnectionState;
use super::phase::{FastRecovery, Phase, RecoveryWindow};
use super::{RecoveryKind, Sender};
use crate::cc::{Signal, SignalEvidence};
use crate::sim::time::{NEVER, Nanos, SECOND};
use crate::tcp::jiffies;
use crate::tcp::recovery::fast_recovery::Ack;
use crate::tcp::recovery::rack::Probe;
use crate::tcp::scoreboard::Digest;
use crate::tcp::segment::Segment;

impl Sender {
    /// When it wants to be called, where only the retransmission timeout can have changed since the long way.
    #[inline]
    pub fn fast_path_deadline(&self) -> Option<Nanos> {
        // Pacing and dummy segments have timers that the short way sets.
        let others = self
            .fast_path_until
            .filter(|_| self.pacer.is_none() && self.low_priority_probes.is_none())?;
        Some(others.min(self.rto_timer.armed()))
    }

    /// When it wants to be called.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        let others = self
            .fast_path_until
            .unwrap_or_else(|| self.rarer_deadline());
        self.rto_timer
            .armed()
            .min(others)
            .min(self.pacer.map_or(NEVER, |pacer| pacer.timer.armed()))
            .min(
                self.low_priority_probes
                    .as_ref()
                    .map_or(NEVER, |low_priority_probes| {
                        low_priority_probes.timer.armed()
                    }),
            )
    }

    /// When the timers want to be called that the short way leaves alone.
    pub(in crate::tcp) fn rarer_deadline(&self) -> Nanos {
        let rack = self
            .rack
            .reordering_timer
            .armed()
            .min(self.rack.probe_timer.armed());
        rack.min(self.persist_timer.armed())
            .min(self.next_handover())
    }

    /// Its time has come.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.is_released(now) {
            return;
        }
        self.fast_path_until = None;
        self.take_news(now);
        // RFC 8985 §7.2: where both are due the probe leaves first, and the timeout begins anew.
        if self.rack.probe_timer.fires(now) && self.board.outstanding() > 0 {
            self.on_probe_timer(now);
        }
        if self.rto_timer.fires(now) {
            self.on_retransmission_timeout(now);
        }
        if self.persist_timer.fires(now) && !self.gives_up_window(now) {
            self.persist_due = true;
            self.persist_backoff += 1;
            self.arm_persist(now);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.timer.fires(now);
        }
        if let Some(low_priority_probes) = &mut self.low_priority_probes {
            low_priority_probes.on_deadline(now);
        }
        if self.rack.reordering_timer.fires(now) {
            self.on_reordering_timeout(now);
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
        if self.is_aerotcp() {
            self.time_out_as_aerotcp(now);
            return;
        }
        self.counters.rtos += 1;
        // RFC 5681 §3.1: ssthresh is held when the same segment times out again.
        // Deviation: Linux does not reduce again for a timeout in fast recovery.
        let linux = self.acts_as_linux();
        let ns2 = self.is_ns2();
        let first = match (linux, ns2) {
            (true, _) => self.timeout_reduces(),
            (_, ns2) => ns2 || self.timeouts_in_a_row == 0,
        };
        if linux {
            self.mark_timeout_for_undo(first);
            self.board.forget_dup_acks();
        } else {
            self.mark_rfc_timeout_for_undo();
        }
        let flight = if ns2 {
            self.go_back();
            self.ns2_window()
        } else {
            // Deviation: RFC 5681 §3.1 halves FlightSize. Where SACK or duplicate ACKs let segments leave for others
            // that had arrived, it is more than cwnd, and ssthresh could rise above the window that was too much.
            f64::from(self.board.outstanding()).min(self.controller.cwnd())
        };
        if linux {
            // RFC 8985 §6.3: what was sent within the last round trip is not lost yet.
            self.board
                .mark_timed_out(now.saturating_sub(self.rack.rtt()));
        } else {
            self.board.mark_all_lost();
        }
        self.notify_losses();
        self.controller.on_timeout(&SignalEvidence {
            now,
            flight,
            lost_total: self.board.lost_total(),
            signal: if first {
                Signal::Timeout
            } else {
                Signal::RepeatedTimeout
            },
        });
        self.repair_from_the_first(now);
    }

    /// A timeout has told what it costs: what is outstanding is sent again from the first segment on.
    fn repair_from_the_first(&mut self, now: Nanos) {
        let linux = self.acts_as_linux();
        self.fail_quick_start();
        self.marks.note_reduction();
        self.marks.stop_sinking();
        if linux {
            self.controller.allow(f64::from(self.board.pipe() + 1));
        }
        self.timeouts_in_a_row += 1;
        // Linux: the first segment is sent again at once, whatever pacing says.
        self.forced = self.board.first().filter(|_| linux);
        self.rack.reordering_timer.stop();
        self.rack.probe_timer.stop();
        self.rack.probe = None;
        self.recover = self.snd_nxt;
        self.phase = Phase::Loss {
            recovery_point: self.snd_nxt,
            dup_acks: 0,
        };
        // RFC 6298 §5.6: the timer runs again, also if the window lets nothing leave.
        let due = self.next_timeout(now);
        self.rto_timer.set(if linux {
            jiffies::fires(now, due - now)
        } else {
            due
        });
    }

    pub(in crate::tcp) fn on_probe_timer(&mut self, now: Nanos) {
        if self.acts_as_linux() && self.rack.probe.is_some() {
            // One probe at most is under way.
            self.rearm_timeout_of_oldest(now);
            return;
        }
        self.rack.probe_due = true;
        if self.acts_as_linux() {
            self.set_timeout(self.rtt.rto(), now);
        } else {
            self.rto_timer.set(now + self.rtt.rto());
        }
    }

    pub(in crate::tcp) fn on_reordering_timeout(&mut self, now: Nanos) {
        let view = self.path_view(now);
        let found = self.rack.detect(&mut self.board, &view);
        if self.acts_as_linux() {
            self.rearm_timeout_of_oldest(now);
        }
        if !found {
            return;
        }
        let pipe = self.board.pipe();
        match &mut self.phase {
            Phase::Open { .. } => {
                // As Linux does: the timer counts as one delivery for the proportional rate reduction.
                let digest = Digest {
                    delivered: 1,
                    ..Digest::default()
                };
                let ack = Ack {
                    now,
                    advances: false,
                    acked_bytes: 0,
                    ts_ecr: 0,
                    rtt: None,
                    prior_flight: self.board.pipe(),
                    prior_lost: self.board.lost_total(),
                    rate: None,
                    duplicate: false,
                    ecn_echo: false,
                    digest,
                };
                if self.acts_as_linux() {
                    self.recover_by_timer(&ack);
                } else {
                    self.enter_recovery(&ack);
                }
            }
            Phase::Recovery(FastRecovery {
                window: RecoveryWindow::Prr(prr),
                ..
            }) => prr.on_ack(0, false, pipe),
            Phase::Recovery(_) | Phase::Loss { .. } => {}
        }
    }

    /// RFC 6298 §5.2 and §5.3; RFC 6582 §3.2 for partial ACKs.
    pub(in crate::tcp) fn rearm_after_ack(&mut self, ack: &Ack) {
        self.note_probe_answer(ack);
        if self.stops_timers() {
            return;
        }
        if self.board.outstanding() == 0 {
            self.rto_timer.stop();
            self.rack.probe_timer.stop();
            self.rack.reordering_timer.stop();
            return;
        }
        if self.acts_as_linux() {
            self.time_after_ack(ack.now, ack.advances || self.sacked_before_repair(ack));
            return;
        }
        if ack.advances && self.partial_ack_restarts_timer() {
            self.rto_timer.set(ack.now + self.rtt.rto());
        }
        self.schedule_probe(ack.now);
    }

    /// Linux: the ACK reports a segment sent before the first one was repaired: the repair has its whole time.
    fn sacked_before_repair(&self, ack: &Ack) -> bool {
        let repaired_at = self.board.first().map(|first| self.board.sent_at(first));
        (ack.digest.oldest_sacked_sent_at.zip(repaired_at))
            .is_some_and(|(sacked, repaired)| sacked < repaired)
    }

    /// RFC 6582 §3.2 step 3: the timer restarts at the first partial ACK only, unless the scenario asks for the
    /// slow-but-steady variant.
    fn partial_ack_restarts_timer(&mut self) -> bool {
        let steady = self.params.reset_timer_on_each_partial_ack;
        match &mut self.phase {
            Phase::Recovery(FastRecovery {
                window: RecoveryWindow::Inflated { partial_seen, .. },
                ..
            }) => !std::mem::replace(partial_seen, true) || steady,
            _ => true,
        }
    }

    /// RFC 8985 §7.2: in two round trips, unless losses are being repaired or suspected.
    pub(in crate::tcp) fn schedule_probe(&mut self, now: Nanos) {
        if !self.params.tail_loss_probe || self.params.recovery != RecoveryKind::RackPrr {
            return;
        }
        let open = !self.is_repairing() && self.board.sacked() == 0 && self.params.sack_enabled();
        let Some(srtt) = self
            .rtt
            .srtt()
            .filter(|_| open && self.rack.probe.is_none())
        else {
            self.rack.probe_timer.stop();
            return;
        };
        // Deviation: as Linux, the minimum RTO, not the receiver's delayed ACK, for the ACK of a lone segment.
        let lone = if self.board.outstanding() == 1 {
            self.params.min_rto_ns
        } else {
            0
        };
        let due = now + 2 * srtt + lone;
        self.rack
            .probe_timer
            .set(due.min(self.rto_timer.deadline()));
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
        if retransmission && !self.is_repairing() {
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
        // Segment 1 and its repair are lost: cwnd is 4 and 20 are outstanding when the timer strikes. ssthresh: 2.
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
        // The same without SACK: cwnd is 4 and eleven are outstanding when the timer strikes. ssthresh: 2, not 5.
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
    fn linux_bbr_repairs_after_a_timeout_although_what_left_late_is_still_in_flight() {
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
}
