//! The semi-Markov model of two states: alternating runs of deliveries and losses with Weibull lengths.
//!
//! The share of runs longer than j packets is exp(-(j / scale)^shape), the discrete Weibull distribution (Nakagawa and
//! Osaki, "The Discrete Weibull Distribution", IEEE Trans. Reliability 24(5), 1975). With shape 1 it is the geometric
//! distribution, and the model is the simple Gilbert chain.

use super::distributions::upper_gamma;
use super::runs::Runs;

/// The first terms of a mean are summed; the rest is an integral.
const EXACT_TERMS: u64 = 256;

/// The maximum lag of the autocorrelation; the cost grows with its square.
pub const MAX_LAG: usize = 1024;

/// The distribution of the length of a run.
#[derive(Clone, Copy, Debug)]
pub struct Weibull {
    /// The length that a share of 1/e of the runs exceeds, in packets.
    pub scale: f64,
    /// Shape: 1 is geometric; below 1 the chance that a run ends falls with its age.
    pub shape: f64,
}

impl Weibull {
    /// Share of runs longer than `length`.
    pub fn longer(&self, length: u64) -> f64 {
        libm::exp(-self.exponent(length))
    }

    /// The negative logarithm of the share of runs longer than `length`.
    fn exponent(&self, length: u64) -> f64 {
        libm::pow(length as f64 / self.scale, self.shape)
    }

    /// Logarithm of the share of runs of exactly `length` packets, at least 1.
    fn log_probability(&self, length: u64) -> f64 {
        let before = self.exponent(length - 1);
        -before + libm::log(-libm::expm1(before - self.exponent(length)))
    }

    /// The probability that a run that has reached `length` ends there.
    pub fn hazard(&self, length: u64) -> f64 {
        -libm::expm1(self.exponent(length - 1) - self.exponent(length))
    }

    /// The mean length: the sum of the shares of runs longer than 0, 1, 2, …
    pub fn mean(&self) -> f64 {
        let head: f64 = (0..EXACT_TERMS).map(|j| self.longer(j)).sum();
        let rest = libm::pow(EXACT_TERMS as f64 / self.scale, self.shape);
        let whole = self.scale * libm::tgamma(1.0 + 1.0 / self.shape);
        // Euler-Maclaurin formula: the integral, half the first term, a twelfth of its slope.
        let first = self.longer(EXACT_TERMS);
        let slope = first * rest * self.shape / EXACT_TERMS as f64;
        head + whole * upper_gamma(1.0 / self.shape, rest) + 0.5 * first + slope / 12.0
    }
}

/// The model: alternating runs of deliveries and losses.
#[derive(Clone, Copy, Debug)]
pub struct WeibullRuns {
    /// The lengths of runs of deliveries and of losses.
    pub lengths: [Weibull; 2],
}

impl WeibullRuns {
    /// Log likelihood of the whole sequence, which begins and ends within a run.
    pub fn log_likelihood(&self, runs: &Runs) -> f64 {
        let mut sum = 0.0;
        for (distribution, (lengths, counts)) in self
            .lengths
            .iter()
            .zip(runs.lengths.iter().zip(&runs.counts))
        {
            for (&length, &count) in lengths.iter().zip(counts) {
                sum += count as f64 * distribution.log_probability(length);
            }
        }
        let mean: f64 = self.lengths.iter().map(Weibull::mean).sum();
        let Some((lost, first)) = runs.iter().next() else {
            return 0.0;
        };
        let distribution = &self.lengths[usize::from(lost)];
        // The sequence begins within a run. Its remaining length has the share of longer runs over the mean as
        // probability.
        sum -= distribution.log_probability(first);
        if runs.len() == 1 {
            let run_mean = distribution.mean();
            let lasting = distribution.still_in(first as usize - 1, run_mean);
            return sum + libm::log(lasting * run_mean / mean);
        }
        sum += libm::log(distribution.longer(first - 1) / mean);
        if let Some((lost, last)) = runs.iter().nth(runs.len() - 1) {
            let distribution = &self.lengths[usize::from(lost)];
            sum += libm::log(distribution.longer(last - 1)) - distribution.log_probability(last);
        }
        sum
    }

    /// Calls `visit(probability, lost)` for each packet after the first run, with its loss probability given all
    /// packets before. The first run is left out, as its age is unknown.
    pub fn predict(&self, runs: &Runs, mut visit: impl FnMut(f64, bool)) {
        for ((was_lost, before), (lost, length)) in runs.iter().zip(runs.iter().skip(1)) {
            let end = self.lengths[usize::from(was_lost)].hazard(before);
            visit(if was_lost { 1.0 - end } else { end }, lost);
            let distribution = &self.lengths[usize::from(lost)];
            let mut reached = 0.0;
            for age in 1..length {
                let next = distribution.exponent(age);
                let end = -libm::expm1(reached - next);
                reached = next;
                visit(if lost { 1.0 - end } else { end }, lost);
            }
        }
    }

    /// The autocorrelation of the losses at lags 1 to `max_lag`, by renewal theory from a loss at a random time.
    pub fn autocorrelation(&self, max_lag: usize) -> Vec<f64> {
        let max = max_lag.min(MAX_LAG);
        let [gap, burst] = &self.lengths;
        let means = [gap.mean(), burst.mean()];
        let rate = means[1] / (means[0] + means[1]);
        let exactly = |distribution: &Weibull| -> Vec<f64> {
            let share = (0..=max as u64)
                .map(|j| distribution.longer(j))
                .collect::<Vec<_>>();
            (0..=max)
                .map(|j| if j == 0 { 0.0 } else { share[j - 1] - share[j] })
                .collect()
        };
        let (gaps, bursts) = (exactly(gap), exactly(burst));
        // begins[0][t]: a gap begins at t; begins[1][t]: a burst begins at t. Time 0 is within a burst.
        let mut begins = [vec![0.0; max + 1], vec![0.0; max + 1]];
        let mut later = Vec::with_capacity(max);
        for t in 1..=max {
            let mut gap_begins = burst.longer(t as u64 - 1) / means[1];
            let mut burst_begins = 0.0;
            let mut lost = burst.still_in(t, means[1]);
            for (back, (g, b)) in gaps.iter().zip(&bursts).enumerate().take(t + 1).skip(1) {
                gap_begins += begins[1][t - back] * b;
                burst_begins += begins[0][t - back] * g;
            }
            begins[0][t] = gap_begins;
            begins[1][t] = burst_begins;
            for (start, begun) in begins[1].iter().enumerate().take(t + 1).skip(1) {
                lost += begun * burst.longer((t - start) as u64);
            }
            later.push((lost - rate) / (1.0 - rate));
        }
        later
    }
}

impl Weibull {
    /// The probability that a run that is observed at a random time still lasts `t` packets later.
    fn still_in(&self, t: usize, mean: f64) -> f64 {
        let passed: f64 = (0..t as u64).map(|j| self.longer(j)).sum();
        (1.0 - passed / mean).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::chain::Chain;

    /// With shape 1 and these scales, the chain with p = 0.02 and r = 0.2.
    fn geometric() -> WeibullRuns {
        let distribution = |leave: f64| Weibull {
            scale: -1.0 / libm::log1p(-leave),
            shape: 1.0,
        };
        WeibullRuns {
            lengths: [distribution(0.02), distribution(0.2)],
        }
    }

    fn chain() -> Chain<2> {
        Chain {
            step: [[0.98, 0.02], [0.2, 0.8]],
            loss: [0.0, 1.0],
        }
    }

    #[test]
    fn with_shape_one_it_is_the_simple_chain() {
        let mut losses = vec![0_u8; 60];
        losses.extend([1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1]);
        losses.extend(vec![0; 100]);
        for losses in [&losses[..], &losses[61..], &[1, 0], &[0, 0, 0]] {
            let runs = Runs::new(losses);
            let (a, b) = (
                geometric().log_likelihood(&runs),
                chain().log_likelihood(&runs),
            );
            assert!((a - b).abs() < 1e-9, "{a} against {b}");
        }
        let acf = geometric().autocorrelation(50);
        for (lag, got) in acf.iter().enumerate() {
            let exact = 0.78_f64.powi(lag as i32 + 1);
            assert!((got - exact).abs() < 1e-9, "{lag}: {got} {exact}");
        }
    }

    #[test]
    fn the_mean_is_the_sum_of_the_shares() {
        for (scale, shape) in [(5.0, 1.0), (400.0, 0.6), (3000.0, 1.7), (0.3, 0.9)] {
            let distribution = Weibull { scale, shape };
            let sum: f64 = (0..3_000_000).map(|j| distribution.longer(j)).sum();
            let mean = distribution.mean();
            assert!(
                (mean / sum - 1.0).abs() < 1e-6,
                "{scale} {shape}: {mean} {sum}"
            );
        }
    }
}
