//! Window increase: what an ACK adds to cwnd. One file per rule in `variants`, one line in the list at the end.
//!
//! Must not know what a loss costs, but for the growths whose own state says so (`ssthresh_after`).

use super::Window;
use super::evidence::{AckEvidence, SignalEvidence};
use crate::sim::time::Nanos;

/// A growth. Only `on_ack` is compulsory; the rest is for those that need it.
pub trait WindowIncrease {
    /// It wants every ACK, also while losses are being repaired: `observe` is called.
    const OBSERVES: bool = false;
    /// It grows the window below ssthresh as well (Hybla, Vegas, LEDBAT): `on_ack` is called for every ACK that may
    /// grow the window, the [`SlowStart`](super::SlowStart) part for none, and `AckEvidence::cwnd_limited` is its
    /// own business.
    const OWNS_SLOW_START: bool = false;
    /// It judges the path by itself: where a loss is taken for corruption, growth goes on while it is repaired.
    const INCREASES_IN_RECOVERY: bool = false;

    /// Every ACK, before the sender reacts to it: filters and delay samples.
    #[inline]
    fn observe(&mut self, _ack: &AckEvidence) {}

    /// Grows the window for `acked` segments, those left over from slow start.
    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence);

    /// The window that this growth wants after `signal`, in segments; read by `Decrease::OfIncrease` only.
    /// RFC 5681 §3.1 equation 4 unless the growth has its own (H-TCP, Illinois, YeAH, Veno, HighSpeed, Compound).
    fn ssthresh_after(&mut self, _window: &Window, signal: &SignalEvidence) -> f64 {
        signal.flight / 2.0
    }

    /// The window is being reduced from `before`, whatever the signal was.
    fn on_decrease(&mut self, _before: &Window) {}

    /// The retransmission timer expired; `on_decrease` came before it if the window was reduced.
    fn on_timeout(&mut self) {}

    /// Fast recovery ended, with this ACK.
    fn on_recovery_exit(&mut self, _ack: &AckEvidence) {}

    /// A dummy segment was answered (see `StackParams::low_priority_probes`).
    fn on_probe_answer(&mut self, _window: &mut Window) {}

    /// The last reduction was spurious; this growth stood at `before` when it came. The windows are given back
    /// elsewhere: what has been measured since stays, so that only what the reduction itself changed goes back.
    fn undo(&mut self, _before: &Self)
    where
        Self: Sized,
    {
    }

    /// Nothing was in flight for `idle`, longer than the RTO, and data is to be sent again.
    fn on_idle(&mut self, _idle: Nanos) {}
}

/// Declares the closed enum of growths and hands each call to the one at work.
macro_rules! increases {
    ($($(#[$doc:meta])* $name:ident: $module:ident,)*) => {
        /// What an ACK buys.
        #[derive(Clone, Debug)]
        pub enum Increase {
            $($(#[$doc])* $name(crate::cc::variants::$module::$name),)*
        }

        $(impl From<crate::cc::variants::$module::$name> for Increase {
            fn from(increase: crate::cc::variants::$module::$name) -> Self {
                Self::$name(increase)
            }
        })*

        impl Increase {
            /// See [`WindowIncrease::OBSERVES`].
            pub fn observes(&self) -> bool {
                match self { $(Self::$name(_) => crate::cc::variants::$module::$name::OBSERVES,)* }
            }

            /// See [`WindowIncrease::OWNS_SLOW_START`].
            #[inline]
            pub fn owns_slow_start(&self) -> bool {
                match self { $(Self::$name(_) => crate::cc::variants::$module::$name::OWNS_SLOW_START,)* }
            }

            /// See [`WindowIncrease::INCREASES_IN_RECOVERY`].
            pub fn increases_in_recovery(&self) -> bool {
                match self { $(Self::$name(_) => crate::cc::variants::$module::$name::INCREASES_IN_RECOVERY,)* }
            }

            /// See [`WindowIncrease::observe`].
            #[inline]
            pub fn observe(&mut self, ack: &AckEvidence) {
                match self { $(Self::$name(increase) => increase.observe(ack),)* }
            }

            /// See [`WindowIncrease::on_ack`].
            #[inline]
            pub fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence) {
                match self { $(Self::$name(increase) => increase.on_ack(window, acked, ack),)* }
            }

            /// See [`WindowIncrease::ssthresh_after`].
            pub fn ssthresh_after(&mut self, window: &Window, signal: &SignalEvidence) -> f64 {
                match self { $(Self::$name(increase) => increase.ssthresh_after(window, signal),)* }
            }

            /// See [`WindowIncrease::on_decrease`].
            pub fn on_decrease(&mut self, before: &Window) {
                match self { $(Self::$name(increase) => increase.on_decrease(before),)* }
            }

            /// See [`WindowIncrease::on_timeout`].
            pub fn on_timeout(&mut self) {
                match self { $(Self::$name(increase) => increase.on_timeout(),)* }
            }

            /// See [`WindowIncrease::on_recovery_exit`].
            pub fn on_recovery_exit(&mut self, ack: &AckEvidence) {
                match self { $(Self::$name(increase) => increase.on_recovery_exit(ack),)* }
            }

            /// See [`WindowIncrease::on_probe_answer`].
            pub fn on_probe_answer(&mut self, window: &mut Window) {
                match self { $(Self::$name(increase) => increase.on_probe_answer(window),)* }
            }

            /// See [`WindowIncrease::undo`].
            pub fn undo(&mut self, before: &Self) {
                match (self, before) {
                    $((Self::$name(increase), Self::$name(before)) => increase.undo(before),)*
                    _ => {}
                }
            }

            /// See [`WindowIncrease::on_idle`].
            pub fn on_idle(&mut self, idle: Nanos) {
                match self { $(Self::$name(increase) => increase.on_idle(idle),)* }
            }
        }
    };
}

increases! {
    /// RFC 5681 §3.1.
    Reno: reno,
    /// Towards a threshold that the spacing of ACKs tells.
    Afstart: afstart,
    /// RFC 9438.
    Cubic: cubic,
    /// RFC 9438 as Linux counts it.
    LinuxCubic: linux_cubic,
    /// None.
    FixedWindow: fixed_window,
    /// Binary increase.
    Bic: bic,
    /// Reno with a delay window beside it.
    Compound: compound,
    /// RFC 3649.
    Highspeed: highspeed,
    /// By the time since the last reduction.
    Htcp: htcp,
    /// As over a short path.
    Hybla: hybla,
    /// By queueing delay.
    Illinois: illinois,
    /// RFC 6817.
    Ledbat: ledbat,
    /// Reno with room found by dummy segments.
    Peach: peach,
    /// A fixed share per segment.
    Scalable: scalable,
    /// A few segments in queues.
    Vegas: vegas,
    /// Reno that tells random loss from congestion.
    Veno: veno,
    /// The same by few ACKs, through losses.
    ScpsVegas: scps_vegas,
    /// Scalable and Reno in turn.
    Yeah: yeah,
    /// RFC 5681 §3.1 as ns-2 counts it.
    Ns2Reno: ns2_reno,
}
