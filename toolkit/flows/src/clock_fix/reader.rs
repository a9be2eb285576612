//! The segments of a capture with the corrected times, in their order.
//!
//! Where there are two clocks, the capture is read twice at the same time, once for each: the times of one clock are in
//! order, and the next segment is the earlier one of the two at the front. The memory does not depend on how far the
//! places in the file are apart.

use std::io::Read;

use hindflight_decoder::{
    CaptureHeader, Captured, Issue, IssueKind, OtherPacket, Reader, Segment, Tally,
};

use super::{ClockFix, is_step};

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

impl Head {
    fn new(captured: &Captured<'_>, fix_ns: i64) -> Self {
        let mut head = Self {
            segment: *captured.segment,
            fix_ns,
            options: [0; MAX_OPTION_BYTES],
            options_bytes: captured.options_other.len().min(MAX_OPTION_BYTES),
        };
        head.segment.t_ns = head.segment.t_ns.saturating_add(fix_ns);
        head.options[..head.options_bytes]
            .copy_from_slice(&captured.options_other[..head.options_bytes]);
        head
    }
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
    steps: Steps,
}

/// Which steps of the clocks remain in the corrected times, and the issues of the decoder that say so.
#[derive(Default)]
struct Steps {
    /// By clock, the last time as captured and as corrected.
    last_ns: [Option<(i64, i64)>; 2],
    /// Issues of the decoder that are judged.
    judged: usize,
    /// Those that the caller has yet to take.
    issues: Vec<Issue>,
    /// Steps that remain, of which the decoder has counted the issue only.
    more: u64,
}

impl Steps {
    /// Processes the next segment of the file, which is of `clock`, with `all` issues of the decoder up to it. Where
    /// there are two clocks, `shared`, a step in the file may be the way from one to the other.
    #[inline]
    fn push(&mut self, (clock, shared): (usize, bool), t_ns: i64, fix_ns: i64, all: &[Issue]) {
        let fixed_ns = t_ns.saturating_add(fix_ns);
        let last = self.last_ns[clock].replace((t_ns, fixed_ns));
        let steps = last.map(|last| (is_step(last.0, t_ns), is_step(last.1, fixed_ns)));
        // Between segments without a step, another packet has a time of its own.
        let remains = steps.map_or(!shared, |(was, is)| is || !(was || shared));
        let listed = all.len() > self.judged && self.judge(all, remains);
        if !listed && steps == Some((true, true)) {
            self.more += 1;
        }
    }

    /// Keeps those of the issues that are not judged yet which remain. Returns whether any is about the clock.
    #[cold]
    fn judge(&mut self, all: &[Issue], remains: bool) -> bool {
        let new = &all[self.judged..];
        let kept = |issue: &&Issue| {
            // The decoder's count of further ones, without a record, includes those that are corrected.
            issue.kind != IssueKind::Clock || (remains && issue.record != 0)
        };
        self.issues.extend(new.iter().filter(kept).cloned());
        self.judged = all.len();
        new.iter().any(|issue| issue.kind == IssueKind::Clock)
    }
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
            steps: Steps::default(),
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
            segment: &head.segment,
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
            let segment = *captured.segment;
            let of = if shared {
                self.fix.clock_of(segment.src)
            } else {
                0
            };
            let fix_ns = self.fix.fix_ns(of, segment.record);
            if of == clock {
                *head = Some(Head::new(&captured, fix_ns));
            }
            if clock == 0 {
                self.steps
                    .push((of, shared), segment.t_ns, fix_ns, reader.issues());
            }
            if of != clock {
                left -= 1;
                if left == 0 {
                    return false;
                }
            }
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

    /// The issues since the last call. Of those about the clock, only the steps that remain in the corrected times.
    pub fn take_issues(&mut self) -> Vec<Issue> {
        let mut rows = std::mem::take(&mut self.fix.issues);
        let reader = &self.cursors[0].reader;
        let ended = reader.ended();
        if self.fix.rows.is_empty() {
            rows.extend_from_slice(&reader.issues()[self.steps.judged..]);
            self.steps.judged = reader.issues().len();
        } else if ended {
            // After the last segment.
            self.steps.judge(reader.issues(), true);
        }
        rows.append(&mut self.steps.issues);
        let more = std::mem::take(&mut self.steps.more);
        if more > 0 && ended {
            let text = format!("{more} more steps of the time; kept as they are");
            rows.push(super::issue(0, text));
        } else {
            self.steps.more = more;
        }
        rows
    }
}
