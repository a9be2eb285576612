//! The recovery of ns-2.35's Agent/TCP/Linux, which drives the congestion control modules of Linux 2.6.22: losses by the
//! forward-most segment that SACK has reported, losses of retransmissions by their order, and rate halving.
//!
//! Segments are counted, not octets. Does not depend on how a controller moves the window, except that in loss
//! recovery cwnd is the controller's `recovery_cwnd`. No limited transmit, no undo, no F-RTO. Read Mathis and Mahdavi 1996
//! §3 first, then `docs/mechanisms.md`.

use super::window::RecoveryWindow;
use super::{Ack, Departure, Recovery, rfc};
use crate::cc::{AckEvidence, Adjustment, ConnectionEvent, Window};
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// Segments that may leave at once when recovery ends, beyond those in flight.
const MAX_BURST: u32 = 3;

/// A segment that has been retransmitted, and whose retransmission counts as in flight.
#[derive(Clone, Copy, Debug)]
struct Retransmission {
    number: u64,
    /// Number of the segment of new data that was to be sent next when it left.
    next_new: u64,
    /// Retransmissions since the scoreboard was cleared last, or since a timeout, when it left.
    order: u64,
}

/// What the scoreboard does not show.
#[derive(Debug, Default)]
pub(in crate::tcp) struct Ns2TcpLinux {
    /// In the order of their numbers.
    retransmissions: Vec<Retransmission>,
    next_order: u64,
    /// One more than the order of the retransmission that was reported last; 0: none.
    reported: u64,
    /// Number of the segment after the forward-most one that SACK had reported after the ACK before.
    edge: u64,
    /// What lies below was in flight and has been judged.
    judged: u64,
    /// Number of the segment after the last one that the scoreboard describes.
    described: u64,
}

impl Ns2TcpLinux {
    fn clear(&mut self, first: u64) {
        self.retransmissions.clear();
        (self.next_order, self.reported) = (0, 0);
        (self.edge, self.judged, self.described) = (first, first, first);
    }

    fn note(&mut self, number: u64, next_new: u64) {
        let retransmission = Retransmission {
            number,
            next_new,
            order: self.next_order,
        };
        self.next_order += 1;
        let place = self
            .retransmissions
            .partition_point(|known| known.number < number);
        self.retransmissions.insert(place, retransmission);
    }

    /// Forgets the retransmissions below `first`, which have been acknowledged; whether one of them is the latest that
    /// has been reported.
    fn acknowledge(&mut self, first: u64) -> bool {
        let acked = self
            .retransmissions
            .partition_point(|known| known.number < first);
        let latest = self
            .retransmissions
            .drain(..acked)
            .map(|gone| gone.order + 1);
        let latest = latest.max().unwrap_or(0);
        let later = latest > self.reported;
        self.reported = self.reported.max(latest);
        later
    }
}

/// TCP/Linux of ns-2.
pub(in crate::tcp) struct Ns2TcpLinuxRecovery;

impl Recovery for Ns2TcpLinuxRecovery {
    /// Every ACK is timed, and the window grows only if it was full.
    const IS_STEADY: bool = false;

    fn on_ack(sender: &mut Sender, ack: &Ack) {
        let lost = sender.judge_as_tcp_linux(ack);
        let open = matches!(sender.phase, Phase::Open { .. });
        if ack.advances
            && !matches!(sender.phase, Phase::Recovery(_))
            && !sender.capabilities.models_path
        {
            sender.increase_as_tcp_linux(ack);
        }
        if !ack.advances || ack.digest.sacked > 0 || !open {
            sender.react_as_tcp_linux(ack, lost);
        }
        let pipe = sender.board.pipe();
        sender.limit_halving(pipe + 1);
    }

    /// Everything that SACK has not reported is lost; ssthresh falls at every timeout.
    fn on_timeout(sender: &mut Sender, now: Nanos) {
        let cwnd = libm::floor(sender.controller.window().cwnd);
        sender.board.mark_all_lost();
        if let Some(state) = &mut sender.ns2_tcp_linux {
            let end = sender.board.last().map_or(0, |last| last + 1);
            let edge = state.edge;
            state.clear(end);
            state.edge = edge;
        }
        sender.reduce_for_timeout(cwnd, true, now);
        sender.set_whole_window(sender.controller.window().cwnd);
        rfc::begin_loss_phase(sender, now);
    }

    /// A retransmission of the first hole does not restart the timer.
    fn on_departure(sender: &mut Sender, departure: Departure, now: Nanos) {
        if !sender.rto_timer.is_set() {
            sender.rto_timer.set(now + sender.rtt.rto());
        }
        if let Departure::Retransmission(number) | Departure::Forced(number) = departure {
            let next_new = sender.board.last().map_or(number, |last| last + 1);
            if let Some(state) = &mut sender.ns2_tcp_linux {
                state.note(number, next_new);
            }
        }
        // Rate halving: the next segment leaves when one more has been delivered than has left.
        let pipe = sender.board.pipe();
        sender.limit_halving(pipe.saturating_sub(1).max(1));
    }

    /// Every ACK restarts it.
    fn restart_timers(sender: &mut Sender, ack: &Ack) {
        sender.rto_timer.set(ack.now + sender.rtt.rto());
    }
}

impl Sender {
    /// Marks what this ACK shows to be lost; returns whether anything was.
    fn judge_as_tcp_linux(&mut self, ack: &Ack) -> bool {
        let Some(mut state) = self.ns2_tcp_linux.take() else {
            return false;
        };
        let first = self
            .board
            .first()
            .unwrap_or_else(|| self.board.forward_edge());
        let mut thorough = state.acknowledge(first);
        if first >= state.described {
            state.clear(first);
            thorough = false;
        }
        let has_blocks = ack.digest.highest_block_end > 0;
        let mut lost = false;
        if has_blocks || thorough {
            let edge = self.board.forward_edge();
            thorough |= edge > state.edge;
            state.edge = state.edge.max(edge);
            state.described = state.described.max(edge);
            lost = self.judge_retransmissions(&mut state, thorough, ack.digest.highest_block_end);
            lost |= self.judge_originals(&mut state);
        }
        self.ns2_tcp_linux = Some(state);
        lost
    }

    /// A retransmission is lost if SACK has reported a segment of new data that left after it, or a retransmission more
    /// than four behind it. They are looked at in the order of their numbers, up to the highest block unless the ACK
    /// moved something.
    fn judge_retransmissions(
        &mut self,
        state: &mut Ns2TcpLinux,
        mut thorough: bool,
        block_end: u64,
    ) -> bool {
        let (edge, mut reported) = (state.edge, state.reported);
        let mut lost = false;
        state.retransmissions.retain(|known| {
            if self.board.is_sacked(known.number) {
                reported = known.order + 1;
                thorough = true;
                return false;
            }
            let looked_at = thorough || self.board.span(known.number).0 <= block_end;
            // `reported` is one more than an order.
            let passed = known.next_new < edge || known.order + DUP_THRESH + 2 < reported;
            if looked_at && passed {
                self.board.mark_retransmission_lost(known.number);
                lost = true;
            }
            !(looked_at && passed)
        });
        state.reported = reported;
        lost
    }

    /// Segments sent once are lost four below the forward-most one.
    fn judge_originals(&mut self, state: &mut Ns2TcpLinux) -> bool {
        let before = self.board.lost();
        let first = self.board.first().unwrap_or(state.edge);
        let end = state.edge.saturating_sub(DUP_THRESH + 1);
        for number in state.judged.max(first)..end {
            self.board.mark_lost(number);
        }
        state.judged = state.judged.max(end);
        self.board.lost() > before
    }

    /// The controller counts the ACK, if the window was full before it.
    fn increase_as_tcp_linux(&mut self, ack: &Ack) {
        let cwnd = libm::floor(self.controller.window().cwnd);
        let evidence = AckEvidence {
            cwnd_limited: f64::from(ack.prior_flight) >= cwnd,
            ..self.evidence(ack)
        };
        self.controller.on_ack(&evidence);
    }

    fn react_as_tcp_linux(&mut self, ack: &Ack, lost: bool) {
        match self.phase {
            Phase::Recovery(FastRecovery { recovery_point, .. })
            | Phase::Loss { recovery_point, .. }
                if self.snd_una >= recovery_point =>
            {
                self.leave_as_tcp_linux(ack);
            }
            Phase::Open { .. } | Phase::Loss { .. } if lost => self.enter_as_tcp_linux(ack),
            Phase::Open { .. } | Phase::Loss { .. } | Phase::Recovery(_) => {}
        }
    }

    fn enter_as_tcp_linux(&mut self, ack: &Ack) {
        let Some(first) = self.board.first() else {
            return;
        };
        self.counters.recoveries += 1;
        self.recover = self.snd_nxt;
        let before = libm::floor(self.controller.window().cwnd);
        self.reduce_for_loss(before, ack.now);
        self.set_whole_window(self.controller.recovery_terms().recovery_cwnd);
        self.phase = Phase::Recovery(FastRecovery {
            recovery_point: self.snd_nxt,
            window: RecoveryWindow::Halving {
                limit: before as u32,
            },
            speculative_from: first,
            rescued: false,
        });
    }

    /// What SACK has reported is forgotten. cwnd rises to ssthresh if it was below, as far as a burst allows.
    fn leave_as_tcp_linux(&mut self, ack: &Ack) {
        self.board.forget();
        let first = self.board.first();
        if let Some(state) = &mut self.ns2_tcp_linux {
            state.clear(first.unwrap_or_else(|| self.board.forward_edge()));
        }
        let (cwnd, ssthresh) = (
            self.controller.window().cwnd,
            self.controller.window().ssthresh,
        );
        let raised = (cwnd < ssthresh)
            .then(|| ssthresh.min(f64::from(self.board.outstanding() + MAX_BURST)));
        let evidence = self.evidence(ack);
        self.controller
            .on_event(&ConnectionEvent::RecoveryExit(evidence, raised));
        self.phase = Phase::Open { dup_acks: 0 };
    }

    /// cwnd as given, and ssthresh, in whole segments.
    fn set_whole_window(&mut self, cwnd: f64) {
        let ssthresh = libm::floor(self.controller.window().ssthresh);
        let cwnd = libm::floor(cwnd);
        self.controller
            .adjust(Adjustment::Set(Window { cwnd, ssthresh }));
    }

    /// While the rate is being halved, no more than so many segments may be in flight, unless cwnd allows them.
    fn limit_halving(&mut self, segments: u32) {
        if let Phase::Recovery(FastRecovery {
            window: RecoveryWindow::Halving { limit },
            ..
        }) = &mut self.phase
        {
            *limit = segments.min(*limit);
        }
    }
}
