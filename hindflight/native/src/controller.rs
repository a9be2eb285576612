//! A user's controllers in Python: the engine's events as objects, the windows that they set read back. What they raise
//! ends the run. Decides nothing about TCP.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hindflight_engine::cc::{
    AckEvidence, Capabilities, ControllerEvent, Decision, External, Externals, MakeExternal,
    RecoveryPhase, Signal, SignalEvidence, Window,
};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

const NS_PER_S: f64 = 1e9;

/// What an ACK tells.
#[pyclass(frozen, get_all, module = "hindflight._native")]
pub struct Ack {
    now_s: f64,
    delivered_pkts: u32,
    acked_bytes: u64,
    rtt_s: Option<f64>,
    srtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    snd_una: u64,
    snd_nxt: u64,
    flight_pkts: u32,
    prior_flight_pkts: u32,
    lost_pkts: u64,
    newly_lost_pkts: u64,
    delivered_total_pkts: u64,
    delivery_rate_pkts_per_s: Option<f64>,
    prior_delivered_pkts: Option<u64>,
    app_limited: bool,
    recovery_phase: &'static str,
    cwnd_limited: bool,
    ecn_echo: bool,
}

/// Why a window is to be reduced.
#[pyclass(frozen, get_all, module = "hindflight._native")]
pub struct Congestion {
    now_s: f64,
    flight_pkts: f64,
    lost_pkts: u64,
    kind: &'static str,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S
}

impl From<&AckEvidence> for Ack {
    fn from(ack: &AckEvidence) -> Self {
        Self {
            now_s: seconds(ack.now),
            delivered_pkts: ack.delivered,
            acked_bytes: ack.acked_bytes,
            rtt_s: ack.rtt.map(seconds),
            srtt_s: ack.srtt.map(seconds),
            min_rtt_s: ack.min_rtt.map(seconds),
            snd_una: ack.snd_una,
            snd_nxt: ack.snd_nxt,
            flight_pkts: ack.flight,
            prior_flight_pkts: ack.prior_flight,
            lost_pkts: ack.lost_total,
            newly_lost_pkts: ack.newly_lost,
            delivered_total_pkts: ack.delivered_total,
            delivery_rate_pkts_per_s: (ack.rate)
                .map(|rate| rate.delivered as f64 / seconds(rate.interval)),
            prior_delivered_pkts: ack.rate.map(|rate| rate.prior_delivered),
            app_limited: ack.rate.is_some_and(|rate| rate.app_limited),
            recovery_phase: match ack.recovery_phase {
                RecoveryPhase::None => "none",
                RecoveryPhase::Recovery => "recovery",
                RecoveryPhase::Loss => "loss",
            },
            cwnd_limited: ack.cwnd_limited,
            ecn_echo: ack.ecn_echo,
        }
    }
}

impl From<&SignalEvidence> for Congestion {
    fn from(signal: &SignalEvidence) -> Self {
        Self {
            now_s: seconds(signal.now),
            flight_pkts: signal.flight,
            lost_pkts: signal.lost_total,
            kind: match signal.signal {
                Signal::Loss => "loss",
                Signal::EcnEcho => "ecn_echo",
                Signal::Timeout => "timeout",
                Signal::RepeatedTimeout => "repeated_timeout",
            },
        }
    }
}

/// Where the first exception of any controller is kept; it interrupts every run.
#[derive(Default)]
pub struct Failure {
    raised: Mutex<Option<PyErr>>,
    /// Set when there is one, or the user interrupts.
    pub interrupt: AtomicBool,
    /// Python's identifiers of the threads that are in a controller's code.
    calling: Mutex<Vec<u64>>,
}

impl Failure {
    /// Keeps the first error, and has all runs stop.
    pub fn note(&self, error: PyErr) {
        lock(&self.raised).get_or_insert(error);
        self.interrupt.store(true, Ordering::Relaxed);
    }

    /// Calls Python on behalf of a controller, in a way that `interrupt_calls` can end.
    fn call<T>(&self, code: impl FnOnce(Python<'_>) -> T) -> T {
        Python::attach(|py| {
            let _listed = Listed::new(self, py);
            code(py)
        })
    }

    /// Raises `KeyboardInterrupt` in every thread that is in a controller's code. It arrives at the thread's next
    /// bytecode: a call that blocks outside of Python ends first. Safe to repeat while such code catches it.
    pub fn interrupt_calls(&self) -> PyResult<()> {
        Python::attach(|py| {
            let ctypes = py.import("ctypes")?;
            let raise = ctypes
                .getattr("pythonapi")?
                .getattr("PyThreadState_SetAsyncExc")?;
            let exception =
                ctypes.call_method1("py_object", (py.get_type::<PyKeyboardInterrupt>(),))?;
            // Cloned: ctypes gives up the GIL, and a thread that ends its call needs the lock.
            let calling = lock(&self.calling).clone();
            for thread in calling {
                raise.call1((ctypes.call_method1("c_ulong", (thread,))?, &exception))?;
            }
            Ok(())
        })
    }

    /// What was raised, if anything was.
    pub fn take(&self) -> Option<PyErr> {
        lock(&self.raised).take()
    }
}

thread_local! {
    /// Python's identifier of this thread, which costs a call of Python.
    static IDENTIFIER: OnceCell<u64> = const { OnceCell::new() };
}

fn identifier(py: Python<'_>) -> Option<u64> {
    IDENTIFIER.with(|known| {
        known.get().copied().or_else(|| {
            let read = py
                .import("threading")
                .ok()?
                .call_method0("get_ident")
                .ok()?;
            let read = read.extract().ok()?;
            Some(*known.get_or_init(|| read))
        })
    })
}

/// An entry of `Failure::calling`, for as long as it exists.
struct Listed<'a> {
    failure: &'a Failure,
    thread: Option<u64>,
}

impl<'a> Listed<'a> {
    fn new(failure: &'a Failure, py: Python<'_>) -> Self {
        let thread = identifier(py);
        lock(&failure.calling).extend(thread);
        Self { failure, thread }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut calling = lock(&self.failure.calling);
        if let Some(at) = calling
            .iter()
            .position(|thread| Some(*thread) == self.thread)
        {
            calling.swap_remove(at);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Classes by name.
struct Classes {
    classes: HashMap<String, Py<PyAny>>,
    failure: Arc<Failure>,
}

/// The engine's view of `classes`; what they raise goes to `failure`.
pub fn externals(classes: HashMap<String, Py<PyAny>>, failure: &Arc<Failure>) -> Externals {
    Externals::new(Arc::new(Classes {
        classes,
        failure: Arc::clone(failure),
    }))
}

impl MakeExternal for Classes {
    fn names(&self) -> Vec<String> {
        self.classes.keys().cloned().collect()
    }

    fn make(&self, name: &str, window: Window) -> Option<Box<dyn External>> {
        let class = self.classes.get(name)?;
        let made = self.failure.call(|py| {
            let class = class.bind(py);
            make(class, window).map_err(|error| in_words(py, error, &name_of(class), "__init__"))
        });
        let (object, start, capabilities) = match made {
            Ok((object, start, capabilities)) => (Some(object), start, capabilities),
            Err(error) => {
                self.failure.note(error);
                (None, unpaced(window), Capabilities::default())
            }
        };
        Some(Box::new(InPython {
            object,
            start,
            capabilities,
            failure: Arc::clone(&self.failure),
        }))
    }
}

/// A new object of `class`, what it begins with, and its capabilities.
fn make(
    class: &Bound<'_, PyAny>,
    window: Window,
) -> Result<(Py<PyAny>, Decision, Capabilities), Wrong> {
    let object = class.call1((window.cwnd, window.ssthresh))?;
    let flag = |name| object.getattr(name)?.extract::<bool>();
    let capabilities = Capabilities {
        observes: flag("observes")?,
        models_path: flag("models_path")?,
        paces: flag("paces")?,
        ..Capabilities::default()
    };
    // A class that leaves the windows to the engine has none yet.
    let start = if object.hasattr("cwnd")? && object.hasattr("ssthresh")? {
        decision_of(&object, capabilities.paces)?
    } else {
        unpaced(window)
    };
    Ok((object.unbind(), start, capabilities))
}

fn unpaced(window: Window) -> Decision {
    Decision {
        window,
        pkts_per_s: None,
    }
}

fn name_of(class: &Bound<'_, PyAny>) -> String {
    class
        .getattr("__name__")
        .and_then(|name| name.extract())
        .unwrap_or_default()
}

/// What a controller did wrong.
enum Wrong {
    /// It raised.
    Raised(PyErr),
    /// It left no window, but this.
    NoWindow(String),
    /// It left no pacing rate, but this.
    NoRate(String),
}

impl From<PyErr> for Wrong {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

/// What went wrong in `call` of `class`, in one line, with what was raised as the cause. An interrupt stays what it is.
fn in_words(py: Python<'_>, wrong: Wrong, class: &str, call: &str) -> PyErr {
    match wrong {
        Wrong::Raised(error) if !error.is_instance_of::<PyException>(py) => error,
        Wrong::Raised(error) => {
            let kind = name_of(&error.get_type(py));
            let words = format!("{class}.{call} raises {kind}: {}", error.value(py));
            let raised = PyRuntimeError::new_err(words);
            raised.set_cause(py, Some(error));
            raised
        }
        Wrong::NoRate(left) => PyRuntimeError::new_err(format!(
            "{class}.{call} leaves {left}: it is None or a positive number of segments per second"
        )),
        Wrong::NoWindow(left) => PyRuntimeError::new_err(format!(
            "{class}.{call} leaves {left}: both are numbers of 1 at least, and cwnd is finite"
        )),
    }
}

/// A controller that is an object of Python; none once it has raised.
struct InPython {
    object: Option<Py<PyAny>>,
    start: Decision,
    capabilities: Capabilities,
    failure: Arc<Failure>,
}

impl External for InPython {
    fn start(&self) -> Decision {
        self.start
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn on_event(&mut self, event: &ControllerEvent, window: Window) -> Decision {
        let Some(object) = &self.object else {
            return unpaced(window);
        };
        let paces = self.capabilities.paces;
        let decided = self
            .failure
            .call(|py| notify(object.bind(py), event, window, paces));
        decided.unwrap_or_else(|error| {
            self.failure.note(error);
            self.object = None;
            unpaced(window)
        })
    }
}

fn notify(
    object: &Bound<'_, PyAny>,
    event: &ControllerEvent,
    window: Window,
    paces: bool,
) -> PyResult<Decision> {
    let decided = call_for(object, event, window).and_then(|()| decision_of(object, paces));
    decided.map_err(|error| {
        let (call, now) = match event {
            ControllerEvent::Observe(ack) => ("observe", Some(ack.now)),
            ControllerEvent::Ack(ack) => ("on_ack", Some(ack.now)),
            ControllerEvent::Congestion(signal) => ("on_congestion", Some(signal.now)),
            ControllerEvent::Timeout(signal) => ("on_timeout", Some(signal.now)),
            ControllerEvent::RecoveryExit(ack) => ("on_recovery_exit", Some(ack.now)),
            ControllerEvent::Idle(..) => ("on_idle", None),
        };
        let at = now.map_or(String::new(), |now| format!(" at {:.3} s", seconds(now)));
        let class = name_of(&object.get_type());
        in_words(object.py(), error, &class, &format!("{call}{at}"))
    })
}

/// Calls the method that belongs to the event.
fn call_for(
    object: &Bound<'_, PyAny>,
    event: &ControllerEvent,
    window: Window,
) -> Result<(), Wrong> {
    object.setattr("cwnd", window.cwnd)?;
    object.setattr("ssthresh", window.ssthresh)?;
    match event {
        ControllerEvent::Observe(ack) => object.call_method1("observe", (Ack::from(ack),))?,
        ControllerEvent::Ack(ack) => object.call_method1("on_ack", (Ack::from(ack),))?,
        ControllerEvent::Congestion(signal) => {
            object.call_method1("on_congestion", (Congestion::from(signal),))?
        }
        ControllerEvent::Timeout(signal) => {
            object.call_method1("on_timeout", (Congestion::from(signal),))?
        }
        ControllerEvent::RecoveryExit(ack) => {
            object.call_method1("on_recovery_exit", (Ack::from(ack),))?
        }
        ControllerEvent::Idle(initial, idle) => {
            object.call_method1("on_idle", (*initial, seconds(*idle)))?
        }
    };
    Ok(())
}

/// The windows that the object has, and its pacing rate if it paces.
fn decision_of(object: &Bound<'_, PyAny>, paces: bool) -> Result<Decision, Wrong> {
    let window = window_of(object)?;
    let pkts_per_s = if paces { rate_of(object)? } else { None };
    Ok(Decision { window, pkts_per_s })
}

fn rate_of(object: &Bound<'_, PyAny>) -> Result<Option<f64>, Wrong> {
    let rate = object.getattr("pacing_rate_pkts_per_s")?;
    match rate.extract::<Option<f64>>() {
        Ok(None) => Ok(None),
        Ok(Some(pkts_per_s)) if pkts_per_s > 0.0 => Ok(Some(pkts_per_s)),
        _ => Err(Wrong::NoRate(format!(
            "pacing_rate_pkts_per_s = {}",
            rate.repr()?
        ))),
    }
}

/// The windows that the object has.
fn window_of(object: &Bound<'_, PyAny>) -> Result<Window, Wrong> {
    let (cwnd, ssthresh) = (object.getattr("cwnd")?, object.getattr("ssthresh")?);
    if let (Ok(cwnd), Ok(ssthresh)) = (cwnd.extract::<f64>(), ssthresh.extract::<f64>())
        // Not a number fails both.
        && cwnd.is_finite()
        && cwnd >= 1.0
        && ssthresh >= 1.0
    {
        return Ok(Window { cwnd, ssthresh });
    }
    Err(Wrong::NoWindow(format!(
        "cwnd = {} and ssthresh = {}",
        cwnd.repr()?,
        ssthresh.repr()?
    )))
}
