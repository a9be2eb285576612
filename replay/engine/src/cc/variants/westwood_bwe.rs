//! TCP Westwood of 2001: a bandwidth sample per ACK, smoothed by a low-pass filter with a separate time constant.
//!
//! Does not depend on the window increase. Read Mascolo et al. 2001 §2 first, then `docs/variants/westwood-bwe.md`.

use super::westwood::westwood_window;
use crate::cc::decrease::WindowDecrease;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::increase::Increase;
use crate::cc::params::{parameters, starts_with};
use crate::cc::{AckEvidence, SignalEvidence, Window};
use crate::sim::time::{Nanos, keep_min, seconds};

parameters! {
    /// Parameters of Westwood with bandwidth samples per ACK.
    pub struct WestwoodBweParams {
        /// Time constant of the filter (tau).
        tau: number(0.5, "s", 0.01, 60.0, "Mascolo et al. 2001 §2.2"),
        /// Without an ACK for tau / m the filter takes a sample of zero.
        m: number(2.0, "", 2.0, 100.0, "Mascolo et al. 2001 §2.2"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "westwood-bwe",
    other_names: &["tcpw"],
    family: "rate",
    summary: "the first Westwood: a filtered rate sample per ACK",
    source: "Mascolo et al. 2001",
    year: 2001,
    params: WestwoodBweParams::SPECS,
    parts: |_, values, _| {
        ControllerParts::over_reno(WestwoodBwe::new(WestwoodBweParams::of(values)))
    },
    ..Definition::BASE
};

/// State of Westwood with bandwidth samples per ACK.
#[derive(Clone, Debug, Default)]
pub struct WestwoodBwe {
    params: WestwoodBweParams,
    last_ack: Option<Nanos>,
    min_rtt: Option<Nanos>,
    /// Segments of ACKs that came at the same instant and wait for a sample.
    waiting: f64,
    sample: f64,
    /// Estimate (BWE), in segments per second.
    rate: f64,
}

/// Mascolo et al. 2001 §2.2: weight of the old estimate after `dt` seconds, the Tustin form of a low pass.
pub fn tustin_gain(tau_s: f64, dt_s: f64) -> f64 {
    (2.0 * tau_s - dt_s) / (2.0 * tau_s + dt_s)
}

starts_with!(WestwoodBwe, WestwoodBweParams);

impl WestwoodBwe {
    /// One step of the filter: the mean of the new sample and the one before it enters.
    fn step(&mut self, sample: f64, dt_s: f64) {
        let gain = tustin_gain(self.params.tau, dt_s);
        self.rate = gain * self.rate + (1.0 - gain) * (sample + self.sample) / 2.0;
        self.sample = sample;
    }

    /// Samples of zero for a time without ACKs, tau / m apart; what is left of `dt_s`.
    fn step_through_silence(&mut self, dt_s: f64) -> f64 {
        let interval = self.params.tau / self.params.m;
        let mut left = dt_s;
        while left > interval && (self.rate > 0.0 || self.sample > 0.0) {
            self.step(0.0, interval);
            left -= interval;
            if self.rate < 1e-9 {
                (self.rate, self.sample) = (0.0, 0.0);
            }
        }
        left.min(interval)
    }
}

impl WindowDecrease for WestwoodBwe {
    const OBSERVES: bool = true;

    fn observe(&mut self, ack: &AckEvidence, _window: &Window) {
        if let Some(rtt) = ack.rtt {
            keep_min(&mut self.min_rtt, rtt);
        }
        let Some(last) = self.last_ack else {
            self.last_ack = Some(ack.now);
            return;
        };
        self.waiting += f64::from(ack.delivered);
        let dt_s = seconds(ack.now - last);
        if dt_s <= 0.0 {
            return;
        }
        let rest_s = self.step_through_silence(dt_s);
        // Mascolo et al. 2001 §2.1: b_k = d_k / (t_k - t_(k-1)).
        self.step(self.waiting / dt_s, rest_s);
        (self.waiting, self.last_ack) = (0.0, Some(ack.now));
    }

    /// Mascolo et al. 2001 §3.
    fn on_congestion(
        &mut self,
        window: &Window,
        _: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        westwood_window(window, self.rate, self.min_rtt, signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Reno, Signal};
    use crate::sim::time::MILLISECOND;

    fn ack(now_ms: u64) -> AckEvidence {
        AckEvidence {
            now: now_ms * MILLISECOND,
            delivered: 1,
            rtt: Some(100 * MILLISECOND),
            ..AckEvidence::default()
        }
    }

    #[test]
    fn the_filter_by_hand() {
        // tau = 0.5, dt = 0.1: (1 - 0.1) / (1 + 0.1) = 9/11.
        assert!((tustin_gain(0.5, 0.1) - 9.0 / 11.0).abs() < 1e-12);
        let mut bwe = WestwoodBwe::default();
        bwe.observe(&ack(0), &Window::at(60.0));
        bwe.observe(&ack(100), &Window::at(60.0));
        // (10 + 0)/2 enters with 2/11.
        let first = 10.0 / 11.0;
        assert!((bwe.rate - first).abs() < 1e-9);
        bwe.observe(&ack(200), &Window::at(60.0));
        assert!((bwe.rate - (9.0 / 11.0 * first + 20.0 / 11.0)).abs() < 1e-9);
    }

    #[test]
    fn a_steady_stream_is_found_and_silence_lowers_the_estimate() {
        let mut bwe = WestwoodBwe::default();
        for n in 0..1000 {
            bwe.observe(&ack(10 * n), &Window::at(60.0));
        }
        assert!((bwe.rate - 100.0).abs() < 0.1, "{}", bwe.rate);
        bwe.observe(&ack(9990 + 2000), &Window::at(60.0));
        assert!(bwe.rate < 5.0, "{}", bwe.rate);
    }

    #[test]
    fn acks_of_one_instant_make_one_sample() {
        let (mut single, mut paired) = (WestwoodBwe::default(), WestwoodBwe::default());
        for n in 0..200 {
            let both = AckEvidence {
                delivered: 2,
                ..ack(10 * n)
            };
            single.observe(&both, &Window::at(60.0));
            paired.observe(&ack(10 * n), &Window::at(60.0));
            paired.observe(&ack(10 * n), &Window::at(60.0));
        }
        assert!((single.rate - paired.rate).abs() < 2.0);
        assert!((single.rate - 200.0).abs() < 30.0, "{}", single.rate);
    }

    #[test]
    fn a_loss_takes_the_estimate() {
        let mut bwe = WestwoodBwe {
            rate: 300.0,
            min_rtt: Some(100 * MILLISECOND),
            ..WestwoodBwe::default()
        };
        let signal = SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 10.0,
            signal: Signal::Loss,
        };
        let mut increase = Increase::from(Reno::default());
        assert_eq!(
            bwe.on_congestion(&Window::at(60.0), &mut increase, &signal),
            Window::at(30.0)
        );
    }
}
