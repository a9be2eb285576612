"""A whole replay: self-check first, then the comparison, into tables with their findings.

Depends on scenarios, jobs and tables, not on workspaces, captures or reports. Read docs/scenario.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.channels.formats import read_channel
from hindflight.channels.trace import Trace
from hindflight.replay.catalogue import catalogue
from hindflight.replay.experiment.capacity import capacity_of, has_no_upper_bound
from hindflight.replay.experiment.captures import capture_folder, place_captures
from hindflight.replay.experiment.compare import Forecast, Interval, compare_runs
from hindflight.replay.experiment.engine_inputs import (
    Job,
    plan_comparison,
    plan_repeats,
    plan_self_check,
    trace_files,
)
from hindflight.replay.experiment.run import Recording, check_jobs, measure_jobs, run_jobs, runnable
from hindflight.replay.experiment.selfcheck import (
    GOODPUT_BOUND,
    Candidate,
    Evidence,
    describe_self_check,
    rank_candidates,
    suspects_of,
)
from hindflight.replay.experiment.spread import spread_findings
from hindflight.replay.experiment.traffic import setup_findings, traffic_findings
from hindflight.replay.outcome import Outcome, measure, transfer_span
from hindflight.replay.scenario.loss_trace import LossTrace, loss_trace, recorded_others
from hindflight.replay.scenario.model import Scenario
from hindflight.replay.scenario.model import Trace as TraceLoss
from hindflight.replay.scenario.profiles import parameters_of
from hindflight.toolkit.errors import ChannelError, ScenarioError
from hindflight.toolkit.schema import run_subject, table_from_rows
from hindflight.toolkit.text import name_from_text

if TYPE_CHECKING:
    import pyarrow as pa

    Tables = Mapping[str, pa.Table]

Progress = Callable[[int, int], None]
"""Called with the jobs done and the jobs in all."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How runs are made, which no table depends on: threads, a callback for progress, the folder for captures of the
    recorded runs of the comparison, if they are wanted, and whether they may replace others there."""

    threads: int | None = None
    on_progress: Progress = lambda _done, _all: None
    captures: Path | None = None
    force: bool = True


@dataclass(frozen=True, slots=True)
class CapturedFlow:
    """The captured flow that replays are compared with: its rows of each table, and its data direction; `positions`
    are those that flight logs have of the platform, rows of `telemetry`; `sentences` are rows of `findings` on the
    flight, `blocks` the intervals of its blocks by metric."""

    segments: pa.Table
    events: pa.Table
    instruments: pa.Table
    direction: str
    positions: pa.Table | None = None
    sentences: Sequence[dict[str, Any]] = ()
    blocks: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The result: tables by name (`runs`, `segments`, …, `findings`), the traces that were replayed by file name, what
    was replayed of them, the candidates of the self-check, best match first, and what happened, where there is a
    captured flow; the captures that were written; and the congestion control of a captured flow with its probability
    (`unknown`: the capture does not show it; no probability: it was given)."""

    tables: dict[str, pa.Table]
    traces: dict[str, Trace]
    losses: dict[str, LossTrace]
    candidates: list[Candidate]
    captured: Outcome | None
    reference: tuple[str, str]
    captures: tuple[Path, ...]
    variant: tuple[str, float | None] | None = None


def replay_scenario(
    scenario: Scenario,
    folder: Path,
    captured: CapturedFlow | None,
    execution: Execution,
) -> ExperimentResult:
    """Replay `scenario`, whose trace files are relative to `folder`.

    Raises ScenarioError, ChannelError (a trace cannot be used), MachineError (captures cannot be
    written). The tables depend on the scenario, the traces and
    `captured` alone.
    """
    import pyarrow as pa

    read = load_traces(scenario, folder)
    traces = {name: loss_trace(trace, name) for name, trace in read.items()}
    checks = [] if captured is None else runnable(scenario, plan_self_check(scenario, _candidates(scenario)), traces)
    planned = plan_comparison(scenario, _with_reference(scenario, None))
    # Before anything runs: an error in the last variant must not appear after the runs of all others.
    check_jobs(scenario, [*planned, *plan_comparison(scenario, tuple(scenario.variants))], traces)
    counter = _Counter(len(checks) + bool(checks) + len(planned), execution.on_progress)
    ranked: list[Candidate] = []
    happened: Outcome | None = None
    difference = shared = None
    rows: list[dict[str, Any]] = []
    parts: list[dict[str, pa.Table]] = []
    if captured is not None:
        happened = _captured_outcome(captured, scenario)
        as_captured = _with_others(scenario, read, traces, captured)
        checked, ranked = _self_check(scenario, dict(enumerate(checks, 1)), as_captured, happened, execution, counter)
        parts.append(checked)
        if as_captured is traces:
            difference = _carried_difference(scenario, read, checked["runs"], ranked[0].variant)
        else:
            jobs = plan_self_check(scenario, (ranked[0].variant,))
            (shared,) = _differences(scenario, jobs, traces, happened, execution, counter)
        repeats = _repeats(scenario, ranked[0], as_captured, happened, execution, counter)
        evidence = Evidence(difference, shared, repeats)
        suspects = suspects_of(scenario, ranked[0], evidence)
        rows += describe_self_check(happened, ranked, suspects, shared)
    variants = _with_reference(scenario, ranked[0].variant if ranked else None)
    jobs = plan_comparison(scenario, variants)
    counter.total += len(jobs) - len(planned)
    compared, captures = _compare(scenario, dict(enumerate(jobs, 1 + len(checks))), traces, execution, counter)
    parts.append(compared)
    tables = {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}
    reference = (variants[0], "none" if "none" in scenario.compare.proxies else scenario.compare.proxies[0])
    runs = tables["runs"].to_pylist()
    forecast = _forecast(scenario, traces, ranked, happened, shared)
    rows += compare_runs(runs, reference, forecast)
    rows += spread_findings(runs)
    rows += traffic_findings(runs)
    profiles = {flow.profile for flow in (scenario.flow, *scenario.flows)}
    rows += setup_findings(scenario, {profile: parameters_of(profile) for profile in profiles})
    rows += [_unknown(sentence) for sentence in (*scenario.unknowns, *_sent_beyond_trace(tables["runs"]))]
    tables["findings"] = table_from_rows("findings", rows)
    return ExperimentResult(tables, read, traces, ranked, happened, reference, captures, _captured_variant(scenario))


def _captured_variant(scenario: Scenario) -> tuple[str, float | None] | None:
    """Return the congestion control of the captured flow, and its probability."""
    captured = scenario.captured
    if captured is None:
        return None
    if captured.variant != "auto":
        return captured.variant, captured.probability
    return "unknown", max(captured.candidates.values(), default=0.0)


def _forecast(
    scenario: Scenario,
    traces: Mapping[str, LossTrace],
    ranked: list[Candidate],
    happened: Outcome | None,
    shared: float | None,
) -> Forecast | None:
    """Return what turns runs into predictions; None for a scenario that was not drafted from a captured transfer.

    A prediction replays other flows as TCP, so its misfit is that of such a replay, `shared`, where there are any.
    """
    if scenario.captured is None or scenario.captured.transfer is None:
        return None
    transfer_ns = scenario.captured.transfer
    captured_bps = happened.goodput_bps if happened is not None else None
    return Forecast(
        transfer_ns,
        captured_bps,
        shared if shared is not None else ranked[0].goodput_difference if ranked else None,
        capacity_of(scenario, traces, transfer_ns, captured_bps),
        has_no_upper_bound(traces),
    )


def _self_check(
    scenario: Scenario,
    jobs: dict[int, Job],
    traces: Mapping[str, LossTrace],
    happened: Outcome,
    execution: Execution,
    counter: _Counter,
) -> tuple[dict[str, pa.Table], list[Candidate]]:
    """Measure every candidate, then record the best match: return `runs` of all with its series, and the ranking."""
    import pyarrow as pa

    runs: list[pa.Table] = []

    def outcomes() -> Iterator[tuple[str, Outcome]]:
        for batch, measured in measure_jobs(scenario, jobs, traces, happened.duration_ns, execution.threads):
            runs.append(batch)
            counter.add(len(measured))
            yield from ((jobs[run_id].variant, outcome) for run_id, outcome in measured)

    likely = {} if scenario.captured is None else scenario.captured.candidates
    ranked = rank_candidates(happened, outcomes(), likely)
    best = {run_id: job for run_id, job in jobs.items() if job.variant == ranked[0].variant}
    recorded = run_jobs(scenario, best, traces, threads=execution.threads, on_done=counter.add)
    return {**recorded, "runs": pa.concat_tables(runs)}, ranked


def _with_others(
    scenario: Scenario, read: Mapping[str, Trace], traces: Mapping[str, LossTrace], captured: CapturedFlow
) -> Mapping[str, LossTrace]:
    """Return `traces` with the packets of other flows in the trace of a flow that shares its path; `traces` itself
    without such packets.

    `traces` itself also where the names of `[[flows]]` are not those of the drafted flows: those packets cannot
    replace a flow that the user added, and still have those of a flow that the user removed.
    """
    loss = scenario.links[scenario.traced_link].forward.loss
    of_capture = () if scenario.captured is None else scenario.captured.others
    drafted = sorted(of_capture) == sorted(flow.name for flow in scenario.flows)
    if not scenario.flows or not drafted or not isinstance(loss, TraceLoss):
        return traces
    others = recorded_others(read[loss.file], captured.segments["record"], scenario.duration)
    return traces if others is None else {**traces, loss.file: replace(traces[loss.file], others=others)}


def _repeats(
    scenario: Scenario,
    best: Candidate,
    traces: Mapping[str, LossTrace],
    happened: Outcome,
    execution: Execution,
    counter: _Counter,
) -> tuple[float, ...]:
    """Return the differences of repeats of a self-check that did not pass."""
    if abs(best.goodput_difference) <= GOODPUT_BOUND:
        return ()
    return tuple(_differences(scenario, plan_repeats(scenario, best.variant), traces, happened, execution, counter))


def _differences(
    scenario: Scenario,
    jobs: Sequence[Job],
    traces: Mapping[str, LossTrace],
    happened: Outcome,
    execution: Execution,
    counter: _Counter,
) -> list[float]:
    """Return the difference in goodput of each of `jobs`, as a share of what was captured. They come in addition to
    those that `counter` has in its total."""
    counter.total += len(jobs)
    numbered = dict(enumerate(jobs, 1))
    differences = []
    for _, batch in measure_jobs(scenario, numbered, traces, happened.duration_ns, execution.threads):
        counter.add(len(batch))
        differences += [outcome.goodput_bps / happened.goodput_bps - 1 for _, outcome in batch]
    return differences


def _carried_difference(scenario: Scenario, read: Mapping[str, Trace], runs: pa.Table, variant: str) -> float | None:
    """Return by how much the packets that all flows of a self-check sent behind the queue differ from those captured in
    the same time, as a share of these; None for a flow that shares its path with none, or without a captured trace."""
    import pyarrow.compute as pc

    loss = scenario.links[scenario.traced_link].forward.loss
    if not scenario.flows or not isinstance(loss, TraceLoss):
        return None
    trace = read[loss.file]
    packets = trace.packets()
    begin_ns = pc.min(trace.intervals()["t_ns"]).as_py() or 0
    sent = packets.filter(
        pc.and_(pc.is_valid(packets["position"]), pc.less(packets["t_ns"], begin_ns + scenario.duration))
    )
    ours = [row for row in runs.to_pylist() if row["variant"] == variant or row["role"] != "under_test"]
    run_id = next(row["run_id"] for row in ours if row["variant"] == variant and row["role"] == "under_test")
    behind = sum(row["segments_out"] - (row["queue_losses"] or 0) for row in ours if row["run_id"] == run_id)
    return behind / sent.num_rows - 1 if sent.num_rows else None


def _compare(
    scenario: Scenario, jobs: dict[int, Job], traces: Mapping[str, LossTrace], execution: Execution, counter: _Counter
) -> tuple[dict[str, pa.Table], tuple[Path, ...]]:
    keep = scenario.keep
    with capture_folder(execution.captures, keep, force=execution.force) as folder:
        tables = run_jobs(
            scenario,
            jobs,
            traces,
            threads=execution.threads,
            recording=Recording(keep.series == "segments", keep.samples, folder),
            on_done=counter.add,
        )
        if folder is None or execution.captures is None:
            return tables, ()
        return tables, place_captures(folder, execution.captures, jobs)


def load_traces(scenario: Scenario, folder: Path) -> dict[str, Trace]:
    """Read every trace that the scenario names. Raises ScenarioError with the key path, ChannelError with the file."""
    traces = {}
    for key, loss in trace_files(scenario):
        path = folder / name_from_text(loss.file)
        if not path.is_file():
            raise ScenarioError(
                f"{scenario.where}: {key}: no such file {path}",
                "channel extract writes one; its path is relative to the scenario",
            )
        traces[loss.file] = read_channel(path)
    return traces


def _candidates(scenario: Scenario) -> tuple[str, ...]:
    if scenario.captured is not None and scenario.captured.variant == "auto" and scenario.captured.candidates:
        return tuple(scenario.captured.candidates)
    if scenario.captured is None or scenario.captured.variant == "auto":
        # Without a forecast of outages, which no captured stack had, such a one is another's twin.
        return tuple(variant.name for variant in catalogue() if not variant.needs_forecast)
    return (scenario.captured.variant,)


def _with_reference(scenario: Scenario, best: str | None) -> tuple[str, ...]:
    """Return the variants to compare, the one that represents the captured flow first."""
    named = scenario.compare.variants
    return named if best is None else (best, *(v for v in named if v != best))


def _captured_outcome(captured: CapturedFlow, scenario: Scenario) -> Outcome:
    span = transfer_span(captured.segments, captured.direction)
    if span is None:
        raise ChannelError("the captured flow carries no data, so there is nothing to replay")
    transfer_ns = scenario.captured.transfer if scenario.captured is not None else None
    duration_ns = min(span[1] - span[0] if transfer_ns is None else transfer_ns, scenario.duration)
    outcome = measure(captured.segments, captured.events, captured.instruments, captured.direction, duration_ns)
    if outcome is None:
        raise ChannelError("the captured flow carries no data, so there is nothing to replay")
    return outcome


def _sent_beyond_trace(runs: pa.Table) -> list[str]:
    """Say which replays outran the captured trace: what the channel would have done then is not known."""
    return [
        f"{run_subject(run['variant'], run['proxy'])}: on the channel as captured, {run['trace_beyond_pkts']:,} of the "
        f"{run['segments_out']:,} data packets came after the end of the trace and were replayed over its repetition."
        for run in runs.to_pylist()
        if run["purpose"] == "what_if" and run["channel_mode"] == "replayed" and run["trace_beyond_pkts"]
        if run["role"] == "under_test"
    ]


def _unknown(sentence: str) -> dict[str, Any]:
    return {
        "section": "unknown",
        "subject": "capture",
        "metric": "",
        "unit": "",
        "verdict": "unknown",
        "text": sentence,
    }


class _Counter:
    """Adds up the jobs of several calls for one progress bar."""

    def __init__(self, total: int, report: Progress) -> None:
        self.total = total
        self._done = 0
        self._report = report

    def add(self, count: int) -> None:
        self._done += count
        self._report(self._done, self.total)
