//! CUBIC's congestion avoidance (RFC 9438), windows in segments and times in seconds as the RFC writes them.
//!
//! Does not depend on slow start or recovery. Read RFC 9438 §4 first; each equation is a separate function here.

use super::linux_cubic::LinuxCubic;
use super::ns2_linux_cubic::Ns2LinuxCubic;
use crate::cc::decrease::Factor;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{ParamValues, parameters, starts_with};
use crate::cc::{AckEvidence, Increase, Window, WindowIncrease};
use crate::config::{Profile, SlowStartKind};
use crate::sim::time::{Nanos, seconds};

parameters! {
    /// Constants of RFC 9438.
    pub struct CubicParams {
        /// Steepness.
        c: number(0.4, "segments/s³", 0.001, 100.0, "RFC 9438 §5.1"),
        /// What a loss leaves of the window.
        beta: number(0.7, "", 0.1, 0.99, "RFC 9438 §4.6"),
        /// Release bandwidth to newcomers.
        fast_convergence: flag(true, "RFC 9438 §4.7"),
        /// Never slower than Reno would be.
        reno_friendly: flag(true, "RFC 9438 §4.3"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "cubic",
    family: "loss",
    summary: "cubic window increase with the recovery of the stack profile (RFC 9438)",
    source: "RFC 9438",
    year: 2023,
    params: CubicParams::SPECS,
    // Linux's constants are what the profile promises.
    has_params: |profile| profile != Profile::Linux,
    slow_start: |profile| match profile {
        Profile::Linux => SlowStartKind::Hystart,
        Profile::Rfc | Profile::Ns2 => SlowStartKind::Standard,
    },
    parts: |stack, values, _| {
        if stack.runs_ns2_module() {
            let params = CubicParams::of(values);
            let decrease = Factor::of(params.beta, stack.profile);
            return ControllerParts::Rules(Ns2LinuxCubic::new(params).into(), decrease.into());
        }
        let (increase, beta) = parts(stack.profile, values);
        ControllerParts::Rules(increase, Factor::of(beta, stack.profile).into())
    },
    ns2_module: true,
    ..Definition::BASE
};

/// CUBIC's increase under `profile`, and its factor of decrease.
pub(super) fn parts(profile: Profile, values: &ParamValues) -> (Increase, f64) {
    if profile == Profile::Linux {
        return (LinuxCubic::default().into(), LinuxCubic::BETA);
    }
    let params = CubicParams::of(values);
    (Cubic::new(params).into(), params.beta)
}

/// State of the window increase function.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    params: CubicParams,
    /// Window at the plateau; none before the first decrease or after a timeout.
    w_max: Option<f64>,
    /// cwnd just before the last decrease.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Nanos,
    w_max: f64,
    k_s: f64,
    w_est: f64,
}

/// §4.2 equation 1: `W_cubic(t) = C (t - K)³ + W_max`.
fn w_cubic(c: f64, t_s: f64, k_s: f64, w_max: f64) -> f64 {
    let offset = t_s - k_s;
    c * offset * offset * offset + w_max
}

/// §4.2 equation 2: `K = cbrt((W_max - cwnd_epoch) / C)`.
fn k(c: f64, w_max: f64, cwnd_epoch: f64) -> f64 {
    libm::cbrt((w_max - cwnd_epoch) / c)
}

/// §4.3: the additive increase with which AIMD(α, β) matches Reno's average window.
fn alpha_cubic(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// §4.7: with fast convergence a flow that did not regain its `w_max` remembers less than it had.
fn w_max_after_reduction(params: &CubicParams, cwnd: f64, w_max: Option<f64>) -> f64 {
    if params.fast_convergence && w_max.is_some_and(|w_max| cwnd < w_max) {
        cwnd * (1.0 + params.beta) / 2.0
    } else {
        cwnd
    }
}

starts_with!(Cubic, CubicParams);

impl Cubic {
    /// Grows `cwnd` for `acked` segments.
    fn increase(&mut self, cwnd: &mut f64, acked: f64, ack: &AckEvidence) {
        let params = self.params;
        let mut epoch = self
            .epoch
            .unwrap_or_else(|| self.begin_epoch(*cwnd, ack.now));
        let rtt_s = seconds(ack.srtt.unwrap_or(0));
        let t_s = seconds(ack.now.saturating_sub(epoch.start));
        // §4.2 equation 3: the target lies one round trip ahead, at most half as much again.
        let target =
            w_cubic(params.c, t_s + rtt_s, epoch.k_s, epoch.w_max).clamp(*cwnd, 1.5 * *cwnd);
        // §4.3 equation 4: α is 1 once W_est has reached the window before the decrease.
        let alpha = if epoch.w_est < self.cwnd_prior {
            alpha_cubic(params.beta)
        } else {
            1.0
        };
        epoch.w_est += alpha * acked / *cwnd;
        self.epoch = Some(epoch);
        let slope = (target - *cwnd) / *cwnd;
        let grown = *cwnd + slope * acked;
        let reno_rules =
            params.reno_friendly && w_cubic(params.c, t_s, epoch.k_s, epoch.w_max) < epoch.w_est;
        *cwnd = if reno_rules {
            grown.max(epoch.w_est)
        } else {
            grown
        };
    }

    /// §4.2 and, for a first stage after slow start or a timeout, §4.8 and §4.10: K = 0, `W_max` = cwnd.
    fn begin_epoch(&self, cwnd: f64, now: Nanos) -> Epoch {
        let w_max = self.w_max.unwrap_or(cwnd);
        let (w_max, k_s) = if cwnd < w_max {
            (w_max, k(self.params.c, w_max, cwnd))
        } else {
            (cwnd, 0.0)
        };
        Epoch {
            start: now,
            w_max,
            k_s,
            w_est: cwnd,
        }
    }

    /// §4.6 and §4.7: a decrease from `cwnd`.
    fn reduce(&mut self, cwnd: f64) {
        self.w_max = Some(w_max_after_reduction(&self.params, cwnd, self.w_max));
        self.cwnd_prior = cwnd;
        self.epoch = None;
    }
}

impl WindowIncrease for Cubic {
    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence) {
        self.increase(&mut window.cwnd, acked, ack);
    }

    fn on_decrease(&mut self, before: &Window) {
        self.reduce(before.cwnd);
    }

    /// §4.8: the stage after a timeout starts flat.
    fn on_timeout(&mut self) {
        self.w_max = None;
        self.epoch = None;
    }

    /// §4.9.2: the curve goes on as if nothing had been.
    fn undo(&mut self, before: &Self) {
        *self = before.clone();
    }

    /// The epoch restarts: the sender was idle (§5.8).
    fn on_idle(&mut self, _idle: Nanos) {
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!(
            (value - expected).abs() <= tolerance,
            "{value} is not {expected} ± {tolerance}"
        );
    }

    #[test]
    fn equations_by_hand() {
        // W_max 100 reduced to 70: K = cbrt(30 / 0.4) = 4.2172 s.
        near(k(0.4, 100.0, 70.0), 4.217_163, 1e-6);
        near(w_cubic(0.4, 0.0, 4.217_163, 100.0), 70.0, 1e-4);
        near(w_cubic(0.4, 4.217_163, 4.217_163, 100.0), 100.0, 1e-9);
        near(w_cubic(0.4, 6.217_163, 4.217_163, 100.0), 103.2, 1e-9);
        near(alpha_cubic(0.7), 0.529_411_8, 1e-6);
    }

    #[test]
    fn fast_convergence_remembers_less_only_below_the_old_plateau() {
        let params = CubicParams::default();
        near(
            w_max_after_reduction(&params, 80.0, Some(100.0)),
            68.0,
            1e-9,
        );
        near(
            w_max_after_reduction(&params, 120.0, Some(100.0)),
            120.0,
            1e-9,
        );
        near(w_max_after_reduction(&params, 80.0, None), 80.0, 1e-9);
        let off = CubicParams {
            fast_convergence: false,
            ..params
        };
        near(w_max_after_reduction(&off, 80.0, Some(100.0)), 80.0, 1e-9);
    }

    /// Feeds a window of ACKs every `rtt_ms` and returns cwnd once per round trip.
    fn rounds(cubic: &mut Cubic, mut cwnd: f64, rtt_ms: u64, n: usize) -> Vec<f64> {
        let mut now = 0;
        let mut out = Vec::new();
        for _ in 0..n {
            let acks = cwnd as u64;
            for i in 0..acks {
                let ack = AckEvidence {
                    now: now + i * rtt_ms * MILLISECOND / acks,
                    delivered: 1,
                    srtt: Some(rtt_ms * MILLISECOND),
                    cwnd_limited: true,
                    ..AckEvidence::default()
                };
                cubic.increase(&mut cwnd, 1.0, &ack);
            }
            now += rtt_ms * MILLISECOND;
            out.push(cwnd);
        }
        out
    }

    #[test]
    fn after_a_reduction_the_window_follows_the_cubic_curve() {
        let mut cubic = Cubic::new(CubicParams {
            reno_friendly: false,
            ..CubicParams::default()
        });
        cubic.reduce(1000.0);
        let windows = rounds(&mut cubic, 700.0, 100, 120);
        let k_s = k(0.4, 1000.0, 700.0);
        for (round, &cwnd) in windows.iter().enumerate().skip(5) {
            let t_s = (round + 1) as f64 * 0.1;
            near(cwnd, w_cubic(0.4, t_s, k_s, 1000.0), 0.02 * cwnd);
        }
    }

    #[test]
    fn on_short_paths_it_grows_like_reno_with_its_own_alpha_then_one_per_round() {
        let mut cubic = Cubic::new(CubicParams::default());
        cubic.reduce(20.0);
        let windows = rounds(&mut cubic, 14.0, 10, 30);
        // α = 0.529 per round trip until 20 segments, 1 after that.
        near(windows[5] - windows[0], 5.0 * 0.529, 0.15);
        near(windows[28] - windows[23], 5.0, 0.4);
    }

    #[test]
    fn growth_is_at_most_half_a_window_per_round_trip() {
        let mut cubic = Cubic::new(CubicParams::default());
        cubic.reduce(100_000.0);
        let windows = rounds(&mut cubic, 10.0, 1000, 2);
        assert!(
            windows[0] <= 10.0 * 1.7 && windows[0] >= 14.0,
            "{windows:?}"
        );
    }
}
