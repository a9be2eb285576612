//! Reno's congestion avoidance: one segment per window of data acknowledged.
//!
//! Must not know cubic or slow start. RFC 5681 §3.1, the counting form that it recommends (RFC 3465 §2.1).

use super::{AckEvidence, Window, WindowGrowth};

/// Segments acknowledged that have not bought growth yet.
#[derive(Clone, Debug, Default)]
pub struct Credit {
    counted: f64,
}

impl Credit {
    /// Takes `acked` segments: cwnd grows by one per `price` of them.
    #[inline]
    pub fn spend(&mut self, cwnd: &mut f64, price: f64, acked: f64) {
        if self.counted >= price {
            // The price fell below what had been counted at a higher one: a single segment, no burst.
            self.counted = 0.0;
            *cwnd += 1.0;
        }
        self.counted += acked;
        if self.counted >= price {
            let bought = libm::floor(self.counted / price);
            self.counted -= bought * price;
            *cwnd += bought;
        }
    }
}

/// Reno's growth.
#[derive(Clone, Debug, Default)]
pub struct Reno {
    credit: Credit,
}

impl Reno {
    /// Takes `acked` segments: cwnd grows by one when a whole window of them has been counted.
    #[inline]
    fn count(&mut self, cwnd: &mut f64, acked: f64) {
        let window = libm::floor(*cwnd).max(1.0);
        self.credit.spend(cwnd, window, acked);
    }
}

impl WindowGrowth for Reno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        self.count(&mut window.cwnd, acked);
    }

    fn on_reduction(&mut self, _before: &Window) {
        self.credit = Credit::default();
    }

    fn on_timeout(&mut self) {
        self.credit = Credit::default();
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
    fn delayed_acks_count_for_both_of_their_segments() {
        let (mut reno, mut cwnd) = (Reno::default(), 10.0);
        for _ in 0..5 {
            reno.count(&mut cwnd, 2.0);
        }
        assert_eq!(cwnd.to_bits(), 11.0_f64.to_bits());
    }

    #[test]
    fn a_large_ack_buys_by_the_price_and_a_fallen_price_buys_one() {
        let (mut credit, mut cwnd) = (Credit::default(), 10.0);
        credit.spend(&mut cwnd, 4.0, 9.0);
        assert_eq!((cwnd.to_bits(), credit.counted), (12.0_f64.to_bits(), 1.0));
        credit.counted = 90.0;
        credit.spend(&mut cwnd, 2.0, 1.0);
        assert_eq!((cwnd.to_bits(), credit.counted), (13.0_f64.to_bits(), 1.0));
    }
}
