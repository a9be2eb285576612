//! The chain of two states in continuous time: all packets are lost in the bad state and none in the good state.
//!
//! Every packet reveals the state. So the likelihood depends only on how often each transition occurred at each spacing
//! between two packets; spacings are counted in classes.

use super::chain::Chain;
use super::runs::Runs;

/// Classes per factor of two: the error of a spacing is below 0.07 %.
const CLASSES: f64 = 512.0;

/// The minimum spacing, for packets with equal times: half of the usual resolution of captures.
const MIN_SPACING_S: f64 = 5e-7;

/// The spacings between successive packets, counted by what became of the two packets.
#[derive(Clone, Debug, Default)]
pub struct Spacings {
    /// The spacing of each class in seconds, ascending.
    seconds: Vec<f64>,
    /// For each class the number of transitions: delivered to delivered, delivered to lost, lost to delivered, lost
    /// to lost.
    counts: Vec<[u64; 4]>,
    /// The class of the spacing before each packet except the first.
    class: Vec<u32>,
}

impl Spacings {
    /// Counts the spacings of packets sent at `t_ns`, ascending; `lost` has one octet per packet, 0 for delivered.
    /// None if all packets have the same time.
    pub fn new(lost: &[u8], t_ns: &[i64]) -> Option<Self> {
        if t_ns.len() != lost.len() || t_ns.first() == t_ns.last() {
            return None;
        }
        let class_of = |pair: &[i64]| {
            let spacing_s = (pair[1] - pair[0]) as f64 / 1e9;
            libm::round(libm::log2(spacing_s.max(MIN_SPACING_S)) * CLASSES) as i32
        };
        let raw: Vec<i32> = t_ns.windows(2).map(class_of).collect();
        let mut distinct = raw.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let number = |class: &i32| distinct.partition_point(|known| known < class) as u32;
        let class: Vec<u32> = raw.iter().map(number).collect();
        let mut counts = vec![[0; 4]; distinct.len()];
        for (pair, &class) in lost.windows(2).zip(&class) {
            let transition = usize::from(pair[0] != 0) * 2 + usize::from(pair[1] != 0);
            counts[class as usize][transition] += 1;
        }
        let classes = distinct.iter();
        Some(Self {
            seconds: classes
                .map(|class| libm::exp2(f64::from(*class) / CLASSES))
                .collect(),
            counts,
            class,
        })
    }

    /// The spacings of the first `packets` packets; `losses` tells which are lost.
    pub fn head(&self, losses: impl Iterator<Item = bool>, packets: usize) -> Self {
        let mut counts = vec![[0; 4]; self.seconds.len()];
        let class = self.class[..packets.saturating_sub(1).min(self.class.len())].to_vec();
        let mut before = false;
        for (i, lost) in losses.take(packets).enumerate() {
            if i > 0 {
                counts[class[i - 1] as usize][usize::from(before) * 2 + usize::from(lost)] += 1;
            }
            before = lost;
        }
        Self {
            seconds: self.seconds.clone(),
            counts,
            class,
        }
    }

    /// Mean spacing in seconds.
    pub fn mean_s(&self) -> f64 {
        let weighted = self.seconds.iter().zip(&self.counts);
        let sum: f64 = weighted
            .map(|(spacing, counts)| spacing * counts.iter().sum::<u64>() as f64)
            .sum();
        sum / self.class.len().max(1) as f64
    }
}

/// The process.
#[derive(Clone, Copy, Debug)]
pub struct ContinuousTime {
    /// Mean sojourn time in the good state.
    pub good_s: f64,
    /// Mean sojourn time in the bad state.
    pub bad_s: f64,
    /// The chain per packet that this process is on average over the spacings.
    pub per_packet: Chain<2>,
}

impl ContinuousTime {
    /// The process with these mean sojourn times; [`ContinuousTime::averaged`] sets `per_packet`.
    pub fn new(good_s: f64, bad_s: f64) -> Self {
        let bad = good_s.recip() / (good_s.recip() + bad_s.recip());
        Self {
            good_s,
            bad_s,
            per_packet: chain(bad, 1.0 - bad),
        }
    }

    /// Steady-state probability of the bad state.
    fn bad_share(&self) -> f64 {
        self.good_s.recip() / (self.good_s.recip() + self.bad_s.recip())
    }

    /// Transition probabilities over a spacing: good to bad, bad to good.
    fn transitions(&self, spacing_s: f64) -> (f64, f64) {
        let mixed = -libm::expm1(-spacing_s * (self.good_s.recip() + self.bad_s.recip()));
        (self.bad_share() * mixed, (1.0 - self.bad_share()) * mixed)
    }

    /// Log likelihood of the sequence; minus infinity without spacings.
    pub fn log_likelihood(&self, runs: &Runs) -> f64 {
        let Some(spacings) = &runs.spacings else {
            return f64::NEG_INFINITY;
        };
        let first = if runs.first_lost {
            self.bad_share()
        } else {
            1.0 - self.bad_share()
        };
        let mut sum = libm::log(first);
        for (spacing, counts) in spacings.seconds.iter().zip(&spacings.counts) {
            let (p, r) = self.transitions(*spacing);
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

    /// Calls `visit(probability, lost)` for each packet, with its loss probability given all packets before.
    pub fn predict(&self, runs: &Runs, mut visit: impl FnMut(f64, bool)) {
        let Some(spacings) = &runs.spacings else {
            return;
        };
        let each = spacings.seconds.iter();
        let transitions: Vec<_> = each.map(|spacing| self.transitions(*spacing)).collect();
        let mut before: Option<bool> = None;
        let mut classes = spacings.class.iter();
        for (lost, length) in runs.iter() {
            for _ in 0..length {
                let probability = match before {
                    None => self.bad_share(),
                    Some(was) => {
                        let step = classes.next().map(|class| transitions[*class as usize]);
                        let (p, r) = step.unwrap_or((self.bad_share(), 1.0 - self.bad_share()));
                        if was { 1.0 - r } else { p }
                    }
                };
                visit(probability, lost);
                before = Some(lost);
            }
        }
    }

    /// The same process, with `per_packet` averaged over the spacings of `runs`.
    #[must_use]
    pub fn averaged(mut self, runs: &Runs) -> Self {
        let Some(spacings) = &runs.spacings else {
            return self;
        };
        let (mut p, mut r) = (0.0, 0.0);
        let (mut from_good, mut from_bad) = (0.0, 0.0);
        for (spacing, counts) in spacings.seconds.iter().zip(&spacings.counts) {
            let transitions = self.transitions(*spacing);
            let (good, bad) = (
                (counts[0] + counts[1]) as f64,
                (counts[2] + counts[3]) as f64,
            );
            p += transitions.0 * good;
            r += transitions.1 * bad;
            from_good += good;
            from_bad += bad;
        }
        self.per_packet = chain(p / f64::max(from_good, 1.0), r / f64::max(from_bad, 1.0));
        self
    }
}

fn chain(p: f64, r: f64) -> Chain<2> {
    Chain {
        step: [[1.0 - p, p], [r, 1.0 - r]],
        loss: [0.0, 1.0],
    }
}
