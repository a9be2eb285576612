"""Intervals between two ACKs in which a link served packets all the time, joined until their rates are exact.

Reads arrays of times and octets; does not depend on paths, queues or causes of losses. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hindflight.channels.extraction import change_points as _change_points
from hindflight.channels.extraction.change_points import Floats, PiecewiseConstant
from hindflight.channels.extraction.delivery import Bools, Ints

RATE_TOLERANCE = 0.08
"""Relative change of rate (natural logarithm) that starts another state of the link."""

AROUND_PAIRS = 48
"""Busy intervals around one whose median tells its rate apart from that of other times."""

EXACT_SHARE = 0.95
"""Share of busy intervals within RATE_TOLERANCE of those around them, from which they are long enough: RATE_TOLERANCE
then is the half width of a 95 % interval."""

STEADY_SHARE = 0.6
"""Share of busy intervals that the states of a rate explain, from which the rate is one that changes in steps."""


@dataclass(frozen=True, slots=True)
class BusySpans:
    """Intervals between two ACKs in which the link served packets all the time: end and length [ns], bytes served."""

    at_ns: Ints
    span_ns: Ints
    served_bytes: Ints

    def where(self, chosen: Bools | slice) -> BusySpans:
        """Return those that are chosen."""
        return BusySpans(self.at_ns[chosen], self.span_ns[chosen], self.served_bytes[chosen])


NO_SPANS = BusySpans(*np.zeros((3, 0), dtype=np.int64))


def together(spans: Sequence[BusySpans]) -> BusySpans:
    """Return all of these in one."""
    return BusySpans(
        np.concatenate([one.at_ns for one in spans]),
        np.concatenate([one.span_ns for one in spans]),
        np.concatenate([one.served_bytes for one in spans]),
    )


def joined_until_exact(pairs: BusySpans, usable: Bools) -> BusySpans:
    """Return the usable spans, as many in a row joined as needed for EXACT_SHARE of them to agree with those around.

    Hosts deliver and ACKs come late by about the same time whatever the rate is, which the next span makes up for: the
    longer a span, the smaller its share. Changes of the rate need spans enough to be found, so each state that single
    spans show is joined by itself. Where these explain no more than STEADY_SHARE, the spans of an application may be
    among them: then all are joined as one, if states explain more of them.
    """
    index = np.flatnonzero(usable)
    single = _states(pairs.where(usable))
    parts = []
    for begin, end in pairwise([0, *(int(index[start]) for start, _, _ in single.spans[1:]), len(usable)]):
        within = np.zeros(len(usable), dtype=np.bool_)
        within[begin:end] = usable[begin:end]
        parts.append(_joined_in_state(pairs, within))
    by_state = together(parts)
    if len(parts) == 1 or single.coverage > STEADY_SHARE:
        return by_state
    whole = _joined_in_state(pairs, usable)
    return whole if _states(whole).coverage > _states(by_state).coverage else by_state


def _states(spans: BusySpans) -> PiecewiseConstant:
    """Return the states of the rate, as the logarithm of octets per ns."""
    return _change_points.fit(np.log(spans.served_bytes / spans.span_ns), RATE_TOLERANCE)


def _joined_in_state(pairs: BusySpans, usable: Bools) -> BusySpans:
    """Return the usable spans of one state of the rate, joined as `joined_until_exact` says."""
    chosen = pairs.where(usable)
    number, best, joined = 1, _agreeing(chosen), chosen
    while best < EXACT_SHARE and 2 * number <= len(chosen.at_ns):
        number *= 2
        candidate = _in_groups(pairs, usable, number)
        if len(candidate.at_ns) < 2 * _change_points.MIN_BLOCKS * _change_points.BLOCK:
            break
        share = _agreeing(candidate)
        if share > best:
            best, joined = share, candidate
    return joined


def _in_groups(pairs: BusySpans, usable: Bools, number: int) -> BusySpans:
    """Join each `number` usable spans in a row, with what is left over at its end; a shorter row is one span."""
    index = np.flatnonzero(usable)
    begins = np.concatenate(([True], np.diff(index) > 1))
    row = np.cumsum(begins) - 1
    place = np.arange(len(index)) - np.flatnonzero(begins)[row]
    starts = (place % number == 0) & ((place == 0) | (place + number <= np.bincount(row)[row]))
    group = np.cumsum(starts) - 1
    last = index[np.append(np.flatnonzero(np.diff(group)), len(index) - 1)]
    span = np.bincount(group, pairs.span_ns[index]).astype(np.int64)
    served = np.bincount(group, pairs.served_bytes[index]).astype(np.int64)
    return BusySpans(pairs.at_ns[last], span, served)


def _agreeing(spans: BusySpans) -> float:
    """Return the share of spans whose rate is that of the time around them."""
    around = median_around(spans.span_ns / spans.served_bytes, np.ones(len(spans.at_ns), dtype=np.bool_))
    ratio = spans.span_ns / (spans.served_bytes * around)
    return float(np.mean((ratio >= np.exp(-RATE_TOLERANCE)) & (ratio <= np.exp(RATE_TOLERANCE))))


def median_around(values: Floats, usable: Bools) -> Floats:
    """Return the median of the usable values among the AROUND_PAIRS around each; infinite where fewer than a block
    are."""
    padded = np.pad(np.where(usable, values, np.nan), AROUND_PAIRS // 2, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, AROUND_PAIRS + 1)[: len(values)]
    enough = np.sum(~np.isnan(windows), axis=1) >= _change_points.BLOCK
    median = np.full(len(values), np.inf)
    if enough.any():
        median[enough] = np.nanmedian(windows[enough], axis=1)
    return median
