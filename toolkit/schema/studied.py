"""Tables of what was made of it: the channel, runs of the engine, findings, claims of papers.

Read docs/tables.md for how the tables hang together.
"""

from __future__ import annotations

from hindflight.toolkit.schema.columns import DIRECTION, FLOW, TIME
from hindflight.toolkit.schema.model import Column, Table

CHANNEL_KINDS = ("packet", "interval")
CHANNEL_CAUSES = ("none", "channel", "queue", "outage", "unknown")

CHANNEL = Table(
    "channel",
    "what the link did to one packet, or during one interval",
    (
        Column(
            "kind",
            "enum",
            "",
            "packet: one row per data packet offered; interval: a state that holds from t_ns to end_ns, times at the link "
            "itself: for what it serves from then on. The first begins where a replay does (a captured flow's SYN)",
            values=CHANNEL_KINDS,
        ),
        Column("hop", "text", "", "Link of the path it belongs to"),
        DIRECTION,
        Column(
            "position",
            "u64",
            "",
            "Packet: its number among the data packets that reached the loss stage, from 0, retransmissions included",
            nullable=True,
        ),
        TIME,
        Column("end_ns", "i64", "ns", "Interval: its end", nullable=True),
        Column("size_bytes", "u32", "bytes", "Packet: IP length", nullable=True),
        Column(
            "lost",
            "bool",
            "",
            "Packet: the channel lost it; interval: every packet served in it is lost (in an outage also what would arrive)",
        ),
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
        Column(
            "compared_variant",
            "text",
            "",
            "TCP variant of the flow under test in this run, also in the rows of the flows that share its path; null in "
            "workspaces of Hindflight 0.1",
            nullable=True,
        ),
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
        FLOW,
        Column(
            "duration_ns",
            "i64",
            "ns",
            "Time from the flow's start to its end, its reset or the end of the run; of datagrams to their stop, or to "
            "the last arrival after it",
        ),
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
        Column(
            "goodput_bps",
            "f64",
            "bit/s",
            "Goodput: delivered_bytes x 8 / duration_ns. For a captured flow, `findings` gives the octets acknowledged "
            "in order x 8 / the time from its first to its last new data segment",
        ),
        Column(
            "segments_out",
            "u64",
            "",
            "Data segments sent, retransmissions included. This and all counts below are up to the flow's end and, with "
            "a proxy, sums over the connections into which it splits the flow (`leg` in `instruments` tells them apart)",
        ),
        Column("retransmissions", "u64", "", "Of these, sent before"),
        Column("rtos", "u64", "", "Retransmission timeouts"),
        Column("recoveries", "u64", "", "Episodes of fast recovery"),
        Column("channel_losses", "u64", "", "Data packets that the channel lost"),
        Column("queue_losses", "u64", "", "Data packets dropped by full queues"),
        Column("aqm_losses", "u64", "", "Data packets dropped early by the management of a queue"),
        Column("outage_losses", "u64", "", "Data packets lost in outages"),
        Column("control_losses", "u64", "", "Packets without data (ACK, SYN, FIN, reset) lost, whatever the cause"),
        Column("ecn_marks", "u64", "", "Packets that a queue marked (congestion experienced) instead of dropping them"),
        Column("ecn_reductions", "u64", "", "Reductions of a sender's window by echoed congestion marks"),
        Column(
            "trace_beyond_pkts",
            "u64",
            "",
            "Data packets that lay beyond the end of a replayed loss trace, which starts again there",
            nullable=True,
        ),
        Column(
            "srtt_mean_ns",
            "i64",
            "ns",
            "Mean of the data sender's RTT samples: with a proxy, of the connection from there to the first one",
            nullable=True,
        ),
        Column("rtt_p95_ns", "i64", "ns", "95th percentile of the same samples", nullable=True),
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
            "Application delay: median of the times from a write to the reading of its last octet in order, of the "
            "writes read by the flow's end (the others do not count); of datagrams from sending to arrival. Null where "
            "nothing was read",
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
        Column("pages", "u64", "", "Pages: how many were loaded and read", nullable=True),
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
