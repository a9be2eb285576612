//! Refuses what a stack has besides its variant where it is at odds with the rest. Read `docs/mechanisms.md` first.

use super::{Checked, LONGEST_NS, rate, refuse, within};
use crate::config::StackParams;

impl StackParams {
    pub(super) fn validate_mechanisms(&self, at: &dyn Fn(&str) -> String) -> Checked {
        if self.delayed_ack_after_slow_start && !self.delayed_ack {
            return refuse(
                at("delayed_ack_after_slow_start"),
                "means nothing without delayed_ack = true",
            );
        }
        if let Some(warning) = self.freeze_warning_ns {
            within(&at("freeze_warning_ns"), warning, 0, LONGEST_NS)?;
        }
        rate(&at("quick_start_bps"), self.quick_start_bps)?;
        if self.quick_start_bps.is_some() && !self.handshake {
            return refuse(
                at("quick_start_bps"),
                "means nothing without handshake = true, whose SYN asks",
            );
        }
        Ok(())
    }
}
