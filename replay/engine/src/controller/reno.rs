//! Reno's congestion avoidance: one segment per window of data acknowledged.
//!
//! Must not know cubic or slow start. RFC 5681 §3.1, the counting form that it recommends (RFC 3465 §2.1).

/// Segments acknowledged since cwnd last grew.
#[derive(Clone, Debug, Default)]
pub struct Reno {
    counted: f64,
}

impl Reno {
    /// Takes `acked` segments: cwnd grows by one when a whole window of them has been counted.
    #[inline]
    pub fn on_ack(&mut self, cwnd: &mut f64, acked: f64) {
        let window = libm::floor(*cwnd);
        self.counted += acked;
        if self.counted >= window {
            self.counted -= window;
            *cwnd += 1.0;
        }
    }

    /// Forgets what was counted: the window was reduced.
    pub fn restart(&mut self) {
        self.counted = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_acks_buys_one_segment_no_more_no_less() {
        let (mut reno, mut cwnd) = (Reno::default(), 10.0);
        for _ in 0..9 {
            reno.on_ack(&mut cwnd, 1.0);
        }
        assert_eq!(cwnd.to_bits(), 10.0_f64.to_bits());
        reno.on_ack(&mut cwnd, 1.0);
        assert_eq!(cwnd.to_bits(), 11.0_f64.to_bits());
        for _ in 0..11 {
            reno.on_ack(&mut cwnd, 1.0);
        }
        assert_eq!(cwnd.to_bits(), 12.0_f64.to_bits());
    }

    #[test]
    fn delayed_acks_count_for_both_of_their_segments() {
        let (mut reno, mut cwnd) = (Reno::default(), 10.0);
        for _ in 0..5 {
            reno.on_ack(&mut cwnd, 2.0);
        }
        assert_eq!(cwnd.to_bits(), 11.0_f64.to_bits());
    }
}
