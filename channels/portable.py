"""Functions of numbers that give the same bits on every machine, so that equal seeds give equal channels everywhere.

The platform's mathematics library, which the module `math` calls, differs in the last place from machine to machine;
these are of the library that the kernels use. What IEEE 754 fixes (+ - * / and the square root) is used as it is. Knows
no model. Read docs/channels/synth.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hindflight.channels._native import acos, atan2, cos, erfc, exp, log, log10, power, sin

__all__ = ["acos", "atan2", "cos", "dot", "erfc", "exp", "hypot", "log", "log10", "of_db", "sin"]


def of_db(db: float) -> float:
    """Return the ratio of powers that so many decibels are."""
    return power(10.0, db / 10.0)


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the scalar product, added up in order (`sum` does so in another way from Python 3.12 on)."""
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += a * b
    return total


def hypot(*sides: float) -> float:
    """Return the length of a vector; its square must be a number that a float holds."""
    return math.sqrt(dot(sides, sides))
