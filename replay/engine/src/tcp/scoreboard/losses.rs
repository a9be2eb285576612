//! Which segments have just been marked lost, for a controller that looks at each of them.
//!
//! Does not depend on why they are. Costs a comparison per loss where it is not needed.

use super::{LOST, Scoreboard};

impl Scoreboard {
    /// Whether the segment is marked lost.
    pub fn is_lost(&self, number: u64) -> bool {
        self.slot(number).marks & LOST != 0
    }

    /// The same, which remembers what has been marked lost until `forget` is called.
    #[must_use]
    pub fn noting_losses(self, wanted: bool) -> Self {
        Self {
            lost_lately: wanted.then(Vec::new),
            ..self
        }
    }

    /// Numbers of the segments marked lost since, in that order.
    pub fn lost_lately(&self) -> &[u64] {
        self.lost_lately.as_deref().unwrap_or_default()
    }

    /// See `lost_lately`.
    pub fn forget_lost_lately(&mut self) {
        if let Some(numbers) = &mut self.lost_lately {
            numbers.clear();
        }
    }

    pub(super) fn note_loss(&mut self, number: u64) {
        self.lost_total += 1;
        if let Some(numbers) = &mut self.lost_lately {
            numbers.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::scoreboard::Digest;

    #[test]
    fn what_is_marked_lost_is_remembered_until_forgotten_if_asked_for() {
        for wanted in [true, false] {
            let mut board = Scoreboard::new(1000, false).noting_losses(wanted);
            for number in 0..5 {
                board.push(1 + 1000 * number, 1000, 0);
            }
            board.mark_lost(1);
            board.mark_lost(1);
            board.mark_lost(3);
            let noted: &[u64] = if wanted { &[1, 3] } else { &[] };
            assert_eq!((board.lost_lately(), board.lost_total()), (noted, 2));
            board.forget_lost_lately();
            board.retransmit(1, 7);
            board.mark_retransmission_lost(1);
            let noted: &[u64] = if wanted { &[1] } else { &[] };
            assert_eq!((board.lost_lately(), board.lost_total()), (noted, 3));
        }
    }

    /// RFC 2018 §8: what SACK reported may be acknowledged later. A proxy that withholds acknowledgements does that.
    #[test]
    fn a_hole_above_a_reported_run_is_found_when_the_run_is_acknowledged_in_part() {
        let mut board = Scoreboard::new(1000, false);
        let mut digest = Digest::default();
        for n in 0..12 {
            board.push(1 + 1000 * n, 1000, 0);
        }
        // Segments 2 to 9, one after the other, and 11.
        for n in (2..10).chain([11]) {
            board.sack(1 + 1000 * n, 1001 + 1000 * n, &mut digest);
        }
        board.mark_all_lost();
        board.retransmit(0, 1);
        board.retransmit(1, 1);
        board.acknowledge(5001, &mut digest);
        assert_eq!(board.next_retransmission(), Some(10));
        assert_eq!(board.pipe(), 0);
    }
}
