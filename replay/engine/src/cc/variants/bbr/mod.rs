//! BBR, version 1, as Linux 6.x has it: a model of the path (maximum delivery rate, minimum round-trip time) that sets
//! a pacing rate and a window of twice the product, whatever is lost.
//!
//! Does not depend on segments or timers; the sender measures rates and enforces the pacing. Read Cardwell et al. 2016
//! (ACM Queue 14-5) and draft-cardwell-iccrg-bbr-congestion-control-00 first, then `docs/variants/bbr.md`.
//! The arithmetic is in `fixed`; each part with a state has a separate file.

pub(super) mod aggregation;
pub(super) mod fixed;
pub(super) mod gains;
mod inflight;
mod long_term;
mod max_filter;
pub(super) mod output;
pub(super) mod pacer;
mod probe_bw_phase;
pub(super) mod round;
mod standing;
#[cfg(test)]
mod tests;

use crate::cc::{AckOutcome, ConnectionEvent};
use std::cmp::Ordering;

use hindflight_kernels::StreamRng;

use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::evidence::{AckEvidence, RecoveryPhase, Signal, SignalEvidence};
use crate::cc::params::parameters;
use crate::sim::time::{MILLISECOND, Nanos, SECOND};
use aggregation::{Aggregation, SLOT_ROUNDS};
use fixed::UNIT;
use gains::Gains;
use long_term::{Counts, LongTerm, Step, Verdict};
use max_filter::MaxFilter;
use output::Output;
use pacer::Pacer;
use probe_bw_phase::{CYCLE_LENGTH, FirstPhases};
use round::Round;
use standing::Standing;

parameters! {
    /// Parameters of BBR.
    pub struct BbrParams {
        /// Pacing and window gain of STARTUP, in 256ths.
        high_gain: whole(739, "1/256", 257, 2048, "Linux 6.x tcp_bbr.c: 2/ln 2"),
        /// Pacing gain of DRAIN, in 256ths.
        drain_gain: whole(88, "1/256", 1, 255, "Linux 6.x tcp_bbr.c: the inverse"),
        /// Window gain of `PROBE_BW`.
        cwnd_gain: number(2.0, "", 1.0, 16.0, "Linux 6.x tcp_bbr.c"),
        /// Pacing gain of the probing phase of a cycle.
        probe_gain: number(1.25, "", 1.0, 1.9, "Linux 6.x tcp_bbr.c"),
        /// Rounds for which the maximum delivery rate holds.
        bw_window_rounds: whole(10, "rounds", 1, 1000, "Linux 6.x tcp_bbr.c"),
        /// Time for which the minimum round-trip time holds.
        min_rtt_window_s: number(10.0, "s", 0.1, 3600.0, "Linux 6.x tcp_bbr.c"),
        /// Minimum stay in `PROBE_RTT`.
        probe_rtt_ms: number(200.0, "ms", 1.0, 10_000.0, "Linux 6.x tcp_bbr.c"),
        /// Minimum window.
        min_cwnd: whole(4, "segments", 1, 1000, "Linux 6.x tcp_bbr.c"),
        /// Growth of the delivery rate per round below which the pipe may be full.
        full_bw_growth: number(1.25, "", 1.0, 4.0, "Linux 6.x tcp_bbr.c"),
        /// Rounds without that growth that fill it.
        full_bw_rounds: whole(3, "rounds", 1, 100, "Linux 6.x tcp_bbr.c"),
        /// What the pacing rate stays below the model's.
        pacing_margin_percent: number(1.0, "%", 0.0, 50.0, "Linux 6.x tcp_bbr.c"),
        /// Notice policers.
        long_term: flag(true, "Linux 6.x tcp_bbr.c"),
        /// Allow for aggregated ACKs.
        aggregation: flag(true, "Linux 6.x tcp_bbr.c"),
        /// First phase of a cycle, a digit for each entry into `PROBE_BW`: 1 to 8 (8 probes), 0 or none: drawn.
        /// A capture's own draws can be read from its pacing gain and given here.
        first_phases: number(0.0, "", 0.0, 999_999_999_999_999.0, "Linux 6.x tcp_bbr.c: drawn"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "bbr",
    other_names: &["bbr1", "bbrv1", "bbr-v1"],
    family: "model",
    summary: "models the path: maximum delivery rate, minimum RTT; paces (BBR v1, as Linux)",
    source: "Cardwell et al., ACM Queue 14-5",
    year: 2016,
    params: BbrParams::SPECS,
    parts: |stack, values, draws| {
        let (params, window) = (BbrParams::of(values), stack.initial_window_pkts);
        ControllerParts::Whole(Bbr::new(params, window, stack.smss_bytes, draws).into())
    },
    ..Definition::BASE
};

/// RFC 6928, where Linux's BBR needs a window without a path.
const INITIAL_WINDOW: u64 = 10;

/// What BBR is doing; each mode owns what only it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// A separate tag: it is read many times per ACK and would otherwise be derived from the fields of the modes.
#[repr(u8)]
pub enum Mode {
    /// Doubling the rate every round until it no longer helps.
    Startup,
    /// Draining the queue that STARTUP has built.
    Drain,
    /// Cycling the gain around one.
    ProbeBw {
        /// Place in the cycle.
        phase: u8,
        /// When the phase began.
        since: Nanos,
    },
    /// Four segments in flight, to see the path without a queue.
    ProbeRtt {
        /// When it may end; none until the flight is that small.
        until: Option<Nanos>,
        /// A round has passed since.
        round_done: bool,
    },
}

/// The search for the end of STARTUP.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    bw: u64,
    rounds: u32,
    reached: bool,
}

/// The minimum round-trip time, and when it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct MinRtt {
    value: Option<Nanos>,
    seen_at: Nanos,
}

/// BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: BbrParams,
    first_phases: FirstPhases,
    /// What comes out.
    pub(in crate::cc) output: Output,
    mode: Mode,
    gains: Gains,
    bw: MaxFilter,
    round: Round,
    min_rtt: MinRtt,
    min_rtt_window: Nanos,
    full_pipe: FullPipe,
    long_term: LongTerm,
    aggregation: Aggregation,
    /// The recovery phase of the sender at the last ACK.
    recovery_phase: RecoveryPhase,
    /// First round of recovery: send what is delivered, no more.
    conserving: bool,
    idle_restart: bool,
    counts: Counts,
    /// None where the model has changed, or may change with any ACK.
    standing: Option<Standing>,
}

impl Bbr {
    /// A connection that has not been established. `rng` draws the phases.
    pub fn new(params: BbrParams, initial_window: u32, smss_bytes: u32, rng: StreamRng) -> Self {
        let pacer = Pacer::new(smss_bytes, params.pacing_margin_percent);
        Self {
            params,
            first_phases: FirstPhases::new(params.first_phases, rng),
            output: Output::new(initial_window, pacer),
            mode: Mode::Startup,
            gains: Gains::of(Mode::Startup, &params),
            bw: MaxFilter::default(),
            round: Round::default(),
            min_rtt: MinRtt::default(),
            min_rtt_window: (params.min_rtt_window_s * SECOND as f64) as Nanos,
            full_pipe: FullPipe::default(),
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
            recovery_phase: RecoveryPhase::None,
            conserving: false,
            idle_restart: false,
            counts: Counts::default(),
            standing: None,
        }
    }

    /// Whether the pipe is still being filled.
    #[inline]
    pub fn in_startup(&self) -> bool {
        matches!(self.mode, Mode::Startup)
    }

    /// Whether it holds back to see the RTT of the empty path.
    #[inline]
    fn in_probe_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt { .. })
    }

    /// See [`ConnectionEvent`].
    pub fn on_event(&mut self, event: &ConnectionEvent) {
        match *event {
            ConnectionEvent::Established {
                now,
                rtt,
                delivered,
            } => self.on_established(now, rtt, delivered),
            ConnectionEvent::Restart(now) => self.on_restart(now),
            _ => {}
        }
    }

    /// The connection stands; `rtt` is the handshake's round-trip time.
    fn on_established(&mut self, now: Nanos, rtt: Option<Nanos>, delivered: u64) {
        self.min_rtt = MinRtt {
            value: rtt,
            seen_at: now,
        };
        self.round.end = delivered;
        self.counts = Counts {
            delivered_at: now,
            delivered,
            lost: 0,
        };
        self.long_term.reset(self.counts);
        self.aggregation.restart_epoch(now);
        self.standing = None;
        self.begin_pacing(rtt);
    }

    fn begin_pacing(&mut self, rtt: Option<Nanos>) {
        let gain = self.params.high_gain.into();
        self.output.pacer.begin(self.output.cwnd, rtt, gain);
    }

    /// Every ACK, after the sender has reacted to it. Inline with all its steps, so that evidence that none of them reads need
    /// not even be written.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &AckEvidence) -> AckOutcome {
        if ack.delivered > 0 {
            self.counts.delivered_at = ack.now;
        }
        self.counts.delivered = ack.delivered_total;
        self.counts.lost = ack.lost_total;
        self.update_bandwidth(ack);
        self.update_aggregation(ack);
        let stands = self.stands(ack);
        let holds_back = !stands && self.update_model(ack);
        self.set_cwnd(ack);
        AckOutcome::of_model(holds_back, !stands)
    }

    /// Returns what `update_min_rtt` does.
    #[inline(always)]
    fn update_model(&mut self, ack: &AckEvidence) -> bool {
        self.update_cycle(ack);
        self.check_full_pipe(ack);
        self.check_drain(ack);
        let holds_back = self.update_min_rtt(ack);
        self.set_pacing(ack.srtt);
        self.standing = self.standing();
        holds_back
    }

    /// A loss: the window does not decrease, but it is saved to return to.
    pub fn on_congestion(&mut self) {
        self.save_cwnd();
    }

    /// A congestion mark. Linux asks for an ssthresh as after a loss, and leaves the window to the model.
    pub fn on_mark(&mut self) {
        self.save_cwnd();
    }

    /// A retransmission timeout.
    pub fn on_timeout(&mut self, signal: &SignalEvidence) {
        if signal.signal == Signal::Timeout {
            self.save_cwnd();
        }
        self.recovery_phase = RecoveryPhase::Loss;
        self.standing = None;
        self.full_pipe.bw = 0;
        self.round.starts = true;
        self.output.cwnd = 1;
        self.counts.lost = signal.lost_total;
        self.sample_long_term(true, false);
    }

    /// The losses were none: STARTUP may go on.
    pub fn undo(&mut self) {
        self.full_pipe.bw = 0;
        self.full_pipe.rounds = 0;
        self.long_term.reset(self.counts);
        self.standing = None;
    }

    /// Data is sent again with nothing in flight, after the application had none.
    fn on_restart(&mut self, now: Nanos) {
        self.idle_restart = true;
        self.standing = None;
        self.aggregation.restart_epoch(now);
        match self.mode {
            Mode::ProbeBw { .. } => self.apply_pacing(UNIT),
            Mode::ProbeRtt { .. } => self.leave_probe_rtt_if_done(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Bandwidth of the model: the policer's where one is known.
    fn model_bw(&self) -> u64 {
        self.long_term.bw().unwrap_or(self.bw.value())
    }

    #[inline(never)]
    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.standing = None;
        self.gains = Gains::of(mode, &self.params);
    }

    /// A policer's rate is neither probed nor drained.
    #[inline]
    fn pacing_gain(&self) -> u64 {
        if self.long_term.is_in_use() && matches!(self.mode, Mode::ProbeBw { .. }) {
            UNIT
        } else {
            self.gains.pacing
        }
    }

    #[inline(always)]
    fn update_bandwidth(&mut self, ack: &AckEvidence) {
        self.round.starts = false;
        let Some(sample) = &ack.rate else {
            return;
        };
        if self.round.take(sample, ack) {
            self.conserving = false;
        }
        let losses = ack.newly_lost > 0;
        if !self.long_term.waits_on(losses)
            && self.sample_long_term(losses, sample.app_limited) == Verdict::ProbeAgain
        {
            self.enter_probe_bw();
        }
        // A rate that the application limited says nothing, unless it is greater than all.
        let min = if sample.app_limited {
            self.bw.value()
        } else {
            self.bw.threshold(self.round.count)
        };
        if !fixed::is_below(sample.delivered, sample.interval, min) {
            let bw = fixed::bandwidth(sample.delivered, sample.interval);
            let window = self.params.bw_window_rounds.into();
            if self.bw.update(window, self.round.count, bw) {
                self.standing = None;
            }
        }
    }

    #[inline(never)]
    fn sample_long_term(&mut self, losses: bool, app_limited: bool) -> Verdict {
        self.standing = None;
        if !self.params.long_term {
            return Verdict::None;
        }
        self.long_term.sample(&Step {
            counts: self.counts,
            losses,
            app_limited,
            round_start: self.round.starts,
            probing: matches!(self.mode, Mode::ProbeBw { .. }),
            smss_bytes: self.output.pacer.smss_bytes(),
        })
    }

    #[inline(always)]
    fn update_aggregation(&mut self, ack: &AckEvidence) {
        if self.params.aggregation && ack.delivered > 0 && ack.rate.is_some() {
            let (acked, bw) = (u64::from(ack.delivered), self.model_bw());
            let round = self.round.starts.then_some(SLOT_ROUNDS);
            let cwnd = self.output.cwnd;
            if (self.aggregation).update(ack.now, acked, bw, round, cwnd) {
                self.standing = None;
            }
        }
    }

    #[inline(always)]
    fn update_cycle(&mut self, ack: &AckEvidence) {
        let Mode::ProbeBw { phase, since } = self.mode else {
            return;
        };
        let lasted = self.counts.delivered_at.saturating_sub(since);
        if self.phase_is_over(lasted, ack) {
            self.enter(Mode::ProbeBw {
                phase: (phase + 1) % CYCLE_LENGTH,
                since: self.counts.delivered_at,
            });
        }
    }

    /// A phase lasts a minimum round-trip time. Probing goes on until the flight has grown or something was lost;
    /// draining ends as soon as the flight fits.
    #[inline(always)]
    fn phase_is_over(&self, lasted: Nanos, ack: &AckEvidence) -> bool {
        let whole = self.min_rtt.value.is_some_and(|min| lasted > min);
        let gain = self.pacing_gain();
        let flight = || self.flight_when_sent(ack.prior_flight, ack);
        match gain.cmp(&UNIT) {
            Ordering::Equal => whole,
            Ordering::Greater => whole && (ack.newly_lost > 0 || flight() >= self.inflight(gain)),
            Ordering::Less => whole || flight() <= self.inflight(UNIT),
        }
    }

    #[inline(always)]
    fn check_full_pipe(&mut self, ack: &AckEvidence) {
        let limited = ack.rate.as_ref().is_some_and(|sample| sample.app_limited);
        if self.full_pipe.reached || !self.round.starts || limited {
            return;
        }
        let increase = fixed::gain(self.params.full_bw_growth);
        let pipe = &mut self.full_pipe;
        if self.bw.value() >= pipe.bw * increase / UNIT {
            pipe.bw = self.bw.value();
            pipe.rounds = 0;
            return;
        }
        pipe.rounds += 1;
        pipe.reached = pipe.rounds >= self.params.full_bw_rounds;
    }

    #[inline(always)]
    fn check_drain(&mut self, ack: &AckEvidence) {
        if !self.full_pipe.reached || !matches!(self.mode, Mode::Startup | Mode::Drain) {
            return;
        }
        // The ACK that begins it still counts the burst of STARTUP: Linux changes the gains last.
        let flight = self.flight_when_sent(ack.flight, ack);
        if self.in_startup() {
            self.enter(Mode::Drain);
            self.output.ssthresh = self.inflight(UNIT) as f64;
        }
        if flight <= self.inflight(UNIT) {
            self.enter_probe_bw();
        }
    }

    fn enter_probe_bw(&mut self) {
        let phase = self.first_phases.next();
        self.enter(Mode::ProbeBw {
            phase,
            since: self.counts.delivered_at,
        });
    }

    /// Returns whether the ACK found it in `PROBE_RTT`, be it the one that ends it: its rates count as limited by the
    /// application (Linux: `bbr_update_min_rtt`).
    #[inline(always)]
    fn update_min_rtt(&mut self, ack: &AckEvidence) -> bool {
        let expired = self.min_rtt_has_expired(ack);
        if let Some(rtt) = ack.rtt
            && (expired || self.is_new_min_rtt(ack))
        {
            self.min_rtt = MinRtt {
                value: Some(rtt),
                seen_at: ack.now,
            };
        }
        if expired && !self.idle_restart && !self.in_probe_rtt() {
            self.enter(Mode::ProbeRtt {
                until: None,
                round_done: false,
            });
            // As Linux: it returns to the larger of the window now and the one saved before.
            self.save_cwnd();
        }
        let holds_back = self.in_probe_rtt();
        self.stay_in_probe_rtt(ack);
        if ack.rate.is_some() {
            self.idle_restart = false;
        }
        holds_back
    }

    #[inline(always)]
    fn min_rtt_has_expired(&self, ack: &AckEvidence) -> bool {
        ack.now > self.min_rtt.seen_at + self.min_rtt_window
    }

    #[inline(always)]
    fn is_new_min_rtt(&self, ack: &AckEvidence) -> bool {
        let lessens = |rtt| self.min_rtt.value.is_none_or(|min| rtt < min);
        ack.rtt.is_some_and(lessens)
    }

    /// `PROBE_RTT` lasts 200 ms and a round from when the flight has fallen.
    #[inline(always)]
    fn stay_in_probe_rtt(&mut self, ack: &AckEvidence) {
        let round_start = self.round.starts;
        let Mode::ProbeRtt { until, round_done } = &mut self.mode else {
            return;
        };
        if until.is_none() && ack.flight <= self.params.min_cwnd {
            let stay = (self.params.probe_rtt_ms * MILLISECOND as f64) as Nanos;
            *until = Some(ack.now + stay);
            *round_done = false;
            self.round.restart(ack);
        } else if until.is_some() {
            *round_done |= round_start;
            if *round_done {
                self.leave_probe_rtt_if_done(ack.now);
            }
        }
    }

    #[inline(never)]
    fn leave_probe_rtt_if_done(&mut self, now: Nanos) {
        let Mode::ProbeRtt {
            until: Some(until), ..
        } = self.mode
        else {
            return;
        };
        if now <= until {
            return;
        }
        self.min_rtt.seen_at = now;
        self.output.restore_cwnd();
        if self.full_pipe.reached {
            self.enter_probe_bw();
        } else {
            self.enter(Mode::Startup);
        }
    }

    fn save_cwnd(&mut self) {
        let whole = self.recovery_phase == RecoveryPhase::None && !self.in_probe_rtt();
        self.output.save_cwnd(whole);
    }

    #[inline(never)]
    fn set_pacing(&mut self, srtt: Option<Nanos>) {
        if self.output.pacer.lacks_rtt() && srtt.is_some() {
            self.begin_pacing(srtt);
        }
        self.apply_pacing(self.pacing_gain());
    }

    /// Until the pipe is full the rate only rises.
    fn apply_pacing(&mut self, gain: u64) {
        let bw = self.model_bw();
        self.output.pacer.set(bw, gain, self.full_pipe.reached);
    }

    #[inline(always)]
    fn set_cwnd(&mut self, ack: &AckEvidence) {
        let acked = u64::from(ack.delivered);
        let recovers = ack.newly_lost > 0
            || ack.recovery_phase != RecoveryPhase::None
            || self.recovery_phase != RecoveryPhase::None
            || self.conserving;
        if acked > 0 && !(recovers && self.recover_or_restore(ack, acked)) {
            let target = self
                .standing
                .map_or_else(|| self.target(), |now| now.target);
            debug_assert_eq!(target, self.target());
            if self.full_pipe.reached {
                self.output.cwnd = (self.output.cwnd + acked).min(target);
            } else if self.output.cwnd < target || ack.delivered_total < INITIAL_WINDOW {
                self.output.cwnd += acked;
            }
            self.output.cwnd = self.output.cwnd.max(self.params.min_cwnd.into());
        }
        if self.in_probe_rtt() {
            self.output.cwnd = self.output.cwnd.min(self.params.min_cwnd.into());
        }
    }

    /// Packet conservation in the first round of recovery, and the old window after it; returns whether it governs.
    #[inline(always)]
    fn recover_or_restore(&mut self, ack: &AckEvidence, acked: u64) -> bool {
        let delivering = u64::from(ack.flight) + acked;
        self.output.cwnd = self.output.cwnd.saturating_sub(ack.newly_lost).max(1);
        let before = std::mem::replace(&mut self.recovery_phase, ack.recovery_phase);
        if ack.recovery_phase == RecoveryPhase::Recovery && before != RecoveryPhase::Recovery {
            self.conserving = true;
            self.round.restart(ack);
            self.output.cwnd = delivering;
        } else if before != RecoveryPhase::None && ack.recovery_phase == RecoveryPhase::None {
            self.conserving = false;
            self.output.restore_cwnd();
        }
        if self.conserving {
            self.output.cwnd = self.output.cwnd.max(delivering);
        }
        self.conserving
    }
}
