"""Congestion window of a flow over time: cwnd by source, ssthresh, data in flight, phases.

Draws `instruments` of one flow, and the data in flight from `segments`.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import (
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
from hindflight.reports.decimation import Decimated, drop_repeats, m4
from hindflight.reports.frames import (
    KERNEL_SOURCES,
    TIME,
    Flow,
    Tables,
    View,
    flow_of,
    maximum,
    minimum,
    on_axis,
    read_flow,
)
from hindflight.reports.link import states_of
from hindflight.reports.style import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    PURPLE,
    SHADE,
    SHADE_AMBER,
    SHADE_GREEN,
    SHADE_GREY,
    SHADE_RED,
    VERMILLION,
)
from hindflight.toolkit.errors import ReportError

RWND, PIPE = "receive window", "bandwidth-delay product"
INFERRED, REPLAY, FLIGHT, SSTHRESH = "cwnd, inferred from packets", "cwnd, replay", "data in flight", "ssthresh"
_KERNEL_LABELS = {f"cwnd, {source}" for source in KERNEL_SOURCES}
_DASHES = {SSTHRESH: [5, 3], RWND: [2, 3], PIPE: [9, 4]}
_SHADES = {
    "slow_start": ("slow start", SHADE_GREEN),
    "recovery": ("fast recovery", SHADE_AMBER),
    "loss": ("after a timeout", SHADE_RED),
    "limited": ("limited by application, pace or receiver", SHADE_GREY),
}
"""Labels and shades of phases; congestion avoidance is not shaded."""

_LEGEND = Legend(
    [
        *((f"cwnd, {source}", INK) for source in KERNEL_SOURCES),
        (INFERRED, VERMILLION),
        (REPLAY, BLUE),
        (SSTHRESH, PURPLE),
        (RWND, AMBER),
        (PIPE, GREEN),
        (FLIGHT, SHADE),
    ]
)


def cwnd(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the congestion window over time by source, with ssthresh, the data in flight and shaded phases.

    Reads `flows`, `instruments` and `segments`. Raises ReportError if no source has a congestion window.
    """
    view = view or View()
    flow = flow_of(tables, view)
    rows = instruments(tables, flow)
    windows = _windows(rows, flow)
    if not windows:
        raise ReportError("The congestion window is not known: there is no kernel log, and none was inferred.")
    best = _best_source(rows)
    lines = {
        FLIGHT: _flight(tables, flow),
        RWND: _receive_window(tables, flow),
        PIPE: _bandwidth_delay_product(tables, flow),
        SSTHRESH: _thresholds(rows, best, flow),
        **windows,
    }
    lines = {label: part for label, part in lines.items() if part.frame.height}
    top = max(maximum(part.frame, "bytes") for label, part in lines.items() if label in {FLIGHT, *windows})
    y = alt.Y(
        "bytes",
        type="quantitative",
        axis=byte_axis("Congestion window", top),
        scale=alt.Scale(domain=[0, 1.06 * top], nice=False),
    )
    marks = event_marks(tables, flow)
    legend = Legend([*(entry for entry in _LEGEND.entries if entry[0] in lines), *marks.entries])
    drawn = [_line(part, label, flow, y, legend) for label, part in lines.items()]
    drawn[-1] = drawn[-1].add_params(zoom())
    layers = [_phases(rows, best, flow), *marks.layers(legend), *drawn]
    names = " and ".join(windows)
    description = f"Congestion window over time ({names}), with the data in flight and the slow start threshold."
    text = ChartText("Congestion window", description, decimation_note("values", *lines.values()))
    return layered_chart(layers, text, height=300, marks=sum(part.frame.height for part in lines.values()))


def instruments(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return the columns of `instruments` that the cwnd and RTT charts draw, for the flow and leg of the view."""
    columns = ["t_ns", "source", "phase", "cwnd_bytes", "ssthresh_bytes", "srtt_ns"]
    return on_axis(read_flow(tables, "instruments", flow.view, columns), flow)


def _best_source(rows: pl.DataFrame) -> str:
    present = set(rows.filter(pl.col("cwnd_bytes").is_not_null())["source"].unique().to_list())
    return next(source for source in (*KERNEL_SOURCES, "replay", "inferred") if source in present)


def _windows(rows: pl.DataFrame, flow: Flow) -> dict[str, Decimated]:
    labels = {"inferred": INFERRED, "replay": REPLAY, **{source: f"cwnd, {source}" for source in KERNEL_SOURCES}}
    parts = {}
    for source, label in labels.items():
        mine = rows.filter((pl.col("source") == source) & pl.col("cwnd_bytes").is_not_null())
        if mine.height:
            parts[label] = _decimated(mine, "cwnd_bytes", flow)
    return dict(sorted(parts.items(), key=lambda item: item[0] not in _KERNEL_LABELS))


def _thresholds(rows: pl.DataFrame, source: str, flow: Flow) -> Decimated:
    """Return ssthresh; its nulls stay and become gaps in the line."""
    mine = rows.filter(pl.col("source") == source).select(TIME, pl.col("ssthresh_bytes").alias("bytes"))
    stepped = drop_repeats(mine, "bytes")
    if stepped["bytes"].null_count() == stepped.height:
        return Decimated(stepped.clear(), 0, decimated=False)
    few = stepped.height <= 4 * flow.view.bins
    return Decimated(stepped, stepped.height, decimated=False) if few else m4(stepped, TIME, "bytes", flow.view.bins)


def _flight(tables: Tables, flow: Flow) -> Decimated:
    rows = on_axis(read_flow(tables, "segments", flow.view, ["t_ns", "flight_bytes"]), flow)
    line = drop_repeats(rows.select(TIME, pl.col("flight_bytes").alias("bytes")).drop_nulls(), "bytes")
    return m4(line, TIME, "bytes", flow.view.bins // 2)  # A browser fills areas slowly.


def _receive_window(tables: Tables, flow: Flow) -> Decimated:
    """Return the window that the receiver advertised."""
    with_window = (pl.col("direction") == flow.acks) & pl.col("wnd_bytes").is_not_null()
    rows = on_axis(read_flow(tables, "segments", flow.view, ["t_ns", "wnd_bytes"], with_window), flow)
    return _decimated(rows, "wnd_bytes", flow)


def _bandwidth_delay_product(tables: Tables, flow: Flow) -> Decimated:
    """Return rate x round-trip propagation delay of the link, where both are known."""
    rate, delay = states_of(tables, flow, "rate_bps"), states_of(tables, flow, "delay_ns")
    both = rate.join(delay, on=TIME, how="inner", maintain_order="left")
    line = both.select(TIME, (pl.col("rate_bps") * pl.col("delay_ns") * 2 / 8e9).round(0).alias("bytes"))
    return Decimated(line, line.height, decimated=False)


def _decimated(rows: pl.DataFrame, column: str, flow: Flow) -> Decimated:
    line = rows.select(TIME, pl.col(column).alias("bytes")).drop_nulls()
    return m4(drop_repeats(line, "bytes"), TIME, "bytes", flow.view.bins)


def _line(part: Decimated, label: str, flow: Flow, y: alt.Y, legend: Legend) -> alt.Chart:
    if label == FLIGHT:  # An area: lines over it stay visible where they coincide with it.
        area = alt.Chart(inline(part.frame)).mark_area(interpolate="step-after", opacity=0.75, clip=True, aria=False)
        return legend.encode(area, label, time_axis(flow), y)
    mark = alt.Chart(inline(part.frame)).mark_line(
        interpolate="step-after",
        strokeWidth=3.4 if label in _KERNEL_LABELS else 1.4,
        strokeDash=_DASHES.get(label, [1, 0]),
        clip=True,
        aria=False,
    )
    return legend.encode(mark, label, time_axis(flow), y)


def _phases(rows: pl.DataFrame, source: str, flow: Flow) -> alt.Chart:
    """Shade the time that the sender spent in each phase, according to the best source."""
    spans = drop_repeats(rows.filter(pl.col("source") == source).select(TIME, "phase"), "phase")
    last = flow.at(flow.span_s[1])
    spans = spans.with_columns(pl.col(TIME).shift(-1).fill_null(last).alias("t_end"))
    pixel = (last - minimum(spans, TIME)) / flow.view.bins
    visible = (pl.col("t_end") - pl.col(TIME)) > pixel
    spans = spans.filter(pl.col("phase").is_in(list(_SHADES)) & visible)
    spans = spans.with_columns(pl.col("phase").replace({phase: name for phase, (name, _) in _SHADES.items()}))
    present = set(spans["phase"].to_list())
    shades = [(name, shade) for name, shade in _SHADES.values() if name in present]
    scale = alt.Scale(domain=[name for name, _ in shades], range=[shade for _, shade in shades])
    legend = alt.Legend(title=None, symbolType="square", symbolStrokeWidth=0) if shades else None
    tooltip = [
        alt.Tooltip("phase", type="nominal", title="Phase"),
        time_tooltip(flow, title="From"),
        time_tooltip(flow, "t_end", "To"),
    ]
    fill = alt.Fill("phase", type="nominal", scale=scale, legend=legend)
    mark = alt.Chart(inline(spans)).mark_rect(clip=True, aria=False)
    shaded: alt.Chart = mark.encode(time_axis(flow), alt.X2("t_end"), fill=fill, tooltip=tooltip)
    return shaded


def srtt_of(rows: pl.DataFrame, flow: Flow) -> dict[str, Decimated]:
    """Return SRTT [ms] over time by source, kernel sources first."""
    parts = {}
    for source in (*KERNEL_SOURCES, "replay", "inferred"):
        mine = rows.filter((pl.col("source") == source) & pl.col("srtt_ns").is_not_null())
        line = mine.select(TIME, (pl.col("srtt_ns") / 1e6).round(3).alias("ms"))
        if line.height:
            parts[f"SRTT, {source}"] = m4(drop_repeats(line, "ms"), TIME, "ms", flow.view.bins)
    return parts


__all__ = ["cwnd", "instruments", "srtt_of"]
