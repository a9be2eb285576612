//! `FlowRows`, `TcptraceRows` and `WiresharkRows`: a capture, of one file or several, to rows of text. Open the files and
//! hand on; decide nothing.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hindflight_decoder::{Issue, Reader, Segment, Window};
use hindflight_profiles::{
    End, Flows, Format, Next, Packet, Pipeline, Tcptrace, WiresharkRows as Verdicts,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::capture::open_reader;
use crate::input::{Input, Progress};

/// Batches, and time without one, after which `read` returns, so that Python can handle signals.
const BATCHES: usize = 256;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What counts the segments that a second thread reads.
trait Counter {
    /// What it needs of a segment.
    type Item;
    fn push(&mut self, segments: &[Self::Item]);
    fn finish(&mut self, end: &End);
    fn take_text(&mut self) -> Vec<u8>;
    /// What the counter found, at the end.
    fn issues(&self) -> Vec<Issue> {
        Vec::new()
    }
}

impl Counter for Tcptrace {
    type Item = Packet;
    fn push(&mut self, packets: &[Packet]) {
        self.push(packets);
    }
    fn finish(&mut self, end: &End) {
        self.finish(end.last_us.unwrap_or(0));
    }
    fn take_text(&mut self) -> Vec<u8> {
        self.take_text()
    }
}

impl Counter for Flows {
    type Item = Segment;
    fn push(&mut self, segments: &[Segment]) {
        self.push(segments);
    }
    fn finish(&mut self, _end: &End) {
        self.finish();
    }
    fn take_text(&mut self) -> Vec<u8> {
        self.take_text()
    }
    fn issues(&self) -> Vec<Issue> {
        self.issues()
    }
}

/// A capture on its way from the thread that reads to a counter.
struct Counting<C: Counter> {
    pipeline: Pipeline<C::Item>,
    counter: C,
    issues: Vec<Issue>,
    counted: bool,
}

impl<C: Counter<Item: Send + 'static>> Counting<C> {
    fn new(pipeline: Pipeline<C::Item>, counter: C) -> Mutex<Self> {
        Mutex::new(Self {
            pipeline,
            counter,
            issues: Vec::new(),
            counted: false,
        })
    }

    fn read(&mut self) -> PyResult<Option<Vec<u8>>> {
        if self.counted {
            let text = self.counter.take_text();
            return Ok((!text.is_empty()).then_some(text));
        }
        for _ in 0..BATCHES {
            match self.pipeline.next(POLL_INTERVAL) {
                Next::Segments(segments) => {
                    self.counter.push(&segments);
                    self.pipeline.reuse(segments);
                }
                Next::Waiting => break,
                Next::End(end) => {
                    self.counter.finish(&end);
                    self.issues = end.issues;
                    self.issues.extend(self.counter.issues());
                    self.counted = true;
                    break;
                }
                Next::Gone => {
                    return Err(PyRuntimeError::new_err("the thread that reads has ended"));
                }
            }
        }
        Ok(Some(self.counter.take_text()))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts the packets of one capture as tcptrace does, with a second thread that reads.
#[pyclass(frozen, module = "hindflight._native")]
pub struct TcptraceRows(Mutex<Counting<Tcptrace>>);

#[pymethods]
impl TcptraceRows {
    /// Opens a capture; the times cut out a part of it, `from_ns` included and `to_ns` not. With `outer`, tunnels are
    /// not opened.
    #[new]
    #[pyo3(signature = (paths, *, json, from_ns=None, to_ns=None, outer=false))]
    fn open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        json: bool,
        from_ns: Option<i64>,
        to_ns: Option<i64>,
        outer: bool,
    ) -> PyResult<Self> {
        py.detach(|| {
            let window = Window { from_ns, to_ns };
            let reader = open(&paths, &Progress::default())?
                .within(window)
                .outer(outer)
                .without_checksums();
            let pipeline =
                Pipeline::start(reader, |segment, batch| batch.push(Packet::of(segment)));
            Ok(Self(Counting::new(pipeline, Tcptrace::new(format(json)))))
        })
    }

    /// The next rows, perhaps none yet; None at the end.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let text = py.detach(|| locked(&self.0).read())?;
        Ok(text.map(|text| PyBytes::new(py, &text)))
    }

    /// What was damaged: file, record, offset and a sentence. Complete at the end.
    fn issues(&self) -> Vec<(u32, u64, u64, String)> {
        rows(&locked(&self.0).issues)
    }
}

/// The table `flows` of one capture, most payload first, with a second thread that reads.
#[pyclass(frozen, module = "hindflight._native")]
pub struct FlowRows(Mutex<Counting<Flows>>);

#[pymethods]
impl FlowRows {
    /// Opens a capture. With `outer`, tunnels are not opened.
    #[new]
    #[pyo3(signature = (paths, *, json, outer=false))]
    fn open(py: Python<'_>, paths: Vec<PathBuf>, json: bool, outer: bool) -> PyResult<Self> {
        py.detach(|| {
            let reader = open(&paths, &Progress::default())?.outer(outer);
            let pipeline = Pipeline::start(reader, |segment: &Segment, batch| batch.push(*segment));
            Ok(Self(Counting::new(pipeline, Flows::new(format(json), 1))))
        })
    }

    /// The next rows, perhaps none yet; None at the end.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let text = py.detach(|| locked(&self.0).read())?;
        Ok(text.map(|text| PyBytes::new(py, &text)))
    }

    /// Number of flows, and the time of the first segment. Complete when the first row has come.
    fn totals(&self) -> (usize, Option<i64>) {
        let counting = locked(&self.0);
        (counting.counter.count(), counting.counter.start_ns())
    }

    /// What was damaged: file, record, offset and a sentence. Complete at the end.
    fn issues(&self) -> Vec<(u32, u64, u64, String)> {
        rows(&locked(&self.0).issues)
    }
}

/// Analyses the segments of one capture as Wireshark does.
#[pyclass(frozen, module = "hindflight._native")]
pub struct WiresharkRows(Mutex<Analysis>);

struct Analysis {
    reader: Reader<Input>,
    verdicts: Verdicts,
    progress: Progress,
}

/// Segments after which [`WiresharkRows::read`] returns.
const SEGMENTS: usize = 1 << 16;

#[pymethods]
impl WiresharkRows {
    /// Opens a capture.
    #[new]
    #[pyo3(signature = (paths, *, json))]
    fn open(py: Python<'_>, paths: Vec<PathBuf>, json: bool) -> PyResult<Self> {
        py.detach(|| {
            let progress = Progress::default();
            let reader = open(&paths, &progress)?.without_checksums();
            let verdicts = Verdicts::new(format(json));
            Ok(Self(Mutex::new(Analysis {
                reader,
                verdicts,
                progress,
            })))
        })
    }

    /// The next rows, perhaps none yet; None at the end.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let text = py.detach(|| {
            let mut state = locked(&self.0);
            let text = state.read();
            state.progress.interrupted().map(|()| text)
        })?;
        Ok(text.map(|text| PyBytes::new(py, &text)))
    }

    /// What was damaged: file, record, offset and a sentence. Complete at the end.
    fn issues(&self) -> Vec<(u32, u64, u64, String)> {
        let state = locked(&self.0);
        rows(state.reader.issues())
    }
}

impl Analysis {
    fn read(&mut self) -> Option<Vec<u8>> {
        if self.reader.ended() {
            let text = self.verdicts.take_text();
            return (!text.is_empty()).then_some(text);
        }
        for _ in 0..SEGMENTS {
            let Some(captured) = self.reader.next_segment() else {
                break;
            };
            self.verdicts.push(captured.segment);
        }
        self.reader.take_others();
        Some(self.verdicts.take_text())
    }
}

fn format(json: bool) -> Format {
    if json { Format::Json } else { Format::Csv }
}

fn rows(issues: &[Issue]) -> Vec<(u32, u64, u64, String)> {
    let row = |issue: &Issue| (issue.file, issue.record, issue.offset, issue.text.clone());
    issues.iter().map(row).collect()
}

/// Opens the reader of a file, a named pipe, or standard input for `-`; of several files, merged.
fn open(paths: &[PathBuf], progress: &Progress) -> PyResult<Reader<Input>> {
    if paths.is_empty() {
        return Err(PyValueError::new_err("one path at least"));
    }
    let opened = open_reader(paths, progress);
    progress.interrupted()?;
    opened
}
