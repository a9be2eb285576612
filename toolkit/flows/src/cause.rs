//! What triggered a retransmission, judged at the moment it is sent. Looks only; changes nothing.
//! Read RFC 8985 §6-7, RFC 6298 §5 and RFC 6675 §5 first.

use crate::evidence::Reason;
use crate::rows::EventCause;

/// A retransmission that answers an acknowledgement follows it within this time, seen at the sender.
const ACK_CLOCK_NS: i64 = 250_000;

/// Evidence younger than the smoothed round-trip time over this may still wait for the reordering window.
const FRESH_DIVISOR: i64 = 4;

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
    /// Recovery point of a timeout that an echo has disproved since, while it is not acknowledged.
    pub disproved_timeout: Option<i64>,
    /// The segment begins at the first octet that is neither acknowledged nor SACKed.
    pub head: bool,
    /// The segment ends at `snd_nxt`.
    pub tail: bool,
    /// It was sent again before.
    pub repeated_before: bool,
    /// Payload of at most one octet.
    pub tiny: bool,
    /// All its octets were acknowledged.
    pub acknowledged: bool,
    /// The receiver's window is closed.
    pub zero_window: bool,
    /// Duplicate ACKs in a row.
    pub dup_acks: u32,
    /// Octets that SACK has reported, if some of them lie above the segment.
    pub sacked: i64,
    /// The newest delivered record, if sent later than the newest transmission of this range.
    pub later_delivered: Option<u64>,
    /// SACK is in use.
    pub sack: bool,
    /// Time since the retransmission timer was last restarted.
    pub timer_ns: i64,
    /// Time since the newest transmission of what the segment repeats.
    pub since_sent_ns: i64,
    /// Time since something sent later than the oldest outstanding segment was known to have arrived.
    pub evidence_ns: Option<i64>,
    /// Time since the last segment was sent.
    pub silence_ns: i64,
    /// Time since the last acknowledgement came.
    pub since_ack_ns: i64,
    /// Smoothed round-trip time.
    pub srtt_ns: i64,
    /// Timeout by our estimate.
    pub rto_ns: i64,
    /// Least timeout that a stack may have at present.
    pub least_rto_ns: i64,
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
        if self.timed_out() {
            let open = self.episode == Episode::Open && self.fast_evidence().is_none();
            if self.tail && self.sack && open && !self.repeated_before {
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
                    waited_ns: self.timer_ns.max(self.since_sent_ns.min(self.silence_ns)),
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
        if self.tail && self.silence_ns >= self.srtt_ns && !self.repeated_before {
            return (
                EventCause::Probe,
                Reason::TailLossProbe {
                    waited_ns: self.silence_ns,
                },
            );
        }
        if let Some(recovery_point) = self.disproved_timeout {
            // A sender without F-RTO and undo goes back all the same, as late acknowledgements come.
            return (EventCause::Rto, Reason::AfterTimeout { recovery_point });
        }
        if self.sacked > 0 || self.dup_acks > 0 {
            return (
                EventCause::Fast,
                Reason::DupAcks {
                    count: self.dup_acks,
                },
            );
        }
        (EventCause::Unknown, Reason::None)
    }

    /// Whether the timer, and no acknowledgement, has triggered this.
    fn timed_out(&self) -> bool {
        if !self.head {
            return false;
        }
        let answers = self.since_ack_ns <= ACK_CLOCK_NS;
        match self.evidence_ns {
            Some(_) if answers => false,
            // Fast retransmission answers evidence at once, or after the reordering window (RFC 8985 §6.2).
            Some(age) if age <= self.srtt_ns / FRESH_DIVISOR => false,
            Some(_) => self.timer_ns.max(self.since_head_sent()) >= self.rto_ns / 20 * 19,
            None if answers && self.dup_acks >= DUP_THRESH => false,
            // Without evidence nothing but a timer can be the reason; the tail may be a probe.
            None if !answers && !self.tail && self.timer_ns >= self.srtt_ns => true,
            None => self.timer_ns.max(self.since_head_sent()) >= self.least_rto_ns / 20 * 19,
        }
    }

    /// Time since the oldest segment was sent, where the timer may count from there.
    ///
    /// Deviation: RFC 6298 §5.3 restarts the timer at each acknowledgement of new data; Linux counts from the sending
    /// of the oldest segment where a probe or reordering timer was pending. After a timeout, old segments are sent
    /// again as acknowledgements come, however long ago they were sent.
    fn since_head_sent(&self) -> i64 {
        if matches!(self.episode, Episode::Loss { .. }) || self.disproved_timeout.is_some() {
            0
        } else {
            self.since_sent_ns
        }
    }

    fn fast_evidence(&self) -> Option<Reason> {
        match self.later_delivered {
            Some(record) if self.sacked > 0 => Some(Reason::LaterDelivered {
                record,
                sacked_bytes: self.sacked,
            }),
            _ if self.dup_acks >= DUP_THRESH => Some(Reason::DupAcks {
                count: self.dup_acks,
            }),
            Some(record) => Some(Reason::LaterDelivered {
                record,
                sacked_bytes: 0,
            }),
            None => None,
        }
    }
}
