//! What a capture holds besides TCP segments, counted. Knows no format.

use std::net::IpAddr;

/// Traffic that is no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// UDP.
    Udp,
    /// ICMP and ICMPv6.
    Icmp,
    /// ARP and its reverse.
    Arp,
    /// Fragments of TCP packets but the first: they hold no TCP header.
    TcpFragment,
    /// Other protocols over IP, tunnels among them.
    OtherIp,
    /// Frames without IP.
    NotIp,
    /// Frames with a damaged or cut header: each is an issue as well.
    Undecoded,
}

impl Other {
    /// All kinds, in the order of their numbers.
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

/// An IP packet that is no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherPacket {
    /// Number of its record in the capture, from 1.
    pub record: u64,
    /// When it was captured.
    pub t_ns: i64,
    /// What it is.
    pub kind: Other,
    /// Where it comes from.
    pub src: IpAddr,
    /// Where it goes.
    pub dst: IpAddr,
    /// IP length.
    pub ip_bytes: u32,
}

/// Packets and their octets on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Frame lengths, summed.
    pub bytes: u64,
}

impl Count {
    #[inline]
    fn add(&mut self, frame_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(frame_bytes);
    }
}

/// What was read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All packets read, TCP or not.
    pub packets: u64,
    /// TCP segments.
    pub tcp: Count,
    /// Packets outside the window that was asked for; counted nowhere else.
    pub outside_window_packets: u64,
    /// Least and greatest time of a packet.
    pub span_ns: Option<(i64, i64)>,
    others: [Count; Other::ALL.len()],
}

impl Tally {
    /// How much there was of a kind.
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

    /// Counts what is no segment, and so gives none.
    #[inline]
    pub(crate) fn other<T>(&mut self, kind: Other, frame_bytes: u32) -> Option<T> {
        self.others[kind as usize].add(frame_bytes);
        None
    }
}
