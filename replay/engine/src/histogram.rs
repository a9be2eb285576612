//! Quantiles of many durations in little memory: buckets of 1/64 of their power of two (Tene's HdrHistogram idea).
//!
//! Must not know what is measured.

use crate::time::Nanos;

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

/// Counts of durations.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u32>,
    total: u64,
    sum: u128,
}

impl Histogram {
    /// Adds one duration.
    #[allow(
        clippy::inline_always,
        reason = "part of the short way of nearly every segment; a hint is not heard"
    )]
    #[inline(always)]
    pub fn add(&mut self, value: Nanos) {
        let index = bucket(value);
        match self.counts.get_mut(index) {
            Some(count) => *count += 1,
            None => self.open(index),
        }
        self.total += 1;
        self.sum += u128::from(value);
    }

    /// Counts the first value of a bucket beyond all others.
    #[cold]
    fn open(&mut self, index: usize) {
        self.counts.resize(index + 1, 0);
        self.counts[index] = 1;
    }

    /// Values so far.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Mean; none without values.
    pub fn mean(&self) -> Option<Nanos> {
        (self.total > 0).then(|| (self.sum / u128::from(self.total)) as Nanos)
    }

    /// The value below which `share` of the values lie, to 1/64; none without values.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let wanted = libm::ceil(share * self.total as f64).max(1.0) as u64;
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted && count > 0 {
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
            histogram.add(value * 1000);
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
    }

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in (0..5000).chain([1 << 20, (1 << 40) + 12345, u64::MAX / 2]) {
            let got = middle(bucket(value));
            assert!(got.abs_diff(value) <= value / SUB, "{value} -> {got}");
        }
    }
}
