//! SCPS-TP's windows: Vegas or Van Jacobson's, or none but a fixed rate; and a loss that need not mean congestion.
//!
//! Does not depend on how holes are reported and retransmitted (`RecoveryKind::Snack`), nor how often the receiver
//! acknowledges (`StackParams::acks_per_round_trip`). Read CCSDS 714.0-B-2 §3.2 first, then `docs/variants/scps-tp.md`.

use super::reno::Reno;
use super::scps_vegas::ScpsVegas;
use super::vegas::VegasParams;
use crate::cc::decrease::Factor;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::increase::Increase;
use crate::cc::params::{choices, parameters};
use crate::cc::{FixedWindow, HALF, SlowStart, Window, WindowPacing, Windowed};
use crate::config::{RecoveryKind, StackParams};

choices! {
    /// What governs sending.
    pub enum CongestionControl {
        /// Vegas.
        Vegas = "vegas",
        /// RFC 5681's windows.
        VanJacobson = "van_jacobson",
        /// No window: a fixed rate, open loop.
        Rate = "rate",
    }
}

choices! {
    /// What a loss is taken for.
    pub enum LossCause {
        /// Corruption on the link: it is retransmitted, and the window stays.
        Corruption = "corruption",
        /// Congestion.
        Congestion = "congestion",
    }
}

parameters! {
    /// Parameters of SCPS-TP.
    pub struct ScpsTpParams {
        /// What governs sending.
        congestion_control: choice(CongestionControl, Vegas = "vegas", "AeroTCP's paper names Vegas, the default of the reference implementation (MITRE 1999), which has all three"),
        /// What a loss is taken for that is not a timeout.
        loss_cause: choice(LossCause, Corruption = "corruption", "set per route, as in the reference implementation (MITRE 1999); there corruption is a choice of the build"),
        /// Open-loop rate of IP packets.
        rate: number(4e6, "bit/s", 1e3, 1e12, "AeroTCP, scenario: its satellite link; CCSDS 714.0-B-2 sets it per route"),
        /// ACKs of data in order per round-trip time of the handshake, at most.
        acks_per_round_trip: number(4.0, "", 1.0, 1000.0, "AeroTCP's paper: periodic ACKs per round-trip time; its number is open"),
        /// Vegas: fewer segments waiting than this: the window grows.
        alpha: number(2.0, "segments", 0.0, 1000.0, "as variant vegas"),
        /// Vegas: more segments waiting than this: the window shrinks.
        beta: number(4.0, "segments", 0.0, 1000.0, "as variant vegas"),
        /// Vegas: more segments waiting than this: slow start ends.
        gamma: number(1.0, "segments", 0.0, 1000.0, "as variant vegas"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "scps-tp",
    other_names: &["scps"],
    family: "space",
    summary: "Vegas or a fixed rate; losses are taken for corruption, holes are retransmitted when reported, few ACKs",
    source: "CCSDS 714.0-B-2",
    year: 2006,
    params: ScpsTpParams::SPECS,
    ordered: |values| {
        let p = ScpsTpParams::of(values);
        vec![[("alpha", p.alpha), ("beta", p.beta)]]
    },
    fix: |stack, values| {
        stack.recovery = RecoveryKind::Snack;
        stack.acks_per_round_trip = Some(ScpsTpParams::of(values).acks_per_round_trip);
    },
    parts: |stack, values, _| {
        ControllerParts::Whole(ScpsTpParams::of(values).windowed(stack).into())
    },
    ..Definition::BASE
};

/// Stands for no window: what one connection can have outstanding at most.
const NO_WINDOW_PKTS: u32 = 1 << 20;

impl ScpsTpParams {
    /// The rate in segments per second.
    fn rate_pkts_per_s(&self, packet_bytes: u32) -> f64 {
        self.rate / f64::from(8 * packet_bytes)
    }

    /// The controller that they ask for.
    pub fn windowed(&self, params: &StackParams) -> Windowed {
        if self.congestion_control == CongestionControl::Rate {
            let pacing = WindowPacing {
                fixed_pkts_per_s: Some(self.rate_pkts_per_s(params.packet_bytes())),
                ..WindowPacing::SPACED
            };
            return FixedWindow::windowed(NO_WINDOW_PKTS).paced(Some(pacing));
        }
        let increase: Increase = if self.congestion_control == CongestionControl::Vegas {
            let vegas = VegasParams {
                alpha: self.alpha,
                beta: self.beta,
                gamma: self.gamma,
            };
            ScpsVegas::new(vegas).into()
        } else {
            Reno::default().into()
        };
        let slow_start = SlowStart::standard(None);
        // Deviation: in the reference implementation a timeout of Vegas does not decrease the window where losses are
        // taken for corruption; it may as well be an outage. Its van_jacobson pays for losses whatever they are taken
        // for.
        let decrease = Factor::of(HALF, params.profile);
        // Few ACKs let much leave at once: it is spread, without a pause between two of them.
        Windowed::new(Window::initial(params), slow_start, increase, decrease)
            .paced(Some(WindowPacing::SPACED))
            .sparing_losses(self.loss_cause == LossCause::Corruption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Signal, SignalEvidence};
    use crate::config::{Profile, StackOverrides};

    fn params() -> StackParams {
        StackParams {
            initial_window_pkts: 40,
            initial_ssthresh_pkts: Some(30),
            ..StackParams::resolve(Profile::Rfc, &StackOverrides::default())
        }
    }

    fn after(loss_cause: LossCause, signal: Signal) -> Window {
        let scps_tp = ScpsTpParams {
            loss_cause,
            ..ScpsTpParams::default()
        };
        let mut controller = scps_tp.windowed(&params());
        let signal = SignalEvidence {
            now: 0,
            flight: 40.0,
            lost_total: 1,
            signal,
        };
        if signal.signal == Signal::Timeout {
            controller.on_timeout(&signal);
        } else {
            controller.on_congestion(&signal);
        }
        Window {
            cwnd: controller.window().cwnd,
            ssthresh: controller.window().ssthresh,
        }
    }

    #[test]
    fn corruption_costs_nothing_and_congestion_half() {
        let unmoved = Window::initial(&params());
        assert_eq!(after(LossCause::Corruption, Signal::Loss), unmoved);
        assert_eq!(after(LossCause::Congestion, Signal::Loss), Window::at(20.0));
    }

    #[test]
    fn a_mark_and_a_timeout_cost_whatever_losses_are_taken_for() {
        for cause in [LossCause::Corruption, LossCause::Congestion] {
            assert_eq!(after(cause, Signal::EcnEcho), Window::at(20.0));
            let timeout = Window {
                cwnd: 1.0,
                ssthresh: 20.0,
            };
            assert_eq!(after(cause, Signal::Timeout), timeout);
        }
    }

    #[test]
    fn a_fixed_rate_is_the_packets_and_no_window_holds_it_back() {
        let scps_tp = ScpsTpParams {
            congestion_control: CongestionControl::Rate,
            rate: 1.2e6,
            ..ScpsTpParams::default()
        };
        let controller = scps_tp.windowed(&params());
        // 1.2 Mbit/s in packets of 1500 octets.
        let pace = controller.pace(None, 7);
        assert_eq!(pace.pkts_per_s.to_bits(), 100.0_f64.to_bits());
        assert!(controller.window().cwnd > 1e6);
    }

    #[test]
    fn windows_are_paced_by_their_share_of_a_round_trip() {
        for congestion_control in [CongestionControl::Vegas, CongestionControl::VanJacobson] {
            let scps_tp = ScpsTpParams {
                congestion_control,
                ..ScpsTpParams::default()
            };
            let controller = scps_tp.windowed(&params());
            let pace = controller.pace(Some(crate::sim::time::SECOND / 2), 1);
            assert_eq!(pace.pkts_per_s.to_bits(), (40.0 * 2.0_f64).to_bits());
        }
    }
}
