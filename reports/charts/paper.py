"""Charts of a reproduced paper: a figure with the paper's axes, and the experiment on a claim.

Draws rows of `points`. Computes no statistic.
"""

from __future__ import annotations

from typing import Literal

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import ChartText, inline, layered_chart, x_axis, y_axis
from hindflight.reports.numbers import short_exponents
from hindflight.reports.style import category_colours

HEIGHT = 300
_BAR_ROW = 30
_AXIS_PX = 40


def figure_chart(
    points: pl.DataFrame, title: str, x: str, y: str, mark: Literal["line", "bar", "step"]
) -> alt.LayerChart:
    """Draw the `points` of one figure: a curve per series with intervals, or a bar per category and series."""
    if mark == "bar":
        return _bars(points, title, (x, y))
    across = alt.X("x", type="quantitative", axis=x_axis(x), scale=alt.Scale(zero=True))
    up = alt.Y("y", type="quantitative", axis=y_axis(y), scale=alt.Scale(zero=True))
    colour = _colour(points)
    base = alt.Chart(inline(_cut(points, y).drop("paper", "figure", "label")))
    line = base.mark_line(
        interpolate="step-after" if mark == "step" else "linear", strokeWidth=1.4 if mark == "step" else 2
    )
    layers = [line.encode(across, up, colour)]
    if mark == "line":
        tips = _tips(x, y)
        if points["low"].count():
            low = alt.Y("shown_low", type="quantitative")
            layers.append(base.mark_rule(strokeWidth=1.5).encode(across, low, alt.Y2("high"), colour))
        layers.append(base.mark_point(size=45, filled=True, opacity=1).encode(across, up, colour, tooltip=tips))
    return layered_chart(layers, ChartText(title, _description(points, title)), HEIGHT, points.height)


def _cut(points: pl.DataFrame, y: str) -> pl.DataFrame:
    """Return `points` with `shown_low`, the end of the interval that is drawn: that of a rate is cut at 0.

    The interval of a mean of few runs is symmetric, and may reach below what a rate can be.
    """
    is_rate = y.endswith("bit/s]") and all(each >= 0 for each in points["y"].drop_nulls())
    return points.with_columns(shown_low=pl.col("low").clip(lower_bound=0) if is_rate else pl.col("low"))


def experiment_chart(points: pl.DataFrame, title: str, x: str) -> alt.LayerChart:
    """Draw what a claim measures, which `x` says, under each reading of an experiment, with intervals."""
    return _bars(points, title, ("", x), dots=True)


def _bars(points: pl.DataFrame, title: str, names: tuple[str, str], *, dots: bool = False) -> alt.LayerChart:
    """Draw a bar or dot per category and series; `names` are those of the categories and of the values."""
    category, value = names
    points = points.with_columns(pl.col("label").map_elements(short_exponents, return_dtype=pl.String))
    labels = points["label"].unique(maintain_order=True).to_list()
    series = points["series"].unique(maintain_order=True).to_list()
    down = alt.Y("label", type="nominal", sort=labels, title=category or None, axis=alt.Axis(labelLimit=260))
    lanes = alt.YOffset("series", type="nominal", sort=series)
    # An interval around a mean of nothing below 0 may reach below it, and would shift the origin of the bars.
    clipped = not dots and all(each >= 0 for each in points["y"])
    scale = alt.Scale(zero=True, domainMin=0) if clipped else alt.Scale(zero=not dots)
    across = alt.X("y", type="quantitative", axis=x_axis(value), scale=scale)
    colour = _colour(points)
    base = alt.Chart(inline(points.drop("paper", "figure", "x")))
    tips = [alt.Tooltip("label", type="nominal", title=category or "Case"), *_tips("", value)]
    mark = base.mark_point(size=60, filled=True, opacity=1) if dots else base.mark_bar(opacity=0.85)
    layers = [mark.encode(across, down, lanes, colour, tooltip=tips)]
    if points["low"].count():
        rule = base.mark_rule(strokeWidth=1.5, clip=clipped)
        layers.append(rule.encode(alt.X("low", type="quantitative"), alt.X2("high"), down, lanes))
    height = _AXIS_PX + len(labels) * max(_BAR_ROW, 14 * len(series))
    return layered_chart(layers, ChartText(title, _description(points, title)), height, points.height)


def _colour(points: pl.DataFrame) -> alt.Color:
    series = points["series"].unique(maintain_order=True).to_list()
    scale = alt.Scale(domain=series, range=category_colours(len(series)))
    return alt.Color("series", type="nominal", scale=scale, legend=alt.Legend(title=None))


def _tips(x: str, y: str) -> list[alt.Tooltip]:
    tips = [alt.Tooltip("series", type="nominal", title="Curve")]
    tips += [alt.Tooltip("x", type="quantitative", title=x)] if x else []
    for field, title in (("y", y), ("low", "95 % interval from"), ("high", "to")):
        tips.append(alt.Tooltip(field, type="quantitative", format=",.4~g", title=title))
    return tips


def _description(points: pl.DataFrame, title: str) -> str:
    names = "; ".join(str(name) for name in points["series"].unique(maintain_order=True))
    return f"{title}. Curves: {names}."
