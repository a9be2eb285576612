//! Octets that were acknowledged although the capture does not show them: the capture dropped them, or it stores the
//! two directions out of order and shows them later.

use std::collections::VecDeque;

/// Maximum number of ranges. Out of order directions differ by a few segments; older ranges were dropped.
const MAX_RANGES: usize = 64;

/// The most recent ranges that were acknowledged but not captured.
#[derive(Debug, Default)]
pub struct AckedUnseen {
    ranges: VecDeque<(i64, i64)>,
}

impl AckedUnseen {
    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Adds `start..end`.
    pub fn add(&mut self, start: i64, end: i64) {
        match self.ranges.back_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => {
                if self.ranges.len() == MAX_RANGES {
                    self.ranges.pop_front();
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
}
