//! Measures the data transfer of the flow under test while it runs: goodput, retransmissions, timeouts and the
//! congestion window of each data segment. Unlike the recorder it keeps eight octets per data segment.
//!
//! The numbers equal those that `replay/outcome.py` reads from the tables of a recorded run.

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use hindflight_engine::{Direction, Event, Leg, Nanos, Tap};
use pyo3::PyResult;

use crate::columns::Batch;
use crate::recorder::RunTables;

/// The transfer of one run, from the first data segment on and for a given time.
pub struct Transfer {
    run_id: u32,
    span: Nanos,
    /// Number of the leg that leaves the data sender of the first flow.
    leg: u16,
    first: Option<First>,
    /// Highest acknowledgement that reached the sender.
    ack: u64,
    /// End of the highest octet sent.
    sent_until: u64,
    retransmissions: u64,
    rtos: u64,
    cwnd_bytes: i64,
    /// Congestion window in force when each data segment left.
    windows: Vec<i64>,
    /// The segments from this one on left at `latest`.
    latest_from: usize,
    latest: Nanos,
}

/// The first data segment.
#[derive(Clone, Copy)]
struct First {
    at: Nanos,
    seq: u64,
}

impl Transfer {
    /// Measures run `run_id` for `span` from its first data segment on.
    pub fn new(run_id: u32, span: Nanos) -> Self {
        Self {
            run_id,
            span,
            leg: 0,
            first: None,
            ack: 0,
            sent_until: 0,
            retransmissions: 0,
            rtos: 0,
            cwnd_bytes: 0,
            windows: Vec::new(),
            latest_from: 0,
            latest: 0,
        }
    }

    /// Learns, before the run, which leg belongs to the flow under test.
    pub fn begin(&mut self, legs: &[Leg]) {
        let ours = legs.iter().position(|leg| leg.flow == 0 && leg.index == 0);
        self.leg = ours.unwrap_or(0) as u16;
    }

    /// The tables: one row of `transfers`, and `windows` with one row per data segment.
    pub fn finish(self) -> PyResult<RunTables> {
        let first = self.first.unwrap_or(First { at: 0, seq: 0 });
        let row = Batch::new(1)
            .number::<UInt32Type>("run_id", vec![self.run_id])
            .number::<Int64Type>("start_ns", vec![first.at as i64])
            .number::<UInt64Type>("acked_bytes", vec![self.ack.saturating_sub(first.seq)])
            .number::<UInt64Type>("retransmissions", vec![self.retransmissions])
            .number::<UInt64Type>("rtos", vec![self.rtos])
            .finish()?;
        let windows = Batch::new(self.windows.len())
            .number::<Int64Type>("cwnd_bytes", self.windows)
            .finish()?;
        Ok(RunTables {
            transfers: vec![row],
            windows: vec![windows],
            ..RunTables::default()
        })
    }

    fn is_over(&self, now: Nanos) -> bool {
        self.first.is_some_and(|first| now > first.at + self.span)
    }

    fn note_data(&mut self, now: Nanos, (seq, end): (u64, u64)) {
        self.first.get_or_insert(First { at: now, seq });
        if now != self.latest {
            (self.latest, self.latest_from) = (now, self.windows.len());
        }
        self.retransmissions += u64::from(seq < self.sent_until);
        self.sent_until = self.sent_until.max(end);
        self.windows.push(self.cwnd_bytes);
    }

    /// A state holds for everything that leaves at its time.
    fn note_state(&mut self, now: Nanos, cwnd_bytes: i64, rtos: u64) {
        (self.cwnd_bytes, self.rtos) = (cwnd_bytes, rtos);
        if now == self.latest {
            self.windows[self.latest_from..].fill(cwnd_bytes);
        }
    }
}

impl Tap for Transfer {
    const FOLLOWS_RECEIVERS: bool = false;

    fn event(&mut self, now: Nanos, event: Event<'_>) {
        if self.is_over(now) {
            return;
        }
        match event {
            Event::Sent(segment)
                if segment.leg == self.leg
                    && segment.direction == Direction::Forward
                    && segment.payload_bytes > 0 =>
            {
                self.note_data(now, (segment.seq, segment.end()));
            }
            Event::Arrived(segment)
                if segment.leg == self.leg && segment.direction == Direction::Reverse =>
            {
                self.ack = self.ack.max(segment.ack);
            }
            Event::State { leg, sample } if leg == self.leg => {
                self.note_state(now, sample.cwnd_bytes, sample.counters.rtos);
            }
            _ => {}
        }
    }
}
