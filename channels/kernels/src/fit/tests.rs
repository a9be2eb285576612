//! Fits of sequences with known parameters.

use super::*;
use crate::rng::{StreamRng, test_rng as rng};
use crate::{GilbertElliott, GilbertElliottParams};

fn runs([p, r, h, k]: [f64; 4], seed: u64, count: usize) -> Runs {
    let params = GilbertElliottParams { p, r, h, k };
    let mut process = GilbertElliott::new(params, rng(seed));
    Runs::new(
        &(0..count)
            .map(|_| u8::from(process.lost()))
            .collect::<Vec<_>>(),
    )
}

fn happens(probability: f64, rng: &mut StreamRng) -> bool {
    rng.unit() <= probability
}

/// For each of `truth`, the number of `seeds` traces whose interval covers it.
fn covered(model: Model, truth: &[f64], seeds: u64, trace: impl Fn(u64) -> Runs) -> Vec<u64> {
    let mut covered = vec![0; truth.len()];
    for seed in 0..seeds {
        let fit = fit(model, &trace(seed), 0.95);
        for ((count, parameter), x) in covered.iter_mut().zip(&fit.parameters).zip(truth) {
            *count += u64::from(parameter.low <= *x && *x <= parameter.high);
        }
    }
    covered
}

/// 95 of 100 intervals, or 38 of 40, are expected to cover the truth; a binomial count is not lower than here with
/// 99.8 %. `tests/fit_coverage.rs` tests for intervals that are too wide.
fn assert_covered(covered: &[u64], seeds: u64) {
    let min = if seeds == 100 { 88 } else { 33 };
    assert!(covered.iter().all(|n| *n >= min), "{covered:?}");
}

#[test]
fn estimates_agree_with_closed_forms() {
    let runs = runs([0.01, 0.2, 0.0, 1.0], 3, 50_000);
    let fit = fit(Model::Gilbert, &runs, 0.95);
    // Counted transitions; the steady start changes the estimates by less than 0.1 %.
    let bursts: u64 = runs.counts[1].iter().sum();
    let (p, r) = (&fit.parameters[0], &fit.parameters[1]);
    let delivered = (runs.packets - runs.losses) as f64;
    assert!((p.value / (bursts as f64 / delivered) - 1.0).abs() < 1e-3);
    assert!((r.value / (bursts as f64 / runs.losses as f64) - 1.0).abs() < 1e-3);
    let error = (r.value * (1.0 - r.value) / runs.losses as f64).sqrt();
    assert!((r.standard_error.expect("curved") / error - 1.0).abs() < 0.01);
    assert!(fit.identified && fit.profiled);
}

#[test]
fn independent_losses_have_the_binomial_interval() {
    let mut losses = vec![0; 1000];
    (0..10).for_each(|i| losses[i * 97] = 1);
    let fit = fit(Model::Bernoulli, &Runs::new(&losses), 0.95);
    let per = &fit.parameters[0];
    assert!((per.value - 0.01).abs() < 1e-7);
    // Likelihood ratio for 10 of 1000: 2 (l(0.01) - l(x)) = 3.8415 at both ends.
    let l = |x: f64| 10.0 * libm::log(x) + 990.0 * libm::log1p(-x);
    for end in [per.low, per.high] {
        assert!((2.0 * (l(0.01) - l(end)) - 3.841_459).abs() < 1e-3, "{end}");
    }
    assert!(per.low < 0.01 && per.high > 0.01);
}

#[test]
fn intervals_cover_the_simple_chain() {
    let truth = [0.004, 0.15];
    let counts = covered(Model::Gilbert, &truth, 100, |seed| {
        runs([truth[0], truth[1], 0.0, 1.0], seed, 10_000)
    });
    assert_covered(&counts, 100);
}

#[test]
fn intervals_cover_the_chain_with_loss_in_both_states() {
    let truth = [0.01, 0.08, 0.4, 0.995];
    let counts = covered(Model::GilbertElliott, &truth, 40, |seed| {
        runs(truth, seed, 6_000)
    });
    assert_covered(&counts, 40);
}

#[test]
fn a_parameter_at_its_limit_is_in_its_interval() {
    for seed in 0..20 {
        let fit = fit(
            Model::GilbertElliott,
            &runs([0.002, 0.125, 0.0, 1.0], seed, 8_000),
            0.999,
        );
        let [p, r, h, k] = [0, 1, 2, 3].map(|i| &fit.parameters[i]);
        assert!(h.low <= 0.0 && k.high >= 1.0, "{seed}: {h:?} {k:?}");
        assert!(h.high < 0.9 && k.low > 0.9, "{seed} {h:?} {k:?}");
        assert!(p.low <= 0.002 && 0.002 <= p.high, "{seed}: {p:?}");
        assert!(r.low <= 0.125 && 0.125 <= r.high, "{seed}: {r:?}");
    }
}

/// The four states of netem, simulated packet by packet.
fn netem4(x: [f64; 5], seed: u64, n: usize) -> Runs {
    let [p13, p31, p32, p23, p14] = x;
    let mut rng = rng(seed);
    let mut state = 1;
    let losses = (0..n).map(|_| {
        let u = rng.unit();
        state = match state {
            1 if u <= p14 => 4,
            1 if u <= p14 + p13 => 3,
            2 if u <= p23 => 3,
            3 if u <= p32 => 2,
            3 if u <= p32 + p31 => 1,
            4 => 1,
            same => same,
        };
        u8::from(state >= 3)
    });
    Runs::new(&losses.collect::<Vec<_>>())
}

#[test]
fn the_parameters_of_four_states_are_recovered() {
    let truth = [0.004, 0.1, 0.2, 0.3, 0.003];
    let counts = covered(Model::Netem4, &truth, 10, |seed| {
        netem4(truth, seed, 10_000)
    });
    assert!(counts.iter().all(|n| *n >= 8), "{counts:?}");
}

#[test]
fn three_states_are_recovered_and_two_do_not_fit() {
    // Clear, light and heavy loss, with long sojourns.
    let step = [[0.002, 0.0005], [0.01, 0.002], [0.003, 0.01]];
    let loss = [0.001, 0.1, 0.7];
    let mut rng = rng(5);
    let mut state = 0;
    let losses: Vec<u8> = (0..60_000)
        .map(|_| {
            let others: Vec<usize> = (0..3).filter(|&s| s != state).collect();
            let u = rng.unit();
            if u <= step[state][0] {
                state = others[0];
            } else if u <= step[state][0] + step[state][1] {
                state = others[1];
            }
            u8::from(happens(loss[state], &mut rng))
        })
        .collect();
    let runs = Runs::new(&losses);
    let three = fit(Model::Markov3, &runs, 0.999);
    let truth = [0.002, 0.0005, 0.01, 0.002, 0.003, 0.01, 0.001, 0.1, 0.7];
    for (parameter, x) in three.parameters.iter().zip(truth) {
        assert!(
            parameter.low <= x && x <= parameter.high,
            "{x}: {parameter:?}"
        );
    }
    let two = fit(Model::GilbertElliott, &runs, 0.95);
    assert!(two.bic > three.bic + 100.0);
    let rejected = |fit: &Fit| {
        fit.tests
            .iter()
            .any(|t| t.p_value < Some(1e-6) && t.freedom > 0)
    };
    assert!(rejected(&two) && !rejected(&three));
}

#[test]
fn weibull_runs_are_recovered_and_a_chain_does_not_fit() {
    let parameters = [(200.0, 0.6), (6.0, 1.8)];
    let mut rng = rng(8);
    let mut losses = Vec::new();
    for run in 0..2000 {
        let (scale, shape) = parameters[run % 2];
        let length = libm::pow(-libm::log(rng.unit()), 1.0 / shape) * scale;
        losses.extend(vec![(run % 2) as u8; libm::ceil(length).max(1.0) as usize]);
    }
    let runs = Runs::new(&losses);
    let weibull = fit(Model::SemiMarkov, &runs, 0.999);
    for (parameter, x) in weibull.parameters.iter().zip([200.0, 0.6, 6.0, 1.8]) {
        assert!(
            parameter.low <= x && x <= parameter.high,
            "{x}: {parameter:?}"
        );
    }
    let chain = fit(Model::Gilbert, &runs, 0.95);
    assert!(chain.aic > weibull.aic + 50.0);
    let worst = |fit: &Fit| {
        fit.tests
            .iter()
            .filter_map(|t| t.p_value)
            .fold(1.0, f64::min)
    };
    assert!(worst(&chain) < 1e-6 && worst(&weibull) > 1e-3);
}

/// Two states in continuous time, with packets at two rates in turn.
fn in_time(good_s: f64, bad_s: f64, seed: u64, count: usize) -> Runs {
    let mut rng = rng(seed);
    let (mut t_s, mut bad, mut end_s) = (0.0, false, 0.0);
    let (mut losses, mut t_ns) = (Vec::new(), Vec::new());
    while losses.len() < count {
        t_s += if losses.len() / 500 % 2 == 0 {
            1e-3
        } else {
            8e-3
        } * (0.5 + rng.unit());
        while end_s <= t_s {
            bad = !bad;
            end_s += rng.exponential(if bad { bad_s } else { good_s });
        }
        losses.push(u8::from(bad));
        t_ns.push((t_s * 1e9) as i64);
    }
    Runs::in_time(&losses, &t_ns)
}

#[test]
fn states_in_time_are_recovered_at_changing_rates_and_a_chain_per_packet_does_not_fit() {
    let truth = [0.3, 0.02];
    let counts = covered(Model::GilbertTime, &truth, 100, |seed| {
        in_time(truth[0], truth[1], seed, 10_000)
    });
    assert_covered(&counts, 100);
    let runs = in_time(truth[0], truth[1], 3, 60_000);
    let [time, packets] = [Model::GilbertTime, Model::Gilbert].map(|m| fit(m, &runs, 0.95));
    assert!(
        time.bic + 100.0 < packets.bic,
        "{} {}",
        time.bic,
        packets.bic
    );
    assert!(!time.refused() && packets.refused());
    assert!(time.parameters.iter().all(|p| p.standard_error.is_some()));
    // On average over the spacings it is the chain per packet of the counts.
    let [counted, average] = [&packets, &time].map(|fit| fit.longer(true, &[1])[0]);
    assert!((counted - average).abs() < 0.03, "{counted} {average}");
}

#[test]
fn the_criteria_tell_bursts_from_independent_losses() {
    let bursty = runs([0.002, 0.1, 0.0, 1.0], 2, 40_000);
    let [one, two] = [Model::Bernoulli, Model::Gilbert].map(|m| fit(m, &bursty, 0.95));
    assert!(two.bic < one.bic - 100.0);
    let single = runs([0.0, 1.0, 0.0, 0.97], 2, 40_000);
    let [one, four] = [Model::Bernoulli, Model::GilbertElliott].map(|m| fit(m, &single, 0.95));
    assert!(one.bic < four.bic);
    assert!(
        (four.log_likelihood - one.log_likelihood) < 8.0
            && four.log_likelihood >= one.log_likelihood - 1e-3
    );
}

#[test]
fn expected_run_lengths_agree_with_the_sequence() {
    let runs = runs([0.01, 0.25, 0.0, 1.0], 4, 200_000);
    let fit = fit(Model::Gilbert, &runs, 0.95);
    let bursts: u64 = runs.counts[1].iter().sum();
    let longer = |n: u64| {
        let counted = runs.lengths[1].iter().zip(&runs.counts[1]);
        counted
            .filter(|(length, _)| **length > n)
            .map(|(_, c)| *c)
            .sum::<u64>() as f64
    };
    for (share, n) in fit.longer(true, &[1, 4, 8]).iter().zip([1, 4, 8]) {
        let counted = longer(n) / bursts as f64;
        assert!((share - counted).abs() < 4.0 * (counted / bursts as f64).sqrt());
    }
    let correlation = fit.autocorrelation(&[1, 2, 10]);
    assert!(
        (correlation[0] - 0.74).abs() < 0.02 && (correlation[2] - 0.74_f64.powi(10)).abs() < 0.01
    );
}
