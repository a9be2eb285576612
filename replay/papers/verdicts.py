"""Verdicts from numbers: the rules that turn an estimate into the state of a part, and parts into a verdict.

* A value, ratio, range or knee holds if its 95 % interval lies inside the accepted bounds, holds partly if it overlaps
  them, and does not hold if it lies outside.
* An ordering holds if the 95 % interval of the paired difference lies above zero, and not if it lies below.
* A shape is a predicate in code. It has no interval: `holds` takes the runs as they are.

The runs are looked at several times. More are made until the 99.9 % interval excludes zero or, of a number whose 95 %
interval is narrow, contains no bound; only the last look decides at 95 %. So several looks hardly raise the rate of
wrong verdicts.

Runs nothing. An interval of no width (exact arithmetic, or a path without randomness) is treated as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hindflight.replay.papers.model import Estimate, Part, State, Verdict

Level = Literal["95 %", "99.9 %"]
ONE_SIDED = 0.1
"""Tolerance of a bound on one side, as a share of it."""
PRECISION = 0.5
"""An interval is narrow enough if it is narrower than this share of the tolerance."""


def within(name: str, found: Estimate, bounds: tuple[float, float], *, tolerance: float | None = None) -> Part:
    """Return whether `found` lies inside `bounds`. `tolerance` is half their distance unless given.

    Runs are enough when the interval is narrow and the 99.9 % interval contains no bound; an interval that is narrow
    and still contains one holds partly. A bound on one side has no tolerance: there the 99.9 % interval is enough, and
    an interval is narrow if it is narrower than a twentieth of the bound.
    """
    low, high = bounds
    state = _inside(found.low, found.high, bounds)
    strict = _inside(found.low_999, found.high_999, bounds)
    width = (high - low) / 2 if tolerance is None else tolerance
    if width == float("inf"):
        narrow = _narrowing(found, ONE_SIDED * abs(low if high == float("inf") else high))
        more = 1.0 if strict != "undecided" else _deciding(found, bounds)
    else:
        narrow = _narrowing(found, width)
        more = narrow if strict != "undecided" else max(narrow, _deciding(found, bounds))
    if state == "undecided" and narrow <= 1:
        state = "partly"
    return Part(name, state, strict, found.value, found.low, found.high, more)


def _narrowing(found: Estimate, tolerance: float) -> float:
    """Return how many times as many runs make the interval narrower than PRECISION of the tolerance."""
    width = found.high - found.low
    return max(1.0, (width / (PRECISION * tolerance)) ** 2) if width else 1.0


def _deciding(found: Estimate, bounds: tuple[float, float]) -> float:
    """Return how many times as many runs free the 99.9 % interval of the nearest bound, as far as one can say."""
    nearest = min(abs(found.value - bound) for bound in bounds)
    half = (found.high_999 - found.low_999) / 2
    return max(1.0, (half / nearest) ** 2) if nearest else float("inf")


def _inside(low: float, high: float, bounds: tuple[float, float]) -> State:
    if bounds[0] <= low and high <= bounds[1]:
        return "yes"
    return "no" if high < bounds[0] or low > bounds[1] else "undecided"


def ordered(name: str, found: Estimate) -> Part:
    """Return whether the difference `found` is above zero. Runs are enough when the 99.9 % interval excludes zero."""
    state, strict = _sign(found.low, found.high), _sign(found.low_999, found.high_999)
    half = (found.high_999 - found.low_999) / 2
    more = 1.0 if strict != "undecided" else (half / abs(found.value)) ** 2 if found.value else float("inf")
    return Part(name, state, strict, found.value, found.low, found.high, max(1.0, more))


def _sign(low: float, high: float) -> State:
    if low > 0:
        return "yes"
    return "no" if high < 0 or low == high == 0 else "undecided"


def holds(name: str, fact: bool | None, value: float | None = None, note: str = "") -> Part:
    """Return whether a predicate holds; None where the runs do not decide it.

    A predicate has no interval, so `strict_state` is its state and says nothing of 99.9 %.
    """
    state: State = "undecided" if fact is None else "yes" if fact else "no"
    return Part(name, state, state, value, value, value, note=note)


def exact(name: str, value: float, bounds: tuple[float, float]) -> Part:
    """Return whether a computed number lies inside `bounds`."""
    return holds(name, bounds[0] <= value <= bounds[1], value)


def settled(parts: Sequence[Part], *, strict: bool) -> bool:
    """Return whether more runs would change nothing.

    That is so if some part holds and another does not, both at 99.9 %; or, with `strict`, if the verdict stands at
    99.9 %, and else if every part is decided and has enough runs (`Part.more`).
    """
    if {"yes", "no"} <= {_state(part, strict=True) for part in parts}:
        return True
    if strict:
        return verdict_of(parts, strict=True) != "too_few_runs"
    return all(part.state != "undecided" and part.more <= 1 for part in parts)


def verdict_of(parts: Sequence[Part], *, strict: bool = False) -> Verdict:
    """Return the verdict of a claim with these parts.

    With `strict` a part counts only if the 99.9 % interval says the same as the 95 % interval.
    """
    if not parts:
        raise ValueError("a judge returned no part")
    states = {_state(part, strict=strict) for part in parts}
    if "undecided" in states and not {"yes", "no"} <= states:
        return "too_few_runs"
    if states == {"yes"}:
        return "reproduced"
    return "not_reproduced" if states == {"no"} else "partly"


def _state(part: Part, *, strict: bool) -> State:
    return part.state if not strict or part.state == part.strict_state else "undecided"
