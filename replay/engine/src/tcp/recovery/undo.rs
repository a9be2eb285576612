//! Undo of spurious reductions: an echoed timestamp (RFC 3522), a DSACK (RFC 3708) or new data (RFC 5682) shows that the
//! retransmission was unnecessary, and the reduction is undone (RFC 4015). Also the observed degree of reordering. The order
//! of the checks here is that of the senders that recover as the RFCs specify; Linux's order is in `linux`.
//!
//! Does not depend on how losses are detected. Read RFC 3522 §3.2 and RFC 5682 §2.1 first.

use super::Ack;
use crate::cc::{Adjustment, ConnectionEvent};
use crate::sim::time::{Nanos, timestamp};
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// Linux (`tcp_max_reordering`): segments of reordering that are believed at most.
pub(in crate::tcp) const MAX_REORDERING: u32 = 300;

/// Whether the last reduction was right, and what is known of reordering.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct UndoState {
    /// `snd_una` at the last reduction; none: there is nothing to take back.
    pub marker: Option<u64>,
    /// Retransmissions since then that no DSACK has called superfluous; none: none was made.
    unproven: Option<u32>,
    /// When the first retransmission of the episode left.
    pub first_sent: Option<Nanos>,
    /// Duplicates that reordering alone explains.
    pub reordering: u32,
    /// Reordering has been seen.
    pub reordered: bool,
    /// RFC 5682 §3.1: after a timeout new data asks whether it was spurious.
    pub probing: bool,
    pub hold: Hold,
    /// Reductions that have been taken back.
    pub undone: u64,
}

impl Default for UndoState {
    fn default() -> Self {
        Self {
            marker: None,
            unproven: None,
            first_sent: None,
            reordering: DUP_THRESH as u32,
            reordered: false,
            probing: false,
            hold: Hold::Nothing,
            undone: 0,
        }
    }
}

/// What must not be repaired before the next ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Hold {
    /// Repairs leave.
    Nothing,
    /// New data goes first; repairs leave if there is none (RFC 5682 §3.1 step 2b).
    NewFirst,
    /// No repairs: what seemed lost was late.
    Repairs,
}

impl UndoState {
    /// A reduction begins, with `retransmitted` segments in the network that were sent again before.
    pub fn begin(&mut self, snd_una: u64, retransmitted: u32) {
        self.marker = Some(snd_una);
        self.unproven = (retransmitted > 0).then_some(retransmitted);
    }

    /// The same where nothing of an earlier episode counts any more.
    pub fn begin_anew(&mut self, snd_una: u64, retransmitted: u32) {
        self.first_sent = None;
        self.begin(snd_una, retransmitted);
    }

    /// A segment is sent again.
    pub fn note_retransmission(&mut self, now: Nanos) {
        self.unproven = Some(self.unproven.unwrap_or(0) + 1);
        self.first_sent.get_or_insert(now);
    }

    /// RFC 3708 §3: a DSACK up to `end` that `snd_una` had passed already proves a retransmission superfluous.
    pub fn note_dsack(&mut self, end: u64, prior_una: u64, segments: u32) {
        if self.marker.is_some_and(|marker| end > marker)
            && end <= prior_una
            && let Some(unproven) = &mut self.unproven
        {
            *unproven = unproven.saturating_sub(segments);
        }
    }

    /// Whether every retransmission was superfluous.
    pub fn disproved(&self) -> bool {
        self.marker.is_some() && self.unproven == Some(0)
    }

    /// A segment from `low` on came although one from `high` on had come before.
    pub fn note_reordering(&mut self, low: u64, high: u64, smss_bytes: u32) {
        if low >= high {
            return;
        }
        let distance = (high - low).div_ceil(u64::from(smss_bytes)) as u32;
        self.reordering = self.reordering.max(distance.min(MAX_REORDERING));
        self.reordered = true;
    }
}

/// What an ACK says of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing against it.
    Right,
    /// New data asks.
    Asked,
    /// It was spurious, and has been taken back.
    Spurious,
}

impl Sender {
    /// RFC 8985 §6.2 step 3: what this ACK says about the order in which segments came; `counts_sacked`: also what it sacks.
    pub(super) fn note_order(&mut self, ack: &Ack, counts_sacked: bool) {
        let prior_high = ack.prior_high;
        let high = self.board.highest_sacked_seq(self.snd_una);
        let smss_bytes = self.params.smss_bytes;
        if let Some(low) = ack.digest.first_original_sacked
            && low < prior_high
            && counts_sacked
        {
            self.undo_state.note_reordering(low, high, smss_bytes);
        }
        if let Some(low) = ack.digest.first_original_acked
            && low < prior_high
        {
            self.undo_state.note_reordering(low, high, smss_bytes);
        }
    }

    /// Whether an echo or DSACKs disprove the reduction.
    pub(in crate::tcp) fn may_undo(&self, ack: &Ack, recovery_point: u64) -> bool {
        let delayed = self.undo_state.marker.is_some() && self.was_delayed(ack, recovery_point);
        delayed || self.undo_state.disproved()
    }

    /// RFC 3522 §3.2: the echoed timestamp is older than the first retransmission; or none was made.
    pub(in crate::tcp) fn was_delayed(&self, ack: &Ack, recovery_point: u64) -> bool {
        match self.undo_state.first_sent {
            Some(sent_at) => {
                let stamp = timestamp(sent_at);
                self.params.timestamps
                    && ack.ts_ecr != 0
                    && (ack.ts_ecr.wrapping_sub(stamp) as i32) < 0
            }
            // Without SACK the time is forgotten once all is acknowledged.
            None => self.rules.sack || self.snd_una < recovery_point,
        }
    }

    /// Takes back what the last reduction cost; `nothing_is_lost`: what was marked lost was late as well.
    pub(in crate::tcp) fn undo(&mut self, nothing_is_lost: bool) {
        if nothing_is_lost {
            self.board.forget_losses();
        }
        self.controller.adjust(Adjustment::Undo);
        self.undo_state.marker = None;
        self.undo_state.undone += 1;
    }
}

impl Sender {
    /// Fast recovery has begun and has reduced the window.
    pub(in crate::tcp) fn mark_recovery_for_undo(&mut self) {
        if self.params.undo {
            self.undo_state
                .begin_anew(self.snd_una, self.board.retransmitted());
        }
    }

    /// A timeout, before it changes the phase. RFC 5682 §2.1 step 1: it is asked about where nothing was being repaired;
    /// what an earlier one of the same row cost may still prove superfluous.
    pub(in crate::tcp) fn mark_timeout_for_undo(&mut self) {
        if !self.params.undo {
            return;
        }
        self.undo_state.hold = Hold::Nothing;
        self.undo_state.probing = false;
        match self.phase {
            Phase::Open { .. } => {
                self.undo_state
                    .begin_anew(self.snd_una, self.board.retransmitted());
                // Deviation: the echo tells at once and without holding repairs back; RFC 5682 has no word on both.
                self.undo_state.probing = self.params.frto && !self.params.timestamps;
            }
            Phase::Recovery(_) => self.undo_state.marker = None,
            Phase::Loss { .. } => {}
        }
    }

    /// Takes fast recovery back if what it sent again had not been lost; says whether.
    ///
    /// Deviation: RFC 4015 §3.2 lets cwnd grow from FlightSize; as Linux, it is what it was before.
    pub(in crate::tcp) fn undoes_recovery(&mut self, ack: &Ack) -> bool {
        let Phase::Recovery(FastRecovery { recovery_point, .. }) = self.phase else {
            return false;
        };
        if !self.params.undo || !self.is_disproved(ack, recovery_point) {
            return false;
        }
        self.undo_and_reopen();
        let evidence = self.evidence(ack);
        self.controller
            .on_event(&ConnectionEvent::RecoveryExit(evidence, None));
        true
    }

    /// RFC 3708: the report may come after the end of the recovery that it disproves.
    pub(in crate::tcp) fn undo_past_recovery(&mut self) {
        if self.undo_state.disproved() && self.params.undo {
            self.undo(false);
        }
    }

    /// Judges a timeout by an ACK; says whether that is all there is to do with the ACK.
    pub(in crate::tcp) fn answers_timeout(&mut self, ack: &Ack, recovery_point: u64) -> bool {
        if !self.params.undo {
            return false;
        }
        match self.judge_timeout(ack, recovery_point) {
            Verdict::Right => false,
            Verdict::Asked => {
                self.increase_window(ack);
                true
            }
            Verdict::Spurious => {
                self.undo_and_reopen();
                self.timeouts_in_a_row = 0;
                true
            }
        }
    }

    fn judge_timeout(&mut self, ack: &Ack, recovery_point: u64) -> Verdict {
        self.undo_state.hold = Hold::Nothing;
        if self.is_disproved(ack, recovery_point) {
            return Verdict::Spurious;
        }
        if !std::mem::take(&mut self.undo_state.probing) {
            return Verdict::Right;
        }
        if self.snd_nxt > recovery_point {
            // RFC 5682 §2.1 step 3: what was sent only once, before the timeout, has arrived, or has not.
            let original = ack.digest.first_original_end;
            let arrived = original.is_some_and(|end| end <= recovery_point);
            if arrived {
                return Verdict::Spurious;
            }
            // Step 3a: the new data, three segments of which there are at most with this, must not hold repairs back.
            self.controller
                .adjust(Adjustment::AtLeast(f64::from(self.board.pipe() + 1)));
            return Verdict::Right;
        }
        // Step 2a: a duplicate, or all of it at once, says nothing.
        if !ack.advances || self.snd_una >= recovery_point {
            return Verdict::Right;
        }
        // Step 2b: new data before any further repair.
        self.undo_state.probing = true;
        self.undo_state.hold = Hold::NewFirst;
        Verdict::Asked
    }

    /// Every retransmission was superfluous, or this ACK echoes what was sent before the first of them; none of them must
    /// still be under way.
    fn is_disproved(&self, ack: &Ack, recovery_point: u64) -> bool {
        let late = ack.advances && self.may_undo(ack, recovery_point);
        self.board.retransmitted() == 0 && (late || self.undo_state.disproved())
    }

    fn undo_and_reopen(&mut self) {
        self.undo(true);
        self.forced = None;
        self.second_copy = None;
        self.limited_transmitted = 0;
        self.phase = Phase::Open { dup_acks: 0 };
    }
}
