//! `CaptureReader`: a capture file to batches of tables. Opens the file and hands on; decides nothing.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hindflight_decoder::{DecodeError, Issue, Other, Part, Reader, Window};
use hindflight_flows::{ClockFix, Corrected, Tracker};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::Columns;
use crate::dissector::SlowPath;
use crate::input::{self, Input, Progress};
use crate::rows::{self, Origin, SegmentColumns};

/// Most rows of one batch: list offsets are 32 bits wide, and a segment has at most eight edges.
const MAX_ROWS: usize = 1 << 24;
/// Rows to make room for at once.
const ROOM: usize = 1 << 16;

/// Reads one capture, which may be several files: segments in batches, all other tables as far as they are certain.
///
/// Flows, events, instruments and issues come with each call since the last; all of them are there once
/// `read_batch` has returned None.
#[pyclass(frozen, module = "hindflight._native")]
pub struct CaptureReader {
    state: Mutex<State>,
    progress: Progress,
    bytes_total: u64,
    input_ids: Vec<u32>,
}

struct State {
    reader: Corrected<Input>,
    tracker: Tracker,
    artefacts_given: bool,
    done: bool,
}

#[pymethods]
impl CaptureReader {
    /// Opens a capture, `-` for standard input; several files are merged in the order of time. The times cut out a
    /// part, `from_ns` included and `to_ns` not. With `outer`, tunnels are not opened; with `fix_clock`, the times are
    /// corrected, for which files are read several times.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[pyo3(signature = (paths, *, first_flow_id, input_ids, from_ns=None, to_ns=None, outer=false, fix_clock=false))]
    fn open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        first_flow_id: u32,
        input_ids: Vec<u32>,
        from_ns: Option<i64>,
        to_ns: Option<i64>,
        outer: bool,
        fix_clock: bool,
    ) -> PyResult<Self> {
        if paths.is_empty() || paths.len() != input_ids.len() {
            return Err(PyValueError::new_err(
                "one input_id per path, and one path at least",
            ));
        }
        py.detach(|| {
            let progress = Progress::default();
            let bytes_total = paths.iter().map(|path| input::length(path)).sum();
            let window = Window { from_ns, to_ns };
            let opened = open_corrected(&paths, &progress, fix_clock, |reader| {
                reader.within(window).outer(outer)
            });
            progress.interrupted()?;
            let state = Mutex::new(State {
                reader: opened?,
                tracker: Tracker::new(first_flow_id),
                artefacts_given: false,
                done: false,
            });
            Ok(Self {
                state,
                progress,
                bytes_total,
                input_ids,
            })
        })
    }

    /// The next rows of `segments`, at most `max_rows`; None at the end. There are fewer, or none, after many packets
    /// without a segment.
    fn read_batch(&self, py: Python<'_>, max_rows: usize) -> PyResult<Option<Columns>> {
        if !(1..=MAX_ROWS).contains(&max_rows) {
            return Err(PyValueError::new_err(format!(
                "max_rows = {max_rows} is not within 1 to {MAX_ROWS}"
            )));
        }
        py.detach(|| {
            let batch = self.state().read_batch(max_rows);
            self.progress.interrupted()?;
            batch
        })
    }

    /// Rows of `flows` whose connection has ended since the last call.
    fn flows(&self, py: Python<'_>) -> PyResult<Columns> {
        py.detach(|| rows::flows(&self.state().tracker.take_finished_flows(), self.origin()))
    }

    /// Rows of `events` since the last call.
    fn events(&self, py: Python<'_>) -> PyResult<Columns> {
        py.detach(|| rows::events(&self.state().tracker.take_events(), self.origin()))
    }

    /// Rows of `instruments` since the last call.
    fn instruments(&self, py: Python<'_>) -> PyResult<Columns> {
        py.detach(|| rows::instruments(&self.state().tracker.take_samples(), &[], self.origin()))
    }

    /// Rows of `others` since the last call.
    fn others(&self, py: Python<'_>) -> PyResult<Columns> {
        py.detach(|| rows::others(&self.state().reader.take_others(), self.origin().input_id))
    }

    /// Rows of `issues` since the last call.
    fn issues(&self, py: Python<'_>) -> PyResult<Columns> {
        py.detach(|| {
            let rows = self.state().take_issues();
            rows::issues(&rows, &self.input_ids)
        })
    }

    /// What was read so far: container, link, counts by kind of traffic, span.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (header, links, tally) = py.detach(|| {
            let reader = &self.state().reader;
            (reader.header(), reader.link_names(), reader.tally().clone())
        });
        let out = PyDict::new(py);
        out.set_item("compression", header.compression.name())?;
        out.set_item("link_type", links.join(", "))?;
        out.set_item("snaplen_bytes", header.snaplen_bytes)?;
        out.set_item("resolution_ns", header.resolution_ns)?;
        out.set_item("start_ns", tally.span_ns.map(|span| span.0))?;
        out.set_item("end_ns", tally.span_ns.map(|span| span.1))?;
        out.set_item("packets", tally.packets)?;
        out.set_item("tcp", (tally.tcp.packets, tally.tcp.bytes))?;
        out.set_item("outside_window_packets", tally.outside_window_packets)?;
        let other = PyDict::new(py);
        for kind in Other::ALL {
            let count = tally.of(kind);
            other.set_item(kind.name(), (count.packets, count.bytes))?;
        }
        out.set_item("other", other)?;
        Ok(out)
    }

    /// Octets of the file read so far, and all of them (0 where it has no size, as a pipe).
    fn progress(&self) -> (u64, u64) {
        (self.progress.bytes_read(), self.bytes_total)
    }

    /// SHA-256 of a pipe that has been read to its end; None for files.
    fn sha256(&self) -> Option<String> {
        self.progress.sha256()
    }
}

impl CaptureReader {
    fn origin(&self) -> Origin {
        Origin {
            input_id: self.input_ids[0],
            ..Origin::default()
        }
    }

    /// A panic of a thread that had the lock leaves plain numbers behind, which can still be read.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The issues since the last call. Those about the capture as a whole come at its end.
    fn take_issues(&mut self) -> Vec<Issue> {
        let mut rows = self.reader.take_issues();
        if self.done && !std::mem::replace(&mut self.artefacts_given, true) {
            rows.extend(self.tracker.issues());
        }
        rows
    }

    fn read_batch(&mut self, max_rows: usize) -> PyResult<Option<Columns>> {
        if self.done {
            return Ok(None);
        }
        let mut columns = SegmentColumns::with_capacity(max_rows.min(ROOM), Origin::default());
        while columns.rows() < max_rows {
            let next = if self.reader.ended() {
                None
            } else {
                self.reader.next_segment()
            };
            let Some((captured, fix_ns)) = next else {
                self.done = self.reader.ended() && !self.tracker.finish_next(ROOM);
                break;
            };
            let note = self.tracker.push(captured.segment);
            columns.push(&captured, &note, fix_ns);
        }
        if columns.rows() == 0 && self.done {
            return Ok(None);
        }
        columns.finish().map(Some)
    }
}

/// Opens the reader of a capture, with its times corrected if asked for; `with` sets its options.
fn open_corrected(
    paths: &[PathBuf],
    progress: &Progress,
    fix_clock: bool,
    with: impl Fn(Reader<Input>) -> Reader<Input>,
) -> PyResult<Corrected<Input>> {
    let aside = progress.aside();
    let fix = if fix_clock {
        ClockFix::survey(|| Ok::<_, PyErr>(with(open_reader(paths, &aside)?).without_checksums()))?
    } else {
        ClockFix::default()
    };
    let mut readers = vec![with(open_reader(paths, progress)?)];
    while readers.len() < fix.cursors() {
        readers.push(with(open_reader(paths, &aside)?));
    }
    Ok(Corrected::new(readers, fix))
}

/// Opens the reader of one file, or of several merged.
pub fn open_reader(paths: &[PathBuf], progress: &Progress) -> PyResult<Reader<Input>> {
    let slow_path = || Box::new(SlowPath::new(progress.clone()));
    if let [path] = paths {
        let opened = Input::open(path, progress).map_err(DecodeError::Io);
        return opened
            .and_then(|source| Reader::with_dissector(source, slow_path()))
            .map_err(|error| refused(error, 0, path));
    }
    let parts = paths.iter().cloned().map(|path| {
        let progress = progress.clone();
        Part {
            reopens: input::reopens(&path),
            open: Box::new(move || Input::open(&path, &progress)),
        }
    });
    Reader::merged(parts.collect(), slow_path())
        .map_err(|(index, error)| refused(error, index, &paths[index]))
}

/// The system's errors stay what they are; of the rest Python gets the sentence, the hint, the index of the
/// file, and whether its format is unknown.
fn refused(error: DecodeError, index: usize, path: &Path) -> PyErr {
    match error {
        DecodeError::Io(error) => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, error.to_string(), path.to_path_buf())),
            None => error.into(),
        },
        error => {
            let unknown = matches!(error, DecodeError::UnknownFormat { .. });
            PyValueError::new_err((error.to_string(), error.hint(), index, unknown))
        }
    }
}
