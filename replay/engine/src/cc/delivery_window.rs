//! Segments delivered within a sliding window of time.
//!
//! Does not depend on what the number is used for.

use crate::sim::ring::Ring;
use crate::sim::time::Nanos;

/// The deliveries of a connection.
#[derive(Clone, Debug, Default)]
pub struct DeliveryWindow {
    /// Segments so far, and those up to the last ACK that was removed.
    total: u64,
    removed: u64,
    /// The later ACKs: time, and segments up to that ACK.
    acks: Ring<(Nanos, u64)>,
    /// Number of these ACKs before the last interval that was asked for: intervals change little from ACK to ACK.
    before: usize,
}

impl DeliveryWindow {
    /// An ACK at `now` delivers `segments`; ACKs older than `longest` are removed.
    pub fn add(&mut self, now: Nanos, segments: u32, longest: Nanos) {
        self.total += u64::from(segments);
        self.acks.push_back((now, self.total));
        while let Some(&(at, total)) = self.acks.front()
            && at + longest < now
        {
            self.acks.pop_front();
            self.removed = total;
            self.before = self.before.saturating_sub(1);
        }
    }

    /// Segments delivered in the last `interval` before `now`.
    pub fn within(&mut self, now: Nanos, interval: Nanos) -> u64 {
        let is_before = |&(at, _): &(Nanos, u64)| at + interval <= now;
        while self.acks.get(self.before).is_some_and(is_before) {
            self.before += 1;
        }
        loop {
            let Some(last) = self.before.checked_sub(1) else {
                return self.total - self.removed;
            };
            match self.acks.get(last) {
                Some(ack) if is_before(ack) => return self.total - ack.1,
                _ => self.before = last,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two segments every 10, from 10 to 100.
    fn deliveries(longest: Nanos) -> DeliveryWindow {
        let mut deliveries = DeliveryWindow::default();
        for n in 1..=10 {
            deliveries.add(10 * n, 2, longest);
        }
        deliveries
    }

    #[test]
    fn an_interval_covers_the_deliveries_after_its_start() {
        let mut deliveries = deliveries(1000);
        // Longer and shorter than the one before, in any order.
        for (interval, expected) in [
            (30, 6),
            (35, 8),
            (99, 20),
            (9, 2),
            (10, 2),
            (0, 0),
            (60, 12),
        ] {
            assert_eq!(deliveries.within(100, interval), expected, "{interval}");
        }
        deliveries.add(200, 5, 1000);
        assert_eq!(deliveries.within(200, 100), 5);
        assert_eq!(deliveries.within(200, 101), 7);
    }

    #[test]
    fn deliveries_older_than_the_longest_interval_are_removed() {
        let mut deliveries = deliveries(30);
        assert_eq!(deliveries.acks.len(), 4, "70 to 100");
        assert_eq!(deliveries.within(100, 90), 8);
        assert_eq!(deliveries.within(100, 10), 2);
        deliveries.add(120, 1, 30);
        assert_eq!((deliveries.within(120, 30), deliveries.acks.len()), (3, 3));
    }
}
