"""Which delays the capture shows: in each state of the rate, by a queue that ran empty or that filled to its limit.

Reads a fitted link and arrays of `delivery`. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hindflight.channels.extraction.delivery import Bools, Delivery
from hindflight.channels.extraction.link import Link, limit_within

KNOWN_SHARE = 0.05
"""Error of a delay, as a share of it, up to which it counts as known."""

Part = tuple[int, int]
"""Indices of a level of the delay and of a state of the rate."""


def shown_delays(
    delivery: Delivery, link: Link, parts: Iterable[Part], share: float | None = KNOWN_SHARE
) -> frozenset[Part]:
    """Return those parts whose delay the capture shows, to `share` of it; with None, to whatever its error is.

    With other traffic, which fills the queue, too, only the minimum delay is shown. What changed the rate may have
    changed the delay, too, so each state of the rate must show it: by a packet that met a queue that was nearly empty,
    or by a queue that filled to the same limit as where it was seen empty.
    """
    min_delay = min(held for _, _, held in link.base.spans)
    candidates = {part for part in parts if _is_shown_somewhere(delivery, link, part[0], min_delay, share)}
    if len(link.rate.states) == 1:
        return frozenset(candidates)
    within = {part: _packets(delivery, link, part) for part in candidates}
    emptied = {part for part in candidates if _ran_empty(delivery, link, part, within[part])}
    for level, state in sorted(candidates - emptied, reverse=True):
        # Where nothing is timed, the delay is that of a level that goes on behind, if that is shown.
        if not (within[level, state] & delivery.prompt).any() and (level, state + 1) in emptied:
            emptied.add((level, state))
    for level, state in sorted(candidates - emptied):
        # By how much earlier ACKs came, the level is as well shown as the one before.
        if link.base.clocked and link.base.clocked[level] and (level - 1, state) in emptied:
            emptied.add((level, state))
    if len(emptied) == len(candidates):
        return frozenset(emptied)
    limits = {part: limit_within(delivery, link.all_dropped, inside) for part, inside in within.items()}
    full = [found.limit for part in emptied if (found := limits[part]) is not None]
    for part in candidates - emptied:
        found, held = limits[part], link.base.spans[part[0]][2]
        if found is not None and full:
            packet_ns = float(np.median(link.full_ns[within[part]]))
            if abs(max(full) - found.limit) * packet_ns <= KNOWN_SHARE * held:
                emptied.add(part)
    return frozenset(emptied)


def _is_shown_somewhere(delivery: Delivery, link: Link, level: int, min_delay_ns: float, share: float | None) -> bool:
    held, error_ns = link.base.spans[level][2], link.base.error_ns[level]
    shown = np.isfinite(error_ns) if share is None else error_ns <= share * max(held, 1.0)
    return bool(shown and (delivery.observed.all() or held <= (1 + KNOWN_SHARE) * min_delay_ns))


def _packets(delivery: Delivery, link: Link, part: Part) -> Bools:
    """Mark the packets of a part, from the first to the last that is timed."""
    level, state = part
    first, after, _ = link.base.spans[level]
    starts = [start for start, _, _ in link.rate.states]
    begun = starts[state] if state else 0
    ended = starts[state + 1] if state + 1 < len(starts) else np.iinfo(np.int64).max
    index = np.arange(len(delivery))
    inside = delivery.prompt & (index >= first) & (index < after)
    inside &= (delivery.acked_ns >= begun) & (delivery.acked_ns < ended)
    timed = np.flatnonzero(inside)
    return (index >= timed[0]) & (index <= timed[-1]) if len(timed) else inside


def _ran_empty(delivery: Delivery, link: Link, part: Part, within: Bools) -> bool:
    """Return whether a packet of a part met a nearly empty queue. Where none is timed, nothing tells whether what
    changed the rate changed the delay."""
    prompt = within & delivery.prompt
    if not prompt.any():
        return False
    bare = (delivery.acked_ns - delivery.t_ns - link.service_ns)[prompt]
    return float(bare.min()) <= (1 + KNOWN_SHARE) * link.base.spans[part[0]][2]
