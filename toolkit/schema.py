"""The tables: every column with type, unit and meaning, declared here and nowhere else.

Ground floor: imports nothing of ours, and pyarrow only when a schema is built. The native code emits these very
columns (tests/toolkit/test_schema.py compares them), Parquet files carry unit and meaning in their metadata,
`hindflight explain` prints them. Read docs/tables.md for how the tables hang together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

SCHEMA_VERSION = 1
"""Raised whenever a column changes name, type, unit or meaning; readers refuse a newer one."""

Type = Literal["bool", "u8", "u16", "u32", "u64", "i64", "f64", "text", "enum", "list_i64", "bytes"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `unit` is empty for what has none; `values` closes an `enum`."""

    name: str
    type: Type
    unit: str
    meaning: str
    nullable: bool = False
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what a row is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """Return the column called `name`; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


DIRECTIONS = ("a2b", "b2a")
PHASES = ("unknown", "handshake", "slow_start", "congestion_avoidance", "recovery", "loss", "limited")
SOURCES = ("inferred", "web100", "tcp_info", "tcp_probe", "replay")
EVENT_KINDS = ("loss", "retransmission", "rto", "recovery", "phase_change", "reordering", "outage", "handover", "reset")
EVENT_CAUSES = ("unknown", "channel", "queue", "fast", "rto", "spurious", "probe", "outage", "aqm")
CHANNEL_KINDS = ("packet", "interval")
CHANNEL_CAUSES = ("none", "channel", "queue", "outage", "unknown")
VANTAGES = ("unknown", "sender", "middle", "receiver")

_RUN = Column("run_id", "u32", "", "Replay run (key of `runs`); 0 for what a capture or log recorded")
_FLOW = Column("flow_id", "u32", "", "Connection (key of `flows`, together with run_id)")
_TIME = Column(
    "t_ns", "i64", "ns", "Time: since 1970-01-01 UTC in captures and logs, since the start of the run in replays"
)
_DIRECTION = Column(
    "direction",
    "enum",
    "",
    "Who sent it: a2b from the end that opened the connection, b2a the other",
    values=DIRECTIONS,
)
_LEG = Column(
    "leg",
    "u8",
    "",
    "TCP connection on the path: 0 is the one that leaves the data sender, 1 the one behind the first split proxy, …",
)

SEGMENTS = Table(
    "segments",
    "one TCP segment, as captured or as a replay's endpoint sent or received it",
    (
        _RUN,
        _FLOW,
        _LEG,
        Column(
            "record",
            "u64",
            "",
            "Number of the record in its capture, from 1 (Wireshark's frame number); in a replay the running number of the segment",
        ),
        _TIME,
        _DIRECTION,
        Column(
            "seq",
            "i64",
            "bytes",
            "Sequence number, unwrapped to 64 bits and relative to the direction's first (SYN = 0, first octet of data = 1)",
        ),
        Column(
            "ack",
            "i64",
            "bytes",
            "Acknowledgement number, unwrapped and relative to the other direction's first sequence number; null without ACK",
            nullable=True,
        ),
        Column(
            "payload_bytes", "u32", "bytes", "TCP payload by the IP header's length, also where the capture kept less"
        ),
        Column("flags", "u16", "", "TCP flags: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR, 256 AE"),
        Column("window", "u16", "", "Window field as sent, not scaled"),
        Column(
            "wnd_bytes",
            "i64",
            "bytes",
            "Advertised receive window, scaled; null where the scale is not known (no handshake in the capture)",
            nullable=True,
        ),
        Column("seq_raw", "u32", "", "Sequence number as on the wire"),
        Column("ack_raw", "u32", "", "Acknowledgement number as on the wire (0 without ACK)"),
        Column("mss", "u16", "bytes", "Maximum segment size option", nullable=True),
        Column("wscale", "u8", "", "Window scale option (shift count)", nullable=True),
        Column("sack_permitted", "bool", "", "SACK-permitted option present"),
        Column("ts_val", "u32", "", "Timestamp value option", nullable=True),
        Column("ts_ecr", "u32", "", "Timestamp echo reply option", nullable=True),
        Column(
            "sack",
            "list_i64",
            "bytes",
            "SACK blocks as pairs of left and right edge, unwrapped like `ack`; empty without the option",
        ),
        Column(
            "options_other",
            "bytes",
            "",
            "All other TCP options as they stand on the wire (kind, length, data), one after another",
            nullable=True,
        ),
        Column("ip_version", "u8", "", "4 or 6"),
        Column("ip_bytes", "u32", "bytes", "IP packet length, headers included"),
        Column("ip_id", "u16", "", "IPv4 identification; null for IPv6", nullable=True),
        Column("ttl", "u8", "", "Time to live (IPv4) or hop limit (IPv6)"),
        Column("dscp_ecn", "u8", "", "Differentiated services field and ECN bits (one octet)"),
        Column("frame_bytes", "u32", "bytes", "Frame length on the wire"),
        Column("captured_bytes", "u32", "bytes", "Octets of the frame that the capture kept"),
        Column("retransmission", "bool", "", "Carries at least one octet that this direction had sent before"),
        Column(
            "dup_ack",
            "bool",
            "",
            "Duplicate acknowledgement (RFC 5681 §2, or with SACK: reports new SACK data without moving ack)",
        ),
        Column(
            "rtt_ns",
            "i64",
            "ns",
            "Round-trip time that this ACK measures for the segment it acknowledges, seen from the capture point (Karn: never from a retransmitted segment)",
            nullable=True,
        ),
        Column(
            "flight_bytes",
            "i64",
            "bytes",
            "Sequence space that the data sender has outstanding right after this segment, less what SACK has reported (RFC 5681 flight size less sacked octets)",
        ),
    ),
)


def _per_direction(columns: tuple[tuple[str, Type, str, str, bool], ...]) -> tuple[Column, ...]:
    return tuple(
        Column(f"{direction}_{name}", type_, unit, f"{direction}: {meaning}", nullable)
        for direction in DIRECTIONS
        for name, type_, unit, meaning, nullable in columns
    )


FLOWS = Table(
    "flows",
    "one TCP connection, both directions",
    (
        _RUN,
        _FLOW,
        Column("input_id", "u32", "", "Input that it was read from (index in the workspace's manifest)"),
        Column(
            "a_addr", "text", "", "Address of the end that opened the connection (or sent the first segment captured)"
        ),
        Column("a_port", "u16", "", "Port of that end"),
        Column("b_addr", "text", "", "Address of the other end"),
        Column("b_port", "u16", "", "Port of the other end"),
        Column("start_ns", "i64", "ns", "Time of its first segment"),
        Column("end_ns", "i64", "ns", "Time of its last segment"),
        Column("syn", "bool", "", "A SYN was captured"),
        Column("syn_ack", "bool", "", "A SYN/ACK was captured"),
        Column("fin", "u8", "", "Number of directions that sent FIN"),
        Column("rst", "bool", "", "A reset was captured"),
        Column("data_direction", "enum", "", "Direction with more payload", values=DIRECTIONS),
        Column(
            "vantage",
            "enum",
            "",
            "Where the capture stands, seen along data_direction, judged by which half of the handshake's round trip (or without one, of the timestamps') lies beyond it",
            values=VANTAGES,
        ),
        Column(
            "handshake_rtt_ns",
            "i64",
            "ns",
            "SYN to the ACK of the SYN/ACK; null without a whole handshake",
            nullable=True,
        ),
        *_per_direction(
            (
                ("segments", "u64", "", "segments", False),
                ("data_segments", "u64", "", "segments with payload", False),
                ("payload_bytes", "u64", "bytes", "payload, retransmitted octets counted each time", False),
                ("unique_bytes", "u64", "bytes", "payload, each octet counted once", False),
                ("acked_bytes", "u64", "bytes", "octets of payload that the other end acknowledged", False),
                ("retransmitted_segments", "u64", "", "data segments with at least one octet sent before", False),
                ("retransmitted_bytes", "u64", "bytes", "octets sent again", False),
                (
                    "out_of_order_segments",
                    "u64",
                    "",
                    "data segments that fill a gap never seen before: overtaken, or lost before the capture point",
                    False,
                ),
                ("dup_acks", "u64", "", "duplicate acknowledgements sent in this direction", False),
                ("sack_segments", "u64", "", "segments that carry SACK blocks", False),
                ("dsack_segments", "u64", "", "segments whose first SACK block reports a duplicate (RFC 2883)", False),
                ("mss_bytes", "u16", "bytes", "MSS option in the SYN", True),
                ("wscale", "u8", "", "window scale in the SYN; null where none was seen", True),
                ("max_segment_bytes", "u32", "bytes", "largest payload of a segment", False),
                ("rtt_samples", "u64", "", "round-trip times measured for this direction's data", False),
                ("rtt_min_ns", "i64", "ns", "least round-trip time", True),
                ("rtt_mean_ns", "i64", "ns", "mean round-trip time", True),
                ("rtt_max_ns", "i64", "ns", "greatest round-trip time", True),
                ("flight_max_bytes", "i64", "bytes", "greatest flight", False),
                (
                    "rtos",
                    "u64",
                    "",
                    "retransmission timeouts: times the timer fired, not the segments sent again after it",
                    False,
                ),
                ("recoveries", "u64", "", "episodes of fast recovery", False),
            )
        ),
    ),
)

INSTRUMENTS = Table(
    "instruments",
    "the state of one sender at one time, from a log, a replay, or inferred from a capture",
    (
        _RUN,
        _FLOW,
        _LEG,
        _TIME,
        Column("source", "enum", "", "Where the values come from", values=SOURCES),
        Column(
            "phase",
            "enum",
            "",
            "What the sender is doing: RFC 5681 phases; `loss` = after a timeout, `limited` = held by the application or the receiver's window",
            values=PHASES,
        ),
        Column("cwnd_bytes", "i64", "bytes", "Congestion window", nullable=True),
        Column("ssthresh_bytes", "i64", "bytes", "Slow start threshold; null while it is not set", nullable=True),
        Column(
            "flight_bytes",
            "i64",
            "bytes",
            "Octets outstanding less those that SACK reported (web100: all outstanding, it does not log what SACK reported)",
            nullable=True,
        ),
        Column("smss_bytes", "i64", "bytes", "Sender maximum segment size (payload)", nullable=True),
        Column("srtt_ns", "i64", "ns", "Smoothed round-trip time", nullable=True),
        Column("rttvar_ns", "i64", "ns", "Round-trip time variation", nullable=True),
        Column("rto_ns", "i64", "ns", "Retransmission timeout", nullable=True),
        Column("min_rtt_ns", "i64", "ns", "Least round-trip time so far", nullable=True),
        Column(
            "snd_una",
            "i64",
            "bytes",
            "Oldest unacknowledged octet, relative to the first (SYN = 0) and unwrapped",
            nullable=True,
        ),
        Column("snd_nxt", "i64", "bytes", "Next octet to send, likewise", nullable=True),
        Column("snd_wnd_bytes", "i64", "bytes", "Window that the receiver advertised", nullable=True),
        Column("segments_out", "i64", "", "Data segments sent so far, retransmissions included", nullable=True),
        Column("retransmissions", "i64", "", "Segments retransmitted so far", nullable=True),
        Column("rtos", "i64", "", "Retransmission timeouts so far", nullable=True),
        Column("recoveries", "i64", "", "Episodes of fast recovery so far (web100: FastRetran)", nullable=True),
        Column("dup_acks_in", "i64", "", "Duplicate acknowledgements received so far", nullable=True),
        Column("pacing_rate_bps", "i64", "bit/s", "Pacing rate", nullable=True),
        Column("delivery_rate_bps", "i64", "bit/s", "Delivery rate as the stack estimates it", nullable=True),
        Column("app_limited", "bool", "", "The application, not the window, holds the sender back", nullable=True),
    ),
)

VARIABLES = Table(
    "variables",
    "one variable of a kernel log as the log names and counts it, at a time when it changed; it holds until its next row",
    (
        _FLOW,
        _TIME,
        Column("source", "enum", "", "Kind of log", values=SOURCES),
        Column(
            "name",
            "text",
            "",
            "Name in the log: a WEB100 variable such as SndLimTimeCwnd, a TCP_INFO column such as ca_state",
        ),
        Column("value", "i64", "", "The value, in the log's own unit; null where it is no number", nullable=True),
        Column("text", "text", "", "The value where it is no number (addresses)", nullable=True),
    ),
)

EVENTS = Table(
    "events",
    "one thing that happened to a flow, with its cause and the evidence for it",
    (
        _RUN,
        _FLOW,
        _LEG,
        _TIME,
        Column("end_ns", "i64", "ns", "End, for what lasts (recovery, outage); null otherwise", nullable=True),
        _DIRECTION,
        Column("kind", "enum", "", "What happened", values=EVENT_KINDS),
        Column("cause", "enum", "", "Why, as far as the evidence goes", values=EVENT_CAUSES),
        Column(
            "record",
            "u64",
            "",
            "The segment it is tied to (key of `segments`): for a loss the transmission that was lost",
            nullable=True,
        ),
        Column("seq_start", "i64", "bytes", "First octet concerned", nullable=True),
        Column("seq_end", "i64", "bytes", "One past the last octet concerned", nullable=True),
        Column("evidence", "text", "", "Why we think so, in words and numbers", nullable=True),
    ),
)

CHANNEL = Table(
    "channel",
    "what the link did to one packet, or during one interval",
    (
        Column(
            "kind",
            "enum",
            "",
            "packet: one row per data packet offered; interval: a state that holds from t_ns to end_ns",
            values=CHANNEL_KINDS,
        ),
        Column("hop", "text", "", "Link of the path it belongs to"),
        _DIRECTION,
        Column(
            "position",
            "u64",
            "",
            "Packet: its number among the data packets that reached the loss stage, from 0, retransmissions included",
            nullable=True,
        ),
        _TIME,
        Column("end_ns", "i64", "ns", "Interval: its end", nullable=True),
        Column("size_bytes", "u32", "bytes", "Packet: IP length", nullable=True),
        Column("lost", "bool", "", "Packet: the channel lost it; interval: every packet in it is lost"),
        Column(
            "cause",
            "enum",
            "",
            "Packet: what took it (a queue loss has lost = false: it never reached the channel)",
            values=CHANNEL_CAUSES,
        ),
        Column(
            "rate_bps",
            "f64",
            "bit/s",
            "Interval: rate of the bottleneck; 0: nothing is sent, and what is queued waits",
            nullable=True,
        ),
        Column(
            "delay_ns",
            "i64",
            "ns",
            "Packet: round-trip time it met, if measured; interval: one-way propagation delay",
            nullable=True,
        ),
        Column("added_ns", "i64", "ns", "Packet: what the link layer's repair added to its delay", nullable=True),
        Column(
            "overlap_ns",
            "i64",
            "ns",
            "Interval: with it a second link takes over; the one before serves what it has for so long",
            nullable=True,
        ),
        Column("ber", "f64", "", "Interval: bit error rate", nullable=True),
        Column("per", "f64", "", "Interval: probability that a packet is lost, whatever its size", nullable=True),
        Column("known", "bool", "", "False where the capture cannot tell and the value is a filler"),
        Column("record", "u64", "", "Packet: the segment in the capture (key of `segments`)", nullable=True),
        Column("evidence", "text", "", "Lost packets: why it is ascribed to this cause", nullable=True),
    ),
)

RUNS = Table(
    "runs",
    "one flow of one replay: a scenario with one variant, one placement of proxies and one seed",
    (
        Column("run_id", "u32", "", "Number of the run in its workspace, from 1"),
        Column("scenario", "text", "", "Name of the scenario"),
        Column("flow", "text", "", "Name of the flow in its scenario"),
        Column(
            "role",
            "enum",
            "",
            "studied: the flow that the scenario is about; cross: one that shares its path",
            values=("studied", "cross"),
        ),
        Column("variant", "text", "", "TCP variant of the flow; `udp` for a stream of datagrams"),
        Column("proxy", "text", "", "Node that splits the connection; `none` without a proxy"),
        Column(
            "purpose",
            "enum",
            "",
            "self_check: the captured variant over the captured trace; what_if: a comparison",
            values=("self_check", "what_if"),
        ),
        Column(
            "channel_mode",
            "enum",
            "",
            "model: drawn from a model; replayed: the trace as captured; resampled: blocks of the trace drawn by seed",
            values=("model", "replayed", "resampled"),
        ),
        Column("seed", "u64", "", "Root seed: it decides everything random in the run"),
        _FLOW,
        Column("duration_ns", "i64", "ns", "Time from the flow's start to its end or to the end of the run"),
        Column(
            "completed",
            "bool",
            "",
            "All that it had to send was delivered before the run ended; false for a flow without end",
        ),
        Column(
            "reset_ns",
            "i64",
            "ns",
            "When, since the start of the run, the sender gave up for want of answers or was reset; null if neither",
            nullable=True,
        ),
        Column("delivered_bytes", "u64", "bytes", "Octets that the receiving application read in order"),
        Column("goodput_bps", "f64", "bit/s", "delivered_bytes x 8 / duration"),
        Column("segments_out", "u64", "", "Data segments that the sender sent, retransmissions included"),
        Column("retransmissions", "u64", "", "Of these, sent before"),
        Column("rtos", "u64", "", "Retransmission timeouts"),
        Column("recoveries", "u64", "", "Episodes of fast recovery"),
        Column("channel_losses", "u64", "", "Data packets that the channel lost"),
        Column("queue_losses", "u64", "", "Packets dropped by full queues"),
        Column("aqm_losses", "u64", "", "Packets dropped early by the management of a queue"),
        Column("outage_losses", "u64", "", "Packets lost in outages"),
        Column("ecn_marks", "u64", "", "Packets that a queue marked (congestion experienced) instead of dropping them"),
        Column("ecn_reductions", "u64", "", "Reductions of the sender's window by echoed congestion marks"),
        Column(
            "trace_beyond_pkts",
            "u64",
            "",
            "Data packets that lay beyond the end of a replayed loss trace, which starts again there",
            nullable=True,
        ),
        Column("srtt_mean_ns", "i64", "ns", "Mean of the sender's RTT samples", nullable=True),
        Column("rtt_p95_ns", "i64", "ns", "95th percentile of the sender's RTT samples", nullable=True),
        Column(
            "proxy_held_max_bytes",
            "u64",
            "bytes",
            "Most octets that a proxy had acknowledged but not yet seen acknowledged downstream: what a crash would lose",
            nullable=True,
        ),
        Column(
            "app_delay_p50_ns",
            "i64",
            "ns",
            "Application delay: median of the times from a write to the reading of its last octet in order; of "
            "datagrams from sending to arrival. Null where nothing arrived",
            nullable=True,
        ),
        Column("app_delay_p95_ns", "i64", "ns", "95th percentile of the application delay", nullable=True),
        Column("app_delay_max_ns", "i64", "ns", "Longest application delay", nullable=True),
        Column(
            "jitter_ns",
            "i64",
            "ns",
            "Datagrams: mean difference of the delays of two that arrived one after the other",
            nullable=True,
        ),
        Column("stalls", "u64", "", "Streams: times that play-out ran dry", nullable=True),
        Column("stalled_ns", "i64", "ns", "Streams: time that play-out stood still after it had begun", nullable=True),
        Column("pages", "u64", "", "Pages: how many were loaded", nullable=True),
        Column("page_load_p50_ns", "i64", "ns", "Pages: median time from the request to the last octet", nullable=True),
        Column("page_load_p95_ns", "i64", "ns", "Pages: 95th percentile of that time", nullable=True),
    ),
)

FINDINGS = Table(
    "findings",
    "one statement that the tables support, with its number and interval",
    (
        Column("section", "text", "", "Part of the report it belongs to"),
        Column("subject", "text", "", "What it is about (flow, variant, channel, …)"),
        Column("metric", "text", "", "Name of the quantity"),
        Column("value", "f64", "", "The number, in `unit`", nullable=True),
        Column("low", "f64", "", "Lower end of the interval, where there is one", nullable=True),
        Column("high", "f64", "", "Upper end of the interval", nullable=True),
        Column("unit", "text", "", "Unit of value, low and high"),
        Column(
            "verdict",
            "enum",
            "",
            "pass or miss against a stated bound; info otherwise; unknown where the data cannot tell",
            values=("info", "pass", "miss", "unknown"),
        ),
        Column("text", "text", "", "The statement as a sentence"),
    ),
)

CLAIMS = Table(
    "claims",
    "one claim of a paper beside what the engine gives",
    (
        Column("claim_id", "text", "", "Identifier in the list of claims"),
        Column("paper", "text", "", "Paper it comes from"),
        Column("scenario", "text", "", "Scenario, as the list gives it"),
        Column("metric", "text", "", "Quantity"),
        Column("expected", "f64", "", "What the paper says, in `unit`", nullable=True),
        Column("tolerance", "f64", "", "Accepted difference, in `unit`", nullable=True),
        Column("value", "f64", "", "What the engine gives, in `unit`", nullable=True),
        Column("low", "f64", "", "Lower end of its 95 % interval", nullable=True),
        Column("high", "f64", "", "Upper end of its 95 % interval", nullable=True),
        Column("unit", "text", "", "Unit of all four"),
        Column("verdict", "enum", "", "Outcome", values=("reproduced", "not_reproduced", "not_testable")),
        Column("reason", "text", "", "Why, where it does not reproduce"),
    ),
)

ISSUES = Table(
    "issues",
    "one thing in an input that could not be decoded or is suspect",
    (
        Column("input_id", "u32", "", "Input (index in the workspace's manifest)"),
        Column("record", "u64", "", "Number of the record in the input, from 1; 0 for the file as a whole"),
        Column("offset", "u64", "bytes", "Where in the (uncompressed) input"),
        Column("kind", "text", "", "Short name of the problem"),
        Column("text", "text", "", "What was found, and what was done about it"),
    ),
)

OTHERS = Table(
    "others",
    "one IP packet of a capture that is no TCP segment",
    (
        Column("input_id", "u32", "", "Input (index in the workspace's manifest)"),
        Column("record", "u64", "", "Number of the packet in its capture, from 1"),
        Column("t_ns", "i64", "ns", "Time when it was captured, since 1970-01-01 UTC"),
        Column("kind", "text", "", "udp, icmp, tcp_fragment (fragments after the first) or other_ip"),
        Column("src_addr", "text", "", "Where it comes from"),
        Column("dst_addr", "text", "", "Where it goes"),
        Column("ip_bytes", "u32", "bytes", "IP length"),
    ),
)

FINDING_SECTIONS = (
    "summary",
    "key_numbers",
    "self_check",
    "channel",
    "what_was",
    "what_if",
    "spread",
    "sharing",
    "unknown",
    "setup",
)
"""Values of `findings.section` that a report shows, in its order; reports/document.py says what each is for."""


def run_subject(variant: str, proxy: str) -> str:
    """Return the subject under which `findings` speaks of the runs of `variant` with `proxy` (`none` without one)."""
    return variant if proxy == "none" else f"{variant}, split at {proxy}"


TABLES: dict[str, Table] = {
    table.name: table
    for table in (SEGMENTS, FLOWS, INSTRUMENTS, VARIABLES, EVENTS, CHANNEL, RUNS, FINDINGS, CLAIMS, OTHERS, ISSUES)
}


def _arrow_type(type_: Type) -> pa.DataType:
    import pyarrow as pa

    types: dict[Type, pa.DataType] = {
        "bool": pa.bool_(),
        "u8": pa.uint8(),
        "u16": pa.uint16(),
        "u32": pa.uint32(),
        "u64": pa.uint64(),
        "i64": pa.int64(),
        "f64": pa.float64(),
        "text": pa.string(),
        "enum": pa.dictionary(pa.int8(), pa.string()),
        "list_i64": pa.list_(pa.field("item", pa.int64(), nullable=False)),
        "bytes": pa.binary(),
    }
    return types[type_]


@cache
def arrow_schema(name: str) -> pa.Schema:
    """Return the Arrow schema of table `name`, unit and meaning in each field's metadata; KeyError if unknown."""
    import pyarrow as pa

    table = TABLES[name]
    fields = [
        pa.field(c.name, _arrow_type(c.type), c.nullable, {"unit": c.unit, "meaning": c.meaning}) for c in table.columns
    ]
    return pa.schema(fields, {"hindflight.table": name, "hindflight.schema_version": str(SCHEMA_VERSION)})


def conform(name: str, data: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Return `data` with exactly the columns of table `name` (or those named), in order, typed, with metadata.

    Enumerations are re-encoded with their declared values. ValueError for a missing column, a null where none
    may be, or a value outside an enumeration.
    """
    import pyarrow as pa

    schema = arrow_schema(name)
    if columns is not None:
        schema = pa.schema([schema.field(column) for column in columns], schema.metadata)
    arrays = []
    for field in schema:
        column = TABLES[name].column(field.name)
        if column.name not in data.column_names:
            raise ValueError(f"table {name} lacks column {column.name}")
        values = data[column.name]
        if column.type == "enum":
            values = _encode_enum(column, values)
        elif values.type != field.type:
            values = values.cast(field.type)
        if not column.nullable and values.null_count:
            raise ValueError(f"{name}.{column.name} has {values.null_count} nulls; none may be")
        arrays.append(values)
    return pa.Table.from_arrays(arrays, schema=schema)


def _encode_enum(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    declared = pa.array(column.values, pa.string())
    coded = pa.chunked_array(values) if isinstance(values, pa.Array) else values
    if not pa.types.is_dictionary(coded.type):
        coded = coded.cast(pa.string()).dictionary_encode()
    chunks = []
    for chunk in coded.chunks:
        keys = chunk.indices
        if not chunk.dictionary.equals(declared):
            keys = _declared_keys(column, chunk.dictionary).take(keys)
        chunks.append(pa.DictionaryArray.from_arrays(keys.cast(pa.int8()), declared))
    return pa.chunked_array(chunks, type=pa.dictionary(pa.int8(), pa.string()))


def _declared_keys(column: Column, dictionary: pa.Array) -> pa.Array:
    """The place of each value of `dictionary` among the column's declared values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pc.index_in(dictionary.cast(pa.string()), value_set=pa.array(column.values, pa.string()))
    if keys.null_count:
        odd = dictionary[keys.is_null().index(True).as_py()]
        raise ValueError(f"{column.name} = {odd.as_py()!r} is none of {', '.join(column.values)}")
    return keys


def table_from_rows(name: str, rows: list[dict[str, object]]) -> pa.Table:
    """Build table `name` from dictionaries; keys that are left out become nulls (allowed where nullable)."""
    import pyarrow as pa

    columns = {}
    for column in TABLES[name].columns:
        type_ = pa.string() if column.type == "enum" else _arrow_type(column.type)
        columns[column.name] = pa.array([row.get(column.name) for row in rows], type_)
    unknown = {key for row in rows for key in row} - set(columns)
    if unknown:
        raise ValueError(f"table {name} has no column {', '.join(sorted(unknown))}")
    return conform(name, pa.table(columns))


def empty_table(name: str) -> pa.Table:
    """Return table `name` with no rows."""
    return arrow_schema(name).empty_table()
