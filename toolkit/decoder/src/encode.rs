//! Encoder: segments to a capture, the inverse of [`Reader`](crate::Reader).
//!
//! The format is pcap with nanosecond timestamps, Ethernet and IPv4. A record holds only the headers of its packet;
//! the checksum takes the payload as zeros. Formats: draft-ietf-opsawg-pcap §4 and §5, RFC 791 §3.1, RFC 9293 §3.1.

use std::net::{IpAddr, Ipv4Addr};

use crate::checksum::{checksum, word_sum};
use crate::ip::protocol;
use crate::segment::{Segment, TcpOptions};

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
/// IHL and data offset count words of 4 octets in 4 bits: at most 60 octets per header (RFC 791 §3.1, RFC 9293 §3.1).
const MAX_OPTION_BYTES: usize = 40;
/// Longest record that the encoder writes.
const SNAPLEN_BYTES: usize = ETHERNET_BYTES + IP_BYTES + TCP_BYTES + 2 * MAX_OPTION_BYTES;
/// The no-operation option, which has the same number in IP and TCP.
const NOP: u8 = 1;
const DONT_FRAGMENT: u16 = 0x4000;
const ETHERTYPE_IPV4: u16 = 0x0800;

/// Why a segment cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// An address is not IPv4.
    NotIpv4,
    /// The time is before 1970 or does not fit into 32 bits of seconds.
    Time,
    /// The headers cannot have this length: it is too short for the options, too long, or not a multiple of 4.
    HeaderLength {
        /// `ip_bytes` less `payload_bytes`.
        header_bytes: i64,
        /// Minimum length of both headers with the options of the segment.
        min_bytes: u32,
    },
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotIpv4 => write!(f, "its addresses are not IPv4"),
            Self::Time => write!(
                f,
                "its time is outside the range of a capture (1970 to 2106)"
            ),
            Self::HeaderLength {
                header_bytes,
                min_bytes,
            } => write!(
                f,
                "its headers cannot be {header_bytes} B: they need {min_bytes} to {} B, in steps of 4 B",
                IP_BYTES + TCP_BYTES + 2 * MAX_OPTION_BYTES
            ),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Returns the file header of a capture.
pub fn capture_header() -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    out.extend(0xa1b2_3c4d_u32.to_le_bytes());
    out.extend([2, 0, 4, 0]);
    for field in [0, 0, SNAPLEN_BYTES as u32, 1] {
        out.extend(field.to_le_bytes());
    }
    out
}

/// Appends the record of `segment` to `out`: its headers, with the lengths that the segment gives. On an error, `out`
/// is unchanged.
///
/// If the headers are longer than the options, no-operation options pad them, the TCP header first. `record`,
/// `frame_bytes` and `captured_bytes` are ignored: the position in the capture gives the first, `ip_bytes` the others.
///
/// # Errors
/// [`EncodeError`] if a capture cannot represent the segment.
pub fn encode_record(segment: &Segment, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (segment.src, segment.dst) else {
        return Err(EncodeError::NotIpv4);
    };
    let seconds = u32::try_from(segment.t_ns.div_euclid(1_000_000_000));
    let seconds = seconds.map_err(|_| EncodeError::Time)?;
    let fraction = segment.t_ns.rem_euclid(1_000_000_000) as u32;
    let mut options = encode_options(&segment.options);
    let ip_option_bytes = pad_options(segment, &mut options)?;

    let captured_bytes = ETHERNET_BYTES + IP_BYTES + ip_option_bytes + TCP_BYTES + options.len();
    for field in [
        seconds,
        fraction,
        captured_bytes as u32,
        segment.ip_bytes + ETHERNET_BYTES as u32,
    ] {
        out.extend(field.to_le_bytes());
    }
    for host in [dst, src] {
        // A locally administered address (IEEE 802).
        out.extend([2, 0]);
        out.extend(host.octets());
    }
    out.extend(ETHERTYPE_IPV4.to_be_bytes());
    encode_ip(segment, [src, dst], ip_option_bytes, out);
    encode_tcp(segment, [src, dst], &options, out);
    Ok(())
}

/// Pads the TCP `options` to the header length of `segment`. Returns the length of the padding that is left for the
/// IP header.
fn pad_options(segment: &Segment, options: &mut Vec<u8>) -> Result<usize, EncodeError> {
    let min_bytes = IP_BYTES + TCP_BYTES + options.len();
    let header_bytes = i64::from(segment.ip_bytes) - i64::from(segment.payload_bytes);
    let error = EncodeError::HeaderLength {
        header_bytes,
        min_bytes: min_bytes as u32,
    };
    let padding = usize::try_from(header_bytes - min_bytes as i64).map_err(|_| error)?;
    let tcp_padding = padding.min(MAX_OPTION_BYTES.saturating_sub(options.len()));
    let fits = padding % 4 == 0
        && options.len() + tcp_padding <= MAX_OPTION_BYTES
        && padding - tcp_padding <= MAX_OPTION_BYTES
        && u16::try_from(segment.ip_bytes).is_ok();
    if !fits {
        return Err(error);
    }
    options.resize(options.len() + tcp_padding, NOP);
    Ok(padding - tcp_padding)
}

fn encode_ip(segment: &Segment, addresses: [Ipv4Addr; 2], option_bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0x40 | ((IP_BYTES + option_bytes) / 4) as u8);
    out.push(segment.dscp_ecn);
    out.extend((segment.ip_bytes as u16).to_be_bytes());
    out.extend(segment.ip_id.unwrap_or(0).to_be_bytes());
    out.extend(DONT_FRAGMENT.to_be_bytes());
    out.extend([segment.ttl, protocol::TCP, 0, 0]);
    out.extend(addresses.iter().flat_map(Ipv4Addr::octets));
    out.resize(start + IP_BYTES + option_bytes, NOP);
    let checksum = checksum(word_sum(&out[start..]));
    out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
}

fn encode_tcp(segment: &Segment, addresses: [Ipv4Addr; 2], options: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(segment.src_port.to_be_bytes());
    out.extend(segment.dst_port.to_be_bytes());
    out.extend(segment.seq.to_be_bytes());
    out.extend(segment.ack.to_be_bytes());
    let header_bytes = TCP_BYTES + options.len();
    out.push(((header_bytes / 4) << 4) as u8 | (segment.flags >> 8) as u8 & 0xF);
    out.push(segment.flags as u8);
    out.extend(segment.window.to_be_bytes());
    out.extend([0, 0]);
    out.extend(segment.urgent.to_be_bytes());
    out.extend(options);
    // RFC 9293 §3.1: the checksum covers a pseudo-header. A payload of zeros adds nothing.
    let pseudo_header = word_sum(&addresses[0].octets())
        + word_sum(&addresses[1].octets())
        + u32::from(protocol::TCP)
        + (header_bytes as u32 + segment.payload_bytes);
    let checksum = checksum(pseudo_header + word_sum(&out[start..]));
    out[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
}

/// Encodes the options in the order and with the padding of Linux: groups of 4 octets (RFC 7323 appendix A).
fn encode_options(options: &TcpOptions) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAX_OPTION_BYTES);
    if let Some(mss) = options.mss {
        out.extend([2, 4]);
        out.extend(mss.to_be_bytes());
    }
    let nops = [NOP, NOP];
    match (options.sack_permitted, options.timestamps) {
        (true, Some(_)) => out.extend([4, 2]),
        (true, None) => out.extend([NOP, NOP, 4, 2]),
        (false, Some(_)) => out.extend(nops),
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
        out.extend(nops);
        out.extend([5, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            out.extend(left.to_be_bytes());
            out.extend(right.to_be_bytes());
        }
    }
    out
}
