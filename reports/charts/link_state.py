"""The link of a flow over time, and what each packet waited on it.

Draws `segments` of one flow and the intervals of `channel`.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import (
    ChartText,
    Legend,
    decimation_note,
    inline,
    layered_chart,
    time_axis,
    time_tooltip,
    y_axis,
    zoom,
)
from hindflight.reports.charts.marks import event_marks
from hindflight.reports.charts.path import LARGE_MARK_SAMPLES, rtt_samples
from hindflight.reports.decimation import drop_repeats, m4
from hindflight.reports.frames import TIME, Tables, View, flow_of
from hindflight.reports.link import states_of
from hindflight.reports.style import AMBER, BLUE, PURPLE
from hindflight.toolkit.errors import ReportError

WAITED = "delay above propagation, one packet"
RATE, DELAY = "rate of the bottleneck (left axis)", "propagation delay, both directions (right axis)"


def packet_delay(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the delay of each data packet above the propagation delay of the link at that time.

    Reads `flows`, `segments` and `channel`. Raises ReportError if no round-trip time was measured.
    """
    flow = flow_of(tables, view or View())
    samples = rtt_samples(tables, flow)
    if samples.is_empty():
        raise ReportError("No round-trip time was measured on this flow, so the delay of its packets is not known.")
    floor = states_of(tables, flow, "delay_ns").select(TIME, floor=pl.col("delay_ns") * 2 / 1e6)
    if floor.height:
        typed = samples.with_columns(pl.col(TIME).cast(pl.Float64))
        joined = typed.join_asof(floor.with_columns(pl.col(TIME).cast(pl.Float64)).sort(TIME), on=TIME)
        lowest = pl.col("floor").fill_null(strategy="backward")
    else:
        joined, lowest = samples, pl.col("ms").min()
    waited = joined.with_columns(((pl.col("ms") - lowest).clip(lower_bound=0)).round(3).alias("ms"))
    dots = m4(waited.select(TIME, "ms", "record"), TIME, "ms", flow.view.bins)
    size = 8 if dots.rows > LARGE_MARK_SAMPLES else 30
    mark = alt.Chart(inline(dots.frame)).mark_circle(size=size, opacity=0.6, clip=True, aria=False)
    y = alt.Y("ms", type="quantitative", axis=y_axis("Delay above propagation [ms]"), scale=alt.Scale(zero=True))
    tips = [
        time_tooltip(flow),
        alt.Tooltip("ms", type="quantitative", format=",.3f", title="Above propagation [ms]"),
        alt.Tooltip("record", type="quantitative", title="Record in the capture"),
    ]
    marks = event_marks(tables, flow)
    legend = Legend([(WAITED, PURPLE), *marks.entries])
    drawn = legend.encode(mark, WAITED, time_axis(flow), y, tooltip=tips)
    text = ChartText(
        "Delay of each packet",
        f"Delay above propagation over time: {dots.rows} packets.",
        decimation_note("packets", dots),
    )
    layers = [*marks.layers(legend), drawn.add_params(zoom())]
    return layered_chart(layers, text, height=200, marks=dots.frame.height)


def link_state(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw rate and propagation delay of the link over time, with its outages.

    Reads `flows`, `events` and `channel`. Raises ReportError if the channel was not extracted.
    """
    flow = flow_of(tables, view or View())
    rate = states_of(tables, flow, "rate_bps").select(TIME, value=(pl.col("rate_bps") / 1e6).round(6))
    delay = states_of(tables, flow, "delay_ns").select(TIME, value=(pl.col("delay_ns") * 2 / 1e6).round(3))
    lines = [
        (label, drop_repeats(frame, "value"), axis, colour)
        for label, frame, axis, colour in (
            (RATE, rate, "Rate [Mbit/s]", BLUE),
            (DELAY, delay, "Propagation delay [ms]", AMBER),
        )
        if frame.height
    ]
    if not lines:
        raise ReportError("The link of this flow was not extracted, so its state over time is not known.")
    marks = event_marks(tables, flow)
    legend = Legend([*((label, colour) for label, _, _, colour in lines), *marks.entries])
    layers = []
    for label, frame, title, colour in lines:
        axis = y_axis(title)
        axis.orient = "left" if label == RATE or len(lines) == 1 else "right"
        axis.titleColor = colour
        scale = alt.Scale(
            zero=True, domainMax=1.15 * max(1e-3, float(frame["value"].cast(pl.Float64).to_numpy().max()))
        )
        y = alt.Y("value", type="quantitative", axis=axis, scale=scale)
        tips = [time_tooltip(flow), alt.Tooltip("value", type="quantitative", format=",.3f", title=title)]
        line = alt.Chart(inline(frame)).mark_line(
            interpolate="step-after",
            strokeWidth=1.8,
            strokeDash=[1, 0] if label == RATE else [6, 4],
            clip=True,
            aria=False,
        )
        layers.append(legend.encode(line, label, time_axis(flow), y, tooltip=tips))
    layers[0] = layers[0].add_params(zoom())
    text = ChartText("State of the link", f"{' and '.join(label for label, *_ in lines)} of the link over time.")
    chart: alt.LayerChart = layered_chart([*marks.layers(legend), *layers], text, height=200)
    if len(lines) > 1:
        chart = chart.resolve_scale(y="independent")
    return chart
