//! What a receiver holds out of order, and the SACK blocks that report it.
//!
//! Does not depend on windows or timers. Read RFC 2018 §4 first: the block with the newest segment comes first, then the
//! most recently reported ones.

use std::collections::VecDeque;

/// Octets received beyond `rcv_nxt`, as disjoint ranges in order.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    ranges: VecDeque<(u64, u64)>,
    octets: u64,
    /// An octet of each of the latest blocks, newest first.
    recent: [u64; 4],
    recent_len: usize,
}

impl Reassembly {
    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Gaps before and between the ranges in the queue.
    pub fn gaps(&self) -> usize {
        self.ranges.len()
    }

    /// Octets in the queue.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Octets between `rcv_nxt` and the end of the last range.
    pub fn reach(&self, rcv_nxt: u64) -> u64 {
        self.ranges.back().map_or(0, |range| range.1 - rcv_nxt)
    }

    /// Whether all of `left..right` is in the queue.
    pub fn holds(&self, left: u64, right: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < right);
        self.ranges.get(at).is_some_and(|range| range.0 <= left)
    }

    /// Adds `left..right`; returns whether any octet of it was new.
    pub fn insert(&mut self, left: u64, right: u64) -> bool {
        let grown = self.insert_range(left, right);
        self.octets += grown;
        self.note_recent(left);
        grown > 0
    }

    /// Returns the octets that were new.
    fn insert_range(&mut self, left: u64, right: u64) -> u64 {
        // Nearly always the segment follows the last one received, or opens a new hole behind it.
        if let Some(last) = self.ranges.back_mut() {
            if last.1 == left {
                last.1 = right;
                return right - left;
            }
            if last.1 < left {
                self.ranges.push_back((left, right));
                return right - left;
            }
        } else {
            self.ranges.push_back((left, right));
            return right - left;
        }
        let first = self.ranges.partition_point(|range| range.1 < left);
        let mut merged = (left, right);
        let mut covered = 0;
        let mut next = first;
        while let Some(&(l, r)) = self.ranges.get(next) {
            if l > right {
                break;
            }
            covered += r - l;
            merged = (merged.0.min(l), merged.1.max(r));
            next += 1;
        }
        if next == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..next);
        }
        merged.1 - merged.0 - covered
    }

    fn note_recent(&mut self, octet: u64) {
        let Some(block) = self.block_of(octet) else {
            return;
        };
        let kept: usize = self.recent[..self.recent_len]
            .iter()
            .position(|&other| (block.0..block.1).contains(&other))
            .unwrap_or(self.recent_len.min(self.recent.len() - 1));
        self.recent.copy_within(..kept, 1);
        self.recent[0] = octet;
        self.recent_len = self.recent_len.max(kept + 1);
    }

    fn block_of(&self, octet: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|range| range.1 <= octet);
        self.ranges
            .get(index)
            .copied()
            .filter(|range| range.0 <= octet)
    }

    /// In-order data has reached `rcv_nxt`: returns the next octet expected, now that the queue has filled the gap.
    pub fn advance(&mut self, rcv_nxt: u64) -> u64 {
        let mut next = rcv_nxt;
        while let Some(&(left, right)) = self.ranges.front() {
            if left > next {
                break;
            }
            next = next.max(right);
            self.octets -= right - left;
            self.ranges.pop_front();
        }
        next
    }

    /// Calls `block` with up to `limit` SACK blocks, newest first.
    pub fn report(&self, limit: usize, mut block: impl FnMut(u64, u64)) {
        let mut given: [(u64, u64); 4] = [(0, 0); 4];
        let mut count = 0;
        for &octet in &self.recent[..self.recent_len] {
            if count == limit {
                return;
            }
            let Some(found) = self.block_of(octet) else {
                continue;
            };
            if !given[..count].contains(&found) {
                given[count] = found;
                count += 1;
                block(found.0, found.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(queue: &Reassembly, limit: usize) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        queue.report(limit, |left, right| out.push((left, right)));
        out
    }

    #[test]
    fn rfc2018_example_first_segment_lost() {
        // RFC 2018 §7 case 2: 5000 is awaited; each of the seven segments after it extends one block.
        let mut queue = Reassembly::default();
        for n in 1..8 {
            queue.insert(5000 + 500 * n, 5500 + 500 * n);
            assert_eq!(report(&queue, 3), [(5500, 5500 + 500 * n)]);
        }
    }

    #[test]
    fn rfc2018_example_every_second_segment_lost() {
        // RFC 2018 §7 case 3: 2nd, 4th, 6th and 8th of the segments from 5000 are dropped.
        let mut queue = Reassembly::default();
        queue.insert(6000, 6500);
        assert_eq!(report(&queue, 3), [(6000, 6500)]);
        queue.insert(7000, 7500);
        assert_eq!(report(&queue, 3), [(7000, 7500), (6000, 6500)]);
        queue.insert(8000, 8500);
        assert_eq!(
            report(&queue, 3),
            [(8000, 8500), (7000, 7500), (6000, 6500)]
        );
        // The 4th arrives late and joins two blocks; then the 2nd advances rcv_nxt.
        queue.insert(6500, 7000);
        assert_eq!(report(&queue, 3), [(6000, 7500), (8000, 8500)]);
        assert_eq!(queue.advance(6000), 7500);
        assert_eq!(report(&queue, 3), [(8000, 8500)]);
        assert_eq!(queue.octets(), 500);
    }

    #[test]
    fn duplicates_are_no_new_octets_and_merges_count_once() {
        let mut queue = Reassembly::default();
        assert!(queue.insert(10, 20) && queue.insert(30, 40));
        assert!(!queue.insert(10, 20));
        assert!(queue.insert(15, 35));
        assert_eq!((queue.octets(), report(&queue, 4)), (30, vec![(10, 40)]));
    }
}
