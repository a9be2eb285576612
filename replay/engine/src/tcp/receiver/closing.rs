//! The end of a connection at its receiving half: the FIN that arrives, the FIN that answers it, resets.
//!
//! The application sends no data and closes as soon as it has received all (CLOSE-WAIT has no duration): every
//! acknowledgement from then on carries the FIN, which is repeated until it is acknowledged (LAST-ACK).
//!
//! Does not depend on congestion control or the window. Read RFC 9293 §3.6 and §3.10.7.4, and RFC 5961 §3.2 first.

use super::{Owed, Receiver};
use crate::sim::time::Nanos;
use crate::tcp::segment::{Purpose, Segment, flags};

/// State.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// Offset after the last octet of data, known once a FIN has arrived.
    pub fin_at: u64,
    stage: Stage,
    /// Its own FIN waits: a proxy passes on the one of the connection onward.
    holds_fin: bool,
}

impl Default for Ending {
    fn default() -> Self {
        Self {
            fin_at: u64::MAX,
            stage: Stage::Open,
            holds_fin: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// The FIN with this number has left.
    LastAck {
        seq: u64,
    },
    Closed,
    Reset,
}

impl Ending {
    pub fn is_known(&self) -> bool {
        self.fin_at != u64::MAX
    }

    pub fn awaits_answer(&self) -> bool {
        matches!(self.stage, Stage::LastAck { .. })
    }

    pub fn was_reset(&self) -> bool {
        self.stage == Stage::Reset
    }
}

impl Receiver {
    /// Whether its own FIN has been acknowledged, or the connection reset.
    #[inline]
    pub fn has_ended(&self) -> bool {
        matches!(self.ending.stage, Stage::Closed | Stage::Reset)
    }

    /// Whether the connection is closed by FIN when its data have come to their end.
    pub fn closes(&self) -> bool {
        self.params.close
    }

    /// Whether the other end's FIN has come, and all before it.
    #[inline]
    pub fn has_fin(&self) -> bool {
        self.rcv_nxt > self.ending.fin_at
    }

    /// A SYN, FIN or RST. Returns whether that is all that it is.
    pub(super) fn take_control(&mut self, segment: &Segment) -> bool {
        if segment.has(flags::SYN) {
            // RFC 3168 §6.1.1.
            self.ecn = self.params.ecn && segment.has(flags::ECE | flags::CWR);
            if self.syn_acks_out == 0 {
                // RFC 7323 §4.3. Linux (`tcp_check_req`): what answers a SYN that comes again echoes the first.
                self.ts_recent = segment.ts_val;
            }
            self.owed = Owed::SynAck;
            return true;
        }
        if segment.has(flags::FIN) {
            self.ending.fin_at = segment.end();
            return false;
        }
        // RFC 5961 §3.2: only the very next number resets; any other in the window is asked about.
        if segment.seq == self.rcv_nxt {
            self.end_by_reset(Owed::Nothing);
        } else if segment.seq > self.rcv_nxt && segment.seq <= self.edge {
            self.owed = Owed::Acknowledgement;
        }
        true
    }

    /// An empty segment: the one that acknowledges its FIN ends the connection.
    pub(super) fn note_answer(&mut self, segment: &Segment) {
        if let Stage::LastAck { seq } = self.ending.stage
            && segment.ack > seq
        {
            self.ending.stage = Stage::Closed;
            self.reopen.stop();
        }
    }

    /// An acknowledgement of the other end's FIN carries its own.
    pub(super) fn add_fin(&mut self, segment: &mut Segment, now: Nanos) {
        match self.ending.stage {
            Stage::Open if self.ending.holds_fin => {}
            Stage::Open | Stage::LastAck { .. } => {
                segment.flags |= flags::FIN;
                self.ending.stage = Stage::LastAck { seq: segment.seq };
                self.time_control(now);
            }
            Stage::Closed | Stage::Reset => {}
        }
    }

    /// What it passes data on to is gone: so is the connection.
    pub fn abort(&mut self) {
        if !self.has_ended() {
            self.end_by_reset(Owed::Reset);
        }
    }

    /// Its own FIN waits until `release_fin` (RFC 9293 §3.6: the connection is half closed).
    pub fn hold_fin(&mut self) {
        self.ending.holds_fin = true;
    }

    /// Its own FIN may leave.
    pub fn release_fin(&mut self) {
        if std::mem::take(&mut self.ending.holds_fin) && self.has_fin() {
            self.owed = Owed::Acknowledgement;
        }
    }

    /// It no longer knows the connection.
    pub fn forget(&mut self) {
        self.end_by_reset(Owed::Nothing);
    }

    fn end_by_reset(&mut self, owed: Owed) {
        self.ending.stage = Stage::Reset;
        self.owed = owed;
        self.reopen.stop();
        self.skips_steps = false;
    }

    /// RFC 9293 §3.10.7.1: what comes for a connection that is gone is answered with a reset, and nothing of it is kept.
    #[cold]
    pub(super) fn answer_after_reset(&mut self, segment: &Segment) {
        if !segment.has(flags::RST) {
            self.owed = Owed::Reset;
        }
    }

    /// A segment came that belongs to no connection (RFC 9293 §3.5.2).
    pub fn owe_reset(&mut self) {
        self.owed = Owed::Reset;
    }

    /// RFC 9293 §3.10.5.
    pub(super) fn write_reset(&mut self, now: Nanos, slot: &mut Segment) {
        self.owed = Owed::Nothing;
        self.write_bare(now, slot);
        slot.flags = flags::RST;
        slot.purpose = Purpose::Control;
    }

    /// A request of its application leaves, up to `end`.
    pub fn note_request(&mut self, end: u64) {
        self.own_nxt = self.own_nxt.max(end);
    }

    /// Whether the connection was reset.
    pub fn was_reset(&self) -> bool {
        self.ending.was_reset()
    }

    /// Sets the timer of what opens or ends the connection (RFC 6298 §2.1, §5.5).
    pub(super) fn time_control(&mut self, now: Nanos) {
        self.reopen.set(now + self.control_rto);
        self.control_rto = (2 * self.control_rto).min(self.params.max_rto_ns);
    }
}
