//! The segments of a capture with the corrected times, in their order.
//!
//! Where there are two clocks, the capture is read twice at the same time, once for each: the times of one clock are in
//! order, and the next segment is the earlier one of the two at the front. The memory does not depend on how far the
//! places in the file are apart.

use std::io::Read;

use hindflight_decoder::{
    CaptureHeader, Captured, Issue, IssueKind, OtherPacket, Reader, Segment, Tally,
};

use super::ClockFix;

/// Most octets of the options of a TCP header (RFC 9293 §3.1).
const MAX_OPTION_BYTES: usize = 40;

/// Segments of the other clock after which [`Corrected::next_segment`] returns, so that the caller can take the others.
const SEGMENTS_PER_PAUSE: u32 = 1 << 16;

/// A segment at the front, with its correction.
struct Head {
    segment: Segment,
    fix_ns: i64,
    options: [u8; MAX_OPTION_BYTES],
    options_bytes: usize,
}

struct Cursor<R: Read> {
    reader: Reader<R>,
    head: Option<Head>,
}

/// Reads a capture, its times corrected.
pub struct Corrected<R: Read> {
    fix: ClockFix,
    /// One for all, or one for each clock.
    cursors: Vec<Cursor<R>>,
    /// The segment that was returned last.
    current: Option<Head>,
    fix_given: bool,
    issues_given: usize,
}

impl<R: Read> Corrected<R> {
    /// Reads with `readers`, as many as `fix.cursors()` says, of the same capture.
    pub fn new(readers: Vec<Reader<R>>, fix: ClockFix) -> Self {
        debug_assert_eq!(readers.len(), fix.cursors(), "one reader per clock");
        let cursor = |reader| Cursor { reader, head: None };
        Self {
            fix,
            cursors: readers.into_iter().map(cursor).collect(),
            current: None,
            fix_given: false,
            issues_given: 0,
        }
    }

    /// The next segment, and what was added to its time; `None` as that of [`Reader::next_segment`].
    #[inline]
    pub fn next_segment(&mut self) -> Option<(Captured<'_>, i64)> {
        if self.fix.rows.is_empty() {
            return Some((self.cursors[0].reader.next_segment()?, 0));
        }
        self.next_corrected()
    }

    fn next_corrected(&mut self) -> Option<(Captured<'_>, i64)> {
        for clock in 0..self.cursors.len() {
            if !self.fill(clock) {
                return None;
            }
        }
        let front = |cursor: &&mut Cursor<R>| {
            let head = cursor.head.as_ref()?;
            Some((head.segment.t_ns, head.segment.record))
        };
        let with_head = self
            .cursors
            .iter_mut()
            .filter(|cursor| cursor.head.is_some());
        self.current = with_head.min_by_key(front)?.head.take();
        let head = self.current.as_ref()?;
        let captured = Captured {
            segment: head.segment,
            options_other: &head.options[..head.options_bytes],
        };
        Some((captured, head.fix_ns))
    }

    /// Reads the front segment of `clock`. Returns false at a pause of the reader.
    fn fill(&mut self, clock: usize) -> bool {
        let shared = self.cursors.len() > 1;
        let Cursor { reader, head } = &mut self.cursors[clock];
        let mut left = SEGMENTS_PER_PAUSE;
        while head.is_none() && !reader.ended() {
            let Some(captured) = reader.next_segment() else {
                return reader.ended();
            };
            if shared && self.fix.clock_of(captured.segment.src) != clock {
                left -= 1;
                if left == 0 {
                    return false;
                }
                continue;
            }
            let mut next = Head {
                segment: captured.segment,
                fix_ns: self.fix.fix_ns(clock, captured.segment.record),
                options: [0; MAX_OPTION_BYTES],
                options_bytes: captured.options_other.len().min(MAX_OPTION_BYTES),
            };
            next.segment.t_ns = next.segment.t_ns.saturating_add(next.fix_ns);
            next.options[..next.options_bytes]
                .copy_from_slice(&captured.options_other[..next.options_bytes]);
            *head = Some(next);
        }
        true
    }

    /// Whether all has been read.
    pub fn ended(&self) -> bool {
        let ended = |cursor: &Cursor<R>| cursor.reader.ended() && cursor.head.is_none();
        self.cursors.iter().all(ended)
    }

    /// The file header.
    pub fn header(&self) -> CaptureHeader {
        self.cursors[0].reader.header()
    }

    /// The link types so far.
    pub fn link_names(&self) -> Vec<String> {
        self.cursors[0].reader.link_names()
    }

    /// Counts of the packets read so far; times are those of the capture.
    pub fn tally(&self) -> &Tally {
        self.cursors[0].reader.tally()
    }

    /// The IP packets other than TCP segments since the last call.
    pub fn take_others(&mut self) -> Vec<OtherPacket> {
        for cursor in &mut self.cursors[1..] {
            drop(cursor.reader.take_others());
        }
        let mut others = self.cursors[0].reader.take_others();
        if !self.fix.rows.is_empty() {
            for other in &mut others {
                let fix_ns = self.fix.fix_ns(self.fix.clock_of(other.src), other.record);
                other.t_ns = other.t_ns.saturating_add(fix_ns);
            }
        }
        others
    }

    /// The issues since the last call. Those about the clock are about what was corrected.
    pub fn take_issues(&mut self) -> Vec<Issue> {
        let mut rows = Vec::new();
        if !std::mem::replace(&mut self.fix_given, true) {
            rows.append(&mut self.fix.issues);
        }
        let all = self.cursors[0].reader.issues();
        let corrected = !self.fix.rows.is_empty();
        let kept = |issue: &&Issue| !(corrected && issue.kind == IssueKind::Clock);
        rows.extend(all[self.issues_given..].iter().filter(kept).cloned());
        self.issues_given = all.len();
        rows
    }
}
