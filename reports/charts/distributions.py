"""Charts of recorded what-if runs over their whole length: goodput over time, and the distributions of round-trip times
and of the lengths of loss bursts.

Draws `segments` and `events` of the runs over the captured channel or, with a channel model, of the first seed, and of
the captured flow. Computes no statistic but shares of samples.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import ChartText, Legend, inline, layered_chart, x_axis, y_axis
from hindflight.reports.charts.path import bin_width_s, newly_acked, rates_per_bin
from hindflight.reports.charts.self_check import SINCE_FIRST
from hindflight.reports.frames import (
    TIME,
    Flow,
    Tables,
    View,
    flow_of,
    lazy,
    read,
    read_flow,
    runs_with_rows,
    runs_with_subject,
    uses_channel_model,
    uses_proxies,
)
from hindflight.reports.style import SHADE, category_colours
from hindflight.toolkit.errors import ReportError

CAPTURED = "captured flow"
SHOWN = 8
"""Maximum number of runs in a chart: more lines cannot be told apart."""
QUANTILES = 200
"""Points of a distribution."""

_MIN_BURST_AXIS_PKTS = 10
"""Minimum length of the logarithmic axis of bursts, so that it has a tick besides 1."""

_NOT_RECORDED = "No what-if run recorded its segments."


def what_if_throughput(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the goodput of each variant and proxy over time, and that of the captured flow in grey.

    Reads `runs`, `flows` and `segments`. Raises ReportError if no run recorded its segments.
    """
    flows = _recorded(tables, view or View())
    acked = {label: _acked(tables, flow) for label, flow in flows.items()}
    acked = {label: rows for label, rows in acked.items() if rows.height}
    if not acked:
        raise ReportError(_NOT_RECORDED)
    end = max(float(rows["s"].cast(pl.Float64).to_numpy()[-1]) for rows in acked.values())
    width = bin_width_s(end, 60)
    legend = _legend(list(acked))
    span = alt.Scale(domain=[0, end], nice=False)
    x = alt.X(TIME, type="quantitative", axis=x_axis(SINCE_FIRST), scale=span)
    y = alt.Y("mbps", type="quantitative", axis=y_axis("Goodput [Mbit/s]"), scale=alt.Scale(zero=True))
    tips = [
        alt.Tooltip(TIME, type="quantitative", format=",.2f", title="From [s]"),
        alt.Tooltip("mbps", type="quantitative", format=",.3f", title="Mbit/s"),
    ]
    layers = []
    for label, rows in acked.items():
        rates = rates_per_bin(rows, (0.0, end), width)
        line = alt.Chart(inline(rates.select(pl.col("s").round(6).alias(TIME), pl.col("mbps").round(5))))
        mark = line.mark_line(interpolate="step-after", strokeWidth=_width(label), clip=True)
        layers.append(legend.encode(mark, label, x, y, tooltip=tips))
    text = ChartText(
        f"Goodput over time {_where(tables)}",
        f"Octets acknowledged in order per {width:g} s, over time: {'; '.join(acked)}.",
        [f"Octets acknowledged in order per {width:g} s.", *_left_out(tables, flows)],
    )
    return layered_chart(layers, text, height=260)


def what_if_rtt(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the distribution of the round-trip times of each variant and proxy, and of the captured flow in grey.

    Reads `runs`, `flows` and `segments`. Raises ReportError if no run recorded a round-trip time.
    """
    flows = _recorded(tables, view or View())
    shares = {label: _quantiles(tables, flow) for label, flow in flows.items()}
    shares = {label: rows for label, rows in shares.items() if rows.height}
    if not shares:
        raise ReportError("No what-if run recorded a round-trip time.")
    legend = _legend(list(shares))
    x = alt.X("ms", type="quantitative", axis=x_axis("Round-trip time [ms]"), scale=alt.Scale(zero=False))
    y = alt.Y("share", type="quantitative", axis=y_axis("Share of samples at most as long [%]"))
    tips = [
        alt.Tooltip("share", type="quantitative", format=",.1f", title="Share of samples [%]"),
        alt.Tooltip("ms", type="quantitative", format=",.2f", title="RTT [ms]"),
    ]
    layers = []
    for label, rows in shares.items():
        mark = alt.Chart(inline(rows)).mark_line(strokeWidth=_width(label), clip=True)
        layers.append(legend.encode(mark, label, x, y, order="share:Q", tooltip=tips))
    medians = "; ".join(f"{label} {_median(rows):.0f} ms" for label, rows in shares.items())
    notes = ["With a proxy, the round-trip time is that of the connection from the sender to the proxy."]
    text = ChartText(
        f"Distribution of round-trip times {_where(tables)}",
        f"Share of round-trip time samples up to each value. Medians: {medians}.",
        [*(notes if uses_proxies(tables) else []), *_left_out(tables, flows)],
    )
    return layered_chart(layers, text, height=260)


def what_if_loss_bursts(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the distribution of the lengths of loss bursts of each variant and proxy, and of the captured flow in grey.

    Reads `runs`, `flows`, `segments` and `events`. Raises ReportError if no run recorded a loss.
    """
    flows = _recorded(tables, view or View())
    found = {label: _bursts(tables, flow) for label, flow in flows.items()}
    bursts = {label: lengths for label, (lengths, _) in found.items() if lengths.len()}
    if not set(bursts) - {CAPTURED}:
        raise ReportError("No what-if run recorded a loss.")
    end = max(_MIN_BURST_AXIS_PKTS, *(int(lengths[-1]) for lengths in bursts.values()))
    legend = _legend(list(bursts))
    across = alt.Axis(title="Length of the burst [data packets lost in a row]", format=",d", labelFlush=False)
    x = alt.X("pkts", type="quantitative", axis=across, scale=alt.Scale(type="log", domain=[1, end], nice=False))
    y = alt.Y("share", type="quantitative", axis=y_axis("Share of bursts at most as long [%]"))
    tips = [
        alt.Tooltip("share", type="quantitative", format=",.1f", title="Share of bursts [%]"),
        alt.Tooltip("pkts", type="quantitative", format=",d", title="Packets lost in a row, at most"),
    ]
    layers = []
    for label, lengths in bursts.items():
        base = alt.Chart(inline(_shares_of_lengths(lengths, end)))
        mark = base.mark_line(interpolate="step-after", strokeWidth=_width(label), clip=True)
        layers.append(legend.encode(mark, label, x, y, order="order:Q", tooltip=tips))
    longest = "; ".join(f"{label} {n.len()}, at most {n[-1]} packets long" for label, n in bursts.items())
    notes = ["With a proxy, the bursts are those of all connections of the path."] if uses_proxies(tables) else []
    for label, (_, missing) in found.items():
        if missing:
            said = "1 loss names" if missing == 1 else f"{missing} losses name"
            notes.append(f"{label}: {said} no segment, and no burst has {'it' if missing == 1 else 'them'}.")
    text = ChartText(
        f"Length of loss bursts {_where(tables)}",
        f"Share of loss bursts up to each length. Number of bursts: {longest}.",
        [*notes, *_left_out(tables, flows)],
    )
    return layered_chart(layers, text, height=260)


def _width(label: str) -> float:
    """Return the width of the line of a run in pixels: that of the captured flow is wider."""
    return 2.2 if label == CAPTURED else 1.4


def _bursts(tables: Tables, flow: Flow) -> tuple[pl.Series, int]:
    """Return the sorted lengths of the loss bursts of a flow: data packets lost one after another in order of sending,
    on one connection; and the number of losses that name none of its segments, so that no burst has them. A burst ends
    at the next transmission that is not known to be lost."""
    mine = (pl.col("run_id") == flow.view.run_id) & (pl.col("flow_id") == flow.view.flow_id)
    mine &= pl.col("direction") == flow.data
    names = ["leg", "record"]
    losses = read(tables, "events", names, mine & (pl.col("kind") == "loss"))
    sent = read(tables, "segments", [*names, "t_ns"], mine & (pl.col("payload_bytes") > 0))
    known = losses.drop_nulls().unique().with_columns(lost=True)
    fates = sent.join(known, on=names, how="left").sort("leg", "t_ns", "record")
    key = pl.struct("leg", pl.col("lost").fill_null(value=False)).rle_id()
    runs = fates.with_columns(key.alias("run")).filter("lost").group_by("run").agg(length=pl.len())
    return runs["length"].cast(pl.Int64).sort(), losses.join(sent, on=names, how="anti").height


def _shares_of_lengths(lengths: pl.Series, end: int) -> pl.DataFrame:
    """Return `pkts` and the `share` in percent of bursts at most as long, from length 1 to `end`, in `order`."""
    counted = lengths.value_counts(name="bursts").sort("length")
    shares = (100 * counted["bursts"].cum_sum() / lengths.len()).round(3).to_list()
    points = [(1, 0.0), *zip(counted["length"].to_list(), shares, strict=True), (end, 100.0)]
    return pl.DataFrame(points, schema=["pkts", "share"], orient="row").with_row_index("order")


def _where(tables: Tables) -> str:
    model = uses_channel_model(tables, "what_if")
    return "over the channel of the first seed" if model else "over the captured channel"


def _subjects(tables: Tables) -> pl.DataFrame:
    """Return run, flow and subject of each recorded what-if run, the first of each subject."""
    columns = ["run_id", "flow_id", "purpose", "channel_mode"]
    runs = runs_with_subject(tables, columns).filter(pl.col("purpose") == "what_if")
    kept = runs.filter(
        (pl.col("channel_mode") != "resampled") & pl.col("run_id").is_in(list(runs_with_rows(tables, "segments")))
    )
    return kept.unique("subject", keep="first", maintain_order=True)


def _recorded(tables: Tables, view: View) -> dict[str, Flow]:
    """Return the captured flow, if there is one, and the first `SHOWN` recorded runs by their subject."""
    chosen = _subjects(tables).head(SHOWN)
    if chosen.is_empty():
        raise ReportError(_NOT_RECORDED)
    found: dict[str, Flow] = {}
    with suppress(ReportError):  # Runs over a channel model have no captured flow.
        found[CAPTURED] = flow_of(tables, View(view.flow_id, view.run_id))
    for run_id, flow_id, subject in chosen.select("run_id", "flow_id", "subject").iter_rows():
        found[subject] = flow_of(tables, View(flow_id, run_id))
    return found


def _left_out(tables: Tables, flows: dict[str, Flow]) -> list[str]:
    more = _subjects(tables).height - sum(label != CAPTURED for label in flows)
    return [f"{more} more {'run is' if more == 1 else 'runs are'} not drawn."] if more else []


def _legend(labels: list[str]) -> Legend:
    runs = [label for label in labels if label != CAPTURED]
    colours = dict(zip(runs, category_colours(len(runs)), strict=True))
    return Legend([(label, colours.get(label, SHADE)) for label in labels])


def _acked(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return `s`, seconds since the first data segment, and `bytes` newly acknowledged, in order of time.

    With proxies, the octets are those acknowledged on the last connection, by the receiver.
    """
    is_data = (pl.col("direction") == flow.data) & (pl.col("payload_bytes") > 0)
    first = read_flow(tables, "segments", flow.view, ["t_ns"], is_data)["t_ns"].min()
    acked = newly_acked(tables, flow, _last_leg(tables, flow))
    rows = acked.select("bytes", s=(pl.col("t_ns") - (first if isinstance(first, int) else 0)) / 1e9)
    return rows.filter(pl.col("s") >= 0)


def _last_leg(tables: Tables, flow: Flow) -> View:
    mine = (pl.col("run_id") == flow.view.run_id) & (pl.col("flow_id") == flow.view.flow_id)
    leg = lazy(tables, "segments").filter(mine).select(pl.col("leg").max()).collect().item()
    return replace(flow.view, leg=leg or 0)


def _quantiles(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return `share` in percent and the `ms` that this share of the samples does not exceed."""
    mine = (pl.col("run_id") == flow.view.run_id) & (pl.col("flow_id") == flow.view.flow_id) & (pl.col("leg") == 0)
    samples = lazy(tables, "segments").filter(
        mine & pl.col("rtt_ns").is_not_null() & (pl.col("direction") == flow.acks)
    )
    ordered = samples.select(pl.col("rtt_ns").sort()).collect()["rtt_ns"]
    shares = [i / QUANTILES for i in range(QUANTILES + 1)] if ordered.len() else []
    nearest = [math.floor(share * (ordered.len() - 1) + 0.5) for share in shares]
    milliseconds = (ordered.gather(nearest) / 1e6).round(4)
    return pl.DataFrame({"share": pl.Series([round(100 * share, 2) for share in shares]), "ms": milliseconds})


def _median(rows: pl.DataFrame) -> float:
    return float(rows["ms"][rows.height // 2])
