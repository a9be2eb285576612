"""The findings of a whole replay for its report: summary and key numbers first, then those of the experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hindflight.replay.experiment.advice import advised, placement_of, recommendation
from hindflight.replay.experiment.cache_knee import cache_knee
from hindflight.replay.experiment.compare import known_goodputs
from hindflight.replay.experiment.experiment import CapturedFlow, ExperimentResult
from hindflight.replay.experiment.interruptions import interruption_rows
from hindflight.replay.experiment.proxy_faults import fault_rows
from hindflight.replay.experiment.sensitivity import sensitivity_findings
from hindflight.replay.experiment.stretches import stretch_rows
from hindflight.replay.experiment.summary import CapturedSentences, key_numbers, summary, summary_without_capture
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import Scenario


def known_findings(result: ExperimentResult, scenario: Scenario, captured: CapturedFlow | None) -> list[dict[str, Any]]:
    """Return the rows of `findings` of `result` for which nothing more has to run; `captured` is the flow that the
    scenario was drafted from."""
    rows, runs = result.tables["findings"].to_pylist(), result.tables["runs"].to_pylist()
    if result.captured is not None and result.traces:
        trace = next(iter(result.traces.values()))
        broken, said = [], CapturedSentences()
        if captured is not None:
            broken = interruption_rows(trace.channel, captured.segments, captured.direction, captured.positions)
            said = CapturedSentences(captured.sentences, broken[:1], captured.blocks)
        rows = [
            *summary(result.captured, trace, result.candidates, rows, runs, said),
            *broken[1:],
            *key_numbers(result.captured, trace.estimates, said.blocks),
            *stretch_rows(trace.stretches),
            *rows,
        ]
    elif result.captured is None:
        rows = [*summary_without_capture(rows, runs), *rows]
    return [*rows, *fault_rows(scenario, runs, result.tables["instruments"])]


def findings_of_more_runs(
    known: Sequence[dict[str, Any]], result: ExperimentResult, scenario: Scenario, threads: int | None
) -> list[dict[str, Any]]:
    """Return the rows of `findings` that cost further runs, behind those that are `known`: the sensitivity to how
    losses are replayed, and the recommendation with the knee of its cache.
    """
    runs, rows = result.tables["runs"].to_pylist(), list(known)
    if result.traces:
        rows += sensitivity_findings(scenario, result.traces, result.losses, runs, _variants(runs), threads)
    rows += _recommendation(rows, runs, scenario, result.losses, threads)
    return rows[len(known) :]


def _recommendation(
    rows: Sequence[Mapping[str, Any]],
    runs: Sequence[Mapping[str, Any]],
    scenario: Scenario,
    losses: Mapping[str, LossTrace],
    threads: int | None,
) -> list[dict[str, Any]]:
    """Return the rows of section `recommendation`, with the knee of the cache that is recommended."""
    best = advised(rows, runs)
    if best is None:
        return recommendation(rows, None, "")
    known = known_goodputs(runs)
    knee = cache_knee(scenario, best.variant, best.chain, losses, threads=threads, known=known)
    return recommendation(rows, best, placement_of(scenario, best, knee, runs))


def _variants(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the variants of the comparison, that of the captured flow first where there is one."""
    return list(
        dict.fromkeys(run["variant"] for run in runs if run["purpose"] == "what_if" if run["role"] == "under_test")
    )
