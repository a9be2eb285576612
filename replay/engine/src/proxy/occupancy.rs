//! What a proxy has stored over time: maximum, mean, and the mean time of an octet in it.
//!
//! Does not depend on what is stored.

use crate::sim::time::Nanos;

/// Statistics of what is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occupancy {
    stored_bytes: u64,
    since: Nanos,
    began: Option<Nanos>,
    max_bytes: u64,
    /// Integral over time, octets times nanoseconds.
    area: u128,
}

impl Occupancy {
    /// From `now` on so many octets are stored.
    #[inline]
    pub fn note(&mut self, stored_bytes: u64, now: Nanos) {
        self.began.get_or_insert(now);
        self.area += u128::from(self.stored_bytes) * u128::from(now.saturating_sub(self.since));
        (self.stored_bytes, self.since) = (stored_bytes, now);
        self.max_bytes = self.max_bytes.max(stored_bytes);
    }

    /// Octets stored now.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Maximum.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    fn area_to(&self, end: Nanos) -> u128 {
        self.area + u128::from(self.stored_bytes) * u128::from(end.saturating_sub(self.since))
    }

    /// Mean from the first octet to `end`.
    pub fn mean_bytes(&self, end: Nanos) -> u64 {
        let span = self.began.map_or(0, |began| end.saturating_sub(began));
        self.area_to(end).checked_div(span.into()).unwrap_or(0) as u64
    }

    /// Mean time in the proxy of the `passed_bytes` octets that have come and gone by `end` (Little's law); none: none have.
    pub fn mean_stay(&self, passed_bytes: u64, end: Nanos) -> Option<Nanos> {
        (self.area_to(end).checked_div(passed_bytes.into())).map(|stay| stay as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_weighs_by_time_and_the_stay_follows_from_it() {
        let mut occupancy = Occupancy::default();
        occupancy.note(1000, 100);
        occupancy.note(3000, 200);
        occupancy.note(0, 300);
        assert_eq!(occupancy.max_bytes(), 3000);
        assert_eq!(occupancy.mean_bytes(300), 2000);
        assert_eq!(occupancy.mean_bytes(500), 1000);
        // 4000 octets stayed 100 ns each: a thousand of them 200 ns would be as much.
        assert_eq!(occupancy.mean_stay(4000, 500), Some(100));
        assert_eq!(Occupancy::default().mean_stay(0, 500), None);
        assert_eq!(Occupancy::default().mean_bytes(500), 0);
    }
}
