"""An estimate of one property of a link, with its interval and method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated quantity and its 95 % interval; an end of the interval is None if it is not known.

    `known` is false if the value is a bound or an assumption. `how` states the method in one sentence.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    known: bool
    how: str
