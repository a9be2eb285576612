//! Congestion controllers: they own cwnd and ssthresh, see only digested evidence, and never look at the receiver's
//! window. Windows are in segments, as the papers and Linux count.
//!
//! A controller of the usual kind ([`Windowed`]) is made of parts that combine freely: how slow start ends
//! ([`SlowStart`]), what an ACK buys ([`Growth`]) and what a signal costs ([`Reduction`]); how losses are found and
//! repaired and how the timeout is computed are the sender's parts, chosen by the catalogue.
//!
//! To add a variant:
//! 1. a file here with its state, its parameters (`parameters!`, see `params`) and its equations as small named
//!    functions, tested in both directions, and an `impl` of [`WindowGrowth`] or [`WindowReduction`];
//! 2. its line in the list `growths!` (`growth.rs`) or `reductions!` (`reduction.rs`);
//! 3. its row and its match arm in `catalogue.rs`, and its page `docs/variants/<name>.md`.
//!
//! Must not know segments, the scoreboard or timers. Read RFC 5681 §3 first, then the growth you are after.

mod cubic;
mod evidence;
mod growth;
mod linux_cubic;
mod params;
mod reduction;
mod reno;
mod slow_start;

pub use cubic::{Cubic, CubicParams};
pub use evidence::{AckEvidence, Repair, Round, Signal, SignalEvidence};
pub use growth::{Growth, WindowGrowth};
pub use linux_cubic::LinuxCubic;
pub use params::{Choice, Kind, ParamSpec, ParamValue, ParamValues, check};
pub use reduction::{Factor, OfGrowth, Reduction, ReductionBasis, WindowReduction};
pub use reno::Reno;
pub use slow_start::SlowStart;

use crate::time::Nanos;

/// Least ssthresh after a reduction, in segments (RFC 5681 §3.1 equation 4).
const LEAST_SSTHRESH: f64 = 2.0;
/// Loss window, in segments (RFC 5681 §3.1).
const LOSS_WINDOW: f64 = 1.0;

/// The two variables of RFC 5681, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow start threshold; infinite while it is not set.
    pub ssthresh: f64,
}

impl Window {
    /// cwnd and ssthresh alike: where a usual reduction leaves them, two segments at least.
    pub fn at(segments: f64) -> Self {
        let segments = segments.max(LEAST_SSTHRESH);
        Self {
            cwnd: segments,
            ssthresh: segments,
        }
    }

    /// Whether cwnd is below ssthresh (RFC 5681 §3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// A controller: the window with the parts that move it.
#[derive(Clone, Debug)]
pub struct Controller {
    window: Window,
    slow_start: SlowStart,
    growth: Growth,
    reduction: Reduction,
    observes: bool,
    before_reduction: Option<Box<Controller>>,
}

impl Controller {
    /// A controller with its initial window and ssthresh.
    pub fn new(
        window: Window,
        slow_start: SlowStart,
        growth: impl Into<Growth>,
        reduction: impl Into<Reduction>,
    ) -> Self {
        let (growth, reduction) = (growth.into(), reduction.into());
        Self {
            window,
            observes: slow_start.observes() || growth.observes() || reduction.observes(),
            slow_start,
            growth,
            reduction,
            before_reduction: None,
        }
    }

    /// Congestion window, in segments.
    #[inline]
    pub fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    /// Slow start threshold, in segments; infinite while it is not set.
    pub fn ssthresh(&self) -> f64 {
        self.window.ssthresh
    }

    /// Whether cwnd is below ssthresh (RFC 5681 §3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    /// Whether it wants `observe`: the sender asks before it gathers the evidence.
    #[inline]
    pub fn observes(&self) -> bool {
        self.observes
    }

    /// Every ACK, before the sender reacts to it.
    pub fn observe(&mut self, ack: &AckEvidence) {
        if self.in_slow_start() && self.slow_start.ends_by(self.window.cwnd, ack) {
            self.window.ssthresh = self.window.cwnd;
        }
        self.growth.observe(ack);
        self.reduction.observe(ack);
    }

    /// An ACK that may grow the window: outside fast recovery, after the sender has reacted to it.
    #[inline]
    pub fn on_ack(&mut self, ack: &AckEvidence) {
        let mut left = f64::from(ack.delivered);
        if self.growth.owns_slow_start() {
            self.growth.on_ack(&mut self.window, left, ack);
            return;
        }
        if self.in_slow_start() {
            let Window { cwnd, ssthresh } = &mut self.window;
            left = self.slow_start.on_ack(cwnd, ssthresh, ack);
        }
        // Deviation: no growth while the window is not what limits (RFC 7661 §4.2 and Linux; RFC 5681 is silent).
        if left > 0.0 && ack.cwnd_limited && !self.in_slow_start() {
            self.growth.on_ack(&mut self.window, left, ack);
        }
    }

    /// A loss found by duplicate ACKs, SACK or RACK, or a congestion mark: reduces the window.
    pub fn on_congestion(&mut self, signal: &SignalEvidence) {
        self.keep_for_undo();
        let after = self
            .reduction
            .reduced(&self.window, &mut self.growth, signal);
        self.reduce_to(after);
    }

    /// A retransmission timeout: ssthresh is reduced at the first of a row, cwnd falls to the loss window.
    pub fn on_timeout(&mut self, signal: &SignalEvidence) {
        let first = signal.signal != Signal::RepeatedTimeout;
        if first {
            self.keep_for_undo();
        }
        let after = self
            .reduction
            .after_timeout(&self.window, &mut self.growth, signal);
        if first {
            self.reduce_to(after);
        } else {
            self.window = after;
        }
        self.growth.on_timeout();
        self.slow_start.on_timeout();
    }

    /// Fast recovery ended with this ACK; `cwnd` is where its algorithm leaves the window (RFC 6582 §3.2 step 3,
    /// RFC 9937), none to leave it as it is.
    pub fn on_recovery_exit(&mut self, ack: &AckEvidence, cwnd: Option<f64>) {
        if let Some(cwnd) = cwnd {
            self.window.cwnd = cwnd.max(LOSS_WINDOW);
        }
        self.growth.on_recovery_exit(ack);
    }

    /// RFC 5681 §4.1: after an idle time longer than the RTO the window restarts from the initial one.
    pub fn on_idle(&mut self, initial_window: f64, idle: Nanos) {
        self.window.cwnd = self.window.cwnd.min(initial_window);
        self.growth.on_idle(idle);
    }

    /// Takes back the last reduction: it was spurious.
    pub fn undo(&mut self) {
        if let Some(before) = self.before_reduction.take() {
            let cwnd = self.window.cwnd.max(before.window.cwnd);
            *self = *before;
            self.window.cwnd = cwnd;
        }
    }

    fn keep_for_undo(&mut self) {
        self.before_reduction = None;
        self.before_reduction = Some(Box::new(self.clone()));
    }

    fn reduce_to(&mut self, after: Window) {
        self.growth.on_reduction(&self.window);
        self.slow_start.end();
        self.window = Window {
            ssthresh: after.ssthresh.max(LEAST_SSTHRESH),
            cwnd: after.cwnd.max(LOSS_WINDOW),
        };
    }
}
