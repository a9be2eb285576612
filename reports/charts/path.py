"""What the path gave: round-trip times, and the rates that were sent and delivered.

Draws `segments` of one flow, or `instruments` where only a log is there, and the link's rate and delay of `channel`.
"""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import (
    Legend,
    Words,
    finish,
    inline,
    note,
    time_axis,
    time_tooltip,
    value_axis,
    zoom,
)
from hindflight.reports.charts.window import instruments, srtt_of
from hindflight.reports.decimation import m4
from hindflight.reports.frames import TIME, TRUTH, Flow, Tables, View, flow_of, on_axis, read_flow
from hindflight.reports.link import states_of
from hindflight.reports.style import AMBER, BLUE, GREEN, INK, SKY, VERMILLION
from hindflight.toolkit.errors import ReportError

SAMPLE, FLOOR = "RTT sample", "propagation, both ways"
SENT, GOODPUT, RATE = "sent, retransmissions included", "goodput (acknowledged in order)", "bottleneck rate"
FEW = 1000
"""Samples up to which each is drawn large enough to be seen alone."""

_RATES = [(SENT, BLUE), (GOODPUT, GREEN), (RATE, AMBER)]
_NICE_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600)


def rtt(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw each round-trip time sample of the data direction, and the smoothed value where a source gives it.

    Reads `flows`, `segments`, `instruments`, `channel`. ReportError where no round-trip time was measured.
    """
    view = view or View()
    flow = flow_of(tables, view)
    columns = ["t_ns", "direction", "rtt_ns", "record"]
    rows = on_axis(read_flow(tables, "segments", flow.view, columns), flow)
    samples = rows.filter((pl.col("direction") == flow.acks) & pl.col("rtt_ns").is_not_null())
    points = samples.select(TIME, (pl.col("rtt_ns") / 1e6).round(3).alias("ms"), "record")
    dots = m4(points, TIME, "ms", flow.view.bins)
    smooth = srtt_of(instruments(tables, flow), flow)
    if dots.rows == 0 and not smooth:
        raise ReportError("No round-trip time was measured on this flow.")
    smoothed = [(label, VERMILLION if "inferred" in label else INK) for label in smooth]
    floor = states_of(tables, flow, "delay_ns").select(TIME, ms=pl.col("delay_ns") * 2 / 1e6)
    measured = [(SAMPLE, SKY)] if dots.rows else []
    legend = Legend([*measured, *smoothed, *([(FLOOR, AMBER)] if floor.height else [])])
    y = alt.Y("ms", type="quantitative", axis=value_axis("Round-trip time [ms]"), scale=alt.Scale(zero=True))
    size = 8 if dots.rows > FEW else 30
    dot = alt.Chart(inline(dots.frame)).mark_circle(size=size, opacity=0.6, clip=True, aria=False)
    tips = [
        time_tooltip(flow),
        alt.Tooltip("ms", type="quantitative", format=",.3f", title="RTT [ms]"),
        alt.Tooltip("record", type="quantitative", title="Record in the capture"),
    ]
    layers = [legend.encode(dot, SAMPLE, time_axis(flow), y, tooltip=tips)] if dots.rows else []
    for label, part in smooth.items():
        line = alt.Chart(inline(part.frame)).mark_line(interpolate="step-after", strokeWidth=1.4, clip=True, aria=False)
        layers.append(legend.encode(line, label, time_axis(flow), y))
    if floor.height:
        line = alt.Chart(inline(floor)).mark_line(interpolate="step-after", strokeDash=[6, 4], clip=True, aria=False)
        layers.append(legend.encode(line, FLOOR, time_axis(flow), y))
    layers[0] = layers[0].add_params(zoom())
    described = f"Round-trip time over time: {dots.rows} samples{', with the smoothed value' if smooth else ''}."
    words = Words("Round-trip time", described, note("values", dots, *smooth.values()))
    marks = sum(part.frame.height for part in (dots, *smooth.values()))
    return finish(layers, words, height=240, marks=marks)


def throughput(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw what was sent and what was acknowledged per bin of time, in Mbit/s of TCP payload.

    Reads `flows`, `segments` (else `instruments`) and `channel`. ReportError where no data was sent.
    """
    view = view or View()
    flow = flow_of(tables, view)
    moved = _moved_in_segments(tables, flow) or _moved_in_log(tables, flow)
    if not moved:
        raise ReportError("Neither packets nor a log of this flow say how much data moved.")
    low, high = flow.span_s
    width = bin_width_s(high - low, min(rows.height for rows in moved.values()))
    link = states_of(tables, flow, "rate_bps").select(TIME, mbps=pl.col("rate_bps") / 1e6)
    present = {*moved, *([RATE] if link.height else [])}
    legend = Legend([entry for entry in _RATES if entry[0] in present])
    y = alt.Y("mbps", type="quantitative", axis=value_axis("Throughput [Mbit/s]"), scale=alt.Scale(zero=True))
    tips = [time_tooltip(flow, title="From"), alt.Tooltip("mbps", type="quantitative", format=",.3f", title="Mbit/s")]
    layers: list[alt.Chart] = []
    for label, rows in moved.items():
        steps = alt.Chart(inline(_binned(rows, flow, width)))
        line = steps.mark_line(interpolate="step-after", strokeWidth=1.6, opacity=1, clip=True, aria=False)
        layers.append(legend.encode(line, label, time_axis(flow), y, tooltip=tips))
    if link.height:
        line = alt.Chart(inline(link)).mark_line(interpolate="step-after", strokeDash=[6, 4], clip=True, aria=False)
        layers.append(legend.encode(line, RATE, time_axis(flow), y))
    layers[0] = layers[0].add_params(zoom())
    described = f"Payload sent and acknowledged per bin of {width:g} s, over time."
    words = Words("Throughput", described, [f"TCP payload per bin of {width:g} s."])
    return finish(layers, words, height=220)


def bin_width_s(span_s: float, rows: int) -> float:
    """Return a round width that cuts `span_s` into some 60 to 150 bins, fewer where there are fewer rows to bin."""
    bins = min(150, max(1, rows - 1))
    return next((width for width in _NICE_S if span_s / width <= bins), _NICE_S[-1])


def _moved_in_segments(tables: Tables, flow: Flow) -> dict[str, pl.DataFrame]:
    """Return octets sent and newly acknowledged, each with its t_ns; nothing without data segments."""
    rows = read_flow(tables, "segments", flow.view, ["t_ns", "direction", "payload_bytes", "ack"]).sort("t_ns")
    data = rows.filter((pl.col("direction") == flow.data) & (pl.col("payload_bytes") > 0))
    acks = rows.filter((pl.col("direction") == flow.acks) & pl.col("ack").is_not_null())
    highest = pl.col("ack").cum_max()
    fresh = acks.select("t_ns", (highest - highest.shift(1)).fill_null(0).alias("bytes"))
    sent = data.select("t_ns", pl.col("payload_bytes").cast(pl.Int64).alias("bytes"))
    if sent.is_empty():
        return {}
    return {SENT: sent, GOODPUT: fresh} if fresh.height else {SENT: sent}


def _moved_in_log(tables: Tables, flow: Flow) -> dict[str, pl.DataFrame]:
    """Return octets newly acknowledged as a log has them, each with its t_ns; nothing without such a log."""
    rows = read_flow(tables, "instruments", flow.view, ["t_ns", "source", "snd_una"])
    mine = rows.drop_nulls("snd_una").sort("t_ns")
    sources = set(mine["source"].unique().to_list())
    source = next((s for s in (*TRUTH, "replay", "inferred") if s in sources), None)
    if source is None:
        return {}
    mine = mine.filter(source=source)
    # WEB100 logs snd_una as it stands on the wire, modulo 2^32 (RFC 4898 tcpEStatsStackSndUna).
    step = (pl.col("snd_una") - pl.col("snd_una").shift(1)).fill_null(0)
    return {GOODPUT: mine.select("t_ns", ((step % 2**32) if source == "web100" else step).alias("bytes"))}


def _binned(rows: pl.DataFrame, flow: Flow, width: float) -> pl.DataFrame:
    """Return the rate in each bin, the last from half to one and a half as wide, and a row at the end of the last."""
    low, high = flow.span_s
    count = max(1, math.floor((high - low) / width + 0.5))
    seconds = (pl.col("t_ns") - flow.start_ns) / 1e9
    slot = ((seconds - low) / width).floor().cast(pl.Int64).clip(0, count - 1).alias("slot")
    sums = rows.filter(seconds.is_between(low, high)).group_by(slot).agg(pl.col("bytes").sum())
    grid = pl.DataFrame({"slot": pl.int_range(count, eager=True)}).join(sums, on="slot", how="left").sort("slot")
    last = pl.col("slot") == count - 1
    length = pl.when(last).then(high - low - (count - 1) * width).otherwise(width)
    since = low + pl.col("slot") * width
    t = (flow.start_ns / 1e6 + since * 1e3) if flow.view.utc else since.round(6)
    rates = grid.select(t.alias(TIME), (pl.col("bytes").fill_null(0) * 8 / length / 1e6).alias("mbps"))
    return pl.concat([rates, rates[-1:].with_columns(pl.lit(flow.at(high)).alias(TIME))])
