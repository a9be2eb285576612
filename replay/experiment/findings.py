"""The findings of a whole replay for its report: summary and key numbers first, then those of the experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.replay.experiment.experiment import Study
from hindflight.replay.experiment.sensitivity import spread_findings
from hindflight.replay.experiment.summary import key_numbers, summary, summary_without_capture
from hindflight.replay.scenario.model import Scenario
from hindflight.toolkit.schema import table_from_rows

if TYPE_CHECKING:
    import pyarrow as pa


def report_findings(study: Study, scenario: Scenario, folder: Path, threads: int | None) -> pa.Table:
    """Return the table `findings` of `study`; the sensitivity to how losses are replayed costs further runs.

    `folder` is that of the scenario's trace files.
    """
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
        rows += spread_findings(scenario, folder, threads=threads)
    return table_from_rows("findings", rows)
