//! A segment back into a capture: the way that [`Reader`](crate::Reader) goes, backwards. One format alone: pcap with
//! nanoseconds, Ethernet, IPv4, and of each packet the headers; the payload counts as zeros in the checksum.
//!
//! Knows nothing of files or connections. Formats: draft-ietf-opsawg-pcap §4 and §5, RFC 791 §3.1, RFC 9293 §3.1.

use std::net::{IpAddr, Ipv4Addr};

use crate::ip::protocol;
use crate::segment::{Segment, TcpOptions};

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
/// Both header lengths are told in 4 bits of 4 octets: 60 octets (RFC 791 §3.1, RFC 9293 §3.1).
const MOST_OPTION_BYTES: usize = 40;
/// More a record never keeps.
const SNAPLEN_BYTES: usize = ETHERNET_BYTES + IP_BYTES + TCP_BYTES + 2 * MOST_OPTION_BYTES;
/// No operation: option 1 of IP and of TCP.
const NOP: u8 = 1;
const DONT_FRAGMENT: u16 = 0x4000;
const ETHERTYPE_IPV4: u16 = 0x0800;

/// Why a segment cannot stand in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// Its addresses are not IPv4.
    NotIpv4,
    /// Its time is before 1970 or, in seconds, more than 32 bits.
    Time,
    /// Its headers cannot have this length with its options: too short, too long, or no multiple of 4.
    HeaderLength {
        /// Length of IP and TCP header that it claims.
        header_bytes: i64,
        /// Length that they have at least.
        least_bytes: u32,
    },
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotIpv4 => write!(f, "its addresses are not IPv4"),
            Self::Time => write!(f, "its time does not fit a capture (1970 to 2106)"),
            Self::HeaderLength {
                header_bytes,
                least_bytes,
            } => write!(
                f,
                "its headers cannot be {header_bytes} B: with its options they have at least {least_bytes} B and at \
                 most {} B, in steps of 4 B",
                IP_BYTES + TCP_BYTES + 2 * MOST_OPTION_BYTES
            ),
        }
    }
}

impl std::error::Error for EncodeError {}

/// What a capture begins with.
pub fn capture_header() -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    out.extend(0xa1b2_3c4d_u32.to_le_bytes());
    out.extend([2, 0, 4, 0]);
    for field in [0, 0, SNAPLEN_BYTES as u32, 1] {
        out.extend(field.to_le_bytes());
    }
    out
}

/// Adds the record of `segment` to `out`: its headers, with the lengths that it says. Nothing is added on an error.
///
/// Headers longer than the options need are filled with no-operations, those of TCP first. `record`, `frame_bytes`
/// and `captured_bytes` are not read: the first is the place in the capture, the others follow from `ip_bytes`.
///
/// # Errors
/// [`EncodeError`] says why it cannot stand in a capture.
pub fn encode_record(segment: &Segment, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (segment.src, segment.dst) else {
        return Err(EncodeError::NotIpv4);
    };
    let seconds = u32::try_from(segment.t_ns.div_euclid(1_000_000_000));
    let seconds = seconds.map_err(|_| EncodeError::Time)?;
    let fraction = segment.t_ns.rem_euclid(1_000_000_000) as u32;
    let mut options = encode_options(&segment.options);
    let ip_option_bytes = fill(segment, &mut options)?;

    let kept = ETHERNET_BYTES + IP_BYTES + ip_option_bytes + TCP_BYTES + options.len();
    for field in [
        seconds,
        fraction,
        kept as u32,
        segment.ip_bytes + ETHERNET_BYTES as u32,
    ] {
        out.extend(field.to_le_bytes());
    }
    for host in [dst, src] {
        // Locally administered: what no manufacturer gave.
        out.extend([2, 0]);
        out.extend(host.octets());
    }
    out.extend(ETHERTYPE_IPV4.to_be_bytes());
    encode_ip(segment, [src, dst], ip_option_bytes, out);
    encode_tcp(segment, [src, dst], &options, out);
    Ok(())
}

/// Lengthens `options` to what the headers have besides; returns what is left for the IP header.
fn fill(segment: &Segment, options: &mut Vec<u8>) -> Result<usize, EncodeError> {
    let least_bytes = IP_BYTES + TCP_BYTES + options.len();
    let header_bytes = i64::from(segment.ip_bytes) - i64::from(segment.payload_bytes);
    let refused = EncodeError::HeaderLength {
        header_bytes,
        least_bytes: least_bytes as u32,
    };
    let spare = usize::try_from(header_bytes - least_bytes as i64).map_err(|_| refused)?;
    let in_tcp = spare.min(MOST_OPTION_BYTES.saturating_sub(options.len()));
    let fits = spare % 4 == 0
        && options.len() + in_tcp <= MOST_OPTION_BYTES
        && spare - in_tcp <= MOST_OPTION_BYTES
        && u16::try_from(segment.ip_bytes).is_ok();
    if !fits {
        return Err(refused);
    }
    options.resize(options.len() + in_tcp, NOP);
    Ok(spare - in_tcp)
}

fn encode_ip(segment: &Segment, ends: [Ipv4Addr; 2], option_bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0x40 | ((IP_BYTES + option_bytes) / 4) as u8);
    out.push(segment.dscp_ecn);
    out.extend((segment.ip_bytes as u16).to_be_bytes());
    out.extend(segment.ip_id.unwrap_or(0).to_be_bytes());
    out.extend(DONT_FRAGMENT.to_be_bytes());
    out.extend([segment.ttl, protocol::TCP, 0, 0]);
    out.extend(ends.iter().flat_map(Ipv4Addr::octets));
    out.resize(start + IP_BYTES + option_bytes, NOP);
    let checksum = ones_complement(sum(&out[start..]));
    out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
}

fn encode_tcp(segment: &Segment, ends: [Ipv4Addr; 2], options: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(segment.src_port.to_be_bytes());
    out.extend(segment.dst_port.to_be_bytes());
    out.extend(segment.seq.to_be_bytes());
    out.extend(segment.ack.to_be_bytes());
    let header_bytes = TCP_BYTES + options.len();
    out.push(((header_bytes / 4) << 4) as u8 | (segment.flags >> 8) as u8 & 0xF);
    out.push(segment.flags as u8);
    out.extend(segment.window.to_be_bytes());
    out.extend([0, 0, 0, 0]);
    out.extend(options);
    // RFC 9293 §3.1: the pseudo-header counts; zeros of payload do not.
    let pseudo = sum(&ends[0].octets())
        + sum(&ends[1].octets())
        + u32::from(protocol::TCP)
        + (header_bytes as u32 + segment.payload_bytes);
    let checksum = ones_complement(pseudo + sum(&out[start..]));
    out[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
}

/// The options in Linux's order and padding, each group a multiple of 4 octets (RFC 7323 appendix A).
fn encode_options(options: &TcpOptions) -> Vec<u8> {
    let mut out = Vec::with_capacity(MOST_OPTION_BYTES);
    if let Some(mss) = options.mss {
        out.extend([2, 4]);
        out.extend(mss.to_be_bytes());
    }
    let padding = [NOP, NOP];
    match (options.sack_permitted, options.timestamps) {
        (true, Some(_)) => out.extend([4, 2]),
        (true, None) => out.extend([NOP, NOP, 4, 2]),
        (false, Some(_)) => out.extend(padding),
        (false, None) => {}
    }
    if let Some((value, echo)) = options.timestamps {
        out.extend([8, 10]);
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    if let Some(shift) = options.wscale {
        out.extend([NOP, 3, 3, shift]);
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        out.extend(padding);
        out.extend([5, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            out.extend(left.to_be_bytes());
            out.extend(right.to_be_bytes());
        }
    }
    out
}

/// Sum of the 16-bit words of an even number of octets.
fn sum(octets: &[u8]) -> u32 {
    octets
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum()
}

/// RFC 1071 §4.1: carries folded in, then the complement.
fn ones_complement(mut sum: u32) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}
