"""Mathematical functions with equal bits on every machine, so that equal seeds give equal channels.

The functions of module `math` differ in the last place between platforms; these come from the library of the kernels.
IEEE 754 defines + - * / and sqrt exactly, so Python's are used. See docs/channels/synth.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hindflight.channels._native import acos, atan2, cos, erfc, exp, log, log10, power, sin

__all__ = ["acos", "atan2", "cos", "dot", "erfc", "exp", "hypot", "log", "log10", "of_db", "sin"]


def of_db(db: float) -> float:
    """Return the power ratio of `db` decibels."""
    return power(10.0, db / 10.0)


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the scalar product, summed in order. (`sum` uses compensated summation from Python 3.12 on.)"""
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += a * b
    return total


def hypot(*sides: float) -> float:
    """Return the length of a vector; its square must be finite."""
    return math.sqrt(dot(sides, sides))
