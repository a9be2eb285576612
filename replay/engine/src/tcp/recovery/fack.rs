//! FACK's recovery: the forward-most octet that SACK has reported (snd.fack) determines what is still in flight, and a
//! hole of more than three segments below it is lost without waiting for three duplicates.
//!
//! awnd = snd_nxt - snd.fack + retran_data is the scoreboard's pipe where every segment below snd.fack that is not sacked
//! counts as lost. Does not depend on how much a loss reduces the window. Read Mathis and Mahdavi 1996 §3 first, then `docs/variants/fack.md`.

use super::rfc::Entry;
use super::window::RecoveryWindow;
use super::{Ack, Recovery, sack};
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// FACK.
pub(in crate::tcp) struct FackRecovery;

impl Recovery for FackRecovery {
    /// Every hole below the forward-most segment counts as lost.
    fn find_losses(sender: &mut Sender, ack: &Ack) -> bool {
        sack::find_losses(sender, ack, 1)
    }

    /// Mathis and Mahdavi 1996 §3: three duplicate ACKs, or (snd.fack - snd.una) > 3 segments.
    fn is_triggered(sender: &Sender, dup_acks: u32) -> bool {
        let edge = sender.board.forward_edge();
        let first = sender.board.first();
        u64::from(dup_acks) >= DUP_THRESH || first.is_some_and(|una| edge - una > DUP_THRESH)
    }

    /// With a rampdown the window starts a share of what is in flight above cwnd.
    fn begin(sender: &mut Sender, entry: &mut Entry) -> RecoveryWindow {
        sender.board.mark_lost(entry.first);
        sender.forced = Some(entry.first);
        let edge = sender.board.forward_edge();
        let share = entry.rampdown.unwrap_or(0.0);
        let beyond = (sender.board.last()).map_or(0, |last| last + 1 - edge.min(last + 1));
        RecoveryWindow::Forward {
            edge,
            share,
            trim: share * beyond as f64,
        }
    }

    /// §4.6: what snd.fack has passed left the network; a share of it is not replaced.
    fn on_ack_in_recovery(sender: &mut Sender, _ack: &Ack, _newly_lost: bool) {
        let now = sender.board.forward_edge();
        if let Phase::Recovery(FastRecovery {
            window: RecoveryWindow::Forward { edge, share, trim },
            ..
        }) = &mut sender.phase
        {
            *trim = (*trim - *share * now.saturating_sub(*edge) as f64).max(0.0);
            *edge = now.max(*edge);
        }
    }
}
