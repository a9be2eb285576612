//! Segments that were sent more than once.
//!
//! Does not depend on the recovery that sent them. Read RFC 3708 §3 first.

use super::{EVER_RETRANSMITTED, Scoreboard};

impl Scoreboard {
    /// Segments within the octets `left..right`, not yet acknowledged cumulatively, that were sent again.
    pub fn retransmitted_within(&self, left: u64, right: u64) -> u32 {
        (self.number_at(left)..self.end)
            .map(|number| self.slot(number))
            .take_while(|slot| slot.seq + u64::from(slot.len) <= right)
            .filter(|slot| slot.marks & EVER_RETRANSMITTED != 0)
            .count() as u32
    }
}
