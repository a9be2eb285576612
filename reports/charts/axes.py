"""What charts share: inline data, the time axis, axes in bytes, legends, notes on decimation.

Knows Altair and `style`; no table. Charts carry no configuration of their own (Altair cannot layer charts that
do): `style.vega_config` is applied where they are drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import polars as pl

from hindflight.reports.decimation import Thinned
from hindflight.reports.frames import TIME, Flow
from hindflight.reports.style import WIDTH

ZOOM = "time"
"""Name of the selection that zooms every chart over time."""

MANY = 4000
"""Marks past which a chart is drawn on a canvas: a browser is slow with that many SVG elements."""

LABELS = 44
"""Least width of the labels of vertical axes, in pixels: charts that stand one above the other line up."""


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """Return `frame` as inline data, in CSV.

    Not as a data frame, of which Altair refuses more than 5000 rows, nor as a list of rows, each of which it checks
    and copies: a flow of 15 000 segments would take it seconds.
    """
    parse = {name: "number" for name, dtype in frame.schema.items() if dtype.is_numeric()}
    return alt.InlineData(values=frame.write_csv(), format=alt.CsvDataFormat(type="csv", parse=parse))


def time_axis(flow: Flow, title: str | None = None) -> alt.X:
    """Return the time axis of all charts of `flow`: seconds from its start, or UTC."""
    low, high = flow.span_s
    if flow.view.utc:
        scale = alt.Scale(type="utc", domain=[flow.at(low), flow.at(high)], nice=False)
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
    """Return an axis for a field in bytes, labelled in the SI multiple that suits `largest`."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if largest >= 2 * factor:
            label = f"format(datum.value / {factor:.0f}, ',~r')"
            return alt.Axis(title=f"{quantity} [{unit}]", labelExpr=label, tickCount=6, minExtent=LABELS)
    return alt.Axis(title=f"{quantity} [B]", format=",d", tickCount=6, minExtent=LABELS)


def value_axis(title: str) -> alt.Axis:
    """Return an ordinary vertical axis."""
    return alt.Axis(title=title, format=",~r", tickCount=6, minExtent=LABELS)


def across_axis(title: str) -> alt.Axis:
    """Return an ordinary horizontal axis."""
    # A last label that is pushed inwards would stand on the one before it.
    return alt.Axis(title=title, format=",~r", tickCount=8, labelFlush=False)


class Legend:
    """One colour per kind of mark, one legend for the chart, in the order given."""

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self.entries = list(entries)

    def encode(self, mark: alt.Chart, label: str, *channels: Any, **named: Any) -> alt.Chart:
        """Return `mark` encoded with `channels`, in the colour of `label`."""
        labels = [name for name, _ in self.entries]
        scale = alt.Scale(domain=labels, range=[colour for _, colour in self.entries])
        colour = alt.Color("series", type="nominal", scale=scale, legend=alt.Legend(title=None))
        return mark.transform_calculate(series=json.dumps(label)).encode(*channels, colour, **named)


def zoom(axes: Sequence[Literal["x", "y"]] = ("x",)) -> alt.Parameter:
    """Return the selection that zooms: drag to pan, wheel with Alt or Ctrl held to zoom, double click to reset."""
    return alt.selection_interval(
        name=ZOOM, bind="scales", encodings=list(axes), zoom="wheel![event.altKey || event.ctrlKey]"
    )


def note(what: str, *parts: Thinned) -> list[str]:
    """Return the sentence that a chart must carry when it does not draw every row; nothing otherwise."""
    if not any(part.decimated for part in parts):
        return []
    drawn, rows = sum(part.frame.height for part in parts), sum(part.rows for part in parts)
    return [f"Thinned for drawing: {drawn:,} marks stand for {rows:,} {what}; extremes are kept."]


@dataclass(frozen=True, slots=True)
class Words:
    """What a chart says in words: its title, the text for those who do not see it, notes below the title."""

    title: str
    description: str
    notes: Sequence[str] = ()


def finish(layers: Sequence[alt.Chart], words: Words, height: int, marks: int = 0) -> alt.LayerChart:
    """Lay `layers` over one another, with their words and size.

    `marks` is about how many marks there are: many are drawn on a canvas, few as SVG, which prints better.
    """
    title = alt.Title(words.title, subtitle=list(words.notes)) if words.notes else alt.Title(words.title)
    chart = alt.LayerChart(layer=list(layers))
    return chart.properties(
        title=title,
        description=words.description,
        width=WIDTH,
        height=height,
        usermeta={"embedOptions": {"renderer": "canvas" if marks > MANY else "svg"}},
    )
