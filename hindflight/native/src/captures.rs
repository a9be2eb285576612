//! Listens to a replay and writes what a capture at each of its nodes would hold: a file per node where connections
//! end, with the segments of all of them. Datagrams are left out. Decides nothing; octets are the decoder's.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use hindflight_decoder::{capture_header, encode_record};
use hindflight_engine::{Direction, Event, Leg, Nanos, Purpose, Segment, Tap, Transport};
use pyo3::PyResult;
use pyo3::exceptions::{PyOSError, PyValueError};

use crate::wire::{DATA_RECEIVER, DATA_SENDER, wire};

/// The captures of one run.
pub struct Captures {
    folder: PathBuf,
    run_id: u32,
    legs: Vec<Leg>,
    /// By place on the path; none where no connection ends.
    nodes: Vec<Option<NodeCapture>>,
    failure: Option<Failure>,
    record: Vec<u8>,
}

/// The capture of one node.
struct NodeCapture {
    path: PathBuf,
    file: BufWriter<File>,
    records: u64,
}

/// Why no capture comes of it.
enum Failure {
    Disk { path: PathBuf, error: io::Error },
    Segment(String),
}

impl Captures {
    /// Captures of run `run_id` as `folder/RUN-NODE.pcap`.
    pub fn new(folder: &Path, run_id: u32) -> Self {
        Self {
            folder: folder.to_path_buf(),
            run_id,
            legs: Vec::new(),
            nodes: Vec::new(),
            failure: None,
            record: Vec::new(),
        }
    }

    /// Called before the run with its legs and the nodes of its path.
    pub fn begin(&mut self, legs: &[Leg], names: &[String]) {
        self.legs = legs.to_vec();
        self.nodes = names.iter().map(|_| None).collect();
        for leg in legs.iter().filter(|leg| leg.transport == Transport::Tcp) {
            for site in [leg.source_site, leg.sink_site] {
                if self.nodes[site].is_none() && self.failure.is_none() {
                    self.open(site, &names[site]);
                }
            }
        }
    }

    fn open(&mut self, site: usize, name: &str) {
        let path = self.folder.join(format!("{}-{name}.pcap", self.run_id));
        let opened = File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            file.write_all(&capture_header())?;
            Ok(file)
        });
        match opened {
            Ok(file) => {
                self.nodes[site] = Some(NodeCapture {
                    path,
                    file,
                    records: 0,
                });
            }
            Err(error) => self.failure = Some(Failure::Disk { path, error }),
        }
    }

    /// Writes out what is left.
    pub fn finish(mut self) -> PyResult<()> {
        for node in self.nodes.iter_mut().flatten() {
            if let Err(error) = node.file.flush() {
                let path = node.path.clone();
                self.failure.get_or_insert(Failure::Disk { path, error });
            }
        }
        match self.failure {
            None => Ok(()),
            Some(Failure::Segment(why)) => Err(PyValueError::new_err(why)),
            Some(Failure::Disk { path, error }) => Err(match error.raw_os_error() {
                Some(number) => PyOSError::new_err((number, error.to_string(), path)),
                None => PyOSError::new_err(format!("{}: {error}", path.display())),
            }),
        }
    }

    /// A segment at the end `at` of its leg.
    fn add(&mut self, segment: &Segment, at: Direction, now: Nanos) {
        let leg = &self.legs[usize::from(segment.leg)];
        let site = match at {
            Direction::Forward => leg.source_site,
            Direction::Reverse => leg.sink_site,
        };
        let Some(node) = &mut self.nodes[site] else {
            return;
        };
        node.records += 1;
        let wire = wire(leg, segment, node.records, now as i64, at);
        self.record.clear();
        if let Err(error) = encode_record(&wire, &mut self.record) {
            let why = format!(
                "flows[{}]: no capture can hold segment {} at {now} ns: {error}",
                leg.flow, node.records
            );
            self.failure = Some(Failure::Segment(why));
        } else if let Err(error) = node.file.write_all(&self.record) {
            let path = node.path.clone();
            self.failure = Some(Failure::Disk { path, error });
        }
    }
}

impl Tap for Captures {
    fn leg_changes(&mut self, number: u16, leg: &Leg) {
        self.legs[usize::from(number)] = *leg;
    }

    fn event(&mut self, now: Nanos, event: Event<'_>) {
        let (segment, arrived) = match event {
            Event::Sent(segment) => (segment, false),
            Event::Arrived(segment) => (segment, true),
            Event::Dropped { .. } | Event::Marked { .. } | Event::State { .. } => return,
        };
        if segment.purpose == Purpose::Datagram || self.failure.is_some() {
            return;
        }
        let at = match (segment.direction, arrived) {
            (Direction::Forward, false) | (Direction::Reverse, true) => DATA_SENDER,
            (Direction::Forward, true) | (Direction::Reverse, false) => DATA_RECEIVER,
        };
        self.add(segment, at, now);
    }
}
