//! TCP Westwood with the adaptive bandwidth share estimate: samples over an interval between one ACK spacing and one RTT,
//! the longer the more the window exceeds what the path delivers.
//!
//! Does not depend on the window increase. Read Wang et al. 2002 §III first, then `docs/variants/westwood-abse.md`.

use super::westwood::westwood_window;
use super::westwood_bwe::tustin_gain;
use crate::cc::decrease::WindowDecrease;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::delivery_window::DeliveryWindow;
use crate::cc::increase::Increase;
use crate::cc::params::{choices, parameters, starts_with};
use crate::cc::windowed_max::WindowedMax;
use crate::cc::{AckEvidence, SignalEvidence, Window};
use crate::sim::time::{Nanos, SECOND, keep_min, seconds};

choices! {
    /// How the time constant of the filter is chosen.
    pub enum Tau {
        /// One value throughout.
        Fixed = "fixed",
        /// The RTT, lengthened by the network's instability.
        Adaptive = "adaptive",
    }
}

choices! {
    /// What becomes of a gain below zero, when an ACK comes more than two time constants after the last one.
    pub enum LateAck {
        /// The gain is zero: the sample alone counts.
        Clamp = "clamp",
        /// Samples of zero, tau / 2 apart, fill the silence.
        VirtualSamples = "virtual_samples",
    }
}

parameters! {
    /// Parameters of Westwood-ABSE.
    pub struct WestwoodAbseParams {
        /// How the time constant is chosen.
        tau: choice(Tau, Adaptive = "adaptive", "Wang et al. 2002 §III-C; the HAPS/UAV paper §2 assumes it fixed"),
        /// The fixed time constant.
        tau_fixed: number(0.5, "s", 0.01, 60.0, "Mascolo et al. 2001 §2.2; the HAPS/UAV paper gives none"),
        /// Weight of the RTT in the adaptive time constant (N).
        n: number(10.0, "", 0.0, 100.0, "Wang et al. 2002 §III-C, recalled"),
        /// Weight of the old value in the instability (beta).
        beta: number(0.6, "", 0.0, 0.999, "Wang et al. 2002 §III-C, recalled"),
        /// Samples over which the maximum instability is kept.
        instability_samples: whole(10, "", 1, 1000, "Wang et al. 2002 §III-C, recalled"),
        /// What becomes of a gain below zero.
        late_ack: choice(LateAck, Clamp = "clamp", "the HAPS/UAV paper leaves it open; Mascolo et al. 2001 §2.2"),
        /// The sampling interval stays between one ACK spacing and one RTT.
        clamp_interval: flag(true, "the HAPS/UAV paper names the bounds T_min and T_max"),
        /// The shortest sampling interval, for ACKs that come at one instant.
        min_interval: number(0.001, "s", 1e-6, 1.0, "the HAPS/UAV paper leaves it open"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "westwood-abse",
    other_names: &["tcpw-abse", "abse"],
    family: "rate",
    summary: "Westwood with the adaptive bandwidth share estimate",
    source: "Wang et al. 2002",
    year: 2002,
    params: WestwoodAbseParams::SPECS,
    parts: |_, values, _| {
        ControllerParts::over_reno(WestwoodAbse::new(WestwoodAbseParams::of(values)))
    },
    ..Definition::BASE
};

/// What a step of the filter leaves. Rates in segments per second.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    /// Estimate (ERE).
    rate: f64,
    /// The last sample.
    sample: f64,
    instability: f64,
}

/// State of Westwood-ABSE.
#[derive(Clone, Debug, Default)]
pub struct WestwoodAbse {
    params: WestwoodAbseParams,
    last_ack: Option<Nanos>,
    /// Spacing of the last instant with ACKs from the one before; 0 at the first.
    spacing_s: f64,
    min_rtt: Option<Nanos>,
    rtt: Option<Nanos>,
    deliveries: DeliveryWindow,
    estimate: Estimate,
    /// The estimate before the last instant with ACKs.
    before: Estimate,
    /// The maximum instability of the last samples.
    instabilities: WindowedMax,
}

/// Wang et al. 2002 §III-B, the HAPS/UAV paper equations (2) and (3): the sampling interval for a window of `cwnd` segments.
fn interval_s(cwnd: f64, rate: f64, rtt_s: f64, min_rtt_s: f64, ack_spacing_s: f64) -> f64 {
    let delivered = rate * min_rtt_s;
    if delivered >= cwnd {
        ack_spacing_s
    } else {
        rtt_s * (cwnd - delivered) / cwnd
    }
}

starts_with!(WestwoodAbse, WestwoodAbseParams);

impl WestwoodAbse {
    /// The sample at an ACK, in segments per second.
    fn sample(&mut self, now: Nanos, cwnd: f64, dt_s: f64, rtt: Nanos) -> f64 {
        let rtt_s = seconds(rtt);
        let min_rtt_s = seconds(self.min_rtt.unwrap_or(rtt));
        let mut interval = interval_s(cwnd, self.estimate.rate, rtt_s, min_rtt_s, dt_s);
        if self.params.clamp_interval {
            interval = interval.max(dt_s).min(rtt_s);
        }
        let interval = interval.max(self.params.min_interval);
        // No interval is negative, and the conversion to a signed number costs a third.
        let span = (interval * SECOND as f64) as i64 as Nanos;
        self.deliveries.within(now, span) as f64 / interval
    }

    /// Wang et al. 2002 §III-C: the RTT, up to N + 1 times as long where samples jump.
    fn adaptive_tau(&mut self, sample: f64, rtt_s: f64) -> f64 {
        let beta = self.params.beta;
        let Estimate {
            sample: last,
            instability,
            ..
        } = &mut self.estimate;
        *instability = beta * *instability + (1.0 - beta) * (sample - *last).abs();
        let instability = *instability;
        let max = self.instabilities.update(instability);
        if max > 0.0 {
            rtt_s + self.params.n * rtt_s * instability / max
        } else {
            rtt_s
        }
    }

    /// The HAPS/UAV paper, equation (1): the low pass whose gain follows the ACK spacing.
    fn filter(&mut self, sample: f64, dt_s: f64, tau_s: f64) {
        let mut dt_s = dt_s;
        let rate = &mut self.estimate.rate;
        if self.params.late_ack == LateAck::VirtualSamples {
            while dt_s > tau_s / 2.0 && *rate > 1e-9 {
                *rate *= tustin_gain(tau_s, tau_s / 2.0);
                dt_s -= tau_s / 2.0;
            }
        }
        let gain = tustin_gain(tau_s, dt_s).max(0.0);
        *rate = gain * *rate + (1.0 - gain) * sample;
        self.estimate.sample = sample;
    }

    /// Takes an ACK under a window of `cwnd` segments.
    fn take(&mut self, ack: &AckEvidence, cwnd: f64) {
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(rtt);
            keep_min(&mut self.min_rtt, rtt);
        }
        let longest = self.rtt.unwrap_or(0).max(SECOND);
        self.deliveries.add(ack.now, ack.delivered, longest);
        let last = self.last_ack.replace(ack.now);
        let (Some(rtt), Some(last)) = (self.rtt, last) else {
            return;
        };
        self.begin_instant(ack.now, last);
        if self.spacing_s <= 0.0 {
            return;
        }
        let sample = self.sample(ack.now, cwnd, self.spacing_s, rtt);
        let tau_s = match self.params.tau {
            Tau::Fixed => self.params.tau_fixed,
            Tau::Adaptive => self.adaptive_tau(sample, seconds(rtt)),
        };
        self.filter(sample, self.spacing_s, tau_s);
    }

    /// ACKs of one instant are one ACK, whose step is taken anew as each of them comes.
    fn begin_instant(&mut self, now: Nanos, last: Nanos) {
        if now > last {
            self.spacing_s = seconds(now - last);
            self.before = self.estimate;
            self.instabilities.commit(self.params.instability_samples);
        } else {
            self.estimate = self.before;
            self.instabilities.discard();
        }
    }
}

impl WindowDecrease for WestwoodAbse {
    const OBSERVES: bool = true;

    fn observe(&mut self, ack: &AckEvidence, window: &Window) {
        self.take(ack, window.cwnd);
    }

    /// The HAPS/UAV paper §2: ssthresh = ERE RTT_min, cwnd no higher.
    fn on_congestion(
        &mut self,
        window: &Window,
        _: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        westwood_window(window, self.estimate.rate, self.min_rtt, signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Reno, Signal};
    use crate::sim::time::MILLISECOND;

    fn ack(now_ms: u64, rtt_ms: u64) -> AckEvidence {
        AckEvidence {
            now: now_ms * MILLISECOND,
            delivered: 1,
            rtt: Some(rtt_ms * MILLISECOND),
            ..AckEvidence::default()
        }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn the_interval_by_hand() {
        // cwnd, rate, RTT, minimum RTT, spacing: uncongested, a quarter and all of the RTT.
        let table = [
            (50.0, 100.0, 0.6, 0.5, 0.01, 0.01),
            (60.0, 90.0, 0.6, 0.5, 0.01, 0.15),
            (60.0, 0.0, 0.6, 0.5, 0.01, 0.6),
            (100.0, 100.0, 0.8, 0.5, 0.01, 0.4),
        ];
        for (cwnd, rate, rtt_s, min_rtt_s, spacing_s, expected) in table {
            near(
                interval_s(cwnd, rate, rtt_s, min_rtt_s, spacing_s),
                expected,
            );
        }
    }

    #[test]
    fn the_sample_counts_what_came_within_the_interval() {
        let mut abse = WestwoodAbse::default();
        for n in 0..=100 {
            abse.take(&ack(10 * n, 500), 1000.0);
        }
        // 40 ACKs in the 400 ms behind now, the one 400 ms ago left out.
        let within = abse
            .deliveries
            .within(1000 * MILLISECOND, 400 * MILLISECOND);
        assert_eq!(within, 40);
    }

    #[test]
    fn the_filter_by_hand() {
        let mut abse = WestwoodAbse::default();
        abse.estimate.rate = 100.0;
        // Gain (1 - 0.1) / (1 + 0.1).
        abse.filter(50.0, 0.1, 0.5);
        near(abse.estimate.rate, (90.0 + 10.0) / 1.1);
        abse.estimate.rate = 100.0;
        abse.filter(50.0, 2.0, 0.5);
        near(abse.estimate.rate, 50.0);
        abse.params.late_ack = LateAck::VirtualSamples;
        abse.estimate.rate = 100.0;
        // Three samples of zero with gain 0.6 until a quarter of a second is left, which has 0.6 too.
        abse.filter(50.0, 1.0, 0.5);
        near(abse.estimate.rate, 0.6 * 100.0 * 0.216 + 0.4 * 50.0);
    }

    #[test]
    fn the_adaptive_time_constant_grows_with_instability() {
        let mut abse = WestwoodAbse::default();
        near(abse.adaptive_tau(0.0, 0.5), 0.5);
        // The first jump is the maximum so far: N + 1 times the RTT; then it fades by beta.
        near(abse.adaptive_tau(100.0, 0.5), 5.5);
        abse.estimate.sample = 100.0;
        abse.begin_instant(1, 0);
        near(abse.adaptive_tau(100.0, 0.5), 0.5 + 5.0 * 0.6);
    }

    #[test]
    fn a_steady_stream_is_found_and_a_loss_takes_the_estimate() {
        let mut abse = WestwoodAbse::default();
        for n in 0..2000 {
            abse.take(&ack(10 * n, 500), 50.0);
        }
        assert!((abse.estimate.rate - 100.0).abs() < 1.0, "{abse:?}");
        let signal = SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 10.0,
            signal: Signal::Loss,
        };
        let mut increase = Increase::from(Reno::default());
        let after = abse.on_congestion(&Window::at(80.0), &mut increase, &signal);
        assert!((after.cwnd - 50.0).abs() < 1.0, "{after:?}");
        assert_eq!(after.cwnd.to_bits(), after.ssthresh.to_bits());
    }
}
