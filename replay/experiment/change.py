"""What changed between two flights or two sets of runs: relative and absolute differences with 95 % intervals.

A flight is divided into blocks of time, which are its samples; runs are samples by seed, paired where both sides have
the same seeds. Reads tables of hindflight.toolkit.schema; does not depend on files or the engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow.compute as pc

from hindflight.replay.experiment.compare import MIN_SEEDS, Interval, t_quantile_975
from hindflight.replay.outcome import transfer_span
from hindflight.toolkit.schema import run_subject

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

Samples = list[float]

MIN_BLOCKS = 8
"""Below this many blocks a flight shows no interval."""

MIN_WORTH = 3
"""Independent samples up to which a flight shows no interval: with n of them, Student's t has n - 1 degrees of freedom,
and up to two its variance is infinite (N. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions" 2,
1995, chapter 28): the width of an interval would be chance."""

FEW_BLOCKS, MAX_BLOCKS = 10, 30
"""Blocks of a flight: 10 to 30 are enough, and more of a given length gain little (B. Schmeiser, "Batch Size Effects in
the Analysis of Simulation Output", Operations Research 30(3), 1982)."""

ROUND_TRIPS, MIN_ROUND_TRIPS = 10, 2
"""Length of a block in round trips, and the minimum of a short flight: a window that is sent, and the answer to it. How
far shorter blocks depend on their neighbours, `_independent` says."""

UNITS = {
    "goodput": "bit/s",
    "retransmissions": "%",
    "rtt": "ns",
    "rtt_p95": "ns",
    "one_way_delay_p95": "ns",
    "app_delay_p95": "ns",
}
"""Metrics that are compared, and their units. Retransmissions are a share of the data segments."""

FLIGHT = "flight"


@dataclass(frozen=True, slots=True)
class Change:
    """One metric of one subject on both sides. Intervals are of 95 %; None where there is too little data.

    `difference` is B minus A in `unit`, `percent` the same relative to A. `samples` counts blocks or runs of each side.
    """

    subject: str
    metric: str
    unit: str
    before: float
    after: float
    difference: tuple[float | None, float | None]
    percent: float | None
    percent_interval: tuple[float | None, float | None]
    samples: tuple[int, int]
    paired: bool

    @property
    def known(self) -> bool:
        """Return whether there is enough data for an interval."""
        return self.difference[0] is not None


@dataclass(frozen=True, slots=True)
class Flight:
    """The samples of a captured flow by metric, one per block; fewer than MIN_BLOCKS where it is too short.

    `length_ns` is the time of its data, `round_trip_ns` the median round-trip time; both are 0 without data.
    """

    samples: dict[str, Samples]
    length_ns: float = 0.0
    round_trip_ns: float = 0.0

    @property
    def needed_ns(self) -> float:
        """Return the length that a flight with this round-trip time needs for an interval."""
        return MIN_BLOCKS * MIN_ROUND_TRIPS * self.round_trip_ns


def _blocks(length_ns: float, round_trip_ns: float) -> int:
    """Return into how many blocks a flight is divided: of ROUND_TRIPS each, or shorter ones for FEW_BLOCKS."""
    trips = length_ns / max(1.0, round_trip_ns)
    return min(MAX_BLOCKS, max(int(trips // ROUND_TRIPS), min(FEW_BLOCKS, int(trips // MIN_ROUND_TRIPS))))


def flight_samples(segments: pa.Table, direction: str) -> Flight:
    """Return the samples of a captured flow. `segments` are those of one flow whose data goes to `direction`."""
    span = transfer_span(segments, direction)
    if span is None:
        return Flight({})
    forward = pc.equal(segments["direction"].cast("string"), direction)
    data = segments.filter(pc.and_(forward, pc.greater(segments["payload_bytes"], 0)))
    acks = segments.filter(pc.and_(pc.invert(forward), pc.is_valid(segments["ack"]))).sort_by("t_ns")
    timed = acks.filter(pc.is_valid(acks["rtt_ns"]))
    rtt = timed["rtt_ns"].to_numpy().astype(np.float64)
    trip = float(np.median(rtt)) if len(rtt) else 0.0
    length = span[1] - span[0]
    count = _blocks(length, trip)
    if count < 1:
        return Flight({}, length, trip)
    edges = np.linspace(span[0], span[1], count + 1)
    highest = np.maximum.accumulate(acks["ack"].to_numpy()) if acks.num_rows else np.zeros(0, np.int64)
    at = np.searchsorted(acks["t_ns"].to_numpy(), edges, side="right") - 1
    reached = np.where(at >= 0, highest[np.maximum(at, 0)], 1) if len(highest) else np.zeros(count + 1)
    sent_ns = data["t_ns"].to_numpy()
    sent = np.histogram(sent_ns, edges)[0]
    again = np.histogram(sent_ns[data["retransmission"].to_numpy(zero_copy_only=False)], edges)[0]
    by_block = _by_block(timed["t_ns"].to_numpy(), rtt, edges)
    samples = {
        "goodput": (np.diff(reached) * 8e9 / np.diff(edges)).tolist(),
        "retransmissions": (100 * again[sent > 0] / sent[sent > 0]).tolist(),
        "rtt": [float(values.mean()) for values in by_block],
        "rtt_p95": [float(np.quantile(values, 0.95)) for values in by_block],
    }
    return Flight(samples, length, trip)


def flight_intervals(segments: pa.Table, direction: str) -> dict[str, Interval]:
    """Return mean and 95 % interval of goodput (bit/s) and round-trip time (ns) of a captured flow, from its blocks.

    A metric is missing where the flow has fewer than MIN_BLOCKS blocks, or they are worth MIN_WORTH independent ones or
    less: it then has other values in other parts of the flow. The interval is that of the mean of such flows.
    """
    samples = flight_samples(segments, direction).samples
    found = {}
    for metric in ("goodput", "rtt"):
        blocks = samples.get(metric, [])
        if len(blocks) >= MIN_BLOCKS and _independent(blocks) > MIN_WORTH:
            found[metric] = _mean_of_blocks(blocks)
    return found


def _mean_of_blocks(blocks: Samples) -> Interval:
    """Return the mean of blocks and its interval: Student's t with as many samples as they are worth."""
    worth, mean = _independent(blocks), fmean(blocks)
    half = t_quantile_975(worth - 1) * math.sqrt(variance(blocks) / worth)
    return Interval(mean, max(mean - half, 0.0), mean + half)


def _by_block(
    t_ns: npt.NDArray[np.int64], values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]
) -> list[npt.NDArray[np.float64]]:
    cuts = np.searchsorted(t_ns, edges[1:-1])
    return [part for part in np.split(values, cuts) if len(part)]


def run_samples(runs: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[int, float]]:
    """Return goodput and the other metrics of what-if runs by subject and metric, then by seed.

    Runs over resampled or modelled channels only: the captured channel, replayed unchanged, is a single sample.
    """
    found: dict[tuple[str, str], dict[int, float]] = {}
    for run in runs:
        if (run["purpose"], run["role"]) != ("what_if", "under_test") or run["channel_mode"] == "replayed":
            continue
        values = {
            "goodput": run["goodput_bps"],
            "retransmissions": 100 * run["retransmissions"] / run["segments_out"] if run["segments_out"] else None,
            "rtt": run["srtt_mean_ns"],
            "rtt_p95": run["rtt_p95_ns"],
            "one_way_delay_p95": run["one_way_delay_p95_ns"],
            "app_delay_p95": run["app_delay_p95_ns"],
        }
        subject = run_subject(run["variant"], run["proxy"])
        for metric, value in values.items():
            if value is not None:
                found.setdefault((subject, metric), {})[run["seed"]] = float(value)
    return found


def compare_flights(before: Mapping[str, Samples], after: Mapping[str, Samples]) -> list[Change]:
    """Return the changes from one flight to another, by block. Blocks of one flight depend on each other: see
    `_independent`."""
    return [
        _unpaired((FLIGHT, metric), (before[metric], after[metric]), MIN_BLOCKS, blocks=True)
        for metric in before
        if before[metric] and after.get(metric)
    ]


def compare_run_sets(
    before: Mapping[tuple[str, str], Mapping[int, float]], after: Mapping[tuple[str, str], Mapping[int, float]]
) -> list[Change]:
    """Return the changes of each subject that both sides have; runs with the same seed are paired.

    Pairing takes it that a seed means the same channel on both sides, as it does for replays of one scenario.
    """
    changes = []
    for key, one in before.items():
        other = after.get(key)
        if not other:
            continue
        if set(one) == set(other):
            changes.append(_paired(key, [one[seed] for seed in one], [other[seed] for seed in one]))
        else:
            changes.append(_unpaired(key, (list(one.values()), list(other.values())), MIN_SEEDS, blocks=False))
    return changes


def _paired(key: tuple[str, str], before: Samples, after: Samples) -> Change:
    """Compare pairs: Student's t on the differences."""
    count, mean = len(before), fmean(before)
    differences = [b - a for a, b in zip(before, after, strict=True)]
    half = None
    if count >= MIN_SEEDS:
        half = t_quantile_975(count - 1) * math.sqrt(variance(differences) / count)
    return _change(key, (mean, fmean(after)), half, (count, count), paired=True)


def _unpaired(key: tuple[str, str], sides: tuple[Samples, Samples], minimum: int, *, blocks: bool) -> Change:
    """Compare two means: Welch's t with the number of samples that are as good as independent."""
    means = fmean(sides[0]), fmean(sides[1])
    counts = len(sides[0]), len(sides[1])
    half = None
    if min(counts) >= minimum:
        worth = [_independent(side) if blocks else float(len(side)) for side in sides]
        parts = [variance(side) / count for side, count in zip(sides, worth, strict=True)]
        error = sum(parts)
        degrees = (
            error**2 / sum(part**2 / (count - 1) for part, count in zip(parts, worth, strict=True)) if error else 1
        )
        half = t_quantile_975(degrees) * math.sqrt(error)
    return _change(key, means, half, counts, paired=False)


def _independent(samples: Samples) -> float:
    """Return how many independent samples a series is worth, by its autocorrelation at lag 1; at least 2.

    Source: H. von Storch, F. Zwiers, "Statistical Analysis in Climate Research", 1999, §6.6.8: n (1 - r) / (1 + r). The
    autocorrelation of a short series is too small by (1 + 4 r) / n. M. G. Kendall, "Note on bias in the estimation of
    autocorrelation", Biometrika 41, 1954, has (1 + 3 r) / n; the sum of products has one term less than the squares.
    """
    count = len(samples)
    values = np.asarray(samples) - fmean(samples)
    power = float(values @ values)
    r = float(values[1:] @ values[:-1]) / power if power else 0.0
    r = min(max((count * r + 1) / (count - 4) if power else 0.0, 0.0), 0.99)
    return max(2.0, count * (1 - r) / (1 + r))


def _change(
    key: tuple[str, str], means: tuple[float, float], half: float | None, samples: tuple[int, int], *, paired: bool
) -> Change:
    before, after = means
    difference = after - before
    # No metric is negative, so none falls by more than all of `before`.
    ends = None if half is None else (max(difference - half, -before), difference + half)
    percent = 100 * difference / before if before > 0 else None
    scaled = None if percent is None or ends is None else (100 * ends[0] / before, 100 * ends[1] / before)
    return Change(
        subject=key[0], metric=key[1], unit=UNITS[key[1]], before=before, after=after, difference=ends or (None, None),
        percent=percent, percent_interval=scaled or (None, None),
        samples=samples, paired=paired,
    )  # fmt: skip


Outcome = Literal["fires", "passes", "undecided", "too little data"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of --fail-if: the change of a metric, in % of A, below or above a bound."""

    text: str
    metric: str
    below: bool
    bound_percent: float
    subject: str = ""

    def judge(self, change: Change) -> Outcome:
        """Return whether the change fires: only if its interval excludes the bound."""
        low, high = change.percent_interval
        if low is None or high is None:
            return "too little data"
        if (high < self.bound_percent) if self.below else (low > self.bound_percent):
            return "fires"
        inside = low <= self.bound_percent <= high
        return "undecided" if inside else "passes"

    def applies(self, change: Change) -> bool:
        """Return whether the condition is about this change."""
        return change.metric == self.metric and self.subject in ("", change.subject)
