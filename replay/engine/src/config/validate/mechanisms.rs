//! Refuses what a stack has besides its variant where it is at odds with the rest. Read `docs/mechanisms.md` first.

use super::{Checked, LONGEST_NS, MAX_BPS, refuse, within};
use crate::config::StackParams;

/// RFC 4782 §3.1: the least rate that a request can name.
const MIN_REQUEST_BPS: f64 = 80_000.0;

impl StackParams {
    pub(super) fn validate_mechanisms(&self, at: &dyn Fn(&str) -> String) -> Checked {
        if self.delayed_ack_after_slow_start && !self.delayed_ack {
            return refuse(
                at("delayed_ack_after_slow_start"),
                "means nothing without delayed_ack = true",
            );
        }
        if let Some(warning) = self.freeze_warning_ns {
            within(&at("freeze_warning_ns"), warning, 1, LONGEST_NS)?;
        }
        if let Some(bps) = self.quick_start_bps {
            within(&at("quick_start_bps"), bps, MIN_REQUEST_BPS, MAX_BPS)?;
        }
        if self.quick_start_bps.is_some() && !self.handshake {
            return refuse(
                at("quick_start_bps"),
                "means nothing without handshake = true, whose SYN asks",
            );
        }
        Ok(())
    }
}
