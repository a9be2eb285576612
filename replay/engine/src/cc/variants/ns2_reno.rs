//! Reno's increase in ns-2: an ACK increases the window by one segment, or a share of one, whatever it acknowledges.
//!
//! Does not depend on recovery. RFC 5681 §3.1 in the form `cwnd += 1 / cwnd`.

use crate::cc::decrease::WindowDecrease;
use crate::cc::increase::Increase;
use crate::cc::{AckEvidence, SignalEvidence, Window, WindowIncrease};

/// Increase by ACKs.
#[derive(Clone, Debug, Default)]
pub struct Ns2Reno;

impl WindowIncrease for Ns2Reno {
    const OWNS_SLOW_START: bool = true;

    #[inline]
    fn on_ack(&mut self, window: &mut Window, _acked: f64, _ack: &AckEvidence) {
        window.cwnd += if window.in_slow_start() {
            1.0
        } else {
            1.0 / window.cwnd
        };
    }
}

/// Half of the window that governed transmission: cwnd to the fraction, ssthresh to whole segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ns2Half;

impl WindowDecrease for Ns2Half {
    fn on_congestion(&mut self, _: &Window, _: &mut Increase, signal: &SignalEvidence) -> Window {
        let half = signal.flight / 2.0;
        Window {
            cwnd: half,
            ssthresh: libm::floor(half),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;

    #[test]
    fn below_ssthresh_an_ack_buys_a_segment_and_above_it_a_share() {
        let mut window = Window {
            cwnd: 7.5,
            ssthresh: 8.0,
        };
        let ack = AckEvidence {
            delivered: 5,
            ..AckEvidence::default()
        };
        Ns2Reno.on_ack(&mut window, 5.0, &ack);
        assert_eq!(window.cwnd.to_bits(), 8.5_f64.to_bits());
        Ns2Reno.on_ack(&mut window, 5.0, &ack);
        assert_eq!(window.cwnd.to_bits(), (8.5_f64 + 1.0 / 8.5).to_bits());
    }

    #[test]
    fn half_of_the_window_is_cut_off_for_ssthresh_only() {
        let signal = SignalEvidence {
            now: 0,
            flight: 8.5,
            lost_total: 1,
            signal: Signal::Loss,
        };
        let mut increase = Increase::from(Ns2Reno);
        let half = Ns2Half.on_congestion(&Window::at(20.0), &mut increase, &signal);
        assert_eq!(
            (half.cwnd.to_bits(), half.ssthresh.to_bits()),
            (4.25_f64.to_bits(), 4.0_f64.to_bits())
        );
    }
}
