"""The link of a flow over time, what each packet waited on it, and what its queue held.

Draws `segments` of one flow and the intervals of `channel`.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import (
    ChartText,
    Legend,
    byte_axis,
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
from hindflight.reports.frames import TIME, Flow, Tables, View, flow_of, maximum, read
from hindflight.reports.link import states_of
from hindflight.reports.style import AMBER, BLUE, PURPLE
from hindflight.toolkit.errors import ReportError

HELD, LIMIT = "in the queue, as a packet came", "limit of the queue"
WAITED = "delay above propagation, one packet"
RATE, DELAY = "rate of the bottleneck (left axis)", "propagation delay, both directions (right axis)"


def packet_delay(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the delay of each data packet above the propagation delay of the link at that time.

    Reads `flows`, `segments` and `channel`. Raises ReportError if no round-trip time was measured.
    """
    flow = flow_of(tables, view or View())
    waited = _waited(tables, flow, flow)
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


def _waited(tables: Tables, flow: Flow, link: Flow) -> pl.DataFrame:
    """Return TIME of the ACK, `ms` above the propagation delay at that time, and `record` of each RTT sample of `flow`
    over the link of `link`.

    Where the link was not extracted, propagation is the minimum round-trip time.
    """
    samples = rtt_samples(tables, flow)
    if samples.is_empty():
        raise ReportError("No round-trip time was measured on this flow, so the delay of its packets is not known.")
    floor = states_of(tables, link, "delay_ns").select(TIME, floor=pl.col("delay_ns") * 2 / 1e6)
    joined = _with_state(samples, floor) if floor.height else samples
    lowest = pl.col("floor") if floor.height else pl.col("ms").min()
    return joined.with_columns(((pl.col("ms") - lowest).clip(lower_bound=0)).round(3).alias("ms"))


def _with_state(samples: pl.DataFrame, states: pl.DataFrame) -> pl.DataFrame:
    """Return the samples with the state of the link in force at their time; before the first state with that."""
    name = next(column for column in states.columns if column != TIME)
    typed = samples.with_columns(pl.col(TIME).cast(pl.Float64))
    joined = typed.join_asof(states.with_columns(pl.col(TIME).cast(pl.Float64)).sort(TIME), on=TIME)
    return joined.with_columns(pl.col(name).fill_null(strategy="backward"))


def queue_occupancy(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw what the queue of the bottleneck held as each packet came to it: its delay there times the rate.

    Reads `flows`, `segments`, `channel`, and of `findings` the limit of the queue. Raises ReportError if the rate or
    the propagation delay of the link is not known.
    """
    flow = flow_of(tables, view or View())
    size = packet_bytes(tables, flow)
    held = queue_samples(tables, flow, flow)
    dots = m4(held, TIME, "bytes", flow.view.bins)
    shown = dots.frame.with_columns(pkts=(pl.col("bytes") / size).round(1))
    limit = _queue_limit_pkts(tables)
    top = max(maximum(shown, "bytes"), (limit or 0) * size)
    y = alt.Y("bytes", type="quantitative", axis=byte_axis("Queue", top), scale=alt.Scale(zero=True))
    tips = [
        time_tooltip(flow),
        alt.Tooltip("bytes", type="quantitative", format=",d", title="In the queue [B]"),
        alt.Tooltip("pkts", type="quantitative", format=",.1f", title=f"Packets of {size} B"),
        alt.Tooltip("record", type="quantitative", title="Record in the capture"),
    ]
    marks = event_marks(tables, flow)
    legend = Legend([(HELD, BLUE), *([(LIMIT, AMBER)] if limit else []), *marks.entries])
    line = alt.Chart(inline(shown)).mark_circle(size=8 if dots.rows > LARGE_MARK_SAMPLES else 30, clip=True, aria=False)
    layers = [legend.encode(line, HELD, time_axis(flow), y, tooltip=tips).add_params(zoom())]
    notes = decimation_note("packets", dots)
    if limit:
        full = pl.DataFrame({"bytes": [round(limit * size)]})
        rule = alt.Chart(inline(full)).mark_rule(strokeDash=[6, 4], strokeWidth=1.6, aria=False)
        layers.append(legend.encode(rule, LIMIT, y))
        notes = [f"The limit is {limit:,.0f} packets of {size:,} B.", *notes]
    text = ChartText("Queue of the bottleneck", f"Octets in the queue over time: {dots.rows} packets.", notes)
    return layered_chart([*marks.layers(legend), *layers], text, height=200, marks=dots.frame.height)


def queue_samples(tables: Tables, flow: Flow, link: Flow) -> pl.DataFrame:
    """Return TIME, `record` and the `bytes` in the queue as a packet came to it, of each RTT sample of `flow`.

    `link` is the captured flow whose link it is; where `flow` is a replay over it, samples after its end are left out.
    Raises ReportError if the rate or the propagation delay of the link is not known.
    """
    rate = states_of(tables, link, "rate_bps").select(TIME, "rate_bps")
    if rate.is_empty() or states_of(tables, link, "delay_ns").is_empty():
        raise ReportError(
            "The rate and the propagation delay of the link are not both known, so what its queue held is not known."
        )
    waited = _waited(tables, flow, link)
    if flow.view.run_id:
        waited = waited.filter(pl.col(TIME) <= float(rate[TIME][-1]))
    return _with_state(waited, rate).select(
        TIME, "record", bytes=(pl.col("ms") / 1e3 * pl.col("rate_bps") / 8).round(0).cast(pl.Int64)
    )


def packet_bytes(tables: Tables, flow: Flow) -> int:
    """Return the IP length of the largest data packet on the link of the flow."""
    rows = read(tables, "channel", ["kind", "direction", "size_bytes"], pl.col("kind") == "packet")
    return int(maximum(rows.filter(pl.col("direction") == flow.data), "size_bytes")) or 1500


def _queue_limit_pkts(tables: Tables) -> float | None:
    """Return the estimated limit of the queue; None where no finding has it, or it is not known."""
    rows = read(tables, "findings", ["section", "metric", "value", "verdict"])
    mine = rows.filter(
        (pl.col("section") == "key_numbers") & (pl.col("metric") == "queue limit") & (pl.col("verdict") == "info")
    )["value"].drop_nulls()
    return float(mine[0]) if mine.len() else None


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
