"""Bounds of a rate at which no queue formed: packets of two sizes that wait for nothing differ by their serialisation.

Complements `bottleneck`, which measures rates where packets queue. Reads arrays of `delivery`; does not depend on
causes of losses. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hindflight.channels.extraction.bottleneck import (
    CLOCK_SHARE,
    LOCAL_NS,
    MIN_DELAYED_ACK_NS,
    NS_BIT,
    Rate,
    full_size,
    lindley_wait,
    rtt_ns,
)
from hindflight.channels.extraction.busy_spans import RATE_TOLERANCE
from hindflight.channels.extraction.delivery import Bools, Delivery
from hindflight.channels.extraction.path_steps import LOWEST, Stretch

HOSTS_NS = 100_000
"""Time by which a host may answer data later than a SYN, which its application need not read. Assumed, without a
source, as the time that two hosts take at least is (`link_stretches`)."""


@dataclass(frozen=True, slots=True)
class _Lowest:
    """The minimum round trip of `packets` of one size, and how exact it is: the distance to the LOWEST-th above it."""

    size_bytes: int
    packets: int
    trip_ns: float
    scatter_ns: float


def with_sizes(delivery: Delivery, paths: Sequence[Stretch], rate: Rate) -> Rate:
    """Return `rate`, a lower bound, with an upper one; as known where both are as near as busy intervals must be.

    The packets of a path with one slow link take base + size / rate, if they wait for nothing. Deviation: where several
    links are about as slow, the sizes show all of their serialisations together, so that the bottleneck is faster.
    With cross traffic, which fills the queue unseen, or where the path or its rate changed, `rate` is returned as it
    is.
    """
    if rate.known or len(paths) != 1 or not delivery.observed.all():
        return rate
    alone = _waited_for_nothing(delivery, rate)
    least_ns, most_ns = _ns_per_byte(delivery, alone)
    if least_ns <= 0 or not _is_constant(delivery, alone, least_ns):
        return rate
    high = NS_BIT / least_ns
    if not np.isfinite(most_ns):
        return replace(rate, high=high) if high >= rate.low else rate
    # What a round trip's ACKs report may be a packet more than was served in it; sizes have no such error.
    if high < rate.low - NS_BIT * full_size(delivery) / max(paths[0].floor_ns, 1.0):
        return rate
    low = NS_BIT / most_ns
    known = bool(np.log(high / low) <= 2 * RATE_TOLERANCE)
    bps = float(np.sqrt(low * high)) if known else low
    (begin, end, _), *_ = rate.states
    return replace(rate, bps=bps, low=low, high=high, known=known, steady=known, states=((begin, end, bps),))


def _waited_for_nothing(delivery: Delivery, rate: Rate) -> Bools:
    """Mark the timed packets that met an empty queue even at the lower bound of the rate."""
    service_ns = rate.service_ns(delivery.size_bytes, delivery.t_ns)
    return np.asarray(delivery.prompt & (lindley_wait(delivery, service_ns, ~delivery.lost) == 0.0))


def _ns_per_byte(delivery: Delivery, alone: Bools) -> tuple[float, float]:
    """Return the least and the most time per octet that sizes show: 0 and infinity where they show none. Of several
    times, the one with most packets of both sizes counts."""
    pairs = list(_pairs(delivery, alone))
    if not pairs:
        return _least_since_handshake(delivery, alone), np.inf
    small, large = max(pairs, key=lambda pair: min(one.packets for one in pair))
    octets, differ_ns = large.size_bytes - small.size_bytes, large.trip_ns - small.trip_ns
    # A timer may delay the ACKs of all packets of a size.
    if differ_ns + small.scatter_ns >= MIN_DELAYED_ACK_NS:
        return 0.0, np.inf
    clocks = 1 - CLOCK_SHARE, 1 + CLOCK_SHARE
    return clocks[0] * (differ_ns - large.scatter_ns) / octets, clocks[1] * (differ_ns + small.scatter_ns) / octets


def _pairs(delivery: Delivery, alone: Bools) -> Iterator[tuple[_Lowest, _Lowest]]:
    """Yield the commonest smaller and the commonest larger size of each LOCAL_NS: a base that changes hardly does so
    between them."""
    cell = (delivery.t_ns - delivery.t_ns[0]) // LOCAL_NS
    sizes = delivery.size_bytes
    if not alone.any():
        return
    middle = (int(sizes[alone].min()) + int(sizes[alone].max())) / 2
    for number in np.unique(cell[alone]):
        within = alone & (cell == number)
        small = _lowest(delivery, within & (sizes < middle))
        large = _lowest(delivery, within & (sizes > middle))
        if small is not None and large is not None:
            yield small, large


def _is_constant(delivery: Delivery, alone: Bools, ns_per_byte: float) -> bool:
    """Return whether one base explains all LOCAL_NS of the flow at this time per octet: no other rate within
    RATE_TOLERANCE does better."""
    cell = (delivery.t_ns - delivery.t_ns[0]) // LOCAL_NS
    rest_ns = rtt_ns(delivery) - ns_per_byte * delivery.size_bytes
    numbers, counts = np.unique(cell[alone], return_counts=True)
    bases = [rest_ns[alone & (cell == number)].min() for number in numbers[counts > LOWEST]]
    served_ns = ns_per_byte * float(delivery.size_bytes[alone].max())
    return bool(bases) and float(np.ptp(bases)) <= RATE_TOLERANCE * served_ns


def _least_since_handshake(delivery: Delivery, alone: Bools) -> float:
    """Return the least time per octet by which data take longer than the SYN, at most; 0 where they do not.

    The SYN is a single packet: it may have taken longer than need be, which allows a faster link only.
    """
    large = _lowest(delivery, alone)
    if delivery.handshake is None or large is None:
        return 0.0
    octets = delivery.handshake.syn_bytes + delivery.handshake.syn_ack_bytes - delivery.ack_bytes
    differ_ns = large.trip_ns - delivery.handshake.rtt_ns
    if large.size_bytes <= octets or differ_ns >= MIN_DELAYED_ACK_NS:
        return 0.0
    return max(0.0, (differ_ns - large.scatter_ns - HOSTS_NS) / (large.size_bytes - octets))


def _lowest(delivery: Delivery, chosen: Bools) -> _Lowest | None:
    """Return the minimum round trip of the commonest size; None if LOWEST or fewer have it."""
    sizes, counts = np.unique(delivery.size_bytes[chosen], return_counts=True)
    if not len(sizes) or counts.max() <= LOWEST:
        return None
    size = int(sizes[np.argmax(counts)])
    trips = np.partition(rtt_ns(delivery)[chosen & (delivery.size_bytes == size)], (0, LOWEST))
    return _Lowest(size, int(counts.max()), float(trips[0]), float(trips[LOWEST] - trips[0]))
