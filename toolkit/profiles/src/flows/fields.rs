//! The columns of `flows` in the order of `toolkit/schema`, and their cells.

use hindflight_flows::{DirectionRow, FlowRow};

use crate::cells::PlainCells;

/// Columns of a connection.
const FIRST: [&str; 16] = [
    "run_id",
    "flow_id",
    "input_id",
    "a_addr",
    "a_port",
    "b_addr",
    "b_port",
    "start_ns",
    "end_ns",
    "syn",
    "syn_ack",
    "fin",
    "rst",
    "data_direction",
    "vantage",
    "handshake_rtt_ns",
];

/// Columns of each direction.
#[rustfmt::skip]
const OF_DIRECTIONS: [&str; 23] = [
    "segments", "data_segments", "payload_bytes", "unique_bytes", "acked_bytes", "retransmitted_segments",
    "retransmitted_bytes", "out_of_order_segments", "dup_acks", "sack_segments", "dsack_segments", "mss_bytes",
    "wscale", "max_segment_bytes", "rtt_samples", "rtt_min_ns", "rtt_mean_ns", "rtt_max_ns", "flight_max_bytes",
    "rtos", "recoveries", "corrupted_segments", "not_captured_bytes",
];

/// The names of all columns.
pub fn names() -> Vec<String> {
    let first = FIRST.iter().map(|&name| name.to_owned());
    let directions = ["a2b", "b2a"].into_iter().flat_map(|way| {
        OF_DIRECTIONS
            .iter()
            .map(move |name| format!("{way}_{name}"))
    });
    first.chain(directions).collect()
}

/// Writes the cells of a row that was read from this input.
pub fn write(row: &FlowRow, input_id: u32, out: &mut impl PlainCells) {
    out.integer(0);
    out.integer(u64::from(row.flow_id));
    out.integer(u64::from(input_id));
    out.address(row.a_addr);
    out.integer(u64::from(row.a_port));
    out.address(row.b_addr);
    out.integer(u64::from(row.b_port));
    out.signed(row.start_ns);
    out.signed(row.end_ns);
    out.flag(row.syn);
    out.flag(row.syn_ack);
    out.integer(u64::from(row.fin));
    out.flag(row.rst);
    out.text(row.data_direction.name());
    out.text(row.vantage.name());
    optional(row.handshake_rtt_ns, out);
    for direction in &row.directions {
        write_direction(direction, out);
    }
}

fn write_direction(row: &DirectionRow, out: &mut impl PlainCells) {
    out.integer(row.segments);
    out.integer(row.data_segments);
    out.integer(row.payload_bytes);
    out.integer(row.unique_bytes);
    out.integer(row.acked_bytes);
    out.integer(row.retransmitted_segments);
    out.integer(row.retransmitted_bytes);
    out.integer(row.out_of_order_segments);
    out.integer(row.dup_acks);
    out.integer(row.sack_segments);
    out.integer(row.dsack_segments);
    optional(row.mss_bytes.map(i64::from), out);
    optional(row.wscale.map(i64::from), out);
    out.integer(u64::from(row.max_segment_bytes));
    out.integer(row.rtt_samples);
    optional(row.rtt_min_ns, out);
    optional(row.rtt_mean_ns, out);
    optional(row.rtt_max_ns, out);
    optional(row.flight_max_bytes, out);
    out.integer(row.rtos);
    out.integer(row.recoveries);
    out.integer(row.corrupted_segments);
    optional(row.not_captured_bytes.map(|octets| octets as i64), out);
}

fn optional(value: Option<i64>, out: &mut impl PlainCells) {
    match value {
        Some(value) => out.signed(value),
        None => out.missing(),
    }
}
