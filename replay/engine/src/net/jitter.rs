//! What a link adds to the delay of each packet: drawn from a law of its own stream, or as recorded.
//!
//! Does not depend on in which order packets arrive: the link does.

use hindflight_kernels::StreamRng;

use crate::config::JitterConfig;
use crate::sim::time::Nanos;

/// The variation of one direction's delay.
#[derive(Clone, Debug)]
pub struct Jitter {
    law: JitterConfig,
    rng: StreamRng,
    drawn: usize,
}

impl Jitter {
    /// Draws of `law` from `rng`.
    pub fn new(law: JitterConfig, rng: StreamRng) -> Self {
        Self { law, rng, drawn: 0 }
    }

    /// What the next packet has to wait.
    pub fn draw(&mut self) -> Nanos {
        match &self.law {
            JitterConfig::Uniform { spread_ns } => self.rng.below(spread_ns + 1),
            JitterConfig::Exponential { spread_ns } => {
                self.rng.exponential(*spread_ns as f64) as Nanos
            }
            JitterConfig::HalfNormal { spread_ns } => {
                (self.rng.normal().abs() * *spread_ns as f64) as Nanos
            }
            JitterConfig::Recorded { delays_ns } => {
                self.drawn += 1;
                delays_ns.get(self.drawn - 1).copied().unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hindflight_kernels::{Purpose, StreamKey};

    use super::*;
    use crate::sim::time::MILLISECOND;

    const DRAWS: usize = 100_000;

    fn jitter(law: JitterConfig) -> Jitter {
        let key = StreamKey {
            seed: 1,
            owner: 0,
            direction: 0,
            purpose: Purpose::Delay,
        };
        Jitter::new(law, StreamRng::new(key))
    }

    /// Mean and greatest of many draws, in milliseconds.
    fn moments(law: JitterConfig) -> (f64, f64) {
        let mut jitter = jitter(law);
        let draws: Vec<f64> = (0..DRAWS)
            .map(|_| jitter.draw() as f64 / MILLISECOND as f64)
            .collect();
        let max = draws.iter().copied().fold(0.0, f64::max);
        (draws.iter().sum::<f64>() / DRAWS as f64, max)
    }

    #[test]
    fn every_law_has_its_mean_and_its_tail() {
        let spread_ns = 10 * MILLISECOND;
        let (mean, max) = moments(JitterConfig::Uniform { spread_ns });
        assert!((mean - 5.0).abs() < 0.05 && (9.99..=10.0).contains(&max));
        // Of 100,000 exponential draws the greatest is near 10 ln(100,000) = 115, of half-normal ones near 44.
        let (mean, max) = moments(JitterConfig::Exponential { spread_ns });
        assert!((mean - 10.0).abs() < 0.15 && (90.0..200.0).contains(&max));
        let (mean, max) = moments(JitterConfig::HalfNormal { spread_ns });
        assert!((mean - 7.979).abs() < 0.1 && (38.0..60.0).contains(&max));
    }

    #[test]
    fn what_was_recorded_comes_in_its_order_and_nothing_behind_it() {
        let mut jitter = jitter(JitterConfig::Recorded {
            delays_ns: vec![3, 0, 7],
        });
        let drawn: Vec<Nanos> = (0..5).map(|_| jitter.draw()).collect();
        assert_eq!(drawn, [3, 0, 7, 0, 0]);
    }
}
