//! The fast path of a cumulative acknowledgement: no segment is sacked, lost or retransmitted.
//!
//! Replaces `acknowledge` where its condition holds.

use super::Scoreboard;
use crate::sim::time::Nanos;

/// What an ACK covers where all of it was sent once and nothing else has reported it.
#[derive(Clone, Copy, Debug)]
pub struct Covered {
    /// Segments.
    pub segments: u32,
    /// When the first of them was sent.
    pub oldest_sent_at: Nanos,
    /// When the last of them was sent, and its number.
    pub newest_sent_at: Nanos,
    /// See `newest_sent_at`.
    pub newest: u64,
}

impl Scoreboard {
    /// Whether nothing is lost, reported or on its way again.
    pub fn is_unmarked(&self) -> bool {
        self.sacked | self.lost | self.retransmitted == 0
    }

    /// What an ACK covers, of a board that is unmarked: whole segments from `snd_una` on that were sent once; none where that
    /// does not hold, as where the ACK ends within a segment.
    #[inline(always)]
    pub fn covered(&self, snd_una: u64, ack: u64) -> Option<Covered> {
        debug_assert!(!self.keeps_pieces && self.is_unmarked());
        if self.base == self.end {
            return None;
        }
        let mut slot = self.slot(self.base);
        if slot.seq != snd_una {
            return None;
        }
        let oldest_sent_at = slot.sent_at;
        let mut number = self.base;
        let newest_sent_at = loop {
            let end = slot.seq + u64::from(slot.len);
            if end > ack || slot.marks != 0 {
                return None;
            }
            number += 1;
            if end == ack || number == self.end {
                break slot.sent_at;
            }
            slot = self.slot(number);
        };
        Some(Covered {
            segments: (number - self.base) as u32,
            oldest_sent_at,
            newest_sent_at,
            newest: number - 1,
        })
    }

    /// Like `acknowledge`, for what `covered` found.
    #[inline(always)]
    pub fn acknowledge_covered(&mut self, covered: &Covered) {
        let first = self.base;
        self.base = covered.newest + 1;
        if self.keeps_order && !self.is_in_sequence() {
            for number in first..self.base {
                self.take_off(number);
            }
        }
    }
}
