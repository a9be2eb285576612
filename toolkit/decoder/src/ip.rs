//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers: addresses, lengths, fragmentation and the offset of the transport
//! header.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::octets::{be16, be32};

/// Transport protocol numbers (IANA).
pub(crate) mod protocol {
    pub const ICMP: u8 = 1;
    pub const IPV4: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const IPV6: u8 = 41;
    pub const GRE: u8 = 47;
    pub const ESP: u8 = 50;
    pub const AUTHENTICATION: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const ETHERNET: u8 = 97;
    pub const L2TP: u8 = 115;
    pub const MPLS: u8 = 137;
}

/// The fields of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpHeader {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub ip_id: Option<u16>,
    pub ttl: u8,
    pub dscp_ecn: u8,
    /// Packet length; the length of the frame's payload if the length field is 0.
    pub ip_bytes: u32,
    /// The length field is 0.
    pub length_zero: bool,
    /// Length of all IP headers: the offset of the transport header.
    pub header_bytes: usize,
    pub protocol: u8,
    pub fragment: Fragment,
}

/// Which part of its packet a fragment is. The identification tells the packets of two hosts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    /// The packet is whole.
    None,
    /// The first fragment, with the transport header after `header_bytes` octets of extension headers, which count as
    /// part of what is fragmented.
    First { id: u32, header_bytes: u16 },
    /// Another one, `units` of 8 octets after the start.
    Later { id: u32, units: u16, more: bool },
}

impl Fragment {
    #[inline]
    fn of(units: u16, more: bool, id: u32) -> Self {
        match (units, more) {
            (0, false) => Self::None,
            (0, true) => Self::First {
                id,
                header_bytes: 0,
            },
            _ => Self::Later { id, units, more },
        }
    }

    #[inline]
    pub fn is_later(self) -> bool {
        matches!(self, Self::Later { .. })
    }
}

/// Why a packet has no valid [`IpHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpError {
    /// The capture ends within the header.
    Truncated,
    /// The version field differs from the protocol of the link layer.
    Version(u8),
    /// The header length is below the minimum or above the packet length.
    HeaderLength(usize),
}

/// Parses the IPv4 header at the start of `packet`, for which the frame on the wire has `available_bytes`.
#[expect(
    clippy::inline_always,
    reason = "a result in memory costs a stall per packet"
)]
#[inline(always)]
pub(crate) fn parse_v4(packet: &[u8], available_bytes: u32) -> Result<IpHeader, IpError> {
    let Some(fixed) = packet.first_chunk::<20>() else {
        return Err(IpError::Truncated);
    };
    if fixed[0] >> 4 != 4 {
        return Err(IpError::Version(fixed[0] >> 4));
    }
    let header_bytes = usize::from(fixed[0] & 0xf) * 4;
    let total = u32::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let ip_bytes = if total == 0 { available_bytes } else { total };
    if header_bytes < 20 || header_bytes as u32 > ip_bytes {
        return Err(IpError::HeaderLength(header_bytes));
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    let id = u16::from_be_bytes([fixed[4], fixed[5]]);
    let mut fragment = Fragment::of(fragment & 0x1fff, fragment & 0x2000 != 0, u32::from(id));
    let (header_bytes, protocol) = match fixed[9] {
        protocol::AUTHENTICATION if !fragment.is_later() => {
            let (end, next) = skip_authentication(packet, header_bytes, ip_bytes)?;
            if let Fragment::First {
                header_bytes: skipped,
                ..
            } = &mut fragment
            {
                *skipped =
                    u16::try_from(end - header_bytes).map_err(|_| IpError::HeaderLength(end))?;
            }
            (end, next)
        }
        other => (header_bytes, other),
    };
    let src: [u8; 4] = [fixed[12], fixed[13], fixed[14], fixed[15]];
    let dst: [u8; 4] = [fixed[16], fixed[17], fixed[18], fixed[19]];
    Ok(IpHeader {
        src: IpAddr::V4(Ipv4Addr::from(src)),
        dst: IpAddr::V4(Ipv4Addr::from(dst)),
        ip_id: Some(id),
        ttl: fixed[8],
        dscp_ecn: fixed[1],
        ip_bytes,
        length_zero: total == 0,
        header_bytes,
        protocol,
        fragment,
    })
}

/// Skips the authentication header (RFC 4302 §2) at `at`. Returns the offset and protocol of what follows.
#[cold]
fn skip_authentication(packet: &[u8], at: usize, ip_bytes: u32) -> Result<(usize, u8), IpError> {
    let &[next, words, ..] = packet.get(at..).unwrap_or_default() else {
        return Err(IpError::Truncated);
    };
    let header_bytes = at + (usize::from(words) + 2) * 4;
    if header_bytes as u32 > ip_bytes {
        return Err(IpError::HeaderLength(header_bytes));
    }
    Ok((header_bytes, next))
}

const V6_FIXED_BYTES: usize = 40;

/// Parses the IPv6 header and the extension headers at the start of `packet`; see [`parse_v4`].
pub(crate) fn parse_v6(packet: &[u8], available_bytes: u32) -> Result<IpHeader, IpError> {
    let Some(fixed) = packet.first_chunk::<V6_FIXED_BYTES>() else {
        return Err(IpError::Truncated);
    };
    if fixed[0] >> 4 != 6 {
        return Err(IpError::Version(fixed[0] >> 4));
    }
    let chain = walk_extension_headers(packet, fixed[6])?;
    let length = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let length = if length == 0 {
        chain.jumbo_bytes.unwrap_or(0)
    } else {
        length
    };
    let ip_bytes = match length {
        0 => available_bytes,
        _ => length.saturating_add(V6_FIXED_BYTES as u32),
    };
    if chain.header_bytes as u32 > ip_bytes {
        return Err(IpError::HeaderLength(chain.header_bytes));
    }
    Ok(IpHeader {
        src: IpAddr::V6(v6_address(packet, 8)?),
        dst: IpAddr::V6(v6_address(packet, 24)?),
        ip_id: None,
        ttl: fixed[7],
        dscp_ecn: (fixed[0] << 4) | (fixed[1] >> 4),
        ip_bytes,
        length_zero: length == 0,
        header_bytes: chain.header_bytes,
        protocol: chain.protocol,
        fragment: chain.fragment,
    })
}

fn v6_address(packet: &[u8], at: usize) -> Result<Ipv6Addr, IpError> {
    let octets: Option<&[u8; 16]> = packet.get(at..).and_then(|rest| rest.first_chunk());
    octets.map(|o| Ipv6Addr::from(*o)).ok_or(IpError::Truncated)
}

/// The result of walking the extension headers.
struct ExtensionChain {
    header_bytes: usize,
    protocol: u8,
    fragment: Fragment,
    jumbo_bytes: Option<u32>,
}

/// Extension headers (RFC 8200 §4, RFC 4302 §2, RFC 6275 §6.1, RFC 7401 §5.1, RFC 5533 §5.1).
mod next_header {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const AUTHENTICATION: u8 = 51;
    pub const DESTINATION: u8 = 60;
    pub const MOBILITY: u8 = 135;
    pub const HIP: u8 = 139;
    pub const SHIM6: u8 = 140;
}

/// Whether a later fragment may be one of a packet of another protocol than it names, which its first fragment shows.
pub(crate) fn hides_protocol(ip: &IpHeader) -> bool {
    if ip.src.is_ipv4() {
        return ip.protocol == protocol::AUTHENTICATION;
    }
    matches!(
        ip.protocol,
        next_header::HOP_BY_HOP
            | next_header::ROUTING
            | next_header::FRAGMENT
            | next_header::AUTHENTICATION
            | next_header::DESTINATION
            | next_header::MOBILITY
            | next_header::HIP
            | next_header::SHIM6
    )
}

/// Walks the chain of extension headers that follows the fixed header.
fn walk_extension_headers(packet: &[u8], first: u8) -> Result<ExtensionChain, IpError> {
    let mut chain = ExtensionChain {
        header_bytes: V6_FIXED_BYTES,
        protocol: first,
        fragment: Fragment::None,
        jumbo_bytes: None,
    };
    let mut fragmented_at = 0;
    loop {
        let at = chain.header_bytes;
        let extension_length = |unit: usize, extra: usize| -> Result<usize, IpError> {
            let units = packet.get(at + 1).ok_or(IpError::Truncated)?;
            Ok((usize::from(*units) + extra) * unit)
        };
        let length = match chain.protocol {
            next_header::HOP_BY_HOP
            | next_header::ROUTING
            | next_header::DESTINATION
            | next_header::MOBILITY
            | next_header::HIP
            | next_header::SHIM6 => extension_length(8, 1)?,
            next_header::AUTHENTICATION => extension_length(4, 2)?,
            next_header::FRAGMENT => {
                let field = be16(packet, at + 2).ok_or(IpError::Truncated)?;
                let id = be32(packet, at + 4).ok_or(IpError::Truncated)?;
                chain.fragment = Fragment::of(field >> 3, field & 1 == 1, id);
                8
            }
            _ => {
                if let Fragment::First { header_bytes, .. } = &mut chain.fragment {
                    // More than a packet can hold: a first fragment is no jumbogram (RFC 2675 §3).
                    *header_bytes = u16::try_from(chain.header_bytes - fragmented_at)
                        .map_err(|_| IpError::HeaderLength(chain.header_bytes))?;
                }
                return Ok(chain);
            }
        };
        if chain.protocol == next_header::HOP_BY_HOP {
            chain.jumbo_bytes =
                jumbo_payload_length(packet.get(at..at + length).unwrap_or_default());
        }
        if chain.protocol == next_header::FRAGMENT {
            fragmented_at = chain.header_bytes + length;
        }
        chain.header_bytes += length;
        chain.protocol = *packet.get(at).ok_or(IpError::Truncated)?;
        if chain.fragment.is_later() {
            return Ok(chain);
        }
    }
}

/// The jumbo payload option of a hop-by-hop header (RFC 2675 §2), which gives the length if the length field is 0.
/// Linux sets it in packets that await segmentation (BIG TCP).
fn jumbo_payload_length(header: &[u8]) -> Option<u32> {
    let mut at = 2;
    loop {
        match *header.get(at)? {
            0 => at += 1,
            0xc2 => return be32(header, at + 2),
            _ => at += 2 + usize::from(*header.get(at + 1)?),
        }
    }
}
