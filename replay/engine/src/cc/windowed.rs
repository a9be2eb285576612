//! The usual kind of controller: a window that ACKs increase and congestion signals decrease, made of parts that combine
//! freely.
//!
//! Does not name any window increase or decrease. Read RFC 5681 §3 first.

use super::decrease::Decrease;
use super::evidence::{AckCount, AckEvidence, RecoveryPhase, Signal, SignalEvidence};
use super::increase::Increase;
use super::slow_start::SlowStart;
use super::{
    Adjustment, Capabilities, ConnectionEvent, LOSS_WINDOW, MIN_SSTHRESH, Pace, RecoveryTerms,
    Sharers, Window,
};
use crate::sim::time::{Nanos, SECOND};

/// Pacing by the window, as Linux's default: a share of the window per smoothed round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowPacing {
    /// Share while cwnd is below half of ssthresh.
    pub slow_start: f64,
    /// Share after that.
    pub avoidance: f64,
    /// Segments that leave back to back at least.
    pub min_burst_pkts: u32,
    /// … and at most, whatever the rate.
    pub max_burst_pkts: u32,
    /// Segments per second in place of any share of the window.
    pub fixed_pkts_per_s: Option<f64>,
}

impl WindowPacing {
    /// Linux's shares (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio: 200 and 120 %) and its bursts of two.
    pub const LINUX: Self = Self {
        slow_start: 2.0,
        avoidance: 1.2,
        min_burst_pkts: 2,
        max_burst_pkts: u32::MAX,
        fixed_pkts_per_s: None,
    };

    /// An RTT over cwnd from one segment to the next.
    pub const SPACED: Self = Self {
        slow_start: 1.0,
        avoidance: 1.0,
        min_burst_pkts: 1,
        max_burst_pkts: 1,
        fixed_pkts_per_s: None,
    };

    /// The share under `cwnd` and `ssthresh`, in segments.
    pub fn share(&self, cwnd: f64, ssthresh: f64) -> f64 {
        if cwnd < ssthresh / 2.0 {
            self.slow_start
        } else {
            self.avoidance
        }
    }
}

/// The window with the parts that move it.
#[derive(Clone, Debug)]
pub struct Windowed {
    window: Window,
    slow_start: SlowStart,
    increase: Increase,
    decrease: Decrease,
    pacing: Option<WindowPacing>,
    observes: bool,
    decrease_observes: bool,
    owns_slow_start: bool,
    /// A loss does not decrease the window.
    ignores_losses: bool,
    before_decrease: Option<Box<Windowed>>,
}

impl Windowed {
    /// A controller with its initial window and ssthresh.
    pub fn new(
        window: Window,
        slow_start: SlowStart,
        increase: impl Into<Increase>,
        decrease: impl Into<Decrease>,
    ) -> Self {
        let (increase, decrease) = (increase.into(), decrease.into());
        Self {
            window,
            observes: slow_start.observes() || increase.observes() || decrease.observes(),
            decrease_observes: decrease.observes(),
            owns_slow_start: increase.owns_slow_start(),
            slow_start,
            increase,
            decrease,
            pacing: None,
            ignores_losses: false,
            before_decrease: None,
        }
    }

    /// The same, paced.
    #[must_use]
    pub fn paced(self, pacing: Option<WindowPacing>) -> Self {
        Self { pacing, ..self }
    }

    /// The same, which takes a loss for corruption or not.
    #[must_use]
    pub fn sparing_losses(self, ignores_losses: bool) -> Self {
        Self {
            ignores_losses,
            ..self
        }
    }

    /// See [`Capabilities`].
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            observes: self.observes,
            increases_in_recovery: self.ignores_losses && self.increase.increases_in_recovery(),
            paces: self.pacing.is_some(),
            ..Capabilities::default()
        }
    }

    /// Whether nothing moves it.
    pub fn is_fixed(&self) -> bool {
        matches!(self.increase, Increase::FixedWindow(_))
    }

    /// How it is paced.
    pub fn pacing(&self) -> Option<WindowPacing> {
        self.pacing
    }

    /// What its pacing allows; no bound without pacing or before the first round-trip time.
    pub fn pace(&self, srtt: Option<Nanos>, outstanding: u32) -> Pace {
        let Some(pacing) = &self.pacing else {
            return Pace::UNPACED;
        };
        let share = pacing.share(self.window.cwnd, self.window.ssthresh);
        let window = self.window.cwnd.max(f64::from(outstanding));
        let by_window = |srtt| share * window * SECOND as f64 / srtt as f64;
        let pkts_per_s =
            (pacing.fixed_pkts_per_s).unwrap_or_else(|| srtt.map_or(f64::INFINITY, by_window));
        Pace {
            pkts_per_s,
            min_burst_pkts: pacing.min_burst_pkts,
            max_burst_pkts: pacing.max_burst_pkts,
        }
    }

    /// Congestion window and slow start threshold.
    #[inline]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Whether cwnd is below ssthresh (RFC 5681 §3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    /// Whether `on_ack` can do anything; `cwnd_limited` as in [`AckEvidence`].
    #[inline]
    pub fn may_increase(&self, cwnd_limited: bool) -> bool {
        cwnd_limited || self.in_slow_start() || self.owns_slow_start
    }

    /// See [`Controller::try_count_ack`](super::Controller::try_count_ack): Reno and Linux's CUBIC need no more outside slow
    /// start.
    #[inline]
    pub fn try_count_ack(&mut self, ack: &AckCount) -> bool {
        if self.decrease_observes || self.in_slow_start() {
            return false;
        }
        match &mut self.increase {
            Increase::Reno(reno) => {
                if ack.cwnd_limited {
                    reno.count(&mut self.window.cwnd, f64::from(ack.delivered));
                }
            }
            Increase::LinuxCubic(cubic) => {
                cubic.take_rtt(ack.rtt, ack.now);
                if ack.cwnd_limited {
                    cubic.count(&mut self.window.cwnd, f64::from(ack.delivered), ack.now);
                }
            }
            _ => return false,
        }
        true
    }

    /// Every ACK, before the sender reacts to it.
    pub fn observe(&mut self, ack: &AckEvidence) {
        // Deviation: as Linux, HyStart also looks while a recovery's window lies below ssthresh.
        let cwnd = match ack.recovery_phase {
            RecoveryPhase::Recovery => ack.window_pkts.min(self.window.cwnd),
            RecoveryPhase::None | RecoveryPhase::Loss => self.window.cwnd,
        };
        if cwnd < self.window.ssthresh && self.slow_start.ends_by(cwnd, ack) {
            self.window = Window {
                cwnd,
                ssthresh: cwnd,
            };
        }
        self.increase.observe(ack);
        self.decrease.observe(ack, &self.window);
    }

    /// An ACK that may increase the window: outside fast recovery, after the sender has reacted to it.
    #[inline(never)]
    pub fn on_ack(&mut self, ack: &AckEvidence) {
        let mut left = f64::from(ack.delivered);
        if self.owns_slow_start {
            self.increase.on_ack(&mut self.window, left, ack);
            return;
        }
        if self.in_slow_start() {
            let Window { cwnd, ssthresh } = &mut self.window;
            left = self.slow_start.on_ack(cwnd, ssthresh, ack);
        }
        // Deviation: no increase while the sender is not limited by the window (RFC 7661 §4.2 and Linux; RFC 5681 is
        // silent).
        if left > 0.0 && ack.cwnd_limited && !self.in_slow_start() {
            self.increase.on_ack(&mut self.window, left, ack);
        }
    }

    /// A loss found by duplicate ACKs, SACK or RACK, or a congestion mark: decreases the window.
    pub fn on_congestion(&mut self, signal: &SignalEvidence) {
        if self.ignores_losses && signal.signal == Signal::Loss {
            return;
        }
        self.keep_for_undo();
        let after = self
            .decrease
            .on_congestion(&self.window, &mut self.increase, signal);
        self.reduce_to(after);
    }

    /// A retransmission timeout: ssthresh is reduced at the first of a row, cwnd falls to the loss window.
    pub fn on_timeout(&mut self, signal: &SignalEvidence) {
        let first = signal.signal != Signal::RepeatedTimeout;
        if first {
            self.keep_for_undo();
        }
        let after = self
            .decrease
            .after_timeout(&self.window, &mut self.increase, signal);
        if first {
            self.reduce_to(after);
        } else {
            self.window = after;
        }
        self.increase.on_timeout();
        self.slow_start.on_timeout();
    }

    /// See [`RecoveryTerms`].
    pub fn recovery_terms(&self) -> RecoveryTerms {
        let recovery_cwnd = self.decrease.recovery_cwnd(&self.window, &self.increase);
        RecoveryTerms {
            rampdown: self.decrease.rampdown(&self.window),
            recovery_cwnd: recovery_cwnd.max(LOSS_WINDOW),
        }
    }

    /// See [`ConnectionEvent`].
    pub fn on_event(&mut self, event: &ConnectionEvent) {
        match event {
            ConnectionEvent::Established { .. } => self.note_open(true),
            ConnectionEvent::Finished => self.note_open(false),
            ConnectionEvent::RecoveryExit(ack, cwnd) => {
                if let Some(cwnd) = cwnd {
                    self.window.cwnd = cwnd.max(LOSS_WINDOW);
                }
                if !self.ignores_losses {
                    self.increase.on_recovery_exit(ack);
                }
            }
            ConnectionEvent::ProbeAnswer => self.increase.on_probe_answer(&mut self.window),
            ConnectionEvent::Idle(initial_window, idle) => {
                if !self.is_fixed() {
                    self.window.cwnd = self.window.cwnd.min(*initial_window);
                }
                self.increase.on_idle(*idle);
            }
            ConnectionEvent::Resume { idle, now } => self.increase.on_resume(*idle, *now),
            ConnectionEvent::Lost(_) | ConnectionEvent::Restart(_) => {}
        }
    }

    /// See [`Adjustment`].
    pub fn adjust(&mut self, adjustment: Adjustment) {
        match adjustment {
            // The window before cannot be restored.
            Adjustment::Set(window) => {
                self.before_decrease = None;
                self.window = window;
            }
            Adjustment::Validate(window) => {
                if !self.is_fixed() {
                    self.window = window;
                }
            }
            Adjustment::AtLeast(cwnd) => self.window.cwnd = self.window.cwnd.max(cwnd),
            Adjustment::Undo => self.undo(),
        }
    }

    fn undo(&mut self) {
        if let Some(before) = self.before_decrease.take() {
            self.increase.undo(&before.increase);
            self.decrease.undo(&before.decrease);
            self.slow_start = before.slow_start;
            self.window = Window {
                cwnd: self.window.cwnd.max(before.window.cwnd),
                ssthresh: before.window.ssthresh,
            };
        }
    }

    /// A congestion mark: as after a loss, but for `beta` of FlightSize if it is given (RFC 8511 §3).
    pub fn on_mark(&mut self, signal: &SignalEvidence, beta: Option<f64>) {
        self.on_congestion(signal);
        if let Some(beta) = beta {
            self.window = Window::at(beta * signal.flight);
        }
    }

    fn note_open(&mut self, open: bool) {
        if let Increase::FixedWindow(fixed) = &mut self.increase {
            fixed.note_open(open);
            self.window = fixed.window();
        }
    }

    /// See [`FixedWindow::share_with`](super::FixedWindow::share_with).
    pub fn share_with(&mut self, sharers: &Sharers) {
        if let Increase::FixedWindow(fixed) = &mut self.increase {
            fixed.share_with(sharers);
        }
    }

    fn keep_for_undo(&mut self) {
        self.before_decrease = None;
        self.before_decrease = Some(Box::new(self.clone()));
    }

    fn reduce_to(&mut self, after: Window) {
        self.increase.on_decrease(&self.window);
        self.slow_start.end();
        self.window = Window {
            ssthresh: after.ssthresh.max(MIN_SSTHRESH),
            cwnd: after.cwnd.max(LOSS_WINDOW),
        };
    }
}
