//! Westwood+: after a loss the window is what the path delivered, rate times minimum RTT.
//!
//! Does not depend on the window increase. Read Grieco and Mascolo 2004 §II first, then `docs/variants/westwood-plus.md`.

use super::ns2_linux_reno::Ns2LinuxReno;
use super::ns2_linux_westwood::Ns2LinuxWestwood;
use crate::cc::decrease::WindowDecrease;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::increase::Increase;
use crate::cc::params::{parameters, starts_with};
use crate::cc::{AckEvidence, LOSS_WINDOW, MIN_SSTHRESH, Signal, SignalEvidence, Window};
use crate::sim::time::{Nanos, SECOND, keep_min};

parameters! {
    /// Parameters of Westwood+.
    pub struct WestwoodParams {
        /// Weight of the old estimate in each of the two stages of the filter.
        filter: number(0.875, "", 0.0, 0.999, "Grieco and Mascolo 2004 §II-B; Linux"),
        /// A sample takes at least this long.
        min_interval: number(0.05, "s", 0.001, 1.0, "Grieco and Mascolo 2004 §II-B; Linux"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "westwood-plus",
    other_names: &["westwood+", "tcpw+"],
    family: "rate",
    summary: "after a loss the window is delivery rate x minimum RTT, with a rate per round trip (as Linux)",
    source: "Grieco and Mascolo 2004",
    year: 2004,
    params: WestwoodParams::SPECS,
    parts: |stack, values, _| {
        if stack.runs_ns2_module() {
            let reno = Ns2LinuxReno::new(stack.smss_bytes);
            let decrease = Ns2LinuxWestwood::new(stack.smss_bytes);
            return ControllerParts::Rules(reno.into(), decrease.into());
        }
        ControllerParts::over_reno(Westwood::new(WestwoodParams::of(values)))
    },
    ns2_module: true,
    ..Definition::BASE
};

/// Westwood's answer to a signal: ssthresh is the rate (segments/s) times the least RTT, two segments at least, and
/// before the first RTT sample half the flight (RFC 5681 §3.1); cwnd is no higher than that, and after a timeout 1.
pub fn westwood_window(
    before: &Window,
    rate: f64,
    min_rtt: Option<Nanos>,
    signal: &SignalEvidence,
) -> Window {
    let ssthresh = min_rtt.map_or(signal.flight / 2.0, |min_rtt| {
        (rate * min_rtt as f64 / SECOND as f64).max(MIN_SSTHRESH)
    });
    let cwnd = match signal.signal {
        Signal::Loss | Signal::EcnEcho => before.cwnd.min(ssthresh),
        Signal::Timeout | Signal::RepeatedTimeout => LOSS_WINDOW,
    };
    Window { cwnd, ssthresh }
}

/// State of Westwood+.
#[derive(Clone, Debug, Default)]
pub struct Westwood {
    params: WestwoodParams,
    /// Start of the sample being counted; none before the first ACK.
    since: Option<Nanos>,
    segments: f64,
    rtt: Option<Nanos>,
    min_rtt: Option<Nanos>,
    /// The two stages of the filter, in segments per second.
    first_stage: Option<f64>,
    rate: f64,
}

starts_with!(Westwood, WestwoodParams);

impl Westwood {
    /// Grieco and Mascolo 2004 §II-B: both stages weigh the old value by `filter`; the first sample fills both.
    fn filter(&mut self, sample: f64) {
        let weigh =
            |old: f64, new: f64| self.params.filter * old + (1.0 - self.params.filter) * new;
        match self.first_stage {
            None => (self.first_stage, self.rate) = (Some(sample), sample),
            Some(first) => {
                let first = weigh(first, sample);
                (self.first_stage, self.rate) = (Some(first), weigh(self.rate, first));
            }
        }
    }
}

impl WindowDecrease for Westwood {
    const OBSERVES: bool = true;

    /// One sample per round trip: segments delivered over the time it took.
    fn observe(&mut self, ack: &AckEvidence, _window: &Window) {
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(rtt);
            keep_min(&mut self.min_rtt, rtt);
        }
        let since = *self.since.get_or_insert(ack.now);
        let elapsed = ack.now - since;
        let min = (self.params.min_interval * SECOND as f64) as Nanos;
        if self.rtt.is_some_and(|rtt| elapsed > rtt.max(min)) {
            self.filter(self.segments * SECOND as f64 / elapsed as f64);
            (self.segments, self.since) = (0.0, Some(ack.now));
        }
        self.segments += f64::from(ack.delivered);
    }

    /// Grieco and Mascolo 2004 §II-A. Deviation: cwnd decreases at once, where Linux recovers with half of the window, as
    /// Reno, and sets the estimate at the end of recovery.
    fn on_congestion(
        &mut self,
        window: &Window,
        _: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        let after = westwood_window(window, self.rate, self.min_rtt, signal);
        if matches!(signal.signal, Signal::Timeout) {
            // Linux: the path may be another one; the minimum RTT is measured again.
            self.min_rtt = None;
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Reno;
    use crate::sim::time::MILLISECOND;

    fn ack(now_ms: u64, delivered: u32, rtt_ms: u64) -> AckEvidence {
        AckEvidence {
            now: now_ms * MILLISECOND,
            delivered,
            rtt: Some(rtt_ms * MILLISECOND),
            ..AckEvidence::default()
        }
    }

    fn signal(signal: Signal) -> SignalEvidence {
        SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 30.0,
            signal,
        }
    }

    #[test]
    fn a_round_trip_of_deliveries_is_one_sample_and_both_stages_smooth_it() {
        let mut westwood = Westwood::default();
        westwood.observe(&ack(0, 10, 100), &Window::at(60.0));
        westwood.observe(&ack(100, 10, 100), &Window::at(60.0));
        assert_eq!(westwood.first_stage, None, "no more than an RTT");
        westwood.observe(&ack(125, 10, 100), &Window::at(60.0));
        // 20 segments in 125 ms.
        assert_eq!((westwood.first_stage, westwood.rate), (Some(160.0), 160.0));
        westwood.observe(&ack(250, 10, 100), &Window::at(60.0));
        // 10 in 125 ms are 80 per second: 160 7/8 + 80/8 = 150, then 160 7/8 + 150/8.
        assert_eq!((westwood.first_stage, westwood.rate), (Some(150.0), 158.75));
    }

    #[test]
    fn a_loss_leaves_the_rate_times_the_least_rtt_and_never_raises_cwnd() {
        let mut increase = Increase::from(Reno::default());
        let mut on_congestion = |cwnd: f64, kind| {
            let mut westwood = Westwood {
                rate: 200.0,
                min_rtt: Some(100 * MILLISECOND),
                ..Westwood::default()
            };
            let after = westwood.on_congestion(&Window::at(cwnd), &mut increase, &signal(kind));
            (after, westwood.min_rtt)
        };
        let kept = Some(100 * MILLISECOND);
        assert_eq!(on_congestion(60.0, Signal::Loss), (Window::at(20.0), kept));
        let window = |cwnd| Window {
            cwnd,
            ssthresh: 20.0,
        };
        assert_eq!(on_congestion(12.0, Signal::Loss), (window(12.0), kept));
        assert_eq!(on_congestion(60.0, Signal::Timeout), (window(1.0), None));
    }

    #[test]
    fn without_an_estimate_a_loss_costs_half_the_flight() {
        let mut increase = Increase::from(Reno::default());
        let after = Westwood::default().on_congestion(
            &Window::at(60.0),
            &mut increase,
            &signal(Signal::Loss),
        );
        assert_eq!(after, Window::at(15.0));
    }
}
