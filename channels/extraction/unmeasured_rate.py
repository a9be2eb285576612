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

EARLY_PKTS = 0.1
"""Serialisation times by which a packet must have been earlier than it could be: as exact as the wait for the few
packets before it."""


def with_bounds(delivery: Delivery, paths: Sequence[Stretch], rate: Rate, service_of: Callable[[Rate], Floats]) -> Rate:
    """Return `rate` with lower bounds where nothing measured it and data passed faster: the least rates that the data
    admit. `service_of` gives the serialisation time of each packet at a rate. With cross traffic, which fills the queue
    unseen, it is returned as it is."""
    if not rate.known or not rate.steady or not delivery.observed.all():
        return rate
    measured, edges_ns = _measuring(rate), _edges_ns(delivery, paths)
    while True:
        service_ns = service_of(rate)
        early_ns = _too_early(delivery, paths, service_ns)
        found = next((gap for gap in _gaps(measured, early_ns) if _may_differ(gap, edges_ns)), None)
        if found is None:
            return rate
        found = found.begun(delivery, paths, service_ns)
        rate = _raised(delivery, rate, found.bound_span(edges_ns), found.early_ns[0])


@dataclass(frozen=True, slots=True)
class _Gap:
    """A time between two at which the rate was measured, in states `states` of the rate (None: none was), and when the
    first and the last packet in it came too early."""

    begin_ns: int
    end_ns: int
    states: tuple[int | None, int | None]
    early_ns: tuple[int, int]

    def bound_span(self, edges_ns: Ints) -> tuple[int, int]:
        """Return the time for which the rate is none that was measured: from the last edge before what came too early,
        or from then on if the rate was measured before, to the first edge behind it or the next measured rate."""
        earlier = edges_ns[(edges_ns > self.begin_ns) & (edges_ns <= self.early_ns[0])]
        later = edges_ns[(edges_ns > self.early_ns[1]) & (edges_ns < self.end_ns)]
        begin = self.begin_ns + 1 if self.states[0] is None else self.early_ns[0]
        return int(earlier[-1]) if len(earlier) else begin, int(later[0]) if len(later) else self.end_ns

    def begun(self, delivery: Delivery, paths: Sequence[Stretch], service_ns: Floats) -> _Gap:
        """Return the gap with the first packet that is too early for the rate measured before: without serialisation,
        its round trip is shorter than any over the same path until then."""
        if self.states[0] is None:
            return self
        early = int(np.flatnonzero(delivery.prompt & (delivery.acked_ns == self.early_ns[0]))[0])
        path = next(one for one in paths if one.first <= early < one.after)
        index = path.first + np.flatnonzero(delivery.prompt[path.first : early])
        bare, at_ns = (rtt_ns(delivery) - service_ns)[index], delivery.acked_ns[index]
        least = bare[at_ns <= self.begin_ns].min(initial=np.inf)
        shorter = at_ns[(at_ns > self.begin_ns) & (bare < least - EARLY_PKTS * service_ns[index])]
        first_ns = int(shorter[0]) if np.isfinite(least) and len(shorter) else self.early_ns[0]
        return replace(self, early_ns=(first_ns, self.early_ns[1]))


def _gaps(measured: tuple[Ints, Ints], early_ns: Ints) -> Iterator[_Gap]:
    """Yield the times without a measured rate in which packets came too early, in order: what is too early later
    depends on the wait that is modelled before. `measured` are times and states of the measured rates."""
    at_ns, state = measured
    place = np.searchsorted(at_ns, early_ns)
    for at, count in zip(*np.unique(place, return_counts=True), strict=True):
        times = early_ns[place == at]
        before, after = (int(at_ns[k]) if 0 <= k < len(at_ns) else None for k in (at - 1, at))
        if count >= SHORTER:
            yield _Gap(
                -1 if before is None else before,
                NEVER if after is None else after,
                (None if before is None else int(state[at - 1]), None if after is None else int(state[at])),
                (int(times[0]), int(times[-1])),
            )


def _may_differ(gap: _Gap, edges_ns: Ints) -> bool:
    """Return whether the rate may be another one within a gap between two measurements of the same: it does not change
    and change back unless the link was interrupted, or its path changed, both times."""
    begin, end = gap.states
    return begin is None or begin != end or int(np.sum((edges_ns > gap.begin_ns) & (edges_ns < gap.end_ns))) > 1


def _too_early(delivery: Delivery, paths: Sequence[Stretch], service_ns: Floats) -> Ints:
    """Return when the ACKs came of the timed packets whose round trip is shorter than their serialisation and that of
    the packets before them allow, even at a rate that RATE_TOLERANCE does not tell from that of `service_ns`.

    Only what was delivered is counted, so the wait is the least. It counts from a packet that waited for none: what
    its own round trip shows, it may have waited for, too, so those that follow an untimed one show nothing.
    """
    service_ns = service_ns * np.exp(-RATE_TOLERANCE)
    wait_ns = lindley_wait(delivery, service_ns, ~delivery.lost & ~delivery.undecided)
    bare = rtt_ns(delivery) - service_ns
    first = np.maximum.accumulate(np.where(wait_ns == 0.0, np.arange(len(delivery)), 0))
    early = np.zeros(len(delivery), dtype=np.bool_)
    before_ns = 0.0
    for stretch in paths:
        index = stretch.first + np.flatnonzero(delivery.prompt[stretch.first : stretch.after])
        index = index[on_one_path(delivery, index, (stretch.first, stretch.after), before_ns)] if len(index) else index
        before_ns = stretch.floor_ns
        index = index[np.isin(first[index], index)]
        if len(index):
            least = float(bare[np.unique(first[index])].min())
            early[index] = (bare - wait_ns)[index] < least - EARLY_PKTS * service_ns[index]
    return np.unique(delivery.acked_ns[early])


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


def _raised(delivery: Delivery, rate: Rate, span: tuple[int, int], shown_ns: int) -> Rate:
    """Return `rate` with a higher bound at `shown_ns`: from `span[0]` until before `span[1]` if there was none."""
    starts = [start for start, _, _ in rate.states[1:]]
    at = int(np.searchsorted(starts, shown_ns, side="right"))
    first_ns, last_ns, held = rate.states[at]
    faster = held * float(np.exp(RATE_TOLERANCE))
    if first_ns in rate.bounds:
        parts = [(first_ns, last_ns, faster)]
        return replace(rate, states=(*rate.states[:at], *parts, *rate.states[at + 1 :]))
    acked_ns = delivery.acked_ns[delivery.acked_ns >= 0]
    since = first_ns if at else int(acked_ns.min())
    until = starts[at] if at < len(starts) else int(acked_ns.max()) + 1
    begin, end = max(span[0], since), min(span[1], until)
    parts = [(begin, end, faster)]
    if begin > since:
        parts.insert(0, (since, begin, held))
    if end < until:
        parts.append((end, max(end, last_ns), held))
    states = (*rate.states[:at], *parts, *rate.states[at + 1 :])
    return replace(rate, states=states, bounds=rate.bounds | {begin})
