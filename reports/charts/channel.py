"""What a channel is like: its states over time, how long runs of losses and deliveries last, how losses hang together.

Reads plain frames, which the channel's statistics computed; knows nothing of models or how they were fitted.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import across_axis, inline, value_axis
from hindflight.reports.style import INK, SHADE, SHADE_RED, WIDTH, category_colours
from hindflight.toolkit.errors import ReportError

TRACE = "trace"
"""The series that was seen; every other one is a model."""

_KINDS = {"burst": "Runs of losses", "gap": "Runs between losses"}
_PANEL = (WIDTH // 2 - 50, 230)
_QUANTITIES = {"rate_mbps": "Rate [Mbit/s]", "delay_ms": "Delay [ms]", "loss_share": "Share lost (1500 B)"}
_SMALLEST = 1e-7
"""Shares below this, or below a tenth of the least that was seen, are not drawn: a logarithmic axis has no zero."""


def run_lengths(frame: pl.DataFrame, title: str = "How long runs last") -> alt.HConcatChart:
    """Draw the share of runs longer than a length, of losses and between them: dots what was seen, lines models.

    `frame` has `series`, `kind` (burst, gap), `length_pkts`, `longer`. ReportError without runs.
    """
    seen = frame.filter((pl.col("series") == TRACE) & (pl.col("longer") > 0))["longer"].to_list()
    smallest = max(_SMALLEST, 0.1 * min(seen, default=1.0))
    drawn = frame.filter((pl.col("length_pkts") > 0) & (pl.col("longer") > smallest))
    if drawn.is_empty():
        raise ReportError("No run of losses or deliveries is longer than a packet, so there are no lengths to draw.")
    names = _series(frame)
    panels = [_panel(drawn.filter(pl.col("kind") == kind), names, _KINDS[kind]) for kind in _KINDS]
    chart: alt.HConcatChart = alt.hconcat(*panels).properties(
        title=alt.Title(title),
        description=f"{title}: share of runs longer than a number of packets, {_named(drawn)}.",
    )
    return chart


def _panel(part: pl.DataFrame, names: list[str], title: str) -> alt.LayerChart:
    log = alt.Scale(type="log", nice=False)
    x = alt.X("length_pkts", type="quantitative", scale=log, axis=across_axis("Length [packets]"))
    y = alt.Y("longer", type="quantitative", scale=log, axis=alt.Axis(title="Share longer", format="~g", tickCount=4))
    return _seen_and_expected(part, names, x, y).properties(title=title, width=_PANEL[0], height=_PANEL[1])


def autocorrelation(frame: pl.DataFrame, title: str = "How losses hang together") -> alt.LayerChart:
    """Draw the autocorrelation of the fates over the lag: dots what was seen, lines models.

    `frame` has `series`, `lag_pkts`, `autocorrelation`. ReportError if it is empty.
    """
    if frame.is_empty():
        raise ReportError("All packets fared alike, so there is no autocorrelation to draw.")
    x = alt.X(
        "lag_pkts", type="quantitative", scale=alt.Scale(type="log", nice=False), axis=across_axis("Lag [packets]")
    )
    y = alt.Y("autocorrelation", type="quantitative", axis=value_axis("Autocorrelation"))
    chart: alt.LayerChart = _seen_and_expected(frame, _series(frame), x, y).properties(
        title=alt.Title(title),
        description=f"{title}: correlation of the fates of packets a lag apart, {_named(frame)}.",
        width=WIDTH,
        height=220,
    )
    return chart


def _series(frame: pl.DataFrame) -> list[str]:
    """The trace, then the models in their order: all panels must share them, or their colours clash."""
    return [TRACE, *(name for name in frame["series"].unique(maintain_order=True).to_list() if name != TRACE)]


def _seen_and_expected(frame: pl.DataFrame, names: list[str], x: alt.X, y: alt.Y) -> alt.LayerChart:
    scale = alt.Scale(domain=names, range=[INK, *category_colours(len(names) - 1)])
    colour = alt.Color("series", type="nominal", scale=scale, legend=alt.Legend(title=None, columns=5))
    base = alt.Chart(inline(frame))
    lines = base.transform_filter(f"datum.series != '{TRACE}'").mark_line(strokeWidth=1.6)
    dots = base.transform_filter(f"datum.series == '{TRACE}'").mark_point(filled=True, size=36, opacity=0.9)
    layers = [
        lines.encode(x, y, colour),
        dots.encode(x, y, colour),
    ]
    return alt.LayerChart(layer=layers)


def _named(frame: pl.DataFrame) -> str:
    return ", ".join(frame["series"].unique(maintain_order=True).to_list())


def states(frame: pl.DataFrame, title: str = "The link over time") -> alt.VConcatChart:
    """Draw what the link was like over time: a panel per quantity, its mean as a line within its range, outages behind.

    `frame` has `quantity` (rate_mbps, delay_ms, loss_share), `start_s`, `end_s`, `low`, `mean`, `high` and `out` (the
    share of the time in which the link was out). ReportError if it is empty.
    """
    if frame.is_empty():
        raise ReportError("The trace says nothing about the link over time, so there are no states to draw.")
    held = frame["quantity"].unique().to_list()
    span = (float(frame["start_s"].to_numpy().min()), float(frame["end_s"].to_numpy().max()))
    panels = [
        _over_time(frame.filter(pl.col("quantity") == quantity), label, span)
        for quantity, label in _QUANTITIES.items()
        if quantity in held
    ]
    chart: alt.VConcatChart = alt.vconcat(*panels).properties(
        title=alt.Title(title, subtitle=["line: mean; band: least to greatest; red: outage"]),
        description=f"{title}: {', '.join(_QUANTITIES[quantity] for quantity in _QUANTITIES if quantity in held)}.",
    )
    return chart


def skyline(frame: pl.DataFrame, title: str = "Buildings along the street") -> alt.VConcatChart:
    """Draw the facades of both sides, as one walks: `frame` has `side`, `start_m`, `end_m`, `height_m`.

    ReportError if it is empty.
    """
    if frame.is_empty():
        raise ReportError("The street has no buildings, so there is no skyline to draw.")
    panels = []
    for side in ("left", "right"):
        part = frame.filter(pl.col("side") == side)
        if part.is_empty():
            continue
        x = alt.X("start_m", type="quantitative", axis=across_axis("Along the street [m]"))
        y = alt.Y("height_m", type="quantitative", axis=value_axis("Height [m]"))
        bars = alt.Chart(inline(part)).mark_rect(color=SHADE, stroke=INK, strokeWidth=0.4)
        encoded = bars.encode(x, alt.X2("end_m"), y, y2=alt.Y2Datum(0))
        panels.append(encoded.properties(title=f"{side} side", width=WIDTH, height=110))
    chart: alt.VConcatChart = alt.vconcat(*panels).properties(
        title=alt.Title(title), description=f"{title}: facades of both sides by place and height."
    )
    return chart


def _over_time(part: pl.DataFrame, label: str, span: tuple[float, float]) -> alt.LayerChart:
    scale = alt.Scale(domain=list(span), nice=False, zero=False)
    x = alt.X("start_s", type="quantitative", scale=scale, axis=across_axis("Time [s]"))
    end = alt.X2("end_s")
    base = alt.Chart(inline(part))
    layers = [
        base.transform_filter("datum.out > 0").mark_rect(color=SHADE_RED).encode(x, end),
        base.mark_rect(color=SHADE).encode(
            x, end, y=alt.Y("low", type="quantitative", axis=value_axis(label)), y2=alt.Y2("high")
        ),
        base.mark_line(color=INK, strokeWidth=1.4, interpolate="step-after").encode(
            x, y=alt.Y("mean", type="quantitative")
        ),
    ]
    return alt.LayerChart(layer=layers).properties(width=WIDTH, height=150)
