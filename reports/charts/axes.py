"""Shared parts of charts: inline data, axes, legends, zoom, notes on decimation.

Charts have no configuration, because Altair cannot layer charts that have one; whoever renders a chart applies
`style.vega_config`. Does not depend on any table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import polars as pl

from hindflight.reports.decimation import Decimated
from hindflight.reports.frames import TIME, Flow
from hindflight.reports.style import WIDTH

ZOOM = "time"
"""Name of the selection that zooms the charts over time."""

CANVAS_MARKS = 1000
"""Maximum number of marks of a chart drawn as SVG; more are drawn on a canvas, because SVG slows the browser down."""

LABEL_WIDTH_PX = 44
"""Minimum width of the labels of vertical axes in pixels, so that the time axes of stacked charts line up."""


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """Return `frame` as inline CSV data.

    Altair refuses data frames of more than 5000 rows, and validates and copies every row of a list, which takes
    seconds for 15 000 segments.
    """
    parse = {name: "number" for name, dtype in frame.schema.items() if dtype.is_numeric()}
    return alt.InlineData(values=frame.write_csv(), format=alt.CsvDataFormat(type="csv", parse=parse))


def time_axis(flow: Flow, title: str | None = None) -> alt.X:
    """Return the common time axis of the charts of `flow`: seconds since its start, or UTC."""
    low, high = flow.span_s
    if flow.view.utc:
        # Not `domain`: Vega-Lite takes those of two layers for different ones if they are times, and warns of each.
        scale = alt.Scale(type="utc", domainMin=flow.at(low), domainMax=flow.at(high), nice=False)
        return alt.X(TIME, type="temporal", title=title or "Time [UTC]", scale=scale)
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    axis = alt.Axis(title=title or "Time since the start of the flow [s]", tickCount=12, format=",~r")
    return alt.X(TIME, type="quantitative", axis=axis, scale=scale)


def time_tooltip(flow: Flow, field: str = TIME, title: str | None = None) -> alt.Tooltip:
    """Return the tooltip entry for a time."""
    if flow.view.utc:
        return alt.Tooltip(field, type="temporal", format="%Y-%m-%d %H:%M:%S.%L", title=title or "Time (UTC)")
    return alt.Tooltip(field, type="quantitative", format=",.6f", title=title or "Time [s]")


def byte_axis(quantity: str, largest: float) -> alt.Axis:
    """Return the axis of a field in bytes, labelled in the SI multiple that suits the value `largest`."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if largest >= 2 * factor:
            label = f"format(datum.value / {factor:.0f}, ',~r')"
            return alt.Axis(title=f"{quantity} [{unit}]", labelExpr=label, tickCount=6, minExtent=LABEL_WIDTH_PX)
    return alt.Axis(title=f"{quantity} [B]", format=",d", tickCount=6, minExtent=LABEL_WIDTH_PX)


def y_axis(title: str) -> alt.Axis:
    """Return a vertical axis of plain numbers."""
    return alt.Axis(title=title, format=",~r", tickCount=6, minExtent=LABEL_WIDTH_PX)


def x_axis(title: str) -> alt.Axis:
    """Return a horizontal axis of plain numbers."""
    # With labelFlush, Vega moves the last label inwards, where it can overlap its neighbour.
    return alt.Axis(title=title, format=",~r", tickCount=8, labelFlush=False)


class Legend:
    """The legend of a chart: labels with their colours, in order."""

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self.entries = list(entries)

    def encode(self, mark: alt.Chart, label: str, *channels: Any, **named: Any) -> alt.Chart:
        """Return `mark` with encoding `channels` and the colour of `label`."""
        labels = [name for name, _ in self.entries]
        scale = alt.Scale(domain=labels, range=[colour for _, colour in self.entries])
        colour = alt.Color("series", type="nominal", scale=scale, legend=alt.Legend(title=None))
        encoded = mark.transform_calculate(series=json.dumps(label)).encode(*channels, colour, **named)
        # As plain values: Altair copies layers several times, with each attribute of a channel that could be set.
        encoded.encoding = alt.FacetedEncoding(**encoded.encoding.to_dict(validate=False))
        return encoded


def zoom(axes: Sequence[Literal["x", "y"]] = ("x",)) -> alt.Parameter:
    """Return the zoom selection: drag to pan, turn the wheel with Alt or Ctrl to zoom, double-click to reset."""
    return alt.selection_interval(
        name=ZOOM, bind="scales", encodings=list(axes), zoom="wheel![event.altKey || event.ctrlKey]"
    )


def decimation_note(what: str, *parts: Decimated) -> list[str]:
    """Return the note of a chart that does not draw every row, as a list of one sentence; else an empty list."""
    if not any(part.decimated for part in parts):
        return []
    marks, rows = sum(part.frame.height for part in parts), sum(part.rows for part in parts)
    return [f"Decimated: {marks:,} marks represent {rows:,} {what}; minima and maxima are kept."]


@dataclass(frozen=True, slots=True)
class ChartText:
    """Title of a chart, its description for screen readers, and the notes below the title."""

    title: str
    description: str
    notes: Sequence[str] = ()


def layered_chart(layers: Sequence[alt.Chart], text: ChartText, height: int, marks: int = 0) -> alt.LayerChart:
    """Return a chart of `layers` with the title and notes of `text`, `height` pixels high.

    `marks` is the approximate number of marks. It selects the renderer: SVG, which prints better, or canvas.
    """
    title = alt.Title(text.title, subtitle=list(text.notes)) if text.notes else alt.Title(text.title)
    # Not `properties`, which copies all layers once more.
    return alt.LayerChart(
        layer=list(layers),
        title=title,
        description=text.description,
        width=WIDTH,
        height=height,
        usermeta={"embedOptions": {"renderer": "canvas" if marks > CANVAS_MARKS else "svg"}},
    )
