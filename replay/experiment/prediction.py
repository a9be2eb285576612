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

Circumstance = Literal["shared", "limited", "steps", "loss", "steady"]
"""What a capture shows of its flow, the first that holds: other flows on the path, an application or a receiver that
limits it, changes of the path, losses by the channel, none of these."""

FLOOR = 0.01
"""Relative deviation that is left where all is known, of the recorded flight and of the engine: the standard deviation
of goodput over repeated recordings of steady links is 0.6 to 1.9 %."""

FACTORS: Mapping[Circumstance, float] = {
    "shared": 2.5,
    "limited": 2.5,
    "steps": 2.4,
    "loss": 2.5,
    "steady": 1.6,
}
"""Half width of the 95 % interval in units of the deviation of a prediction, by circumstance.

Split conformal prediction on recorded links: `python -m validation.calibration DIR...` printed this table from 210
pairs, two sets of twelve random links (seeds 4101 and 4102 of the testbed) and twelve known ones. A circumstance with
fewer than 19 pairs takes the largest factor."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The middle of what one flight would show, its 95 % interval, and the deviations that it comes from, all relative
    but the first three."""

    value: float
    low: float
    high: float
    drawn: float
    misfit: float
    factor: float


def predict(draws: Sequence[float], misfit: float | None, circumstance: Circumstance) -> Prediction | None:
    """Return the prediction from the goodputs of the draws; None where nothing was delivered in most of them.

    `misfit` is the relative difference between the captured flow and replays of its variant.
    """
    middle = median(draws)
    if middle <= 0:
        return None
    below, above = (_deviation(draws, middle, side) for side in (-1, 1))
    off = distance(misfit) if misfit is not None else 0.0
    factor = FACTORS[circumstance]
    low, high = (math.hypot(spread, off, FLOOR) * factor for spread in (below, above))
    return Prediction(
        middle, middle * math.exp(-low), middle * math.exp(high), math.hypot(below, above) / math.sqrt(2), off, factor
    )  # fmt: skip


def distance(difference: float) -> float:
    """Return how far apart two values are on a logarithmic scale, from their relative difference."""
    return abs(math.log1p(max(difference, -0.95)))


def _deviation(draws: Sequence[float], middle: float, side: int) -> float:
    """Return the root mean square of the relative distances of the draws on one side of the middle."""
    distances = [math.log(max(value, middle / 20) / middle) for value in draws]
    mine = [distance for distance in distances if distance * side >= 0]
    return math.sqrt(sum(distance * distance for distance in mine) / len(mine)) if mine else 0.0
