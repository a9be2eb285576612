//! A set of octets as disjoint ranges, used for SACKed sequence space.

use std::collections::VecDeque;

/// Sorted half-open ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Intervals {
    ranges: VecDeque<(i64, i64)>,
    octets: i64,
}

impl Intervals {
    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Number of octets in the set.
    pub fn octets(&self) -> i64 {
        self.octets
    }

    /// One past the highest octet in the set.
    pub fn highest(&self) -> Option<i64> {
        self.ranges.back().map(|range| range.1)
    }

    /// The range that contains octet `at`.
    pub fn containing(&self, at: i64) -> Option<(i64, i64)> {
        let index = self.ranges.partition_point(|range| range.1 <= at);
        self.ranges
            .get(index)
            .copied()
            .filter(|range| range.0 <= at)
    }

    /// Whether the set contains all of `left..right`.
    pub fn covers(&self, left: i64, right: i64) -> bool {
        self.containing(left).is_some_and(|range| range.1 >= right)
    }

    /// Adds `left..right` and calls `on_new` for every part that was not in the set, in order.
    pub fn insert(&mut self, left: i64, right: i64, mut on_new: impl FnMut(i64, i64)) {
        if left >= right {
            return;
        }
        let first = self.ranges.partition_point(|range| range.1 < left);
        let (mut merged, mut cursor, mut last) = ((left, right), left, first);
        while let Some(&(start, end)) = self.ranges.get(last) {
            if start > right {
                break;
            }
            if start > cursor {
                self.octets += start - cursor;
                on_new(cursor, start);
            }
            cursor = cursor.max(end);
            merged = (merged.0.min(start), merged.1.max(end));
            last += 1;
        }
        if cursor < right {
            self.octets += right - cursor;
            on_new(cursor, right);
        }
        if last == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            if last - first > 1 {
                self.ranges.drain(first + 1..last);
            }
        }
    }

    /// Removes everything below `edge`.
    pub fn remove_below(&mut self, edge: i64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.0 >= edge {
                return;
            }
            if front.1 > edge {
                self.octets -= edge - front.0;
                front.0 = edge;
                return;
            }
            self.octets -= front.1 - front.0;
            self.ranges.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(set: &mut Intervals, left: i64, right: i64) -> Vec<(i64, i64)> {
        let mut new = Vec::new();
        set.insert(left, right, |l, r| new.push((l, r)));
        new
    }

    #[test]
    fn insert_reports_new_octets_only() {
        let mut set = Intervals::default();
        assert_eq!(insert(&mut set, 10, 20), [(10, 20)]);
        assert_eq!(insert(&mut set, 30, 40), [(30, 40)]);
        assert_eq!(insert(&mut set, 15, 35), [(20, 30)]);
        assert_eq!(insert(&mut set, 12, 40), []);
        assert_eq!(insert(&mut set, 5, 45), [(5, 10), (40, 45)]);
        assert_eq!((set.octets(), set.containing(44)), (40, Some((5, 45))));
        assert_eq!(insert(&mut set, 7, 7), []);
    }

    #[test]
    fn adjacent_ranges_are_merged() {
        let mut set = Intervals::default();
        insert(&mut set, 10, 20);
        insert(&mut set, 20, 30);
        assert_eq!(set.containing(12), Some((10, 30)));
        assert!(set.covers(10, 30) && !set.covers(9, 30));
    }

    #[test]
    fn octets_below_an_edge_are_removed() {
        let mut set = Intervals::default();
        insert(&mut set, 10, 20);
        insert(&mut set, 30, 40);
        set.remove_below(35);
        assert_eq!((set.octets(), set.containing(30)), (5, None));
        set.remove_below(40);
        assert_eq!((set.octets(), set.containing(39)), (0, None));
    }
}
