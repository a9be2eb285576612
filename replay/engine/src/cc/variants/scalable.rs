//! Scalable TCP: a fixed increase per segment acknowledged and a fixed share of decrease, so that recovery takes the
//! same number of round trips at every window.
//!
//! Does not depend on slow start or recovery. Read Kelly 2003 §3 first, then `docs/variants/scalable.md`.

use super::reno::AckCounter;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{parameters, starts_with};
use crate::cc::{AckEvidence, SignalEvidence, Window, WindowIncrease};

parameters! {
    /// Parameters of Scalable TCP.
    pub struct ScalableParams {
        /// Increase per segment acknowledged.
        a: number(0.01, "segments", 1e-6, 1.0, "Kelly 2003 §3"),
        /// Decrease on a loss, as a share of the window.
        b: number(0.125, "", 0.0, 0.9, "Kelly 2003 §3"),
        /// Window up to which it is Reno in both directions.
        legacy_window: number(16.0, "segments", 0.0, 1e6, "Kelly 2003 §3.1"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "scalable",
    other_names: &["stcp", "s-tcp"],
    family: "loss",
    summary: "a fixed increase per segment acknowledged, a fixed decrease factor",
    source: "Kelly 2003",
    year: 2003,
    params: ScalableParams::SPECS,
    parts: |_, values, _| ControllerParts::own(Scalable::new(ScalableParams::of(values))),
    ns2_module: true,
    ..Definition::BASE
};

/// State of Scalable TCP.
#[derive(Clone, Debug, Default)]
pub struct Scalable {
    params: ScalableParams,
    counter: AckCounter,
}

starts_with!(Scalable, ScalableParams);

impl WindowIncrease for Scalable {
    /// Kelly 2003 §3: cwnd += a; no slower than Reno, as Linux.
    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        let mut per_increment = window.cwnd;
        if window.cwnd > self.params.legacy_window {
            per_increment = per_increment.min(1.0 / self.params.a);
        }
        self.counter.count(&mut window.cwnd, per_increment, acked);
    }

    /// Kelly 2003 §3: cwnd -= b cwnd.
    fn ssthresh_after(&mut self, window: &Window, _signal: &SignalEvidence) -> f64 {
        let share = if window.cwnd > self.params.legacy_window {
            self.params.b
        } else {
            0.5
        };
        libm::floor((1.0 - share) * window.cwnd)
    }

    fn on_decrease(&mut self, _before: &Window) {
        self.counter = AckCounter::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;

    fn grown(from: f64, acked: u32) -> f64 {
        let (mut scalable, mut window) = (Scalable::default(), Window::at(from));
        for _ in 0..acked {
            scalable.on_ack(&mut window, 1.0, &AckEvidence::default());
        }
        window.cwnd - from
    }

    #[test]
    fn a_hundred_segments_buy_one_above_the_hundredth_and_reno_holds_below() {
        assert_eq!([grown(1000.0, 99), grown(1000.0, 100)], [0.0, 1.0]);
        assert_eq!([grown(50.0, 49), grown(50.0, 50)], [0.0, 1.0]);
        assert_eq!([grown(10.0, 9), grown(10.0, 10)], [0.0, 1.0]);
    }

    #[test]
    fn a_loss_costs_an_eighth_above_the_legacy_window_and_half_below() {
        let loss = SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 0.0,
            signal: Signal::Loss,
        };
        let after = |cwnd| Scalable::default().ssthresh_after(&Window::at(cwnd), &loss);
        assert_eq!([after(800.0), after(16.0)], [700.0, 8.0]);
    }
}
