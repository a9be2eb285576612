//! A window that nothing moves: for measurements of a channel or of the sender itself, where a congestion controller
//! would decide what is measured.
//!
//! Must not know anything of the network.

use super::evidence::{AckEvidence, SignalEvidence};
use super::growth::{Growth, WindowGrowth};
use super::reduction::WindowReduction;
use super::{SlowStart, Window, Windowed};

/// The window at which it is held, as growth and as reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    segments: f64,
}

impl Held {
    /// A window that is held at `pkts` segments, two at least.
    pub fn windowed(pkts: u32) -> Windowed {
        let window = Window::at(f64::from(pkts));
        let held = Self {
            segments: window.cwnd,
        };
        Windowed::new(window, SlowStart::standard(None), held, held)
    }
}

impl WindowGrowth for Held {
    const OWNS_SLOW_START: bool = true;

    fn on_ack(&mut self, window: &mut Window, _acked: f64, _ack: &AckEvidence) {
        *window = Window::at(self.segments);
    }
}

impl WindowReduction for Held {
    fn reduced(&mut self, _: &Window, _: &mut Growth, _: &SignalEvidence) -> Window {
        Window::at(self.segments)
    }

    fn after_timeout(&mut self, _: &Window, _: &mut Growth, _: &SignalEvidence) -> Window {
        Window::at(self.segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Signal;

    #[test]
    fn neither_loss_nor_timeout_nor_the_end_of_a_recovery_moves_it_for_longer_than_an_ack() {
        let mut controller = Held::windowed(100);
        let signal = |signal| SignalEvidence {
            now: 0,
            flight: 30.0,
            lost_total: 0,
            signal,
        };
        controller.on_congestion(&signal(Signal::Loss));
        controller.on_timeout(&signal(Signal::Timeout));
        controller.on_timeout(&signal(Signal::RepeatedTimeout));
        let at = |c: &Windowed| Window {
            cwnd: c.cwnd(),
            ssthresh: c.ssthresh(),
        };
        assert_eq!(at(&controller), Window::at(100.0));
        let ack = AckEvidence {
            delivered: 50,
            cwnd_limited: true,
            ..AckEvidence::default()
        };
        controller.on_recovery_exit(&ack, Some(7.0));
        controller.on_ack(&ack);
        assert_eq!(at(&controller), Window::at(100.0));
    }
}
