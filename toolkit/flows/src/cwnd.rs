//! Estimator of the congestion window, for a capture point at the sender.
//!
//! A sender with data to send fills its window, so the window is the maximum of the pipe over the last RTT. In
//! recovery, the window follows the pipe (RFC 6937). While the application limits the sender, the window is as it was
//! when the sender last filled it. Before that, while the sender paces its segments, and while the receive window
//! limits it, the congestion window cannot be observed, and there is no estimate.

mod ack_clock;
mod last_filled;
mod moving_share;
mod writes;

use std::collections::VecDeque;

use ack_clock::{AckClock, RESPONSE_NS};
use last_filled::LastFilled;
use writes::Writes;

use crate::cause::CaState;
use crate::evidence::Reason;
use crate::loss::FlowDirection;
use crate::rows::{Event, EventCause, EventKind, Phase, Sample};

/// Rows per SRTT while the window is constant.
const ROWS_PER_RTT: i64 = 32;

/// A change of the window by more than this fraction adds a row at once.
const ROW_STEP_DIVISOR: i64 = 64;

/// The 95 % interval of a window estimated as `cwnd_bytes`, counted in whole segments, as the sender sends them. Rows
/// leave out smaller changes. While recovery or a timeout holds the window, the pipe rounds it to a segment (RFC 6937
/// §3), and while the application limits the sender, it may have grown by one or not. Of a `remote` sender, a segment
/// may be lost unseen, so that the pipe is larger than it appears.
pub fn interval(cwnd_bytes: i64, smss_bytes: i64, estimate: &Estimate, remote: bool) -> (i64, i64) {
    let margin = cwnd_bytes / ROW_STEP_DIVISOR;
    let rounding = if estimate.phase.repairs() || estimate.app_limited == Some(true) {
        smss_bytes
    } else {
        0
    };
    let unseen = if remote { smss_bytes } else { 0 };
    (
        (cwnd_bytes - margin - rounding).max(0),
        cwnd_bytes + margin + rounding + unseen,
    )
}

/// Number of rows held back until the direction of the data is known.
const MAX_HELD_ROWS: usize = 64;

/// Minimum growth of the window per RTT in slow start. Slow start doubles the window, or grows it by half if it counts
/// delayed ACKs (RFC 3465 with L = 1).
const SLOW_START_GROWTH_PERCENT: i64 = 125;

/// The state of the sender after a segment or an ACK.
#[derive(Clone, Copy, Debug)]
pub struct SenderState {
    /// Time.
    pub t_ns: i64,
    /// Recovery state.
    pub ca_state: CaState,
    /// Octets in the network (RFC 6675 §4).
    pub pipe_bytes: i64,
    /// SND.NXT less SND.UNA.
    pub outstanding_bytes: i64,
    /// SMSS.
    pub smss_bytes: i64,
    /// SRTT, or 0.
    pub srtt_ns: i64,
    /// RTO.
    pub rto_ns: i64,
    /// Window advertised by the receiver.
    pub snd_wnd_bytes: Option<i64>,
}

/// A segment, or several captured as one, that the sender sends.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Time.
    pub t_ns: i64,
    /// Number of segments.
    pub segments_n: u16,
    /// It has new data or a FIN.
    pub new: bool,
    /// The last segment is not full, or has a FIN.
    pub short: bool,
    /// Its timestamp (RFC 7323 §3), if the sender is remote and the segment captured.
    pub remote_ts_val: Option<u32>,
}

/// An estimate.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// Time.
    pub t_ns: i64,
    /// Phase.
    pub phase: Phase,
    /// Congestion window, if it can be observed.
    pub cwnd_bytes: Option<i64>,
    /// Slow start threshold, if known.
    pub ssthresh_bytes: Option<i64>,
    /// The application limits the sender.
    pub app_limited: Option<bool>,
    /// Integral of the pipe over time up to here.
    pub pipe_integral: i128,
    /// Minimum time between rows.
    interval_ns: i64,
}

/// The integral of the pipe over time: the difference between two of its values gives a mean.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct PipeIntegral {
    value: i128,
    last: Option<(i64, i64)>,
}

impl PipeIntegral {
    /// Adds the time up to `t_ns`. Returns the integral.
    fn observe(&mut self, t_ns: i64, pipe_bytes: i64) -> i128 {
        if let Some((last_ns, last_bytes)) = self.last {
            self.value += i128::from(last_bytes) * i128::from((t_ns - last_ns).max(0));
        }
        self.last = Some((t_ns, pipe_bytes));
        self.value
    }
}

/// The estimator for one direction.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct CwndEstimator {
    /// Sliding window maximum of the pipe: times and values, the values decreasing.
    maxima: VecDeque<(i64, i64)>,
    phase: Phase,
    ssthresh_bytes: Option<i64>,
    /// Fast recovery has just ended: the sender fills a window of ssthresh (RFC 6675 §5, RFC 6582 §3.2).
    exited_recovery: bool,
    /// Phase and slow start threshold before the recovery.
    before_recovery: (Phase, Option<i64>),
    /// Time and window from which growth is measured.
    growth_start: (i64, i64),
    ack_clock: AckClock,
    last_filled: LastFilled,
    writes: Writes,
    /// The last estimate outside of [`Phase::Recovery`] and [`Phase::Loss`].
    last_cwnd_bytes: Option<i64>,
    /// The receive window limits the sender.
    rwnd_limited: bool,
    /// Start of the phase.
    phase_start_ns: i64,
    /// Maximum of the pipe since the reduction in recovery is complete, or since a timeout, and whether the pipe has
    /// fallen since. The window does not fall then (RFC 6937 §3, RFC 5681 §3.1), so the sender has run out of data.
    recovery_max_bytes: i64,
    drained: bool,
    /// The last estimate that is not a row yet, and the last one that is.
    pending: Option<Estimate>,
    last_row: Option<Estimate>,
    pipe: PipeIntegral,
    /// Octets of a probe in the pipe, which the window did not limit (RFC 8985 §7.3), until an ACK arrives.
    probe_bytes: i64,
    held: Vec<Sample>,
    /// Integral of the pipe at the last held row.
    last_pipe_integral: i128,
    /// Phase of the last row released.
    released_phase: Phase,
}

impl CwndEstimator {
    /// An estimator for a sender in `phase`.
    pub fn new(phase: Phase) -> Self {
        Self {
            maxima: VecDeque::new(),
            phase,
            ssthresh_bytes: None,
            exited_recovery: false,
            before_recovery: (phase, None),
            growth_start: (i64::MIN, 0),
            ack_clock: AckClock::new(),
            last_filled: LastFilled::default(),
            writes: Writes::new(),
            last_cwnd_bytes: None,
            rwnd_limited: false,
            phase_start_ns: i64::MIN,
            recovery_max_bytes: 0,
            drained: false,
            pending: None,
            last_row: None,
            pipe: PipeIntegral::default(),
            probe_bytes: 0,
            held: Vec::new(),
            last_pipe_integral: 0,
            released_phase: Phase::Unknown,
        }
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.maxima.shrink_to_fit();
        self.held.shrink_to_fit();
    }

    /// Called before an ACK is processed; `advances` if it acknowledges new data. The response to the previous ACK is
    /// complete. Returns the last estimate if a row is due.
    pub fn before_ack(&mut self, now_ns: i64, advances: bool) -> Option<Estimate> {
        if self.exited_recovery {
            self.exited_recovery = false;
            self.ssthresh_bytes = self.pending.and_then(|estimate| estimate.cwnd_bytes);
            self.pending = self.pending.map(|estimate| Estimate {
                ssthresh_bytes: self.ssthresh_bytes,
                ..estimate
            });
        }
        self.probe_bytes = 0;
        if advances {
            let response = self.ack_clock.on_ack(now_ns, !self.writes.end_short());
            let counts = self.phase == Phase::CongestionAvoidance && !self.rwnd_limited;
            if let Some(response) = response.filter(|_| counts) {
                self.last_filled.on_response(now_ns, response);
            }
            self.last_filled.before_ack();
        }
        self.take_due()
    }

    /// The next segment is a probe of so many octets.
    pub fn exclude_probe(&mut self, probe_bytes: i64) {
        self.probe_bytes = probe_bytes;
    }

    /// Called before a segment is processed. Returns the last estimate if the segment does not belong to the same
    /// response to an ACK, and a row is due.
    pub fn before_segment(&mut self, departure: &Departure) -> Option<Estimate> {
        let now_ns = departure.t_ns;
        if departure.new {
            self.writes
                .on_new(departure, self.ack_clock.is_response(now_ns));
        }
        self.last_filled.before_segment(now_ns);
        self.ack_clock.on_segment(departure);
        let complete = self
            .pending
            .is_some_and(|estimate| now_ns - estimate.t_ns > estimate.interval_ns.min(RESPONSE_NS));
        if complete { self.take_due() } else { None }
    }

    /// Takes the last estimate and returns it if a row is due.
    pub fn take_due(&mut self) -> Option<Estimate> {
        let estimate = self.pending.take()?;
        let due = self.last_row.is_none_or(|last| {
            let last_cwnd = last.cwnd_bytes.unwrap_or(0);
            let step = (estimate.cwnd_bytes.unwrap_or(0) - last_cwnd).abs();
            last.phase != estimate.phase
                || estimate.t_ns - last.t_ns >= estimate.interval_ns
                || step * ROW_STEP_DIVISOR > last_cwnd
        });
        if due {
            self.last_row = Some(estimate);
        }
        due.then_some(estimate)
    }

    /// From `t_ns` on, nothing shows the window. Returns the last row without an estimate of it.
    pub fn end_sight(&mut self, t_ns: i64) -> Option<Estimate> {
        if let Some((_, pipe_bytes)) = self.pipe.last {
            self.pipe.observe(t_ns, pipe_bytes);
        }
        let unknown = Estimate {
            t_ns,
            cwnd_bytes: None,
            app_limited: None,
            pipe_integral: self.pipe.value,
            ..self.last_row?
        };
        self.last_row = Some(unknown);
        Some(unknown)
    }

    /// After [`Self::end_sight`]: a timeout at `t_ns` has set the window to `loss_window_bytes` (RFC 5681 §3.1).
    /// Returns its row.
    pub fn time_out(&mut self, t_ns: i64, loss_window_bytes: i64) -> Option<Estimate> {
        if let Some((_, pipe_bytes)) = self.pipe.last {
            self.pipe.observe(t_ns, pipe_bytes);
        }
        let timed_out = Estimate {
            t_ns,
            phase: Phase::Loss,
            cwnd_bytes: Some(loss_window_bytes),
            ssthresh_bytes: None,
            app_limited: Some(false),
            pipe_integral: self.pipe.value,
            ..self.last_row?
        };
        self.last_row = Some(timed_out);
        Some(timed_out)
    }

    /// Adds the row of an estimate, and the mean of the pipe until then to the row before it.
    pub fn push_sample(&mut self, row: Sample, pipe_integral: i128) {
        self.end_row(row.t_ns, pipe_integral);
        self.last_pipe_integral = pipe_integral;
        if self.held.is_empty() {
            self.held.reserve_exact(1);
        }
        self.held.push(row);
    }

    /// Adds a row that is made later than the time it is of: it has no mean of the pipe.
    pub fn push_late(&mut self, row: Sample) {
        self.held.push(row);
    }

    /// Ends the last held row at `t_ns`: sets the mean of its pipe.
    fn end_row(&mut self, t_ns: i64, pipe_integral: i128) {
        if let Some(last) = self.held.last_mut().filter(|last| last.t_ns < t_ns) {
            let mean = (pipe_integral - self.last_pipe_integral) / i128::from(t_ns - last.t_ns);
            last.pipe_bytes = i64::try_from(mean).ok();
        }
    }

    /// Ends the last row at the end of the connection.
    pub fn finish(&mut self) {
        if let Some((t_ns, _)) = self.pipe.last {
            self.end_row(t_ns, self.pipe.value);
        }
    }

    /// Releases the held rows except the last `keep`, and an event for each change of phase, if the data flow in this
    /// direction. Otherwise, discards the rows.
    pub fn release(
        &mut self,
        is_data_direction: bool,
        keep: usize,
        flow: FlowDirection,
        samples: &mut Vec<Sample>,
        events: &mut Vec<Event>,
    ) {
        let count = self.held.len().saturating_sub(keep);
        let released = self.held.drain(..count);
        if is_data_direction {
            for row in released {
                if row.phase != self.released_phase {
                    let reason = Reason::Phase {
                        from: self.released_phase,
                        to: row.phase,
                    };
                    events.push(flow.event(
                        EventKind::PhaseChange,
                        EventCause::Unknown,
                        row.t_ns,
                        reason,
                    ));
                    self.released_phase = row.phase;
                }
                samples.push(row);
            }
        }
    }

    /// Whether there are enough rows to release them.
    pub fn is_full(&self) -> bool {
        self.held.len() >= MAX_HELD_ROWS
    }

    /// Updates the estimate after a segment or an ACK.
    pub fn observe(&mut self, state: &SenderState) {
        let (now, pipe) = (state.t_ns, state.pipe_bytes);
        let pipe_integral = self.pipe.observe(now, pipe);
        // The scoreboard may have ignored the probe.
        let pipe = (pipe - self.probe_bytes).max(0);
        self.update_phase(state);
        while self.maxima.back().is_some_and(|last| last.1 <= pipe) {
            self.maxima.pop_back();
        }
        self.maxima.push_back((now, pipe));
        let from = now - state.srtt_ns;
        while self.maxima.len() > 1 && self.maxima.front().is_some_and(|first| first.0 < from) {
            self.maxima.pop_front();
        }
        let max_pipe = self.maxima.front().map_or(0, |first| first.1);
        let cwnd = if self.phase.repairs() { pipe } else { max_pipe };
        self.last_filled
            .observe(state, pipe, self.ack_clock.is_response(now));
        self.detect_slow_start(now, state.srtt_ns, cwnd);
        self.detect_drained(state, pipe, max_pipe);
        let next_bytes = max_pipe.max(state.outstanding_bytes) + state.smss_bytes;
        self.rwnd_limited = state.snd_wnd_bytes.is_some_and(|wnd| next_bytes > wnd);
        let estimate = self.estimate(state, cwnd);
        if !self.phase.repairs() {
            self.last_cwnd_bytes = estimate.cwnd_bytes;
        }
        self.pending = Some(Estimate {
            pipe_integral,
            ..estimate
        });
    }

    /// Detects that the sender has run out of data while it repairs losses.
    fn detect_drained(&mut self, state: &SenderState, pipe: i64, max_pipe: i64) {
        if self.phase == Phase::Recovery && state.t_ns - self.phase_start_ns > 2 * state.srtt_ns {
            self.recovery_max_bytes = self.recovery_max_bytes.max(max_pipe);
            self.drained = max_pipe + 2 * state.smss_bytes < self.recovery_max_bytes;
        } else if self.phase == Phase::Loss {
            // Each timeout sets the window to a segment (RFC 5681 §3.1).
            if pipe <= state.smss_bytes {
                self.recovery_max_bytes = 0;
            }
            self.recovery_max_bytes = self.recovery_max_bytes.max(pipe);
            self.drained =
                self.ack_clock.limited && pipe + state.smss_bytes < self.recovery_max_bytes;
        }
    }

    /// The estimate, without the integral of the pipe.
    #[inline]
    fn estimate(&self, state: &SenderState, cwnd: i64) -> Estimate {
        let (app_limits, short) = (self.writes.limit_sender(), self.writes.end_short());
        // While a sender repairs losses, data wait: its window limits it if ACKs release what waits.
        let released = self.phase.repairs() && app_limits && self.last_filled.is_clocked();
        let limited = (self.ack_clock.limited && !released) || self.rwnd_limited || self.drained;
        let held_bytes = (self.phase == Phase::CongestionAvoidance)
            .then(|| self.last_filled.window_bytes(state))
            .flatten()
            .filter(|_| app_limits && !self.rwnd_limited && (limited || short));
        Estimate {
            t_ns: state.t_ns,
            phase: if limited && !self.phase.repairs() {
                Phase::Limited
            } else {
                self.phase
            },
            cwnd_bytes: match held_bytes {
                Some(bytes) => Some(bytes.max(cwnd)),
                None => (!limited).then_some(cwnd),
            },
            ssthresh_bytes: self.ssthresh_bytes,
            // Only short segments distinguish a sender that waits for the application from one that paces.
            app_limited: if self.rwnd_limited || !(limited || held_bytes.is_some()) {
                Some(false)
            } else {
                (held_bytes.is_some() || short).then_some(true)
            },
            pipe_integral: 0,
            interval_ns: state.srtt_ns / ROWS_PER_RTT,
        }
    }

    /// Updates the phase from the recovery state of the sender.
    fn update_phase(&mut self, state: &SenderState) {
        let next = match (state.ca_state, self.phase) {
            (CaState::Recovery { .. }, _) => Phase::Recovery,
            (CaState::Loss { .. }, _) => Phase::Loss,
            (CaState::Open, Phase::Recovery) => Phase::CongestionAvoidance,
            (CaState::Open, Phase::Loss) => Phase::SlowStart,
            (CaState::Open, phase) => phase,
        };
        if next == self.phase {
            return;
        }
        if next == Phase::Recovery {
            self.before_recovery = (self.phase, self.ssthresh_bytes);
        }
        if next.repairs() {
            // It changes now (RFC 5681 §3.1, equation 4) but cannot be observed before the end of the recovery.
            self.ssthresh_bytes = None;
        }
        match (self.phase.repairs(), next.repairs()) {
            (false, true) => self.last_filled.begin_reduction(self.last_cwnd_bytes),
            (true, false) => self.last_filled.end_reduction(self.phase == Phase::Loss),
            _ => {}
        }
        self.exited_recovery = self.phase == Phase::Recovery && next == Phase::CongestionAvoidance;
        self.phase = next;
        self.maxima.clear();
        self.phase_start_ns = state.t_ns;
        self.recovery_max_bytes = 0;
        self.drained = false;
        self.growth_start = (state.t_ns, 0);
    }

    /// The window becomes again what it was before the recovery or the timeout.
    pub fn undo_reduction(&mut self) {
        self.last_filled.undo_reduction();
    }

    /// The recovery ends, and nothing was retransmitted in it: the window was not reduced.
    pub fn cancel_recovery(&mut self) {
        if self.phase == Phase::Recovery {
            (self.phase, self.ssthresh_bytes) = self.before_recovery;
            self.last_filled.cancel_reduction();
            self.maxima.clear();
            self.drained = false;
            self.growth_start = (i64::MIN, 0);
        }
    }

    /// Detects slow start and its end from the growth of the window per RTT.
    fn detect_slow_start(&mut self, now_ns: i64, srtt_ns: i64, cwnd: i64) {
        let (start_ns, start_cwnd) = self.growth_start;
        if start_cwnd == 0 {
            self.growth_start = (now_ns, cwnd);
        } else if srtt_ns > 0 && now_ns - start_ns >= srtt_ns {
            let growing = cwnd * 100 >= start_cwnd * SLOW_START_GROWTH_PERCENT;
            self.phase = match self.phase {
                Phase::Unknown if growing => Phase::SlowStart,
                Phase::Unknown | Phase::SlowStart if !growing => Phase::CongestionAvoidance,
                phase => phase,
            };
            self.growth_start = (now_ns, cwnd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_the_scoreboard_ignored_leaves_no_negative_window() {
        let mut cwnd = CwndEstimator::new(Phase::SlowStart);
        cwnd.exclude_probe(1000);
        cwnd.observe(&SenderState {
            t_ns: 0,
            ca_state: CaState::Open,
            pipe_bytes: 0,
            outstanding_bytes: 0,
            smss_bytes: 1000,
            srtt_ns: 1,
            rto_ns: 1,
            snd_wnd_bytes: None,
        });
        let estimate = cwnd.take_due().expect("an estimate");
        assert_eq!(estimate.cwnd_bytes, Some(0));
    }
}
