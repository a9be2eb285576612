//! Veno: Reno that distinguishes random loss from congestion by the backlog that Vegas estimates. With fewer than beta
//! segments waiting a loss decreases the window by a fifth; with more, by half, and the increase is halved too.
//!
//! Does not depend on recovery. Read Fu and Liew 2003 §III first, then `docs/variants/veno.md`.

use super::reno::Reno;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{parameters, starts_with};
use crate::cc::rtt_round::RttRound;
use crate::cc::{AckEvidence, SignalEvidence, Window, WindowIncrease};
use crate::sim::time::Nanos;

parameters! {
    /// Parameters of Veno.
    pub struct VenoParams {
        /// Segments waiting from which on the path counts as congested.
        beta: number(3.0, "segments", 0.0, 1000.0, "Fu and Liew 2003 §III-A"),
        /// What remains of the window after a loss that counts as random.
        random_loss_factor: number(0.8, "", 0.5, 1.0, "Fu and Liew 2003 §III-B"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "veno",
    family: "loss and delay",
    summary: "Reno; treats a loss without queueing as random",
    source: "Fu and Liew 2003",
    year: 2003,
    params: VenoParams::SPECS,
    parts: |_, values, _| ControllerParts::own(Veno::new(VenoParams::of(values))),
    ns2_module: true,
    ..Definition::BASE
};

/// State of Veno.
#[derive(Clone, Debug, Default)]
pub struct Veno {
    params: VenoParams,
    round: RttRound,
    reno: Reno,
    /// Segments that waited at the last ACK.
    backlog: f64,
    /// With a backlog, every other increment of Reno is left out; the next one is.
    skips: bool,
}

starts_with!(Veno, VenoParams);

impl Veno {
    fn is_congested(&self) -> bool {
        self.backlog >= self.params.beta
    }
}

impl WindowIncrease for Veno {
    const OBSERVES: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        if ack.rtt.is_some() {
            // The ACK's own sample against the minimum of the connection.
            self.round.clear();
            self.round.add_sample(ack);
        }
    }

    /// Fu and Liew 2003 §III-A: Reno's increase, halved while the available bandwidth is fully used.
    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence) {
        if let Some(delay) = self.round.min_delay() {
            self.backlog = delay.backlog(window.cwnd);
        }
        let before = *window;
        self.reno.on_ack(window, acked, ack);
        if window.cwnd > before.cwnd {
            if self.is_congested() && self.skips {
                *window = before;
            }
            self.skips = !self.skips;
        }
    }

    /// Fu and Liew 2003 §III-B.
    fn ssthresh_after(&mut self, window: &Window, _signal: &SignalEvidence) -> f64 {
        if let Some(delay) = self.round.min_delay() {
            self.backlog = delay.backlog(window.cwnd);
        }
        let factor = if self.is_congested() {
            0.5
        } else {
            self.params.random_loss_factor
        };
        libm::floor(factor * window.cwnd)
    }

    /// ns-2's module has no `min_cwnd`.
    fn recovery_cwnd(&self, after: &Window) -> f64 {
        after.ssthresh
    }

    fn on_decrease(&mut self, before: &Window) {
        self.reno.on_decrease(before);
    }

    fn on_idle(&mut self, _idle: Nanos) {
        self.round.reset_base();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;
    use crate::sim::time::MILLISECOND;

    fn ack(rtt_ms: u64) -> AckEvidence {
        AckEvidence {
            delivered: 1,
            rtt: Some(rtt_ms * MILLISECOND),
            cwnd_limited: true,
            ..AckEvidence::default()
        }
    }

    const LOSS: SignalEvidence = SignalEvidence {
        now: 0,
        lost_total: 0,
        flight: 50.0,
        signal: Signal::Loss,
    };

    fn with_rtt(rtt_ms: u64) -> Veno {
        let mut veno = Veno::default();
        veno.observe(&ack(100));
        veno.observe(&ack(rtt_ms));
        veno
    }

    #[test]
    fn a_loss_costs_a_fifth_below_beta_and_half_from_there() {
        let window = Window::at(50.0);
        // Waiting: 50 · 6/106 = 2.83 and 50 · 7/107 = 3.27.
        let after = |rtt_ms| with_rtt(rtt_ms).ssthresh_after(&window, &LOSS);
        assert_eq!([after(100), after(106), after(107)], [40.0, 40.0, 25.0]);
    }

    #[test]
    fn growth_is_renos_without_a_backlog_and_half_of_it_with_one() {
        let grown = |rtt_ms| {
            let (mut veno, mut window) = (with_rtt(rtt_ms), Window::at(50.0));
            for _ in 0..250 {
                veno.on_ack(&mut window, 1.0, &ack(rtt_ms));
            }
            window.cwnd - 50.0
        };
        // 50 + 51 + 52 + 53 = 206 segments give four increments. With a backlog the second and the fourth are left out:
        // 50 + 51 + 51 + 52 = 204.
        assert_eq!([grown(100), grown(110)], [4.0, 2.0]);
    }
}
