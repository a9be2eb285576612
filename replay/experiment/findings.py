"""The findings of a whole replay for its report: summary and key numbers first, then those of the experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.replay.experiment.advice import recommendation
from hindflight.replay.experiment.experiment import CapturedFlow, ExperimentResult
from hindflight.replay.experiment.interruptions import interruption_rows
from hindflight.replay.experiment.sensitivity import sensitivity_findings
from hindflight.replay.experiment.stretches import stretch_rows
from hindflight.replay.experiment.summary import key_numbers, summary, summary_without_capture
from hindflight.replay.scenario.model import Scenario
from hindflight.toolkit.schema import table_from_rows

if TYPE_CHECKING:
    import pyarrow as pa


def report_findings(
    result: ExperimentResult, scenario: Scenario, folder: Path, captured: CapturedFlow | None, threads: int | None
) -> pa.Table:
    """Return the table `findings` of `result`; the sensitivity to how losses are replayed costs further runs.

    `folder` is that of the scenario's trace files, `captured` the flow that it was drafted from.
    """
    rows, runs = result.tables["findings"].to_pylist(), result.tables["runs"].to_pylist()
    if result.captured is not None and result.traces:
        trace = next(iter(result.traces.values()))
        broken = [] if captured is None else interruption_rows(trace.channel, captured.segments, captured.direction)
        rows = [
            *summary(result.captured, trace, result.candidates, rows, runs, broken[:1]),
            *broken[1:],
            *key_numbers(result.captured, trace.estimates),
            *stretch_rows(trace.stretches),
            *rows,
        ]
    elif result.captured is None:
        rows = [*summary_without_capture(rows, runs), *rows]
    if result.traces:
        rows += sensitivity_findings(scenario, folder, threads=threads)
    rows += recommendation(rows, runs)
    return table_from_rows("findings", rows)
