//! The maximum of the last rounds, kept in three samples (Kathleen Nichols' windowed filter): constant space, and each
//! of the three is the maximum of the samples after the one before it.
//!
//! Does not depend on what the values are.

/// A value and the round it was seen in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    round: u64,
    value: u64,
}

/// The filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxFilter {
    best: [Sample; 3],
    /// In this round no value below this changes anything.
    news: Sample,
}

impl MaxFilter {
    /// The maximum.
    #[inline]
    pub fn value(&self) -> u64 {
        self.best[0].value
    }

    /// No value below this changes anything in `round`.
    #[inline]
    pub fn threshold(&self, round: u64) -> u64 {
        if self.news.round == round {
            self.news.value
        } else {
            0
        }
    }

    /// Takes `value` of `round`; values older than `window` rounds no longer count. Returns whether the maximum changes.
    #[inline(never)]
    pub fn update(&mut self, window: u64, round: u64, value: u64) -> bool {
        let before = self.value();
        let aged = self.take(window, Sample { round, value });
        let min = self.best[2].value;
        // What equals samples that are all of this round changes nothing either.
        let first = self.best.iter().find(|sample| sample.value == min);
        let repeats = first.is_some_and(|sample| sample.round == round);
        let value = if aged { 0 } else { min + u64::from(repeats) };
        self.news = Sample { round, value };
        self.value() != before
    }

    /// Returns whether a sample was too old.
    fn take(&mut self, window: u64, new: Sample) -> bool {
        let Sample { round, value } = new;
        if value >= self.best[0].value || round - self.best[2].round > window {
            self.best = [new; 3];
            return false;
        }
        if value >= self.best[1].value {
            (self.best[1], self.best[2]) = (new, new);
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        self.age(window, new)
    }

    /// Drops what is too old, and where one sample has stood alone for long takes a fresh one as the next best. Returns whether
    /// it did.
    fn age(&mut self, window: u64, new: Sample) -> bool {
        let age = new.round - self.best[0].round;
        if age > window {
            self.best = [self.best[1], self.best[2], new];
            if new.round - self.best[0].round > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].round == self.best[0].round && age > window / 4 {
            (self.best[1], self.best[2]) = (new, new);
        } else if self.best[2].round == self.best[1].round && age > window / 2 {
            self.best[2] = new;
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_greatest_holds_for_its_window_and_not_longer() {
        let mut filter = MaxFilter::default();
        filter.update(10, 0, 100);
        for round in 1..=10 {
            filter.update(10, round, 50 - round);
            assert_eq!(filter.value(), 100, "round {round}");
        }
        filter.update(10, 11, 39);
        // The second best was taken when a quarter of the window had passed: round 3.
        assert_eq!(filter.value(), 47);
    }

    #[test]
    fn a_greater_value_takes_over_at_once() {
        let mut filter = MaxFilter::default();
        filter.update(10, 0, 100);
        filter.update(10, 5, 100);
        filter.update(10, 6, 101);
        assert_eq!(filter.value(), 101);
        filter.update(10, 16, 1);
        assert_eq!(filter.value(), 101);
        filter.update(10, 17, 1);
        assert_eq!(filter.value(), 1);
    }

    #[test]
    fn after_a_long_silence_only_the_new_value_counts() {
        let mut filter = MaxFilter::default();
        filter.update(10, 0, 100);
        filter.update(10, 100, 3);
        assert_eq!(filter.value(), 3);
    }

    proptest! {
        #[test]
        fn what_is_no_news_changes_nothing(
            window in 1_u64..20,
            values in prop::collection::vec((prop_oneof![3 => Just(0_u64), 1 => 1_u64..4], 0_u64..6), 1..100),
        ) {
            let (mut filter, mut thorough) = (MaxFilter::default(), MaxFilter::default());
            let mut round = 0;
            for (rounds, value) in values {
                round += rounds;
                if value >= filter.threshold(round) {
                    filter.update(window, round, value);
                }
                thorough.update(window, round, value);
                prop_assert_eq!(filter.best, thorough.best);
            }
        }
    }
}
