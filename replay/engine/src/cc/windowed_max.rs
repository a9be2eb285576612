//! The filter of the last so many values, of which the newest is not committed until the next one comes.
//!
//! Does not depend on what the values are.

use crate::sim::ring::Ring;

/// The values that can still be the filter.
#[derive(Clone, Debug, Default)]
pub struct WindowedMax {
    /// Settled ones with their numbers; each is greater than those behind it.
    committed: Ring<(u64, f64)>,
    count: u64,
    newest: Option<f64>,
}

impl WindowedMax {
    /// Settles the newest value: another one follows. Of the `max` values then, the oldest make room for it.
    pub fn commit(&mut self, max: u32) {
        if let Some(value) = self.newest.take() {
            while self.committed.back().is_some_and(|last| last.1 <= value) {
                self.committed.pop_back();
            }
            self.committed.push_back((self.count, value));
            self.count += 1;
        }
        while let Some(&(number, _)) = self.committed.front()
            && number + u64::from(max) <= self.count
        {
            self.committed.pop_front();
        }
    }

    /// Takes the newest value, in place of one that has not been committed, and says which is the filter; zero if all are
    /// less.
    pub fn update(&mut self, value: f64) -> f64 {
        self.newest = Some(value);
        let committed = self.committed.front().map_or(0.0, |first| first.1);
        committed.max(value).max(0.0)
    }

    /// Forgets the newest value, if it has not been committed.
    pub fn discard(&mut self) {
        self.newest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_of_the_last_three() {
        let mut filter = WindowedMax::default();
        let mut next = |value| {
            filter.commit(3);
            filter.update(value)
        };
        let found = [5.0, 3.0, 4.0, 1.0, 1.0, 1.0, 2.0, 0.5].map(&mut next);
        assert_eq!(found, [5.0, 5.0, 5.0, 4.0, 4.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn the_newest_may_be_taken_anew_until_it_is_settled() {
        let mut filter = WindowedMax::default();
        filter.update(2.0);
        filter.commit(10);
        assert_eq!([filter.update(9.0), filter.update(3.0)], [9.0, 3.0]);
        filter.discard();
        filter.commit(10);
        assert_eq!(filter.update(1.0), 2.0);
    }

    #[test]
    fn of_one_value_it_is_that_one() {
        let mut filter = WindowedMax::default();
        for value in [3.0, 2.0, 4.0] {
            filter.commit(1);
            assert_eq!(filter.update(value), value);
        }
    }
}
