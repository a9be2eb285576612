"""Jobs through the engine, in parallel, into tables. The only module of this package that calls the native core.

Depends on jobs and tables; statistics are computed elsewhere. The result depends on the jobs alone, never on `threads`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.replay import _native
from hindflight.replay.controllers.base import registered_controllers
from hindflight.replay.experiment.engine_documents import EngineDocuments
from hindflight.replay.experiment.engine_errors import EngineError, in_scenario_terms
from hindflight.replay.experiment.engine_inputs import Job, engine_config
from hindflight.replay.experiment.traffic import DATAGRAMS
from hindflight.replay.outcome import Outcome
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import Scenario, refusal
from hindflight.toolkit.errors import ControllerError, LogError, ScenarioError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.schema import conform, empty_table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

SERIES = ("segments", "flows", "events", "instruments")
"""Tables that recorded jobs fill; every job adds a row to `runs`."""

FLOW_UNDER_TEST = 1
"""Number of the flow that a scenario is about."""

BATCH = 32
"""Jobs between two reports of progress; the configurations of two batches are in memory."""

MEASURED_BATCH = 8
"""Jobs measured together: their congestion windows are in memory at the same time."""


Event = tuple[int, str, int, int, int, list[tuple[int, int]]]
"""Of a recorded sender: time in ns, kind (syn, data, write, timeout, syn_ack, ack), octet (the first sent, or the next
one awaited), size (octets sent, or window), the time that an ACK echoes in ms of the same clock, SACK blocks."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What recorded runs keep: with `segments` every table, without them `instruments` alone, with `samples` so many of
    each sender at even times. With `captures` each of their nodes writes a capture, `RUN-NODE.pcap`, to that folder.
    With `transfer_ns` they keep no table: `measure_jobs` reads their transfer over that time."""

    segments: bool = True
    samples: int | None = None
    captures: Path | None = None
    transfer_ns: int | None = None


EVERYTHING = Recording()

NativeJob = tuple[str, int, int, bool]
"""Configuration as a text, seed, number of the run, and whether it is recorded."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run as an engine configuration (`hindflight._native.replay`), for what no scenario can express."""

    config: Mapping[str, Any]
    seed: int
    recorded: bool


def run_configurations(
    configurations: Sequence[Configuration],
    *,
    threads: int | None = None,
    segments: bool = True,
    samples: int | None = None,
) -> dict[str, pa.Table]:
    """Run `configurations` and return the tables as `run_jobs` does, `runs` without the scenario's labels.

    `segments` and `samples` are those of `Recording`.
    Configuration i becomes run `1 + i`. ScenarioError where the engine refuses one, with the key path.
    """
    import pyarrow as pa

    documents = EngineDocuments()
    different = {id(c.config): c.config for c in configurations}
    texts = {key: documents.text(_with_controllers(config)) for key, config in different.items()}
    jobs = [(texts[id(c.config)], c.seed, run_id, c.recorded) for run_id, c in enumerate(configurations, 1)]
    try:
        columns = _replay(jobs, documents.arrays, threads, Recording(segments, samples))
    except ValueError as error:
        raise ScenarioError(f"the engine refuses a configuration: {error}") from error
    except RuntimeError as error:
        raise _of_controller(error) from error.__cause__
    tables = {name: _concatenate(name, [conform(name, pa.table(part)) for part in columns[name]]) for name in SERIES}
    return {"runs": pa.concat_tables([pa.table(part) for part in columns["runs"]]), **tables}


def _replay(jobs: list[NativeJob], arrays: list[pa.Array], threads: int | None, recording: Recording) -> dict[str, Any]:
    with _os_errors(recording):
        return _native.replay(
            jobs,
            threads=thread_count(threads),
            segments=recording.segments,
            samples=recording.samples,
            transfer_ns=recording.transfer_ns,
            captures=recording.captures,
            controllers=registered_controllers(),
            arrays=arrays,
        )


def _os_errors(recording: Recording) -> AbstractContextManager[None]:
    return plain_os_errors(f"writing captures to {recording.captures}")


def thread_count(wanted: int | None) -> int:
    """Return how many runs are made at a time: as many as wanted, else one for each processor."""
    return wanted or os.cpu_count() or 1


def replay_controller(config: Mapping[str, Any], flow: int, record: Sequence[Event]) -> pa.Table:
    """Replay, open loop, a sender of flow number `flow` (from 0) of `config` through `record`; return its state after
    each event.

    Columns: cwnd_pkts, ssthresh_pkts (null while not set), in_recovery, and of the scoreboard outstanding_pkts,
    sacked_pkts, lost_pkts and retransmitted_pkts. LogError where the record leaves out octets that were sent.
    """
    import pyarrow as pa

    documents = EngineDocuments()
    text = documents.text(config)
    try:
        return pa.table(_native.replay_controller(text, flow, list(record), documents.arrays))
    except ValueError as error:
        raise LogError(f"the record cannot be replayed: {error}") from error


def _with_controllers(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return `config` with a user's controllers as the engine names them, `external:NAME`."""
    registered = registered_controllers()

    def named(holder: Mapping[str, Any]) -> dict[str, Any]:
        variant = holder.get("variant")
        return {**holder, "variant": f"external:{variant}"} if variant in registered else dict(holder)

    flows = [
        {**named(flow), "proxies": [named(proxy) for proxy in flow.get("proxies", ())]} for flow in config["flows"]
    ]
    return {**config, "flows": flows}


def run_jobs(
    scenario: Scenario,
    jobs: Mapping[int, Job],
    traces: Mapping[str, LossTrace],
    *,
    threads: int | None = None,
    recording: Recording = EVERYTHING,
    on_done: Callable[[int], None] = lambda _: None,
) -> dict[str, pa.Table]:
    """Run `jobs` and return the tables `runs`, `segments`, `flows`, `events` and `instruments`.

    `jobs` are the runs by number. `on_done` is called with the number of jobs of each batch. Raises ScenarioError
    where the engine refuses the configuration, with the key path; MachineError where captures cannot be written.
    """
    parts: dict[str, list[pa.Table]] = {name: [] for name in ("runs", *SERIES)}
    batches = list(_batches(jobs))
    running = iter(batches)

    def done(columns: dict[str, Any]) -> None:
        batch = next(running)
        for name, table in _tables_of(scenario, batch, columns).items():
            parts[name].append(table)
        on_done(len(batch))

    inputs = (_engine_inputs(scenario, batch, traces) for batch in batches)
    with _engine_errors(scenario, jobs.values(), traces), _os_errors(recording):
        _native.replay_batches(
            inputs,
            done,
            threads=thread_count(threads),
            segments=recording.segments,
            samples=recording.samples,
            captures=recording.captures,
            controllers=registered_controllers(),
        )
    tables = {name: _concatenate(name, found) for name, found in parts.items()}
    return {**tables, "runs": tables["runs"].sort_by("run_id")}


def _batches(jobs: Mapping[int, Job]) -> Iterator[list[tuple[int, Job]]]:
    """Divide `jobs` into batches: recorded ones first, then the others with those next to each other that differ in the
    variant alone: behind a proxy next to the sender they may be the same run, which the native core makes once."""
    groups: dict[object, list[tuple[int, Job]]] = {}
    for run_id, job in jobs.items():
        key = run_id if job.recorded else replace(job, variant="")
        groups.setdefault(key, []).append((run_id, job))
    batch: list[tuple[int, Job]] = []
    for group in sorted(groups.values(), key=lambda group: not group[0][1].recorded):
        batch += group
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def measure_jobs(
    scenario: Scenario,
    jobs: Mapping[int, Job],
    traces: Mapping[str, LossTrace],
    span_ns: int,
    threads: int | None = None,
) -> Iterator[tuple[pa.Table, list[tuple[int, Outcome]]]]:
    """Run `jobs` and yield, batch by batch, their rows of `runs` and each run's outcome over `span_ns`.

    Keeps eight octets per data segment of one batch, where `run_jobs` keeps whole tables. Errors as `run_jobs`, and
    ScenarioError for a run that sends no data.
    """
    import pyarrow as pa

    numbered = list(jobs.items())
    for start in range(0, len(numbered), MEASURED_BATCH):
        batch = numbered[start : start + MEASURED_BATCH]
        native, arrays = _engine_inputs(scenario, batch, traces)
        with _engine_errors(scenario, dict(batch).values(), traces):
            columns = _replay(native, arrays, threads, Recording(transfer_ns=span_ns))
        runs = pa.concat_tables([_label(pa.table(part), scenario, dict(batch)) for part in columns["runs"]])
        rows = {row["run_id"]: row for row in runs.to_pylist() if row["role"] == "under_test"}
        outcomes = []
        for transfer, windows in zip(columns["transfers"], columns["windows"], strict=True):
            row, cwnd = pa.table(transfer).to_pylist()[0], pa.table(windows)["cwnd_bytes"].to_numpy()
            if not len(cwnd):
                raise ScenarioError("the replay sent no data within its duration")
            outcomes.append((row["run_id"], _measured(row, cwnd, rows[row["run_id"]], _transfer_ns(scenario))))
        yield runs, outcomes


def _transfer_ns(scenario: Scenario) -> int | None:
    """Return the time over which goodput counts; None for the whole run."""
    return None if scenario.captured is None else scenario.captured.transfer


def _measured(
    row: Mapping[str, int], cwnd: npt.NDArray[np.int64], run: Mapping[str, Any], transfer_ns: int | None
) -> Outcome:
    """The outcome of a transfer; its goodput counts over `transfer_ns`, or else over the run as in `runs`."""
    return Outcome(
        start_ns=row["start_ns"],
        duration_ns=run["duration_ns"] if transfer_ns is None else transfer_ns,
        delivered_bytes=run["delivered_bytes"],
        data_segments=len(cwnd),
        retransmissions=row["retransmissions"],
        rtos=row["rtos"],
        cwnd_bytes=cwnd.astype(float),
        cwnd_source="replay",
    )


def check_jobs(scenario: Scenario, jobs: Iterable[Job], traces: Mapping[str, LossTrace]) -> None:
    """Raise ScenarioError for what the engine would refuse in any of `jobs`, and for options without effect in all.

    Jobs that differ only in the seed are checked once.
    """
    different = list({(job.variant, job.proxy, job.mode): job for job in jobs}.values())
    if lines := list(_ineffective_with_controllers(scenario, different)):
        raise refusal(scenario.where, [(line, None) for line in lines])
    if errors := _engine_refuses(scenario, different, traces):
        refused = ((different[number], EngineError.read(text)) for number, text in errors)
        raise refusal(scenario.where, [(line, None) for line in in_scenario_terms(scenario, refused)])


def runnable(scenario: Scenario, jobs: Sequence[Job], traces: Mapping[str, LossTrace]) -> list[Job]:
    """Return those of `jobs` that the engine does not refuse, as it does a variant that needs SACK in a flow without
    it; all where it refuses each of them, for `check_jobs` to say why."""
    refused = {number for number, _ in _engine_refuses(scenario, jobs, traces)}
    return [job for number, job in enumerate(jobs) if number not in refused] or list(jobs)


def _engine_refuses(scenario: Scenario, jobs: Sequence[Job], traces: Mapping[str, LossTrace]) -> list[tuple[int, str]]:
    """Return what the engine refuses of `jobs`, by their numbers."""
    documents = EngineDocuments()
    texts = [documents.text(_with_controllers(engine_config(scenario, job, traces))) for job in jobs]
    return list(_native.check(texts, registered_controllers(), documents.arrays))


def _ineffective_with_controllers(scenario: Scenario, jobs: Sequence[Job]) -> Iterator[str]:
    """Yield the options that a user's controller never sees: the engine takes them, and they have no effect."""
    registered = registered_controllers()
    alone = bool(jobs) and all(job.variant in registered and job.proxy == "none" for job in jobs)
    flows = [("flow", scenario.flow)] if alone else []
    for i, other in enumerate(scenario.flows):
        if other.variant in registered and not other.proxies:
            flows.append((f"flows[{i}]", other))
    for key, flow in flows:
        if flow.slow_start_limit is not None:
            yield f"{key}.slow_start_limit: has no effect on a controller in Python, whose on_ack is its slow start"


def _tables_of(scenario: Scenario, batch: Sequence[tuple[int, Job]], columns: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Return the tables of a batch from what the native core returns."""
    import pyarrow as pa

    runs = [_label(pa.table(part), scenario, dict(batch)) for part in columns["runs"]]
    tables = {name: [conform(name, pa.table(part)) for part in columns[name]] for name in SERIES}
    return {name: _concatenate(name, found) for name, found in {"runs": runs, **tables}.items()}


def _engine_inputs(
    scenario: Scenario, batch: Sequence[tuple[int, Job]], traces: Mapping[str, LossTrace]
) -> tuple[list[NativeJob], list[pa.Array]]:
    """Return the jobs of a batch as the native core reads them, and the arrays that they name."""
    documents = EngineDocuments()
    jobs = [
        (documents.text(_with_controllers(engine_config(scenario, job, traces))), job.seed, run_id, job.recorded)
        for run_id, job in batch
    ]
    return jobs, documents.arrays


@contextmanager
def _engine_errors(scenario: Scenario, jobs: Iterable[Job], traces: Mapping[str, LossTrace]) -> Iterator[None]:
    """Turn what the native core raises for `jobs` into errors of the scenario, or of a controller."""
    try:
        yield
    except ValueError as error:
        check_jobs(scenario, jobs, traces)
        raise ScenarioError(f"{scenario.where}: {error}") from error
    except RuntimeError as error:
        raise _of_controller(error) from error.__cause__


def _of_controller(error: RuntimeError) -> ControllerError:
    return ControllerError(str(error), "hf.check_controller checks the rules that every controller keeps")


def _label(runs: pa.Table, scenario: Scenario, jobs: Mapping[int, Job]) -> pa.Table:
    """Add what the engine does not return: the scenario's names, and the job of each run."""
    import pyarrow as pa

    order = [jobs[run_id] for run_id in runs["run_id"].to_pylist()]
    flow_ids = runs["flow_id"].to_pylist()
    shared = {number: flow.variant for number, flow in enumerate(scenario.flows, FLOW_UNDER_TEST + 1)}
    named = [
        job.variant if flow_id == FLOW_UNDER_TEST else _variant_of_other(flow_id, variant, shared)
        for job, flow_id, variant in zip(order, flow_ids, runs["variant"].to_pylist(), strict=True)
    ]
    runs = runs.drop_columns("variant")
    labels = {
        "scenario": [scenario.name] * len(order),
        "variant": named,
        "compared_variant": [job.variant for job in order],
        "role": ["under_test" if flow_id == FLOW_UNDER_TEST else "cross" for flow_id in flow_ids],
        "proxy": [job.proxy for job in order],
        "purpose": [job.purpose for job in order],
        "channel_mode": [job.mode for job in order],
    }
    for name, values in labels.items():
        runs = runs.append_column(name, pa.array(values, pa.string()))
    return conform("runs", runs)


def _variant_of_other(flow_id: int, variant: str, shared: Mapping[int, str]) -> str:
    """Return the variant of a flow other than the one under test: of a flow of the scenario as the scenario names it,
    by `shared`, of datagrams as the engine does. In a self-check datagrams may have the number of such a flow."""
    return variant if variant == DATAGRAMS else shared.get(flow_id, variant)


def _concatenate(name: str, tables: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables) if tables else empty_table(name)
