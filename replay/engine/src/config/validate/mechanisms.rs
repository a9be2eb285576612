//! Refuses what a stack has besides its variant where it is at odds with the rest. Read `docs/mechanisms.md` first.

use super::{Checked, refuse};
use crate::config::StackParams;

impl StackParams {
    pub(super) fn validate_mechanisms(&self, at: &dyn Fn(&str) -> String) -> Checked {
        if self.delayed_ack_after_slow_start && !self.delayed_ack {
            return refuse(
                at("delayed_ack_after_slow_start"),
                "means nothing without delayed_ack = true",
            );
        }
        Ok(())
    }
}
