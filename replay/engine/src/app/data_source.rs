//! What an application has to send, and by when.
//!
//! Does not depend on sockets: [`super::Application`] moves the octets into a sender.

use std::sync::Arc;

use hindflight_kernels::StreamRng;

use super::clocked::{Clocked, Periods};
use super::random::random_value;
use crate::config::{ApplicationConfig, Spread};
use crate::sim::time::{NEVER, Nanos, SECOND};

/// Where the octets come from.
#[derive(Debug)]
pub enum DataSource {
    /// All of them exist from `first_write_ns` after the start on.
    Bulk {
        /// Time from the start to the first write.
        first_write_ns: Nanos,
    },
    /// Writes at a fixed interval, in periods.
    Clocked(Clocked),
    /// Writes at recorded times.
    Recorded(RecordedWrites),
    /// As much as the network takes, in recorded periods.
    Bursts(Bursts),
    /// One page per request.
    Pages {
        /// Sizes of the pages.
        sizes: PageSizes,
        /// Pages requested so far.
        requested: u64,
        /// Pages in all; none: without end.
        total: Option<u64>,
    },
}

/// The writes of a captured application, from the next one on.
#[derive(Clone, Debug)]
pub struct RecordedWrites {
    writes: Arc<[(Nanos, u32)]>,
    next: usize,
    start: Nanos,
}

/// Periods in which an application writes all that the network takes, from the next edge of one on.
#[derive(Clone, Debug)]
pub struct Bursts {
    /// Starts and ends in turn, since the flow's start.
    edges: Arc<[Nanos]>,
    next: usize,
    start: Nanos,
}

/// The writes of an application whose times do not depend on the network, from the next one on.
#[derive(Clone, Debug)]
pub enum WriteSchedule {
    /// At a fixed interval.
    Clocked(Clocked),
    /// As recorded.
    Recorded(RecordedWrites),
}

/// The sizes of pages in the order of the requests. Both ends generate the same sizes.
#[derive(Clone, Debug)]
pub struct PageSizes {
    mean_bytes: u64,
    spread: Spread,
    rng: StreamRng,
}

impl PageSizes {
    /// Pages of `mean_bytes` on average, generated from `rng`.
    pub fn new(mean_bytes: u64, spread: Spread, rng: StreamRng) -> Self {
        Self {
            mean_bytes,
            spread,
            rng,
        }
    }

    /// Octets of the next page.
    pub fn next_bytes(&mut self) -> u64 {
        random_value(&mut self.rng, self.mean_bytes, self.spread).max(1)
    }
}

impl RecordedWrites {
    fn new(at_ns: &[Nanos], bytes: &[u32]) -> Self {
        Self {
            writes: at_ns.iter().copied().zip(bytes.iter().copied()).collect(),
            next: 0,
            start: 0,
        }
    }

    /// When the next write is due; `NEVER` after the last one.
    fn due_at(&self) -> Nanos {
        let next = self.writes.get(self.next);
        next.map_or(NEVER, |(at, _)| self.start + at)
    }

    /// Takes the writes that are due by `now`; returns their octets.
    fn take_due(&mut self, now: Nanos) -> u64 {
        let mut octets = 0;
        while self.due_at() <= now {
            octets += u64::from(self.writes[self.next].1);
            self.next += 1;
        }
        octets
    }
}

impl Bursts {
    fn new(from_ns: &[Nanos], until_ns: &[Nanos]) -> Self {
        let periods = from_ns.iter().zip(until_ns);
        Self {
            edges: periods.flat_map(|(from, until)| [*from, *until]).collect(),
            next: 0,
            start: 0,
        }
    }

    /// Whether the application writes now.
    pub fn on(&self) -> bool {
        self.next % 2 == 1
    }

    fn due_at(&self) -> Nanos {
        self.edges
            .get(self.next)
            .map_or(NEVER, |at| self.start + at)
    }

    /// Passes the edges up to `now`; returns the time of the next one.
    fn pass(&mut self, now: Nanos) -> Nanos {
        while self.due_at() <= now {
            self.next += 1;
        }
        self.due_at()
    }
}

impl WriteSchedule {
    /// Octets of the next write; 0 if there is none.
    pub fn next_bytes(&self) -> u64 {
        match self {
            Self::Clocked(clocked) => clocked.write_bytes(),
            Self::Recorded(recorded) => {
                let next = recorded.writes.get(recorded.next);
                next.map_or(0, |(_, bytes)| u64::from(*bytes))
            }
        }
    }

    /// Takes all writes of the next instant that has any: their octets and the instant. There must be a next write.
    pub fn take_instant(&mut self) -> (u64, Nanos) {
        match self {
            Self::Clocked(clocked) => {
                let (writes, at) = clocked.take_instant();
                (writes * clocked.write_bytes(), at)
            }
            Self::Recorded(recorded) => {
                let at = recorded.due_at();
                (recorded.take_due(at), at)
            }
        }
    }
}

impl DataSource {
    /// It has nothing more to send.
    pub fn exhaust(&mut self) {
        *self = Self::Bulk { first_write_ns: 0 };
    }

    /// The data source of `config`; a write of unknown size is a segment of `smss_bytes`.
    pub fn new(config: &ApplicationConfig, smss_bytes: u32, rng: StreamRng) -> Self {
        match config {
            ApplicationConfig::Greedy { first_write_ns, .. } => Self::Bulk {
                first_write_ns: *first_write_ns,
            },
            ApplicationConfig::OnOff {
                rate_bps,
                on_ns,
                off_ns,
                spread,
                write_bytes,
            } => {
                let periods = Periods {
                    on_ns: *on_ns,
                    off_ns: *off_ns,
                    spread: *spread,
                };
                let write_bytes = u64::from(write_bytes.unwrap_or(smss_bytes));
                Self::Clocked(Clocked::new(write_bytes, *rate_bps, Some(periods), rng))
            }
            ApplicationConfig::Stream {
                rate_bps,
                write_every_ns,
                ..
            } => {
                let octets = rate_bps / 8.0 / SECOND as f64 * *write_every_ns as f64;
                // Whole octets at the exact rate: the interval is adjusted.
                let write_bytes = libm::round(octets).max(1.0) as u64;
                Self::Clocked(Clocked::new(write_bytes, *rate_bps, None, rng))
            }
            ApplicationConfig::Pages {
                page_bytes,
                spread,
                pages,
                ..
            } => Self::Pages {
                sizes: PageSizes::new(*page_bytes, *spread, rng),
                requested: 0,
                total: *pages,
            },
            ApplicationConfig::Writes { at_ns, bytes } => {
                Self::Recorded(RecordedWrites::new(at_ns, bytes))
            }
            ApplicationConfig::Bursts { from_ns, until_ns } => {
                Self::Bursts(Bursts::new(from_ns, until_ns))
            }
        }
    }

    /// The flow starts at `start`. Returns the time of the first write that needs no request; `NEVER` if there is none.
    pub fn begin(&mut self, start: Nanos) -> Nanos {
        match self {
            Self::Bulk { first_write_ns: 0 } | Self::Pages { .. } => NEVER,
            Self::Bulk { first_write_ns } => start + *first_write_ns,
            Self::Clocked(clocked) => {
                clocked.begin(start);
                start
            }
            Self::Recorded(recorded) => {
                recorded.start = start;
                recorded.due_at()
            }
            Self::Bursts(bursts) => {
                bursts.start = start;
                bursts.due_at()
            }
        }
    }

    /// The writes from here on, if their times do not depend on the network.
    pub fn schedule(&self) -> Option<WriteSchedule> {
        match self {
            Self::Bulk { .. } | Self::Pages { .. } | Self::Bursts(_) => None,
            Self::Clocked(clocked) => Some(WriteSchedule::Clocked(clocked.clone())),
            Self::Recorded(recorded) => Some(WriteSchedule::Recorded(recorded.clone())),
        }
    }

    /// Takes the writes that are due by `now`; returns their octets and the time to ask again.
    pub fn take_due(&mut self, now: Nanos) -> (u64, Nanos) {
        match self {
            Self::Bulk { .. } | Self::Pages { .. } => (0, NEVER),
            Self::Clocked(clocked) => {
                let (writes, next) = clocked.take_due(now);
                (writes * clocked.write_bytes(), next)
            }
            Self::Recorded(recorded) => (recorded.take_due(now), recorded.due_at()),
            Self::Bursts(bursts) => (0, bursts.pass(now)),
        }
    }

    /// Page `number` is requested. Returns its octets, unless it is not the next one (a repeated request).
    pub fn request(&mut self, number: u64) -> Option<u64> {
        let Self::Pages {
            sizes, requested, ..
        } = self
        else {
            return None;
        };
        if number != *requested {
            return None;
        }
        *requested += 1;
        Some(sizes.next_bytes())
    }

    /// Whether all its octets have been taken.
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::Bulk { .. } | Self::Clocked(_) | Self::Bursts(_) => false,
            Self::Recorded(recorded) => recorded.next >= recorded.writes.len(),
            Self::Pages {
                requested, total, ..
            } => Some(*requested) == *total,
        }
    }
}
