//! Reno's congestion avoidance: one segment per window of data acknowledged.
//!
//! Does not depend on cubic or slow start. RFC 5681 §3.1, the counting form that it recommends (RFC 3465 §2.1).

use crate::cc::{AckEvidence, Window, WindowIncrease};

/// Segments acknowledged that have not increased the window yet.
#[derive(Clone, Debug, Default)]
pub struct AckCounter {
    counted: f64,
}

impl AckCounter {
    /// Counts `acked` segments: cwnd increases by one per `per_increment` of them.
    #[inline]
    pub fn count(&mut self, cwnd: &mut f64, per_increment: f64, acked: f64) {
        if self.counted >= per_increment {
            // `per_increment` fell below the segments already counted: one segment, not a burst.
            self.counted = 0.0;
            *cwnd += 1.0;
        }
        self.counted += acked;
        if self.counted >= per_increment {
            let increments = libm::floor(self.counted / per_increment);
            self.counted -= increments * per_increment;
            *cwnd += increments;
        }
    }
}

/// Reno's increase.
#[derive(Clone, Debug, Default)]
pub struct Reno {
    counter: AckCounter,
}

impl Reno {
    /// Slow start and congestion avoidance together, for increases that have both.
    pub fn grow(&mut self, window: &mut Window, ack: &AckEvidence) {
        if !ack.cwnd_limited {
            return;
        }
        let mut left = f64::from(ack.delivered);
        if window.in_slow_start() {
            let grown = (window.cwnd + left).min(window.ssthresh);
            left -= grown - window.cwnd;
            window.cwnd = grown;
        }
        if left > 0.0 {
            self.count(&mut window.cwnd, left);
        }
    }

    /// Takes `acked` segments: cwnd grows by one when a whole window of them has been counted.
    #[inline]
    pub fn count(&mut self, cwnd: &mut f64, acked: f64) {
        let window = libm::floor(*cwnd).max(1.0);
        self.counter.count(cwnd, window, acked);
    }
}

impl WindowIncrease for Reno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        self.count(&mut window.cwnd, acked);
    }

    fn on_decrease(&mut self, _before: &Window) {
        self.counter = AckCounter::default();
    }

    fn on_timeout(&mut self) {
        self.counter = AckCounter::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_acks_buys_one_segment_no_more_no_less() {
        let (mut reno, mut cwnd) = (Reno::default(), 10.0);
        for _ in 0..9 {
            reno.count(&mut cwnd, 1.0);
        }
        assert_eq!(cwnd.to_bits(), 10.0_f64.to_bits());
        reno.count(&mut cwnd, 1.0);
        assert_eq!(cwnd.to_bits(), 11.0_f64.to_bits());
        for _ in 0..11 {
            reno.count(&mut cwnd, 1.0);
        }
        assert_eq!(cwnd.to_bits(), 12.0_f64.to_bits());
    }

    #[test]
    fn slow_start_takes_what_it_needs_and_leaves_the_rest_to_congestion_avoidance() {
        let ack = |delivered, cwnd_limited| AckEvidence {
            delivered,
            cwnd_limited,
            ..AckEvidence::default()
        };
        let mut reno = Reno::default();
        let mut window = Window {
            cwnd: 8.0,
            ssthresh: 10.0,
        };
        reno.grow(&mut window, &ack(4, false));
        assert_eq!(window.cwnd.to_bits(), 8.0_f64.to_bits());
        reno.grow(&mut window, &ack(4, true));
        assert_eq!(window.cwnd.to_bits(), 10.0_f64.to_bits());
        // Two of the ten are counted already.
        reno.grow(&mut window, &ack(8, true));
        assert_eq!(window.cwnd.to_bits(), 11.0_f64.to_bits());
    }

    #[test]
    fn delayed_acks_count_for_both_of_their_segments() {
        let (mut reno, mut cwnd) = (Reno::default(), 10.0);
        for _ in 0..5 {
            reno.count(&mut cwnd, 2.0);
        }
        assert_eq!(cwnd.to_bits(), 11.0_f64.to_bits());
    }

    #[test]
    fn a_large_ack_buys_by_the_price_and_a_fallen_price_buys_one() {
        let (mut counter, mut cwnd) = (AckCounter::default(), 10.0);
        counter.count(&mut cwnd, 4.0, 9.0);
        assert_eq!((cwnd.to_bits(), counter.counted), (12.0_f64.to_bits(), 1.0));
        counter.counted = 90.0;
        counter.count(&mut cwnd, 2.0, 1.0);
        assert_eq!((cwnd.to_bits(), counter.counted), (13.0_f64.to_bits(), 1.0));
    }
}
