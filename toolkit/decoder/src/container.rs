//! Containers of a capture: the formats share the input buffer, the file header and the records of this module.

use std::io::Read;

use crate::buffer::Buffer;
use crate::compression::{Compression, Input};
use crate::framed::erf::Erf;
use crate::framed::snoop::{self, Snoop};
use crate::framed::{self, Framed};
use crate::issue::{DecodeError, IssueKind, Issues};
use crate::link::LinkType;
use crate::merge::Merged;
use crate::octets::be32;
use crate::pcap::Pcap;
use crate::pcapng::{self, Pcapng};

/// Maximum captured length of a frame; libpcap and Wireshark have the same limit.
pub(crate) const MAX_CAPTURED_BYTES: u32 = 256 << 10;

/// The format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap.
    Pcap,
    /// pcap with the longer record headers of patched versions of libpcap (magic number a1b2cd34).
    ModifiedPcap,
    /// pcapng.
    Pcapng,
    /// snoop, of Solaris.
    Snoop,
    /// Records of an Endace card.
    Erf,
}

/// The properties of a capture file. For pcapng they are those of all interfaces that precede the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureHeader {
    /// Format of the file.
    pub format: Format,
    /// Compression of the file.
    pub compression: Compression,
    /// Resolution of the timestamps, at least 1 ns. The coarsest one if the interfaces differ.
    pub resolution_ns: u32,
    /// Byte order of the headers. The one of the first section in pcapng.
    pub big_endian: bool,
    /// Snapshot length: the maximum captured length of a frame; 0 for no limit. The largest one if the interfaces
    /// differ.
    pub snaplen_bytes: u32,
    /// Link type (see [`LinkType`]). The one of the first interface in pcapng.
    pub link_number: u16,
}

/// One record: a frame and its timestamp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// Number in the capture, from 1.
    pub number: u64,
    /// Where it is stored, for issues.
    pub place: Place,
    pub t_ns: i64,
    pub frame_bytes: u32,
    /// The link type, or the number of an unsupported one.
    pub link: Result<LinkType, u16>,
    pub data: &'a [u8],
}

/// Where a record is stored: its number in its file, from 1 (0 for the file as a whole), and its offset there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub record: u64,
    pub offset: u64,
}

/// A reader of records.
pub(crate) enum Records<R: Read> {
    Pcap(Pcap<R>),
    Pcapng(Box<Pcapng<R>>),
    Merged(Box<Merged<R>>),
    Snoop(Box<Framed<R, Snoop>>),
    Erf(Box<Framed<R, Erf>>),
}

impl<R: Read> Records<R> {
    /// Detects the format and reads the file header.
    pub fn new(source: R, issues: &mut Issues) -> Result<Self, DecodeError> {
        let mut buffer = Buffer::new(Input::new(source).map_err(DecodeError::Io)?);
        buffer.ensure(pcapng::MAGIC.len());
        if buffer.octets().starts_with(&pcapng::MAGIC) {
            return Ok(Self::Pcapng(Box::new(Pcapng::new(buffer, issues)?)));
        }
        if Pcap::<R>::recognises(buffer.octets()) {
            return Pcap::new(buffer, issues).map(Self::Pcap);
        }
        buffer.ensure(snoop::FILE_HEADER_BYTES);
        if buffer.octets().starts_with(&snoop::MAGIC) {
            return open_snoop(buffer).map(|records| Self::Snoop(Box::new(records)));
        }
        buffer.ensure(ERF_PROBE_BYTES);
        if framed::starts_records(&Erf, buffer.octets(), 0) {
            let header = header_of(&buffer, Format::Erf, LinkType::ERF_NUMBER);
            return Ok(Self::Erf(Box::new(Framed::new(buffer, Erf, header))));
        }
        // Its error describes the input.
        Pcap::new(buffer, issues).map(Self::Pcap)
    }

    pub fn header(&self) -> CaptureHeader {
        match self {
            Self::Pcap(records) => records.header(),
            Self::Pcapng(records) => records.header(),
            Self::Merged(records) => records.header(),
            Self::Snoop(records) => records.header(),
            Self::Erf(records) => records.header(),
        }
    }

    /// The link types of the interfaces so far, each once.
    pub fn link_numbers(&self) -> Vec<u16> {
        match self {
            Self::Pcap(_) | Self::Snoop(_) | Self::Erf(_) => vec![self.header().link_number],
            Self::Pcapng(records) => records.link_numbers().to_vec(),
            Self::Merged(records) => records.link_numbers().to_vec(),
        }
    }

    /// Offset of the next record in the uncompressed input; 0 if there are several.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Pcap(records) => records.offset(),
            Self::Pcapng(records) => records.offset(),
            Self::Merged(_) => 0,
            Self::Snoop(records) => records.offset(),
            Self::Erf(records) => records.offset(),
        }
    }

    /// The next record; `None` at the end of the input.
    #[inline]
    pub fn next(&mut self, issues: &mut Issues) -> Option<Record<'_>> {
        match self {
            Self::Pcap(records) => records.next(issues),
            Self::Pcapng(records) => records.next(issues),
            Self::Merged(records) => records.next(issues),
            Self::Snoop(records) => records.next(issues),
            Self::Erf(records) => records.next(issues),
        }
    }
}

/// Octets that show whether ERF records start: three of the longest.
const ERF_PROBE_BYTES: usize = 3 << 16;

/// The properties of a capture whose header gives no more than its link type.
fn header_of<R: Read>(buffer: &Buffer<Input<R>>, format: Format, link: u16) -> CaptureHeader {
    CaptureHeader {
        format,
        compression: buffer.source().compression(),
        resolution_ns: if format == Format::Erf { 1 } else { 1_000 },
        big_endian: true,
        snaplen_bytes: 0,
        link_number: link,
    }
}

fn open_snoop<R: Read>(mut buffer: Buffer<Input<R>>) -> Result<Framed<R, Snoop>, DecodeError> {
    let Some(link) = be32(buffer.octets(), 12) else {
        return Err(incomplete_header(&mut buffer, snoop::FILE_HEADER_BYTES));
    };
    let number = snoop::link_number(link).map_err(|number| DecodeError::NotACapture {
        found: format!("it is a snoop file of link type {number}, which is not supported"),
    })?;
    let link = LinkType::from_number(number).ok_or(DecodeError::LinkType { number })?;
    let header = header_of(&buffer, Format::Snoop, number);
    buffer.consume(snoop::FILE_HEADER_BYTES);
    Ok(Framed::new(buffer, Snoop { link }, header))
}

/// Skips at least one octet, to the next position at which `starts` finds valid records within `reach_bytes`. Returns
/// false if there is none.
pub(crate) fn seek<R: Read>(
    buffer: &mut Buffer<Input<R>>,
    reach_bytes: usize,
    starts: impl Fn(&[u8], usize) -> bool,
) -> bool {
    buffer.consume(1);
    loop {
        buffer.ensure(2 * reach_bytes);
        let octets = buffer.octets();
        let last = if buffer.ended() {
            octets.len()
        } else {
            octets.len().saturating_sub(reach_bytes)
        };
        if let Some(at) = (0..=last).find(|&at| starts(octets, at)) {
            buffer.consume(at);
            return true;
        }
        buffer.consume(last + 1);
        if buffer.ended() {
            return false;
        }
    }
}

/// Adds an issue if a read error ended the input. Returns whether it did.
pub(crate) fn report_read_error<R: Read>(
    buffer: &mut Buffer<Input<R>>,
    number: u64,
    issues: &mut Issues,
) -> bool {
    let Some(error) = buffer.take_error() else {
        return false;
    };
    let offset = buffer.offset() + buffer.octets().len() as u64;
    if error.raw_os_error().is_some() {
        issues.add(number, offset, IssueKind::ReadError, || {
            format!("{error}; all earlier records are kept")
        });
    } else {
        let name = buffer.source().compression().name();
        issues.add(number, offset, IssueKind::Compression, || {
            format!(
                "the {name} stream is damaged or truncated ({error}); all earlier records are kept"
            )
        });
    }
    true
}

/// The error for an input that ends within its file header of `need_bytes`.
pub(crate) fn incomplete_header<R: Read>(
    buffer: &mut Buffer<Input<R>>,
    need_bytes: usize,
) -> DecodeError {
    let have_bytes = buffer.octets().len();
    match buffer.take_error() {
        Some(error) if error.raw_os_error().is_some() => DecodeError::Io(error),
        Some(error) if error.kind() == std::io::ErrorKind::OutOfMemory => {
            DecodeError::UnpackingMemory {
                name: buffer.source().compression().name(),
                detail: error.to_string(),
            }
        }
        Some(error) => DecodeError::Compression {
            name: buffer.source().compression().name(),
            offset: have_bytes as u64,
            detail: error.to_string(),
        },
        None if have_bytes == 0 => DecodeError::Empty,
        None => DecodeError::HeaderCut {
            have_bytes,
            need_bytes,
        },
    }
}
