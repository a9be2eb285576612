//! TCP Illinois: the queueing delay sets how fast the window increases and by how much a loss decreases it.
//!
//! Does not depend on slow start or recovery. Read Liu, Başar and Srikant 2008 §3 first, then `docs/variants/illinois.md`.

use super::reno::AckCounter;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::parameters;
use crate::cc::rtt_round::{Delay, RttRound};
use crate::cc::{AckEvidence, SignalEvidence, Window, WindowIncrease};
use crate::sim::time::{Nanos, seconds};

parameters! {
    /// Parameters of TCP Illinois.
    pub struct IllinoisParams {
        /// Maximum increase per round trip.
        alpha_max: number(10.0, "segments", 1.0, 1000.0, "Liu et al. 2008 §3.3"),
        /// Minimum increase per round trip.
        alpha_min: number(0.3, "segments", 0.01, 1.0, "Liu et al. 2008 §3.3"),
        /// Minimum decrease on a loss, as a share of the window.
        beta_min: number(0.125, "", 0.01, 0.5, "Liu et al. 2008 §3.3"),
        /// Maximum decrease on a loss, as a share of the window.
        beta_max: number(0.5, "", 0.01, 0.9, "Liu et al. 2008 §3.3"),
        /// Window below which it is Reno.
        window_threshold: number(15.0, "segments", 0.0, 1e6, "Linux; Liu et al. 2008 have 10"),
        /// Round trips of low delay before the increase returns to its maximum.
        theta: whole(5, "", 1, 100, "Liu et al. 2008 §3.3"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "illinois",
    family: "loss and delay",
    summary: "increase and decrease depend on the queueing delay",
    source: "Liu et al. 2008",
    year: 2008,
    params: IllinoisParams::SPECS,
    ordered: |values| {
        let p = IllinoisParams::of(values);
        vec![
            [("alpha_min", p.alpha_min), ("alpha_max", p.alpha_max)],
            [("beta_min", p.beta_min), ("beta_max", p.beta_max)],
        ]
    },
    parts: |_, values, _| ControllerParts::own(Illinois::new(IllinoisParams::of(values))),
    ns2_module: true,
    ..Definition::BASE
};

/// Liu et al. 2008 §3.3: shares of the maximum queueing delay above which the increase falls (eta_1) …
const ETA_1: f64 = 0.01;
/// … and between which the decrease on a loss rises (eta_2, eta_3).
const ETA_2: f64 = 0.1;
const ETA_3: f64 = 0.8;

/// State of TCP Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    params: IllinoisParams,
    counter: AckCounter,
    round: RttRound,
    /// The delay of the last round trip, until an ACK uses it to increase the window.
    measured: Option<Delay>,
    max_rtt: Nanos,
    alpha: f64,
    beta: f64,
    /// Round trips of low delay since the delay was above eta_1; none while it has never been.
    low_rounds: Option<u32>,
}

impl IllinoisParams {
    /// Liu et al. 2008 §3.3: increase at the mean queueing delay `d` of at most `d_max`, above eta_1.
    fn alpha(&self, d: f64, d_max: f64) -> f64 {
        let (d, d_max) = (d - ETA_1 * d_max, d_max - ETA_1 * d_max);
        let ratio = self.alpha_max / self.alpha_min;
        d_max * self.alpha_max / (d_max + d * (ratio - 1.0))
    }

    /// Liu et al. 2008 §3.3: decrease on a loss, as a share of the window.
    fn beta(&self, d: f64, d_max: f64) -> f64 {
        let (low, high) = (ETA_2 * d_max, ETA_3 * d_max);
        if d <= low {
            self.beta_min
        } else if d >= high {
            self.beta_max
        } else {
            (self.beta_min * high - self.beta_max * low + (self.beta_max - self.beta_min) * d)
                / (high - low)
        }
    }
}

impl Illinois {
    /// TCP Illinois with these parameters.
    pub fn new(params: IllinoisParams) -> Self {
        Self {
            params,
            counter: AckCounter::default(),
            round: RttRound::default(),
            measured: None,
            max_rtt: 0,
            alpha: params.alpha_max,
            beta: params.beta_min,
            low_rounds: None,
        }
    }

    /// The once-per-round update of increase and decrease.
    fn update(&mut self, cwnd: f64, delay: &Delay) {
        if cwnd < self.params.window_threshold {
            (self.alpha, self.beta) = (1.0, 0.5);
            return;
        }
        let d = delay.rtt_s - delay.base_s;
        let d_max = seconds(self.max_rtt) - delay.base_s;
        self.beta = self.params.beta(d, d_max);
        if d > ETA_1 * d_max {
            self.low_rounds = Some(0);
            self.alpha = self.params.alpha(d, d_max);
            return;
        }
        // A single low sample may be chance: back to the maximum increase only after theta low rounds.
        let waited = self
            .low_rounds
            .map_or(self.params.theta, |rounds| rounds + 1);
        if waited >= self.params.theta {
            self.alpha = self.params.alpha_max;
            self.low_rounds = None;
        } else {
            self.low_rounds = Some(waited);
        }
    }
}

impl WindowIncrease for Illinois {
    const OBSERVES: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        self.round.add_sample(ack);
        self.max_rtt = self.max_rtt.max(ack.rtt.unwrap_or(0));
        if self.round.turns(ack) {
            self.measured = self.round.mean_delay();
            self.round.clear();
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        if let Some(delay) = self.measured.take() {
            self.update(window.cwnd, &delay);
        }
        let per_increment = window.cwnd / self.alpha;
        self.counter.count(&mut window.cwnd, per_increment, acked);
    }

    fn ssthresh_after(&mut self, window: &Window, _signal: &SignalEvidence) -> f64 {
        libm::floor((1.0 - self.beta) * window.cwnd)
    }

    /// RTT samples from recovery do not count as a round trip.
    fn on_recovery_exit(&mut self, ack: &AckEvidence) {
        self.round.restart(ack);
        self.measured = None;
    }

    fn on_decrease(&mut self, _before: &Window) {
        self.counter = AckCounter::default();
    }

    fn on_timeout(&mut self) {
        (self.alpha, self.beta, self.low_rounds) = (1.0, 0.5, None);
        self.round.clear();
        self.measured = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;
    use crate::sim::time::MILLISECOND;

    const PATH: Delay = Delay {
        base_s: 0.1,
        rtt_s: 0.1,
    };

    #[test]
    fn growth_and_cost_by_hand_over_the_delay() {
        let params = IllinoisParams::default();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        // At the maximum delay the minimum increase; at eta_1 the maximum.
        near(params.alpha(0.1, 0.1), 0.3);
        near(params.alpha(0.001, 0.1), 10.0);
        // Half of the way: 10 / (1 + 0.5 (100/3 - 1)).
        near(
            params.alpha(0.0505, 0.1),
            10.0 / (1.0 + 0.5 * (10.0 / 0.3 - 1.0)),
        );
        near(params.beta(0.01, 0.1), 0.125);
        near(params.beta(0.045, 0.1), 0.3125);
        near(params.beta(0.08, 0.1), 0.5);
    }

    #[test]
    fn low_delay_restores_the_greatest_growth_only_after_theta_rounds() {
        let mut illinois = Illinois {
            max_rtt: 200 * MILLISECOND,
            ..Illinois::new(IllinoisParams::default())
        };
        let queued = Delay { rtt_s: 0.2, ..PATH };
        illinois.update(100.0, &queued);
        for _ in 0..4 {
            illinois.update(100.0, &PATH);
            assert!((illinois.alpha - 0.3).abs() < 1e-9);
        }
        illinois.update(100.0, &PATH);
        assert_eq!(illinois.alpha, 10.0);
        illinois.update(14.0, &queued);
        assert_eq!((illinois.alpha, illinois.beta), (1.0, 0.5));
    }

    #[test]
    fn a_window_of_acks_buys_alpha_and_a_loss_costs_beta() {
        let (mut illinois, mut window) =
            (Illinois::new(IllinoisParams::default()), Window::at(100.0));
        let ack = AckEvidence::default();
        for _ in 0..100 {
            illinois.on_ack(&mut window, 1.0, &ack);
        }
        assert!((9.0..=10.0).contains(&(window.cwnd - 100.0)));
        let loss = SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 0.0,
            signal: Signal::Loss,
        };
        assert_eq!(illinois.ssthresh_after(&Window::at(80.0), &loss), 70.0);
        illinois.on_timeout();
        assert_eq!(illinois.ssthresh_after(&Window::at(80.0), &loss), 40.0);
    }
}
