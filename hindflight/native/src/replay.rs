//! `replay`: jobs to the engine, over threads, with the GIL released. Results come in the order of the jobs, whatever
//! thread ran them. Decides nothing about TCP.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hindflight_engine::cc::Externals;
use hindflight_engine::{
    Config, ConfigError, ConfigErrorKind, ConfigErrors, KeyPath, Leg, Nanos, PathStep, Profile,
    RunError, RunSummary, StackOverrides, StackParams, Tap, World, ineffective_in_all, run_alike,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use serde_path_to_error::Segment;

use crate::arrays::{Column, Document};
use crate::captures::Captures;
use crate::controller::{Failure, externals};
use crate::pool::{Batches, run_all};
use crate::recorder::{Recorder, RunTables};
use crate::runs::{Finished, runs};
use crate::sampler::Sampler;
use crate::transfer::Transfer;

/// A job as Python gives it: configuration, seed, run_id, recorded.
type JobTuple = (String, u64, u32, bool);

/// A batch as Python gives it: jobs, and the arrays that their configurations name.
type BatchTuple = (Vec<JobTuple>, Vec<Column>);

/// One run to make.
pub struct Job {
    config: Arc<Config>,
    seed: u64,
    run_id: u32,
    /// Whether it keeps more than its summary.
    pub recorded: bool,
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
pub struct Keep {
    series: Series,
    /// Folder for a capture at each end of their connections.
    captures: Option<PathBuf>,
}

/// What a job gave.
pub struct Outcome {
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
) -> PyResult<Py<PyDict>> {
    let keep = Keep::new(segments, samples, transfer_ns, captures)?;
    let failure = Arc::new(Failure::default());
    let externals = externals(controllers.unwrap_or_default(), &failure);
    py.detach(|| {
        let jobs = parse(&jobs, &arrays.unwrap_or_default(), &externals)?;
        let mut batch = OneBatch {
            jobs: Some(jobs),
            tables: None,
        };
        run_all(&mut batch, threads, &keep, &failure)?;
        (batch.tables).ok_or_else(|| refused(RunError::Interrupted))
    })
}

/// The same for batches of jobs and arrays: `done` gets the tables of each, in their order. A batch is taken from
/// `batches` while the one before it runs.
#[pyfunction]
#[pyo3(signature = (
    batches, done, *, threads, segments = true, samples = None, captures = None, controllers = None
))]
#[allow(
    clippy::too_many_arguments,
    reason = "named ones, each with its own default, are what Python offers"
)]
pub fn replay_batches(
    py: Python<'_>,
    batches: Py<PyIterator>,
    done: Py<PyAny>,
    threads: usize,
    segments: bool,
    samples: Option<NonZeroU32>,
    captures: Option<PathBuf>,
    controllers: Option<HashMap<String, Py<PyAny>>>,
) -> PyResult<()> {
    let keep = Keep::new(segments, samples, None, captures)?;
    let failure = Arc::new(Failure::default());
    let mut batches = FromPython {
        batches,
        done,
        externals: externals(controllers.unwrap_or_default(), &failure),
    };
    py.detach(|| run_all(&mut batches, threads, &keep, &failure))
}

/// A batch, and in the end its tables.
struct OneBatch {
    jobs: Option<Vec<Job>>,
    tables: Option<Py<PyDict>>,
}

impl Batches for OneBatch {
    fn next(&mut self) -> PyResult<Option<Vec<Job>>> {
        Ok(self.jobs.take())
    }

    fn done(&mut self, finished: Vec<(Job, Outcome)>) -> PyResult<()> {
        self.tables = Some(tables(finished)?);
        Ok(())
    }
}

/// Batches from an iterator of Python; their tables go to a function of Python.
struct FromPython {
    batches: Py<PyIterator>,
    done: Py<PyAny>,
    externals: Externals,
}

impl Batches for FromPython {
    fn next(&mut self) -> PyResult<Option<Vec<Job>>> {
        let batch: Option<BatchTuple> = Python::attach(|py| {
            let next = self.batches.bind(py).clone().next().transpose()?;
            next.map(|batch| batch.extract()).transpose()
        })?;
        let jobs = batch.map(|(jobs, arrays)| parse(&jobs, &arrays, &self.externals));
        jobs.transpose()
    }

    fn done(&mut self, finished: Vec<(Job, Outcome)>) -> PyResult<()> {
        let tables = tables(finished)?;
        Python::attach(|py| self.done.call1(py, (tables,)).map(drop))
    }
}

/// The tables of finished jobs by name.
fn tables(finished: Vec<(Job, Outcome)>) -> PyResult<Py<PyDict>> {
    let rows = finished.iter().map(|(job, outcome)| Finished {
        run_id: job.run_id,
        seed: job.seed,
        config: &job.config,
        summary: &outcome.summary,
    });
    let runs = runs(&rows.collect::<Vec<_>>())?;
    let mut tables = RunTables::default();
    for (_, outcome) in finished {
        tables.append(outcome.tables);
    }
    Python::attach(|py| {
        let out = PyDict::new(py);
        out.set_item("runs", vec![runs])?;
        out.set_item("segments", tables.segments)?;
        out.set_item("flows", tables.flows)?;
        out.set_item("events", tables.events)?;
        out.set_item("instruments", tables.instruments)?;
        out.set_item("transfers", tables.transfers)?;
        out.set_item("windows", tables.windows)?;
        Ok(out.unbind())
    })
}

impl Outcome {
    /// That of a job that is not recorded.
    fn of(summary: RunSummary) -> Self {
        Self {
            summary,
            tables: RunTables::default(),
        }
    }
}

impl Keep {
    fn new(
        segments: bool,
        samples: Option<NonZeroU32>,
        transfer_ns: Option<Nanos>,
        captures: Option<PathBuf>,
    ) -> PyResult<Self> {
        let series = match transfer_ns {
            Some(span) => Series::Transfer(span),
            None => series(segments, samples)?,
        };
        Ok(Self { series, captures })
    }
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

impl Job {
    /// Whether the run of `other` may turn out to be that of this job: see `run_alike`.
    pub fn may_cover(&self, other: &Self) -> bool {
        !self.recorded
            && !other.recorded
            && self.seed == other.seed
            && self.config.differs_in_first_sender(&other.config)
    }

    /// Makes the run. Returns also the outcome of each of `others`, which it may cover, where it does.
    pub fn run_for(
        &self,
        others: &[&Self],
        keep: &Keep,
        interrupt: &AtomicBool,
    ) -> PyResult<(Outcome, Vec<Option<Outcome>>)> {
        if others.is_empty() {
            return Ok((self.run(keep, interrupt)?, Vec::new()));
        }
        let configs: Vec<&Config> = others.iter().map(|other| &*other.config).collect();
        let (summary, known) =
            run_alike(&self.config, &configs, self.seed, interrupt).map_err(refused)?;
        let known = known.into_iter().map(|known| known.map(Outcome::of));
        Ok((Outcome::of(summary), known.collect()))
    }

    /// Makes the run.
    pub fn run(&self, keep: &Keep, interrupt: &AtomicBool) -> PyResult<Outcome> {
        if !self.recorded {
            let (summary, ()) = self.listen((), |(), _| {}, interrupt)?;
            return Ok(Outcome::of(summary));
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
