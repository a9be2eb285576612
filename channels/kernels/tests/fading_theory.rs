//! Share of time, level-crossing rate and mean fade duration of the fading compared with their closed forms, over many
//! seeds.
//!
//! Level-crossing rate: S. O. Rice, "Statistical Properties of a Sine Wave Plus Random Noise", Bell System Technical
//! Journal 27, 1948; for Rayleigh and Rice fading under isotropic scattering as in W. C. Jakes, "Microwave Mobile
//! Communications", 1974. The shadowed cases are these, averaged over the shadowing.

use hindflight_kernels::{
    ChainParams, Clock, Fading, FadingPace, Purpose, StateLoss, StateSignal, Stay, StreamKey,
    StreamRng,
};

const LEVEL_DB: f64 = 0.1;
const DOPPLER_HZ: f64 = 50.0;

fn rng(seed: u64, purpose: Purpose) -> StreamRng {
    StreamRng::new(StreamKey {
        seed,
        owner: 0,
        direction: 0,
        purpose,
    })
}

fn always() -> ChainParams {
    ChainParams {
        clock: Clock::Time,
        states: vec![(StateLoss::Packets(0.0), Stay::Fixed(u64::MAX))],
        jumps: vec![vec![1.0]],
        start: vec![1.0],
    }
}

/// For each threshold, the seconds below it and the number of fades that begin, of one seed.
fn counts(signal: StateSignal, pace: FadingPace, thresholds: &[i16], seed: u64) -> Vec<[f64; 2]> {
    let mut found = vec![[0.0; 2]; thresholds.len()];
    let mut before: Option<i16> = None;
    let (states, waves) = (rng(seed, Purpose::States), rng(seed, Purpose::Fading));
    for run in Fading::new(always(), vec![signal], pace, states, waves) {
        for (found, &threshold) in found.iter_mut().zip(thresholds) {
            if run.level < threshold {
                found[0] += run.steps as f64 * pace.step_ns as f64 / 1e9;
                found[1] += f64::from(u8::from(before.is_some_and(|level| level >= threshold)));
            }
        }
        before = Some(run.level);
    }
    found
}

/// e^-z I0(z), from its integral over a period by the trapezoidal rule.
fn scaled_bessel(z: f64) -> f64 {
    let points = 64 + 8 * (z.sqrt() as usize);
    let angle = |i: usize| std::f64::consts::TAU * i as f64 / points as f64;
    let sum: f64 = (0..points)
        .map(|i| libm::exp(z * (libm::cos(angle(i)) - 1.0)))
        .sum();
    sum / points as f64
}

/// Share of time below the power `x`, and fades per second, of a constant amplitude `direct` plus multipath of mean
/// power `mean`.
fn rice(x: f64, direct: f64, mean: f64) -> [f64; 2] {
    let density = |y: f64| {
        let root = libm::sqrt(y);
        let away = root - direct;
        libm::exp(-away * away / mean) * scaled_bessel(2.0 * direct * root / mean) / mean
    };
    let steps = 400;
    let width = x / f64::from(steps);
    let share: f64 = (0..steps)
        .map(|i| density((f64::from(i) + 0.5) * width) * width)
        .sum();
    let rate = libm::sqrt(std::f64::consts::TAU) * DOPPLER_HZ * libm::sqrt(x * mean) * density(x);
    [share, rate]
}

/// The same averaged over log-normal shadowing, which is slow compared with the multipath.
fn closed_form(signal: StateSignal, threshold: i16) -> [f64; 2] {
    // The signal is rounded to levels, which puts the threshold half a level lower.
    let x = libm::pow(10.0, (f64::from(threshold) - 0.5) * LEVEL_DB / 10.0);
    let amplitude = |db: f64| libm::pow(10.0, db / 20.0);
    let at = |shadow: f64| {
        let direct = signal.direct_db;
        let direct = direct.map_or(0.0, |db| amplitude(db + signal.direct_sigma_db * shadow));
        let scale = amplitude(signal.multipath_db + signal.multipath_sigma_db * shadow);
        rice(x, direct, scale * scale)
    };
    if signal.direct_sigma_db == 0.0 && signal.multipath_sigma_db == 0.0 {
        return at(0.0);
    }
    let (mut sum, mut weights) = ([0.0; 2], 0.0);
    for i in -60..=60 {
        let shadow = f64::from(i) / 12.0;
        let weight = libm::exp(-0.5 * shadow * shadow);
        weights += weight;
        for (sum, value) in sum.iter_mut().zip(at(shadow)) {
            *sum += weight * value;
        }
    }
    sum.map(|value| value / weights)
}

/// Two-sided 99.9 % quantile of the normal distribution.
const Z999: f64 = 3.29;

/// A kind of fading.
struct Case {
    name: &'static str,
    signal: StateSignal,
}

const CASES: [Case; 4] = [
    Case {
        name: "Rayleigh",
        signal: RAYLEIGH,
    },
    Case {
        name: "Rice, K = 6 dB",
        signal: StateSignal {
            direct_db: Some(0.0),
            multipath_db: -6.0,
            ..RAYLEIGH
        },
    },
    Case {
        name: "Suzuki, 3 dB",
        signal: StateSignal {
            multipath_sigma_db: 3.0,
            ..RAYLEIGH
        },
    },
    Case {
        name: "Loo",
        signal: StateSignal {
            direct_db: Some(-2.0),
            direct_sigma_db: 3.0,
            multipath_db: -8.0,
            multipath_sigma_db: 0.0,
        },
    },
];

const RAYLEIGH: StateSignal = StateSignal {
    direct_db: None,
    direct_sigma_db: 0.0,
    multipath_db: 0.0,
    multipath_sigma_db: 0.0,
};

fn pace(step_us: f64, seconds: f64) -> FadingPace {
    FadingPace {
        doppler_hz: DOPPLER_HZ,
        shadowing_ns: 2e8,
        step_ns: (step_us * 1e3) as u64,
        steps: (seconds * 1e6 / step_us) as u64,
        level_db: LEVEL_DB,
    }
}

/// Mean of `residual` over the seeds, and its standard error.
fn mean_and_error(runs: &[Vec<[f64; 2]>], residual: impl Fn(&Vec<[f64; 2]>) -> f64) -> (f64, f64) {
    let n = runs.len() as f64;
    let values: Vec<f64> = runs.iter().map(residual).collect();
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// Share of time, rate and mean duration of fades below threshold `i`, each divided by its closed form, with standard
/// errors.
fn ratios(
    runs: &[Vec<[f64; 2]>],
    i: usize,
    seconds: f64,
    [share, rate]: [f64; 2],
) -> [(f64, f64); 3] {
    let (fades, _) = mean_and_error(runs, |run| run[i][1]);
    let duration = share / rate;
    // The duration is a ratio of two sums, so its error is that of the residual.
    let (off, error) = mean_and_error(runs, |run| run[i][0] - duration * run[i][1]);
    [
        mean_and_error(runs, |run| run[i][0] / (share * seconds)),
        mean_and_error(runs, |run| run[i][1] / (rate * seconds)),
        (1.0 + off / (duration * fades), error / (duration * fades)),
    ]
}

#[test]
fn the_share_of_time_below_a_level_is_that_of_a_gaussian_process() {
    // Samples 10 ms apart are nearly independent at this Doppler shift. (A sum of 32 sinusoids per quadrature would be
    // 1 % too rarely below -5 dB.)
    let (seeds, seconds, thresholds) = (40, 1000.0, [-100_i16, -50, 0, 30]);
    let pace = pace(10_000.0, seconds);
    let runs: Vec<_> = (0..seeds)
        .map(|seed| counts(RAYLEIGH, pace, &thresholds, seed))
        .collect();
    for (i, &threshold) in thresholds.iter().enumerate() {
        let [share, _] = closed_form(RAYLEIGH, threshold);
        let (ratio, error) = mean_and_error(&runs, |run| run[i][0] / (share * seconds));
        let off = (ratio - 1.0) / error;
        assert!(off.abs() < Z999, "{threshold}: {ratio} +- {error}");
        if threshold == -50 {
            assert!(
                error * Z999 < 0.004,
                "an error of 0.5 % is not detected: {error}"
            );
        }
    }
}

#[test]
fn crossing_rates_and_durations_are_those_of_rice() {
    let (seeds, seconds, thresholds) = (60, 4.0, [-150_i16, -100, -50, 0, 30]);
    for case in &CASES {
        let runs: Vec<_> = (0..seeds)
            .map(|seed| counts(case.signal, pace(100.0, seconds), &thresholds, seed))
            .collect();
        for (i, &threshold) in thresholds.iter().enumerate() {
            let expected = closed_form(case.signal, threshold);
            for (ratio, error) in &ratios(&runs, i, seconds, expected)[1..] {
                let off = (ratio - 1.0) / error;
                assert!(
                    off.abs() < Z999,
                    "{} at {threshold}: {ratio} +- {error}",
                    case.name
                );
                // Where fades are frequent the test detects an error of an eighth.
                assert!(
                    expected[1] < 30.0 || error * Z999 < 0.125,
                    "{} at {threshold}: the error {error} is too large",
                    case.name
                );
            }
        }
    }
}

#[test]
#[ignore = "minutes: prints the table of docs/channels/lms.md"]
fn over_many_seeds_all_fades_are_those_of_rice() {
    let (seeds, seconds, thresholds) = (256, 60.0, [-200_i16, -100, -50, 0, 30]);
    for case in &CASES {
        for step_us in [100.0, 1000.0] {
            let runs: Vec<_> = (0..seeds)
                .map(|seed| counts(case.signal, pace(step_us, seconds), &thresholds, seed))
                .collect();
            for (i, &threshold) in thresholds.iter().enumerate() {
                let expected = closed_form(case.signal, threshold);
                print!(
                    "{}, step {step_us} us, {} dB, {:.2} fades of {:.2} ms per second:",
                    case.name,
                    f64::from(threshold) * LEVEL_DB,
                    expected[1],
                    1e3 * expected[0] / expected[1]
                );
                let all = ratios(&runs, i, seconds, expected);
                for ((ratio, error), what) in all.iter().zip(["share", "rate", "duration"]) {
                    print!("  {what} {ratio:.4} +- {error:.4}");
                    // The step misses up to 0.3 % of the fades, and a sum of 512 waves 0.1 %.
                    assert!(
                        step_us > 100.0 || (ratio - 1.0).abs() < 0.004 + Z999 * error,
                        "{what}"
                    );
                }
                println!();
            }
        }
    }
}
