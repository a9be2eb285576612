"""Charts of a channel: intervals over time, run lengths of losses, autocorrelation of losses, skyline.

Draws frames that `channels.fitting` and `channels.models` computed. Does not depend on models or fits.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import inline, x_axis, y_axis
from hindflight.reports.style import INK, SHADE, SHADE_RED, WIDTH, category_colours
from hindflight.toolkit.errors import ReportError

TRACE = "trace"
"""Name of the observed series; every other series is a model."""

_KINDS = {"burst": "Loss bursts (consecutive losses)", "gap": "Gaps (packets between losses)"}
_PANEL = (WIDTH // 2 - 50, 230)
_QUANTITIES = {"rate_mbps": "Rate [Mbit/s]", "delay_ms": "Delay [ms]", "loss_share": "Loss probability (1500 B)"}
_SMALLEST = 1e-7
"""Minimum probability that is drawn, on a logarithmic axis; it rises to a tenth of the smallest observed one."""


def run_lengths(frame: pl.DataFrame, title: str = "Lengths of loss bursts and gaps") -> alt.HConcatChart:
    """Draw the complementary distribution of burst and gap lengths: dots are observed, lines are models.

    `frame` has columns `series`, `kind` (burst, gap), `length_pkts` and `longer` (probability that a run is longer).
    Raises ReportError without runs.
    """
    observed = frame.filter((pl.col("series") == TRACE) & (pl.col("longer") > 0))["longer"].to_list()
    smallest = max(_SMALLEST, 0.1 * min(observed, default=1.0))
    visible = frame.filter((pl.col("length_pkts") > 0) & (pl.col("longer") > smallest))
    if visible.is_empty():
        raise ReportError("No run of losses or deliveries is longer than one packet, so there are no lengths to draw.")
    names = _series(frame)
    panels = [_panel(visible.filter(pl.col("kind") == kind), names, _KINDS[kind]) for kind in _KINDS]
    chart: alt.HConcatChart = alt.hconcat(*panels).properties(
        title=alt.Title(title),
        description=f"{title}: probability that a run is longer than a number of packets; {_series_names(visible)}.",
    )
    return chart


def _panel(part: pl.DataFrame, names: list[str], title: str) -> alt.LayerChart:
    log = alt.Scale(type="log", nice=False)
    x = alt.X("length_pkts", type="quantitative", scale=log, axis=x_axis("Length [packets]"))
    y = alt.Y(
        "longer", type="quantitative", scale=log, axis=alt.Axis(title="P(run is longer)", format="~g", tickCount=4)
    )
    return _observed_and_models(part, names, x, y).properties(title=title, width=_PANEL[0], height=_PANEL[1])


def autocorrelation(frame: pl.DataFrame, title: str = "Autocorrelation of losses") -> alt.LayerChart:
    """Draw the autocorrelation of the loss sequence over the lag: dots are observed, lines are models.

    `frame` has columns `series`, `lag_pkts` and `autocorrelation`. Raises ReportError if it is empty.
    """
    if frame.is_empty():
        raise ReportError("All packets were lost or none was, so there is no autocorrelation to draw.")
    x = alt.X("lag_pkts", type="quantitative", scale=alt.Scale(type="log", nice=False), axis=x_axis("Lag [packets]"))
    y = alt.Y("autocorrelation", type="quantitative", axis=y_axis("Autocorrelation"))
    chart: alt.LayerChart = _observed_and_models(frame, _series(frame), x, y).properties(
        title=alt.Title(title),
        description=f"{title}: correlation of losses a lag apart; {_series_names(frame)}.",
        width=WIDTH,
        height=220,
    )
    return chart


def _series(frame: pl.DataFrame) -> list[str]:
    """Return the trace, then the models in order. Panels share the list, so that a model has one colour."""
    return [TRACE, *(name for name in frame["series"].unique(maintain_order=True).to_list() if name != TRACE)]


def _observed_and_models(frame: pl.DataFrame, names: list[str], x: alt.X, y: alt.Y) -> alt.LayerChart:
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


def _series_names(frame: pl.DataFrame) -> str:
    return ", ".join(frame["series"].unique(maintain_order=True).to_list())


def states(frame: pl.DataFrame, title: str = "The link over time") -> alt.VConcatChart:
    """Draw rate, delay and loss of the link over time, a panel each: mean as a line, range as a band, outages shaded.

    `frame` has columns `quantity` (rate_mbps, delay_ms, loss_share), `start_s`, `end_s`, `low`, `mean`, `high` and
    `out` (share of the time in outage). Raises ReportError if it is empty.
    """
    if frame.is_empty():
        raise ReportError("The trace has no intervals, so there is nothing to draw over time.")
    present = frame["quantity"].unique().to_list()
    span = (float(frame["start_s"].to_numpy().min()), float(frame["end_s"].to_numpy().max()))
    panels = [
        _over_time(frame.filter(pl.col("quantity") == quantity), label, span)
        for quantity, label in _QUANTITIES.items()
        if quantity in present
    ]
    chart: alt.VConcatChart = alt.vconcat(*panels).properties(
        title=alt.Title(title, subtitle=["Line: mean. Band: minimum to maximum. Red: outage."]),
        description=f"{title}: {', '.join(_QUANTITIES[quantity] for quantity in _QUANTITIES if quantity in present)}.",
    )
    return chart


def skyline(frame: pl.DataFrame, title: str = "Buildings along the street") -> alt.VConcatChart:
    """Draw the facades of both sides of a street: `frame` has columns `side`, `start_m`, `end_m` and `height_m`.

    Raises ReportError if it is empty.
    """
    if frame.is_empty():
        raise ReportError("The street has no buildings, so there is no skyline to draw.")
    panels = []
    for side in ("left", "right"):
        part = frame.filter(pl.col("side") == side)
        if part.is_empty():
            continue
        x = alt.X("start_m", type="quantitative", axis=x_axis("Position along the street [m]"))
        y = alt.Y("height_m", type="quantitative", axis=y_axis("Height [m]"))
        bars = alt.Chart(inline(part)).mark_rect(color=SHADE, stroke=INK, strokeWidth=0.4)
        encoded = bars.encode(x, alt.X2("end_m"), y, y2=alt.Y2Datum(0))
        panels.append(encoded.properties(title=f"{side} side", width=WIDTH, height=110))
    chart: alt.VConcatChart = alt.vconcat(*panels).properties(
        title=alt.Title(title), description=f"{title}: facades of both sides by position and height."
    )
    return chart


def _over_time(part: pl.DataFrame, label: str, span: tuple[float, float]) -> alt.LayerChart:
    scale = alt.Scale(domain=list(span), nice=False, zero=False)
    x = alt.X("start_s", type="quantitative", scale=scale, axis=x_axis("Time [s]"))
    end = alt.X2("end_s")
    base = alt.Chart(inline(part))
    layers = [
        base.transform_filter("datum.out > 0").mark_rect(color=SHADE_RED).encode(x, end),
        base.mark_rect(color=SHADE).encode(
            x, end, y=alt.Y("low", type="quantitative", axis=y_axis(label)), y2=alt.Y2("high")
        ),
        base.mark_line(color=INK, strokeWidth=1.4, interpolate="step-after").encode(
            x, y=alt.Y("mean", type="quantitative")
        ),
    ]
    return alt.LayerChart(layer=layers).properties(width=WIDTH, height=150)
