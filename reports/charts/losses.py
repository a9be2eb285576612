"""When data was lost, to what, and why we think so; when it was sent again; when the link was out.

Draws `events` of one flow, their causes and outages from `channel` where it was extracted, one lane per kind.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import LABELS, Words, finish, inline, note, time_axis, time_tooltip, zoom
from hindflight.reports.decimation import Thinned
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
    """Draw the losses by cause (channel, queue, unknown), retransmissions, timeouts, recoveries and outages.

    Reads `flows`, `events`, `channel`. ReportError where neither events nor packets of the flow are there.
    """
    view = view or View()
    flow = flow_of(tables, view)
    rows = _events(tables, flow)
    if rows.is_empty() and read_flow(tables, "segments", view, ["t_ns"]).is_empty():
        raise ReportError("Losses cannot be told without the packets of this flow.")
    counts = dict(rows.group_by("lane").len().iter_rows())
    lanes = [lane for lane in _COLOURS if lane in counts or lane in _ALWAYS]
    labels = {lane: f"{lane} ({counts.get(lane, 0):,})" for lane in lanes}
    drawn = _thin(rows, flow)
    frame = drawn.frame.with_columns(pl.col("lane").replace(labels))
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
    layers = [
        bars.encode(time_axis(flow), alt.X2("t_end"), lane, colour, tooltip=_tooltip(drawn, flow)),
        ticks.encode(time_axis(flow), lane, colour, tooltip=_tooltip(drawn, flow)).add_params(zoom()),
    ]
    described = f"Timeline of losses and what repaired them: {', '.join(labels.values())}."
    words = Words("Losses and repairs", described, note("events", drawn))
    return finish(layers, words, height=36 * len(lanes), marks=drawn.frame.height)


def _events(tables: Tables, flow: Flow) -> pl.DataFrame:
    known = pl.col("cause").replace_strict(_LOSS_LANES, default=_LOSS_LANES["unknown"])
    other = pl.col("kind").replace_strict(_KIND_LANES, default=None)
    lane = pl.when(pl.col("kind") == "loss").then(known).otherwise(other)
    return events_of(tables, flow).with_columns(lane.alias("lane")).drop("kind").drop_nulls("lane")


def _lane_axis() -> alt.Axis:
    """Return an axis whose labels stand inside, above their lanes: so the time axis lines up with the other charts'."""
    return alt.Axis(
        title="Events",
        grid=False,
        ticks=False,
        minExtent=LABELS,
        maxExtent=LABELS,
        labelAlign="left",
        labelPadding=-4,
        labelOffset=-9,
        labelLimit=400,
        zindex=1,
    )


def _thin(rows: pl.DataFrame, flow: Flow) -> Thinned:
    """Merge events of one lane that fall on the same column of pixels: the first speaks for all, `merged` counts."""
    if rows.height <= 2 * flow.view.bins:
        return Thinned(rows.with_columns(merged=pl.lit(1)), rows.height, decimated=False)
    low, high = flow.span_s
    width = (high - low) / flow.view.bins * (1e3 if flow.view.utc else 1.0)
    slot = (pl.col(TIME) / width).floor().alias("slot")
    rest = [c for c in rows.columns if c not in {"lane", "t_end"}]
    merged = (
        rows.with_columns(slot)
        .group_by("lane", "slot", maintain_order=True)
        .agg(pl.col(rest).first(), pl.col("t_end").first(), merged=pl.len())
    )
    return Thinned(merged.drop("slot"), rows.height, decimated=True)


def _tooltip(part: Thinned, flow: Flow) -> list[alt.Tooltip]:
    entries = [
        alt.Tooltip("lane", type="nominal", title="What"),
        time_tooltip(flow),
        alt.Tooltip("cause", type="nominal", title="Cause"),
        alt.Tooltip("evidence", type="nominal", title="Evidence"),
        alt.Tooltip("record", type="quantitative", title="Record in the capture"),
        alt.Tooltip("seq_start", type="quantitative", format=",d", title="From octet"),
        alt.Tooltip("seq_end", type="quantitative", format=",d", title="To octet"),
    ]
    merged = [alt.Tooltip("merged", type="quantitative", title="Events merged")] if part.decimated else []
    return [*entries, *merged]
