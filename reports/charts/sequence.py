"""Time-sequence graph of a flow: data segments, retransmissions, losses, ACKs, SACK blocks and window edge.

The chart that tcptrace calls tsg. Draws `segments` of one flow and the losses of `events` and `channel`.
"""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import (
    ZOOM,
    ChartText,
    Legend,
    byte_axis,
    decimation_note,
    inline,
    layered_chart,
    time_axis,
    time_tooltip,
    zoom,
)
from hindflight.reports.charts.marks import event_marks
from hindflight.reports.decimation import Decimated, drop_repeats, m4, merge_marks
from hindflight.reports.frames import TIME, Flow, Tables, View, flow_of, maximum, minimum, on_axis, read_flow
from hindflight.reports.link import events_of
from hindflight.reports.style import AMBER, BLUE, GREEN, INK, PURPLE, VERMILLION
from hindflight.toolkit.errors import ReportError

SENT, RETRANSMITTED, ACK, WINDOW = "data segment", "retransmission", "cumulative ACK", "window edge"
SACK, LOST = "SACK block", "lost"
_LEGEND = [(SENT, BLUE), (RETRANSMITTED, VERMILLION), (ACK, GREEN), (WINDOW, AMBER), (SACK, PURPLE), (LOST, INK)]
_STROKES = {SACK: 1.2, SENT: 1.8, RETRANSMITTED: 2.6}
_RASTER_HEIGHT = 500


@dataclass(frozen=True, slots=True)
class _Parts:
    """Frames of the chart. Marks span `seq` to `seq_end`; the lines ack and window follow `seq`."""

    sent: Decimated
    retransmitted: Decimated
    ack: Decimated
    window: Decimated
    sack: Decimated
    lost: Decimated

    def all(self) -> tuple[Decimated, ...]:
        return self.sent, self.retransmitted, self.ack, self.window, self.sack, self.lost

    def present(self) -> dict[str, Decimated]:
        """Return the parts with data by label, the bottom layer first."""
        order = {
            WINDOW: self.window, SACK: self.sack, SENT: self.sent, ACK: self.ack,
            RETRANSMITTED: self.retransmitted, LOST: self.lost,
        }  # fmt: skip
        return {label: part for label, part in order.items() if part.rows}


def time_sequence(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the time-sequence graph of a flow: data segments, retransmissions, losses, ACKs, SACK blocks, window edge.

    Reads `flows`, `segments`, `events` and `channel`. Raises ReportError if the flow has no data segment.
    """
    view = view or View()
    flow = flow_of(tables, view)
    parts = _parts(tables, flow)
    if parts.sent.rows + parts.retransmitted.rows == 0:
        raise ReportError("No data segment of this flow was captured, so there is no time-sequence graph.")
    top = max(maximum(part.frame, "seq_end") for part in (parts.sent, parts.retransmitted))
    y = alt.Y(
        "seq",
        type="quantitative",
        axis=byte_axis("Sequence number", top),
        scale=alt.Scale(domain=_sequence_domain(parts, top), nice=False, zero=False),
    )
    present = parts.present()
    marks = event_marks(tables, flow)
    legend = Legend([*(entry for entry in _LEGEND if entry[0] in present), *marks.entries])
    layers = [_layer(part, label, flow, y, legend) for label, part in present.items() if label != LOST]
    layers[-1] = layers[-1].add_params(zoom(("x", "y")))
    layers = [*marks.layers(legend), *layers, *_lost(parts.lost, flow, y, legend)]
    description = (
        f"Sequence numbers over time: {parts.sent.rows} data segments, {parts.retransmitted.rows} retransmissions and "
        f"{parts.lost.rows} losses; the cumulative ACK below them and the right edge of the receive window above them."
    )
    text = ChartText("Time-sequence graph", description, decimation_note("segments and ACKs", *parts.all()))
    return layered_chart(layers, text, height=420, marks=sum(part.frame.height for part in parts.all()))


def _parts(tables: Tables, flow: Flow) -> _Parts:
    columns = ["t_ns", "direction", "record", "seq", "payload_bytes", "ack", "wnd_bytes", "sack", "retransmission"]
    useful = (pl.col("payload_bytes") > 0) | (pl.col("direction") == flow.acks)
    rows = on_axis(read_flow(tables, "segments", flow.view, columns, useful), flow)
    bins = (flow.view.bins, _RASTER_HEIGHT)
    data = rows.filter((pl.col("direction") == flow.data) & (pl.col("payload_bytes") > 0)).select(
        TIME, "seq", (pl.col("seq") + pl.col("payload_bytes")).alias("seq_end"), "record", "retransmission"
    )
    new, retransmitted = data.filter(~pl.col("retransmission")), data.filter("retransmission")
    acks = rows.filter((pl.col("direction") == flow.acks) & pl.col("ack").is_not_null())
    line = acks.select(TIME, pl.col("ack").alias("seq"))
    edge = acks.select(TIME, (pl.col("ack") + pl.col("wnd_bytes")).alias("seq")).drop_nulls()
    return _Parts(
        merge_marks(new.drop("retransmission"), TIME, "seq", "seq_end", bins),
        merge_marks(retransmitted.drop("retransmission"), TIME, "seq", "seq_end", bins),
        m4(drop_repeats(line, "seq"), TIME, "seq", flow.view.bins),
        m4(drop_repeats(edge, "seq"), TIME, "seq", flow.view.bins),
        merge_marks(_sack_blocks(acks), TIME, "seq", "seq_end", bins),
        merge_marks(_losses(tables, flow), TIME, "seq", "seq_end", bins),
    )


def _sack_blocks(acks: pl.DataFrame) -> pl.DataFrame:
    """Return the first SACK block of each ACK, which reports the latest segment (RFC 2018 §4), without repetitions."""
    first = acks.select(
        TIME,
        pl.col("sack").list.get(0, null_on_oob=True).alias("seq"),
        pl.col("sack").list.get(1, null_on_oob=True).alias("seq_end"),
        "record",
    ).drop_nulls(["seq", "seq_end"])
    repeated = (pl.col("seq") == pl.col("seq").shift(1)) & (pl.col("seq_end") == pl.col("seq_end").shift(1))
    return first.filter(~repeated.fill_null(value=False))


def _losses(tables: Tables, flow: Flow) -> pl.DataFrame:
    losses = events_of(tables, flow).filter(pl.col("kind") == "loss")
    return losses.select(TIME, pl.col("seq_start").alias("seq"), "seq_end", "record", "cause").drop_nulls(
        ["seq", "seq_end"]
    )


def _sequence_domain(parts: _Parts, top: float) -> list[float]:
    low = min(minimum(part.frame, "seq") for part in (parts.sent, parts.retransmitted) if part.frame.height)
    return [low, top + 0.06 * (top - low)]


def _layer(part: Decimated, label: str, flow: Flow, y: alt.Y, legend: Legend) -> alt.Chart:
    time = time_axis(flow)
    if label in {ACK, WINDOW}:
        line = alt.Chart(inline(part.frame)).mark_line(interpolate="step-after", strokeWidth=1.4, clip=True, aria=False)
        return legend.encode(line, label, time, y)
    marks = alt.Chart(_rows(part))
    bar = marks.mark_rule(strokeWidth=_STROKES[label], strokeCap="square", clip=True, aria=False)
    return legend.encode(bar, label, time, y, alt.Y2("seq_end"), tooltip=_tooltip(part, flow))


def _rows(part: Decimated) -> alt.InlineData:
    return inline(part.frame if part.decimated else part.frame.drop("merged"))


CROSSES = 150
"""Losses that a chart shows as crosses; zoomed out further, they would hide the data, and the strip shows them."""


def _lost(part: Decimated, flow: Flow, y: alt.Y, legend: Legend) -> list[alt.Chart]:
    """Draw losses as a strip along the time axis, and as crosses where the zoom lets one tell them apart."""
    if not part.rows:
        return []
    tips = [*_tooltip(part, flow), alt.Tooltip("cause", type="nominal", title="Cause of the loss")]
    strip = alt.Chart(_rows(part)).mark_tick(thickness=1, height=9, yOffset=-5, clip=True, aria=False)
    gaps = part.frame[TIME].sort().diff().drop_nulls()
    near = float(gaps.filter(gaps > 0).cast(pl.Float64).median() or 0.0) * CROSSES  # type: ignore[arg-type]
    close = f"isValid({ZOOM}_{TIME}) && abs({ZOOM}_{TIME}[1] - {ZOOM}_{TIME}[0]) < {near:g}"
    visible = alt.condition(close if part.rows > CROSSES else "true", alt.value(1), alt.value(0))
    cross = alt.Chart(_rows(part)).mark_point(shape="cross", angle=45, size=22, strokeWidth=1, clip=True, aria=False)
    return [
        legend.encode(strip, LOST, time_axis(flow), y=alt.value("height"), tooltip=tips),
        legend.encode(cross, LOST, time_axis(flow), y, opacity=visible, tooltip=tips),
    ]


def stevens(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the Stevens graph of a flow: one dot per data segment, at its first octet.

    Reads `flows`, `segments` and `channel`. Raises ReportError if the flow has no data segment.
    """
    flow = flow_of(tables, view or View())
    parts = _parts(tables, flow)
    drawn = {SENT: parts.sent, RETRANSMITTED: parts.retransmitted}
    drawn = {label: part for label, part in drawn.items() if part.rows}
    if not drawn:
        raise ReportError("No data segment of this flow was captured, so there is no Stevens graph.")
    top = max(maximum(part.frame, "seq") for part in drawn.values())
    axis = byte_axis("Sequence number", top)
    y = alt.Y("seq", type="quantitative", axis=axis, scale=alt.Scale(domain=_sequence_domain(parts, top), nice=False))
    marks = event_marks(tables, flow)
    legend = Legend([*(entry for entry in _LEGEND if entry[0] in drawn), *marks.entries])
    layers = []
    for label, part in drawn.items():
        dot = alt.Chart(_rows(part)).mark_circle(size=6 if label == SENT else 16, opacity=1, clip=True, aria=False)
        layers.append(legend.encode(dot, label, time_axis(flow), y, tooltip=_tooltip(part, flow)))
    layers[0] = layers[0].add_params(zoom(("x", "y")))
    text = ChartText(
        "Stevens graph",
        f"First octet of each data segment over time: {sum(part.rows for part in drawn.values())} segments.",
        decimation_note("segments", *drawn.values()),
    )
    dots = sum(part.frame.height for part in drawn.values())
    return layered_chart([*marks.layers(legend), *layers], text, height=320, marks=dots)


def _tooltip(part: Decimated, flow: Flow) -> list[alt.Tooltip]:
    entries = [
        time_tooltip(flow),
        alt.Tooltip("seq", type="quantitative", format=",d", title="First octet"),
        alt.Tooltip("seq_end", type="quantitative", format=",d", title="End (next octet)"),
        alt.Tooltip("record", type="quantitative", format="d", title="Record in the capture"),
    ]
    merged = [alt.Tooltip("merged", type="quantitative", title="Marks merged")] if part.decimated else []
    return [*entries, *merged]
