//! How a sender reacts to an ACK: window increase while open, and fast recovery by RFC 5681, RFC 6582 or RFC 6675, with PRR and
//! RACK as the other two choices.
//!
//! Does not depend on the arithmetic of timers or the layout of segments.

use super::prr::Prr;
use super::rack::PathView;
use crate::cc::{RateSample, Signal, SignalEvidence};
use crate::config::{Profile, RecoveryKind};
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::{DUP_THRESH, Digest};
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase, RecoveryWindow};

/// An ACK, digested.
pub struct Ack {
    /// Its time.
    pub now: Nanos,
    /// It moved `snd_una`.
    pub advances: bool,
    /// By so many octets.
    pub acked_bytes: u64,
    /// Timestamp that it echoes.
    pub ts_ecr: u32,
    /// Round-trip time of the newest segment that it delivers.
    pub rtt: Option<Nanos>,
    /// It is a duplicate.
    pub duplicate: bool,
    /// Segments in the network before it, and ever marked lost.
    pub prior_flight: u32,
    /// See `prior_flight`.
    pub prior_lost: u64,
    /// Delivery rate that it shows.
    pub rate: Option<RateSample>,
    /// It echoes a congestion mark.
    pub ecn_echo: bool,
    /// What it taught the scoreboard.
    pub digest: Digest,
}

impl Sender {
    pub(in crate::tcp) fn react(&mut self, ack: &Ack) {
        let newly_lost = self.find_losses(ack);
        if self.is_aerotcp() {
            self.react_as_aerotcp(ack);
            return;
        }
        if self.is_supertcp() {
            self.react_as_supertcp(ack);
            return;
        }
        if self.is_ns2() {
            self.react_as_ns2(ack);
            return;
        }
        if self.undoes_recovery(ack) {
            return;
        }
        match self.phase {
            Phase::Open { dup_acks } => self.react_open(ack, dup_acks),
            Phase::Recovery(FastRecovery { recovery_point, .. })
                if self.snd_una >= recovery_point =>
            {
                self.leave_recovery(ack);
            }
            Phase::Recovery(_) => {
                self.react_in_recovery(ack, newly_lost);
                if self.controller.increases_in_recovery() {
                    self.grow(ack);
                }
            }
            Phase::Loss { recovery_point, .. } => self.react_after_timeout(ack, recovery_point),
        }
    }

    /// Marks what this ACK shows to be lost; returns whether anything was.
    fn find_losses(&mut self, ack: &Ack) -> bool {
        match self.params.recovery {
            RecoveryKind::Reno | RecoveryKind::Newreno | RecoveryKind::Supertcp => false,
            RecoveryKind::Sack | RecoveryKind::Prr | RecoveryKind::Fack | RecoveryKind::Aerotcp => {
                (ack.digest.sacked > 0 || ack.advances)
                    && self.board.mark_lost_by_sack(self.dup_thresh()) > 0
            }
            RecoveryKind::RackPrr | RecoveryKind::Snack => {
                let view = self.path_view(ack.now);
                self.rack.update(&ack.digest, &view);
                self.rack.detect(&mut self.board, &view)
            }
        }
    }

    pub(in crate::tcp) fn path_view(&self, now: Nanos) -> PathView {
        let snack = self.params.recovery == RecoveryKind::Snack;
        PathView {
            now,
            min_rtt: self.rtt.min_rtt().unwrap_or(0),
            srtt: self.rtt.srtt().unwrap_or(0),
            repairing: self.is_repairing(),
            // A hole that is reported is lost, whatever has been seen of reordering.
            dup_thresh: if snack { 0 } else { self.undo_state.reordering },
            reordered: self.undo_state.reordered && !snack,
            as_linux: self.acts_as_linux(),
        }
    }

    #[inline]
    fn react_open(&mut self, ack: &Ack, dup_acks: u32) {
        let dup_acks = if ack.advances {
            0
        } else {
            dup_acks + u32::from(ack.duplicate)
        };
        self.phase = Phase::Open { dup_acks };
        self.undo_past_recovery();
        if dup_acks == 0 {
            self.limited_transmitted = 0;
        }
        if self.loss_is_certain(dup_acks) {
            self.enter_recovery(ack);
        } else if ack.advances && !ack.ecn_echo {
            // RFC 3168 §6.1.2: no growth on an echoed mark.
            self.grow(ack);
        }
    }

    /// Lets the ACK grow the window. A model of the path hears of every ACK, elsewhere.
    #[inline]
    pub(in crate::tcp) fn grow(&mut self, ack: &Ack) {
        if !self.controller.models_path() {
            let evidence = self.evidence(ack);
            self.controller.on_ack(&evidence);
        }
    }

    fn loss_is_certain(&self, dup_acks: u32) -> bool {
        let third = u64::from(dup_acks) >= DUP_THRESH;
        match self.params.recovery {
            RecoveryKind::Reno => u64::from(dup_acks) == DUP_THRESH,
            // RFC 6582 §3.2 step 2: not for duplicates of what the last recovery or timeout sent again.
            RecoveryKind::Newreno => {
                u64::from(dup_acks) == DUP_THRESH && self.snd_una > self.recover
            }
            // RFC 6675 §5 steps (1) and (2).
            RecoveryKind::Sack | RecoveryKind::Prr | RecoveryKind::Aerotcp => {
                third || self.board.lost() > 0
            }
            RecoveryKind::Fack => third || self.hole_is_lost(),
            RecoveryKind::RackPrr | RecoveryKind::Snack => self.board.lost() > 0,
            // Its own: the first duplicate, in `supertcp`.
            RecoveryKind::Supertcp => false,
        }
    }

    /// RFC 5681 §3.2 steps 2 and 3, RFC 6675 §5 step (4).
    pub(in crate::tcp) fn enter_recovery(&mut self, ack: &Ack) {
        let Some(first) = self.board.first() else {
            return;
        };
        self.counters.recoveries += 1;
        self.recover = self.snd_nxt;
        // RFC 8985 §7.1: what the probe may have hidden costs nothing more.
        self.rack.probe = None;
        let cwnd_before = self.controller.cwnd();
        let rampdown = self.controller.rampdown();
        let flight =
            self.board.outstanding() - self.limited_transmitted.min(self.board.outstanding());
        if !self.marks.covers(self.snd_una) {
            self.reduce_for_loss(ack.now, flight);
        }
        let mut recovery_point = self.snd_nxt;
        let window = match self.params.recovery {
            RecoveryKind::Reno | RecoveryKind::Newreno | RecoveryKind::Supertcp => {
                self.forced = Some(first);
                RecoveryWindow::Inflated {
                    extra: DUP_THRESH as f64,
                    deflation: 0.0,
                    partial_seen: false,
                }
            }
            RecoveryKind::Sack | RecoveryKind::Aerotcp => {
                self.board.mark_lost(first);
                self.forced = Some(first);
                RecoveryWindow::Pipe
            }
            RecoveryKind::Fack => {
                self.board.mark_lost(first);
                self.forced = Some(first);
                self.forward_window(rampdown)
            }
            // CCSDS 714.0-B: what is reported missing leaves again as the window allows.
            RecoveryKind::Snack => RecoveryWindow::Pipe,
            RecoveryKind::RackPrr if self.controller.models_path() => RecoveryWindow::Model,
            RecoveryKind::Prr | RecoveryKind::RackPrr => {
                if self.params.recovery == RecoveryKind::Prr {
                    self.board.mark_lost(first);
                }
                let (prr, until) =
                    self.proportional_rate(cwnd_before, flight, ack.digest.delivered);
                recovery_point = until;
                RecoveryWindow::Prr(prr)
            }
        };
        if !self.acts_as_linux() {
            // Deviation: RFC 6582 and 6675 leave the timer alone; as most stacks, the first repair has the whole RTO.
            self.rto_timer.set(ack.now + self.rtt.rto());
        }
        self.phase = Phase::Recovery(FastRecovery {
            recovery_point,
            window,
            speculative_from: first,
            rescued: false,
        });
    }

    /// What a loss costs, `flight` segments being in the network.
    fn reduce_for_loss(&mut self, now: Nanos, flight: u32) {
        self.controller.on_congestion(&SignalEvidence {
            now,
            flight: f64::from(flight),
            lost_total: self.board.lost_total(),
            signal: Signal::Loss,
        });
        self.fail_quick_start();
        self.marks.note_reduction();
        self.mark_recovery_for_undo();
    }

    /// The proportional rate reduction and where recovery ends: that of a congestion mark goes on, if there is one.
    fn proportional_rate(&mut self, cwnd_before: f64, flight: u32, delivered: u32) -> (Prr, u64) {
        // Deviation: Linux takes cwnd for RecoverFS; RFC 9937 §6.1 the flight.
        let recover_fs = if self.params.profile == Profile::Linux {
            cwnd_before as u32
        } else {
            flight
        };
        let fresh = Prr::new(self.controller.cwnd() as u32, recover_fs);
        let begun = self.marks.stop_sinking();
        let (mut prr, until) = begun.unwrap_or((fresh, self.snd_nxt));
        if !self.acts_as_linux() {
            prr.on_ack(delivered, false, self.board.pipe());
        }
        (prr, until)
    }

    fn react_in_recovery(&mut self, ack: &Ack, newly_lost: bool) {
        if ack.advances && self.params.recovery == RecoveryKind::Reno {
            // RFC 5681 §3.2 step 6: the first new ACK deflates the window and ends recovery.
            self.phase = Phase::Open { dup_acks: 0 };
            let evidence = self.evidence(ack);
            self.controller.on_recovery_exit(&evidence, None);
            return;
        }
        self.follow_forward_edge();
        let pipe = self.board.pipe();
        let first = self.board.first();
        let Phase::Recovery(recovery) = &mut self.phase else {
            return;
        };
        match &mut recovery.window {
            RecoveryWindow::Inflated { extra, .. } => {
                if ack.advances {
                    // RFC 6582 §3.2 step 3, partial ACK: retransmit, deflate by what was acknowledged, add one back.
                    *extra += 1.0 - f64::from(ack.digest.acked);
                    self.forced = first;
                } else if ack.duplicate {
                    // RFC 5681 §3.2 step 4.
                    *extra += 1.0;
                }
            }
            RecoveryWindow::Pipe
            | RecoveryWindow::Model
            | RecoveryWindow::Forward { .. }
            | RecoveryWindow::Counted { .. }
            | RecoveryWindow::Gap { .. } => {}
            RecoveryWindow::Prr(prr) => {
                prr.on_ack(ack.digest.delivered, ack.advances && !newly_lost, pipe);
            }
        }
    }

    fn leave_recovery(&mut self, ack: &Ack) {
        self.rack.note_recovery_end();
        let cwnd = (self.params.recovery == RecoveryKind::Newreno).then(|| {
            // RFC 6582 §3.2 step 3, full ACK, option (1): no burst.
            let flight = f64::from(self.board.outstanding().max(1));
            self.controller.cwnd().min(flight + 1.0)
        });
        let evidence = self.evidence(ack);
        self.controller.on_recovery_exit(&evidence, cwnd);
        self.forced = None;
        self.limited_transmitted = 0;
        self.phase = Phase::Open { dup_acks: 0 };
        // What was sent during recovery may have been lost meanwhile.
        if self.loss_is_certain(0) {
            self.enter_recovery(ack);
        } else if self.params.profile == Profile::Linux || self.controller.increases_in_recovery() {
            // Deviation: Linux lets the ACK that ends recovery grow the window.
            self.grow(ack);
        }
    }

    fn react_after_timeout(&mut self, ack: &Ack, recovery_point: u64) {
        if self.answers_timeout(ack, recovery_point) {
            return;
        }
        if ack.advances {
            self.grow(ack);
        }
        if self.snd_una >= recovery_point {
            self.rack.note_recovery_end();
            self.phase = Phase::Open { dup_acks: 0 };
            self.limited_transmitted = 0;
            if self.loss_is_certain(0) {
                self.enter_recovery(ack);
            }
        }
    }
}
