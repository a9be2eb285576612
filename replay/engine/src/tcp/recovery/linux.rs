//! Recovery as Linux 6.18 runs it: one state machine for losses, for reductions that prove spurious (RFC 3522,
//! RFC 3708, RFC 5682) and for reordering, with SACK and without it.
//!
//! Does not depend on windows' arithmetic: the controller and `prr` have it. Read RFC 8985 §6, RFC 5682 §3.1 and RFC 3522
//! §3.2 first; the order of the questions is that of `tcp_fastretrans_alert`.

use super::fast_recovery::Ack;
use super::undo::{Hold, MAX_REORDERING};
use crate::config::{Profile, RecoveryKind};
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase, RecoveryWindow};

impl Sender {
    /// Whether this state machine is at work.
    #[inline]
    pub(in crate::tcp) fn acts_as_linux(&self) -> bool {
        self.params.profile == Profile::Linux && self.params.recovery == RecoveryKind::RackPrr
    }

    /// Whether duplicate ACKs stand for SACK: as many segments count as sacked.
    pub(in crate::tcp) fn counts_dup_acks(&self) -> bool {
        self.acts_as_linux() && !self.params.sack_enabled()
    }

    pub(in crate::tcp) fn react_as_linux(&mut self, ack: &Ack) {
        self.undo_state.hold = Hold::Nothing;
        self.rack.awaits = false;
        let view = self.path_view(ack.now);
        self.rack.update(&ack.digest, &view);
        self.judge(ack);
        let newly_lost = self.board.lost_total() > ack.prior_lost;
        let (pipe, ssthresh) = (self.board.pipe(), self.controller.ssthresh());
        match &mut self.phase {
            Phase::Recovery(FastRecovery { window, .. }) => {
                if let RecoveryWindow::Prr(prr) = window {
                    prr.aim_at_most_for(ssthresh);
                    prr.on_ack(ack.digest.delivered, ack.advances && !newly_lost, pipe);
                }
            }
            Phase::Open { .. } | Phase::Loss { .. } => {
                // Linux: where reordering is known, SACK alone lets the window grow too.
                let late = u64::from(self.undo_state.reordering) > DUP_THRESH;
                let grows = ack.advances || late && ack.digest.sacked > 0;
                let sinks = self.sink(ack, ack.advances && !newly_lost);
                // RFC 3168 §6.1.2: no growth on an echoed mark.
                if grows && !sinks && !ack.ecn_echo {
                    self.grow(ack);
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
                if ack.advances && !self.is_repairing() {
                    self.board.forget_dup_acks();
                }
                let retransmitted = self.board.retransmitted();
                self.find_losses_as_linux(ack);
                let lost_again = self.board.retransmitted() < retransmitted;
                if (lost_again || !self.is_repairing()) && self.board.lost() > 0 {
                    self.start_recovery(ack);
                }
            }
            Phase::Open { .. } => {
                if ack.advances {
                    self.board.forget_dup_acks();
                }
                self.try_undo_by_dsack();
                self.find_losses_as_linux(ack);
                if self.board.lost() > 0 {
                    self.start_recovery(ack);
                }
            }
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
        if !self.params.sack_enabled() && self.snd_una == recovery_point {
            self.forget_first_sent();
            return true;
        }
        let evidence = self.evidence(ack);
        self.controller.on_recovery_exit(&evidence, None);
        self.phase = Phase::Open { dup_acks: 0 };
        false
    }

    fn judge_in_recovery(&mut self, ack: &Ack) {
        if ack.advances && self.partial_was_late(ack) {
            if self.board.retransmitted() > 0 {
                self.undo_state.hold = Hold::Repairs;
                return;
            }
            self.forget_first_sent();
            self.undo(true);
            self.phase = Phase::Open { dup_acks: 0 };
        }
        if self.try_undo_by_dsack() {
            self.phase = Phase::Open { dup_acks: 0 };
        }
        self.find_losses_as_linux(ack);
        if !self.is_repairing() && self.board.lost() > 0 {
            self.start_recovery(ack);
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
            self.undo_timeout();
            // Linux: without SACK the echo alone does not end the repairs; what was sent only once has to arrive, below.
            if self.params.sack_enabled() {
                self.phase = Phase::Open { dup_acks: 0 };
            } else if self.snd_una == recovery_point {
                self.forget_first_sent();
            }
            return;
        }
        if self.undo_state.probing {
            // RFC 5682 §3.1 step 3b: something sent only once, before the timeout, has arrived.
            if self.original_arrived(ack, recovery_point) {
                self.undo_timeout();
                if self.params.sack_enabled() || self.snd_una != recovery_point {
                    self.phase = Phase::Open { dup_acks: 0 };
                } else {
                    self.forget_first_sent();
                }
                return;
            }
            if self.snd_nxt > recovery_point {
                // Step 3a: the timeout was right.
                self.undo_state.probing &= ack.digest.sacked == 0 && !ack.duplicate;
            } else if ack.advances && !recovered {
                // Step 2b: new data shows whether the rest is lost.
                self.phase = Phase::Loss {
                    recovery_point: self.snd_nxt,
                    dup_acks: 0,
                };
                self.undo_state.hold = Hold::NewFirst;
                return;
            }
        }
        if recovered {
            self.ends_recovery(ack, recovery_point);
        } else if ack.advances {
            self.board.forget_dup_acks();
        }
    }

    /// Whether the ACK tells of something sent only once, before the timeout. Without SACK an ACK that covers a
    /// retransmission too does not: that alone may have filled the gap.
    fn original_arrived(&self, ack: &Ack, recovery_point: u64) -> bool {
        let told = self.params.sack_enabled() || !ack.digest.acked_retransmission;
        let original = ack.digest.first_original_end;
        told && original.is_some_and(|end| end <= recovery_point)
    }

    fn undo_timeout(&mut self) {
        self.undo(true);
        self.timeouts_in_a_row = 0;
    }

    /// RFC 3708: DSACKs have disproved the reduction.
    fn try_undo_by_dsack(&mut self) -> bool {
        let disproved = self.undo_state.disproved();
        if disproved {
            self.undo(false);
        }
        disproved
    }

    fn forget_first_sent(&mut self) {
        if !self.board.holds_retransmissions() {
            self.undo_state.first_sent = None;
        }
    }

    fn find_losses_as_linux(&mut self, ack: &Ack) {
        if self.params.sack_enabled() {
            let view = self.path_view(ack.now);
            self.rack.detect(&mut self.board, &view);
            return;
        }
        let recovering = matches!(self.phase, Phase::Recovery(_));
        let enough = !self.is_repairing() && self.board.sacked() >= self.undo_state.reordering;
        if let Some(first) = self.board.first()
            && (enough || recovering && ack.advances)
        {
            self.board.mark_lost(first);
        }
    }

    fn start_recovery(&mut self, ack: &Ack) {
        if self.params.undo {
            self.undo_state
                .begin(self.snd_una, self.board.retransmitted());
        }
        self.enter_recovery(ack);
    }

    /// RACK's timer found losses while nothing was being repaired: it counts as one delivery.
    pub(in crate::tcp) fn recover_by_timer(&mut self, ack: &Ack) {
        self.start_recovery(ack);
        let pipe = self.board.pipe();
        if let Phase::Recovery(FastRecovery {
            window: RecoveryWindow::Prr(prr),
            ..
        }) = &mut self.phase
        {
            prr.on_ack(1, false, pipe);
        }
    }

    /// A timeout: what may be taken back, and whether new data asks if it was spurious. `reduces`: ssthresh falls.
    pub(in crate::tcp) fn mark_timeout_for_undo(&mut self, reduces: bool) {
        let fresh = !self.is_repairing();
        if reduces && self.params.undo {
            self.undo_state
                .begin(self.snd_una, self.board.retransmitted());
        }
        let asks = self.params.undo && self.params.frto;
        self.undo_state.probing = asks && (fresh || self.timeouts_in_a_row > 0);
        let sack = self.params.sack_enabled();
        if fresh && sack && u64::from(self.board.sacked()) >= DUP_THRESH {
            self.undo_state.reordering = self.undo_state.reordering.min(DUP_THRESH as u32);
        }
    }

    /// Whether a timeout now reduces ssthresh: not where a recovery that has not ended did.
    pub(in crate::tcp) fn timeout_reduces(&self) -> bool {
        match self.phase {
            Phase::Open { .. } => !self.marks.covers(self.snd_una),
            Phase::Recovery(FastRecovery { recovery_point, .. }) => self.snd_una >= recovery_point,
            Phase::Loss { recovery_point, .. } => {
                self.timeouts_in_a_row == 0 || self.snd_una >= recovery_point
            }
        }
    }

    /// Whether a duplicate ACK stands for a segment that arrived: not while repairs are held back because what is
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

    /// Without SACK a duplicate ACK stands for a segment that arrived, and an ACK that advances eats those that told
    /// of the rest. Returns the segments delivered.
    pub(in crate::tcp) fn count_dup_acks(
        &mut self,
        advances: bool,
        duplicate: bool,
        acked: u32,
    ) -> u32 {
        let told = self.board.sacked();
        let delivered = if advances {
            self.board.eat_dup_acks(acked.saturating_sub(1));
            acked.saturating_sub(told).max(1)
        } else if duplicate && self.dupacks_report_loss() {
            self.board.add_dup_ack();
            1
        } else {
            0
        };
        if self.board.limit_dup_acks() {
            let max = self.board.outstanding() + acked;
            self.undo_state.reordering = max.min(MAX_REORDERING);
            self.undo_state.reordered = true;
            return delivered.saturating_sub(u32::from(duplicate));
        }
        delivered
    }
}
