"""Compares RTT, rate and limit of the queue, each with its interval, with the link between two of its changes.

Depends on `truth` and on what the extraction says about each stretch. A stretch that was extracted is compared with the
one of the link that it shares most time with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hindflight.channels.estimate import LinkStretch

BUSY_NS = 3_000_000_000
"""Time that packets must have waited in a stretch, so that rate and queue can be asked for."""

PACKET_BITS = 1500 * 8
"""A full-sized packet."""

FEW_PKTS = 10
"""Limit of a queue up to which widths count as shares of this many packets: 20 % of it are 2."""

NAMES = {"rtt": "base_rtt_ns", "rate": "rate_bps", "queue": "queue_limit_pkts"}
"""Quantities, and the estimates that give them."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The link between two changes; times since 1970."""

    start_ns: int
    end_ns: int
    rate_bps: float
    rtt_ns: float
    outage: bool


@dataclass(frozen=True, slots=True)
class Given:
    """How often a quantity was asked for and given with an interval, how many intervals hold the truth, and their
    widths relative to it. `hidden`: how often it was asked for although nothing can show it."""

    asked: int = 0
    given: int = 0
    inside: int = 0
    widths: list[float] = field(default_factory=list)
    hidden: int = 0

    def __add__(self, other: Given) -> Given:
        """Pool two stretches."""
        return Given(
            self.asked + other.asked,
            self.given + other.given,
            self.inside + other.inside,
            self.widths + other.widths,
            self.hidden + other.hidden,
        )


def score_stretch(
    true: Stretch, queue_pkts: int, queued: Sequence[tuple[int, int]], claimed: Sequence[LinkStretch]
) -> dict[str, Given]:
    """Compare one stretch of the link with the one that was extracted: quantities and their scores."""
    nearest = max(claimed, key=lambda one: _shared_ns(true, one), default=None)
    if nearest is not None and _shared_ns(true, nearest) <= 0:
        nearest = None
    asked = {"rtt": true.rtt_ns}
    if in_use_ns(true, queued) >= BUSY_NS:
        asked |= {"rate": true.rate_bps, "queue": float(queue_pkts)}
    return {name: _given(nearest, name, value) for name, value in asked.items()}


def _given(claimed: LinkStretch | None, name: str, true: float) -> Given:
    estimate = None if claimed is None else claimed.estimate(NAMES[name])
    if estimate is None or not estimate.known or estimate.low is None or estimate.high is None:
        return Given(asked=1)
    of = max(true, FEW_PKTS) if name == "queue" else true
    inside = estimate.low <= true <= estimate.high
    return Given(1, 1, int(inside), [(estimate.high - estimate.low) / of])


def in_use_ns(true: Stretch, queued: Sequence[tuple[int, int]]) -> int:
    """Return how long packets waited in a stretch: each that enters behind others waits for what they take, half of
    the one in service."""
    service_ns = PACKET_BITS * 1e9 / true.rate_bps
    total, until_ns = 0.0, float(true.start_ns)
    for arrived_ns, length in queued:
        if length and true.start_ns <= arrived_ns < true.end_ns:
            waits_until = min(arrived_ns + (length - 0.5) * service_ns, true.end_ns)
            total += max(0.0, waits_until - max(until_ns, arrived_ns))
            until_ns = max(until_ns, waits_until)
    return round(total)


def _shared_ns(true: Stretch, claimed: LinkStretch) -> int:
    return min(true.end_ns, claimed.end_ns) - max(true.start_ns, claimed.start_ns)


def pooled(one: Mapping[str, Given], other: Mapping[str, Given]) -> dict[str, Given]:
    """Pool the scores of two flows."""
    return {name: one.get(name, Given()) + other.get(name, Given()) for name in NAMES if name in one or name in other}
