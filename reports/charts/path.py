"""Round-trip time and throughput of a flow over time.

Draws `segments` of one flow, or `instruments` if there is only a log, and the link's rate and delay from `channel`.
"""

from __future__ import annotations

import math

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
from hindflight.reports.charts.window import instruments, srtt_of
from hindflight.reports.decimation import m4
from hindflight.reports.frames import KERNEL_SOURCES, TIME, Flow, Tables, View, flow_of, on_axis, read_flow
from hindflight.reports.link import states_of
from hindflight.reports.style import AMBER, BLUE, GREEN, INK, SKY, VERMILLION
from hindflight.toolkit.errors import ReportError

SAMPLE, FLOOR = "RTT sample", "propagation delay, both directions"
SENT, GOODPUT, RATE = "sent, with retransmissions", "goodput (acknowledged in order)", "bottleneck rate"
BURST = "burst: a retransmission filled a hole"
LARGE_MARK_SAMPLES = 1000
"""Maximum number of RTT samples that are drawn with large marks."""

HOLE_SEGMENTS = 10
"""Segments that one ACK covers from which it filled a hole: a delayed ACK covers two (RFC 5681 §4.2)."""

BURST_FACTOR = 1.5
"""Factor over the mean goodput from which a bin that filled a hole is marked."""

_RATES = [(SENT, BLUE), (GOODPUT, GREEN), (RATE, AMBER), (BURST, VERMILLION)]
_NICE_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600)


def rtt(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw each round-trip time sample of the data direction, and SRTT by source.

    Reads `flows`, `segments`, `instruments` and `channel`. Raises ReportError if no round-trip time was measured.
    """
    view = view or View()
    flow = flow_of(tables, view)
    dots = m4(rtt_samples(tables, flow), TIME, "ms", flow.view.bins)
    smooth = srtt_of(instruments(tables, flow), flow)
    if dots.rows == 0 and not smooth:
        raise ReportError("No round-trip time was measured on this flow.")
    smoothed = [(label, VERMILLION if "inferred" in label else INK) for label in smooth]
    floor = states_of(tables, flow, "delay_ns").select(TIME, ms=pl.col("delay_ns") * 2 / 1e6)
    sampled = [(SAMPLE, SKY)] if dots.rows else []
    events = event_marks(tables, flow)
    legend = Legend([*sampled, *smoothed, *([(FLOOR, AMBER)] if floor.height else []), *events.entries])
    y = alt.Y("ms", type="quantitative", axis=y_axis("Round-trip time [ms]"), scale=alt.Scale(zero=True))
    size = 8 if dots.rows > LARGE_MARK_SAMPLES else 30
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
    description = f"Round-trip time over time: {dots.rows} samples{', with SRTT' if smooth else ''}."
    text = ChartText("Round-trip time", description, decimation_note("values", dots, *smooth.values()))
    marks = sum(part.frame.height for part in (dots, *smooth.values()))
    return layered_chart([*events.layers(legend), *layers], text, height=240, marks=marks)


def rtt_samples(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return TIME, `ms` and `record` of each round-trip time sample of the data direction."""
    measured = (pl.col("direction") == flow.acks) & pl.col("rtt_ns").is_not_null()
    samples = on_axis(read_flow(tables, "segments", flow.view, ["t_ns", "rtt_ns", "record"], measured), flow)
    return samples.select(TIME, (pl.col("rtt_ns") / 1e6).round(3).alias("ms"), "record")


def throughput(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw TCP payload sent and acknowledged per time bin, in Mbit/s.

    Reads `flows`, `segments` (or else `instruments`) and `channel`. Raises ReportError if there is no data.
    """
    view = view or View()
    flow = flow_of(tables, view)
    moved = _moved_in_segments(tables, flow) or _moved_in_log(tables, flow)
    if not moved:
        raise ReportError("Neither packets nor a log of this flow show how much data was transferred.")
    low, high = flow.span_s
    width = bin_width_s(high - low, min(rows.height for rows in moved.values()))
    link = states_of(tables, flow, "rate_bps").select(TIME, mbps=pl.col("rate_bps") / 1e6)
    bursts = _bursts(moved.get(GOODPUT), flow, width)
    present = {*moved, *([RATE] if link.height else []), *([BURST] if bursts.height else [])}
    events = event_marks(tables, flow)
    legend = Legend([*(entry for entry in _RATES if entry[0] in present), *events.entries])
    y = alt.Y("mbps", type="quantitative", axis=y_axis("Throughput [Mbit/s]"), scale=alt.Scale(zero=True))
    tips = [time_tooltip(flow, title="From"), alt.Tooltip("mbps", type="quantitative", format=",.3f", title="Mbit/s")]
    layers: list[alt.Chart] = []
    for label, rows in moved.items():
        steps = alt.Chart(inline(_binned(rows, flow, width)))
        line = steps.mark_line(interpolate="step-after", strokeWidth=1.6, opacity=1, clip=True, aria=False)
        layers.append(legend.encode(line, label, time_axis(flow), y, tooltip=tips))
    if link.height:
        line = alt.Chart(inline(link)).mark_line(interpolate="step-after", strokeDash=[6, 4], clip=True, aria=False)
        layers.append(legend.encode(line, RATE, time_axis(flow), y))
    if bursts.height:
        peak = alt.Chart(inline(bursts)).mark_point(shape="triangle-down", filled=True, size=60, yOffset=-7, aria=False)
        layers.append(legend.encode(peak, BURST, time_axis(flow), y, tooltip=tips))
    layers[0] = layers[0].add_params(zoom())
    description = f"TCP payload sent and acknowledged per bin of {width:g} s, over time."
    text = ChartText("Throughput", description, [f"TCP payload per bin of {width:g} s."])
    return layered_chart([*events.layers(legend), *layers], text, height=220)


def bin_width_s(span_s: float, rows: int) -> float:
    """Return a round width in s that divides `span_s` into about 60 to 150 bins, but fewer bins than `rows`."""
    bins = min(150, max(1, rows - 1))
    return next((width for width in _NICE_S if span_s / width <= bins), _NICE_S[-1])


def newly_acked(tables: Tables, flow: Flow, view: View) -> pl.DataFrame:
    """Return `t_ns` of each ACK that `view` selects, in order of time, and the `bytes` that it acknowledges anew.

    The first ACK acknowledges nothing anew, because what came before it is not known.
    """
    is_ack = (pl.col("direction") == flow.acks) & pl.col("ack").is_not_null()
    acks = read_flow(tables, "segments", view, ["t_ns", "ack"], is_ack).sort("t_ns")
    highest = pl.col("ack").cum_max()
    return acks.select("t_ns", (highest - highest.shift(1)).fill_null(0).alias("bytes"))


def _moved_in_segments(tables: Tables, flow: Flow) -> dict[str, pl.DataFrame]:
    """Return `t_ns` and `bytes` of payload sent and of octets newly acknowledged; empty without data segments."""
    is_data = (pl.col("direction") == flow.data) & (pl.col("payload_bytes") > 0)
    sent = read_flow(tables, "segments", flow.view, ["t_ns", "payload_bytes"], is_data).sort("t_ns")
    sent = sent.select("t_ns", pl.col("payload_bytes").cast(pl.Int64).alias("bytes"))
    largest = int(sent["bytes"].to_numpy().max()) if sent.height else 1
    new = newly_acked(tables, flow, flow.view).with_columns(hole=pl.col("bytes") >= HOLE_SEGMENTS * largest)
    if sent.is_empty():
        return {}
    return {SENT: sent, GOODPUT: new} if new.height else {SENT: sent}


def _moved_in_log(tables: Tables, flow: Flow) -> dict[str, pl.DataFrame]:
    """Return `t_ns` and `bytes` of octets newly acknowledged according to a log; empty if no log has snd_una."""
    rows = read_flow(tables, "instruments", flow.view, ["t_ns", "source", "snd_una"])
    mine = rows.drop_nulls("snd_una").sort("t_ns")
    sources = set(mine["source"].unique().to_list())
    source = next((s for s in (*KERNEL_SOURCES, "replay", "inferred") if s in sources), None)
    if source is None:
        return {}
    mine = mine.filter(source=source)
    # WEB100 logs snd_una modulo 2^32, as on the wire (RFC 4898 tcpEStatsStackSndUna).
    step = (pl.col("snd_una") - pl.col("snd_una").shift(1)).fill_null(0)
    return {GOODPUT: mine.select("t_ns", ((step % 2**32) if source == "web100" else step).alias("bytes"))}


def _bursts(acked: pl.DataFrame | None, flow: Flow, width: float) -> pl.DataFrame:
    """Return the bins, as `_binned`, most of whose octets were covered by ACKs that filled a hole."""
    if acked is None or "hole" not in acked.columns:
        return pl.DataFrame(schema={TIME: pl.Float64, "mbps": pl.Float64})
    every, filled = _binned(acked, flow, width), _binned(acked.filter("hole"), flow, width)
    mean = float(every["mbps"].to_numpy().mean())
    marked = (filled["mbps"] > 0.5 * every["mbps"]) & (every["mbps"] > BURST_FACTOR * mean)
    return every[:-1].filter(marked[:-1])  # The last row only closes the step line.


def _binned(rows: pl.DataFrame, flow: Flow, width: float) -> pl.DataFrame:
    """Return the rate [Mbit/s] per bin of the view, on its time axis, as `rates_per_bin`."""
    seconds = (pl.col("t_ns") - flow.start_ns) / 1e9
    rates = rates_per_bin(rows.select(seconds.alias("s"), "bytes"), flow.span_s, width)
    t = (flow.start_ns / 1e6 + pl.col("s") * 1e3) if flow.view.utc else pl.col("s").round(6)
    return rates.select(t.alias(TIME), "mbps")


def rates_per_bin(rows: pl.DataFrame, span_s: tuple[float, float], width: float) -> pl.DataFrame:
    """Return `s`, where a bin of `width` s begins, and the rate `mbps` of the octets `bytes` whose times `s` are in it.

    The last bin is 0.5 to 1.5 bins wide; a final row closes the step line.
    """
    low, high = span_s
    count = max(1, math.floor((high - low) / width + 0.5))
    slot = ((pl.col("s") - low) / width).floor().cast(pl.Int64).clip(0, count - 1).alias("slot")
    sums = rows.filter(pl.col("s").is_between(low, high)).group_by(slot).agg(pl.col("bytes").sum())
    grid = pl.DataFrame({"slot": pl.int_range(count, eager=True)}).join(sums, on="slot", how="left").sort("slot")
    length = pl.when(pl.col("slot") == count - 1).then(high - low - (count - 1) * width).otherwise(width)
    mbps = pl.col("bytes").fill_null(0) * 8 / length / 1e6
    rates = grid.select((low + pl.col("slot") * float(width)).alias("s"), mbps.alias("mbps"))
    return pl.concat([rates, rates[-1:].with_columns(pl.lit(float(high)).alias("s"))])
