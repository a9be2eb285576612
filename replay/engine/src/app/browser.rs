//! The client that requests pages: it requests one, waits for its last octet, thinks, and requests the next.
//!
//! Does not depend on how the pages are transferred. Requests are repeated until the page begins to arrive.

use hindflight_kernels::StreamRng;

use super::data_source::PageSizes;
use super::random::random_value;
use crate::config::Spread;
use crate::sim::histogram::Histogram;
use crate::sim::time::{NEVER, Nanos, SECOND};

/// Time to the first repetition of a request (RFC 6298 §2.1: the timeout without a sample), doubled each time.
const FIRST_RETRY_NS: Nanos = SECOND;
/// Maximum time between two repetitions.
const MAX_RETRY_NS: Nanos = 60 * SECOND;

/// What the client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing before the connection is established.
    Idle,
    /// Has sent a request at `since`; the page has the octets from `begin` to `end` (not included).
    Waiting {
        since: Nanos,
        begin: u64,
        end: u64,
        retry: Nanos,
    },
    /// Reads and thinks until the deadline.
    Thinking,
    /// Has all pages.
    Done,
}

/// A client that requests pages.
#[derive(Debug)]
pub struct Browser {
    state: State,
    deadline: Nanos,
    request_due: bool,
    sizes: PageSizes,
    think_ns: Nanos,
    spread: Spread,
    rng: StreamRng,
    /// Pages in all; none: without end.
    total: Option<u64>,
    requested: u64,
    /// Offset after the last octet of all pages requested so far.
    pages_end: u64,
    /// Octets of a request.
    pub request_bytes: u16,
    /// When the latest page that has arrived was or will be read, and how long it took.
    arrived: Option<(Nanos, Nanos)>,
    loads: Histogram,
}

/// The random streams of a browser.
pub struct BrowserStreams {
    /// Sizes of the pages, the same as at the sending end.
    pub sizes: PageSizes,
    /// Think times.
    pub thinking: StreamRng,
}

impl Browser {
    /// A browser that thinks for `think_ns` on average between pages and requests `total` of them.
    pub fn new(
        streams: BrowserStreams,
        think_ns: Nanos,
        spread: Spread,
        total: Option<u64>,
        request_bytes: u16,
    ) -> Self {
        Self {
            state: State::Idle,
            deadline: NEVER,
            request_due: false,
            sizes: streams.sizes,
            think_ns,
            spread,
            rng: streams.thinking,
            total,
            requested: 0,
            pages_end: 1,
            request_bytes,
            arrived: None,
            loads: Histogram::default(),
        }
    }

    /// When it must be called.
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// The connection is established at `time` without a handshake.
    pub fn open_at(&mut self, time: Nanos) {
        self.deadline = time;
    }

    /// The connection is established.
    pub fn on_established(&mut self, now: Nanos) {
        if self.state == State::Idle {
            self.request_next(now);
        }
    }

    /// Its deadline has expired, or another one of its node.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.deadline > now {
            return;
        }
        match &mut self.state {
            State::Waiting { retry, .. } => {
                *retry = (*retry * 2).min(MAX_RETRY_NS);
                self.deadline = now + *retry;
                self.request_due = true;
            }
            State::Idle | State::Thinking => self.request_next(now),
            State::Done => self.deadline = NEVER,
        }
    }

    fn request_next(&mut self, now: Nanos) {
        self.settle(now);
        let begin = self.pages_end;
        self.pages_end += self.sizes.next_bytes();
        self.requested += 1;
        self.request_due = true;
        self.state = State::Waiting {
            since: now,
            begin,
            end: self.pages_end,
            retry: FIRST_RETRY_NS,
        };
        self.deadline = now + FIRST_RETRY_NS;
    }

    /// Octets up to `arrived` have arrived in order; `read_at` returns when the application has read up to an offset.
    pub fn on_arrival(&mut self, arrived: u64, read_at: impl Fn(u64) -> Nanos) {
        let State::Waiting {
            since, begin, end, ..
        } = self.state
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
        if self.total == Some(self.requested) {
            self.state = State::Done;
            self.deadline = NEVER;
        } else {
            self.state = State::Thinking;
            self.deadline = done + random_value(&mut self.rng, self.think_ns, self.spread);
        }
    }

    /// The number of the request to send now, if there is one.
    pub fn take_request(&mut self) -> Option<u64> {
        std::mem::take(&mut self.request_due).then(|| self.requested - 1)
    }

    /// Offset after the last octet of all pages, once all have been requested.
    pub fn last(&self) -> Option<u64> {
        (self.total == Some(self.requested)).then_some(self.pages_end)
    }

    /// It requests no more.
    pub fn stop(&mut self) {
        self.deadline = NEVER;
        self.request_due = false;
        self.total = Some(self.requested);
    }

    /// Counts the latest page if it has been read by `end`.
    pub fn settle(&mut self, end: Nanos) {
        if let Some((_, load)) = self.arrived.take_if(|(done, _)| *done <= end) {
            self.loads.add(load, 1);
        }
    }

    /// Times from the request to the reading of the last octet.
    pub fn loads(&self) -> &Histogram {
        &self.loads
    }
}
