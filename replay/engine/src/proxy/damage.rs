//! Damaged octets of a stream: those in the memory of a proxy, and those that have come out of one.
//!
//! Does not depend on connections.

use std::collections::VecDeque;

use crate::tcp::reassembly::Reassembly;
use crate::tcp::segment::Segment;

/// Octets whose first copy that arrived was damaged.
///
/// Deviation: a segment says how many of its octets are damaged, and not which: they count as its first ones.
#[derive(Debug, Default)]
pub struct Damage {
    /// Octets that have arrived, damaged or not.
    arrived: Reassembly,
    /// Disjoint ranges in order.
    damaged: VecDeque<(u64, u64)>,
}

impl Damage {
    /// A segment arrives: octets that have arrived before stay as they are.
    pub fn note_arrival(&mut self, segment: &Segment) {
        if segment.payload_bytes == 0 {
            return;
        }
        let end = segment.seq + u64::from(segment.damaged_bytes);
        if end > segment.seq && !self.arrived.holds(segment.seq, end) {
            let new = self.arrived.insert(segment.seq, end);
            if new {
                self.damage(segment.seq, end);
            }
        }
        self.arrived.insert(segment.seq, segment.end());
    }

    /// What is stored in `left..right` is damaged.
    pub fn damage(&mut self, left: u64, right: u64) {
        if right <= left {
            return;
        }
        let first = self.damaged.partition_point(|range| range.1 < left);
        let behind = self.damaged.partition_point(|range| range.0 <= right);
        let merged = (first..behind).fold((left, right), |all, at| {
            let range = self.damaged[at];
            (all.0.min(range.0), all.1.max(range.1))
        });
        if first < behind {
            self.damaged[first] = merged;
            self.damaged.drain(first + 1..behind);
        } else {
            self.damaged.insert(first, merged);
        }
    }

    /// Octets below `una` leave no more.
    pub fn forget(&mut self, una: u64) {
        while self.damaged.front().is_some_and(|range| range.1 <= una) {
            self.damaged.pop_front();
        }
    }

    /// Marks a segment made of what is stored.
    pub fn mark(&self, segment: &mut Segment) {
        segment.damaged_bytes = self.between(segment.seq, segment.end()) as u16;
    }

    /// Damaged octets below `end`.
    pub fn bytes(&self, end: u64) -> u64 {
        self.between(0, end)
    }

    fn between(&self, left: u64, right: u64) -> u64 {
        let first = self.damaged.partition_point(|range| range.1 <= left);
        let ranges = self.damaged.range(first..);
        ranges
            .take_while(|range| range.0 < right)
            .map(|range| range.1.min(right) - range.0.max(left))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::Direction;

    fn segment(seq: u64, payload_bytes: u16, damaged_bytes: u16) -> Segment {
        Segment {
            seq,
            payload_bytes,
            damaged_bytes,
            ..Segment::new(0, Direction::Forward)
        }
    }

    #[test]
    fn the_first_copy_that_arrives_decides() {
        let mut damage = Damage::default();
        damage.note_arrival(&segment(1, 1000, 0));
        damage.note_arrival(&segment(1, 1000, 1000));
        assert_eq!(damage.bytes(u64::MAX), 0);
        damage.note_arrival(&segment(2001, 1000, 400));
        damage.note_arrival(&segment(2001, 1000, 0));
        assert_eq!((damage.bytes(u64::MAX), damage.bytes(2101)), (400, 100));
    }

    #[test]
    fn a_segment_of_what_is_stored_has_its_damaged_octets() {
        let mut damage = Damage::default();
        damage.damage(1001, 2501);
        let marked = |seq| {
            let mut segment = segment(seq, 1000, 0);
            damage.mark(&mut segment);
            segment.damaged_bytes
        };
        assert_eq!([1, 1001, 2001, 3001].map(marked), [0, 1000, 500, 0]);
    }

    #[test]
    fn adjacent_ranges_are_one_and_those_that_have_left_are_forgotten() {
        let mut damage = Damage::default();
        for n in 0..100 {
            damage.note_arrival(&segment(1 + 1000 * n, 1000, 1000));
        }
        damage.damage(300_001, 301_001);
        damage.damage(299_001, 300_501);
        assert_eq!(damage.damaged, [(1, 100_001), (299_001, 301_001)]);
        damage.damage(50_001, 299_001);
        assert_eq!(damage.damaged, [(1, 301_001)]);
        damage.damage(400_001, 400_101);
        damage.forget(301_001);
        assert_eq!(damage.damaged, [(400_001, 400_101)]);
        // Exactly these octets, not all before them.
        let mut behind = segment(399_501, 1000, 0);
        damage.mark(&mut behind);
        assert_eq!(behind.damaged_bytes, 100);
    }
}
