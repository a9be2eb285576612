//! Segments to a pcapng file: one section, one Ethernet interface with nanoseconds, a comment per packet.
//!
//! Blocks: draft-ietf-opsawg-pcapng §4.1 to §4.3; options: §3.5. The frames are those of `encode.rs`.

use crate::encode::{ETHERNET_BYTES, EncodeError, encode_frame};
use crate::segment::Segment;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_ETHERNET: u16 = 1;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
/// `shb_userappl` and `if_tsresol`.
const OPTION_APPLICATION: u16 = 4;
const OPTION_RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;

/// Returns the head of a pcapng file, written by `application`; `comment` describes the file.
pub fn pcapng_header(application: &str, comment: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let start = begin(SECTION_HEADER, &mut out);
    out.extend(BYTE_ORDER_MAGIC.to_le_bytes());
    out.extend([1, 0, 0, 0]);
    out.extend(u64::MAX.to_le_bytes());
    option(OPTION_COMMENT, comment.as_bytes(), &mut out);
    option(OPTION_APPLICATION, application.as_bytes(), &mut out);
    end(start, true, &mut out);
    let start = begin(INTERFACE_DESCRIPTION, &mut out);
    out.extend(LINKTYPE_ETHERNET.to_le_bytes());
    // Reserved, and no snaplen.
    out.extend([0; 6]);
    option(OPTION_RESOLUTION, &[NANOSECONDS], &mut out);
    end(start, true, &mut out);
    out
}

/// Appends the packet of `segment`, headers alone, with a comment if it is not empty. On an error, `out` is unchanged.
///
/// The length on the wire is `frame_bytes`, or that of an Ethernet frame if it is more. See [`encode_frame`].
///
/// # Errors
/// [`EncodeError`] if a capture cannot represent the segment.
pub fn encode_packet(
    segment: &Segment,
    others: &[u8],
    comment: &str,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let t_ns = u64::try_from(segment.t_ns).map_err(|_| EncodeError::Time)?;
    let start = begin(ENHANCED_PACKET, out);
    let wire_bytes = segment
        .frame_bytes
        .max(segment.ip_bytes.saturating_add(ETHERNET_BYTES as u32));
    for field in [0, (t_ns >> 32) as u32, t_ns as u32, 0, wire_bytes] {
        out.extend(field.to_le_bytes());
    }
    match encode_frame(segment, others, out) {
        Ok(captured_bytes) => {
            let at = start + 20;
            out[at..at + 4].copy_from_slice(&(captured_bytes as u32).to_le_bytes());
        }
        Err(error) => {
            out.truncate(start);
            return Err(error);
        }
    }
    pad(out);
    option(OPTION_COMMENT, comment.as_bytes(), out);
    end(start, !comment.is_empty(), out);
    Ok(())
}

/// Begins a block and returns where; its length follows at the end.
fn begin(kind: u32, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    start
}

fn end(start: usize, has_options: bool, out: &mut Vec<u8>) {
    if has_options {
        out.extend(OPTION_END.to_le_bytes());
        out.extend([0, 0]);
    }
    let length = (out.len() - start + 4) as u32;
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out.extend(length.to_le_bytes());
}

/// An option of at most 65,535 octets; none if `value` is empty.
fn option(kind: u16, value: &[u8], out: &mut Vec<u8>) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    if value.is_empty() {
        return;
    }
    out.extend(kind.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out);
}

/// Pads to 32 bits; every block begins at a multiple of them.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
