"""The workflow that the API and the command line share: extract a channel, draft a scenario, replay, report.

Puts the packages together; each step is theirs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from hindflight.captured_link import extract_channel, limits_of_sent, trace_of
from hindflight.toolkit.errors import AT_SENDER

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.channels.trace import Trace
    from hindflight.charts_ahead import Charts
    from hindflight.replay.experiment.experiment import Execution, ExperimentResult
    from hindflight.replay.scenario.from_capture import CapturedSender, Choice
    from hindflight.replay.scenario.model import Scenario
    from hindflight.reports.sections import Figure
    from hindflight.toolkit.capture_writer import Progress
    from hindflight.toolkit.captured_flow import Flow
    from hindflight.toolkit.ingest import SpanOf
    from hindflight.toolkit.source import Tables
    from hindflight.toolkit.workspace import Workspace


MIN_SHARE = 0.01
"""Data of another flow, as a share of the flow under test, from which it is replayed too."""

MAX_FLOWS = 8
"""Other flows that are replayed; the time that a run takes grows with them."""

MIN_CANDIDATE = 0.05
"""Probability from which a candidate for the captured variant is replayed in the self-check."""


def write_draft(workspace: Workspace, flow: Flow, path: Path, choice: Choice, *, force: bool = True) -> Path:
    """Extract the flow's channel and write a scenario drafted from it to `path`; return the path of the trace.

    ScenarioError: an unknown variant was chosen. ChannelError: the capture does not determine the channel.
    MachineError: disk full.
    Without `force` HindflightError if one of the two files may not be replaced (toolkit/files.py).
    """
    from hindflight.channels.trace import write_trace
    from hindflight.replay.controllers.base import variant_names
    from hindflight.replay.scenario.from_capture import check_choice, draft_from_capture
    from hindflight.replay.scenario.model import parse_scenario
    from hindflight.toolkit.captured_flow import read_flows_on_path
    from hindflight.toolkit.files import check_outputs, write_whole
    from hindflight.toolkit.seal import SEAL_NOTE, sealed
    from hindflight.toolkit.text import name_to_text

    check_choice(choice)
    # The flows that share the path are replayed, too: the losses by position are those of all of them.
    extraction = extract_channel(flow, workspace, whole_link=True)
    trace_path = draft_files(path)[1]
    check_outputs(draft_files(path), (), force=force)
    trace = trace_of(extraction, workspace, flow)
    sender = _captured_sender(workspace, flow)
    others = [_captured_sender(workspace, other) for other in read_flows_on_path(workspace, flow, MIN_SHARE, MAX_FLOWS)]
    text = draft_from_capture(sender, trace, name_to_text(trace_path.name), choice, others)
    parse_scenario(tomllib.loads(text), "the drafted scenario", variant_names())
    write_trace(trace, trace_path)
    write_whole(path, sealed(f"{text}# {SEAL_NOTE}\n".encode()))
    return trace_path


def _captured_sender(workspace: Workspace, flow: Flow) -> CapturedSender:
    """Return what a draft needs of a captured flow, with its congestion control as far as its packets show it."""
    from hindflight.proxy_signs import proxy_signs
    from hindflight.replay.experiment.identify import UNKNOWN, Sender, identify_variant
    from hindflight.replay.scenario.captured_application import captured_writes, sent_data, waits_of
    from hindflight.replay.scenario.from_capture import CapturedSender, stack_of
    from hindflight.toolkit.captured_flow import input_of, place_of

    source = input_of(workspace, flow)
    segments = flow.tables["segments"]
    stack = stack_of(segments, flow.direction, flow.row)
    sent = sent_data(segments, flow.direction, stack.mss_bytes)
    sender = CapturedSender(
        flow_id=flow.flow_id,
        number=flow.number,
        place=place_of(workspace, flow),
        direction=flow.direction,
        row=flow.row,
        stack=stack,
        sent=sent,
        input_name=source.name,
        input_sha256=source.sha256,
        proxy_signs={one.name: one.evidence for one in proxy_signs(flow, changed=False)},
        receiver_share=limits_of_sent(flow, sent).shares()["receiver"] if len(sent.ack_t_ns) else 0.0,
    )
    waits, writes = waits_of(sent), captured_writes(sent)
    steady = writes is not None and writes.times_departures
    sizes = stack.mss_bytes, stack.header_bytes
    sack, rebuilt = stack.sack is not False, bool(flow.rebuilt)
    described = Sender(*sizes, sack, stack.initial_window_pkts, steady_writes=steady, rebuilt=rebuilt)
    named = identify_variant(segments, flow.tables["events"], flow.direction, described, waits)
    likely = {name: share for name, share in named.candidates.items() if share >= MIN_CANDIDATE}
    if named.name == UNKNOWN:
        return replace(sender, candidates=likely)
    return replace(sender, variant=named.name, probability=named.probability, candidates=likely)


def draft_files(path: Path) -> tuple[Path, Path]:
    """Return the files that `write_draft` writes for `path`: the scenario and its trace."""
    return path, path.with_suffix(".channel.parquet")


def replay_into(
    workspace: Workspace,
    scenario: Scenario,
    folder: Path,
    command: str,
    execution: Execution,
    on_compared: Callable[[Mapping[str, pa.Table]], None] | None = None,
) -> ExperimentResult:
    """Replay a scenario into the workspace, in place of an earlier replay, with findings for the report.

    The self-check needs the captured flow in the workspace; without it there is none, and the findings say so.
    `on_compared` gets the tables as soon as they lack nothing but the findings that cost further runs, for which it
    leaves one thread less.
    """
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow as pa
    import pyarrow.compute as pc

    from hindflight.flight_findings import flight_blocks, flight_sentences, numbered_in
    from hindflight.replay.experiment.experiment import CapturedFlow, replay_scenario
    from hindflight.replay.experiment.findings import findings_of_more_runs, known_findings
    from hindflight.replay.experiment.interruptions import PLACE_NAMES
    from hindflight.replay.experiment.run import thread_count
    from hindflight.toolkit.captured_flow import input_of
    from hindflight.toolkit.schema import table_from_rows

    flow = captured_flow(workspace, scenario)
    captured = None
    if flow is not None:
        tables = flow.tables
        positions = workspace.table("telemetry", ("name", "t_ns", "value"), pc.field("name").isin(PLACE_NAMES))
        captured = CapturedFlow(tables["segments"], tables["events"], tables["instruments"], flow.direction, positions)
    result = replay_scenario(scenario, folder, captured, execution)
    if captured is not None and flow is not None:
        trace = next(iter(result.traces.values()), None)
        entry = input_of(workspace, flow)
        if trace is not None and trace.source.get("sha256") == entry.sha256:
            flow = replace(flow, rebuilt=trace.source.get("rebuilt", ""))
        blocks = flight_blocks(flow)
        sentences = flight_sentences(flow, trace, captured.positions, blocks)
        captured = replace(captured, sentences=[*sentences, numbered_in(flow, entry.name)], blocks=blocks)
    known = known_findings(result, scenario, captured)
    replayed = {name: table for name, table in result.tables.items() if name != "findings"}
    if flow is not None and result.traces:
        channels = [_channel_of(flow, trace.channel) for trace in result.traces.values()]
        replayed["channel"] = pa.concat_tables(channels)
    threads = execution.threads
    if on_compared is not None:
        on_compared({**replayed, "findings": table_from_rows("findings", known)})
        threads = max(1, thread_count(threads) - 1)
    # The last runs leave Python idle, and writing does not keep all processors busy.
    with workspace.transaction(command, replay=True) as transaction, ThreadPoolExecutor(1) as pool:
        written = pool.submit(transaction.write_all, replayed)
        more = findings_of_more_runs(known, result, scenario, threads)
        written.result()
        result.tables["findings"] = table_from_rows("findings", [*known, *more])
        transaction.write("findings", result.tables["findings"])
    return result


def _channel_of(flow: Flow, channel: pa.Table) -> pa.Table:
    """Return the rows of a channel without the packets of other flows."""
    import pyarrow.compute as pc

    record = channel["record"]
    own = pc.is_in(record, value_set=flow.tables["segments"]["record"].combine_chunks().cast(record.type))
    return channel.filter(pc.or_(pc.is_null(record), own))


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A what-if study: inputs, the folder for its results, the flow, what to compare, what of a capture to read."""

    inputs: list[Path]
    out: Path
    flow: int | None
    choice: Choice
    command: str
    span_of: SpanOf | None = None
    progress: Progress | None = None
    force: bool = False

    @property
    def scenario(self) -> Path:
        """The scenario that is drafted."""
        return self.out / "scenario.toml"

    @property
    def report(self) -> Path:
        """The report that is written."""
        return self.out / "report.html"

    @property
    def at_sender(self) -> Path:
        """What a capture at the receiver becomes: one at its sender."""
        return self.out / AT_SENDER


def experiment_from_capture(
    job: WhatIf, workspace: Workspace, execution: Execution, charts: Charts | None = None
) -> ExperimentResult:
    """Ingest the inputs, draft a scenario from the flow and replay it into the workspace; with `charts` those of the
    report are drawn meanwhile.

    CaptureError, LogError, ChannelError, ScenarioError: an input is wrong. MachineError: no room for the results.
    HindflightError if files of the draft may not be replaced (toolkit/files.py).
    """
    from hindflight.toolkit.capture_writer import silent
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.ingest import Ingest, all_of_it
    from hindflight.toolkit.sender_view.write import flow_at_sender

    ingest = Ingest(workspace, job.command, progress=job.progress or silent, span_of=job.span_of or all_of_it)
    captures = {entry.input_id for entry in ingest(job.inputs) if entry.kind == "capture"}
    chosen = flow_at_sender(ingest, read_flow(workspace, job.flow, captures), job.at_sender, force=job.force)
    write_draft(workspace, chosen, job.scenario, job.choice, force=execution.force)
    scenario = read_scenario(job.scenario)
    if charts is None:
        return replay_into(workspace, scenario, job.out, job.command, execution)
    charts.prepare()
    return replay_into(workspace, scenario, job.out, job.command, execution, charts.draw)


def study_capture(job: WhatIf, execution: Execution) -> tuple[ExperimentResult, Path]:
    """Run the experiment from the inputs and write the report; return the result and the path of the workspace.

    Raises as `experiment_from_capture` does.
    """
    from hindflight.charts_ahead import Charts
    from hindflight.replay.scenario.from_capture import check_choice
    from hindflight.toolkit.files import check_outputs
    from hindflight.toolkit.text import name_to_text
    from hindflight.toolkit.workspace import Workspace

    check_choice(job.choice)
    check_outputs([*draft_files(job.scenario), job.report, job.at_sender], job.inputs, force=job.force)
    job.at_sender.unlink(missing_ok=True)
    workspace = Workspace.open_or_create(job.out / "workspace")
    title = f"{name_to_text(job.inputs[0].name)}: what happened, and what if"
    with Charts(workspace) as charts:
        result = experiment_from_capture(job, workspace, execution, charts)
        write_report_of(workspace, job.report, title, utc=False, force=job.force, drawn=charts.drawn())
    return result, workspace.path


def captured_flow(workspace: Workspace, scenario: Scenario) -> Flow | None:
    """Return the flow that the scenario was drafted from, if its capture is in the workspace."""
    from hindflight.toolkit.captured_flow import read_flow

    if scenario.captured is None:
        return None
    source = workspace.find_input(scenario.captured.sha256)
    return read_flow(workspace, scenario.captured.flow_id, (source.input_id,)) if source else None


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file; ScenarioError names the key path and what is allowed."""
    from hindflight.replay.controllers.base import variant_names
    from hindflight.replay.scenario.model import load_scenario

    return load_scenario(path, variant_names())


def write_report_of(
    workspace: Workspace,
    path: Path,
    title: str,
    utc: bool,
    *,
    force: bool = True,
    drawn: Mapping[str, Figure] = MappingProxyType({}),
) -> None:
    """Write the report on a workspace: HTML, or by the suffix of `path` Markdown (.md), PDF or JSON. `drawn` holds
    charts of it that have been drawn already.

    MachineError where the file cannot be written, or Chromium is missing for a PDF. Without `force` HindflightError if
    it may not be replaced (toolkit/files.py).
    """
    from hindflight.documents import Wanted, write_documents

    write_documents([workspace], Wanted(path, title=title, utc=utc, force=force, drawn=drawn))


def replay_file(path: Path | str, *captures: Path | str, threads: int | None = None) -> Tables:
    """Replay the scenario file at `path` and return the tables, which last as long as the object.

    `captures` (and kernel logs) are read first; the self-check needs the one that the scenario was drafted from.
    ScenarioError, CaptureError, ChannelError: an input is wrong. MachineError: no room for the tables.
    """
    from hindflight.replay.experiment.experiment import Execution
    from hindflight.toolkit.ingest import Ingest
    from hindflight.toolkit.source import temporary_tables
    from hindflight.toolkit.text import name_to_text

    scenario = read_scenario(Path(path))
    tables = temporary_tables()
    command = f"replay {name_to_text(str(path))}"
    try:
        Ingest(tables.workspace, command)([Path(capture) for capture in captures])
        execution = Execution(threads)
        replay_into(tables.workspace, scenario, Path(path).parent, command, execution)
    except BaseException:
        tables.close()
        raise
    return tables


def what_if(capture: Path, logs: Sequence[Path], flow: int | None, choice: Choice, threads: int | None) -> Tables:
    """Study one flow of a capture: extract its channel, draft a scenario, replay it. Return the tables of all of it.

    CaptureError, LogError, ChannelError, ScenarioError: an input is wrong. MachineError: no room for the tables.
    """
    from hindflight.replay.experiment.experiment import Execution
    from hindflight.replay.scenario.from_capture import check_choice
    from hindflight.toolkit.source import temporary_tables

    check_choice(choice)
    tables = temporary_tables()
    out = tables.workspace.path.parent
    job = WhatIf([capture, *logs], out, flow, choice, f"what-if of {capture}", force=True)
    try:
        experiment_from_capture(job, tables.workspace, Execution(threads))
    except BaseException:
        tables.close()
        raise
    return tables


def channel_of(source: Path, flow: int | None, receiver: Path | None) -> Trace:
    """Extract the channel of one flow of a capture or workspace. CaptureError, WorkspaceError, ChannelError."""
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.source import open_source

    with open_source(source) as tables:
        chosen = read_flow(tables.workspace, flow)
        return trace_of(extract_channel(chosen, tables.workspace, receiver), tables.workspace, chosen)


def draft_of(source: Path, path: Path, flow: int | None, choice: Choice) -> Path:
    """Draft a scenario from one flow of a capture or workspace; return the path of its trace. See `write_draft`."""
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.source import open_source

    with open_source(source) as tables:
        return write_draft(tables.workspace, read_flow(tables.workspace, flow), path, choice)
