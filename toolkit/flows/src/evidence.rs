//! Why a verdict was given, as numbers that print as a sentence. Decides nothing itself.

use std::fmt;

/// How an episode of recovery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its recovery point was acknowledged.
    Acknowledged,
    /// It proved needless (RFC 4015 §3.2).
    Undone,
    /// By a timeout or the end of the capture.
    BrokenOff,
}

/// One reason.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reason {
    /// Nothing is known.
    #[default]
    None,
    /// RFC 5681 §3.2.
    DupAcks {
        /// How many in a row.
        count: u32,
    },
    /// RFC 8985 §6.2: a segment sent later has arrived.
    LaterDelivered {
        /// Its record.
        record: u64,
        /// Octets that SACK has reported, if some lie above the retransmission.
        sacked_bytes: i64,
    },
    /// RFC 6582 §3.2, RFC 6675 §5: within an episode of fast recovery.
    InRecovery {
        /// Position at which the episode ends.
        recovery_point: i64,
    },
    /// RFC 6298 §5: no acknowledgement moved for a timeout.
    TimerExpired {
        /// Time since the timer was last restarted.
        waited_ns: i64,
        /// Timeout by our estimate.
        rto_ns: i64,
    },
    /// Sent after a timeout, before all that was outstanding then was acknowledged.
    AfterTimeout {
        /// What was outstanding ends here.
        recovery_point: i64,
    },
    /// RFC 8985 §7: the last segment again after a silence.
    TailLossProbe {
        /// Time since the last segment was sent.
        waited_ns: i64,
    },
    /// RFC 9293 §3.8.6.1.
    ZeroWindow,
    /// RFC 9293 §3.8.4.
    KeepAlive,
    /// RFC 2883: the receiver reports a second copy.
    Dsack {
        /// The acknowledgement that says so.
        record: u64,
    },
    /// RFC 3522: the acknowledgement echoes an earlier transmission.
    EarlierEchoed {
        /// Timestamp echoed.
        ts_ecr: u32,
        /// Timestamp of the retransmission.
        ts_val: u32,
    },
    /// Acknowledged sooner after the retransmission than the path allows.
    TooEarly {
        /// Time from the retransmission to the acknowledgement.
        after_ns: i64,
        /// Least round-trip time of the flow.
        min_rtt_ns: i64,
    },
    /// The octets were acknowledged already.
    AlreadyAcknowledged,
    /// The earlier transmission was captured at the receiver.
    SeenAtReceiver,
    /// A later transmission was the one that arrived.
    RepairedBy {
        /// Its record.
        record: u64,
        /// Time from its sending to the acknowledgement that covers it.
        after_ns: i64,
    },
    /// Lost before the capture point: a gap that was filled by a segment sent later than those above it.
    NeverCaptured {
        /// The segment above the gap.
        revealed_by: u64,
        /// The segment that filled it.
        filled_by: u64,
    },
    /// Another copy was the only one whose arrival was reported as a duplicate.
    NotReported {
        /// The acknowledgement that reports it.
        record: u64,
    },
    /// Never acknowledged, while segments sent later were, and the capture ends.
    NeverRepaired {
        /// The newest segment sent that did arrive.
        delivered: u64,
    },
    /// Fills a gap; nothing says that it was sent later than the segments above it.
    Overtaken {
        /// The segment above the gap.
        revealed_by: u64,
    },
    /// An episode of recovery ended.
    Ended {
        /// Position at which it was to end.
        recovery_point: i64,
        /// Segments retransmitted in it.
        retransmissions: u32,
        /// How.
        end: End,
    },
    /// The sender's phase changed.
    Phase {
        /// From.
        from: crate::rows::Phase,
        /// To.
        to: crate::rows::Phase,
    },
}

/// What a verdict rests on: the trigger, and where it differs what proves otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Why it happened.
    pub reason: Reason,
    /// What shows that it was not needed.
    pub proof: Reason,
}

impl From<Reason> for Evidence {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            proof: Reason::None,
        }
    }
}

/// Milliseconds with three decimals.
struct Ms(i64);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.0 as f64 / 1e6)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => write!(f, "no evidence"),
            Self::DupAcks { count } => write!(f, "{count} duplicate ACKs before it"),
            Self::LaterDelivered {
                record,
                sacked_bytes,
            } => {
                write!(
                    f,
                    "record {record}, sent later, had arrived; {sacked_bytes} octets SACKed"
                )
            }
            Self::InRecovery { recovery_point } => {
                write!(
                    f,
                    "in fast recovery until octet {recovery_point} is acknowledged"
                )
            }
            Self::TimerExpired { waited_ns, rto_ns } => {
                write!(
                    f,
                    "no ACK moved for {}, timeout about {}",
                    Ms(waited_ns),
                    Ms(rto_ns)
                )
            }
            Self::AfterTimeout { recovery_point } => {
                write!(
                    f,
                    "after a timeout, until octet {recovery_point} is acknowledged"
                )
            }
            Self::TailLossProbe { waited_ns } => {
                write!(
                    f,
                    "last segment sent again after {} of silence",
                    Ms(waited_ns)
                )
            }
            Self::ZeroWindow => write!(f, "the receiver's window was closed"),
            Self::KeepAlive => write!(f, "repeats at most one acknowledged octet"),
            _ => self.verdict(f),
        }
    }
}

impl Reason {
    /// The sentence of a reason that tells what became of a segment.
    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Dsack { record } => write!(f, "record {record} reports a duplicate (DSACK)"),
            Self::EarlierEchoed { ts_ecr, ts_val } => {
                write!(f, "its ACK echoes timestamp {ts_ecr}, sent before {ts_val}")
            }
            Self::TooEarly {
                after_ns,
                min_rtt_ns,
            } => {
                write!(
                    f,
                    "acknowledged {} after it, least RTT {}",
                    Ms(after_ns),
                    Ms(min_rtt_ns)
                )
            }
            Self::AlreadyAcknowledged => write!(f, "its octets were acknowledged before it"),
            Self::SeenAtReceiver => {
                write!(f, "the earlier transmission was captured at the receiver")
            }
            Self::RepairedBy { record, after_ns } => {
                write!(
                    f,
                    "repaired by record {record}, acknowledged {} after that",
                    Ms(after_ns)
                )
            }
            Self::NeverCaptured {
                revealed_by,
                filled_by,
            } => {
                write!(
                    f,
                    "lost before the capture point: gap below record {revealed_by}, filled by record {filled_by}"
                )
            }
            Self::NotReported { record } => {
                write!(
                    f,
                    "record {record} reports a later copy as the only duplicate (DSACK)"
                )
            }
            _ => self.course(f),
        }
    }
}

impl Reason {
    /// The sentence of a reason that tells how something went on or ended.
    fn course(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NeverRepaired { delivered } => {
                write!(
                    f,
                    "not acknowledged by the end; record {delivered}, sent later, had arrived"
                )
            }
            Self::Overtaken { revealed_by } => {
                write!(
                    f,
                    "fills the gap below record {revealed_by}; nothing says that it was sent later"
                )
            }
            Self::Ended {
                recovery_point,
                retransmissions,
                end,
            } => {
                let how = match end {
                    End::Acknowledged => "acknowledged",
                    End::Undone => "undone, the first transmission had arrived",
                    End::BrokenOff => "broken off",
                };
                write!(
                    f,
                    "recovery point {recovery_point} {how}; {retransmissions} segments retransmitted"
                )
            }
            Self::Phase { from, to } => write!(f, "{} to {}", from.name(), to.name()),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reason, self.proof) {
            (reason, Reason::None) => write!(f, "{reason}"),
            (Reason::None, proof) => write!(f, "{proof}"),
            (reason, proof) => write!(f, "{reason}; yet {proof}"),
        }
    }
}
