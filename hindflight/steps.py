"""The steps that several commands share: a flow out of a source, its channel, a drafted scenario, a replay, a report.

The composition root: it sees every room and puts their pieces together. The command line and `import hindflight` are
thin layers over it. No words for the person here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import HindflightError

if TYPE_CHECKING:
    import pyarrow as pa

    from channels.extract import Extraction
    from channels.trace import Trace
    from replay.draft import Stack, Value
    from replay.scenario import Scenario
    from replay.study import CapturedFlow, Execution, Study
    from toolkit.manifest import Input
    from toolkit.source import Tables
    from toolkit.workspace import Workspace

FLOW_TABLES = ("segments", "flows", "events", "instruments")


@dataclass(frozen=True, slots=True)
class Flow:
    """One captured flow of a workspace with its rows of each table; `number` is what the user calls it."""

    flow_id: int
    number: int
    row: dict[str, Any]
    tables: dict[str, pa.Table]

    @property
    def direction(self) -> str:
        """The direction of its data."""
        return str(self.row["data_direction"])

    def of_data(self, name: str) -> Any:
        """Value of column `name` of `flows` for the data's direction."""
        return self.row[f"{self.direction}_{name}"]

    def captured(self) -> CapturedFlow:
        """The flow as the self-check reads it."""
        from replay.study import CapturedFlow

        return CapturedFlow(self.tables["segments"], self.tables["events"], self.tables["instruments"], self.direction)


def read_flow(workspace: Workspace, flow_id: int | None, inputs: Collection[int] | None = None) -> Flow:
    """Read one captured flow; without a number the one with most data. HindflightError if there is none such.

    `flow_id` is the number in the workspace. With `inputs` (input ids) only their flows are looked at, and `flow_id`
    counts from 1 among them, as `hindflight flows` numbers the flows of a capture by itself.
    """
    import pyarrow.compute as pc

    flows = workspace.table("flows", where=pc.field("run_id") == 0).sort_by("flow_id").to_pylist()
    if inputs is not None:
        flows = [row for row in flows if row["input_id"] in inputs]
    numbers = {row["flow_id"] if inputs is None else at: row for at, row in enumerate(flows, 1)}
    numbers = {n: row for n, row in numbers.items() if row["a2b_data_segments"] + row["b2a_data_segments"] > 0}
    where = ", ".join(entry.name for entry in workspace.inputs if inputs is None or entry.input_id in inputs)
    if not numbers:
        raise HindflightError(f"{where} holds no flow that carries data", "see what is in it: hindflight info CAPTURE")
    if flow_id is None:
        flow_id = max(numbers, key=lambda n: numbers[n]["a2b_payload_bytes"] + numbers[n]["b2a_payload_bytes"])
    if flow_id not in numbers:
        known = ", ".join(str(n) for n in list(numbers)[:10])
        raise HindflightError(f"{where} has no flow {flow_id} with data", f"flows with data: {known}")
    row = numbers[flow_id]
    here = (pc.field("run_id") == 0) & (pc.field("flow_id") == row["flow_id"])
    tables = {name: workspace.table(name, where=here) for name in FLOW_TABLES}
    return Flow(row["flow_id"], flow_id, row, tables)


def place_of(workspace: Workspace, flow: Flow) -> int:
    """Return the flow's number among those of its own input, from 1: it holds in every workspace."""
    import pyarrow.compute as pc

    here = (pc.field("run_id") == 0) & (pc.field("input_id") == flow.row["input_id"])
    ids = sorted(workspace.table("flows", ("flow_id", "run_id", "input_id"), here)["flow_id"].to_pylist())
    return ids.index(flow.flow_id) + 1


def extract_channel(flow: Flow, workspace: Workspace, receiver: Path | None = None) -> Extraction:
    """Extract the channel that the flow's data met, beside what else its capture holds; `receiver` is a capture of the
    same time at the data receiver. ChannelError where the captures cannot tell."""
    import pyarrow.compute as pc

    from channels.arrivals import arrivals_of
    from channels.crossing import SEGMENT_COLUMNS, crossing_of
    from channels.extract import Beside, extract
    from toolkit.capture import load_capture

    input_id = flow.row["input_id"]
    here = (pc.field("run_id") == 0) & (pc.field("input_id") == input_id)
    flows = workspace.table("flows", where=here)
    beside = (pc.field("run_id") == 0) & pc.field("flow_id").isin(flows["flow_id"])
    segments = workspace.table("segments", SEGMENT_COLUMNS, beside & (pc.field("flow_id") != flow.flow_id))
    events = workspace.table("events", ("kind", "record"), beside & (pc.field("flow_id") != flow.flow_id))
    others = workspace.table("others", where=pc.field("input_id") == input_id)
    crossing = crossing_of(flow.row, segments, flows, events, others)
    arrivals = None
    if receiver is not None:
        there = load_capture(receiver)
        arrivals = arrivals_of(flow.row, flow.tables["segments"], there.flows, there.segments)
    own = flow.tables
    return extract(own["segments"], own["flows"], own["events"], flow.flow_id, Beside(crossing, arrivals))


def trace_of(extraction: Extraction, workspace: Workspace, flow: Flow) -> Trace:
    """Return the extraction as a trace that says which input and flow it came from."""
    from channels.trace import Trace

    source = input_of(workspace, flow)
    return Trace(
        channel=extraction.channel,
        estimates=extraction.estimates,
        unknowns=extraction.unknowns,
        counts=extraction.counts,
        source={"name": source.name, "sha256": source.sha256, "flow_id": str(flow.flow_id)},
    )


def input_of(workspace: Workspace, flow: Flow) -> Input:
    """Return the input that the flow was read from."""
    return next(entry for entry in workspace.inputs if entry.input_id == flow.row["input_id"])


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person may choose of a drafted scenario; the rest comes from the capture."""

    variants: tuple[str, ...] = ("newreno", "cubic")
    proxies: tuple[str, ...] = ("none", "relay")
    seeds: int = 20
    captured_variant: str = "auto"


def write_draft(workspace: Workspace, flow: Flow, path: Path, choice: Choice) -> Path:
    """Extract the flow's channel and write a scenario drafted from it to `path`; return the trace beside it.

    ScenarioError: an unknown variant was chosen. ChannelError: the capture does not tell. MachineError: no room.
    """
    from channels.trace import write_trace
    from replay.run import variant_names
    from replay.scenario import parse_scenario
    from toolkit.files import write_whole

    check_choice(choice)
    extraction = extract_channel(flow, workspace)
    trace_path = path.with_suffix(".channel.parquet")
    trace = trace_of(extraction, workspace, flow)
    text = draft(workspace, flow, trace, trace_path.name, choice)
    parse_scenario(tomllib.loads(text), "the drafted scenario", variant_names())
    write_trace(trace, trace_path)
    write_whole(path, text)
    return trace_path


def draft(workspace: Workspace, flow: Flow, trace: Trace, trace_file: str, choice: Choice) -> str:
    """Return the text of a scenario drafted from the capture; the trace is in `trace_file` beside it."""
    from replay.draft import Draft, Value, draft_scenario
    from replay.history import history_of
    from replay.jobs import default_block_pkts
    from replay.outcome import transfer_span
    from replay.study import loss_trace

    span = transfer_span(flow.tables["segments"], flow.direction)
    if span is None:
        raise HindflightError(f"flow {flow.flow_id} carries no data, so there is nothing to replay")
    source = input_of(workspace, flow)
    stack = sender_of(flow)
    round_trip = known_value(trace, "base_rtt_ns") or known_value(trace, "min_rtt_ns")
    if round_trip is None:
        raise HindflightError(f"flow {flow.flow_id} has no round-trip time, so its path cannot be drafted")
    rate = known_value(trace, "rate_bps")
    history = history_of(trace, "a2b" if flow.direction == "a2b" else "b2a")
    if history.states > 1:
        first = "what held at first; it changed later, see changes"
        round_trip = Value(history.round_trip_ns, None, None, first)
        rate = None if history.rate_bps is None else Value(history.rate_bps, None, None, first)
    return draft_scenario(
        Draft(
            name=f"{source.name}, flow {flow.number}",
            duration_ns=span[1] - span[0],
            trace_file=trace_file,
            block_pkts=default_block_pkts(loss_trace(trace, trace_file)),
            rate=rate,
            round_trip=round_trip,
            queue=known_value(trace, "queue_limit_pkts"),
            stack=stack,
            input_name=source.name,
            input_sha256=source.sha256,
            flow_id=place_of(workspace, flow),
            variant=choice.captured_variant,
            variants=choice.variants,
            proxies=choice.proxies,
            seeds=choice.seeds,
            changes=history.changes,
            unknowns=(*trace.unknowns, *ASSUMED, *history.unknowns),
        )
    )


ASSUMED = (
    "Where a proxy could stand is not in the capture: it is put midway, and all losses and the queue before it.",
    "The replayed sender always has data to send; pauses of the captured application are not replayed.",
)
"""What a drafted scenario assumes beyond what the extraction says it does not know."""


def known_value(trace: Trace, name: str) -> Value | None:
    """Return an estimate as the draft wants it; None where the capture gives no value."""
    from replay.draft import Value

    estimate = trace.estimate(name)
    if estimate is None or estimate.value is None:
        return None
    return Value(estimate.value, estimate.low, estimate.high, estimate.how)


def sender_of(flow: Flow) -> Stack:
    """Read the sender's parameters off the captured segments: sizes, initial window, the receiver's buffer."""
    import pyarrow.compute as pc

    from replay.draft import Stack

    segments = flow.tables["segments"]
    ours = pc.equal(segments["direction"].cast("string"), flow.direction)
    data = segments.filter(pc.and_(ours, pc.greater(segments["payload_bytes"], 0)))
    acks = segments.filter(pc.invert(ours))
    headers = pc.mode(pc.subtract(data["ip_bytes"], data["payload_bytes"]), 1)[0]["mode"].as_py()
    first_octet = pc.min(data["seq"]).as_py()
    answers = acks.filter(pc.greater(acks["ack"], first_octet))["t_ns"]
    answered_ns = pc.min(answers).as_py() if len(answers) else None
    before = data if answered_ns is None else data.filter(pc.less(data["t_ns"], answered_ns))
    from_the_start = flow.row["syn"] or flow.row["syn_ack"]
    window = pc.max(acks["wnd_bytes"]).as_py()
    return Stack(
        mss_bytes=int(flow.of_data("max_segment_bytes")),
        header_bytes=int(headers),
        initial_window_pkts=max(1, before.num_rows) if from_the_start else None,
        receive_buffer_bytes=None if window is None else int(window),
    )


def replay_into(workspace: Workspace, scenario: Scenario, folder: Path, command: str, execution: Execution) -> Study:
    """Replay a scenario into the workspace, in place of an earlier replay, with findings for the report.

    The self-check needs the captured flow in the workspace; without it there is none, and the findings say so.
    """
    from replay.spread import spread_findings
    from replay.study import replay_scenario
    from replay.summary import key_numbers, summary, summary_without_capture
    from toolkit.schema import table_from_rows

    flow = captured_flow(workspace, scenario)
    study = replay_scenario(scenario, folder, flow.captured() if flow else None, execution)
    rows, runs = study.tables["findings"].to_pylist(), study.tables["runs"].to_pylist()
    if study.captured is not None and study.traces:
        trace = next(iter(study.traces.values()))
        rows = [
            *summary(study.captured, trace.estimates, trace.counts, study.candidates, rows, runs),
            *key_numbers(study.captured, trace.estimates),
            *rows,
        ]
    elif study.captured is None:
        rows = [*summary_without_capture(rows, runs), *rows]
    if study.traces:
        rows += spread_findings(scenario, folder, threads=execution.threads)
    study.tables["findings"] = table_from_rows("findings", rows)
    with workspace.transaction(command, replay=True) as transaction:
        for name, table in study.tables.items():
            transaction.write(name, table)
        if flow is not None:
            for trace in study.traces.values():
                transaction.write("channel", trace.channel)
    return study


def captured_flow(workspace: Workspace, scenario: Scenario) -> Flow | None:
    """Return the flow that the scenario was drafted from, if its capture is in the workspace."""
    if scenario.captured is None:
        return None
    source = workspace.find_input(scenario.captured.sha256)
    return read_flow(workspace, scenario.captured.flow_id, (source.input_id,)) if source else None


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file; ScenarioError names the key path and what is allowed."""
    from replay.run import variant_names
    from replay.scenario import load_scenario

    return load_scenario(path, variant_names())


def check_choice(choice: Choice) -> None:
    """Refuse an unknown variant on the command line, with the nearest name. ScenarioError."""
    from replay.run import variant_names
    from replay.scenario import check_variant

    known = variant_names()
    for name in choice.variants:
        check_variant("--variants", name, known)
    if choice.captured_variant != "auto":
        check_variant("--captured-variant", choice.captured_variant, known)


def write_report_of(workspace: Workspace, path: Path, title: str, utc: bool) -> None:
    """Write the report on a workspace. MachineError where the file cannot be written."""
    from reports.document import ReportMeta, write_report
    from toolkit.schema import TABLES

    tables = {name: workspace.table(name) for name in TABLES}
    manifest = workspace.manifest
    newest = manifest.commands[-1].versions if manifest.commands else {}
    commands = {c.command: c for c in manifest.commands}  # one that read several inputs is there once for each
    meta = ReportMeta(
        title=title,
        generated=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        manifest={
            "inputs": [
                {"name": i.name, "kind": i.kind, "size_bytes": i.size_bytes, "sha256": i.sha256, "note": i.note}
                for i in manifest.inputs
            ],
            "versions": newest,
            "commands": [{"command": c.command, "time_utc": c.time_utc} for c in commands.values()],
        },
        utc=utc,
    )
    write_report(tables, meta, path)


def replay_file(
    path: Path | str, *captures: Path | str, threads: int | None = None, pcap: Path | str | None = None
) -> Tables:
    """Replay the scenario file at `path` and return the tables, which last as long as the object.

    `captures` (and kernel logs) are read first; the self-check needs the one that the scenario was drafted from. With
    `pcap`, captures of the recorded runs are written to that folder.
    ScenarioError, CaptureError, ChannelError: an input is wrong. MachineError: no room for the tables.
    """
    from replay.study import Execution
    from toolkit.ingest import Ingest
    from toolkit.source import temporary_tables

    scenario = read_scenario(Path(path))
    tables = temporary_tables()
    try:
        Ingest(tables.workspace, f"replay {path}")([Path(capture) for capture in captures])
        execution = Execution(threads, captures=None if pcap is None else Path(pcap))
        replay_into(tables.workspace, scenario, Path(path).parent, f"replay {path}", execution)
    except BaseException:
        tables.close()
        raise
    return tables
