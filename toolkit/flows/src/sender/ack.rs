//! The ACK that a sender receives.

use crate::rows::Edges;

/// An ACK that the sender receives.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedAck {
    /// Time.
    pub t_ns: i64,
    /// Record.
    pub record: u64,
    /// SEG.ACK, unwrapped.
    pub seg_ack: i64,
    /// SACK blocks.
    pub sack: Edges,
    /// Timestamp echo reply.
    pub ts_ecr: Option<u32>,
    /// IPv4 identification.
    pub ip_id: Option<u16>,
    /// Window, scaled; `None` if the scale is unknown.
    pub wnd_bytes: Option<i64>,
    /// Window field.
    pub window: u16,
    /// No payload, SYN or FIN.
    pub pure: bool,
    /// SACK is in use on the connection.
    pub sack_in_use: bool,
}

/// Annotations of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckNote {
    /// Duplicate ACK.
    pub dup_ack: bool,
    /// It has a DSACK block.
    pub dsack: bool,
    /// RTT sample.
    pub rtt_ns: Option<i64>,
}

impl ReceivedAck {
    /// The DSACK block: the first block if it is below the cumulative acknowledgement or within the second block (RFC 2883
    /// §4).
    pub fn dsack_block(&self) -> Option<(i64, i64)> {
        let mut blocks = self.sack.blocks();
        let (left, right) = blocks.next()?;
        let contains = |outer: (i64, i64)| outer.0 <= left && right <= outer.1;
        (right <= self.seg_ack || blocks.next().is_some_and(contains)).then_some((left, right))
    }
}
