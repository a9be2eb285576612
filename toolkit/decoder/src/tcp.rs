//! TCP headers (RFC 9293 §3.1) and options.

use crate::octets::{be16, be32};
use crate::segment::{SackBlocks, TcpOptions, flags};

/// The fields of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpHeader {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    pub urgent: u16,
    pub header_bytes: usize,
    pub options: TcpOptions,
    pub options_end: OptionsEnd,
}

/// How parsing of the options ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionsEnd {
    /// At the end of the list.
    Complete,
    /// The capture ends within the options.
    Truncated,
    /// At an option with an invalid length.
    Malformed { kind: u8, length: u8 },
}

/// Why a packet has no valid [`TcpHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpError {
    /// The capture ends before the window field.
    Truncated,
    /// The packet is too short for a TCP header.
    Short,
    /// The data offset is below 5 or beyond the end of the packet.
    DataOffset(usize),
}

/// Minimum captured length: up to and including the window field.
const REQUIRED_BYTES: usize = 16;
const FIXED_BYTES: usize = 20;

/// The options without a field in [`TcpOptions`], in wire format.
#[derive(Clone, Debug)]
pub(crate) struct OtherOptions {
    octets: [u8; 40],
    len: usize,
}

impl OtherOptions {
    pub fn new() -> Self {
        Self {
            octets: [0; 40],
            len: 0,
        }
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    fn push(&mut self, option: &[u8]) {
        // A TCP header has at most 40 octets of options.
        if let Some(space) = self.octets.get_mut(self.len..self.len + option.len()) {
            space.copy_from_slice(option);
            self.len += option.len();
        }
    }
}

/// Parses the header at the start of `octets`; `length` is the IP payload length.
#[expect(
    clippy::inline_always,
    reason = "a result in memory costs a stall per packet"
)]
#[inline(always)]
pub(crate) fn parse(
    octets: &[u8],
    length: u32,
    others: &mut OtherOptions,
) -> Result<TcpHeader, TcpError> {
    others.clear();
    if length < FIXED_BYTES as u32 {
        return Err(TcpError::Short);
    }
    let Some(fixed) = octets.first_chunk::<REQUIRED_BYTES>() else {
        return Err(TcpError::Truncated);
    };
    let header_bytes = usize::from(fixed[12] >> 4) * 4;
    if header_bytes < FIXED_BYTES || header_bytes as u32 > length {
        return Err(TcpError::DataOffset(header_bytes));
    }
    let flags = u16::from(fixed[12] & 1) << 8 | u16::from(fixed[13]);
    let ack = u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]);
    let mut header = TcpHeader {
        src_port: u16::from_be_bytes([fixed[0], fixed[1]]),
        dst_port: u16::from_be_bytes([fixed[2], fixed[3]]),
        seq: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
        ack: if flags & flags::ACK == 0 { 0 } else { ack },
        flags,
        window: u16::from_be_bytes([fixed[14], fixed[15]]),
        urgent: be16(octets, 18).unwrap_or(0),
        header_bytes,
        options: TcpOptions::default(),
        options_end: OptionsEnd::Complete,
    };
    if header_bytes > FIXED_BYTES {
        let captured = octets.len().min(header_bytes);
        let options = octets.get(FIXED_BYTES..captured).unwrap_or_default();
        let options_bytes = header_bytes - FIXED_BYTES;
        if let Some(stamps) = aligned_timestamps(options, options_bytes) {
            header.options.timestamps = Some(stamps);
        } else {
            (header.options, header.options_end) = parse_options(options, options_bytes, others);
        }
    }
    Ok(header)
}

/// Option kinds (IANA).
mod kind {
    pub const END: u8 = 0;
    pub const NO_OPERATION: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// The timestamps of a list of options that holds nothing else, in the layout of RFC 7323 appendix A: that of most
/// segments.
#[inline(always)]
fn aligned_timestamps(captured: &[u8], options_bytes: usize) -> Option<(u32, u32)> {
    const LAYOUT: [u8; 4] = [kind::NO_OPERATION, kind::NO_OPERATION, kind::TIMESTAMPS, 10];
    let options = captured
        .first_chunk::<12>()
        .filter(|_| options_bytes == 12)?;
    let stamps = options.strip_prefix(&LAYOUT)?;
    be32(stamps, 0).zip(be32(stamps, 4))
}

/// Parses the captured part of a list of options of `options_bytes`. Returns the first option of each known kind; `others`
/// takes options that are repeated, unknown, or of unexpected length.
#[inline(never)]
fn parse_options(
    captured: &[u8],
    options_bytes: usize,
    others: &mut OtherOptions,
) -> (TcpOptions, OptionsEnd) {
    let mut options = TcpOptions::default();
    let end = fill_options(captured, options_bytes, &mut options, others);
    (options, end)
}

fn fill_options(
    captured: &[u8],
    options_bytes: usize,
    options: &mut TcpOptions,
    others: &mut OtherOptions,
) -> OptionsEnd {
    let mut at = 0;
    while at < options_bytes {
        let Some(&kind) = captured.get(at) else {
            return OptionsEnd::Truncated;
        };
        match kind {
            kind::END => return OptionsEnd::Complete,
            kind::NO_OPERATION => {
                at += 1;
                continue;
            }
            _ => {}
        }
        let Some(&length) = captured.get(at + 1) else {
            return if at + 1 < options_bytes {
                OptionsEnd::Truncated
            } else {
                OptionsEnd::Malformed { kind, length: 0 }
            };
        };
        let end = at + usize::from(length);
        if length < 2 || end > options_bytes {
            return OptionsEnd::Malformed { kind, length };
        }
        let Some(option) = captured.get(at..end) else {
            return OptionsEnd::Truncated;
        };
        if !parse_known(option, options) {
            others.push(option);
        }
        at = end;
    }
    OptionsEnd::Complete
}

/// Stores an option in its field. Returns false if it has no field, an unexpected length, or came before.
#[inline]
fn parse_known(option: &[u8], options: &mut TcpOptions) -> bool {
    match *option {
        [kind::TIMESTAMPS, 10, ..] if options.timestamps.is_none() => {
            options.timestamps = be32(option, 2).zip(be32(option, 6));
        }
        [kind::SACK, ..] if options.sack == SackBlocks::default() => {
            return parse_sack(option, &mut options.sack);
        }
        [kind::MSS, 4, ..] if options.mss.is_none() => options.mss = be16(option, 2),
        [kind::WINDOW_SCALE, 3, shift] if options.wscale.is_none() => options.wscale = Some(shift),
        [kind::SACK_PERMITTED, 2] if !options.sack_permitted => options.sack_permitted = true,
        _ => return false,
    }
    true
}

/// RFC 2018 §3.
fn parse_sack(option: &[u8], sack: &mut SackBlocks) -> bool {
    let Some((_, edges)) = option.split_at_checked(2) else {
        return false;
    };
    if edges.is_empty() || edges.len() % 8 != 0 {
        return false;
    }
    for block in edges.chunks_exact(8) {
        if let (Some(left), Some(right)) = (be32(block, 0), be32(block, 4)) {
            sack.push(left, right);
        }
    }
    true
}
