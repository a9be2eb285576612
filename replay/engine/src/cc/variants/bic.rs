//! BIC: binary search between the window after the last decrease and the one before it, then a slow departure.
//!
//! Does not depend on slow start or recovery. Read Xu, Harfoush and Rhee 2004 §III first, then `docs/variants/bic.md`.

use super::reno::AckCounter;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{parameters, starts_with};
use crate::cc::{AckEvidence, SignalEvidence, Window, WindowIncrease};

parameters! {
    /// Parameters of BIC.
    pub struct BicParams {
        /// Window up to which it is Reno.
        low_window: number(14.0, "segments", 1.0, 1e6, "Xu et al. 2004 §III; Linux"),
        /// Maximum increase per round trip (S_max).
        max_increment: number(16.0, "segments", 1.0, 1e6, "Linux; Xu et al. 2004 have 32"),
        /// Round trips that the search takes near the middle, by which the minimum increase (S_min) is smoothed.
        smooth_part: number(20.0, "", 1.0, 1000.0, "Linux"),
        /// Divisor of the distance that one round trip covers.
        search_divisor: number(4.0, "", 2.0, 64.0, "Linux (BICTCP_B); the paper's binary search has 2"),
        /// What remains of the window after a loss.
        beta: number(0.8, "", 0.5, 0.99, "Linux, 819/1024; Xu et al. 2004 have 0.875"),
        /// Release bandwidth to newcomers.
        fast_convergence: flag(true, "Xu et al. 2004 §III-C"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "bic",
    family: "loss",
    summary: "binary search between the last two windows",
    source: "Xu et al. 2004",
    year: 2004,
    params: BicParams::SPECS,
    parts: |_, values, _| ControllerParts::own(Bic::new(BicParams::of(values))),
    ns2_module: true,
    ..Definition::BASE
};

/// Deviation: as Linux, before the first loss at least a segment per 20 acknowledged.
const MAX_ACKED_BEFORE_LOSS: f64 = 20.0;

/// State of BIC.
#[derive(Clone, Debug, Default)]
pub struct Bic {
    params: BicParams,
    /// Window before the last decrease, 0 before the first.
    last_max: f64,
    counter: AckCounter,
}

impl BicParams {
    /// Segments acknowledged per increment of the window.
    fn per_increment(&self, cwnd: f64, last_max: f64) -> f64 {
        let divisor = self.search_divisor;
        if cwnd <= self.low_window {
            return cwnd;
        }
        let increment = if cwnd < last_max {
            // Deviation: a real number. Linux cuts it to a whole one, so that its smooth part begins up to four segments lower.
            let distance = (last_max - cwnd) / divisor;
            if distance > self.max_increment {
                self.max_increment
            } else if distance <= 1.0 {
                divisor / self.smooth_part
            } else {
                distance
            }
        } else if cwnd < last_max + divisor {
            divisor / self.smooth_part
        } else if cwnd < last_max + self.max_increment * (divisor - 1.0) {
            (cwnd - last_max) / (divisor - 1.0)
        } else {
            self.max_increment
        };
        let per_increment = cwnd / increment;
        if last_max > 0.0 {
            per_increment
        } else {
            per_increment.min(MAX_ACKED_BEFORE_LOSS)
        }
    }
}

starts_with!(Bic, BicParams);

impl WindowIncrease for Bic {
    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        let per_increment = self
            .params
            .per_increment(window.cwnd, self.last_max)
            .max(1.0);
        self.counter.count(&mut window.cwnd, per_increment, acked);
    }

    fn ssthresh_after(&mut self, window: &Window, _signal: &SignalEvidence) -> f64 {
        let factor = if window.cwnd <= self.params.low_window {
            0.5
        } else {
            self.params.beta
        };
        libm::floor(factor * window.cwnd)
    }

    /// ns-2's module has no `min_cwnd`.
    fn recovery_cwnd(&self, after: &Window) -> f64 {
        after.ssthresh
    }

    /// Xu et al. 2004 §III-C: a flow that was cut below its last maximum aims lower.
    fn on_decrease(&mut self, before: &Window) {
        self.last_max = if before.cwnd < self.last_max && self.params.fast_convergence {
            before.cwnd * (1.0 + self.params.beta) / 2.0
        } else {
            before.cwnd
        };
        self.counter = AckCounter::default();
    }

    fn undo(&mut self, before: &Self) {
        self.last_max = before.last_max;
    }

    fn on_timeout(&mut self) {
        self.last_max = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;

    #[test]
    fn the_search_takes_a_quarter_of_the_distance_between_its_bounds() {
        let increment = |cwnd, last_max| {
            let per_increment = BicParams::default().per_increment(cwnd, last_max);
            cwnd / per_increment
        };
        // A quarter of 20, of 4 (smoothed: 4/20), and at most 16.
        assert!((increment(80.0, 100.0) - 5.0).abs() < 1e-9);
        assert!((increment(96.0, 100.0) - 0.2).abs() < 1e-9);
        assert!((increment(100.0, 300.0) - 16.0).abs() < 1e-9);
        // Past the maximum: smoothed, then a third of the distance, then 16.
        assert!((increment(102.0, 100.0) - 0.2).abs() < 1e-9);
        assert!((increment(112.0, 100.0) - 4.0).abs() < 1e-9);
        assert!((increment(148.0, 100.0) - 16.0).abs() < 1e-9);
        // Below the low window Reno; before the first loss a twentieth of a segment per segment.
        assert!((increment(14.0, 100.0) - 1.0).abs() < 1e-9);
        assert!((BicParams::default().per_increment(400.0, 0.0) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn a_loss_keeps_four_fifths_and_a_second_one_below_the_maximum_aims_lower() {
        let mut bic = Bic::default();
        let loss = SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 0.0,
            signal: Signal::Loss,
        };
        assert_eq!(bic.ssthresh_after(&Window::at(100.0), &loss), 80.0);
        assert_eq!(bic.ssthresh_after(&Window::at(14.0), &loss), 7.0);
        bic.on_decrease(&Window::at(100.0));
        assert_eq!(bic.last_max, 100.0);
        bic.on_decrease(&Window::at(80.0));
        assert!((bic.last_max - 72.0).abs() < 1e-9);
        bic.on_timeout();
        assert_eq!(bic.last_max, 0.0);
    }
}
