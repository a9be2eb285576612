//! A user's controller, which lives outside of the engine: it hears the events of any other and says where the window
//! stands after each.
//!
//! Does not depend on the language in which it is written, nor anything of the network.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{AckEvidence, SignalEvidence, Window};
use crate::sim::time::Nanos;

/// What a user's controller hears.
#[derive(Clone, Copy, Debug)]
pub enum ControllerEvent {
    /// Every ACK, before the sender reacts to it.
    Observe(AckEvidence),
    /// An ACK that may grow the window.
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

/// A user's controller.
pub trait External: Send {
    /// Whether it wants [`ControllerEvent::Observe`].
    fn observes(&self) -> bool;

    /// The window with which it begins.
    fn start(&self) -> Window;

    /// The window after the event; `window` is the one before it, which the sender may have moved.
    fn on_event(&mut self, event: &ControllerEvent, window: Window) -> Window;
}

/// Makes the controllers that a configuration calls `external:NAME`.
pub trait MakeExternal: Send + Sync {
    /// The names that it knows.
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

    /// The names that are known.
    pub fn names(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |maker| maker.names())
    }

    /// A controller called `name`; none if there is no such name.
    pub fn make(&self, name: &str, window: Window) -> Option<ExternalController> {
        let hooks = self.0.as_ref()?.make(name, window)?;
        Some(ExternalController {
            window: hooks.start(),
            before: None,
            observes: hooks.observes(),
            hooks: Arc::new(Mutex::new(hooks)),
        })
    }
}

impl fmt::Debug for Externals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Externals").field(&self.names()).finish()
    }
}

/// A user's controller at work: the window that it last gave, and the controller itself.
#[derive(Clone)]
pub struct ExternalController {
    window: Window,
    before: Option<Window>,
    observes: bool,
    hooks: Arc<Mutex<Box<dyn External>>>,
}

impl fmt::Debug for ExternalController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside")
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl ExternalController {
    /// The window.
    #[inline]
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Whether it wants every ACK.
    #[inline]
    pub fn observes(&self) -> bool {
        self.observes
    }

    /// Tells it of an event; it moves the window.
    pub fn notify(&mut self, event: &ControllerEvent) {
        let mut hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        self.window = hooks.on_event(event, self.window);
    }

    /// Tells it of a signal that costs, and keeps what was before.
    pub fn reduce(&mut self, event: &ControllerEvent) {
        self.before = Some(self.window);
        self.notify(event);
    }

    /// The sender moves the window.
    pub fn set_cwnd(&mut self, cwnd: f64) {
        self.window.cwnd = cwnd;
    }

    /// A congestion mark leaves this window.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Takes back the last reduction.
    pub fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.window = Window {
                cwnd: self.window.cwnd.max(before.cwnd),
                ssthresh: before.ssthresh,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Controller, Signal};

    /// Adds a segment per ACK and halves at any signal, from two segments more than the stack has.
    struct Halving(Window);

    impl External for Halving {
        fn observes(&self) -> bool {
            false
        }

        fn start(&self) -> Window {
            self.0
        }

        fn on_event(&mut self, event: &ControllerEvent, window: Window) -> Window {
            match event {
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
            }
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
    fn it_hears_the_events_and_its_window_governs() {
        let externals = Externals::new(Arc::new(Maker));
        assert!(externals.make("other", Window::at(10.0)).is_none());
        assert!(
            Externals::default()
                .make("halving", Window::at(10.0))
                .is_none()
        );
        let made = externals.make("halving", Window::at(10.0));
        let mut controller = Controller::from(made.expect("it is known"));
        assert_eq!((controller.cwnd(), controller.ssthresh()), (12.0, 10.0));
        let signal = SignalEvidence {
            now: 0,
            flight: 20.0,
            lost_total: 1,
            signal: Signal::Loss,
        };
        controller.on_ack(&AckEvidence::default());
        controller.on_ack(&AckEvidence::default());
        assert_eq!(controller.cwnd(), 14.0);
        controller.on_congestion(&signal);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (7.0, 7.0));
        controller.undo();
        assert_eq!((controller.cwnd(), controller.ssthresh()), (14.0, 10.0));
        controller.on_mark(&signal, Some(0.8));
        assert_eq!(controller.cwnd(), 16.0);
    }
}
