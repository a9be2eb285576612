//! The pcap format (draft-ietf-opsawg-pcap §4 and §5): file header, records, and resynchronisation after a damaged
//! record header.

use std::io::Read;

use crate::buffer::Buffer;
use crate::compression::Input;
use crate::container::{
    self, CaptureHeader, Format, MAX_CAPTURED_BYTES, Place, Record, incomplete_header,
    report_read_error,
};
use crate::issue::{DecodeError, IssueKind, Issues};
use crate::link::LinkType;
use crate::octets::{u16_in, u32_in};

const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// The modified format adds an interface index, a protocol and a packet type.
const MODIFIED_RECORD_HEADER_BYTES: usize = 24;
/// Maximum frame length of a plausible record: Linux's BIG TCP makes packets of up to 512 KiB.
const MAX_FRAME_BYTES: u32 = 1 << 20;
/// Maximum time between two plausible records that follow one another.
const MAX_STEP_S: u32 = 86_400;
/// Consecutive plausible records at which reading resumes.
const RESYNC_RECORDS: usize = 3;
/// Upper bound of the length of these records.
const RESYNC_BYTES: usize =
    RESYNC_RECORDS * (MAX_CAPTURED_BYTES as usize + MODIFIED_RECORD_HEADER_BYTES);

/// A reader of the records of a pcap file.
pub(crate) struct Pcap<R: Read> {
    buffer: Buffer<Input<R>>,
    header: CaptureHeader,
    /// The link type, or the number of an unsupported one.
    link: Result<LinkType, u16>,
    layout: Layout,
    number: u64,
    last_s: Option<u32>,
    done: bool,
}

/// How the record headers of a file are to be read.
#[derive(Clone, Copy)]
struct Layout {
    big_endian: bool,
    nanosecond: bool,
    lengths: Lengths,
    header_bytes: usize,
    /// Maximum captured length of a record.
    max_captured_bytes: u32,
}

/// The order of the two length fields. Version 2.3 put the captured length first, and some of its writers did not
/// follow; libpcap reads the same versions in the same way.
#[derive(Clone, Copy)]
enum Lengths {
    /// Version 2.4: the captured length, then the frame length.
    CapturedFirst,
    /// Versions before 2.3, and 543.0 of DG/UX: the frame length, then the captured length.
    FrameFirst,
    /// Version 2.3: the captured length is the smaller one.
    SmallerIsCaptured,
}

/// The fields of a record header.
#[derive(Clone, Copy)]
struct RecordHeader {
    seconds: u32,
    fraction: u32,
    captured_bytes: u32,
    frame_bytes: u32,
}

impl Layout {
    /// Reads the byte order, resolution and record format from the magic number.
    fn from_magic(start: &[u8]) -> Option<(Self, Format)> {
        let (big_endian, nanosecond, format) = match *start.first_chunk::<4>()? {
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, false, Format::Pcap),
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, false, Format::Pcap),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, true, Format::Pcap),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, true, Format::Pcap),
            [0xa1, 0xb2, 0xcd, 0x34] => (true, false, Format::ModifiedPcap),
            [0x34, 0xcd, 0xb2, 0xa1] => (false, false, Format::ModifiedPcap),
            _ => return None,
        };
        let header_bytes = match format {
            Format::ModifiedPcap => MODIFIED_RECORD_HEADER_BYTES,
            _ => RECORD_HEADER_BYTES,
        };
        let layout = Self {
            big_endian,
            nanosecond,
            lengths: Lengths::CapturedFirst,
            header_bytes,
            max_captured_bytes: MAX_CAPTURED_BYTES,
        };
        Some((layout, format))
    }

    /// Reads the order of the length fields from the `version`, major number first. `None` for an unknown version.
    fn lengths(version: (u16, u16)) -> Option<Lengths> {
        match version {
            (2, 4) => Some(Lengths::CapturedFirst),
            (2, 3) => Some(Lengths::SmallerIsCaptured),
            (2, 0..3) | (543, 0) => Some(Lengths::FrameFirst),
            _ => None,
        }
    }

    /// Reads the header of a record, which `octets` hold.
    #[inline]
    fn parse(self, octets: &[u8]) -> RecordHeader {
        let header = octets.first_chunk().copied().unwrap_or_default();
        let [seconds, fraction, first, second] = self.fields(header);
        let (captured_bytes, frame_bytes) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::FrameFirst => (second, first),
            Lengths::SmallerIsCaptured => (first.min(second), first.max(second)),
        };
        RecordHeader {
            seconds,
            fraction,
            captured_bytes,
            frame_bytes,
        }
    }

    /// The four fields that every record header starts with.
    #[inline]
    fn fields(self, header: [u8; RECORD_HEADER_BYTES]) -> [u32; 4] {
        let words = [0, 4, 8, 12].map(|at| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        });
        if self.big_endian {
            words.map(u32::swap_bytes)
        } else {
            words
        }
    }

    #[inline]
    fn fractions_per_second(self) -> u32 {
        if self.nanosecond {
            1_000_000_000
        } else {
            1_000_000
        }
    }

    #[inline]
    fn t_ns(self, record: RecordHeader) -> i64 {
        let unit = if self.nanosecond { 1 } else { 1_000 };
        i64::from(record.seconds) * 1_000_000_000 + i64::from(record.fraction) * unit
    }

    #[inline]
    fn record_bytes(self, record: RecordHeader) -> usize {
        self.header_bytes + record.captured_bytes as usize
    }

    /// Whether a sequence of plausible records starts at `at`, after one at `previous_s`. Fewer than
    /// [`RESYNC_RECORDS`] suffice if they end with the input; a single one must be near the last valid record in time.
    fn starts_records(self, octets: &[u8], mut at: usize, mut previous_s: Option<u32>) -> bool {
        let min_records = if previous_s.is_some() { 1 } else { 2 };
        for found in 0..RESYNC_RECORDS {
            let Some(rest) = octets.get(at..).filter(|r| r.len() >= self.header_bytes) else {
                return found >= min_records && at == octets.len();
            };
            let record = self.parse(rest);
            let valid = record.captured_bytes <= record.frame_bytes
                && record.fraction < self.fractions_per_second();
            if !valid || !record.is_plausible(previous_s) {
                return false;
            }
            previous_s = Some(record.seconds);
            at += self.record_bytes(record);
        }
        true
    }
}

/// Describes an input that does not start with the magic number of pcap.
fn not_a_capture(start: &[u8]) -> DecodeError {
    let found = if start.starts_with(b"PK\x03\x04") {
        "it is a zip archive".to_owned()
    } else {
        let hex: Vec<String> = start.iter().take(4).map(|o| format!("{o:02x}")).collect();
        format!("it starts with the octets {}", hex.join(" "))
    };
    DecodeError::UnknownFormat { found }
}

impl<R: Read> Pcap<R> {
    /// Whether an input that starts with `octets` is of this format.
    pub fn recognises(octets: &[u8]) -> bool {
        Layout::from_magic(octets).is_some()
    }

    /// Reads the file header.
    pub fn new(mut buffer: Buffer<Input<R>>, issues: &mut Issues) -> Result<Self, DecodeError> {
        let complete = buffer.ensure(FILE_HEADER_BYTES);
        let octets = buffer.octets();
        let Some((mut layout, format)) = Layout::from_magic(octets) else {
            // The magic number has four octets.
            return Err(if octets.len() >= 4 && !buffer.failed() {
                not_a_capture(octets)
            } else {
                incomplete_header(&mut buffer, FILE_HEADER_BYTES)
            });
        };
        if !complete {
            return Err(incomplete_header(&mut buffer, FILE_HEADER_BYTES));
        }
        let u16_at = |at| u16_in(layout.big_endian, octets, at).unwrap_or(0);
        let u32_at = |at| u32_in(layout.big_endian, octets, at).unwrap_or(0);
        // The other half of the field holds the length of the frame check sequence.
        let (snaplen_bytes, link_number) = (u32_at(16), u32_at(20) as u16);
        let link = LinkType::from_number(link_number).ok_or(link_number);
        let (major, minor) = (u16_at(4), u16_at(6));
        layout.lengths = Layout::lengths((major, minor)).unwrap_or_else(|| {
            issues.add(0, 4, IssueKind::FileHeader, || {
                format!("the version is {major}.{minor}, not 2.4; read as 2.4")
            });
            Lengths::CapturedFirst
        });
        // An unreasonable snapshot length is ignored.
        if (1..MAX_CAPTURED_BYTES).contains(&snaplen_bytes) {
            layout.max_captured_bytes = snaplen_bytes;
        }
        let header = CaptureHeader {
            format,
            compression: buffer.source().compression(),
            resolution_ns: if layout.nanosecond { 1 } else { 1_000 },
            big_endian: layout.big_endian,
            snaplen_bytes,
            link_number,
        };
        buffer.consume(FILE_HEADER_BYTES);
        Ok(Self {
            buffer,
            header,
            link,
            layout,
            number: 0,
            last_s: None,
            done: false,
        })
    }

    pub fn header(&self) -> CaptureHeader {
        self.header
    }

    /// Offset of the next record in the uncompressed input.
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// The next record; `None` at the end of the input.
    #[inline]
    pub fn next(&mut self, issues: &mut Issues) -> Option<Record<'_>> {
        loop {
            if self.done {
                return None;
            }
            if !self.buffer.ensure(self.layout.header_bytes) {
                self.end_of_input(0, issues);
                return None;
            }
            self.number += 1;
            let mut record = self.layout.parse(self.buffer.octets());
            // No frame is empty, but a file that lost its end in a power failure may be padded with zeros.
            let valid = record.frame_bytes > 0
                && record.captured_bytes <= record.frame_bytes
                && record.captured_bytes <= self.layout.max_captured_bytes
                && record.fraction < self.layout.fractions_per_second();
            if !valid && !self.accept_invalid_header(&mut record, issues) {
                continue;
            }
            let record_bytes = self.layout.record_bytes(record);
            self.last_s = Some(record.seconds);
            if !self.buffer.ensure(record_bytes) {
                self.end_of_input(record.captured_bytes, issues);
                continue;
            }
            let offset = self.buffer.offset();
            self.buffer.consume(record_bytes);
            return Some(Record {
                number: self.number,
                place: Place {
                    record: self.number,
                    offset,
                },
                t_ns: self.layout.t_ns(record),
                frame_bytes: record.frame_bytes,
                link: self.link,
                data: self.buffer.consumed(record.captured_bytes as usize),
            });
        }
    }

    /// Handles an invalid record header. If a plausible record follows, accepts the header with an issue and returns
    /// true; otherwise resynchronises.
    #[cold]
    fn accept_invalid_header(&mut self, record: &mut RecordHeader, issues: &mut Issues) -> bool {
        let found = *record;
        let (number, offset) = (self.number, self.buffer.offset());
        if found.captured_bytes > MAX_CAPTURED_BYTES || !self.has_plausible_successor(found) {
            let text = format!(
                "the record header is invalid: {} of {} octets captured, fraction of a second {}",
                found.captured_bytes, found.frame_bytes, found.fraction
            );
            self.resync(IssueKind::RecordHeader, &text, issues);
            return false;
        }
        if found.fraction >= self.layout.fractions_per_second() {
            issues.add(number, offset, IssueKind::RecordTime, || {
                format!(
                    "the fraction of a second is {}; added to the seconds",
                    found.fraction
                )
            });
        }
        if found.captured_bytes > found.frame_bytes {
            record.frame_bytes = found.captured_bytes;
            issues.add(number, offset, IssueKind::RecordLength, || {
                let (captured, frame) = (found.captured_bytes, found.frame_bytes);
                format!("captured length {captured} above frame length {frame}; took {captured} for both")
            });
        } else if found.captured_bytes > self.layout.max_captured_bytes {
            issues.add(number, offset, IssueKind::RecordLength, || {
                let (captured, limit) = (found.captured_bytes, self.header.snaplen_bytes);
                format!("captured length {captured} above snapshot length {limit}; kept")
            });
        }
        true
    }

    /// Whether the record at the front is followed by a plausible record or by the end of the input.
    fn has_plausible_successor(&mut self, record: RecordHeader) -> bool {
        let record_bytes = self.layout.record_bytes(record);
        if self.buffer.ensure(record_bytes + self.layout.header_bytes) {
            let next = self.layout.parse(&self.buffer.octets()[record_bytes..]);
            return next.is_plausible(Some(record.seconds));
        }
        record.frame_bytes > 0 && self.buffer.octets().len() >= record_bytes
    }

    /// Skips to the next sequence of plausible records and adds an issue.
    fn resync(&mut self, kind: IssueKind, found: &str, issues: &mut Issues) {
        let (number, offset) = (self.number, self.buffer.offset());
        let (layout, last_s) = (self.layout, self.last_s);
        let resumed = container::seek(&mut self.buffer, RESYNC_BYTES, |octets, at| {
            layout.starts_records(octets, at, last_s)
        });
        if resumed {
            let skipped = self.buffer.offset() - offset;
            issues.add(number, offset, kind, || {
                format!("{found}; skipped {skipped} octets to the next record")
            });
            return;
        }
        self.done = true;
        issues.add(number, offset, kind, || {
            format!("{found}; no record follows, all earlier records are kept")
        });
        report_read_error(&mut self.buffer, number, issues);
    }

    /// Handles the end of the input: between records, within a record header, or within the `captured_bytes` of a
    /// record.
    #[cold]
    fn end_of_input(&mut self, captured_bytes: u32, issues: &mut Issues) {
        let left = self.buffer.octets().len();
        let header_bytes = self.layout.header_bytes;
        if report_read_error(&mut self.buffer, self.number, issues) {
            self.done = true;
        } else if left < header_bytes {
            self.done = true;
            if left > 0 {
                let (record, offset) = (self.number + 1, self.buffer.offset());
                issues.add(record, offset, IssueKind::Cut, || {
                    format!("the input ends within a record header, after {left} of {header_bytes} octets")
                });
            }
        } else {
            let have = left - header_bytes;
            let text =
                format!("the input ends within a record, after {have} of {captured_bytes} octets");
            self.resync(IssueKind::Cut, &text, issues);
        }
    }
}

impl RecordHeader {
    /// Whether this can be the header of the record that follows one at `previous_s`.
    fn is_plausible(self, previous_s: Option<u32>) -> bool {
        (1..=MAX_CAPTURED_BYTES).contains(&self.captured_bytes)
            && (1..=MAX_FRAME_BYTES).contains(&self.frame_bytes)
            && previous_s.is_none_or(|previous| self.seconds.abs_diff(previous) <= MAX_STEP_S)
    }
}
