//! The order in which segments were last sent, for RACK (RFC 8985 §6.2 step 5): a list through the slots.
//!
//! Does not depend on what makes a segment lost.

use super::{NONE, Scoreboard, Slot};

impl Scoreboard {
    /// The segment whose last transmission is the oldest, among those neither sacked nor judged lost by RACK.
    pub fn oldest(&self) -> Option<u64> {
        (self.oldest != NONE).then(|| self.widen(self.oldest))
    }

    /// The segment transmitted next after `number`.
    pub fn newer(&self, number: u64) -> Option<u64> {
        let low = self.slot(number).newer;
        (low != NONE).then(|| self.widen(low))
    }

    /// Takes all segments before `number` off the order of transmission.
    #[inline(never)]
    pub(super) fn unlink_before(&mut self, number: u64) {
        for acknowledged in self.base..number {
            self.unlink(acknowledged);
        }
    }

    /// Takes a segment off the order of transmission: RACK has judged it.
    #[inline]
    pub fn unlink(&mut self, number: u64) {
        let low = number as u32;
        let Slot { older, newer, .. } = *self.slot(number);
        if older == NONE && self.oldest != low {
            return;
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.slot_mut(self.widen(older)).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.slot_mut(self.widen(newer)).older = older,
        }
        let slot = self.slot_mut(number);
        (slot.older, slot.newer) = (NONE, NONE);
    }

    pub(super) fn link_newest(&mut self, number: u64) {
        let low = number as u32;
        let last = self.newest;
        let slot = self.slot_mut(number);
        (slot.older, slot.newer) = (last, NONE);
        match last {
            NONE => self.oldest = low,
            _ => self.slot_mut(self.widen(last)).newer = low,
        }
        self.newest = low;
    }
}
