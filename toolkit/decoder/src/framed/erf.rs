//! The extensible record format (ERF) of Endace cards: a file of records without a file header, and a link type of pcap.
//!
//! Source: Endace, ERF Types Reference Guide (EDM11-01).

use crate::framed::{Header, Layout};
use crate::link::{self, LinkType, Network};
use crate::octets::be16;
use crate::skipped::Skipped;

/// Record header: timestamp, type, flags, record length, loss counter or colour, wire length.
const HEADER_BYTES: usize = 16;
/// Bit of the type, and of the first octet of each extension header: another extension header follows.
const EXTENSION: u8 = 0x80;
const EXTENSION_BYTES: usize = 8;
/// An offset and a padding octet precede an Ethernet frame.
const ETHERNET_PAD_BYTES: usize = 2;

const META: u8 = 27;
const PAD: u8 = 48;
/// Types in which a colour or hash takes the place of the loss counter.
const COLOURED: [u8; 7] = [10, 11, 15, 16, 17, 19, 20];

/// What a record holds.
enum Content {
    Ethernet,
    /// PPP or Cisco HDLC, which the first octets tell apart.
    Hdlc,
    Ip,
    /// No packet.
    Nothing,
    Unread,
}

fn content(kind: u8) -> Content {
    match kind {
        2 | 11 | 16 | 20 => Content::Ethernet,
        1 | 10 | 15 | 19 => Content::Hdlc,
        22 | 23 => Content::Ip,
        META | PAD => Content::Nothing,
        _ => Content::Unread,
    }
}

/// Maximum number of extension headers of a record; Wireshark has the same limit.
const MAX_EXTENSIONS: usize = 16;

/// The type of a record, and where its frame starts: beyond its end if it has too many extension headers.
fn locate(record: &[u8]) -> Option<(u8, usize)> {
    let kind = record.get(8)?;
    let mut at = HEADER_BYTES;
    let mut more = kind & EXTENSION != 0;
    while more {
        if at == HEADER_BYTES + MAX_EXTENSIONS * EXTENSION_BYTES {
            at = record.len() + 1;
            break;
        }
        more = record.get(at)? & EXTENSION != 0;
        at += EXTENSION_BYTES;
    }
    let kind = kind & !EXTENSION;
    if matches!(content(kind), Content::Ethernet) {
        at += ETHERNET_PAD_BYTES;
    }
    Some((kind, at))
}

fn hdlc_link(frame: &[u8]) -> LinkType {
    if frame.starts_with(&[0xff, 3]) {
        LinkType::Ppp
    } else {
        LinkType::CiscoHdlc
    }
}

/// The network protocol of a record, as a frame of pcap.
pub(crate) fn network(record: &[u8]) -> Option<Network> {
    let (kind, at) = locate(record)?;
    match content(kind) {
        Content::Ethernet => link::ethernet_at(record, at),
        Content::Hdlc => match hdlc_link(record.get(at..)?) {
            LinkType::Ppp => link::by_ppp(record, at),
            _ => link::by_ethertype(record, at + 2, at + 4),
        },
        Content::Ip => link::by_version(record, at),
        Content::Nothing => Some(Network::Other(None)),
        Content::Unread => Some(Network::Other(Some(Skipped::Erf(kind)))),
    }
}

/// Records without a file header.
#[derive(Clone, Copy)]
pub(crate) struct Erf;

/// Times before 1990 and after 2100 are not those of a capture.
const VALID_SECONDS: std::ops::Range<u64> = 631_152_000..4_102_444_800;

impl Layout for Erf {
    const HEADER_BYTES: usize = HEADER_BYTES;
    const LOST_SO_FAR: bool = false;

    fn parse(&self, octets: &[u8]) -> Option<Header> {
        let timestamp = u64::from_le_bytes(*octets.first_chunk()?);
        let kind = octets.get(8)? & !EXTENSION;
        let bytes = usize::from(be16(octets, 10)?);
        let wire_bytes = be16(octets, 14)?;
        let known = (1..=29).contains(&kind) || kind == PAD;
        if !known || bytes < HEADER_BYTES || !VALID_SECONDS.contains(&(timestamp >> 32)) {
            return None;
        }
        let nothing = matches!(content(kind), Content::Nothing);
        // The extension headers may not be loaded yet; then the record is read again.
        let (_, data_at) = locate(octets).unwrap_or((kind, HEADER_BYTES));
        let link = match content(kind) {
            Content::Ethernet => LinkType::Ethernet,
            Content::Hdlc => hdlc_link(octets.get(data_at..).unwrap_or_default()),
            Content::Ip => LinkType::Raw,
            Content::Nothing | Content::Unread => LinkType::Erf,
        };
        let unread = link == LinkType::Erf;
        let data_at = if unread { 0 } else { data_at };
        if data_at > bytes || (wire_bytes == 0 && !nothing) {
            return None;
        }
        let captured_bytes = (bytes - data_at).min(if unread {
            bytes
        } else {
            usize::from(wire_bytes)
        });
        let fraction = u128::from(timestamp & 0xffff_ffff) * 1_000_000_000 + (1 << 31);
        Some(Header {
            t_ns: (timestamp >> 32) as i64 * 1_000_000_000 + (fraction >> 32) as i64,
            bytes,
            data_at,
            captured_bytes,
            frame_bytes: u32::from(wire_bytes).max(captured_bytes as u32),
            link: Ok(link),
            lost: if COLOURED.contains(&kind) || nothing {
                0
            } else {
                u64::from(be16(octets, 12)?)
            },
            packet: !nothing,
        })
    }
}
