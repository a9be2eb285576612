//! ESP without encryption (RFC 4303, RFC 2410; with AES-GMAC: RFC 4543).
//!
//! The header does not say whether a packet is encrypted (RFC 5879). It is read if a trailer fits whose content proves
//! itself: the checksum of TCP or of the inner IPv4 header, or the length of the inner IPv6 packet.

use crate::checksum::{ipv4_header_is_valid, tcp_is_valid};
use crate::ip::{IpHeader, protocol};
use crate::link::{Network, PacketEnd};
use crate::octets::be16;

/// Security parameters index and sequence number.
const HEADER_BYTES: usize = 8;
/// Lengths of the initialisation vector: none, or that of AES-GMAC.
const IV_BYTES: [usize; 2] = [0, 8];
/// Lengths of the integrity check value: HMAC with 96 bits, AES-GMAC and SHA-256, none, and the longer ones.
const CHECK_BYTES: [usize; 5] = [12, 16, 0, 24, 32];

/// The content of a packet that is not encrypted.
pub(crate) enum Clear {
    /// A TCP segment that starts and ends at these offsets of the frame.
    Tcp(usize, usize),
    /// An IP packet.
    Packet(Network),
}

/// The content of the ESP packet that starts at `at` of `frame` and ends at `end`; `None` if it seems encrypted.
pub(crate) fn open(frame: &[u8], at: usize, end: PacketEnd, ip: &IpHeader) -> Option<Clear> {
    let has_trailer = !end.continues;
    let candidates = IV_BYTES.into_iter().filter(|_| has_trailer).flat_map(|iv| {
        let start = at + HEADER_BYTES + iv;
        CHECK_BYTES.into_iter().map(move |check| (start, check))
    });
    for (start, check_bytes) in candidates {
        if let Some(clear) = open_with(frame, start, end.at.checked_sub(check_bytes)?, ip) {
            return Some(clear);
        }
    }
    // The trailer was not captured, or is in another fragment: a whole IPv4 header is confirmed by its checksum.
    let start = at + HEADER_BYTES;
    ((frame.len() < end.at || end.continues) && ipv4_header_is_valid(frame.get(start..)?))
        .then_some(Clear::Packet(Network::Ipv4(start)))
}

/// The content from `start` to the trailer that ends at `end`.
fn open_with(frame: &[u8], start: usize, end: usize, ip: &IpHeader) -> Option<Clear> {
    let &[padding_bytes, next] = frame.get(end.checked_sub(2)?..end)?.first_chunk()?;
    let content_end = (end - 2).checked_sub(usize::from(padding_bytes))?;
    let padding = frame.get(content_end..end - 2)?;
    // RFC 4303 §2.4: the padding counts from 1.
    let counts = padding
        .iter()
        .zip(1..)
        .all(|(&octet, count)| octet == count);
    let content = frame.get(start..content_end).filter(|_| counts)?;
    match next {
        protocol::TCP if content.len() >= 20 && tcp_is_valid(ip.src, ip.dst, content) => {
            Some(Clear::Tcp(start, content_end))
        }
        protocol::IPV4
            if ipv4_header_is_valid(content)
                && be16(content, 2) == u16::try_from(content.len()).ok() =>
        {
            Some(Clear::Packet(Network::Ipv4(start)))
        }
        protocol::IPV6
            if content.first()? >> 4 == 6
                && be16(content, 4).map(|length| usize::from(length) + 40)
                    == Some(content.len()) =>
        {
            Some(Clear::Packet(Network::Ipv6(start)))
        }
        _ => None,
    }
}
