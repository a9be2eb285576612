//! Congestion controllers: they own cwnd and ssthresh, see only digested evidence, and never look at the receiver's
//! window. Windows are in segments, as the papers and Linux count.
//!
//! A controller that models the path (`Bbr`, `Bbr3`) is a thing of its own: it hears every ACK, samples rates, paces, and
//! keeps its window in recovery. One of the usual kind ([`Windowed`]) is made of parts that combine freely: how slow start ends
//! ([`SlowStart`]), what an ACK buys ([`Increase`]) and what a signal costs ([`Decrease`]); how losses are found and
//! repaired and how the timeout is computed are the sender's parts, which a variant names in its [`Definition`].
//!
//! A user's controller ([`ExternalController`]) lives outside of the engine.
//!
//! CONTRIBUTING, "Adding a variant", says how to add one, step by step.
//!
//! Does not depend on segments, the scoreboard or timers. Read RFC 5681 §3 first, then the growth you are after.

pub(crate) mod catalogue;
mod decrease;
mod definition;
mod delivery_window;
mod evidence;
mod external;
mod increase;
mod params;
mod rtt_round;
mod slow_start;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod variants;
mod windowed;
mod windowed_max;

pub use decrease::{Decrease, Factor, OfIncrease, WindowDecrease};
pub use definition::{ControllerParts, Definition};
pub use evidence::{AckEvidence, LostSegment, RateSample, Repair, Round, Signal, SignalEvidence};
pub use external::{ControllerEvent, External, ExternalController, Externals, MakeExternal};
pub use increase::{Increase, WindowIncrease};
pub use params::{Choice, Kind, ParamSpec, ParamValue, ParamValues, check};
pub use slow_start::SlowStart;
pub use variants::fixed_window::{FixedWindow, Sharers};
pub use variants::reno::Reno;
pub use windowed::{WindowPacing, Windowed};

use crate::config::StackParams;
use crate::sim::time::Nanos;
use variants::bbr::Bbr;
use variants::bbr3::Bbr3;

/// Minimum ssthresh after a reduction, in segments (RFC 5681 §3.1 equation 4).
pub const MIN_SSTHRESH: f64 = 2.0;
/// What a loss leaves of the flight (RFC 5681 §3.1 equation 4).
pub const HALF: f64 = 0.5;
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

/// How fast segments may leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Segments per second; infinite for at once.
    pub pkts_per_s: f64,
    /// Segments that leave back to back at least.
    pub min_burst_pkts: u32,
    /// … and at most, whatever the rate.
    pub max_burst_pkts: u32,
}

impl Pace {
    /// As soon as the window lets them.
    pub const UNPACED: Self = Self::new(f64::INFINITY, 1);

    /// So many segments per second, at least so many of them back to back, and as many as the pacer's rule has.
    pub const fn new(pkts_per_s: f64, min_burst_pkts: u32) -> Self {
        Self {
            pkts_per_s,
            min_burst_pkts,
            max_burst_pkts: u32::MAX,
        }
    }
}

impl Window {
    /// Where a connection starts.
    pub fn initial(params: &StackParams) -> Self {
        let ssthresh = params.initial_ssthresh_pkts;
        Self {
            cwnd: f64::from(params.initial_window_pkts),
            ssthresh: ssthresh.map_or(f64::INFINITY, f64::from),
        }
    }

    /// cwnd and ssthresh alike: where a usual reduction leaves them, two segments at least.
    pub fn at(segments: f64) -> Self {
        let segments = segments.max(MIN_SSTHRESH);
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

/// A controller. Each method hands on to the one at work; a kind that has no use for an event ignores it.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per connection; the usual kind is read at every ACK and stays inline"
)]
// A tag of its own, asked for several times per segment: one that is packed into a part has to be worked out each time.
#[repr(u8)]
pub enum Controller {
    /// A window made of parts.
    Windowed(Windowed),
    /// BBR.
    Bbr(Box<Bbr>),
    /// BBR, version 3.
    Bbr3(Box<Bbr3>),
    /// A user's own.
    External(Box<ExternalController>),
}

impl Controller {
    /// Congestion window, in segments.
    #[inline]
    pub fn cwnd(&self) -> f64 {
        match self {
            Self::Windowed(windowed) => windowed.cwnd(),
            Self::Bbr(bbr) => bbr.output.cwnd(),
            Self::Bbr3(bbr) => bbr.output.cwnd(),
            Self::External(outside) => outside.window().cwnd,
        }
    }

    /// Slow start threshold, in segments; infinite while it is not set.
    pub fn ssthresh(&self) -> f64 {
        match self {
            Self::Windowed(windowed) => windowed.ssthresh(),
            Self::Bbr(bbr) => bbr.output.ssthresh,
            Self::Bbr3(bbr) => bbr.output.ssthresh,
            Self::External(outside) => outside.window().ssthresh,
        }
    }

    /// Whether the window still opens for the first time, or again after a timeout.
    #[allow(
        clippy::inline_always,
        reason = "asked for nearly every segment; a hint is not heard"
    )]
    #[inline(always)]
    pub fn in_slow_start(&self) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.in_slow_start(),
            Self::Bbr(bbr) => bbr.in_startup(),
            Self::Bbr3(bbr) => bbr.in_startup(),
            Self::External(outside) => outside.window().in_slow_start(),
        }
    }

    /// Whether it models the path: the sender then samples delivery rates, hands it every ACK that delivers or reports
    /// something, in recovery too (`on_ack`), and lets its window govern in recovery, instead of a rule of its own.
    #[inline]
    pub fn models_path(&self) -> bool {
        matches!(self, Self::Bbr(_) | Self::Bbr3(_))
    }

    /// Whether it wants `observe`: the sender asks before it gathers the evidence.
    #[inline]
    pub fn observes(&self) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.observes(),
            Self::Bbr(_) | Self::Bbr3(_) => false,
            Self::External(outside) => outside.observes(),
        }
    }

    /// Whether ACKs move the window in fast recovery too: losses cost nothing, and the growth judges the path by itself.
    pub fn increases_in_recovery(&self) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.increases_in_recovery(),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => false,
        }
    }

    /// Whether an ACK outside fast recovery can move it; `cwnd_limited` as in [`AckEvidence`].
    #[inline]
    pub fn heeds(&self, cwnd_limited: bool) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.heeds(cwnd_limited),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => true,
        }
    }

    /// Takes an ACK that may grow the window, of so many segments, if it wants to know nothing else of it. Says whether it
    /// did; where it did not, it has to be told by `observe` and `on_ack`.
    #[inline]
    pub fn counts(&mut self, delivered: u32) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.counts(delivered),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => false,
        }
    }

    /// Every ACK, before the sender reacts to it.
    pub fn observe(&mut self, ack: &AckEvidence) {
        match self {
            Self::Windowed(windowed) => windowed.observe(ack),
            Self::Bbr(_) | Self::Bbr3(_) => {}
            Self::External(outside) => outside.notify(&ControllerEvent::Observe(*ack)),
        }
    }

    /// The connection stands. `rtt` is that of the handshake, `delivered` what it counts (its SYN).
    pub fn on_established(&mut self, now: Nanos, rtt: Option<Nanos>, delivered: u64) {
        match self {
            Self::Bbr(bbr) => bbr.on_established(now, rtt, delivered),
            Self::Bbr3(bbr) => bbr.on_established(now, rtt, delivered),
            Self::Windowed(windowed) => windowed.note_open(true),
            Self::External(_) => {}
        }
    }

    /// All that the application had to send has been acknowledged.
    pub fn on_finished(&mut self) {
        if let Self::Windowed(windowed) = self {
            windowed.note_open(false);
        }
    }

    /// Where the connections of a run that share a window are counted; for the others nothing.
    pub fn share_with(&mut self, sharers: &Sharers) {
        if let Self::Windowed(windowed) = self {
            windowed.share_with(sharers);
        }
    }

    /// Whether it wants `on_lost`; the sender asks once.
    pub fn wants_losses(&self) -> bool {
        matches!(self, Self::Bbr3(_))
    }

    /// A segment has been marked lost; comes before the `on_ack` or `on_timeout` that belongs to it.
    pub fn on_lost(&mut self, lost: &LostSegment) {
        if let Self::Bbr3(bbr) = self {
            bbr.on_lost(lost);
        }
    }

    /// An ACK, after the sender has reacted to it: outside fast recovery, and for a model of the path in it too.
    #[inline]
    pub fn on_ack(&mut self, ack: &AckEvidence) {
        match self {
            Self::Windowed(windowed) => windowed.on_ack(ack),
            Self::Bbr(bbr) => bbr.on_ack(ack),
            Self::Bbr3(bbr) => bbr.on_ack(ack),
            Self::External(outside) => outside.notify(&ControllerEvent::Ack(*ack)),
        }
    }

    /// `on_ack` in two steps, for a model of the path: takes an ACK that tells it nothing new, which leaves its pace and what
    /// it is doing as they are. Where it says that the ACK is none, `learn` has to follow.
    #[allow(
        clippy::inline_always,
        reason = "part of the short way of nearly every segment; a hint is not heard"
    )]
    #[inline(always)]
    pub fn on_steady_ack(&mut self, ack: &AckEvidence) -> bool {
        match self {
            Self::Bbr(bbr) => bbr.on_steady_ack(ack),
            Self::Bbr3(bbr) => bbr.on_steady_ack(ack),
            Self::Windowed(_) | Self::External(_) => false,
        }
    }

    /// See `on_steady_ack`.
    pub fn learn(&mut self, ack: &AckEvidence) {
        match self {
            Self::Bbr(bbr) => bbr.learn(ack),
            Self::Bbr3(bbr) => bbr.learn(ack),
            Self::Windowed(_) | Self::External(_) => {}
        }
    }

    /// A loss found by duplicate ACKs, SACK or RACK, or a congestion mark: reduces the window.
    pub fn on_congestion(&mut self, signal: &SignalEvidence) {
        match self {
            Self::Windowed(windowed) => windowed.on_congestion(signal),
            Self::Bbr(bbr) => bbr.on_congestion(),
            Self::Bbr3(bbr) => bbr.on_congestion(signal),
            Self::External(outside) => outside.reduce(&ControllerEvent::Congestion(*signal)),
        }
    }

    /// A congestion mark: reduces the window (see `windowed`). Says whether it did: a model of the path only notes it.
    pub fn on_mark(&mut self, signal: &SignalEvidence, beta: Option<f64>) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.on_mark(signal, beta),
            Self::Bbr(bbr) => bbr.on_mark(),
            Self::Bbr3(bbr) => bbr.on_mark(),
            Self::External(outside) => {
                outside.reduce(&ControllerEvent::Congestion(*signal));
                if let Some(beta) = beta {
                    outside.set_window(Window::at(beta * signal.flight));
                }
            }
        }
        !self.models_path()
    }

    /// A retransmission timeout: ssthresh is reduced at the first of a row, cwnd falls to the loss window.
    pub fn on_timeout(&mut self, signal: &SignalEvidence) {
        match self {
            Self::Windowed(windowed) => windowed.on_timeout(signal),
            Self::Bbr(bbr) => bbr.on_timeout(signal),
            Self::Bbr3(bbr) => bbr.on_timeout(signal),
            Self::External(outside) => outside.reduce(&ControllerEvent::Timeout(*signal)),
        }
    }

    /// Whether a loss costs its share gradually: see [`WindowDecrease::rampdown`].
    pub fn rampdown(&self) -> Option<f64> {
        match self {
            Self::Windowed(windowed) => windowed.rampdown(),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => None,
        }
    }

    /// cwnd while ns-2's TCP/Linux repairs the loss that has just reduced the window.
    pub fn repair_cwnd(&self) -> f64 {
        match self {
            Self::Windowed(windowed) => windowed.repair_cwnd(),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => self.cwnd(),
        }
    }

    /// Fast recovery ended with this ACK; `cwnd` is where its algorithm leaves the window (RFC 6582 §3.2 step 3,
    /// RFC 9937), none to leave it as it is.
    pub fn on_recovery_exit(&mut self, ack: &AckEvidence, cwnd: Option<f64>) {
        match self {
            Self::Windowed(windowed) => windowed.on_recovery_exit(ack, cwnd),
            Self::Bbr(_) | Self::Bbr3(_) => {}
            Self::External(outside) => {
                if let Some(cwnd) = cwnd {
                    outside.set_cwnd(cwnd.max(LOSS_WINDOW));
                }
                outside.notify(&ControllerEvent::RecoveryExit(*ack));
            }
        }
    }

    /// A dummy segment was answered.
    pub fn on_probe_answer(&mut self) {
        match self {
            Self::Windowed(windowed) => windowed.on_probe_answer(),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => {}
        }
    }

    /// RFC 5681 §4.1: after `idle`, longer than the RTO, the window restarts from the initial one.
    pub fn on_idle(&mut self, initial_window: f64, idle: Nanos) {
        match self {
            Self::Windowed(windowed) => windowed.on_idle(initial_window, idle),
            // Linux: a model of the path keeps its window.
            Self::Bbr(_) | Self::Bbr3(_) => {}
            Self::External(outside) => outside.notify(&ControllerEvent::Idle(initial_window, idle)),
        }
    }

    /// Data leaves again after the application had none and nothing was in flight.
    pub fn on_restart(&mut self, now: Nanos) {
        match self {
            Self::Bbr(bbr) => bbr.on_restart(now),
            Self::Bbr3(bbr) => bbr.on_restart(now),
            Self::Windowed(_) | Self::External(_) => {}
        }
    }

    /// After a timeout: the window that lets the first segment leave again, where some still count as in flight.
    pub fn allow(&mut self, cwnd: f64) {
        match self {
            Self::Windowed(windowed) => windowed.allow(cwnd),
            Self::Bbr(bbr) => bbr.output.allow(cwnd as u64),
            Self::Bbr3(bbr) => bbr.output.allow(cwnd as u64),
            Self::External(outside) => outside.set_cwnd(outside.window().cwnd.max(cwnd)),
        }
    }

    /// The window that something other than loss or growth says: a handover, the end of Quick-Start. A model of the path
    /// keeps its own.
    pub fn set_window(&mut self, window: Window) {
        match self {
            Self::Windowed(windowed) => windowed.set_window(window),
            Self::Bbr(_) | Self::Bbr3(_) => {}
            Self::External(outside) => outside.set_window(window),
        }
    }

    /// Takes back the last reduction: it was spurious.
    pub fn undo(&mut self) {
        match self {
            Self::Windowed(windowed) => windowed.undo(),
            Self::Bbr(bbr) => bbr.undo(),
            Self::Bbr3(bbr) => bbr.undo(),
            Self::External(outside) => outside.undo(),
        }
    }

    /// Whether it paces; the sender asks once.
    pub fn paces(&self) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.pacing().is_some(),
            Self::Bbr(_) | Self::Bbr3(_) => true,
            Self::External(_) => false,
        }
    }

    /// How segments may leave with `outstanding` of them in flight.
    #[inline]
    pub fn pace(&self, srtt: Option<Nanos>, outstanding: u32) -> Pace {
        match self {
            Self::Windowed(windowed) => windowed.pace(srtt, outstanding),
            Self::Bbr(bbr) => bbr.output.pace(),
            Self::Bbr3(bbr) => bbr.output.pace(),
            Self::External(_) => Pace::UNPACED,
        }
    }

    /// Whether it holds back by itself: rates sampled meanwhile count as limited by the application.
    #[inline]
    pub fn holds_back(&self) -> bool {
        match self {
            Self::Windowed(_) | Self::External(_) => false,
            Self::Bbr(bbr) => bbr.holds_back(),
            Self::Bbr3(bbr) => bbr.holds_back(),
        }
    }
}

impl From<Windowed> for Controller {
    fn from(windowed: Windowed) -> Self {
        Self::Windowed(windowed)
    }
}

impl From<Bbr> for Controller {
    fn from(bbr: Bbr) -> Self {
        Self::Bbr(Box::new(bbr))
    }
}

impl From<Bbr3> for Controller {
    fn from(bbr: Bbr3) -> Self {
        Self::Bbr3(Box::new(bbr))
    }
}

impl From<ExternalController> for Controller {
    fn from(outside: ExternalController) -> Self {
        Self::External(Box::new(outside))
    }
}
