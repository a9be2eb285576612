//! Encoder: segments to frames and to pcap records, the inverse of [`Reader`](crate::Reader).
//!
//! A frame is Ethernet and IP and holds only the headers of its packet; the checksum takes the payload as zeros.
//! Formats: draft-ietf-opsawg-pcap §4 and §5, RFC 791 §3.1, RFC 8200 §3, RFC 9293 §3.1. Read `encode_pcapng.rs` for pcapng.

use std::net::IpAddr;

use crate::checksum::{checksum, word_sum};
use crate::ip::protocol;
use crate::segment::{Segment, TcpOptions};

pub(crate) const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;
/// IHL and data offset count words of 4 octets in 4 bits: at most 60 octets per header (RFC 791 §3.1, RFC 9293 §3.1).
const MAX_OPTION_BYTES: usize = 40;
/// Longest record of a pcap file: the engine sends IPv4.
const SNAPLEN_BYTES: usize = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES + 2 * MAX_OPTION_BYTES;
/// The no-operation option, which has the same number in IP and TCP.
const NOP: u8 = 1;
/// Destination options of IPv6 (RFC 8200 §4.6), and the option that pads them (§4.2).
const DESTINATION_OPTIONS: u8 = 60;
const PAD_N: u8 = 1;
/// Longest extension header whose length fits into one octet, in units of 8 octets (RFC 8200 §4.6).
const MAX_EXTENSION_BYTES: usize = 256;
const DONT_FRAGMENT: u16 = 0x4000;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;

/// Why a segment cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// One address is IPv4, the other IPv6.
    MixedVersions,
    /// The time is before 1970 or does not fit into 32 bits of seconds.
    Time,
    /// The headers cannot have this length: it is too short for the options, too long, or not a multiple of 4.
    HeaderLength {
        /// `ip_bytes` less `payload_bytes`.
        header_bytes: i64,
        /// Minimum length of both headers with the options of the segment.
        min_bytes: u32,
        /// Maximum length of both headers.
        max_bytes: u32,
    },
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MixedVersions => write!(f, "one of its addresses is IPv4, the other IPv6"),
            Self::Time => write!(
                f,
                "its time is outside the range of a capture (1970 to 2106)"
            ),
            Self::HeaderLength {
                header_bytes,
                min_bytes,
                max_bytes,
            } => write!(
                f,
                "its headers cannot be {header_bytes} B: they need {min_bytes} to {max_bytes} B, in steps of 4 B"
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
/// is unchanged. See [`encode_frame`].
///
/// # Errors
/// [`EncodeError`] if a capture cannot represent the segment.
pub fn encode_record(segment: &Segment, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let seconds = u32::try_from(segment.t_ns.div_euclid(1_000_000_000));
    let seconds = seconds.map_err(|_| EncodeError::Time)?;
    let fraction = segment.t_ns.rem_euclid(1_000_000_000) as u32;
    let start = out.len();
    for field in [
        seconds,
        fraction,
        0,
        segment.ip_bytes + ETHERNET_BYTES as u32,
    ] {
        out.extend(field.to_le_bytes());
    }
    match encode_frame(segment, &[], out) {
        Ok(captured_bytes) => {
            out[start + 8..start + 12].copy_from_slice(&(captured_bytes as u32).to_le_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// Appends the Ethernet frame of `segment` to `out`, headers alone, and returns its length. On an error, `out` is
/// unchanged.
///
/// `others` are further TCP options as on the wire. If the headers are longer than the options, no-operation options pad
/// them, the TCP header first. Hosts have locally administered addresses of Ethernet with octets of their IP address.
/// `record`, `frame_bytes` and `captured_bytes` are ignored. Without an `ip_id` that of IPv4 is 0. A packet of more than
/// 65,535 octets has IP length 0, as where the sender's interface cuts it (TSO).
///
/// # Errors
/// [`EncodeError`] if a frame cannot represent the segment.
pub fn encode_frame(
    segment: &Segment,
    others: &[u8],
    out: &mut Vec<u8>,
) -> Result<usize, EncodeError> {
    let start = out.len();
    let (ip_bytes, ethertype, hosts) = match (segment.src, segment.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            (IPV4_BYTES, ETHERTYPE_IPV4, [dst.octets(), src.octets()])
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let low = |address: [u8; 16]| [address[12], address[13], address[14], address[15]];
            let hosts = [low(dst.octets()), low(src.octets())];
            (IPV6_BYTES, ETHERTYPE_IPV6, hosts)
        }
        _ => return Err(EncodeError::MixedVersions),
    };
    let (options, extension_bytes) = fit_options(segment, others, ip_bytes)?;
    for host in hosts {
        // A locally administered address (IEEE 802).
        out.extend([2, 0]);
        out.extend(host);
    }
    out.extend(ethertype.to_be_bytes());
    let pseudo_header = match (segment.src, segment.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let addresses = [src.octets(), dst.octets()].concat();
            encode_ipv4(segment, &addresses, extension_bytes, out);
            word_sum(&addresses)
        }
        (src, dst) => {
            let octets = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            let addresses = [octets(src), octets(dst)].concat();
            encode_ipv6(segment, &addresses, extension_bytes, out);
            word_sum(&addresses)
        }
    };
    encode_tcp(segment, pseudo_header, &options, out);
    Ok(out.len() - start)
}

/// The TCP options, padded to the header length of `segment`, and the length of what is left for options of the IP
/// header of `ip_bytes`.
fn fit_options(
    segment: &Segment,
    others: &[u8],
    ip_bytes: usize,
) -> Result<(Vec<u8>, usize), EncodeError> {
    let header_bytes = i64::from(segment.ip_bytes) - i64::from(segment.payload_bytes);
    let space = header_bytes - (ip_bytes + TCP_BYTES) as i64;
    let mut options = encode_options(&segment.options, true);
    options.extend(others);
    if usize::try_from(space).is_ok_and(|space| space < options.len())
        || options.len() > MAX_OPTION_BYTES
    {
        options = encode_options(&segment.options, false);
        options.extend(others);
    }
    options.resize(options.len().next_multiple_of(4), NOP);
    let (step, max_extension_bytes) = match ip_bytes {
        IPV4_BYTES => (4, MAX_OPTION_BYTES),
        _ => (8, MAX_EXTENSION_BYTES),
    };
    let error = EncodeError::HeaderLength {
        header_bytes,
        min_bytes: (ip_bytes + TCP_BYTES + options.len()) as u32,
        max_bytes: (ip_bytes + TCP_BYTES + MAX_OPTION_BYTES + max_extension_bytes) as u32,
    };
    let padding = usize::try_from(space - options.len() as i64).map_err(|_| error)?;
    let free = MAX_OPTION_BYTES.checked_sub(options.len()).ok_or(error)?;
    let extension_bytes = padding.saturating_sub(free).next_multiple_of(step);
    let tcp_padding = padding.checked_sub(extension_bytes).ok_or(error)?;
    if padding % 4 != 0 || extension_bytes > max_extension_bytes {
        return Err(error);
    }
    options.resize(options.len() + tcp_padding, NOP);
    Ok((options, extension_bytes))
}

fn encode_ipv4(segment: &Segment, addresses: &[u8], option_bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let length = u16::try_from(segment.ip_bytes).unwrap_or(0);
    out.push(0x40 | ((IPV4_BYTES + option_bytes) / 4) as u8);
    out.push(segment.dscp_ecn);
    out.extend(length.to_be_bytes());
    out.extend(segment.ip_id.unwrap_or(0).to_be_bytes());
    out.extend(DONT_FRAGMENT.to_be_bytes());
    out.extend([segment.ttl, protocol::TCP, 0, 0]);
    out.extend(addresses);
    out.resize(start + IPV4_BYTES + option_bytes, NOP);
    let checksum = checksum(word_sum(&out[start..]));
    out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// `extension_bytes` is 0 or the length of a header of destination options that only pads, a multiple of 8.
fn encode_ipv6(segment: &Segment, addresses: &[u8], extension_bytes: usize, out: &mut Vec<u8>) {
    let length = segment.ip_bytes.saturating_sub(IPV6_BYTES as u32);
    let length = u16::try_from(length).unwrap_or(0);
    out.extend([0x60 | segment.dscp_ecn >> 4, segment.dscp_ecn << 4, 0, 0]);
    out.extend(length.to_be_bytes());
    let next = if extension_bytes == 0 {
        protocol::TCP
    } else {
        DESTINATION_OPTIONS
    };
    out.extend([next, segment.ttl]);
    out.extend(addresses);
    if extension_bytes > 0 {
        let start = out.len();
        out.extend([protocol::TCP, (extension_bytes / 8 - 1) as u8]);
        out.extend([PAD_N, (extension_bytes - 4) as u8]);
        out.resize(start + extension_bytes, 0);
    }
}

/// `addresses` is their sum, for the checksum.
fn encode_tcp(segment: &Segment, addresses: u32, options: &[u8], out: &mut Vec<u8>) {
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
    let length = header_bytes as u32 + segment.payload_bytes;
    let pseudo_header = addresses + u32::from(protocol::TCP) + (length >> 16) + (length & 0xFFFF);
    let checksum = checksum(pseudo_header + word_sum(&out[start..]));
    out[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
}

/// Encodes the options in the order of Linux; if `aligned`, with its padding to groups of 4 octets (RFC 7323 appendix A).
fn encode_options(options: &TcpOptions, aligned: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAX_OPTION_BYTES);
    if let Some(mss) = options.mss {
        out.extend([2, 4]);
        out.extend(mss.to_be_bytes());
    }
    let nops: &[u8] = if aligned { &[NOP, NOP] } else { &[] };
    match (options.sack_permitted, options.timestamps) {
        (true, Some(_)) => out.extend([4, 2]),
        (true, None) => {
            out.extend(nops);
            out.extend([4, 2]);
        }
        (false, Some(_)) => out.extend(nops),
        (false, None) => {}
    }
    if let Some((value, echo)) = options.timestamps {
        out.extend([8, 10]);
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    if let Some(shift) = options.wscale {
        out.extend(&nops[..nops.len() / 2]);
        out.extend([3, 3, shift]);
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
