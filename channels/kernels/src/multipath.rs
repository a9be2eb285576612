//! The multipath of a moving terminal: a complex Gaussian process with the classical Doppler spectrum, as a sum of
//! plane waves that arrive from all directions with equal power.
//!
//! The Monte Carlo method: one direction at random in each of [`WAVES`] equal sectors, and a random phase for each
//! wave, so that the autocorrelation over all seeds is J0(2 pi f_d t) exactly (W. C. Jakes, "Microwave Mobile
//! Communications", 1974; P. Hoeher, "A Statistical Discrete-Time Model for the WSSUS Multipath Channel", IEEE Trans.
//! Veh. Tech. 41(4), 1992). A sum of N waves is Gaussian up to terms of order 1/N: the share of time below a low
//! level is too small by 1/(2 N).

use std::f64::consts::TAU;

use crate::rng::StreamRng;

/// Number of plane waves. With 512 the share of time below a low level is 0.1 % too small.
const WAVES: usize = 512;
/// Amplitude of one wave: 1 / sqrt(`WAVES`).
const SCALE: f64 = 0.044_194_173_824_159_22;
/// Sums are accumulated in this many parts, so that the compiler uses vector instructions.
const LANES: usize = 4;
/// The sum is evaluated this often per period of the maximum Doppler shift. Between the knots it is interpolated by a
/// cubic, with an error of (2 pi / 16)^4 / 384 or 6e-5 of the amplitude.
const KNOTS_PER_PERIOD: f64 = 16.0;
/// The maximum number of steps between two knots.
const MAX_STEPS_PER_KNOT: f64 = 65_536.0;

/// The waves: the present phasors, and the turn of each from knot to knot.
#[derive(Clone, Debug, Default)]
struct Waves {
    cos: Vec<f64>,
    sin: Vec<f64>,
    turn: Vec<f64>,
    turn_cos: Vec<f64>,
    turn_sin: Vec<f64>,
}

/// The sum at one knot.
#[derive(Clone, Copy, Debug, Default)]
struct Knot {
    value: [f64; 2],
    /// Change per knot; unused if every step is a knot.
    slope: [f64; 2],
}

/// The process, step by step.
#[derive(Clone, Debug)]
pub(crate) struct Multipath {
    waves: Waves,
    steps_per_knot: u32,
    /// Steps since the knot `before`.
    step: u32,
    before: Knot,
    after: Knot,
}

impl Multipath {
    /// Starts the process; `doppler_hz` is the maximum Doppler shift.
    pub fn new(doppler_hz: f64, step_ns: u64, rng: &mut StreamRng) -> Self {
        let step_s = step_ns as f64 / 1e9;
        let steps = 1.0 / (KNOTS_PER_PERIOD * doppler_hz * step_s);
        let steps_per_knot = steps.clamp(1.0, MAX_STEPS_PER_KNOT) as u32;
        let max_turn = TAU * doppler_hz * step_s * f64::from(steps_per_knot);
        let mut multipath = Self {
            waves: Waves::new(max_turn, rng),
            steps_per_knot,
            step: 0,
            before: Knot::default(),
            after: Knot::default(),
        };
        if steps_per_knot > 1 {
            multipath.before = multipath.waves.next_knot();
            multipath.after = multipath.waves.next_knot();
        }
        multipath
    }

    /// The in-phase and quadrature components at the next step; their mean power is 1.
    pub fn step(&mut self) -> [f64; 2] {
        if self.steps_per_knot == 1 {
            return self.waves.next_value();
        }
        if self.step == self.steps_per_knot {
            self.before = self.after;
            self.after = self.waves.next_knot();
            self.step = 0;
        }
        let fraction = f64::from(self.step) / f64::from(self.steps_per_knot);
        self.step += 1;
        hermite(&self.before, &self.after, fraction)
    }
}

impl Waves {
    /// One wave per sector. A wave from straight ahead turns by `max_turn` from knot to knot.
    fn new(max_turn: f64, rng: &mut StreamRng) -> Self {
        let mut waves = Self::default();
        for sector in 0..WAVES {
            let direction = TAU * (sector as f64 + rng.unit()) / WAVES as f64;
            let phase = TAU * rng.unit();
            let turn = max_turn * libm::cos(direction);
            waves.cos.push(libm::cos(phase));
            waves.sin.push(libm::sin(phase));
            waves.turn.push(turn);
            waves.turn_cos.push(libm::cos(turn));
            waves.turn_sin.push(libm::sin(turn));
        }
        waves
    }

    /// The sum at the present knot; then the waves advance.
    fn next_value(&mut self) -> [f64; 2] {
        let value = [sum(&self.cos), sum(&self.sin)].map(|sum| sum * SCALE);
        self.advance();
        value
    }

    /// The sum and its slope at the present knot; then the waves advance.
    fn next_knot(&mut self) -> Knot {
        let slope = [-dot(&self.turn, &self.sin), dot(&self.turn, &self.cos)];
        Knot {
            slope: slope.map(|sum| sum * SCALE),
            value: self.next_value(),
        }
    }

    /// Advances to the next knot.
    fn advance(&mut self) {
        let turns = self.turn_cos.iter().zip(&self.turn_sin);
        for ((cos, sin), (turn_cos, turn_sin)) in self.cos.iter_mut().zip(&mut self.sin).zip(turns)
        {
            let turned = *cos * turn_cos - *sin * turn_sin;
            *sin = *sin * turn_cos + *cos * turn_sin;
            *cos = turned;
        }
    }
}

fn sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for part in values.chunks_exact(LANES) {
        for (lane, value) in lanes.iter_mut().zip(part) {
            *lane += value;
        }
    }
    lanes.iter().sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

/// The cubic Hermite interpolation between two knots; `fraction` is 0 at the first and 1 at the second.
fn hermite(before: &Knot, after: &Knot, fraction: f64) -> [f64; 2] {
    let rest = 1.0 - fraction;
    let (near, far) = (rest * rest, fraction * fraction);
    std::array::from_fn(|i| {
        near * ((1.0 + 2.0 * fraction) * before.value[i] + fraction * before.slope[i])
            + far * ((3.0 - 2.0 * fraction) * after.value[i] - rest * after.slope[i])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng;

    #[test]
    fn interpolation_follows_the_sum_of_the_waves() {
        // The same waves, with a knot at every step and with a knot at every twelfth.
        let (doppler_hz, step_ns) = (5.0, 1_000_000);
        let mut coarse = Multipath::new(doppler_hz, step_ns, &mut test_rng(3));
        assert_eq!(coarse.steps_per_knot, 12);
        let turn = TAU * doppler_hz * step_ns as f64 / 1e9;
        let mut fine = Waves::new(turn, &mut test_rng(3));
        for step in 0..50_000 {
            let (a, b) = (coarse.step(), fine.next_value());
            let off = libm::hypot(a[0] - b[0], a[1] - b[1]);
            assert!(off < 4e-4, "step {step}: {a:?} against {b:?}");
        }
    }

    #[test]
    fn autocorrelation_is_that_of_isotropic_scattering() {
        // J0(2 pi f_d t) at f_d t = 0.1, 0.25, 0.5 and 1.
        let (doppler_hz, step_ns) = (50.0, 1_000_000);
        let lags = [
            (2, 0.903_71),
            (5, 0.472_00),
            (10, -0.304_24),
            (20, 0.220_28),
        ];
        let mut sums = [0.0; 4];
        let (seeds, steps) = (12_u32, 20_000);
        for seed in 0..seeds {
            let mut process = Multipath::new(doppler_hz, step_ns, &mut test_rng(u64::from(seed)));
            let values: Vec<_> = (0..steps).map(|_| process.step()).collect();
            for (sum, (lag, _)) in sums.iter_mut().zip(lags) {
                let pairs = values.iter().zip(&values[lag..]);
                let product: f64 = pairs.map(|(a, b)| a[0] * b[0] + a[1] * b[1]).sum();
                *sum += product / (steps - lag) as f64;
            }
        }
        for (sum, (lag, expected)) in sums.iter().zip(lags) {
            let found = sum / f64::from(seeds);
            assert!((found - expected).abs() < 0.01, "{lag}: {found}");
        }
    }
}
