//! The snoop format of Solaris (RFC 1761).

use crate::container::MAX_CAPTURED_BYTES;
use crate::framed::{Header, Layout};
use crate::link::LinkType;
use crate::octets::be32;

/// The first octets of a file.
pub(crate) const MAGIC: [u8; 8] = *b"snoop\0\0\0";
/// Length of the file header: magic number, version, link type.
pub(crate) const FILE_HEADER_BYTES: usize = 16;
/// Maximum frame length of a valid record.
const MAX_FRAME_BYTES: u32 = 1 << 20;

/// The link type of a file.
#[derive(Clone, Copy)]
pub(crate) struct Snoop {
    pub link: LinkType,
}

/// The link type number, of pcap, for that of a snoop file (RFC 1761 §2.1); `Err` for an unsupported one.
pub(crate) fn link_number(number: u32) -> Result<u16, u32> {
    match number {
        // IEEE 802.3 and Ethernet.
        0 | 4 => Ok(1),
        2 => Ok(6),
        5 => Ok(104),
        8 => Ok(10),
        other => Err(other),
    }
}

impl Layout for Snoop {
    const HEADER_BYTES: usize = 24;
    const LOST_SO_FAR: bool = true;

    fn parse(&self, octets: &[u8]) -> Option<Header> {
        let field = |at| be32(octets, at);
        let (frame_bytes, captured_bytes, bytes) = (field(0)?, field(4)?, field(8)?);
        let (seconds, micros) = (field(16)?, field(20)?);
        let valid = (1..=MAX_FRAME_BYTES).contains(&frame_bytes)
            && captured_bytes <= frame_bytes.min(MAX_CAPTURED_BYTES)
            && bytes >= captured_bytes + Self::HEADER_BYTES as u32
            && bytes - captured_bytes <= Self::HEADER_BYTES as u32 + 16
            && micros < 1_000_000;
        valid.then_some(Header {
            t_ns: i64::from(seconds) * 1_000_000_000 + i64::from(micros) * 1_000,
            bytes: bytes as usize,
            data_at: Self::HEADER_BYTES,
            captured_bytes: captured_bytes as usize,
            frame_bytes,
            link: Ok(self.link),
            lost: u64::from(field(12)?),
            packet: true,
        })
    }
}
