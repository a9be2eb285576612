"""What the sender held in flight and allowed itself: cwnd by every source, ssthresh, flight, phases.

Draws `instruments` of one flow, and flight from `segments` where the instruments have none.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import Legend, Words, byte_axis, finish, inline, note, time_axis, time_tooltip, zoom
from hindflight.reports.decimation import Thinned, m4, steps
from hindflight.reports.frames import TIME, TRUTH, Flow, Tables, View, flow_of, greatest, least, on_axis, read_flow
from hindflight.reports.style import (
    BLUE,
    GREY,
    INK,
    PURPLE,
    SHADE_AMBER,
    SHADE_GREEN,
    SHADE_GREY,
    SHADE_RED,
    VERMILLION,
)
from hindflight.toolkit.errors import ReportError

INFERRED, REPLAY, FLIGHT, SSTHRESH = "cwnd, inferred from packets", "cwnd, replay", "flight", "ssthresh"
_TRUE = {f"cwnd, {source}" for source in TRUTH}
_SHADES = {
    "slow_start": ("slow start", SHADE_GREEN),
    "recovery": ("fast recovery", SHADE_AMBER),
    "loss": ("after a timeout", SHADE_RED),
    "limited": ("held by application or receiver", SHADE_GREY),
}
"""Phases that are shaded; congestion avoidance is the plain ground."""

_LEGEND = Legend(
    [
        *((f"cwnd, {source}", INK) for source in TRUTH),
        (INFERRED, VERMILLION),
        (REPLAY, BLUE),
        (SSTHRESH, PURPLE),
        (FLIGHT, GREY),
    ]
)


def cwnd(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the congestion window over time, by every source there is, with flight, ssthresh and shaded phases.

    Reads `flows`, `instruments`, `segments`. ReportError where no source gives a congestion window.
    """
    view = view or View()
    flow = flow_of(tables, view)
    rows = instruments(tables, flow)
    windows = _windows(rows, flow)
    if not windows:
        raise ReportError("Neither a kernel log nor the packets of this flow give its congestion window.")
    best = _best_source(rows)
    lines = {FLIGHT: _flight(tables, flow), SSTHRESH: _thresholds(rows, best, flow), **windows}
    lines = {label: part for label, part in lines.items() if part.frame.height}
    top = max(greatest(part.frame, "bytes") for label, part in lines.items() if label != SSTHRESH)
    y = alt.Y(
        "bytes",
        type="quantitative",
        axis=byte_axis("Congestion window", top),
        scale=alt.Scale(domain=[0, 1.06 * top], nice=False),
    )
    legend = Legend([entry for entry in _LEGEND.entries if entry[0] in lines])
    layers = [_phases(rows, best, flow), *(_line(part, label, flow, y, legend) for label, part in lines.items())]
    layers[-1] = layers[-1].add_params(zoom())
    names = " and ".join(windows)
    described = f"Congestion window over time ({names}), with the octets in flight and the slow start threshold."
    words = Words("Congestion window", described, note("values", *lines.values()))
    return finish(layers, words, height=280, marks=sum(part.frame.height for part in lines.values()))


def instruments(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return what the cwnd and RTT charts need of `instruments`, of the leg that leaves the data sender."""
    columns = ["t_ns", "source", "phase", "cwnd_bytes", "ssthresh_bytes", "srtt_ns"]
    return on_axis(read_flow(tables, "instruments", flow.view, columns), flow)


def _best_source(rows: pl.DataFrame) -> str:
    present = set(rows.filter(pl.col("cwnd_bytes").is_not_null())["source"].unique().to_list())
    return next(source for source in (*TRUTH, "replay", "inferred") if source in present)


def _windows(rows: pl.DataFrame, flow: Flow) -> dict[str, Thinned]:
    labels = {"inferred": INFERRED, "replay": REPLAY, **{source: f"cwnd, {source}" for source in TRUTH}}
    parts = {}
    for source, label in labels.items():
        mine = rows.filter((pl.col("source") == source) & pl.col("cwnd_bytes").is_not_null())
        if mine.height:
            parts[label] = _thin(mine, "cwnd_bytes", flow)
    return dict(sorted(parts.items(), key=lambda item: item[0] not in _TRUE))


def _thresholds(rows: pl.DataFrame, source: str, flow: Flow) -> Thinned:
    """Return ssthresh with its nulls kept as gaps in the line."""
    mine = rows.filter(pl.col("source") == source).select(TIME, pl.col("ssthresh_bytes").alias("bytes"))
    stepped = steps(mine, "bytes")
    if stepped["bytes"].null_count() == stepped.height:
        return Thinned(stepped.clear(), 0, decimated=False)
    few = stepped.height <= 4 * flow.view.bins
    return Thinned(stepped, stepped.height, decimated=False) if few else m4(stepped, TIME, "bytes", flow.view.bins)


def _flight(tables: Tables, flow: Flow) -> Thinned:
    rows = on_axis(read_flow(tables, "segments", flow.view, ["t_ns", "flight_bytes"]), flow)
    return _thin(rows, "flight_bytes", flow)


def _thin(rows: pl.DataFrame, column: str, flow: Flow) -> Thinned:
    line = rows.select(TIME, pl.col(column).alias("bytes")).drop_nulls()
    return m4(steps(line, "bytes"), TIME, "bytes", flow.view.bins)


def _line(part: Thinned, label: str, flow: Flow, y: alt.Y, legend: Legend) -> alt.Chart:
    faint, dashed, truth = label == FLIGHT, label == SSTHRESH, label in _TRUE
    mark = alt.Chart(inline(part.frame)).mark_line(
        interpolate="step-after",
        strokeWidth=1.0 if faint else 3.4 if truth else 1.3,
        opacity=0.75 if faint else 1.0,
        strokeDash=[5, 3] if dashed else [1, 0],
        clip=True,
        aria=False,
    )
    return legend.encode(mark, label, time_axis(flow), y)


def _phases(rows: pl.DataFrame, source: str, flow: Flow) -> alt.Chart:
    """Shade the stretches that the sender spent in each phase, as the best source has it."""
    spells = steps(rows.filter(pl.col("source") == source).select(TIME, "phase"), "phase")
    last = flow.at(flow.span_s[1])
    spells = spells.with_columns(pl.col(TIME).shift(-1).fill_null(last).alias("t_end"))
    a_pixel = (last - least(spells, TIME)) / flow.view.bins
    seen = (pl.col("t_end") - pl.col(TIME)) > a_pixel
    spells = spells.filter(pl.col("phase").is_in(list(_SHADES)) & seen)
    spells = spells.with_columns(pl.col("phase").replace({phase: name for phase, (name, _) in _SHADES.items()}))
    present = set(spells["phase"].to_list())
    shades = [(name, shade) for name, shade in _SHADES.values() if name in present]
    scale = alt.Scale(domain=[name for name, _ in shades], range=[shade for _, shade in shades])
    legend = alt.Legend(title=None, symbolType="square", symbolStrokeWidth=0) if shades else None
    tooltip = [
        alt.Tooltip("phase", type="nominal", title="Phase"),
        time_tooltip(flow, title="From"),
        time_tooltip(flow, "t_end", "To"),
    ]
    fill = alt.Fill("phase", type="nominal", scale=scale, legend=legend)
    mark = alt.Chart(inline(spells)).mark_rect(clip=True, aria=False)
    shaded: alt.Chart = mark.encode(time_axis(flow), alt.X2("t_end"), fill=fill, tooltip=tooltip)
    return shaded


def srtt_of(rows: pl.DataFrame, flow: Flow) -> dict[str, Thinned]:
    """Return the smoothed round-trip time in ms by source, kernel sources first."""
    parts = {}
    for source in (*TRUTH, "replay", "inferred"):
        mine = rows.filter((pl.col("source") == source) & pl.col("srtt_ns").is_not_null())
        line = mine.select(TIME, (pl.col("srtt_ns") / 1e6).round(3).alias("ms"))
        if line.height:
            parts[f"smoothed, {source}"] = m4(steps(line, "ms"), TIME, "ms", flow.view.bins)
    return parts


__all__ = ["cwnd", "instruments", "srtt_of"]
