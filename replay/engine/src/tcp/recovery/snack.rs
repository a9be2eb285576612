//! SCPS-TP's recovery (CCSDS 714.0-B): what is reported missing is lost and is retransmitted as the window allows.
//!
//! Does not depend on the window increase. Losses are found by time as `rack` finds them, with no reordering window.

use super::rack::{self, PathView};
use super::{Ack, Recovery};
use crate::sim::time::Nanos;
use crate::tcp::sender::Sender;

/// SNACK.
pub(in crate::tcp) struct SnackRecovery;

impl Recovery for SnackRecovery {
    const READS_ORDER: bool = true;
    const ALLOWS_FAST_PATH: bool = false;

    fn find_losses(sender: &mut Sender, ack: &Ack) -> bool {
        rack::find_losses(sender, ack, &view(sender, ack.now))
    }

    fn on_reordering_timer(sender: &mut Sender, now: Nanos) {
        let view = view(sender, now);
        rack::on_reordering_timer::<Self>(sender, &view);
    }
}

/// A reported hole is lost, whatever has been seen of reordering.
fn view(sender: &Sender, now: Nanos) -> PathView {
    PathView {
        dup_thresh: 0,
        reordered: false,
        ..sender.path_view(now)
    }
}
