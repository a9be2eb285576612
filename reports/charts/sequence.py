"""Time-sequence: what was sent, again and for the first time, what was acknowledged, what the window allowed.

The chart that tcptrace calls tsg. Draws `segments` of one flow and the losses of `events` and `channel`.
"""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import polars as pl

from reports.charts.axes import Legend, Words, byte_axis, finish, inline, note, time_axis, time_tooltip, zoom
from reports.decimation import Thinned, cells, m4, steps
from reports.frames import TIME, Flow, Tables, View, flow_of, greatest, least, on_axis, read_flow
from reports.link import events_of
from reports.style import AMBER, BLUE, GREEN, INK, PURPLE, VERMILLION
from toolkit.errors import ReportError

SENT, AGAIN, ACK, WINDOW = "data segment", "retransmission", "cumulative ACK", "window edge"
SACK, LOST = "SACK block", "lost"
_LEGEND = Legend([(SENT, BLUE), (AGAIN, VERMILLION), (ACK, GREEN), (WINDOW, AMBER), (SACK, PURPLE), (LOST, INK)])
_RASTER_HEIGHT = 500


@dataclass(frozen=True, slots=True)
class _Parts:
    """Frames of the chart: marks reach from `seq` to `seq_end`, lines run along `seq`."""

    sent: Thinned
    again: Thinned
    ack: Thinned
    window: Thinned
    sack: Thinned
    lost: Thinned

    def all(self) -> tuple[Thinned, ...]:
        return self.sent, self.again, self.ack, self.window, self.sack, self.lost


def time_sequence(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the time-sequence graph of one flow: segments, retransmissions, losses, ACK, SACK and window edge.

    Reads `flows`, `segments`, `events`, `channel`. ReportError where the flow has no data segment.
    """
    view = view or View()
    flow = flow_of(tables, view)
    parts = _parts(tables, flow)
    if parts.sent.rows + parts.again.rows == 0:
        raise ReportError("No data segments of this flow were captured, so there is no time-sequence graph.")
    top = max(greatest(part.frame, "seq_end") for part in (parts.sent, parts.again))
    y = alt.Y(
        "seq",
        type="quantitative",
        axis=byte_axis("Sequence number", top),
        scale=alt.Scale(domain=_sequence_domain(parts, top), nice=False, zero=False),
    )
    layers = [
        _line(parts.window, WINDOW, flow, y),
        _bars(parts.sack, SACK, flow, y, 1.2),
        _bars(parts.sent, SENT, flow, y, 1.8),
        _line(parts.ack, ACK, flow, y),
        _bars(parts.again, AGAIN, flow, y, 2.6),
        _crosses(parts.lost, flow, y),
    ]
    layers[2] = layers[2].add_params(zoom(("x", "y")))
    described = (
        f"Sequence numbers over time: {parts.sent.rows} data segments, {parts.again.rows} retransmissions and "
        f"{parts.lost.rows} losses, with the line of cumulative ACKs below and the edge of the receiver's window above."
    )
    words = Words("Time-sequence", described, note("segments and ACKs", *parts.all()))
    return finish(layers, words, height=420, marks=sum(part.frame.height for part in parts.all()))


def _parts(tables: Tables, flow: Flow) -> _Parts:
    columns = ["t_ns", "direction", "record", "seq", "payload_bytes", "ack", "wnd_bytes", "sack", "retransmission"]
    rows = on_axis(read_flow(tables, "segments", flow.view, columns), flow)
    bins = (flow.view.bins, _RASTER_HEIGHT)
    data = rows.filter((pl.col("direction") == flow.data) & (pl.col("payload_bytes") > 0)).select(
        TIME, "seq", (pl.col("seq") + pl.col("payload_bytes")).alias("seq_end"), "record", "retransmission"
    )
    fresh, again = data.filter(~pl.col("retransmission")), data.filter("retransmission")
    acks = rows.filter((pl.col("direction") == flow.acks) & pl.col("ack").is_not_null())
    line = acks.select(TIME, pl.col("ack").alias("seq"))
    edge = acks.select(TIME, (pl.col("ack") + pl.col("wnd_bytes")).alias("seq")).drop_nulls()
    return _Parts(
        cells(fresh.drop("retransmission"), TIME, "seq", "seq_end", bins),
        cells(again.drop("retransmission"), TIME, "seq", "seq_end", bins),
        m4(steps(line, "seq"), TIME, "seq", flow.view.bins),
        m4(steps(edge, "seq"), TIME, "seq", flow.view.bins),
        cells(_sack_blocks(acks), TIME, "seq", "seq_end", bins),
        cells(_losses(tables, flow), TIME, "seq", "seq_end", bins),
    )


def _sack_blocks(acks: pl.DataFrame) -> pl.DataFrame:
    """Return the first block of each ACK (RFC 2018 §4: the one that reports the newest segment) when it is new."""
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
    low = min(least(part.frame, "seq") for part in (parts.sent, parts.again) if part.frame.height)
    return [low, top + 0.06 * (top - low)]


def _data(part: Thinned) -> alt.InlineData:
    return inline(part.frame if part.decimated else part.frame.drop("merged"))


def _bars(part: Thinned, label: str, flow: Flow, y: alt.Y, width: float) -> alt.Chart:
    mark = alt.Chart(_data(part)).mark_rule(strokeWidth=width, strokeCap="square", clip=True, aria=False)
    return _LEGEND.encode(mark, label, time_axis(flow), y, alt.Y2("seq_end"), tooltip=_tooltip(part, flow))


def _line(part: Thinned, label: str, flow: Flow, y: alt.Y) -> alt.Chart:
    mark = alt.Chart(inline(part.frame)).mark_line(interpolate="step-after", strokeWidth=1.4, clip=True, aria=False)
    return _LEGEND.encode(mark, label, time_axis(flow), y)


def _crosses(part: Thinned, flow: Flow, y: alt.Y) -> alt.Chart:
    mark = alt.Chart(_data(part)).mark_point(shape="cross", angle=45, size=22, strokeWidth=1, clip=True, aria=False)
    extra = [alt.Tooltip("cause", type="nominal", title="Lost to")]
    return _LEGEND.encode(mark, LOST, time_axis(flow), y, tooltip=[*_tooltip(part, flow), *extra])


def _tooltip(part: Thinned, flow: Flow) -> list[alt.Tooltip]:
    entries = [
        time_tooltip(flow),
        alt.Tooltip("seq", type="quantitative", format=",d", title="From octet"),
        alt.Tooltip("seq_end", type="quantitative", format=",d", title="To octet"),
        alt.Tooltip("record", type="quantitative", format="d", title="Record in the capture"),
    ]
    merged = [alt.Tooltip("merged", type="quantitative", title="Marks merged")] if part.decimated else []
    return [*entries, *merged]
