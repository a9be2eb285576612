"""Charts of the what-if runs: goodput, paired differences, goodput against delay, congestion windows.

Draws `runs`, and the means, intervals and paired differences of `findings` (section what_if, metrics `goodput` and
`goodput_difference`, subject as hindflight.toolkit.schema.run_subject spans it). Computes no statistic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import (
    ChartText,
    Legend,
    byte_axis,
    decimation_note,
    inline,
    layered_chart,
    x_axis,
    y_axis,
)
from hindflight.reports.charts.panels import PANEL_BINS, Axes, panel, panel_axes, panel_note, side_by_side
from hindflight.reports.charts.self_check import SINCE_FIRST, window_since_first_data
from hindflight.reports.decimation import Decimated
from hindflight.reports.frames import (
    TIME,
    Tables,
    View,
    flow_of,
    maximum,
    predicts_flights,
    read,
    runs_with_rows,
    runs_with_subject,
    uses_channel_model,
)
from hindflight.reports.style import BLUE, GREY, INK, SHADE, category_colours
from hindflight.toolkit.errors import ReportError

REPLAYED, SEED = "captured channel", "resampled channel, one seed"
MODEL_SEED = "one seed"
MEAN = "mean over the seeds and its 95 % interval"
FORECAST = "one flight, as predicted, and its 95 % interval"
PAIRED = "mean of the paired differences over the seeds and its 95 % interval"
_NO_RUNS = "No variant was replayed, so there is nothing to compare."
_STEP = 34
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_PROXY_NOTE = "With a proxy, the window is that of the connection from the sender to the proxy."
_DELAY_TITLE = "95th percentile of the one-way delay [ms]"
_LARGE_AND_SMALL = (
    "Large marks: captured channel. Small marks: resampled channel, one mark per seed. Up and left is better."
)
_ONE_EACH = "One mark per run. Up and left is better."
_ELLIPSE_NOTE = (
    "Ellipse: one standard deviation over the seeds around the means (of normal values it holds 39 %); dashed with a "
    "proxy. Runs that were reset do not count."
)
_ELLIPSE_POINTS = 64
_DASHES = [[1, 0], [5, 3]]
_ELLIPSES = 12
"""Maximum number of ellipses in a chart: more cannot be told apart."""
_LARGE_MARK_RUNS = 60
"""Maximum number of runs over a model that are drawn with large marks."""


def what_if_goodput(tables: Tables) -> alt.LayerChart:
    """Draw the goodput of each variant and proxy: captured channel, each seed, and what one flight would show with its
    95 % interval; without a captured flow the mean over the seeds with its interval.

    Reads `runs` and `findings`. Raises ReportError without what-if runs.
    """
    runs = _what_if(tables).with_columns(mbps=pl.col("goodput_bps") / 1e6)
    means = _findings(tables, "goodput")
    y = _subjects(runs)
    x = alt.X("mbps", type="quantitative", axis=x_axis("Goodput [Mbit/s]"), scale=alt.Scale(zero=True))
    seeds = runs.filter(pl.col("channel_mode") != "replayed").select("subject", "mbps", "seed")
    replayed = runs.filter(pl.col("channel_mode") == "replayed").select("subject", "mbps", "retransmissions", "rtos")
    modelled = uses_channel_model(tables, "what_if")
    one = MODEL_SEED if modelled else SEED
    middle = FORECAST if predicts_flights(tables) else MEAN
    marks = (((REPLAYED, BLUE), replayed), ((middle, INK), means), ((one, GREY), seeds))
    legend = Legend([entry for entry, rows in marks if rows.height])
    tips = [_subject_tip(), alt.Tooltip("mbps", type="quantitative", format=",.3f", title="Goodput [Mbit/s]")]
    counts = [
        alt.Tooltip("retransmissions", type="quantitative", title="Retransmissions"),
        alt.Tooltip("rtos", type="quantitative", title="Timeouts"),
    ]
    seed = alt.Tooltip("seed", type="quantitative", title="Seed")
    tick = alt.Chart(inline(seeds)).mark_tick(thickness=1.2, height=12, opacity=0.55, yOffset=5)
    diamond = alt.Chart(inline(replayed)).mark_point(shape="diamond", size=90, filled=True, opacity=1, yOffset=-6)
    layers = [
        *([legend.encode(tick, one, x, y, tooltip=[*tips, seed])] if seeds.height else []),
        *_intervals(means, (x, y), (legend, middle), tips),
        *([legend.encode(diamond, REPLAYED, x, y, tooltip=[*tips, *counts])] if replayed.height else []),
    ]
    listed = means if modelled else replayed
    values = "; ".join(f"{s} {v:.2f} Mbit/s" for s, v in listed.select("subject", "mbps").iter_rows())
    what = "Mean over the seeds" if modelled else "Captured channel"
    description = f"Goodput of each variant, with and without a proxy. {what}: {values or 'no runs'}."
    text = ChartText("Goodput of each variant over the same channel", description)
    return layered_chart(layers, text, height=_STEP * runs["subject"].n_unique())


def what_if_difference(tables: Tables) -> alt.LayerChart:
    """Draw the paired difference in goodput between each variant and the reference, with its 95 % interval.

    Reads `runs` and `findings` (metric `goodput_difference`); the reference is the subject without a difference. Raises
    ReportError if no difference was computed.
    """
    runs = _what_if(tables)
    compared = _findings(tables, "goodput_difference")
    differences = compared.drop_nulls("mbps")
    if differences.is_empty():
        raise ReportError(
            "No paired differences were computed: they need two combinations of variant and proxy that ran with the "
            "same seeds and without a connection reset."
        )
    y = _subjects(runs)
    across = x_axis("Difference in goodput [Mbit/s]")
    x = alt.X("mbps", type="quantitative", axis=across, scale=alt.Scale(zero=True))
    tips = [_subject_tip(), alt.Tooltip("mbps", type="quantitative", format="+,.3f", title="Difference [Mbit/s]")]
    zero = alt.Chart(inline(pl.DataFrame({"mbps": [0.0]}))).mark_rule(strokeDash=[4, 3])
    intervals = _intervals(differences, (x, y), (Legend([(PAIRED, INK)]), PAIRED), tips)
    layers = [zero.encode(x=alt.X("mbps", type="quantitative")), *intervals]
    values = "; ".join(f"{s} {v:+.2f} Mbit/s" for s, v in differences.select("subject", "mbps").iter_rows())
    reference = _reference(runs, compared)
    description = f"Difference in goodput from {reference} for the same channel and seed: {values}."
    text = ChartText(f"Difference in goodput from {reference}, same channel and seed", description)
    return layered_chart(layers, text, height=_STEP * runs["subject"].n_unique())


def _reference(runs: pl.DataFrame, differences: pl.DataFrame) -> str:
    """Return the subject that the others were compared with: the one without a difference."""
    seeded = runs.filter(pl.col("channel_mode") != "replayed")["subject"].unique(maintain_order=True)
    compared = set(differences["subject"].to_list())
    return next((name for name in seeded if name not in compared), "the reference")


def goodput_and_delay(tables: Tables) -> alt.LayerChart:
    """Draw goodput against the 95th percentile of the one-way delay of data, one mark per run.

    Where `findings` has the spread over the seeds, also its ellipse for each variant and proxy. Reads `runs` and
    `findings`. Raises ReportError if no run has both.
    """
    runs = _what_if(tables).drop_nulls("one_way_delay_p95_ns")
    if runs.is_empty():
        raise ReportError(
            "No run has a one-way delay: no data arrived, or an earlier version of hindflight replayed it. So there is "
            "no chart of goodput against delay."
        )
    frame = runs.select(
        "subject",
        "variant",
        "proxy",
        "seed",
        pl.when(pl.col("proxy") == "none")
        .then(pl.lit("no proxy"))
        .otherwise("through " + pl.col("proxy"))
        .alias("proxy_label"),
        (pl.col("goodput_bps") / 1e6).alias("mbps"),
        (pl.col("one_way_delay_p95_ns") / 1e6).alias("ms"),
        (pl.col("channel_mode") == "replayed").alias("replayed"),
    )
    channels = (
        alt.X("ms", type="quantitative", axis=x_axis(_DELAY_TITLE), scale=_around(frame, "ms")),
        alt.Y("mbps", type="quantitative", axis=y_axis("Goodput [Mbit/s]"), scale=_around(frame, "mbps")),
        _variant_colour(frame),
        _proxy_shape(frame),
    )
    tips = [
        _subject_tip(),
        alt.Tooltip("mbps", type="quantitative", format=",.3f", title="Goodput [Mbit/s]"),
        alt.Tooltip("ms", type="quantitative", format=",.1f", title="One-way delay, 95th percentile [ms]"),
        alt.Tooltip("seed", type="quantitative", title="Seed"),
    ]
    ellipses = _ellipses(tables, frame)
    layers = [_outlines(ellipses, channels)] if ellipses.height else []
    modelled = uses_channel_model(tables, "what_if")
    large = modelled and frame.height <= _LARGE_MARK_RUNS
    seed_size, seed_opacity = (90, 0.9) if large else (28, 0.3)
    kinds = ((frame.filter(~pl.col("replayed")), seed_size, seed_opacity), (frame.filter("replayed"), 130, 1.0))
    for rows, size, opacity in kinds:
        if rows.height:
            points = alt.Chart(inline(rows)).mark_point(filled=True, size=size, opacity=opacity)
            layers.append(points.encode(*channels, tooltip=tips))
    listed = frame if large else frame.filter("replayed")
    marks = listed.select("subject", "mbps", "ms").iter_rows()
    values = "; ".join(f"{s} {m:.2f} Mbit/s at {d:.0f} ms" for s, m, d in marks)
    description = (
        f"Goodput against the 95th percentile of the one-way delay, one mark per run. {values or 'Many runs'}."
    )
    notes = [_ONE_EACH if modelled else _LARGE_AND_SMALL]
    notes += [_ELLIPSE_NOTE] if ellipses.height else []
    return layered_chart(
        layers, ChartText("Goodput against one-way delay", description, notes), height=340, marks=frame.height
    )


_SPREAD = ("goodput_mean", "one_way_delay_p95", "goodput_sd", "one_way_delay_p95_sd", "correlation")


def _ellipses(tables: Tables, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the outline of the ellipse of each subject whose spread `findings` has, as `ms` and `mbps` in order."""
    rows = read(tables, "findings", ["section", "subject", "metric", "value"])
    mine = rows.filter((pl.col("section") == "what_if") & pl.col("metric").is_in(_SPREAD)).drop_nulls("value")
    found = {(subject, metric): value for _, subject, metric, value in mine.iter_rows()}
    points = []
    names = frame.unique("subject", keep="first", maintain_order=True).select("subject", "variant", "proxy")
    for subject, variant, proxy in names.iter_rows() if names.height <= _ELLIPSES else ():
        if any((subject, metric) not in found for metric in _SPREAD):
            continue
        goodput, delay, goodput_sd, delay_sd, correlation = (found[subject, metric] for metric in _SPREAD)
        proxied = "no" if proxy == "none" else "yes"
        aside = math.sqrt(max(0.0, 1 - correlation**2))
        for place in range(_ELLIPSE_POINTS + 1):
            angle = 2 * math.pi * place / _ELLIPSE_POINTS
            along = goodput_sd * (correlation * math.cos(angle) + aside * math.sin(angle))
            milliseconds = round((delay + delay_sd * math.cos(angle)) / 1e6, 5)
            points.append((subject, variant, proxied, place, milliseconds, round((goodput + along) / 1e6, 6)))
    names_of = ["subject", "variant", "proxied", "place", "ms", "mbps"]
    return pl.DataFrame(points, schema=names_of, orient="row", infer_schema_length=None)


def _outlines(ellipses: pl.DataFrame, channels: Sequence[Any]) -> alt.Chart:
    x, y, colour, _ = channels
    line = alt.Chart(inline(ellipses)).mark_line(strokeWidth=1.2, opacity=0.8)
    dash = alt.StrokeDash("proxied", type="nominal", legend=None, scale=alt.Scale(domain=["no", "yes"], range=_DASHES))
    tip = alt.Tooltip("subject", type="nominal", title="Variant")
    outline: alt.Chart = line.encode(x, y, colour, dash, detail="subject:N", order="place:Q", tooltip=[tip])
    return outline


def _around(frame: pl.DataFrame, column: str) -> alt.Scale:
    """Return a scale around the values; from zero if all are equal, because the axis would have a single tick."""
    return alt.Scale(zero=frame[column].n_unique() == 1, padding=16)


def _variant_colour(frame: pl.DataFrame) -> alt.Color:
    variants = frame["variant"].unique(maintain_order=True).to_list()
    scale = alt.Scale(domain=variants, range=category_colours(len(variants)))
    return alt.Color("variant", type="nominal", scale=scale, legend=alt.Legend(title="Variant"))


def _proxy_shape(frame: pl.DataFrame) -> alt.Shape:
    labels = frame["proxy_label"].unique(maintain_order=True).to_list()
    scale = alt.Scale(domain=labels, range=[_SHAPES[i % len(_SHAPES)] for i in range(len(labels))])
    return alt.Shape("proxy_label", type="nominal", scale=scale, legend=alt.Legend(title="Proxy"))


def what_if_cwnd(tables: Tables, view: View | None = None) -> alt.ConcatChart:
    """Draw the congestion window over time, one panel per variant and proxy, with the captured flow's in grey.

    The runs are those over the captured channel or, with a channel model, those of the first seed. `view` selects the
    captured flow. Reads `runs`, `instruments` and `segments`. Raises ReportError if no run recorded its instruments.
    """
    view = view or View()
    runs = _what_if(tables).filter(pl.col("channel_mode") != "resampled")
    recorded = runs.filter(pl.col("run_id").is_in(list(runs_with_rows(tables, "instruments"))))
    chosen = recorded.unique("subject", keep="first", maintain_order=True)
    if chosen.is_empty():
        raise ReportError("No what-if run recorded its congestion window over time.")
    parts = {}
    for run_id, flow_id, subject in chosen.select("run_id", "flow_id", "subject").iter_rows():
        parts[subject] = window_since_first_data(tables, flow_of(tables, View(flow_id, run_id, bins=PANEL_BINS)))
    captured = _captured_window(tables, view)
    variants = runs["variant"].unique(maintain_order=True).to_list()
    colours = dict(zip(variants, category_colours(len(variants)), strict=True))
    names = dict(chosen.select("subject", "variant").iter_rows())
    everything = [*parts.values(), captured]
    drawn = [part for part in everything if part.rows]
    top = max(maximum(part.frame, "bytes") for part in drawn)
    axes = panel_axes(drawn, SINCE_FIRST, byte_axis("cwnd", top), "bytes", top)
    panels = [_panel(subject, (part, captured), axes, colours[names[subject]]) for subject, part in parts.items()]
    notes = [panel_note(captured)]
    notes += decimation_note("values", *everything)
    notes += [_PROXY_NOTE] if (chosen["proxy"] != "none").any() else []
    modelled = uses_channel_model(tables, "what_if")
    where = "over the channel of the first seed" if modelled else "over the captured channel"
    return side_by_side(
        panels,
        alt.Title(f"Congestion window of each variant {where}", subtitle=notes),
        f"Congestion window over time, one panel each with the same scales: {'; '.join(parts)}.",
    )


def _captured_window(tables: Tables, view: View) -> Decimated:
    try:
        flow = flow_of(tables, View(view.flow_id, view.run_id, bins=PANEL_BINS))
    except ReportError:  # runs over a channel model have no captured flow
        return Decimated(pl.DataFrame(schema={TIME: pl.Float64, "bytes": pl.Int64}), 0, decimated=False)
    return window_since_first_data(tables, flow)


def _panel(subject: str, parts: tuple[Decimated, Decimated], axes: Axes, colour: str) -> alt.LayerChart:
    replayed, captured = parts
    steps = (
        (part, alt.MarkDef(type="line", interpolate="step-after", strokeWidth=width, color=stroke, clip=True))
        for part, width, stroke in ((captured, 2.2, SHADE), (replayed, 1.4, colour))
    )
    return panel(subject, steps, axes)


def _what_if(tables: Tables) -> pl.DataFrame:
    columns = [
        "run_id",
        "flow_id",
        "purpose",
        "channel_mode",
        "seed",
        "goodput_bps",
        "one_way_delay_p95_ns",
        "retransmissions",
        "rtos",
    ]
    runs = runs_with_subject(tables, columns).filter(pl.col("purpose") == "what_if")
    if runs.is_empty():
        raise ReportError(_NO_RUNS)
    return runs


def _findings(tables: Tables, metric: str) -> pl.DataFrame:
    rows = read(tables, "findings", ["section", "subject", "metric", "value", "low", "high"])
    mine = rows.filter((pl.col("section") == "what_if") & (pl.col("metric") == metric))
    return mine.select(
        "subject", *((pl.col(c) / 1e6).alias(n) for c, n in (("value", "mbps"), ("low", "low"), ("high", "high")))
    )


def _subjects(runs: pl.DataFrame) -> alt.Y:
    order = runs["subject"].unique(maintain_order=True).to_list()
    axis = alt.Axis(title=None, labelLimit=280, ticks=False, grid=True)
    return alt.Y("subject", type="nominal", axis=axis, scale=alt.Scale(domain=order))


def _subject_tip() -> alt.Tooltip:
    return alt.Tooltip("subject", type="nominal", title="Variant")


def _intervals(
    rows: pl.DataFrame, axes: tuple[alt.X, alt.Y], entry: tuple[Legend, str], tips: list[alt.Tooltip]
) -> list[alt.Chart]:
    """Draw each mean as a dot on its interval; a mean without an interval is a dot only."""
    (x, y), (legend, label) = axes, entry
    ends = [
        alt.Tooltip("low", type="quantitative", format=",.3f", title="from"),
        alt.Tooltip("high", type="quantitative", format=",.3f", title="to"),
    ]
    dy = 0 if label == PAIRED else 5
    bounded = rows.drop_nulls(["low", "high"])
    whole = alt.Chart(inline(bounded))
    low, high = alt.X("low", type="quantitative"), alt.X("high", type="quantitative")
    cap = whole.mark_tick(thickness=2, height=10, opacity=1, yOffset=dy)
    dot = alt.Chart(inline(rows)).mark_circle(size=55, opacity=1, yOffset=dy)
    layers = [legend.encode(dot, label, x, y, tooltip=[*tips, *ends])] if rows.height else []
    if bounded.height:
        rule = whole.mark_rule(strokeWidth=2, yOffset=dy, y2Offset=dy)
        layers += [
            legend.encode(rule, label, low, y, alt.X2("high"), tooltip=[*tips, *ends]),
            legend.encode(cap, label, low, y),
            legend.encode(cap, label, high, y),
        ]
    return layers
