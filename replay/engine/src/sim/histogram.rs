//! Quantiles of many durations in little memory: buckets of 1/64 of their power of two, as in Tene's HdrHistogram.
//!
//! Does not depend on what is measured. Consecutive equal values, which are frequent with queues and windows, are counted
//! and added to their bucket together.

use super::time::Nanos;

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

/// Counts of durations.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    /// Number of the bucket of the first of `counts`, so that long durations need no counts of short ones.
    first: usize,
    sum: u128,
    max: Nanos,
    /// The latest value, and how many times in a row it was added; not yet in the other fields.
    latest: Nanos,
    repeats: u64,
}

impl Histogram {
    /// Adds a duration `times` times.
    #[inline(always)]
    pub fn add(&mut self, value: Nanos, times: u64) {
        if value != self.latest {
            self.flush();
            self.latest = value;
        }
        self.repeats += times;
    }

    /// Adds the latest values to their bucket.
    #[inline(never)]
    fn flush(&mut self) {
        let repeats = std::mem::take(&mut self.repeats);
        if repeats == 0 {
            return;
        }
        self.sum += u128::from(repeats) * u128::from(self.latest);
        self.max = self.max.max(self.latest);
        let index = bucket(self.latest);
        if let Some(count) = self.counts.get_mut(index.wrapping_sub(self.first)) {
            *count += repeats;
        } else {
            self.add_bucket(index, repeats);
        }
    }

    /// Adds bucket number `index`, of `count` values, and empty ones as far as that.
    #[cold]
    #[inline(never)]
    fn add_bucket(&mut self, index: usize, count: u64) {
        if self.counts.is_empty() {
            self.first = index;
        }
        let before = self.first.saturating_sub(index);
        self.counts.splice(0..0, std::iter::repeat_n(0, before));
        self.first -= before;
        if self.counts.len() <= index - self.first {
            self.counts.resize(index - self.first + 1, 0);
        }
        self.counts[index - self.first] = count;
    }

    /// The same histogram with every value in its bucket.
    fn flushed(&self) -> Self {
        let mut flushed = self.clone();
        flushed.flush();
        flushed
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.repeats
    }

    /// The mean; none without values.
    pub fn mean(&self) -> Option<Nanos> {
        let total = self.count();
        (total > 0).then(|| (self.flushed().sum / u128::from(total)) as Nanos)
    }

    /// The maximum; none without values.
    pub fn max(&self) -> Option<Nanos> {
        (self.count() > 0).then(|| self.flushed().max)
    }

    /// The value that `share` of the values do not exceed, to 1/64; none without values.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let Self { counts, first, .. } = self.flushed();
        let needed = libm::ceil(share * self.count() as f64).max(1.0) as u64;
        let mut seen = 0;
        for (&count, index) in counts.iter().zip(first..) {
            seen += count;
            if seen >= needed && count > 0 {
                return Some(middle(index));
            }
        }
        None
    }
}

#[inline]
fn bucket(value: Nanos) -> usize {
    if value < SUB {
        return value as usize;
    }
    let exponent = value.ilog2() - SUB_BITS;
    ((u64::from(exponent + 1) << SUB_BITS) + ((value >> exponent) - SUB)) as usize
}

fn middle(index: usize) -> Nanos {
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let exponent = (index >> SUB_BITS) - 1;
    let low = (SUB + (index & (SUB - 1))) << exponent;
    low + (1 << exponent) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_one_part_in_64() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.95), None);
        for value in 1..=10_000_u64 {
            histogram.add(value * 1000, 1);
        }
        for share in [0.05, 0.5, 0.95, 1.0] {
            let exact = share * 1e7;
            let got = histogram.quantile(share).unwrap_or(0) as f64;
            assert!(
                (got - exact).abs() < exact / 60.0,
                "{share}: {got} against {exact}"
            );
        }
        assert_eq!(histogram.mean(), Some(5_000_500));
        assert_eq!(histogram.max(), Some(10_000_000));
    }

    #[test]
    fn repeated_values_count_one_by_one() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.max(), histogram.mean()), (None, None));
        for (value, times) in [(0, 1), (40, 3), (7, 2), (40, 4)] {
            histogram.add(value, times);
        }
        assert_eq!((histogram.count(), histogram.mean()), (10, Some(29)));
        assert_eq!(histogram.quantile(0.1), Some(0));
        assert_eq!(histogram.quantile(0.3), Some(7));
        assert_eq!(histogram.quantile(0.31), Some(40));
        assert_eq!(histogram.max(), Some(40));
        histogram.add(8, 1);
        assert_eq!((histogram.count(), histogram.quantile(1.0)), (11, Some(40)));
    }

    #[test]
    fn memory_is_that_of_the_range_of_values() {
        let mut histogram = Histogram::default();
        for value in [250, 240, 260, 240] {
            histogram.add(value << 20, 1);
        }
        let counts = histogram.flushed().counts;
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (10, 4));
        assert_eq!(histogram.quantile(0.5), Some((240 << 20) + (1 << 20)));
    }

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in (0..5000).chain([1 << 20, (1 << 40) + 12345, u64::MAX / 2]) {
            let got = middle(bucket(value));
            assert!(got.abs_diff(value) <= value / SUB, "{value} -> {got}");
        }
    }
}
