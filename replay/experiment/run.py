"""Jobs through the engine, in parallel, into tables. The one module of this room that calls the native core.

Knows jobs and tables; statistics are made elsewhere. The result depends on the jobs alone, never on `threads`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.replay import _native
from hindflight.replay.controllers.base import registered_controllers
from hindflight.replay.experiment.engine_errors import in_file_words
from hindflight.replay.experiment.engine_inputs import Job, engine_config
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import Scenario
from hindflight.toolkit.errors import ControllerError, LogError, ScenarioError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.schema import conform, empty_table

if TYPE_CHECKING:
    import pyarrow as pa

SERIES = ("segments", "flows", "events", "instruments")
"""Tables that recorded jobs fill; every job adds a row to `runs`."""

STUDIED = 1
"""Number of the flow that a scenario is about."""

BATCH = 32
"""Jobs between two reports of progress."""


Event = tuple[int, str, int, int, int, list[tuple[int, int]]]
"""Of a recorded sender: time in ns, kind (syn, data, timeout, syn_ack, ack), octet (the first sent, or the next one
awaited), size (octets sent, or window), the time that an ACK echoes in ms of the same clock, SACK blocks."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What recorded runs keep: with `segments` every table, without them `instruments` alone, with `samples` so many of
    each sender at even times. With `captures` each of their nodes writes a capture, `RUN-NODE.pcap`, to that folder."""

    segments: bool = True
    samples: int | None = None
    captures: Path | None = None


EVERYTHING = Recording()


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run in the engine's own terms (`hindflight._native.replay`), for what no scenario can say."""

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

    jobs = [(_words(c.config), c.seed, run_id, c.recorded) for run_id, c in enumerate(configurations, 1)]
    try:
        columns = _replay(jobs, threads, Recording(segments, samples))
    except ValueError as error:
        raise ScenarioError(f"the engine refuses a configuration: {error}") from error
    except RuntimeError as error:
        raise _of_controller(error) from error.__cause__
    tables = {name: _concatenate(name, [conform(name, pa.table(part)) for part in columns[name]]) for name in SERIES}
    return {"runs": pa.concat_tables([pa.table(part) for part in columns["runs"]]), **tables}


def _replay(jobs: list[tuple[str, int, int, bool]], threads: int | None, recording: Recording) -> dict[str, Any]:
    with plain_os_errors(f"writing captures to {recording.captures}"):
        return _native.replay(
            jobs,
            threads=threads or os.cpu_count() or 1,
            segments=recording.segments,
            samples=recording.samples,
            captures=recording.captures,
            controllers=registered_controllers(),
        )


def follow(config: Mapping[str, Any], flow: int, record: Sequence[Event]) -> pa.Table:
    """Lead a sender of flow number `flow` (from 0) of `config` through `record`; return its state after each event.

    Columns: cwnd_pkts, ssthresh_pkts (null while not set), repairing, and of the scoreboard outstanding_pkts,
    sacked_pkts, lost_pkts and retransmitted_pkts. LogError where the record leaves out octets that were sent.
    """
    import pyarrow as pa

    try:
        return pa.table(_native.follow(json.dumps(config), flow, list(record)))
    except ValueError as error:
        raise LogError(f"the record cannot be followed: {error}") from error


def _words(config: Mapping[str, Any]) -> str:
    """Return `config` in the engine's words, where a user's controller is `external:NAME`."""
    own = registered_controllers()

    def named(holder: Mapping[str, Any]) -> dict[str, Any]:
        variant = holder.get("variant")
        return {**holder, "variant": f"external:{variant}"} if variant in own else dict(holder)

    flows = [
        {**named(flow), "proxies": [named(proxy) for proxy in flow.get("proxies", ())]} for flow in config["flows"]
    ]
    return json.dumps({**config, "flows": flows})


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

    `jobs` are the runs by number. `on_done` is told the number of jobs done so far. Raises ScenarioError
    where the engine refuses the configuration, with the key path; MachineError where captures cannot be written.
    """
    parts: dict[str, list[pa.Table]] = {name: [] for name in ("runs", *SERIES)}
    numbered = list(jobs.items())
    for start in range(0, len(numbered), BATCH):
        batch = numbered[start : start + BATCH]
        for name, table in _run_batch(scenario, batch, traces, threads, recording).items():
            parts[name].append(table)
        on_done(len(batch))
    return {name: _concatenate(name, found) for name, found in parts.items()}


def check_jobs(scenario: Scenario, jobs: Iterable[Job], traces: Mapping[str, LossTrace]) -> None:
    """Raise ScenarioError, in the words of the file, for the first of `jobs` that the engine would refuse, or for an
    option that none of them heeds.

    What differs in the seed alone is looked at once.
    """
    different = list({(job.variant, job.proxy, job.mode): job for job in jobs}.values())
    configurations = [_words(engine_config(scenario, job, traces)) for job in different]
    refused = _native.check(configurations, registered_controllers())
    if refused is not None:
        number, key, problem = refused
        raise ScenarioError(in_file_words(scenario, different[number], key, problem))


def _run_batch(
    scenario: Scenario,
    batch: Sequence[tuple[int, Job]],
    traces: Mapping[str, LossTrace],
    threads: int | None,
    recording: Recording,
) -> dict[str, pa.Table]:
    import pyarrow as pa

    configs = [(_words(engine_config(scenario, job, traces)), job.seed, run_id, job.recorded) for run_id, job in batch]
    try:
        columns = _replay(configs, threads, recording)
    except ValueError as error:
        check_jobs(scenario, [job for _, job in batch], traces)
        raise ScenarioError(f"{scenario.where}: {error}") from error
    except RuntimeError as error:
        raise _of_controller(error) from error.__cause__
    runs = [_label(pa.table(part), scenario, dict(batch)) for part in columns["runs"]]
    tables = {name: [conform(name, pa.table(part)) for part in columns[name]] for name in SERIES}
    return {name: _concatenate(name, found) for name, found in {"runs": runs, **tables}.items()}


def _of_controller(error: RuntimeError) -> ControllerError:
    return ControllerError(str(error), "hf.check_controller plays the rules that every controller keeps")


def _label(runs: pa.Table, scenario: Scenario, jobs: Mapping[int, Job]) -> pa.Table:
    """Add what the engine does not know: the scenario's names, and the job behind each run."""
    import pyarrow as pa

    order = [jobs[run_id] for run_id in runs["run_id"].to_pylist()]
    flow_ids = runs["flow_id"].to_pylist()
    own = {number: flow.variant for number, flow in enumerate(scenario.flows, STUDIED + 1)}
    named = [
        job.variant if flow_id == STUDIED else own.get(flow_id, variant)
        for job, flow_id, variant in zip(order, flow_ids, runs["variant"].to_pylist(), strict=True)
    ]
    runs = runs.drop_columns("variant")
    labels = {
        "scenario": [scenario.name] * len(order),
        "variant": named,
        "role": ["studied" if flow_id == STUDIED else "cross" for flow_id in flow_ids],
        "proxy": [job.proxy for job in order],
        "purpose": [job.purpose for job in order],
        "channel_mode": [job.mode for job in order],
    }
    for name, values in labels.items():
        runs = runs.append_column(name, pa.array(values, pa.string()))
    return conform("runs", runs)


def _concatenate(name: str, tables: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables) if tables else empty_table(name)
