//! Tunnels: the packet inside an IP packet.
//!
//! GRE (RFC 2784, 2890; version 1: RFC 2637) with IP, Ethernet, MPLS, PPP or ERSPAN inside, IP in IP (RFC 2003, 2473,
//! 4213), MPLS in IP (RFC 4023), Ethernet in IP (RFC 3378), VXLAN (RFC 7348) and VXLAN-GPE, Geneve (RFC 8926), GTP-U
//! (3GPP TS 29.281), L2TP (RFC 2661, 3931), Teredo (RFC 4380), ESP without encryption (also in UDP, RFC 3948).

use crate::checksum::ipv4_header_is_valid;
use crate::esp::{self, Clear};
use crate::ip::{self, IpHeader, protocol};
use crate::link::nsh::{self, by_next_protocol};
use crate::link::{
    Labelled, Network, PacketEnd, by_ethertype, by_mpls, by_ppp, by_version, ethernet_at, labelled,
};
use crate::octets::{be16, be32};
use crate::skipped::{Skipped, udp_name};
use crate::wlan;

/// What an IP packet carries, other than TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// No tunnel.
    Plain,
    /// A tunnel with this inside.
    Tunnel(Network),
    /// A TCP segment that starts and ends at these offsets of the frame.
    Tcp(usize, usize),
    /// Something that is not read and may contain TCP.
    Skipped(Skipped),
}

/// Protocols over IP without TCP inside: ICMP, IGMP, EGP, IGP, DCCP, RSVP, ICMPv6, no next header, EIGRP, OSPF, PIM,
/// VRRP, SCTP.
const PLAIN: [u8; 13] = [1, 2, 8, 9, 33, 46, 58, 59, 88, 89, 103, 112, 132];

/// Whether a packet of this IP protocol, other than TCP, may have TCP inside.
pub(crate) fn may_carry(protocol: u8) -> bool {
    !PLAIN.contains(&protocol)
}

/// Returns the content of the IP packet, or first fragment, whose payload starts at `at` of `frame` and ends at `end`.
#[cold]
pub(crate) fn content(frame: &[u8], at: usize, end: PacketEnd, ip: &IpHeader) -> Content {
    if !may_carry(ip.protocol) {
        return Content::Plain;
    }
    let found = match ip.protocol {
        protocol::UDP => return over_udp(frame, at, end, ip),
        protocol::ESP => return over_esp(frame, at, end, ip),
        protocol::L2TP => over_l2tp_v3(frame, at, end),
        protocol::IPV4 => Some(Network::Ipv4(at)),
        protocol::IPV6 => Some(Network::Ipv6(at)),
        protocol::GRE => over_gre(frame, at),
        protocol::MPLS => by_mpls(frame, at),
        protocol::ETHERNET => ethernet_at(frame, at + 2),
        other => return Content::Skipped(Skipped::Ip(other)),
    };
    Content::Tunnel(found.unwrap_or(Network::Truncated))
}

const GRE_CHECKSUM: u16 = 0x8000;
const GRE_ROUTING: u16 = 0x4000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
const GRE_ACKNOWLEDGEMENT: u16 = 0x0080;
const GRE_PPP: u16 = 0x880b;
const GRE_ERSPAN: u16 = 0x88be;
const GRE_ERSPAN_3: u16 = 0x22eb;
/// Frames of access points (Aruba).
const GRE_WLAN: std::ops::RangeInclusive<u16> = 0x8200..=0x83ff;
/// Below it, the field is a length in IEEE 802.3 and has no meaning in GRE.
const MIN_ETHERTYPE: u16 = 0x0600;

/// Reads the GRE header at `at`. `None` if the frame ends within it.
fn over_gre(frame: &[u8], at: usize) -> Option<Network> {
    let (flags, kind) = (be16(frame, at)?, be16(frame, at + 2)?);
    let optional = |mask| if flags & mask != 0 { 4 } else { 0 };
    let payload =
        at + 4 + optional(GRE_CHECKSUM | GRE_ROUTING) + optional(GRE_KEY) + optional(GRE_SEQUENCE);
    let other = Some(Network::Other(Some(Skipped::Gre(kind))));
    match (flags & 7, kind) {
        _ if flags & GRE_ROUTING != 0 => other,
        // Without a sequence number, version 1 only acknowledges.
        (1, GRE_PPP) if flags & GRE_SEQUENCE == 0 => Some(Network::Other(None)),
        (1, GRE_PPP) => by_ppp(frame, payload + optional(GRE_ACKNOWLEDGEMENT)),
        // ERSPAN type I has no header, type II one of 8 octets; they differ in the sequence number.
        (0, GRE_ERSPAN) if flags & GRE_SEQUENCE == 0 => ethernet_at(frame, payload),
        (0, GRE_ERSPAN) => ethernet_at(frame, payload + 8),
        (0, GRE_ERSPAN_3) => {
            let subheader = if frame.get(payload + 11)? & 1 == 1 {
                8
            } else {
                0
            };
            ethernet_at(frame, payload + 12 + subheader)
        }
        (0, kind) if GRE_WLAN.contains(&kind) => wlan::data(frame, payload, false),
        (0, MIN_ETHERTYPE..) => match by_ethertype(frame, at + 2, payload) {
            Some(Network::Other(Some(Skipped::Ethertype(inner)))) if inner == kind => other,
            found => found,
        },
        _ => other,
    }
}

const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const VXLAN_GPE_PORT: u16 = 4790;
const GENEVE_PORT: u16 = 6081;
const GTP_U_PORT: u16 = 2152;
const L2TP_PORT: u16 = 1701;
const TEREDO_PORT: u16 = 3544;
const ESP_PORT: u16 = 4500;

/// Reads the UDP header at `at` and that of a tunnel. What does not look like the tunnel of its port is skipped.
fn over_udp(frame: &[u8], at: usize, end: PacketEnd, ip: &IpHeader) -> Content {
    let (Some(src), Some(dst)) = (be16(frame, at), be16(frame, at + 2)) else {
        return Content::Plain;
    };
    let Some(port) = [dst, src].into_iter().find(|&p| !udp_name(p).is_empty()) else {
        return Content::Plain;
    };
    let payload = at + 8;
    let found = if VXLAN_PORTS.contains(&dst) {
        over_vxlan(frame, payload)
    } else if dst == VXLAN_GPE_PORT {
        over_vxlan_gpe(frame, payload)
    } else if dst == GENEVE_PORT {
        over_geneve(frame, payload)
    } else if port == GTP_U_PORT {
        over_gtp(frame, payload)
    } else if port == L2TP_PORT {
        over_l2tp(frame, payload, end)
    } else if port == TEREDO_PORT {
        over_teredo(frame, payload)
    } else if port == ESP_PORT {
        return match be32(frame, payload) {
            // RFC 3948 §2: a keep-alive has one octet, and four zeros mark IKE.
            None | Some(0) => Content::Plain,
            Some(_) => over_esp(frame, payload, end, ip),
        };
    } else {
        None
    };
    found.map_or(Content::Skipped(Skipped::UdpPort(port)), Content::Tunnel)
}

fn over_esp(frame: &[u8], at: usize, end: PacketEnd, ip: &IpHeader) -> Content {
    match esp::open(frame, at, end, ip) {
        Some(Clear::Tcp(start, end)) => Content::Tcp(start, end),
        Some(Clear::Packet(network)) => Content::Tunnel(network),
        None => Content::Skipped(Skipped::Esp),
    }
}

/// L2TP over UDP (RFC 2661 §3.1, RFC 3931 §4.1.2): version 2 carries PPP, version 3 what was agreed on.
fn over_l2tp(frame: &[u8], at: usize, end: PacketEnd) -> Option<Network> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = be16(frame, at)?;
    if flags & CONTROL != 0 {
        return Some(Network::Other(None));
    }
    match flags & 0xf {
        2 => {
            let field = |flag, bytes| if flags & flag != 0 { bytes } else { 0 };
            // The flags, the tunnel and the session.
            let mut payload = at + 6 + field(LENGTH, 2) + field(SEQUENCE, 4);
            if flags & OFFSET != 0 {
                payload += 2 + usize::from(be16(frame, payload)?);
            }
            Some(by_ppp(frame, payload).unwrap_or(Network::Truncated))
        }
        3 => agreed_frame(frame, at + 8, end),
        _ => None,
    }
}

/// L2TP version 3 over IP (RFC 3931 §4.1.1). Session 0 is for control messages.
fn over_l2tp_v3(frame: &[u8], at: usize, end: PacketEnd) -> Option<Network> {
    if be32(frame, at)? == 0 {
        return Some(Network::Other(None));
    }
    let found = agreed_frame(frame, at + 4, end);
    Some(found.unwrap_or(Network::Other(Some(Skipped::Ip(protocol::L2TP)))))
}

/// The Ethernet frame of a pseudowire that ends at `end`. The lengths of the cookie and of the sublayer before it were
/// agreed on (RFC 3931 §4.1, RFC 4719); they are those after which an IP packet fills the rest. In a first fragment it
/// extends to the end or beyond, and the checksum of an IPv4 header must be right.
fn agreed_frame(frame: &[u8], at: usize, end: PacketEnd) -> Option<Network> {
    const MIN_FRAME_BYTES: usize = 60;
    (0..=12).step_by(4).find_map(|skipped| {
        let start = at + skipped;
        let network = match ethernet_at(frame, start)? {
            Network::Labelled(at) => match labelled(frame, at, end) {
                Labelled::Plain(network) | Labelled::Pseudowire(network) => network,
            },
            network => network,
        };
        let (inner, header) = match network {
            Network::Ipv4(inner) if end.continues && !ipv4_header_is_valid(frame.get(inner..)?) => {
                return None;
            }
            Network::Ipv4(inner) => (inner, ip::parse_v4(frame.get(inner..)?, 0)),
            Network::Ipv6(inner) => (inner, ip::parse_v6(frame.get(inner..)?, 0)),
            _ => return None,
        };
        let inner_end = inner + header.ok()?.ip_bytes as usize;
        // A short packet is padded to the minimum length of a frame.
        let is_padded = inner_end < end.at && end.at - start <= MIN_FRAME_BYTES;
        let extends = end.continues && inner_end > end.at;
        (inner_end == end.at || is_padded || extends).then_some(network)
    })
}

/// Teredo (RFC 4380 §5.1.1): an authentication and an origin indication may precede the IPv6 packet.
fn over_teredo(frame: &[u8], mut at: usize) -> Option<Network> {
    const AUTHENTICATION: u16 = 1;
    const ORIGIN: u16 = 0;
    if be16(frame, at)? == AUTHENTICATION {
        let lengths = usize::from(*frame.get(at + 2)?) + usize::from(*frame.get(at + 3)?);
        at += 13 + lengths;
    }
    if be16(frame, at)? == ORIGIN {
        at += 8;
    }
    (frame.get(at)? >> 4 == 6).then_some(Network::Ipv6(at))
}

/// RFC 7348 §5: only the flag I is set, the identifier is valid. With the flag G, a group policy has the other fields that
/// are reserved without it (draft-smith-vxlan-group-policy).
fn over_vxlan(frame: &[u8], at: usize) -> Option<Network> {
    const VALID: u32 = 0x0800_0000;
    const GROUP_POLICY: u32 = 0x8000_0000;
    /// The flags D (do not learn) and A (applied), and the group.
    const POLICY_FIELDS: u32 = 0x0048_ffff;
    let head = be32(frame, at)?;
    (head == VALID || head & !POLICY_FIELDS == VALID | GROUP_POLICY).then_some(())?;
    Some(ethernet_at(frame, at + 8).unwrap_or(Network::Truncated))
}

/// draft-ietf-nvo3-vxlan-gpe §3: version 0, a valid identifier, and the next protocol; without the flag P, Ethernet.
fn over_vxlan_gpe(frame: &[u8], at: usize) -> Option<Network> {
    const VERSION: u32 = 0x3000_0000;
    const VALID: u32 = 0x0800_0000;
    const NEXT_PROTOCOL: u32 = 0x0400_0000;
    let head = be32(frame, at)?;
    (head & (VERSION | VALID) == VALID).then_some(())?;
    let next = if head & NEXT_PROTOCOL == 0 {
        nsh::ETHERNET
    } else {
        head as u8
    };
    Some(by_next_protocol(frame, next, at + 8).unwrap_or(Network::Truncated))
}

/// RFC 8926 §3.4: version 0, the length of the options in words of 4 octets.
fn over_geneve(frame: &[u8], at: usize) -> Option<Network> {
    let first = *frame.get(at)?;
    (first >> 6 == 0).then_some(())?;
    let payload = at + 8 + usize::from(first & 0x3f) * 4;
    Some(by_ethertype(frame, at + 2, payload).unwrap_or(Network::Truncated))
}

/// TS 29.281 §5.1 and §5.2: version 1, protocol type GTP. Only a G-PDU has a packet inside.
fn over_gtp(frame: &[u8], at: usize) -> Option<Network> {
    const G_PDU: u8 = 255;
    let flags = *frame.get(at)?;
    (flags & 0xf0 == 0x30).then_some(())?;
    if *frame.get(at + 1)? != G_PDU {
        return Some(Network::Other(None));
    }
    let mut payload = at + 8;
    // Any of the flags E, S and PN adds all three fields.
    if flags & 7 != 0 {
        payload += 4;
        let mut next = if flags & 4 != 0 {
            *frame.get(payload - 1)?
        } else {
            0
        };
        while next != 0 {
            let bytes = usize::from(*frame.get(payload)?) * 4;
            (bytes > 0).then_some(())?;
            payload += bytes;
            next = *frame.get(payload - 1)?;
        }
    }
    Some(by_version(frame, payload).unwrap_or(Network::Truncated))
}
