//! Window decrease on congestion, for any rule of increase. One line in the list at the end per rule.
//!
//! Does not depend on how the window increases: it may ask the rule of increase for its ssthresh. Read RFC 5681 §3.1
//! equation 4 first.

use super::evidence::{AckEvidence, Signal, SignalEvidence};
use super::increase::Increase;
use super::{LOSS_WINDOW, Window, variants};
use crate::config::Profile;

/// A rule of window decrease. Only `on_congestion` is required.
pub trait WindowDecrease {
    /// It needs every ACK, in recovery too: `observe` is called.
    const OBSERVES: bool = false;

    /// Every ACK, before the sender reacts to it, with the window at that time (Westwood's bandwidth estimate).
    #[inline]
    fn observe(&mut self, _ack: &AckEvidence, _window: &Window) {}

    /// The window after a loss or a congestion mark. The caller keeps ssthresh at two segments or more.
    fn on_congestion(
        &mut self,
        window: &Window,
        increase: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window;

    /// The share of the segments leaving the network in the following recovery that is not replaced, if the window
    /// decreases gradually from `before`; none: it decreases at once. Used by the recovery of FACK only.
    fn rampdown(&self, _before: &Window) -> Option<f64> {
        None
    }

    /// See [`WindowIncrease::recovery_cwnd`](super::WindowIncrease::recovery_cwnd).
    fn recovery_cwnd(&self, after: &Window, increase: &Increase) -> f64 {
        increase.recovery_cwnd(after)
    }

    /// The last decrease was spurious; `before` is the state before it.
    fn undo(&mut self, _before: &Self)
    where
        Self: Sized,
    {
    }

    /// The window after a timeout: ssthresh as after a loss, once per segment, and the loss window (RFC 5681 §3.1).
    fn after_timeout(
        &mut self,
        window: &Window,
        increase: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        let ssthresh = match signal.signal {
            Signal::RepeatedTimeout => window.ssthresh,
            _ => self.on_congestion(window, increase, signal).ssthresh,
        };
        Window {
            cwnd: LOSS_WINDOW,
            ssthresh,
        }
    }
}

/// A fixed share of FlightSize or cwnd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor {
    /// The share that remains.
    pub beta: f64,
    /// FlightSize as in RFC 5681, or cwnd as in Linux.
    pub basis: DecreaseBasis,
}

/// What a share is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecreaseBasis {
    /// FlightSize (RFC 5681 §3.1 equation 4).
    FlightSize,
    /// cwnd, rounded down to whole segments. Deviation: as Linux.
    Cwnd,
}

impl Factor {
    /// Share `beta` of what the profile decreases.
    pub fn of(beta: f64, profile: Profile) -> Self {
        let basis = match profile {
            Profile::Linux => DecreaseBasis::Cwnd,
            Profile::Rfc | Profile::Ns2 => DecreaseBasis::FlightSize,
        };
        Self { beta, basis }
    }
}

impl WindowDecrease for Factor {
    fn on_congestion(
        &mut self,
        window: &Window,
        _: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        Window::at(match self.basis {
            DecreaseBasis::FlightSize => self.beta * signal.flight,
            DecreaseBasis::Cwnd => libm::floor(self.beta * libm::floor(window.cwnd)),
        })
    }
}

/// The rule of increase determines it: see [`WindowIncrease::ssthresh_after`](super::WindowIncrease::ssthresh_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfIncrease;

impl WindowDecrease for OfIncrease {
    fn on_congestion(
        &mut self,
        window: &Window,
        increase: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        Window::at(increase.ssthresh_after(window, signal))
    }
}

/// Declares the closed enum of rules; each call is passed to the rule in use.
macro_rules! decreases {
    ($($(#[$doc:meta])* $name:ident: $rule:ty,)*) => {
        /// A rule of window decrease.
        #[derive(Clone, Debug)]
        pub enum Decrease {
            $($(#[$doc])* $name($rule),)*
        }

        $(impl From<$rule> for Decrease {
            fn from(decrease: $rule) -> Self {
                Self::$name(decrease)
            }
        })*

        impl Decrease {
            /// See [`WindowDecrease::OBSERVES`].
            pub fn observes(&self) -> bool {
                match self { $(Self::$name(_) => <$rule>::OBSERVES,)* }
            }

            /// See [`WindowDecrease::observe`].
            #[inline]
            pub fn observe(&mut self, ack: &AckEvidence, window: &Window) {
                match self { $(Self::$name(rule) => rule.observe(ack, window),)* }
            }

            /// See [`WindowDecrease::on_congestion`].
            pub fn on_congestion(
                &mut self,
                window: &Window,
                increase: &mut Increase,
                signal: &SignalEvidence,
            ) -> Window {
                match self { $(Self::$name(rule) => rule.on_congestion(window, increase, signal),)* }
            }

            /// See [`WindowDecrease::rampdown`].
            pub fn rampdown(&self, before: &Window) -> Option<f64> {
                match self { $(Self::$name(rule) => rule.rampdown(before),)* }
            }

            /// See [`WindowDecrease::recovery_cwnd`].
            pub fn recovery_cwnd(&self, after: &Window, increase: &Increase) -> f64 {
                match self { $(Self::$name(rule) => rule.recovery_cwnd(after, increase),)* }
            }

            /// See [`WindowDecrease::undo`].
            pub fn undo(&mut self, before: &Self) {
                match (self, before) {
                    $((Self::$name(rule), Self::$name(before)) => rule.undo(before),)*
                    _ => {}
                }
            }

            /// See [`WindowDecrease::after_timeout`].
            pub fn after_timeout(
                &mut self,
                window: &Window,
                increase: &mut Increase,
                signal: &SignalEvidence,
            ) -> Window {
                match self { $(Self::$name(rule) => rule.after_timeout(window, increase, signal),)* }
            }
        }
    };
}

decreases! {
    /// A fixed share.
    Factor: Factor,
    /// The rule of increase determines it.
    OfIncrease: OfIncrease,
    /// None: a fixed window.
    FixedWindow: variants::fixed_window::FixedWindow,
    /// Adaptive ssthresh reviser.
    Asran: variants::asran::Asran,
    /// To a half or a quarter, at once or gradually.
    Fack: variants::fack::Fack,
    /// Rate times minimum RTT; the rate is measured per round trip.
    Westwood: variants::westwood::Westwood,
    /// Rate times minimum RTT; the rate is measured per ACK.
    WestwoodBwe: variants::westwood_bwe::WestwoodBwe,
    /// Rate times minimum RTT; the rate is measured over an adaptive interval.
    WestwoodAbse: variants::westwood_abse::WestwoodAbse,
    /// Half, with an estimate during loss recovery, as in ns-2's TCP/Linux.
    Ns2LinuxWestwood: variants::ns2_linux_westwood::Ns2LinuxWestwood,
    /// Half, as in ns-2.
    Ns2Half: variants::ns2_reno::Ns2Half,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Reno;

    fn signal(signal: Signal) -> SignalEvidence {
        SignalEvidence {
            now: 0,
            flight: 30.0,
            lost_total: 1,
            signal,
        }
    }

    fn window() -> Window {
        Window {
            cwnd: 41.9,
            ssthresh: 64.0,
        }
    }

    #[test]
    fn a_factor_applies_to_flight_size_or_to_whole_segments_of_cwnd() {
        let mut increase = Increase::from(Reno::default());
        let mut on_congestion = |basis| {
            let mut factor = Factor { beta: 0.7, basis };
            factor.on_congestion(&window(), &mut increase, &signal(Signal::Loss))
        };
        assert_eq!(on_congestion(DecreaseBasis::FlightSize), Window::at(21.0));
        // 0.7 * 41 = 28.7.
        assert_eq!(on_congestion(DecreaseBasis::Cwnd), Window::at(28.0));
    }

    #[test]
    fn a_repeated_timeout_keeps_ssthresh_and_both_set_the_loss_window() {
        let mut increase = Increase::from(Reno::default());
        let mut rule = OfIncrease;
        let first = rule.after_timeout(&window(), &mut increase, &signal(Signal::Timeout));
        let again = rule.after_timeout(&window(), &mut increase, &signal(Signal::RepeatedTimeout));
        let expected = |ssthresh| Window {
            cwnd: 1.0,
            ssthresh,
        };
        assert_eq!((first, again), (expected(15.0), expected(64.0)));
    }
}
