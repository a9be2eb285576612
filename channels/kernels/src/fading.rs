//! Fading of a signal in the states of a land-mobile-satellite channel: a direct component, which may be shadowed, and
//! multipath (`docs/channels/lms.md`).
//!
//! Does not depend on packets or thresholds. `multipath.rs` has the multipath; shadowing is a second-order Gauss-Markov
//! process in dB. Memory does not grow with the simulated time.

use crate::chain::{ChainParams, Walk};
use crate::multipath::Multipath;
use crate::rng::StreamRng;
use crate::state_runs::end_of_run;

/// The signal in one state, in dB relative to the unshadowed direct component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateSignal {
    /// Mean of the direct component; none if there is no direct component (Rayleigh).
    pub direct_db: Option<f64>,
    /// Standard deviation of the direct component in dB (Loo); 0 if it is constant (Rice).
    pub direct_sigma_db: f64,
    /// Mean power of the multipath.
    pub multipath_db: f64,
    /// Standard deviation of that power in dB (Suzuki: Rayleigh with a log-normal mean); 0 if it is constant.
    pub multipath_sigma_db: f64,
}

/// The time scales of the fading and the steps of the simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FadingPace {
    /// Maximum Doppler shift: speed over wavelength.
    pub doppler_hz: f64,
    /// Time in which the autocorrelation of the shadowing falls to 1/e.
    pub shadowing_ns: f64,
    /// Length of a step.
    pub step_ns: u64,
    /// Number of steps.
    pub steps: u64,
    /// Width of a level in dB; level 0 is the unshadowed direct component.
    pub level_db: f64,
}

/// The minimum of the signal, in dB.
const MIN_DB: f64 = -60.0;

/// Decay of the shadowing per `shadowing_ns`: (1 + x) e^-x = 1/e.
const SHADOWING_DECAY: f64 = 2.146_193_220_620_582_5;

/// Standard normal shadowing: a second-order Gauss-Markov process, critically damped, with the autocorrelation
/// (1 + a t) e^(-a t).
///
/// A first-order process is not differentiable: the number of fades would grow without bound as the step shrinks.
#[derive(Clone, Debug)]
struct Shadowing {
    /// The pole of both stages.
    memory: f64,
    /// 1 - `memory`.
    complement: f64,
    /// Standard deviation of the input of the first stage.
    innovation: f64,
    /// Scales the second stage to unit variance.
    gain: f64,
    stages: [f64; 2],
}

impl Shadowing {
    /// Starts in the steady state.
    fn new(pace: FadingPace, rng: &mut StreamRng) -> Self {
        let decay = SHADOWING_DECAY * pace.step_ns as f64 / pace.shadowing_ns;
        let memory = libm::exp(-decay);
        let first = rng.normal();
        Self {
            memory,
            complement: -libm::expm1(-decay),
            innovation: libm::sqrt(-libm::expm1(-2.0 * decay)),
            gain: (1.0 + memory) / libm::sqrt(1.0 + memory * memory),
            // The second stage has the variance (1 + m^2) / (1 + m)^2, and the two have the covariance 1 / (1 + m).
            stages: [first, (first + memory * rng.normal()) / (1.0 + memory)],
        }
    }

    /// The value at the next step.
    fn step(&mut self, rng: &mut StreamRng) -> f64 {
        self.stages[0] = self.memory * self.stages[0] + self.innovation * rng.normal();
        self.stages[1] = self.memory * self.stages[1] + self.complement * self.stages[0];
        self.stages[1] * self.gain
    }
}

/// The fading process, as runs of equal state and level.
#[derive(Clone, Debug)]
pub struct Fading {
    states: Walk,
    signals: Vec<StateSignal>,
    pace: FadingPace,
    multipath: Multipath,
    shadowing: Shadowing,
    rng: StreamRng,
    state: usize,
    state_end_ns: u64,
    step: u64,
    next: (usize, i16),
}

/// A run of steps with equal state and level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FadeRun {
    /// First step.
    pub step: u64,
    /// Number of steps.
    pub steps: u64,
    /// The state of the chain.
    pub state: usize,
    /// Power in levels; negative if it is below the unshadowed direct component.
    pub level: i16,
}

impl Fading {
    /// Starts at time 0. `chain`, which is in time, generates the states; `signals` has the signal in each of them.
    /// `state_rng` is the random stream of the states, `rng` that of the fading.
    pub fn new(
        chain: ChainParams,
        signals: Vec<StateSignal>,
        pace: FadingPace,
        state_rng: StreamRng,
        mut rng: StreamRng,
    ) -> Self {
        let multipath = Multipath::new(pace.doppler_hz, pace.step_ns, &mut rng);
        let shadowing = Shadowing::new(pace, &mut rng);
        let mut fading = Self {
            states: Walk::new(chain, state_rng),
            signals,
            pace,
            multipath,
            shadowing,
            rng,
            state: 0,
            state_end_ns: 0,
            step: 0,
            next: (0, 0),
        };
        fading.next = fading.level_at(0);
        fading
    }

    /// State and level at a step; steps are queried in order.
    fn level_at(&mut self, step: u64) -> (usize, i16) {
        let t_ns = step * self.pace.step_ns;
        while self.state_end_ns <= t_ns {
            let (state, stay) = self.states.step();
            self.state = state;
            self.state_end_ns = self.state_end_ns.saturating_add(stay.max(1));
        }
        let power = self.power();
        let db = (10.0 * libm::log10(power)).max(MIN_DB);
        (self.state, libm::round(db / self.pace.level_db) as i16)
    }

    /// Power of the signal at the next step; 1 for the unshadowed direct component.
    fn power(&mut self) -> f64 {
        let signal = self.signals[self.state];
        let amplitude = |db: f64| libm::pow(10.0, db / 20.0);
        let shadow = self.shadowing.step(&mut self.rng);
        let scale = amplitude(signal.multipath_db + signal.multipath_sigma_db * shadow);
        let mut parts = self.multipath.step().map(|part| part * scale);
        if let Some(direct_db) = signal.direct_db {
            parts[0] += amplitude(direct_db + signal.direct_sigma_db * shadow);
        }
        parts[0] * parts[0] + parts[1] * parts[1]
    }
}

impl Iterator for Fading {
    type Item = FadeRun;

    fn next(&mut self) -> Option<FadeRun> {
        if self.step >= self.pace.steps {
            return None;
        }
        let (first, (state, level)) = (self.step, self.next);
        let steps = (first, self.pace.steps);
        (self.step, self.next) = end_of_run(self.next, steps, |step| self.level_at(step));
        Some(FadeRun {
            step: first,
            steps: self.step - first,
            state,
            level,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::chain::{Clock, StateLoss, Stay};
    use crate::rng::{Purpose, StreamKey};

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

    const PACE: FadingPace = FadingPace {
        doppler_hz: 50.0,
        shadowing_ns: 5e7,
        step_ns: 200_000,
        steps: 250_000,
        level_db: 0.1,
    };

    /// The share of time below each level, and the mean duration in seconds of fades below the first one.
    fn below(signal: StateSignal, levels_db: &[f64]) -> (Vec<f64>, f64) {
        let (mut steps, mut fades) = (vec![0_u64; levels_db.len()], 0_u64);
        let seeds = 8;
        for seed in 0..seeds {
            let (states, waves) = (rng(seed, Purpose::States), rng(seed, Purpose::Fading));
            let mut faded = true;
            for run in Fading::new(always(), vec![signal], PACE, states, waves) {
                let db = f64::from(run.level) * PACE.level_db;
                for (count, level) in steps.iter_mut().zip(levels_db) {
                    *count += if db < *level { run.steps } else { 0 };
                }
                fades += u64::from(!faded && db < levels_db[0]);
                faded = db < levels_db[0];
            }
        }
        let all = (PACE.steps * seeds) as f64;
        let mean_s = steps[0] as f64 / fades as f64 * PACE.step_ns as f64 / 1e9;
        (steps.iter().map(|n| *n as f64 / all).collect(), mean_s)
    }

    const RAYLEIGH: StateSignal = StateSignal {
        direct_db: None,
        direct_sigma_db: 0.0,
        multipath_db: 0.0,
        multipath_sigma_db: 0.0,
    };

    #[test]
    fn rayleigh_fading_has_the_share_of_time_and_the_mean_fade_of_the_closed_form() {
        // P(power < x) = 1 - e^-x; mean fade (e^x - 1) / (sqrt(x) f_d sqrt(2 pi)) (Jakes, 1974). Rounding puts the
        // threshold half a level lower.
        let (shares, mean_s) = below(RAYLEIGH, &[-10.0, -5.0, 0.0, 3.0]);
        for (share, db) in shares.iter().zip([-10.05, -5.05, -0.05, 2.95]) {
            let x = libm::pow(10.0, db / 10.0);
            let expected = 1.0 - libm::exp(-x);
            assert!(
                (share / expected - 1.0).abs() < 0.05,
                "{db}: {share} against {expected}"
            );
        }
        let x = libm::pow(10.0, -1.005);
        let expected = (libm::exp(x) - 1.0) / (libm::sqrt(x) * 50.0 * libm::sqrt(TAU));
        assert!(
            (mean_s / expected - 1.0).abs() < 0.06,
            "{mean_s} against {expected}"
        );
    }

    #[test]
    fn rice_fading_has_the_share_of_time_of_the_closed_form() {
        // K = 10 dB. P(power < x) is the integral of the density e^-(x/s + K) I0(2 sqrt(K x / s)) / s with s = 0.1.
        let signal = StateSignal {
            direct_db: Some(0.0),
            multipath_db: -10.0,
            ..RAYLEIGH
        };
        let bessel = |z: f64| {
            let (mut term, mut sum) = (1.0, 1.0);
            for k in 1..200 {
                term *= z * z / (4.0 * f64::from(k) * f64::from(k));
                sum += term;
            }
            sum
        };
        let share_below = |x: f64| {
            let n = 4000;
            let width = x / f64::from(n);
            (0..n)
                .map(|i| (f64::from(i) + 0.5) * width)
                .map(|y| {
                    libm::exp(-y / 0.1 - 10.0) * bessel(2.0 * libm::sqrt(10.0 * y / 0.1)) / 0.1
                        * width
                })
                .sum::<f64>()
        };
        let (shares, _) = below(signal, &[-5.0, -2.0, 0.0, 2.0]);
        for (share, db) in shares.iter().zip([-5.05, -2.05, -0.05, 1.95]) {
            let expected = share_below(libm::pow(10.0, db / 10.0));
            let error = (share - expected).abs();
            assert!(
                error < 0.05 * expected.min(1.0 - expected) + 0.002,
                "{db}: {share} against {expected}"
            );
        }
    }

    #[test]
    fn shadowing_in_db_is_normal() {
        let signal = StateSignal {
            direct_db: Some(-10.0),
            direct_sigma_db: 3.0,
            multipath_db: -60.0,
            multipath_sigma_db: 0.0,
        };
        let (shares, _) = below(signal, &[-13.0, -10.0, -7.0]);
        for (share, expected) in shares.iter().zip([0.1587, 0.5, 0.8413]) {
            assert!(
                (share - expected).abs() < 0.03,
                "{share} against {expected}"
            );
        }
    }

    #[test]
    fn shadowing_is_standard_normal_and_falls_to_1_over_e() {
        // The second case has a step as long as the correlation time.
        for (step_ns, lag, expected) in [(1_000_000, 50, libm::exp(-1.0)), (50_000_000, 1, 0.230_7)]
        {
            let pace = FadingPace { step_ns, ..PACE };
            let (mut squares, mut products, mut count) = (0.0, 0.0, 0.0);
            for seed in 0..400 {
                let mut rng = rng(seed, Purpose::Fading);
                let mut process = Shadowing::new(pace, &mut rng);
                let values: Vec<_> = (0..2000).map(|_| process.step(&mut rng)).collect();
                squares += values.iter().map(|x| x * x).sum::<f64>();
                let pairs = values.iter().zip(&values[lag..]);
                products += pairs.map(|(a, b)| a * b).sum::<f64>() * 2000.0 / (2000 - lag) as f64;
                count += 2000.0;
            }
            assert!((squares / count - 1.0).abs() < 0.03, "{squares} {count}");
            let found = products / squares;
            assert!((found - expected).abs() < 0.03, "{found} {expected}");
        }
    }

    #[test]
    fn states_follow_the_chain() {
        let chain = ChainParams {
            clock: Clock::Time,
            states: vec![
                (StateLoss::Packets(0.0), Stay::Exponential(3e8)),
                (StateLoss::Packets(0.0), Stay::Exponential(1e8)),
            ],
            jumps: vec![vec![0.0, 1.0], vec![1.0, 0.0]],
            start: vec![1.0, 0.0],
        };
        let pace = FadingPace {
            steps: 2_000_000,
            step_ns: 1_000_000,
            ..PACE
        };
        let steps: u64 = Fading::new(
            chain,
            vec![RAYLEIGH; 2],
            pace,
            rng(3, Purpose::States),
            rng(3, Purpose::Fading),
        )
        .filter(|run| run.state == 1)
        .map(|run| run.steps)
        .sum();
        assert!((steps as f64 / 2e6 - 0.25).abs() < 0.012, "{steps}");
    }
}
