//! Statistics of times in microseconds: count, extremes, mean and standard deviation, as tcptrace computes them.

use crate::pack::packed;

packed! {
    /// Times in microseconds.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Samples {
        /// Number of samples.
        pub count: u64,
        /// Minimum; 0 before the first sample that is not 0.
        pub min_us: u64,
        /// Maximum.
        pub max_us: u64,
        /// Sum.
        pub sum_us: f64,
        /// Sum of squares.
        pub square_sum: f64,
    }
}

impl Samples {
    /// Adds a sample. A minimum of 0 is replaced by the next sample.
    #[inline]
    pub fn add(&mut self, sample_us: u64) {
        let value = sample_us as f64;
        if self.min_us == 0 || sample_us < self.min_us {
            self.min_us = sample_us;
        }
        self.max_us = self.max_us.max(sample_us);
        self.sum_us += value;
        self.square_sum += value * value;
        self.count += 1;
    }

    /// The mean. tcptrace adds 0.0001 to the count.
    pub fn mean_us(&self) -> f64 {
        self.sum_us / (self.count as f64 + 0.0001)
    }

    /// The standard deviation; 0 of fewer than three samples, not a number if rounding makes the variance negative.
    pub fn deviation_us(&self) -> f64 {
        if self.count <= 2 {
            return 0.0;
        }
        let count = self.count as f64;
        ((self.square_sum - self.sum_us * self.sum_us / count) / (count - 1.0)).sqrt()
    }
}

packed! {
    /// Samples of the largest segments so far.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct FullSize {
        /// Length of the segments.
        pub bytes: u64,
        /// Their samples.
        pub samples: Samples,
    }
}

impl FullSize {
    /// Adds a sample of a segment of `bytes`; a larger one than before starts anew.
    #[inline]
    pub fn add(&mut self, bytes: u64, sample_us: u64) {
        if bytes > self.bytes {
            *self = Self {
                bytes,
                samples: Samples::default(),
            };
        }
        if bytes == self.bytes {
            self.samples.add(sample_us);
        }
    }
}
