//! Goodness-of-fit tests of run lengths and of autocorrelation, from the one-step predictions of a process.
//!
//! Does not depend on models. The loss indicator of a packet minus its predicted probability is a martingale
//! difference. So a sum of these residuals, each weighted by quantities known before the packet, is nearly normal
//! after division by its standard deviation, even if hidden states make the packets dependent. The squares of such
//! sums add up to a chi-square. The fitted parameters take no degrees of freedom, which makes the tests conservative.

use super::distributions::chi_square_tail;

/// The minimum variance of a sum. A sum below it is not nearly normal and is merged or left out.
const MIN_VARIANCE: f64 = 3.0;

/// Number of bins of ages; bins are powers of two.
const BINS: usize = 48;

/// Number of bins of lags, which end at 2^`LAG_BINS` - 1.
const LAG_BINS: usize = 10;
/// Length of the ring buffer of past sums.
const RING: usize = 1 << (LAG_BINS + 1);

/// One bin of a test.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    /// Minimum age or lag.
    pub from: u64,
    /// Maximum age or lag.
    pub to: u64,
    /// Expected value.
    pub expected: f64,
    /// Observed value.
    pub observed: f64,
    /// Variance of the observed value.
    pub variance: f64,
}

impl Bin {
    /// The observed minus the expected value, in standard deviations.
    pub fn deviation(&self) -> f64 {
        (self.observed - self.expected) / self.variance.sqrt()
    }
}

/// The result of one test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Name of the test.
    pub name: &'static str,
    /// Chi-square statistic.
    pub statistic: f64,
    /// Degrees of freedom: the number of bins; 0 if there are too few losses for the test.
    pub freedom: usize,
    /// The p-value; none if there are too few losses for the test.
    pub p_value: Option<f64>,
    /// The bin with the largest deviation.
    pub worst: Option<Bin>,
}

/// Collects predictions and outcomes, packet by packet.
pub struct Residuals {
    /// Ends of runs of deliveries and of losses, by age.
    ends: [[Bin; BINS]; 2],
    lags: [Bin; LAG_BINS],
    /// For each of the last packets, the sum of all residuals before it.
    sums: Vec<f64>,
    packets: usize,
    total: f64,
    /// Kind and length of the present run; none before the first change.
    run: Option<(bool, u64)>,
    last: Option<bool>,
}

impl Default for Residuals {
    fn default() -> Self {
        Self {
            ends: [bins(), bins()],
            lags: bins(),
            sums: vec![0.0; RING],
            packets: 0,
            total: 0.0,
            run: None,
            last: None,
        }
    }
}

fn bins<const N: usize>() -> [Bin; N] {
    std::array::from_fn(|i| Bin {
        from: 1 << i,
        to: (2 << i) - 1,
        ..Bin::default()
    })
}

impl Residuals {
    /// Adds the next packet: its predicted loss probability and whether it was lost.
    #[inline]
    pub fn add(&mut self, probability: f64, lost: bool) {
        let variance = probability * (1.0 - probability);
        let residual = f64::from(u8::from(lost)) - probability;
        if let Some((was_lost, age)) = self.run {
            let bin = &mut self.ends[usize::from(was_lost)][age.ilog2() as usize];
            bin.expected += if was_lost {
                1.0 - probability
            } else {
                probability
            };
            bin.observed += f64::from(u8::from(lost != was_lost));
            bin.variance += variance;
        }
        self.run = match (self.run, self.last) {
            (Some((was_lost, age)), _) if was_lost == lost => Some((lost, age + 1)),
            (Some(_), _) => Some((lost, 1)),
            (None, Some(last)) if last != lost => Some((lost, 1)),
            (None, _) => None,
        };
        self.last = Some(lost);
        self.sums[self.packets & (RING - 1)] = self.total;
        for bin in &mut self.lags {
            let (near, far) = (bin.from as usize, bin.to as usize);
            if far > self.packets {
                break;
            }
            // The sum of the residuals of the packets `near` to `far` back.
            let before = |back: usize| self.sums[(self.packets - back) & (RING - 1)];
            let weight = before(near - 1) - before(far);
            bin.observed += residual * weight;
            bin.variance += variance * weight * weight;
        }
        self.total += residual;
        self.packets += 1;
    }

    /// The results: runs of losses, runs between losses, autocorrelation.
    pub fn tests(&self) -> [Test; 3] {
        let enough = |bin: &Bin| bin.variance >= MIN_VARIANCE;
        let lags: Vec<Bin> = self
            .lags
            .iter()
            .filter(|bin| enough(bin))
            .copied()
            .collect();
        [
            test("runs of losses", &merged(&self.ends[1])),
            test("runs between losses", &merged(&self.ends[0])),
            test("autocorrelation", &lags),
        ]
    }
}

/// Merges adjacent bins until each has the minimum variance; the rest is merged with the last bin.
fn merged(bins: &[Bin]) -> Vec<Bin> {
    let mut merged: Vec<Bin> = Vec::new();
    let mut open: Option<Bin> = None;
    for bin in bins
        .iter()
        .filter(|bin| bin.variance > 0.0 || bin.observed > 0.0)
    {
        let joined = open.map_or(*bin, |open| join(open, bin));
        if joined.variance >= MIN_VARIANCE {
            merged.push(joined);
            open = None;
        } else {
            open = Some(joined);
        }
    }
    if let (Some(open), Some(last)) = (open, merged.last_mut()) {
        *last = join(*last, &open);
    }
    merged
}

fn join(first: Bin, second: &Bin) -> Bin {
    Bin {
        from: first.from,
        to: second.to,
        expected: first.expected + second.expected,
        observed: first.observed + second.observed,
        variance: first.variance + second.variance,
    }
}

fn test(name: &'static str, bins: &[Bin]) -> Test {
    let square = |bin: &Bin| bin.deviation() * bin.deviation();
    let statistic = bins.iter().map(square).sum();
    let worst = bins.iter().max_by(|a, b| square(a).total_cmp(&square(b)));
    Test {
        name,
        statistic,
        freedom: bins.len(),
        p_value: (!bins.is_empty()).then(|| chi_square_tail(statistic, bins.len() as f64)),
        worst: worst.copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::chain::Chain;
    use crate::fit::runs::Runs;
    use crate::rng::test_rng;
    use crate::{GilbertElliott, GilbertElliottParams};

    fn losses(params: GilbertElliottParams, seed: u64, n: usize) -> Vec<u8> {
        let mut process = GilbertElliott::new(params, test_rng(seed));
        (0..n).map(|_| u8::from(process.lost())).collect()
    }

    fn tests_of(truth: GilbertElliottParams, model: GilbertElliottParams, seed: u64) -> [Test; 3] {
        let GilbertElliottParams { p, r, h, k } = model;
        let chain = Chain {
            step: [[1.0 - p, p], [r, 1.0 - r]],
            loss: [1.0 - k, 1.0 - h],
        };
        let mut residuals = Residuals::default();
        let runs = Runs::new(&losses(truth, seed, 30_000));
        chain.predict(&runs, |probability, lost| residuals.add(probability, lost));
        residuals.tests()
    }

    const TRUTH: GilbertElliottParams = GilbertElliottParams {
        p: 0.004,
        r: 0.05,
        h: 0.4,
        k: 0.998,
    };

    #[test]
    fn the_true_model_is_rejected_as_often_as_the_level_says() {
        let mut rejected = [0; 3];
        let seeds = 200;
        for seed in 0..seeds {
            for (count, test) in rejected.iter_mut().zip(tests_of(TRUTH, TRUTH, seed)) {
                *count += u32::from(test.p_value.expect("enough losses") < 0.05);
            }
        }
        // 5 % of 200 is 10; the binomial count is between 1 and 22 with 99.9 %.
        assert!(
            rejected.iter().all(|n| (1..=22).contains(n)),
            "{rejected:?}"
        );
    }

    #[test]
    fn each_test_rejects_its_alternative() {
        let longer = GilbertElliottParams { r: 0.015, ..TRUTH };
        let independent = GilbertElliottParams {
            p: 0.0,
            k: 0.9545,
            ..TRUTH
        };
        for model in [longer, independent] {
            let p = tests_of(TRUTH, model, 7).map(|test| test.p_value.unwrap_or(1.0));
            assert!(p.iter().any(|&p| p < 1e-4), "{p:?}");
        }
        let [bursts, _, lags] = tests_of(TRUTH, independent, 7);
        assert!(bursts.p_value < Some(1e-6) && lags.p_value < Some(1e-6));
        let worst = bursts.worst.expect("bins");
        assert!(worst.from == 1 && worst.observed < worst.expected);
    }

    #[test]
    fn few_losses_are_not_tested() {
        let rare = GilbertElliottParams {
            p: 0.0,
            r: 1.0,
            h: 0.0,
            k: 0.9999,
        };
        let [bursts, gaps, lags] = tests_of(rare, rare, 1);
        assert!(bursts.p_value.is_none() && gaps.freedom <= 2 && lags.p_value.is_none());
    }
}
