//! `replay`: jobs to the engine, over threads, with the GIL released. Results come in the order of the jobs, whatever
//! thread ran them; Ctrl-C is looked for while they run. Decides nothing about TCP.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hindflight_engine::cc::Externals;
use hindflight_engine::{
    Config, ConfigError, ConfigErrorKind, ConfigErrors, KeyPath, Leg, Nanos, PathStep, Profile,
    RunError, RunSummary, StackOverrides, StackParams, Tap, World, ineffective_in_all,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_path_to_error::Segment;

use crate::arrays::{Column, Document};
use crate::captures::Captures;
use crate::controller::{Failure, externals};
use crate::recorder::{Recorder, RunTables};
use crate::runs::{Finished, runs};
use crate::sampler::Sampler;
use crate::transfer::Transfer;

/// How often the waiting thread looks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// A job as Python gives it: configuration, seed, run_id, recorded.
type JobTuple = (String, u64, u32, bool);

/// One run to make.
struct Job {
    config: Arc<Config>,
    seed: u64,
    run_id: u32,
    recorded: bool,
}

/// What recorded jobs keep.
#[derive(Clone, Copy)]
enum Series {
    /// Every segment and every change of state.
    Full,
    /// States alone: every one, or so many of each sender at most, at even times, and the last.
    States(Option<NonZeroU32>),
    /// What the self-check compares, for so long from the first data segment on.
    Transfer(Nanos),
}

/// What is kept of recorded jobs.
struct Keep {
    series: Series,
    /// Folder for a capture at each end of their connections.
    captures: Option<PathBuf>,
}

/// What a job gave.
struct Outcome {
    summary: RunSummary,
    tables: RunTables,
}

/// The stack parameters that a profile fixes, as JSON.
#[pyfunction]
pub fn profile(name: &str) -> PyResult<String> {
    let refuse = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let profile: Profile = serde_json::from_value(name.into()).map_err(refuse)?;
    let params = StackParams::resolve(profile, &StackOverrides::default());
    serde_json::to_string(&params).map_err(refuse)
}

/// What `replay` would refuse: the number of the configuration and the error as JSON. Where all are sound, the options
/// that have no effect in any of them.
#[pyfunction]
#[pyo3(signature = (configurations, controllers = None, arrays = None))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "PyO3 hands over what it has read"
)]
pub fn check(
    configurations: Vec<String>,
    controllers: Option<HashMap<String, Py<PyAny>>>,
    arrays: Option<Vec<Column>>,
) -> Vec<(usize, String)> {
    let arrays = arrays.unwrap_or_default();
    let externals = externals(controllers.unwrap_or_default(), &Arc::default());
    let mut configs = Vec::with_capacity(configurations.len());
    let mut found = Vec::new();
    for (number, text) in configurations.iter().enumerate() {
        match config_with(text, &arrays, &externals) {
            Ok(config) => configs.push(config),
            Err(errors) => found.extend(documents(number, errors.as_slice())),
        }
    }
    if found.is_empty() {
        found.extend(documents(0, &ineffective_in_all(&configs)));
    }
    found
}

/// Each of the errors of configuration `number` as JSON.
fn documents(number: usize, errors: &[ConfigError]) -> impl Iterator<Item = (usize, String)> {
    errors.iter().map(move |error| (number, json(error)))
}

fn json(error: &ConfigError) -> String {
    serde_json::to_string(error)
        .expect("keys are text and numbers are written as null where JSON has none")
}

/// Runs the jobs and returns batches of tables by name. Without `segments`, recorded jobs give states alone, with
/// `samples` so many at most; with `transfer_ns` they give `transfers` and `windows` alone; with `captures` a capture
/// of each of their nodes is written to that folder.
#[pyfunction]
#[pyo3(signature = (
    jobs, *, threads, segments = true, samples = None, transfer_ns = None, captures = None, controllers = None,
    arrays = None
))]
#[allow(
    clippy::too_many_arguments,
    reason = "named ones, each with its own default, are what Python offers"
)]
pub fn replay(
    py: Python<'_>,
    jobs: Vec<JobTuple>,
    threads: usize,
    segments: bool,
    samples: Option<NonZeroU32>,
    transfer_ns: Option<Nanos>,
    captures: Option<PathBuf>,
    controllers: Option<HashMap<String, Py<PyAny>>>,
    arrays: Option<Vec<Column>>,
) -> PyResult<Bound<'_, PyDict>> {
    let series = match transfer_ns {
        Some(span) => Series::Transfer(span),
        None => series(segments, samples)?,
    };
    let keep = Keep { series, captures };
    let (runs, tables) = py.detach(|| {
        let failure = Arc::new(Failure::default());
        let externals = externals(controllers.unwrap_or_default(), &failure);
        let jobs = parse(&jobs, &arrays.unwrap_or_default(), &externals)?;
        let outcomes = run_all(&jobs, threads, &keep, &failure);
        let outcomes = failure.take().map_or(outcomes, Err)?;
        let finished = jobs.iter().zip(&outcomes).map(|(job, outcome)| Finished {
            run_id: job.run_id,
            seed: job.seed,
            config: &job.config,
            summary: &outcome.summary,
        });
        let runs = runs(&finished.collect::<Vec<_>>())?;
        let mut tables = RunTables::default();
        for outcome in outcomes {
            tables.append(outcome.tables);
        }
        PyResult::Ok((runs, tables))
    })?;
    let out = PyDict::new(py);
    out.set_item("runs", vec![runs])?;
    out.set_item("segments", tables.segments)?;
    out.set_item("flows", tables.flows)?;
    out.set_item("events", tables.events)?;
    out.set_item("instruments", tables.instruments)?;
    out.set_item("transfers", tables.transfers)?;
    out.set_item("windows", tables.windows)?;
    Ok(out)
}

fn series(segments: bool, samples: Option<NonZeroU32>) -> PyResult<Series> {
    match (segments, samples) {
        (true, None) => Ok(Series::Full),
        (true, Some(_)) => Err(PyValueError::new_err(
            "samples: only without segments, which cannot be sampled",
        )),
        (false, samples) => Ok(Series::States(samples)),
    }
}

/// Reads and checks every configuration before anything runs; equal texts are read once.
fn parse(jobs: &[JobTuple], arrays: &[Column], externals: &Externals) -> PyResult<Vec<Job>> {
    let mut known: HashMap<&str, Arc<Config>> = HashMap::new();
    let mut parsed = Vec::with_capacity(jobs.len());
    for (text, seed, run_id, recorded) in jobs {
        let config = if let Some(config) = known.get(text.as_str()) {
            Arc::clone(config)
        } else {
            let read =
                config_with(text, arrays, externals).map_err(|error| refused(error.into()))?;
            Arc::clone(known.entry(text).or_insert(Arc::new(read)))
        };
        parsed.push(Job {
            config,
            seed: *seed,
            run_id: *run_id,
            recorded: *recorded,
        });
    }
    Ok(parsed)
}

/// Reads and checks a configuration.
pub fn config(text: &str, arrays: &[Column]) -> PyResult<Config> {
    config_with(text, arrays, &Externals::default()).map_err(|error| refused(error.into()))
}

fn config_with(
    text: &str,
    arrays: &[Column],
    externals: &Externals,
) -> Result<Config, ConfigErrors> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut reader);
    let document: Document = read.map_err(|error| {
        let detail = error.inner().to_string();
        let path = key_path(error.path());
        ConfigErrors::one(path, ConfigErrorKind::Malformed { detail })
    })?;
    let resolved = document.resolve(arrays);
    let mut config = resolved.map_err(|(path, detail)| {
        ConfigErrors::one(array_path(&path), ConfigErrorKind::Malformed { detail })
    })?;
    config.externals = externals.clone();
    config.validate()?;
    Ok(config)
}

/// The JSON reader's path inside the `config` of a document; the tag of an enum is no key of it.
fn key_path(path: &serde_path_to_error::Path) -> KeyPath {
    let mut steps: Vec<_> = path
        .iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(PathStep::Index(*index)),
            Segment::Map { key } => Some(PathStep::Key(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect();
    if steps.first() == Some(&PathStep::Key("config".to_owned())) {
        steps.remove(0);
    }
    KeyPath(steps)
}

/// The path of an array, whose steps a dot separates.
fn array_path(path: &str) -> KeyPath {
    let steps = path.split('.').map(|step| match step.parse() {
        Ok(index) => PathStep::Index(index),
        Err(_) => PathStep::Key(step.to_owned()),
    });
    KeyPath(steps.collect())
}

/// What the threads share.
struct Pool<'a> {
    jobs: &'a [Job],
    /// Numbers of the jobs in the order in which they begin.
    order: Vec<usize>,
    keep: &'a Keep,
    next: AtomicUsize,
    failure: &'a Failure,
    outcomes: Vec<Mutex<Option<Outcome>>>,
    working: Mutex<usize>,
    stopped: Condvar,
}

/// Hands the jobs to `threads` threads. All stop when one fails, with the cause in `failure`, or the user interrupts.
fn run_all(jobs: &[Job], threads: usize, keep: &Keep, failure: &Failure) -> PyResult<Vec<Outcome>> {
    let threads = threads.clamp(1, jobs.len().max(1));
    // A recorded job takes several times as long as another: one that began last would leave the other threads idle.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&number| !jobs[number].recorded);
    let pool = Pool {
        jobs,
        order,
        keep,
        next: AtomicUsize::new(0),
        failure,
        outcomes: jobs.iter().map(|_| Mutex::new(None)).collect(),
        working: Mutex::new(threads),
        stopped: Condvar::new(),
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| pool.work());
        }
        pool.wait()
    })?;
    let outcomes = pool
        .outcomes
        .into_iter()
        .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    let outcomes: Option<Vec<_>> = outcomes.collect();
    outcomes.ok_or_else(|| refused(RunError::Interrupted))
}

impl Pool<'_> {
    fn work(&self) {
        let _leaving = Leaving(self);
        let interrupt = &self.failure.interrupt;
        while !interrupt.load(Ordering::Relaxed) {
            let turn = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&number) = self.order.get(turn) else {
                return;
            };
            match self.jobs[number].run(self.keep, interrupt) {
                Ok(outcome) => *lock(&self.outcomes[number]) = Some(outcome),
                Err(error) if !interrupt.load(Ordering::Relaxed) => self.failure.note(error),
                // Another job failed first, or the user interrupts: this error is not the cause.
                Err(_) => return,
            }
        }
    }

    /// Waits for all threads; on Ctrl-C stops them, also inside a controller's Python code, and returns what Python
    /// raised.
    fn wait(&self) -> PyResult<()> {
        let mut signal = Ok(());
        let mut working = lock(&self.working);
        while *working > 0 {
            let waited = self.stopped.wait_timeout(working, SIGNAL_CHECK);
            working = waited.unwrap_or_else(PoisonError::into_inner).0;
            if signal.is_ok() {
                signal = check_signals();
            }
            if signal.is_err() {
                self.failure.interrupt.store(true, Ordering::Relaxed);
                // Without the lock: a controller may be in the middle of Python code, a thread may want to end.
                drop(working);
                let raised = self.failure.interrupt_calls();
                signal = signal.and(raised);
                working = lock(&self.working);
            }
        }
        signal
    }
}

fn check_signals() -> PyResult<()> {
    Python::attach(|py| {
        let signal: PyResult<()> = py.check_signals();
        signal
    })
}

/// Counts a thread as stopped when it is dropped, also after a panic.
struct Leaving<'a, 'b>(&'a Pool<'b>);

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        *lock(&self.0.working) -= 1;
        self.0.stopped.notify_all();
    }
}

/// A panic of a thread that had the lock leaves plain values behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    fn run(&self, keep: &Keep, interrupt: &AtomicBool) -> PyResult<Outcome> {
        if !self.recorded {
            let (summary, ()) = self.listen((), |(), _| {}, interrupt)?;
            return Ok(Outcome {
                summary,
                tables: RunTables::default(),
            });
        }
        let run_id = self.run_id;
        let captures = keep.captures.as_deref();
        let (summary, tables) = match keep.series {
            Series::Full => {
                let begin = |recorder: &mut Recorder, legs: &[Leg]| recorder.begin(run_id, legs);
                let (summary, recorder) =
                    self.record(Recorder::default(), begin, captures, interrupt)?;
                (summary, recorder.finish()?)
            }
            Series::States(most) => {
                let sampler = Sampler::new(run_id, most, self.config.duration_ns);
                let (summary, sampler) =
                    self.record(sampler, Sampler::begin, captures, interrupt)?;
                (summary, sampler.finish()?)
            }
            Series::Transfer(span) => {
                let transfer = Transfer::new(run_id, span);
                let (summary, transfer) =
                    self.record(transfer, Transfer::begin, captures, interrupt)?;
                (summary, transfer.finish()?)
            }
        };
        Ok(Outcome { summary, tables })
    }

    /// Makes the run with `tap` listening, and writes captures of it to a folder.
    fn record<T: Tap>(
        &self,
        tap: T,
        begin: impl FnOnce(&mut T, &[Leg]),
        folder: Option<&Path>,
        interrupt: &AtomicBool,
    ) -> PyResult<(RunSummary, T)> {
        let Some(folder) = folder else {
            return self.listen(tap, begin, interrupt);
        };
        let nodes = &self.config.path.nodes;
        let begin = |(tap, captures): &mut (T, Captures), legs: &[Leg]| {
            begin(tap, legs);
            captures.begin(legs, nodes);
        };
        let both = (tap, Captures::new(folder, self.run_id));
        let (summary, (tap, captures)) = self.listen(both, begin, interrupt)?;
        captures.finish()?;
        Ok((summary, tap))
    }

    /// Makes the run with `tap` listening; `begin` first passes it the legs.
    fn listen<T: Tap>(
        &self,
        mut tap: T,
        begin: impl FnOnce(&mut T, &[Leg]),
        interrupt: &AtomicBool,
    ) -> PyResult<(RunSummary, T)> {
        let mut world =
            World::new(&self.config, self.seed, &mut tap).map_err(|error| refused(error.into()))?;
        world.introduce(begin);
        let summary = world.run(interrupt).map_err(refused)?;
        Ok((summary, tap))
    }
}

fn refused(error: RunError) -> PyErr {
    match error {
        RunError::Config(error) => PyValueError::new_err(error.to_string()),
        RunError::Interrupted => PyRuntimeError::new_err("the run was interrupted"),
    }
}
