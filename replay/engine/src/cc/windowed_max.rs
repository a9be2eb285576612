//! Windowed max filter over the last N values. The newest value is provisional until the next one follows.
//!
//! Does not depend on the meaning of the values.

use crate::sim::ring::Ring;

/// The values that can still be the maximum.
#[derive(Clone, Debug, Default)]
pub struct WindowedMax {
    /// Committed values with their numbers; each is greater than those after it.
    committed: Ring<(u64, f64)>,
    count: u64,
    newest: Option<f64>,
}

impl WindowedMax {
    /// Commits the newest value, as another one follows. The filter then covers the last `window` values including that
    /// one.
    pub fn commit(&mut self, window: u32) {
        if let Some(value) = self.newest.take() {
            while self.committed.back().is_some_and(|last| last.1 <= value) {
                self.committed.pop_back();
            }
            self.committed.push_back((self.count, value));
            self.count += 1;
        }
        while let Some(&(number, _)) = self.committed.front()
            && number + u64::from(window) <= self.count
        {
            self.committed.pop_front();
        }
    }

    /// Replaces the provisional value. Returns the maximum, at least 0.
    pub fn update(&mut self, value: f64) -> f64 {
        self.newest = Some(value);
        let committed = self.committed.front().map_or(0.0, |first| first.1);
        committed.max(value).max(0.0)
    }

    /// Drops the provisional value.
    pub fn discard(&mut self) {
        self.newest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_of_the_last_three() {
        let mut filter = WindowedMax::default();
        let mut next = |value| {
            filter.commit(3);
            filter.update(value)
        };
        let found = [5.0, 3.0, 4.0, 1.0, 1.0, 1.0, 2.0, 0.5].map(&mut next);
        assert_eq!(found, [5.0, 5.0, 5.0, 4.0, 4.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn a_provisional_value_may_be_replaced_until_it_is_committed() {
        let mut filter = WindowedMax::default();
        filter.update(2.0);
        filter.commit(10);
        assert_eq!([filter.update(9.0), filter.update(3.0)], [9.0, 3.0]);
        filter.discard();
        filter.commit(10);
        assert_eq!(filter.update(1.0), 2.0);
    }

    #[test]
    fn a_window_of_one_returns_the_newest_value() {
        let mut filter = WindowedMax::default();
        for value in [3.0, 2.0, 4.0] {
            filter.commit(1);
            assert_eq!(filter.update(value), value);
        }
    }
}
