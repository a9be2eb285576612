//! What triggered a retransmission, judged at the moment it is sent. Looks only; changes nothing.
//! Read RFC 8985 §6-7, RFC 6298 §5 and RFC 6675 §5 first.

use crate::evidence::Reason;
use crate::rows::EventCause;

/// A retransmission that answers an acknowledgement follows it within this time.
const ACK_CLOCK_NS: i64 = 3_000_000;

/// RFC 5681 §3.2.
pub const DUP_THRESH: u32 = 3;

/// Where the sender is between loss and repair.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Episode {
    /// Nothing to repair.
    #[default]
    Open,
    /// Fast recovery (RFC 6675 §5).
    Recovery {
        /// First retransmission of the episode.
        start_ns: i64,
        /// Its record.
        record: u64,
        /// Its first octet.
        seq_start: i64,
        /// `snd_nxt` when it began: the episode ends once this is acknowledged.
        recovery_point: i64,
        /// Segments retransmitted so far.
        retransmissions: u32,
    },
    /// After a timeout.
    Loss {
        /// `snd_nxt` when the timer fired.
        recovery_point: i64,
    },
}

/// What the sender knew when it retransmitted.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent observations, not states"
)]
pub struct Situation {
    /// Between loss and repair.
    pub episode: Episode,
    /// The segment begins at the first octet that is neither acknowledged nor SACKed.
    pub head: bool,
    /// The segment ends at `snd_nxt`.
    pub tail: bool,
    /// Payload of at most one octet.
    pub tiny: bool,
    /// All its octets were acknowledged.
    pub acknowledged: bool,
    /// The receiver's window is closed.
    pub zero_window: bool,
    /// Duplicate ACKs in a row.
    pub dup_acks: u32,
    /// Octets SACKed above the segment.
    pub sacked_above: i64,
    /// The newest delivered record, if sent later than the newest transmission of this range.
    pub later_delivered: Option<u64>,
    /// SACK is in use.
    pub sack: bool,
    /// Time since the retransmission timer was last restarted.
    pub timer_ns: i64,
    /// Time since the last segment was sent.
    pub silence_ns: i64,
    /// Time since the last acknowledgement came.
    pub since_ack_ns: i64,
    /// Smoothed round-trip time.
    pub srtt_ns: i64,
    /// Timeout by our estimate.
    pub rto_ns: i64,
}

impl Situation {
    /// The trigger, and why we think so.
    pub fn cause(&self) -> (EventCause, Reason) {
        if self.acknowledged && self.tiny {
            return (EventCause::Probe, Reason::KeepAlive);
        }
        if self.zero_window {
            return (EventCause::Probe, Reason::ZeroWindow);
        }
        let timed_out = self.head && self.timer_ns >= self.rto_ns / 10 * 9;
        let answers_ack = self.since_ack_ns <= ACK_CLOCK_NS;
        if timed_out && !(answers_ack && self.fast_evidence().is_some()) {
            if self.tail
                && self.sack
                && matches!(self.episode, Episode::Open)
                && self.fast_evidence().is_none()
            {
                // RFC 8985 §7.3: with one segment outstanding the probe comes no later than the timeout.
                return (
                    EventCause::Probe,
                    Reason::TailLossProbe {
                        waited_ns: self.silence_ns,
                    },
                );
            }
            return (
                EventCause::Rto,
                Reason::TimerExpired {
                    waited_ns: self.timer_ns,
                    rto_ns: self.rto_ns,
                },
            );
        }
        if let Episode::Loss { recovery_point } = self.episode {
            return (EventCause::Rto, Reason::AfterTimeout { recovery_point });
        }
        if let Some(reason) = self.fast_evidence() {
            return (EventCause::Fast, reason);
        }
        if let Episode::Recovery { recovery_point, .. } = self.episode {
            return (EventCause::Fast, Reason::InRecovery { recovery_point });
        }
        if self.tail && self.silence_ns >= self.srtt_ns {
            return (
                EventCause::Probe,
                Reason::TailLossProbe {
                    waited_ns: self.silence_ns,
                },
            );
        }
        if self.sacked_above > 0 || self.dup_acks > 0 {
            return (
                EventCause::Fast,
                Reason::DupAcks {
                    count: self.dup_acks,
                },
            );
        }
        (EventCause::Unknown, Reason::None)
    }

    fn fast_evidence(&self) -> Option<Reason> {
        match self.later_delivered {
            Some(record) if self.sacked_above > 0 => Some(Reason::LaterDelivered {
                record,
                sacked_above: self.sacked_above,
            }),
            _ if self.dup_acks >= DUP_THRESH => Some(Reason::DupAcks {
                count: self.dup_acks,
            }),
            Some(record) => Some(Reason::LaterDelivered {
                record,
                sacked_above: 0,
            }),
            None => None,
        }
    }
}
