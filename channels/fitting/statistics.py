"""Statistics of a channel trace: losses, runs, autocorrelation, rates, delays, outages.

See docs/channels/interop.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.channels import _native
from hindflight.channels.fitting.loss_sequence import loss_sequence_of
from hindflight.channels.trace import Trace, forward_intervals
from hindflight.toolkit.errors import ChannelError

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
LAGS = (1, 2, 8, 64)
"""Lags of the reported autocorrelation, in packets."""

PACKET_BYTES = 1500
"""Packet length for which a bit error rate is converted to a loss probability, in bytes."""

BINS = 430
"""Bins of a chart over time, two pixels each."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic with its unit; `section` is its heading."""

    section: str
    name: str
    value: float | int | None
    unit: str


def statistics(trace: Trace, where: str) -> list[Statistic]:
    """Return the statistics of a trace, those of packets first. A quantity that the trace lacks has no row."""
    rows: list[Statistic] = []
    if trace.packets().num_rows:
        rows += _of_packets(trace, where)
    intervals = forward_intervals(trace)
    if intervals.num_rows:
        rows += _of_intervals(intervals)
    return rows


def _of_packets(trace: Trace, where: str) -> list[Statistic]:
    packets = trace.packets()
    rows: list[Statistic] = []
    queue = int(np.sum(np.asarray(packets["cause"].cast("string")) == "queue"))
    delays = packets["delay_ns"].drop_null().to_numpy().astype(np.float64)
    numbered = len(packets) > packets["position"].null_count
    if numbered:
        sequence = loss_sequence_of(trace, where)
        shape = _native.loss_shape(sequence.lost.tobytes())
        rows += _losses(shape, sequence.outage, sequence.uncertain)
    rows.append(Statistic("packets", "dropped by the queue", queue, "pkts"))
    if len(delays):
        rows += [
            Statistic("packets", f"round-trip time, {_quantile(q)}", float(value), "ns")
            for q, value in zip(QUANTILES, np.quantile(delays, QUANTILES), strict=True)
        ]
    added = packets["added_ns"].drop_null().to_numpy().astype(np.float64)
    if len(added):
        late = int(np.count_nonzero(added))
        rows += [
            Statistic("packets", "delayed by link-layer protection", late, "pkts"),
            Statistic("packets", "added delay, mean", float(added.mean()), "ns"),
            Statistic("packets", "added delay, maximum", float(added.max()), "ns"),
        ]
    return rows


def _losses(shape: dict[str, Any], outage: int, uncertain: int) -> list[Statistic]:
    packets, losses = shape["packets"], shape["losses"]
    section = "losses"
    rows = [
        Statistic(section, "packets at the loss stage", packets, "pkts"),
        Statistic(section, "lost by the channel", losses, "pkts"),
        Statistic(section, "loss rate", losses / packets if packets else None, ""),
        Statistic(section, "of these, cause uncertain", uncertain, "pkts"),
        Statistic(section, "lost in outages (not included)", outage, "pkts"),
    ]
    if losses:
        bursts, gaps = shape["burst_count"], shape["gap_count"]
        rows += [
            Statistic(section, "bursts", bursts, ""),
            Statistic(section, "mean burst", losses / bursts, "pkts"),
            Statistic(section, "longest burst", shape["burst_lengths"][-1], "pkts"),
            Statistic(section, "mean run between losses", (packets - losses) / gaps if gaps else None, "pkts"),
            Statistic(section, "longest run between losses", shape["gap_lengths"][-1] if gaps else None, "pkts"),
        ]
    found = dict(zip(shape["lags"], shape["autocorrelation"], strict=True))
    rows += [Statistic(section, f"autocorrelation at lag {lag}", found[lag], "") for lag in LAGS if lag in found]
    return rows


def _of_intervals(intervals: pa.Table) -> list[Statistic]:
    start, end = (np.asarray(intervals[name]).astype(np.float64) for name in ("t_ns", "end_ns"))
    lost, down = _lost_and_down(intervals)
    lasting = end - start
    span = float(end.max() - start.min())
    outages = _joined(start[down], end[down])
    lasting -= np.where(down, 0.0, _time_in(outages, start, end))
    section = "link over time"
    rows = [
        Statistic(section, "intervals", len(intervals), ""),
        Statistic(section, "duration", span, "ns"),
        *_spans(
            section,
            ("outages", "time in outage", "share of time in outage", "longest outage"),
            outages[1] - outages[0],
            span,
        ),
    ]
    blocked = lost & ~down & (lasting > 0)
    if blocked.any():
        names = ("blockages", "time blocked", "share of time blocked", "longest blockage")
        begin, until = _joined(start[blocked], end[blocked])
        rows += _spans(section, names, until - begin - _time_in(outages, begin, until), span)
    up: list[Statistic] = []
    for column, name, unit in (("rate_bps", "rate", "bit/s"), ("delay_ns", "delay", "ns"), ("per", "loss rate", "")):
        values = np.array([np.nan if v is None else v for v in intervals[column].to_pylist()], dtype=np.float64)
        held = np.isfinite(values) & (lasting > 0) & ~down
        if not held.any():
            continue
        mean = float(np.average(values[held], weights=lasting[held]))
        up.append(Statistic("link outside outages", f"mean {name}", mean, unit))
        quantiles = _weighted(values[held], lasting[held])
        up += [
            Statistic("link outside outages", f"{name}, {_quantile(q)}", float(value), unit)
            for q, value in zip(QUANTILES, quantiles, strict=True)
        ]
    known = np.asarray(intervals["known"])
    share = float(np.average(known, weights=end - start)) if span else None
    return [*rows, Statistic(section, "share of time with known state", share, ""), *up]


def _lost_and_down(intervals: pa.Table) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which intervals lose every packet, and which of them do so by an outage, not by fading or shadowing."""
    lost = np.asarray(intervals["lost"])
    return lost, lost & (np.asarray(intervals["cause"].cast("string")) == "outage")


def _spans(section: str, names: tuple[str, str, str, str], lengths: Floats, whole: float) -> list[Statistic]:
    """Return the number, total, share of `whole` and maximum of the lengths of intervals."""
    total = float(lengths.sum())
    values = (len(lengths), total, total / whole if whole else None, float(lengths.max(initial=0.0)))
    return [Statistic(section, *row) for row in zip(names, values, ("", "ns", "", "ns"), strict=True)]


def _joined(start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Return the start and end times of the union of intervals that may touch and overlap."""
    order = np.argsort(start, kind="stable")
    begin, latest = start[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.append(True, begin[1:] > latest[:-1])) if len(begin) else np.array([], dtype=np.int64)
    last = np.append(first[1:], len(begin)).astype(np.int64) - 1
    return begin[first], latest[last] if len(begin) else latest


def _time_in(spans: tuple[Floats, Floats], start: Floats, end: Floats) -> Floats:
    """Return how much of each interval from `start` to `end` lies in the ascending `spans`."""
    edges = np.ravel(spans, order="F")
    if not len(edges):
        return np.zeros(len(start))
    passed = np.concatenate(([0.0], np.cumsum(np.diff(edges) * (np.arange(len(edges) - 1) % 2 == 0))))
    return np.asarray(np.interp(end, edges, passed) - np.interp(start, edges, passed))


def _weighted(values: Floats, weights: Floats) -> Floats:
    """Return the quantiles of values weighted by their duration."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    at = np.minimum(np.searchsorted(share, np.array(QUANTILES) - 1e-12), len(values) - 1)
    return np.asarray(values[order][at])


def _quantile(q: float) -> str:
    return {0.0: "minimum", 0.5: "median", 1.0: "maximum"}.get(q, f"{100 * q:g} %")


def chart_data(trace: Trace, where: str) -> dict[str, pa.Table]:
    """Return the data of a trace's charts, as far as the trace has it: `runs` and `autocorrelation` as in
    `fitting.fit.chart_data`, and `states` (quantity, start_s, end_s, low, mean, high, out).
    """
    import pyarrow as pa

    tables: dict[str, pa.Table] = {}
    packets = trace.packets()
    if len(packets) > packets["position"].null_count:
        shape = _native.loss_shape(loss_sequence_of(trace, where).lost.tobytes())
        runs = [
            {"series": "trace", "kind": kind, "length_pkts": length, "longer": longer}
            for kind in ("burst", "gap")
            for length, longer in zip(shape[f"{kind}_lengths"], shape[f"{kind}_longer"], strict=True)
        ]
        ahead = [
            {"series": "trace", "lag_pkts": lag, "autocorrelation": value}
            for lag, value in zip(shape["lags"], shape["autocorrelation"], strict=True)
        ]
        if runs:
            tables["runs"] = pa.Table.from_pylist(runs)
        if ahead:
            tables["autocorrelation"] = pa.Table.from_pylist(ahead)
    intervals = forward_intervals(trace)
    states = _states(intervals) if intervals.num_rows else []
    if states:
        tables["states"] = pa.Table.from_pylist(states)
    if not tables:
        raise ChannelError(f"{where}: has neither packets by position nor intervals, so there is nothing to draw")
    return tables


def _states(intervals: pa.Table) -> list[dict[str, object]]:
    start, end = (np.asarray(intervals[name]).astype(np.float64) for name in ("t_ns", "end_ns"))
    lost, down = _lost_and_down(intervals)
    origin = float(start.min())
    edges = np.linspace(origin, float(end.max()), BINS + 1)
    rows: list[dict[str, object]] = []
    for column, quantity, scale in (("rate_bps", "rate_mbps", 1e-6), ("delay_ns", "delay_ms", 1e-6)):
        values = _values(intervals, column)
        if np.isnan(values).all():
            continue
        values = np.where(down & (quantity == "rate_mbps"), 0.0, values) * scale
        rows += _binned(quantity, (start, end, values, down), edges, origin)
    per, ber = (np.nan_to_num(_values(intervals, column)) for column in ("per", "ber"))
    gone = np.where(lost, 1.0, np.maximum(per, -np.expm1(8 * PACKET_BYTES * np.log1p(-np.minimum(ber, 1 - 1e-12)))))
    if gone.any():
        rows += _binned("loss_share", (start, end, gone, down), edges, origin)
    return rows


def _values(intervals: pa.Table, column: str) -> Floats:
    return np.array([np.nan if v is None else v for v in intervals[column].to_pylist()], dtype=np.float64)


def _binned(
    quantity: str, held: tuple[Floats, Floats, Floats, npt.NDArray[np.bool_]], edges: Floats, origin: float
) -> list[dict[str, object]]:
    start, end, values, down = held
    rows: list[dict[str, object]] = []
    for low, high in pairwise(edges.tolist()):
        within = slice(int(np.searchsorted(end, low, side="right")), int(np.searchsorted(start, high, side="left")))
        lasting = np.clip(np.minimum(end[within], high) - np.maximum(start[within], low), 0.0, None)
        known = np.isfinite(values[within]) & (lasting > 0)
        if not known.any():
            continue
        seen, weight = values[within][known], lasting[known]
        rows.append(
            {
                "quantity": quantity, "start_s": (low - origin) / 1e9, "end_s": (high - origin) / 1e9,
                "low": float(seen.min()), "mean": float(np.average(seen, weights=weight)), "high": float(seen.max()),
                "out": float(np.average(down[within][known], weights=weight)),
            }
        )  # fmt: skip
    return rows
