//! A fixed window, which no congestion signal changes: for measurements of a channel or of the sender itself, where a
//! congestion controller would decide the result, and for connections with a reserved share of a link.
//!
//! Does not depend on the network.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cc::decrease::WindowDecrease;
use crate::cc::evidence::{AckEvidence, SignalEvidence};
use crate::cc::increase::{Increase, WindowIncrease};
use crate::cc::{SlowStart, Window, Windowed};

/// Connections of a run that are open and share one window.
pub type Sharers = Arc<AtomicU32>;

/// A fixed window, as the rule of increase and as the rule of decrease.
#[derive(Clone, Debug)]
pub struct FixedWindow {
    segments: f64,
    share: Option<Share>,
}

/// A connection's part in a shared window.
#[derive(Clone, Debug, Default)]
struct Share {
    open: Sharers,
    joined: bool,
}

impl FixedWindow {
    /// A window of `pkts` segments, at least two.
    pub fn windowed(pkts: u32) -> Windowed {
        Self::of(pkts, None)
    }

    /// A window of `pkts` segments that the open connections share evenly.
    pub fn shared(pkts: u32) -> Windowed {
        Self::of(pkts, Some(Share::default()))
    }

    fn of(pkts: u32, share: Option<Share>) -> Windowed {
        let window = Window::at(f64::from(pkts));
        let increase = Self {
            segments: window.cwnd,
            share,
        };
        let decrease = Self {
            share: None,
            ..increase.clone()
        };
        Windowed::new(window, SlowStart::standard(None), increase, decrease)
    }

    /// Sets the counter of the open connections that share the window.
    pub fn share_with(&mut self, sharers: &Sharers) {
        if let Some(share) = &mut self.share {
            share.open = Arc::clone(sharers);
        }
    }

    /// The connection has opened or closed.
    pub fn note_open(&mut self, open: bool) {
        if let Some(share) = &mut self.share
            && share.joined != open
        {
            share.joined = open;
            if open {
                share.open.fetch_add(1, Ordering::Relaxed);
            } else {
                share.open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// The window now.
    pub fn window(&self) -> Window {
        let sharers = self
            .share
            .as_ref()
            .map_or(1, |share| share.open.load(Ordering::Relaxed).max(1));
        Window::at(libm::floor(self.segments / f64::from(sharers)))
    }
}

impl WindowIncrease for FixedWindow {
    const OWNS_SLOW_START: bool = true;

    fn on_ack(&mut self, window: &mut Window, _acked: f64, _ack: &AckEvidence) {
        *window = self.window();
    }
}

impl WindowDecrease for FixedWindow {
    fn on_congestion(&mut self, window: &Window, _: &mut Increase, _: &SignalEvidence) -> Window {
        *window
    }

    fn after_timeout(&mut self, window: &Window, _: &mut Increase, _: &SignalEvidence) -> Window {
        *window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ConnectionEvent;
    use crate::cc::{Controller, Signal};

    #[test]
    fn neither_loss_nor_timeout_nor_the_end_of_a_recovery_changes_it_for_longer_than_an_ack() {
        let mut controller = FixedWindow::windowed(100);
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
            cwnd: c.window().cwnd,
            ssthresh: c.window().ssthresh,
        };
        assert_eq!(at(&controller), Window::at(100.0));
        controller.on_event(&ConnectionEvent::RecoveryExit(ack(), Some(7.0)));
        controller.on_ack(&ack());
        assert_eq!(at(&controller), Window::at(100.0));
    }

    fn ack() -> AckEvidence {
        AckEvidence {
            delivered: 50,
            cwnd_limited: true,
            ..AckEvidence::default()
        }
    }

    #[test]
    fn open_connections_share_the_window_evenly() {
        let sharers = Sharers::default();
        let mut connections: Vec<Controller> = (0..3)
            .map(|_| {
                let mut controller = Controller::from(FixedWindow::shared(160));
                if let Controller::Windowed(windowed) = &mut controller {
                    windowed.share_with(&sharers);
                }
                controller
            })
            .collect();
        let windows = |connections: &mut [Controller]| -> Vec<f64> {
            connections
                .iter_mut()
                .map(|controller| {
                    controller.on_ack(&ack());
                    controller.window().cwnd
                })
                .collect()
        };
        connections[0].on_event(&ConnectionEvent::Established {
            now: 0,
            rtt: None,
            delivered: 1,
        });
        assert_eq!(windows(&mut connections[..1]), [160.0]);
        connections[1].on_event(&ConnectionEvent::Established {
            now: 0,
            rtt: None,
            delivered: 1,
        });
        connections[2].on_event(&ConnectionEvent::Established {
            now: 0,
            rtt: None,
            delivered: 1,
        });
        assert_eq!(windows(&mut connections), [53.0; 3]);
        connections[1].on_event(&ConnectionEvent::Finished);
        connections[1].on_event(&ConnectionEvent::Finished);
        assert_eq!(windows(&mut connections), [80.0; 3], "two are open");
    }
}
