//! Open-loop replay: the sender repeats the transmissions, timeouts and loss detection timers of a recorded sender,
//! regardless of its window. Its scoreboard and its controller then get exactly the input of the recorded sender.
//!
//! Does not depend on the source of the record (`sim/open_loop.rs`).

use super::Sender;
use super::connection::ConnectionState;
use crate::sim::time::Nanos;
use crate::tcp::recovery::Departure;
use crate::tcp::segment::Segment;

/// Octets that the application has always ready: the record says what left, not what was written.
const READY_BYTES: u64 = 1 << 30;

/// The scoreboard in segments, as TCP_INFO counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardCounts {
    /// Sent and not acknowledged cumulatively.
    pub outstanding: u32,
    /// Of these, reported by SACK.
    pub sacked: u32,
    /// Of these, marked lost.
    pub lost: u32,
    /// Retransmissions in the network.
    pub retransmitted: u32,
}

impl Sender {
    /// Opens the connection and sends its SYN.
    pub(crate) fn record_syn(&mut self, now: Nanos) {
        self.open(now, 0);
        self.write_to(READY_BYTES, false);
        self.poll_transmit(now);
    }

    /// A data segment left; false if it lies beyond what had been sent.
    pub(crate) fn record_departure(&mut self, seq: u64, len: u16, now: Nanos) -> bool {
        self.pass_time(now);
        let probe = std::mem::take(&mut self.rack.probe_due);
        let new = seq == self.snd_nxt;
        if new {
            self.write_to(seq + u64::from(len) + READY_BYTES, false);
            if self.board.outstanding() == 0 {
                self.restart_if_idle(now);
            }
            let departure = if probe {
                Departure::Probe(None)
            } else {
                Departure::New
            };
            let burst = self.burst_now();
            self.send_new(false, departure, (len, burst), now);
        } else if seq < self.snd_nxt {
            self.repeat(seq, probe, now);
        } else {
            return false;
        }
        if probe {
            self.note_probe(!new);
        }
        // Linux (`tcp_cwnd_validate`): only what leaves as new data, or an ACK, asks whether the window stops the sender.
        if new {
            self.note_recorded_stop(true, now);
        }
        true
    }

    /// Fires the reordering timer if it is armed: the recorded sender repeats a segment that is not lost yet, so that the
    /// times of the record are a little off.
    fn fire_reordering_timer(&mut self) {
        let at = self.rack.reordering_timer.deadline();
        if self.rack.reordering_timer.is_set() && self.rack.reordering_timer.fires(at) {
            self.rules.algorithm.on_reordering_timer(self, at);
        }
    }

    /// Sends again the segment that holds octet `seq`.
    fn repeat(&mut self, seq: u64, probe: bool, now: Nanos) {
        let (Some(first), Some(last)) = (self.board.first(), self.board.last()) else {
            return;
        };
        let holds = |number: &u64| {
            let (begin, len) = self.board.span(*number);
            begin + u64::from(len) > seq
        };
        if let Some(number) = (first..=last).find(holds) {
            if !probe && !self.board.is_lost(number) {
                self.fire_reordering_timer();
            }
            let departure = if probe {
                Departure::Probe(Some(number))
            } else if self.in_loss_recovery() {
                Departure::Retransmission(number)
            } else {
                Departure::Forced(number)
            };
            self.retransmit(departure, number, now);
        }
    }

    /// The application wrote when all that it had written before was sent: up to then it limited the rate.
    pub(crate) fn record_write(&mut self, now: Nanos) {
        self.pass_time(now);
        self.note_write_after_all();
    }

    /// The retransmission timer fired.
    pub(crate) fn record_timeout(&mut self, now: Nanos) {
        self.pass_time(now);
        self.on_retransmission_timeout(now);
    }

    /// An acknowledgement came: it is taken as ever, and the handshake's answer leaves.
    pub(crate) fn record_ack(&mut self, segment: &Segment, now: Nanos) {
        self.pass_time(now);
        // A probe that was due and did not leave: an ACK came first.
        self.rack.probe_due = false;
        self.receive(segment, now);
        self.set_timers(now);
        if self.state == ConnectionState::AckDue {
            self.poll_transmit(now);
        }
        self.note_recorded_stop(false, now);
    }

    /// Runs the timers of RACK and of the tail loss probe up to `now`; timeouts are in the record.
    fn pass_time(&mut self, now: Nanos) {
        self.fast_path_until = None;
        loop {
            let timers = (&self.rack.reordering_timer, &self.rack.probe_timer);
            let at = timers.0.armed().min(timers.1.armed());
            if at > now {
                return;
            }
            if self.rack.probe_timer.fires(at) && self.board.outstanding() > 0 {
                self.rules.algorithm.on_probe_timer(self, at);
            }
            if self.rack.reordering_timer.fires(at) {
                self.rules.algorithm.on_reordering_timer(self, at);
            }
        }
    }

    /// Whether the window is what stops the sender here; `sent`: new data has just left.
    fn note_recorded_stop(&mut self, sent: bool, now: Nanos) {
        let limited = self.is_window_full() || self.awaits_room(now);
        if limited || sent {
            self.note_usage(limited, now);
        }
    }

    /// Window and threshold, in segments.
    pub(crate) fn recorded_window(&self) -> (f64, f64) {
        (self.effective_window(), self.controller.window().ssthresh)
    }

    /// The scoreboard.
    pub(crate) fn board_counts(&self) -> BoardCounts {
        BoardCounts {
            outstanding: self.board.outstanding(),
            sacked: self.board.sacked(),
            lost: self.board.lost(),
            retransmitted: self.board.retransmitted(),
        }
    }
}
