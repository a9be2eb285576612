//! Formats whose records begin with a header of fixed length that gives the length of the record: snoop and ERF.

use std::io::Read;

use crate::buffer::Buffer;
use crate::compression::Input;
use crate::container::{self, CaptureHeader, MAX_CAPTURED_BYTES, Place, Record, report_read_error};
use crate::issue::{IssueKind, Issues};
use crate::link::LinkType;

/// Consecutive valid records at which reading resumes after damage.
const RESYNC_RECORDS: usize = 3;
/// Upper bound of the length of these records.
const RESYNC_BYTES: usize = RESYNC_RECORDS * (MAX_CAPTURED_BYTES as usize + 256);
/// Maximum time between two records of a valid sequence.
const MAX_STEP_NS: i64 = 86_400_000_000_000;

/// A record header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub t_ns: i64,
    /// Length of the record with its header.
    pub bytes: usize,
    /// Where the frame starts in the record, and how much of it was captured.
    pub data_at: usize,
    pub captured_bytes: usize,
    pub frame_bytes: u32,
    pub link: Result<LinkType, u16>,
    /// Packets that the capture lost: since the record before, or so far.
    pub lost: u64,
    /// Whether the record holds a packet.
    pub packet: bool,
}

/// A format.
pub(crate) trait Layout {
    /// Length of a record header.
    const HEADER_BYTES: usize;
    /// Whether [`Header::lost`] counts from the start of the capture.
    const LOST_SO_FAR: bool;

    /// Parses the record header at the start of `octets`; `None` if it is invalid.
    fn parse(&self, octets: &[u8]) -> Option<Header>;
}

/// Whether valid records start at `at`: three, or those up to the end of the input, one of them complete.
pub(crate) fn starts_records<L: Layout>(layout: &L, octets: &[u8], mut at: usize) -> bool {
    let mut previous_ns: Option<i64> = None;
    for found in 0..RESYNC_RECORDS {
        let rest = octets.get(at..).unwrap_or_default();
        if rest.len() < L::HEADER_BYTES {
            return found > 0;
        }
        let Some(header) = layout.parse(rest) else {
            return false;
        };
        if previous_ns.is_some_and(|previous| header.t_ns.abs_diff(previous) > MAX_STEP_NS as u64) {
            return false;
        }
        previous_ns = Some(header.t_ns);
        at += header.bytes;
        if at > octets.len() {
            return found > 0;
        }
    }
    true
}

/// A reader of the records of such a format.
pub(crate) struct Framed<R: Read, L: Layout> {
    buffer: Buffer<Input<R>>,
    layout: L,
    header: CaptureHeader,
    number: u64,
    lost: u64,
    done: bool,
}

impl<R: Read, L: Layout> Framed<R, L> {
    /// A reader of the records that start at the front of `buffer`.
    pub fn new(buffer: Buffer<Input<R>>, layout: L, header: CaptureHeader) -> Self {
        Self {
            buffer,
            layout,
            header,
            number: 0,
            lost: 0,
            done: false,
        }
    }

    pub fn header(&self) -> CaptureHeader {
        self.header
    }

    /// Offset of the next record in the uncompressed input.
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// The next record; `None` at the end of the input.
    pub fn next(&mut self, issues: &mut Issues) -> Option<Record<'_>> {
        while !self.done {
            if !self.buffer.ensure(L::HEADER_BYTES) {
                self.end_of_input(L::HEADER_BYTES, issues);
                break;
            }
            let Some(header) = self.layout.parse(self.buffer.octets()) else {
                self.resync("the record header is invalid", issues);
                continue;
            };
            if !self.buffer.ensure(header.bytes) {
                self.end_of_input(header.bytes, issues);
                break;
            }
            // Now that all of it is loaded, extensions of the header included.
            let Some(header) = self.layout.parse(self.buffer.octets()) else {
                self.resync("the record is invalid", issues);
                continue;
            };
            let offset = self.buffer.offset();
            self.buffer.consume(header.bytes);
            if !header.packet {
                continue;
            }
            self.number += 1;
            self.lost = if L::LOST_SO_FAR {
                header.lost
            } else {
                self.lost.saturating_add(header.lost)
            };
            let record = self.buffer.consumed(header.bytes);
            let end = header.data_at + header.captured_bytes;
            return Some(Record {
                number: self.number,
                place: Place {
                    record: self.number,
                    offset,
                },
                t_ns: header.t_ns,
                frame_bytes: header.frame_bytes,
                link: header.link,
                data: record.get(header.data_at..end).unwrap_or_default(),
            });
        }
        self.report_lost(issues);
        None
    }

    fn report_lost(&mut self, issues: &mut Issues) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            issues.add(0, self.buffer.offset(), IssueKind::CaptureDrop, || {
                format!("the capture lost {lost} packets")
            });
        }
    }

    #[cold]
    fn end_of_input(&mut self, need_bytes: usize, issues: &mut Issues) {
        self.done = true;
        let (number, offset) = (self.number + 1, self.buffer.offset());
        let left = self.buffer.octets().len();
        if !report_read_error(&mut self.buffer, number, issues) && left > 0 {
            issues.add(number, offset, IssueKind::Cut, || {
                format!("the input ends within a record, after {left} of {need_bytes} octets")
            });
        }
    }

    /// Skips to the next valid records and adds an issue.
    #[cold]
    fn resync(&mut self, found: &str, issues: &mut Issues) {
        let (number, offset) = (self.number + 1, self.buffer.offset());
        let layout = &self.layout;
        let resumed = container::seek(&mut self.buffer, RESYNC_BYTES, |octets, at| {
            at < octets.len() && starts_records(layout, octets, at)
        });
        self.done = !resumed;
        let skipped = self.buffer.offset() - offset;
        issues.add(number, offset, IssueKind::RecordHeader, || {
            if resumed {
                format!("{found}; skipped {skipped} octets to the next record")
            } else {
                format!("{found}; no record follows, all earlier records are kept")
            }
        });
        if !resumed {
            report_read_error(&mut self.buffer, number, issues);
        }
    }
}
