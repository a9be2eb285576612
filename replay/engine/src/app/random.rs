//! Random values of a given mean, by inversion of the distribution function: one random number each.

use hindflight_kernels::StreamRng;

use crate::config::Spread;

/// Shape of the Pareto distribution (ns-2, `Application/Traffic/Pareto`).
const PARETO_SHAPE: f64 = 1.5;
/// Upper bound of a value: a century in nanoseconds, and far more octets than any run transfers.
const MAX_VALUE: f64 = 3.2e18;

/// A value of a distribution with mean `mean`.
pub fn random_value(rng: &mut StreamRng, mean: u64, spread: Spread) -> u64 {
    let mean = mean as f64;
    let value = match spread {
        Spread::Fixed => mean,
        Spread::Exponential => -mean * libm::log(rng.unit()),
        Spread::Pareto => {
            let scale = mean * (PARETO_SHAPE - 1.0) / PARETO_SHAPE;
            scale * libm::pow(rng.unit(), -1.0 / PARETO_SHAPE)
        }
    };
    libm::round(value.min(MAX_VALUE)) as u64
}

#[cfg(test)]
mod tests {
    use hindflight_kernels::{Purpose, StreamKey};

    use super::*;

    fn sorted_values(spread: Spread) -> Vec<f64> {
        let mut rng = StreamRng::new(StreamKey {
            seed: 4,
            owner: 0,
            direction: 0,
            purpose: Purpose::Application,
        });
        let mut values: Vec<f64> = (0..100_000)
            .map(|_| random_value(&mut rng, 1_000_000, spread) as f64 / 1e6)
            .collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn a_fixed_value_is_the_mean() {
        assert!(
            sorted_values(Spread::Fixed)
                .iter()
                .all(|&value| (value - 1.0).abs() < 1e-9)
        );
    }

    #[test]
    fn exponential_values_have_their_mean_and_median() {
        let values = sorted_values(Spread::Exponential);
        let mean = values.iter().sum::<f64>() / 1e5;
        // Standard errors 0.0032 and 0.0032; the median is ln 2.
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        assert!(
            (values[50_000] - std::f64::consts::LN_2).abs() < 0.015,
            "{}",
            values[50_000]
        );
    }

    #[test]
    fn pareto_values_have_their_minimum_and_median() {
        let values = sorted_values(Spread::Pareto);
        // Scale 1/3; median 2^(1/1.5) / 3 = 0.529.
        assert!((values[0] - 1.0 / 3.0).abs() < 1e-3, "{}", values[0]);
        assert!((values[50_000] - 0.5291).abs() < 0.01, "{}", values[50_000]);
    }
}
