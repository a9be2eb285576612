"""Change-point detection: a piecewise-constant fit of a noisy series.

Used for the bottleneck's rate and for the base round-trip time. See docs/channels/extract.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Spans = list[tuple[int, int, float]]

BLOCK = 16
"""Number of values judged together: enough for a median that a few delayed ACKs do not move."""

MIN_BLOCKS = 3
"""Minimum length of a level in blocks; a shorter one is a transition."""

AGREEING_SHARE = 0.8
"""Share of the values of a shorter, lower level at the end of a series that must agree."""


@dataclass(frozen=True, slots=True)
class PiecewiseConstant:
    """Levels `(start, stop, value)` over indices of the series, in order, and the share of values they explain."""

    spans: tuple[tuple[int, int, float], ...]
    coverage: float

    def at(self, n: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the level of each of `n` values, and whether a level contains it. A gap gets the later level."""
        level, inside = np.empty(n), np.zeros(n, dtype=np.bool_)
        before = 0
        for start, stop, value in self.spans:
            level[before:stop] = value
            inside[start:stop] = True
            before = stop
        level[before:] = self.spans[-1][2]
        return level, inside


def fit(values: Floats, tolerance: float) -> PiecewiseConstant:
    """Fit levels that differ by more than `tolerance`. A short series gets one level, its median."""
    count = len(values) // BLOCK
    if count < 2 * MIN_BLOCKS:
        level = float(np.median(values))
        return PiecewiseConstant(((0, len(values), level),), float(np.mean(np.abs(values - level) <= tolerance)))
    spans, _ = _levels(values, tolerance)
    if not spans:
        level = float(np.median(values))
        return PiecewiseConstant(((0, len(values), level),), float(np.mean(np.abs(values - level) <= tolerance)))
    spans = _stretch(spans, values, tolerance)
    explained = sum(int(np.sum(np.abs(values[a:b] - v) <= tolerance)) for a, b, v in spans)
    return PiecewiseConstant(tuple(spans), explained / len(values))


def lowest_end(values: Floats, tolerance: float) -> slice | None:
    """Return the part of a series, at one of its ends, that has its lowest level, if all of the rest lies above it: of
    rates, that of a link which was busy for a part of the time. None if there is none.

    AGREEING_SHARE of the part agree, and the median of each block of the rest is higher, but for that at the border.
    """
    count = len(values) // BLOCK
    if count < 2 * MIN_BLOCKS:
        return None
    spans, middle = _levels(values, tolerance)
    if not spans:
        return None
    first, stop, level = min(spans, key=lambda span: span[2])
    # A block may straddle the border.
    rest = middle[stop // BLOCK + 1 :] if first == 0 else middle[: max(first // BLOCK - 1, 0)]
    at_end = first == 0 or stop == count * BLOCK
    if not at_end or not len(rest) or rest.min() <= level + tolerance:
        return None
    agreeing = np.mean(np.abs(values[first:stop] - level) <= tolerance)
    return slice(first, stop) if agreeing >= AGREEING_SHARE else None


def with_lower_end(levels: PiecewiseConstant, values: Floats, tolerance: float) -> PiecewiseConstant:
    """Add a last level that is too short for `fit`, if it is lower: at least BLOCK values of which none is at the level
    before, and AGREEING_SHARE of which agree with each other. Of rates, higher ones may be ACKs that came at once."""
    first, last, level = levels.spans[-1]
    at_level = np.flatnonzero(np.abs(values[first:last] - level) <= tolerance)
    start = first + int(at_level[-1]) + 1 if len(at_level) else last
    if last - start < BLOCK:
        return levels
    middle = float(np.median(values[start:last]))
    agreeing = np.abs(values[start:last] - middle) <= tolerance
    if np.mean(agreeing) < AGREEING_SHARE or middle >= level - tolerance:
        return levels
    spans = (*levels.spans[:-1], (first, start, level), (start, last, middle))
    return PiecewiseConstant(spans, levels.coverage + float(agreeing.sum()) / len(values))


def _levels(values: Floats, tolerance: float) -> tuple[Spans, Floats]:
    """Return the levels of a series in whole blocks, and the median of each block. A block of which half the values
    agree makes a level, with those before that hardly differ; values behind the last whole block are left out."""
    count = len(values) // BLOCK
    blocks = values[: count * BLOCK].reshape(count, BLOCK)
    low, middle, high = np.quantile(blocks, (0.25, 0.5, 0.75), axis=1)
    groups: list[list[int]] = []
    for b in np.flatnonzero(high - low <= tolerance).tolist():
        if groups and abs(middle[b] - _recent(groups[-1], middle)) <= tolerance:
            groups[-1].append(b)
        else:
            groups.append([b])
    return _merge(groups, middle, tolerance), middle


def _recent(group: list[int], middle: Floats) -> float:
    """Return the median of the last blocks of a group: a level may drift, and one block may be an outlier."""
    last = sorted(float(middle[b]) for b in group[-9:])
    return last[len(last) // 2]


def _merge(groups: list[list[int]], middle: Floats, tolerance: float) -> Spans:
    spans: Spans = []
    for group in groups:
        if len(group) < MIN_BLOCKS:
            continue
        level = float(np.median(middle[group]))
        start, stop = group[0] * BLOCK, (group[-1] + 1) * BLOCK
        if spans and abs(spans[-1][2] - level) <= tolerance:
            first, last, held = spans[-1]
            share = (last - first) / (last - first + stop - start)
            spans[-1] = (first, stop, share * held + (1 - share) * level)
        else:
            spans.append((start, stop, level))
    return spans


def _stretch(spans: Spans, values: Floats, tolerance: float) -> Spans:
    """Move each border to the change point. The first and the last level extend to the ends of the series."""
    fits = [np.abs(values - level) <= tolerance for _, _, level in spans]
    stretched: Spans = []
    for i, (first, last, level) in enumerate(spans):
        start, stop = first + _misfits(fits[i][first:last]), last - _misfits(fits[i][first:last][::-1])
        floor = stretched[-1][1] if stretched else 0
        roof = spans[i + 1][0] if i + 1 < len(spans) else len(values)
        while start > floor and fits[i][start - 1]:
            start -= 1
        while stop < roof and fits[i][stop]:
            stop += 1
        stretched.append((0 if i == 0 else start, len(values) if i + 1 == len(spans) else stop, level))
    return stretched


def _misfits(fits: npt.NDArray[np.bool_]) -> int:
    """Return how many values at the start belong to the previous level: a block may straddle the border."""
    lead = np.cumsum(np.where(fits[:BLOCK], -1, 1))
    best = int(np.argmax(lead))
    return best + 1 if lead[best] > 0 else 0
