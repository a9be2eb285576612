//! Damaged octets of a stream: those in the memory of a proxy, and those that have come out of one.
//!
//! Does not depend on connections.

use crate::tcp::reassembly::Reassembly;
use crate::tcp::segment::Segment;

/// Octets whose first copy that arrived was damaged.
#[derive(Debug, Default)]
pub struct Damage {
    /// Octets that have arrived, damaged or not.
    arrived: Reassembly,
    damaged: Vec<(u64, u64)>,
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
                self.damaged.push((segment.seq, end));
            }
        }
        self.arrived.insert(segment.seq, segment.end());
    }

    /// What is stored in `left..right` is damaged.
    pub fn damage(&mut self, left: u64, right: u64) {
        if right > left {
            self.damaged.push((left, right));
        }
    }

    /// Marks a segment made of what is stored.
    pub fn mark(&self, segment: &mut Segment) {
        let end = segment.end();
        let of_segment = self
            .damaged
            .iter()
            .filter(|range| range.0 < end && range.1 > segment.seq);
        let damaged = of_segment.map(|range| range.1.min(end)).max();
        segment.damaged_bytes = damaged.map_or(0, |to| (to - segment.seq) as u16);
    }

    /// Damaged octets below `end`.
    pub fn bytes(&self, end: u64) -> u64 {
        let mut all = Reassembly::default();
        for &(left, right) in self.damaged.iter().filter(|range| range.0 < end) {
            all.insert(left, right.min(end));
        }
        all.octets()
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
}
