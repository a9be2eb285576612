"""Estimates of the properties of a link, each with its interval and method."""

from __future__ import annotations

from collections.abc import Iterable
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

    def excludes(self, other: Estimate) -> bool:
        """Return whether the intervals of this and another value are disjoint; one of a value alone is that value."""
        mine, its = self._ends(), other._ends()
        if mine[0] is None or mine[1] is None or its[0] is None or its[1] is None:
            return False
        return mine[1] < its[0] or its[1] < mine[0]

    def _ends(self) -> tuple[float | None, float | None]:
        bounded = self.low is not None and self.high is not None
        return (self.low, self.high) if bounded else (self.value, self.value)


STRETCH_ESTIMATES = ("base_rtt_ns", "rate_bps", "queue_limit_pkts")
"""What every stretch has an estimate of, known or not."""


@dataclass(frozen=True, slots=True)
class LinkStretch:
    """A link between two steps of its rate or delay, as one flow shows it.

    Times are those at the link, as in the interval rows of a channel table; `packets` are those that were served then.
    """

    start_ns: int
    end_ns: int
    packets: int
    estimates: tuple[Estimate, ...]

    def estimate(self, name: str) -> Estimate:
        """Return the estimate called `name`. Raises KeyError if there is none."""
        return named(self.estimates, name)


def named(estimates: Iterable[Estimate], name: str) -> Estimate:
    """Return the estimate called `name`. Raises KeyError if there is none."""
    for estimate in estimates:
        if estimate.name == name:
            return estimate
    raise KeyError(name)
