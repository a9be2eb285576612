//! Two states in time, each of an exponential length, all lost in the bad one and none in the good one: likelihood of
//! fates at the times at which the packets were sent.
//!
//! Must not know how it is fitted. The state is seen at every packet, so the likelihood needs no more than how often each
//! change, or none, went with which time between two packets: those times are counted in classes.

use super::chain::Chain;
use super::runs::Runs;

/// Classes per factor of two: a time is off by less than 0.07 %.
const CLASSES: f64 = 512.0;

/// Packets at the same time are taken as this far apart: half of what captures usually resolve.
const LEAST_S: f64 = 5e-7;

/// Times between packets, counted by the fates of the two.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Times between packets in seconds, ascending.
    spans_s: Vec<f64>,
    /// How often each stood between a delivered and a delivered packet, delivered and lost, lost and delivered, two
    /// lost.
    counts: Vec<[u64; 4]>,
    /// The class of the time before each packet but the first.
    class: Vec<u32>,
}

impl Times {
    /// Counts the times between packets sent at `t_ns`, in order, of these fates; none if all are at one time.
    pub fn new(fates: &[u8], t_ns: &[i64]) -> Option<Self> {
        if t_ns.len() != fates.len() || t_ns.first() == t_ns.last() {
            return None;
        }
        let class_of = |pair: &[i64]| {
            let span_s = (pair[1] - pair[0]) as f64 / 1e9;
            libm::round(libm::log2(span_s.max(LEAST_S)) * CLASSES) as i32
        };
        let raw: Vec<i32> = t_ns.windows(2).map(class_of).collect();
        let mut distinct = raw.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let number = |class: &i32| distinct.partition_point(|known| known < class) as u32;
        let class: Vec<u32> = raw.iter().map(number).collect();
        let mut counts = vec![[0; 4]; distinct.len()];
        for (pair, &class) in fates.windows(2).zip(&class) {
            let change = usize::from(pair[0] != 0) * 2 + usize::from(pair[1] != 0);
            counts[class as usize][change] += 1;
        }
        let spans = distinct.iter();
        Some(Self {
            spans_s: spans
                .map(|class| libm::exp2(f64::from(*class) / CLASSES))
                .collect(),
            counts,
            class,
        })
    }

    /// The first `packets` of them.
    pub fn head(&self, fates: impl Iterator<Item = bool>, packets: usize) -> Self {
        let mut counts = vec![[0; 4]; self.spans_s.len()];
        let class = self.class[..packets.saturating_sub(1).min(self.class.len())].to_vec();
        let mut before = false;
        for (i, lost) in fates.take(packets).enumerate() {
            if i > 0 {
                counts[class[i - 1] as usize][usize::from(before) * 2 + usize::from(lost)] += 1;
            }
            before = lost;
        }
        Self {
            spans_s: self.spans_s.clone(),
            counts,
            class,
        }
    }

    /// Mean time between packets.
    pub fn mean_s(&self) -> f64 {
        let weighted = self.spans_s.iter().zip(&self.counts);
        let sum: f64 = weighted
            .map(|(span, counts)| span * counts.iter().sum::<u64>() as f64)
            .sum();
        sum / self.class.len().max(1) as f64
    }
}

/// The two states.
#[derive(Clone, Copy, Debug)]
pub struct InTime {
    /// Mean length of the good state.
    pub good_s: f64,
    /// Mean length of the bad state.
    pub bad_s: f64,
    /// The chain per packet that this is on average over the times between packets.
    pub typical: Chain<2>,
}

impl InTime {
    /// With these mean lengths; `typical` waits for [`InTime::averaged`].
    pub fn new(good_s: f64, bad_s: f64) -> Self {
        let bad = good_s.recip() / (good_s.recip() + bad_s.recip());
        Self {
            good_s,
            bad_s,
            typical: chain(bad, 1.0 - bad),
        }
    }

    /// Share of time in the bad state.
    fn bad(&self) -> f64 {
        self.good_s.recip() / (self.good_s.recip() + self.bad_s.recip())
    }

    /// How far the states have mixed after `span_s`: probabilities of good to bad and of bad to good.
    fn steps(&self, span_s: f64) -> (f64, f64) {
        let mixed = -libm::expm1(-span_s * (self.good_s.recip() + self.bad_s.recip()));
        (self.bad() * mixed, (1.0 - self.bad()) * mixed)
    }

    /// Natural logarithm of the probability of the sequence; minus infinity without times.
    pub fn log_likelihood(&self, runs: &Runs) -> f64 {
        let Some(times) = &runs.times else {
            return f64::NEG_INFINITY;
        };
        let first = if runs.first_lost {
            self.bad()
        } else {
            1.0 - self.bad()
        };
        let mut sum = libm::log(first);
        for (span, counts) in times.spans_s.iter().zip(&times.counts) {
            let (p, r) = self.steps(*span);
            for (count, log) in
                counts
                    .iter()
                    .zip([libm::log1p(-p), libm::log(p), libm::log(r), libm::log1p(-r)])
            {
                if *count > 0 {
                    sum += *count as f64 * log;
                }
            }
        }
        if sum.is_nan() { f64::NEG_INFINITY } else { sum }
    }

    /// Calls `tell(probability of loss given all before, lost)` for each packet.
    pub fn predict(&self, runs: &Runs, mut tell: impl FnMut(f64, bool)) {
        let Some(times) = &runs.times else {
            return;
        };
        let steps: Vec<_> = times.spans_s.iter().map(|span| self.steps(*span)).collect();
        let mut before: Option<bool> = None;
        let mut classes = times.class.iter();
        for (lost, length) in runs.iter() {
            for _ in 0..length {
                let chance = match before {
                    None => self.bad(),
                    Some(was) => {
                        let step = classes.next().map(|class| steps[*class as usize]);
                        let (p, r) = step.unwrap_or((self.bad(), 1.0 - self.bad()));
                        if was { 1.0 - r } else { p }
                    }
                };
                tell(chance, lost);
                before = Some(lost);
            }
        }
    }

    /// With the chain per packet that it is on average over the times between packets.
    #[must_use]
    pub fn averaged(mut self, runs: &Runs) -> Self {
        let Some(times) = &runs.times else {
            return self;
        };
        let (mut p, mut r) = (0.0, 0.0);
        let (mut from_good, mut from_bad) = (0.0, 0.0);
        for (span, counts) in times.spans_s.iter().zip(&times.counts) {
            let steps = self.steps(*span);
            let (good, bad) = (
                (counts[0] + counts[1]) as f64,
                (counts[2] + counts[3]) as f64,
            );
            p += steps.0 * good;
            r += steps.1 * bad;
            from_good += good;
            from_bad += bad;
        }
        self.typical = chain(p / f64::max(from_good, 1.0), r / f64::max(from_bad, 1.0));
        self
    }
}

fn chain(p: f64, r: f64) -> Chain<2> {
    Chain {
        step: [[1.0 - p, p], [r, 1.0 - r]],
        loss: [0.0, 1.0],
    }
}
