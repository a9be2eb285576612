//! Recovery by SACK (RFC 6675): losses by the scoreboard, transmission by the pipe.
//!
//! Does not depend on the window increase.

use super::rfc::Entry;
use super::window::RecoveryWindow;
use super::{Ack, Recovery};
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;

/// RFC 6675.
pub(in crate::tcp) struct SackRecovery;

impl Recovery for SackRecovery {
    fn find_losses(sender: &mut Sender, ack: &Ack) -> bool {
        find_losses(sender, ack, DUP_THRESH)
    }

    /// RFC 6675 §5 steps (1) and (2).
    fn is_triggered(sender: &Sender, dup_acks: u32) -> bool {
        u64::from(dup_acks) >= DUP_THRESH || sender.board.lost() > 0
    }

    fn begin(sender: &mut Sender, entry: &mut Entry) -> RecoveryWindow {
        sender.board.mark_lost(entry.first);
        sender.forced = Some(entry.first);
        RecoveryWindow::Pipe
    }
}

/// RFC 6675 §4, IsLost: marks lost what has `dup_thresh` sacked segments above it.
pub(super) fn find_losses(sender: &mut Sender, ack: &Ack, dup_thresh: u64) -> bool {
    (ack.digest.sacked > 0 || ack.advances) && sender.board.mark_lost_by_sack(dup_thresh) > 0
}
