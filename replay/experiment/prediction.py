"""The interval of a prediction: what one flight would have shown with another variant.

Three parts add up: the draws of what the capture leaves open, the misfit of replays of the captured variant, and what
neither knows (the engine's error), scaled by a factor from recorded flights. Depends on numbers, not on tables or the
engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Circumstance = Literal["shared", "application", "limited", "steps", "loss", "steady"]
"""What a capture shows of its flow, the first that holds: other flows on the path, an application that wrote what the
capture shows over any path, a receiver that limits it or an application that may have written more over a faster path,
changes of the path, losses by the channel, none of these."""

FLOORS: Mapping[Circumstance, float] = {
    "shared": 0.05,
    "application": 0.01,
    "limited": 0.05,
    "steps": 0.05,
    "loss": 0.05,
    "steady": 0.01,
}
"""Relative deviation that is left where all is known, of the recorded flight and of the engine.

What an application wrote at its own pace is delivered by every variant that keeps up with it; draws in which one does
not keep up widen the interval themselves. Elsewhere the standard deviation of goodput over five recordings of each of
eight random links, with other random losses and timing, was 0.6, 0.9 and 1.9 % on steady ones, and 4.7, 4.9, 8.8,
10.4 and 32 % on the others. That of `loss` is its maximum: see `_floor`."""

LINK_DEVIATION = 0.01
"""Relative deviation of the goodput of a flow that the rate of a steady link decides: between the 0.6 and 1.9 % of the
steady links above, and that of `steady`."""

LINK_MARGIN = 0.02
"""By how much a flow may exceed the capacity of its bottleneck: two of these deviations, about a 95 % interval."""

FACTOR = 1.8
"""Half width of the 95 % interval in units of the deviation of a prediction.

Split conformal prediction on recorded links, of 27 November 2026: 282 pairs, the first four links of each of the seeds
4702, 4801, 4901, 5001 to 5003, 5101 to 5103 and 5201 to 5203 of the testbed, as `python -m validation.calibration
--links 4 DIR...` takes them. One factor serves all circumstances: the pairs of a link are much alike, so that the
quantile of 40 to 70 pairs of one circumstance would be that of its worst link."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The middle of what one flight would show, its 95 % interval, and the deviations that it comes from, all relative
    but the first three."""

    value: float
    low: float
    high: float
    drawn: float
    misfit: float
    floor: float


def predict(
    draws: Sequence[float], misfit: float | None, circumstance: Circumstance, capacity_bps: float | None = None
) -> Prediction | None:
    """Return the prediction from the goodputs of the draws; None where nothing was delivered in most of them.

    `misfit` is the relative difference between the captured flow and replays of its variant; `capacity_bps` the payload
    that the bottleneck carries at most, None if that is not known: the interval ends there, but for LINK_MARGIN.
    """
    middle = median(draws)
    if middle <= 0:
        return None
    below, above = (_deviation(draws, middle, side) for side in (-1, 1))
    off = distance(misfit) if misfit is not None else 0.0
    floor = _floor(circumstance, middle, capacity_bps)
    low, high = (math.hypot(spread, off, floor) * FACTOR for spread in (below, above))
    if capacity_bps is not None:
        high = min(high, math.log(max(capacity_bps, middle) / middle) + LINK_MARGIN)
    drawn = math.hypot(below, above) / math.sqrt(2)
    return Prediction(middle, middle * math.exp(-low), middle * math.exp(high), drawn, off, floor)


def _floor(circumstance: Circumstance, middle: float, capacity_bps: float | None) -> float:
    """Return the relative deviation that is left where all is known.

    Where losses alone slow a flow down on a steady link, the rate decides what it gets but for the share that it leaves
    unused: twice the deviation, about a 95 % interval, then reaches up to the capacity.
    """
    floor = FLOORS[circumstance]
    if circumstance != "loss" or capacity_bps is None:
        return floor
    unused = max(0.0, 1 - middle / capacity_bps)
    return min(floor, max(LINK_DEVIATION, unused / 2))


def distance(difference: float) -> float:
    """Return how far apart two values are on a logarithmic scale, from their relative difference."""
    return abs(math.log1p(max(difference, -0.95)))


def _deviation(draws: Sequence[float], middle: float, side: int) -> float:
    """Return the root mean square of the relative distances of the draws on one side of the middle."""
    distances = [math.log(max(value, middle / 20) / middle) for value in draws]
    mine = [distance for distance in distances if distance * side >= 0]
    return math.sqrt(sum(distance * distance for distance in mine) / len(mine)) if mine else 0.0
