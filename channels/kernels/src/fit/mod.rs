//! Fitting models of loss to a sequence of fates by maximum likelihood, with intervals and tests of the fit.
//!
//! Pure: fates in, numbers out. Must not know where a trace came from. Read `docs/channels/fit.md` first; the models are
//! in `models.rs`, their likelihoods in `chain.rs` and `durations.rs`.

mod chain;
mod distributions;
mod durations;
mod in_time;
mod models;
mod observed;
mod optimise;
mod residuals;
mod runs;

pub use models::{MODELS, Model};
pub use observed::Shape;
pub use residuals::{Bin, Test};
pub use runs::Runs;

use distributions::two_sided_quantile;
use models::{Process, Row};
use optimise::{EDGE, Maximum, Objective, covariance, maximise, profile_end};
use residuals::Residuals;

/// More runs than this are fitted on a part first, to start near the maximum.
const PART_RUNS: usize = 8_000;

/// Gain of log likelihood that is not worth another step: it moves no estimate by a hundredth of its standard error.
const ENOUGH: f64 = 1e-5;

/// A coordinate beyond this (a probability of 0.02 or 0.98) may belong on the limit.
const NEAR_LIMIT: f64 = 4.0;

/// Runs times parameters beyond which intervals come from the observed information: the profile agrees with it there.
const PROFILED: usize = 200_000;

/// One parameter of a fitted model.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Maximum of the likelihood.
    pub value: f64,
    /// Standard error from the observed information; none where the likelihood is flat or the value is at its limit.
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
    /// Natural logarithm of the likelihood at its maximum.
    pub log_likelihood: f64,
    /// Akaike's criterion.
    pub aic: f64,
    /// Schwarz's criterion.
    pub bic: f64,
    /// Whether the trace tells every parameter: the likelihood has one maximum and falls off on all sides.
    pub identified: bool,
    /// Whether intervals are by profile likelihood; else from the observed information.
    pub profiled: bool,
    /// Tests of the fit.
    pub tests: [Test; 3],
    process: Process,
}

/// Fits `model` to the runs; intervals hold the truth with probability `level` (0 to 1).
pub fn fit(model: Model, runs: &Runs, level: f64) -> Fit {
    let coordinates = Coordinates::new(model, None);
    let best = best_of(model, &coordinates, runs);
    let values = model.ordered(&coordinates.values(&best.at));
    let best = Maximum {
        at: coordinates.places(&values),
        value: best.value,
    };
    let profiled = runs.len() * values.len() <= PROFILED;
    let (parameters, identified) = Intervals::new(model, runs, &best, level).all(&values, profiled);
    let process = model.process(&values).averaged(runs);
    let mut residuals = Residuals::default();
    process.predict(runs, |chance, lost| residuals.add(chance, lost));
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

/// A model is refused if a test as bad as its worst would come about by chance less often than this.
const REFUSED: f64 = 0.01;

impl Fit {
    /// Whether the model does not fit: the worst of the tests that could be made, corrected for their number.
    pub fn refused(&self) -> bool {
        let found: Vec<f64> = self.tests.iter().filter_map(|test| test.p_value).collect();
        found.iter().any(|p| p * (found.len() as f64) < REFUSED)
    }

    /// Share of runs of the fate `lost` that the model expects to be longer than each of `lengths` (ascending).
    pub fn longer(&self, lost: bool, lengths: &[u64]) -> Vec<f64> {
        self.process.longer(lost, lengths)
    }

    /// Autocorrelation that the model expects at each of `lags` (ascending, 1 or more; NaN where it is not worked out).
    pub fn autocorrelation(&self, lags: &[u64]) -> Vec<f64> {
        self.process.autocorrelation(lags)
    }
}

/// The highest maximum found from the model's starts, a parameter on its limit where that is no worse.
fn best_of(model: Model, coordinates: &Coordinates, runs: &Runs) -> Maximum {
    let part = (runs.len() > PART_RUNS).then(|| runs.head(PART_RUNS));
    let all = Likelihood {
        model,
        coordinates,
        runs,
        any_order: true,
    };
    let few = Likelihood {
        runs: part.as_ref().unwrap_or(runs),
        ..all
    };
    let mut starts: Vec<Maximum> = model
        .starts(runs)
        .iter()
        .map(|values| coordinates.places(values))
        .map(|at| Maximum {
            value: few.value(&at),
            at,
        })
        .filter(|start| start.value.is_finite())
        .collect();
    starts.sort_by(|a, b| b.value.total_cmp(&a.value));
    starts.truncate(3);
    let everything = vec![true; coordinates.count];
    let tops = starts
        .iter()
        .map(|start| maximise(&few, &start.at, &everything, 1e-3));
    let top = tops
        .max_by(|a, b| a.value.total_cmp(&b.value))
        .map_or_else(|| coordinates.places(&model.starts(runs)[0]), |top| top.at);
    let mut best = maximise(&all, &top, &everything, ENOUGH);
    for i in 0..coordinates.count {
        if best.at[i].abs() < NEAR_LIMIT || best.at[i].abs() >= EDGE {
            continue;
        }
        let mut at = best.at.clone();
        at[i] = EDGE.copysign(at[i]);
        let free: Vec<bool> = at.iter().map(|x| x.abs() < EDGE).collect();
        if all.value(&at) >= best.value - 0.05 {
            let held = maximise(&all, &at, &free, ENOUGH);
            if held.value >= best.value - ENOUGH {
                best = held;
            }
        }
    }
    best
}

/// The log likelihood of a model over its coordinates.
#[derive(Clone, Copy)]
struct Likelihood<'a> {
    model: Model,
    coordinates: &'a Coordinates,
    runs: &'a Runs,
    /// Whether states that change places count too: they are the same process.
    any_order: bool,
}

/// Step over which coordinates are followed to the process.
const FOLLOWED: f64 = 1e-6;

impl Objective for Likelihood<'_> {
    fn value(&self, at: &[f64]) -> f64 {
        let values = self.coordinates.values(at);
        if !self.any_order && self.model.ordered(&values) != values {
            return f64::NEG_INFINITY;
        }
        self.model.process(&values).log_likelihood(self.runs)
    }

    fn slope(&self, at: &[f64], moving: &[usize]) -> Option<Vec<f64>> {
        let process = |at: &[f64]| self.model.process(&self.coordinates.values(at));
        let pair = |&i: &usize| {
            let (mut below, mut above) = (at.to_vec(), at.to_vec());
            below[i] -= FOLLOWED;
            above[i] += FOLLOWED;
            (process(&below), process(&above))
        };
        let pairs: Vec<_> = moving.iter().map(pair).collect();
        let mut slopes = process(at).rises(self.runs, &pairs)?;
        for slope in &mut slopes {
            *slope /= 2.0 * FOLLOWED;
        }
        Some(slopes)
    }
}

/// Intervals of a fitted model's parameters.
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

    /// Every parameter with its interval, and whether the likelihood is curved in all directions.
    fn all(&self, values: &[f64], profiled: bool) -> (Vec<Parameter>, bool) {
        let plain = Coordinates::new(self.model, None);
        let f = self.likelihood(&plain);
        let free: Vec<bool> = self.best.at.iter().map(|x| x.abs() < EDGE).collect();
        let spread = covariance(&f, self.best, &free);
        let errors = spread
            .as_ref()
            .map(|c| standard_errors(&plain, self.best, c));
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
        (parameters.collect(), spread.is_some())
    }

    /// States that change places are the same process: only one of the two orders counts.
    fn likelihood<'b>(&'b self, coordinates: &'b Coordinates) -> Likelihood<'b> {
        Likelihood {
            model: self.model,
            coordinates,
            runs: self.runs,
            any_order: false,
        }
    }

    /// Where the likelihood, the others at their best, has fallen by the quantile.
    fn profile(&self, i: usize, values: &[f64], error: Option<f64>) -> (f64, f64) {
        let coordinates = Coordinates::new(self.model, Some(i));
        let best = Maximum {
            at: coordinates.places(values),
            value: self.best.value,
        };
        let f = self.likelihood(&coordinates);
        let scale = error.map_or(1.0, |e| e / coordinates.slope(i, values[i]).max(1e-12));
        let end = |way: f64| {
            if best.at[i] * way >= EDGE {
                return values[i];
            }
            let place = profile_end(&f, &best, (i, way), scale, self.quantile);
            coordinates.single(i, place)
        };
        (end(-1.0), end(1.0))
    }

    /// The quantile of standard errors to either side, on the unbounded scale.
    fn curvature(&self, i: usize, value: f64, error: Option<f64>) -> (f64, f64) {
        let coordinates = Coordinates::new(self.model, Some(i));
        let Some(error) = error else {
            return (coordinates.single(i, -EDGE), coordinates.single(i, EDGE));
        };
        let half = self.quantile * error / coordinates.slope(i, value);
        let place = coordinates.place(i, value);
        (
            coordinates.single(i, place - half),
            coordinates.single(i, place + half),
        )
    }
}

/// Standard errors of the values, by the delta method.
fn standard_errors(coordinates: &Coordinates, best: &Maximum, spread: &[Vec<f64>]) -> Vec<f64> {
    let n = best.at.len();
    let h = 1e-5;
    let slopes: Vec<Vec<f64>> = (0..n)
        .map(|j| {
            if best.at[j].abs() >= EDGE {
                return vec![0.0; n];
            }
            let mut at = best.at.clone();
            at[j] += h;
            let above = coordinates.values(&at);
            at[j] -= 2.0 * h;
            let below = coordinates.values(&at);
            let slope = above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * h));
            slope.collect()
        })
        .collect();
    let variance = |i: usize| -> f64 {
        let pair = |j: usize, k: usize| slopes[j][i] * spread[j][k] * slopes[k][i];
        (0..n)
            .map(|j| (0..n).map(|k| pair(j, k)).sum::<f64>())
            .sum()
    };
    (0..n).map(|i| variance(i).max(0.0).sqrt()).collect()
}

/// Between a model's parameters and coordinates without bounds: logits of the share that is left in a row, logarithms.
struct Coordinates {
    rows: Vec<Row>,
    /// The parameter that stands first in its row, so that its coordinate is its own logit.
    first: Option<usize>,
    count: usize,
}

impl Coordinates {
    fn new(model: Model, first: Option<usize>) -> Self {
        Self {
            rows: model.rows().to_vec(),
            first,
            count: model.parameters().len(),
        }
    }

    /// The members of a row in their order here.
    fn in_order(&self, members: &[usize]) -> Vec<usize> {
        let mut order = members.to_vec();
        order.sort_by_key(|i| Some(*i) != self.first);
        order
    }

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

    fn places(&self, values: &[f64]) -> Vec<f64> {
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

    fn is_positive(&self, i: usize) -> bool {
        self.rows
            .iter()
            .any(|row| matches!(row, Row::Positive(j) if *j == i))
    }

    /// Parameter `i` at `place`, where it stands first in its row.
    fn single(&self, i: usize, place: f64) -> f64 {
        match self.is_positive(i) {
            true if place <= -EDGE => 0.0,
            true if place >= EDGE => f64::INFINITY,
            true => libm::exp(place),
            false => logistic(place),
        }
    }

    fn place(&self, i: usize, value: f64) -> f64 {
        if self.is_positive(i) {
            libm::log(value)
        } else {
            logit(value)
        }
    }

    /// Change of the parameter with its coordinate.
    fn slope(&self, i: usize, value: f64) -> f64 {
        if self.is_positive(i) {
            value
        } else {
            value * (1.0 - value)
        }
    }
}

/// 0 and 1 exactly at the edges.
fn logistic(x: f64) -> f64 {
    if x <= -EDGE {
        0.0
    } else if x >= EDGE {
        1.0
    } else {
        1.0 / (1.0 + libm::exp(-x))
    }
}

fn logit(x: f64) -> f64 {
    (libm::log(x) - libm::log1p(-x)).clamp(-EDGE, EDGE)
}

#[cfg(test)]
mod tests;
