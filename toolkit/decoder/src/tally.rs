//! Counts of the packets of a capture by kind.

use std::net::IpAddr;

/// Packets other than TCP segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// UDP.
    Udp,
    /// ICMP and ICMPv6.
    Icmp,
    /// ARP and RARP.
    Arp,
    /// Fragments of TCP packets other than the first, which have no TCP header.
    TcpFragment,
    /// Other protocols over IP, including tunnels.
    OtherIp,
    /// Frames without IP.
    NotIp,
    /// Frames with an invalid or truncated header. Each is also an issue.
    Undecoded,
}

impl Other {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Udp,
        Self::Icmp,
        Self::Arp,
        Self::TcpFragment,
        Self::OtherIp,
        Self::NotIp,
        Self::Undecoded,
    ];

    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Arp => "arp",
            Self::TcpFragment => "tcp_fragment",
            Self::OtherIp => "other_ip",
            Self::NotIp => "not_ip",
            Self::Undecoded => "undecoded",
        }
    }
}

/// An IP packet other than a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherPacket {
    /// Number of its record in the capture, from 1.
    pub record: u64,
    /// Time since 1970-01-01 UTC.
    pub t_ns: i64,
    /// Kind.
    pub kind: Other,
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// IP packet length.
    pub ip_bytes: u32,
}

/// A number of packets and their total length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Sum of the frame lengths.
    pub bytes: u64,
}

impl Count {
    #[inline]
    fn add(&mut self, frame_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(frame_bytes);
    }
}

/// Counts of the packets read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All packets within the time window.
    pub packets: u64,
    /// TCP segments.
    pub tcp: Count,
    /// Packets outside the time window. No other count includes them.
    pub outside_window_packets: u64,
    /// Earliest and latest time of a packet.
    pub span_ns: Option<(i64, i64)>,
    others: [Count; Other::ALL.len()],
}

impl Tally {
    /// The count of one kind.
    pub fn of(&self, kind: Other) -> Count {
        self.others[kind as usize]
    }

    #[inline]
    pub(crate) fn packet(&mut self, t_ns: i64) {
        self.packets += 1;
        self.span_ns = Some(match self.span_ns {
            Some((first, last)) => (first.min(t_ns), last.max(t_ns)),
            None => (t_ns, t_ns),
        });
    }

    #[inline]
    pub(crate) fn tcp(&mut self, frame_bytes: u32) {
        self.tcp.add(frame_bytes);
    }

    /// Counts a packet other than a TCP segment. Returns `None`, the result of decoding it.
    #[inline]
    pub(crate) fn other<T>(&mut self, kind: Other, frame_bytes: u32) -> Option<T> {
        self.others[kind as usize].add(frame_bytes);
        None
    }
}
