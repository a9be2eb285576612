//! Window decrease: cwnd and ssthresh after a congestion signal. One line in the list at the end per rule.
//!
//! Does not depend on how a window grows; it may ask the increase rule for its preferred window. Read RFC 5681 §3.1
//! equation 4 first.

use super::evidence::{AckEvidence, Signal, SignalEvidence};
use super::increase::Increase;
use super::{LOSS_WINDOW, Window, variants};
use crate::config::Profile;

/// A reduction. Only `reduced` is compulsory.
pub trait WindowDecrease {
    /// It wants every ACK, also while losses are being repaired: `observe` is called.
    const OBSERVES: bool = false;

    /// Every ACK, before the sender reacts to it, and the window that it meets (Westwood's bandwidth estimate).
    #[inline]
    fn observe(&mut self, _ack: &AckEvidence, _window: &Window) {}

    /// The window after a loss or a congestion mark. ssthresh falls to two segments at least, whatever this says.
    fn after_congestion(
        &mut self,
        window: &Window,
        increase: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window;

    /// Of each segment that leaves the network in the recovery that follows, the part that is not replaced, `before` being
    /// the window that the loss meets; none: the window falls at once. Read by the recovery of FACK only.
    fn rampdown(&self, _before: &Window) -> Option<f64> {
        None
    }

    /// The last reduction was spurious; this part stood at `before` when it came.
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
            _ => self.after_congestion(window, increase, signal).ssthresh,
        };
        Window {
            cwnd: LOSS_WINDOW,
            ssthresh,
        }
    }
}

/// A fixed share of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor {
    /// What remains.
    pub beta: f64,
    /// Of what: FlightSize as RFC 5681 has it, or cwnd as Linux.
    pub basis: DecreaseBasis,
}

/// What a factor multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecreaseBasis {
    /// FlightSize (RFC 5681 §3.1 equation 4).
    FlightSize,
    /// cwnd, rounded down to whole segments. Deviation: as Linux does.
    Cwnd,
}

impl Factor {
    /// `beta` of what the profile's stack multiplies.
    pub fn of(beta: f64, profile: Profile) -> Self {
        let basis = match profile {
            Profile::Linux => DecreaseBasis::Cwnd,
            Profile::Rfc | Profile::Ns2 => DecreaseBasis::FlightSize,
        };
        Self { beta, basis }
    }
}

impl WindowDecrease for Factor {
    fn after_congestion(
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

/// What the growth itself wants: see [`WindowIncrease::ssthresh_after`](super::WindowIncrease::ssthresh_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfIncrease;

impl WindowDecrease for OfIncrease {
    fn after_congestion(
        &mut self,
        window: &Window,
        increase: &mut Increase,
        signal: &SignalEvidence,
    ) -> Window {
        Window::at(increase.ssthresh_after(window, signal))
    }
}

/// Declares the closed enum of reductions and hands each call to the one at work.
macro_rules! decreases {
    ($($(#[$doc:meta])* $name:ident: $part:ty,)*) => {
        /// What a congestion signal costs.
        #[derive(Clone, Debug)]
        pub enum Decrease {
            $($(#[$doc])* $name($part),)*
        }

        $(impl From<$part> for Decrease {
            fn from(decrease: $part) -> Self {
                Self::$name(decrease)
            }
        })*

        impl Decrease {
            /// See [`WindowDecrease::OBSERVES`].
            pub fn observes(&self) -> bool {
                match self { $(Self::$name(_) => <$part>::OBSERVES,)* }
            }

            /// See [`WindowDecrease::observe`].
            #[inline]
            pub fn observe(&mut self, ack: &AckEvidence, window: &Window) {
                match self { $(Self::$name(part) => part.observe(ack, window),)* }
            }

            /// See [`WindowDecrease::reduced`].
            pub fn after_congestion(
                &mut self,
                window: &Window,
                increase: &mut Increase,
                signal: &SignalEvidence,
            ) -> Window {
                match self { $(Self::$name(part) => part.after_congestion(window, increase, signal),)* }
            }

            /// See [`WindowDecrease::rampdown`].
            pub fn rampdown(&self, before: &Window) -> Option<f64> {
                match self { $(Self::$name(part) => part.rampdown(before),)* }
            }

            /// See [`WindowDecrease::undo`].
            pub fn undo(&mut self, before: &Self) {
                match (self, before) {
                    $((Self::$name(part), Self::$name(before)) => part.undo(before),)*
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
                match self { $(Self::$name(part) => part.after_timeout(window, increase, signal),)* }
            }
        }
    };
}

decreases! {
    /// A fixed share.
    Factor: Factor,
    /// What the growth wants.
    OfIncrease: OfIncrease,
    /// Nothing.
    FixedWindow: variants::fixed_window::FixedWindow,
    /// Adaptive ssthresh reviser.
    Asran: variants::asran::Asran,
    /// Half or a quarter, at once or gradually.
    Fack: variants::fack::Fack,
    /// Rate times least RTT, by round trips.
    Westwood: variants::westwood::Westwood,
    /// The same, by ACKs.
    WestwoodBwe: variants::westwood_bwe::WestwoodBwe,
    /// The same, over an adaptive interval.
    WestwoodAbse: variants::westwood_abse::WestwoodAbse,
    /// Half, as ns-2 takes it.
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
    fn a_factor_takes_its_share_of_the_flight_or_of_whole_segments_of_cwnd() {
        let mut increase = Increase::from(Reno::default());
        let mut after_congestion = |basis| {
            let mut factor = Factor { beta: 0.7, basis };
            factor.after_congestion(&window(), &mut increase, &signal(Signal::Loss))
        };
        assert_eq!(
            after_congestion(DecreaseBasis::FlightSize),
            Window::at(21.0)
        );
        // 0.7 * 41 = 28.7.
        assert_eq!(after_congestion(DecreaseBasis::Cwnd), Window::at(28.0));
    }

    #[test]
    fn a_repeated_timeout_holds_ssthresh_and_both_fall_to_the_loss_window() {
        let mut increase = Increase::from(Reno::default());
        let mut part = OfIncrease;
        let first = part.after_timeout(&window(), &mut increase, &signal(Signal::Timeout));
        let again = part.after_timeout(&window(), &mut increase, &signal(Signal::RepeatedTimeout));
        let expected = |ssthresh| Window {
            cwnd: 1.0,
            ssthresh,
        };
        assert_eq!((first, again), (expected(15.0), expected(64.0)));
    }
}
