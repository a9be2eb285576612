"""Intervals for what claims compare: functions of means over runs that share their seeds, and knees of a sweep.

Depends on samples alone, not on runs or scenarios.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

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


def knee_of(xs: Sequence[float], ys: Sequence[float], share: float = KNEE_SHARE) -> float:
    """Return where `ys` over ascending `xs` first reaches `share` of its last value, by linear interpolation."""
    enough = share * ys[-1]
    for at, y in enumerate(ys):
        if y >= enough:
            if at == 0 or y == ys[at - 1]:
                return float(xs[at])
            part = (enough - ys[at - 1]) / (y - ys[at - 1])
            return float(xs[at - 1] + part * (xs[at] - xs[at - 1]))
    return float(xs[-1])


def break_of_slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return where two straight lines that meet fit `ys` best: the end of the steep part of a curve."""
    candidates, residuals = _two_lines(tuple(xs))
    errors = np.sum((residuals @ np.asarray(ys, dtype=float)) ** 2, axis=1)
    return float(candidates[int(np.argmin(errors))])


@cache
def _two_lines(xs: tuple[float, ...]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return candidate places of the break, and for each the matrix that maps values to the residuals of its fit."""
    across = np.asarray(xs, dtype=float)
    candidates = np.linspace(across[1], across[-2], BREAKS)
    bases = [np.column_stack([np.ones_like(across), across, np.maximum(across - at, 0.0)]) for at in candidates]
    return candidates, np.stack([np.eye(len(across)) - basis @ np.linalg.pinv(basis) for basis in bases])


def bootstrap(function: Callable[..., float], *samples: Samples) -> Estimate:
    """Return `function` of the means of `samples`, with intervals over resampled seeds: for knees, without a slope."""
    matrix = np.stack(samples)
    runs = matrix.shape[1]
    drawn = np.random.default_rng(1).multinomial(runs, np.full(runs, 1 / runs), RESAMPLES)
    values = np.array([function(*means) for means in drawn @ matrix.T / runs])
    low, high, low_999, high_999 = np.quantile(values, [0.025, 0.975, 0.0005, 0.9995])
    return Estimate(float(function(*matrix.mean(axis=1))), float(low), float(high), float(low_999), float(high_999))
