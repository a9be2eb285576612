//! The table `flows` as text, in one pass that builds no tables: the rows of [`hindflight_flows::Tracker`], most payload
//! first.

mod fields;
mod packed_cells;

use std::cmp::Reverse;
use std::ops::Range;

use hindflight_decoder::{Issue, Segment};
use hindflight_flows::{FlowRow, Tracker};

use crate::cells::{Format, TextRows, separators};
use packed_cells::PackedCells;

/// Rows that each thread writes at once.
const CHUNK: usize = 1024;

/// Threads that write.
const WRITERS: usize = 2;

/// Follows the connections of a capture and writes a row for each.
pub struct Flows {
    tracker: Tracker,
    input_id: u32,
    rows: Vec<Place>,
    cells: PackedCells,
    start_ns: Option<i64>,
    format: Format,
    separators: Vec<Vec<u8>>,
    written: usize,
    out: Vec<u8>,
    ended: bool,
}

/// A row: what it is sorted by, and where its cells begin.
struct Place {
    order: (Reverse<u64>, u32),
    offset: usize,
}

impl Flows {
    /// Without a segment; the rows will name this input.
    pub fn new(format: Format, input_id: u32) -> Self {
        let names = fields::names();
        Self {
            // A list of flows does not show them.
            tracker: Tracker::new(1).without_instruments(),
            input_id,
            rows: Vec::new(),
            cells: PackedCells::default(),
            start_ns: None,
            format,
            separators: separators(&names, format),
            written: 0,
            out: match format {
                Format::Csv => (names.join(",") + "\n").into_bytes(),
                Format::Json => Vec::new(),
            },
            ended: false,
        }
    }

    /// Follows segments.
    pub fn push(&mut self, segments: &[Segment]) {
        for segment in segments {
            self.tracker.push(segment);
        }
        self.take_rows();
    }

    /// Ends the capture; the rows follow in order.
    pub fn finish(&mut self) {
        while self.tracker.finish_next(CHUNK) {
            self.take_rows();
        }
        self.rows.sort_unstable_by_key(|row| row.order);
        self.ended = true;
    }

    /// What the capture itself did to the packets; complete at its end.
    pub fn issues(&self) -> Vec<Issue> {
        self.tracker.issues()
    }

    /// Number of rows so far.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Time of the first segment.
    pub fn start_ns(&self) -> Option<i64> {
        self.start_ns
    }

    fn take_rows(&mut self) {
        // A list of flows shows neither.
        drop(self.tracker.take_events());
        drop(self.tracker.take_samples());
        for row in self.tracker.take_finished_flows() {
            self.add(&row);
        }
    }

    fn add(&mut self, row: &FlowRow) {
        self.start_ns = Some(
            self.start_ns
                .map_or(row.start_ns, |ns| ns.min(row.start_ns)),
        );
        let payload = row.directions[row.data_direction as usize].payload_bytes;
        self.rows.push(Place {
            order: (Reverse(payload), row.flow_id),
            offset: self.cells.offset(),
        });
        fields::write(row, self.input_id, &mut self.cells);
        self.cells.end_row();
    }

    /// Takes the text that is ready. Empty before the end, and after the last row.
    pub fn take_text(&mut self) -> Vec<u8> {
        if self.ended {
            self.write_chunk();
        }
        std::mem::take(&mut self.out)
    }

    /// Writes the next rows.
    fn write_chunk(&mut self) {
        let start = self.written;
        let end = self.rows.len().min(start + CHUNK * WRITERS);
        let middle = end.min(start + CHUNK);
        let (format, names) = (self.format, &self.separators);
        let (rows, cells) = (&self.rows, &self.cells);
        let write = |range: Range<usize>, out: &mut Vec<u8>| {
            let mut text = TextRows::new(out, format, names).with_empty_cells();
            for at in range {
                text.begin(at == 0);
                cells.replay(rows[at].offset, &mut text);
                text.end();
            }
        };
        if middle < end {
            let mut second = Vec::new();
            std::thread::scope(|scope| {
                scope.spawn(|| write(middle..end, &mut second));
                write(start..middle, &mut self.out);
            });
            self.out.append(&mut second);
        } else {
            write(start..end, &mut self.out);
        }
        self.written = end;
    }
}
