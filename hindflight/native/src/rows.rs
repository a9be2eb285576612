//! Rows of the pure crates into the columns of `toolkit/schema`, in its order. Decides nothing.

use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use hindflight_decoder::{Captured, Checksum, Issue, OtherPacket, Segment};
use hindflight_engine::ProxySample;
use hindflight_flows::{
    Direction, DirectionRow, Event, EventCause, EventKind, FlowRow, Mechanism, Note, Phase, Sample,
    Source, Vantage,
};
use pyo3::PyResult;

use crate::columns::{Batch, Columns, Lists, Nullable, Octets};

/// What rows have in common that the crates they come from do not know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// Replay run, 0 for a capture.
    pub run_id: u32,
    /// Connection of the path, 0 for a capture.
    pub leg: u8,
    /// Input, 0 for a replay.
    pub input_id: u32,
}

/// Rows that become columns at once: few enough to stay in the cache.
const WAITING: usize = 256;

/// The table `segments`, column by column, while rows arrive one by one.
pub struct SegmentColumns {
    origin: Origin,
    /// Rows that are not in the columns yet, except for `options_other`.
    waiting: Vec<(Segment, Note, i64)>,
    flow_id: Vec<u32>,
    record: Vec<u64>,
    t_ns: Vec<i64>,
    direction: Vec<i8>,
    seq: Vec<i64>,
    ack: Nullable<Int64Type>,
    payload_bytes: Vec<u32>,
    flags: Vec<u16>,
    window: Vec<u16>,
    wnd_bytes: Nullable<Int64Type>,
    seq_raw: Vec<u32>,
    ack_raw: Vec<u32>,
    mss: Nullable<UInt16Type>,
    wscale: Nullable<UInt8Type>,
    sack_permitted: Vec<bool>,
    ts_val: Nullable<UInt32Type>,
    ts_ecr: Nullable<UInt32Type>,
    sack: Lists,
    options_other: Octets,
    ip_version: Vec<u8>,
    ip_bytes: Vec<u32>,
    ip_id: Nullable<UInt16Type>,
    ttl: Vec<u8>,
    dscp_ecn: Vec<u8>,
    frame_bytes: Vec<u32>,
    captured_bytes: Vec<u32>,
    retransmission: Vec<bool>,
    dup_ack: Vec<bool>,
    rtt_ns: Nullable<Int64Type>,
    flight_bytes: Nullable<Int64Type>,
    segments_n: Vec<u16>,
    ip_checksum: Vec<i8>,
    tcp_checksum: Vec<i8>,
    clock_fix_ns: Nullable<Int64Type>,
}

impl SegmentColumns {
    /// Room for `rows` of `origin`.
    pub fn with_capacity(rows: usize, origin: Origin) -> Self {
        Self {
            origin,
            waiting: Vec::with_capacity(WAITING.min(rows)),
            flow_id: Vec::with_capacity(rows),
            record: Vec::with_capacity(rows),
            t_ns: Vec::with_capacity(rows),
            direction: Vec::with_capacity(rows),
            seq: Vec::with_capacity(rows),
            ack: Nullable::with_capacity(rows),
            payload_bytes: Vec::with_capacity(rows),
            flags: Vec::with_capacity(rows),
            window: Vec::with_capacity(rows),
            wnd_bytes: Nullable::with_capacity(rows),
            seq_raw: Vec::with_capacity(rows),
            ack_raw: Vec::with_capacity(rows),
            mss: Nullable::with_capacity(rows),
            wscale: Nullable::with_capacity(rows),
            sack_permitted: Vec::with_capacity(rows),
            ts_val: Nullable::with_capacity(rows),
            ts_ecr: Nullable::with_capacity(rows),
            sack: Lists::with_capacity(rows),
            options_other: Octets::with_capacity(rows),
            ip_version: Vec::with_capacity(rows),
            ip_bytes: Vec::with_capacity(rows),
            ip_id: Nullable::with_capacity(rows),
            ttl: Vec::with_capacity(rows),
            dscp_ecn: Vec::with_capacity(rows),
            frame_bytes: Vec::with_capacity(rows),
            captured_bytes: Vec::with_capacity(rows),
            retransmission: Vec::with_capacity(rows),
            dup_ack: Vec::with_capacity(rows),
            rtt_ns: Nullable::with_capacity(rows),
            flight_bytes: Nullable::with_capacity(rows),
            segments_n: Vec::with_capacity(rows),
            ip_checksum: Vec::with_capacity(rows),
            tcp_checksum: Vec::with_capacity(rows),
            clock_fix_ns: Nullable::with_capacity(rows),
        }
    }

    /// Number of rows so far.
    pub fn rows(&self) -> usize {
        self.record.len() + self.waiting.len()
    }

    /// Adds a row, to whose time `fix_ns` was added.
    #[inline]
    pub fn push(&mut self, captured: &Captured<'_>, note: &Note, fix_ns: i64) {
        self.options_other.push(captured.options_other);
        self.waiting.push((*captured.segment, *note, fix_ns));
        if self.waiting.len() == WAITING {
            self.add_waiting();
        }
    }

    /// Adds the rows that wait, one column after another.
    fn add_waiting(&mut self) {
        let segments = self.waiting.iter().map(|row| &row.0);
        let notes = self.waiting.iter().map(|row| &row.1);
        let of_segments = || segments.clone();
        let of_notes = || notes.clone();
        self.flow_id.extend(of_notes().map(|n| n.flow_id));
        self.record.extend(of_segments().map(|s| s.record));
        self.t_ns.extend(of_segments().map(|s| s.t_ns));
        self.direction
            .extend(of_notes().map(|n| n.direction.index()));
        self.seq.extend(of_notes().map(|n| n.seq));
        self.ack.extend(of_notes().map(|n| n.ack));
        self.payload_bytes
            .extend(of_segments().map(|s| s.payload_bytes));
        self.flags.extend(of_segments().map(|s| s.flags));
        self.window.extend(of_segments().map(|s| s.window));
        self.wnd_bytes.extend(of_notes().map(|n| n.wnd_bytes));
        self.seq_raw.extend(of_segments().map(|s| s.seq));
        self.ack_raw.extend(of_segments().map(|s| s.ack));
        self.mss.extend(of_segments().map(|s| s.options.mss));
        self.wscale.extend(of_segments().map(|s| s.options.wscale));
        self.sack_permitted
            .extend(of_segments().map(|s| s.options.sack_permitted));
        self.ts_val
            .extend(of_segments().map(|s| s.options.timestamps.map(|pair| pair.0)));
        self.ts_ecr
            .extend(of_segments().map(|s| s.options.timestamps.map(|pair| pair.1)));
        of_notes().for_each(|n| self.sack.push(n.sack.as_slice()));
        self.ip_version
            .extend(of_segments().map(|s| if s.src.is_ipv4() { 4 } else { 6 }));
        self.ip_bytes.extend(of_segments().map(|s| s.ip_bytes));
        self.ip_id.extend(of_segments().map(|s| s.ip_id));
        self.ttl.extend(of_segments().map(|s| s.ttl));
        self.dscp_ecn.extend(of_segments().map(|s| s.dscp_ecn));
        self.frame_bytes
            .extend(of_segments().map(|s| s.frame_bytes));
        self.captured_bytes
            .extend(of_segments().map(|s| s.captured_bytes));
        self.retransmission
            .extend(of_notes().map(|n| n.retransmission));
        self.dup_ack.extend(of_notes().map(|n| n.dup_ack));
        self.rtt_ns.extend(of_notes().map(|n| n.rtt_ns));
        self.flight_bytes.extend(of_notes().map(|n| n.flight_bytes));
        self.segments_n.extend(of_notes().map(|n| n.segments_n));
        self.ip_checksum
            .extend(of_segments().map(|s| s.ip_checksum.index()));
        self.tcp_checksum
            .extend(of_segments().map(|s| s.tcp_checksum.index()));
        let fixes = self.waiting.iter().map(|row| row.2);
        self.clock_fix_ns
            .extend(fixes.map(|fix_ns| (fix_ns != 0).then_some(fix_ns)));
        self.waiting.clear();
    }

    /// The rows as a batch.
    pub fn finish(mut self) -> PyResult<Columns> {
        self.add_waiting();
        let rows = self.rows();
        Batch::new(rows)
            .number::<UInt32Type>("run_id", vec![self.origin.run_id; rows])
            .number::<UInt32Type>("flow_id", self.flow_id)
            .number::<UInt8Type>("leg", vec![self.origin.leg; rows])
            .number::<UInt64Type>("record", self.record)
            .number::<Int64Type>("t_ns", self.t_ns)
            .choice("direction", self.direction, Direction::NAMES)
            .number::<Int64Type>("seq", self.seq)
            .nullable("ack", self.ack)
            .number::<UInt32Type>("payload_bytes", self.payload_bytes)
            .number::<UInt16Type>("flags", self.flags)
            .number::<UInt16Type>("window", self.window)
            .nullable("wnd_bytes", self.wnd_bytes)
            .number::<UInt32Type>("seq_raw", self.seq_raw)
            .number::<UInt32Type>("ack_raw", self.ack_raw)
            .nullable("mss", self.mss)
            .nullable("wscale", self.wscale)
            .flag("sack_permitted", self.sack_permitted)
            .nullable("ts_val", self.ts_val)
            .nullable("ts_ecr", self.ts_ecr)
            .list_column("sack", self.sack)
            .octets_column("options_other", self.options_other)
            .number::<UInt8Type>("ip_version", self.ip_version)
            .number::<UInt32Type>("ip_bytes", self.ip_bytes)
            .nullable("ip_id", self.ip_id)
            .number::<UInt8Type>("ttl", self.ttl)
            .number::<UInt8Type>("dscp_ecn", self.dscp_ecn)
            .number::<UInt32Type>("frame_bytes", self.frame_bytes)
            .number::<UInt32Type>("captured_bytes", self.captured_bytes)
            .flag("retransmission", self.retransmission)
            .flag("dup_ack", self.dup_ack)
            .nullable("rtt_ns", self.rtt_ns)
            .nullable("flight_bytes", self.flight_bytes)
            .number::<UInt16Type>("segments_n", self.segments_n)
            .choice("ip_checksum", self.ip_checksum, Checksum::NAMES)
            .choice("tcp_checksum", self.tcp_checksum, Checksum::NAMES)
            .nullable("clock_fix_ns", self.clock_fix_ns)
            .finish()
    }
}

/// One column out of rows.
pub fn each<'a, R, T>(rows: &'a [R], value: impl FnMut(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// The table `flows`.
pub fn flows(rows: &[FlowRow], origin: Origin) -> PyResult<Columns> {
    let mut batch = Batch::new(rows.len())
        .number::<UInt32Type>("run_id", vec![origin.run_id; rows.len()])
        .number::<UInt32Type>("flow_id", each(rows, |r| r.flow_id))
        .number::<UInt32Type>("input_id", vec![origin.input_id; rows.len()])
        .text("a_addr", &each(rows, |r| r.a_addr.to_string()))
        .number::<UInt16Type>("a_port", each(rows, |r| r.a_port))
        .text("b_addr", &each(rows, |r| r.b_addr.to_string()))
        .number::<UInt16Type>("b_port", each(rows, |r| r.b_port))
        .number::<Int64Type>("start_ns", each(rows, |r| r.start_ns))
        .number::<Int64Type>("end_ns", each(rows, |r| r.end_ns))
        .flag("syn", each(rows, |r| r.syn))
        .flag("syn_ack", each(rows, |r| r.syn_ack))
        .number::<UInt8Type>("fin", each(rows, |r| r.fin))
        .flag("rst", each(rows, |r| r.rst))
        .choice(
            "data_direction",
            each(rows, |r| r.data_direction.index()),
            Direction::NAMES,
        )
        .choice("vantage", each(rows, |r| r.vantage.index()), Vantage::NAMES)
        .optional::<Int64Type>("handshake_rtt_ns", each(rows, |r| r.handshake_rtt_ns));
    for (at, direction) in Direction::NAMES.iter().enumerate() {
        let rows = each(rows, |r| r.directions[at]);
        batch = flow_direction(batch, direction, &rows);
    }
    batch.finish()
}

/// The columns of `flows` that each direction has.
fn flow_direction(batch: Batch, direction: &str, rows: &[DirectionRow]) -> Batch {
    let name = |column: &str| format!("{direction}_{column}");
    batch
        .number::<UInt64Type>(&name("segments"), each(rows, |r| r.segments))
        .number::<UInt64Type>(&name("data_segments"), each(rows, |r| r.data_segments))
        .number::<UInt64Type>(&name("payload_bytes"), each(rows, |r| r.payload_bytes))
        .number::<UInt64Type>(&name("unique_bytes"), each(rows, |r| r.unique_bytes))
        .number::<UInt64Type>(&name("acked_bytes"), each(rows, |r| r.acked_bytes))
        .number::<UInt64Type>(
            &name("retransmitted_segments"),
            each(rows, |r| r.retransmitted_segments),
        )
        .number::<UInt64Type>(
            &name("retransmitted_bytes"),
            each(rows, |r| r.retransmitted_bytes),
        )
        .number::<UInt64Type>(
            &name("out_of_order_segments"),
            each(rows, |r| r.out_of_order_segments),
        )
        .number::<UInt64Type>(&name("dup_acks"), each(rows, |r| r.dup_acks))
        .number::<UInt64Type>(&name("sack_segments"), each(rows, |r| r.sack_segments))
        .number::<UInt64Type>(&name("dsack_segments"), each(rows, |r| r.dsack_segments))
        .optional::<UInt16Type>(&name("mss_bytes"), each(rows, |r| r.mss_bytes))
        .optional::<UInt8Type>(&name("wscale"), each(rows, |r| r.wscale))
        .number::<UInt32Type>(
            &name("max_segment_bytes"),
            each(rows, |r| r.max_segment_bytes),
        )
        .number::<UInt64Type>(&name("rtt_samples"), each(rows, |r| r.rtt_samples))
        .optional::<Int64Type>(&name("rtt_min_ns"), each(rows, |r| r.rtt_min_ns))
        .optional::<Int64Type>(&name("rtt_mean_ns"), each(rows, |r| r.rtt_mean_ns))
        .optional::<Int64Type>(&name("rtt_max_ns"), each(rows, |r| r.rtt_max_ns))
        .optional::<Int64Type>(
            &name("flight_max_bytes"),
            each(rows, |r| r.flight_max_bytes),
        )
        .number::<UInt64Type>(&name("rtos"), each(rows, |r| r.rtos))
        .number::<UInt64Type>(&name("recoveries"), each(rows, |r| r.recoveries))
        .number::<UInt64Type>(
            &name("corrupted_segments"),
            each(rows, |r| r.corrupted_segments),
        )
        .optional::<UInt64Type>(
            &name("not_captured_bytes"),
            each(rows, |r| r.not_captured_bytes),
        )
}

/// The table `events`.
pub fn events(rows: &[Event], origin: Origin) -> PyResult<Columns> {
    Batch::new(rows.len())
        .number::<UInt32Type>("run_id", vec![origin.run_id; rows.len()])
        .number::<UInt32Type>("flow_id", each(rows, |r| r.flow_id))
        .number::<UInt8Type>("leg", vec![origin.leg; rows.len()])
        .number::<Int64Type>("t_ns", each(rows, |r| r.t_ns))
        .optional::<Int64Type>("end_ns", each(rows, |r| r.end_ns))
        .choice(
            "direction",
            each(rows, |r| r.direction.index()),
            Direction::NAMES,
        )
        .choice("kind", each(rows, |r| r.kind.index()), EventKind::NAMES)
        .choice("cause", each(rows, |r| r.cause.index()), EventCause::NAMES)
        .optional::<UInt64Type>("record", each(rows, |r| r.record))
        .optional::<Int64Type>("seq_start", each(rows, |r| r.seq_start))
        .optional::<Int64Type>("seq_end", each(rows, |r| r.seq_end))
        .optional::<UInt32Type>("copy", each(rows, |r| r.copy))
        .optional_choice(
            "mechanism",
            each(rows, |r| r.mechanism.map(Mechanism::index)),
            Mechanism::NAMES,
        )
        .optional_flag("spurious", each(rows, |r| r.spurious))
        .optional_text(
            "evidence",
            &each(rows, |r| r.evidence.map(|e| e.to_string())),
        )
        .finish()
}

/// The table `instruments`; `proxies` are the states of the proxies of its first rows.
pub fn instruments(
    rows: &[Sample],
    proxies: &[Option<ProxySample>],
    origin: Origin,
) -> PyResult<Columns> {
    let of_proxy = |value: fn(&ProxySample) -> u64| -> Vec<Option<i64>> {
        let known = proxies
            .iter()
            .map(|proxy| proxy.as_ref().map(|proxy| value(proxy) as i64));
        known
            .chain(std::iter::repeat(None))
            .take(rows.len())
            .collect()
    };
    Batch::new(rows.len())
        .number::<UInt32Type>("run_id", vec![origin.run_id; rows.len()])
        .number::<UInt32Type>("flow_id", each(rows, |r| r.flow_id))
        .number::<UInt8Type>("leg", vec![origin.leg; rows.len()])
        .number::<Int64Type>("t_ns", each(rows, |r| r.t_ns))
        .choice("source", each(rows, |r| r.source.index()), Source::NAMES)
        .choice("phase", each(rows, |r| r.phase.index()), Phase::NAMES)
        .optional::<Int64Type>("cwnd_bytes", each(rows, |r| r.cwnd_bytes))
        .optional::<Int64Type>("cwnd_low_bytes", each(rows, |r| r.cwnd_low_bytes))
        .optional::<Int64Type>("cwnd_high_bytes", each(rows, |r| r.cwnd_high_bytes))
        .optional::<Int64Type>("ssthresh_bytes", each(rows, |r| r.ssthresh_bytes))
        .optional::<Int64Type>("flight_bytes", each(rows, |r| Some(r.flight_bytes)))
        .optional::<Int64Type>("pipe_bytes", each(rows, |r| r.pipe_bytes))
        .optional::<Int64Type>("smss_bytes", each(rows, |r| Some(r.smss_bytes)))
        .optional::<Int64Type>("srtt_ns", each(rows, |r| r.srtt_ns))
        .optional::<Int64Type>("rttvar_ns", each(rows, |r| r.rttvar_ns))
        .optional::<Int64Type>("rto_ns", each(rows, |r| r.rto_ns))
        .optional::<Int64Type>("min_rtt_ns", each(rows, |r| r.min_rtt_ns))
        .optional::<Int64Type>("snd_una", each(rows, |r| Some(r.snd_una)))
        .optional::<Int64Type>("snd_nxt", each(rows, |r| Some(r.snd_nxt)))
        .optional::<Int64Type>("snd_wnd_bytes", each(rows, |r| r.snd_wnd_bytes))
        .optional::<Int64Type>("segments_out", each(rows, |r| Some(r.segments_out)))
        .optional::<Int64Type>("retransmissions", each(rows, |r| Some(r.retransmissions)))
        .optional::<Int64Type>("rtos", each(rows, |r| Some(r.rtos)))
        .optional::<Int64Type>("recoveries", each(rows, |r| Some(r.recoveries)))
        .optional::<Int64Type>("dup_acks_in", each(rows, |r| Some(r.dup_acks_in)))
        .optional::<Int64Type>("pacing_rate_bps", vec![None; rows.len()])
        .optional::<Int64Type>("delivery_rate_bps", vec![None; rows.len()])
        .optional_flag("app_limited", each(rows, |r| r.app_limited))
        .optional::<Int64Type>("proxy_stored_bytes", of_proxy(|p| p.stored_bytes))
        .optional::<Int64Type>("proxy_undelivered_bytes", of_proxy(|p| p.undelivered_bytes))
        .optional::<Int64Type>("proxy_edge", of_proxy(|p| p.edge))
        .finish()
}

/// Rows of `others`.
pub fn others(rows: &[OtherPacket], input_id: u32) -> PyResult<Columns> {
    Batch::new(rows.len())
        .number::<UInt32Type>("input_id", vec![input_id; rows.len()])
        .number::<UInt64Type>("record", each(rows, |r| r.record))
        .number::<Int64Type>("t_ns", each(rows, |r| r.t_ns))
        .text("kind", &each(rows, |r| r.kind.name()))
        .text("src_addr", &each(rows, |r| r.src.to_string()))
        .text("dst_addr", &each(rows, |r| r.dst.to_string()))
        .number::<UInt32Type>("ip_bytes", each(rows, |r| r.ip_bytes))
        .finish()
}

/// The table `issues`, with the input of each file.
pub fn issues(rows: &[Issue], input_ids: &[u32]) -> PyResult<Columns> {
    let input_id = |row: &Issue| input_ids.get(row.file as usize).copied().unwrap_or(0);
    Batch::new(rows.len())
        .number::<UInt32Type>("input_id", each(rows, input_id))
        .number::<UInt64Type>("record", each(rows, |r| r.record))
        .number::<UInt64Type>("offset", each(rows, |r| r.offset))
        .text("kind", &each(rows, |r| r.kind.name()))
        .text("text", &each(rows, |r| r.text.as_str()))
        .finish()
}
