//! A TCP segment as plain integers.

use std::net::IpAddr;

use crate::checksum::Checksum;

/// TCP control bits (RFC 9293 §3.1, RFC 3168 §6.1; AE: RFC 9768).
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u16 = 1;
    /// Synchronise sequence numbers.
    pub const SYN: u16 = 2;
    /// Reset the connection.
    pub const RST: u16 = 4;
    /// Push.
    pub const PSH: u16 = 8;
    /// The acknowledgement field is significant.
    pub const ACK: u16 = 16;
    /// The urgent field is significant.
    pub const URG: u16 = 32;
    /// ECN echo.
    pub const ECE: u16 = 64;
    /// Congestion window reduced.
    pub const CWR: u16 = 128;
    /// Accurate ECN.
    pub const AE: u16 = 256;
}

/// One captured TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the record in its capture, from 1.
    pub record: u64,
    /// Time since 1970-01-01 UTC.
    pub t_ns: i64,
    /// Frame length on the wire.
    pub frame_bytes: u32,
    /// Octets of the frame that the capture holds.
    pub captured_bytes: u32,
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// IPv4 identification; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Differentiated services field and ECN bits.
    pub dscp_ecn: u8,
    /// IP packet length, headers included.
    pub ip_bytes: u32,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number (0 without ACK).
    pub ack: u32,
    /// Control bits, see [`flags`].
    pub flags: u16,
    /// Window field, not scaled.
    pub window: u16,
    /// Urgent pointer; 0 if the capture ends before it.
    pub urgent: u16,
    /// Payload length according to the IP header.
    pub payload_bytes: u32,
    /// Octets of the payload that the capture does not hold.
    pub missing_bytes: u32,
    /// Checksum of the IPv4 header.
    pub ip_checksum: Checksum,
    /// Checksum of the segment.
    pub tcp_checksum: Checksum,
    /// TCP options.
    pub options: TcpOptions,
}

/// TCP options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323 §2).
    pub wscale: Option<u8>,
    /// SACK permitted (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Timestamp value and echo reply (RFC 7323 §3).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks (RFC 2018 §3).
    pub sack: SackBlocks,
}

/// Up to four SACK blocks (left and right edge), in the order of the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    len: u8,
    edges: [(u32, u32); 4],
}

impl SackBlocks {
    /// Adds a block. Returns false for a fifth block, for which a TCP header has no space.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let Some(slot) = self.edges.get_mut(usize::from(self.len)) else {
            return false;
        };
        *slot = (left, right);
        self.len += 1;
        true
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.edges[..usize::from(self.len)]
    }
}
