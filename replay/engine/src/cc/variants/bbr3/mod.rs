//! BBR, version 3, as Linux's branch of it has it: the model of version 1 bounded by what losses and marks tell, and
//! probes for more at the pace of its rivals.
//!
//! Does not depend on segments or timers; the sender measures rates, tells each lost segment and enforces the pacing. Read
//! draft-ietf-ccwg-bbr-05 §5 first, then `docs/variants/bbr3.md`. What every version shares is in `bbr`; here `data_volume`,
//! `congestion_signals`, `probe_bw_cycle`, `probe_rtt` and `ecn` have their own state; this file is the state machine over them, `probe_bw`
//! its longest part, `control` what comes out of it.

mod congestion_signals;
mod control;
mod data_volume;
mod ecn;
mod params;
mod probe_bw;
mod probe_bw_cycle;
mod probe_rtt;
#[cfg(test)]
mod tests;

use crate::cc::{AckOutcome, ConnectionEvent};
use hindflight_kernels::StreamRng;

pub use params::Bbr3Params;

use super::bbr::aggregation::{Aggregation, SLOT_ROUNDS};
use super::bbr::fixed;
use super::bbr::fixed::UNIT;
use super::bbr::gains::Gains;
use super::bbr::output::Output;
use super::bbr::pacer::Pacer;
use super::bbr::round::Round;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::evidence::{AckEvidence, LostSegment, RecoveryPhase, Signal, SignalEvidence};
use crate::sim::time::{MILLISECOND, Nanos};
use congestion_signals::{CongestionSignals, lost_segment_of_probe};
use data_volume::{DataVolume, UNLIMITED, inflight_at_loss, is_inflight_too_high};
use ecn::EcnState;
use probe_bw::ProbeLimit;
use probe_bw_cycle::{Feedback, Phase, ProbeBwCycle};
use probe_rtt::MinRttFilter;

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "bbr3",
    other_names: &["bbrv3", "bbr-v3"],
    family: "model",
    summary: "BBR limited by losses and marks, which probes at intervals fair to Reno (v3, as Google's branch of Linux)",
    source: "draft-ietf-ccwg-bbr-05",
    year: 2026,
    params: Bbr3Params::SPECS,
    parts: |stack, values, draws| {
        let (params, window) = (Bbr3Params::of(values), stack.initial_window_pkts);
        ControllerParts::Whole(Bbr3::new(params, window, stack.smss_bytes, draws).into())
    },
    ..Definition::BASE
};

/// What it is doing; each mode owns what only it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// A separate tag: it is read many times per ACK and would otherwise be derived from the fields of the modes.
#[repr(u8)]
enum Mode {
    /// Doubling the rate every round until it no longer helps, or causes too much loss.
    Startup,
    /// Draining the queue that STARTUP has built.
    Drain,
    /// Cycling.
    ProbeBw(Phase),
    /// Half of the product in flight, to see the path without a queue.
    ProbeRtt {
        /// When it may end; none until the flight is that small.
        until: Option<Nanos>,
        /// A round has passed since.
        round_done: bool,
    },
}

/// The search for the rate at which the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    /// The rate from which on the delivery rate counts as growing.
    enough: u64,
    rounds: u32,
    /// It has been found since the search began.
    now: bool,
    /// It has been found once.
    reached: bool,
}

impl FullPipe {
    /// Searches anew for a rate of at least `enough`.
    fn search(&mut self, enough: u64) {
        *self = Self {
            enough,
            reached: self.reached,
            ..Self::default()
        };
    }
}

/// BBR, version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    params: Bbr3Params,
    rng: StreamRng,
    initial_window: u64,
    /// What comes out.
    pub(in crate::cc) output: Output,
    mode: Mode,
    gains: Gains,
    round: Round,
    /// Maximum rates of the cycle before and of this one.
    max_bw: [u64; 2],
    min_rtt: MinRttFilter,
    full_pipe: FullPipe,
    data_volume: DataVolume,
    /// The bounds before the current loss recovery.
    data_volume_before: DataVolume,
    signals: CongestionSignals,
    cycle: ProbeBwCycle,
    ecn: EcnState,
    aggregation: Aggregation,
    /// The recovery phase of the sender at the last ACK, and the segments lost by then.
    recovery_phase: RecoveryPhase,
    lost_total: u64,
    /// Time of the last ACK, and segments delivered by then.
    now: Nanos,
    delivered: u64,
    idle_restart: bool,
    app_limited: bool,
}

impl Bbr3 {
    /// A connection that has not been established. `rng` draws how long cycles are.
    pub fn new(params: Bbr3Params, initial_window: u32, smss_bytes: u32, rng: StreamRng) -> Self {
        let pacer = Pacer::new(smss_bytes, params.pacing_margin_percent);
        Self {
            params,
            rng,
            initial_window: initial_window.into(),
            output: Output::new(initial_window, pacer),
            mode: Mode::Startup,
            gains: control::gains(Mode::Startup, &params),
            round: Round::default(),
            max_bw: [0; 2],
            min_rtt: MinRttFilter::new(&params),
            full_pipe: FullPipe::default(),
            data_volume: DataVolume::default(),
            data_volume_before: DataVolume::default(),
            signals: CongestionSignals::default(),
            cycle: ProbeBwCycle::default(),
            ecn: EcnState::default(),
            aggregation: Aggregation::default(),
            recovery_phase: RecoveryPhase::None,
            lost_total: 0,
            now: 0,
            delivered: 0,
            idle_restart: false,
            app_limited: false,
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
            ConnectionEvent::Lost(lost) => self.on_lost(&lost),
            _ => {}
        }
    }

    /// The connection stands; `rtt` is the handshake's round-trip time.
    fn on_established(&mut self, now: Nanos, rtt: Option<Nanos>, delivered: u64) {
        (self.now, self.delivered) = (now, delivered);
        self.min_rtt.begin(now, rtt);
        self.round.end = delivered;
        self.signals.begin(delivered);
        self.aggregation.restart_epoch(now);
        self.begin_pacing(rtt);
    }

    fn begin_pacing(&mut self, rtt: Option<Nanos>) {
        let gain = self.params.startup_pacing_gain.into();
        self.output.pacer.begin(self.output.cwnd, rtt, gain);
    }

    /// Every ACK, after the sender has reacted to it (draft §5.2.3).
    pub fn on_ack(&mut self, ack: &AckEvidence) -> AckOutcome {
        let bw = ack.rate.map_or(0, |sample| {
            fixed::bandwidth_rounded_up(sample.delivered, sample.interval)
        });
        (self.now, self.delivered) = (ack.now, ack.delivered_total);
        self.app_limited = ack.rate.is_none_or(|sample| sample.app_limited);
        self.ecn.take(ack);
        self.update_round(ack);
        self.signals.mark_in_round |= self.ecn.eligible && ack.ecn_echo;
        self.signals.take(ack, bw);
        self.take_signals(ack, bw);
        self.update_aggregation(ack);
        self.check_startup_losses(ack);
        self.check_full_pipe(ack, bw);
        self.check_drain(ack);
        self.update_cycle(ack, bw);
        let holds_back = self.update_min_rtt(ack);
        let paces_anew = self.set_pacing(ack.srtt);
        self.set_cwnd(ack);
        self.bound_cwnd();
        self.signals.advance(ack, bw);
        self.recovery_phase = ack.recovery_phase;
        self.lost_total = ack.lost_total;
        AckOutcome::of_model(holds_back, paces_anew)
    }

    /// A segment was marked lost (draft §5.5.10.2).
    fn on_lost(&mut self, lost: &LostSegment) {
        self.delivered = lost.delivered_total;
        self.signals.note_loss(self.delivered);
        self.check_probe_loss(lost);
    }

    /// A probe ends once it loses too much.
    fn check_probe_loss(&mut self, lost: &LostSegment) {
        let threshold = self.loss_threshold();
        if self.cycle.samples_probe && is_inflight_too_high(lost.lost, lost.tx_in_flight, threshold)
        {
            let flight = inflight_at_loss(lost, threshold);
            let at = ProbeLimit {
                flight,
                app_limited: lost.app_limited,
            };
            self.end_probe_too_high(at);
        }
    }

    /// A loss: the window does not decrease at once, but window and bounds are saved to return to.
    pub fn on_congestion(&mut self, signal: &SignalEvidence) {
        self.save_cwnd();
        // No segment was marked: a tail loss probe has recovered the loss. Linux counts it all the same.
        if signal.lost_total == self.lost_total && self.recovery_phase == RecoveryPhase::None {
            self.signals.note_loss(self.delivered);
            let lost = lost_segment_of_probe(&self.signals, self.app_limited);
            self.check_probe_loss(&lost);
        }
    }

    /// A congestion mark: the window to return to is saved, as before a loss.
    pub fn on_mark(&mut self) {
        self.save_cwnd();
    }

    /// A retransmission timeout.
    pub fn on_timeout(&mut self, signal: &SignalEvidence) {
        if signal.signal == Signal::Timeout {
            self.save_cwnd();
        }
        self.recovery_phase = RecoveryPhase::Loss;
        self.full_pipe.search(0);
        if !self.is_probing() && self.data_volume.inflight_lo == UNLIMITED {
            self.data_volume.inflight_lo = self.output.cwnd.max(self.output.prior_cwnd);
        }
        self.output.cwnd = 1;
        self.lost_total = signal.lost_total;
    }

    /// The losses were none (draft §5.5.11.2): window and bounds are again what they were.
    ///
    /// Deviation: as Linux, the mode is not (draft: STARTUP and a probe go on).
    pub fn undo(&mut self) {
        self.full_pipe.search(0);
        self.signals.loss_in_round = false;
        let before = self.data_volume_before;
        self.data_volume.undo(&before);
        self.output.restore_cwnd();
    }

    /// Data is sent again with nothing in flight, after the application had none (draft §5.4.1).
    fn on_restart(&mut self, now: Nanos) {
        self.idle_restart = true;
        self.aggregation.restart_epoch(now);
        match self.mode {
            Mode::ProbeBw(_) => {
                self.apply_pacing(UNIT);
            }
            Mode::ProbeRtt { .. } => self.leave_probe_rtt_if_done(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.gains = control::gains(mode, &self.params);
    }

    fn loss_threshold(&self) -> u64 {
        fixed::gain(self.params.loss_threshold)
    }

    fn min_cwnd(&self) -> u64 {
        self.params.min_cwnd.into()
    }

    /// Maximum rate of this cycle and the one before.
    fn max_bw(&self) -> u64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// The rate of the model: that, or less after losses.
    fn bw(&self) -> u64 {
        self.max_bw().min(self.data_volume.bw_lo)
    }

    fn update_round(&mut self, ack: &AckEvidence) {
        self.round.starts = false;
        let Some(sample) = &ack.rate else {
            return;
        };
        if self.round.take(sample, ack) {
            self.cycle.note_round();
            let min = self.min_rtt.value();
            let too_many = self.ecn.end_round(ack, min, &self.params);
            if too_many && !self.full_pipe.reached {
                self.fill_pipe_by_losses();
            }
        }
    }

    /// Maximum rate and lower bounds (draft §5.5.10.3, `BBRUpdateCongestionSignals`).
    fn take_signals(&mut self, ack: &AckEvidence, bw: u64) {
        let Some(sample) = ack.rate.as_ref().filter(|_| ack.delivered > 0) else {
            return;
        };
        // A rate that the application limited says nothing, unless it is greater than all.
        if !sample.app_limited || bw >= self.max_bw() {
            self.max_bw[1] = self.max_bw[1].max(bw);
        }
        self.signals.loss_in_round |= ack.newly_lost > 0;
        if self.signals.round_starts {
            self.adapt_short_term();
            self.signals.loss_in_round = false;
            self.signals.mark_in_round = false;
        }
    }

    fn adapt_short_term(&mut self) {
        if self.is_probing() {
            return;
        }
        let mut by_marks = UNLIMITED;
        if self.signals.mark_in_round {
            let share = self.ecn.cut(&self.params);
            by_marks = self
                .data_volume
                .inflight_lo_after_marks(self.output.cwnd, share);
        }
        if self.signals.loss_in_round {
            let delivered = (self.signals.bw, self.signals.inflight);
            let beta = fixed::gain(self.params.beta);
            let bw = self.max_bw();
            self.data_volume
                .decrease_on_loss(bw, self.output.cwnd, beta, delivered);
        }
        self.data_volume.inflight_lo = self.data_volume.inflight_lo.min(by_marks);
    }

    fn update_aggregation(&mut self, ack: &AckEvidence) {
        if self.params.aggregation && ack.delivered > 0 && ack.rate.is_some() {
            let slot_rounds = if self.full_pipe.reached {
                SLOT_ROUNDS
            } else {
                1
            };
            let round = self.round.starts.then_some(slot_rounds);
            let (acked, bw) = (u64::from(ack.delivered), self.bw());
            self.aggregation
                .update(ack.now, acked, bw, round, self.output.cwnd);
        }
    }

    /// Draft §5.3.1.3: a round of recovery that loses too much, in more than a few places, ends STARTUP.
    fn check_startup_losses(&mut self, ack: &AckEvidence) {
        if self.full_pipe.reached {
            return;
        }
        let places = &mut self.signals.losing_acks;
        *places += u32::from(ack.newly_lost > 0);
        let many = self.params.full_loss_count > 0 && *places >= self.params.full_loss_count;
        if !self.signals.round_starts {
            return;
        }
        *places = 0;
        if many && ack.recovery_phase == RecoveryPhase::Recovery && self.exceeds(ack) {
            self.fill_pipe_by_losses();
        }
    }

    fn fill_pipe_by_losses(&mut self) {
        self.full_pipe.reached = true;
        let product = self.inflight(self.max_bw(), UNIT);
        self.data_volume.inflight_hi = product.max(self.signals.inflight);
    }

    /// Whether the flight of which `ack` delivers the newest segment lost too much, or was marked too much.
    fn exceeds(&self, ack: &AckEvidence) -> bool {
        let Some(sample) = &ack.rate else {
            return false;
        };
        let lost = ack.lost_total.saturating_sub(sample.prior_lost);
        let max = || sample.delivered * fixed::gain(self.params.ecn_threshold) / UNIT;
        lost > 0 && is_inflight_too_high(lost, sample.tx_in_flight, self.loss_threshold())
            || self.ecn.eligible && sample.marked > max()
    }

    /// Draft §5.3.1.2.
    fn check_full_pipe(&mut self, ack: &AckEvidence, bw: u64) {
        if self.full_pipe.now || self.app_limited {
            return;
        }
        if bw >= self.full_pipe.enough {
            self.search_beyond(bw);
        } else if self.round.starts && ack.rate.is_some() {
            self.full_pipe.rounds += 1;
            self.full_pipe.now = self.full_pipe.rounds >= self.params.full_bw_rounds;
            self.full_pipe.reached |= self.full_pipe.now;
        }
    }

    /// The pipe is not full while the rate grows well beyond `bw`.
    fn search_beyond(&mut self, bw: u64) {
        let increase = fixed::gain(self.params.full_bw_growth);
        self.full_pipe.search(bw * increase / UNIT);
    }

    fn check_drain(&mut self, ack: &AckEvidence) {
        if self.in_startup() && self.full_pipe.reached {
            self.enter(Mode::Drain);
            self.output.ssthresh = self.inflight(self.max_bw(), UNIT) as f64;
            self.signals.reset();
        }
        if matches!(self.mode, Mode::Drain) {
            let product = self.inflight(self.max_bw(), UNIT);
            if self.flight_when_sent((ack.flight, ack.paced_for())) <= product {
                self.start_down();
            }
        }
    }

    /// Draft §5.3.4.3. Returns whether the ACK found it in `ProbeRTT`, be it the one that ends it: its rates
    /// count as limited by the application.
    fn update_min_rtt(&mut self, ack: &AckEvidence) -> bool {
        let expired = self.min_rtt.take(ack);
        if expired && !self.idle_restart && !self.in_probe_rtt() {
            self.enter(Mode::ProbeRtt {
                until: None,
                round_done: false,
            });
            self.save_cwnd();
            self.cycle.feedback = Feedback::Stopping;
            self.round.restart(ack);
        }
        let holds_back = self.in_probe_rtt();
        self.update_probe_rtt(ack);
        if ack.rate.is_some() {
            self.idle_restart = false;
        }
        holds_back
    }

    fn update_probe_rtt(&mut self, ack: &AckEvidence) {
        let Mode::ProbeRtt { until, round_done } = self.mode else {
            return;
        };
        if until.is_none() && u64::from(ack.flight) <= self.probe_rtt_cwnd() {
            let stay = (self.params.probe_rtt_ms * MILLISECOND as f64) as Nanos;
            self.mode = Mode::ProbeRtt {
                until: Some(ack.now + stay),
                round_done: false,
            };
            self.round.restart(ack);
        } else if until.is_some() {
            let round_done = round_done || self.round.starts;
            self.mode = Mode::ProbeRtt { until, round_done };
            if round_done {
                self.leave_probe_rtt_if_done(ack.now);
            }
        }
    }

    fn probe_rtt_cwnd(&self) -> u64 {
        let gain = fixed::gain(self.params.probe_rtt_cwnd_gain);
        self.bdp(self.bw(), gain).max(self.min_cwnd())
    }

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
        self.min_rtt.note_probe(now);
        self.output.restore_cwnd();
        self.data_volume.reset_short_term();
        if self.full_pipe.reached {
            self.now = now;
            self.start_down();
            self.start_cruise();
        } else {
            self.enter(Mode::Startup);
        }
    }

    fn save_cwnd(&mut self) {
        let whole = self.recovery_phase == RecoveryPhase::None && !self.in_probe_rtt();
        self.output.save_cwnd(whole);
        self.data_volume_before = self.data_volume;
    }
}
