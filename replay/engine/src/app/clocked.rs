//! Writes of equal size at a fixed interval, in periods on and off or without end.
//!
//! The times of the writes depend on the clock and the random stream alone, never on the network. Writes are counted, not
//! listed: neither memory nor time grows with the rate.

use hindflight_kernels::StreamRng;

use super::random::random_value;
use crate::config::Spread;
use crate::sim::time::{NEVER, Nanos, SECOND};

/// Mean durations of a period on and of a period off.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    /// Mean time on.
    pub on_ns: Nanos,
    /// Mean time off.
    pub off_ns: Nanos,
    /// Distribution of both.
    pub spread: Spread,
}

/// Writes of equal size at a fixed interval while on.
#[derive(Clone, Debug)]
pub struct Clocked {
    write_bytes: u64,
    interval_ns: f64,
    /// None: always on.
    periods: Option<Periods>,
    period_start: Nanos,
    period_end: Nanos,
    /// Time from the start of the period to its first write.
    first_ns: f64,
    /// Writes of this period that were taken.
    taken: u64,
    rng: StreamRng,
}

impl Clocked {
    /// Writes of `write_bytes` at `rate_bps`, in `periods` on and off if there are any.
    pub fn new(write_bytes: u64, rate_bps: f64, periods: Option<Periods>, rng: StreamRng) -> Self {
        Self {
            write_bytes,
            interval_ns: write_bytes as f64 * 8.0 * SECOND as f64 / rate_bps,
            periods,
            period_start: 0,
            period_end: NEVER,
            first_ns: 0.0,
            taken: 0,
            rng,
        }
    }

    /// Octets of each write.
    pub fn write_bytes(&self) -> u64 {
        self.write_bytes
    }

    /// The first period on begins at `start`, with a write at once.
    pub fn begin(&mut self, start: Nanos) {
        self.begin_period(start, 0.0);
    }

    /// A period on begins at `start`; its first write is due after `first_ns`.
    fn begin_period(&mut self, start: Nanos, first_ns: f64) {
        (self.period_start, self.first_ns) = (start, first_ns);
        self.taken = 0;
        if let Some(Periods { on_ns, spread, .. }) = self.periods {
            let on_ns = random_value(&mut self.rng, on_ns, spread).max(1);
            self.period_end = start.saturating_add(on_ns);
        }
    }

    /// Time from the start of the period to write `number`, from 0.
    fn offset_ns(&self, number: u64) -> f64 {
        self.first_ns + number as f64 * self.interval_ns
    }

    /// When the next write is due, if the period lasts as long.
    fn due_at(&self) -> Nanos {
        let offset_ns = self.offset_ns(self.taken) as Nanos;
        self.period_start.saturating_add(offset_ns)
    }

    /// Takes the writes that are due by `now`; returns their number and when to ask again.
    pub fn take_due(&mut self, now: Nanos) -> (u64, Nanos) {
        let mut writes = 0;
        loop {
            writes += self.take_from_period(now);
            self.enter_period_of_next_write();
            let next = self.due_at().min(self.period_end);
            if next > now {
                return (writes, next);
            }
        }
    }

    /// Takes all writes of the next instant that has any; returns their number and the instant.
    pub fn take_instant(&mut self) -> (u64, Nanos) {
        while self.due_at() >= self.period_end {
            self.enter_period_of_next_write();
        }
        let at = self.due_at();
        (self.take_from_period(at), at)
    }

    /// Takes the writes of this period that are due by `now`; returns their number.
    fn take_from_period(&mut self, now: Nanos) -> u64 {
        let before = self.taken;
        let until = now.min(self.period_end - 1);
        let Some(span_ns) = until.checked_sub(self.period_start) else {
            return 0;
        };
        let is_due = |number| self.offset_ns(number) as Nanos <= span_ns;
        // The division may be off by a write; the time of a write is what `offset_ns` says.
        let estimate = ((span_ns + 1) as f64 - self.first_ns) / self.interval_ns;
        let mut taken = before.max(estimate as u64);
        while taken > before && !is_due(taken - 1) {
            taken -= 1;
        }
        while is_due(taken) {
            taken += 1;
        }
        self.taken = taken;
        taken - before
    }

    /// Enters the next period if the next write is not due in this one.
    ///
    /// Time off does not count: what is left of the interval between two writes at the end of a period on elapses in the
    /// next ones, so that the mean rate holds however short they are.
    fn enter_period_of_next_write(&mut self) {
        let Some(Periods { off_ns, spread, .. }) = self.periods else {
            return;
        };
        if self.due_at() < self.period_end {
            return;
        }
        let on_ns = (self.period_end - self.period_start) as f64;
        let left_ns = self.offset_ns(self.taken) - on_ns;
        let off_ns = random_value(&mut self.rng, off_ns, spread);
        self.begin_period(self.period_end.saturating_add(off_ns), left_ns);
    }
}

#[cfg(test)]
mod tests {
    use hindflight_kernels::{Purpose, StreamKey};

    use super::*;
    use crate::sim::time::MILLISECOND;

    fn clocked(write_bytes: u64, rate_bps: f64, periods: Option<Periods>) -> Clocked {
        let key = StreamKey {
            seed: 7,
            owner: 0,
            direction: 0,
            purpose: Purpose::Application,
        };
        Clocked::new(write_bytes, rate_bps, periods, StreamRng::new(key))
    }

    /// A write every 10 ms while on.
    fn every_10_ms(on_ns: Nanos, off_ns: Nanos, spread: Spread) -> Clocked {
        let periods = Periods {
            on_ns,
            off_ns,
            spread,
        };
        clocked(1000, 800_000.0, Some(periods))
    }

    /// Times of the writes from 5 ms until `span`.
    fn writes(mut clocked: Clocked, span: Nanos) -> Vec<Nanos> {
        let (mut now, mut at) = (5 * MILLISECOND, Vec::new());
        clocked.begin(now);
        while now < span {
            let (writes, next) = clocked.take_due(now);
            at.extend((0..writes).map(|_| now));
            now = next;
        }
        at
    }

    #[test]
    fn the_mean_rate_holds_however_short_the_periods_are() {
        let span = 100 * SECOND;
        for on_ms in [1, 3, 9, 10, 11, 25, 1000] {
            for off_ms in [0, 1, 30] {
                let (on, off) = (on_ms as f64, off_ms as f64);
                let expected = 10_000.0 * on / (on + off);
                let count = |spread| {
                    let [on_ns, off_ns] = [on_ms, off_ms].map(|ms| ms * MILLISECOND);
                    writes(every_10_ms(on_ns, off_ns, spread), span).len() as f64
                };
                let fixed = count(Spread::Fixed);
                // A last period that the end of the span cuts has more time on than its share.
                let rest = 1.0 + on / 10.0;
                assert!(
                    (fixed - expected).abs() <= rest,
                    "{on_ms} {off_ms}: {fixed} {expected}"
                );
                let random = count(Spread::Exponential);
                // Time on is a renewal reward: the standard error follows from that of one pair of periods.
                let pairs = 100_000.0 / (on + off);
                let error = (2.0 * pairs).sqrt() * on * off / (on + off) / 10.0;
                let difference = (random - expected).abs();
                assert!(
                    difference <= 4.0 * error + rest,
                    "{on_ms} {off_ms}: {random} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_rest_of_an_interval_elapses_in_the_next_periods() {
        let four_of_ten = every_10_ms(4 * MILLISECOND, 6 * MILLISECOND, Spread::Fixed);
        let at = writes(four_of_ten, 60 * MILLISECOND);
        // On from 5, 15, 25, 35, 45 ms for 4 ms each: the second write after 4 + 4 + 2 ms on, the third after 20.
        assert_eq!(at, [5, 27, 55].map(|ms| ms * MILLISECOND));
    }

    #[test]
    fn writes_taken_late_and_together_are_those_taken_one_by_one() {
        for spread in [Spread::Fixed, Spread::Exponential, Spread::Pareto] {
            for (rate_bps, on_ns, off_ns) in [(8e6, 50_000, 30_000), (3e12, 900, 100), (1e9, 7, 3)]
            {
                let periods = Some(Periods {
                    on_ns,
                    off_ns,
                    spread,
                });
                let (mut late, mut prompt) = (
                    clocked(125, rate_bps, periods),
                    clocked(125, rate_bps, periods),
                );
                late.begin(11);
                prompt.begin(11);
                let (mut counted, mut late_next, mut next) = (0, 11, 11);
                for now in [11, 12, 400, 1000, 5000, 5001, 90_000, 900_000] {
                    let (mut together, mut one_by_one) = (0, 0);
                    if late_next <= now {
                        (together, late_next) = late.take_due(now);
                    }
                    while next <= now {
                        let (writes, asked) = prompt.take_due(next);
                        (one_by_one, next) = (one_by_one + writes, asked);
                    }
                    assert_eq!(together, one_by_one, "{spread:?} {rate_bps} {now}");
                    counted += together;
                }
                assert!(counted > 0);
            }
        }
    }

    #[test]
    fn the_instants_of_the_writes_are_the_times_at_which_they_are_due() {
        let periods = Periods {
            on_ns: 40,
            off_ns: 25,
            spread: Spread::Exponential,
        };
        let (mut by_instant, mut by_clock) = (
            clocked(125, 2e12, Some(periods)),
            clocked(125, 2e12, Some(periods)),
        );
        by_instant.begin(3);
        by_clock.begin(3);
        let mut next = 3;
        for _ in 0..1000 {
            let (writes, at) = by_instant.take_instant();
            let mut found = (0, 0);
            while found.0 == 0 {
                let now = next;
                let (writes, asked) = by_clock.take_due(now);
                (found, next) = ((writes, now), asked);
            }
            assert_eq!((writes, at), found);
        }
    }
}
