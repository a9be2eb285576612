"""The throughput model of Lee et al. 2020, section 4, written out. Arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

INITIAL, LAST_MAX, HORIZON, STEP = 1.0, 2.0, 2.5, 0.1
"""The example: i, last_max_cwnd and T. The step is not given; with 0.1 the sum of CUBIC is as printed."""


def time_to_last_max(initial: float = INITIAL, last_max: float = LAST_MAX) -> float:
    """Return K of equation (2): the quadratic slow start reaches the window before the last loss."""
    return math.sqrt(last_max) - initial


def cubic_time_to_last_max(initial: float = INITIAL, last_max: float = LAST_MAX) -> float:
    """Return the time at which CUBIC's curve reaches that window; not printed, from figure 3."""
    return math.cbrt(last_max - initial) if hasattr(math, "cbrt") else (last_max - initial) ** (1 / 3)


def asran_window(x: float) -> float:
    """Return the window of ASRAN at time `x`, equation (1)."""
    k = time_to_last_max()
    return (x + INITIAL) ** 2 if x <= k else (x - k) ** 3 + LAST_MAX


def cubic_window(x: float) -> float:
    """Return the window of CUBIC at time `x`."""
    return (x - cubic_time_to_last_max()) ** 3 + LAST_MAX


def times() -> list[float]:
    """Return the times of the discrete sum: every step from the first one to T."""
    return [STEP * number for number in range(1, round(HORIZON / STEP) + 1)]


def total(windows: Iterable[float]) -> float:
    """Return the sum of windows, equation (3)."""
    return math.fsum(windows)


def asran_total() -> float:
    """Return the sum of ASRAN's windows."""
    return total(asran_window(x) for x in times())


def cubic_total() -> float:
    """Return the sum of CUBIC's windows."""
    return total(cubic_window(x) for x in times())


def slow_start_windows(rounds: int, initial: int = 1) -> list[int]:
    """Return the window after each round trip of slow start: every ACK adds one segment (RFC 5681 section 3.1)."""
    windows = [initial]
    for _ in range(rounds):
        acks = windows[-1]
        windows.append(windows[-1] + acks)
    return windows
