//! Octets that were acknowledged although the capture does not show them: the capture dropped them, or it stores the
//! two directions out of order and shows them later.

use std::collections::VecDeque;

/// Maximum number of ranges. Out of order directions differ by a few segments; older ranges were dropped.
const MAX_RANGES: usize = 64;

/// The most recent ranges that were acknowledged but not captured.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct AckedUnseen {
    ranges: VecDeque<(i64, i64)>,
    /// Octets of the ranges that have been discarded.
    discarded: i64,
    /// First octet captured. What comes before was sent before the capture began.
    first: Option<i64>,
}

impl AckedUnseen {
    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Notes the start of a segment with payload.
    pub fn observe(&mut self, start: i64) {
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
    }

    /// Octets that the capture has not shown; `None` if it has shown none.
    pub fn octets(&self) -> Option<i64> {
        let first = self.first?;
        let kept: i64 = self.ranges.iter().map(|range| after(first, *range)).sum();
        Some(self.discarded + kept)
    }

    /// Adds `start..end`.
    pub fn add(&mut self, start: i64, end: i64) {
        match self.ranges.back_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => {
                if self.ranges.len() == MAX_RANGES
                    && let Some(oldest) = self.ranges.pop_front()
                    && let Some(first) = self.first
                {
                    self.discarded += after(first, oldest);
                }
                self.ranges.push_back((start, end));
            }
        }
    }

    /// Removes `start..end` if one range contains it. Returns whether it did.
    pub fn take(&mut self, start: i64, end: i64) -> bool {
        let found = self
            .ranges
            .iter()
            .rposition(|range| range.0 <= start && end <= range.1);
        let Some(index) = found else {
            return false;
        };
        let range = self.ranges[index];
        self.ranges[index].1 = start;
        if end < range.1 {
            self.ranges.insert(index + 1, (end, range.1));
        }
        if range.0 == start {
            self.ranges.remove(index);
        }
        true
    }
}

/// Number of octets of `start..end` that are not before `first`.
fn after(first: i64, (start, end): (i64, i64)) -> i64 {
    (end - start.max(first)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_octet_is_taken_once() {
        let mut unseen = AckedUnseen::default();
        unseen.add(100, 200);
        unseen.add(200, 400);
        assert!(unseen.take(200, 300) && !unseen.take(200, 300));
        assert!(unseen.take(100, 200) && unseen.take(300, 400));
        assert!(!unseen.take(100, 101) && unseen.ranges.is_empty());
        unseen.add(10, 20);
        assert!(!unseen.take(5, 15) && !unseen.take(15, 25));
    }

    #[test]
    fn old_ranges_are_discarded() {
        let mut unseen = AckedUnseen::default();
        (0..100).for_each(|n| unseen.add(10 * n, 10 * n + 5));
        assert!(!unseen.take(0, 5) && unseen.take(990, 995));
    }

    #[test]
    fn octets_before_the_first_captured_one_are_not_counted() {
        let mut unseen = AckedUnseen::default();
        unseen.add(1, 101);
        assert_eq!(unseen.octets(), None);
        unseen.observe(51);
        assert_eq!(unseen.octets(), Some(50));
        (0..100).for_each(|n| unseen.add(1000 + 10 * n, 1005 + 10 * n));
        assert_eq!(unseen.octets(), Some(550), "old ranges count too");
    }
}
