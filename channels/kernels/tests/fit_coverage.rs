//! Coverage of the 95 % intervals of fitted models, over many synthetic traces. The long run (`make check-fits`)
//! prints the table of `docs/channels/fit.md`.

use hindflight_kernels::fit::{Fit, Model, Runs, fit};
use hindflight_kernels::{GilbertElliott, GilbertElliottParams, Purpose, StreamKey, StreamRng};

const PACKETS: usize = 20_000;
const LEVEL: f64 = 0.95;

/// A model, and the parameters p, r, h, k of the traces to which it is fitted.
const TRUTHS: [(Model, [f64; 4]); 5] = [
    (Model::Bernoulli, [0.0, 1.0, 0.0, 0.99]),
    (Model::Gilbert, [0.004, 0.15, 0.0, 1.0]),
    (Model::GilbertH, [0.006, 0.08, 0.4, 1.0]),
    (Model::GilbertK, [0.006, 0.2, 0.0, 0.995]),
    (Model::GilbertElliott, [0.01, 0.08, 0.4, 0.995]),
];

/// The parameters of the model.
fn parameters_of(model: Model, [p, r, h, k]: [f64; 4]) -> Vec<f64> {
    match model {
        Model::Bernoulli => vec![1.0 - k],
        Model::Gilbert => vec![p, r],
        Model::GilbertH => vec![p, r, h],
        Model::GilbertK => vec![p, r, k],
        _ => vec![p, r, h, k],
    }
}

fn losses([p, r, h, k]: [f64; 4], seed: u64) -> Vec<u8> {
    let key = StreamKey {
        seed,
        owner: 0,
        direction: 0,
        purpose: Purpose::Loss,
    };
    let params = GilbertElliottParams { p, r, h, k };
    let mut process = GilbertElliott::new(params, StreamRng::new(key));
    (0..PACKETS).map(|_| u8::from(process.lost())).collect()
}

/// Fits of `model` to a number of traces.
fn fits(model: Model, truth: [f64; 4], traces: u64) -> Vec<Fit> {
    (0..traces)
        .map(|seed| fit(model, &Runs::new(&losses(truth, seed)), LEVEL))
        .collect()
}

/// For each parameter, the number of intervals that cover the truth if they are `stretch` times as wide.
fn coverage(fits: &[Fit], truth: &[f64], stretch: f64) -> Vec<u64> {
    let covers = |fit: &Fit, i: usize| {
        let parameter = &fit.parameters[i];
        let (below, above) = (
            parameter.value - parameter.low,
            parameter.high - parameter.value,
        );
        let off = truth[i] - parameter.value;
        -stretch * below <= off && off <= stretch * above
    };
    (0..truth.len())
        .map(|i| fits.iter().filter(|fit| covers(fit, i)).count() as u64)
        .collect()
}

/// The exact bounds of a binomial count of `trials` with probability [`LEVEL`], which it exceeds with at most `tail` on
/// either side.
fn binomial_bounds(trials: u64, tail: f64) -> (u64, u64) {
    let n = trials as f64;
    let probability = |count: u64| {
        let k = count as f64;
        let ways = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        libm::exp(ways + k * libm::log(LEVEL) + (n - k) * libm::log1p(-LEVEL))
    };
    let low = first_above(0..=trials, probability, tail);
    let high = first_above((0..=trials).rev(), probability, tail);
    (low.unwrap_or(0), high.unwrap_or(trials))
}

/// The first of `counts` at which the sum of their probabilities exceeds `tail`.
fn first_above(
    mut counts: impl Iterator<Item = u64>,
    probability: impl Fn(u64) -> f64,
    tail: f64,
) -> Option<u64> {
    let mut sum = 0.0;
    counts.find(|count| {
        sum += probability(*count);
        sum > tail
    })
}

#[test]
fn bounds_are_those_of_the_binomial() {
    // For 20 trials with probability 0.95: at most 15 has probability 0.0026, at most 16 0.0159, and 20 has 0.358.
    assert_eq!(binomial_bounds(20, 0.01), (16, 20));
    assert_eq!(binomial_bounds(20, 0.002), (15, 20));
    assert_eq!(binomial_bounds(20, 0.4), (19, 19));
}

#[test]
fn the_coverage_of_intervals_is_their_level() {
    let traces = 120;
    // Nine parameters, two sides each: the whole test fails by chance once in 300 times.
    let (low, high) = binomial_bounds(traces, 1.7e-4);
    // The model of four parameters takes most of the time; the long run has it.
    for &(model, truth) in &TRUTHS[..4] {
        let (fits, expected) = (fits(model, truth, traces), parameters_of(model, truth));
        let hit = coverage(&fits, &expected, 1.0);
        assert!(
            hit.iter().all(|hit| (low..=high).contains(hit)),
            "{} {hit:?}",
            model.name()
        );
        // The test has power: it detects intervals of 60 % of the width.
        let narrow = coverage(&fits, &expected, 0.6);
        assert!(
            narrow.iter().all(|hit| *hit < low),
            "{} {narrow:?}",
            model.name()
        );
    }
}

#[test]
#[ignore = "minutes: make check-fits"]
fn over_a_thousand_traces_the_coverage_is_93_to_97_percent() {
    let traces = 1000;
    let mut wrong = Vec::new();
    for (model, truth) in TRUTHS {
        let (fits, expected) = (fits(model, truth, traces), parameters_of(model, truth));
        let rejected = fits.iter().filter(|fit| fit.refused()).count();
        let share = |hit: u64| 100.0 * hit as f64 / traces as f64;
        let shares: Vec<f64> = coverage(&fits, &expected, 1.0)
            .into_iter()
            .map(share)
            .collect();
        print!("{:16}", model.name());
        for ((share, name), x) in shares.iter().zip(model.parameters()).zip(&expected) {
            print!("  {name} = {x}: {share:.1} %");
        }
        println!("  rejected: {:.1} %", share(rejected as u64));
        wrong.extend(shares.into_iter().filter(|s| !(93.0..=97.0).contains(s)));
        // The bounds are tight: they detect intervals that are a fifth narrower or a quarter wider.
        for stretch in [0.8, 1.25] {
            let off: Vec<f64> = coverage(&fits, &expected, stretch)
                .into_iter()
                .map(share)
                .collect();
            assert!(
                off.iter().all(|s| !(93.0..=97.0).contains(s)),
                "{} {stretch} {off:?}",
                model.name()
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
