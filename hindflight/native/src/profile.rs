//! `TcptraceRows` and `WiresharkRows`: a capture file to the rows of a profile, as text. Open the file and hand on;
//! decide nothing.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hindflight_decoder::{Issue, Reader, Window};
use hindflight_profiles::{Format, Next, Pipeline, Tcptrace, WiresharkRows as Verdicts};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::capture::open_reader;
use crate::input::{Input, Progress};

/// Batches, and time without one, after which [`TcptraceRows::read`] returns, so that Python can handle signals.
const BATCHES: usize = 256;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Counts the packets of one capture file as tcptrace does, with a second thread that reads.
#[pyclass(frozen, module = "hindflight._native")]
pub struct TcptraceRows(Mutex<State>);

struct State {
    pipeline: Pipeline,
    profile: Tcptrace,
    issues: Vec<Issue>,
    counted: bool,
}

#[pymethods]
impl TcptraceRows {
    /// Opens a capture; the times cut out a part of it, `from_ns` included and `to_ns` not.
    #[new]
    #[pyo3(signature = (path, *, json, from_ns=None, to_ns=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        json: bool,
        from_ns: Option<i64>,
        to_ns: Option<i64>,
    ) -> PyResult<Self> {
        py.detach(|| {
            let progress = Progress::default();
            let reader = open(path, &progress)?.within(Window { from_ns, to_ns });
            Ok(Self(Mutex::new(State {
                pipeline: Pipeline::start(reader),
                profile: Tcptrace::new(format(json)),
                issues: Vec::new(),
                counted: false,
            })))
        })
    }

    /// The next rows, perhaps none yet; None at the end.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let text = py.detach(|| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.read()
        })?;
        Ok(text.map(|text| PyBytes::new(py, &text)))
    }

    /// What was damaged: record, offset and a sentence. Complete at the end.
    fn issues(&self) -> Vec<(u64, u64, String)> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows(&state.issues)
    }
}

impl State {
    fn read(&mut self) -> PyResult<Option<Vec<u8>>> {
        if self.counted {
            let text = self.profile.take_text();
            return Ok((!text.is_empty()).then_some(text));
        }
        for _ in 0..BATCHES {
            match self.pipeline.next(POLL_INTERVAL) {
                Next::Packets(packets) => {
                    self.profile.push(&packets);
                    self.pipeline.reuse(packets);
                }
                Next::Waiting => break,
                Next::End(end) => {
                    self.profile.finish(end.last_us.unwrap_or(0));
                    self.issues = end.issues;
                    self.counted = true;
                    break;
                }
                Next::Gone => {
                    return Err(PyRuntimeError::new_err("the thread that reads has ended"));
                }
            }
        }
        Ok(Some(self.profile.take_text()))
    }
}

/// Analyses the segments of one capture file as Wireshark does.
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
    #[pyo3(signature = (path, *, json))]
    fn open(py: Python<'_>, path: PathBuf, json: bool) -> PyResult<Self> {
        py.detach(|| {
            let progress = Progress::default();
            let reader = open(path, &progress)?;
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
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let text = state.read();
            state.progress.interrupted().map(|()| text)
        })?;
        Ok(text.map(|text| PyBytes::new(py, &text)))
    }

    /// What was damaged: record, offset and a sentence. Complete at the end.
    fn issues(&self) -> Vec<(u64, u64, String)> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
            self.verdicts.push(&captured.segment);
        }
        self.reader.take_others();
        Some(self.verdicts.take_text())
    }
}

fn format(json: bool) -> Format {
    if json { Format::Json } else { Format::Csv }
}

fn rows(issues: &[Issue]) -> Vec<(u64, u64, String)> {
    let row = |issue: &Issue| (issue.record, issue.offset, issue.text.clone());
    issues.iter().map(row).collect()
}

/// Opens the reader of a file, a named pipe, or standard input for `-`.
fn open(path: PathBuf, progress: &Progress) -> PyResult<Reader<Input>> {
    let opened = open_reader(&[path], progress);
    progress.interrupted()?;
    opened
}
