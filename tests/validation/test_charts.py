"""The figure of docs/validation.md: both sides of every run, and an error if there is none."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hindflight.reports.exports import write_chart
from hindflight.toolkit.errors import ReportError
from validation.charts import ENGINE, KERNEL, validation_windows


def test_every_run_has_a_panel_with_both_sides(tmp_path: Path) -> None:
    frame = pl.concat(
        [
            pl.DataFrame({"run": run, "side": side, "packet": range(20), "cwnd_pkts": [float(10 + step)] * 20})
            for run in ("S1-reno", "S2-reno")
            for step, side in enumerate((KERNEL, ENGINE))
        ]
    )
    svg = write_chart(validation_windows(frame, "reno"), tmp_path / "windows.svg").read_text()
    assert all(words in svg for words in ("S1-reno", "S2-reno", KERNEL, ENGINE, "Data packet"))


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ReportError, match="no windows to draw"):
        validation_windows(pl.DataFrame({"run": [], "side": [], "packet": [], "cwnd_pkts": []}), "reno")
