//! The order in which segments were last sent, for RACK (RFC 8985 §6.2 step 5). It is that of their numbers until one is
//! taken off or sent again; then it is a list through the slots, linked by the low bits of the numbers, until that
//! segment is acknowledged.
//!
//! Does not depend on what makes a segment lost.

use super::{NONE, Scoreboard, Slot};

impl Scoreboard {
    /// Whether the order is that of the numbers: no links are kept.
    #[inline]
    pub(super) fn is_in_sequence(&self) -> bool {
        self.linked_to <= self.base
    }

    /// The segment whose last transmission is the oldest, among those neither sacked nor judged lost by RACK.
    pub fn oldest(&self) -> Option<u64> {
        if self.is_in_sequence() {
            return self.first();
        }
        (self.oldest != NONE).then(|| self.widen(self.oldest))
    }

    /// The segment transmitted next after `number`.
    pub fn newer(&self, number: u64) -> Option<u64> {
        if self.is_in_sequence() {
            return (number + 1 < self.end).then_some(number + 1);
        }
        let low = self.slot(number).newer;
        (low != NONE).then(|| self.widen(low))
    }

    /// A new segment is the last in the order.
    #[inline]
    pub(super) fn note_sent(&mut self, number: u64) {
        if !self.is_in_sequence() {
            self.append(number);
        }
    }

    /// Takes a segment off the order of transmission: RACK has judged it.
    pub fn unlink(&mut self, number: u64) {
        if self.is_in_sequence() {
            (self.oldest, self.newest) = (NONE, NONE);
            for number in self.base..self.end {
                self.append(number);
            }
        }
        self.linked_to = self.linked_to.max(number + 1);
        self.take_off(number);
    }

    /// Whether a segment has been taken off.
    pub(super) fn is_unlinked(&self, number: u64) -> bool {
        let Slot { older, newer, .. } = *self.slot(number);
        let alone = older == NONE && newer == NONE;
        !self.is_in_sequence() && alone && self.oldest != number as u32
    }

    /// Takes a segment out of the list, if it is in it.
    pub(super) fn take_off(&mut self, number: u64) {
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

    /// Puts a segment that is not in the list at its end.
    pub(super) fn append(&mut self, number: u64) {
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
