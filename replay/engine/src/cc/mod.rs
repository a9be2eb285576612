//! Congestion control: a controller owns cwnd and ssthresh, sees only digested evidence, and never looks at the receiver's
//! window. Windows are in segments, as in the papers and in Linux.
//!
//! Most controllers are [`Windowed`]: a window with three rules that combine freely, the end of slow start
//! ([`SlowStart`]), the window increase per ACK ([`Increase`]) and the window decrease on congestion ([`Decrease`]). A
//! controller that models the path (`Bbr`, `Bbr3`) is written as a whole: it gets every ACK, samples delivery rates, paces,
//! and its window also governs in recovery. A user's controller ([`ExternalController`]) runs outside the engine.
//!
//! Loss detection, loss recovery and the retransmission timer belong to the sender; a variant chooses them in its
//! [`Definition`]. CONTRIBUTING, "Adding a variant", describes how to add one.
//!
//! Does not depend on segments, the scoreboard or timers. Read RFC 5681 §3 first, then the file of a variant.

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
pub use evidence::{
    AckCount, AckEvidence, LostSegment, RateSample, RecoveryPhase, Round, Signal, SignalEvidence,
};
pub use external::{
    ControllerEvent, Decision, External, ExternalController, Externals, MakeExternal,
};
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

/// Minimum ssthresh after a window decrease, in segments (RFC 5681 §3.1 equation 4).
pub const MIN_SSTHRESH: f64 = 2.0;
/// Factor from FlightSize to ssthresh after a loss (RFC 5681 §3.1 equation 4).
pub const HALF: f64 = 0.5;
/// Loss window, in segments (RFC 5681 §3.1).
pub(crate) const LOSS_WINDOW: f64 = 1.0;

/// The two variables of RFC 5681, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow start threshold; infinite while it is not set.
    pub ssthresh: f64,
}

/// How fast segments may leave. By default none leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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

    /// cwnd and ssthresh are both this many segments, at least two: the window after a usual decrease.
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

/// A controller of any kind. Each method calls that of the kind; a kind that does not use an event ignores it.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per connection; the usual kind is read at every ACK and stays inline"
)]
// A separate tag: it is read several times per segment and would otherwise be derived from a field of a kind.
#[repr(u8)]
pub enum Controller {
    /// A window with separate rules.
    Windowed(Windowed),
    /// BBR.
    Bbr(Box<Bbr>),
    /// BBR, version 3.
    Bbr3(Box<Bbr3>),
    /// A user's controller.
    External(Box<ExternalController>),
}

/// What a controller needs from its sender. It never changes: the sender reads it once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It models the path: the sender samples delivery rates, passes it every ACK that delivers or reports something, in
    /// recovery too (`on_ack`), and lets its window govern in recovery, instead of a rule of the recovery.
    pub models_path: bool,
    /// It needs `observe`.
    pub observes: bool,
    /// ACKs increase the window in fast recovery too: losses do not reduce it.
    pub increases_in_recovery: bool,
    /// It needs [`ConnectionEvent::Lost`].
    pub wants_losses: bool,
    /// It paces.
    pub paces: bool,
}

/// What happens to a connection, apart from ACKs and congestion.
#[derive(Clone, Copy, Debug)]
pub enum ConnectionEvent {
    /// It is established.
    Established {
        /// When.
        now: Nanos,
        /// Round-trip time of the handshake.
        rtt: Option<Nanos>,
        /// What the handshake delivered: the SYN.
        delivered: u64,
    },
    /// All that the application had to send has been acknowledged.
    Finished,
    /// A segment has been marked lost; comes before the `on_ack` or `on_timeout` that belongs to it.
    Lost(LostSegment),
    /// Fast recovery ended with this ACK; the window is where its algorithm leaves it (RFC 6582 §3.2 step 3, RFC 9937),
    /// none to leave it as it is.
    RecoveryExit(AckEvidence, Option<f64>),
    /// A low-priority probe was answered.
    ProbeAnswer,
    /// Nothing was sent for this time, longer than the RTO, and the window restarts from at most so many segments: the
    /// initial window (RFC 5681 §4.1), or more where the stack halves it (RFC 2861).
    Idle(f64, Nanos),
    /// New data leaves while nothing is in the network.
    Resume {
        /// Time since the last segment.
        idle: Nanos,
        /// The time.
        now: Nanos,
    },
    /// Data leaves again after the application had none and nothing was in flight.
    Restart(Nanos),
}

/// What some recovery algorithms ask a controller for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryTerms {
    /// FACK, before the decrease: see [`WindowDecrease::rampdown`].
    pub rampdown: Option<f64>,
    /// ns-2's TCP/Linux, after the decrease: cwnd in segments during loss recovery, see [`WindowIncrease::recovery_cwnd`].
    pub recovery_cwnd: f64,
}

/// What an ACK that a controller has taken asks of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    /// Nothing: the pace is what it was.
    Nothing,
    /// The pace may be another one.
    UpdatePace,
    /// The same, and the controller has held back by itself: what is sent until the segments in the network now have been
    /// delivered counts as limited by the application.
    HoldBack,
}

impl AckOutcome {
    /// That of a model of the path.
    #[inline]
    pub fn of_model(holds_back: bool, may_pace_anew: bool) -> Self {
        if holds_back {
            Self::HoldBack
        } else if may_pace_anew {
            Self::UpdatePace
        } else {
            Self::Nothing
        }
    }
}

/// How the sender changes a window for a reason other than an ACK or a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adjustment {
    /// A handover, or the end of Quick-Start, sets it; a controller that models the path ignores this.
    Set(Window),
    /// cwnd is at least this, in segments: after a timeout the first segment may leave although others count as in flight.
    AtLeast(f64),
    /// The application did not use the window (RFC 2861), or SYNs were lost (RFC 5681 §3.1); what an undo restores stays.
    Validate(Window),
    /// The last window decrease was spurious.
    Undo,
}

impl Controller {
    /// See [`Capabilities`].
    pub fn capabilities(&self) -> Capabilities {
        match self {
            Self::Windowed(windowed) => windowed.capabilities(),
            Self::Bbr(_) | Self::Bbr3(_) => Capabilities {
                models_path: true,
                wants_losses: matches!(self, Self::Bbr3(_)),
                paces: true,
                ..Capabilities::default()
            },
            Self::External(external) => external.capabilities(),
        }
    }

    /// Congestion window and slow start threshold.
    #[inline(always)]
    pub fn window(&self) -> Window {
        match self {
            Self::Windowed(windowed) => windowed.window(),
            Self::Bbr(bbr) => bbr.output.window(),
            Self::Bbr3(bbr) => bbr.output.window(),
            Self::External(external) => *external.window(),
        }
    }

    /// Whether the window still opens for the first time, or again after a timeout.
    #[inline(always)]
    pub fn in_slow_start(&self) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.in_slow_start(),
            Self::Bbr(bbr) => bbr.in_startup(),
            Self::Bbr3(bbr) => bbr.in_startup(),
            Self::External(external) => external.window().in_slow_start(),
        }
    }

    /// Whether an ACK outside fast recovery can move it; `cwnd_limited` as in [`AckEvidence`].
    #[inline]
    pub fn may_increase(&self, cwnd_limited: bool) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.may_increase(cwnd_limited),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => true,
        }
    }

    /// Takes an ACK outside recovery, if its count is all that it needs. Returns whether it did; if not, the ACK goes to
    /// `observe` and `on_ack`.
    #[inline]
    pub fn try_count_ack(&mut self, ack: &AckCount) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.try_count_ack(ack),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => false,
        }
    }

    /// Every ACK, before the sender reacts to it.
    pub fn observe(&mut self, ack: &AckEvidence) {
        match self {
            Self::Windowed(windowed) => windowed.observe(ack),
            Self::Bbr(_) | Self::Bbr3(_) => {}
            Self::External(external) => external.notify(&ControllerEvent::Observe(*ack)),
        }
    }

    /// An ACK, after the sender has reacted to it: outside fast recovery, and for a model of the path in it too.
    pub fn on_ack(&mut self, ack: &AckEvidence) -> AckOutcome {
        self.on_ack_by(|_, _| *ack)
    }

    /// The same, of evidence that is made of cwnd and of whether the window still opens: only as far as the controller reads it.
    #[inline(always)]
    pub fn on_ack_by(&mut self, evidence: impl FnOnce(f64, bool) -> AckEvidence) -> AckOutcome {
        match self {
            Self::Windowed(windowed) => {
                let cwnd = windowed.window().cwnd;
                windowed.on_ack(&evidence(cwnd, windowed.in_slow_start()));
                AckOutcome::UpdatePace
            }
            Self::Bbr(bbr) => {
                let cwnd = bbr.output.window().cwnd;
                bbr.on_ack(&evidence(cwnd, bbr.in_startup()))
            }
            Self::Bbr3(bbr) => {
                let cwnd = bbr.output.window().cwnd;
                bbr.on_ack(&evidence(cwnd, bbr.in_startup()))
            }
            Self::External(external) => {
                let window = *external.window();
                let ack = evidence(window.cwnd, window.in_slow_start());
                external.notify(&ControllerEvent::Ack(ack));
                AckOutcome::UpdatePace
            }
        }
    }

    /// A loss found by duplicate ACKs, SACK or RACK, or a congestion mark: reduces the window.
    pub fn on_congestion(&mut self, signal: &SignalEvidence) {
        match self {
            Self::Windowed(windowed) => windowed.on_congestion(signal),
            Self::Bbr(bbr) => bbr.on_congestion(),
            Self::Bbr3(bbr) => bbr.on_congestion(signal),
            Self::External(external) => external.reduce(&ControllerEvent::Congestion(*signal)),
        }
    }

    /// A congestion mark: reduces the window (see `windowed`), but a model of the path only notes it.
    pub fn on_mark(&mut self, signal: &SignalEvidence, beta: Option<f64>) {
        match self {
            Self::Windowed(windowed) => windowed.on_mark(signal, beta),
            Self::Bbr(bbr) => bbr.on_mark(),
            Self::Bbr3(bbr) => bbr.on_mark(),
            Self::External(external) => {
                external.reduce(&ControllerEvent::Congestion(*signal));
                if let Some(beta) = beta.filter(|_| !external.capabilities().models_path) {
                    external.set_window(Window::at(beta * signal.flight));
                }
            }
        }
    }

    /// A retransmission timeout: ssthresh is reduced at the first of a row, cwnd falls to the loss window.
    pub fn on_timeout(&mut self, signal: &SignalEvidence) {
        match self {
            Self::Windowed(windowed) => windowed.on_timeout(signal),
            Self::Bbr(bbr) => bbr.on_timeout(signal),
            Self::Bbr3(bbr) => bbr.on_timeout(signal),
            Self::External(external) => external.reduce(&ControllerEvent::Timeout(*signal)),
        }
    }

    /// What a recovery algorithm takes from the window before it reduces it, or after.
    pub fn recovery_terms(&self) -> RecoveryTerms {
        match self {
            Self::Windowed(windowed) => windowed.recovery_terms(),
            Self::Bbr(_) | Self::Bbr3(_) | Self::External(_) => RecoveryTerms {
                rampdown: None,
                recovery_cwnd: self.window().cwnd,
            },
        }
    }

    /// What happens to the connection.
    pub fn on_event(&mut self, event: &ConnectionEvent) {
        match self {
            Self::Windowed(windowed) => windowed.on_event(event),
            Self::Bbr(bbr) => bbr.on_event(event),
            Self::Bbr3(bbr) => bbr.on_event(event),
            Self::External(external) => external.on_event(event),
        }
    }

    /// Changes the window.
    pub fn adjust(&mut self, adjustment: Adjustment) {
        match (self, adjustment) {
            (Self::Windowed(windowed), _) => windowed.adjust(adjustment),
            (Self::External(external), _) => external.adjust(adjustment),
            (_, Adjustment::Set(_) | Adjustment::Validate(_)) => {}
            (Self::Bbr(bbr), Adjustment::AtLeast(cwnd)) => bbr.output.allow(cwnd as u64),
            (Self::Bbr3(bbr), Adjustment::AtLeast(cwnd)) => bbr.output.allow(cwnd as u64),
            (Self::Bbr(bbr), Adjustment::Undo) => bbr.undo(),
            (Self::Bbr3(bbr), Adjustment::Undo) => bbr.undo(),
        }
    }

    /// How segments may leave with `outstanding` of them in flight.
    #[inline(always)]
    pub fn pace(&self, srtt: Option<Nanos>, outstanding: u32) -> Pace {
        match self {
            Self::Windowed(windowed) => windowed.pace(srtt, outstanding),
            Self::Bbr(bbr) => bbr.output.pace(),
            Self::Bbr3(bbr) => bbr.output.pace(),
            Self::External(external) => external.pace(),
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
    fn from(external: ExternalController) -> Self {
        Self::External(Box::new(external))
    }
}
