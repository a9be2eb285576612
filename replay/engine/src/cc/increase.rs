//! Window increase: how far an ACK opens the window. One file per rule, one line in the list at the end.
//!
//! Does not depend on the decrease, except for rules whose state determines it (`ssthresh_after`).

use super::Window;
use super::evidence::{AckEvidence, SignalEvidence};
use crate::sim::time::Nanos;

/// A rule of window increase. Only `on_ack` is required.
pub trait WindowIncrease {
    /// It needs every ACK, in recovery too: `observe` is called.
    const OBSERVES: bool = false;
    /// It also opens the window below ssthresh (Hybla, Vegas, LEDBAT): `on_ack` is called for every ACK that may open
    /// the window, [`SlowStart`](super::SlowStart) is not used, and the rule itself must respect
    /// `AckEvidence::cwnd_limited`.
    const OWNS_SLOW_START: bool = false;
    /// It increases the window in fast recovery too, if losses count as corruption.
    const INCREASES_IN_RECOVERY: bool = false;

    /// Every ACK, before the sender reacts to it, for filters and delay samples.
    #[inline]
    fn observe(&mut self, _ack: &AckEvidence) {}

    /// Opens the window for `acked` segments, those that slow start has not used.
    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence);

    /// ssthresh after `signal`, in segments, used by `Decrease::OfIncrease` only. RFC 5681 §3.1 equation 4 unless the
    /// rule has a different one (H-TCP, Illinois, YeAH, Veno, HighSpeed, Compound).
    fn ssthresh_after(&mut self, _window: &Window, signal: &SignalEvidence) -> f64 {
        signal.flight / 2.0
    }

    /// cwnd of ns-2's TCP/Linux during loss recovery, after which the window is `after` (Linux 2.6.22: `min_cwnd`): half of
    /// ssthresh, as Reno's module has it.
    fn recovery_cwnd(&self, after: &Window) -> f64 {
        libm::floor(after.ssthresh / 2.0)
    }

    /// The window decreases from `before`, for whatever signal.
    fn on_decrease(&mut self, _before: &Window) {}

    /// The retransmission timer expired; if the window decreased, `on_decrease` was called before.
    fn on_timeout(&mut self) {}

    /// Fast recovery ends with this ACK.
    fn on_recovery_exit(&mut self, _ack: &AckEvidence) {}

    /// A probe segment was answered (see `StackParams::low_priority_probes`).
    fn on_probe_answer(&mut self, _window: &mut Window) {}

    /// The last decrease was spurious; `before` is the state before it. The window itself is restored by the caller;
    /// measurements since then stay, so that only the changes of the decrease are undone.
    fn undo(&mut self, _before: &Self)
    where
        Self: Sized,
    {
    }

    /// The connection was idle for `idle`, longer than the RTO, and sends again.
    fn on_idle(&mut self, _idle: Nanos) {}

    /// New data leaves at `now` while nothing is in the network, `idle` after the last segment.
    fn on_resume(&mut self, _idle: Nanos, _now: Nanos) {}
}

/// Declares the closed enum of rules; each call is passed to the rule in use.
macro_rules! increases {
    ($($(#[$doc:meta])* $name:ident: $module:ident,)*) => {
        /// A rule of window increase.
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

            /// See [`WindowIncrease::recovery_cwnd`].
            pub fn recovery_cwnd(&self, after: &Window) -> f64 {
                match self { $(Self::$name(increase) => increase.recovery_cwnd(after),)* }
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

            /// See [`WindowIncrease::on_resume`].
            pub fn on_resume(&mut self, idle: Nanos, now: Nanos) {
                match self { $(Self::$name(increase) => increase.on_resume(idle, now),)* }
            }
        }
    };
}

increases! {
    /// RFC 5681 §3.1.
    Reno: reno,
    /// Towards an ssthresh that the spacing of ACKs determines.
    Afstart: afstart,
    /// RFC 9438.
    Cubic: cubic,
    /// RFC 9438 with the arithmetic of Linux.
    LinuxCubic: linux_cubic,
    /// A fixed window.
    FixedWindow: fixed_window,
    /// Binary search.
    Bic: bic,
    /// Reno's window and a delay window.
    Compound: compound,
    /// RFC 3649.
    Highspeed: highspeed,
    /// By the time since the last decrease.
    Htcp: htcp,
    /// As on a path with a short RTT.
    Hybla: hybla,
    /// By queueing delay.
    Illinois: illinois,
    /// RFC 6817.
    Ledbat: ledbat,
    /// Reno with bandwidth found by low-priority probe segments.
    Peach: peach,
    /// A fixed increase per segment.
    Scalable: scalable,
    /// A few segments in queues.
    Vegas: vegas,
    /// Reno that distinguishes random loss from congestion.
    Veno: veno,
    /// Vegas with few ACKs, through losses.
    ScpsVegas: scps_vegas,
    /// Scalable TCP and Reno alternately.
    Yeah: yeah,
    /// RFC 5681 §3.1 as in ns-2.
    Ns2Reno: ns2_reno,
    /// The same as in ns-2's TCP/Linux.
    Ns2LinuxReno: ns2_linux_reno,
    /// CUBIC as in ns-2's TCP/Linux.
    Ns2LinuxCubic: ns2_linux_cubic,
}
