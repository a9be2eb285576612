"""Changes of a path that show when its queue has run empty: the round trips after a pause are all longer, or shorter.

Complements `path_steps`, which knows no rates: what is sent after a pause waits for nothing but itself, so that the
round trip without serialisation and without that wait is the path's. Reads arrays of `delivery`. See
docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Delivery, Ints
from hindflight.channels.extraction.path_steps import (
    MIN_JUMP_NS,
    MIN_JUMP_SHARE,
    MIN_STRETCH,
    Stretch,
    divided,
)

NEAR_PKTS = 8
"""Packets after a pause whose modelled wait is exact."""

EMPTY_PKTS = 0.5
"""Packets that wait, up to which the queue counts as empty."""

WAIT_ERROR = 0.1
"""Error of so short a wait, in packets."""

LATER, AGREEING = 4, 2
"""Times in succession that the queue ran empty and that must all show a new round trip, and those that must if no more
follow, and they agree: one delayed ACK is none."""

AGREEING_SHARE, MIN_TIMED = 0.1, 2
"""Share of a rise by which round trips that agree differ at most, and timed packets of which each is the minimum: the
ACK of a single one may be delayed by the same time each time."""


def split_where_idle(
    delivery: Delivery, paths: Sequence[Stretch], wait_ns: Floats, service_ns: Floats
) -> tuple[Stretch, ...]:
    """Return `paths`, divided where the round trips over an empty queue change. With cross traffic, which fills the
    queue unseen, they are returned as they are."""
    if not delivery.observed.all():
        return tuple(paths)
    at, rest, timed = _over_empty_queue(delivery, wait_ns, service_ns)
    packet_ns = float(np.median(service_ns))
    found: list[Stretch] = []
    for stretch in paths:
        within = (at >= stretch.first) & (at < stretch.after)
        starts, levels = at[within], rest[within]
        changes = _changes(levels, timed[within], packet_ns).tolist()
        cuts = [_begin(delivery, service_ns, starts, levels, k) for k in changes]
        found += divided(delivery, stretch, cuts)
    return tuple(found) if all(_long_enough(delivery, part) for part in found) else tuple(paths)


def _over_empty_queue(delivery: Delivery, wait_ns: Floats, service_ns: Floats) -> tuple[Ints, Floats, Ints]:
    """Return the first packet after each time at which nothing was on the way, the minimum round trip of the few timed
    ones behind it without serialisation and wait, and their number."""
    answered = np.concatenate(([0], np.maximum.accumulate(delivery.covered_ns)[:-1]))
    empty = (wait_ns < EMPTY_PKTS * service_ns) & (answered <= delivery.t_ns)
    firsts = np.flatnonzero(empty)
    busy = np.cumsum(empty)
    since = np.arange(len(delivery)) - firsts[np.maximum(busy, 1) - 1] if len(firsts) else np.zeros(len(delivery))
    near: Bools = delivery.prompt & (since < NEAR_PKTS) & (busy > 0)
    index = np.flatnonzero(near)
    rest = (delivery.acked_ns - delivery.t_ns - service_ns - wait_ns)[index]
    period, number = np.unique(busy[index], return_inverse=True)
    minima = np.full(len(period), np.inf)
    np.minimum.at(minima, number, rest)
    return firsts[period - 1], minima, np.bincount(number, minlength=len(period))


def _changes(rest: Floats, timed: Ints, packet_ns: float) -> Ints:
    """Return where a new level begins; `timed` is how many packets each minimum is of."""
    cuts: list[int] = []
    begin = 0
    lowest = np.minimum.accumulate(rest[::-1])[::-1]
    for k in range(1, len(rest) - AGREEING + 1):
        floor = float(rest[begin:k].min())
        jump = max(MIN_JUMP_NS, MIN_JUMP_SHARE * floor) + WAIT_ERROR * packet_ns
        later = rest[k : k + LATER]
        falls = k - begin >= LATER and len(later) == LATER and later.max() < floor - jump
        rises = len(later) == LATER and later.min() > floor + jump
        rises |= lowest[k] > floor + jump and _agree(rest[k:], timed[k:], lowest[k] - floor)
        if falls or rises:
            cuts.append(k)
            begin = k
    return np.array(cuts, dtype=np.int64)


def _agree(last: Floats, timed: Ints, rise_ns: float) -> bool:
    """Return whether the last minima show one path: they agree, and each and all are of enough packets."""
    enough = timed.min() >= MIN_TIMED and timed.sum() >= MIN_STRETCH
    return bool(enough and np.ptp(last) <= AGREEING_SHARE * rise_ns)


def _begin(delivery: Delivery, service_ns: Floats, starts: Ints, rest: Floats, k: int) -> int:
    """Return the first packet of the new level `k`: the first that took less time than the old one allows, if it falls,
    and else the one after the pause."""
    middle = (rest[k - 1] + rest[k]) / 2
    before = starts[k - 1] + np.flatnonzero(delivery.prompt[starts[k - 1] : starts[k]])
    shorter = before[(delivery.acked_ns - delivery.t_ns - service_ns)[before] < middle]
    return int(shorter[0]) if rest[k] < rest[k - 1] and len(shorter) else int(starts[k])


def _long_enough(delivery: Delivery, stretch: Stretch) -> bool:
    return len(stretch.timed(delivery)) >= MIN_STRETCH
