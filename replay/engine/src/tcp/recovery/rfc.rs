//! The state machine of RFC 5681, RFC 6582 and RFC 6675: an open window, fast recovery, and the time after a timeout.
//!
//! The algorithms differ in its steps (see [`Recovery`]): how they detect losses, when recovery begins, what governs
//! transmission in recovery. Does not depend on any of them.

use super::window::RecoveryWindow;
use super::{Ack, Departure, Recovery};
use crate::cc::{ConnectionEvent, Signal, SignalEvidence};
use crate::sim::time::Nanos;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// Recovery begins: what the algorithm may need to know.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Entry {
    /// Number of the first outstanding segment.
    pub first: u64,
    /// cwnd before the decrease.
    pub cwnd_before: f64,
    /// Share of the window that is taken gradually (FACK's rampdown).
    pub rampdown: Option<f64>,
    /// FlightSize, in segments.
    pub flight: u32,
    /// Segments that the ACK delivered.
    pub delivered: u32,
    /// The window has been reduced; not where a congestion mark had done so before.
    pub reduced: bool,
    /// Where recovery ends.
    pub recovery_point: u64,
}

/// Reacts to an ACK.
pub(super) fn on_ack<R: Recovery>(sender: &mut Sender, ack: &Ack) {
    let newly_lost = R::find_losses(sender, ack);
    if sender.undoes_recovery(ack) {
        return;
    }
    match sender.phase {
        Phase::Open { dup_acks } => on_ack_while_open::<R>(sender, ack, dup_acks),
        Phase::Recovery(FastRecovery { recovery_point, .. })
            if sender.snd_una >= recovery_point =>
        {
            leave::<R>(sender, ack);
        }
        Phase::Recovery(_) => {
            R::on_ack_in_recovery(sender, ack, newly_lost);
            if sender.capabilities.increases_in_recovery {
                sender.increase_window(ack);
            }
        }
        Phase::Loss { recovery_point, .. } => {
            on_ack_after_timeout::<R>(sender, ack, recovery_point);
        }
    }
}

#[inline]
fn on_ack_while_open<R: Recovery>(sender: &mut Sender, ack: &Ack, dup_acks: u32) {
    let dup_acks = if ack.advances {
        0
    } else {
        dup_acks + u32::from(ack.duplicate)
    };
    sender.phase = Phase::Open { dup_acks };
    sender.undo_past_recovery();
    if dup_acks == 0 {
        sender.limited_transmitted = 0;
    }
    if R::is_triggered(sender, dup_acks) {
        enter::<R>(sender, ack.now, ack.digest.delivered);
    } else if ack.advances && !ack.ecn_echo {
        // RFC 3168 §6.1.2: no increase on an echoed mark.
        sender.increase_window(ack);
    }
}

/// RFC 5681 §3.2 steps 2 and 3, RFC 6675 §5 step (4).
pub(super) fn enter<R: Recovery>(sender: &mut Sender, now: Nanos, delivered: u32) {
    let Some(mut entry) = sender.reduce_on_entry(now, delivered) else {
        return;
    };
    if entry.reduced {
        sender.mark_recovery_for_undo();
    }
    let window = R::begin(sender, &mut entry);
    // Deviation: RFC 6582 and 6675 leave the timer alone; as in most stacks, the first retransmission has the whole RTO.
    sender.rto_timer.set(now + sender.rtt.rto());
    sender.phase = Phase::Recovery(FastRecovery {
        recovery_point: entry.recovery_point,
        window,
        speculative_from: entry.first,
        rescued: false,
    });
}

fn leave<R: Recovery>(sender: &mut Sender, ack: &Ack) {
    sender.rack.note_recovery_end();
    let cwnd = R::exit_cwnd(sender);
    let evidence = sender.evidence(ack);
    sender
        .controller
        .on_event(&ConnectionEvent::RecoveryExit(evidence, cwnd));
    sender.forced = None;
    sender.limited_transmitted = 0;
    sender.phase = Phase::Open { dup_acks: 0 };
    // What was sent during recovery may have been lost meanwhile.
    if R::is_triggered(sender, 0) {
        enter::<R>(sender, ack.now, ack.digest.delivered);
    } else if sender.rules.exit_ack_increases || sender.capabilities.increases_in_recovery {
        sender.increase_window(ack);
    }
}

fn on_ack_after_timeout<R: Recovery>(sender: &mut Sender, ack: &Ack, recovery_point: u64) {
    if sender.answers_timeout(ack, recovery_point) {
        return;
    }
    if ack.advances {
        sender.increase_window(ack);
    }
    if sender.snd_una >= recovery_point {
        sender.rack.note_recovery_end();
        sender.phase = Phase::Open { dup_acks: 0 };
        sender.limited_transmitted = 0;
        if R::is_triggered(sender, 0) {
            enter::<R>(sender, ack.now, ack.digest.delivered);
        }
    }
}

/// The retransmission timer expired: all that is outstanding is lost.
pub(super) fn on_timeout(sender: &mut Sender, now: Nanos) {
    sender.mark_timeout_for_undo();
    retransmit_all(sender, now);
}

/// The same where nothing is undone.
pub(super) fn retransmit_all(sender: &mut Sender, now: Nanos) {
    // RFC 5681 §3.1: ssthresh does not change when the same segment times out again.
    let first = sender.timeouts_in_a_row == 0;
    let flight = sender.flight_at_timeout();
    sender.board.mark_all_lost();
    sender.reduce_for_timeout(flight, first, now);
    begin_loss_phase(sender, now);
}

/// After a timeout; the timer runs again.
pub(super) fn begin_loss_phase(sender: &mut Sender, now: Nanos) {
    sender.begin_loss_phase();
    // RFC 6298 §5.6: also if the window lets nothing leave.
    let due = sender.next_timeout(now);
    sender.rto_timer.set(due);
}

/// RFC 6298 §5.1. Returns whether the timer has been started.
#[inline(always)]
pub(super) fn time_departure(sender: &mut Sender, departure: Departure, now: Nanos) -> bool {
    if let Departure::Retransmission(number)
    | Departure::Forced(number)
    | Departure::Probe(Some(number)) = departure
        && sender.rules.sack
        && sender.board.first() == Some(number)
    {
        // Deviation: RFC 6675 leaves the timer alone; as in Linux, the retransmission of the first hole has the whole RTO.
        sender.rto_timer.set(sender.next_timeout(now));
    }
    let starts = !sender.rto_timer.is_set();
    if starts {
        sender.rto_timer.set(now + sender.rtt.rto());
    }
    starts
}

/// RFC 6298 §5.3. RFC 6582 §3.2 step 3: the timer restarts at the first partial ACK only, unless the scenario asks for
/// the slow-but-steady variant.
#[inline]
pub(super) fn restart_timer(sender: &mut Sender, ack: &Ack) {
    if !ack.advances {
        return;
    }
    let steady = sender.params.reset_timer_on_each_partial_ack;
    let restarts = match &mut sender.phase {
        Phase::Recovery(FastRecovery {
            window: RecoveryWindow::Inflated { partial_seen, .. },
            ..
        }) => !std::mem::replace(partial_seen, true) || steady,
        _ => true,
    };
    if restarts {
        sender.rto_timer.set(ack.now + sender.rtt.rto());
    }
}

/// What the algorithms ask of the sender.
impl Sender {
    /// Recovery begins: counts it and reduces the window, unless a congestion mark has done so.
    pub(super) fn reduce_on_entry(&mut self, now: Nanos, delivered: u32) -> Option<Entry> {
        let first = self.board.first()?;
        self.counters.recoveries += 1;
        self.recover = self.snd_nxt;
        // RFC 8985 §7.1: a loss that the probe may have hidden does not reduce the window once more.
        self.rack.probe = None;
        let cwnd_before = self.controller.window().cwnd;
        let rampdown = self.controller.recovery_terms().rampdown;
        let outstanding = self.board.outstanding();
        let flight = outstanding - self.limited_transmitted.min(outstanding);
        let reduced = !self.marks.covers(self.snd_una);
        if reduced {
            self.reduce_for_loss(f64::from(flight), now);
            self.fail_quick_start();
            self.marks.note_reduction();
        }
        Some(Entry {
            first,
            cwnd_before,
            rampdown,
            flight,
            delivered,
            reduced,
            recovery_point: self.snd_nxt,
        })
    }

    /// The window decrease on a loss with `flight` segments in the network.
    pub(super) fn reduce_for_loss(&mut self, flight: f64, now: Nanos) {
        self.controller.on_congestion(&SignalEvidence {
            now,
            flight,
            lost_total: self.board.lost_total(),
            signal: Signal::Loss,
        });
    }

    /// Deviation: RFC 5681 §3.1 halves FlightSize. Where SACK or duplicate ACKs let segments leave for others that had
    /// arrived, it is more than cwnd, and ssthresh could rise above the window that was too much.
    pub(super) fn flight_at_timeout(&self) -> f64 {
        f64::from(self.board.outstanding()).min(self.controller.window().cwnd)
    }

    /// The window decrease on a timeout with `flight` segments in the network; `first`: ssthresh falls too.
    pub(super) fn reduce_for_timeout(&mut self, flight: f64, first: bool, now: Nanos) {
        self.notify_losses();
        self.controller.on_timeout(&SignalEvidence {
            now,
            flight,
            lost_total: self.board.lost_total(),
            signal: if first {
                Signal::Timeout
            } else {
                Signal::RepeatedTimeout
            },
        });
        self.fail_quick_start();
        self.marks.note_reduction();
        self.marks.stop_sinking();
    }

    /// What is outstanding is sent again from the first segment on.
    pub(super) fn begin_loss_phase(&mut self) {
        self.timeouts_in_a_row += 1;
        self.forced = None;
        self.rack.stop_timers();
        self.rack.probe = None;
        self.recover = self.snd_nxt;
        self.phase = Phase::after_timeout(self.snd_nxt);
    }

    /// Increases the window by the ACK. A controller that models the path sees every ACK in `follow_model`.
    #[inline]
    pub(super) fn increase_window(&mut self, ack: &Ack) {
        if !self.capabilities.models_path {
            let evidence = self.evidence(ack);
            self.controller.on_ack(&evidence);
        }
        self.window_use.note_increase(ack.now);
    }
}
