"""Statistics over runs: means with intervals, and paired differences on the same channel.

Reads the `runs` table, writes rows of `findings`; does not depend on the engine or on files. Pairing: two runs with the
same seed saw the same channel, so their difference carries less noise than the difference of two means.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev
from typing import Any

from hindflight.replay.experiment.prediction import (
    CORRECTED,
    FACTOR,
    FLOOR,
    RANKED,
    common_misfit,
    log_ratio,
    missed_by,
    predict,
)
from hindflight.replay.scenario.proxies import NO_PROXY
from hindflight.toolkit.schema import DAMAGE_METRICS, INTERVAL_METRIC, run_subject
from hindflight.toolkit.units import counted, format_rate

MIN_SEEDS = 5
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


def t_quantile_975(degrees: float) -> float:
    """Return Student's t at 97.5 %."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


def mean_interval(values: list[float]) -> Interval:
    """Return the mean of `values` and its 95 % interval by Student's t; ValueError for no values.

    No interval where there are fewer than MIN_SEEDS, or all are equal: then nothing was random, and an interval
    of no width would claim certainty.
    """
    if not values:
        raise ValueError("no values")
    mean = fmean(values)
    if len(values) < MIN_SEEDS or len(set(values)) == 1:
        return Interval(mean, None, None)
    half = t_quantile_975(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


Known = Mapping[tuple[str, str, str, int], float]
"""Goodputs [bit/s] of runs that were made before, by variant, proxy, mode and seed."""


def known_goodputs(runs: Sequence[Mapping[str, Any]]) -> Known:
    """Return the goodputs of the runs of a comparison."""
    return {
        (run["variant"], run["proxy"], run["channel_mode"], run["seed"]): run["goodput_bps"]
        for run in runs
        if run["purpose"] == "what_if" and run["role"] == "under_test"
    }


Key = tuple[str, str]
"""Variant and proxy."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What turns runs of a captured flow into predictions: the time of the captured transfer and its goodput, the
    relative difference of the self-check, the maximum payload that its bottleneck carries (bit/s; None if that is not
    known), and whether the rate of the link is a lower bound only."""

    transfer_ns: int
    captured_bps: float | None
    misfit: float | None
    capacity_bps: float | None = None
    bounded: bool = False


Run = dict[str, Any]
"""A row of `runs`."""


def compare_runs(runs: list[Run], reference: Key, forecast: Forecast | None = None) -> list[dict[str, Any]]:
    """Return `findings` rows of section `what_if` for rows of `runs`; `forecast` for runs of a captured flow.

    Per variant and proxy: goodput on the captured trace as it was (`goodput_as_captured`, bit/s), its mean over the
    seeds, or with `forecast` the median and the interval of one flight (`goodput`, bit/s) with what it is made of
    (`interval_deviation`), and the paired difference from `reference`, as `goodput_difference` (bit/s) and
    `goodput_gain` (%). The gain's verdict is `unknown` if its interval holds zero or there are too few seeds; where
    a connection was reset, neither has a number. `resets` counts the runs of that end, where there are any;
    `acknowledged_lost` and `damaged` (octets) are the most that a fault of a proxy took from one run.
    """
    replayed: dict[Key, Run] = {}
    seeded: dict[Key, dict[int, Run]] = defaultdict(dict)
    for run in runs:
        if run["purpose"] != "what_if" or run["role"] != "under_test":
            continue
        key = (run["variant"], run["proxy"])
        if run["channel_mode"] == "replayed":
            replayed[key] = run
        else:
            seeded[key][run["seed"]] = run
    if forecast is not None and reference in seeded and reference[1] == NO_PROXY:
        forecast = _with_draws(forecast, [_goodput(run, forecast) for run in seeded[reference].values()])
    findings: list[dict[str, Any]] = []
    for key in dict.fromkeys([*replayed, *seeded]):
        if key in replayed:
            captured = Interval(_goodput(replayed[key], forecast), None, None)
            findings.append(finding(key, "goodput_as_captured", "bit/s", captured))
        if key in seeded:
            goodputs = [_goodput(run, forecast) for run in seeded[key].values()]
            findings += _forecast(key, goodputs, forecast)
            if key != reference and reference in seeded:
                findings += _differences(key, reference, seeded[key], seeded[reference])
        runs_of_key = [*([replayed[key]] if key in replayed else []), *seeded[key].values()]
        findings += [*_resets(key, runs_of_key), *_damage(key, runs_of_key)]
    if forecast is not None and forecast.capacity_bps is not None and findings:
        findings.append(finding(reference, "capacity", "bit/s", Interval(forecast.capacity_bps, None, None)))
    return findings


def _goodput(run: Run, forecast: Forecast | None) -> float:
    """Return the goodput of a run over the same part of the flow as that of the capture."""
    goodput_bps = float(run["goodput_bps"])
    return goodput_bps if forecast is None else goodput_bps * run["duration_ns"] / forecast.transfer_ns


def _with_draws(forecast: Forecast, goodputs: list[float]) -> Forecast:
    """Return the forecast with the misfit that two replays of the captured variant share: the one as captured, and the
    median of the draws, or by how much all draws miss that flow, if that is more.

    A replay as captured differs from the flow if the scenario is wrong, but also if a small difference grew, by another
    timeout or another share of a short queue. Draws average the latter; what is wrong in the scenario is in both. Draws
    may be wrong alone, where they repeat what the capture does not show: losses of a cause that was misread.
    """
    drawn = median(goodputs)
    if forecast.misfit is None or not forecast.captured_bps or drawn <= 0:
        return forecast
    common = common_misfit([forecast.misfit, drawn / forecast.captured_bps - 1])
    misfit = max(common, missed_by(goodputs, forecast.captured_bps), key=lambda part: abs(log_ratio(part)))
    return replace(forecast, misfit=misfit)


def _forecast(key: Key, goodputs: list[float], forecast: Forecast | None) -> list[dict[str, Any]]:
    """Return the row of the goodput: its mean over the seeds, or for a captured flow what one flight would show."""
    if forecast is None:
        return [finding(key, "goodput", "bit/s", mean_interval(goodputs))]
    predicted = predict(goodputs, forecast.misfit or 0.0, forecast.capacity_bps)
    if predicted is None:
        return [finding(key, "goodput", "bit/s", mean_interval(goodputs))]
    interval = Interval(predicted.value, predicted.low, predicted.high)
    text = (
        f"{run_subject(*key)}: one flight would show {format_rate(predicted.value)}, with 95 % probability "
        f"{format_rate(predicted.low)} to {format_rate(predicted.high)}. The interval has three parts, as standard "
        f"deviations: {100 * predicted.drawn:.1f} % for what the capture leaves open of the channel; "
        f"{100 * FLOOR:.1f} % for the engine and for another flight; and the misfit that replays of the captured "
        f"variant share, {100 * predicted.misfit:+.1f} %, of which {100 * CORRECTED:.0f} % is "
        "corrected and the rest counts here. "
        f"Half the interval is {FACTOR:.1f} times the three together (root of the sum of squares); with {RANKED} draws "
        f"or more it ends at the latest {FACTOR:.1f} times the other two beyond the outermost draw. The factor was "
        "fitted so that 95 % of recorded flights lie in their intervals, before that draw ends them; "
        "docs/accuracy.md has the result on other links."
    )
    if forecast.capacity_bps is not None:
        text += f" The link carries at most {format_rate(forecast.capacity_bps)} of payload."
    if forecast.bounded:
        text += (
            " The rate of the link is not known, only a lower bound of it: read the prediction as at least the low end."
        )
    verdict = "unknown" if forecast.bounded else "info"
    row = finding(key, "goodput", "bit/s", interval, verdict, text)
    # What validation/calibration.py needs for another factor.
    below, above = predicted.deviations
    return [row, finding(key, INTERVAL_METRIC, "", Interval(max(below, above), below, above))]


def _resets(key: Key, runs: list[Run]) -> list[dict[str, Any]]:
    """Say how many of the connections were reset, and when the first; nothing where none was."""
    times = [run["reset_ns"] for run in runs if run["reset_ns"] is not None]
    if not times:
        return []
    said, first = counted(len(runs), "run"), f"{'the first ' if len(times) > 1 else ''}after {min(times) / 1e9:.1f} s"
    refused = sum(bool(run.get("proxy_refused")) for run in runs)
    why = f" (in {refused} of them by a proxy that was at its limit and refused it)" if refused else ""
    sentence = f"the connection was reset in {len(times)} of {said}{why}, {first}; goodput counts until then"
    count = Interval(float(len(times)), None, None)
    return [finding(key, "resets", "", count, text=f"{run_subject(*key)}: {sentence}.")]


_DAMAGE = (
    ("proxy_lost_bytes", "octets that a proxy had acknowledged never reached the receiver"),
    ("proxy_corrupted_bytes", "octets that a proxy had damaged were read as if they were whole"),
)
"""For each of DAMAGE_METRICS its column of `runs`, and words."""


def _damage(key: Key, runs: list[Run]) -> list[dict[str, Any]]:
    """Say how many octets were acknowledged and lost, or damaged and read; nothing where none were."""
    rows = []
    for metric, (column, what) in zip(DAMAGE_METRICS, _DAMAGE, strict=True):
        octets = [run[column] for run in runs if run.get(column)]
        if octets:
            most = f"{'up to ' if len(set(octets)) > 1 else ''}{max(octets):,}"
            said = f"{run_subject(*key)}: {most} {what}, in {len(octets)} of {counted(len(runs), 'run')}."
            rows.append(finding(key, metric, "bytes", Interval(float(max(octets)), None, None), text=said))
    return rows


def finding(
    key: Key, metric: str, unit: str, interval: Interval | None, verdict: str = "info", text: str = ""
) -> dict[str, Any]:
    """Return a row of section `what_if` about a variant and a proxy."""
    return {
        "section": "what_if",
        "subject": run_subject(*key),
        "metric": metric,
        "value": interval and interval.mean,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "unit": unit,
        "verdict": verdict,
        "text": text,
    }


def _differences(key: Key, reference: Key, ours: dict[int, Run], theirs: dict[int, Run]) -> list[dict[str, Any]]:
    shared = sorted(ours.keys() & theirs.keys())
    base = fmean(theirs[seed]["goodput_bps"] for seed in shared)
    here, there = (sum(of[seed]["reset_ns"] is not None for seed in shared) for of in (ours, theirs))
    if here or there:
        return _until_reset(key, reference, f"{here} here, {there} there, in {counted(len(shared), 'run')} each")
    difference = mean_interval([ours[seed]["goodput_bps"] - theirs[seed]["goodput_bps"] for seed in shared])
    rows = [finding(key, "goodput_difference", "bit/s", difference)]
    if base > 0:
        gain = difference.scaled(100 / base)
        verdict, sentence = _judge(gain, len(shared), run_subject(*reference))
        rows.append(finding(key, "goodput_gain", "%", gain, verdict, f"{run_subject(*key)}: {sentence}."))
    return rows


def _until_reset(key: Key, reference: Key, counts: str) -> list[dict[str, Any]]:
    """Say that a difference between runs of which some died has no number: neither goodput is of the whole transfer."""
    sentence = (
        f"no gain over {run_subject(*reference)} can be given: connections were reset ({counts}), and their goodput "
        "counts until then only"
    )
    text = f"{run_subject(*key)}: {sentence}."
    return [
        finding(key, "goodput_difference", "bit/s", None),
        finding(key, "goodput_gain", "%", None, "unknown", text),
    ]


def _judge(gain: Interval, seeds: int, other: str) -> tuple[str, str]:
    """Return the verdict on a gain in % over `other`, and its sentence."""
    amount = _amount(gain.mean, other)
    if gain.low is None or gain.high is None:
        if seeds < MIN_SEEDS:
            return "unknown", f"{amount} over {counted(seeds, 'seed')}, too few to say that it differs"
        return "unknown", f"{amount} with every seed alike: the channel holds nothing that a seed could change"
    bounds = f"(95 % interval {gain.low:+.1f} to {gain.high:+.1f} %)"
    if gain.low <= 0 <= gain.high:
        return "unknown", f"no difference from {other} that {seeds} seeds can show {bounds}"
    return "info", f"{amount} {bounds}"


def _amount(gain: float, other: str) -> str:
    """Return "12 % more goodput than reno", with a decimal below one per cent, where whole ones would say none."""
    digits = 0 if abs(gain) >= 1 else 1
    if round(abs(gain), 1) == 0:
        return f"the goodput of {other} to 0.1 %"
    return f"{abs(gain):.{digits}f} % {'more' if gain > 0 else 'less'} goodput than {other}"
