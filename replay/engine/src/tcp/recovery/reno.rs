//! Fast retransmit and fast recovery of RFC 5681 §3.2 without SACK.
//!
//! Does not depend on the window increase.

use super::rfc::Entry;
use super::window::RecoveryWindow;
use super::{Ack, Recovery};
use crate::cc::ConnectionEvent;
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// Reno.
pub(in crate::tcp) struct RenoRecovery;

impl Recovery for RenoRecovery {
    fn is_triggered(_: &Sender, dup_acks: u32) -> bool {
        u64::from(dup_acks) == DUP_THRESH
    }

    fn begin(sender: &mut Sender, entry: &mut Entry) -> RecoveryWindow {
        sender.forced = Some(entry.first);
        RecoveryWindow::INFLATED
    }

    fn on_ack_in_recovery(sender: &mut Sender, ack: &Ack, _newly_lost: bool) {
        if ack.advances {
            // RFC 5681 §3.2 step 6: the first new ACK deflates the window and ends recovery.
            sender.phase = Phase::Open { dup_acks: 0 };
            let evidence = sender.evidence(ack);
            sender
                .controller
                .on_event(&ConnectionEvent::RecoveryExit(evidence, None));
        } else if ack.duplicate {
            inflate(sender);
        }
    }
}

/// RFC 5681 §3.2 step 4: a duplicate ACK reports that a segment has left the network.
pub(super) fn inflate(sender: &mut Sender) {
    if let Phase::Recovery(FastRecovery {
        window: RecoveryWindow::Inflated { extra, .. },
        ..
    }) = &mut sender.phase
    {
        *extra += 1.0;
    }
}
