"""When each captured segment left the sender, and when each segment to it arrived there.

TSval gives the time of sending within a tick of the sender's clock. A segment that echoes an ACK left after that ACK
had arrived, and one that does not yet echo the next ACK before: both bound the delay of the ACKs, and the first segment
that echoes an ACK mostly left at once. What remains is one constant, the difference of the clocks: it is chosen so
that the shortest round trip divides into two equal halves.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from hindflight.toolkit.sender_view.stamps import Floats, Ints, Stamps

SLACK_TICKS = 2.0
"""Jitter of the ACKs' delay, in ticks, that is no step."""
NEARBY_NS = 20e9
"""Within this time clocks that differ by 50 ppm gain 1 ms, and the delay to a satellite in low orbit changes by half of
that."""


@dataclass(frozen=True, slots=True)
class Times:
    """Times at the sender in ns since the stamps' origin: `sent_ns` of segments, `arrived_ns` of those to it."""

    sent_ns: Floats
    arrived_ns: Floats
    rtt_min_ns: float


def times_of(stamps: Stamps) -> Times | None:
    """Return the times at the sender; None if no segment echoes one that the capture has."""
    answered = np.flatnonzero(stamps.echoed >= 0)
    if not len(answered):
        return None
    rtt_min_ns = float((stamps.t_ns[answered] - stamps.back_t_ns[stamps.echoed[answered]]).min())
    earliest, latest = _sending(stamps, rtt_min_ns)
    arrived = np.maximum.accumulate(stamps.back_t_ns + _ack_delay(stamps, answered, earliest, latest))
    # Of the ACKs that carry the same TSval, all count as arrived when a segment that echoes them leaves.
    triggered = np.where(stamps.echoed >= 0, arrived[stamps.echoed_last], -np.inf)
    sent = np.maximum.accumulate(np.clip(triggered, earliest, latest)).astype(np.float64)
    return Times(sent, _before_echoes(arrived, stamps.echoed_last, sent), rtt_min_ns)


def _sending(stamps: Stamps, rtt_min_ns: float) -> tuple[Floats, Floats]:
    """Return the earliest and the latest time at which each segment may have left.

    The segment with the shortest delay left at the end of its tick, as far as many segments can tell.
    """
    ticked = (stamps.ticks * float(stamps.tick_ns)).astype(np.float64)
    ticked -= ticked[0]
    shortest_ns = float((stamps.t_ns - ticked).min())
    earliest = ticked + shortest_ns - stamps.tick_ns - rtt_min_ns / 2
    latest = np.minimum(earliest + stamps.tick_ns, stamps.t_ns - rtt_min_ns / 2)
    return earliest, np.maximum(latest, earliest)


def _ack_delay(stamps: Stamps, answered: Ints, earliest: Floats, latest: Floats) -> Floats:
    """Return the delay of each segment to the sender.

    Between steps it is the least that echoes admit nearby: some segment near leaves as soon as an ACK lets it.
    """
    echoed = stamps.echoed[answered]
    at_ns = np.maximum.accumulate(stamps.back_t_ns[echoed])
    most = latest[answered] - stamps.back_t_ns[echoed]
    # The segments to the sender after the one echoed had not arrived; those in the same tick carry the same TSval.
    following = _next_tick(stamps, echoed)
    bounded = following < len(stamps.back_t_ns)
    least = np.full(len(answered), -np.inf)
    least[bounded] = earliest[answered[bounded]] - stamps.back_t_ns[following[bounded]]
    starts = _steps(least, most, SLACK_TICKS * stamps.tick_ns)
    delays = np.concatenate(
        [_envelope(at_ns[a:b], most[a:b]) for a, b in zip(starts, [*starts[1:], len(most)], strict=True)]
    )
    return delays[np.maximum(np.searchsorted(at_ns, stamps.back_t_ns, side="right") - 1, 0)]


def _next_tick(stamps: Stamps, echoed: Ints) -> Ints:
    """Return the index of the first segment to the sender that a later echo names; past the end if there is none."""
    named = np.unique(stamps.echoed[stamps.echoed >= 0])
    after = np.searchsorted(named, echoed, side="right")
    return np.append(named, len(stamps.back_t_ns))[after]


def _steps(least: Floats, most: Floats, slack_ns: float) -> list[int]:
    """Return where constants begin, the fewest that lie within `least` and `most` but for `slack_ns`."""
    starts = [0]
    low, high = -np.inf, np.inf
    for k, (bottom, top) in enumerate(zip(least.tolist(), most.tolist(), strict=True)):
        low, high = max(low, bottom), min(high, top)
        if low > high + slack_ns:
            starts.append(k)
            low, high = bottom, top
    return starts


def _envelope(at_ns: Ints, most: Floats) -> Floats:
    """Return the lower envelope of `most`: the least of what is near before and of what is near after, the larger one.

    So a step up does not spread to what follows it, nor a step down to what precedes it.
    """
    end = np.searchsorted(at_ns, at_ns + NEARBY_NS, side="right")
    first = np.searchsorted(at_ns, at_ns - NEARBY_NS, side="left")
    after = _least(most, np.arange(len(most)), end)
    before = _least(most, first, np.arange(1, len(most) + 1))
    return np.maximum(before, after)


def _least(values: Floats, first: Ints, end: Ints) -> Floats:
    """Return the least of the values in each range; both ends of the ranges rise."""
    least, held = np.empty(len(first)), deque[int]()
    taken = 0
    for k, (low, high) in enumerate(zip(first.tolist(), end.tolist(), strict=True)):
        while taken < high:
            while held and values[held[-1]] >= values[taken]:
                held.pop()
            held.append(taken)
            taken += 1
        while held[0] < low:
            held.popleft()
        least[k] = values[held[0]]
    return least


def _before_echoes(arrived: Floats, echoed: Ints, sent: Floats) -> Floats:
    """Return the times of arrival, none after the first segment that echoes it or a later one."""
    limit = np.full(len(arrived) + 1, np.inf)
    np.minimum.at(limit, echoed, np.where(echoed >= 0, sent, np.inf))
    return np.minimum(arrived, np.minimum.accumulate(limit[:-1][::-1])[::-1])
