"""Stretches of a flow with one path each: where the round-trip time jumps in a way that no queue can.

A queue grows by the work that enters it and shrinks with time; a path may change at once. Reads arrays of `delivery`,
not tables; needs neither rates nor causes of losses. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Delivery, Ints, runs_of

AROUND = 4
"""Round trips before and after a jump that must all lie on their side of it: one delayed ACK is no jump."""

SHORTER = 2
"""Round trips in a row below the minimum of a queue that was empty, which show a shorter path: no delay of an ACK
shortens one, but the copy that it answers may be mistaken. Those that follow may wait behind them. One of them may be
that of a smaller packet."""

CLOCK = 8
"""ACKs after a jump from which the time per octet is read."""

MIN_JUMP_NS = 4_000_000
MIN_JUMP_SHARE = 0.04
"""Minimum size of a jump, absolute and relative to the round trip: hosts and ACKs jitter by less."""

LOWEST = 4
"""Round trips above the minimum whose distance shows how exact the minimum is: where round trips near it are spread
evenly, one more distance exceeds the sum of four with a probability of 1/16."""

MIN_STRETCH = 8
"""Minimum number of timed packets of a stretch."""

SILENT_NS = 200_000_000
LOST_IN_ROW = 3
"""Time without an ACK, and losses in a row in it, from which the link was interrupted: a stretch of its own begins."""

FULL_SHARE = 0.9
"""Size, as a share of that of full packets, from which round trips compare: a smaller packet is serialised faster."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Packets `first` to `after` (one past the last) met one path; `floor_ns` is their minimum round trip. `broken`:
    whether the link was interrupted before; `fell_ns`: by how much at least the path is shorter than the one before, as
    round trips fell by more than a queue drains, over packets that were lost. `scatter_ns` says how exact the minimum
    is as that of an empty queue: see `scatter_ns`. `fell_off_ns`: by how much `fell_ns` may be off, where it is no mere
    lower bound; a longer path has fallen by less than 0."""

    first: int
    after: int
    floor_ns: float
    broken: bool = False
    scatter_ns: float = np.inf
    fell_ns: float = 0.0
    fell_off_ns: float = np.inf

    def timed(self, delivery: Delivery) -> Ints:
        """Return its packets with a prompt ACK."""
        return np.asarray(self.first + np.flatnonzero(delivery.prompt[self.first : self.after]))

    def min_jump_ns(self, before: Stretch) -> float:
        """Return by how much the minimum of another path differs at least from that of the stretch before: by more than
        single round trips jitter or, where an interruption shows that it may be another path, than both minima are
        exact, if that is less."""
        return min(MIN_JUMP_NS, before.scatter_ns + self.scatter_ns) if self.broken else MIN_JUMP_NS


def stretches(delivery: Delivery) -> tuple[Stretch, ...]:
    """Return the stretches of a flow in order; they cover all its packets.

    Cross traffic makes the queue jump, too: with it only an interruption of the link begins a stretch.
    """
    full = delivery.size_bytes >= FULL_SHARE * np.quantile(delivery.size_bytes[delivery.from_flow], 0.9)
    timed = np.flatnonzero(delivery.prompt & full)
    if len(timed) < 2 * MIN_STRETCH:
        timed = np.flatnonzero(delivery.prompt)
    trip = (delivery.acked_ns - delivery.t_ns)[timed].astype(np.float64)
    cuts, falls = list[int](), dict[int, float]()
    if len(timed) >= 2 * MIN_STRETCH and delivery.observed.all():
        cuts, falls = _cuts(delivery, timed, trip)
    elif len(timed) >= 2 * MIN_STRETCH:
        cuts = [k for k in np.flatnonzero(_interrupted(delivery, timed)).tolist() if k]
    broken = {0: False} | dict(zip(cuts, _interrupted(delivery, timed)[cuts].tolist(), strict=True))
    edges = [0, *cuts, len(timed)]
    packets = [0, *(int(timed[cut]) for cut in cuts), len(delivery)]
    alone = sent_alone(delivery)[timed]
    found: list[tuple[Stretch, int, float]] = []
    for (a, b), (first, after) in zip(pairwise(edges), pairwise(packets), strict=True):
        sent_ns = float(delivery.t_ns[timed[b - 1]] - delivery.t_ns[timed[a]])
        before_ns = found[-1][0].floor_ns if found else 0.0
        whole = on_one_path(delivery, timed[a:b], (first, after), before_ns)
        exact_ns = scatter_ns(trip[a:b][whole], alone[a:b][whole])
        floor_ns = float(trip[a:b][whole].min())
        found.append((Stretch(first, after, floor_ns, broken[a], exact_ns, falls.get(a, 0.0)), b - a, sent_ns))
    return tuple(_merged(found))


def on_one_path(delivery: Delivery, packets: Ints, stretch: tuple[int, int], before_ns: float) -> Bools:
    """Mark the packets of a stretch (first packet, one past the last) that met no other path; all, if none is sure.

    A packet in flight when a path changes meets both. The last ones of a path are acknowledged before the next one
    shows; where the round trip rises, the first ones of the new path are sent a round trip of the path before,
    `before_ns`, after the first that shows the change.
    """
    first, after = stretch
    sure = np.ones(len(packets), dtype=np.bool_)
    if after < len(delivery):
        sure &= delivery.acked_ns[packets] <= delivery.t_ns[after]
    rises = first and float((delivery.acked_ns - delivery.t_ns)[packets].min()) > before_ns
    if rises and np.any(later := sure & (delivery.t_ns[packets] >= delivery.t_ns[first] + before_ns)):
        sure = later
    return sure if sure.any() else ~sure


def divided(delivery: Delivery, whole: Stretch, cuts: Sequence[int]) -> list[Stretch]:
    """Return a stretch as those that begin with it and with each packet of `cuts`."""
    edges = [whole.first, *cuts, whole.after]
    return [_part_of(delivery, first, after, whole) for first, after in pairwise(edges)]


def _part_of(delivery: Delivery, first: int, after: int, whole: Stretch) -> Stretch:
    """Return the packets `first` to `after` of a stretch as a separate one, or the stretch if that is all of it."""
    if (first, after) == (whole.first, whole.after):
        return whole
    prompt = Stretch(first, after, whole.floor_ns).timed(delivery)
    trip_ns = (delivery.acked_ns - delivery.t_ns)[prompt].astype(np.float64)
    # What took less than the whole stretch does crossed a part of the path before.
    floor_ns = max(float(trip_ns.min()), whole.floor_ns) if len(prompt) else whole.floor_ns
    exact_ns = scatter_ns(trip_ns, sent_alone(delivery)[prompt])
    begins = replace(whole, after=after) if first == whole.first else Stretch(first, after, floor_ns)
    return replace(begins, floor_ns=floor_ns, scatter_ns=exact_ns)


def is_jump(one_ns: float, other_ns: float, min_jump_ns: float = MIN_JUMP_NS) -> bool:
    """Return whether the minimum round trips of two stretches differ by more than `min_jump_ns` and than hosts and ACKs
    jitter relative to them."""
    return abs(one_ns - other_ns) > max(min_jump_ns, MIN_JUMP_SHARE * min(one_ns, other_ns))


def scatter_ns(trip_ns: Floats, alone: Bools) -> float:
    """Return how exact the minimum of some round trips is as that of an empty queue: the distance to the LOWEST-th
    above it, or to the lowest of a packet sent `alone` if that is more. Infinite where none was, as the queue may never
    have run empty."""
    if len(trip_ns) <= LOWEST or not alone.any():
        return float(np.inf)
    lowest, highest = np.partition(trip_ns, (0, LOWEST))[[0, LOWEST]].tolist()
    return float(max(highest, trip_ns[alone].min()) - lowest)


def sent_alone(delivery: Delivery) -> Bools:
    """Mark the packets that met an empty queue for certain: the one sent before was acknowledged, so it and, in a FIFO,
    all before it had left. A flow begins with an empty queue. None with cross traffic, which fills the queue unseen."""
    if not delivery.observed.all():
        return np.zeros(len(delivery), dtype=np.bool_)
    acked_ns = delivery.acked_ns[:-1]
    return np.insert((acked_ns >= 0) & (acked_ns <= delivery.t_ns[1:]), 0, True)


def _cuts(delivery: Delivery, timed: Ints, trip: Floats) -> tuple[list[int], dict[int, float]]:
    """Return the indices of the timed packets that are the first of a new path, and by how much less the round trips
    take from there on than the queue of the path before allows, if packets were lost there: else they may jitter."""
    sent = delivery.t_ns[timed].astype(np.float64)
    served = np.cumsum(np.where(delivery.lost, 0, delivery.size_bytes))[timed].astype(np.float64)
    queued = np.cumsum(delivery.size_bytes)[timed].astype(np.float64)
    acked = delivery.acked_ns[timed].astype(np.float64)
    broken, smaller = _interrupted(delivery, timed), _Smaller.of(delivery, timed)
    least_clock, at_once = _least_clock(acked, served), _falls_at_once(acked, trip)
    cuts, fell_ns = list[int](), dict[int, float]()
    begin, seen, floor, from_empty = 0, 1, float(trip[0]), True
    for k in sorted({*_jumps(delivery, timed, trip, broken, smaller), *at_once}):
        floor, seen = min(floor, float(trip[seen:k].min(initial=np.inf))), k
        if k - begin < AROUND:
            continue
        before, after = trip[k - AROUND : k], trip[k : k + AROUND]
        ns_per_byte = _clock(acked[k : k + CLOCK + 1], served[k : k + CLOCK + 1])
        packet_ns = float(delivery.size_bytes[timed[k]]) * ns_per_byte
        jump = max(MIN_JUMP_NS, MIN_JUMP_SHARE * float(before.min()))
        idle_ns = float(delivery.t_ns[timed[k]] - delivery.t_ns[timed[k] - 1])
        # What the channel lost behind the queue waited in it, too.
        old = max(begin, k - 1 - CLOCK)
        clock = max(ns_per_byte, _clock(acked[old:k], served[old:k]))
        since = slice(k - 1, k + AROUND)
        longest = _longest_trips(float(before.max()), floor, np.diff(sent[since]), np.diff(queued[since]) * clock)
        rises = np.all(after > longest + jump)
        # Nothing was on the way: the queue had run empty.
        emptied = idle_ns > before.max() and after[:2].min() > floor + jump + 2 * packet_ns
        shortest = max(trip[k], min(trip[k + 1], smaller.adjacent_ns(delivery, timed, k, clock)))
        shorter = shortest < floor - jump and (
            from_empty or _ran_empty(acked[begin:k], (served[begin:k], queued[begin:k]), trip[begin:k], jump)
        )
        fell = 0.0
        if before.min() - after.max() > jump:
            # Of two round trips in a row one delayed ACK stretches one.
            least = min(_min_trip(delivery, (timed[k - back], timed[k]), (least_clock, clock)) for back in (1, 2))
            fell = least - float(after.max())
        shows_fall = bool(np.sum(delivery.lost[timed[k - 1] : timed[k]]) >= LOST_IN_ROW)
        for first in at_once.get(k, ()):
            if first - begin < AROUND:
                continue
            earlier = slice(max(begin, first - 1 - CLOCK), first)
            one, other = ns_per_byte, _clock(acked[earlier], served[earlier])
            least = _min_trip(delivery, (timed[first - 1], timed[k]), (min(one, other), max(one, other)))
            fell, shows_fall = max(fell, least - float(after.max())), True
        if rises or emptied or shorter or fell > jump or broken[k]:
            cuts.append(k)
            if fell > jump and shows_fall:
                fell_ns[k] = fell
            # A flow begins with an empty queue; a stretch that begins with a jump may show one later.
            begin, seen, floor, from_empty = k, k + 1, float(trip[k]), bool(emptied)
    return cuts, fell_ns


def _jumps(delivery: Delivery, timed: Ints, trip: Floats, broken: Bools, smaller: _Smaller) -> list[int]:
    """Return the timed packets at which a path may begin: where the link was interrupted or nothing was on the way, and
    where round trips rise or fall by MIN_JUMP_NS, at least. `_cuts` looks at these, a few of thousands."""
    ks = np.arange(AROUND, len(timed) - AROUND + 1)
    if not len(ks):
        return []
    around = np.lib.stride_tricks.sliding_window_view(trip, AROUND)
    least, most = around.min(axis=1), around.max(axis=1)
    before_least, before_most, after_most = least[ks - AROUND], most[ks - AROUND], most[ks]
    sent = delivery.t_ns.astype(np.float64)
    idle = sent[timed[ks]] - sent[timed[ks] - 1] > before_most
    # A queue drains by no more than the time since the packet before.
    rises = trip[ks] > before_most - np.diff(sent[timed])[ks - 1] + MIN_JUMP_NS
    shortest = np.maximum(trip[:-1], np.minimum(trip[1:], smaller.shortest_ns(len(trip))[:-1]))
    lowest = shortest[ks] < before_least - MIN_JUMP_NS
    falls = after_most < before_least - MIN_JUMP_NS
    found: list[int] = ks[broken[ks] | idle | rises | lowest | falls].tolist()
    return found


@dataclass(frozen=True, slots=True)
class _Smaller:
    """Round trips of the packets that are too small to compare: `packets`, and the timed packet behind each."""

    packets: Ints
    behind: Ints
    trip_ns: Floats

    @classmethod
    def of(cls, delivery: Delivery, timed: Ints) -> _Smaller:
        """Return the prompt packets of a flow that are not `timed`."""
        packets = np.setdiff1d(np.flatnonzero(delivery.prompt), timed)
        trip_ns = (delivery.acked_ns - delivery.t_ns)[packets].astype(np.float64)
        return cls(packets, np.searchsorted(timed, packets), trip_ns)

    def shortest_ns(self, count: int) -> Floats:
        """Return the minimum round trip of the smaller packets next to each of `count` timed ones."""
        between = np.full(count + 1, np.inf)
        np.minimum.at(between, self.behind, self.trip_ns)
        return np.asarray(np.minimum(between[:-1], between[1:]))

    def adjacent_ns(self, delivery: Delivery, timed: Ints, k: int, ns_per_byte: float) -> float:
        """Return the minimum round trip of a smaller packet next to a timed one, as that of a packet of its size."""
        adjacent = slice(*np.searchsorted(self.behind, (k, k + 2)))
        less_bytes = np.maximum(0, delivery.size_bytes[timed[k]] - delivery.size_bytes[self.packets[adjacent]])
        return float((self.trip_ns[adjacent] + less_bytes * ns_per_byte).min(initial=np.inf))


def _falls_at_once(acked_ns: Floats, trip_ns: Floats) -> dict[int, tuple[int, ...]]:
    """Return the timed packets at which round trips have fallen by MIN_JUMP_NS over ACKs that came at once, within less
    than that, and the first packet of each such group. A FIFO delivers in order: where a path becomes shorter, what
    is sent then waits for what is still on the way, so that round trips fall one by one. Groups that overlap are one,
    too, if ACKs behind them come at the rate of the link: behind a faster one they may be a queue that drains."""
    ks = np.arange(AROUND, len(acked_ns) - AROUND + 1)
    if not len(ks):
        return {}
    left_ns = np.minimum.accumulate(acked_ns[::-1])[::-1]
    first = np.searchsorted(left_ns, left_ns - MIN_JUMP_NS)[ks]
    around = np.lib.stride_tricks.sliding_window_view(trip_ns, AROUND)
    least, most = around.min(axis=1), around.max(axis=1)
    falls = (first >= AROUND) & (first <= ks - AROUND) & (most[ks] < least[np.maximum(first - AROUND, 0)] - MIN_JUMP_NS)
    # An ACK that came later than one behind it waited at the receiver.
    reordered = np.insert(np.cumsum(np.diff(acked_ns) < 0), 0, 0)
    falls &= reordered[ks] == reordered[np.maximum(first - 1, 0)]
    # The last of each group: the others waited for it.
    falls[:-1] &= first[1:] > first[:-1]
    begin, last = first[falls].tolist(), ks[falls].tolist()
    begins: list[tuple[int, ...]] = [(one,) for one in begin]
    row = 0
    for i, k in enumerate(last):
        if i and begin[i] > last[i - 1]:
            row = i
        follows = i + 1 < len(last) and begin[i + 1] <= k
        if row < i and not follows and _waits_behind(trip_ns, k):
            begins[i] = begin[i], begin[row]
    return dict(zip(last, begins, strict=True))


def _waits_behind(trip_ns: Floats, k: int) -> bool:
    """Return whether CLOCK packets from one on waited in a queue, as some soon behind them took less: then their ACKs
    come at the rate of the link."""
    clocked, behind = trip_ns[k : k + CLOCK + 1], trip_ns[k + CLOCK + 1 : k + 2 * CLOCK + 1]
    return len(behind) > 0 and bool(clocked.min() > behind.min() + MIN_JUMP_NS)


def _clock(acked_ns: Floats, served: Floats) -> float:
    """Return the time per octet of some ACKs in a row. What was acknowledged later than a packet behind it waited at
    the receiver: a FIFO delivers in order."""
    left_ns = np.minimum.accumulate(acked_ns[::-1])[::-1]
    return float((left_ns[-1] - left_ns[0]) / max(served[-1] - served[0], 1.0))


def _ran_empty(acked_ns: Floats, octets: tuple[Floats, Floats], trip_ns: Floats, jump_ns: float) -> bool:
    """Return whether the queue of a stretch ran empty before one of its round trips that are as short as its minimum,
    to `jump_ns`: the ACK came by more than that later than the link takes for all that was sent since the packet
    before, none of it lost, by the time per octet of the ACKs before and behind. `octets` are those that were served
    and sent up to each packet."""
    served, sent = octets
    if len(acked_ns) < 2 * CLOCK + 2:
        return False
    clock = (acked_ns[CLOCK:] - acked_ns[:-CLOCK]) / np.maximum(served[CLOCK:] - served[:-CLOCK], 1.0)
    slowest = np.maximum(clock[: -CLOCK - 1], clock[CLOCK + 1 :])
    inner = slice(CLOCK, -CLOCK)
    work = np.diff(sent)[inner]
    idle = np.diff(acked_ns)[inner] - work * slowest > jump_ns
    shortest = trip_ns[1:][inner] <= trip_ns.min() + jump_ns
    return bool(np.any(idle & (np.diff(served)[inner] == work) & shortest))


def _least_clock(acked_ns: Floats, served: Floats) -> float:
    """Return the least time per octet of CLOCK ACKs in a row: no less than that of the link, where it was busy."""
    if len(acked_ns) <= CLOCK:
        return 0.0
    spans, octets = acked_ns[CLOCK:] - acked_ns[:-CLOCK], served[CLOCK:] - served[:-CLOCK]
    return max(0.0, float(np.min(spans / np.maximum(octets, 1.0))))


def _min_trip(delivery: Delivery, packets: tuple[int, int], ns_per_byte: tuple[float, float]) -> float:
    """Return the minimum round trip that a queue makes on the same path at the second of two packets, after that of the
    first: it drains with time, but for the work that enters it, given the least and the longest time per octet. What
    was lost entered, too, or met a full queue: as many waited as before the first one, but of the packet in service
    less may have been left, by all of it."""
    first, last = packets
    fastest, slowest = ns_per_byte
    first_ns = trip_ns = float(delivery.acked_ns[first] - delivery.t_ns[first])
    full_ns = first_ns - float(delivery.size_bytes[first]) * slowest
    since = slice(first + 1, last + 1)
    gaps_ns = np.diff(delivery.t_ns[first : last + 1]).astype(np.float64)
    came = ~delivery.lost[since] & ~delivery.undecided[since]
    for gap, work, entered in zip(
        gaps_ns.tolist(), (delivery.size_bytes[since] * fastest).tolist(), came.tolist(), strict=True
    ):
        drained = trip_ns - gap
        trip_ns = drained + work if entered else max(drained, min(drained + work, full_ns))
    return min(trip_ns, first_ns)


def _longest_trips(before_ns: float, floor_ns: float, gap_ns: Floats, work_ns: Floats) -> Floats:
    """Return the longest round trips that a queue makes on the same path: each waits for what is left of the work
    before it, and for the work that was sent since (Lindley). `floor_ns` is no less than that of an empty queue."""
    longest, trip_ns = [], before_ns
    for gap, work in zip(gap_ns.tolist(), work_ns.tolist(), strict=True):
        trip_ns = max(trip_ns - gap, floor_ns) + work
        longest.append(trip_ns)
    return np.array(longest)


def _interrupted(delivery: Delivery, timed: Ints) -> Bools:
    """Mark the timed packets before which the link passed nothing for a while: it may be another path behind it."""
    broken = np.zeros(len(timed), dtype=np.bool_)
    for _, following in interruptions(delivery):
        after = int(np.searchsorted(timed, following))
        if after < len(timed):
            broken[after] = True
    return broken


def interrupted_losses(delivery: Delivery) -> Bools:
    """Mark the losses of interruptions of the link."""
    losses = np.zeros(len(delivery), dtype=np.bool_)
    for first, following in interruptions(delivery):
        losses[first:following] = delivery.lost[first:following]
    return losses


def silences(delivery: Delivery) -> Iterator[tuple[int, int]]:
    """Yield when the last ACK before each interruption came, and the first one after it."""
    for _, following in interruptions(delivery):
        answered_ns = int(delivery.covered_ns[following])
        yield int(delivery.ack_t_ns[np.searchsorted(delivery.ack_t_ns, answered_ns) - 1]), answered_ns


def interruptions(delivery: Delivery) -> Iterator[tuple[int, int]]:
    """Yield the first packet lost, and the next one delivered, of each time at which the link passed nothing: a run of
    losses, and no ACK until that packet was delivered. Packets of which it is not known whether they arrived may lie
    between the losses if no ACK, not even a duplicate, came behind that of the last packet delivered before."""
    own = np.flatnonzero(delivery.observed & ~delivery.undecided)
    for start, stop in zip(*runs_of(delivery.lost[own]), strict=True):
        if stop - start < LOST_IN_ROW or stop == len(own) or delivery.covered_ns[own[stop]] < 0:
            continue
        answered_ns = delivery.covered_ns[own[stop]]
        earlier = int(np.searchsorted(delivery.ack_t_ns, answered_ns)) - 1
        if earlier < 0:
            continue
        last_ns = delivery.ack_t_ns[earlier]
        unclear = delivery.undecided[own[start] : own[stop]].any()
        answered = unclear and (start == 0 or last_ns > delivery.covered_ns[own[start - 1]])
        if answered_ns - last_ns >= SILENT_NS and not answered:
            yield int(own[start]), int(own[stop])


def _merged(found: list[tuple[Stretch, int, float]]) -> list[Stretch]:
    """Join neighbours with the same minimum, and what is not a separate path: packets that met the old path one way and
    the new one the other way, and the few before the end."""
    kept: list[Stretch] = []
    for i, (stretch, count, sent_ns) in enumerate(found):
        if not kept:
            kept.append(stretch)
            continue
        last = kept[-1]
        following = found[i + 1][0] if i + 1 < len(found) else None
        if count < MIN_STRETCH or sent_ns < last.floor_ns:
            if following is not None:
                following_count, following_ns = found[i + 1][1:]
                broken = stretch.broken or following.broken
                # What falls and rises again, or the other way round, is no shorter path.
                fell_ns = stretch.fell_ns + following.fell_ns if stretch.fell_ns and following.fell_ns else 0.0
                whole = replace(following, first=stretch.first, broken=broken, fell_ns=fell_ns)
                found[i + 1] = whole, following_count, following_ns
            else:
                kept[-1] = replace(last, after=stretch.after)
        elif not stretch.broken and _is_same(last, stretch):
            kept[-1] = _together(last, stretch)
        else:
            kept.append(stretch)
    # All between two interruptions shows what its minimum is, and whether that is the one of an empty queue.
    joined: list[Stretch] = []
    for stretch in kept:
        if joined and _is_same(joined[-1], stretch):
            joined[-1] = _together(joined[-1], stretch)
        else:
            joined.append(stretch)
    return joined


def _is_same(one: Stretch, following: Stretch) -> bool:
    """Return whether two stretches in succession met the same path, as far as their minima show. Where the round trips
    fell, the same minimum over a queue that may never have run empty is that of a shorter path."""
    if following.fell_ns and not np.isfinite(following.scatter_ns):
        return False
    return not is_jump(one.floor_ns, following.floor_ns, following.min_jump_ns(one))


def _together(one: Stretch, following: Stretch) -> Stretch:
    """Return two stretches of the same path as one."""
    lower = min(one, following, key=lambda part: part.floor_ns)
    return replace(one, after=following.after, floor_ns=lower.floor_ns, scatter_ns=lower.scatter_ns)
