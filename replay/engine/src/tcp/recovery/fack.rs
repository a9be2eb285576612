//! FACK's recovery: the forward-most octet that SACK has reported (snd.fack) says what is still in flight, and a hole of
//! more than three segments below it is lost without waiting for three duplicates.
//!
//! awnd = snd_nxt - snd.fack + retran_data is the scoreboard's pipe where every segment below snd.fack that is not sacked
//! counts as lost. Does not depend on what a loss costs. Read Mathis and Mahdavi 1996 §3 first, then `docs/variants/fack.md`.

use crate::config::RecoveryKind;
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase, RecoveryWindow};

impl Sender {
    /// Whether it recovers as FACK does.
    #[inline]
    pub(in crate::tcp) fn is_fack(&self) -> bool {
        self.params.recovery == RecoveryKind::Fack
    }

    /// Mathis and Mahdavi 1996 §3: (snd.fack - snd.una) > 3 segments.
    pub(in crate::tcp) fn hole_is_lost(&self) -> bool {
        let edge = self.board.forward_edge();
        self.board
            .first()
            .is_some_and(|una| edge - una > DUP_THRESH)
    }

    /// Recovery begins. With a rampdown of `share` the window starts that share of what is in flight above cwnd.
    pub(in crate::tcp) fn forward_window(&self, share: Option<f64>) -> RecoveryWindow {
        let edge = self.board.forward_edge();
        let share = share.unwrap_or(0.0);
        let beyond = self
            .board
            .last()
            .map_or(0, |last| last + 1 - edge.min(last + 1));
        RecoveryWindow::Forward {
            edge,
            share,
            trim: share * beyond as f64,
        }
    }

    /// §4.6: what snd.fack has passed left the network; a share of it is not replaced.
    pub(in crate::tcp) fn follow_forward_edge(&mut self) {
        let now = self.board.forward_edge();
        if let Phase::Recovery(FastRecovery {
            window: RecoveryWindow::Forward { edge, share, trim },
            ..
        }) = &mut self.phase
        {
            *trim = (*trim - *share * now.saturating_sub(*edge) as f64).max(0.0);
            *edge = now.max(*edge);
        }
    }
}
