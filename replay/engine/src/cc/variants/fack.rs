//! The window decrease of FACK: to half of the window, or to a quarter if slow start has doubled it since the loss
//! (overdamping), at once or spread over the next round trip (rampdown).
//!
//! Does not depend on loss detection and recovery, which are in `tcp/recovery/fack.rs`. Read Mathis and Mahdavi 1996 §4
//! first, then `docs/variants/fack.md`.

use crate::cc::decrease::{Factor, WindowDecrease};
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::increase::Increase;
use crate::cc::params::parameters;
use crate::cc::{HALF, SignalEvidence, Window};
use crate::config::{Profile, RecoveryKind};

parameters! {
    /// Parameters of FACK.
    pub struct FackParams {
        /// A loss in slow start decreases the window by three quarters: it has doubled since the lost segment was sent.
        overdamping: flag(false, "Mathis and Mahdavi 1996 §4.5; ns-2: ss-div4_"),
        /// The window falls gradually, while what was in flight is acknowledged.
        rampdown: flag(false, "Mathis and Mahdavi 1996 §4.6; ns-2: rampdown_"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "fack",
    family: "loss",
    summary: "Reno's windows; data three segments below the highest octet reported by SACK is lost",
    source: "Mathis and Mahdavi 1996",
    year: 1996,
    params: FackParams::SPECS,
    fix: |stack, _| stack.recovery = RecoveryKind::Fack,
    parts: |stack, values, _| {
        ControllerParts::over_reno(Fack::new(FackParams::of(values), stack.profile))
    },
    ..Definition::BASE
};

/// What it leaves in slow start where overdamping is wanted.
const QUARTER: f64 = 0.25;

/// The window decrease.
#[derive(Clone, Copy, Debug)]
pub struct Fack {
    params: FackParams,
    profile: Profile,
}

impl Fack {
    /// FACK with these parameters on a stack of this profile.
    pub fn new(params: FackParams, profile: Profile) -> Self {
        Self { params, profile }
    }

    /// What a loss leaves of `window`.
    fn share(self, window: &Window) -> f64 {
        if self.params.overdamping && window.in_slow_start() {
            QUARTER
        } else {
            HALF
        }
    }
}

impl WindowDecrease for Fack {
    fn on_congestion(
        &mut self,
        window: &Window,
        increase: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        Factor::of(self.share(window), self.profile).on_congestion(window, increase, signal)
    }

    /// Of each segment that leaves the network, the part that is not replaced.
    fn rampdown(&self, before: &Window) -> Option<f64> {
        self.params.rampdown.then(|| 1.0 - self.share(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Reno, Signal};

    fn after(params: FackParams, ssthresh: f64) -> (Window, Option<f64>) {
        let mut fack = Fack::new(params, Profile::Rfc);
        let window = Window {
            cwnd: 40.0,
            ssthresh,
        };
        let signal = SignalEvidence {
            now: 0,
            flight: 40.0,
            lost_total: 1,
            signal: Signal::Loss,
        };
        let mut increase = Increase::from(Reno::default());
        let rampdown = fack.rampdown(&window);
        (
            fack.on_congestion(&window, &mut increase, &signal),
            rampdown,
        )
    }

    #[test]
    fn a_loss_costs_half_and_with_overdamping_three_quarters_of_a_window_in_slow_start() {
        let plain = FackParams::default();
        let both = FackParams {
            overdamping: true,
            rampdown: true,
        };
        assert_eq!(after(plain, 64.0), (Window::at(20.0), None));
        assert_eq!(after(plain, 30.0), (Window::at(20.0), None));
        assert_eq!(after(both, 64.0), (Window::at(10.0), Some(0.75)));
        assert_eq!(after(both, 30.0), (Window::at(20.0), Some(0.5)));
    }
}
