//! Octets that SACK reported and that the receiver does not acknowledge.
//!
//! Does not depend on the recovery. Read RFC 2018 §8 first.

use super::Scoreboard;

impl Scoreboard {
    /// After a retransmission timeout: if SACK has reported the first segment, the receiver has discarded it since, or
    /// withholds its ACK, and what SACK reported counts no longer (RFC 2018 §8; `tcp_timeout_mark_lost` of Linux).
    pub fn forget_reneged(&mut self) {
        if self.first().is_none_or(|first| !self.is_sacked(first)) {
            return;
        }
        if self.keeps_order {
            for number in self.base..self.end {
                if self.is_unlinked(number) {
                    self.append(number);
                }
            }
        }
        self.forget();
    }
}
