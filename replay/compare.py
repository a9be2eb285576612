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

LEAST_SEEDS = 5
"""Below this many seeds no interval is given."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % confidence interval; `low` and `high` are None where there are too few samples."""

    mean: float
    low: float | None
    high: float | None


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
    """Return the mean of `values` and its 95 % interval by Student's t; ValueError for no values."""
    if not values:
        raise ValueError("no values")
    mean = fmean(values)
    if len(values) < LEAST_SEEDS:
        return Interval(mean, None, None)
    half = t_quantile_975(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


Key = tuple[str, str]
"""Variant and proxy."""


def compare_runs(runs: list[dict[str, Any]], reference: Key) -> list[dict[str, Any]]:
    """Return `findings` rows of section `what_if` for rows of `runs`.

    Per variant and proxy: goodput on the captured trace as it was (`goodput_replayed_bps`), its mean over seeds
    (`goodput_bps`), and the paired gain over `reference` in per cent (`gain_percent`) with a verdict: `pass` if the
    interval lies above zero, `miss` if below, `unknown` if it holds zero. Units: bit/s and %.
    """
    replayed: dict[Key, float] = {}
    seeded: dict[Key, dict[int, float]] = defaultdict(dict)
    for run in runs:
        if run["purpose"] != "what_if":
            continue
        key = (run["variant"], run["proxy"])
        if run["channel_mode"] == "replayed":
            replayed[key] = run["goodput_bps"]
        else:
            seeded[key][run["seed"]] = run["goodput_bps"]
    findings: list[dict[str, Any]] = []
    for key in list(dict.fromkeys([*replayed, *seeded])):
        if key in replayed:
            findings.append(_replayed(key, replayed[key]))
        if key in seeded:
            findings.append(_mean(key, seeded[key]))
            if key != reference and reference in seeded:
                findings.append(_gain(key, reference, seeded[key], seeded[reference]))
    return findings


def describe(key: Key) -> str:
    """Return a variant and its proxy in words."""
    variant, proxy = key
    return variant if proxy == "none" else f"{variant} with a split proxy at {proxy}"


def _finding(key: Key, metric: str, unit: str, interval: Interval, verdict: str, text: str) -> dict[str, Any]:
    return {
        "section": "what_if",
        "subject": describe(key),
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "unit": unit,
        "verdict": verdict,
        "text": text,
    }


def _replayed(key: Key, goodput_bps: float) -> dict[str, Any]:
    text = f"On the channel as it was captured, {describe(key)} reaches {goodput_bps / 1e3:.0f} kbit/s."
    return _finding(key, "goodput_replayed_bps", "bit/s", Interval(goodput_bps, None, None), "info", text)


def _mean(key: Key, goodputs: dict[int, float]) -> dict[str, Any]:
    interval = mean_interval(list(goodputs.values()))
    spread = ""
    if interval.low is not None and interval.high is not None:
        spread = f" (95 % interval of the mean {interval.low / 1e3:.0f} to {interval.high / 1e3:.0f})"
    text = f"Over {len(goodputs)} seeds {describe(key)} reaches {interval.mean / 1e3:.0f} kbit/s on average{spread}."
    return _finding(key, "goodput_bps", "bit/s", interval, "info", text)


def _gain(key: Key, reference: Key, ours: dict[int, float], theirs: dict[int, float]) -> dict[str, Any]:
    shared = sorted(ours.keys() & theirs.keys())
    base = fmean(theirs[seed] for seed in shared)
    interval = mean_interval([100 * (ours[seed] - theirs[seed]) / base for seed in shared])
    name, other = describe(key), describe(reference)
    if interval.low is None or interval.high is None:
        verdict, words = "unknown", f"too few seeds ({len(shared)}) to say whether it differs from {other}"
    elif interval.low > 0:
        verdict, words = "pass", f"{interval.mean:.0f} % more goodput than {other}"
    elif interval.high < 0:
        verdict, words = "miss", f"{-interval.mean:.0f} % less goodput than {other}"
    else:
        verdict, words = "unknown", f"no difference from {other} that {len(shared)} seeds can show"
    bounds = "" if interval.low is None else f" (95 % interval {interval.low:+.1f} to {interval.high:+.1f} %)"
    return _finding(key, "gain_percent", "%", interval, verdict, f"{name}: {words}{bounds}.")
