"""How the flows of a path shared it: the goodput of each, and Jain's index.

Draws `findings` (section sharing, metric `goodput`; section what_if, metric `jain_index`). Computes no statistic.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import ChartText, inline, layered_chart, x_axis
from hindflight.reports.frames import Tables, read
from hindflight.reports.style import BLUE, INK, category_colours
from hindflight.toolkit.errors import ReportError

_STEP = 34
_NAMED = 8
"""Maximum number of flows with a colour and a name of their own."""


def what_if_sharing(tables: Tables) -> alt.LayerChart:
    """Draw the mean goodput of each flow that shared the path, a row for each variant and proxy of the flow under test.

    Reads `findings`. Raises ReportError if no flows shared a path.
    """
    rows = read(tables, "findings", ["section", "subject", "metric", "value", "low", "high"])
    fairness = dict(
        rows.filter((pl.col("section") == "what_if") & (pl.col("metric") == "jain_index"))
        .select("subject", "value")
        .iter_rows()
    )
    shared = rows.filter((pl.col("section") == "sharing") & (pl.col("metric") == "goodput"))
    if shared.is_empty():
        raise ReportError("The flow under test was alone on its path in every run.")
    frame = _frame(shared, fairness)
    order = frame["row"].unique(maintain_order=True).to_list()
    axis = alt.Axis(title=None, labelLimit=320, ticks=False, grid=True)
    y = alt.Y("row", type="nominal", axis=axis, scale=alt.Scale(domain=order))
    x = alt.X("mbps", type="quantitative", axis=x_axis("Goodput [Mbit/s]"), scale=alt.Scale(zero=True))
    tips = [
        alt.Tooltip("flow", type="nominal", title="Flow"),
        alt.Tooltip("mbps", type="quantitative", format=",.3f", title="Goodput [Mbit/s]"),
        alt.Tooltip("low", type="quantitative", format=",.3f", title="from"),
        alt.Tooltip("high", type="quantitative", format=",.3f", title="to"),
    ]
    bounded = frame.drop_nulls(["low", "high"])
    spans = alt.Chart(inline(bounded)).mark_rule(strokeWidth=1.5, opacity=0.5, color=INK)
    dots = alt.Chart(inline(frame)).mark_circle(size=60, opacity=0.85)
    layers = [spans.encode(alt.X("low", type="quantitative"), alt.X2("high"), y)] if bounded.height else []
    layers.append(dots.encode(x, y, _colour(frame), tooltip=tips))
    text = ChartText(
        "Goodput of each flow that shared the path",
        f"A row per variant and proxy, a dot per flow, the mean over the seeds: {'; '.join(order)}.",
        ["Dot: mean over the seeds; bar: its 95 % interval. Jain: 1 if all flows have the same, 1/n if one has all."],
    )
    return layered_chart(layers, text, height=_STEP * len(order), marks=2 * frame.height)


def _colour(frame: pl.DataFrame) -> alt.Color | alt.ColorValue:
    """Return a colour per flow, while there are few enough to tell apart."""
    names = frame["name"].unique(maintain_order=True).to_list()
    if len(names) > _NAMED:
        return alt.ColorValue(BLUE)
    scale = alt.Scale(domain=names, range=category_colours(len(names)))
    return alt.Color("name", type="nominal", scale=scale, legend=alt.Legend(title=None))


def _frame(shared: pl.DataFrame, fairness: dict[str, float]) -> pl.DataFrame:
    """Return `row`, `flow`, its `name` without the variant, and the goodput in Mbit/s of each flow."""
    found = []
    for subject, value, low, high in shared.select("subject", "value", "low", "high").iter_rows():
        tested, _, flow = subject.partition(": ")
        index = fairness.get(tested)
        found.append(
            (
                tested if index is None else f"{tested} (Jain {index:.3f})",
                flow,
                flow.rpartition(" (")[0],
                value,
                low,
                high,
            )
        )
    names = ["row", "flow", "name", "mbps", "low", "high"]
    numbers = pl.col("mbps", "low", "high").cast(pl.Float64) / 1e6
    return pl.DataFrame(found, schema=names, orient="row", infer_schema_length=None).with_columns(numbers)
