//! The order in which segments were last sent, for RACK (RFC 8985 §6.2 step 5): a list through the slots, linked by
//! the low bits of the segments' numbers, which are their slots.
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
    #[inline]
    pub(super) fn unlink_before(&mut self, number: u64) {
        for acknowledged in self.base..number {
            if self.oldest == acknowledged as u32 {
                let slot = self.slot_mut(acknowledged);
                let newer = slot.newer;
                (slot.older, slot.newer) = (NONE, NONE);
                self.oldest = newer;
            } else {
                self.unlink(acknowledged);
            }
        }
        match self.oldest {
            NONE => self.newest = NONE,
            oldest => self.slot_mut(oldest.into()).older = NONE,
        }
    }

    /// Takes a segment off the order of transmission: RACK has judged it.
    pub fn unlink(&mut self, number: u64) {
        let low = number as u32;
        let Slot { older, newer, .. } = *self.slot(number);
        if older == NONE && self.oldest != low {
            return;
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.slot_mut(older.into()).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.slot_mut(newer.into()).older = older,
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
            _ => self.slot_mut(last.into()).newer = low,
        }
        self.newest = low;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::scoreboard::Digest;

    #[test]
    fn a_sacked_segment_that_was_sent_again_leaves_the_order_when_it_is_acknowledged() {
        let mut board = Scoreboard::new(100, true);
        let mut digest = Digest::default();
        for number in 0..4 {
            board.push(1 + 100 * number, 100, number);
        }
        board.sack(101, 201, &mut digest);
        // The receiver acknowledges up to what it has reported, not past it: a timeout sends the first outstanding one.
        board.acknowledge(101, &mut digest);
        board.mark_timed_out(0);
        board.retransmit(1, 50);
        board.acknowledge(201, &mut digest);
        let order: Vec<u64> = std::iter::successors(board.oldest(), |&n| board.newer(n)).collect();
        assert_eq!(order, [2, 3]);
        board.retransmit(2, 60);
        for number in order {
            board.mark_retransmission_lost(number);
        }
        assert_eq!(
            (board.retransmitted(), board.lost(), board.pipe()),
            (0, 2, 0)
        );
    }
}
