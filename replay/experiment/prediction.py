"""The interval of a prediction: what one flight would have shown with another variant.

Three parts add up: the draws of what the capture leaves open, the misfit that replays of the captured variant share,
and what neither knows (another flight, the engine's error), scaled by a factor from recorded flights. Depends on
numbers, not on tables or the engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

FLOOR = 0.015
"""Relative deviation that is left where all is known, of the recorded flight and of the engine: the standard deviation
of goodput over five recordings of each of three steady links was 0.6, 0.9 and 1.9 %. Where losses and timing matter it
was 4.7 to 32 % on five others; the draws show that."""

CORRECTED = 0.5
"""Share of the misfit by which a prediction is corrected. It is an error of the scenario, which all variants share, or
chance in the captured flight, which no other has: any share of it may be common. The correction is the middle, and the
deviation what may be missing on either side."""

LINK_MARGIN = 0.02
"""By how much a flow may exceed the capacity of its bottleneck: about a 95 % interval of the goodput of a flow that
the rate of a steady link decides."""

TAIL = 0.05
"""Share of the draws beyond either point by which their deviation is measured.

The points are near the ends of the interval, so that a few flights that a burst of losses stops count as much as they
reach, and a share of the draws lies beyond, so that one flight of 20 that broke down does not. The next flight lies
beyond the k-th outermost of n draws with a probability of k / (n + 1), whatever their distribution: that is what tells
how many standard deviations of a normal distribution it is away."""

RANKED = 39
"""Draws from which 95 % of the next flights lie between the outermost, whatever their distribution: each side leaves
out one in n + 1.

The draws are flights: what they show needs no FACTOR beyond these, only what no draw shows. The few that a burst stops
are far from the others, so that FACTOR times their distance lies beyond every draw."""

FACTOR = 2.4
"""Half width of the 95 % interval in units of the deviation of a prediction.

Split conformal prediction on the recorded links that docs/whatif.md names, as `python -m validation.calibration` finds
it. Rules were learnt from these links as well. One factor serves all: the pairs of a link are much alike, so that the
quantile of the pairs of one kind of link would be that of its worst link.

It is more than the 1.96 of a normal distribution: where a link changes, a capture may be misread, and no part of the
interval shows it."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The middle of what one flight would show, its 95 % interval, and the deviations that it comes from, all relative
    but the first three. `misfit` is signed: the replays are that much faster than the captured flow.

    `deviations` are logarithms of ratios, below and above the middle: half of the interval is FACTOR deviations, up to
    the outermost draw with FACTOR times what no draw shows, and to the capacity of the link."""

    value: float
    low: float
    high: float
    drawn: float
    misfit: float
    deviations: tuple[float, float]


def predict(draws: Sequence[float], misfit: float = 0.0, capacity_bps: float | None = None) -> Prediction | None:
    """Return the prediction from the goodputs of the draws; None where nothing was delivered in most of them.

    `misfit` is the relative difference from the captured flow that replays of its variant share; `capacity_bps` the
    payload that the bottleneck carries at most, None if that is not known: the interval ends there, but for
    LINK_MARGIN.
    """
    middle = median(draws)
    if middle <= 0:
        return None
    off = log_ratio(misfit)
    value = middle * math.exp(-CORRECTED * off)
    if capacity_bps is not None:
        value = min(value, max(middle, capacity_bps))
    distances = sorted(math.log(max(value, middle / 20) / middle) for value in draws)
    below, above = _deviations(distances)
    rest = math.hypot((1 - CORRECTED) * off, FLOOR)
    deviations = math.hypot(below, rest), math.hypot(above, rest)
    outermost = (-distances[0], distances[-1]) if len(distances) >= RANKED else (math.inf, math.inf)
    low, high = (
        min(FACTOR * deviation, end + FACTOR * rest) for deviation, end in zip(deviations, outermost, strict=True)
    )
    if capacity_bps is not None:
        high = min(high, math.log(max(capacity_bps, value) / value) + LINK_MARGIN)
    drawn = math.hypot(below, above) / math.sqrt(2)
    return Prediction(value, value * math.exp(-low), value * math.exp(high), drawn, misfit, deviations)


def common_misfit(differences: Sequence[float]) -> float:
    """Return what relative differences have in common: the smallest, or 0 where they have different signs."""
    if not differences or min(differences) < 0 < max(differences):
        return 0.0
    return min(differences, key=lambda difference: abs(log_ratio(difference)))


def missed_by(draws: Sequence[float], captured: float) -> float:
    """Return the relative difference of the nearest draw from the captured flow, if that is beyond all draws of its
    variant; 0 if it is among them, or if they are fewer than RANKED: 95 % of flights lie among so many."""
    if len(draws) < RANKED:
        return 0.0
    return min(max(captured, min(draws)), max(draws)) / captured - 1


def log_ratio(difference: float) -> float:
    """Return the logarithm of the ratio of two values from their relative difference."""
    return math.log1p(max(difference, -0.95))


def _deviations(distances: Sequence[float]) -> tuple[float, float]:
    """Return the relative deviation of the draws below and above their middle: see TAIL. `distances` from it are
    logarithms of ratios, in order."""
    if len(distances) < 2:
        return 0.0, 0.0
    beyond = int(TAIL * len(distances))
    away = NormalDist().inv_cdf(1 - (beyond + 1) / (len(distances) + 1))
    return max(0.0, -distances[beyond]) / away, max(0.0, distances[-1 - beyond]) / away
