//! A windowed maximum filter: the maximum of the last N values, of which the newest may still change until the next one
//! begins.
//!
//! Does not depend on what the values are.

use crate::sim::ring::Ring;

/// The values that can still be the greatest.
#[derive(Clone, Debug, Default)]
pub struct WindowedMax {
    /// Settled ones with their numbers; each is greater than those behind it.
    settled: Ring<(u64, f64)>,
    count: u64,
    newest: Option<f64>,
}

impl WindowedMax {
    /// Settles the newest value: another one follows. Of the `max` values then, the oldest make room for it.
    pub fn settle(&mut self, max: u32) {
        if let Some(value) = self.newest.take() {
            while self.settled.back().is_some_and(|last| last.1 <= value) {
                self.settled.pop_back();
            }
            self.settled.push_back((self.count, value));
            self.count += 1;
        }
        while let Some(&(number, _)) = self.settled.front()
            && number + u64::from(max) <= self.count
        {
            self.settled.pop_front();
        }
    }

    /// Takes the newest value, in place of one that has not been settled, and says which is the greatest; zero if all are
    /// less.
    pub fn take(&mut self, value: f64) -> f64 {
        self.newest = Some(value);
        let settled = self.settled.front().map_or(0.0, |first| first.1);
        settled.max(value).max(0.0)
    }

    /// Forgets the newest value, if it has not been settled.
    pub fn withdraw(&mut self) {
        self.newest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_of_the_last_three() {
        let mut max = WindowedMax::default();
        let mut next = |value| {
            max.settle(3);
            max.take(value)
        };
        let found = [5.0, 3.0, 4.0, 1.0, 1.0, 1.0, 2.0, 0.5].map(&mut next);
        assert_eq!(found, [5.0, 5.0, 5.0, 4.0, 4.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn the_newest_may_be_taken_anew_until_it_is_settled() {
        let mut max = WindowedMax::default();
        max.take(2.0);
        max.settle(10);
        assert_eq!([max.take(9.0), max.take(3.0)], [9.0, 3.0]);
        max.withdraw();
        max.settle(10);
        assert_eq!(max.take(1.0), 2.0);
    }

    #[test]
    fn of_one_value_it_is_that_one() {
        let mut max = WindowedMax::default();
        for value in [3.0, 2.0, 4.0] {
            max.settle(1);
            assert_eq!(max.take(value), value);
        }
    }
}
