//! The pieces of the retransmission queue: segments sent as one burst are one piece until a retransmission or a SACK block
//! cuts it; sacked neighbours are joined.
//!
//! Does not depend on the memory that a piece takes. Linux 6.x: an skb of the retransmission queue (`tcp_fragment`,
//! `tcp_shift_skb_data`, `tcp_trim_head`).

use super::{PIECE, Scoreboard};
use crate::sim::time::Nanos;

impl Scoreboard {
    /// The same, which counts pieces.
    #[must_use]
    pub fn keeping_pieces(self, wanted: bool) -> Self {
        Self {
            keeps_pieces: wanted,
            ..self
        }
    }

    /// Whether pieces are counted.
    #[inline]
    pub fn keeps_pieces(&self) -> bool {
        self.keeps_pieces
    }

    /// Pieces outstanding.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// The last segment sent is the first of a piece.
    pub fn begin_piece_with_last(&mut self) {
        if let Some(last) = self.last() {
            self.begin_piece(last);
        }
    }

    /// Segment `number`, if it is outstanding, is the first of a piece.
    pub(super) fn begin_piece(&mut self, number: u64) {
        if (self.base..self.end).contains(&number) && !self.begins_piece(number) {
            self.slot_mut(number).marks |= PIECE;
            self.pieces += 1;
        }
    }

    /// Segment `number` leaves again at `now`: no more than `max` of its piece leave at once, the rest is cut off.
    pub fn cut_piece(&mut self, number: u64, max: u64, now: Nanos) {
        let follows = number > self.base && self.sent_at(number - 1) == now;
        if follows && !self.begins_piece(number) {
            return;
        }
        self.begin_piece(number);
        let behind = number.saturating_add(max.max(1));
        let whole = (number + 1..behind).any(|n| n >= self.end || self.begins_piece(n));
        if !whole {
            self.begin_piece(behind);
        }
    }

    /// Segment `number` has been sacked: it leaves its piece and joins what is sacked below it. Only a hole that so
    /// closes is joined with what is above.
    pub(super) fn join_sacked_piece(&mut self, number: u64) {
        let joins = number > self.base && self.is_sacked(number - 1);
        if joins {
            self.end_piece(number);
        } else {
            self.begin_piece(number);
        }
        let above = number + 1;
        if above < self.end && self.is_sacked(above) {
            if joins {
                self.end_piece(above);
            }
        } else {
            self.begin_piece(above);
        }
    }

    fn end_piece(&mut self, number: u64) {
        if self.begins_piece(number) {
            self.slot_mut(number).marks &= !PIECE;
            self.pieces -= 1;
        }
    }

    /// Whether segment `number`, which is outstanding, is the first of a piece.
    pub fn begins_piece(&self, number: u64) -> bool {
        self.slot(number).marks & PIECE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::scoreboard::Digest;

    /// Ten segments of 100 octets in five pieces of two.
    fn pairs() -> Scoreboard {
        let mut board = Scoreboard::new(100, true).keeping_pieces(true);
        for number in 0..10 {
            board.push(1 + 100 * number, 100, 0);
            if number % 2 == 0 {
                board.begin_piece_with_last();
            }
        }
        assert_eq!(board.pieces(), 5);
        board
    }

    fn sack(board: &mut Scoreboard, from: u64, to: u64) -> u32 {
        board.sack(1 + 100 * from, 1 + 100 * to, &mut Digest::default());
        board.pieces()
    }

    #[test]
    fn a_piece_counts_until_its_last_segment_is_acknowledged() {
        let mut board = pairs();
        for (acked, left) in [(1, 5), (2, 4), (3, 4), (6, 2), (9, 1), (10, 0)] {
            board.acknowledge(1 + 100 * acked, &mut Digest::default());
            assert_eq!(board.pieces(), left, "{acked} acknowledged");
        }
    }

    #[test]
    fn a_retransmission_of_part_of_a_piece_cuts_it() {
        let mut board = pairs();
        let mut retransmit = |number, max| {
            board.cut_piece(number, max, 5);
            board.retransmit(number, 5);
            board.pieces()
        };
        assert_eq!(retransmit(0, 1), 6);
        // Two leave as one: the second is not cut off.
        assert_eq!(retransmit(2, 2), 6);
        assert_eq!(retransmit(3, 1), 6);
        assert_eq!(retransmit(4, 9), 6);
        assert_eq!(retransmit(8, 2), 6);
        // One alone is cut off at both ends.
        assert_eq!(retransmit(7, 1), 7);
    }

    #[test]
    fn sacked_neighbours_are_one_piece() {
        let mut board = pairs();
        // 3 leaves the piece of 2; 4 and 5 join it.
        assert_eq!(sack(&mut board, 3, 4), 6);
        assert_eq!(sack(&mut board, 4, 6), 5);
        // 7 stands alone: 6 lies between.
        assert_eq!(sack(&mut board, 7, 8), 6);
        // 6 joins what is below, and so does 7: the hole is closed.
        assert_eq!(sack(&mut board, 6, 7), 4);
        // 2 has nothing sacked below it, so it does not join what is above.
        assert_eq!(sack(&mut board, 2, 3), 4);
        board.acknowledge(1001, &mut Digest::default());
        assert_eq!(board.pieces(), 0);
    }
}
