//! Whether a fitted process tells what comes next as well as it claims: tests of run lengths and of autocorrelation.
//!
//! Must not know models. Each packet's fate less its predicted probability is a martingale difference, so a sum of them,
//! each weighted by what was known before, over its standard deviation is near normal whatever hidden states link the
//! packets. Squares of such sums are added to a chi-square; no degree of freedom is taken off for the parameters that
//! were fitted, which makes the tests slow to refuse a model, never quick.

use super::distributions::chi_square_tail;

/// A sum with less variance than this is pooled or left out: it is not near normal.
const LEAST_VARIANCE: f64 = 3.0;

/// Ages and lags are put into bins of powers of two.
const BINS: usize = 48;

/// Lags reach to 2^`LAG_BINS` - 1.
const LAG_BINS: usize = 10;
const RING: usize = 1 << (LAG_BINS + 1);

/// One bin of a test.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    /// Least age or lag in it.
    pub from: u64,
    /// Greatest age or lag in it.
    pub to: u64,
    /// What the process expects.
    pub expected: f64,
    /// What was seen.
    pub observed: f64,
    /// Variance of what was seen.
    pub variance: f64,
}

impl Bin {
    /// How many standard deviations the seen lies above the expected.
    pub fn deviation(&self) -> f64 {
        (self.observed - self.expected) / self.variance.sqrt()
    }
}

/// One test.
#[derive(Clone, Debug)]
pub struct Test {
    /// What is tested.
    pub name: &'static str,
    /// Chi-square.
    pub statistic: f64,
    /// Degrees of freedom: bins; 0 if there was too little to test.
    pub freedom: usize,
    /// Probability of at least this chi-square if the process is true; none if there was too little to test.
    pub p_value: Option<f64>,
    /// The bin that fits worst.
    pub worst: Option<Bin>,
}

/// Collects predictions and fates, packet by packet.
pub struct Residuals {
    /// Runs that end at each age: of delivered packets, of lost ones.
    ends: [[Bin; BINS]; 2],
    lags: [Bin; LAG_BINS],
    /// Sums of all residuals before each of the last packets.
    sums: Vec<f64>,
    seen: usize,
    total: f64,
    /// Fate and length of the run that goes on; none before the first change.
    run: Option<(bool, u64)>,
    last: Option<bool>,
}

impl Default for Residuals {
    fn default() -> Self {
        Self {
            ends: [bins(), bins()],
            lags: bins(),
            sums: vec![0.0; RING],
            seen: 0,
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
    /// Takes the next packet: its predicted probability of loss and its fate.
    #[inline]
    pub fn add(&mut self, chance: f64, lost: bool) {
        let variance = chance * (1.0 - chance);
        let residual = f64::from(u8::from(lost)) - chance;
        if let Some((was_lost, age)) = self.run {
            let bin = &mut self.ends[usize::from(was_lost)][age.ilog2() as usize];
            bin.expected += if was_lost { 1.0 - chance } else { chance };
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
        self.sums[self.seen & (RING - 1)] = self.total;
        for bin in &mut self.lags {
            let (near, far) = (bin.from as usize, bin.to as usize);
            if far > self.seen {
                break;
            }
            // Residuals of the packets `near` to `far` back.
            let before = |back: usize| self.sums[(self.seen - back) & (RING - 1)];
            let weight = before(near - 1) - before(far);
            bin.observed += residual * weight;
            bin.variance += variance * weight * weight;
        }
        self.total += residual;
        self.seen += 1;
    }

    /// The tests: runs of losses, runs between losses, autocorrelation.
    pub fn tests(&self) -> [Test; 3] {
        let enough = |bin: &Bin| bin.variance >= LEAST_VARIANCE;
        let lags: Vec<Bin> = self
            .lags
            .iter()
            .filter(|bin| enough(bin))
            .copied()
            .collect();
        [
            test("runs of losses", &pooled(&self.ends[1])),
            test("runs between losses", &pooled(&self.ends[0])),
            test("autocorrelation", &lags),
        ]
    }
}

/// Joins neighbours until each has the least variance; what is left at the end joins the last.
fn pooled(bins: &[Bin]) -> Vec<Bin> {
    let mut pooled: Vec<Bin> = Vec::new();
    let mut open: Option<Bin> = None;
    for bin in bins
        .iter()
        .filter(|bin| bin.variance > 0.0 || bin.observed > 0.0)
    {
        let joined = open.map_or(*bin, |open| join(open, bin));
        if joined.variance >= LEAST_VARIANCE {
            pooled.push(joined);
            open = None;
        } else {
            open = Some(joined);
        }
    }
    if let (Some(open), Some(last)) = (open, pooled.last_mut()) {
        *last = join(*last, &open);
    }
    pooled
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

    fn fates(params: GilbertElliottParams, seed: u64, n: usize) -> Vec<u8> {
        let mut process = GilbertElliott::new(params, test_rng(seed));
        (0..n).map(|_| u8::from(process.lost())).collect()
    }

    fn tests_of(truth: GilbertElliottParams, told: GilbertElliottParams, seed: u64) -> [Test; 3] {
        let GilbertElliottParams { p, r, h, k } = told;
        let chain = Chain {
            step: [[1.0 - p, p], [r, 1.0 - r]],
            loss: [1.0 - k, 1.0 - h],
        };
        let mut residuals = Residuals::default();
        let runs = Runs::new(&fates(truth, seed, 30_000));
        chain.predict(&runs, |chance, lost| residuals.add(chance, lost));
        residuals.tests()
    }

    const TRUTH: GilbertElliottParams = GilbertElliottParams {
        p: 0.004,
        r: 0.05,
        h: 0.4,
        k: 0.998,
    };

    #[test]
    fn the_truth_is_refused_as_often_as_the_level_says() {
        let mut refused = [0; 3];
        let seeds = 200;
        for seed in 0..seeds {
            for (count, test) in refused.iter_mut().zip(tests_of(TRUTH, TRUTH, seed)) {
                *count += u32::from(test.p_value.expect("enough losses") < 0.05);
            }
        }
        // 5 % of 200 is 10; a binomial count is within 1 and 22 with 99.9 %.
        assert!(refused.iter().all(|n| (1..=22).contains(n)), "{refused:?}");
    }

    #[test]
    fn each_test_refuses_what_it_is_there_for() {
        let longer = GilbertElliottParams { r: 0.015, ..TRUTH };
        let independent = GilbertElliottParams {
            p: 0.0,
            k: 0.9545,
            ..TRUTH
        };
        for told in [longer, independent] {
            let p = tests_of(TRUTH, told, 7).map(|test| test.p_value.unwrap_or(1.0));
            assert!(p.iter().any(|&p| p < 1e-4), "{p:?}");
        }
        let [bursts, _, lags] = tests_of(TRUTH, independent, 7);
        assert!(bursts.p_value < Some(1e-6) && lags.p_value < Some(1e-6));
        let worst = bursts.worst.expect("bins");
        assert!(worst.from == 1 && worst.observed < worst.expected);
    }

    #[test]
    fn few_losses_tell_nothing() {
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
