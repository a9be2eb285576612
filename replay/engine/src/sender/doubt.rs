//! Whether the last reduction was right, for senders that recover as the RFCs have it: what an echo (RFC 3522), a DSACK
//! (RFC 3708) or new data (RFC 5682) disproves is taken back (RFC 4015). Linux asks the same in an order of its own, in
//! `linux`.
//!
//! Must not know how losses are found. Read RFC 3522 §3.2 and RFC 5682 §2.1 first.

use super::linux::Hold;
use super::phase::{FastRecovery, Phase};
use super::recovery::Ack;
use super::{RecoveryKind, Sender};

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
    /// Whether it takes back what proves superfluous. ns-2's agents do not, nor those whose window no loss moves.
    #[inline]
    fn doubts(&self) -> bool {
        self.params.undo
            && !self.acts_as_linux()
            && !self.is_ns2()
            && !matches!(
                self.params.recovery,
                RecoveryKind::Aerotcp | RecoveryKind::Supertcp
            )
    }

    /// Fast recovery has begun, and has cost something.
    pub(super) fn doubt_recovery(&mut self) {
        if self.doubts() {
            self.doubt
                .begin_anew(self.snd_una, self.board.retransmitted());
        }
    }

    /// A timeout, before it changes the phase. RFC 5682 §2.1 step 1: it is asked about where nothing was being repaired;
    /// what an earlier one of the same row cost may still prove superfluous.
    pub(super) fn doubt_rfc_timeout(&mut self) {
        if !self.doubts() {
            return;
        }
        self.doubt.hold = Hold::Nothing;
        self.doubt.probing = false;
        match self.phase {
            Phase::Open { .. } => {
                self.doubt
                    .begin_anew(self.snd_una, self.board.retransmitted());
                // Deviation: the echo tells at once and without holding repairs back; RFC 5682 has no word on both.
                self.doubt.probing = self.params.frto && !self.params.timestamps;
            }
            Phase::Recovery(_) => self.doubt.marker = None,
            Phase::Loss { .. } => {}
        }
    }

    /// Takes fast recovery back if what it sent again had not been lost; says whether.
    ///
    /// Deviation: RFC 4015 §3.2 lets cwnd grow from FlightSize; as Linux, it is what it was before.
    pub(super) fn undoes_recovery(&mut self, ack: &Ack, recovery_point: u64) -> bool {
        if !self.doubts() || !self.is_disproved(ack, recovery_point) {
            return false;
        }
        self.take_back();
        let evidence = self.evidence(ack);
        self.controller.on_recovery_exit(&evidence, None);
        true
    }

    /// RFC 3708: the report may come after the end of the recovery that it disproves.
    pub(super) fn undo_past_recovery(&mut self) {
        if self.doubt.disproved() && self.doubts() {
            self.undo(false);
        }
    }

    /// Judges a timeout by an ACK; says whether that is all there is to do with the ACK.
    pub(super) fn answers_timeout(&mut self, ack: &Ack, recovery_point: u64) -> bool {
        if !self.doubts() {
            return false;
        }
        match self.judge_timeout(ack, recovery_point) {
            Verdict::Right => false,
            Verdict::Asked => {
                self.grow(ack);
                true
            }
            Verdict::Spurious => {
                self.take_back();
                self.timeouts_in_a_row = 0;
                true
            }
        }
    }

    fn judge_timeout(&mut self, ack: &Ack, recovery_point: u64) -> Verdict {
        self.doubt.hold = Hold::Nothing;
        if self.is_disproved(ack, recovery_point) {
            return Verdict::Spurious;
        }
        if !std::mem::take(&mut self.doubt.probing) {
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
            self.controller.allow(f64::from(self.board.pipe() + 1));
            return Verdict::Right;
        }
        // Step 2a: a duplicate, or all of it at once, says nothing.
        if !ack.advances || self.snd_una >= recovery_point {
            return Verdict::Right;
        }
        // Step 2b: new data before any further repair.
        self.doubt.probing = true;
        self.doubt.hold = Hold::NewFirst;
        Verdict::Asked
    }

    /// Every retransmission was superfluous, or this ACK echoes what was sent before the first of them; none of them must
    /// still be under way.
    fn is_disproved(&self, ack: &Ack, recovery_point: u64) -> bool {
        let late = ack.advances && self.may_undo(ack, recovery_point);
        self.board.retransmitted() == 0 && (late || self.doubt.disproved())
    }

    fn take_back(&mut self) {
        self.undo(true);
        self.forced = None;
        self.second_copy = None;
        self.limited_transmitted = 0;
        self.phase = Phase::Open { dup_acks: 0 };
    }

    /// The recovery point of fast recovery, if that is the phase.
    pub(super) fn recovery_point(&self) -> Option<u64> {
        match self.phase {
            Phase::Recovery(FastRecovery { recovery_point, .. }) => Some(recovery_point),
            Phase::Open { .. } | Phase::Loss { .. } => None,
        }
    }
}
