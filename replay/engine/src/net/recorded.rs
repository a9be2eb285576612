//! When packets of a capture leave as cross traffic, and how large they are.

use crate::config::RecordedConfig;
use crate::sim::time::{NEVER, Nanos};

impl RecordedConfig {
    /// When the first one leaves; `NEVER` if there is none.
    pub(super) fn first_ns(&self) -> Nanos {
        self.at_ns.first().copied().unwrap_or(NEVER)
    }

    /// How many of those from number `first` on are due, and when the next one is.
    pub(super) fn take_due(&self, first: u64, now: Nanos) -> (u64, Nanos) {
        let later = &self.at_ns[first as usize..];
        let due = later.partition_point(|&at| at <= now);
        (due as u64, later.get(due).copied().unwrap_or(NEVER))
    }

    /// Octets of number `n`.
    pub(super) fn ip_bytes(&self, n: u64) -> u16 {
        self.bytes[n as usize] as u16
    }
}
