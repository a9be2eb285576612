//! Maximum-likelihood fits of loss models to a loss sequence, with confidence intervals and goodness-of-fit tests
//! (`docs/channels/fit.md`).
//!
//! Does not depend on the source of the sequence. `models.rs` lists the models; `chain.rs`, `weibull_runs.rs` and
//! `continuous_time.rs` have their likelihoods.

mod chain;
mod continuous_time;
mod distributions;
mod models;
mod optimise;
mod residuals;
mod runs;
mod shape;
mod weibull_runs;

pub use models::{MODELS, Model};
pub use residuals::{Bin, Test};
pub use runs::Runs;
pub use shape::Shape;

use distributions::two_sided_quantile;
use models::{Process, Row};
use optimise::{EDGE, Maximum, Objective, covariance, maximise, profile_end};
use residuals::Residuals;

/// A sequence of more runs is first fitted to its first runs, which gives a start near the maximum.
const START_RUNS: usize = 8_000;

/// The tolerance of the log likelihood: a smaller gain moves no estimate by a hundredth of its standard error.
const TOLERANCE: f64 = 1e-5;

/// Beyond this coordinate (a probability of 0.02 or 0.98) the limit itself is tried.
const NEAR_LIMIT: f64 = 4.0;

/// The maximum of runs times parameters for profile intervals. Above it they agree with those from the observed
/// information, which are used.
const MAX_PROFILED: usize = 200_000;

/// One parameter of a fitted model.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Maximum-likelihood estimate.
    pub value: f64,
    /// Standard error from the observed information; none if the likelihood is flat or the estimate is at a limit.
    pub standard_error: Option<f64>,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// A fitted model.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The model.
    pub model: Model,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Maximum of the log likelihood.
    pub log_likelihood: f64,
    /// Akaike information criterion.
    pub aic: f64,
    /// Bayesian (Schwarz) information criterion.
    pub bic: f64,
    /// Whether the sequence identifies every parameter: the likelihood decreases in all directions from its maximum.
    pub identified: bool,
    /// Whether the intervals are from the profile likelihood; otherwise they are from the observed information.
    pub profiled: bool,
    /// Goodness-of-fit tests.
    pub tests: [Test; 3],
    process: Process,
}

/// Fits `model` to the runs of a loss sequence; `level` is the confidence level of the intervals, between 0 and 1.
pub fn fit(model: Model, runs: &Runs, level: f64) -> Fit {
    let transform = Transform::new(model, None);
    let best = best_of(model, &transform, runs);
    let values = model.ordered(&transform.values(&best.at));
    let best = Maximum {
        at: transform.coordinates(&values),
        value: best.value,
    };
    let profiled = runs.len() * values.len() <= MAX_PROFILED;
    let (parameters, identified) = Intervals::new(model, runs, &best, level).all(&values, profiled);
    let process = model.process(&values).averaged(runs);
    let mut residuals = Residuals::default();
    process.predict(runs, |probability, lost| residuals.add(probability, lost));
    let count = values.len() as f64;
    Fit {
        model,
        parameters,
        log_likelihood: best.value,
        aic: 2.0 * count - 2.0 * best.value,
        bic: count * libm::log(runs.packets as f64) - 2.0 * best.value,
        identified,
        profiled,
        tests: residuals.tests(),
        process,
    }
}

/// The significance level at which a model is rejected, over all of its tests.
const SIGNIFICANCE: f64 = 0.01;

impl Fit {
    /// Whether the tests reject the model: by the smallest p-value, with a Bonferroni correction for the number of
    /// tests.
    pub fn refused(&self) -> bool {
        let found: Vec<f64> = self.tests.iter().filter_map(|test| test.p_value).collect();
        found
            .iter()
            .any(|p| p * (found.len() as f64) < SIGNIFICANCE)
    }

    /// The expected share of runs longer than each of `lengths` (ascending), of runs of losses or of deliveries.
    pub fn longer(&self, lost: bool, lengths: &[u64]) -> Vec<f64> {
        self.process.longer(lost, lengths)
    }

    /// The expected autocorrelation at each of `lags` (ascending, at least 1); NaN at lags for which it is not
    /// computed.
    pub fn autocorrelation(&self, lags: &[u64]) -> Vec<f64> {
        self.process.autocorrelation(lags)
    }
}

/// The highest maximum found from the starting points of the model. A parameter is set to its limit if that is no
/// worse.
fn best_of(model: Model, transform: &Transform, runs: &Runs) -> Maximum {
    let first_runs = (runs.len() > START_RUNS).then(|| runs.head(START_RUNS));
    let all = Likelihood {
        model,
        transform,
        runs,
        any_order: true,
    };
    let few = Likelihood {
        runs: first_runs.as_ref().unwrap_or(runs),
        ..all
    };
    let mut starts: Vec<Maximum> = model
        .starts(runs)
        .iter()
        .map(|values| transform.coordinates(values))
        .map(|at| Maximum {
            value: few.value(&at),
            at,
        })
        .filter(|start| start.value.is_finite())
        .collect();
    starts.sort_by(|a, b| b.value.total_cmp(&a.value));
    starts.truncate(3);
    let all_free = vec![true; transform.count];
    let tops = starts
        .iter()
        .map(|start| maximise(&few, &start.at, &all_free, 1e-3));
    let top = tops.max_by(|a, b| a.value.total_cmp(&b.value)).map_or_else(
        || transform.coordinates(&model.starts(runs)[0]),
        |top| top.at,
    );
    let mut best = maximise(&all, &top, &all_free, TOLERANCE);
    for i in 0..transform.count {
        if best.at[i].abs() < NEAR_LIMIT || best.at[i].abs() >= EDGE {
            continue;
        }
        let mut at = best.at.clone();
        at[i] = EDGE.copysign(at[i]);
        let free: Vec<bool> = at.iter().map(|x| x.abs() < EDGE).collect();
        if all.value(&at) >= best.value - 0.05 {
            let at_limit = maximise(&all, &at, &free, TOLERANCE);
            if at_limit.value >= best.value - TOLERANCE {
                best = at_limit;
            }
        }
    }
    best
}

/// The log likelihood of a model as a function of its coordinates.
#[derive(Clone, Copy)]
struct Likelihood<'a> {
    model: Model,
    transform: &'a Transform,
    runs: &'a Runs,
    /// Whether states may be in any order. A permutation of the states is the same process.
    any_order: bool,
}

/// Step of the numerical derivative of the process by a coordinate.
const DERIVATIVE_STEP: f64 = 1e-6;

impl Objective for Likelihood<'_> {
    fn value(&self, at: &[f64]) -> f64 {
        let values = self.transform.values(at);
        if !self.any_order && self.model.ordered(&values) != values {
            return f64::NEG_INFINITY;
        }
        self.model.process(&values).log_likelihood(self.runs)
    }

    fn gradient(&self, at: &[f64], free: &[usize]) -> Option<Vec<f64>> {
        let process = |at: &[f64]| self.model.process(&self.transform.values(at));
        let pair = |&i: &usize| {
            let (mut below, mut above) = (at.to_vec(), at.to_vec());
            below[i] -= DERIVATIVE_STEP;
            above[i] += DERIVATIVE_STEP;
            (process(&below), process(&above))
        };
        let pairs: Vec<_> = free.iter().map(pair).collect();
        let mut slopes = process(at).likelihood_changes(self.runs, &pairs)?;
        for slope in &mut slopes {
            *slope /= 2.0 * DERIVATIVE_STEP;
        }
        Some(slopes)
    }
}

/// Confidence intervals of the parameters of a fitted model.
struct Intervals<'a> {
    model: Model,
    runs: &'a Runs,
    best: &'a Maximum,
    quantile: f64,
}

impl<'a> Intervals<'a> {
    fn new(model: Model, runs: &'a Runs, best: &'a Maximum, level: f64) -> Self {
        Self {
            model,
            runs,
            best,
            quantile: two_sided_quantile(level),
        }
    }

    /// All parameters with their intervals, and whether the likelihood is curved in all directions.
    fn all(&self, values: &[f64], profiled: bool) -> (Vec<Parameter>, bool) {
        let transform = Transform::new(self.model, None);
        let f = self.likelihood(&transform);
        let free: Vec<bool> = self.best.at.iter().map(|x| x.abs() < EDGE).collect();
        let covariances = covariance(&f, self.best, &free);
        let errors = covariances
            .as_ref()
            .map(|c| standard_errors(&transform, self.best, c));
        let parameters = (0..values.len()).map(|i| {
            let error = errors.as_ref().map(|e| e[i]).filter(|e| *e > 0.0);
            let (low, high) = if profiled || !free[i] {
                self.profile(i, values, error)
            } else {
                self.curvature(i, values[i], error)
            };
            Parameter {
                name: self.model.parameters()[i],
                value: values[i],
                standard_error: error,
                low,
                high,
            }
        });
        (parameters.collect(), covariances.is_some())
    }

    /// The log likelihood, restricted to one order of the states.
    fn likelihood<'b>(&'b self, transform: &'b Transform) -> Likelihood<'b> {
        Likelihood {
            model: self.model,
            transform,
            runs: self.runs,
            any_order: false,
        }
    }

    /// The profile-likelihood interval: where the maximum over the other parameters has fallen by the quantile.
    fn profile(&self, i: usize, values: &[f64], error: Option<f64>) -> (f64, f64) {
        let transform = Transform::new(self.model, Some(i));
        let best = Maximum {
            at: transform.coordinates(values),
            value: self.best.value,
        };
        let f = self.likelihood(&transform);
        let scale = error.map_or(1.0, |e| e / transform.slope(i, values[i]).max(1e-12));
        let end = |direction: f64| {
            if best.at[i] * direction >= EDGE {
                return values[i];
            }
            let at = profile_end(&f, &best, (i, direction), scale, self.quantile);
            transform.single_value(i, at)
        };
        (end(-1.0), end(1.0))
    }

    /// The Wald interval: the quantile of standard errors to either side, on the scale of the coordinate.
    fn curvature(&self, i: usize, value: f64, error: Option<f64>) -> (f64, f64) {
        let transform = Transform::new(self.model, Some(i));
        let Some(error) = error else {
            return (
                transform.single_value(i, -EDGE),
                transform.single_value(i, EDGE),
            );
        };
        let half = self.quantile * error / transform.slope(i, value);
        let at = transform.single_coordinate(i, value);
        (
            transform.single_value(i, at - half),
            transform.single_value(i, at + half),
        )
    }
}

/// Standard errors of the parameters, by the delta method.
fn standard_errors(transform: &Transform, best: &Maximum, covariances: &[Vec<f64>]) -> Vec<f64> {
    let n = best.at.len();
    let h = 1e-5;
    let slopes: Vec<Vec<f64>> = (0..n)
        .map(|j| {
            if best.at[j].abs() >= EDGE {
                return vec![0.0; n];
            }
            let mut at = best.at.clone();
            at[j] += h;
            let above = transform.values(&at);
            at[j] -= 2.0 * h;
            let below = transform.values(&at);
            let slope = above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * h));
            slope.collect()
        })
        .collect();
    let variance = |i: usize| -> f64 {
        let pair = |j: usize, k: usize| slopes[j][i] * covariances[j][k] * slopes[k][i];
        (0..n)
            .map(|j| (0..n).map(|k| pair(j, k)).sum::<f64>())
            .sum()
    };
    (0..n).map(|i| variance(i).max(0.0).sqrt()).collect()
}

/// The transform between the parameters of a model and unbounded coordinates. The coordinate of a positive parameter
/// is its logarithm, that of a probability the logit of its share of what the earlier members of its row leave.
struct Transform {
    rows: Vec<Row>,
    /// The parameter that is put first in its row, so that its coordinate is its plain logit.
    first: Option<usize>,
    count: usize,
}

impl Transform {
    fn new(model: Model, first: Option<usize>) -> Self {
        Self {
            rows: model.rows().to_vec(),
            first,
            count: model.parameters().len(),
        }
    }

    /// The members of a row in the order of this transform.
    fn in_order(&self, members: &[usize]) -> Vec<usize> {
        let mut order = members.to_vec();
        order.sort_by_key(|i| Some(*i) != self.first);
        order
    }

    /// The parameters at some coordinates.
    fn values(&self, at: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; self.count];
        for row in &self.rows {
            match row {
                Row::Positive(i) => values[*i] = libm::exp(at[*i]),
                Row::Shares(members) => {
                    let mut left = 1.0;
                    for i in self.in_order(members) {
                        values[i] = left * logistic(at[i]);
                        left *= logistic(-at[i]);
                    }
                }
            }
        }
        values
    }

    /// The coordinates of some parameters.
    fn coordinates(&self, values: &[f64]) -> Vec<f64> {
        let mut at = vec![0.0; self.count];
        for row in &self.rows {
            match row {
                Row::Positive(i) => at[*i] = libm::log(values[*i]).clamp(-EDGE, EDGE),
                Row::Shares(members) => {
                    let mut left: f64 = 1.0;
                    for i in self.in_order(members) {
                        at[i] = logit(if left > 0.0 { values[i] / left } else { 0.5 });
                        left = (left - values[i]).max(0.0);
                    }
                }
            }
        }
        at
    }

    /// Whether parameter `i` is positive and not a probability.
    fn is_positive(&self, i: usize) -> bool {
        self.rows
            .iter()
            .any(|row| matches!(row, Row::Positive(j) if *j == i))
    }

    /// The value of parameter `i` at a coordinate, if it is first in its row.
    fn single_value(&self, i: usize, at: f64) -> f64 {
        match self.is_positive(i) {
            true if at <= -EDGE => 0.0,
            true if at >= EDGE => f64::INFINITY,
            true => libm::exp(at),
            false => logistic(at),
        }
    }

    /// The coordinate of parameter `i`, if it is first in its row.
    fn single_coordinate(&self, i: usize, value: f64) -> f64 {
        if self.is_positive(i) {
            libm::log(value)
        } else {
            logit(value)
        }
    }

    /// The derivative of parameter `i` with respect to its coordinate.
    fn slope(&self, i: usize, value: f64) -> f64 {
        if self.is_positive(i) {
            value
        } else {
            value * (1.0 - value)
        }
    }
}

/// The logistic function; exactly 0 and 1 at the edges.
fn logistic(x: f64) -> f64 {
    if x <= -EDGE {
        0.0
    } else if x >= EDGE {
        1.0
    } else {
        1.0 / (1.0 + libm::exp(-x))
    }
}

/// The logit, limited to the edges.
fn logit(x: f64) -> f64 {
    (libm::log(x) - libm::log1p(-x)).clamp(-EDGE, EDGE)
}

#[cfg(test)]
mod tests;
