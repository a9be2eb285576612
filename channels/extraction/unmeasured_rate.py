"""Times at which the rate that was measured elsewhere is not that of the link: data passed in less time than it takes.

Complements `bottleneck`, which measures rates where packets queue. Reads arrays of `delivery`; does not depend on
causes of losses. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hindflight.channels.extraction.bottleneck import NS_BIT, Rate, lindley_wait, rtt_ns
from hindflight.channels.extraction.busy_spans import RATE_TOLERANCE
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import NEVER, Delivery, Ints
from hindflight.channels.extraction.path_steps import SHORTER, Stretch, on_one_path, silences


def with_bounds(delivery: Delivery, paths: Sequence[Stretch], rate: Rate, service_of: Callable[[Rate], Floats]) -> Rate:
    """Return `rate` with lower bounds where nothing measured it and data passed faster: the least rates that the data
    admit. `service_of` gives the serialisation time of each packet at a rate. With cross traffic, which fills the queue
    unseen, it is returned as it is."""
    if not rate.known or not rate.steady or not delivery.observed.all():
        return rate
    model, measured = _Model(delivery, tuple(paths), service_of), _measuring(rate)
    while (raised := _with_next_bound(model, measured, rate)) is not None:
        rate = raised
    return rate


def _with_next_bound(model: _Model, measured: tuple[Ints, Ints], rate: Rate) -> Rate | None:
    """Return `rate` with the least bound at which the first packets that a higher rate explains are not too early; None
    if it explains none. This ends: each bound begins at another time, and rises no further than ACKs admit."""
    for found in _gaps(measured, model.too_early(rate), rate):
        most_bps = _fastest_bps(model.delivery, found)
        gap = _explained(model, rate, found, most_bps) if _may_differ(found, model.edges_ns) else None
        if gap is None:
            continue
        span = gap.bound_span(model, rate)
        while np.isin(gap.early_ns, model.too_early(rate)).sum() >= SHORTER:
            held = rate.states[_state(rate, span[2])][2]
            rate = _raised(model.delivery, rate, span, min(held * float(np.exp(RATE_TOLERANCE)), most_bps))
        return rate
    return None


def _explained(model: _Model, rate: Rate, gap: _Gap, most_bps: float) -> _Gap | None:
    """Return the gap with those packets only that are not too early at `most_bps`; None if these are too few. What is
    too early at any rate shows none: it was reordered, or the wait before the gap is not that of the model."""
    while len(gap.early_ns) >= SHORTER:
        fastest = _raised(model.delivery, rate, gap.bound_span(model, rate), most_bps)
        left = np.setdiff1d(gap.early_ns, model.too_early(fastest))
        if len(left) == len(gap.early_ns):
            return gap
        gap = replace(gap, early_ns=left)
    return None


def _fastest_bps(delivery: Delivery, gap: _Gap) -> float:
    """Return the highest rate at which two ACKs in a row within a gap show that data was delivered."""
    prompt = np.flatnonzero(delivery.prompt)
    served = np.cumsum(np.where(delivery.lost | delivery.undecided, 0, delivery.size_bytes))[prompt]
    at_ns = delivery.acked_ns[prompt]
    within = (at_ns[1:] > gap.begin_ns) & (at_ns[1:] < gap.end_ns) & (np.diff(at_ns) > 0)
    return float((np.diff(served)[within] / np.diff(at_ns)[within]).max(initial=0.0)) * NS_BIT


class _Model:
    """A flow and which of its packets came too early at a rate."""

    def __init__(self, delivery: Delivery, paths: tuple[Stretch, ...], service_of: Callable[[Rate], Floats]) -> None:
        self.delivery, self.paths, self.service_of = delivery, paths, service_of
        self.edges_ns = _edges_ns(delivery, paths)

    def too_early(self, rate: Rate) -> Ints:
        """Return when the ACKs came of the packets that came too early."""
        return _too_early(self.delivery, self.paths, self.service_of(rate))


@dataclass(frozen=True, slots=True)
class _Gap:
    """A time between two at which the rate was measured, in states `states` of the rate (None: none was), and when the
    packets in it came that are too early."""

    begin_ns: int
    end_ns: int
    states: tuple[int | None, int | None]
    early_ns: Ints

    def bound_span(self, model: _Model, rate: Rate) -> tuple[int, int, int]:
        """Return the time for which the rate is not a measured one, and when that shows: from the last edge before
        what came too early, or from then on if the rate was measured before, to the first edge behind it or the next
        measured rate."""
        edges_ns = model.edges_ns
        first_ns, train_ns = self._begun(model.delivery, model.paths, model.service_of(rate))
        earlier = edges_ns[(edges_ns > self.begin_ns) & (edges_ns <= first_ns)]
        later = edges_ns[(edges_ns > self.early_ns[-1]) & (edges_ns < self.end_ns)]
        begin = self.begin_ns + 1 if self.states[0] is None else train_ns
        end = int(later[0]) if len(later) else self.end_ns
        return int(earlier[-1]) if len(earlier) else begin, end, int(self.early_ns[0])

    def _begun(self, delivery: Delivery, paths: Sequence[Stretch], service_ns: Floats) -> tuple[int, int]:
        """Return when the ACK came of the first packet that is too early for the rate measured before, and of the one
        that waited for none before it: all that this one waited for was served at the other rate. Its round trip
        without serialisation is shorter than any over the same path until then, even if it was served at a rate that
        RATE_TOLERANCE does not tell from the measured one."""
        early = int(np.flatnonzero(delivery.prompt & (delivery.acked_ns == self.early_ns[0]))[0])
        path = next(one for one in paths if one.first <= early < one.after)
        index = path.first + np.flatnonzero(delivery.prompt[path.first : early])
        trip, at_ns, faster_ns = rtt_ns(delivery)[index], delivery.acked_ns[index], _at_faster(service_ns)
        least = (trip - service_ns[index])[at_ns <= self.begin_ns].min(initial=np.inf)
        shorter = index[(at_ns > self.begin_ns) & (trip - faster_ns[index] < least)]
        packet = int(shorter[0]) if np.isfinite(least) and len(shorter) else early
        train = slice(int(_waits(delivery, faster_ns)[1][packet]), packet + 1)
        train_ns = int(delivery.acked_ns[train][delivery.acked_ns[train] > self.begin_ns].min())
        return int(delivery.acked_ns[packet]), train_ns


def _gaps(measured: tuple[Ints, Ints], early_ns: Ints, rate: Rate) -> Iterator[_Gap]:
    """Yield the times without a measured rate in which packets came too early for one state of `rate`, in order: what
    is too early later depends on the wait that is modelled before. `measured` are times and states of the measured
    rates."""
    at_ns, state = measured
    place = np.searchsorted(at_ns, early_ns)
    held = np.array([_state(rate, t) for t in early_ns.tolist()])
    cuts = 1 + np.flatnonzero((np.diff(place) != 0) | (np.diff(held) != 0))
    for times in np.split(early_ns, cuts):
        if len(times) < SHORTER:
            continue
        at = int(np.searchsorted(at_ns, times[0]))
        before, after = (int(at_ns[k]) if 0 <= k < len(at_ns) else None for k in (at - 1, at))
        yield _Gap(
            -1 if before is None else before,
            NEVER if after is None else after,
            (None if before is None else int(state[at - 1]), None if after is None else int(state[at])),
            times,
        )


def _may_differ(gap: _Gap, edges_ns: Ints) -> bool:
    """Return whether the rate may be another one within a gap between two measurements of the same: it does not change
    and change back unless the link was interrupted, or its path changed, both times."""
    begin, end = gap.states
    return begin is None or begin != end or int(np.sum((edges_ns > gap.begin_ns) & (edges_ns < gap.end_ns))) > 1


def _too_early(delivery: Delivery, paths: Sequence[Stretch], service_ns: Floats) -> Ints:
    """Return when the ACKs came of the timed packets whose round trip is shorter than their serialisation and that of
    the packets before them allow, even at a rate that RATE_TOLERANCE does not tell from that of `service_ns`.

    There is no other margin: only what was delivered is counted, so the wait is the least, and hosts only lengthen
    round trips. It counts from a packet that waited for none or, if that one is not timed, from the first timed one
    behind it, as if this one had waited for none. Those that waited for a packet before the first timed one of their
    path show nothing: it may have met another path.
    """
    service_ns = _at_faster(service_ns)
    wait_ns, first = _waits(delivery, service_ns)
    bare = rtt_ns(delivery) - service_ns
    early = np.zeros(len(delivery), dtype=np.bool_)
    before_ns = 0.0
    for stretch in paths:
        index = stretch.timed(delivery)
        index = index[on_one_path(delivery, index, (stretch.first, stretch.after), before_ns)] if len(index) else index
        before_ns = stretch.floor_ns
        index = index[first[index] >= index.min(initial=len(delivery))]
        if len(index):
            _, begins, train = np.unique(first[index], return_index=True, return_inverse=True)
            waited_ns = wait_ns[index] - wait_ns[index[begins]][train]
            early[index] = bare[index] - waited_ns < bare[index].min()
    return np.unique(delivery.acked_ns[early])


def _at_faster(service_ns: Floats) -> Floats:
    """Return the serialisation times at the highest rate that RATE_TOLERANCE does not tell from that of these."""
    return service_ns * float(np.exp(-RATE_TOLERANCE))


def _waits(delivery: Delivery, service_ns: Floats) -> tuple[Floats, Ints]:
    """Return how long each packet waits at least, and the last packet until it that waits for none."""
    wait_ns = lindley_wait(delivery, service_ns, ~delivery.lost & ~delivery.undecided)
    return wait_ns, np.maximum.accumulate(np.where(wait_ns == 0.0, np.arange(len(delivery)), 0))


def _measuring(rate: Rate) -> tuple[Ints, Ints]:
    """Return when the busy intervals ended that show the rate of their time, in order, and its states then."""
    order = np.argsort(rate.busy.at_ns, kind="stable")
    at_ns, bps = rate.busy.at_ns[order], (rate.busy.served_bytes * NS_BIT / rate.busy.span_ns)[order]
    state = np.searchsorted([start for start, _, _ in rate.states[1:]], at_ns, side="right")
    near = np.abs(np.log(bps / np.array([held for _, _, held in rate.states])[state])) <= RATE_TOLERANCE
    return at_ns[near], state[near]


def _edges_ns(delivery: Delivery, paths: Sequence[Stretch]) -> Ints:
    """Return when the first ACKs behind each interruption and over each path came: a handover changes the rate, too."""
    firsts = [delivery.acked_ns[one.first : one.after] for one in paths[1:]]
    begun = [int(acked[acked >= 0].min()) for acked in firsts if np.any(acked >= 0)]
    return np.array(sorted({*begun, *(after for _, after in silences(delivery))}), dtype=np.int64)


def _state(rate: Rate, t_ns: int) -> int:
    """Return the state of the rate at a time."""
    return int(np.searchsorted([start for start, _, _ in rate.states[1:]], t_ns, side="right"))


def _raised(delivery: Delivery, rate: Rate, span: tuple[int, int, int], bps: float) -> Rate:
    """Return `rate` with the bound `bps` at `span[2]`, if that is higher: from `span[0]` until before `span[1]` if
    there was none."""
    at = _state(rate, span[2])
    first_ns, last_ns, held = rate.states[at]
    if bps <= held:
        return rate
    if first_ns in rate.bounds:
        return replace(rate, states=(*rate.states[:at], (first_ns, last_ns, bps), *rate.states[at + 1 :]))
    acked_ns = delivery.acked_ns[delivery.acked_ns >= 0]
    since = first_ns if at else int(acked_ns.min())
    until = rate.states[at + 1][0] if at + 1 < len(rate.states) else int(acked_ns.max()) + 1
    begin, end = max(span[0], since), min(span[1], until)
    parts = [(begin, end, bps)]
    if begin > since:
        parts.insert(0, (since, begin, held))
    if end < until:
        parts.append((end, max(end, last_ns), held))
    states = (*rate.states[:at], *parts, *rate.states[at + 1 :])
    return replace(rate, states=states, bounds=rate.bounds | {begin})
