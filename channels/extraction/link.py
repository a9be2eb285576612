"""The link as one capture shows it: rate, base round trip, queue limit, and which losses the queue caused.

Puts `_bottleneck` and `_queue` together; knows no tables. Read docs/channels/extract.md first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hindflight.channels.extraction import bottleneck as _bottleneck
from hindflight.channels.extraction import queue as _queue
from hindflight.channels.extraction.bottleneck import Base, Rate
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.queue import Arrivals, Ceiling, Replay

LATE_SHARE = 0.06
"""More departures later than the flow's own queue explains: the path changed, or other traffic shares the
queue. (Delayed ACKs alone stay below 3 % in slow flows.)"""

CHANGE_EVERY_NS = 5_000_000_000
"""Delay levels that last less than this on average are no schedule but wandering."""

GAP_EVIDENCE = 3.0
"""Log likelihood ratio that one clear gap, or its clear absence, is worth: 20 to 1."""


@dataclass(frozen=True, slots=True)
class Link:
    """What the flow met. `alone`: its round trips follow its own queue, over the base given for each
    packet."""

    rate: Rate
    base: Base
    alone: bool
    service_ns: Floats
    full_ns: Floats
    departed_ns: Floats
    ceiling: Ceiling | None
    replay: Replay


def of_delivery(delivery: Delivery, rate: Rate) -> Link:
    """Fit base round trip and queue limit, then replay the queue within that limit."""
    service, full = _service(delivery, rate)
    base = _bottleneck.steady_base(delivery, service)
    arrivals = _arrivals(delivery, base, service, full)
    alone = _late(arrivals) <= LATE_SHARE
    if not alone:
        moved = _moved(delivery, service, full)
        if moved is not None:
            alone, (base, arrivals) = True, moved
    first = _queue.replay(arrivals, -np.inf, alone)
    gap = _gap_evidence(first) if alone else np.zeros(len(delivery))
    level = first.level if alone else _level_of_neighbours(arrivals, first)
    limit = _queue.ceiling(level, delivery.lost, gap, ~delivery.undecided & delivery.own)
    final = _queue.replay(arrivals, limit.limit if limit else np.inf, alone)
    if not alone:
        level = _level_of_neighbours(arrivals, final)
        entered = ~delivery.lost | (level <= (limit.limit if limit else np.inf))
        final = replace(final, level=level, entered=entered)
    return Link(rate, base, alone, service, full, arrivals.departed, limit, final)


def base_rtt_ns(delivery: Delivery, link: Link, packet: int) -> float:
    """Propagation both ways when `packet` was sent: without the ACK's serialisation, taken at the
    bottleneck's rate."""
    ns_per_byte = link.full_ns[packet] / _bottleneck.full_size(delivery)
    return float(link.base.per_packet_ns[packet] - delivery.ack_bytes * ns_per_byte)


def one_way_ns(delivery: Delivery, link: Link, packet: int) -> float:
    """Propagation one way at the level of delay that held last before `packet` was lost, or that it was delivered at:
    half of the base round trip, which a capture at the sender cannot divide."""
    first, after, _ = [span for span in link.base.spans if span[0] <= packet][-1]
    return base_rtt_ns(delivery, link, (first + after) // 2) / 2


def _level_of_neighbours(arrivals: Arrivals, modelled: Replay) -> Floats:
    """Levels where others fill the queue too: for a lost packet the higher of those met just before and
    just after."""
    waited = (arrivals.departed - arrivals.service - arrivals.t) / arrivals.full
    seen = np.flatnonzero(~np.isnan(waited))
    lost = np.flatnonzero(arrivals.lost)
    following = seen[np.minimum(np.searchsorted(seen, lost), len(seen) - 1)]
    level = modelled.level.copy()
    level[lost] = np.maximum(level[lost], waited[following])
    return level


def _service(delivery: Delivery, rate: Rate) -> tuple[Floats, Floats]:
    """Serialisation time of each packet and of a full-sized one, at the rate that held when it left."""
    known = np.flatnonzero(delivery.acked_ns >= 0)
    following = known[np.minimum(np.searchsorted(known, np.arange(len(delivery))), len(known) - 1)]
    at = delivery.acked_ns[following]
    full = np.full(len(delivery), int(_bottleneck.full_size(delivery)))
    return rate.service_ns(delivery.size_bytes, at), rate.service_ns(full, at)


def _arrivals(delivery: Delivery, base: Base, service: Floats, full: Floats) -> Arrivals:
    start = delivery.t_ns[0]
    seen = delivery.prompt & base.trusted
    departed = np.where(seen, delivery.acked_ns - start - base.per_packet_ns, np.nan)
    departed = _queue.no_later_than_followers(departed, service, delivery.lost)
    slack = _bottleneck.slack_ns(service, float(base.per_packet_ns.min()))
    distrusted = np.cumsum(~base.trusted)
    index = np.flatnonzero(seen)
    anchor = np.zeros(len(delivery), dtype=np.bool_)
    anchor[index[1:]] = np.diff(distrusted[index]) > 0
    t = (delivery.t_ns - start).astype(np.float64)
    return Arrivals(t, service, departed, delivery.lost, full, slack, anchor)


def _moved(delivery: Delivery, service: Floats, full: Floats) -> tuple[Base, Arrivals] | None:
    """A base that changes in steps, if steps explain the round trips; None if they wander."""
    entered = _bottleneck.served_although_lost(delivery, service)
    base = _bottleneck.changing_base(delivery, service, entered)
    if len(base.spans) > 1 + (delivery.t_ns[-1] - delivery.t_ns[0]) / CHANGE_EVERY_NS:
        return None
    arrivals = _arrivals(delivery, base, service, full)
    if _late(arrivals) > LATE_SHARE:
        return None
    return base, arrivals


def _late(arrivals: Arrivals) -> float:
    """Share of departures that the flow's own queue does not explain, the model given no leeway that adds
    up."""
    return _queue.replay(replace(arrivals, give=0.0), -np.inf, alone=True).late


def _gap_evidence(first: Replay) -> Floats:
    """Evidence of each loss's gap for a queue drop, from a replay that let no lost packet enter."""
    members = np.bincount(first.group[first.group >= 0], minlength=1)
    count = members[np.maximum(first.group, 0)]
    ratio = np.zeros(len(first.level))
    told = ~np.isnan(first.residual)
    ratio[told & (first.residual < 0.3)] = GAP_EVIDENCE
    ratio[told & (first.residual > count - 0.4)] = -GAP_EVIDENCE
    return ratio
