"""Statistics over runs: means with intervals, and paired differences on the same channel.

Reads the `runs` table, writes rows of `findings`; knows neither the engine nor files. Pairing: two runs with the
same seed saw the same channel, so their difference carries less noise than the difference of two means.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any

from toolkit.schema import run_subject

LEAST_SEEDS = 5
"""Below this many seeds no interval is given."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % confidence interval; `low` and `high` are None where there are too few samples."""

    mean: float
    low: float | None
    high: float | None

    def scaled(self, factor: float) -> Interval:
        """Return the interval in another unit."""
        low, high = (None if edge is None else edge * factor for edge in (self.low, self.high))
        return Interval(self.mean * factor, low, high)


def t_quantile_975(degrees: int) -> float:
    """Return Student's t at 97.5 %; within 0.1 % from 4 degrees of freedom up.

    Source: Abramowitz & Stegun 26.7.5, expansion in 1/degrees about the normal quantile.
    """
    z = NormalDist().inv_cdf(0.975)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / degrees**i for i, term in enumerate(terms)))


def mean_interval(values: list[float]) -> Interval:
    """Return the mean of `values` and its 95 % interval by Student's t; ValueError for no values.

    No interval where there are fewer than LEAST_SEEDS, or all are equal: then nothing was random, and an interval
    of no width would claim certainty.
    """
    if not values:
        raise ValueError("no values")
    mean = fmean(values)
    if len(values) < LEAST_SEEDS or len(set(values)) == 1:
        return Interval(mean, None, None)
    half = t_quantile_975(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


Key = tuple[str, str]
"""Variant and proxy."""


def compare_runs(runs: list[dict[str, Any]], reference: Key) -> list[dict[str, Any]]:
    """Return `findings` rows of section `what_if` for rows of `runs`.

    Per variant and proxy: goodput on the captured trace as it was (`goodput_as_captured`, bit/s), its mean over the
    seeds (`goodput`, bit/s), and the paired difference from `reference`, as `goodput_difference` (bit/s) and
    `goodput_gain` (%). The gain's verdict is `unknown` if its interval holds zero or there are too few seeds.
    """
    replayed: dict[Key, float] = {}
    seeded: dict[Key, dict[int, float]] = defaultdict(dict)
    for run in runs:
        if run["purpose"] != "what_if" or run["role"] != "studied":
            continue
        key = (run["variant"], run["proxy"])
        if run["channel_mode"] == "replayed":
            replayed[key] = run["goodput_bps"]
        else:
            seeded[key][run["seed"]] = run["goodput_bps"]
    findings: list[dict[str, Any]] = []
    for key in dict.fromkeys([*replayed, *seeded]):
        if key in replayed:
            captured = Interval(replayed[key], None, None)
            findings.append(_finding(key, "goodput_as_captured", "bit/s", captured))
        if key in seeded:
            findings.append(_finding(key, "goodput", "bit/s", mean_interval(list(seeded[key].values()))))
            if key != reference and reference in seeded:
                findings += _differences(key, reference, seeded[key], seeded[reference])
    return findings


def _finding(
    key: Key, metric: str, unit: str, interval: Interval, verdict: str = "info", text: str = ""
) -> dict[str, Any]:
    return {
        "section": "what_if",
        "subject": run_subject(*key),
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "unit": unit,
        "verdict": verdict,
        "text": text,
    }


def _differences(key: Key, reference: Key, ours: dict[int, float], theirs: dict[int, float]) -> list[dict[str, Any]]:
    shared = sorted(ours.keys() & theirs.keys())
    base = fmean(theirs[seed] for seed in shared)
    difference = mean_interval([ours[seed] - theirs[seed] for seed in shared])
    rows = [_finding(key, "goodput_difference", "bit/s", difference)]
    if base > 0:
        gain = difference.scaled(100 / base)
        verdict, words = _judge(gain, len(shared), run_subject(*reference))
        rows.append(_finding(key, "goodput_gain", "%", gain, verdict, f"{run_subject(*key)}: {words}."))
    return rows


def _judge(gain: Interval, seeds: int, other: str) -> tuple[str, str]:
    """Return the verdict on a gain in % over `other`, and the words for it."""
    amount = f"{abs(gain.mean):.0f} % {'more' if gain.mean > 0 else 'less'} goodput than {other}"
    if gain.low is None or gain.high is None:
        if seeds < LEAST_SEEDS:
            return "unknown", f"{amount} over {seeds} seeds, too few to say that it differs"
        return "unknown", f"{amount} with every seed alike: the channel holds nothing that a seed could change"
    bounds = f"(95 % interval {gain.low:+.1f} to {gain.high:+.1f} %)"
    if gain.low <= 0 <= gain.high:
        return "unknown", f"no difference from {other} that {seeds} seeds can show {bounds}"
    return "info", f"{amount} {bounds}"
