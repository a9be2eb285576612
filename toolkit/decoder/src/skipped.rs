//! Packets that the decoder does not read although TCP may be inside: counted by protocol, one issue each.

use std::fmt;

use crate::issue::{IssueKind, Issues};

/// What was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// Frames with this ethertype.
    Ethertype(u16),
    /// Frames with this PPP protocol number.
    Ppp(u16),
    /// IEEE 802.2 frames with this destination service access point.
    Llc(u8),
    /// An address family of BSD loopback.
    AddressFamily(u32),
    /// The version field of raw IP.
    Version(u8),
    /// MPLS packets that hold neither IP nor an Ethernet frame that is recognised.
    Mpls,
    /// A next protocol of a network service header or of VXLAN-GPE.
    NextProtocol(u8),
    /// IP packets with this protocol number.
    Ip(u8),
    /// UDP datagrams of a tunnel with this port.
    UdpPort(u16),
    /// GRE packets with this protocol type.
    Gre(u16),
    /// Fragments after the first, of packets with this IP protocol number.
    Fragment(u8),
    /// Frame relay frames with this network layer protocol identifier.
    Nlpid(u8),
    /// Encrypted frames of wireless LAN.
    WlanEncrypted,
    /// Frames of wireless LAN that were received in error.
    WlanDamaged,
    /// Frames of wireless LAN after an unknown header of the capture device.
    WlanHeader,
    /// Records of an Endace card of this type.
    Erf(u8),
    /// Encrypted packets: ESP without NULL encryption.
    Esp,
    /// Tunnels that were not opened, because outer flows were asked for.
    Tunnel,
    /// More tunnels inside one another than the decoder reads.
    Nesting,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ethertype(number) => write!(f, "packets of ethertype {number:#06x}"),
            Self::Ppp(number) => write!(f, "packets of PPP protocol {number:#06x}"),
            Self::Llc(number) => write!(f, "IEEE 802.2 frames for access point {number:#04x}"),
            Self::AddressFamily(number) => write!(f, "packets of address family {number}"),
            Self::Version(number) => write!(f, "packets of IP version {number}"),
            Self::Mpls => write!(
                f,
                "MPLS packets with neither IP nor an Ethernet frame whose IP packet is confirmed by its checksum or length"
            ),
            Self::NextProtocol(number) => {
                write!(f, "packets of next protocol {number} (NSH, VXLAN-GPE)")
            }
            Self::Ip(number) => write!(f, "packets of IP protocol {number}{}", ip_name(number)),
            Self::UdpPort(port) => write!(f, "UDP datagrams of port {port} ({})", udp_name(port)),
            Self::Gre(number) => write!(f, "GRE packets of protocol type {number:#06x}"),
            Self::Fragment(number) => {
                write!(
                    f,
                    "fragments after the first of IP protocol {number}{}",
                    ip_name(number)
                )
            }
            Self::Nlpid(number) => write!(f, "frame relay frames of protocol {number:#04x}"),
            Self::WlanEncrypted => write!(f, "encrypted frames of wireless LAN"),
            Self::WlanDamaged => write!(f, "frames of wireless LAN received with a bad checksum"),
            Self::WlanHeader => write!(f, "frames of wireless LAN after an unknown header"),
            Self::Erf(number) => write!(f, "ERF records of type {number}"),
            Self::Esp => write!(f, "encrypted packets (ESP)"),
            Self::Tunnel => write!(f, "packets of tunnels"),
            Self::Nesting => write!(f, "packets with too many tunnels inside one another"),
        }
    }
}

fn ip_name(number: u8) -> &'static str {
    match number {
        4 => " (IP in IP)",
        6 => " (TCP)",
        17 => " (UDP)",
        41 => " (IPv6 in IP)",
        47 => " (GRE)",
        50 => " (ESP)",
        55 => " (minimal encapsulation)",
        97 => " (Ethernet in IP)",
        108 => " (IPComp)",
        115 => " (L2TP)",
        137 => " (MPLS in IP)",
        _ => "",
    }
}

/// Name of the tunnel over UDP that uses `port`; empty if none is known.
pub(crate) fn udp_name(port: u16) -> &'static str {
    match port {
        1194 => "OpenVPN",
        1701 => "L2TP",
        2152 => "GTP-U",
        3544 => "Teredo",
        4341 => "LISP",
        4500 => "ESP",
        4789 | 8472 => "VXLAN",
        4790 => "VXLAN-GPE",
        5247 => "CAPWAP",
        6080 => "GUE",
        6081 => "Geneve",
        6635 => "MPLS",
        51820 => "WireGuard",
        _ => "",
    }
}

/// Counts by protocol, with the place of the first packet.
#[derive(Debug, Default)]
pub(crate) struct SkippedCounts {
    rows: Vec<(Skipped, u64, u64, u64)>,
    others: u64,
}

/// Maximum number of protocols that are counted separately.
const MAX_ROWS: usize = 64;

impl SkippedCounts {
    #[cold]
    pub fn add(&mut self, what: Skipped, record: u64, offset: u64) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.0 == what) {
            row.1 += 1;
        } else if self.rows.len() < MAX_ROWS {
            self.rows.push((what, 1, record, offset));
        } else {
            self.others += 1;
        }
    }

    /// Moves the counts to `issues`, one issue per protocol.
    pub fn report(&mut self, offset: u64, issues: &mut Issues) {
        for (what, count, record, offset) in self.rows.drain(..) {
            issues.add(record, offset, IssueKind::Skipped, || {
                format!("{count} {what} are not decoded: TCP inside them is not counted")
            });
        }
        let others = std::mem::take(&mut self.others);
        if others > 0 {
            issues.add(0, offset, IssueKind::Skipped, || {
                format!("{others} packets of other protocols are not decoded: TCP inside them is not counted")
            });
        }
    }
}
