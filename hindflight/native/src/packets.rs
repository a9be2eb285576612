//! Rows of `segments` to the packets of a pcapng file. Decides nothing; octets are the decoder's.

use std::net::IpAddr;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, BinaryArray, BooleanArray, ListArray, PrimitiveArray, StringArray, StructArray,
};
use hindflight_decoder::{Checksum, Segment, TcpOptions, encode_packet, pcapng_header};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::Column;

/// The head of a pcapng file.
#[pyfunction]
pub fn pcapng_head<'py>(py: Python<'py>, application: &str, comment: &str) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &pcapng_header(application, comment))
}

/// The packets of `rows`: columns of `segments`, and `src`, `dst` (4 or 16 octets), `src_port`, `dst_port`, `comment`.
/// ValueError: a capture cannot represent one of them; its number and why.
#[pyfunction]
pub fn pcapng_packets(py: Python<'_>, rows: Column) -> PyResult<Bound<'_, PyBytes>> {
    let octets = py.detach(|| {
        let rows = rows.0.as_struct_opt().ok_or("rows are no record batch")?;
        encode(rows)
    });
    Ok(PyBytes::new(py, &octets.map_err(PyValueError::new_err)?))
}

fn encode(rows: &StructArray) -> Result<Vec<u8>, String> {
    let columns = Columns::of(rows)?;
    let mut out = Vec::with_capacity(rows.len() * 160);
    for at in 0..rows.len() {
        let segment = columns.segment(at)?;
        let others = columns.options_other.value(at);
        let comment = columns.comment.value(at);
        encode_packet(&segment, others, comment, &mut out)
            .map_err(|error| format!("packet {}: {error}", segment.record))?;
    }
    Ok(out)
}

struct Columns<'a> {
    record: &'a PrimitiveArray<UInt64Type>,
    t_ns: &'a PrimitiveArray<Int64Type>,
    frame_bytes: &'a PrimitiveArray<UInt32Type>,
    src: &'a BinaryArray,
    dst: &'a BinaryArray,
    src_port: &'a PrimitiveArray<UInt16Type>,
    dst_port: &'a PrimitiveArray<UInt16Type>,
    ip_id: &'a PrimitiveArray<UInt16Type>,
    ttl: &'a PrimitiveArray<UInt8Type>,
    dscp_ecn: &'a PrimitiveArray<UInt8Type>,
    ip_bytes: &'a PrimitiveArray<UInt32Type>,
    seq_raw: &'a PrimitiveArray<UInt32Type>,
    ack_raw: &'a PrimitiveArray<UInt32Type>,
    ack: &'a PrimitiveArray<Int64Type>,
    flags: &'a PrimitiveArray<UInt16Type>,
    window: &'a PrimitiveArray<UInt16Type>,
    payload_bytes: &'a PrimitiveArray<UInt32Type>,
    mss: &'a PrimitiveArray<UInt16Type>,
    wscale: &'a PrimitiveArray<UInt8Type>,
    sack_permitted: &'a BooleanArray,
    ts_val: &'a PrimitiveArray<UInt32Type>,
    ts_ecr: &'a PrimitiveArray<UInt32Type>,
    sack: &'a ListArray,
    options_other: &'a BinaryArray,
    comment: &'a StringArray,
}

impl<'a> Columns<'a> {
    fn of(rows: &'a StructArray) -> Result<Self, String> {
        Ok(Self {
            record: primitive(rows, "record")?,
            t_ns: primitive(rows, "t_ns")?,
            frame_bytes: primitive(rows, "frame_bytes")?,
            src: column(rows, "src")?,
            dst: column(rows, "dst")?,
            src_port: primitive(rows, "src_port")?,
            dst_port: primitive(rows, "dst_port")?,
            ip_id: primitive(rows, "ip_id")?,
            ttl: primitive(rows, "ttl")?,
            dscp_ecn: primitive(rows, "dscp_ecn")?,
            ip_bytes: primitive(rows, "ip_bytes")?,
            seq_raw: primitive(rows, "seq_raw")?,
            ack_raw: primitive(rows, "ack_raw")?,
            ack: primitive(rows, "ack")?,
            flags: primitive(rows, "flags")?,
            window: primitive(rows, "window")?,
            payload_bytes: primitive(rows, "payload_bytes")?,
            mss: primitive(rows, "mss")?,
            wscale: primitive(rows, "wscale")?,
            sack_permitted: column(rows, "sack_permitted")?,
            ts_val: primitive(rows, "ts_val")?,
            ts_ecr: primitive(rows, "ts_ecr")?,
            sack: column(rows, "sack")?,
            options_other: column(rows, "options_other")?,
            comment: column(rows, "comment")?,
        })
    }

    fn segment(&self, at: usize) -> Result<Segment, String> {
        let ack_raw = self.ack_raw.value(at);
        let mut options = TcpOptions {
            mss: optional(self.mss, at),
            wscale: optional(self.wscale, at),
            sack_permitted: self.sack_permitted.value(at),
            timestamps: optional(self.ts_val, at).zip(optional(self.ts_ecr, at)),
            ..TcpOptions::default()
        };
        // Edges are relative to the same number as `ack`.
        let ack = optional(self.ack, at).unwrap_or(0);
        let raw = |edge: i64| ack_raw.wrapping_add(edge.wrapping_sub(ack) as u32);
        let edges = self.sack.value(at);
        let edges = edges
            .as_primitive_opt::<Int64Type>()
            .ok_or("sack is no list of i64")?;
        for block in edges.values().chunks_exact(2) {
            options.sack.push(raw(block[0]), raw(block[1]));
        }
        Ok(Segment {
            record: self.record.value(at),
            t_ns: self.t_ns.value(at),
            frame_bytes: self.frame_bytes.value(at),
            captured_bytes: 0,
            src: address(self.src.value(at))?,
            dst: address(self.dst.value(at))?,
            src_port: self.src_port.value(at),
            dst_port: self.dst_port.value(at),
            ip_id: optional(self.ip_id, at),
            ttl: self.ttl.value(at),
            dscp_ecn: self.dscp_ecn.value(at),
            ip_bytes: self.ip_bytes.value(at),
            seq: self.seq_raw.value(at),
            ack: ack_raw,
            flags: self.flags.value(at),
            window: self.window.value(at),
            urgent: 0,
            payload_bytes: self.payload_bytes.value(at),
            missing_bytes: self.payload_bytes.value(at),
            ip_checksum: Checksum::NotChecked,
            tcp_checksum: Checksum::NotChecked,
            options,
        })
    }
}

fn column<'a, A: Array + 'static>(rows: &'a StructArray, name: &str) -> Result<&'a A, String> {
    rows.column_by_name(name)
        .and_then(|values| values.as_any().downcast_ref())
        .ok_or_else(|| format!("column {name} is missing or of another type"))
}

fn primitive<'a, T: ArrowPrimitiveType>(
    rows: &'a StructArray,
    name: &str,
) -> Result<&'a PrimitiveArray<T>, String> {
    column(rows, name)
}

fn optional<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, at: usize) -> Option<T::Native> {
    values.is_valid(at).then(|| values.value(at))
}

fn address(octets: &[u8]) -> Result<IpAddr, String> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Ok(octets.into());
    }
    let octets = <[u8; 16]>::try_from(octets);
    octets
        .map(IpAddr::from)
        .map_err(|_| "an address has neither 4 nor 16 octets".to_owned())
}
