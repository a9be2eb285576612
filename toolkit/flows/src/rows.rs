//! What the crate hands out: plain rows and closed enumerations, one struct per table.
//!
//! Knows no Arrow, no files and no connection state. `toolkit/schema` says what each column means; the order of
//! every enumeration here is the order of its values there.

use std::net::IpAddr;

use crate::evidence::Evidence;

/// A closed enumeration of the schema: its names in order, and the index of a value among them.
macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Names of the values, in the order of the schema.
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
    /// Who sent a segment.
    Direction {
        /// From the end that opened the connection.
        A2b = "a2b",
        /// From the other end.
        B2a = "b2a",
    }
}

impl Direction {
    /// The other direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::A2b => Self::B2a,
            Self::B2a => Self::A2b,
        }
    }
}

enumeration! {
    /// What the sender is doing (RFC 5681 phases).
    Phase {
        /// Not known.
        Unknown = "unknown",
        /// Opening.
        Handshake = "handshake",
        /// RFC 5681 §3.1.
        SlowStart = "slow_start",
        /// RFC 5681 §3.1.
        CongestionAvoidance = "congestion_avoidance",
        /// Fast recovery (RFC 5681 §3.2, RFC 6675 §5).
        Recovery = "recovery",
        /// After a retransmission timeout, until all that was outstanding then is acknowledged.
        Loss = "loss",
        /// Held by the application or the receiver's window: the congestion window does not show.
        Limited = "limited",
    }
}

enumeration! {
    /// What happened.
    EventKind {
        /// A transmission was lost.
        Loss = "loss",
        /// A segment carries octets sent before.
        Retransmission = "retransmission",
        /// A retransmission timeout fired.
        Rto = "rto",
        /// An episode of fast recovery.
        Recovery = "recovery",
        /// The sender's phase changed.
        PhaseChange = "phase_change",
        /// Segments overtook one another.
        Reordering = "reordering",
        /// Nothing passed.
        Outage = "outage",
        /// The path changed.
        Handover = "handover",
        /// One end reset the connection.
        Reset = "reset",
    }
}

enumeration! {
    /// Why it happened, as far as the evidence goes.
    EventCause {
        /// Not known.
        Unknown = "unknown",
        /// The channel.
        Channel = "channel",
        /// A full queue.
        Queue = "queue",
        /// Fast retransmission: duplicate or selective acknowledgements.
        Fast = "fast",
        /// A retransmission timeout, or the repair that follows it.
        Rto = "rto",
        /// It was not needed: what it repeats had arrived.
        Spurious = "spurious",
        /// A probe: tail loss, zero window or keep-alive.
        Probe = "probe",
        /// An outage.
        Outage = "outage",
        /// A queue's management, before the queue was full.
        Aqm = "aqm",
    }
}

enumeration! {
    /// Where the capture stands, seen along the direction of the data.
    #[derive(Default)]
    Vantage {
        /// Not known.
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

enumeration! {
    /// Where an instruments row comes from.
    Source {
        /// Reconstructed from a capture or from a replay's segments.
        Inferred = "inferred",
        /// A WEB100 log.
        Web100 = "web100",
        /// A TCP_INFO log.
        TcpInfo = "tcp_info",
        /// A tcp_probe log.
        TcpProbe = "tcp_probe",
        /// The replay's own sender.
        Replay = "replay",
    }
}

/// Unwrapped SACK blocks of one segment, held inline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edges {
    len: u8,
    edges: [i64; 8],
}

impl Edges {
    /// Adds a block; a fifth is left out, as a TCP header cannot carry it.
    pub(crate) fn push(&mut self, left: i64, right: i64) {
        let at = usize::from(self.len);
        if let Some([first, second]) = self.edges.get_mut(at..at + 2) {
            *first = left;
            *second = right;
            self.len += 2;
        }
    }

    /// Left and right edges, block after block, as the column `sack` has them.
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

/// What the tracker adds to one segment: the annotated columns of `segments`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Connection.
    pub flow_id: u32,
    /// Who sent it.
    pub direction: Direction,
    /// Sequence number, unwrapped, relative to the direction's first (SYN = 0, first octet of data = 1).
    ///
    /// Without a SYN, 1 is the first sequence number known of this direction: its first segment's, or the first
    /// acknowledgement of it where that was captured earlier.
    pub seq: i64,
    /// Acknowledgement number, unwrapped, relative to the other direction's first; none without ACK.
    pub ack: Option<i64>,
    /// Advertised window, scaled; none where the scale is not known.
    pub wnd_bytes: Option<i64>,
    /// SACK blocks, unwrapped like `ack`.
    pub sack: Edges,
    /// Carries sequence space that this direction had sent before (SYN and FIN count as octets here).
    pub retransmission: bool,
    /// Duplicate acknowledgement: RFC 5681 §2; where SACK is in use RFC 6675 §2.
    pub dup_ack: bool,
    /// Round-trip time that this acknowledgement measures, seen from the capture point.
    pub rtt_ns: Option<i64>,
    /// Flight after this segment: of its own direction if it occupies sequence space, else of the direction it
    /// acknowledges.
    pub flight_bytes: i64,
}

/// Per-direction columns of `flows`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionRow {
    /// Segments.
    pub segments: u64,
    /// Segments with payload.
    pub data_segments: u64,
    /// Payload, retransmitted octets counted each time.
    pub payload_bytes: u64,
    /// Payload, each octet counted once.
    pub unique_bytes: u64,
    /// Octets of payload that the other end acknowledged.
    pub acked_bytes: u64,
    /// Data segments with at least one octet sent before.
    pub retransmitted_segments: u64,
    /// Octets of payload sent again.
    pub retransmitted_bytes: u64,
    /// Data segments that fill a gap and are not proven retransmissions.
    pub out_of_order_segments: u64,
    /// Duplicate acknowledgements sent in this direction.
    pub dup_acks: u64,
    /// Segments that carry SACK blocks.
    pub sack_segments: u64,
    /// Segments whose first SACK block reports a duplicate (RFC 2883 §4).
    pub dsack_segments: u64,
    /// MSS option of the SYN.
    pub mss_bytes: Option<u16>,
    /// Window scale option of the SYN.
    pub wscale: Option<u8>,
    /// Largest payload of a segment.
    pub max_segment_bytes: u32,
    /// Round-trip times measured for this direction's data.
    pub rtt_samples: u64,
    /// Least of them.
    pub rtt_min_ns: Option<i64>,
    /// Their mean.
    pub rtt_mean_ns: Option<i64>,
    /// Greatest of them.
    pub rtt_max_ns: Option<i64>,
    /// Greatest flight.
    pub flight_max_bytes: i64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Episodes of fast recovery.
    pub recoveries: u64,
}

/// One row of `flows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// Connection.
    pub flow_id: u32,
    /// Address of the end that opened the connection (or sent the first segment captured).
    pub a_addr: IpAddr,
    /// Its port.
    pub a_port: u16,
    /// Address of the other end.
    pub b_addr: IpAddr,
    /// Its port.
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
    /// A reset was captured.
    pub rst: bool,
    /// Direction with more payload (a2b when equal).
    pub data_direction: Direction,
    /// Where the capture stands along `data_direction`.
    pub vantage: Vantage,
    /// SYN to the ACK of the SYN/ACK.
    pub handshake_rtt_ns: Option<i64>,
    /// What was counted from a to b and from b to a, by [`Direction::index`].
    pub directions: [DirectionRow; 2],
}

/// One row of `events`. Rows come in the order in which they became certain, not by time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Connection.
    pub flow_id: u32,
    /// When it happened; for a loss the time at which the lost transmission was sent.
    pub t_ns: i64,
    /// End, for what lasts.
    pub end_ns: Option<i64>,
    /// Direction of the data concerned.
    pub direction: Direction,
    /// What happened.
    pub kind: EventKind,
    /// Why.
    pub cause: EventCause,
    /// The segment it is tied to; for a loss the transmission that was lost (none if it was never captured).
    pub record: Option<u64>,
    /// First octet concerned.
    pub seq_start: Option<i64>,
    /// One past the last octet concerned.
    pub seq_end: Option<i64>,
    /// Why we think so; prints as text.
    pub evidence: Option<Evidence>,
}

/// One row of `instruments`, source `inferred`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Connection.
    pub flow_id: u32,
    /// Time.
    pub t_ns: i64,
    /// Where the values come from.
    pub source: Source,
    /// What the sender is doing.
    pub phase: Phase,
    /// Congestion window; none where it does not show (phase `limited`).
    pub cwnd_bytes: Option<i64>,
    /// Slow start threshold; none before the first reduction.
    pub ssthresh_bytes: Option<i64>,
    /// Octets outstanding less those that SACK reported.
    pub flight_bytes: i64,
    /// Sender maximum segment size (payload).
    pub smss_bytes: i64,
    /// RFC 6298 §2.
    pub srtt_ns: Option<i64>,
    /// RFC 6298 §2.
    pub rttvar_ns: Option<i64>,
    /// RFC 6298 §2, with the minimum of §2.4.
    pub rto_ns: Option<i64>,
    /// Least round-trip time so far.
    pub min_rtt_ns: Option<i64>,
    /// Oldest unacknowledged octet.
    pub snd_una: i64,
    /// Next octet to send.
    pub snd_nxt: i64,
    /// Window that the receiver advertised.
    pub snd_wnd_bytes: Option<i64>,
    /// Data segments sent so far, retransmissions included.
    pub segments_out: i64,
    /// Segments retransmitted so far.
    pub retransmissions: i64,
    /// Retransmission timeouts so far.
    pub rtos: i64,
    /// Episodes of fast recovery so far.
    pub recoveries: i64,
    /// Duplicate acknowledgements received so far.
    pub dup_acks_in: i64,
    /// The application, not the window, holds the sender back.
    pub app_limited: Option<bool>,
}
