//! The scoreboard without SACK: duplicate ACKs represent segments that arrived.
//!
//! Does not depend on when one counts as a duplicate. Read RFC 5681 §3.2 first.

use super::Scoreboard;

impl Scoreboard {
    /// Without SACK: a duplicate ACK counts as a segment sacked.
    pub fn add_dup_ack(&mut self) {
        self.sacked += 1;
    }

    /// Without SACK: an ACK now covers `acked` segments that duplicate ACKs had reported.
    pub fn eat_dup_acks(&mut self, acked: u32) {
        self.sacked = self.sacked.saturating_sub(acked);
    }

    /// Without SACK: there are no more duplicates than segments that can have caused them; returns whether there were.
    pub fn limit_dup_acks(&mut self) -> bool {
        let holes = self.lost.max(1).min(self.outstanding());
        let max = self.outstanding() - holes;
        let over = self.sacked > max;
        self.sacked = self.sacked.min(max);
        over
    }

    /// Without SACK: forgets what duplicate ACKs have reported. With SACK there is nothing to forget.
    pub fn forget_dup_acks(&mut self) {
        if self.high_sacked <= self.base {
            self.sacked = 0;
        }
    }
}
