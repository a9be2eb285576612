"""Charts of the application delay: of a captured flow over time, of the what-if runs a box per variant and proxy.

Draws `segments` of one flow, or `runs`. Computes no statistic but quantiles.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from hindflight.reports.charts.axes import (
    ChartText,
    Legend,
    decimation_note,
    inline,
    layered_chart,
    time_axis,
    time_tooltip,
    x_axis,
    y_axis,
    zoom,
)
from hindflight.reports.charts.marks import event_marks
from hindflight.reports.charts.path import LARGE_MARK_SAMPLES
from hindflight.reports.decimation import m4
from hindflight.reports.frames import TIME, Flow, Tables, View, flow_of, maximum, on_axis, read_flow, runs_with_subject
from hindflight.reports.style import BLUE, GREEN, INK
from hindflight.toolkit.errors import ReportError

LONG_MS = 5_000
"""Delay from which the axis is in seconds, whose labels are as wide as those of the charts above."""

IN_ORDER = "new segment, until acknowledged with all before it"
MEDIAN, LATE = "median delay", "95th percentile"
_STEP, _LANE = 46, 11
_COLUMNS = {MEDIAN: ("app_delay_p50_ns", BLUE, -_LANE), LATE: ("app_delay_p95_ns", INK, _LANE)}


def captured_application_delay(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw how long each new segment took, from its first transmission until all data up to its end was acknowledged.

    Reads `flows`, `segments`, `channel` and `events`. Raises ReportError if no data was acknowledged, and for a
    capture at the receiver, which shows how fast its host acknowledges.
    """
    flow = flow_of(tables, view or View())
    vantage = read_flow(tables, "flows", flow.view, ["vantage"])["vantage"].to_list()
    if vantage == ["receiver"]:
        raise ReportError("The capture was taken at the receiver, so the application delay of this flow is not known.")
    delays = _captured_delays(tables, flow)
    if delays.is_empty():
        raise ReportError("No data of this flow was acknowledged, so its application delay is not known.")
    dots = m4(delays, TIME, "ms", flow.view.bins)
    longest = maximum(delays, "ms")
    unit, factor = ("s", 1e3) if longest >= LONG_MS else ("ms", 1.0)
    shown = dots.frame.with_columns(delay=(pl.col("ms") / factor).round(6))
    size = 8 if dots.rows > LARGE_MARK_SAMPLES else 30
    mark = alt.Chart(inline(shown)).mark_circle(size=size, opacity=0.6, clip=True, aria=False)
    y = alt.Y("delay", type="quantitative", axis=y_axis(f"Application delay [{unit}]"), scale=alt.Scale(zero=True))
    tips = [
        time_tooltip(flow, title="Sent at"),
        alt.Tooltip("ms", type="quantitative", format=",.3f", title="Until acknowledged in order [ms]"),
        alt.Tooltip("record", type="quantitative", title="Record in the capture"),
    ]
    marks = event_marks(tables, flow)
    legend = Legend([(IN_ORDER, GREEN), *marks.entries])
    drawn = legend.encode(mark, IN_ORDER, time_axis(flow), y, tooltip=tips)
    middle, late = (float(delays["ms"].quantile(q, "linear") or 0.0) for q in (0.5, 0.95))
    since = [] if vantage == ["sender"] else ["From the place of the capture, not from the sender."]
    notes = [*since, f"Median {middle:,.1f} ms, 95th percentile {late:,.1f} ms.", *decimation_note("segments", dots)]
    text = ChartText(
        "Application delay",
        f"Application delay of {dots.rows} segments over time. {' '.join(notes[: len(since) + 1])}",
        notes,
    )
    layers = [*marks.layers(legend), drawn.add_params(zoom())]
    return layered_chart(layers, text, height=200, marks=dots.frame.height)


def _captured_delays(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return TIME, `ms` and `record` of each segment of new data that was acknowledged, with all data before it."""
    is_data = (pl.col("direction") == flow.data) & (pl.col("payload_bytes") > 0) & ~pl.col("retransmission")
    columns = ["t_ns", "seq", "payload_bytes", "record"]
    sent = read_flow(tables, "segments", flow.view, columns, is_data).sort("t_ns", maintain_order=True)
    is_ack = (pl.col("direction") == flow.acks) & pl.col("ack").is_not_null()
    acks = read_flow(tables, "segments", flow.view, ["t_ns", "ack"], is_ack).sort("t_ns", maintain_order=True)
    ends = (sent["seq"].cast(pl.Int64) + sent["payload_bytes"].cast(pl.Int64)).to_numpy()
    at = np.searchsorted(acks["ack"].cast(pl.Int64).cum_max().to_numpy(), ends)
    covered = at < acks.height
    times = acks["t_ns"].to_numpy()[at[covered]]
    found = sent.filter(pl.Series(covered)).with_columns(ms=(pl.Series(times) - pl.col("t_ns")) / 1e6)
    return on_axis(found.filter(pl.col("ms") >= 0), flow).select(TIME, pl.col("ms").round(3), "record")


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
