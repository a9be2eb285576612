"""Tables of observations: from a capture, from a log, or from a replay in the form of a capture.

docs/tables.md describes how the tables are joined.
"""

from __future__ import annotations

from hindflight.toolkit.schema.columns import DIRECTION, DIRECTIONS, FLOW, LEG, RUN, TIME
from hindflight.toolkit.schema.model import Column, Table, Type

PHASES = ("unknown", "handshake", "slow_start", "congestion_avoidance", "recovery", "loss", "limited")
SOURCES = ("inferred", "web100", "tcp_info", "tcp_probe", "replay")
EVENT_KINDS = (
    "loss",
    "retransmission",
    "rto",
    "recovery",
    "phase_change",
    "reordering",
    "outage",
    "handover",
    "reset",
    "undecided",
)
MECHANISMS = ("unknown", "fast", "sack", "rto", "after_rto", "tlp", "keep_alive", "window_probe")
EVENT_CAUSES = ("unknown", "channel", "queue", "fast", "rto", "spurious", "probe", "outage", "aqm")
CHECKSUMS = ("not_checked", "good", "bad", "offload")
PAIR_FATES = ("delivered", "lost", "not_captured", "outside", "appeared")
VANTAGES = ("unknown", "sender", "middle", "receiver")

SEGMENTS = Table(
    "segments",
    "one TCP segment, as captured or as a replay's endpoint sent or received it",
    (
        RUN,
        FLOW,
        LEG,
        Column(
            "record",
            "u64",
            "",
            "Number of the record in its capture, from 1 (Wireshark's frame number); in a replay the running number of the segment",
        ),
        TIME,
        DIRECTION,
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
            "payload_bytes",
            "u32",
            "bytes",
            "TCP payload according to the IP length, even if the capture truncated the packet",
        ),
        Column("flags", "u16", "", "TCP flags: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR, 256 AE"),
        Column("window", "u16", "", "Window field as sent, not scaled"),
        Column(
            "wnd_bytes",
            "i64",
            "bytes",
            "Advertised receive window, scaled; null if the scale is not known (no handshake in the capture)",
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
            "All other TCP options as on the wire (kind, length, data), concatenated",
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
            "Round-trip time that this ACK measures for the segment it acknowledges, measured at the capture point (Karn: never from a retransmitted segment)",
            nullable=True,
        ),
        Column(
            "flight_bytes",
            "i64",
            "bytes",
            "Sequence space that the data sender has outstanding after this segment, minus the octets that SACK has reported (RFC 5681 FlightSize minus SACKed octets); null if the capture shows none of what it sent",
            nullable=True,
        ),
        Column(
            "segments_n",
            "u16",
            "",
            "Segments that the record stands for: payload divided by the MSS less the options, rounded up; more than 1 where the interface cuts or joins segments (TSO, GRO). Without an MSS option in the capture, the MSS is taken as 1460 octets",
        ),
        Column(
            "ip_checksum",
            "enum",
            "",
            "Checksum of the IPv4 header; `offload`: not filled in yet, because the interface does that",
            values=CHECKSUMS,
        ),
        Column(
            "tcp_checksum",
            "enum",
            "",
            "Checksum of the segment, checked where the capture holds all of it; `offload`: the field is 0 or holds the sum of the pseudo-header",
            values=CHECKSUMS,
        ),
        Column(
            "clock_fix_ns",
            "i64",
            "ns",
            "What `--fix-clock` added to the time of the capture to give `t_ns`; null where nothing was added",
            nullable=True,
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
        RUN,
        FLOW,
        Column("input_id", "u32", "", "Input of the connection (index in the workspace's manifest)"),
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
        Column(
            "data_direction",
            "enum",
            "",
            "Direction with more payload captured; if equal, with more acknowledged",
            values=DIRECTIONS,
        ),
        Column(
            "vantage",
            "enum",
            "",
            "Capture point relative to data_direction, inferred from the part of the handshake's (or, without one, of the timestamps') round trip that lies behind it",
            values=VANTAGES,
        ),
        Column(
            "handshake_rtt_ns",
            "i64",
            "ns",
            "SYN to the ACK of the SYN/ACK; null without a complete handshake, or if a repeated SYN or SYN/ACK makes it ambiguous (Karn)",
            nullable=True,
        ),
        *_per_direction(
            (
                ("segments", "u64", "", "segments; a record counts as its `segments_n`, here and below", False),
                ("data_segments", "u64", "", "segments with payload", False),
                ("payload_bytes", "u64", "bytes", "payload, retransmitted octets counted each time", False),
                ("unique_bytes", "u64", "bytes", "payload, each octet counted once", False),
                ("acked_bytes", "u64", "bytes", "octets of payload that the other end acknowledged", False),
                ("retransmitted_segments", "u64", "", "data segments with at least one octet sent before", False),
                ("retransmitted_bytes", "u64", "bytes", "octets retransmitted", False),
                (
                    "out_of_order_segments",
                    "u64",
                    "",
                    "data segments that fill a gap and were not captured before: reordered, or lost before the capture point",
                    False,
                ),
                ("dup_acks", "u64", "", "duplicate acknowledgements sent in this direction", False),
                ("sack_segments", "u64", "", "segments that carry SACK blocks", False),
                ("dsack_segments", "u64", "", "segments whose first SACK block reports a duplicate (RFC 2883)", False),
                ("mss_bytes", "u16", "bytes", "MSS option in the SYN", True),
                ("wscale", "u8", "", "window scale in the SYN; null if there is none", True),
                ("max_segment_bytes", "u32", "bytes", "largest payload of a record", False),
                ("rtt_samples", "u64", "", "round-trip times measured for this direction's data", False),
                ("rtt_min_ns", "i64", "ns", "minimum round-trip time", True),
                ("rtt_mean_ns", "i64", "ns", "mean round-trip time", True),
                ("rtt_max_ns", "i64", "ns", "maximum round-trip time", True),
                (
                    "flight_max_bytes",
                    "i64",
                    "bytes",
                    "maximum of the data in flight; null if no ACK of it was captured, or none of the data that was acknowledged",
                    True,
                ),
                (
                    "rtos",
                    "u64",
                    "",
                    "retransmission timeouts (expirations of the timer, not segments retransmitted after them)",
                    False,
                ),
                ("recoveries", "u64", "", "episodes of fast recovery", False),
                (
                    "corrupted_segments",
                    "u64",
                    "",
                    "segments with a wrong checksum among right ones: damaged on the way, and analysed as if they had been lost",
                    False,
                ),
                (
                    "not_captured_bytes",
                    "u64",
                    "bytes",
                    "sequence space that was acknowledged and not captured: the capture lost it, not the network; null if no payload was captured",
                    True,
                ),
            )
        ),
    ),
)

INSTRUMENTS = Table(
    "instruments",
    "the state of one sender at one time, from a log, a replay, or inferred from a capture (captured elsewhere than at the sender: needs timestamps; the time is that of the segment that shows the state; in a silence, no window is given)",
    (
        RUN,
        FLOW,
        LEG,
        TIME,
        Column("source", "enum", "", "Source of the values", values=SOURCES),
        Column(
            "phase",
            "enum",
            "",
            "Phase of congestion control (RFC 5681); `loss`: after a timeout; `limited`: limited by the application, its own pace or the receive window",
            values=PHASES,
        ),
        Column("cwnd_bytes", "i64", "bytes", "Congestion window", nullable=True),
        Column(
            "cwnd_low_bytes",
            "i64",
            "bytes",
            "Lower limit of the 95 % interval of the congestion window in whole segments; null unless it is inferred",
            nullable=True,
        ),
        Column(
            "cwnd_high_bytes",
            "i64",
            "bytes",
            "Upper limit of the 95 % interval of the congestion window in whole segments (if the sender counts octets, it may have up to a segment more); null unless it is inferred",
            nullable=True,
        ),
        Column("ssthresh_bytes", "i64", "bytes", "Slow start threshold; null while it is not set", nullable=True),
        Column(
            "flight_bytes",
            "i64",
            "bytes",
            "Octets outstanding minus those that SACK reported (web100: all outstanding octets, because it does not log SACK)",
            nullable=True,
        ),
        Column(
            "pipe_bytes",
            "i64",
            "bytes",
            "Mean from this row to the next of the octets in the network (RFC 6675 pipe: flight_bytes minus lost plus retransmitted octets); null unless it is inferred",
            nullable=True,
        ),
        Column("smss_bytes", "i64", "bytes", "Sender maximum segment size (payload)", nullable=True),
        Column("srtt_ns", "i64", "ns", "Smoothed round-trip time", nullable=True),
        Column("rttvar_ns", "i64", "ns", "Round-trip time variation", nullable=True),
        Column("rto_ns", "i64", "ns", "Retransmission timeout", nullable=True),
        Column("min_rtt_ns", "i64", "ns", "Minimum round-trip time so far", nullable=True),
        Column(
            "snd_una",
            "i64",
            "bytes",
            "Oldest unacknowledged octet, relative to the first (SYN = 0) and unwrapped",
            nullable=True,
        ),
        Column("snd_nxt", "i64", "bytes", "Next octet to send, relative to the first and unwrapped", nullable=True),
        Column("snd_wnd_bytes", "i64", "bytes", "Window that the receiver advertised", nullable=True),
        Column("segments_out", "i64", "", "Data segments sent so far, retransmissions included", nullable=True),
        Column("retransmissions", "i64", "", "Segments retransmitted so far", nullable=True),
        Column("rtos", "i64", "", "Retransmission timeouts so far", nullable=True),
        Column("recoveries", "i64", "", "Episodes of fast recovery so far (web100: FastRetran)", nullable=True),
        Column("dup_acks_in", "i64", "", "Duplicate acknowledgements received so far", nullable=True),
        Column("pacing_rate_bps", "i64", "bit/s", "Pacing rate", nullable=True),
        Column("delivery_rate_bps", "i64", "bit/s", "Delivery rate as the stack estimates it", nullable=True),
        Column("app_limited", "bool", "", "The application, not the window, limits the sender", nullable=True),
        Column(
            "proxy_stored_bytes",
            "i64",
            "bytes",
            "Replay, sender at a split proxy: octets in the memory of the proxy, out-of-order data included; null for other senders, also below",
            nullable=True,
        ),
        Column(
            "proxy_undelivered_bytes",
            "i64",
            "bytes",
            "Octets that this proxy has acknowledged upstream and that are not acknowledged onward",
            nullable=True,
        ),
        Column(
            "proxy_edge",
            "i64",
            "bytes",
            "Right edge of the window that this proxy advertises upstream: octet after the last one that may arrive, relative to the first (SYN = 0)",
            nullable=True,
        ),
    ),
)

VARIABLES = Table(
    "variables",
    "one variable of a kernel log in the log's own name and unit, at a change; the value holds until the next row",
    (
        FLOW,
        TIME,
        Column("source", "enum", "", "Kind of log", values=SOURCES),
        Column(
            "name",
            "text",
            "",
            "Name in the log: a WEB100 variable such as SndLimTimeCwnd, a TCP_INFO column such as ca_state",
        ),
        Column("value", "i64", "", "The value, in the log's unit; null if it is not a number", nullable=True),
        Column("text", "text", "", "The value if it is not a number (addresses)", nullable=True),
    ),
)

TELEMETRY = Table(
    "telemetry",
    "one value of a flight log at one time: position, attitude, radio; the value holds until the next row of its name",
    (
        Column("input_id", "u32", "", "Input (index in the workspace's manifest)"),
        Column("t_ns", "i64", "ns", "Time since 1970-01-01 UTC, the offset of the log's clock added"),
        Column("source", "text", "", "Kind of log, as `hindflight ingest` prints it"),
        Column(
            "name",
            "text",
            "",
            "What was measured, with its unit at the end: lat_deg, lon_deg, alt_m, roll_deg, snr_db, or another name of the log",
        ),
        Column("unit", "text", "", "Unit of the value, by the end of the name; empty if it says none"),
        Column("value", "f64", "", "The value in that unit; null if it is not a number", nullable=True),
        Column("text", "text", "", "The value if it is not a number (MODCOD)", nullable=True),
    ),
)

EVENTS = Table(
    "events",
    "one event of a flow, with its cause and the evidence for it",
    (
        RUN,
        FLOW,
        LEG,
        TIME,
        Column(
            "end_ns", "i64", "ns", "End of an event with a duration (recovery, outage); null otherwise", nullable=True
        ),
        DIRECTION,
        Column(
            "kind",
            "enum",
            "",
            "What happened; `undecided`: the capture does not show whether a transmission arrived",
            values=EVENT_KINDS,
        ),
        Column("cause", "enum", "", "Why, as far as the evidence goes", values=EVENT_CAUSES),
        Column(
            "record",
            "u64",
            "",
            "The segment of the event (key of `segments`); for a loss the lost transmission",
            nullable=True,
        ),
        Column("seq_start", "i64", "bytes", "First octet concerned", nullable=True),
        Column("seq_end", "i64", "bytes", "One past the last octet concerned", nullable=True),
        Column(
            "copy",
            "u32",
            "",
            "Which transmission of these octets the event concerns, from 1 (the original transmission); null on "
            "`undecided` without a `record`: all transmissions of these octets, whose division into segments is not known",
            nullable=True,
        ),
        Column(
            "mechanism",
            "enum",
            "",
            "What made the sender retransmit, whether or not it was necessary; null unless a retransmission",
            nullable=True,
            values=MECHANISMS,
        ),
        Column(
            "spurious",
            "bool",
            "",
            "An earlier transmission had arrived; null if unknown, or unless a retransmission",
            nullable=True,
        ),
        Column("evidence", "text", "", "Evidence for the cause", nullable=True),
    ),
)

PAIRS = Table(
    "pairs",
    "one packet of a connection that was captured at two places, at both of them or at one",
    (
        Column("flow_id", "u32", "", "Connection in the first capture (key of `flows`, run 0)"),
        Column("other_flow_id", "u32", "", "The same connection in the other capture"),
        DIRECTION,
        Column(
            "record", "u64", "", "Number of the record in the first capture; null if it is not there", nullable=True
        ),
        Column(
            "other_record",
            "u64",
            "",
            "Number of the record in the other capture; null if it is not there",
            nullable=True,
        ),
        Column("t_ns", "i64", "ns", "Time in the first capture, since 1970-01-01 UTC", nullable=True),
        Column(
            "other_t_ns",
            "i64",
            "ns",
            "Time in the other capture, by the clock of the first (see `clocks`)",
            nullable=True,
        ),
        Column("seq", "i64", "bytes", "First octet, as in `segments`"),
        Column("payload_bytes", "u32", "bytes", "Payload; a record that held several segments has a row for each"),
        Column(
            "delay_ns",
            "i64",
            "ns",
            "One-way delay between the two places, in the direction of the packet; null if it was seen at one place only, or the clocks are not known",
            nullable=True,
        ),
        Column(
            "fate",
            "enum",
            "",
            "What happened between the places; `not_captured`: acknowledged without having been captured at the second; `outside`: the capture at the second did not cover the time; `appeared`: captured at the second place only, because a proxy made it or the first capture missed it",
            values=PAIR_FATES,
        ),
    ),
)

CLOCKS = Table(
    "clocks",
    "how the clock of one capture differs from that of another, from the packets that both have",
    (
        Column("input_id", "u32", "", "First capture (index in the workspace's manifest): its clock is the reference"),
        Column("other_input_id", "u32", "", "The other capture"),
        Column("reference_ns", "i64", "ns", "Time of the first clock for which `offset_ns` holds"),
        Column("offset_ns", "i64", "ns", "The other clock less the first at `reference_ns`"),
        Column(
            "offset_low_ns",
            "i64",
            "ns",
            "Lower limit of the offset: half of the minimum round trip less, because the path may be asymmetric; the offset itself if the asymmetry was given",
        ),
        Column("offset_high_ns", "i64", "ns", "Upper limit of the offset, likewise"),
        Column("drift_ppm", "f64", "ppm", "How much faster the other clock runs, in parts per million"),
        Column(
            "drift_error_ppm",
            "f64",
            "ppm",
            "Half of the 95 % interval of the drift; null if the capture is too short to see it, and the drift is then 0",
            nullable=True,
        ),
        Column("min_rtt_ns", "i64", "ns", "Minimum round trip between the two places"),
        Column("asymmetry_ns", "i64", "ns", "Minimum delay to the other place less that back, as given", nullable=True),
        Column("packets", "u64", "", "Packets that both captures have"),
    ),
)

ISSUES = Table(
    "issues",
    "one record of an input that could not be decoded or is suspect",
    (
        Column("input_id", "u32", "", "Input (index in the workspace's manifest)"),
        Column("record", "u64", "", "Number of the record in the input, from 1; 0 for the file as a whole"),
        Column("offset", "u64", "bytes", "Position in the (uncompressed) input"),
        Column("kind", "text", "", "Short name of the problem"),
        Column("text", "text", "", "Description, and how the record was handled"),
    ),
)

OTHERS = Table(
    "others",
    "one IP packet of a capture that is not a TCP segment",
    (
        Column("input_id", "u32", "", "Input (index in the workspace's manifest)"),
        Column("record", "u64", "", "Number of the packet in its capture, from 1"),
        Column("t_ns", "i64", "ns", "Time when it was captured, since 1970-01-01 UTC"),
        Column("kind", "text", "", "udp, icmp, tcp_fragment (fragments after the first) or other_ip"),
        Column("src_addr", "text", "", "Source address"),
        Column("dst_addr", "text", "", "Destination address"),
        Column("ip_bytes", "u32", "bytes", "IP length"),
    ),
)
