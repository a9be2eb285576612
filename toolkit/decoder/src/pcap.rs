//! The pcap format (draft-ietf-opsawg-pcap §4 and §5): file header, records, and resynchronisation after a damaged
//! record header.

use std::io::Read;

use crate::buffer::Buffer;
use crate::compression::{Compression, Input};
use crate::issue::{DecodeError, IssueKind, Issues};

/// The file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureHeader {
    /// Compression of the file.
    pub compression: Compression,
    /// Timestamps have a resolution of nanoseconds, else of microseconds.
    pub nanosecond: bool,
    /// Byte order of the headers.
    pub big_endian: bool,
    /// Snapshot length: the maximum captured length of a frame; 0 for no limit.
    pub snaplen_bytes: u32,
    /// Link type (see [`LinkType`](crate::LinkType)).
    pub link_number: u16,
}

/// One record: a frame and its timestamp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub number: u64,
    pub offset: u64,
    pub t_ns: i64,
    pub frame_bytes: u32,
    pub data: &'a [u8],
}

const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// Maximum captured length of a frame; libpcap and Wireshark have the same limit.
const MAX_CAPTURED_BYTES: u32 = 256 << 10;
/// Maximum frame length of a plausible record: Linux's BIG TCP makes packets of up to 512 KiB.
const MAX_FRAME_BYTES: u32 = 1 << 20;
/// Maximum time between two plausible records that follow one another.
const MAX_STEP_S: u32 = 86_400;
/// Consecutive plausible records at which reading resumes.
const RESYNC_RECORDS: usize = 3;
/// Upper bound of the length of these records.
const RESYNC_BYTES: usize = RESYNC_RECORDS * (MAX_CAPTURED_BYTES as usize + RECORD_HEADER_BYTES);

/// A reader of records.
pub(crate) struct Records<R: Read> {
    buffer: Buffer<Input<R>>,
    header: CaptureHeader,
    number: u64,
    last_s: Option<u32>,
    done: bool,
}

/// The fields of a record header.
#[derive(Clone, Copy)]
struct RecordHeader {
    seconds: u32,
    fraction: u32,
    captured_bytes: u32,
    frame_bytes: u32,
}

impl CaptureHeader {
    fn parse(
        octets: &[u8; FILE_HEADER_BYTES],
        compression: Compression,
    ) -> Result<Self, DecodeError> {
        let (big_endian, nanosecond) = match octets[..4] {
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, false),
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, false),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, true),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, true),
            _ => return Err(not_a_capture(octets)),
        };
        let mut header = Self {
            compression,
            nanosecond,
            big_endian,
            snaplen_bytes: 0,
            link_number: 0,
        };
        header.snaplen_bytes = header.u32_at(octets, 16);
        // The upper half holds the length of the frame check sequence.
        header.link_number = header.u32_at(octets, 20) as u16;
        Ok(header)
    }

    #[inline]
    fn u32_at(self, octets: &[u8], at: usize) -> u32 {
        let chunk = octets.get(at..).and_then(|rest| rest.first_chunk());
        match (chunk, self.big_endian) {
            (Some(chunk), true) => u32::from_be_bytes(*chunk),
            (Some(chunk), false) => u32::from_le_bytes(*chunk),
            (None, _) => 0,
        }
    }

    #[inline]
    fn parse_record(self, octets: &[u8]) -> RecordHeader {
        RecordHeader {
            seconds: self.u32_at(octets, 0),
            fraction: self.u32_at(octets, 4),
            captured_bytes: self.u32_at(octets, 8),
            frame_bytes: self.u32_at(octets, 12),
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

    /// Maximum captured length of a record. An unreasonable snapshot length is ignored.
    #[inline]
    fn max_captured_bytes(self) -> u32 {
        match self.snaplen_bytes {
            1..MAX_CAPTURED_BYTES => self.snaplen_bytes,
            _ => MAX_CAPTURED_BYTES,
        }
    }

    #[inline]
    fn t_ns(self, record: RecordHeader) -> i64 {
        let unit = if self.nanosecond { 1 } else { 1_000 };
        i64::from(record.seconds) * 1_000_000_000 + i64::from(record.fraction) * unit
    }
}

/// Describes an input that does not start with the magic number of pcap.
fn not_a_capture(start: &[u8]) -> DecodeError {
    let found = match start {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => return DecodeError::Pcapng,
        [0xa1, 0xb2, 0xcd, 0x34, ..] | [0x34, 0xcd, 0xb2, 0xa1, ..] => {
            "it is a pcap file of the modified format (magic number a1b2cd34)"
        }
        [b's', b'n', b'o', b'o', b'p', 0, ..] => "it is a Solaris snoop file",
        [b'B', b'Z', b'h', ..] => "it is compressed with bzip2",
        [b'P', b'K', 3, 4, ..] => "it is a zip archive",
        [0x04, 0x22, 0x4d, 0x18, ..] => "it is compressed with lz4",
        _ => {
            let hex: Vec<String> = start.iter().take(4).map(|o| format!("{o:02x}")).collect();
            let found = format!("it starts with the octets {}", hex.join(" "));
            return DecodeError::NotACapture { found };
        }
    };
    DecodeError::NotACapture {
        found: found.to_owned(),
    }
}

impl<R: Read> Records<R> {
    /// Reads the file header.
    pub fn new(source: R, issues: &mut Issues) -> Result<Self, DecodeError> {
        let input = Input::new(source).map_err(DecodeError::Io)?;
        let compression = input.compression();
        let mut buffer = Buffer::new(input);
        if !buffer.ensure(FILE_HEADER_BYTES) {
            return Err(incomplete_header(&mut buffer, compression));
        }
        let Some(octets) = buffer.octets().first_chunk::<FILE_HEADER_BYTES>() else {
            return Err(incomplete_header(&mut buffer, compression));
        };
        let header = CaptureHeader::parse(octets, compression)?;
        let version = header.u32_at(octets, 4);
        let expected = if header.big_endian {
            0x0002_0004
        } else {
            0x0004_0002
        };
        if version != expected {
            issues.add(0, 4, IssueKind::FileHeader, || {
                format!("the version field is {version:#010x}, not 2.4; read as 2.4")
            });
        }
        buffer.consume(FILE_HEADER_BYTES);
        Ok(Self {
            buffer,
            header,
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
            if !self.buffer.ensure(RECORD_HEADER_BYTES) {
                self.end_of_input(0, issues);
                return None;
            }
            self.number += 1;
            let mut record = self.header.parse_record(self.buffer.octets());
            // No frame is empty, but a file that lost its end in a power failure may be padded with zeros.
            let valid = record.frame_bytes > 0
                && record.captured_bytes <= record.frame_bytes
                && record.captured_bytes <= self.header.max_captured_bytes()
                && record.fraction < self.header.fractions_per_second();
            if !valid && !self.accept_invalid_header(&mut record, issues) {
                continue;
            }
            let record_bytes = RECORD_HEADER_BYTES + record.captured_bytes as usize;
            self.last_s = Some(record.seconds);
            if !self.buffer.ensure(record_bytes) {
                self.end_of_input(record.captured_bytes, issues);
                continue;
            }
            let offset = self.buffer.offset();
            self.buffer.consume(record_bytes);
            return Some(Record {
                number: self.number,
                offset,
                t_ns: self.header.t_ns(record),
                frame_bytes: record.frame_bytes,
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
        if found.fraction >= self.header.fractions_per_second() {
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
        } else if found.captured_bytes > self.header.max_captured_bytes() {
            issues.add(number, offset, IssueKind::RecordLength, || {
                let (captured, limit) = (found.captured_bytes, self.header.snaplen_bytes);
                format!("captured length {captured} above snapshot length {limit}; kept")
            });
        }
        true
    }

    /// Whether the record at the front is followed by a plausible record or by the end of the input.
    fn has_plausible_successor(&mut self, record: RecordHeader) -> bool {
        let record_bytes = RECORD_HEADER_BYTES + record.captured_bytes as usize;
        if self.buffer.ensure(record_bytes + RECORD_HEADER_BYTES) {
            let next = self
                .header
                .parse_record(&self.buffer.octets()[record_bytes..]);
            return next.is_plausible(Some(record.seconds));
        }
        record.frame_bytes > 0 && self.buffer.octets().len() >= record_bytes
    }

    /// Skips to the next sequence of plausible records and adds an issue.
    fn resync(&mut self, kind: IssueKind, found: &str, issues: &mut Issues) {
        let (number, offset) = (self.number, self.buffer.offset());
        self.buffer.consume(1);
        loop {
            self.buffer.ensure(2 * RESYNC_BYTES);
            let octets = self.buffer.octets();
            let last = if self.buffer.ended() {
                octets.len()
            } else {
                octets.len().saturating_sub(RESYNC_BYTES)
            };
            if let Some(at) = (0..=last).find(|&at| self.starts_records(octets, at)) {
                self.buffer.consume(at);
                let skipped = self.buffer.offset() - offset;
                issues.add(number, offset, kind, || {
                    format!("{found}; skipped {skipped} octets to the next record")
                });
                return;
            }
            self.buffer.consume(last + 1);
            if self.buffer.ended() {
                break;
            }
        }
        self.done = true;
        issues.add(number, offset, kind, || {
            format!("{found}; no record follows, all earlier records are kept")
        });
        self.report_read_error(issues);
    }

    /// Whether a sequence of plausible records starts at `at`. Fewer than [`RESYNC_RECORDS`] suffice if they end with
    /// the input; a single one must be near the last valid record in time.
    fn starts_records(&self, octets: &[u8], mut at: usize) -> bool {
        let mut previous_s = self.last_s;
        let min_records = if previous_s.is_some() { 1 } else { 2 };
        for found in 0..RESYNC_RECORDS {
            let Some(rest) = octets.get(at..).filter(|r| r.len() >= RECORD_HEADER_BYTES) else {
                return found >= min_records && at == octets.len();
            };
            let record = self.header.parse_record(rest);
            let valid = record.captured_bytes <= record.frame_bytes
                && record.fraction < self.header.fractions_per_second();
            if !valid || !record.is_plausible(previous_s) {
                return false;
            }
            previous_s = Some(record.seconds);
            at += RECORD_HEADER_BYTES + record.captured_bytes as usize;
        }
        true
    }

    /// Handles the end of the input: between records, within a record header, or within the `captured_bytes` of a
    /// record.
    #[cold]
    fn end_of_input(&mut self, captured_bytes: u32, issues: &mut Issues) {
        let left = self.buffer.octets().len();
        if self.report_read_error(issues) {
            self.done = true;
        } else if left < RECORD_HEADER_BYTES {
            self.done = true;
            if left > 0 {
                let (record, offset) = (self.number + 1, self.buffer.offset());
                issues.add(record, offset, IssueKind::Cut, || {
                    format!("the input ends within a record header, after {left} of 16 octets")
                });
            }
        } else {
            let have = left - RECORD_HEADER_BYTES;
            let text =
                format!("the input ends within a record, after {have} of {captured_bytes} octets");
            self.resync(IssueKind::Cut, &text, issues);
        }
    }

    /// Adds an issue if a read error ended the input. Returns whether it did.
    fn report_read_error(&mut self, issues: &mut Issues) -> bool {
        let Some(error) = self.buffer.take_error() else {
            return false;
        };
        let offset = self.buffer.offset() + self.buffer.octets().len() as u64;
        if error.raw_os_error().is_some() {
            issues.add(self.number, offset, IssueKind::ReadError, || {
                format!("{error}; all earlier records are kept")
            });
        } else {
            let name = self.header.compression.name();
            issues.add(self.number, offset, IssueKind::Compression, || {
                format!("the {name} stream is damaged or truncated ({error}); all earlier records are kept")
            });
        }
        true
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

/// The error for an input that ends within the file header.
fn incomplete_header<R: Read>(
    buffer: &mut Buffer<Input<R>>,
    compression: Compression,
) -> DecodeError {
    let have_bytes = buffer.octets().len();
    match buffer.take_error() {
        Some(error) if error.raw_os_error().is_some() => DecodeError::Io(error),
        Some(error) => DecodeError::Compression {
            name: compression.name(),
            offset: have_bytes as u64,
            detail: error.to_string(),
        },
        None if have_bytes == 0 => DecodeError::Empty,
        // The magic number has four octets.
        None => match CaptureHeader::parse(&padded(buffer.octets()), compression) {
            Err(error) if have_bytes >= 4 => error,
            _ => DecodeError::HeaderCut { have_bytes },
        },
    }
}

fn padded(octets: &[u8]) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    for (to, from) in header.iter_mut().zip(octets) {
        *to = *from;
    }
    header
}
