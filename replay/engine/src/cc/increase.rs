//! Growth: what an ACK buys. One file per growth, one line in the list at the end.
//!
//! Must not know what a loss costs, but for the growths whose own state says so (`reduced_window`).

use super::Window;
use super::evidence::{AckEvidence, SignalEvidence};
use crate::sim::time::Nanos;

/// A growth. Only `on_ack` is compulsory; the rest is for those that need it.
pub trait WindowGrowth {
    /// It wants every ACK, also while losses are being repaired: `observe` is called.
    const OBSERVES: bool = false;
    /// It grows the window below ssthresh as well (Hybla, Vegas, LEDBAT): `on_ack` is called for every ACK that may
    /// grow the window, the [`SlowStart`](super::SlowStart) part for none, and `AckEvidence::cwnd_limited` is its
    /// own business.
    const OWNS_SLOW_START: bool = false;
    /// It judges the path by itself: where a loss is taken for corruption, growth goes on while it is repaired.
    const GROWS_IN_RECOVERY: bool = false;

    /// Every ACK, before the sender reacts to it: filters and delay samples.
    #[inline]
    fn observe(&mut self, _ack: &AckEvidence) {}

    /// Grows the window for `acked` segments, those left over from slow start.
    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence);

    /// The window that this growth wants after `signal`, in segments; read by `Reduction::OfGrowth` only.
    /// RFC 5681 §3.1 equation 4 unless the growth has its own (H-TCP, Illinois, YeAH, Veno, HighSpeed, Compound).
    fn reduced_window(&mut self, _window: &Window, signal: &SignalEvidence) -> f64 {
        signal.flight / 2.0
    }

    /// The window is being reduced from `before`, whatever the signal was.
    fn on_reduction(&mut self, _before: &Window) {}

    /// The retransmission timer expired; `on_reduction` came before it if the window was reduced.
    fn on_timeout(&mut self) {}

    /// Fast recovery ended, with this ACK.
    fn on_recovery_exit(&mut self, _ack: &AckEvidence) {}

    /// A dummy segment was answered (see `StackParams::dummies`).
    fn on_dummy_answer(&mut self, _window: &mut Window) {}

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
macro_rules! growths {
    ($($(#[$doc:meta])* $name:ident: $module:ident,)*) => {
        /// What an ACK buys.
        #[derive(Clone, Debug)]
        pub enum Growth {
            $($(#[$doc])* $name(crate::cc::variants::$module::$name),)*
        }

        $(impl From<crate::cc::variants::$module::$name> for Growth {
            fn from(growth: crate::cc::variants::$module::$name) -> Self {
                Self::$name(growth)
            }
        })*

        impl Growth {
            /// See [`WindowGrowth::OBSERVES`].
            pub fn observes(&self) -> bool {
                match self { $(Self::$name(_) => crate::cc::variants::$module::$name::OBSERVES,)* }
            }

            /// See [`WindowGrowth::OWNS_SLOW_START`].
            #[inline]
            pub fn owns_slow_start(&self) -> bool {
                match self { $(Self::$name(_) => crate::cc::variants::$module::$name::OWNS_SLOW_START,)* }
            }

            /// See [`WindowGrowth::GROWS_IN_RECOVERY`].
            pub fn grows_in_recovery(&self) -> bool {
                match self { $(Self::$name(_) => crate::cc::variants::$module::$name::GROWS_IN_RECOVERY,)* }
            }

            /// See [`WindowGrowth::observe`].
            #[inline]
            pub fn observe(&mut self, ack: &AckEvidence) {
                match self { $(Self::$name(growth) => growth.observe(ack),)* }
            }

            /// See [`WindowGrowth::on_ack`].
            #[inline]
            pub fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence) {
                match self { $(Self::$name(growth) => growth.on_ack(window, acked, ack),)* }
            }

            /// See [`WindowGrowth::reduced_window`].
            pub fn reduced_window(&mut self, window: &Window, signal: &SignalEvidence) -> f64 {
                match self { $(Self::$name(growth) => growth.reduced_window(window, signal),)* }
            }

            /// See [`WindowGrowth::on_reduction`].
            pub fn on_reduction(&mut self, before: &Window) {
                match self { $(Self::$name(growth) => growth.on_reduction(before),)* }
            }

            /// See [`WindowGrowth::on_timeout`].
            pub fn on_timeout(&mut self) {
                match self { $(Self::$name(growth) => growth.on_timeout(),)* }
            }

            /// See [`WindowGrowth::on_recovery_exit`].
            pub fn on_recovery_exit(&mut self, ack: &AckEvidence) {
                match self { $(Self::$name(growth) => growth.on_recovery_exit(ack),)* }
            }

            /// See [`WindowGrowth::on_dummy_answer`].
            pub fn on_dummy_answer(&mut self, window: &mut Window) {
                match self { $(Self::$name(growth) => growth.on_dummy_answer(window),)* }
            }

            /// See [`WindowGrowth::undo`].
            pub fn undo(&mut self, before: &Self) {
                match (self, before) {
                    $((Self::$name(growth), Self::$name(before)) => growth.undo(before),)*
                    _ => {}
                }
            }

            /// See [`WindowGrowth::on_idle`].
            pub fn on_idle(&mut self, idle: Nanos) {
                match self { $(Self::$name(growth) => growth.on_idle(idle),)* }
            }
        }
    };
}

growths! {
    /// RFC 5681 §3.1.
    Reno: reno,
    /// Towards a threshold that the spacing of ACKs tells.
    Afstart: afstart,
    /// RFC 9438.
    Cubic: cubic,
    /// RFC 9438 as Linux counts it.
    LinuxCubic: linux_cubic,
    /// None.
    Held: fixed_window,
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
