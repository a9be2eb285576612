//! Jitter: what a link adds to the delay of each packet, random or as recorded.
//!
//! Does not depend on the order in which packets arrive, which is the link's.

use hindflight_kernels::StreamRng;

use crate::config::JitterConfig;
use crate::sim::time::Nanos;

/// The jitter of one direction.
#[derive(Clone, Debug)]
pub struct Jitter {
    distribution: JitterConfig,
    rng: StreamRng,
    used: usize,
}

impl Jitter {
    /// Jitter of this distribution; `rng` is its random stream.
    pub fn new(distribution: JitterConfig, rng: StreamRng) -> Self {
        Self {
            distribution,
            rng,
            used: 0,
        }
    }

    /// Additional delay of the next packet.
    pub fn next_ns(&mut self) -> Nanos {
        match &self.distribution {
            JitterConfig::Uniform { spread_ns } => self.rng.below(spread_ns + 1),
            JitterConfig::Exponential { spread_ns } => {
                self.rng.exponential(*spread_ns as f64) as Nanos
            }
            JitterConfig::HalfNormal { spread_ns } => {
                (self.rng.normal().abs() * *spread_ns as f64) as Nanos
            }
            JitterConfig::Recorded { delays_ns } => {
                self.used += 1;
                delays_ns.get(self.used - 1).copied().unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hindflight_kernels::{Purpose, StreamKey};

    use super::*;
    use crate::sim::time::MILLISECOND;

    const SAMPLES: usize = 100_000;

    fn jitter(distribution: JitterConfig) -> Jitter {
        let key = StreamKey {
            seed: 1,
            owner: 0,
            direction: 0,
            purpose: Purpose::Delay,
        };
        Jitter::new(distribution, StreamRng::new(key))
    }

    /// Mean and maximum of many values, in milliseconds.
    fn moments(distribution: JitterConfig) -> (f64, f64) {
        let mut jitter = jitter(distribution);
        let samples: Vec<f64> = (0..SAMPLES)
            .map(|_| jitter.next_ns() as f64 / MILLISECOND as f64)
            .collect();
        let max = samples.iter().copied().fold(0.0, f64::max);
        (samples.iter().sum::<f64>() / SAMPLES as f64, max)
    }

    #[test]
    fn every_distribution_has_its_mean_and_its_tail() {
        let spread_ns = 10 * MILLISECOND;
        let (mean, max) = moments(JitterConfig::Uniform { spread_ns });
        assert!((mean - 5.0).abs() < 0.05 && (9.99..=10.0).contains(&max));
        // The maximum of 100,000 exponential values is near 10 ln(100,000) = 115, of half-normal values near 44.
        let (mean, max) = moments(JitterConfig::Exponential { spread_ns });
        assert!((mean - 10.0).abs() < 0.15 && (90.0..200.0).contains(&max));
        let (mean, max) = moments(JitterConfig::HalfNormal { spread_ns });
        assert!((mean - 7.979).abs() < 0.1 && (38.0..60.0).contains(&max));
    }

    #[test]
    fn recorded_values_come_in_their_order_and_then_zeros() {
        let mut jitter = jitter(JitterConfig::Recorded {
            delays_ns: vec![3, 0, 7],
        });
        let used: Vec<Nanos> = (0..5).map(|_| jitter.next_ns()).collect();
        assert_eq!(used, [3, 0, 7, 0, 0]);
    }
}
