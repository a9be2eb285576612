//! What a model of the path gives out, whatever its version: the window, the window to return to, and the pace.
//!
//! Does not depend on how any of it is found.

use super::pacer::Pacer;
use crate::cc::{Pace, Window};

/// The output of a model. Windows in segments.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Congestion window.
    pub cwnd: u64,
    /// cwnd before recovery or `PROBE_RTT`.
    pub prior_cwnd: u64,
    /// The product at the end of STARTUP, for observers: no model reads it. Infinite before.
    pub ssthresh: f64,
    /// The pacing rate.
    pub pacer: Pacer,
}

impl Output {
    /// The window that a connection begins with, and no pace yet.
    pub fn new(initial_window: u32, pacer: Pacer) -> Self {
        Self {
            cwnd: initial_window.into(),
            prior_cwnd: 0,
            ssthresh: f64::INFINITY,
            pacer,
        }
    }

    /// The windows.
    #[inline]
    pub fn window(&self) -> Window {
        Window {
            // No window leaves 63 bits, and the conversion from a signed number costs a third.
            cwnd: self.cwnd as i64 as f64,
            ssthresh: self.ssthresh,
        }
    }

    /// How segments may leave.
    #[inline]
    pub fn pace(&self) -> Pace {
        self.pacer.pace()
    }

    /// After a timeout: at least this window.
    pub fn allow(&mut self, cwnd: u64) {
        self.cwnd = self.cwnd.max(cwnd);
    }

    /// Saves the window to return to: this one where it is `whole`, else the larger of it and the one saved before.
    pub fn save_cwnd(&mut self, whole: bool) {
        self.prior_cwnd = if whole {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    /// Returns to the saved window, if it is larger.
    pub fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_to_return_to_is_the_whole_one_or_the_greater() {
        let mut output = Output::new(10, Pacer::new(1448, 1.0));
        output.save_cwnd(true);
        output.cwnd = 4;
        output.save_cwnd(false);
        assert_eq!(output.prior_cwnd, 10);
        output.restore_cwnd();
        assert_eq!((output.cwnd, output.window().cwnd), (10, 10.0));
        output.cwnd = 4;
        output.save_cwnd(true);
        output.cwnd = 7;
        output.restore_cwnd();
        assert_eq!(output.cwnd, 7, "the greater");
        output.save_cwnd(false);
        assert_eq!(output.prior_cwnd, 7);
        output.allow(3);
        assert_eq!(output.cwnd, 7);
        output.allow(9);
        assert_eq!(output.cwnd, 9);
    }
}
