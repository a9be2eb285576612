//! The closed set of models that can be fitted: parameters, the process of each model, and starting points of the
//! search.
//!
//! Does not depend on the search. The symbols and the order of steps are those of the pages in `docs/channels/`;
//! `docs/channels/fit.md` lists all models.

use super::chain::Chain;
use super::continuous_time::{ContinuousTime, Spacings};
use super::runs::Runs;
use super::weibull_runs::{Weibull, WeibullRuns};

/// A loss model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Independent losses.
    Bernoulli,
    /// Two states: all packets are lost in the bad state, none in the good state (h = 0, k = 1).
    Gilbert,
    /// Two states, with deliveries in the bad state (k = 1).
    GilbertH,
    /// Two states, with losses in the good state (h = 0).
    GilbertK,
    /// Two states, with losses in both.
    GilbertElliott,
    /// The four states of tc-netem's `loss state`.
    Netem4,
    /// Three states, each with a loss probability.
    Markov3,
    /// Runs of losses and of deliveries with Weibull lengths.
    SemiMarkov,
    /// Two states in continuous time: all packets are lost in the bad state, none in the good state.
    GilbertTime,
}

/// Parameters with a joint constraint.
#[derive(Clone, Copy, Debug)]
pub enum Row {
    /// Probabilities with a sum of at most 1.
    Shares(&'static [usize]),
    /// A positive number.
    Positive(usize),
}

/// All models, the simplest first.
pub const MODELS: [Model; 9] = [
    Model::Bernoulli,
    Model::Gilbert,
    Model::GilbertH,
    Model::GilbertK,
    Model::GilbertElliott,
    Model::Netem4,
    Model::Markov3,
    Model::SemiMarkov,
    Model::GilbertTime,
];

/// A model with values for its parameters.
#[derive(Clone, Copy, Debug)]
pub enum Process {
    /// Independent losses.
    One(Chain<1>),
    /// Two states.
    Two(Chain<2>),
    /// Three states.
    Three(Chain<3>),
    /// Four states.
    Four(Chain<4>),
    /// Alternating runs with Weibull lengths.
    WeibullRuns(WeibullRuns),
    /// Two states in continuous time.
    ContinuousTime(ContinuousTime),
}

impl Model {
    /// The name of the model.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bernoulli => "bernoulli",
            Self::Gilbert => "gilbert",
            Self::GilbertH => "gilbert_h",
            Self::GilbertK => "gilbert_k",
            Self::GilbertElliott => "gilbert_elliott",
            Self::Netem4 => "four_state",
            Self::Markov3 => "markov3",
            Self::SemiMarkov => "semi_markov",
            Self::GilbertTime => "gilbert_time",
        }
    }

    /// The model called `name`.
    pub fn named(name: &str) -> Option<Self> {
        MODELS.into_iter().find(|model| model.name() == name)
    }

    /// Names of its parameters.
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Bernoulli => &["per"],
            Self::Gilbert => &["p", "r"],
            Self::GilbertH => &["p", "r", "h"],
            Self::GilbertK => &["p", "r", "k"],
            Self::GilbertElliott => &["p", "r", "h", "k"],
            Self::Netem4 => &["p13", "p31", "p32", "p23", "p14"],
            Self::Markov3 => &[
                "p12", "p13", "p21", "p23", "p31", "p32", "loss1", "loss2", "loss3",
            ],
            Self::SemiMarkov => &[
                "gap_scale_pkts",
                "gap_shape",
                "burst_scale_pkts",
                "burst_shape",
            ],
            Self::GilbertTime => &["mean_good_s", "mean_bad_s"],
        }
    }

    /// The constraints on the parameters.
    pub(super) fn rows(self) -> &'static [Row] {
        use Row::{Positive, Shares};
        match self {
            Self::Bernoulli => &[Shares(&[0])],
            Self::Gilbert => &[Shares(&[0]), Shares(&[1])],
            Self::GilbertH | Self::GilbertK => &[Shares(&[0]), Shares(&[1]), Shares(&[2])],
            Self::GilbertElliott => &[Shares(&[0]), Shares(&[1]), Shares(&[2]), Shares(&[3])],
            Self::Netem4 => &[Shares(&[0, 4]), Shares(&[1, 2]), Shares(&[3])],
            Self::Markov3 => &[
                Shares(&[0, 1]),
                Shares(&[2, 3]),
                Shares(&[4, 5]),
                Shares(&[6]),
                Shares(&[7]),
                Shares(&[8]),
            ],
            Self::SemiMarkov => &[Positive(0), Positive(1), Positive(2), Positive(3)],
            Self::GilbertTime => &[Positive(0), Positive(1)],
        }
    }

    /// The process with these parameters.
    pub(super) fn process(self, x: &[f64]) -> Process {
        let two = |p: f64, r: f64, h: f64, k: f64| {
            Process::Two(Chain {
                step: [[1.0 - p, p], [r, 1.0 - r]],
                loss: [1.0 - k, 1.0 - h],
            })
        };
        match self {
            Self::Bernoulli => Process::One(Chain {
                step: [[1.0]],
                loss: [x[0]],
            }),
            Self::Gilbert => two(x[0], x[1], 0.0, 1.0),
            Self::GilbertH => two(x[0], x[1], x[2], 1.0),
            Self::GilbertK => two(x[0], x[1], 0.0, x[2]),
            Self::GilbertElliott => two(x[0], x[1], x[2], x[3]),
            Self::Netem4 => netem4(x),
            Self::Markov3 => Process::Three(Chain {
                step: [
                    [remainder(x[0], x[1]), x[0], x[1]],
                    [x[2], remainder(x[2], x[3]), x[3]],
                    [x[4], x[5], remainder(x[4], x[5])],
                ],
                loss: [x[6], x[7], x[8]],
            }),
            Self::SemiMarkov => Process::WeibullRuns(WeibullRuns {
                lengths: [(x[0], x[1]), (x[2], x[3])]
                    .map(|(scale, shape)| Weibull { scale, shape }),
            }),
            Self::GilbertTime => Process::ContinuousTime(ContinuousTime::new(x[0], x[1])),
        }
    }

    /// The parameters of the same process with its states in order of increasing loss.
    pub(super) fn ordered(self, x: &[f64]) -> Vec<f64> {
        match self {
            Self::GilbertElliott if 1.0 - x[2] < 1.0 - x[3] => vec![x[1], x[0], x[3], x[2]],
            Self::Markov3 => ordered3(x),
            _ => x.to_vec(),
        }
    }

    /// Starting points of the search, from counts of the sequence.
    pub(super) fn starts(self, runs: &Runs) -> Vec<Vec<f64>> {
        let rate = runs.loss_rate().clamp(1e-9, 1.0 - 1e-9);
        let burst = runs.mean_burst().max(1.0);
        let r = (1.0 / burst).clamp(1e-6, 0.999);
        let p = (rate * r / (1.0 - rate)).clamp(1e-9, 0.9);
        match self {
            Self::Bernoulli => vec![vec![rate]],
            Self::Gilbert => vec![vec![p, r]],
            Self::GilbertH | Self::GilbertK | Self::GilbertElliott => {
                two_state_starts(self, runs, (p, r))
            }
            Self::Netem4 => {
                let two_states = two_state_starts(Self::GilbertElliott, runs, (p, r));
                let start = |x: Vec<f64>| {
                    let (p, r, lost) =
                        (x[0].min(0.4), x[1].min(0.4), (1.0 - x[2]).clamp(0.05, 0.95));
                    vec![
                        p,
                        r,
                        (1.0 - lost) * (1.0 - r),
                        lost,
                        (1.0 - x[3]).clamp(1e-7, 0.3),
                    ]
                };
                two_states.into_iter().map(start).collect()
            }
            Self::Markov3 => {
                let two_states = two_state_starts(Self::GilbertElliott, runs, (p, r));
                two_states.iter().flat_map(|x| split_states(x)).collect()
            }
            Self::SemiMarkov => {
                let gap = ((1.0 - rate) / rate * burst).max(1.0);
                let start = |shape: f64| vec![gap, shape, (burst - 0.5).max(0.3), shape];
                vec![start(1.0), start(0.7)]
            }
            Self::GilbertTime => {
                let spacing_s = runs.spacings.as_ref().map_or(1.0, Spacings::mean_s);
                vec![vec![spacing_s / p, spacing_s / r]]
            }
        }
    }
}

/// States: 1 delivery in a gap, 2 delivery in a burst, 3 loss in a burst, 4 isolated loss.
fn netem4(x: &[f64]) -> Process {
    let [p13, p31, p32, p23, p14] = [x[0], x[1], x[2], x[3], x[4]];
    Process::Four(Chain {
        step: [
            [remainder(p13, p14), 0.0, p13, p14],
            [0.0, 1.0 - p23, p23, 0.0],
            [p31, p32, remainder(p31, p32), 0.0],
            [1.0, 0.0, 0.0, 0.0],
        ],
        loss: [0.0, 0.0, 1.0, 1.0],
    })
}

/// The probability of staying, given those of the two ways out.
fn remainder(a: f64, b: f64) -> f64 {
    (1.0 - a - b).max(0.0)
}

/// Starting points for two states: loss periods with several values of the maximum gap within a period.
fn two_state_starts(model: Model, runs: &Runs, (p, r): (f64, f64)) -> Vec<Vec<f64>> {
    let mut found = vec![
        (p, r, 0.05, 0.999),
        (p, r, 0.3, 1.0 - 0.1 * runs.loss_rate()),
    ];
    for max_gap in [2, 4, 8, 16, 32, 64, 128, 512] {
        let (count, packets) = runs.loss_periods(max_gap);
        let outside = runs.packets.saturating_sub(packets);
        if count < 2 || outside < 2 || packets < 2 {
            continue;
        }
        let leave = (count as f64 / packets as f64).clamp(1e-6, 0.95);
        let enter = (count as f64 / outside as f64).clamp(1e-9, 0.95);
        let lost = (runs.losses as f64 / packets as f64).clamp(0.02, 0.98);
        found.push((enter, leave, 1.0 - lost, 1.0 - 0.1 * runs.loss_rate()));
    }
    let pick = |(p, r, h, k): (f64, f64, f64, f64)| match model {
        Model::GilbertH => vec![p, r, h],
        Model::GilbertK => vec![p, r, k],
        _ => vec![p, r, h, k],
    };
    found.into_iter().map(pick).collect()
}

/// Two chains of three states from one of two: with the bad state split, and with the good state split.
fn split_states(x: &[f64]) -> [Vec<f64>; 2] {
    let (p, r) = (x[0].min(0.4), x[1].min(0.4));
    let (bad, good) = (1.0 - x[2], (1.0 - x[3]).max(1e-5));
    let (light, heavy) = (0.4 * bad, (1.5 * bad).min(0.97));
    [
        vec![p, 0.3 * p, r, 0.3 * r, 0.3 * r, 0.5 * r, good, light, heavy],
        vec![
            0.2 * p,
            0.5 * p,
            0.2 * p,
            p,
            0.4 * r,
            0.4 * r,
            0.3 * good,
            3.0 * good,
            bad,
        ],
    ]
}

fn ordered3(x: &[f64]) -> Vec<f64> {
    let mut order = [0_usize, 1, 2];
    order.sort_by(|&a, &b| x[6 + a].total_cmp(&x[6 + b]));
    // The transition probability from one state to another; the parameters are in order of rows.
    let transition = |from: usize, to: usize| x[2 * from + if to > from { to - 1 } else { to }];
    let mut sorted = Vec::with_capacity(9);
    for &from in &order {
        sorted.extend(
            order
                .iter()
                .filter(|&&to| to != from)
                .map(|&to| transition(from, to)),
        );
    }
    sorted.extend(order.iter().map(|&state| x[6 + state]));
    sorted
}

impl Process {
    /// Log likelihood of the sequence.
    pub fn log_likelihood(&self, runs: &Runs) -> f64 {
        match self {
            Self::One(chain) => chain.log_likelihood(runs),
            Self::Two(chain) => chain.log_likelihood(runs),
            Self::Three(chain) => chain.log_likelihood(runs),
            Self::Four(chain) => chain.log_likelihood(runs),
            Self::WeibullRuns(runs_model) => runs_model.log_likelihood(runs),
            Self::ContinuousTime(states) => states.log_likelihood(runs),
        }
    }

    /// The first-order change of the log likelihood from the first to the second process of each pair; all are near
    /// this process. None if the model has no gradient.
    pub fn likelihood_changes(&self, runs: &Runs, pairs: &[(Self, Self)]) -> Option<Vec<f64>> {
        match self {
            Self::One(chain) => changes(chain, runs, pairs, |x| match x {
                Self::One(chain) => Some(chain),
                _ => None,
            }),
            Self::Two(chain) => changes(chain, runs, pairs, |x| match x {
                Self::Two(chain) => Some(chain),
                _ => None,
            }),
            Self::Three(chain) => changes(chain, runs, pairs, |x| match x {
                Self::Three(chain) => Some(chain),
                _ => None,
            }),
            Self::Four(chain) => changes(chain, runs, pairs, |x| match x {
                Self::Four(chain) => Some(chain),
                _ => None,
            }),
            Self::WeibullRuns(_) | Self::ContinuousTime(_) => None,
        }
    }

    /// The process, with the chain per packet that it is on average over the spacings of `runs`.
    #[must_use]
    pub(super) fn averaged(self, runs: &Runs) -> Self {
        match self {
            Self::ContinuousTime(states) => Self::ContinuousTime(states.averaged(runs)),
            process => process,
        }
    }

    /// Calls `visit(probability, lost)` for each packet, with its loss probability given all packets before.
    pub fn predict(&self, runs: &Runs, visit: impl FnMut(f64, bool)) {
        match self {
            Self::One(chain) => chain.predict(runs, visit),
            Self::Two(chain) => chain.predict(runs, visit),
            Self::Three(chain) => chain.predict(runs, visit),
            Self::Four(chain) => chain.predict(runs, visit),
            Self::WeibullRuns(runs_model) => runs_model.predict(runs, visit),
            Self::ContinuousTime(states) => states.predict(runs, visit),
        }
    }

    /// The expected share of runs longer than each of `lengths` (ascending), of runs of losses or of deliveries.
    pub fn longer(&self, lost: bool, lengths: &[u64]) -> Vec<f64> {
        match self {
            Self::One(chain) => chain.longer(lost, lengths),
            Self::Two(chain) => chain.longer(lost, lengths),
            Self::Three(chain) => chain.longer(lost, lengths),
            Self::Four(chain) => chain.longer(lost, lengths),
            Self::WeibullRuns(runs_model) => {
                let distribution = &runs_model.lengths[usize::from(lost)];
                let survival = |&length: &u64| distribution.longer(length);
                lengths.iter().map(survival).collect()
            }
            Self::ContinuousTime(states) => states.per_packet.longer(lost, lengths),
        }
    }

    /// The expected autocorrelation of the losses at each of `lags` (ascending, at least 1).
    pub fn autocorrelation(&self, lags: &[u64]) -> Vec<f64> {
        match self {
            Self::One(_) => vec![0.0; lags.len()],
            Self::Two(chain) => chain.autocorrelation(lags),
            Self::Three(chain) => chain.autocorrelation(lags),
            Self::Four(chain) => chain.autocorrelation(lags),
            Self::WeibullRuns(runs_model) => {
                let max = lags.last().map_or(0, |&lag| lag as usize);
                let all = runs_model.autocorrelation(max);
                let at = |lag: u64| all.get(lag as usize - 1).copied().unwrap_or(f64::NAN);
                lags.iter().map(|&lag| at(lag)).collect()
            }
            Self::ContinuousTime(states) => states.per_packet.autocorrelation(lags),
        }
    }
}

fn changes<const N: usize>(
    chain: &Chain<N>,
    runs: &Runs,
    pairs: &[(Process, Process)],
    of: impl Fn(&Process) -> Option<&Chain<N>>,
) -> Option<Vec<f64>> {
    let gradient = chain.gradient(runs)?;
    let each = pairs
        .iter()
        .map(|(below, above)| Some(Chain::likelihood_change(&gradient, of(above)?, of(below)?)));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_agree_with_differences() {
        let losses: Vec<u8> = (0..3000_u32)
            .map(|i| u8::from(i % 97 < 5 || i % 31 == 2 || i / 700 % 2 == 1 && i % 5 == 0))
            .collect();
        let runs = Runs::new(&losses);
        let cases = [
            (Model::Bernoulli, vec![0.1]),
            (Model::Gilbert, vec![0.05, 0.3]),
            (Model::GilbertElliott, vec![0.05, 0.2, 0.3, 0.98]),
            (Model::Netem4, vec![0.02, 0.3, 0.2, 0.4, 0.05]),
            (
                Model::Markov3,
                vec![0.02, 0.01, 0.1, 0.05, 0.03, 0.2, 0.05, 0.3, 0.8],
            ),
        ];
        for (model, x) in cases {
            let shifted = |i: usize, by: f64| {
                let mut y = x.clone();
                y[i] += by;
                model.process(&y)
            };
            let pairs: Vec<_> = (0..x.len())
                .map(|i| (shifted(i, -1e-7), shifted(i, 1e-7)))
                .collect();
            let changes = model.process(&x).likelihood_changes(&runs, &pairs);
            for (i, change) in changes.expect("a chain").iter().enumerate() {
                let (below, above) = (shifted(i, -1e-5), shifted(i, 1e-5));
                let difference = (above.log_likelihood(&runs) - below.log_likelihood(&runs)) / 2e-5;
                let slope = change / 2e-7;
                assert!(
                    (slope - difference).abs() < 1e-5 * (1.0 + difference.abs()) + 1e-2,
                    "{} {i}: {slope} {difference}",
                    model.name()
                );
            }
        }
    }

    #[test]
    fn names_are_unique_and_every_parameter_has_one_constraint() {
        for model in MODELS {
            assert_eq!(Model::named(model.name()), Some(model));
            let mut count = vec![0; model.parameters().len()];
            for row in model.rows() {
                match row {
                    Row::Shares(members) => members.iter().for_each(|&i| count[i] += 1),
                    Row::Positive(i) => count[*i] += 1,
                }
            }
            assert!(count.iter().all(|&n| n == 1), "{}", model.name());
        }
        assert_eq!(Model::named("gilbert-elliott"), None);
    }

    #[test]
    fn the_order_of_states_does_not_change_the_process() {
        let runs = Runs::new(&[0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 0, 0]);
        let cases = [
            (Model::GilbertElliott, vec![0.3, 0.1, 0.9, 0.2]),
            (
                Model::Markov3,
                vec![0.1, 0.2, 0.3, 0.05, 0.15, 0.4, 0.9, 0.1, 0.5],
            ),
        ];
        for (model, x) in cases {
            let sorted = model.ordered(&x);
            assert_ne!(sorted, x);
            let likelihood = |x: &[f64]| model.process(x).log_likelihood(&runs);
            assert!((likelihood(&sorted) - likelihood(&x)).abs() < 1e-12);
            assert_eq!(model.ordered(&sorted), sorted);
        }
    }
}
