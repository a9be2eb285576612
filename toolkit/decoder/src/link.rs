//! Link layers: from a frame to the network protocol it carries and where that starts.
//! Knows nothing of IP. Numbers are those of the registry at tcpdump.org/linktypes.html.

use crate::octets::{be16, be32, le32};

/// The link types that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// BSD loopback: four octets of address family in the writer's byte order.
    Null,
    /// Ethernet, also with VLAN tags, `PPPoE` sessions and SNAP.
    Ethernet,
    /// PPP, with or without the address and control octets.
    Ppp,
    /// PPP over Ethernet without the Ethernet header.
    PppEther,
    /// An IP packet, version by its first octet.
    Raw,
    /// OpenBSD loopback: as [`LinkType::Null`] in network byte order.
    Loop,
    /// Linux cooked, version 1.
    LinuxSll,
    /// Linux cooked, version 2.
    LinuxSll2,
}

impl LinkType {
    /// The link type with this number, if it can be read.
    pub fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            0 => Self::Null,
            1 => Self::Ethernet,
            9 => Self::Ppp,
            51 => Self::PppEther,
            // 12 and 14: DLT_RAW of different systems, written as such by old tools. 228, 229: IPv4 and IPv6 alone.
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            108 => Self::Loop,
            113 => Self::LinuxSll,
            276 => Self::LinuxSll2,
            _ => return None,
        })
    }

    /// Its name as tcpdump and Wireshark know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Ethernet => "EN10MB",
            Self::Ppp => "PPP",
            Self::PppEther => "PPP_ETHER",
            Self::Raw => "RAW",
            Self::Loop => "LOOP",
            Self::LinuxSll => "LINUX_SLL",
            Self::LinuxSll2 => "LINUX_SLL2",
        }
    }
}

/// Name of a link type that cannot be read.
pub(crate) fn unreadable_name(number: u16) -> &'static str {
    match number {
        6 => "IEEE802_5, token ring",
        7 => "ARCNET",
        8 => "SLIP",
        10 => "FDDI",
        50 => "PPP_HDLC",
        104 => "C_HDLC",
        105 => "IEEE802_11, wireless LAN",
        107 => "FRELAY, frame relay",
        119 => "PRISM_HEADER, wireless LAN",
        122 => "IP_OVER_FC",
        127 => "IEEE802_11_RADIOTAP, wireless LAN",
        143 => "DOCSIS",
        147..=162 => "private use",
        163 => "IEEE802_11_AVS, wireless LAN",
        187 | 201 => "BLUETOOTH_HCI_H4",
        189 | 220 => "USB_LINUX",
        192 => "PPI",
        195 | 215 | 230 => "IEEE802_15_4",
        227 => "CAN_SOCKETCAN",
        239 => "NFLOG",
        249 => "USBPCAP",
        _ => "not one we know by name",
    }
}

/// The network protocol in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// IPv4 from this octet of the frame on.
    Ipv4(usize),
    /// IPv6 from this octet of the frame on.
    Ipv6(usize),
    /// ARP or its reverse.
    Arp,
    /// Something else.
    Other,
    /// The frame was cut before it says.
    Cut,
}

/// What `frame` carries.
#[inline]
pub(crate) fn network(link: LinkType, frame: &[u8]) -> Network {
    let found = match link {
        LinkType::Ethernet => by_ethertype(frame, 12, 14),
        LinkType::LinuxSll => by_ethertype(frame, 14, 16),
        LinkType::LinuxSll2 => by_ethertype(frame, 0, 20),
        LinkType::Raw => by_version(frame, 0),
        LinkType::Null => le32(frame, 0).map(by_family),
        LinkType::Loop => be32(frame, 0).map(by_family),
        LinkType::Ppp => by_ppp(frame, 0),
        LinkType::PppEther => by_ppp(frame, PPPOE_HEADER_BYTES),
    };
    found.unwrap_or(Network::Cut)
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_RARP: u16 = 0x8035;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, IEEE 802.1ad, and what switches used for the outer tag before 802.1ad.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// RFC 2516 §4.
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
const PPPOE_HEADER_BYTES: usize = 6;
/// Up to here the field is a length (IEEE 802.3) and an LLC header follows.
const LAST_LENGTH: u16 = 1500;
/// LLC header for SNAP with the organisation code of ethertypes (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Follows the ethertype at `kind_at`, with what it announces at `at`, through tags; none where the frame ends first.
fn by_ethertype(frame: &[u8], mut kind_at: usize, mut at: usize) -> Option<Network> {
    loop {
        let kind = be16(frame, kind_at)?;
        match kind {
            ETHERTYPE_IPV4 => return Some(Network::Ipv4(at)),
            ETHERTYPE_IPV6 => return Some(Network::Ipv6(at)),
            ETHERTYPE_ARP | ETHERTYPE_RARP => return Some(Network::Arp),
            ETHERTYPE_PPPOE_SESSION => return by_ppp(frame, at + PPPOE_HEADER_BYTES),
            // Two octets of tag control, then the next ethertype.
            kind if ETHERTYPES_VLAN.contains(&kind) => kind_at = at + 2,
            kind if kind <= LAST_LENGTH && frame.get(at..)?.starts_with(&SNAP) => {
                kind_at = at + SNAP.len();
            }
            _ => return Some(Network::Other),
        }
        at = kind_at + 2;
    }
}

/// PPP: RFC 1661 §2, RFC 1662 §3.1.
fn by_ppp(frame: &[u8], mut at: usize) -> Option<Network> {
    if be16(frame, at)? == 0xff03 {
        at += 2;
    }
    let first = u16::from(*frame.get(at)?);
    // Protocol-field compression: an odd first octet is the whole number.
    let (protocol, length) = if first & 1 == 1 {
        (first, 1)
    } else {
        (be16(frame, at)?, 2)
    };
    Some(match protocol {
        0x21 => Network::Ipv4(at + length),
        0x57 => Network::Ipv6(at + length),
        _ => Network::Other,
    })
}

fn by_version(frame: &[u8], at: usize) -> Option<Network> {
    Some(match frame.get(at)? >> 4 {
        4 => Network::Ipv4(at),
        6 => Network::Ipv6(at),
        _ => Network::Other,
    })
}

/// Address families: 2 everywhere for IPv4; IPv6 differs by system (Linux, NetBSD, FreeBSD, macOS). A number above
/// 16 bits was read in the wrong byte order.
fn by_family(family: u32) -> Network {
    let family = if family > 0xffff {
        family.swap_bytes()
    } else {
        family
    };
    match family {
        2 => Network::Ipv4(4),
        10 | 24 | 28 | 30 => Network::Ipv6(4),
        _ => Network::Other,
    }
}
