"""Timeline of losses by cause, retransmissions, timeouts, fast recoveries and outages, one lane per kind.

Draws `events` of one flow. If the channel was extracted, causes of losses and outages come from `channel`.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import (
    LABEL_WIDTH_PX,
    ChartText,
    Legend,
    decimation_note,
    inline,
    layered_chart,
    time_axis,
    time_tooltip,
    zoom,
)
from hindflight.reports.charts.marks import event_marks
from hindflight.reports.decimation import Decimated
from hindflight.reports.frames import TIME, Flow, Tables, View, flow_of, read_flow
from hindflight.reports.link import events_of
from hindflight.reports.style import AMBER, BLUE, GREEN, GREY, INK, PURPLE, VERMILLION
from hindflight.toolkit.errors import ReportError

_LOSS_LANES = {
    "channel": "lost to the channel",
    "queue": "lost to a queue",
    "unknown": "lost, cause unknown",
    "outage": "lost in an outage",
}
_KIND_LANES = {
    "retransmission": "retransmission",
    "rto": "retransmission timeout",
    "recovery": "fast recovery",
    "reordering": "reordering",
    "outage": "outage",
    "handover": "handover",
}
_COLOURS = {
    "lost to the channel": INK,
    "lost to a queue": BLUE,
    "lost, cause unknown": GREY,
    "lost in an outage": PURPLE,
    "retransmission": VERMILLION,
    "fast recovery": AMBER,
    "retransmission timeout": VERMILLION,
    "reordering": GREY,
    "outage": PURPLE,
    "handover": GREEN,
}
_ALWAYS = ("lost to the channel", "lost to a queue", "lost, cause unknown")


def losses(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw losses by cause (channel, queue, unknown), retransmissions, timeouts, fast recoveries and outages.

    Reads `flows`, `events` and `channel`. Raises ReportError if the flow has neither events nor segments.
    """
    view = view or View()
    flow = flow_of(tables, view)
    rows = _events(tables, flow)
    if rows.is_empty() and read_flow(tables, "segments", view, ["t_ns"]).is_empty():
        raise ReportError("Losses of this flow are not known, because its packets were not captured.")
    counts = dict(rows.group_by("lane").len().iter_rows())
    lanes = [lane for lane in _COLOURS if lane in counts or lane in _ALWAYS]
    labels = {lane: f"{lane} ({counts.get(lane, 0):,})" for lane in lanes}
    decimated = _decimated(rows, flow)
    frame = decimated.frame.with_columns(pl.col("lane").replace(labels))
    lane = alt.Y(
        "lane",
        type="nominal",
        axis=_lane_axis(),
        scale=alt.Scale(domain=list(labels.values())),
    )
    scale = alt.Scale(domain=list(labels.values()), range=[_COLOURS[lane] for lane in lanes])
    colour = alt.Color("lane", type="nominal", scale=scale, legend=None)
    lasting = frame.filter(pl.col("t_end") > pl.col(TIME))
    ticks = alt.Chart(inline(frame.filter(pl.col("t_end") <= pl.col(TIME)))).mark_tick(
        thickness=1.6, height=12, yOffset=8, clip=True, aria=False
    )
    bars = alt.Chart(inline(lasting)).mark_bar(height=10, yOffset=8, opacity=0.8, clip=True, aria=False)
    marks = event_marks(tables, flow)
    layers = [
        *marks.layers(Legend(marks.entries)),
        bars.encode(time_axis(flow), alt.X2("t_end"), lane, colour, tooltip=_tooltip(decimated, flow)),
        ticks.encode(time_axis(flow), lane, colour, tooltip=_tooltip(decimated, flow)).add_params(zoom()),
    ]
    description = f"Timeline of losses and retransmissions: {', '.join(labels.values())}."
    text = ChartText("Losses and retransmissions", description, decimation_note("events", decimated))
    chart = layered_chart(layers, text, height=36 * len(lanes), marks=decimated.frame.height)
    resolved: alt.LayerChart = chart.resolve_scale(color="independent")
    return resolved


def _events(tables: Tables, flow: Flow) -> pl.DataFrame:
    known = pl.col("cause").replace_strict(_LOSS_LANES, default=_LOSS_LANES["unknown"])
    other = pl.col("kind").replace_strict(_KIND_LANES, default=None)
    lane = pl.when(pl.col("kind") == "loss").then(known).otherwise(other)
    return events_of(tables, flow).with_columns(lane.alias("lane")).drop("kind").drop_nulls("lane")


def _lane_axis() -> alt.Axis:
    """Return an axis with its labels inside the chart, above their lanes, so that the time axis lines up."""
    return alt.Axis(
        title="Events",
        grid=False,
        ticks=False,
        minExtent=LABEL_WIDTH_PX,
        maxExtent=LABEL_WIDTH_PX,
        labelAlign="left",
        labelPadding=-4,
        labelOffset=-9,
        labelLimit=400,
        zindex=1,
    )


def _decimated(rows: pl.DataFrame, flow: Flow) -> Decimated:
    """Merge events of a lane in the same pixel column into the first of them; `merged` counts them."""
    if rows.height <= 2 * flow.view.bins:
        return Decimated(rows.with_columns(merged=pl.lit(1)), rows.height, decimated=False)
    low, high = flow.span_s
    width = (high - low) / flow.view.bins * (1e3 if flow.view.utc else 1.0)
    slot = (pl.col(TIME) / width).floor().alias("slot")
    rest = [c for c in rows.columns if c not in {"lane", "t_end"}]
    merged = (
        rows.with_columns(slot)
        .group_by("lane", "slot", maintain_order=True)
        .agg(pl.col(rest).first(), pl.col("t_end").first(), merged=pl.len())
    )
    return Decimated(merged.drop("slot"), rows.height, decimated=True)


def _tooltip(part: Decimated, flow: Flow) -> list[alt.Tooltip]:
    entries = [
        alt.Tooltip("lane", type="nominal", title="Event"),
        time_tooltip(flow),
        alt.Tooltip("cause", type="nominal", title="Cause"),
        alt.Tooltip("evidence", type="nominal", title="Evidence"),
        alt.Tooltip("record", type="quantitative", title="Record in the capture"),
        alt.Tooltip("seq_start", type="quantitative", format=",d", title="First octet"),
        alt.Tooltip("seq_end", type="quantitative", format=",d", title="End (next octet)"),
    ]
    merged = [alt.Tooltip("merged", type="quantitative", title="Events merged")] if part.decimated else []
    return [*entries, *merged]
