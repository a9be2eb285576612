"""What a report on a flight opens with, where nothing was replayed: the findings on its captured flow.

Puts the packages together: the link is extracted, what limited the sender is found, and each result becomes a row of
`findings`. A replay writes separate findings (replay/experiment/findings.py); a workspace that has some keeps them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import CaptureError, ChannelError, HindflightError, rebuild_hint

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.channels.estimate import Estimate
    from hindflight.channels.trace import Trace
    from hindflight.replay.experiment.compare import Interval
    from hindflight.toolkit.captured_flow import Flow
    from hindflight.toolkit.workspace import Workspace

    Rows = list[dict[str, Any]]

MAX_LINK_PACKETS = 2_000_000
"""TCP packets of a capture up to which a report extracts the link of a flow, which takes about 16 us for each of that
flow: half a minute."""

MIN_LIMIT_SHARE = 0.005
"""Share of the time below which a limit is not named."""

LIMITED_BY = {
    "network": "by the network (cwnd, recovery from losses, timeouts)",
    "receiver": "by the window of the receiver",
    "application": "by its application (it had written no more)",
    "pacing": "by its own pacing",
}

RESENT = {
    "fast": "after duplicate ACKs",
    "sack": "after SACK blocks",
    "tlp": "as a tail loss probe",
    "rto": "by a timeout",
    "after_rto": "in the recovery after a timeout",
    "keep_alive": "as a keep-alive",
    "window_probe": "as a window probe",
    "unknown": "for an unknown reason",
}
"""What made the sender retransmit, in words."""


@dataclass(frozen=True, slots=True)
class FlightFindings:
    """Tables that a report adds to those of a workspace, and the command that makes each of them but `findings`."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    commands: dict[str, tuple[str, ...]] = field(default_factory=dict)


def flight_findings(workspace: Workspace) -> FlightFindings:
    """Return the findings on the captured flow with the most data, and the channel that they are made of.

    Nothing for a workspace that has findings already, or no captured flow.
    """
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.schema import table_from_rows

    if workspace.rows("findings"):
        return FlightFindings()
    try:
        flow = read_flow(workspace, None)
    except CaptureError as error:  # The clock was set within the flow.
        return FlightFindings(
            {"findings": table_from_rows("findings", [_row("unknown", "", f"Of the flow, {error}.")])}
        )
    except HindflightError:
        return FlightFindings()
    rows, trace = _findings_on(flow, workspace)
    found = {"findings": table_from_rows("findings", rows)}
    if trace is None or workspace.rows("channel"):
        return FlightFindings(found)
    return FlightFindings({**found, "channel": trace.channel}, {"channel": _extract_command(flow, workspace)})


def _extract_command(flow: Flow, workspace: Workspace) -> tuple[str, ...]:
    from hindflight.toolkit.text import name_to_text

    source = name_to_text(workspace.path)
    return ("hindflight", "channel", "extract", source, "--flow", str(flow.number), "-o", "channel.parquet")


def _findings_on(flow: Flow, workspace: Workspace) -> tuple[Rows, Trace | None]:
    import pyarrow.compute as pc

    from hindflight.replay.experiment.interruptions import PLACE_NAMES, interruption_rows
    from hindflight.replay.experiment.stretches import stretch_rows
    from hindflight.replay.experiment.summary import key_numbers, losses_of_capture

    trace, without = _link(flow, workspace)
    estimates = () if trace is None else trace.estimates
    places = workspace.table("telemetry", ("name", "t_ns", "value"), pc.field("name").isin(PLACE_NAMES))
    blocks = flight_blocks(flow)
    broken: Rows = []
    if trace is not None:
        broken = interruption_rows(trace.channel, flow.tables["segments"], flow.direction, places)
    outcome = _outcome(flow)
    rows = [*_which(flow, workspace), *_where(flow)]
    rows += [_row("summary", "goodput", _goodput(outcome, trace, blocks))] if outcome else []
    rows += [_row("summary", "losses", losses_of_capture(trace))] if trace else []
    rows += flight_sentences(flow, trace, places, blocks)
    rows += broken[:1]
    rows += [_row("summary", "", "Packets are numbered as Wireshark numbers them. " + _behind(flow, workspace))]
    rows += broken[1:]
    rows += key_numbers(outcome, estimates, blocks) if outcome else []
    rows += stretch_rows(trace.stretches) if trace else []
    rows += [_row("unknown", "link", without)] if without else []
    return [*rows, *(_row("unknown", "", text) for text in (trace.unknowns if trace else ()))], trace


def flight_blocks(flow: Flow) -> dict[str, Interval]:
    """Return the intervals of the blocks of a captured flow by metric, without those that its capture does not show."""
    from hindflight.replay.experiment.change import flight_intervals

    blocks = flight_intervals(flow.tables["segments"], flow.direction)
    if flow.row["vantage"] == "receiver":  # Its round trips are those within the receiver's host.
        blocks.pop("rtt", None)
    return blocks


def numbered_in(flow: Flow, name: str) -> dict[str, Any]:
    """Return the row of the summary that says where the packets of the flow are found: in the input called `name`."""
    text = f"Packets are numbered as Wireshark numbers them in {name}."
    if flow.rebuilt:
        text = (
            "The capture was taken at the receiver: losses, times, round trips, and what limited the sender, are those "
            f"of {name}, which was rebuilt from it; the list of what is not known says how exactly. {text}"
        )
    return _row("summary", "", text)


def flight_sentences(
    flow: Flow, trace: Trace | None, positions: pa.Table | None, blocks: Mapping[str, Interval]
) -> Rows:
    """Return rows of the summary on a captured flow: when and where it was, what limited it, what it retransmitted, and
    its round trips. Where it is not known what limited it, a row of section `unknown` says so.

    `positions` are the rows of `telemetry` that have the place of the platform, `blocks` the intervals of the blocks of
    the flow by metric.
    """
    limits, unlimited = _limits(flow)
    rows = [_row("summary", "", _when_and_where(flow, positions))]
    rows += [_row("summary", "limits", limits)] if limits else []
    rows += [_row("unknown", "", unlimited)] if unlimited else []
    rows += [_row("summary", "retransmissions", _retransmissions(flow))]
    return rows + [_row("summary", "rtt", text) for text in _round_trips(flow, trace, blocks.get("rtt"))]


def _when_and_where(flow: Flow, positions: pa.Table | None) -> str:
    """Say from when to when the flow was captured and, if a flight log says it, from where to where."""
    from hindflight.replay.experiment.interruptions import NOT_LOGGED, place_text, places_of, utc_text

    ends = int(flow.row["start_ns"]), int(flow.row["end_ns"])
    start, end = (utc_text(t_ns) for t_ns in ends)
    shown = end[11:] if end[:10] == start[:10] else end
    said = f"The flow {'lasted, as rebuilt,' if flow.rebuilt else 'was captured'} from {start} to {shown} UTC"
    logged = places_of(positions)
    places = {when: place_text(logged, t_ns) for when, t_ns in zip(("first", "last"), ends, strict=True) if logged}
    known = {when: place for when, place in places.items() if place != NOT_LOGGED}
    if len(known) == len(ends):
        where = f"; the platform flew from {known['first']} to {known['last']}"
    else:
        where = "".join(f"; at its {when} packet the platform was at {place}" for when, place in known.items())
    return f"{said}{where}."


def _row(section: str, metric: str, text: str) -> dict[str, Any]:
    return {"section": section, "subject": "capture", "metric": metric, "unit": "", "verdict": "info", "text": text}


def _which(flow: Flow, workspace: Workspace) -> Rows:
    """Name the flow that the findings are on, where there are several."""
    flows = workspace.rows("flows")
    if flows < 2:
        return []
    return [
        _row("summary", "", f"The findings are on flow {flow.number}, which carried the most data of {flows:,} flows.")
    ]


def _where(flow: Flow) -> Rows:
    """Say what a capture lacks that was not taken at the data sender."""
    if flow.row["vantage"] != "receiver":
        return []
    text = (
        "The capture was taken at the receiver: it lacks the packets that were lost, what limited the sender, and the "
        f"round trips. To get them, {rebuild_hint(flow.number)}."
    )
    return [_row("summary", "", text)]


def _behind(flow: Flow, workspace: Workspace) -> str:
    from hindflight.toolkit.text import name_to_text, shell_line

    command = shell_line(["hindflight", "verdicts", name_to_text(workspace.path), "--flow", str(flow.number)])
    return f"Every packet with its evidence: {command}"


def _link(flow: Flow, workspace: Workspace) -> tuple[Trace | None, str]:
    """Return the extracted link of a flow, or why there is none."""
    from hindflight.captured_link import extract_channel, trace_of

    packets = _packets_of_capture(flow, workspace)
    if packets > MAX_LINK_PACKETS:
        return None, (
            f"The link of the flow was not extracted: its capture has {packets:,} TCP packets, and a report reads "
            f"up to {MAX_LINK_PACKETS:,}. `hindflight channel extract` has no such limit."
        )
    try:
        return trace_of(extract_channel(flow, workspace), workspace, flow), ""
    except ChannelError as error:
        return None, f"The link of the flow is not known: {error}."


def _packets_of_capture(flow: Flow, workspace: Workspace) -> int:
    """Return the number of TCP packets in the capture of a flow: those of other flows count as traffic of the link."""
    import pyarrow.compute as pc

    captured = pc.field("run_id") == 0
    flows = workspace.table("flows", ("flow_id",), captured & (pc.field("input_id") == flow.row["input_id"]))
    return workspace.count("segments", captured & pc.field("flow_id").isin(flows["flow_id"]))


def _outcome(flow: Flow) -> Any:
    """Return what the flow achieved until its last new data was acknowledged; None without data or ACKs."""
    import pyarrow.compute as pc

    from hindflight.replay.outcome import measure, transfer_span

    tables, direction = flow.tables, flow.direction
    span = transfer_span(tables["segments"], direction)
    segments = tables["segments"]
    acks = segments.filter(pc.not_equal(segments["direction"].cast("string"), direction))
    acks = acks.filter(acks["ack"].is_valid())
    if span is None or not acks.num_rows:
        return None
    data = segments.filter(pc.equal(segments["direction"].cast("string"), direction))
    data = data.filter(pc.greater(data["payload_bytes"], 0))
    # Without the ACK of a FIN, which an application may send long after its last data.
    acked = min(pc.max(pc.add(data["seq"], data["payload_bytes"])).as_py(), pc.max(acks["ack"]).as_py())
    last_ns = pc.min(acks.filter(pc.greater_equal(acks["ack"], acked))["t_ns"]).as_py()
    if last_ns <= span[0]:
        return None
    return measure(segments, tables["events"], tables["instruments"], direction, last_ns - span[0])


def _goodput(outcome: Any, trace: Trace | None, blocks: Mapping[str, Interval]) -> str:
    from hindflight.replay.experiment.summary import goodput_of_capture

    by_name = {estimate.name: estimate for estimate in trace.estimates} if trace else {}
    return goodput_of_capture(outcome, by_name.get("rate_bps"), trace.stretches if trace else (), blocks)


def _limits(flow: Flow) -> tuple[str, str]:
    """Return what limited the sender, as a sentence, or why that is not known."""
    from hindflight.captured_link import limits_of_flow

    try:
        shares = limits_of_flow(flow).shares()
    except HindflightError as error:
        return "", f"What limited the sender is not known: {error}."
    named = sorted((share, name) for name, share in shares.items() if share >= MIN_LIMIT_SHARE)[::-1]
    parts = [f"{100 * share:.0f} % {LIMITED_BY[name]}" for share, name in named]
    return (f"What limited its sender, by time: {', '.join(parts)}." if parts else ""), ""


def _retransmissions(flow: Flow) -> str:
    """Say how many segments were retransmitted, why, and how many of them were not needed. A record of several segments
    counts as these, as in `flows`."""
    from hindflight.replay.outcome import segments_of_records

    events = [row for row in flow.tables["events"].to_pylist() if row["direction"] == flow.direction]
    resent = [row for row in events if row["kind"] == "retransmission"]
    timeouts = sum(row["kind"] == "rto" for row in events)
    timed_out = f"It had {timeouts:,} retransmission timeout{'' if timeouts == 1 else 's'}" if timeouts else ""
    if not resent:
        return f"It retransmitted nothing.{f' {timed_out}.' if timed_out else ''}"
    sent, repeated = (flow.row[f"{flow.direction}_{name}"] for name in ("data_segments", "retransmitted_segments"))
    of_record = segments_of_records(flow.tables["segments"], flow.direction)
    causes: Counter[str] = Counter()
    needed: Counter[bool | None] = Counter()
    for row in resent:
        segments_n = of_record.get(row["record"], 1)
        causes[row["mechanism"] or "unknown"] += segments_n
        needed[row["spurious"]] += segments_n
    parts = [f"{count:,} {RESENT.get(name, name)}" for name, count in causes.most_common()]
    spurious, open_ones = needed[True], needed[None]
    were = "One of them was" if spurious == 1 else f"{spurious:,} of them were"
    need = f"{were} spurious: the receiver had the data already" if spurious else "None was spurious"
    need += f"; of {open_ones:,} that is not known" if open_ones else ""
    records = [row["record"] for row in resent]
    where = f"packet {records[0]}" if len(records) == 1 else f"packets {min(records)} to {max(records)}"
    return (
        f"It retransmitted {repeated:,} of {sent:,} data segments, {100 * repeated / sent:.2g} % ({where}): "
        f"{', '.join(parts)}. {need}. {timed_out or 'It had no retransmission timeout'}."
    )


def _round_trips(flow: Flow, trace: Trace | None, mean: Interval | None) -> Iterator[str]:
    """Say what the round trips were, and how much of them is propagation."""
    import numpy as np
    import pyarrow.compute as pc

    from hindflight.reports.numbers import interval, quantity

    if flow.row["vantage"] == "receiver":  # Its round trips are those within the receiver's host.
        return
    segments = flow.tables["segments"]
    back = pc.not_equal(segments["direction"].cast("string"), flow.direction)
    timed = segments.filter(pc.and_(back, pc.is_valid(segments["rtt_ns"])))
    if not timed.num_rows:
        return
    rtt_ns = timed["rtt_ns"].to_numpy()
    low, middle, high = (quantity(float(np.percentile(rtt_ns, q)), "ns") for q in (0, 50, 95))
    worst = int(rtt_ns.argmax())
    longest = f"{quantity(float(rtt_ns[worst]), 'ns')} (packet {timed['record'][worst].as_py()})"
    since = "Its round trips" if flow.row["vantage"] == "sender" else "Round trips from the place of the capture"
    since = "Its round trips, as rebuilt," if flow.rebuilt else since
    said = f"{since} took {low} to {longest}; the median is {middle}, the 95th percentile {high}"
    if mean is not None:
        ends = interval(mean.low, mean.high, "ns")
        exact = ", without the error of the rebuilt times" if flow.rebuilt else ""
        said += f", the mean over equal parts of the flow {quantity(mean.mean, 'ns', (mean.low, mean.high))}"
        said += f" (95 % interval {ends}{exact})" if ends else ""
    bases = _propagation(trace)
    if not bases:
        yield f"{said}."
        return
    shown = []
    for base in (bases[0], bases[-1])[: len(bases)]:
        ends = interval(base.low, base.high, "ns")
        value = quantity(base.value, "ns", (base.low, base.high))
        shown.append(f"{value}{f' (95 % interval {ends})' if ends else ''}")
    of_each = f"Of each, propagation takes {shown[0]}"
    if len(shown) > 1:
        of_each = f"The delay of the path changed: of each, propagation takes between {' and '.join(shown)}"
    yield f"{said}. {of_each}; the rest is time in queues."


def _propagation(trace: Trace | None) -> list[Estimate]:
    """Return the propagation delays of both directions, the smallest first: one, or one of each stretch of the link."""
    if trace is None:
        return []
    of_stretches = [stretch.estimate("base_rtt_ns") for stretch in trace.stretches]
    known = [base for base in of_stretches if base.known and base.value is not None]
    known.sort(key=lambda base: base.value or 0.0)
    if known and known[0].excludes(known[-1]):
        return known
    return [base for base in trace.estimates if base.name == "base_rtt_ns" and base.known and base.value is not None]
