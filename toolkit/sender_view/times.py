"""When each captured segment left the sender, and when each segment to it arrived there.

TSval gives the time of sending within a tick of the sender's clock. A segment that echoes an ACK left after that ACK
had arrived, and one that does not yet echo the next ACK before: both bound the delay of the ACKs, and the first segment
that echoes an ACK mostly left at once. What remains is one constant, the difference of the clocks: it is chosen so
that the shortest round trip divides into two equal halves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindflight.toolkit.sender_view.stamps import Floats, Ints, Stamps

SLACK_TICKS = 2.0
"""Jitter of the ACKs' delay, in ticks, that is no step."""
NEARBY_NS = 20e9
"""Within this time clocks that differ by 50 ppm gain 1 ms, and the delay to a satellite in low orbit changes by half of
that."""
BUCKET_NS = 500_000_000
"""Time in which the delay counts as the same."""
SUPPORT = 8
"""Bounds that have to agree on a delay."""


@dataclass(frozen=True, slots=True)
class Times:
    """Times at the sender in ns since the stamps' origin: `sent_ns` of segments, `arrived_ns` of those to it."""

    sent_ns: Floats
    arrived_ns: Floats


def times_of(stamps: Stamps, ack_delay_ns: float) -> Times:
    """Return the times at the sender; `ack_delay_ns` is the part of the shortest round trip that ACKs take."""
    answered = np.flatnonzero(stamps.echoed >= 0)
    earliest, latest = _sending(stamps, stamps.rtt_min_ns - ack_delay_ns)
    arrived = np.maximum.accumulate(stamps.back_t_ns + _ack_delay(stamps, answered, earliest, latest))
    # Of the ACKs that carry the same TSval, all count as arrived when a segment that echoes them leaves.
    triggered = np.where(stamps.echoed >= 0, arrived[stamps.echoed_last], -np.inf)
    sent = np.maximum.accumulate(np.clip(triggered, earliest, latest)).astype(np.float64)
    return Times(sent, _before_echoes(arrived, stamps.echoed_last, sent))


def _sending(stamps: Stamps, delay_ns: float) -> tuple[Floats, Floats]:
    """Return the earliest and the latest time at which each segment may have left; the shortest delay is `delay_ns`.

    The segment with the shortest delay left at the end of its tick, as far as many segments can tell.
    """
    ticked = (stamps.ticks * float(stamps.tick_ns)).astype(np.float64)
    ticked -= ticked[0]
    shortest_ns = float((stamps.t_ns - ticked).min())
    earliest = ticked + shortest_ns - stamps.tick_ns - delay_ns
    latest = np.minimum(earliest + stamps.tick_ns, stamps.t_ns - delay_ns)
    return earliest, np.maximum(latest, earliest)


def _ack_delay(stamps: Stamps, answered: Ints, earliest: Floats, latest: Floats) -> Floats:
    """Return the delay of each segment to the sender.

    Between steps it is about the least that echoes admit nearby: some segments leave as soon as an ACK lets them.
    """
    echoed = stamps.echoed[answered]
    at_ns = np.maximum.accumulate(stamps.back_t_ns[echoed])
    upper_ns = latest[answered] - stamps.back_t_ns[echoed]
    # The segments to the sender after the one echoed had not arrived; those in the same tick carry the same TSval.
    following = _next_tick(stamps, echoed)
    bounded = following < len(stamps.back_t_ns)
    lower_ns = np.full(len(answered), -np.inf)
    lower_ns[bounded] = earliest[answered[bounded]] - stamps.back_t_ns[following[bounded]]
    slack_ns = SLACK_TICKS * stamps.tick_ns
    starts = _steps(lower_ns, upper_ns, slack_ns)
    delays = np.concatenate(
        [
            envelope(at_ns[a:b], upper_ns[a:b], slack_ns)
            for a, b in zip(starts, [*starts[1:], len(upper_ns)], strict=True)
        ]
    )
    return delays[np.maximum(np.searchsorted(at_ns, stamps.back_t_ns, side="right") - 1, 0)]


def _next_tick(stamps: Stamps, echoed: Ints) -> Ints:
    """Return the index of the first segment to the sender that a later echo names; past the end if there is none."""
    named = np.unique(stamps.echoed[stamps.echoed >= 0])
    after = np.searchsorted(named, echoed, side="right")
    return np.append(named, len(stamps.back_t_ns))[after]


def _steps(lower_ns: Floats, upper_ns: Floats, slack_ns: float) -> list[int]:
    """Return where constants begin, the fewest that lie within the bounds but for `slack_ns`."""
    starts = [0]
    low, high = -np.inf, np.inf
    for k, (lower, upper) in enumerate(zip(lower_ns.tolist(), upper_ns.tolist(), strict=True)):
        low, high = max(low, lower), min(high, upper)
        if low > high + slack_ns:
            starts.append(k)
            low, high = lower, upper
    return starts


def envelope(at_ns: Ints, upper_ns: Floats, slack_ns: float) -> Floats:
    """Return the lower envelope of bounds in the order of time: what is typical before or after, the larger of the two.

    So a step up does not spread to what follows it, nor a step down to what precedes it. Typical is the least within
    `NEARBY_NS`, if SUPPORT of the bounds there are as low but for `slack_ns`: a segment that waits for the application
    bounds nothing. Where neither side has that many, the nearest typical value counts, and without any the least.
    """
    bucket = (at_ns - at_ns[0]) // BUCKET_NS
    edges = np.concatenate(([0], np.flatnonzero(np.diff(bucket)) + 1, [len(at_ns)]))
    begins, ends = at_ns[edges[:-1]], at_ns[edges[1:] - 1]
    first = np.searchsorted(at_ns, begins - NEARBY_NS, side="left")
    last = np.searchsorted(at_ns, ends + NEARBY_NS, side="right")
    typical = np.full(len(begins), np.nan)
    for k, (start, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        sides = (_typical(upper_ns[first[k] : end], slack_ns), _typical(upper_ns[start : last[k]], slack_ns))
        known = [value for value in sides if value is not None]
        typical[k] = max(known) if known else np.nan
    (known_ones,) = np.nonzero(~np.isnan(typical))
    if not len(known_ones):
        return np.full(len(at_ns), float(upper_ns.min()))
    nearest = _nearest(known_ones, len(typical))
    found: Floats = np.minimum(np.repeat(typical[nearest], np.diff(edges)), upper_ns).astype(np.float64)
    return found


def _nearest(known: Ints, n: int) -> Ints:
    """Return for each of `n` places the nearest of the known ones, which rise."""
    places = np.arange(n)
    after = np.minimum(np.searchsorted(known, places), len(known) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(np.abs(known[before] - places) <= np.abs(known[after] - places), known[before], known[after])


def _typical(values: Floats, slack_ns: float) -> float | None:
    """Return the least of the values if others are about as low."""
    if len(values) < SUPPORT:
        return None
    lowest = np.partition(values, SUPPORT - 1)[:SUPPORT]
    return float(lowest.min()) if lowest.max() <= lowest.min() + slack_ns else None


def _before_echoes(arrived: Floats, echoed: Ints, sent: Floats) -> Floats:
    """Return the times of arrival, none after the first segment that echoes it or a later one."""
    limit = np.full(len(arrived) + 1, np.inf)
    np.minimum.at(limit, echoed, np.where(echoed >= 0, sent, np.inf))
    return np.minimum(arrived, np.minimum.accumulate(limit[:-1][::-1])[::-1])
