//! Reno's increase in the module of Linux 2.6.22 that ns-2's TCP/Linux runs, with appropriate byte counting
//! (`tcp_abc` of 1): whole segments, one per ACK in slow start and one per window of octets acknowledged after it.
//!
//! Does not depend on recovery. Read RFC 3465 §2 first.

use crate::cc::{AckEvidence, Window, WindowIncrease};

/// Increase by octets.
#[derive(Clone, Copy, Debug)]
pub struct Ns2LinuxReno {
    smss_bytes: f64,
    /// Octets acknowledged that have not opened the window, those of a recovery included.
    acked_bytes: f64,
}

impl Ns2LinuxReno {
    /// With segments of this size.
    pub fn new(smss_bytes: u32) -> Self {
        Self {
            smss_bytes: f64::from(smss_bytes),
            acked_bytes: 0.0,
        }
    }
}

/// Whether an ACK opens the window by a segment: the module's slow start goes on at ssthresh itself.
pub(super) fn in_slow_start(window: &Window) -> bool {
    window.cwnd <= window.ssthresh
}

impl WindowIncrease for Ns2LinuxReno {
    const OBSERVES: bool = true;
    const OWNS_SLOW_START: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        self.acked_bytes += ack.acked_bytes as f64;
    }

    fn on_ack(&mut self, window: &mut Window, _acked: f64, ack: &AckEvidence) {
        if !ack.cwnd_limited {
            return;
        }
        let price = window.cwnd * self.smss_bytes;
        if in_slow_start(window) {
            // RFC 3465 §2.2 with L of 1.
            if self.acked_bytes >= self.smss_bytes {
                window.cwnd += 1.0;
                self.acked_bytes = 0.0;
            }
        } else if self.acked_bytes >= price {
            window.cwnd += 1.0;
            self.acked_bytes -= price;
        }
    }

    fn on_decrease(&mut self, _before: &Window) {
        self.acked_bytes = 0.0;
    }

    fn on_timeout(&mut self) {
        self.acked_bytes = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(segments: u64, cwnd_limited: bool) -> AckEvidence {
        AckEvidence {
            acked_bytes: 1000 * segments,
            cwnd_limited,
            ..AckEvidence::default()
        }
    }

    #[test]
    fn slow_start_ends_a_segment_above_ssthresh_and_a_window_of_octets_opens_it_by_one() {
        let (mut reno, mut window) = (Ns2LinuxReno::new(1000), Window::at(3.0));
        let mut course = Vec::new();
        for _ in 0..11 {
            reno.observe(&ack(1, true));
            reno.on_ack(&mut window, 2.0, &ack(1, true));
            course.push(window.cwnd as u32);
        }
        // At 4 four ACKs, at 5 five.
        assert_eq!(course, [4, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6]);
    }

    #[test]
    fn octets_of_a_recovery_count_when_it_has_ended() {
        let (mut reno, mut window) = (Ns2LinuxReno::new(1000), Window::at(15.0));
        reno.on_decrease(&window);
        window = Window {
            cwnd: 12.0,
            ssthresh: 7.0,
        };
        reno.observe(&ack(16, true));
        reno.observe(&ack(1, false));
        reno.on_ack(&mut window, 1.0, &ack(1, false));
        assert_eq!(window.cwnd as u32, 12, "not while the window is not full");
        let mut acks = 0;
        while window.cwnd < 14.0 {
            acks += 1;
            reno.observe(&ack(1, true));
            reno.on_ack(&mut window, 1.0, &ack(1, true));
        }
        // 18 octet thousands open it to 13 with the first, and 6 are left, so that 7 more are needed.
        assert_eq!(acks, 8);
    }
}
