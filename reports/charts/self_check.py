"""Charts of the self-check: the best-matching variant, replayed over the captured channel, and the captured flow.

Draws `segments` and `instruments` of the captured flow and of one run of `runs` (purpose self_check). Both time axes
start at the first data segment, so that a handshake that is missing from the capture does not shift the lines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import ChartText, Legend, byte_axis, decimation_note, inline, layered_chart, zoom
from hindflight.reports.decimation import Decimated, drop_repeats, m4
from hindflight.reports.frames import (
    KERNEL_SOURCES,
    TIME,
    Flow,
    Tables,
    View,
    flow_of,
    maximum,
    read,
    read_flow,
    runs_with_rows,
    runs_with_subject,
)
from hindflight.reports.style import SHADE, VERMILLION
from hindflight.toolkit.errors import ReportError

CAPTURED, REPLAYED = "captured", "replayed"
_LEGEND = Legend([(CAPTURED, SHADE), (REPLAYED, VERMILLION)])
_BINS = 800
SINCE_FIRST = "Time since the first data segment [s]"


@dataclass(frozen=True, slots=True)
class _Pair:
    """The captured flow, its replay, and the subject of the replay in `findings`."""

    captured: Flow
    replayed: Flow
    subject: str

    def each(self) -> tuple[tuple[str, Flow], ...]:
        return (CAPTURED, self.captured), (REPLAYED, self.replayed)


def self_check_sequence(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the highest sequence number sent over time, captured and replayed.

    Reads `flows`, `segments`, `runs` and `findings`. Raises ReportError if either flow has no data segment.
    """
    pair = _pair(tables, view or View(), "segments")
    parts = {label: _progress(tables, flow) for label, flow in pair.each()}
    return _overlay(parts, "Sequence number", f"Self-check: highest sequence number sent ({pair.subject})")


def self_check_cwnd(tables: Tables, view: View | None = None) -> alt.LayerChart:
    """Draw the congestion window, captured (from the kernel log if there is one) and replayed.

    Reads `flows`, `segments`, `instruments`, `runs` and `findings`. Raises ReportError if either flow has no cwnd.
    """
    pair = _pair(tables, view or View(), "instruments")
    parts = {label: window_since_first_data(tables, flow) for label, flow in pair.each()}
    return _overlay(parts, "Congestion window", f"Self-check: congestion window ({pair.subject})")


def _pair(tables: Tables, view: View, series: str) -> _Pair:
    runs = runs_with_subject(tables, ["run_id", "flow_id", "purpose"]).filter(pl.col("purpose") == "self_check")
    if runs.is_empty():
        raise ReportError(
            "No candidate for the captured variant was replayed, so the accuracy of a replay is not known."
        )
    kept = runs.filter(pl.col("run_id").is_in(list(runs_with_rows(tables, series))))
    if kept.is_empty():
        raise ReportError(f"The self-check's runs recorded no {series}, so they cannot be compared with the capture.")
    subjects = read(tables, "findings", ["section", "subject"]).filter(pl.col("section") == "self_check")["subject"]
    recorded = set(kept["subject"].to_list())
    best = next((subject for subject in subjects if subject in recorded), kept["subject"][0])
    run_id, flow_id, subject = kept.filter(subject=best).select("run_id", "flow_id", "subject").row(0)
    captured = flow_of(tables, replace(view, bins=_BINS))
    return _Pair(captured, flow_of(tables, View(flow_id, run_id, bins=_BINS)), subject)


def _progress(tables: Tables, flow: Flow) -> Decimated:
    data = _data(tables, flow)
    line = _since_first(data, data, "seq_end").with_columns(pl.col("bytes").cum_max())
    return m4(drop_repeats(line, "bytes"), TIME, "bytes", flow.view.bins)


def window_since_first_data(tables: Tables, flow: Flow) -> Decimated:
    """Return cwnd of the best source as `bytes` over TIME, in seconds since the first data segment of the flow."""
    rows = read_flow(tables, "instruments", flow.view, ["t_ns", "source", "cwnd_bytes"]).sort("t_ns")
    mine = rows.drop_nulls("cwnd_bytes")
    present = set(mine["source"].unique().to_list())
    source = next((s for s in (*KERNEL_SOURCES, "replay", "inferred") if s in present), None)
    chosen = mine.filter(pl.col("source") == source)
    data = _data(tables, flow)
    line = _since_first(chosen, data if data.height else chosen, "cwnd_bytes")
    return m4(drop_repeats(line, "bytes"), TIME, "bytes", flow.view.bins)


def _data(tables: Tables, flow: Flow) -> pl.DataFrame:
    sent = (pl.col("direction") == flow.data) & (pl.col("payload_bytes") > 0)
    data = read_flow(tables, "segments", flow.view, ["t_ns", "seq", "payload_bytes"], sent).sort("t_ns")
    return data.select("t_ns", (pl.col("seq") + pl.col("payload_bytes")).alias("seq_end"))


def _since_first(rows: pl.DataFrame, data: pl.DataFrame, value: str) -> pl.DataFrame:
    """Return column `value` as `bytes` over TIME, in seconds since the first row of `data`."""
    if rows.is_empty():
        return pl.DataFrame(schema={TIME: pl.Float64, "bytes": pl.Int64})
    first = data["t_ns"][0]
    return rows.select(((pl.col("t_ns") - first) / 1e9).round(6).alias(TIME), pl.col(value).alias("bytes"))


def _overlay(parts: dict[str, Decimated], quantity: str, title: str) -> alt.LayerChart:
    empty = [label for label, part in parts.items() if part.rows == 0]
    if empty:
        raise ReportError(
            f"The {' and the '.join(empty)} flow has no {quantity.lower()} over time, so the two cannot be compared."
        )
    top = max(maximum(part.frame, "bytes") for part in parts.values())
    end = max(float(part.frame[TIME][-1]) for part in parts.values())
    across = alt.Axis(title=SINCE_FIRST, tickCount=12)
    x = alt.X(TIME, type="quantitative", axis=across, scale=alt.Scale(domain=[0, end], nice=False))
    y = alt.Y(
        "bytes", type="quantitative", axis=byte_axis(quantity, top), scale=alt.Scale(domain=[0, 1.05 * top], nice=False)
    )
    tips = [
        alt.Tooltip(TIME, type="quantitative", format=",.3f", title="Time [s]"),
        alt.Tooltip("bytes", type="quantitative", format=",d", title=f"{quantity} [B]"),
    ]
    layers = []
    # A thin dark line over a thick light one: both stay visible where they coincide.
    for label, width in ((CAPTURED, 4.5), (REPLAYED, 1.3)):
        line = alt.Chart(inline(parts[label].frame)).mark_line(
            interpolate="step-after", strokeWidth=width, clip=True, aria=False
        )
        layers.append(_LEGEND.encode(line, label, x, y, tooltip=tips))
    layers[0] = layers[0].add_params(zoom())
    description = f"{quantity} over time, one line for the capture and one for the replay."
    text = ChartText(title, description, decimation_note("values", *parts.values()))
    return layered_chart(layers, text, height=260, marks=sum(part.frame.height for part in parts.values()))
