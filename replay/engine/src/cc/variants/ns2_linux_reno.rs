//! Reno's growth as the module of Linux 2.6.22 has it that ns-2's TCP/Linux runs: whole segments, by the ACK, whatever
//! that acknowledges.
//!
//! Does not depend on recovery. RFC 5681 §3.1 first.

use crate::cc::{AckEvidence, Window, WindowIncrease};

/// Growth by ACKs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ns2LinuxReno {
    counter: Count,
}

/// ACKs that have not opened the window yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count(u64);

impl Count {
    /// Takes an ACK. Every `per_increment`-th opens the window by a segment.
    pub(super) fn take(&mut self, cwnd: &mut f64, per_increment: u64) {
        self.0 += 1;
        if self.0 >= per_increment {
            *cwnd += 1.0;
            self.0 = 0;
        }
    }
}

/// Whether an ACK opens the window by a segment: the module's slow start goes on at ssthresh itself.
pub(super) fn in_slow_start(window: &Window) -> bool {
    window.cwnd <= window.ssthresh
}

impl WindowIncrease for Ns2LinuxReno {
    const OWNS_SLOW_START: bool = true;

    fn on_ack(&mut self, window: &mut Window, _acked: f64, ack: &AckEvidence) {
        if !ack.cwnd_limited {
            return;
        }
        if in_slow_start(window) {
            window.cwnd += 1.0;
        } else {
            let per_increment = window.cwnd as u64;
            self.counter.take(&mut window.cwnd, per_increment);
        }
    }

    fn on_decrease(&mut self, _before: &Window) {
        self.counter = Count::default();
    }

    fn on_timeout(&mut self) {
        self.counter = Count::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_ends_a_segment_above_ssthresh_and_a_window_of_acks_opens_it_by_one() {
        let ack = AckEvidence {
            cwnd_limited: true,
            ..AckEvidence::default()
        };
        let (mut reno, mut window) = (Ns2LinuxReno::default(), Window::at(3.0));
        let mut course = Vec::new();
        for _ in 0..11 {
            reno.on_ack(&mut window, 2.0, &ack);
            course.push(window.cwnd as u32);
        }
        // At 4 four ACKs, at 5 five.
        assert_eq!(course, [4, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6]);
        let idle = AckEvidence::default();
        for _ in 0..4 {
            reno.on_ack(&mut window, 2.0, &ack);
            reno.on_ack(&mut window, 2.0, &idle);
        }
        assert_eq!(window.cwnd as u32, 6, "an ACK below the window counts not");
    }
}
