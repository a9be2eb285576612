//! The asking end of an application that sends pages: asks, waits for the last octet, thinks, asks again.
//!
//! Does not depend on how the pages travel. Requests are repeated until the page begins to arrive.

use hindflight_kernels::StreamRng;

use super::data_source::PageSizes;
use super::random::draw;
use crate::config::Spread;
use crate::sim::histogram::Histogram;
use crate::sim::time::{NEVER, Nanos, SECOND};

/// First repetition of a request (RFC 6298 §2.1's timeout without a sample), doubled each time.
const FIRST_RETRY_NS: Nanos = SECOND;
/// Longest time between two repetitions.
const LONGEST_RETRY_NS: Nanos = 60 * SECOND;

/// What it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Nothing before the connection stands.
    Idle,
    /// Has asked; the page begins at `begin` and ends at `end` (stream offsets after the last octet).
    Waiting {
        since: Nanos,
        begin: u64,
        end: u64,
        retry: Nanos,
    },
    /// Reads and thinks until its deadline.
    Thinking,
    /// Has all its pages.
    Done,
}

/// What asks for pages.
#[derive(Debug)]
pub struct Browser {
    doing: Doing,
    deadline: Nanos,
    request_due: bool,
    sizes: PageSizes,
    think_ns: Nanos,
    spread: Spread,
    rng: StreamRng,
    /// Pages to load; none: without end.
    wanted: Option<u64>,
    asked: u64,
    /// Offset after the last octet of all pages asked for so far.
    pages_end: u64,
    /// Octets of a request.
    pub request_bytes: u16,
    /// When the last page that has arrived is or will have been read, and how long it took.
    arrived: Option<(Nanos, Nanos)>,
    loads: Histogram,
}

/// The random streams of a browser: the sizes are those that the sending end draws as well.
pub struct Draws {
    /// Sizes of the pages.
    pub sizes: PageSizes,
    /// Times of thinking.
    pub thinking: StreamRng,
}

impl Browser {
    /// A browser that thinks for `think_ns` between pages and wants `wanted` of them.
    pub fn new(
        draws: Draws,
        think_ns: Nanos,
        spread: Spread,
        wanted: Option<u64>,
        request_bytes: u16,
    ) -> Self {
        Self {
            doing: Doing::Idle,
            deadline: NEVER,
            request_due: false,
            sizes: draws.sizes,
            think_ns,
            spread,
            rng: draws.thinking,
            wanted,
            asked: 0,
            pages_end: 1,
            request_bytes,
            arrived: None,
            loads: Histogram::default(),
        }
    }

    /// When it wants to be called.
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// The connection stands at `time` without a handshake.
    pub fn open_at(&mut self, time: Nanos) {
        self.deadline = time;
    }

    /// The connection stands.
    pub fn opened(&mut self, now: Nanos) {
        if self.doing == Doing::Idle {
            self.ask(now);
        }
    }

    /// Its time has come.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.deadline > now {
            return;
        }
        match &mut self.doing {
            Doing::Waiting { retry, .. } => {
                *retry = (*retry * 2).min(LONGEST_RETRY_NS);
                self.deadline = now + *retry;
                self.request_due = true;
            }
            Doing::Idle | Doing::Thinking => self.ask(now),
            Doing::Done => self.deadline = NEVER,
        }
    }

    fn ask(&mut self, now: Nanos) {
        self.settle(now);
        let begin = self.pages_end;
        self.pages_end += self.sizes.next_bytes();
        self.asked += 1;
        self.request_due = true;
        self.doing = Doing::Waiting {
            since: now,
            begin,
            end: self.pages_end,
            retry: FIRST_RETRY_NS,
        };
        self.deadline = now + FIRST_RETRY_NS;
    }

    /// Octets up to `arrived` are there in order; `read_at` says when the application has read up to an offset.
    pub fn on_arrival(&mut self, arrived: u64, read_at: impl Fn(u64) -> Nanos) {
        let Doing::Waiting {
            since, begin, end, ..
        } = self.doing
        else {
            return;
        };
        if arrived > begin {
            self.deadline = NEVER;
        }
        if arrived < end {
            return;
        }
        let done = read_at(end);
        self.arrived = Some((done, done - since));
        if self.wanted == Some(self.asked) {
            self.doing = Doing::Done;
            self.deadline = NEVER;
        } else {
            self.doing = Doing::Thinking;
            self.deadline = done + draw(&mut self.rng, self.think_ns, self.spread);
        }
    }

    /// The number of the request to send now, if any.
    pub fn take_request(&mut self) -> Option<u64> {
        std::mem::take(&mut self.request_due).then(|| self.asked - 1)
    }

    /// Offset after the last octet of all pages, once all have been asked for.
    pub fn last(&self) -> Option<u64> {
        (self.wanted == Some(self.asked)).then_some(self.pages_end)
    }

    /// Counts the last page if it has been read by `end`.
    pub fn settle(&mut self, end: Nanos) {
        if let Some((_, load)) = self.arrived.take_if(|(done, _)| *done <= end) {
            self.loads.add(load);
        }
    }

    /// Times from request to last octet, of the pages that were read.
    pub fn loads(&self) -> &Histogram {
        &self.loads
    }
}
