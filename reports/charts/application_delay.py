"""Chart of the application delay of the what-if runs: a box per variant and proxy over the seeds.

Draws `runs`. Computes no statistic but quartiles over the seeds.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import ChartText, Legend, inline, layered_chart, x_axis
from hindflight.reports.frames import Tables, runs_with_subject
from hindflight.reports.style import BLUE, INK
from hindflight.toolkit.errors import ReportError

MEDIAN, LATE = "median delay", "95th percentile"
_STEP, _LANE = 46, 11
_COLUMNS = {MEDIAN: ("app_delay_p50_ns", BLUE, -_LANE), LATE: ("app_delay_p95_ns", INK, _LANE)}


def has_application_delay(tables: Tables) -> bool:
    """Return whether a what-if run has an application delay."""
    return not _delays(tables, "app_delay_p95_ns").is_empty()


def what_if_application_delay(tables: Tables) -> alt.LayerChart:
    """Draw the median and the 95th percentile of the application delay of each variant and proxy, boxes over the seeds.

    Reads `runs`. Raises ReportError if no what-if run has an application delay.
    """
    boxes = {label: _boxes(_delays(tables, column)) for label, (column, _, _) in _COLUMNS.items()}
    if boxes[LATE].is_empty():
        raise ReportError("No what-if run has an application delay.")
    order = boxes[LATE]["subject"].to_list()
    axis = alt.Axis(title=None, labelLimit=280, ticks=False, grid=True)
    y = alt.Y("subject", type="nominal", axis=axis, scale=alt.Scale(domain=order))
    scale = alt.Scale(zero=True)
    legend = Legend([(label, colour) for label, (_, colour, _) in _COLUMNS.items()])
    layers: list[alt.Chart] = []
    for label, rows in boxes.items():
        offset = _COLUMNS[label][2]
        base = alt.Chart(inline(rows))
        tips = [
            alt.Tooltip("subject", type="nominal", title="Variant"),
            *(
                alt.Tooltip(name, type="quantitative", format=",.1f", title=f"{title} [ms]")
                for name, title in (("middle", "Median of the runs"), ("low", "Minimum"), ("high", "Maximum"))
            ),
            alt.Tooltip("runs", type="quantitative", title="Runs"),
        ]
        low = alt.X("low", type="quantitative", axis=x_axis("Application delay [ms]"), scale=scale)
        first = alt.X("first", type="quantitative", scale=scale)
        middle = alt.X("middle", type="quantitative", scale=scale)
        rule = base.mark_rule(strokeWidth=1.5, yOffset=offset)
        layers += [
            legend.encode(rule, label, low, y, x2=alt.X2("high"), tooltip=tips),
            legend.encode(
                base.mark_bar(size=9, opacity=0.75, yOffset=offset), label, first, y, x2=alt.X2("third"), tooltip=tips
            ),
            legend.encode(
                base.mark_tick(thickness=2.5, size=15, opacity=1, yOffset=offset), label, middle, y, tooltip=tips
            ),
        ]
    values = "; ".join(
        f"{subject} {late:.0f} ms" for subject, late in boxes[LATE].select("subject", "middle").iter_rows()
    )
    text = ChartText(
        "Application delay of each variant",
        f"Median and 95th percentile of the application delay of each run, boxes over the seeds. The latter: {values}.",
    )
    return layered_chart(layers, text, height=_STEP * len(order))


def _delays(tables: Tables, column: str) -> pl.DataFrame:
    """Return subject and delay in ms of the what-if runs: those over the resampled channel, else all."""
    runs = runs_with_subject(tables, ["purpose", "channel_mode", column])
    mine = runs.filter((pl.col("purpose") == "what_if") & pl.col(column).is_not_null())
    resampled = mine.filter(pl.col("channel_mode") != "replayed")
    shown = mine if resampled.is_empty() else resampled
    return shown.select("subject", ms=pl.col(column) / 1e6)


def _boxes(delays: pl.DataFrame) -> pl.DataFrame:
    """Return minimum, quartiles, median and maximum of each subject, in order."""
    ms = pl.col("ms")
    return delays.group_by("subject", maintain_order=True).agg(
        low=ms.min().round(4),
        first=ms.quantile(0.25, "linear").round(4),
        middle=ms.median().round(4),
        third=ms.quantile(0.75, "linear").round(4),
        high=ms.max().round(4),
        runs=pl.len(),
    )
