//! Loss recovery of Linux 6.18: one state machine for losses, for undo (RFC 3522, RFC 3708, RFC 5682) and for reordering,
//! with and without SACK.
//!
//! Does not depend on how windows are computed, which is in the controller and `prr`. Read RFC 8985 §6, RFC 5682 §3.1 and
//! RFC 3522 §3.2 first; the order of the checks is that of `tcp_fastretrans_alert`.

use super::undo::{Hold, MAX_REORDERING};
use super::window::RecoveryWindow;
use super::{Ack, Departure, Recovery};
use crate::cc::{Adjustment, ConnectionEvent};
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::{DUP_THRESH, Digest};
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// Linux.
pub(in crate::tcp) struct LinuxRecovery;

impl Recovery for LinuxRecovery {
    const READS_ORDER: bool = true;

    fn on_ack(sender: &mut Sender, ack: &Ack) {
        // Deviation from RFC 8985 §6.2 step 3: Linux ignores what is sacked after a timeout that nothing may undo.
        let counts =
            !matches!(sender.phase, Phase::Loss { .. }) || sender.undo_state.marker.is_some();
        sender.note_order(ack, counts);
        sender.react_as_linux(ack);
    }

    fn on_timeout(sender: &mut Sender, now: Nanos) {
        // Deviation: Linux does not reduce again for a timeout in fast recovery.
        let first = sender.timeout_reduces();
        sender.mark_linux_timeout_for_undo(first);
        sender.board.forget_dup_acks();
        let flight = sender.flight_at_timeout();
        // RFC 8985 §6.3: what was sent within the last round trip is not lost yet.
        let horizon = now.saturating_sub(sender.rack.rtt());
        sender.board.mark_timed_out(horizon);
        sender.reduce_for_timeout(flight, first, now);
        sender
            .controller
            .adjust(Adjustment::AtLeast(f64::from(sender.board.pipe() + 1)));
        sender.begin_loss_phase();
        // The first segment is retransmitted at once, regardless of pacing.
        sender.forced = sender.board.first();
        sender.undo_state.hold = Hold::Everything;
        let wait = sender.next_timeout(now) - now;
        sender.rto_timer.set_ticks(now, wait);
    }

    fn on_reordering_timer(sender: &mut Sender, now: Nanos) {
        // As Linux: the one timer has other purposes too, and is not stopped when nothing is suspected.
        let view = sender.path_view(now);
        let found = sender.rack.detect(&mut sender.board, &view);
        sender.rearm_timeout_of_oldest(now);
        if !found {
            return;
        }
        let begins = !sender.in_loss_recovery();
        if begins {
            sender.start_recovery(now);
        }
        // The timer that begins recovery counts as one delivery.
        sender.reduce_proportionally(u32::from(begins), false);
    }

    fn on_probe_timer(sender: &mut Sender, now: Nanos) {
        if sender.rack.probe.is_some() {
            // At most one probe is under way.
            sender.rearm_timeout_of_oldest(now);
            return;
        }
        sender.rack.probe_due = true;
        sender.set_timeout(sender.rtt.rto(), now);
    }

    fn probe_may_leave(sender: &mut Sender, now: Nanos) -> bool {
        let allowed = sender.pacing_allows(sender.snd_nxt, true, now);
        if !allowed {
            sender.rearm_timeout_of_oldest(now);
        }
        allowed
    }

    #[inline(always)]
    fn on_departure(sender: &mut Sender, departure: Departure, now: Nanos) {
        match departure {
            Departure::New => sender.time_new_data(now),
            Departure::Retransmission(number) => sender.time_retransmission(number, now),
            Departure::Probe(_) => sender.set_timeout(sender.rtt.rto(), now),
            Departure::Forced(_) => {}
        }
    }

    #[inline]
    fn restart_timers(sender: &mut Sender, ack: &Ack) {
        sender.time_after_ack(ack);
    }

    fn count_dup_acks(
        sender: &mut Sender,
        advances: bool,
        duplicate: bool,
        digest: &Digest,
    ) -> u32 {
        sender.count_dup_acks_as_linux(advances, duplicate, digest.acked)
    }

    /// Deviation: RFC 8985 §6.2 step 4 takes every DSACK; Linux those that come once reordering is known.
    fn on_dsack(sender: &mut Sender, prior_una: u64) {
        if sender.undo_state.reordered {
            sender.rack.note_dsack(prior_una, sender.snd_nxt);
        }
    }
}

impl Sender {
    fn react_as_linux(&mut self, ack: &Ack) {
        self.undo_state.hold = Hold::Nothing;
        self.rack.awaits = false;
        // Deviation: RFC 8985 §6.2 step 1 lets the ACK itself lower the minimum RTT before step 2 compares its RTT with it;
        // Linux (`tcp_clean_rtx_queue`) compares first.
        // Without SACK it learns nothing, so that a timeout marks all that is outstanding as lost.
        let min_rtt = ack.prior_min_rtt.unwrap_or(0);
        if self.rules.sack && self.rack.update(&ack.digest, min_rtt, ack.now) {
            self.rack.take_rtt_of_last(&ack.digest, min_rtt, ack.now);
        }
        self.judge(ack);
        let newly_lost = self.board.lost_total() > ack.prior_lost;
        let (pipe, ssthresh) = (self.board.pipe(), self.controller.window().ssthresh);
        match &mut self.phase {
            Phase::Recovery(FastRecovery { window, .. }) => {
                if let RecoveryWindow::Prr(prr) = window {
                    prr.aim_at_most_for(ssthresh);
                    prr.on_ack(ack.digest.delivered, ack.advances && !newly_lost, pipe);
                }
            }
            Phase::Open { .. } | Phase::Loss { .. } => {
                // Linux: where reordering is known, a SACK that does not advance increases the window too.
                let late = u64::from(self.undo_state.reordering) > DUP_THRESH;
                let increases = ack.advances || late && ack.digest.sacked > 0;
                let sinks = self.sink(ack, ack.advances && !newly_lost);
                // RFC 3168 §6.1.2: no increase on an echoed mark.
                if increases && !sinks && !ack.ecn_echo {
                    self.increase_window(ack);
                }
            }
        }
    }

    fn judge(&mut self, ack: &Ack) {
        match self.phase {
            Phase::Open { .. } => self.undo_state.first_sent = None,
            Phase::Recovery(FastRecovery { recovery_point, .. })
                if self.snd_una >= recovery_point =>
            {
                self.board.forget_dup_acks();
                if self.ends_recovery(ack, recovery_point) {
                    return;
                }
            }
            Phase::Recovery(_) | Phase::Loss { .. } => {}
        }
        match self.phase {
            Phase::Recovery(_) => self.judge_in_recovery(ack),
            Phase::Loss { recovery_point, .. } => {
                self.judge_after_timeout(ack, recovery_point);
                if ack.advances && !self.in_loss_recovery() {
                    self.board.forget_dup_acks();
                }
            }
            Phase::Open { .. } => {
                if ack.advances {
                    self.board.forget_dup_acks();
                }
                self.try_undo_by_dsack();
            }
        }
        if self.undo_state.hold == Hold::Retransmissions {
            return;
        }
        let after_timeout = matches!(self.phase, Phase::Loss { .. });
        let retransmitted = self.board.retransmitted();
        self.find_losses_as_linux(ack);
        let lost_again = after_timeout && self.board.retransmitted() < retransmitted;
        if (lost_again || !self.in_loss_recovery()) && self.board.lost() > 0 {
            self.start_recovery(ack.now);
        }
    }

    /// All that was outstanding when recovery began has been acknowledged. Returns whether it goes on all the same.
    fn ends_recovery(&mut self, ack: &Ack, recovery_point: u64) -> bool {
        if self.may_undo(ack, recovery_point) {
            self.undo(false);
        } else {
            self.rack.note_recovery_end();
        }
        // RFC 6582 §3.2 without SACK: duplicates of what was sent again must not start another.
        if !self.rules.sack && self.snd_una == recovery_point {
            self.forget_first_sent();
            return true;
        }
        let evidence = self.evidence(ack);
        self.controller
            .on_event(&ConnectionEvent::RecoveryExit(evidence, None));
        self.phase = Phase::Open { dup_acks: 0 };
        false
    }

    fn judge_in_recovery(&mut self, ack: &Ack) {
        if ack.advances && self.partial_was_late(ack) {
            if self.board.retransmitted() > 0 {
                self.undo_state.hold = Hold::Retransmissions;
                return;
            }
            self.forget_first_sent();
            self.undo(true);
            self.phase = Phase::Open { dup_acks: 0 };
        }
        if self.try_undo_by_dsack() {
            self.phase = Phase::Open { dup_acks: 0 };
        }
    }

    /// RFC 3522 §3.2: a partial ACK echoes a timestamp older than the first retransmission: the segment was late, not
    /// lost.
    fn partial_was_late(&mut self, ack: &Ack) -> bool {
        let late = self.undo_state.marker.is_some() && self.was_delayed(ack, u64::MAX);
        if late {
            let low = self.snd_una - ack.acked_bytes;
            let high = self.board.highest_sacked_seq(self.snd_una);
            self.undo_state
                .note_reordering(low, high, self.params.smss_bytes);
        }
        late
    }

    fn judge_after_timeout(&mut self, ack: &Ack, recovery_point: u64) {
        let recovered = self.snd_una >= recovery_point;
        if ack.advances && self.may_undo(ack, recovery_point) {
            // Linux: without SACK the echo alone does not end recovery; what was sent only once has to arrive, below.
            self.undo_timeout(recovery_point, self.rules.sack);
            return;
        }
        if self.undo_state.probing {
            // RFC 5682 §3.1 step 3b: something sent only once, before the timeout, has arrived.
            // Without SACK an ACK of a retransmission does not show it: that alone may have filled the gap.
            let reported = self.rules.sack || !ack.digest.acked_retransmission;
            let original = ack.digest.first_original_end;
            if reported && original.is_some_and(|end| end <= recovery_point) {
                self.undo_timeout(recovery_point, true);
                return;
            }
            if self.snd_nxt > recovery_point {
                // Step 3a: the timeout was right.
                self.undo_state.probing &= ack.digest.sacked == 0 && !ack.duplicate;
            } else if ack.advances && !recovered {
                // Step 2b: new data shows whether the rest is lost.
                self.phase = Phase::after_timeout(self.snd_nxt);
                self.undo_state.hold = Hold::NewDataFirst;
                return;
            }
        }
        if recovered {
            self.ends_recovery(ack, recovery_point);
        } else if ack.advances {
            self.board.forget_dup_acks();
        }
    }

    /// Undoes a timeout; with `ends` recovery is over, unless duplicates of what was sent again may still come.
    fn undo_timeout(&mut self, recovery_point: u64, ends: bool) {
        self.undo(true);
        self.timeouts_in_a_row = 0;
        if !self.rules.sack && self.snd_una == recovery_point {
            self.forget_first_sent();
        } else if ends {
            self.phase = Phase::Open { dup_acks: 0 };
        }
    }

    /// RFC 3708: DSACKs have shown that the window decrease was spurious.
    fn try_undo_by_dsack(&mut self) -> bool {
        let spurious = self.undo_state.all_spurious();
        if spurious {
            self.undo(false);
        }
        spurious
    }

    fn forget_first_sent(&mut self) {
        if !self.board.holds_retransmissions() {
            self.undo_state.first_sent = None;
        }
    }

    fn find_losses_as_linux(&mut self, ack: &Ack) {
        if self.rules.sack {
            let view = self.path_view(ack.now);
            self.rack.detect(&mut self.board, &view);
            return;
        }
        let recovering = matches!(self.phase, Phase::Recovery(_));
        let enough = !self.in_loss_recovery() && self.board.sacked() >= self.undo_state.reordering;
        if let Some(first) = self.board.first()
            && (enough || recovering && ack.advances)
        {
            self.board.mark_lost(first);
        }
    }

    fn start_recovery(&mut self, now: Nanos) {
        if self.params.undo {
            self.undo_state
                .begin(self.snd_una, self.board.retransmitted());
        }
        // PRR learns of the ACK that started recovery after the window was reduced, in `react_as_linux`.
        let Some(mut entry) = self.reduce_on_entry(now, 0) else {
            return;
        };
        let window = if self.capabilities.models_path {
            RecoveryWindow::Model
        } else {
            RecoveryWindow::Prr(self.proportional_rate(&mut entry))
        };
        self.phase = Phase::Recovery(FastRecovery {
            recovery_point: entry.recovery_point,
            window,
            speculative_from: entry.first,
            rescued: false,
        });
    }

    /// A timeout: what may be undone, and whether new data shows if it was spurious. `reduces`: ssthresh falls.
    fn mark_linux_timeout_for_undo(&mut self, reduces: bool) {
        let fresh = !self.in_loss_recovery();
        if reduces && self.params.undo {
            self.undo_state
                .begin(self.snd_una, self.board.retransmitted());
        }
        let asks = self.params.undo && self.params.frto;
        self.undo_state.probing = asks && (fresh || self.timeouts_in_a_row > 0);
        if fresh && self.rules.sack && u64::from(self.board.sacked()) >= DUP_THRESH {
            self.undo_state.reordering = self.undo_state.reordering.min(DUP_THRESH as u32);
        }
    }

    /// Whether a timeout now reduces ssthresh: not where a recovery that has not ended did.
    fn timeout_reduces(&self) -> bool {
        match self.phase {
            Phase::Open { .. } => !self.marks.covers(self.snd_una),
            Phase::Recovery(FastRecovery { recovery_point, .. }) => self.snd_una >= recovery_point,
            Phase::Loss { recovery_point, .. } => {
                self.timeouts_in_a_row == 0 || self.snd_una >= recovery_point
            }
        }
    }

    /// Whether a duplicate ACK reports a segment that arrived: not while retransmissions are held back because what is
    /// outstanding was sent after the loss, nor after a timeout before new data has left.
    fn dupacks_report_loss(&self) -> bool {
        match self.phase {
            Phase::Open { .. } => true,
            Phase::Recovery(FastRecovery { recovery_point, .. }) => self.snd_una < recovery_point,
            Phase::Loss { recovery_point, .. } => {
                self.snd_una < recovery_point && recovery_point < self.snd_nxt
            }
        }
    }

    /// Without SACK a duplicate ACK reports a segment that arrived, and an ACK that advances removes those that reported
    /// the rest. Returns the segments delivered.
    fn count_dup_acks_as_linux(&mut self, advances: bool, duplicate: bool, acked: u32) -> u32 {
        let reported = self.board.sacked();
        let delivered = if advances {
            self.board.eat_dup_acks(acked.saturating_sub(1));
            acked.saturating_sub(reported).max(1)
        } else if duplicate && self.dupacks_report_loss() {
            self.board.add_dup_ack();
            1
        } else {
            0
        };
        if self.board.limit_dup_acks() {
            self.undo_state.reordering = (self.board.outstanding() + acked).min(MAX_REORDERING);
            self.undo_state.reordered = true;
            return delivered.saturating_sub(u32::from(duplicate));
        }
        delivered
    }
}
