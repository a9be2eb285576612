//! A user's controller, which runs outside the engine: it gets the same events as the other controllers and returns the
//! window after each.
//!
//! Does not depend on the language in which it is written, nor on the network.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{
    AckEvidence, Adjustment, Capabilities, ConnectionEvent, LOSS_WINDOW, Pace, Signal,
    SignalEvidence, Window,
};
use crate::sim::time::Nanos;

/// An event that a user's controller gets.
#[derive(Clone, Copy, Debug)]
pub enum ControllerEvent {
    /// Every ACK, before the sender reacts to it.
    Observe(AckEvidence),
    /// An ACK that may increase the window; for a model of the path any ACK that delivers or reports something.
    Ack(AckEvidence),
    /// A loss that was found, or a congestion mark.
    Congestion(SignalEvidence),
    /// The retransmission timer expired.
    Timeout(SignalEvidence),
    /// Fast recovery ended.
    RecoveryExit(AckEvidence),
    /// Nothing was in flight for that long, and data is to be sent again; the initial window in segments.
    Idle(f64, Nanos),
}

/// What a user's controller decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The window from now on.
    pub window: Window,
    /// Segments per second from now on; none: not paced. Read only if the controller paces.
    pub pkts_per_s: Option<f64>,
}

/// A user's controller.
pub trait External: Send {
    /// What it needs from the sender.
    fn capabilities(&self) -> Capabilities;

    /// Its initial decision.
    fn start(&self) -> Decision;

    /// Its decision after the event. `window` is the window before the event, which the sender may have changed.
    fn on_event(&mut self, event: &ControllerEvent, window: Window) -> Decision;
}

/// Makes the controllers that a configuration calls `external:NAME`.
pub trait MakeExternal: Send + Sync {
    /// The names of the controllers that it can make.
    fn names(&self) -> Vec<String>;

    /// A new controller called `name`, for a connection whose stack would start with `window`; none if there is no such name.
    fn make(&self, name: &str, window: Window) -> Option<Box<dyn External>>;
}

/// The user's controllers of a configuration; none unless they are given.
#[derive(Clone, Default)]
pub struct Externals(Option<Arc<dyn MakeExternal>>);

impl Externals {
    /// Those that `maker` makes.
    pub fn new(maker: Arc<dyn MakeExternal>) -> Self {
        Self(Some(maker))
    }

    /// The names of the controllers.
    pub fn names(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |maker| maker.names())
    }

    /// A controller called `name`; none if there is no such name.
    pub fn make(&self, name: &str, window: Window) -> Option<ExternalController> {
        let hooks = self.0.as_ref()?.make(name, window)?;
        Some(ExternalController {
            decision: hooks.start(),
            before: None,
            capabilities: hooks.capabilities(),
            hooks: Arc::new(Mutex::new(hooks)),
        })
    }
}

/// Whether they are the same ones.
impl PartialEq for Externals {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}

impl fmt::Debug for Externals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Externals").field(&self.names()).finish()
    }
}

/// A running controller of a user, with its last decision.
#[derive(Clone)]
pub struct ExternalController {
    decision: Decision,
    before: Option<Window>,
    capabilities: Capabilities,
    hooks: Arc<Mutex<Box<dyn External>>>,
}

impl fmt::Debug for ExternalController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalController")
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

impl ExternalController {
    /// The window.
    #[inline]
    pub fn window(&self) -> &Window {
        &self.decision.window
    }

    /// See [`Capabilities`].
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// How segments may leave.
    pub fn pace(&self) -> Pace {
        let rate = self.decision.pkts_per_s.filter(|_| self.capabilities.paces);
        rate.map_or(Pace::UNPACED, |pkts_per_s| Pace::new(pkts_per_s, 1))
    }

    /// Passes it an event; it decides.
    pub fn notify(&mut self, event: &ControllerEvent) {
        let mut hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        self.decision = hooks.on_event(event, self.decision.window);
    }

    /// Passes it a signal to decrease the window, and keeps the window before.
    pub fn reduce(&mut self, event: &ControllerEvent) {
        let repeated = matches!(event, ControllerEvent::Timeout(signal) if signal.signal == Signal::RepeatedTimeout);
        if !repeated {
            self.before = Some(self.decision.window);
        }
        self.notify(event);
    }

    /// See [`ConnectionEvent`].
    pub fn on_event(&mut self, event: &ConnectionEvent) {
        match event {
            ConnectionEvent::RecoveryExit(ack, cwnd) => {
                if let Some(cwnd) = cwnd {
                    self.decision.window.cwnd = cwnd.max(LOSS_WINDOW);
                }
                self.notify(&ControllerEvent::RecoveryExit(*ack));
            }
            ConnectionEvent::Idle(initial_window, idle) if !self.capabilities.models_path => {
                self.notify(&ControllerEvent::Idle(*initial_window, *idle));
            }
            _ => {}
        }
    }

    /// The window that something other than the controller sets.
    pub fn set_window(&mut self, window: Window) {
        self.decision.window = window;
    }

    /// See [`Adjustment`].
    pub fn adjust(&mut self, adjustment: Adjustment) {
        let window = &mut self.decision.window;
        match adjustment {
            Adjustment::Set(_) | Adjustment::Validate(_) if self.capabilities.models_path => {}
            Adjustment::Set(other) | Adjustment::Validate(other) => *window = other,
            Adjustment::AtLeast(cwnd) => window.cwnd = window.cwnd.max(cwnd),
            Adjustment::Undo => {
                if let Some(before) = self.before.take() {
                    *window = Window {
                        cwnd: window.cwnd.max(before.cwnd),
                        ssthresh: before.ssthresh,
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Controller, Signal};

    fn unpaced(window: Window) -> Decision {
        Decision {
            window,
            pkts_per_s: None,
        }
    }

    /// Adds a segment per ACK and halves at any signal, from two segments more than the stack has.
    struct Halving(Window);

    impl External for Halving {
        fn capabilities(&self) -> Capabilities {
            Capabilities::default()
        }

        fn start(&self) -> Decision {
            unpaced(self.0)
        }

        fn on_event(&mut self, event: &ControllerEvent, window: Window) -> Decision {
            unpaced(match event {
                ControllerEvent::Ack(_) => Window {
                    cwnd: window.cwnd + 1.0,
                    ..window
                },
                ControllerEvent::Congestion(_) | ControllerEvent::Timeout(_) => {
                    Window::at(window.cwnd / 2.0)
                }
                ControllerEvent::Observe(_)
                | ControllerEvent::RecoveryExit(_)
                | ControllerEvent::Idle(..) => window,
            })
        }
    }

    struct Maker;

    impl MakeExternal for Maker {
        fn names(&self) -> Vec<String> {
            vec!["halving".into()]
        }

        fn make(&self, name: &str, window: Window) -> Option<Box<dyn External>> {
            let start = Window {
                cwnd: window.cwnd + 2.0,
                ..window
            };
            (name == "halving").then(|| Box::new(Halving(start)) as Box<dyn External>)
        }
    }

    #[test]
    fn it_gets_the_events_and_its_window_governs() {
        let externals = Externals::new(Arc::new(Maker));
        assert!(externals.make("other", Window::at(10.0)).is_none());
        assert!(
            Externals::default()
                .make("halving", Window::at(10.0))
                .is_none()
        );
        let made = externals.make("halving", Window::at(10.0));
        let mut controller = Controller::from(made.expect("it is known"));
        assert_eq!(
            (controller.window().cwnd, controller.window().ssthresh),
            (12.0, 10.0)
        );
        let signal = SignalEvidence {
            now: 0,
            flight: 20.0,
            lost_total: 1,
            signal: Signal::Loss,
        };
        controller.on_ack(&AckEvidence::default());
        controller.on_ack(&AckEvidence::default());
        assert_eq!(controller.window().cwnd, 14.0);
        controller.on_congestion(&signal);
        assert_eq!(
            (controller.window().cwnd, controller.window().ssthresh),
            (7.0, 7.0)
        );
        controller.adjust(Adjustment::Undo);
        assert_eq!(
            (controller.window().cwnd, controller.window().ssthresh),
            (14.0, 10.0)
        );
        controller.on_mark(&signal, Some(0.8));
        assert_eq!(controller.window().cwnd, 16.0);
    }
}
