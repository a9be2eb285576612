"""Rate of the bottleneck and base round-trip time of a path, from the ACK clock of one flow.

Knows the arrays of `_delivery`; not the tables, and nothing of why packets were lost. Read
docs/channels/extract.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindflight.channels.extraction import change_points as _plateaus
from hindflight.channels.extraction.change_points import Floats, Plateaus
from hindflight.channels.extraction.delivery import Bools, Delivery, Ints

NS_BIT = 8e9
"""Bytes over nanoseconds, in bit/s."""

RATE_TOLERANCE = 0.08
"""Change of rate (natural logarithm) that counts as another state of the link."""

MIN_PAIRS = 24
"""Fewer intervals of a busy bottleneck than this tell no rate."""

LOCAL_NS = 10_000_000_000
"""Delays are compared with the least of this much time before and after, as the path may change under the
flow."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The bottleneck's rate: `bps` overall with its interval, `states` as (start_ns, end_ns, bps) at the
    ACKs' times."""

    bps: float
    low: float
    high: float
    pairs: int
    known: bool
    steady: bool
    states: tuple[tuple[int, int, float], ...]

    def service_ns(self, size_bytes: Ints, t_ns: Ints) -> Floats:
        """Serialisation time of packets whose ACK came (or would have come) at `t_ns`."""
        if len(self.states) == 1:
            return np.asarray(size_bytes * (NS_BIT / self.bps), dtype=np.float64)
        starts = np.array([start for start, _, _ in self.states[1:]])
        rates = np.array([bps for _, _, bps in self.states])
        held = rates[np.searchsorted(starts, t_ns, side="right")]
        return np.asarray(size_bytes * (NS_BIT / held), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Base:
    """Base round trip as acknowledged packets see it: delay both ways and the ACK's serialisation, not the
    packet's.

    `per_packet_ns` holds it for every transmission; `trusted` is false where it was changing; `spans` are
    its levels as (first packet, one past the last, ns).
    """

    per_packet_ns: Floats
    trusted: Bools
    spans: tuple[tuple[int, int, float], ...]


def rtt_ns(delivery: Delivery) -> Ints:
    """Round trip of each prompt transmission, -1 for the others."""
    return np.where(delivery.prompt, delivery.acked_ns - delivery.t_ns, -1)


def full_size(delivery: Delivery) -> float:
    """IP length of the flow's full-sized packets."""
    return float(np.quantile(delivery.size_bytes[delivery.own], 0.9))


def rate(delivery: Delivery) -> Rate | None:
    """Estimate the rate from ACK spacing while packets wait; None where the bottleneck was hardly ever busy.

    Between two prompt ACKs with nothing lost in between and a queue at both, the bottleneck served exactly the bytes
    that the second one reports, and those of other traffic sent in between; their quotient is the rate. Delayed ACKs
    only widen the span; the median over spans is not moved by the few that a timer or the reverse path stretched.
    """
    prompt = np.flatnonzero(delivery.prompt)
    if len(prompt) < MIN_PAIRS:
        return None
    first, last = prompt[:-1], prompt[1:]
    served = np.cumsum(delivery.size_bytes)
    broken = np.cumsum((delivery.acked_ns < 0) & delivery.own)
    span = delivery.acked_ns[last] - delivery.acked_ns[first]
    whole = (broken[last] == broken[first]) & (span > 0)
    ns_per_byte = np.where(whole, span, 1) / (served[last] - served[first])
    above = _above_local_floor(delivery, prompt)
    span_above = np.quantile(above, 0.95)
    chosen = whole & (above[:-1] > 0.25 * span_above) & (above[1:] > 0.25 * span_above)
    for _ in range(3):
        if chosen.sum() < MIN_PAIRS:
            return None
        waiting = 2 * full_size(delivery) * float(np.median(ns_per_byte[chosen]))
        chosen = whole & (above[:-1] > waiting) & (above[1:] > waiting)
    if chosen.sum() < MIN_PAIRS:
        return None
    return _states(delivery.acked_ns[last[chosen]], span[chosen], (served[last] - served[first])[chosen])


def rate_at_least(delivery: Delivery) -> Rate:
    """The most that was acknowledged in one least round trip: what the bottleneck carries at least, if
    never busy."""
    index = np.flatnonzero(delivery.acked_ns >= 0)
    at = np.sort(delivery.acked_ns[index])
    served = np.cumsum(delivery.size_bytes[index[np.argsort(delivery.acked_ns[index], kind="stable")]])
    trip = int(rtt_ns(delivery)[delivery.prompt].min())
    before = np.searchsorted(at, at - trip, side="right") - 1
    carried = served - np.where(before >= 0, served[before], 0)
    bps = float(carried.max()) * NS_BIT / trip
    states = ((int(at[0]), int(at[-1]), bps),)
    return Rate(bps, bps, float("inf"), 0, known=False, steady=False, states=states)


def _above_local_floor(delivery: Delivery, prompt: Ints) -> Floats:
    """Round trips less the least one within LOCAL_NS."""
    trip, t = rtt_ns(delivery)[prompt].astype(np.float64), delivery.t_ns[prompt]
    cell = (t - t[0]) // LOCAL_NS
    floors = np.full(int(cell[-1]) + 1, np.inf)
    np.minimum.at(floors, cell, trip)
    around = np.minimum(floors, np.minimum(np.append(floors[1:], np.inf), np.insert(floors[:-1], 0, np.inf)))
    return np.asarray(trip - around[cell])


def _states(at_ns: Ints, span_ns: Ints, served_bytes: Ints) -> Rate:
    """Rate states from single spans (end, length, bytes), with a 95 % interval."""
    bps = NS_BIT * served_bytes / span_ns
    plateaus = _plateaus.fit(np.log(bps), RATE_TOLERANCE)
    overall = float(np.median(bps))
    steady = plateaus.coverage > 0.6
    if not steady:
        low, high = (float(q) for q in np.quantile(bps, (0.025, 0.975)))
        whole = ((int(at_ns[0]), int(at_ns[-1]), overall),)
        return Rate(overall, low, high, len(bps), known=True, steady=False, states=whole)
    states = tuple(
        (int(at_ns[a]), int(at_ns[b - 1]), _quotient(bps[a:b], span_ns[a:b], served_bytes[a:b]))
        for a, b, _ in plateaus.spans
    )
    overall = max(states, key=lambda state: state[1] - state[0])[2]
    near = bps[np.abs(np.log(bps / overall)) <= RATE_TOLERANCE]
    # Interval of a median: 1.2533 standard errors of the mean; scale from the median absolute deviation.
    # The floor of 0.05 % stands for the clock and for time stamps taken in the host.
    scale = 1.4826 * float(np.median(np.abs(near - overall)))
    half = 1.96 * 1.2533 * scale / np.sqrt(len(near)) + 5e-4 * overall
    return Rate(overall, overall - half, overall + half, len(bps), known=True, steady=True, states=states)


def _quotient(bps: Floats, span_ns: Ints, served_bytes: Ints) -> float:
    """Bytes over time of the spans near their median: what one span ends late by, the next begins late by."""
    near = np.abs(np.log(bps / np.median(bps))) <= RATE_TOLERANCE
    return float(NS_BIT * served_bytes[near].sum() / span_ns[near].sum())


def open_loop_wait(delivery: Delivery, service_ns: Floats, entered: Bools) -> Floats:
    """Wait of each packet in an endless FIFO fed by the actual send times (Lindley); only `entered` ones
    are served."""
    service = np.where(entered, service_ns, 0.0)
    done = np.cumsum(service)
    t = (delivery.t_ns - delivery.t_ns[0]).astype(np.float64)
    idle_until = np.maximum.accumulate(np.where(entered, t - (done - service), -np.inf))
    busy_until = np.where(np.isfinite(idle_until), done + idle_until, -np.inf)
    before = np.insert(busy_until[:-1], 0, -np.inf)
    return np.asarray(np.maximum(0.0, before - t))


def served_although_lost(delivery: Delivery, service_ns: Floats) -> Bools:
    """Which lost packets used the link, as the ACK spacing around them shows: a first guess, free of base
    and limit.

    Between two prompt ACKs over a busy bottleneck the link's time is the delivered packets' serialisation
    plus that of packets lost behind it; a packet that the queue dropped leaves no gap.
    """
    prompt = np.flatnonzero(delivery.prompt)
    entered = ~delivery.lost
    wait = open_loop_wait(delivery, service_ns, entered)
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


def steady_base(delivery: Delivery, service_ns: Floats) -> Base:
    """One base for the whole flow: the least round trip once each packet's own serialisation is taken off.

    The handshake counts too, with the difference between its answer's serialisation and an ACK's.
    """
    n = len(delivery)
    floor = float((rtt_ns(delivery) - service_ns)[delivery.prompt].min())
    if delivery.handshake is not None:
        bare = delivery.handshake.syn_bytes + delivery.handshake.syn_ack_bytes - delivery.ack_bytes
        ns_per_byte = float(np.median(service_ns / delivery.size_bytes))
        floor = min(floor, delivery.handshake.rtt_ns - bare * ns_per_byte)
    return Base(np.full(n, floor), np.ones(n, dtype=np.bool_), ((0, n, floor),))


def slack_ns(service_ns: Floats, floor_ns: float) -> float:
    """How much a round trip may exceed what is expected before it speaks of another path: jitter, host,
    rounding."""
    return max(4 * float(np.median(service_ns)), 3e6, 0.03 * floor_ns)


def changing_base(delivery: Delivery, service_ns: Floats, entered: Bools) -> Base:
    """Base over time: levels of what remains of each round trip without the flow's own queue and
    serialisation.

    A level's own least round trip is the base where the queue ran empty; else what remains with the least
    jitter.
    """
    wait = open_loop_wait(delivery, service_ns, entered)
    prompt = np.flatnonzero(delivery.prompt)
    trip = rtt_ns(delivery)[prompt] - service_ns[prompt]
    tolerance = slack_ns(service_ns, float(trip.min()))
    plateaus = _plateaus.fit(trip - wait[prompt], tolerance)
    spans = []
    for start, stop, level in plateaus.spans:
        rest = (trip - wait[prompt])[start:stop]
        lower = float(np.quantile(rest[np.abs(rest - level) <= tolerance], 0.1))
        spans.append((start, stop, min(lower, float(np.min(trip[start:stop][np.abs(rest - level) <= tolerance])))))
    level_of, inside = Plateaus(tuple(spans), plateaus.coverage).at(len(prompt))
    owner = np.minimum(np.searchsorted(prompt, np.arange(len(delivery))), len(prompt) - 1)
    packets = tuple(
        (int(prompt[a]) if i else 0, int(prompt[b - 1]) + 1 if i + 1 < len(spans) else len(delivery), v)
        for i, (a, b, v) in enumerate(spans)
    )
    return Base(level_of[owner], inside[owner], packets)
