//! NewReno (RFC 6582): fast recovery without SACK that lasts until all that was outstanding has been acknowledged.
//!
//! Does not depend on the window increase.

use super::reno::inflate;
use super::rfc::Entry;
use super::window::RecoveryWindow;
use super::{Ack, Recovery};
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// NewReno.
pub(in crate::tcp) struct NewrenoRecovery;

impl Recovery for NewrenoRecovery {
    /// RFC 6582 §3.2 step 2: not on duplicates of what the last recovery or timeout sent again.
    fn is_triggered(sender: &Sender, dup_acks: u32) -> bool {
        u64::from(dup_acks) == DUP_THRESH && sender.snd_una > sender.recover
    }

    fn begin(sender: &mut Sender, entry: &mut Entry) -> RecoveryWindow {
        sender.forced = Some(entry.first);
        RecoveryWindow::INFLATED
    }

    fn on_ack_in_recovery(sender: &mut Sender, ack: &Ack, _newly_lost: bool) {
        if !ack.advances {
            if ack.duplicate {
                inflate(sender);
            }
        } else if let Phase::Recovery(FastRecovery {
            window: RecoveryWindow::Inflated { extra, .. },
            ..
        }) = &mut sender.phase
        {
            // RFC 6582 §3.2 step 3, partial ACK: retransmit, deflate by what was acknowledged, add one back.
            *extra += 1.0 - f64::from(ack.digest.acked);
            sender.forced = sender.board.first();
        }
    }

    /// RFC 6582 §3.2 step 3, full ACK, option (1): no burst.
    fn exit_cwnd(sender: &Sender) -> Option<f64> {
        let flight = f64::from(sender.board.outstanding().max(1));
        Some(sender.controller.window().cwnd.min(flight + 1.0))
    }
}
