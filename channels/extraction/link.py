"""The link as one capture shows it: rate, base round-trip time, queue limit, and losses by the queue.

Combines `bottleneck`, `base_rtt` and `queue`. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hindflight.channels.extraction import base_rtt as _base_rtt
from hindflight.channels.extraction import bottleneck as _bottleneck
from hindflight.channels.extraction import queue as _queue
from hindflight.channels.extraction.base_rtt import Base
from hindflight.channels.extraction.bottleneck import Rate, Served
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.clock_steps import split_where_acks_come_earlier
from hindflight.channels.extraction.delivery import Bools, Delivery, Ints, runs_of
from hindflight.channels.extraction.idle_steps import split_where_idle
from hindflight.channels.extraction.limit_steps import Moves, moves_of_limit
from hindflight.channels.extraction.path_steps import Stretch, interrupted_losses, interruptions, silences, stretches
from hindflight.channels.extraction.queue import Arrivals, Ceiling, Replay
from hindflight.channels.extraction.size_rate import with_sizes
from hindflight.channels.extraction.unmeasured_rate import with_bounds

LATE_SHARE = 0.06
"""Maximum share of departures later than the flow's own queue explains, on an unshared, unchanged path.

Delayed ACKs alone stay below 3 % in slow flows.
"""

SURE_STEPS_SHARE = 0.01
"""Share of late departures by which a fit with uncertain steps must be better than one with sure steps alone."""

CHANGE_EVERY_NS = 5_000_000_000
"""Minimum mean duration of delay levels; shorter ones are a drift, not a schedule."""

MIN_FULL, LIMIT_ERROR = 3, 1.5
"""Losses of a full queue from which a level shows its limit, and the error of that in packets."""

LEVEL_ERROR = 0.5
"""Error of a limit in packets, where the queue was seen empty: levels count whole packets."""

TAKEN_ABOVE, MIN_TAKEN = 0.025, 40
"""Share of the levels at which the queue accepted packets that may be too high, and the number of levels of which this
share is one: of fewer, a single wrong level would decide."""

GAP_EVIDENCE = float(np.log(_queue.GAP_ODDS))
"""Log likelihood ratio of one clear gap, or of its clear absence."""


@dataclass(frozen=True, slots=True)
class AllDropped:
    """The queue that drops all that was lost: its level at each packet, and the log likelihood ratio, from the gap,
    that it dropped each loss. `exact` marks the levels that are the same if no undecided packet entered."""

    level: Floats
    gap: Floats
    exact: Bools

    @classmethod
    def of(cls, arrivals: Arrivals, unshared: bool) -> AllDropped:
        """Simulate the queue; undecided packets enter."""
        first = _queue.replay(arrivals, -np.inf, unshared)
        exact = np.ones(len(arrivals.t), dtype=np.bool_)
        if arrivals.undecided.any():
            fewer = replace(arrivals, lost=arrivals.lost | arrivals.undecided)
            without = _queue.replay(fewer, -np.inf, unshared)
            exact = np.abs(first.level - without.level) < LEVEL_ERROR
        return cls(first.level, _gap_evidence(arrivals, first), exact)


@dataclass(frozen=True, slots=True)
class Link:
    """The link that the flow met. `unshared`: round trips follow the flow's own queue on top of each packet's base.

    `bounded` marks the packets whose rate has a lower bound only. `replay` is the queue with the limit found,
    `all_dropped` the queue that drops all that was lost.
    """

    rate: Rate
    base: Base
    unshared: bool
    service_ns: Floats
    full_ns: Floats
    bounded: Bools
    departed_ns: Floats
    ceiling: Ceiling | None
    replay: Replay
    all_dropped: AllDropped
    arrivals: Arrivals


def left_queue_ns(delivery: Delivery, link: Link) -> Floats:
    """Return when each packet left the queue, in ns on the clock of the send times: as modelled, but before all that
    was acknowledged behind it, for a FIFO does not reorder."""
    modelled_ns = delivery.t_ns + link.replay.wait_ns + link.service_ns
    return np.maximum(delivery.t_ns + link.service_ns, np.minimum(modelled_ns, shown_left_ns(delivery, link)))


def shown_left_ns(delivery: Delivery, link: Link) -> Floats:
    """Return by when each packet had left the queue, as the ACKs of those from it on show: a base round trip before, by
    the shorter of the paths around where the path changes, and as much shorter as that may be off."""
    shown_ns = np.where(delivery.prompt, delivery.acked_ns - link.base.least_per_packet_ns(), np.inf)
    return np.asarray(np.minimum.accumulate(shown_ns[::-1])[::-1])


def of_delivery(delivery: Delivery) -> Link:
    """Fit rate, base round-trip time and queue limit, then replay the queue with that limit."""
    paths = stretches(delivery)
    rate, served = _served(delivery, paths)
    idle = split_where_idle(delivery, paths, _bottleneck.lindley_wait(delivery, served.ns, served.entered), served.ns)
    if len(idle) > len(paths):
        paths = idle
        rate, served = _served(delivery, paths)
    clocked = split_where_acks_come_earlier(delivery, paths, served.ns)
    if len(clocked) > len(paths):
        paths = clocked
        rate, served = _served(delivery, paths)
    service, full = served.ns, served.full_ns
    base = _base_rtt.constant_base(delivery, served)
    arrivals = _arrivals(delivery, base, served)
    unshared = _late_share(arrivals) <= LATE_SHARE
    # A link that is always busy explains a shorter path by a longer queue, too; a jump of the round trip does not.
    # Other steps none of which is shown are needed only where one base does not explain the round trips.
    if not unshared or len(paths) > 1:
        moved = _stepped_fit(delivery, paths, served)
        if moved is not None and (not unshared or (moved[2] and (moved[0].sure or any(moved[0].emptied)))):
            base, arrivals, unshared = moved
    first = AllDropped.of(arrivals, unshared)
    moves = _moves_of_limit(delivery, paths, first, served) if unshared else Moves((), (), ())
    inexact = moves.longer + moves.unclear
    if moves.longer:
        moved = _stepped_fit(delivery, moves.paths, served)
        if moved is not None and moved[2] and moved[0].sure:
            base, arrivals, _ = moved
            first, inexact = AllDropped.of(arrivals, unshared), moves.unclear
    if unshared and len(base.spans) > 1:
        base = _only_at_a_rate(base, _with_one_limit(delivery, base, first, full), served.bounded)
        arrivals = _arrivals(delivery, base, served)
        first = AllDropped.of(arrivals, unshared)
    base = base.less_exact(inexact)
    limit = _limit(delivery, first if unshared else _shared(arrivals, first), served.bounded)
    if unshared and limit is not None:
        limit, final = _with_what_entered(delivery, arrivals, first, limit, served.bounded)
    else:
        final = _queue.replay(arrivals, limit.limit if limit else np.inf, unshared)
    if not unshared:
        # Residuals count from the queue that was simulated, so `entered` remains that of the simulation.
        level = _level_of_neighbours(arrivals, final.level)
        final = replace(final, level=level, wait_ns=level * full)
    return Link(
        rate, base, unshared, service, full, served.bounded, arrivals.departed, limit, final, first, arrivals
    )  # fmt: skip


def _moves_of_limit(delivery: Delivery, paths: Sequence[Stretch], dropped: AllDropped, served: Served) -> Moves:
    """Return what the moves of the queue's limit show, from the levels that are certain."""
    usable = ~delivery.undecided & delivery.observed & ~interrupted_losses(delivery) & ~served.bounded & dropped.exact
    return moves_of_limit(delivery, paths, dropped.level, usable, (served.ns, served.full_ns))


def _limit(delivery: Delivery, dropped: AllDropped, bounded: Bools) -> Ceiling | None:
    """Return the limit of the queue, from the most certain levels that show one. What an interruption lost says nothing
    about it: the link took packets from the queue unseen, and lost them below the limit, too. A level is less certain
    where the rate has a lower bound only, or where it depends on whether undecided packets entered."""
    usable = ~delivery.undecided & delivery.observed
    passing = usable & ~interrupted_losses(delivery)
    measured = passing & ~bounded
    candidates = (
        _queue.ceiling(dropped.level, delivery.lost, dropped.gap, chosen)
        for chosen in (measured & dropped.exact, measured, passing, usable)
    )
    return next((found for found in candidates if found is not None), None)


def _with_what_entered(
    delivery: Delivery, arrivals: Arrivals, dropped: AllDropped, limit: Ceiling, bounded: Bools
) -> tuple[Ceiling, Replay]:
    """Return the limit of the queue from levels to which the losses below `limit` add, if losses depend more on these;
    and the queue with the limit that is returned.

    The queue took what the channel lost behind it, which no departure shows as long as no ACK is timed.
    """
    entered = _queue.replay(arrivals, limit.limit, unshared=True)
    again = _limit(delivery, replace(dropped, level=entered.level), bounded)
    if again is None or again.gain <= limit.gain:
        return limit, entered
    return again, _queue.replay(arrivals, again.limit, unshared=True)


def _served(delivery: Delivery, paths: Sequence[Stretch]) -> tuple[Rate, Served]:
    """Return the rate over `paths`, and how the packets were served at it."""
    rate = _bottleneck.rate(delivery, paths)
    if rate is None:
        rate = with_sizes(delivery, paths, _bottleneck.rate_lower_bound(delivery, paths))
    at_ns = _served_at_ns(delivery)
    rate = with_bounds(delivery, paths, rate, lambda one: one.service_ns(delivery.size_bytes, at_ns))
    service = rate.service_ns(delivery.size_bytes, at_ns)
    full = rate.service_ns(np.full(len(delivery), int(_bottleneck.full_size(delivery))), at_ns)
    behind = rate.service_ns(delivery.size_bytes, _answered_at_ns(delivery))
    entered, bounded = _bottleneck.served_losses(delivery, service), rate.is_bound(at_ns)
    return rate, Served(service, np.maximum(service, behind), full, entered, bounded)


def _with_one_limit(delivery: Delivery, base: Base, dropped: AllDropped, full: Floats) -> Base:
    """Return `base` with the levels corrected whose queue never ran empty: the queue has one limit, which a level shows
    that saw it both empty and full."""
    limits: list[Ceiling | None] = []
    for first, after, _ in base.spans:
        within = np.zeros(len(delivery), dtype=np.bool_)
        within[first:after] = True
        limits.append(limit_within(delivery, dropped, within))
    emptied = [limit for limit, empty in zip(limits, base.emptied, strict=True) if empty and limit is not None]
    known = max(emptied, key=lambda limit: limit.limit, default=None)
    taken = 0.0 if known is not None else _taken(delivery, base, dropped)
    per_packet, spans, errors = base.per_packet_ns.copy(), list[tuple[int, int, float]](), list[float]()
    waits: list[float] = []
    shown_by = list(base.shown_by)
    carried = base.carried or (False,) * len(base.spans)
    for (first, after, held), error, limit, least in zip(base.spans, base.error_ns, limits, base.least_ns, strict=True):
        level, may_be_off, wait, follows = held, error, 0.0, False
        empty, packet_ns = np.isfinite(error), float(np.median(full[first:after]))
        if not empty and limit is not None and known is not None:
            off = known.limit - limit.limit
            # Between the fullest queue that took a packet and the emptiest that did not lies the limit, in both.
            between = (limit.limit - limit.low) + (known.limit - known.low)
            wanted = held - off * packet_ns
            level = float(np.clip(wanted, 0.0, least))
            if abs(off) <= LIMIT_ERROR:
                level, wanted, between = held, held, max(between, abs(off))
            # Where the round trips contradict it, one of the limits is wrong.
            may_be_off, wait = packet_ns * min(1.0, between) + abs(wanted - level), known.limit
        elif not empty and spans and np.isfinite(errors[-1]) and spans[-1][2] <= least and not _rises(base, len(spans)):
            # Nothing shows another path than that before.
            level, may_be_off, follows = spans[-1][2], errors[-1], True
        elif not empty and limit is not None and taken - limit.limit > LIMIT_ERROR:
            # The queue has one limit, and elsewhere it accepted packets at a level above the one that is modelled here.
            # So it is longer here than modelled, by the difference at least: that much of the base is queueing delay.
            level = float(np.clip(held - (taken - limit.limit) * packet_ns, 0.0, least))
        elif empty and limit is not None and known is not None and known.low - limit.refused > LEVEL_ERROR:
            # The queue held more elsewhere: here some of it never left.
            may_be_off = (known.limit - limit.limit) * packet_ns
            if spans and abs(held - may_be_off - spans[-1][2]) <= LIMIT_ERROR * packet_ns and spans[-1][2] <= least:
                level, may_be_off, follows = spans[-1][2], errors[-1], True
        elif not empty and carried[len(spans)]:
            # A path that changes does not empty the queue.
            may_be_off = _base_rtt.WAIT_ERROR * packet_ns
        if follows and shown_by:
            shown_by[len(spans)] = shown_by[len(spans) - 1]
        # What lies between two levels has the later one.
        per_packet[spans[-1][1] if spans else 0 : after] = level
        spans.append((first, after, level))
        errors.append(may_be_off)
        waits.append(wait)
    return replace(
        base, per_packet_ns=per_packet, spans=tuple(spans), error_ns=tuple(errors), waits_pkts=tuple(waits),
        shown_by=tuple(shown_by),
    )  # fmt: skip


def _only_at_a_rate(seen: Base, base: Base, bounded: Bools) -> Base:
    """Return `base` without the levels from which a wait was subtracted at a rate that has a lower bound only: nobody
    knows how long they waited. `seen` is the base before that."""
    errors = [
        np.inf if not empty and bounded[first:after].any() else error
        for (first, after, _), error, empty in zip(base.spans, base.error_ns, seen.emptied, strict=True)
    ]
    return replace(base, error_ns=tuple(errors))


def _taken(delivery: Delivery, base: Base, dropped: AllDropped) -> float:
    """Return a level at which the queue still accepted packets, where it was seen empty, so that its levels are exact.
    The 97.5th percentile of these levels; 0 if there are fewer than MIN_TAKEN."""
    seen = np.zeros(len(delivery), dtype=np.bool_)
    for (first, after, _), empty in zip(base.spans, base.emptied, strict=True):
        seen[first:after] = empty
    level = np.sort(dropped.level[seen & dropped.exact & delivery.observed & (delivery.acked_ns >= 0)])
    return float(level[-1 - int(TAKEN_ABOVE * len(level))]) if len(level) >= MIN_TAKEN else 0.0


def limit_within(delivery: Delivery, dropped: AllDropped, within: Bools) -> Ceiling | None:
    """Return the limit of the queue as some packets show it, if it was full for MIN_FULL losses."""
    usable = within & ~delivery.undecided & delivery.observed & ~interrupted_losses(delivery)
    candidates = (
        _queue.ceiling(dropped.level, delivery.lost, dropped.gap, chosen) for chosen in (usable & dropped.exact, usable)
    )
    return next((found for found in candidates if found is not None and found.losses_above >= MIN_FULL), None)


def _rises(base: Base, level: int) -> bool:
    """Return whether a level lies above the one before, whatever its queue."""
    return base.spans[level][2] > base.least_ns[level - 1]


def base_rtt_ns(delivery: Delivery, link: Link, packet: int) -> float:
    """Return the propagation delay of both directions at `packet`, without the serialisation of the ACK, at the rate of
    the round trip that shows it."""
    shown_by = link.base.shown_by[link.base.level_of(packet)] if link.base.shown_by else packet
    ns_per_byte = link.full_ns[shown_by] / _bottleneck.full_size(delivery)
    return max(0.0, float(link.base.per_packet_ns[packet] - delivery.ack_bytes * ns_per_byte))


def one_way_ns(delivery: Delivery, link: Link, packet: int) -> float:
    """Return the one-way delay of the last level at or before `packet`: half of the base round-trip time.

    A capture at the sender cannot separate the two directions.
    """
    first, after, _ = [span for span in link.base.spans if span[0] <= packet][-1]
    return base_rtt_ns(delivery, link, (first + after) // 2) / 2


def _shared(arrivals: Arrivals, dropped: AllDropped) -> AllDropped:
    """Return the levels of a shared queue; gaps say nothing about who filled it."""
    level = _level_of_neighbours(arrivals, dropped.level)
    return replace(dropped, level=level, gap=np.zeros(len(level)))


def _level_of_neighbours(arrivals: Arrivals, modelled: Floats) -> Floats:
    """Return levels of a shared queue: for a lost packet the higher of those before and after it."""
    waited = (arrivals.departed - arrivals.service - arrivals.t) / arrivals.full
    seen = np.flatnonzero(~np.isnan(waited))
    lost = np.flatnonzero(arrivals.lost)
    following = seen[np.minimum(np.searchsorted(seen, lost), len(seen) - 1)]
    level = modelled.copy()
    level[lost] = np.maximum(level[lost], waited[following])
    return level


def _served_at_ns(delivery: Delivery) -> Ints:
    """Return when the ACK of each packet came, or would have come: the time whose rate it is served at.

    What a break loses leaves the queue at the rate of the last ACK, and so does all before it: behind the break it may
    be another one. What is delivered behind the break left the queue behind it.
    """
    at = _answered_at_ns(delivery)
    for (last_ns, next_ns), (_, following) in zip(silences(delivery), interruptions(delivery), strict=True):
        waited = at[:following]
        waited[(delivery.t_ns[:following] <= last_ns) & (waited >= next_ns)] = last_ns
    return at


def _answered_at_ns(delivery: Delivery) -> Ints:
    """Return when the ACK of each packet came, or that of the next one that has one.

    What was delivered before losses may be reported with a packet behind them only, because its own ACK was lost or
    waited. It was served before them: its time is that of the last ACK before.
    """
    known = np.flatnonzero(delivery.acked_ns >= 0)
    following = known[np.minimum(np.searchsorted(known, np.arange(len(delivery))), len(known) - 1)]
    # A FIFO delivers in order: what was acknowledged later than a packet behind it waited at the receiver.
    at = np.minimum.accumulate(delivery.acked_ns[known][::-1])[::-1][np.searchsorted(known, following)]
    lost, ends = runs_of(delivery.lost)
    reported = ends <= known[-1]
    lost, behind_ns = lost[reported], at[ends[reported]]
    earlier_ns = delivery.ack_t_ns[np.maximum(np.searchsorted(delivery.ack_t_ns, behind_ns) - 1, 0)]
    # Of several losses before packets with the same ACK the last ones count.
    unreported = np.searchsorted(at, behind_ns).tolist()
    for begin, (end, last_ns) in dict(zip(unreported, zip(lost, earlier_ns, strict=True), strict=True)).items():
        delivered = begin + np.flatnonzero(delivery.acked_ns[begin:end] >= 0)
        at[delivered] = np.minimum(at[delivered], last_ns)
    return at


def served_behind_breaks(delivery: Delivery, link: Link) -> Arrivals:
    """Return the arrivals with what waited when a link broke served at the rate behind the break: the rate may have
    changed with it. A link breaks when the first packet that it loses would arrive, or before."""
    at_ns, answered_ns, left_ns = _served_at_ns(delivery), _answered_at_ns(delivery), left_queue_ns(delivery, link)
    for first, following in interruptions(delivery):
        # The first packet that is timed behind the break shows the rate there.
        timed = int(following + np.argmax(delivery.prompt[following:]))
        behind = np.arange(first, timed)
        behind = behind[left_ns[behind] > left_ns[first] + one_way_ns(delivery, link, first)]
        at_ns[behind] = answered_ns[timed]
    full_bytes = np.full(len(delivery), int(_bottleneck.full_size(delivery)))
    service, full = (link.rate.service_ns(octets, at_ns) for octets in (delivery.size_bytes, full_bytes))
    return replace(link.arrivals, service=service, full=full, most=service)


def left_behind_breaks_ns(delivery: Delivery, link: Link) -> Floats:
    """Return when each packet left the queue if what waited when a link broke was served at the rate behind it."""
    arrivals = served_behind_breaks(delivery, link)
    if not np.any(arrivals.service != link.arrivals.service):
        return left_queue_ns(delivery, link)
    limit = link.ceiling.limit if link.ceiling else np.inf
    wait_ns = _queue.replay(arrivals, limit, link.unshared).wait_ns
    return np.asarray(delivery.t_ns + wait_ns + arrivals.service)


def _arrivals(delivery: Delivery, base: Base, served: Served) -> Arrivals:
    start = delivery.t_ns[0]
    seen = delivery.prompt & base.trusted
    departed = np.where(seen, delivery.acked_ns - start - base.per_packet_ns, np.nan)
    departed = _queue.bound_by_followers(departed, served.ns, delivery.lost | delivery.undecided)
    slack = _base_rtt.rtt_tolerance_ns(served.ns, float(base.per_packet_ns.min()))
    distrusted = np.cumsum(~base.trusted)
    index = np.flatnonzero(seen)
    anchor = np.zeros(len(delivery), dtype=np.bool_)
    anchor[index[1:]] = np.diff(distrusted[index]) > 0
    t = (delivery.t_ns - start).astype(np.float64)
    return Arrivals(
        t, served.ns, departed, delivery.lost, delivery.undecided, served.full_ns, slack, anchor, served.most_ns
    )  # fmt: skip


def _stepped_fit(delivery: Delivery, paths: Sequence[Stretch], served: Served) -> tuple[Base, Arrivals, bool] | None:
    """Return a base that changes in steps, and whether it explains the round trips; None if they drift.

    Steps that no queue makes are sure; others explain the round trips or are none.
    """
    fine = _base_rtt.piecewise_base(delivery, served)
    found = []
    if len(fine.spans) <= 1 + (delivery.t_ns[-1] - delivery.t_ns[0]) / CHANGE_EVERY_NS:
        found.append(fine)
    coarse = _base_rtt.stretch_base(delivery, paths, served)
    if len(coarse.spans) > 1:
        found.append(coarse)
    if not found:
        return None
    fitted = [(base, _arrivals(delivery, base, served)) for base in found]
    late = [_late_share(arrivals) for _, arrivals in fitted]
    best = int(np.argmin(late))
    if found[-1] is coarse and late[-1] <= late[best] + SURE_STEPS_SHARE:
        best = len(found) - 1
    if late[best] > LATE_SHARE:
        if found[-1] is not coarse:
            return None
        best = len(found) - 1
    return *fitted[best], late[best] <= LATE_SHARE


def _late_share(arrivals: Arrivals) -> float:
    """Return the share of departures that the flow's own queue does not explain, without leeway."""
    return _queue.replay(replace(arrivals, leeway=0.0), -np.inf, unshared=True).late


def _gap_evidence(arrivals: Arrivals, first: Replay) -> Floats:
    """Return each loss's gap evidence for a queue drop, from a replay in which no lost packet entered."""
    members = np.bincount(first.group[first.group >= 0], minlength=1)
    count = members[np.maximum(first.group, 0)]
    ratio = np.zeros(len(first.level))
    known = ~np.isnan(first.residual) & ~_queue.blurred(arrivals)
    ratio[known & (first.residual < 0.3)] = GAP_EVIDENCE
    ratio[known & (first.residual > count - 0.4)] = -GAP_EVIDENCE
    return ratio
