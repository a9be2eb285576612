//! The pcap container: file header, record headers, and how reading goes on behind a damaged one.
//! Knows nothing of frames. Format: draft-ietf-opsawg-pcap §4 (file header) and §5 (records).

use std::io::Read;

use crate::buffer::Buffer;
use crate::container::{Compression, Input};
use crate::issue::{DecodeError, IssueKind, Issues};

/// What the file header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureHeader {
    /// How the file is compressed.
    pub compression: Compression,
    /// Time stamps count nanoseconds; microseconds otherwise.
    pub nanosecond: bool,
    /// The writer put the most significant octet first.
    pub big_endian: bool,
    /// Most octets of a frame that the capture keeps; 0 means no limit.
    pub snaplen_bytes: u32,
    /// Number of the link type.
    pub link_number: u16,
}

/// One record: a frame with its time.
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
/// More than this no writer captures of one frame (libpcap and Wireshark refuse it too).
const MAX_CAPTURED_BYTES: u32 = 256 << 10;
/// Longest frame to believe while searching: Linux's BIG TCP makes packets of up to 512 KiB.
const MAX_FRAME_BYTES: u32 = 1 << 20;
/// While searching, a record further away in time than this from the last good one is not believed.
const MAX_STEP_S: u32 = 86_400;
/// So many plausible headers in a row make the place where reading goes on.
const CHAIN: usize = 3;
/// Octets to have at hand so that a chain can be followed.
const SEARCH_BYTES: usize = CHAIN * (MAX_CAPTURED_BYTES as usize + RECORD_HEADER_BYTES);

/// Reads records one after another.
pub(crate) struct Records<R: Read> {
    buffer: Buffer<Input<R>>,
    header: CaptureHeader,
    number: u64,
    last_s: Option<u32>,
    done: bool,
}

/// A record header as it stands.
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
        // The upper half tells the length of the frame check sequence; libpcap masks it likewise.
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
    fn record_at(self, octets: &[u8]) -> RecordHeader {
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

    /// Most octets a record may have: a snapshot length beyond reason limits nothing.
    #[inline]
    fn captured_limit(self) -> u32 {
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

/// Says what an input that is no pcap looks like.
pub(crate) fn not_a_capture(start: &[u8]) -> DecodeError {
    let found = match start {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => return DecodeError::Pcapng,
        [0xa1, 0xb2, 0xcd, 0x34, ..] | [0x34, 0xcd, 0xb2, 0xa1, ..] => {
            "it is a pcap of the modified kind (magic a1b2cd34)"
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
            return Err(short_header(&mut buffer, compression));
        }
        let Some(octets) = buffer.octets().first_chunk::<FILE_HEADER_BYTES>() else {
            return Err(short_header(&mut buffer, compression));
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

    /// Where reading stands in the uncompressed input.
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// The next record; none at the end of what can be read.
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
            let mut record = self.header.record_at(self.buffer.octets());
            let sound = record.captured_bytes <= record.frame_bytes
                && record.captured_bytes <= self.header.captured_limit()
                && record.fraction < self.header.fractions_per_second();
            if !sound && !self.judge(&mut record, issues) {
                continue;
            }
            let whole = RECORD_HEADER_BYTES + record.captured_bytes as usize;
            self.last_s = Some(record.seconds);
            if !self.buffer.ensure(whole) {
                self.end_of_input(record.captured_bytes, issues);
                continue;
            }
            let offset = self.buffer.offset();
            self.buffer.consume(whole);
            return Some(Record {
                number: self.number,
                offset,
                t_ns: self.header.t_ns(record),
                frame_bytes: record.frame_bytes,
                data: self.buffer.passed(record.captured_bytes as usize),
            });
        }
    }

    /// Decides on a header that is not sound: where what follows it is, the record is kept and the flaw noted;
    /// where not, the next place that looks like records is searched.
    #[cold]
    fn judge(&mut self, record: &mut RecordHeader, issues: &mut Issues) -> bool {
        let found = *record;
        let (number, offset) = (self.number, self.buffer.offset());
        if found.captured_bytes > MAX_CAPTURED_BYTES || !self.is_followed(found) {
            let text = format!(
                "record header makes no sense: {} octets captured of {}, fraction of a second {}",
                found.captured_bytes, found.frame_bytes, found.fraction
            );
            self.search(IssueKind::RecordHeader, &text, issues);
            return false;
        }
        if found.fraction >= self.header.fractions_per_second() {
            issues.add(number, offset, IssueKind::RecordTime, || {
                format!(
                    "the fraction of a second is {}; added as it stands",
                    found.fraction
                )
            });
        }
        if found.captured_bytes > found.frame_bytes {
            record.frame_bytes = found.captured_bytes;
            issues.add(number, offset, IssueKind::RecordLength, || {
                let (captured, frame) = (found.captured_bytes, found.frame_bytes);
                format!("{captured} octets captured of a frame of {frame}; taken as {captured}")
            });
        } else if found.captured_bytes > self.header.captured_limit() {
            issues.add(number, offset, IssueKind::RecordLength, || {
                let (captured, limit) = (found.captured_bytes, self.header.snaplen_bytes);
                format!("{captured} octets captured with a snapshot length of {limit}; kept")
            });
        }
        true
    }

    /// Whether behind the record at the front there is the end of the input or another header.
    fn is_followed(&mut self, record: RecordHeader) -> bool {
        let whole = RECORD_HEADER_BYTES + record.captured_bytes as usize;
        if self.buffer.ensure(whole + RECORD_HEADER_BYTES) {
            let next = self.header.record_at(&self.buffer.octets()[whole..]);
            return next.is_possible(Some(record.seconds));
        }
        self.buffer.octets().len() >= whole
    }

    /// Searches for the next place that looks like records and goes there; notes what was passed over.
    fn search(&mut self, kind: IssueKind, found: &str, issues: &mut Issues) {
        let (number, offset) = (self.number, self.buffer.offset());
        self.buffer.consume(1);
        loop {
            self.buffer.ensure(2 * SEARCH_BYTES);
            let octets = self.buffer.octets();
            let room = octets.len().saturating_sub(SEARCH_BYTES);
            let last = if self.buffer.ended() {
                octets.len()
            } else {
                room
            };
            if let Some(at) = (0..=last).find(|&at| self.is_chain(octets, at)) {
                self.buffer.consume(at);
                let skipped = self.buffer.offset() - offset;
                issues.add(number, offset, kind, || {
                    format!("{found}; reading goes on {skipped} octets further")
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
            format!("{found}; nothing that can be read follows, everything before is kept")
        });
        self.note_fault(issues);
    }

    /// Whether plausible records follow one another from `at` on: a few, or fewer that end with the input (a single
    /// one only if its time fits what came before).
    fn is_chain(&self, octets: &[u8], mut at: usize) -> bool {
        let mut near = self.last_s;
        let least = if near.is_some() { 1 } else { 2 };
        for found in 0..CHAIN {
            let Some(rest) = octets.get(at..).filter(|r| r.len() >= RECORD_HEADER_BYTES) else {
                return found >= least && at == octets.len();
            };
            let record = self.header.record_at(rest);
            let sound = record.captured_bytes <= record.frame_bytes
                && record.fraction < self.header.fractions_per_second();
            if !sound || !record.is_possible(near) {
                return false;
            }
            near = Some(record.seconds);
            at += RECORD_HEADER_BYTES + record.captured_bytes as usize;
        }
        true
    }

    /// The input has ended before the record at the front: cleanly, within a header, or within `captured_bytes`.
    #[cold]
    fn end_of_input(&mut self, captured_bytes: u32, issues: &mut Issues) {
        let left = self.buffer.octets().len();
        if self.note_fault(issues) {
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
            self.search(IssueKind::Cut, &text, issues);
        }
    }

    /// Notes what ended the input before its end, if anything did.
    fn note_fault(&mut self, issues: &mut Issues) -> bool {
        let Some(error) = self.buffer.take_fault() else {
            return false;
        };
        let offset = self.buffer.offset() + self.buffer.octets().len() as u64;
        if error.raw_os_error().is_some() {
            issues.add(self.number, offset, IssueKind::ReadError, || {
                format!("{error}; everything before is kept")
            });
        } else {
            let name = self.header.compression.name();
            issues.add(self.number, offset, IssueKind::Compression, || {
                format!("the {name} stream is damaged or ends early ({error}); everything before is kept")
            });
        }
        true
    }
}

impl RecordHeader {
    /// Whether this can be the header of a record whose neighbour is at `near_s`.
    fn is_possible(self, near_s: Option<u32>) -> bool {
        (1..=MAX_CAPTURED_BYTES).contains(&self.captured_bytes)
            && (1..=MAX_FRAME_BYTES).contains(&self.frame_bytes)
            && near_s.is_none_or(|near| self.seconds.abs_diff(near) <= MAX_STEP_S)
    }
}

/// Why there is no whole file header.
fn short_header<R: Read>(buffer: &mut Buffer<Input<R>>, compression: Compression) -> DecodeError {
    let have_bytes = buffer.octets().len();
    match buffer.take_fault() {
        Some(error) if error.raw_os_error().is_some() => DecodeError::Io(error),
        Some(error) => DecodeError::Compression {
            name: compression.name(),
            offset: have_bytes as u64,
            detail: error.to_string(),
        },
        None if have_bytes == 0 => DecodeError::Empty,
        // Four octets tell; fewer may be the start of anything.
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
