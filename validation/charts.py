"""The engine's congestion window over a reference's, run by run: the figures of docs/validation.md and docs/variants.

Reads a frame of windows that the validation computed; does not depend on how runs are recorded or rebuilt.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import decimation_note, inline, x_axis, y_axis
from hindflight.reports.decimation import m4
from hindflight.reports.style import BLUE, SHADE
from hindflight.toolkit.errors import ReportError

KERNEL, ENGINE = "Linux", "engine"
"""Values of the column `side`, in the order of drawing."""

_BINS = 120
_COLUMNS = 2
_PANEL = (400, 120)


def validation_windows(frame: pl.DataFrame, title: str, reference: str = KERNEL) -> alt.FacetChart:
    """Draw one panel per run: cwnd [packets] over the number of the data packet, `reference` wide, the engine thin.

    `frame` has the columns `run`, `side`, `packet` and `cwnd_pkts`, sorted by packet; `side` is `reference` or ENGINE.
    ReportError if it is empty.
    """
    if frame.is_empty():
        raise ReportError("No recorded run could be compared, so there are no windows to draw.")
    runs = frame["run"].unique(maintain_order=True).to_list()
    thinned = [
        m4(frame.filter((pl.col("run") == run) & (pl.col("side") == side)), "packet", "cwnd_pkts", _BINS)
        for side in (reference, ENGINE)
        for run in runs
    ]
    data = pl.concat([part.frame for part in thinned]).with_columns(pl.col("cwnd_pkts").round(2))
    sides = [reference, ENGINE]
    panel = (
        alt.Chart()
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("packet", type="quantitative", axis=x_axis("Data packet")),
            y=alt.Y("cwnd_pkts", type="quantitative", axis=y_axis("cwnd [packets]")),
            color=alt.Color("side", type="nominal", scale=alt.Scale(domain=sides, range=[SHADE, BLUE]), title=None),
            strokeWidth=alt.StrokeWidth("side", type="nominal", scale=alt.Scale(domain=sides, range=[4, 1.2])),
        )
        .properties(width=_PANEL[0], height=_PANEL[1])
    )
    facet = alt.Facet("run", type="nominal", title=None, sort=runs)
    subtitle = decimation_note("windows", *thinned)
    chart: alt.FacetChart = (
        panel.facet(facet, columns=_COLUMNS, data=inline(data))
        .resolve_scale(x="independent", y="independent")
        .properties(
            title=alt.Title(title, subtitle=subtitle) if subtitle else alt.Title(title),
            description=f"Congestion window at equal data packet, {reference} and engine, in {', '.join(runs)}.",
        )
    )
    return chart
