//! Wireless LAN: IEEE 802.11 frames, and the headers that capture devices put before them.
//!
//! Radiotap (radiotap.org), Prism, AVS and PPI give their length; the frame follows. Frames without data carry no
//! packet; encrypted ones are counted and not read.

use crate::link::{Network, by_llc_or_snap};
use crate::octets::{be16, be32, le16, le32};
use crate::skipped::Skipped;

/// A frame after a radiotap header, whose flags say whether it was received in error or has padding.
pub(crate) fn radiotap(frame: &[u8]) -> Option<Network> {
    const TSFT: u32 = 1;
    const FLAGS: u32 = 2;
    const EXTENDED: u32 = 0x8000_0000;
    const PADDED: u8 = 0x20;
    const BAD_CHECKSUM: u8 = 0x40;
    let at = usize::from(le16(frame, 2)?);
    let present = le32(frame, 4)?;
    let mut field = 8;
    let mut word = present;
    while word & EXTENDED != 0 {
        word = le32(frame, field)?;
        field += 4;
    }
    if present & TSFT != 0 {
        field = field.next_multiple_of(8) + 8;
    }
    let flags = if present & FLAGS == 0 {
        0
    } else {
        *frame.get(field)?
    };
    if at < 8 {
        return Some(Network::Other(Some(Skipped::WlanHeader)));
    }
    if flags & BAD_CHECKSUM != 0 {
        return Some(Network::Other(Some(Skipped::WlanDamaged)));
    }
    data(frame, at, flags & PADDED != 0)
}

/// A frame after a Prism or AVS header.
pub(crate) fn prism(frame: &[u8]) -> Option<Network> {
    /// The magic number of AVS, without its version.
    const AVS: u32 = 0x8021_1000;
    /// The message code of Prism (`DIDmsg_lnxind_wlansniffrm`), in the byte order of the capturing host.
    const PRISM: u32 = 0x44;
    let at = match be32(frame, 0)? {
        code if code & 0xffff_f000 == AVS => be32(frame, 4)?,
        PRISM => be32(frame, 4)?,
        code if code.swap_bytes() == PRISM => le32(frame, 4)?,
        _ => return Some(Network::Other(Some(Skipped::WlanHeader))),
    };
    data(frame, at as usize, false)
}

/// A frame after a PPI header, if it is one of wireless LAN.
pub(crate) fn ppi(frame: &[u8]) -> Option<Network> {
    const IEEE802_11: u32 = 105;
    let at = usize::from(le16(frame, 2)?);
    match le32(frame, 4)? {
        IEEE802_11 => data(frame, at, false),
        _ => Some(Network::Other(Some(Skipped::WlanHeader))),
    }
}

/// IEEE 802.11 §9.2.4: the frame control field, first octet.
const TYPE: u8 = 0x0c;
const TYPE_DATA: u8 = 0x08;
const SUBTYPE_NULL: u8 = 0x40;
const SUBTYPE_QOS: u8 = 0x80;
/// Second octet.
const TO_AND_FROM_DS: u8 = 0x03;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// QoS control field: the frame holds several packets.
const AGGREGATE: u8 = 0x80;

/// The frame at `at`. With `padded`, its data start at a multiple of four octets.
pub(crate) fn data(frame: &[u8], at: usize, padded: bool) -> Option<Network> {
    let &[control, flags] = frame.get(at..)?.first_chunk()?;
    if control & (TYPE | SUBTYPE_NULL) != TYPE_DATA {
        return Some(Network::Other(None));
    }
    // A later fragment of a frame continues the packet in the first one.
    if le16(frame, at + 22)? & 0xf != 0 {
        return Some(Network::Other(None));
    }
    let mut header_bytes = 24;
    if flags & TO_AND_FROM_DS == TO_AND_FROM_DS {
        header_bytes += 6;
    }
    let mut aggregate = false;
    if control & SUBTYPE_QOS != 0 {
        aggregate = *frame.get(at + header_bytes)? & AGGREGATE != 0;
        header_bytes += if flags & ORDER != 0 { 6 } else { 2 };
    }
    if padded {
        header_bytes = usize::next_multiple_of(header_bytes, 4);
    }
    if flags & PROTECTED != 0 {
        return Some(Network::Other(Some(Skipped::WlanEncrypted)));
    }
    let body = at + header_bytes;
    if aggregate {
        return Some(Network::Aggregate(body));
    }
    by_llc_or_snap(frame, body)
}

/// A packet of an aggregate (A-MSDU, IEEE 802.11 §9.3.2.2): its frame, and where the next one starts.
pub(crate) struct Subframe {
    pub network: Network,
    pub bytes: u32,
    pub next: usize,
}

/// Two addresses and a length.
pub(crate) const SUBFRAME_HEADER_BYTES: usize = 14;

/// The subframe at `at`; `None` at the end.
pub(crate) fn subframe(frame: &[u8], at: usize) -> Option<Subframe> {
    let length = usize::from(be16(frame, at + 12)?);
    if length == 0 {
        return None;
    }
    let payload = at + SUBFRAME_HEADER_BYTES;
    let bytes = SUBFRAME_HEADER_BYTES + length;
    Some(Subframe {
        network: by_llc_or_snap(frame, payload).unwrap_or(Network::Truncated),
        bytes: bytes as u32,
        next: at + bytes.next_multiple_of(4),
    })
}
