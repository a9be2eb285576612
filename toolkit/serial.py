"""Numbers of 32 bits that wrap: sequence numbers (RFC 9293 §3.4) and timestamps (RFC 7323 §5.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_HALF, _WHOLE = 1 << 31, 1 << 32


def nearest(differences: Ints) -> Ints:
    """Return differences of such numbers as the nearest signed ones, from -2^31 to 2^31 - 1."""
    return np.asarray((differences + _HALF) % _WHOLE - _HALF, dtype=np.int64)


def unwrapped(values: Ints, first: int) -> Ints:
    """Return such numbers as distances from `first` without wraps: each less than 2^31 from the one before."""
    return np.asarray(np.cumsum(nearest(np.diff(values, prepend=first))), dtype=np.int64)
