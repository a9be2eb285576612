//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

use crate::ip::protocol;

/// Sum of the 16-bit words of `octets`, of at most 64 KiB.
pub(crate) fn word_sum(octets: &[u8]) -> u32 {
    octets
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum()
}

/// The ones' complement of `sum` with its carries folded in (RFC 1071 §4.1).
pub(crate) fn checksum(mut sum: u32) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// Whether the checksum of a TCP segment is right (RFC 9293 §3.1).
pub(crate) fn tcp_is_valid(src: IpAddr, dst: IpAddr, segment: &[u8]) -> bool {
    let address = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => word_sum(&v4.octets()),
        IpAddr::V6(v6) => word_sum(&v6.octets()),
    };
    let Ok(length) = u16::try_from(segment.len()) else {
        return false;
    };
    let pseudo_header = address(src) + address(dst) + u32::from(protocol::TCP) + u32::from(length);
    // The sum of the words fits into 32 bits with space for that of the pseudo-header.
    checksum(pseudo_header + word_sum(segment)) == 0
}
