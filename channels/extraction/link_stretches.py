"""The link between its steps: round-trip time, rate and limit of the queue of each stretch, with 95 % intervals.

Reads a fitted link and arrays of `delivery`, not tables. See docs/channels/extract.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindflight.channels.estimate import Estimate, LinkStretch
from hindflight.channels.extraction.attribution import QUEUE, Attribution
from hindflight.channels.extraction.bottleneck import CLOCK_SHARE, MIN_PAIRS, NS_BIT, rtt_ns
from hindflight.channels.extraction.busy_spans import RATE_TOLERANCE
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Delivery
from hindflight.channels.extraction.link import Link, base_rtt_ns, limit_within
from hindflight.channels.extraction.path_steps import LOWEST
from hindflight.channels.extraction.shown import Part, shown_delays
from hindflight.channels.extraction.states import steps_of

BLOCKS = 10
"""Parts of a stretch whose rates show how exact their mean is: in each, errors of adjacent intervals have cancelled."""

T_QUANTILE = 2.262
"""97.5 % quantile of Student's t distribution with BLOCKS - 1 degrees of freedom."""

AGREEING_PAIRS = 0.6
"""Share of the intervals that must agree with the rate: a majority, by one standard error of a share of MIN_PAIRS."""

HOSTS_NS = 100_000
"""Time that two hosts take at least to receive a packet, to answer it and to receive the answer: some interrupts, which
no packet avoids. Assumed, without a source: a capture at the sender does not divide the round trip. It matters for
round trips of a few milliseconds only."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """A rate with half the width of its interval; `pairs` intervals between ACKs agree on it."""

    bps: float
    half_bps: float
    pairs: int


def link_stretches(delivery: Delivery, link: Link, verdicts: Attribution, origin_ns: int) -> tuple[LinkStretch, ...]:
    """Return the stretches in order of time from `origin_ns` on. An outage ends none: the link may be the same
    behind it."""
    steps = steps_of(delivery, link, verdicts)
    spans = steps.spans(origin_ns)
    parts = [steps.part(t_ns) for t_ns, _ in spans]
    # The interval says how exact a delay is.
    shown = shown_delays(delivery, link, parts, share=None)
    served = delivery.from_flow & (verdicts.cause != QUEUE)
    found = []
    for (start_ns, end_ns), part in zip(spans, parts, strict=True):
        # The last packets leave the queue after the last one was sent.
        within = (steps.left_ns >= start_ns) & ((steps.left_ns < end_ns) | (end_ns == steps.end_ns))
        rate = _measured(link, part, (start_ns, end_ns))
        estimates = (
            _base_rtt(delivery, link, part, within, rate, known=part in shown),
            _rate(link, part, rate),
            _queue_limit(delivery, link, within, rate),
        )
        found.append(LinkStretch(start_ns, end_ns, int(np.sum(within & served)), estimates))
    return tuple(found)


def _measured(link: Link, part: Part, span_ns: tuple[int, int]) -> _Measured | None:
    """Return the rate that the busy intervals of one stretch show; None if too few of them agree.

    The median of the rates, which intervals that a timer stretched do not move. The interval is that of the mean over
    BLOCKS parts of the stretch, no narrower than the clocks are exact, and holds bytes over time of all that agree:
    what is wrong with the one is not wrong with the other.
    """
    busy = link.rate.busy
    ended_ns = busy.at_ns - link.base.spans[part[0]][2]
    within = np.flatnonzero((ended_ns - busy.span_ns >= span_ns[0]) & (ended_ns < span_ns[1]))
    if len(within) < MIN_PAIRS:
        return None
    bps = busy.served_bytes[within] * NS_BIT / busy.span_ns[within]
    middle = float(np.median(bps))
    near = within[np.abs(np.log(bps / middle)) <= RATE_TOLERANCE]
    if len(near) < max(MIN_PAIRS, AGREEING_PAIRS * len(within)):
        return None
    total = NS_BIT * float(busy.served_bytes[near].sum() / busy.span_ns[near].sum())
    blocks = [float(np.median(block)) for block in np.array_split(bps, BLOCKS)]
    half = T_QUANTILE * float(np.std(blocks, ddof=1)) / BLOCKS**0.5 + CLOCK_SHARE * middle
    return _Measured(middle, max(half, abs(middle - total)), len(near))


def _rate(link: Link, part: Part, rate: _Measured | None) -> Estimate:
    if rate is not None:
        how = (
            f"IP bytes over time in {rate.pairs} intervals between ACKs during which packets queued at the bottleneck "
            "and none was lost."
        )
        low, high = rate.bps - rate.half_bps, rate.bps + rate.half_bps
        return Estimate("rate_bps", rate.bps, low, high, "bit/s", known=link.unshared, how=how)
    begun_ns, _, bps = link.rate.states[part[1]]
    if not link.rate.known or begun_ns in link.rate.bounds:
        how = "Lower bound: the most that was acknowledged per time, over a minimum round trip or longer."
        return Estimate("rate_bps", None, bps, None, "bit/s", known=False, how=how)
    how = "Assumed to be as before or behind: too few packets queued at the bottleneck for a measurement."
    return Estimate("rate_bps", bps, None, None, "bit/s", known=False, how=how)


def _base_rtt(
    delivery: Delivery, link: Link, part: Part, within: Bools, rate: _Measured | None, *, known: bool
) -> Estimate:
    """Return the propagation delay of both directions.

    The minimum is too high by what all packets waited, which the next larger round trips and the error of the modelled
    queue bound, by what hosts take, and wrong by what was subtracted: the serialisation of the packet, whose rate is
    inexact, and of its ACK, whose rate was not measured at all.
    """
    first, after, held = link.base.spans[part[0]]
    middle = (first + after) // 2
    base = base_rtt_ns(delivery, link, middle)
    ack_ns, error_ns = held - base, link.base.error_ns[part[0]]
    if not np.isfinite(error_ns):
        how = "What is left of the round trips without the modelled wait: no packet met an empty queue."
        return Estimate("base_rtt_ns", base, None, None, "ns", known=False, how=how)
    timed = within & delivery.prompt
    bare: Floats = np.sort((rtt_ns(delivery) - link.service_ns)[timed])
    packet_ns = float(np.median(link.full_ns[first:after]))
    scatter_ns = float(bare[min(LOWEST, len(bare) - 1)] - bare[0]) if len(bare) else packet_ns
    # Without a measured rate, the serialisation that was subtracted may be wrong by all of itself.
    subtracted_ns = packet_ns * (1 + (link.base.waits_pkts[part[0]] if link.base.waits_pkts else 0.0))
    rate_ns = subtracted_ns * min(rate.half_bps / rate.bps, 1.0) if rate is not None else packet_ns
    low = max(0.0, base - rate_ns - min(scatter_ns, packet_ns) - ack_ns - error_ns - HOSTS_NS)
    high = base + rate_ns + ack_ns + error_ns
    how = (
        "Propagation delay of both directions: the minimum round-trip time minus the serialisation of its data packet "
        "and, at the same rate, of its ACK."
        if error_ns == 0
        else "Propagation delay of both directions, with a queue that may never have run empty."
    )
    return Estimate("base_rtt_ns", base, low, high, "ns", known=known and link.unshared, how=how)


def _queue_limit(delivery: Delivery, link: Link, within: Bools, rate: _Measured | None) -> Estimate:
    """Return the limit of the queue, which has one: that of the whole flow."""
    ceiling = link.ceiling
    if ceiling is None:
        maximum = float(np.max(link.replay.level[delivery.from_flow & within], initial=0.0))
        how = f"The queue never filled in the capture; here it held at most {maximum:.0f} packets."
        return Estimate("queue_limit_pkts", None, float(np.floor(maximum)), None, "pkts", known=False, how=how)
    value = float(round(ceiling.limit))
    share = link.rate.half_share if rate is None else rate.half_bps / rate.bps
    low, high = ceiling.interval(share)
    here = limit_within(delivery, link.all_dropped, within)
    how = (
        f"Queue length above which losses start, over the whole flow; here it was full for {here.losses_above} packets."
        if here is not None
        else "Queue length above which losses start, over the whole flow; here it did not fill, or too seldom."
    )
    known = link.unshared and link.rate.known
    return Estimate("queue_limit_pkts", value, low, high, "pkts", known=known, how=how)
