"""How two clocks differ, from packets that both saw in both directions: offset, drift and their intervals.

The sender's clock is the reference. A packet needs at least the time that it needs on an empty path: the difference of
its two stamps has a lower limit, which falls or rises with the drift. Where the minimum delays of both directions are
equal, half of the difference of the limits is the offset; else it is known within half of the minimum round trip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

MAX_WINDOWS = 600
WINDOW_NS = 1_000_000_000
"""A window has the minimum of the delays in it; a longer capture has longer ones."""
STEP_NS = 2_000_000.0
"""More than this between neighbouring windows is a step of the path: a drift of 500 ppm gives a quarter of it."""
STEP_WINDOWS = 2
"""Windows on both sides of a step that give no minimum: a step reaches the two directions at different times."""
GAP_QUANTILE = 0.25
AROUND_WINDOWS = 5
"""Windows on both sides in which a packet's delay is compared, to see whether it queued."""
MIN_WINDOWS = 3
"""Windows that a stretch between two steps needs to count."""
_MAD_TO_SIGMA = 1.4826
_Z95 = 1.96
_MEDIAN_LOSS = 1.2533
"""Standard error of a median relative to that of a mean, for normal errors."""


@dataclass(frozen=True, slots=True)
class Passages:
    """Packets that passed both places: when by the first clock and by the other, and their sizes."""

    t_ns: Ints
    other_t_ns: Ints
    ip_bytes: Ints


@dataclass(frozen=True, slots=True)
class Clock:
    """The other clock less the first: `offset_ns` at `reference_ns` (of the first), and `drift_ppm` from then on.

    The interval of the offset admits every asymmetry of the path that the minimum round trip allows, unless it was
    given.
    """

    reference_ns: int
    offset_ns: int
    offset_low_ns: int
    offset_high_ns: int
    drift_ppm: float
    drift_error_ppm: float | None
    min_rtt_ns: int

    def to_first(self, other_t_ns: Ints) -> Ints:
        """Return times of the other clock in that of the first."""
        since = other_t_ns - self.reference_ns - self.offset_ns
        return self.reference_ns + since - np.round(since * (self.drift_ppm / (1e6 + self.drift_ppm))).astype(np.int64)


def compare_clocks(forward: Passages, backward: Passages, asymmetry_ns: int | None) -> Clock | None:
    """Return how the clocks differ; None unless packets of both directions passed both places.

    `forward` packets pass the first place first. `asymmetry_ns` is the minimum delay of `forward` less that of
    `backward`, if it is known.
    """
    if not len(forward.t_ns) or not len(backward.t_ns):
        return None
    reference = int(min(forward.t_ns.min(), backward.t_ns.min()))
    base = int(np.median(forward.other_t_ns - forward.t_ns))
    slowness = _ns_per_byte(forward)
    delay = forward.other_t_ns - forward.t_ns - base - forward.ip_bytes * slowness(forward.other_t_ns)
    back = backward.t_ns - backward.other_t_ns + base - backward.ip_bytes * slowness(backward.other_t_ns)
    x, x_back = ((p.t_ns - reference).astype(np.float64) for p in (forward, backward))
    window_ns = max(WINDOW_NS, float(max(x.max(), x_back.max())) / MAX_WINDOWS)
    drift, error, regime_of = _drift(x_back, back, window_ns)
    delay, back = delay - drift * x, back + drift * x_back
    min_delay, min_delay_back = _minima(regime_of(x), delay, regime_of(x_back), back)
    asymmetry = asymmetry_ns or 0
    offset = (min_delay - min_delay_back - asymmetry) / 2
    rtt = max(min_delay + min_delay_back, 0.0)
    half_width = rtt / 2 if asymmetry_ns is None else 0.0
    return Clock(
        reference,
        base + round(offset),
        base + round(offset - half_width),
        base + round(offset + half_width),
        drift * 1e6,
        error * 1e6 if np.isfinite(error) else None,
        round(rtt),
    )


class _Steps:
    """A value that holds from each of some times on."""

    def __init__(self, starts: Floats, values: Floats) -> None:
        self._starts, self._values = starts, values

    def __call__(self, at: npt.NDArray[np.generic]) -> Floats:
        """Return the value at each of these times; before the first that of the first."""
        places = np.clip(np.searchsorted(self._starts, at.astype(np.float64), side="right") - 1, 0, None)
        return self._values[places]


def _ns_per_byte(forward: Passages) -> _Steps:
    """Time that an octet takes at the bottleneck, by the other clock: from gaps of packets that it has spread.

    A gap is longer where a packet between was lost, so a low quantile is taken, and the minimum of several windows: too
    short a time leaves more of a packet's delay, of which the minimum is sought; too long a one would make it less.
    """
    order = np.argsort(forward.other_t_ns, kind="stable")
    sent, seen, size = forward.t_ns[order], forward.other_t_ns[order], forward.ip_bytes[order]
    gap, gap_sent = np.diff(seen), np.diff(sent)
    queued = (
        sent[1:] + _local_minimum(sent, seen - sent)[1:] < seen[:-1]
    )  # It would have come before the one ahead of it.
    spread = (gap > 0) & (gap_sent >= 0) & ((gap_sent < gap // 2) | queued) & (size[1:] > size[1:].max(initial=0) // 2)
    if not spread.any():
        return _Steps(np.zeros(1), np.zeros(1))
    at, cost = seen[1:][spread], gap[spread] / size[1:][spread]
    known, starts = np.unique((at - at[0]) // WINDOW_NS, return_index=True)
    costs = np.array([np.quantile(group, GAP_QUANTILE) for group in np.split(cost, starts[1:])])
    padded = np.pad(costs, 1, mode="edge")
    lowest = np.minimum(costs, np.minimum(padded[:-2], padded[2:]))
    return _Steps(at[0] + known.astype(np.float64) * WINDOW_NS, lowest)


def _local_minimum(t_ns: Ints, delay: Ints) -> Ints:
    """The minimum delay in the windows around each packet; `t_ns` need not be in order."""
    window = (t_ns - t_ns.min()) // WINDOW_NS
    known, place = np.unique(window, return_inverse=True)
    minima = np.full(len(known), np.iinfo(np.int64).max)
    np.minimum.at(minima, place, delay)
    padded = np.pad(minima, AROUND_WINDOWS, mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND_WINDOWS + 1).min(axis=1)
    return np.asarray(around[place], np.int64)


def _drift(x: Floats, delay: Floats, window_ns: float) -> tuple[float, float, _Steps]:
    """The drift and its 95 % error from the minima of windows, and the stretches between steps of the path.

    The slope is Theil and Sen's: the median over all pairs of windows of one stretch.
    """
    window = (x // window_ns).astype(np.int64)
    order = np.lexsort((delay, window))
    _, first = np.unique(window[order], return_index=True)
    at, lowest = x[order][first], delay[order][first]
    regime = np.concatenate(([0], np.cumsum(np.abs(np.diff(lowest)) > STEP_NS)))
    numbers, counts = np.unique(regime, return_counts=True)
    kept = np.isin(regime, numbers[counts >= MIN_WINDOWS])
    inside = kept & ~_near(np.diff(regime) > 0, STEP_WINDOWS)
    of = _Steps(at, np.where(inside if inside.any() else regime >= 0, regime, -1).astype(np.float64))
    one, two = np.triu_indices(len(at), 1)
    same = kept[one] & kept[two] & (regime[one] == regime[two])
    if not same.any():
        return 0.0, np.inf, of
    one, two = one[same], two[same]
    run = at[two] - at[one]
    slopes = (lowest[two] - lowest[one]) / run
    slope = _weighted_median(slopes, run)
    rest = lowest - slope * at
    means = {number: np.median(rest[regime == number]) for number in np.unique(regime[kept])}
    residuals = np.concatenate([rest[regime == number] - mean for number, mean in means.items()])
    lever = sum(float(((at[regime == n] - at[regime == n].mean()) ** 2).sum()) for n in means)
    sigma = _MAD_TO_SIGMA * float(np.median(np.abs(residuals)))
    return -slope, _Z95 * _MEDIAN_LOSS * sigma / max(lever, 1.0) ** 0.5, of


def _near(steps: npt.NDArray[np.bool_], windows: int) -> npt.NDArray[np.bool_]:
    """Which windows are among the `windows` before or after a step between two."""
    near = np.zeros(len(steps) + 1, bool)
    for place in np.flatnonzero(steps):
        near[max(place + 1 - windows, 0) : place + 1 + windows] = True
    return near


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _minima(regime: Floats, delay: Floats, regime_back: Floats, back: Floats) -> tuple[float, float]:
    """The minimum delays of both directions in the stretch where they differ least: there the data found no queue."""
    found = []
    for number in np.unique(regime_back[regime_back >= 0]):
        mine, other = delay[regime == number], back[regime_back == number]
        if len(mine) and len(other):
            found.append((float(mine.min()), float(other.min())))
    if not found:
        return float(delay.min()), float(back.min())
    return min(found, key=lambda pair: pair[0] - pair[1])
