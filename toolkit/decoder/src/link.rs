//! Link layers: the network protocol of a frame and the offset of its header.
//!
//! The link types are those of the registry at tcpdump.org/linktypes.html.

mod mpls;
pub(crate) mod nsh;

use crate::framed::erf;
use crate::octets::{be16, be32, le16, le32};
use crate::skipped::Skipped;
use crate::wlan;

pub(crate) use mpls::{Labelled, PacketEnd, by_mpls, labelled};

/// The supported link types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// BSD loopback: a 32-bit address family in the byte order of the writer.
    Null,
    /// Ethernet, including VLAN tags, `PPPoE` sessions and SNAP.
    Ethernet,
    /// PPP, with or without the address and control fields.
    Ppp,
    /// PPP over Ethernet without the Ethernet header.
    PppEther,
    /// Raw IP; the version field distinguishes IPv4 and IPv6.
    Raw,
    /// Cisco HDLC: address and control fields, then an ethertype.
    CiscoHdlc,
    /// OpenBSD loopback: like [`LinkType::Null`], in network byte order.
    Loop,
    /// Linux cooked, version 1.
    LinuxSll,
    /// Linux cooked, version 2.
    LinuxSll2,
    /// IEEE 802.5, token ring.
    TokenRing,
    /// FDDI.
    Fddi,
    /// Frame relay.
    FrameRelay,
    /// IP over Fibre Channel.
    IpOverFc,
    /// IP over `InfiniBand`.
    IpOverIb,
    /// IEEE 802.11, wireless LAN.
    Wlan,
    /// The same with a Prism or AVS header.
    Prism,
    /// The same with a radiotap header.
    Radiotap,
    /// Per-packet information, before a frame of wireless LAN.
    Ppi,
    /// PPP of pppd: the direction in place of the address field.
    PppPppd,
    /// PPP after an octet with the direction.
    PppWithDirection,
    /// OpenBSD packet filter log.
    Pflog,
    /// Linux netfilter log.
    Nflog,
    /// Records of an Endace card.
    Erf,
}

impl LinkType {
    /// The number of [`LinkType::Erf`].
    pub(crate) const ERF_NUMBER: u16 = 197;

    /// The link type with this number, if it is supported.
    pub fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            0 => Self::Null,
            1 => Self::Ethernet,
            // 50 is PPP in HDLC-like framing, always with the address and control fields.
            9 | 50 => Self::Ppp,
            51 => Self::PppEther,
            // 12 and 14 are the values of DLT_RAW on some systems; old tools wrote them. 228 is IPv4, 229 IPv6.
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            104 => Self::CiscoHdlc,
            108 => Self::Loop,
            113 => Self::LinuxSll,
            276 => Self::LinuxSll2,
            6 => Self::TokenRing,
            10 => Self::Fddi,
            105 => Self::Wlan,
            107 => Self::FrameRelay,
            117 => Self::Pflog,
            119 | 163 => Self::Prism,
            122 => Self::IpOverFc,
            127 => Self::Radiotap,
            166 => Self::PppPppd,
            192 => Self::Ppi,
            197 => Self::Erf,
            204 => Self::PppWithDirection,
            239 => Self::Nflog,
            242 => Self::IpOverIb,
            _ => return None,
        })
    }

    /// Name, as in tcpdump.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Ethernet => "EN10MB",
            Self::Ppp => "PPP",
            Self::PppEther => "PPP_ETHER",
            Self::Raw => "RAW",
            Self::CiscoHdlc => "C_HDLC",
            Self::Loop => "LOOP",
            Self::LinuxSll => "LINUX_SLL",
            Self::LinuxSll2 => "LINUX_SLL2",
            Self::TokenRing => "IEEE802_5",
            Self::Fddi => "FDDI",
            Self::FrameRelay => "FRELAY",
            Self::IpOverFc => "IP_OVER_FC",
            Self::IpOverIb => "IPOIB",
            Self::Wlan => "IEEE802_11",
            Self::Prism => "PRISM_HEADER",
            Self::Radiotap => "IEEE802_11_RADIOTAP",
            Self::Ppi => "PPI",
            Self::PppPppd => "PPP_PPPD",
            Self::PppWithDirection => "PPP_WITH_DIR",
            Self::Pflog => "PFLOG",
            Self::Nflog => "NFLOG",
            Self::Erf => "ERF",
        }
    }
}

/// Name of an unsupported link type.
pub(crate) fn unsupported_name(number: u16) -> &'static str {
    match number {
        7 => "ARCNET",
        8 => "SLIP",
        143 => "DOCSIS",
        147..=162 => "private use",
        187 | 201 => "BLUETOOTH_HCI_H4",
        189 | 220 => "USB_LINUX",
        195 | 215 | 230 => "IEEE802_15_4",
        227 => "CAN_SOCKETCAN",
        249 => "USBPCAP",
        274 => "ETHERNET_MPACKET",
        _ => "unknown",
    }
}

/// The network protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// IPv4 at this offset.
    Ipv4(usize),
    /// IPv6 at this offset.
    Ipv6(usize),
    /// What follows an MPLS label stack, from this offset: see [`labelled`].
    Labelled(usize),
    /// Several frames of wireless LAN in one, from this offset.
    Aggregate(usize),
    /// ARP or RARP.
    Arp,
    /// Any other protocol; what it is if TCP may be inside.
    Other(Option<Skipped>),
    /// The captured part of the frame ends before the protocol field.
    Truncated,
}

/// Length of an Ethernet header without tags.
pub(crate) const ETHERNET_BYTES: usize = 14;

/// The IPv4 packet of an Ethernet frame without tags, the shortcut for most packets of most captures.
#[inline]
pub(crate) fn plain_ipv4(link: LinkType, frame: &[u8]) -> Option<&[u8]> {
    let (header, packet) = frame.split_at_checked(ETHERNET_BYTES)?;
    (link == LinkType::Ethernet && header.ends_with(&[0x08, 0x00])).then_some(packet)
}

/// Returns the network protocol that `frame` carries.
#[inline]
pub(crate) fn network(link: LinkType, frame: &[u8]) -> Network {
    let found = match link {
        LinkType::Ethernet => by_ethertype(frame, 12, 14),
        LinkType::CiscoHdlc => by_ethertype(frame, 2, 4),
        LinkType::LinuxSll => by_ethertype(frame, 14, 16),
        LinkType::LinuxSll2 => by_ethertype(frame, 0, 20),
        LinkType::Raw => by_version(frame, 0),
        LinkType::Null => le32(frame, 0).map(by_address_family),
        LinkType::Loop => be32(frame, 0).map(by_address_family),
        LinkType::Ppp => by_ppp(frame, 0),
        LinkType::PppEther => by_ppp(frame, PPPOE_HEADER_BYTES),
        _ => uncommon(link, frame),
    };
    found.unwrap_or(Network::Truncated)
}

/// [`network`] for the link types that few captures have.
#[cold]
fn uncommon(link: LinkType, frame: &[u8]) -> Option<Network> {
    match link {
        LinkType::TokenRing => token_ring(frame),
        LinkType::Fddi => fddi(frame),
        LinkType::FrameRelay => frame_relay(frame),
        // RFC 2625 §3: two addresses of 8 octets.
        LinkType::IpOverFc => by_llc_or_snap(frame, 16),
        // A global routing header of 40 octets, then that of RFC 4391 §6: an ethertype and two octets.
        LinkType::IpOverIb => by_ethertype(frame, 40, 44),
        LinkType::Wlan => wlan::data(frame, 0, false),
        LinkType::Prism => wlan::prism(frame),
        LinkType::Radiotap => wlan::radiotap(frame),
        LinkType::Ppi => wlan::ppi(frame),
        LinkType::PppPppd => by_ppp(frame, 2),
        LinkType::PppWithDirection => by_ppp(frame, 1),
        // The first octet is the length of the header without its padding.
        LinkType::Pflog => by_version(frame, usize::from(*frame.first()?).next_multiple_of(4)),
        LinkType::Nflog => netfilter_log(frame),
        LinkType::Erf => erf::network(frame),
        _ => None,
    }
}

/// Token ring: two octets of control, two addresses, and a source route if the source address says so.
fn token_ring(frame: &[u8]) -> Option<Network> {
    const FRAME_TYPE: u8 = 0xc0;
    const LLC: u8 = 0x40;
    if *frame.get(1)? & FRAME_TYPE != LLC {
        return Some(Network::Other(None));
    }
    let route_bytes = match frame.get(8)? & 0x80 {
        0 => 0,
        _ => usize::from(frame.get(14)? & 0x1f),
    };
    by_llc_or_snap(frame, 14 + route_bytes)
}

/// FDDI: an octet of control and two addresses.
fn fddi(frame: &[u8]) -> Option<Network> {
    const FRAME_TYPE: u8 = 0xf0;
    const LLC: u8 = 0x50;
    if *frame.first()? & FRAME_TYPE != LLC {
        return Some(Network::Other(None));
    }
    by_llc_or_snap(frame, 13)
}

/// Frame relay (RFC 2427 §3): an address of 2 to 4 octets, control, and the protocol.
fn frame_relay(frame: &[u8]) -> Option<Network> {
    const LAST_OCTET: u8 = 1;
    const UNNUMBERED: u8 = 3;
    let mut at =
        1 + (0..4).find(|&at| frame.get(at).is_none_or(|octet| octet & LAST_OCTET != 0))?;
    if *frame.get(at)? != UNNUMBERED {
        // Cisco's encapsulation has an ethertype here.
        return by_ethertype(frame, at, at + 2);
    }
    at += 1;
    if *frame.get(at)? == 0 {
        at += 1;
    }
    Some(match *frame.get(at)? {
        0xcc => Network::Ipv4(at + 1),
        0x8e => Network::Ipv6(at + 1),
        // SNAP: an organisation of 3 octets, 0 for ethertypes.
        0x80 if frame.get(at + 1..at + 4)? == [0; 3] => {
            return by_ethertype(frame, at + 4, at + 6);
        }
        other => Network::Other(Some(Skipped::Nlpid(other))),
    })
}

/// Linux netfilter log: a header of 4 octets, then attributes with their length and type; one of them is the packet.
fn netfilter_log(frame: &[u8]) -> Option<Network> {
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    loop {
        let length = usize::from(le16(frame, at)?);
        if le16(frame, at + 2)? & 0x7fff == PAYLOAD {
            return by_version(frame, at + 4);
        }
        if length < 4 {
            return Some(Network::Other(None));
        }
        at += length.next_multiple_of(4);
    }
}

/// An LLC header (IEEE 802.2) at `at`, with or without SNAP.
pub(crate) fn by_llc_or_snap(frame: &[u8], at: usize) -> Option<Network> {
    /// SNAP of bridges (IEEE 802.1H).
    const BRIDGED: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0xf8];
    let rest = frame.get(at..)?;
    if rest.starts_with(&SNAP) || rest.starts_with(&BRIDGED) {
        let type_at = at + SNAP.len();
        return by_ethertype(frame, type_at, type_at + 2);
    }
    by_llc(frame, at)
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_RARP: u16 = 0x8035;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, IEEE 802.1ad, and the outer tag of switches that predate 802.1ad.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// RFC 2516 §4.
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
const PPPOE_HEADER_BYTES: usize = 6;
/// RFC 5332 §3: MPLS unicast and multicast.
const ETHERTYPES_MPLS: [u16; 2] = [0x8847, 0x8848];
/// Transparent Ethernet bridging (RFC 1701): a whole frame, in GRE and Geneve.
const ETHERTYPE_BRIDGING: u16 = 0x6558;
/// Network service header (RFC 8300).
const ETHERTYPE_NSH: u16 = 0x894f;
/// Control protocols of a link: Slow Protocols, `PPPoE` discovery, EAPOL, LLDP, PTP, CFM, loopback test; of Cisco HDLC:
/// SLARP and CDP; Wake-on-LAN.
const ETHERTYPES_CONTROL: [u16; 9] = [
    0x8809, 0x8863, 0x888e, 0x88cc, 0x88f7, 0x8902, 0x9000, 0x2000, 0x0842,
];
/// Up to this value the field is a length (IEEE 802.3), and an LLC header follows.
const MAX_LENGTH: u16 = 1500;
/// The LLC and SNAP headers that precede an ethertype (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Reads the ethertype at `type_at`, whose payload starts at `at`, and skips tags. `None` if the frame ends first.
pub(crate) fn by_ethertype(frame: &[u8], mut type_at: usize, mut at: usize) -> Option<Network> {
    loop {
        let ethertype = be16(frame, type_at)?;
        match ethertype {
            ETHERTYPE_IPV4 => return Some(Network::Ipv4(at)),
            ETHERTYPE_IPV6 => return Some(Network::Ipv6(at)),
            ETHERTYPE_ARP | ETHERTYPE_RARP => return Some(Network::Arp),
            ETHERTYPE_PPPOE_SESSION => return by_ppp(frame, at + PPPOE_HEADER_BYTES),
            // Two octets of tag control information precede the next ethertype.
            tag if ETHERTYPES_VLAN.contains(&tag) => type_at = at + 2,
            length if length <= MAX_LENGTH => {
                if !frame.get(at..)?.starts_with(&SNAP) {
                    return by_llc(frame, at);
                }
                type_at = at + SNAP.len();
            }
            ETHERTYPE_BRIDGING => type_at = at + 12,
            ETHERTYPE_NSH => {
                let (next, inner) = nsh::skip(frame, at)?;
                if next != nsh::ETHERNET {
                    return nsh::by_next_protocol(frame, next, inner);
                }
                type_at = inner + 12;
            }
            mpls if ETHERTYPES_MPLS.contains(&mpls) => return by_mpls(frame, at),
            control if ETHERTYPES_CONTROL.contains(&control) => return Some(Network::Other(None)),
            other => return Some(Network::Other(Some(Skipped::Ethertype(other)))),
        }
        at = type_at + 2;
    }
}

/// An Ethernet frame that starts at `at`.
pub(crate) fn ethernet_at(frame: &[u8], at: usize) -> Option<Network> {
    by_ethertype(frame, at + 12, at + 14)
}

/// The LLC header (IEEE 802.2) at `at`, other than [`SNAP`].
fn by_llc(frame: &[u8], at: usize) -> Option<Network> {
    const IP: u8 = 0x06;
    const SPANNING_TREE: u8 = 0x42;
    const CISCO_SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0x0c];
    let rest = frame.get(at..)?;
    Some(match *rest.first()? {
        IP => Network::Ipv4(at + 3),
        SPANNING_TREE => Network::Other(None),
        _ if rest.starts_with(&CISCO_SNAP) => Network::Other(None),
        other => Network::Other(Some(Skipped::Llc(other))),
    })
}

/// PPP: RFC 1661 §2, RFC 1662 §3.1.
pub(crate) fn by_ppp(frame: &[u8], mut at: usize) -> Option<Network> {
    if be16(frame, at)? == 0xff03 {
        at += 2;
    }
    let first = u16::from(*frame.get(at)?);
    // Protocol field compression: an odd first octet is a complete one-octet protocol field.
    let (protocol, length) = if first & 1 == 1 {
        (first, 1)
    } else {
        (be16(frame, at)?, 2)
    };
    Some(match protocol {
        0x21 => Network::Ipv4(at + length),
        0x57 => Network::Ipv6(at + length),
        0x281 | 0x283 => return by_mpls(frame, at + length),
        // RFC 1661 §2: control protocols.
        0x8000.. => Network::Other(None),
        other => Network::Other(Some(Skipped::Ppp(other))),
    })
}

pub(crate) fn by_version(frame: &[u8], at: usize) -> Option<Network> {
    Some(match frame.get(at)? >> 4 {
        4 => Network::Ipv4(at),
        6 => Network::Ipv6(at),
        other => Network::Other(Some(Skipped::Version(other))),
    })
}

/// AF_INET is 2 everywhere; AF_INET6 differs between Linux, NetBSD, FreeBSD and macOS. A value of more than 16 bits has
/// the wrong byte order.
fn by_address_family(family: u32) -> Network {
    let family = if family > 0xffff {
        family.swap_bytes()
    } else {
        family
    };
    match family {
        2 => Network::Ipv4(4),
        10 | 24 | 28 | 30 => Network::Ipv6(4),
        other => Network::Other(Some(Skipped::AddressFamily(other))),
    }
}
