//! Output of the crate: one row type per table, and their enumerations.
//!
//! `toolkit/schema` defines the columns. The order of the values of each enumeration is the same as there.

use std::net::IpAddr;

use crate::evidence::Evidence;

/// Defines an enumeration of the schema with the names of its values.
macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Names of all values, in the order of the schema.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// Index of this value in [`Self::NAMES`].
            pub const fn index(self) -> i8 {
                self as i8
            }

            /// Name of this value.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}

enumeration! {
    /// Direction of a segment.
    Direction {
        /// From the end that opened the connection.
        A2b = "a2b",
        /// From the other end.
        B2a = "b2a",
    }
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::A2b => Self::B2a,
            Self::B2a => Self::A2b,
        }
    }
}

enumeration! {
    /// Congestion control phase of a sender.
    Phase {
        /// Unknown.
        Unknown = "unknown",
        /// Handshake.
        Handshake = "handshake",
        /// Slow start (RFC 5681 §3.1).
        SlowStart = "slow_start",
        /// Congestion avoidance (RFC 5681 §3.1).
        CongestionAvoidance = "congestion_avoidance",
        /// Fast recovery (RFC 5681 §3.2, RFC 6675 §5).
        Recovery = "recovery",
        /// After a retransmission timeout, until the recovery point is acknowledged.
        Loss = "loss",
        /// Limited by the application, its own pace or the receive window, which may hide the congestion window.
        Limited = "limited",
    }
}

impl Phase {
    /// Whether the sender repairs losses.
    #[must_use]
    pub(crate) const fn repairs(self) -> bool {
        matches!(self, Self::Recovery | Self::Loss)
    }
}

enumeration! {
    /// Kind of an event.
    EventKind {
        /// A transmission was lost.
        Loss = "loss",
        /// A segment carries octets that were sent before.
        Retransmission = "retransmission",
        /// The retransmission timer expired.
        Rto = "rto",
        /// An episode of fast recovery.
        Recovery = "recovery",
        /// The sender's phase changed.
        PhaseChange = "phase_change",
        /// A segment arrived out of order.
        Reordering = "reordering",
        /// The link was down.
        Outage = "outage",
        /// The path changed.
        Handover = "handover",
        /// One end reset the connection.
        Reset = "reset",
        /// The capture does not show whether a transmission arrived.
        Undecided = "undecided",
    }
}

enumeration! {
    /// Cause of an event.
    EventCause {
        /// Unknown.
        Unknown = "unknown",
        /// Loss by the channel.
        Channel = "channel",
        /// Drop at a full queue.
        Queue = "queue",
        /// Fast retransmit or fast recovery.
        Fast = "fast",
        /// Expiry of the retransmission timer, or recovery from it.
        Rto = "rto",
        /// Spurious retransmission: an earlier transmission arrived.
        Spurious = "spurious",
        /// Tail loss probe, zero-window probe or keep-alive.
        Probe = "probe",
        /// Loss in an outage.
        Outage = "outage",
        /// Early drop by active queue management.
        Aqm = "aqm",
    }
}

enumeration! {
    /// What made a sender retransmit a segment.
    Mechanism {
        /// Unknown.
        Unknown = "unknown",
        /// Fast retransmit and fast recovery without SACK (RFC 5681 §3.2, RFC 6582).
        Fast = "fast",
        /// Loss recovery based on SACK (RFC 6675) or RACK (RFC 8985 §6).
        Sack = "sack",
        /// The retransmission timer expired (RFC 6298 §5).
        Rto = "rto",
        /// Recovery from a timeout, clocked by ACKs.
        AfterRto = "after_rto",
        /// Tail loss probe (RFC 8985 §7).
        Tlp = "tlp",
        /// Keep-alive (RFC 9293 §3.8.4).
        KeepAlive = "keep_alive",
        /// Zero-window probe (RFC 9293 §3.8.6.1).
        WindowProbe = "window_probe",
    }
}

enumeration! {
    /// Capture point, relative to the direction of the data.
    #[derive(Default)]
    Vantage {
        /// Unknown.
        #[default]
        Unknown = "unknown",
        /// At the sender of the data.
        Sender = "sender",
        /// Between the ends.
        Middle = "middle",
        /// At the receiver of the data.
        Receiver = "receiver",
    }
}

impl Vantage {
    /// The capture point relative to the opposite direction.
    #[must_use]
    pub(crate) const fn reverse(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
            other => other,
        }
    }
}

enumeration! {
    /// Source of a row of `instruments`.
    Source {
        /// Inferred from a capture or from the segments of a replay.
        Inferred = "inferred",
        /// A WEB100 log.
        Web100 = "web100",
        /// A TCP_INFO log.
        TcpInfo = "tcp_info",
        /// A tcp_probe log.
        TcpProbe = "tcp_probe",
        /// The sender of a replay.
        Replay = "replay",
    }
}

/// Unwrapped SACK blocks of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Edges {
    len: u8,
    edges: [i64; 8],
}

impl Edges {
    /// Adds a block. Ignores a fifth, for which a TCP header has no space.
    pub(crate) fn push(&mut self, left: i64, right: i64) {
        let at = usize::from(self.len);
        if let Some([first, second]) = self.edges.get_mut(at..at + 2) {
            *first = left;
            *second = right;
            self.len += 2;
        }
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Left and right edges, block by block, as in the column `sack`.
    pub fn as_slice(&self) -> &[i64] {
        &self.edges[..usize::from(self.len)]
    }

    /// The blocks as pairs.
    pub fn blocks(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.as_slice()
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
    }
}

/// Annotations of a segment: the columns of `segments` that depend on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Connection.
    pub flow_id: u32,
    /// Direction.
    pub direction: Direction,
    /// Sequence number, unwrapped and relative (SYN = 0, first octet of data = 1).
    ///
    /// If the SYN was not captured, 1 is the first sequence number seen: of the first segment of this direction, or
    /// acknowledged before by the other end.
    pub seq: i64,
    /// Acknowledgement number, unwrapped and relative; `None` without ACK.
    pub ack: Option<i64>,
    /// Advertised window, scaled; `None` if the scale is unknown.
    pub wnd_bytes: Option<i64>,
    /// SACK blocks, unwrapped like `ack`.
    pub sack: Edges,
    /// The capture stores the record before a second time. Of a copy, only the number of segments counts.
    pub copy: bool,
    /// Segments that the record stands for: more than one before or after offload of segmentation, see
    /// [`DirectionRow::segments`].
    pub segments_n: u16,
    /// The segment repeats sequence space of this direction, SYN and FIN included.
    pub retransmission: bool,
    /// Duplicate acknowledgement: RFC 5681 §2, or RFC 6675 §2 if SACK is in use.
    pub dup_ack: bool,
    /// Round-trip time from the capture point to the receiver that this acknowledgement measures.
    pub rtt_ns: Option<i64>,
    /// FlightSize after this segment, of its direction if it occupies sequence space, else of the direction that it
    /// acknowledges; `None` if the capture shows none of what that direction sent.
    pub flight_bytes: Option<i64>,
}

impl Note {
    /// The note of a segment at `seq` that stands for `segments_n`, with this window, and nothing else so far.
    #[inline]
    pub(crate) fn new(
        flow_id: u32,
        direction: Direction,
        (seq, segments_n): (i64, u16),
        wnd_bytes: Option<i64>,
    ) -> Self {
        Self {
            flow_id,
            direction,
            seq,
            ack: None,
            wnd_bytes,
            sack: Edges::default(),
            copy: false,
            segments_n,
            retransmission: false,
            dup_ack: false,
            rtt_ns: None,
            flight_bytes: None,
        }
    }
}

/// Per-direction columns of `flows`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DirectionRow {
    /// Segments. A record with more payload than the MSS (offload of segmentation) counts as the segments that it is
    /// cut into; all numbers of segments count so.
    pub segments: u64,
    /// Segments with payload.
    pub data_segments: u64,
    /// Payload, including retransmissions.
    pub payload_bytes: u64,
    /// Payload, without retransmissions.
    pub unique_bytes: u64,
    /// Octets of payload that were acknowledged.
    pub acked_bytes: u64,
    /// Data segments that repeat at least one octet.
    pub retransmitted_segments: u64,
    /// Octets of payload that were retransmitted.
    pub retransmitted_bytes: u64,
    /// Data segments that fill a gap and show no sign of a retransmission.
    pub out_of_order_segments: u64,
    /// Duplicate acknowledgements sent in this direction.
    pub dup_acks: u64,
    /// Segments with SACK blocks.
    pub sack_segments: u64,
    /// Segments with a DSACK block (RFC 2883 §4).
    pub dsack_segments: u64,
    /// MSS option of the SYN.
    pub mss_bytes: Option<u16>,
    /// Window scale option of the SYN.
    pub wscale: Option<u8>,
    /// Largest payload of a record.
    pub max_segment_bytes: u32,
    /// RTT samples of the data of this direction.
    pub rtt_samples: u64,
    /// Minimum RTT.
    pub rtt_min_ns: Option<i64>,
    /// Mean RTT.
    pub rtt_mean_ns: Option<i64>,
    /// Maximum RTT.
    pub rtt_max_ns: Option<i64>,
    /// Maximum FlightSize; `None` if the capture has no ACK of this direction, or none of what was acknowledged.
    pub flight_max_bytes: Option<i64>,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Episodes of fast recovery.
    pub recoveries: u64,
    /// Segments with a wrong checksum, which no receiver accepts. They are analysed as if they had been lost.
    pub corrupted_segments: u64,
    /// Sequence space that was acknowledged and that the capture does not show although it shows octets before it;
    /// `None` if it shows no segment with payload of this direction.
    pub not_captured_bytes: Option<u64>,
}

/// One row of `flows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// Connection.
    pub flow_id: u32,
    /// Address of the end that opened the connection (without a SYN, that sent the first segment captured).
    pub a_addr: IpAddr,
    /// Port of that end.
    pub a_port: u16,
    /// Address of the other end.
    pub b_addr: IpAddr,
    /// Port of the other end.
    pub b_port: u16,
    /// Time of the first segment.
    pub start_ns: i64,
    /// Time of the last segment.
    pub end_ns: i64,
    /// A SYN was captured.
    pub syn: bool,
    /// A SYN/ACK was captured.
    pub syn_ack: bool,
    /// Number of directions that sent FIN.
    pub fin: u8,
    /// A RST was captured.
    pub rst: bool,
    /// Direction with more payload captured; if equal, with more acknowledged (a2b if that is equal, too).
    pub data_direction: Direction,
    /// Capture point, relative to `data_direction`.
    pub vantage: Vantage,
    /// Time from the SYN to the ACK of the SYN/ACK.
    pub handshake_rtt_ns: Option<i64>,
    /// Counters per direction, indexed by [`Direction`].
    pub directions: [DirectionRow; 2],
}

/// One row of `events`. Rows come in the order in which they were decided, not in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Event {
    /// Connection.
    pub flow_id: u32,
    /// Time. Of a loss, the time when the lost segment was sent.
    pub t_ns: i64,
    /// End of an event with a duration.
    pub end_ns: Option<i64>,
    /// Direction of the data.
    pub direction: Direction,
    /// Kind.
    pub kind: EventKind,
    /// Cause.
    pub cause: EventCause,
    /// Record of the segment. Of a loss, the lost transmission; `None` if it was not captured.
    pub record: Option<u64>,
    /// First octet.
    pub seq_start: Option<i64>,
    /// One past the last octet.
    pub seq_end: Option<i64>,
    /// Number of the transmission among those of the same octets, from 1; `None` if the event is not about one.
    pub copy: Option<u32>,
    /// What made the sender retransmit; `None` unless the event is a retransmission.
    pub mechanism: Option<Mechanism>,
    /// An earlier transmission arrived; `None` if unknown, or if the event is not a retransmission.
    pub spurious: Option<bool>,
    /// Evidence for kind and cause.
    pub evidence: Option<Evidence>,
}

impl Event {
    /// An event without an end, a segment or evidence.
    pub fn new(
        flow_id: u32,
        t_ns: i64,
        direction: Direction,
        kind: EventKind,
        cause: EventCause,
    ) -> Self {
        Self {
            flow_id,
            t_ns,
            end_ns: None,
            direction,
            kind,
            cause,
            record: None,
            seq_start: None,
            seq_end: None,
            copy: None,
            mechanism: None,
            spurious: None,
            evidence: None,
        }
    }
}

/// One row of `instruments`, source `inferred`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sample {
    /// Connection.
    pub flow_id: u32,
    /// Time.
    pub t_ns: i64,
    /// Source of the values.
    pub source: Source,
    /// Phase.
    pub phase: Phase,
    /// Congestion window; `None` where it cannot be observed.
    pub cwnd_bytes: Option<i64>,
    /// Limits between which the congestion window lies with 95 % probability; `None` without an estimate.
    pub cwnd_low_bytes: Option<i64>,
    /// The upper limit.
    pub cwnd_high_bytes: Option<i64>,
    /// Slow start threshold; `None` before the first window decrease.
    pub ssthresh_bytes: Option<i64>,
    /// Octets outstanding less SACKed octets.
    pub flight_bytes: i64,
    /// Mean of the pipe from this row to the next: flight less lost octets plus octets retransmitted (RFC 6675 §4).
    pub pipe_bytes: Option<i64>,
    /// Sender maximum segment size.
    pub smss_bytes: i64,
    /// SRTT (RFC 6298 §2).
    pub srtt_ns: Option<i64>,
    /// RTTVAR (RFC 6298 §2).
    pub rttvar_ns: Option<i64>,
    /// RTO (RFC 6298 §2), without backoff.
    pub rto_ns: Option<i64>,
    /// Minimum RTT so far.
    pub min_rtt_ns: Option<i64>,
    /// Oldest unacknowledged octet.
    pub snd_una: i64,
    /// Next octet to send.
    pub snd_nxt: i64,
    /// Window advertised by the receiver.
    pub snd_wnd_bytes: Option<i64>,
    /// Data segments sent so far, including retransmissions.
    pub segments_out: i64,
    /// Segments retransmitted so far.
    pub retransmissions: i64,
    /// Retransmission timeouts so far.
    pub rtos: i64,
    /// Episodes of fast recovery so far.
    pub recoveries: i64,
    /// Duplicate acknowledgements received so far.
    pub dup_acks_in: i64,
    /// The application limits the sender.
    pub app_limited: Option<bool>,
}
