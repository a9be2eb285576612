//! Alternating runs of delivered and lost packets with Weibull lengths: the semi-Markov model of two states.
//!
//! Must not know how it is fitted. The share of runs longer than j packets is exp(-(j / scale)^shape): the discrete
//! Weibull law (Nakagawa and Osaki, "The Discrete Weibull Distribution", IEEE Trans. Reliability 24(5), 1975). Shape 1
//! is the geometric law, and so the simple Gilbert chain.

use super::distributions::upper_gamma;
use super::runs::Runs;

/// Terms of a mean that are summed one by one; the rest is an integral.
const EXACT_TERMS: u64 = 256;

/// Lags of the autocorrelation beyond this are not worked out: it takes the square of it in steps.
pub const MOST_LAGS: usize = 1024;

/// The law of one kind of run.
#[derive(Clone, Copy, Debug)]
pub struct Weibull {
    /// Length that a share of 1/e exceeds, in packets.
    pub scale: f64,
    /// Below 1 the longer a run is the longer it lasts, 1 geometric.
    pub shape: f64,
}

impl Weibull {
    /// Share of runs longer than `length`.
    pub fn longer(&self, length: u64) -> f64 {
        libm::exp(-self.power(length))
    }

    /// The exponent of the law at `length`.
    fn power(&self, length: u64) -> f64 {
        libm::pow(length as f64 / self.scale, self.shape)
    }

    /// Logarithm of the share of runs that are exactly `length` long, 1 or more.
    fn log_exactly(&self, length: u64) -> f64 {
        let before = self.power(length - 1);
        -before + libm::log(-libm::expm1(before - self.power(length)))
    }

    /// Probability that a run which is `length` long ends there.
    pub fn hazard(&self, length: u64) -> f64 {
        -libm::expm1(self.power(length - 1) - self.power(length))
    }

    /// Mean length: the sum of the shares longer than 0, 1, 2, …
    pub fn mean(&self) -> f64 {
        let head: f64 = (0..EXACT_TERMS).map(|j| self.longer(j)).sum();
        let rest = libm::pow(EXACT_TERMS as f64 / self.scale, self.shape);
        let whole = self.scale * libm::tgamma(1.0 + 1.0 / self.shape);
        // Euler and Maclaurin: the integral, half the first term, a twelfth of its slope.
        let first = self.longer(EXACT_TERMS);
        let slope = first * rest * self.shape / EXACT_TERMS as f64;
        head + whole * upper_gamma(1.0 / self.shape, rest) + 0.5 * first + slope / 12.0
    }
}

/// The model: runs of delivered packets and runs of losses, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Durations {
    /// Runs of delivered packets, runs of lost ones.
    pub laws: [Weibull; 2],
}

impl Durations {
    /// Natural logarithm of the probability of the whole sequence, which begins and ends within a run.
    pub fn log_likelihood(&self, runs: &Runs) -> f64 {
        let mut sum = 0.0;
        for (law, (lengths, counts)) in self.laws.iter().zip(runs.lengths.iter().zip(&runs.counts))
        {
            for (&length, &count) in lengths.iter().zip(counts) {
                sum += count as f64 * law.log_exactly(length);
            }
        }
        let mean: f64 = self.laws.iter().map(Weibull::mean).sum();
        let Some((lost, first)) = runs.iter().next() else {
            return 0.0;
        };
        let law = &self.laws[usize::from(lost)];
        // What is left of the run that goes on at the start: its law is the share longer over the mean.
        sum -= law.log_exactly(first);
        if runs.len() == 1 {
            let lasting = law.still_in(first as usize - 1, law.mean());
            return sum + libm::log(lasting * law.mean() / mean);
        }
        sum += libm::log(law.longer(first - 1) / mean);
        if let Some((lost, last)) = runs.iter().nth(runs.len() - 1) {
            let law = &self.laws[usize::from(lost)];
            sum += libm::log(law.longer(last - 1)) - law.log_exactly(last);
        }
        sum
    }

    /// Calls `tell(probability of loss, lost)` for each packet after the first run, whose age nobody knows.
    pub fn predict(&self, runs: &Runs, mut tell: impl FnMut(f64, bool)) {
        for ((was_lost, before), (lost, length)) in runs.iter().zip(runs.iter().skip(1)) {
            let end = self.laws[usize::from(was_lost)].hazard(before);
            tell(if was_lost { 1.0 - end } else { end }, lost);
            let law = &self.laws[usize::from(lost)];
            let mut reached = 0.0;
            for age in 1..length {
                let next = law.power(age);
                let end = -libm::expm1(reached - next);
                reached = next;
                tell(if lost { 1.0 - end } else { end }, lost);
            }
        }
    }

    /// Autocorrelation of the fates at lags 1 to `most`, by renewal from a loss at a time picked at random.
    pub fn autocorrelation(&self, most: usize) -> Vec<f64> {
        let most = most.min(MOST_LAGS);
        let [gap, burst] = &self.laws;
        let means = [gap.mean(), burst.mean()];
        let rate = means[1] / (means[0] + means[1]);
        let exactly = |law: &Weibull| -> Vec<f64> {
            let share = (0..=most as u64).map(|j| law.longer(j)).collect::<Vec<_>>();
            (0..=most)
                .map(|j| if j == 0 { 0.0 } else { share[j - 1] - share[j] })
                .collect()
        };
        let (gaps, bursts) = (exactly(gap), exactly(burst));
        // begins[0][t]: a gap begins at t; begins[1][t]: a burst does. The burst at 0 is met in its midst.
        let mut begins = [vec![0.0; most + 1], vec![0.0; most + 1]];
        let mut later = Vec::with_capacity(most);
        for t in 1..=most {
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
    /// Probability that the run that is met at a time picked at random still lasts `t` packets later.
    fn still_in(&self, t: usize, mean: f64) -> f64 {
        let passed: f64 = (0..t as u64).map(|j| self.longer(j)).sum();
        (1.0 - passed / mean).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::chain::Chain;

    /// Shape 1 with these scales is the chain with p = 0.02 and r = 0.2.
    fn geometric() -> Durations {
        let law = |leave: f64| Weibull {
            scale: -1.0 / libm::log1p(-leave),
            shape: 1.0,
        };
        Durations {
            laws: [law(0.02), law(0.2)],
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
        let mut fates = vec![0_u8; 60];
        fates.extend([1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1]);
        fates.extend(vec![0; 100]);
        for fates in [&fates[..], &fates[61..], &[1, 0], &[0, 0, 0]] {
            let runs = Runs::new(fates);
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
    fn means_are_the_sums_of_the_shares() {
        for (scale, shape) in [(5.0, 1.0), (400.0, 0.6), (3000.0, 1.7), (0.3, 0.9)] {
            let law = Weibull { scale, shape };
            let sum: f64 = (0..3_000_000).map(|j| law.longer(j)).sum();
            let mean = law.mean();
            assert!(
                (mean / sum - 1.0).abs() < 1e-6,
                "{scale} {shape}: {mean} {sum}"
            );
        }
    }
}
