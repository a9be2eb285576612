//! ASRAN: after a loss ssthresh is the window at the previous loss, if that is larger, for any window increase.
//!
//! Does not depend on the window increase. Read `docs/variants/asran.md` first; the paper's Algorithm 1 can be read in more
//! ways than one, and each reading is a parameter.

use super::cubic;
use super::reno::Reno;
use crate::cc::decrease::WindowDecrease;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::increase::Increase;
use crate::cc::params::{ParamValues, choices, parameters};
use crate::cc::{HALF, LOSS_WINDOW, SignalEvidence, Window};

choices! {
    /// The variant that gives the window increase and the factor of decrease.
    pub enum AsranBase {
        /// NewReno's.
        Newreno = "newreno",
        /// CUBIC's.
        Cubic = "cubic",
    }
}

choices! {
    /// What becomes of cwnd after a loss.
    pub enum AsranMode {
        /// As the base has it; slow start then leads up to ssthresh (the paper's design).
        HalveThenSlowStart = "halve_then_slow_start",
        /// ssthresh itself, as a kernel whose ssthresh function is replaced leaves it (the paper's implementation).
        Hook = "hook",
    }
}

choices! {
    /// What becomes of ssthresh after a timeout.
    pub enum AsranTimeout {
        /// As the base has it ("behaves the same as before").
        Original = "original",
        /// As after a loss, since kernels ask the same function.
        Revise = "revise",
    }
}

parameters! {
    /// Parameters of ASRAN.
    pub struct AsranParams {
        /// The variant that it stands over.
        base: choice(AsranBase, Newreno = "newreno", "the ASRAN paper §5.2 (newreno), §5.1 (cubic)"),
        /// What becomes of cwnd after a loss.
        mode: choice(AsranMode, HalveThenSlowStart = "halve_then_slow_start", "the ASRAN paper §3.3, Fig. 2; §5.1.1 for hook"),
        /// What becomes of ssthresh after a timeout.
        on_timeout: choice(AsranTimeout, Original = "original", "the ASRAN paper §3.3; §5.1.1 for revise"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "asran",
    family: "loss",
    summary: "newreno or cubic; ssthresh returns to the window before the previous loss",
    source: "the ASRAN paper",
    year: 2020,
    params: AsranParams::SPECS,
    parts: |stack, values, _| {
        let params = AsranParams::of(values);
        let (increase, beta) = match params.base {
            AsranBase::Newreno => (Reno::default().into(), HALF),
            AsranBase::Cubic => cubic::parts(stack.profile, &ParamValues::new()),
        };
        ControllerParts::Rules(increase, Asran::new(params, beta).into())
    },
    ..Definition::BASE
};

/// State of ASRAN with the factor of decrease of its base.
#[derive(Clone, Debug)]
pub struct Asran {
    params: AsranParams,
    /// What the base keeps of its window.
    base_factor: f64,
    /// Window before the last loss; 0 before the first.
    last_max_cwnd: f64,
}

impl Asran {
    /// ASRAN over a base that keeps `base_factor` of its window.
    pub fn new(params: AsranParams, base_factor: f64) -> Self {
        Self {
            params,
            base_factor,
            last_max_cwnd: 0.0,
        }
    }

    /// The ASRAN paper, Algorithm 1: the base's ssthresh and the revised one, in segments.
    fn revise(&mut self, cwnd: f64) -> (f64, f64) {
        let original = libm::floor(self.base_factor * cwnd);
        let recalculated = original.max(self.last_max_cwnd);
        self.last_max_cwnd = cwnd;
        (original, recalculated)
    }
}

impl WindowDecrease for Asran {
    fn on_congestion(&mut self, window: &Window, _: &mut Increase, _: &SignalEvidence) -> Window {
        let (original, ssthresh) = self.revise(window.cwnd);
        let cwnd = match self.params.mode {
            AsranMode::HalveThenSlowStart => original,
            AsranMode::Hook => ssthresh,
        };
        Window { cwnd, ssthresh }
    }

    fn undo(&mut self, before: &Self) {
        self.last_max_cwnd = before.last_max_cwnd;
    }

    fn after_timeout(
        &mut self,
        window: &Window,
        _: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        let ssthresh = if signal.signal == crate::cc::Signal::RepeatedTimeout {
            window.ssthresh
        } else {
            match self.params.on_timeout {
                AsranTimeout::Original => libm::floor(self.base_factor * window.cwnd),
                AsranTimeout::Revise => self.revise(window.cwnd).1,
            }
        };
        Window {
            cwnd: LOSS_WINDOW,
            ssthresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Reno, Signal};

    fn signal(signal: Signal) -> SignalEvidence {
        SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 0.0,
            signal,
        }
    }

    fn asran(mode: AsranMode, on_timeout: AsranTimeout) -> impl FnMut(f64, Signal) -> (f64, f64) {
        let params = AsranParams {
            mode,
            on_timeout,
            ..AsranParams::default()
        };
        let mut asran = Asran::new(params, 0.5);
        let mut increase = Increase::from(Reno::default());
        move |cwnd, kind| {
            let window = Window::at(cwnd);
            let after = match kind {
                Signal::Loss | Signal::EcnEcho => {
                    asran.on_congestion(&window, &mut increase, &signal(kind))
                }
                _ => asran.after_timeout(&window, &mut increase, &signal(kind)),
            };
            (after.cwnd, after.ssthresh)
        }
    }

    #[test]
    fn algorithm_1_over_a_sequence_of_losses() {
        let mut after = asran(AsranMode::HalveThenSlowStart, AsranTimeout::Original);
        // The first loss is the base's; the second below it is taken for instability; the third, more than twice
        // the window of the second, for congestion.
        assert_eq!(after(40.0, Signal::Loss), (20.0, 20.0));
        assert_eq!(after(24.0, Signal::Loss), (12.0, 40.0));
        assert_eq!(after(60.0, Signal::Loss), (30.0, 30.0));
        assert_eq!(after(60.0, Signal::Loss), (30.0, 60.0));
    }

    #[test]
    fn the_hook_takes_ssthresh_for_cwnd_at_once() {
        let mut after = asran(AsranMode::Hook, AsranTimeout::Original);
        assert_eq!(after(40.0, Signal::Loss), (20.0, 20.0));
        assert_eq!(after(24.0, Signal::Loss), (40.0, 40.0));
    }

    #[test]
    fn a_timeout_is_the_bases_or_revised_and_only_then_remembered() {
        let mut original = asran(AsranMode::HalveThenSlowStart, AsranTimeout::Original);
        original(40.0, Signal::Loss);
        assert_eq!(original(24.0, Signal::Timeout), (1.0, 12.0));
        assert_eq!(original(30.0, Signal::Loss), (15.0, 40.0));
        let mut revised = asran(AsranMode::HalveThenSlowStart, AsranTimeout::Revise);
        revised(40.0, Signal::Loss);
        assert_eq!(revised(24.0, Signal::Timeout), (1.0, 40.0));
        assert_eq!(revised(30.0, Signal::Loss), (15.0, 24.0));
    }

    #[test]
    fn a_repeated_timeout_holds_ssthresh() {
        let mut after = asran(AsranMode::HalveThenSlowStart, AsranTimeout::Revise);
        assert_eq!(after(24.0, Signal::RepeatedTimeout), (1.0, 24.0));
    }
}
