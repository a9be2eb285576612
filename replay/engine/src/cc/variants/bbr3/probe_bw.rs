//! `PROBE_BW` at work: the upper bound that probes move, and the way round the cycle.
//!
//! Does not depend on rates or how the window follows. Read draft-ietf-ccwg-bbr §5.3.3 first.

use super::data_volume::UNLIMITED;
use super::probe_bw_cycle::{Feedback, Phase};
use super::{Bbr3, Mode};
use crate::cc::evidence::{AckEvidence, RecoveryPhase};
use crate::cc::variants::bbr::fixed;
use crate::cc::variants::bbr::fixed::UNIT;

/// The flight at which a probe was found to be too high.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeLimit {
    /// Segments.
    pub flight: u64,
    /// The application limited what was sent then.
    pub app_limited: bool,
}

impl Bbr3 {
    pub(super) fn update_cycle(&mut self, ack: &AckEvidence, bw: u64) {
        if !self.full_pipe.reached || self.adapt_long_term(ack) {
            return;
        }
        let Mode::ProbeBw(phase) = self.mode else {
            return;
        };
        match phase {
            Phase::Cruise => {
                self.probe_if_due(ack);
            }
            Phase::Refill if self.round.starts => {
                self.cycle.samples_probe = true;
                self.start_up(ack, bw);
            }
            Phase::Refill => {}
            Phase::Up => self.check_probe(ack, bw),
            Phase::Down => {
                if !self.probe_if_due(ack) {
                    self.cruise_if_drained(ack);
                }
            }
        }
    }

    /// Draft §5.3.3.6, `BBRAdaptLongTermModel`; returns whether a probe begins.
    fn adapt_long_term(&mut self, ack: &AckEvidence) -> bool {
        if self.round.starts && self.cycle.feedback == Feedback::Starting {
            self.cycle.feedback = Feedback::Coming;
        }
        if self.round.starts && self.cycle.feedback == Feedback::Stopping && self.end_feedback() {
            return true;
        }
        if self.exceeds(ack) {
            if self.cycle.samples_probe {
                let flight = ack.rate.map_or(0, |sample| sample.tx_in_flight);
                let at = ProbeLimit {
                    flight: flight.into(),
                    app_limited: self.app_limited,
                };
                self.end_probe_too_high(at);
            }
        } else if self.data_volume.inflight_hi != UNLIMITED {
            let flight = ack.rate.map_or(0, |sample| sample.tx_in_flight);
            self.data_volume.inflight_hi = self.data_volume.inflight_hi.max(flight.into());
            if matches!(self.mode, Mode::ProbeBw(Phase::Up)) {
                self.raise_inflight_hi(ack);
            }
        }
        false
    }

    /// The last samples of a probe have come: the maximum rate of the cycle before it is dropped, and a probe that
    /// stopped early without harm goes on.
    fn end_feedback(&mut self) -> bool {
        self.cycle.samples_probe = false;
        self.cycle.feedback = Feedback::None;
        if !matches!(self.mode, Mode::ProbeBw(_)) {
            return false;
        }
        if !self.app_limited && self.max_bw[1] > 0 {
            self.max_bw = [self.max_bw[1], 0];
        }
        let goes_on = self.cycle.stopped_early && !self.cycle.was_too_high;
        if goes_on {
            self.start_refill(0);
        }
        goes_on
    }

    /// Draft §5.3.3.6, `BBRProbeInflightLongtermUpward`: only where the bound is what limits.
    fn raise_inflight_hi(&mut self, ack: &AckEvidence) {
        if !ack.cwnd_limited || self.output.cwnd < self.data_volume.inflight_hi {
            return;
        }
        self.data_volume.inflight_hi += self.cycle.rise(ack.delivered.into());
        if self.round.starts {
            self.cycle.steepen(self.output.cwnd);
        }
    }

    /// Draft §5.3.3.6, `BBRHandleInflightTooHigh`: once per probe.
    pub(super) fn end_probe_too_high(&mut self, at: ProbeLimit) {
        self.cycle.was_too_high = true;
        self.cycle.samples_probe = false;
        if !at.app_limited {
            let beta = fixed::gain(self.params.beta);
            let target = self.target_inflight() * (UNIT - beta) / UNIT;
            self.data_volume.inflight_hi = at.flight.max(target);
        }
        if self.mode == Mode::ProbeBw(Phase::Up) {
            self.start_down();
        }
    }

    fn probe_if_due(&mut self, ack: &AckEvidence) -> bool {
        if self.ecn.eligible
            && self.signals.mark_in_cycle
            && !self.signals.loss_in_cycle
            && ack.recovery_phase == RecoveryPhase::None
            && self.params.ecn_reprobe_gain > 0.0
        {
            // EcnState without losses have ceased: the first step is that share of the bound.
            let step = self.data_volume.inflight_hi.min(u64::from(u32::MAX))
                * fixed::gain(self.params.ecn_reprobe_gain)
                / UNIT;
            self.start_refill(step.max(1).ilog2());
            return true;
        }
        let target = self.target_inflight();
        let due = self.cycle.is_due(ack.now, &self.params, target);
        if due {
            self.start_refill(0);
        }
        due
    }

    /// Draft §5.3.3.6: a probe ends where the last one went too far, or where the rate no longer grows.
    fn check_probe(&mut self, ack: &AckEvidence, bw: u64) {
        let flight = self.flight_when_sent((ack.prior_flight, ack.paced_for()));
        let early = self.cycle.was_too_high && flight >= self.data_volume.inflight_hi;
        self.cycle.stopped_early |= early;
        if !early && ack.cwnd_limited && self.output.cwnd >= self.data_volume.inflight_hi {
            // The bound is what keeps the rate from growing.
            self.search_beyond(bw);
        } else if early || self.full_pipe.now {
            self.cycle.was_too_high = false;
            self.start_down();
        }
    }

    fn cruise_if_drained(&mut self, ack: &AckEvidence) {
        let flight = self.flight_when_sent((ack.prior_flight, ack.paced_for()));
        if flight <= self.drained_flight() {
            self.start_cruise();
        }
    }

    /// Segments in flight at which what a probe has queued is drained.
    pub(super) fn drained_flight(&self) -> u64 {
        let product = self.inflight(self.max_bw(), UNIT);
        product.min(self.inflight_hi_with_headroom())
    }

    pub(super) fn inflight_hi_with_headroom(&self) -> u64 {
        let headroom = fixed::gain(self.params.headroom);
        self.data_volume.with_headroom(headroom, self.min_cwnd())
    }

    pub(super) fn start_down(&mut self) {
        self.signals.reset();
        self.cycle.begin(self.now, &self.params, &mut self.rng);
        self.round.end = self.delivered;
        self.enter(Mode::ProbeBw(Phase::Down));
    }

    pub(super) fn start_cruise(&mut self) {
        if self.data_volume.inflight_lo != UNLIMITED {
            let hi = self.data_volume.inflight_hi;
            self.data_volume.inflight_lo = self.data_volume.inflight_lo.min(hi);
        }
        self.enter(Mode::ProbeBw(Phase::Cruise));
    }

    fn start_refill(&mut self, doublings: u32) {
        self.data_volume.reset_short_term();
        self.cycle.refill(doublings);
        self.round.end = self.delivered;
        self.enter(Mode::ProbeBw(Phase::Refill));
    }

    fn start_up(&mut self, ack: &AckEvidence, bw: u64) {
        self.round.end = ack.delivered_total;
        self.search_beyond(bw);
        self.cycle.probe(ack.now, self.output.cwnd);
        self.enter(Mode::ProbeBw(Phase::Up));
    }
}
