//! Undo of spurious window decreases: an echoed timestamp (RFC 3522), DSACKs (RFC 3708) or the ACKs of new data (F-RTO,
//! RFC 5682) show that a retransmission was spurious, and the decrease is undone (RFC 4015). Also the observed degree of
//! reordering. The order of the checks here is that of the recoveries of the RFCs; Linux's order is in `linux`.
//!
//! Does not depend on how losses are detected. Read RFC 3522 §3.2 and RFC 5682 §2.1 first.

use super::Ack;
use crate::cc::{Adjustment, ConnectionEvent};
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// Linux (`tcp_max_reordering`): the upper limit of the reordering degree, in segments.
pub(in crate::tcp) const MAX_REORDERING: u32 = 300;

/// What can undo the last window decrease, and what is known of reordering.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct UndoState {
    /// `snd_una` at the last window decrease; none: there is nothing to undo.
    pub marker: Option<u64>,
    /// Retransmissions since then that no DSACK has reported as duplicates; none: there was no retransmission.
    undo_retrans: Option<u32>,
    /// When the first retransmission of the episode was sent (RFC 3522: RetransmitTS).
    pub first_sent: Option<Nanos>,
    /// Reordering degree: the duplicate ACKs that reordering alone explains.
    pub reordering: u32,
    /// Reordering has been seen.
    pub reordered: bool,
    /// RFC 5682 §3.1: after a timeout new data is sent as a probe of whether it was spurious.
    pub probing: bool,
    pub hold: Hold,
    /// Window decreases undone so far.
    pub undone: u64,
}

impl Default for UndoState {
    fn default() -> Self {
        Self {
            marker: None,
            undo_retrans: None,
            first_sent: None,
            reordering: DUP_THRESH as u32,
            reordered: false,
            probing: false,
            hold: Hold::Nothing,
            undone: 0,
        }
    }
}

/// What must not be sent before the next ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Hold {
    /// Retransmissions are allowed.
    Nothing,
    /// New data first; retransmissions only if there is none (RFC 5682 §3.1 step 2b).
    NewDataFirst,
    /// No retransmissions: the segments that seemed lost were late.
    Retransmissions,
    /// Nothing but what a timeout retransmits.
    Everything,
}

impl UndoState {
    /// The window decreases while `retransmitted` retransmissions of an earlier episode are in flight.
    pub fn begin(&mut self, snd_una: u64, retransmitted: u32) {
        self.marker = Some(snd_una);
        self.undo_retrans = (retransmitted > 0).then_some(retransmitted);
    }

    /// The same at the start of a new episode: the time of an earlier first retransmission no longer counts.
    pub fn begin_anew(&mut self, snd_una: u64, retransmitted: u32) {
        self.first_sent = None;
        self.begin(snd_una, retransmitted);
    }

    /// A segment is retransmitted.
    pub fn note_retransmission(&mut self, now: Nanos) {
        self.undo_retrans = Some(self.undo_retrans.unwrap_or(0) + 1);
        self.first_sent.get_or_insert(now);
    }

    /// RFC 3708 §3: DSACKs have shown that so many of the retransmissions were spurious.
    pub fn note_spurious(&mut self, segments: u32) {
        if let Some(undo_retrans) = &mut self.undo_retrans {
            *undo_retrans = undo_retrans.saturating_sub(segments);
        }
    }

    /// Whether DSACKs have shown every retransmission to be spurious.
    pub fn all_spurious(&self) -> bool {
        self.marker.is_some() && self.undo_retrans == Some(0)
    }

    /// The segment at `low` arrived after the segment at `high`.
    pub fn note_reordering(&mut self, low: u64, high: u64, smss_bytes: u32) {
        if low >= high {
            return;
        }
        let distance = (high - low).div_ceil(u64::from(smss_bytes)) as u32;
        self.reordering = self.reordering.max(distance.min(MAX_REORDERING));
        self.reordered = true;
    }
}

/// What an ACK shows about a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It was not spurious.
    Genuine,
    /// Not known yet: new data probes.
    Probing,
    /// It was spurious.
    Spurious,
}

impl Sender {
    /// RFC 8985 §6.2 step 3: reordering that this ACK shows; with `counts_sacked` also reordering that its SACK blocks show.
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

    /// Whether the echoed timestamp or DSACKs show that the window decrease was spurious.
    pub(in crate::tcp) fn may_undo(&self, ack: &Ack, recovery_point: u64) -> bool {
        let delayed = self.undo_state.marker.is_some() && self.was_delayed(ack, recovery_point);
        delayed || self.undo_state.all_spurious()
    }

    /// RFC 3522 §3.2: the echoed timestamp is older than the first retransmission, or there was no retransmission.
    pub(in crate::tcp) fn was_delayed(&self, ack: &Ack, recovery_point: u64) -> bool {
        match self.undo_state.first_sent {
            Some(sent_at) => ack.digest.echoes_before(sent_at),
            // Without SACK the time is no longer known once everything is acknowledged.
            None => self.rules.sack || self.snd_una < recovery_point,
        }
    }

    /// Undoes the last window decrease. With `nothing_is_lost` the segments marked lost were only late.
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
    /// Fast recovery has begun and has decreased the window.
    pub(in crate::tcp) fn mark_recovery_for_undo(&mut self) {
        if self.params.undo {
            self.undo_state
                .begin_anew(self.snd_una, self.board.retransmitted());
        }
    }

    /// A timeout, before it changes the phase. RFC 5682 §2.1 step 1: F-RTO starts only outside loss recovery. After
    /// consecutive timeouts the decrease at the first one can still be undone.
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
                // Deviation: no F-RTO with timestamps, whose echo decides at once and without delaying retransmissions;
                // RFC 5682 does not say what to do where both are possible.
                self.undo_state.probing = self.params.frto && !self.params.timestamps;
            }
            Phase::Recovery(_) => self.undo_state.marker = None,
            Phase::Loss { .. } => {}
        }
    }

    /// Undoes fast recovery if its retransmissions were spurious. Returns whether it did.
    ///
    /// Deviation: RFC 4015 §3.2 lets cwnd grow from FlightSize; as in Linux, cwnd returns to its former value.
    pub(in crate::tcp) fn undoes_recovery(&mut self, ack: &Ack) -> bool {
        let Phase::Recovery(FastRecovery { recovery_point, .. }) = self.phase else {
            return false;
        };
        if !self.params.undo || !self.was_spurious(ack, recovery_point) {
            return false;
        }
        self.undo_and_reopen();
        let evidence = self.evidence(ack);
        self.controller
            .on_event(&ConnectionEvent::RecoveryExit(evidence, None));
        true
    }

    /// RFC 3708: the DSACK that shows a recovery to be spurious may arrive after its end.
    pub(in crate::tcp) fn undo_past_recovery(&mut self) {
        if self.undo_state.all_spurious() && self.params.undo {
            self.undo(false);
        }
    }

    /// Decides by an ACK whether a timeout was spurious. Returns whether the ACK is thereby dealt with.
    pub(in crate::tcp) fn answers_timeout(&mut self, ack: &Ack, recovery_point: u64) -> bool {
        if !self.params.undo {
            return false;
        }
        match self.judge_timeout(ack, recovery_point) {
            Verdict::Genuine => false,
            Verdict::Probing => {
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
        if self.was_spurious(ack, recovery_point) {
            return Verdict::Spurious;
        }
        if !std::mem::take(&mut self.undo_state.probing) {
            return Verdict::Genuine;
        }
        if self.snd_nxt > recovery_point {
            // RFC 5682 §2.1 step 3: has a segment arrived that was sent only once, before the timeout?
            let original = ack.digest.first_original_end;
            let arrived = original.is_some_and(|end| end <= recovery_point);
            if arrived {
                return Verdict::Spurious;
            }
            // Step 3a: the new data, at most three segments with this one, must not delay retransmissions.
            self.controller
                .adjust(Adjustment::AtLeast(f64::from(self.board.pipe() + 1)));
            return Verdict::Genuine;
        }
        // Step 2a: a duplicate ACK, or an ACK of everything at once, decides nothing.
        if !ack.advances || self.snd_una >= recovery_point {
            return Verdict::Genuine;
        }
        // Step 2b: new data before any further retransmission.
        self.undo_state.probing = true;
        self.undo_state.hold = Hold::NewDataFirst;
        Verdict::Probing
    }

    /// Whether every retransmission was spurious: DSACKs have reported all of them, or this ACK echoes a timestamp from
    /// before the first one, and none is still in flight.
    fn was_spurious(&self, ack: &Ack, recovery_point: u64) -> bool {
        let late = ack.advances && self.may_undo(ack, recovery_point);
        self.board.retransmitted() == 0 && (late || self.undo_state.all_spurious())
    }

    fn undo_and_reopen(&mut self) {
        self.undo(true);
        self.forced = None;
        self.second_copy = None;
        self.limited_transmitted = 0;
        self.phase = Phase::Open { dup_acks: 0 };
    }
}
