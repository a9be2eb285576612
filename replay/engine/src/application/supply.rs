//! What an application has to send by when.
//!
//! Must not know sockets: how the octets get into a sender is in `super`.

use hindflight_kernels::StreamRng;

use super::draw::draw;
use crate::config::{ApplicationConfig, Spread};
use crate::time::{NEVER, Nanos, SECOND};

/// Where the octets come from.
#[derive(Debug)]
pub enum Supply {
    /// All of them are there from the start.
    Ready,
    /// A write each interval, in periods.
    Clocked(Clocked),
    /// Written at given times.
    Listed {
        /// Times since the start.
        at_ns: Vec<Nanos>,
        /// Octets of each.
        bytes: Vec<u32>,
        /// The next one.
        next: usize,
    },
    /// One page per request.
    Requested {
        /// Sizes of the pages.
        pages: PageSizes,
        /// Pages that were asked for so far.
        served: u64,
        /// Pages that will be; none: without end.
        wanted: Option<u64>,
    },
}

/// Writes of equal size at a rate while it is on.
#[derive(Debug)]
pub struct Clocked {
    write_bytes: u64,
    every_ns: f64,
    /// Mean times on and off; none: always on.
    periods: Option<(Nanos, Nanos, Spread)>,
    period_start: Nanos,
    period_end: Nanos,
    written_in_period: u64,
    rng: StreamRng,
}

/// The sizes of pages in the order in which they are asked for: equal for the end that sends and the end that asks.
#[derive(Clone, Debug)]
pub struct PageSizes {
    mean_bytes: u64,
    spread: Spread,
    rng: StreamRng,
}

impl PageSizes {
    /// Pages of `mean_bytes`, drawn from `rng`.
    pub fn new(mean_bytes: u64, spread: Spread, rng: StreamRng) -> Self {
        Self {
            mean_bytes,
            spread,
            rng,
        }
    }

    /// Octets of the next page.
    pub fn next_bytes(&mut self) -> u64 {
        draw(&mut self.rng, self.mean_bytes, self.spread).max(1)
    }
}

impl Supply {
    /// The supply of `config`; a write of unknown size is a segment of `smss_bytes`.
    pub fn new(config: &ApplicationConfig, smss_bytes: u32, rng: StreamRng) -> Self {
        match config {
            ApplicationConfig::Greedy { .. } => Self::Ready,
            ApplicationConfig::OnOff {
                rate_bps,
                on_ns,
                off_ns,
                spread,
                write_bytes,
            } => {
                let write_bytes = u64::from(write_bytes.unwrap_or(smss_bytes));
                let every_ns = write_bytes as f64 * 8.0 * SECOND as f64 / rate_bps;
                Self::Clocked(Clocked::new(
                    write_bytes,
                    every_ns,
                    Some((*on_ns, *off_ns, *spread)),
                    rng,
                ))
            }
            ApplicationConfig::Stream {
                rate_bps,
                write_every_ns,
                ..
            } => {
                let octets = rate_bps / 8.0 / SECOND as f64 * *write_every_ns as f64;
                let write_bytes = libm::round(octets).max(1.0);
                // Whole octets at the exact rate: the interval gives way.
                let every_ns = write_bytes * 8.0 * SECOND as f64 / rate_bps;
                Self::Clocked(Clocked::new(write_bytes as u64, every_ns, None, rng))
            }
            ApplicationConfig::Pages {
                page_bytes,
                spread,
                pages: wanted,
                ..
            } => Self::Requested {
                wanted: *wanted,
                pages: PageSizes::new(*page_bytes, *spread, rng),
                served: 0,
            },
            ApplicationConfig::Writes { at_ns, bytes } => Self::Listed {
                at_ns: at_ns.clone(),
                bytes: bytes.clone(),
                next: 0,
            },
        }
    }

    /// The first time at which it has something, once the flow starts at `start`.
    pub fn begin(&mut self, start: Nanos) -> Nanos {
        match self {
            Self::Ready | Self::Requested { .. } => NEVER,
            Self::Clocked(clocked) => {
                clocked.begin_period(start);
                start
            }
            Self::Listed { at_ns, .. } => {
                for at in at_ns.iter_mut() {
                    *at += start;
                }
                at_ns.first().copied().unwrap_or(NEVER)
            }
        }
    }

    /// Its time has come: the octets of the write that is due, and the time of the next one.
    pub fn due(&mut self) -> (u64, Nanos) {
        match self {
            Self::Ready | Self::Requested { .. } => (0, NEVER),
            Self::Clocked(clocked) => (clocked.write_bytes, clocked.advance()),
            Self::Listed { at_ns, bytes, next } => {
                let octets = bytes.get(*next).copied().unwrap_or(0);
                *next += 1;
                (
                    u64::from(octets),
                    at_ns.get(*next).copied().unwrap_or(NEVER),
                )
            }
        }
    }

    /// Page `number` is asked for: its octets, unless it is not the next one (a request that came twice).
    pub fn request(&mut self, number: u64) -> Option<u64> {
        let Self::Requested { pages, served, .. } = self else {
            return None;
        };
        if number != *served {
            return None;
        }
        *served += 1;
        Some(pages.next_bytes())
    }

    /// Pages that were asked for.
    pub fn served(&self) -> u64 {
        if let Self::Requested { served, .. } = self {
            *served
        } else {
            0
        }
    }

    /// Whether it will have nothing more, ever.
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::Ready | Self::Clocked(_) => false,
            Self::Listed { bytes, next, .. } => *next >= bytes.len(),
            Self::Requested { served, wanted, .. } => Some(*served) == *wanted,
        }
    }
}

impl Clocked {
    /// Writes of `write_bytes` every `every_ns`, in `periods` on and off if there are any.
    pub fn new(
        write_bytes: u64,
        every_ns: f64,
        periods: Option<(Nanos, Nanos, Spread)>,
        rng: StreamRng,
    ) -> Self {
        Self {
            write_bytes,
            every_ns,
            periods,
            period_start: 0,
            period_end: NEVER,
            written_in_period: 0,
            rng,
        }
    }

    /// A time on begins at `start`.
    pub fn begin_period(&mut self, start: Nanos) {
        self.period_start = start;
        self.written_in_period = 0;
        if let Some((on_ns, _, spread)) = self.periods {
            self.period_end = start.saturating_add(draw(&mut self.rng, on_ns, spread).max(1));
        }
    }

    /// Time of the write after the one that is due.
    pub fn advance(&mut self) -> Nanos {
        self.written_in_period += 1;
        let next = self.period_start + (self.written_in_period as f64 * self.every_ns) as Nanos;
        if next < self.period_end {
            return next;
        }
        let Some((_, off_ns, spread)) = self.periods else {
            return next;
        };
        let start = self
            .period_end
            .saturating_add(draw(&mut self.rng, off_ns, spread));
        self.begin_period(start);
        start
    }
}
