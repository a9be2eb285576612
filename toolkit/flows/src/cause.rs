//! The cause of a retransmission: the rules of RFC 8985 §6 and §7, RFC 6298 §5 and RFC 6675 §5, applied to the state of
//! the sender at the time of the retransmission.

use crate::evidence::Reason;
use crate::rows::{EventCause, Mechanism};

/// Maximum time from an ACK to a transmission that it triggers, at a capture point at the sender.
pub const ACK_CLOCK_NS: i64 = 250_000;

/// The reordering window as a fraction of the minimum RTT (RFC 8985 §6.2).
pub const REO_WND_DIVISOR: i64 = 4;

/// DupThresh (RFC 5681 §3.2).
pub const DUP_THRESH: u32 = 3;

/// The recovery state of a sender (Linux: `tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum CaState {
    /// No recovery.
    #[default]
    Open,
    /// Fast recovery (RFC 6675 §5).
    Recovery {
        /// Time of the first retransmission.
        start_ns: i64,
        /// Record of the first retransmission.
        record: u64,
        /// First octet of the first retransmission.
        seq_start: i64,
        /// SND.NXT at the start: the episode ends when it is acknowledged.
        recovery_point: i64,
        /// Segments retransmitted so far.
        retransmissions: u32,
    },
    /// Recovery from a timeout.
    Loss {
        /// SND.NXT when the timer expired.
        recovery_point: i64,
        /// Number of ACKs that may still show the timeout to be spurious (RFC 5682 §3.1).
        f_rto_acks: u8,
        /// Record of the segment that the timer sent.
        record: u64,
        /// First octet of that segment.
        seq_start: i64,
        /// End of what was retransmitted since (RFC 6675 §2: HighRxt).
        high_rxt: i64,
    },
}

/// The number of ACKs after a timeout that F-RTO examines (RFC 5682 §3.1, steps 2 and 3).
pub const F_RTO_ACKS: u8 = 2;

/// The state of the sender when it retransmits a segment.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent observations, not states"
)]
pub struct RetransmissionContext {
    /// Recovery state.
    pub ca_state: CaState,
    /// Recovery point of a spurious timeout, until it is acknowledged.
    pub spurious_rto_point: Option<i64>,
    /// The segment contains SND.UNA.
    pub head: bool,
    /// The segment ends at SND.NXT.
    pub tail: bool,
    /// The segment had been retransmitted before.
    pub retransmitted_before: bool,
    /// The segment below is outstanding and was never retransmitted.
    pub skips: bool,
    /// The payload is at most one octet.
    pub tiny: bool,
    /// All octets had been acknowledged.
    pub acknowledged: bool,
    /// The receive window is zero.
    pub zero_window: bool,
    /// Consecutive duplicate ACKs.
    pub dup_acks: u32,
    /// SACKed octets, if some are above the segment.
    pub sacked_bytes: i64,
    /// Record of the last sent segment that was delivered, if it was sent after the last transmission of this one.
    pub later_delivered: Option<u64>,
    /// It was retransmitted since the timeout from which the sender recovers, or so shortly before that the sender did
    /// not repeat it with the others, and a segment sent later was delivered.
    pub lost_after_timeout: bool,
    /// SACK is in use.
    pub sack: bool,
    /// Time since the retransmission timer was restarted.
    pub since_timer_restart_ns: i64,
    /// Time since the last transmission of the same octets.
    pub since_last_transmission_ns: i64,
    /// Time since a segment sent after the oldest outstanding one was delivered.
    pub since_loss_evidence_ns: Option<i64>,
    /// The reordering timer may be running, as one of its segments was delivered.
    pub waits_for_reordering: bool,
    /// Time since the sender sent a segment.
    pub since_send_ns: i64,
    /// Time for which that one waited without an ACK, as where the pacer holds it back; 0 if it did not.
    pub paced_ns: i64,
    /// Time since the sender received an ACK; the largest one where that is not known.
    pub since_ack_ns: i64,
    /// SRTT.
    pub srtt_ns: i64,
    /// Estimate of the RTO.
    pub rto_ns: i64,
    /// Minimum RTO.
    pub min_rto_ns: i64,
}

/// The mechanism of a retransmission, from its cause, the evidence for it, and whether SACK is in use.
pub fn mechanism(cause: EventCause, reason: Reason, sack: bool) -> Mechanism {
    match (reason, cause) {
        (Reason::TimerExpired { .. }, _) => Mechanism::Rto,
        (Reason::AfterTimeout { .. }, _) => Mechanism::AfterRto,
        (Reason::TailLossProbe { .. }, _) => Mechanism::Tlp,
        (Reason::KeepAlive, _) => Mechanism::KeepAlive,
        (Reason::ZeroWindow, _) => Mechanism::WindowProbe,
        (_, EventCause::Fast) if sack => Mechanism::Sack,
        (_, EventCause::Fast) => Mechanism::Fast,
        _ => Mechanism::Unknown,
    }
}

impl RetransmissionContext {
    /// The cause, and the evidence for it.
    pub fn cause(&self) -> (EventCause, Reason) {
        if self.acknowledged && self.tiny {
            return (EventCause::Probe, Reason::KeepAlive);
        }
        // A whole segment at a closed window is repeated by the retransmission timer (RFC 9293 §3.8.6.1).
        if self.zero_window && self.tiny {
            return (EventCause::Probe, Reason::ZeroWindow);
        }
        if self.timer_expired() {
            return self.timer_cause();
        }
        // A retransmission that is lost again starts fast recovery, also after a timeout (RFC 8985 §6.2; Linux:
        // `FLAG_LOST_RETRANS`).
        if let CaState::Loss { recovery_point, .. } = self.ca_state
            && !(self.sack && self.lost_after_timeout)
        {
            return (EventCause::Rto, Reason::AfterTimeout { recovery_point });
        }
        if let Some(reason) = self.fast_retransmit_evidence() {
            return (EventCause::Fast, reason);
        }
        if let CaState::Recovery { recovery_point, .. } = self.ca_state {
            return (EventCause::Fast, Reason::InRecovery { recovery_point });
        }
        if self.tail
            && self.sack
            && self.since_send_ns >= self.srtt_ns
            && !self.retransmitted_before
        {
            return self.tail_loss_probe();
        }
        if let Some(recovery_point) = self.spurious_rto_point {
            // RFC 8985 §7.2: the probe comes no later than the retransmission timer of the oldest segment expires.
            if self.tail && self.sack && self.skips && !self.retransmitted_before {
                return self.tail_loss_probe();
            }
            // A sender without F-RTO goes back to SND.UNA even after a spurious timeout, as ACKs arrive.
            return (EventCause::Rto, Reason::AfterTimeout { recovery_point });
        }
        if self.sacked_bytes > 0 || self.dup_acks > 0 {
            let count = self.dup_acks;
            return (EventCause::Fast, Reason::DupAcks { count });
        }
        (EventCause::Unknown, Reason::None)
    }

    /// The cause, given that a timer expired: a tail loss probe or the retransmission timeout.
    fn timer_cause(&self) -> (EventCause, Reason) {
        let open = self.ca_state == CaState::Open && self.fast_retransmit_evidence().is_none();
        if self.tail && self.sack && open && !self.retransmitted_before {
            // RFC 8985 §7.3: with one segment outstanding, the probe is sent no later than the timeout.
            return self.tail_loss_probe();
        }
        let reason = Reason::TimerExpired {
            waited_ns: self
                .since_timer_restart_ns
                .max(self.since_last_transmission_ns.min(self.since_send_ns)),
            rto_ns: self.rto_ns,
        };
        (EventCause::Rto, reason)
    }

    fn tail_loss_probe(&self) -> (EventCause, Reason) {
        let waited_ns = self.since_send_ns;
        (EventCause::Probe, Reason::TailLossProbe { waited_ns })
    }

    /// Whether a timer, and not an ACK, triggered the retransmission.
    fn timer_expired(&self) -> bool {
        if !self.head {
            return false;
        }
        let ack_clocked = self.ack_clocked();
        match self.since_loss_evidence_ns {
            Some(_) if ack_clocked || self.waits_for_reordering || self.paced() => false,
            // Fast retransmit follows the evidence at once or after the reordering window (RFC 8985 §6.2). If the RTO
            // has passed since the evidence, a full window held the retransmission until the timer expired. Had it
            // passed before, the timer would have expired before. It was started at one of two times.
            // Deviation: the reordering window is a quarter of SRTT, not of the minimum RTT, because pacing delays a
            // retransmission by more on a path with a queue.
            Some(since_ns) if since_ns <= self.srtt_ns / REO_WND_DIVISOR => {
                let expired_since = |waited_ns: i64| {
                    (0..=since_ns).contains(&waited_ns.saturating_sub(self.rto_ns))
                };
                self.sack && self.at_sender() && self.timers_ns().into_iter().any(expired_since)
            }
            // Without SACK there is no timer for reordering: after a silence, only a timeout can be the trigger.
            Some(_) if !self.sack && self.since_send_ns >= self.silence_ns() => {
                self.timer_ns() >= self.silence_ns()
            }
            Some(_) => self.timer_due(),
            // Fast retransmit would have come with the duplicate ACK that reached the threshold.
            None if ack_clocked && self.dup_acks > DUP_THRESH => self.timer_due(),
            None if ack_clocked && self.dup_acks == DUP_THRESH => false,
            // Without any evidence of a loss, only a timer can be the trigger, perhaps of a stack with another minimum
            // RTO. At the tail, it can be that of a probe.
            None if !ack_clocked && !self.tail && self.dup_acks == 0 && self.sacked_bytes == 0 => {
                self.timer_ns() >= self.silence_ns()
            }
            None => self.timer_ns() >= self.min_rto_ns / 20 * 19,
        }
    }

    /// Whether the capture shows when the sender received an ACK.
    fn at_sender(&self) -> bool {
        self.since_ack_ns < i64::MAX
    }

    /// Whether the pacer may have held the segment back, as the one before it.
    ///
    /// Deviation: no standard says how slowly a sender paces. Half the rate is taken, as a loss halves the window. The
    /// timer waits for longer than a round trip.
    fn paced(&self) -> bool {
        let twice_ns = self.paced_ns.saturating_mul(2);
        let held_ns = twice_ns.saturating_add(ACK_CLOCK_NS).min(self.srtt_ns);
        self.at_sender() && self.paced_ns > 0 && self.since_send_ns <= held_ns
    }

    fn ack_clocked(&self) -> bool {
        self.since_ack_ns <= ACK_CLOCK_NS
    }

    /// Longer than the ACK clock and pacing let a sender with data wait.
    fn silence_ns(&self) -> i64 {
        self.srtt_ns.max(self.rto_ns / 2)
    }

    fn timer_due(&self) -> bool {
        self.timer_ns() >= self.rto_ns / 20 * 19
    }

    /// The longer one of [`Self::timers_ns`].
    fn timer_ns(&self) -> i64 {
        let [since_restart_ns, since_sent_ns] = self.timers_ns();
        since_restart_ns.max(since_sent_ns)
    }

    /// Time since the retransmission timer was restarted, and since the oldest segment was sent if the timer may have
    /// been started then, else 0.
    ///
    /// Deviation: RFC 6298 §5.3 restarts the timer at each ACK of new data. Linux counts from the transmission of the
    /// oldest segment if the timer for a tail loss probe or for reordering was pending; both need SACK. In recovery,
    /// the first retransmission has started the retransmission timer instead, and ACKs trigger further ones, whatever
    /// the time since the segments were sent.
    fn timers_ns(&self) -> [i64; 2] {
        let may_be_clocked = self.ack_clocked() || !self.at_sender();
        let undone = self.spurious_rto_point.is_some() && may_be_clocked;
        let in_recovery = self.ca_state != CaState::Open || undone;
        let since_sent_ns = if in_recovery || !self.sack {
            0
        } else {
            self.since_last_transmission_ns
        };
        [self.since_timer_restart_ns, since_sent_ns]
    }

    fn fast_retransmit_evidence(&self) -> Option<Reason> {
        match self.later_delivered {
            Some(record) if self.sacked_bytes > 0 => Some(Reason::LaterDelivered {
                record,
                sacked_bytes: self.sacked_bytes,
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
