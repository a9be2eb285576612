//! The evidence for an event, which prints as a sentence.

use std::fmt;

use crate::rows::Phase;

/// How an episode of fast recovery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum End {
    /// The recovery point was acknowledged.
    Acknowledged,
    /// The retransmission was spurious, and the sender can undo its reaction (RFC 4015 §3.2).
    Undone,
    /// A timeout or the end of the capture interrupted it.
    BrokenOff,
}

/// One piece of evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Reason {
    /// No evidence.
    #[default]
    None,
    /// Trigger: duplicate ACKs (RFC 5681 §3.2).
    DupAcks {
        /// Number of duplicate ACKs.
        count: u32,
    },
    /// Trigger: a segment sent later was delivered (RFC 8985 §6.2).
    LaterDelivered {
        /// Record of that segment.
        record: u64,
        /// SACKed octets, if some are above the retransmission.
        sacked_bytes: i64,
    },
    /// Trigger: an episode of fast recovery continues (RFC 6582 §3.2, RFC 6675 §5).
    InRecovery {
        /// Recovery point of the episode.
        recovery_point: i64,
    },
    /// Trigger: the retransmission timer expired (RFC 6298 §5).
    TimerExpired {
        /// Time since the timer was restarted.
        waited_ns: i64,
        /// Estimate of the RTO.
        rto_ns: i64,
    },
    /// Trigger: recovery from a timeout continues.
    AfterTimeout {
        /// Recovery point of the timeout.
        recovery_point: i64,
    },
    /// Trigger: loss recovery, and not a timeout, which leaves a window of one segment (RFC 5681 §3.1).
    WindowOpen {
        /// Record of the second segment, before any ACK.
        record: u64,
    },
    /// Trigger: tail loss probe (RFC 8985 §7).
    TailLossProbe {
        /// Time since the last transmission.
        waited_ns: i64,
    },
    /// Trigger: zero-window probe (RFC 9293 §3.8.6.1).
    ZeroWindow,
    /// Trigger: keep-alive (RFC 9293 §3.8.4).
    KeepAlive,
    /// Spurious: the receiver reported a duplicate (RFC 2883).
    Dsack {
        /// Record of the ACK with the DSACK block.
        record: u64,
    },
    /// Spurious: the receiver reported the octets again, in a separate SACK block.
    ReportedAgain {
        /// Record of the ACK with the block.
        record: u64,
    },
    /// Spurious: it would have overtaken a segment sent before.
    Overtaking {
        /// Record of that segment.
        record: u64,
    },
    /// Spurious: the ACK echoes an earlier transmission (RFC 3522).
    EarlierEchoed {
        /// Timestamp echoed.
        ts_ecr: u32,
        /// Timestamp of the retransmission.
        ts_val: u32,
    },
    /// Spurious: the ACK came too early to be caused by the retransmission.
    TooEarly {
        /// Time from the retransmission to the ACK.
        after_ns: i64,
        /// Minimum RTT of the flow.
        min_rtt_ns: i64,
    },
    /// Spurious: without SACK, the cumulative ACK jumped over the octets when the hole below them was filled.
    JumpedOver {
        /// Record of the segment that filled the hole.
        record: u64,
    },
    /// Spurious: the octets had been acknowledged.
    AlreadyAcknowledged,
    /// Spurious: the earlier transmission was captured at the receiver.
    CapturedAtReceiver,
    /// Loss: a later transmission was the one that arrived.
    RetransmittedAs {
        /// Record of that transmission.
        record: u64,
        /// Time from that transmission to its ACK.
        after_ns: i64,
    },
    /// Loss before the capture point: a retransmission filled a gap.
    LostBeforeCapture {
        /// Record of the segment above the gap.
        revealed_by: u64,
        /// Record of the segment that filled the gap.
        filled_by: u64,
    },
    /// Loss before the capture point: a gap that is open at the end of the capture.
    GapOpen {
        /// Record of the segment above the gap.
        revealed_by: u64,
    },
    /// Undecided: the octets of such a gap were sent in segments of unknown length, some of them more than once.
    UnknownSegments {
        /// Record of the segment above the gap.
        revealed_by: u64,
    },
    /// Loss: a retransmission that was sent later arrived before.
    Passed {
        /// Record of that retransmission.
        record: u64,
    },
    /// Undecided: without SACK, no ACK reports a duplicate, or which transmission of the octets arrived first.
    NoSack,
    /// Undecided: the ACK of a transmission was lost, and nothing shows of which.
    MissingAck {
        /// Record of the next ACK.
        record: u64,
    },
    /// Undecided: the receiver may have discarded it, as others sent before it (RFC 7323 §5, PAWS).
    MaybeDiscarded {
        /// Record of the ACK that answered one of them.
        record: u64,
    },
    /// Undecided: the octets had arrived before, and no ACK reports it as a duplicate.
    NoReport,
    /// Undecided: the capture ends first.
    CaptureEnds,
    /// Proof that a retransmission was needed although the original transmission had arrived: the receiver discarded
    /// that one, whose timestamp was too old (RFC 7323 §5, PAWS).
    Discarded {
        /// Record of the ACK that answered it.
        record: u64,
    },
    /// Loss: IPv4 IDs show that a packet is missing before the segment, and nothing else is.
    MissingId,
    /// Loss: the retransmission came more than a round trip late.
    RepairedLate {
        /// Time from the segment above the hole to the retransmission.
        after_ns: i64,
        /// RTT.
        rtt_ns: i64,
    },
    /// Loss: the only DSACK reports a later transmission.
    LaterReported {
        /// Record of the ACK with the DSACK block.
        record: u64,
    },
    /// Loss: no DSACK reports it, although the octets had arrived before.
    NoDsack {
        /// Record of the last sent transmission that is known to have arrived.
        newest: u64,
    },
    /// Loss: never acknowledged, although a segment sent later was.
    NeverAcknowledged {
        /// Record of the last sent segment that was delivered.
        delivered: u64,
    },
    /// Reordering: a retransmission of the octets, which was sent later, arrived before.
    Overtaken {
        /// Record of the retransmission.
        record: u64,
    },
    /// Reordering: the segment fills a gap and shows no sign of a retransmission.
    Reordered {
        /// Record of the segment above the gap.
        revealed_by: u64,
    },
    /// Recovery: the end of the episode.
    Ended {
        /// Recovery point of the episode.
        recovery_point: i64,
        /// Segments retransmitted in the episode.
        retransmissions: u32,
        /// How it ended.
        end: End,
    },
    /// Change of the sender's phase.
    Phase {
        /// Previous phase.
        from: Phase,
        /// New phase.
        to: Phase,
    },
}

/// The evidence for an event: its reason and, for a spurious retransmission, what proves it spurious.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Evidence {
    /// Reason of the event.
    pub reason: Reason,
    /// What proves a retransmission spurious.
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

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reason, self.proof) {
            (reason, Reason::None) => write!(f, "{reason}"),
            (Reason::None, proof) => write!(f, "{proof}"),
            (reason, proof) => write!(f, "{reason}; but {proof}"),
        }
    }
}

/// A time that prints as milliseconds with three decimals.
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
            Self::DupAcks { count } => write!(f, "{count} duplicate ACKs"),
            Self::LaterDelivered {
                record,
                sacked_bytes,
            } => write!(
                f,
                "record {record} was sent later and delivered; {sacked_bytes} octets SACKed"
            ),
            Self::InRecovery { recovery_point } => {
                write!(f, "in fast recovery, recovery point {recovery_point}")
            }
            Self::TimerExpired { waited_ns, rto_ns } => write!(
                f,
                "no new data acknowledged for {}, RTO about {}",
                Ms(waited_ns),
                Ms(rto_ns)
            ),
            Self::AfterTimeout { recovery_point } => {
                write!(f, "after a timeout, recovery point {recovery_point}")
            }
            Self::WindowOpen { record } => write!(
                f,
                "loss recovery: record {record} followed before any ACK, so the window was larger than after a timeout"
            ),
            Self::TailLossProbe { waited_ns } => write!(
                f,
                "tail loss probe {} after the last transmission",
                Ms(waited_ns)
            ),
            Self::ZeroWindow => write!(f, "the receive window was zero"),
            Self::KeepAlive => write!(f, "at most one octet, already acknowledged (keep-alive)"),
            _ => self.fmt_proof(f),
        }
    }
}

impl Reason {
    /// Formats what proves a retransmission spurious.
    fn fmt_proof(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Dsack { record } => write!(f, "record {record} reports a duplicate (DSACK)"),
            Self::ReportedAgain { record } => write!(
                f,
                "record {record} reports its octets again, in another SACK block (a duplicate)"
            ),
            Self::Overtaking { record } => write!(
                f,
                "it would have overtaken record {record}, which was sent before it and arrived later"
            ),
            Self::EarlierEchoed { ts_ecr, ts_val } => write!(
                f,
                "its ACK echoes timestamp {ts_ecr}, which is older than its own, {ts_val}"
            ),
            Self::TooEarly {
                after_ns,
                min_rtt_ns,
            } => write!(
                f,
                "acknowledged {} later, minimum RTT {}",
                Ms(after_ns),
                Ms(min_rtt_ns)
            ),
            Self::Discarded { record } => write!(
                f,
                "the original transmission arrived late; the receiver discarded it for its old timestamp (PAWS), as \
                 record {record} shows, which reports nothing new"
            ),
            Self::JumpedOver { record } => write!(
                f,
                "the cumulative ACK jumped over it when record {record} filled the hole below"
            ),
            Self::AlreadyAcknowledged => write!(f, "its octets had been acknowledged"),
            Self::CapturedAtReceiver => {
                write!(f, "an earlier transmission was captured at the receiver")
            }
            _ => self.fmt_outcome(f),
        }
    }

    /// Formats why the fate of a transmission is not known.
    fn fmt_undecided(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UnknownSegments { revealed_by } => write!(
                f,
                "record {revealed_by} shows that these octets were sent, in segments of unknown length"
            ),
            Self::NoSack => write!(f, "without SACK, no ACK shows whether it arrived"),
            Self::MissingAck { record } => write!(
                f,
                "an ACK was lost before record {record}, and nothing shows what it acknowledged"
            ),
            Self::MaybeDiscarded { record } => write!(
                f,
                "it may have arrived late: record {record} reports nothing new, as if the receiver discarded segments for \
                 their old timestamps (PAWS)"
            ),
            Self::NoReport => write!(
                f,
                "its octets had arrived, and no ACK reports it as a duplicate: it was lost or still on its way, or the \
                 receiver reports none, or the ACK was lost"
            ),
            Self::CaptureEnds => write!(f, "the capture ends before an ACK shows its fate"),
            _ => Ok(()),
        }
    }

    /// Formats what shows a loss.
    fn fmt_loss(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RetransmittedAs { record, after_ns } => write!(
                f,
                "retransmitted as record {record}, acknowledged {} later",
                Ms(after_ns)
            ),
            Self::LostBeforeCapture {
                revealed_by,
                filled_by,
            } => write!(
                f,
                "lost before the capture point: gap below record {revealed_by}, filled by record {filled_by}"
            ),
            Self::GapOpen { revealed_by } => write!(
                f,
                "lost before the capture point: gap below record {revealed_by}, open at the end of the capture"
            ),
            Self::Passed { record } => write!(
                f,
                "lost before the capture point: record {record}, sent later, arrived before"
            ),
            Self::MissingId => write!(f, "lost before the capture point: its IPv4 ID is missing"),
            Self::RepairedLate { after_ns, rtt_ns } => write!(
                f,
                "lost before the capture point: the hole was filled {} after it was seen, RTT {}",
                Ms(after_ns),
                Ms(rtt_ns)
            ),
            Self::LaterReported { record } => write!(
                f,
                "record {record} reports a later retransmission as the only duplicate (DSACK)"
            ),
            Self::NoDsack { newest } => write!(
                f,
                "its octets had arrived, no ACK is missing, and none reports it as a duplicate (DSACK), although record \
                 {newest} was sent later and delivered"
            ),
            Self::NeverAcknowledged { delivered } => write!(
                f,
                "never acknowledged; record {delivered} was sent later and delivered"
            ),
            _ => self.fmt_undecided(f),
        }
    }

    /// Formats what shows reordering, the end of a recovery, or a change of phase.
    fn fmt_outcome(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Overtaken { record } => write!(
                f,
                "record {record}, a retransmission of its octets, was sent later and arrived before"
            ),
            Self::Reordered { revealed_by } => write!(
                f,
                "fills the gap below record {revealed_by}; no sign that it was sent later"
            ),
            Self::Ended {
                recovery_point,
                retransmissions,
                end,
            } => {
                let how = match end {
                    End::Acknowledged => "acknowledged",
                    End::Undone => "undone, the original transmission had arrived",
                    End::BrokenOff => "not reached",
                };
                write!(
                    f,
                    "recovery point {recovery_point} {how}; {retransmissions} segments retransmitted"
                )
            }
            Self::Phase { from, to } => write!(f, "{} to {}", from.name(), to.name()),
            _ => self.fmt_loss(f),
        }
    }
}
