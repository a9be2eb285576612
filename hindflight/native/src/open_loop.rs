//! Open-loop replay of a controller: the engine's sender follows a recorded flow. Decides nothing about TCP.

use arrow_array::types::{Float64Type, UInt32Type};
use hindflight_engine::{Nanos, OpenLoopState, RecordedEvent, replay_open_loop};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::Column;
use crate::columns::{Batch, Columns};
use crate::replay::config;
use crate::rows::each;

/// Time, kind, octet (the first octet sent, or the next one expected), size (octets sent, or window), echoed time, SACK
/// blocks.
type EventTuple = (Nanos, String, u64, u32, u32, Vec<(u64, u64)>);

/// Replays `record` with the sender of flow number `flow` of the configuration and returns its state after each event.
#[pyfunction]
#[pyo3(signature = (configuration, flow, record, arrays = None))]
pub fn replay_controller(
    py: Python<'_>,
    configuration: &str,
    flow: usize,
    record: Vec<EventTuple>,
    arrays: Option<Vec<Column>>,
) -> PyResult<Columns> {
    let config = config(configuration, &arrays.unwrap_or_default())?;
    py.detach(|| {
        let events = record
            .iter()
            .map(recorded_event)
            .collect::<PyResult<Vec<_>>>()?;
        let states = replay_open_loop(&config, flow, &events)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        columns(&states)
    })
}

fn recorded_event(event: &EventTuple) -> PyResult<(Nanos, RecordedEvent)> {
    let (now, kind, octet, size, ts_ecr, sack) = event;
    let recorded = match kind.as_str() {
        "syn" => RecordedEvent::Syn,
        "data" => RecordedEvent::Departure {
            seq: *octet,
            payload_bytes: u16::try_from(*size)
                .map_err(|_| PyValueError::new_err(format!("a segment of {size} octets")))?,
        },
        "write" => RecordedEvent::Write,
        "timeout" => RecordedEvent::Timeout,
        "syn_ack" => RecordedEvent::syn_ack(*size),
        "ack" => RecordedEvent::ack(*octet, *size, *ts_ecr, sack),
        other => {
            return Err(PyValueError::new_err(format!(
                "an event {other:?}: syn, data, write, timeout, syn_ack or ack"
            )));
        }
    };
    Ok((*now, recorded))
}

fn columns(states: &[OpenLoopState]) -> PyResult<Columns> {
    Batch::new(states.len())
        .number::<Float64Type>("cwnd_pkts", each(states, |s| s.cwnd_pkts))
        .optional::<Float64Type>("ssthresh_pkts", each(states, |s| s.ssthresh_pkts))
        .flag("in_recovery", each(states, |s| s.in_recovery))
        .number::<UInt32Type>("outstanding_pkts", each(states, |s| s.board.outstanding))
        .number::<UInt32Type>("sacked_pkts", each(states, |s| s.board.sacked))
        .number::<UInt32Type>("lost_pkts", each(states, |s| s.board.lost))
        .number::<UInt32Type>(
            "retransmitted_pkts",
            each(states, |s| s.board.retransmitted),
        )
        .finish()
}
