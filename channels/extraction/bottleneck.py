"""Bottleneck rate of a path, from the ACK clock of one flow.

Reads arrays of `delivery`, not tables. Does not depend on the causes of losses. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hindflight.channels.extraction import change_points as _change_points
from hindflight.channels.extraction.busy_spans import (
    NO_SPANS,
    RATE_TOLERANCE,
    STEADY_SHARE,
    BusySpans,
    joined_until_exact,
    median_around,
    together,
)
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Delivery, Ints
from hindflight.channels.extraction.path_steps import LOST_IN_ROW, Stretch

NS_BIT = 8e9
"""Converts bytes per nanosecond to bit/s."""

PATH_RATE_TOLERANCE = 0.02
"""The same for two stretches of one path each: each rate is measured over many packets."""

SPREAD = 0.5
"""Time between two departures, as a share of that between their ACKs, up to which the second waited for the first."""

MIN_PAIRS = 24
"""Minimum number of busy intervals for an estimate of the rate."""

FEW_PAIRS = 7
"""Minimum number of busy intervals that contradict a rate: if it were right, each would be faster or slower by chance,
and all on one side with a probability of 1/64."""

CHANCE_PAIRS = 2
"""Busy intervals in a row that may show another rate by chance. One in 20 is off by more than RATE_TOLERANCE
(EXACT_SHARE): three in a row are with a probability of 1/8000, if independent."""

CLOCK_SHARE = 5e-4
"""Relative error of a rate that clocks and the timestamps of hosts may cause."""

MIN_DELAYED_ACK_NS = 40_000_000
"""The least time for which a receiver's timer delays an ACK: Linux's (TCP_DELACK_MIN), below the 200 ms of others."""

LOCAL_NS = 10_000_000_000
"""Half width of the window in which a delay is compared with the minimum, because the path may change."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Estimate of the bottleneck's rate: `bps` with its 95 % interval [bit/s].

    `states` are (start_ns, end_ns, bps) at the times of the ACKs; `bounds` are the starts of those that are lower
    bounds only. `busy` are the intervals that were measured.
    """

    bps: float
    low: float
    high: float
    pairs: int
    known: bool
    steady: bool
    states: tuple[tuple[int, int, float], ...]
    bounds: frozenset[int] = frozenset()
    busy: BusySpans = NO_SPANS

    @property
    def half_share(self) -> float:
        """Half the width of the interval as a share of the rate; all of it where the rate was not measured."""
        return (self.high - self.low) / (2 * self.bps) if self.known else 1.0

    def is_bound(self, t_ns: Ints) -> Bools:
        """Mark the times, of ACKs, at which only a lower bound of the rate is known."""
        bound = np.array([start in self.bounds for start, _, _ in self.states])
        return bound[np.searchsorted([start for start, _, _ in self.states[1:]], t_ns, side="right")]

    def service_ns(self, size_bytes: Ints, t_ns: Ints) -> Floats:
        """Return the serialisation times of packets whose ACK came, or would have come, at `t_ns`."""
        if len(self.states) == 1:
            return np.asarray(size_bytes * (NS_BIT / self.bps), dtype=np.float64)
        starts = np.array([start for start, _, _ in self.states[1:]])
        rates = np.array([bps for _, _, bps in self.states])
        held = rates[np.searchsorted(starts, t_ns, side="right")]
        return np.asarray(size_bytes * (NS_BIT / held), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Served:
    """The serialisation time of each packet and of a full-sized one, and which packets used the link, by a first guess.
    `most_ns` is the longest serialisation time: what waited when the link broke may have left at the rate behind the
    break. `bounded` marks those whose rate has a lower bound only."""

    ns: Floats
    most_ns: Floats
    full_ns: Floats
    entered: Bools
    bounded: Bools


def rtt_ns(delivery: Delivery) -> Ints:
    """Return the round-trip time of each prompt transmission; -1 for the others."""
    return np.where(delivery.prompt, delivery.acked_ns - delivery.t_ns, -1)


def full_size(delivery: Delivery) -> float:
    """Return the IP length of the flow's full-sized packets in bytes."""
    return float(np.quantile(delivery.size_bytes[delivery.from_flow], 0.9))


def rate(delivery: Delivery, paths: Sequence[Stretch]) -> Rate | None:
    """Estimate the rate of each stretch of one path, from ACK spacing while packets queue; None if there were few.

    `paths` are the stretches. One in which the bottleneck was rarely busy has the rate of its neighbour, unless it
    carried more.
    """
    found = [(stretch, _rate_within(delivery, stretch)) for stretch in paths]
    measured = [rate for _, rate in found if rate is not None]
    if not measured:
        return None
    if len(found) == 1:
        return replace(measured[0], states=_begun(delivery, measured[0].states))
    states: list[tuple[int, int, float]] = []
    bounds: set[int] = set()
    for i, (stretch, known) in enumerate(found):
        span = _acked_span(delivery, stretch)
        if span is None:
            continue
        if known is not None:
            # The rate changed with the path, not with the first measurement after it.
            (_, until, bps), *later = known.states
            states += [(span[0], until, bps), *later]
            continue
        following = next(rate for _, rate in [*found[i:], *found[:i][::-1]] if rate is not None)
        near = states[-1][2] if states else following.states[0][2]
        carried = _most_carried(delivery, stretch)
        near = _contradicting(delivery, stretch, near) or near
        states.append((*span, max(near, carried)))
        if carried > (1 + PATH_RATE_TOLERANCE) * near:
            bounds.add(span[0])
    best = max(measured, key=lambda rate: rate.states[-1][1] - rate.states[0][0])
    duration = sum(rate.states[-1][1] - rate.states[0][0] for rate in measured)
    steady = sum(rate.states[-1][1] - rate.states[0][0] for rate in measured if rate.steady) >= 0.6 * duration
    joined = _joined(states)
    begun = _begun(delivery, joined)
    return Rate(
        best.bps, best.low, best.high, sum(rate.pairs for rate in measured), known=True, steady=steady, states=begun,
        bounds=frozenset(new[0] for old, new in zip(joined, begun, strict=True) if old[0] in bounds),
        busy=together([rate.busy for rate in measured]),
    )  # fmt: skip


def _joined(states: list[tuple[int, int, float]]) -> tuple[tuple[int, int, float], ...]:
    """Join states in succession that hardly differ."""
    kept = states[:1]
    for begin, end, bps in states[1:]:
        first, last, held = kept[-1]
        if abs(np.log(bps / held)) <= PATH_RATE_TOLERANCE:
            share = (last - first) / max(last - first + end - begin, 1)
            kept[-1] = (first, end, share * held + (1 - share) * bps)
        else:
            kept.append((begin, end, bps))
    return tuple(kept)


def _begun(delivery: Delivery, states: tuple[tuple[int, int, float], ...]) -> tuple[tuple[int, int, float], ...]:
    """Return states that begin where the ACKs show it, because rates are measured later: a faster one with the first
    round trip behind the last ACK at the slower rate that is shorter than any at that rate, a slower one where ACKs
    begin to come at its rate."""
    prompt = np.flatnonzero(delivery.prompt)
    at, trip = delivery.acked_ns[prompt], (delivery.acked_ns - delivery.t_ns)[prompt]
    kept = list(states[:1])
    for begin, end, bps in states[1:]:
        first, last, held = kept[-1]
        if bps <= held:
            kept.append((_slower_since(delivery, (last, begin), (held, bps)), end, bps))
            continue
        here = trip[(at >= first) & (at <= last)]
        still_ns = _slower_until(delivery, kept[-1], (begin, end, bps))
        between = (at > still_ns) & (at < begin)
        shorter = at[between][trip[between] < here.min()] if len(here) else at[:0]
        kept.append((int(shorter.min()) if len(shorter) else begin, end, bps))
    return tuple(kept)


def _slower_until(delivery: Delivery, slower: tuple[int, int, float], faster: tuple[int, int, float]) -> int:
    """Return the last time between two states at which at least FEW_PAIRS ACKs show the slower rate; without these, the
    end of its state.

    A sender that lets the queue run down, as BBR does, has shorter round trips at the same rate. A packet whose round
    trip exceeds the minimum at the faster rate by more than that rate takes for what its ACK reports would have waited
    then, and its ACK would have come faster.
    """
    (_, last, held), (begin, end, bps) = slower, faster
    prompt = np.flatnonzero(delivery.prompt)
    at, trip = delivery.acked_ns[prompt], (delivery.acked_ns - delivery.t_ns)[prompt]
    behind = trip[(at >= begin) & (at <= end)]
    if not len(behind):
        return last
    span_ns, bits = np.diff(at), NS_BIT * np.diff(np.cumsum(delivery.size_bytes)[prompt])
    usable = (at[:-1] >= last) & (at[1:] < begin) & (span_ns > 0) & (trip[1:] > behind.min() + bits / bps)
    same = np.abs(np.log(bits[usable] / span_ns[usable] / held)) <= RATE_TOLERANCE
    return int(at[1:][usable][same].max()) if same.sum() >= FEW_PAIRS else last


def _slower_since(delivery: Delivery, between_ns: tuple[int, int], bps: tuple[float, float]) -> int:
    """Return when ACKs began to come at the second, slower of two rates in a time between two states: the change point
    of what they report per time, if what they report from then on is that rate. A link that was not busy shows less:
    then the end of that time. Where LOST_IN_ROW losses or more used the link, as those of a break, nothing shows its
    rate: one that is seen right behind them begins with the first ACK there."""
    last_ns, begin_ns = between_ns
    within = np.flatnonzero((delivery.acked_ns >= last_ns) & (delivery.acked_ns <= begin_ns))
    at, number = np.unique(delivery.acked_ns[within], return_inverse=True)
    if len(at) < 2:
        return begin_ns
    newest = np.zeros(len(at), dtype=np.int64)
    np.maximum.at(newest, number, within)
    newest = np.maximum.accumulate(newest)
    passed = np.where(delivery.lost, 0, delivery.size_bytes)
    span_ns, served = np.diff(at), np.diff(np.cumsum(passed)[newest])
    unseen = np.diff(np.cumsum(delivery.lost)[newest]) >= LOST_IN_ROW
    unseen &= span_ns > NS_BIT / bps[1] * (served + LOST_IN_ROW * full_size(delivery))
    span_ns, served = np.where(unseen, 0, span_ns), np.where(unseen, 0, served)
    middle = float(np.sqrt(bps[0] * bps[1])) / NS_BIT
    since = len(span_ns) - 1 - int(np.argmax(np.cumsum((span_ns * middle - served)[::-1])))
    octets, shown_ns = float(served[since:].sum()), float(span_ns[since:].sum())
    if not octets or not shown_ns or abs(np.log(NS_BIT * octets / shown_ns / bps[1])) > RATE_TOLERANCE:
        return begin_ns
    return int(at[since] if since and unseen[since - 1] else at[since + 1])


def _acked_span(delivery: Delivery, stretch: Stretch) -> tuple[int, int] | None:
    """Return when the first and the last packet of a stretch were acknowledged."""
    acked = delivery.acked_ns[stretch.first : stretch.after]
    acked = acked[acked >= 0]
    return (int(acked.min()), int(acked.max())) if len(acked) else None


def _most_carried(delivery: Delivery, stretch: Stretch) -> float:
    """Return the most that was carried from one ACK to the first at least a minimum round trip later, in bit/s.

    What the second ACK reports arrived after the first was sent, or that would have reported it, so it does not matter
    how many packets an ACK reports. Without SACK it would not where a hole lies before them: what waited behind one may
    have arrived long ago, and does not count.
    """
    within = np.arange(stretch.first, stretch.after)
    index = within[(delivery.acked_ns[within] >= 0) & ~behind_a_hole(delivery)[within]]
    order = np.argsort(delivery.acked_ns[index], kind="stable")
    at, sizes = delivery.acked_ns[index][order], delivery.size_bytes[index][order]
    served = np.cumsum(sizes)
    before = np.searchsorted(at, at - int(stretch.floor_ns), side="right") - 1
    carried = served - np.where(before >= 0, served[before], 0)
    since = np.where(before >= 0, at[before], int(delivery.t_ns[index].min()))
    # Packets of one ACK: the last stands for all.
    last = np.append(np.diff(at) > 0, True)
    return float((carried / np.maximum(at - since, 1))[last].max()) * NS_BIT


def behind_a_hole(delivery: Delivery) -> Bools:
    """Mark the packets whose octets lie behind those of the packet that triggered the ACK, and those of an ACK of which
    it is not known what triggered it: they had arrived before, behind a hole."""
    triggers = np.flatnonzero(delivery.prompt)
    order = triggers[np.argsort(delivery.acked_ns[triggers], kind="stable")]
    at = np.searchsorted(delivery.acked_ns[order], delivery.acked_ns)
    trigger = np.append(order, -1)[at]
    same = (trigger >= 0) & (delivery.acked_ns[trigger] == delivery.acked_ns)
    return np.asarray(~same | (delivery.seq > delivery.seq[trigger]))


def _rate_within(delivery: Delivery, stretch: Stretch) -> Rate | None:
    """Estimate the rate from ACK spacing while packets queue; None if the bottleneck was rarely busy.

    Between two prompt ACKs without losses in between and with a queue at both, the bottleneck serialised exactly the
    bytes that the second ACK reports plus the cross traffic sent in between; their quotient is the rate. Delayed ACKs
    only widen the interval; the median over the intervals is robust against the few that a timer or the reverse path
    stretched.
    """
    prompt = stretch.timed(delivery)
    if len(prompt) < MIN_PAIRS:
        return None
    first, last = prompt[:-1], prompt[1:]
    pairs, whole, queued = _pairs(delivery, prompt, stretch.floor_ns)
    span = pairs.span_ns
    if queued.sum() >= MIN_PAIRS:
        return _states_of_part(joined_until_exact(pairs, queued))
    # Packets that left closer together than their ACKs came back queued behind each other, if nowhere else; a sender
    # that paces below the rate has none, and then the few that jitter spread disagree. Nor did a packet wait for one
    # that had been acknowledged when it was sent: its own ACK waited for a timer.
    together_sent = delivery.t_ns[last] < delivery.acked_ns[first]
    spread = whole & together_sent & (delivery.t_ns[last] - delivery.t_ns[first] < SPREAD * span)
    # A receiver whose timer delays some ACKs stretches theirs, and a flow with short trains has many such.
    tries = (spread, spread & ~_maybe_delayed(delivery, first, last))
    rates = (_states(pairs.where(chosen)) for chosen in tries if chosen.sum() >= MIN_PAIRS)
    return next((rate for rate in rates if rate.steady), None)


def _pairs(delivery: Delivery, prompt: Ints, floor_ns: float) -> tuple[BusySpans, Bools, Bools]:
    """Return the intervals between successive prompt ACKs; which have no loss in between, and at both ends of which
    packets queued. `floor_ns` is the minimum round trip of their path."""
    first, last = prompt[:-1], prompt[1:]
    served = np.cumsum(delivery.size_bytes)
    broken = np.cumsum((delivery.acked_ns < 0) & delivery.observed)
    span = delivery.acked_ns[last] - delivery.acked_ns[first]
    whole = (broken[last] == broken[first]) & (span > 0)
    ns_per_byte = np.where(whole, span, 1) / (served[last] - served[first])
    queued = _queued(delivery, prompt, whole, ns_per_byte, floor_ns)
    return BusySpans(delivery.acked_ns[last], span, served[last] - served[first]), whole, queued


def _contradicting(delivery: Delivery, stretch: Stretch, bps: float) -> float | None:
    """Return the rate of a stretch with too few busy intervals for an estimate, if they contradict `bps`, the
    one assumed: most agree with each other, and all are faster, or all slower."""
    prompt = stretch.timed(delivery)
    if len(prompt) < 2:
        return None
    pairs, _, queued = _pairs(delivery, prompt, stretch.floor_ns)
    chosen = pairs.where(queued)
    if len(chosen.at_ns) < FEW_PAIRS:
        return None
    rates = NS_BIT * chosen.served_bytes / chosen.span_ns
    agreeing = np.mean(np.abs(np.log(rates / np.median(rates))) <= RATE_TOLERANCE)
    if agreeing < STEADY_SHARE or (np.any(rates > bps) and np.any(rates < bps)):
        return None
    shown = _quotient(rates, chosen.span_ns, chosen.served_bytes)
    return shown if abs(np.log(shown / bps)) > RATE_TOLERANCE else None


def _maybe_delayed(delivery: Delivery, first: Ints, last: Ints) -> Bools:
    """Mark the pairs of ACKs whose second one a timer of the receiver may have sent: it reports one packet, and came
    MIN_DELAYED_ACK_NS or more after the first. An ACK that reports a second full-sized packet is not delayed (RFC 5681
    §4.2)."""
    alone = (last - first == 1) & delivery.observed[last]
    return np.asarray(alone & (delivery.acked_ns[last] - delivery.acked_ns[first] >= MIN_DELAYED_ACK_NS))


def _queued(delivery: Delivery, prompt: Ints, whole: Bools, ns_per_byte: Floats, floor_ns: float) -> Bools:
    """Mark the pairs of successive ACKs at both of which packets queued, and the second before the first left."""
    above = _above_local_floor(delivery, prompt, floor_ns)
    left_ns = delivery.t_ns[prompt] + above
    whole = whole & (delivery.t_ns[prompt[1:]] <= left_ns[:-1])
    span_above = np.quantile(above, 0.95)
    chosen = whole & (above[:-1] > 0.25 * span_above) & (above[1:] > 0.25 * span_above)
    for _ in range(3):
        if chosen.sum() < MIN_PAIRS:
            break
        waiting = 2 * full_size(delivery) * float(np.median(ns_per_byte[chosen]))
        chosen = whole & (above[:-1] > waiting) & (above[1:] > waiting)
    # Where the rate was higher for a while, as much work waited for less time.
    around = 2 * full_size(delivery) * median_around(ns_per_byte, whole)
    return np.asarray(chosen | (whole & (above[:-1] > around) & (above[1:] > around)))


def rate_lower_bound(delivery: Delivery, paths: Sequence[Stretch]) -> Rate:
    """Return a lower bound of the rate: the most that any path carried."""
    states = []
    for stretch in paths:
        span = _acked_span(delivery, stretch)
        if span is not None:
            states.append((*span, _most_carried(delivery, stretch)))
    bps = max(rate for _, _, rate in states)
    return Rate(
        bps, bps, float("inf"), 0, known=False, steady=False, states=((states[0][0], states[-1][1], bps),)
    )  # fmt: skip


def _above_local_floor(delivery: Delivery, prompt: Ints, floor_ns: float) -> Floats:
    """Return round-trip times of one path minus their minimum within LOCAL_NS, or minus `floor_ns` if that is more.
    What takes less crossed a part of the path before."""
    trip, t = rtt_ns(delivery)[prompt].astype(np.float64), delivery.t_ns[prompt]
    cell = (t - t[0]) // LOCAL_NS
    floors = np.full(int(cell[-1]) + 1, np.inf)
    np.minimum.at(floors, cell, trip)
    around = np.minimum(floors, np.minimum(np.append(floors[1:], np.inf), np.insert(floors[:-1], 0, np.inf)))
    return np.asarray(np.maximum(trip - np.maximum(around[cell], floor_ns), 0.0))


def _states_of_part(busy: BusySpans) -> Rate:
    """Return the rate and its states; where they explain too little, those of the part at one end that has one rate, if
    it is half of the intervals or more and all others are faster. These show no rate: a path that became longer unseen
    makes intervals of a sender that paces its packets look busy."""
    rate = _states(busy)
    part = None if rate.steady else _change_points.lowest_end(np.log(busy.served_bytes / busy.span_ns), RATE_TOLERANCE)
    if part is None or 2 * (part.stop - part.start) < len(busy.at_ns):
        return rate
    return _states(busy.where(part))


def _states(busy: BusySpans) -> Rate:
    """Return the rate and its states from single intervals, with a 95 % interval."""
    at_ns, span_ns, served_bytes = busy.at_ns, busy.span_ns, busy.served_bytes
    bps = NS_BIT * served_bytes / span_ns
    logarithms = np.log(bps)
    levels = _change_points.fit(logarithms, RATE_TOLERANCE)
    levels = _change_points.with_lower_end(levels, logarithms, RATE_TOLERANCE)
    overall = float(np.median(bps))
    steady = levels.coverage > STEADY_SHARE
    if not steady:
        low, high = (float(q) for q in np.quantile(bps, (0.025, 0.975)))
        whole = ((int(at_ns[0]), int(at_ns[-1]), overall),)
        return Rate(overall, low, high, len(bps), known=True, steady=False, states=whole, busy=busy)
    spans = [(_shown_from(busy, a, b) if a else a, a, b) for a, b, _ in levels.spans]
    states = tuple(
        (int(at_ns[shown]), int(at_ns[b - 1]), _quotient(bps[a:b], span_ns[a:b], served_bytes[a:b]))
        for shown, a, b in spans
    )
    overall = max(states, key=lambda state: state[1] - state[0])[2]
    near = bps[np.abs(np.log(bps / overall)) <= RATE_TOLERANCE]
    # Interval of a median: 1.2533 standard errors of the mean; scale from the median absolute deviation.
    scale = 1.4826 * float(np.median(np.abs(near - overall)))
    half = 1.96 * 1.2533 * scale / np.sqrt(len(near)) + CLOCK_SHARE * overall
    return Rate(overall, overall - half, overall + half, len(bps), known=True, steady=True, states=states, busy=busy)


def _shown_from(busy: BusySpans, first: int, after: int) -> int:
    """Return the first of the intervals from `first` to before `after` that shows their rate. Up to CHANCE_PAIRS at
    the beginning do not count if a pause follows that is longer than they are: they may agree by chance, long before
    the link has that rate. In a pause nothing was measured, also because packets were lost."""
    measured_ns, ended_ns = np.cumsum(busy.span_ns[first:after]), busy.at_ns[first:after]
    pauses_ns = np.diff(ended_ns) - busy.span_ns[first + 1 : after]
    early = np.flatnonzero(pauses_ns[:CHANCE_PAIRS] > measured_ns[:-1][:CHANCE_PAIRS])
    return first + (int(early[-1]) + 1 if len(early) else 0)


def _quotient(bps: Floats, span_ns: Ints, served_bytes: Ints) -> float:
    """Return bytes over time of the intervals near their median; errors of adjacent intervals cancel out."""
    near = np.abs(np.log(bps / np.median(bps))) <= RATE_TOLERANCE
    return float(NS_BIT * served_bytes[near].sum() / span_ns[near].sum())


def lindley_wait(delivery: Delivery, service_ns: Floats, entered: Bools) -> Floats:
    """Return the wait of each packet in an infinite FIFO fed by the send times (Lindley); it serves only `entered`."""
    service = np.where(entered, service_ns, 0.0)
    done = np.cumsum(service)
    t = (delivery.t_ns - delivery.t_ns[0]).astype(np.float64)
    idle_until = np.maximum.accumulate(np.where(entered, t - (done - service), -np.inf))
    busy_until = np.where(np.isfinite(idle_until), done + idle_until, -np.inf)
    before = np.insert(busy_until[:-1], 0, -np.inf)
    return np.asarray(np.maximum(0.0, before - t))


def served_losses(delivery: Delivery, service_ns: Floats) -> Bools:
    """Return whether each packet used the link, judged by ACK spacing: a first guess without base and limit.

    Between two prompt ACKs over a busy bottleneck the link's time is the serialisation of the delivered packets and of
    those lost behind it; a packet that the queue dropped leaves no gap.
    """
    prompt = np.flatnonzero(delivery.prompt)
    entered = ~delivery.lost
    wait = lindley_wait(delivery, service_ns, entered)
    work = np.cumsum(np.where(entered, service_ns, 0.0))
    losses = np.cumsum(delivery.lost)
    first, last = prompt[:-1], prompt[1:]
    size = service_ns[last]
    excess = (delivery.acked_ns[last] - delivery.acked_ns[first] - (work[last] - work[first])) / size
    missing: Ints = losses[last] - losses[first]
    count = np.where(wait[last] > 0.5 * size, np.clip(np.round(excess), 0, missing), missing).astype(np.int64)
    for a, b, n in zip(first[missing > 0], last[missing > 0], count[missing > 0], strict=True):
        between = a + 1 + np.flatnonzero(delivery.lost[a + 1 : b])
        entered[between[len(between) - n :]] = True
    return entered
