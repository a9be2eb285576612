"""Intervals for what claims compare: functions of means over runs that share their seeds, and knees of a sweep.

Depends on samples alone, not on runs or scenarios.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hindflight.replay.papers.model import Estimate

Samples = npt.NDArray[np.float64]
"""One value per seed; arrays that are compared have the same seeds in the same order."""

KNEE_SHARE = 0.95
"""The knee of a sweep is where it first reaches this share of its last value, as in `hindflight place`."""
BREAKS = 200
"""Places that are tried for the break of a curve."""
RESAMPLES = 20_000
"""Bootstrap samples of a knee: ten lie beyond each end of the 99.9 % interval."""
LEVELS = (0.975, 0.9995)
"""Quantiles of the two intervals: 95 % and 99.9 %."""


def estimate(function: Callable[..., float], *samples: Samples) -> Estimate:
    """Return `function` of the means of `samples`, with intervals by the delta method and Student's t.

    The samples are paired by seed, so what they have in common cancels out. With one run, or none of them random, the
    interval has no width.
    """
    means = [float(np.mean(values)) for values in samples]
    value = float(function(*means))
    runs = len(samples[0])
    influence = np.zeros(runs)
    for at, values in enumerate(samples):
        influence += _slope(function, means, at) * (values - means[at])
    error = float(np.std(influence, ddof=1)) / math.sqrt(runs) if runs > 1 else 0.0
    (near, far) = (error * _t_quantile(runs - 1, level) if error else 0.0 for level in LEVELS)
    return Estimate(value, value - near, value + near, value - far, value + far)


def _slope(function: Callable[..., float], means: list[float], at: int) -> float:
    """Return the derivative of `function` by argument `at`, by a central difference."""
    step = 1e-4 * (abs(means[at]) or 1.0)
    up, down = list(means), list(means)
    up[at] += step
    down[at] -= step
    return (function(*up) - function(*down)) / (2 * step)


def _t_quantile(degrees: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, level))


def mean(samples: Samples) -> Estimate:
    """Return the mean of `samples` with its intervals."""
    return estimate(lambda value: value, samples)


def ratio(above: Samples, below: Samples) -> Estimate:
    """Return the ratio of two means with its intervals."""
    return estimate(lambda a, b: a / b, above, below)


def difference(greater: Samples, less: Samples) -> Estimate:
    """Return the difference of two means with its intervals."""
    return estimate(lambda a, b: a - b, greater, less)


Curve = Sequence[float] | Sequence[Samples]
"""The values of a sweep over its places: numbers, or arrays of as many curves."""
Place = Any
"""A place on the axis of a sweep: a number, or an array of one for each of several curves."""


def knee_of(xs: Sequence[float], ys: Curve, share: float = KNEE_SHARE) -> Place:
    """Return where `ys` over ascending `xs` first reaches `share` of its last value, by linear interpolation."""
    across, values = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
    enough = share * values[-1]
    at = np.argmax(values >= enough, axis=0)
    before = np.maximum(at - 1, 0)
    y, last = (np.take_along_axis(values, each[np.newaxis, ...], axis=0)[0] for each in (at, before))
    rise = np.where(y == last, 1.0, y - last)
    part = np.where(y == last, 1.0, (enough - last) / rise)
    return across[before] + part * (across[at] - across[before])


def break_of_slope(xs: Sequence[float], ys: Curve) -> Place:
    """Return where two straight lines that meet fit `ys` best: the end of the steep part of a curve."""
    candidates, residuals = _two_lines(tuple(xs))
    values = np.asarray(ys, dtype=float)
    errors = np.stack([np.sum((residual @ values) ** 2, axis=0) for residual in residuals])
    return candidates[np.argmin(errors, axis=0)]


@cache
def _two_lines(xs: tuple[float, ...]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return candidate places of the break, and for each the matrix that maps values to the residuals of its fit."""
    across = np.asarray(xs, dtype=float)
    candidates = np.linspace(across[1], across[-2], BREAKS)
    bases = [np.column_stack([np.ones_like(across), across, np.maximum(across - at, 0.0)]) for at in candidates]
    return candidates, np.stack([np.eye(len(across)) - basis @ np.linalg.pinv(basis) for basis in bases])


def bootstrap(function: Callable[..., Place], *samples: Samples) -> Estimate:
    """Return `function` of the means of `samples`, with intervals over resampled seeds: for knees, without a slope.

    `function` is called with numbers, and with arrays of one number for each resampling.
    """
    matrix = np.stack(samples)
    runs = matrix.shape[1]
    drawn = np.random.default_rng(1).multinomial(runs, np.full(runs, 1 / runs), RESAMPLES)
    values = function(*(drawn @ matrix.T / runs).T)
    low, high, low_999, high_999 = np.quantile(values, [0.025, 0.975, 0.0005, 0.9995])
    return Estimate(float(function(*matrix.mean(axis=1))), float(low), float(high), float(low_999), float(high_999))
