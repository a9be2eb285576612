//! The Internet checksum (RFC 1071), and what the checksums of a captured packet show.

use std::net::IpAddr;

use crate::ip::{IpHeader, protocol};

/// What a checksum shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Checksum {
    /// It was not verified: the capture does not hold all octets that it covers.
    #[default]
    NotChecked,
    /// It is right.
    Good,
    /// It is wrong.
    Bad,
    /// It is not filled in yet: the field is 0 or the sum of the pseudo-header, and the interface will complete it. The
    /// host that sent the packet captured it, or a host with which it shares its memory.
    Offload,
}

impl Checksum {
    /// Names of all values, in the order of the schema.
    pub const NAMES: &'static [&'static str] = &["not_checked", "good", "bad", "offload"];

    /// Index of this value in [`Self::NAMES`].
    pub const fn index(self) -> i8 {
        self as i8
    }
}

/// Sum of the 16-bit words of `octets`, with its carries folded in: at most 16 bits.
///
/// RFC 1071 §2: the sum of wider words is the same, and so is that in the other byte order, with its octets swapped.
pub(crate) fn word_sum(octets: &[u8]) -> u32 {
    let words = octets.chunks_exact(4);
    let rest = words.remainder();
    let mut sum: u64 = words
        .filter_map(|word| word.first_chunk())
        .map(|word| u64::from(u32::from_le_bytes(*word)))
        .sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum += u64::from(u32::from_le_bytes(last));
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    u32::from((sum as u16).swap_bytes())
}

/// The ones' complement of `sum` with its carries folded in (RFC 1071 §4.1).
pub(crate) fn checksum(sum: u32) -> u16 {
    !folded(sum)
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// Sum of the addresses and the protocol, which the checksum of TCP covers, without the length (RFC 9293 §3.1).
fn pseudo_header(src: IpAddr, dst: IpAddr) -> u32 {
    let address = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => word_sum(&v4.octets()),
        IpAddr::V6(v6) => word_sum(&v6.octets()),
    };
    address(src) + address(dst) + u32::from(protocol::TCP)
}

/// Whether the checksum of a TCP segment is right (RFC 9293 §3.1).
pub(crate) fn tcp_is_valid(src: IpAddr, dst: IpAddr, segment: &[u8]) -> bool {
    let Ok(length) = u16::try_from(segment.len()) else {
        return false;
    };
    checksum(pseudo_header(src, dst) + u32::from(length) + word_sum(segment)) == 0
}

/// Whether an IPv4 header is whole, and its checksum right.
pub(crate) fn ipv4_header_is_valid(packet: &[u8]) -> bool {
    let header_bytes = packet
        .first()
        .map_or(0, |first| usize::from(first & 0xf) * 4);
    packet.get(..header_bytes).is_some_and(|header| {
        header_bytes >= 20 && header[0] >> 4 == 4 && checksum(word_sum(header)) == 0
    })
}

/// Offset of the checksum in an IPv4 and in a TCP header.
const IP_FIELD: usize = 10;
const TCP_FIELD: usize = 16;

/// The checksum of the IPv4 header at the start of `packet`; IPv6 has none.
#[inline]
pub(crate) fn of_ip(packet: &[u8], ip: &IpHeader) -> Checksum {
    if ip.ip_id.is_none() {
        return Checksum::NotChecked;
    }
    let header_bytes = packet
        .first()
        .map_or(0, |first| usize::from(first & 0xf) * 4);
    match packet.get(..header_bytes) {
        Some(header) if checksum(word_sum(header)) == 0 => Checksum::Good,
        Some(header) if header.get(IP_FIELD..IP_FIELD + 2) == Some(&[0, 0]) => Checksum::Offload,
        Some(_) => Checksum::Bad,
        None => Checksum::NotChecked,
    }
}

/// The checksum of the TCP segment in `packet`, if the capture holds all of it.
///
/// A packet with IP options or extension headers is not checked: a source route changes the destination.
#[inline]
pub(crate) fn of_tcp(packet: &[u8], ip: &IpHeader) -> Checksum {
    let plain_bytes = if ip.src.is_ipv4() { 20 } else { 40 };
    let segment = packet.get(ip.header_bytes..ip.ip_bytes as usize);
    let (Some(segment), true) = (segment, ip.header_bytes == plain_bytes) else {
        return Checksum::NotChecked;
    };
    let Ok(length) = u32::try_from(segment.len()) else {
        return Checksum::NotChecked;
    };
    let addresses = pseudo_header(ip.src, ip.dst);
    let length = folded(length);
    if checksum(addresses + u32::from(length) + word_sum(segment)) == 0 {
        return Checksum::Good;
    }
    let field = segment.get(TCP_FIELD..TCP_FIELD + 2);
    let found = field.map_or(0, word_sum);
    // Large segments to be cut by the interface may have a length of 0 in the pseudo-header.
    let sums = [0, folded(addresses + u32::from(length)), folded(addresses)];
    if sums.iter().any(|&sum| u32::from(sum) == found) {
        Checksum::Offload
    } else {
        Checksum::Bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_the_example_in_the_specification() {
        // RFC 1071 §3: the octets 00 01 f2 03 f4 f5 f6 f7 sum up to ddf2.
        let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(word_sum(&octets), 0xddf2);
        assert_eq!(checksum(word_sum(&octets)), !0xddf2);
    }

    #[test]
    fn sums_agree_with_those_of_single_words() {
        let octets: Vec<u8> = (0..1461_u32).map(|n| (n * 37 + 11) as u8).collect();
        for length in [0, 1, 2, 3, 4, 5, 7, 1459, 1460, 1461] {
            let by_word: u32 = octets[..length]
                .chunks(2)
                .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
                .sum();
            assert_eq!(checksum(word_sum(&octets[..length])), checksum(by_word));
        }
    }
}
