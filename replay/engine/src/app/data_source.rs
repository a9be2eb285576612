//! What an application has to send, and by when.
//!
//! Does not depend on sockets: `super` hands the octets to a sender.

use hindflight_kernels::StreamRng;

use super::random::draw;
use crate::config::{ApplicationConfig, Spread};
use crate::sim::time::{NEVER, Nanos, SECOND};

/// Where the octets come from.
#[derive(Debug)]
pub enum DataSource {
    /// All of them are there, from a while after the start on.
    Ready {
        /// That while.
        first_write_ns: Nanos,
    },
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
    /// Time on from its start to its first write.
    first_ns: f64,
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

impl DataSource {
    /// The supply of `config`; a write of unknown size is a segment of `smss_bytes`.
    pub fn new(config: &ApplicationConfig, smss_bytes: u32, rng: StreamRng) -> Self {
        match config {
            ApplicationConfig::Greedy { first_write_ns, .. } => Self::Ready {
                first_write_ns: *first_write_ns,
            },
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
            Self::Ready { first_write_ns: 0 } | Self::Requested { .. } => NEVER,
            Self::Ready { first_write_ns } => start + *first_write_ns,
            Self::Clocked(clocked) => {
                clocked.begin(start);
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

    /// Its time has come: the octets of the write that is due, if one is, and the time to ask again.
    pub fn due(&mut self) -> (u64, Nanos) {
        match self {
            Self::Ready { .. } | Self::Requested { .. } => (0, NEVER),
            Self::Clocked(clocked) => {
                let (writes, next) = clocked.advance();
                (if writes { clocked.write_bytes } else { 0 }, next)
            }
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

    /// Whether it will have nothing more, ever.
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::Ready { .. } | Self::Clocked(_) => false,
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
            first_ns: 0.0,
            written_in_period: 0,
            rng,
        }
    }

    /// It begins with a time on at `start` and a write at once.
    pub fn begin(&mut self, start: Nanos) {
        self.begin_period(start, 0.0);
    }

    /// A time on begins at `start`, and a write is due when it has lasted `first_ns`.
    fn begin_period(&mut self, start: Nanos, first_ns: f64) {
        (self.period_start, self.first_ns) = (start, first_ns);
        self.written_in_period = 0;
        if let Some((on_ns, _, spread)) = self.periods {
            self.period_end = start.saturating_add(draw(&mut self.rng, on_ns, spread).max(1));
        }
    }

    /// Time on since the period began at which the next write is due.
    fn due_after_ns(&self) -> f64 {
        self.first_ns + self.written_in_period as f64 * self.every_ns
    }

    fn due_at(&self) -> Nanos {
        self.period_start
            .saturating_add(self.due_after_ns() as Nanos)
    }

    /// Its time has come: whether a write is due, and when to ask again.
    ///
    /// Time off does not count: what is left of the interval between two writes at the end of a period on passes in the
    /// next ones, so that the mean rate holds however short they are.
    pub fn advance(&mut self) -> (bool, Nanos) {
        let writes = self.due_at() < self.period_end;
        self.written_in_period += u64::from(writes);
        let next = self.due_at();
        let Some((_, off_ns, spread)) = self.periods.filter(|_| next >= self.period_end) else {
            return (writes, next);
        };
        let left_ns = self.due_after_ns() - (self.period_end - self.period_start) as f64;
        let pause = draw(&mut self.rng, off_ns, spread);
        self.begin_period(self.period_end.saturating_add(pause), left_ns);
        (writes, self.due_at().min(self.period_end))
    }
}

#[cfg(test)]
mod tests {
    use hindflight_kernels::{Purpose, StreamKey};

    use super::*;
    use crate::sim::time::MILLISECOND;

    /// Writes within `span` of one every 10 ms while on, for times of `on` and `off` spread about these.
    fn writes(on: Nanos, off: Nanos, spread: Spread, span: Nanos) -> Vec<Nanos> {
        let key = StreamKey {
            seed: 7,
            owner: 0,
            direction: 0,
            purpose: Purpose::Application,
        };
        let periods = Some((on, off, spread));
        let every_ns = (10 * MILLISECOND) as f64;
        let mut clocked = Clocked::new(1000, every_ns, periods, StreamRng::new(key));
        let (mut now, mut at) = (5 * MILLISECOND, Vec::new());
        clocked.begin(now);
        while now < span {
            let (writes, next) = clocked.advance();
            if writes {
                at.push(now);
            }
            now = next;
        }
        at
    }

    #[test]
    fn the_mean_rate_holds_however_short_the_times_on_are() {
        let span = 100 * SECOND;
        for on_ms in [1, 3, 9, 10, 11, 25, 1000] {
            for off_ms in [0, 1, 30] {
                let (on, off) = (on_ms as f64, off_ms as f64);
                let due = 10_000.0 * on / (on + off);
                let times = [on_ms, off_ms].map(|ms| ms * MILLISECOND);
                let fixed = writes(times[0], times[1], Spread::Fixed, span).len() as f64;
                // A last period that the end of the span cuts has more time on than its share.
                let rest = 1.0 + on / 10.0;
                assert!(
                    (fixed - due).abs() <= rest,
                    "{on_ms} {off_ms}: {fixed} {due}"
                );
                let drawn = writes(times[0], times[1], Spread::Exponential, span).len() as f64;
                // Time on is a renewal reward: the standard error from that of one pair of times.
                let pairs = 100_000.0 / (on + off);
                let error = (2.0 * pairs).sqrt() * on * off / (on + off) / 10.0;
                let apart = (drawn - due).abs();
                assert!(
                    apart <= 4.0 * error + rest,
                    "{on_ms} {off_ms}: {drawn} {due}"
                );
            }
        }
    }

    #[test]
    fn what_is_left_of_an_interval_passes_while_it_is_on_again() {
        let at = writes(
            4 * MILLISECOND,
            6 * MILLISECOND,
            Spread::Fixed,
            60 * MILLISECOND,
        );
        // On from 5, 15, 25, 35, 45 ms for 4 ms each: the second write after 4 + 4 + 2 ms on, the third after 20.
        assert_eq!(at, [5, 27, 55].map(|ms| ms * MILLISECOND));
    }
}
