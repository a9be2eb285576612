"""Panels of equal scales in two columns, one per replayed variant: a quantity over time, and the captured flow's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt

from hindflight.reports.charts.axes import inline
from hindflight.reports.decimation import Decimated
from hindflight.reports.frames import TIME
from hindflight.reports.style import WIDTH

PANEL_BINS = 400
"""Bins of a line in a panel."""
Axes = tuple[alt.X, alt.Y]


def panel_axes(parts: Iterable[Decimated], across_title: str, up: alt.Axis, field: str, top: float) -> Axes:
    """Return the axes of all panels: TIME to the last row of `parts`, none of them empty, and `field` to `top`."""
    end = max(float(part.frame[TIME][-1]) for part in parts)
    across = alt.Axis(title=across_title, tickCount=6)
    x = alt.X(TIME, type="quantitative", axis=across, scale=alt.Scale(domain=[0, end], nice=False))
    up.tickCount = 4
    return x, alt.Y(field, type="quantitative", axis=up, scale=alt.Scale(domain=[0, 1.05 * top], nice=False))


def panel(subject: str, lines: Iterable[tuple[Decimated, alt.MarkDef]], axes: Axes) -> alt.LayerChart:
    """Draw the lines over one another, the first one below, each with its mark."""
    layers = []
    for part, mark in lines:
        line = alt.Chart(inline(part.frame))
        line.mark = mark
        layers.append(line.encode(*axes))
    title = alt.Title(subject, fontSize=13, offset=4)
    return alt.LayerChart(layer=layers, title=title, width=(WIDTH - 150) // 2, height=120)


def panel_note(captured: Decimated) -> str:
    """Say what the panels have in common."""
    scales = "All panels have the same scales."
    return f"Grey: the captured flow. {scales}" if captured.rows else scales


def side_by_side(panels: Sequence[alt.LayerChart], title: alt.Title, description: str) -> alt.ConcatChart:
    """Lay panels out in two columns."""
    return alt.ConcatChart(
        concat=list(panels),
        columns=2,
        spacing={"row": 14, "column": 24},
        title=title,
        description=description,
        usermeta={"embedOptions": {"renderer": "canvas"}},
    )
