//! Compound TCP: the sum of Reno's window and of a second one that increases while no queue builds up.
//!
//! Does not depend on slow start or recovery. Read draft-sridharan-tcpm-ctcp-02 §3 first, then `docs/variants/compound.md`.

use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{parameters, starts_with};
use crate::cc::rtt_round::{Delay, RttRound};
use crate::cc::{AckEvidence, LOSS_WINDOW, Signal, SignalEvidence, Window, WindowIncrease};
use crate::sim::time::Nanos;

parameters! {
    /// Parameters of Compound TCP.
    pub struct CompoundParams {
        /// Factor of the delay window's increase.
        alpha: number(0.125, "", 0.001, 10.0, "draft-sridharan-tcpm-ctcp-02 §3.2"),
        /// Decrease on a loss, as a share of the window.
        beta: number(0.5, "", 0.01, 0.99, "draft-sridharan-tcpm-ctcp-02 §3.2"),
        /// Exponent of the delay window's increase.
        k: number(0.75, "", 0.0, 1.0, "draft-sridharan-tcpm-ctcp-02 §3.2"),
        /// Segments waiting from which on the delay window shrinks.
        gamma: number(30.0, "segments", 0.1, 1e4, "draft-sridharan-tcpm-ctcp-02 §3.3"),
        /// Segments by which it shrinks per segment waiting.
        zeta: number(1.0, "", 0.0, 100.0, "Linux of old; the draft leaves it open"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "compound",
    other_names: &["ctcp"],
    family: "loss and delay",
    summary: "Reno's window plus a delay-based window",
    source: "draft-sridharan-tcpm-ctcp-02",
    year: 2008,
    params: CompoundParams::SPECS,
    parts: |_, values, _| ControllerParts::own(Compound::new(CompoundParams::of(values))),
    ns2_module: true,
    ..Definition::BASE
};

/// State of Compound TCP: `Window::cwnd` is the sum of both windows (the draft's `win`).
#[derive(Clone, Debug, Default)]
pub struct Compound {
    params: CompoundParams,
    round: RttRound,
    /// The delay of the last round trip, until an ACK uses it to increase the window.
    measured: Option<Delay>,
    /// The delay window, in segments.
    dwnd: f64,
}

impl CompoundParams {
    /// draft-sridharan-tcpm-ctcp-02 §3.2: the delay window after a round trip.
    fn dwnd_after_round(&self, dwnd: f64, win: f64, delay: &Delay) -> f64 {
        let diff = delay.backlog(win);
        if diff < self.gamma {
            dwnd + (self.alpha * libm::pow(win, self.k) - 1.0).max(0.0)
        } else {
            (dwnd - self.zeta * diff).max(0.0)
        }
    }
}

starts_with!(Compound, CompoundParams);

impl Compound {
    /// Idle time and the end of recovery lower the sum alone: a segment of it is Reno's at least.
    fn bound(&mut self, window: &Window) {
        self.dwnd = self.dwnd.min(window.cwnd - LOSS_WINDOW).max(0.0);
    }
}

impl WindowIncrease for Compound {
    const OBSERVES: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        self.round.add_sample(ack);
        if self.round.turns(ack) {
            self.measured = self.round.mean_delay();
            self.round.clear();
        }
    }

    /// draft-sridharan-tcpm-ctcp-02 §3.1: Reno's part gains 1/win per segment acknowledged.
    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        self.bound(window);
        window.cwnd += acked / window.cwnd;
        if let Some(delay) = self.measured.take() {
            let dwnd = self.params.dwnd_after_round(self.dwnd, window.cwnd, &delay);
            window.cwnd += dwnd - self.dwnd;
            self.dwnd = dwnd;
        }
    }

    /// draft-sridharan-tcpm-ctcp-02 §3.2: Reno's part halves, the delay window takes what is left of (1 - beta) win.
    fn ssthresh_after(&mut self, window: &Window, signal: &SignalEvidence) -> f64 {
        if matches!(signal.signal, Signal::Timeout | Signal::RepeatedTimeout) {
            return signal.flight / 2.0;
        }
        self.bound(window);
        let half = (window.cwnd - self.dwnd) / 2.0;
        self.dwnd = (window.cwnd * (1.0 - self.params.beta) - half).max(0.0);
        half + self.dwnd
    }

    /// RTT samples from recovery do not count as a round trip.
    fn on_recovery_exit(&mut self, ack: &AckEvidence) {
        self.round.restart(ack);
        self.measured = None;
    }

    fn undo(&mut self, before: &Self) {
        self.dwnd = before.dwnd;
    }

    fn on_idle(&mut self, _idle: Nanos) {
        self.dwnd = 0.0;
    }

    /// draft-sridharan-tcpm-ctcp-02 §3.2: no delay window in slow start.
    fn on_timeout(&mut self) {
        self.dwnd = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn the_delay_window_grows_below_gamma_and_gives_back_what_waits_above() {
        let params = CompoundParams::default();
        let delay = |rtt_s| Delay { base_s: 0.1, rtt_s };
        // 256^0.75 / 8 - 1 = 7; below a window of 16 nothing.
        near(params.dwnd_after_round(5.0, 256.0, &delay(0.1)), 12.0);
        near(params.dwnd_after_round(5.0, 9.0, &delay(0.1)), 5.0);
        // 256 · 0.025 / 0.125 = 51.2 segments wait.
        near(params.dwnd_after_round(60.0, 256.0, &delay(0.125)), 8.8);
        near(params.dwnd_after_round(50.0, 256.0, &delay(0.125)), 0.0);
        // 30 of 60 segments wait at twice the base: gamma itself is too much.
        near(params.dwnd_after_round(40.0, 60.0, &delay(0.2)), 10.0);
    }

    #[test]
    fn a_loss_halves_the_sum_and_a_timeout_ends_the_delay_window() {
        let mut compound = Compound {
            dwnd: 60.0,
            ..Compound::default()
        };
        let signal = |signal| SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 90.0,
            signal,
        };
        // cwnd 40 -> 20; dwnd = 50 - 20.
        near(
            compound.ssthresh_after(&Window::at(100.0), &signal(Signal::Loss)),
            50.0,
        );
        near(compound.dwnd, 30.0);
        near(
            compound.ssthresh_after(&Window::at(100.0), &signal(Signal::Timeout)),
            45.0,
        );
        compound.on_timeout();
        near(compound.dwnd, 0.0);
    }

    #[test]
    fn a_sum_that_was_cut_elsewhere_bounds_the_delay_window() {
        let mut compound = Compound {
            dwnd: 60.0,
            ..Compound::default()
        };
        let mut window = Window::at(10.0);
        compound.on_ack(&mut window, 1.0, &AckEvidence::default());
        near(compound.dwnd, 9.0);
        near(window.cwnd, 10.1);
    }

    #[test]
    fn a_window_of_acks_buys_one_segment_without_rtt_samples() {
        let (mut compound, mut window) = (Compound::default(), Window::at(100.0));
        for _ in 0..100 {
            compound.on_ack(&mut window, 1.0, &AckEvidence::default());
        }
        assert!(
            (0.99..1.0).contains(&(window.cwnd - 100.0)),
            "{}",
            window.cwnd
        );
    }
}
