//! Several captures merged in the order of time, for example the ring buffer of one flight.
//!
//! Each file is read in its order; the next record is the earliest one of those at the front of the files. A file is
//! open only while the merge is within it, so that memory depends on the files that overlap and not on their number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};

use crate::container::{CaptureHeader, Place, Record, Records};
use crate::dissector::{Dissector, check_links};
use crate::issue::{DecodeError, IssueKind, Issues};
use crate::link::LinkType;

/// A file of a merged capture.
pub struct Part<R> {
    /// Opens the file.
    pub open: Box<dyn FnMut() -> io::Result<R> + Send>,
    /// Whether it can be opened again. Otherwise, it stays open from the start.
    pub reopens: bool,
}

/// The record at the front of a file.
struct Head {
    place: Place,
    t_ns: i64,
    frame_bytes: u32,
    link: Result<LinkType, u16>,
    data: Vec<u8>,
}

impl Head {
    fn of(record: &Record<'_>) -> Self {
        let mut head = Self {
            place: record.place,
            t_ns: record.t_ns,
            frame_bytes: record.frame_bytes,
            link: record.link,
            data: Vec::new(),
        };
        head.data.extend_from_slice(record.data);
        head
    }

    fn set(&mut self, record: &Record<'_>) {
        self.place = record.place;
        self.t_ns = record.t_ns;
        self.frame_bytes = record.frame_bytes;
        self.link = record.link;
        self.data.clear();
        self.data.extend_from_slice(record.data);
    }
}

/// A file that has records left.
struct Source<R: Read> {
    /// Index among the files that were given.
    file: u32,
    part: Part<R>,
    opened: Option<(Records<R>, Head)>,
}

/// A reader of the records of several files.
pub(crate) struct Merged<R: Read> {
    /// In the order of their first records.
    sources: Vec<Source<R>>,
    /// Time and source of the record at the front of each file.
    front: BinaryHeap<Reverse<(i64, usize)>>,
    /// The source of the last record.
    current: Option<usize>,
    header: CaptureHeader,
    link_numbers: Vec<u16>,
    number: u64,
}

impl<R: Read> Merged<R> {
    /// Opens each file and reads its first record. An error comes with the index of its file.
    pub fn new(
        parts: Vec<Part<R>>,
        dissector: &dyn Dissector,
        issues: &mut Issues,
    ) -> Result<Self, (usize, DecodeError)> {
        let mut header: Option<CaptureHeader> = None;
        let mut link_numbers = Vec::new();
        let mut sources = Vec::new();
        for (index, part) in parts.into_iter().enumerate() {
            let (mut source, found) =
                Source::new(index, part, issues).map_err(|error| (index, error))?;
            check_links(&source.link_numbers, dissector).map_err(|error| (index, error))?;
            for number in source.link_numbers.drain(..) {
                if !link_numbers.contains(&number) {
                    link_numbers.push(number);
                }
            }
            header = Some(header.map_or(found, |all| combine(all, found)));
            sources.push(source);
        }
        let header = header.ok_or((0, DecodeError::Empty))?;
        sources.retain(|source| source.first_ns.is_some());
        sources.sort_by_key(|source| source.first_ns);
        let times = sources.iter().map(|source| source.first_ns.unwrap_or(0));
        let front = times.zip(0..).map(Reverse).collect();
        Ok(Self {
            sources: sources.into_iter().map(|found| found.source).collect(),
            front,
            current: None,
            header,
            link_numbers,
            number: 0,
        })
    }

    pub fn header(&self) -> CaptureHeader {
        self.header
    }

    /// The link types of all files, each once.
    pub fn link_numbers(&self) -> &[u16] {
        &self.link_numbers
    }

    /// The next record. `issues.file` names its file.
    pub fn next(&mut self, issues: &mut Issues) -> Option<Record<'_>> {
        if let Some(index) = self.current.take() {
            let source = &mut self.sources[index];
            issues.file = source.file;
            if let Some(t_ns) = source.advance(issues) {
                self.front.push(Reverse((t_ns, index)));
            }
        }
        let index = loop {
            let Reverse((_, index)) = self.front.pop()?;
            let source = &mut self.sources[index];
            issues.file = source.file;
            if source.opened.is_some() || source.reopen(issues) {
                break index;
            }
        };
        self.current = Some(index);
        self.number += 1;
        let (_, head) = self.sources[index].opened.as_ref()?;
        Some(Record {
            number: self.number,
            place: head.place,
            t_ns: head.t_ns,
            frame_bytes: head.frame_bytes,
            link: head.link,
            data: &head.data,
        })
    }
}

/// A file whose first record has been read.
struct Found<R: Read> {
    source: Source<R>,
    first_ns: Option<i64>,
    link_numbers: Vec<u16>,
}

impl<R: Read> Source<R> {
    #[allow(clippy::new_ret_no_self, reason = "with what was found in it")]
    fn new(
        index: usize,
        mut part: Part<R>,
        issues: &mut Issues,
    ) -> Result<(Found<R>, CaptureHeader), DecodeError> {
        let file = u32::try_from(index).unwrap_or(u32::MAX);
        let mut scratch = Issues::default();
        issues.file = file;
        let reopens = part.reopens;
        let kept = if reopens { &mut scratch } else { &mut *issues };
        let mut records = Records::new((part.open)().map_err(DecodeError::Io)?, kept)?;
        let header = records.header();
        let head = records.next(kept).map(|record| Head::of(&record));
        let link_numbers = records.link_numbers();
        let first_ns = head.as_ref().map(|head| head.t_ns);
        if first_ns.is_none() {
            // It is not opened again.
            issues.absorb(scratch);
        }
        let opened = head.filter(|_| !reopens).map(|head| (records, head));
        let source = Self { file, part, opened };
        let found = Found {
            source,
            first_ns,
            link_numbers,
        };
        Ok((found, header))
    }

    /// Opens the file again and reads its first record. Returns false, with an issue, if it is not what it was.
    fn reopen(&mut self, issues: &mut Issues) -> bool {
        let opened = (self.part.open)()
            .map_err(DecodeError::Io)
            .and_then(|source| Records::new(source, issues));
        let text = match opened {
            Ok(mut records) => {
                if let Some(record) = records.next(issues) {
                    let head = Head::of(&record);
                    self.opened = Some((records, head));
                    return true;
                }
                "the file has lost its records while it was read".to_owned()
            }
            Err(error) => format!("the file {error}, although it was opened before"),
        };
        issues.add(0, 0, IssueKind::ReadError, || text);
        false
    }

    /// Reads the next record and returns its time; `None` at the end of the file, which it closes.
    fn advance(&mut self, issues: &mut Issues) -> Option<i64> {
        let (records, head) = self.opened.as_mut()?;
        if let Some(record) = records.next(issues) {
            head.set(&record);
            return Some(head.t_ns);
        }
        self.opened = None;
        None
    }
}

/// The properties of two files together: the coarsest resolution and the largest snapshot length.
fn combine(one: CaptureHeader, other: CaptureHeader) -> CaptureHeader {
    CaptureHeader {
        resolution_ns: one.resolution_ns.max(other.resolution_ns),
        snaplen_bytes: match (one.snaplen_bytes, other.snaplen_bytes) {
            (0, _) | (_, 0) => 0,
            (a, b) => a.max(b),
        },
        ..one
    }
}
