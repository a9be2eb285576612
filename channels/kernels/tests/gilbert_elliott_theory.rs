//! Loss rate, burst length and gap length of the two-state chain compared with closed forms, over 1000 seeds each.

use hindflight_kernels::{GilbertElliott, GilbertElliottParams, Purpose, StreamKey, StreamRng};

const SEEDS: u64 = 1000;
const PACKETS: u64 = 20_000;
/// Two-sided 99 % quantile of the normal distribution.
const Z99: f64 = 2.575_829;

fn process(params: GilbertElliottParams, seed: u64) -> GilbertElliott {
    let key = StreamKey {
        seed,
        owner: 0,
        direction: 0,
        purpose: Purpose::Loss,
    };
    GilbertElliott::new(params, StreamRng::new(key))
}

/// Losses, bursts and deliveries of one run, after a warm-up that removes the effect of the initial state.
fn counts(params: GilbertElliottParams, seed: u64) -> [f64; 3] {
    let mut process = process(params, seed);
    for _ in 0..1000 {
        process.lost();
    }
    let (mut lost, mut bursts, mut left) = (0.0, 0.0, PACKETS);
    let mut first = true;
    while let Some(passed) = process.pass_until_loss(left) {
        left -= passed + 1;
        lost += 1.0;
        bursts += f64::from(u8::from(passed > 0 || first));
        first = false;
    }
    [lost, bursts, PACKETS as f64 - lost]
}

/// Loss rate, and probability that a packet is delivered and the next is lost, in the steady state.
fn closed_form(params: GilbertElliottParams) -> (f64, f64) {
    let GilbertElliottParams { p, r, h, k } = params;
    let (good, bad) = (r / (p + r), p / (p + r));
    let share = good * (1.0 - k) + bad * (1.0 - h);
    let from_good = (1.0 - p) * (1.0 - k) + p * (1.0 - h);
    let from_bad = r * (1.0 - k) + (1.0 - r) * (1.0 - h);
    (share, good * k * from_good + bad * h * from_bad)
}

/// The mean of `numerator - ratio * denominator` over the seeds, in standard errors.
fn deviation(runs: &[[f64; 3]], numerator: usize, denominator: usize, ratio: f64) -> f64 {
    let n = runs.len() as f64;
    let residuals: Vec<f64> = runs
        .iter()
        .map(|run| run[numerator] - ratio * run[denominator])
        .collect();
    let mean = residuals.iter().sum::<f64>() / n;
    let variance = residuals
        .iter()
        .map(|x| (x - mean) * (x - mean))
        .sum::<f64>()
        / (n - 1.0);
    mean / (variance / n).sqrt()
}

#[test]
fn loss_rate_bursts_and_gaps_lie_in_the_99_percent_intervals_of_theory() {
    for (p, r, h, k) in [
        (0.01, 0.25, 0.0, 1.0),
        (0.005, 0.1, 0.5, 1.0),
        (0.02, 0.08, 0.3, 0.99),
        (0.3, 0.6, 0.1, 0.9),
    ] {
        let params = GilbertElliottParams { p, r, h, k };
        let runs: Vec<_> = (0..SEEDS).map(|seed| counts(params, seed)).collect();
        let (share, onset) = closed_form(params);
        // Losses per delivery, losses per burst, deliveries per burst.
        for (what, numerator, denominator, ratio) in [
            ("share", 0, 2, share / (1.0 - share)),
            ("burst", 0, 1, share / onset),
            ("gap", 2, 1, (1.0 - share) / onset),
        ] {
            let off = deviation(&runs, numerator, denominator, ratio);
            assert!(
                off.abs() < Z99,
                "{what} of {params:?}: {off} standard errors"
            );
            // The test has power: it detects an error of 3 %.
            for wrong in [0.97, 1.03] {
                let off = deviation(&runs, numerator, denominator, ratio * wrong);
                assert!(
                    off.abs() > Z99,
                    "{what} of {params:?}: an error of {wrong} is not detected"
                );
            }
        }
    }
}

#[test]
fn bursts_of_gilberts_form_are_geometric() {
    let params = GilbertElliottParams {
        p: 0.02,
        r: 0.25,
        h: 0.0,
        k: 1.0,
    };
    let mut process = process(params, 77);
    let mut lengths = [0_u32; 8];
    let mut length = 0;
    let mut bursts = 0.0;
    for _ in 0..400_000 {
        if process.pass_until_loss(u64::MAX) != Some(0) && length > 0 {
            lengths[usize::min(length, 8) - 1] += 1;
            bursts += 1.0;
            length = 0;
        }
        length += 1;
    }
    for (i, &count) in lengths[..7].iter().enumerate() {
        let expected = 0.25 * 0.75_f64.powi(i as i32);
        let error = (expected * (1.0 - expected) / bursts).sqrt();
        let share = f64::from(count) / bursts;
        assert!(
            (share - expected).abs() < 3.3 * error,
            "length {}: {share}",
            i + 1
        );
    }
}

#[test]
fn run_lengths_and_single_packets_give_the_same_losses() {
    for (p, r, h, k) in [
        (0.01, 0.25, 0.0, 1.0),
        (0.3, 0.4, 0.5, 0.8),
        (1.0, 1.0, 0.0, 1.0),
        (0.0, 1.0, 0.0, 0.99),
        (0.0, 0.0, 0.0, 1.0),
    ] {
        let params = GilbertElliottParams { p, r, h, k };
        let (mut single, mut runs) = (process(params, 5), process(params, 5));
        let lost: Vec<u64> = (0..50_000).filter(|_| single.lost()).collect();
        let mut positions = Vec::new();
        let mut next = 0;
        // A limit on the run must not change the sequence.
        let mut limit = 0;
        while next < 50_000 {
            limit = (limit + 37) % 1000;
            let most = u64::min(limit, 50_000 - next);
            match runs.pass_until_loss(most) {
                Some(passed) => {
                    positions.push(next + passed);
                    next += passed + 1;
                }
                None => next += most,
            }
        }
        assert_eq!(lost, positions, "{params:?}");
    }
}
