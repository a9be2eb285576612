//! Congestion controllers: they own cwnd and ssthresh, see only digested evidence, and never look at the receiver's
//! window. A controller is three parts: how slow start ends, what an ACK buys (growth), what a signal costs
//! (reduction). Windows are in segments, as the papers and Linux count.
//!
//! Must not know segments, the scoreboard or timers. Read RFC 5681 §3 first, then the growth you are after.

mod cubic;
mod linux_cubic;
mod reno;
mod slow_start;

pub use cubic::{Cubic, CubicParams};
pub use linux_cubic::LinuxCubic;
pub use reno::Reno;
pub use slow_start::SlowStart;

use crate::time::Nanos;

/// Least cwnd and ssthresh after a reduction, in segments (RFC 5681 §3.1 equation 4).
const LEAST_SSTHRESH: f64 = 2.0;
/// Loss window, in segments (RFC 5681 §3.1).
const LOSS_WINDOW: f64 = 1.0;

/// What an ACK outside recovery tells a controller.
#[derive(Clone, Copy, Debug)]
pub struct AckEvidence {
    /// Time of the ACK.
    pub now: Nanos,
    /// Segments that it delivers.
    pub delivered: u32,
    /// Round-trip time of the newest segment that it acknowledges.
    pub rtt: Option<Nanos>,
    /// Smoothed round-trip time.
    pub srtt: Option<Nanos>,
    /// Sequence space: acknowledged and sent so far, to tell rounds apart.
    pub snd_una: u64,
    /// Next octet to be sent.
    pub snd_nxt: u64,
    /// The window, not the application or the receiver, held the sender back in the last round.
    pub cwnd_limited: bool,
}

/// What a congestion signal tells a controller.
#[derive(Clone, Copy, Debug)]
pub struct SignalEvidence {
    /// Time of the signal.
    pub now: Nanos,
    /// Segments in flight when it came (RFC 5681: FlightSize).
    pub flight: f64,
}

/// What an ACK buys in congestion avoidance.
#[derive(Clone, Debug)]
pub enum Growth {
    /// RFC 5681 §3.1.
    Reno(Reno),
    /// RFC 9438.
    Cubic(Cubic),
    /// RFC 9438 as Linux counts it.
    LinuxCubic(LinuxCubic),
}

/// What a loss costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// Factor on the window.
    pub beta: f64,
    /// Of what: FlightSize as RFC 5681 has it, or cwnd as Linux.
    pub basis: ReductionBasis,
}

/// What a reduction multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionBasis {
    /// FlightSize (RFC 5681 §3.1 equation 4).
    FlightSize,
    /// cwnd, rounded down to whole segments. Deviation: as Linux does.
    Cwnd,
}

/// cwnd and ssthresh with the parts that move them.
#[derive(Clone, Debug)]
pub struct Controller {
    cwnd: f64,
    ssthresh: f64,
    slow_start: SlowStart,
    growth: Growth,
    reduction: Reduction,
    before_reduction: Option<Box<Controller>>,
}

impl Controller {
    /// A controller with its initial window and ssthresh (infinite: none), in segments.
    pub fn new(
        initial_window: f64,
        ssthresh: f64,
        slow_start: SlowStart,
        growth: Growth,
        reduction: Reduction,
    ) -> Self {
        Self {
            cwnd: initial_window,
            ssthresh,
            slow_start,
            growth,
            reduction,
            before_reduction: None,
        }
    }

    /// Congestion window, in segments.
    #[inline]
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow start threshold, in segments; infinite while it is not set.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Whether cwnd is below ssthresh (RFC 5681 §3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// An RTT sample of data, whatever the phase; precedes `on_ack` for the same ACK.
    #[inline]
    pub fn on_rtt(&mut self, rtt: Nanos, ack: &AckEvidence) {
        if let Growth::LinuxCubic(cubic) = &mut self.growth {
            cubic.on_rtt(rtt, ack.now);
        }
        if self.in_slow_start() && self.slow_start.ends_by(rtt, self.cwnd, ack) {
            self.ssthresh = self.cwnd;
        }
    }

    /// An ACK outside fast recovery.
    #[inline]
    pub fn on_ack(&mut self, ack: &AckEvidence) {
        let mut left = f64::from(ack.delivered);
        if self.in_slow_start() {
            left = self
                .slow_start
                .on_ack(&mut self.cwnd, &mut self.ssthresh, ack);
        }
        // Deviation: no growth while the window is not what limits (RFC 7661 §4.2 and Linux; RFC 5681 is silent).
        if left > 0.0 && ack.cwnd_limited && !self.in_slow_start() {
            match &mut self.growth {
                Growth::Reno(reno) => reno.on_ack(&mut self.cwnd, left),
                Growth::Cubic(cubic) => cubic.on_ack(&mut self.cwnd, left, ack),
                Growth::LinuxCubic(cubic) => cubic.on_ack(&mut self.cwnd, left, ack),
            }
        }
    }

    /// A loss found by duplicate ACKs, SACK or RACK: sets ssthresh and cwnd to the reduced window.
    pub fn on_loss(&mut self, signal: &SignalEvidence) {
        self.reduce(signal);
        self.cwnd = self.ssthresh;
    }

    /// A retransmission timeout: ssthresh is reduced at the first of a row, cwnd falls to the loss window.
    pub fn on_timeout(&mut self, signal: &SignalEvidence, first: bool) {
        if first {
            self.reduce(signal);
        }
        match &mut self.growth {
            Growth::Reno(reno) => reno.restart(),
            Growth::Cubic(cubic) => cubic.on_timeout(),
            Growth::LinuxCubic(cubic) => cubic.on_timeout(),
        }
        self.slow_start.on_timeout();
        self.cwnd = LOSS_WINDOW;
    }

    /// RFC 5681 §4.1: after an idle time longer than the RTO the window restarts from the initial one.
    pub fn on_idle(&mut self, initial_window: f64, idle: Nanos) {
        self.cwnd = self.cwnd.min(initial_window);
        match &mut self.growth {
            Growth::Reno(_) => {}
            Growth::Cubic(cubic) => cubic.restart_epoch(),
            Growth::LinuxCubic(cubic) => cubic.on_idle(idle),
        }
    }

    /// Recovery ended with this window (RFC 6582 §3.2 step 3, RFC 9937).
    pub fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd.max(LOSS_WINDOW);
    }

    /// Takes back the last reduction: it was spurious.
    pub fn undo(&mut self) {
        if let Some(before) = self.before_reduction.take() {
            let cwnd = self.cwnd.max(before.cwnd);
            *self = *before;
            self.cwnd = cwnd;
        }
    }

    fn reduce(&mut self, signal: &SignalEvidence) {
        self.before_reduction = None;
        self.before_reduction = Some(Box::new(self.clone()));
        let target = match self.reduction.basis {
            ReductionBasis::FlightSize => self.reduction.beta * signal.flight,
            ReductionBasis::Cwnd => libm::floor(self.reduction.beta * libm::floor(self.cwnd)),
        };
        match &mut self.growth {
            Growth::Reno(reno) => reno.restart(),
            Growth::Cubic(cubic) => cubic.on_reduction(self.cwnd),
            Growth::LinuxCubic(cubic) => cubic.on_reduction(self.cwnd),
        }
        self.slow_start.end();
        self.ssthresh = target.max(LEAST_SSTHRESH);
    }
}
