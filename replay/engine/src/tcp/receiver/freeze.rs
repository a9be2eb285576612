//! Freeze-TCP's receiver: it closes its window some time before a forecast outage, and opens it again with three ACKs when
//! the outage is over.
//!
//! Does not depend on the reaction of the sender (`tcp/sender/freeze.rs`). Read Goff, Moronski, Phatak and Gupta 2000 §3
//! first, then `docs/variants/freeze-tcp.md`.

use super::{Owed, Receiver};
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::timer::Timer;

/// Goff et al. 2000 §3: the number of ACKs on which a sender retransmits at once what it had in flight.
const RECONNECTION_ACKS: u8 = 3;

/// What is known of outages.
#[derive(Clone, Debug)]
pub struct Forecast {
    warning: Nanos,
    /// Those that are to come, the next one last; one of no more than the warning after the one before it belongs to it.
    outages: Vec<(Nanos, Nanos)>,
    frozen: bool,
    /// Start of the next warning, or end of this outage.
    pub timer: Timer,
}

impl Forecast {
    /// The outages that a receiver warns of, `warning` ahead.
    pub fn new(outages: &[(Nanos, Nanos)], warning: Nanos) -> Self {
        let mut joined: Vec<(Nanos, Nanos)> = Vec::new();
        for &(start, end) in outages {
            match joined.last_mut() {
                Some(last) if start.saturating_sub(warning) <= last.1 => last.1 = end,
                _ => joined.push((start, end)),
            }
        }
        joined.reverse();
        let mut forecast = Self {
            warning,
            outages: joined,
            frozen: false,
            timer: Timer::default(),
        };
        forecast.await_next();
        forecast
    }

    fn await_next(&mut self) {
        if let Some(&(start, _)) = self.outages.last() {
            self.timer.set(start.saturating_sub(self.warning));
        }
    }
}

impl Receiver {
    /// The same receiver, which warns of outages.
    #[must_use]
    pub fn warning_of(mut self, forecast: Option<Forecast>) -> Self {
        self.forecast = forecast.map(Box::new);
        self
    }

    /// Whether its window is closed because of an outage.
    #[inline]
    pub(super) fn is_frozen(&self) -> bool {
        self.forecast
            .as_ref()
            .is_some_and(|forecast| forecast.frozen)
    }

    #[inline]
    pub(super) fn next_forecast(&self) -> Nanos {
        self.forecast
            .as_ref()
            .map_or(NEVER, |forecast| forecast.timer.armed())
    }

    /// An outage is near, or over.
    pub(super) fn heed_forecast(&mut self, now: Nanos) {
        let Some(forecast) = &mut self.forecast else {
            return;
        };
        if !forecast.timer.fires(now) {
            return;
        }
        if forecast.frozen {
            forecast.frozen = false;
            forecast.await_next();
        } else if let Some((_, end)) = forecast.outages.pop() {
            forecast.frozen = true;
            if end < NEVER {
                forecast.timer.set(end);
            }
        }
        let frozen = forecast.frozen;
        if self.established && !self.ending.was_reset() {
            self.owed = if frozen {
                Owed::Acknowledgement
            } else {
                Owed::Acknowledgements(RECONNECTION_ACKS)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_nearer_than_the_warning_are_one() {
        let forecast = Forecast::new(&[(1000, 1100), (1150, 1200), (1400, NEVER)], 100);
        assert_eq!(forecast.outages, [(1400, NEVER), (1000, 1200)]);
        assert_eq!(forecast.timer.deadline(), 900);
        assert_eq!(Forecast::new(&[(50, 60)], 100).timer.deadline(), 0);
        assert_eq!(Forecast::new(&[], 100).timer.armed(), NEVER);
    }
}
