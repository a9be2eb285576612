"""Changes of a path that a busy link shows: from one round trip on, all ACKs come earlier than it can serve packets.

Complements `path_steps` and `idle_steps`, where the queue never runs empty. Reads arrays of `delivery`. See
docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Delivery, Ints
from hindflight.channels.extraction.path_steps import (
    MIN_JUMP_NS,
    MIN_JUMP_SHARE,
    MIN_STRETCH,
    Stretch,
    divided,
)

AROUND = 8
"""ACKs before and after a jump that must agree on how early they come, but for one of each."""

MOST_BETWEEN = 8
"""Maximum number of ACKs between these, of packets that met both paths."""

SPREAD = 0.25
"""Share of a jump by which the ACKs before it, and those after it, differ at most: what a rate that is off makes them
drift over all of them is less than the jump."""


def split_where_acks_come_earlier(
    delivery: Delivery, paths: Sequence[Stretch], service_ns: Floats
) -> tuple[Stretch, ...]:
    """Return `paths`, divided where the ACKs of a busy link come earlier from one packet on: the path is shorter by as
    much. With cross traffic, whose service is not seen, they are returned as they are."""
    if not delivery.observed.all():
        return tuple(paths)
    found: list[Stretch] = []
    for stretch in paths:
        cuts = _cuts(delivery, stretch, service_ns)
        whole, *shorter = divided(delivery, stretch, [cut for cut, _, _ in cuts])
        found.append(whole)
        for part, (_, fell_ns, off_ns) in zip(shorter, cuts, strict=True):
            found.append(replace(part, fell_ns=fell_ns, fell_off_ns=off_ns))
    return tuple(found)


def _cuts(delivery: Delivery, stretch: Stretch, service_ns: Floats) -> list[tuple[int, float, float]]:
    """Return the first packet of each shorter path, by how much it is shorter, and by how much that may be off."""
    timed = stretch.timed(delivery)
    if len(timed) < 2 * (AROUND + MIN_STRETCH):
        return []
    phase, slack = _phase(delivery, timed, service_ns)
    trip = (delivery.acked_ns - delivery.t_ns)[timed]
    found: list[tuple[int, float, float]] = []
    begin = 0
    for k in _candidates(phase):
        jump = _jump(phase[k - AROUND : k], phase[k : k + AROUND + MOST_BETWEEN]) if k - begin >= AROUND else None
        if jump is None or jump.fell_ns <= max(MIN_JUMP_NS, MIN_JUMP_SHARE * float(trip[begin:k].min())):
            continue
        # The shorter path leaves that much more time to wait.
        busy = min(slack[k - AROUND + 1 : k + 1].min(), slack[k + 1 : jump.after(k)].min() + jump.fell_ns) >= 0
        if busy and k - begin >= MIN_STRETCH and len(timed) - k >= MIN_STRETCH:
            found.append((int(timed[k]), jump.fell_ns, jump.off_ns))
            begin = k + AROUND
    return found


@dataclass(frozen=True, slots=True)
class Later:
    """The packet from which on ACKs come later, by how much, and by how much that may be off."""

    first: int
    later_ns: float
    off_ns: float


def later_near(
    delivery: Delivery, stretch: Stretch, service_ns: Floats, between: tuple[int, int], bounds_ns: tuple[float, float]
) -> Later | None:
    """Return where the ACKs of a busy link come later, by something within `bounds_ns`, than the work before takes:
    among packets that were on the way from when the first of the packets `between` was sent until the second arrived.
    None if they do so nowhere, or at several places.

    A link that pauses, or carries packets unseen, delays ACKs as a longer path does: something else must show which of
    them it was.
    """
    timed = stretch.timed(delivery)
    if len(timed) < 2 * (AROUND + MIN_STRETCH):
        return None
    phase, slack = _phase(delivery, timed, service_ns)
    trip_ns = float((delivery.acked_ns - delivery.t_ns)[timed].min())
    least_ns = max(MIN_JUMP_NS, MIN_JUMP_SHARE * trip_ns, bounds_ns[0])
    found: list[tuple[int, Later]] = []
    for k in _near(delivery, timed, between).tolist():
        if not max(AROUND, MIN_STRETCH) <= k <= len(timed) - AROUND - MIN_STRETCH:
            continue
        jump = _jump(-phase[k - AROUND : k], -phase[k : k + AROUND + MOST_BETWEEN])
        if jump is None or not least_ns < jump.fell_ns < bounds_ns[1]:
            continue
        # Of the ACKs around, which may leave one out, it is the first that is later.
        if phase[k] - phase[k - 1] < SPREAD * jump.fell_ns:
            continue
        # Where ACKs agree, the link did not idle between them.
        if slack[k] >= 0 and (slack[k + 1 : k + 1 + jump.between] >= jump.fell_ns).all():
            found.append((k, Later(int(timed[k]), jump.fell_ns, jump.off_ns)))
    if not found or found[-1][0] - found[0][0] > MOST_BETWEEN:
        return None
    return min((later for _, later in found), key=lambda later: later.off_ns)


def acks_keep_time(delivery: Delivery, stretch: Stretch, service_ns: Floats, between: tuple[int, int]) -> bool:
    """Return whether the ACKs of the packets that were on the way between those of `between`, as in `later_near`, come
    neither earlier nor later than a link that is busy all the time allows: the path is the same."""
    timed = stretch.timed(delivery)
    phase, slack = _phase(delivery, timed, service_ns)
    near = _near(delivery, timed, between)
    return len(near) > AROUND and bool(np.ptp(phase[near]) < MIN_JUMP_NS and (slack[near[1:]] >= 0).all())


def _near(delivery: Delivery, timed: Ints, between: tuple[int, int]) -> Ints:
    """Return which timed packets were on the way from when the first of the packets `between` was sent until the second
    arrived."""
    trip_ns = float(np.median((delivery.acked_ns - delivery.t_ns)[timed]))
    from_ns, until_ns = delivery.t_ns[list(between)]
    return np.flatnonzero((delivery.acked_ns[timed] >= from_ns) & (delivery.t_ns[timed] <= until_ns + trip_ns))


@dataclass(frozen=True, slots=True)
class _Jump:
    """By how much ACKs come earlier, by how much that may be off, and how many ACKs of both paths lie between."""

    fell_ns: float
    off_ns: float
    between: int

    def after(self, k: int) -> int:
        """Return the first ACK that was not looked at."""
        return k + self.between + AROUND


def _phase(delivery: Delivery, timed: Ints, service_ns: Floats) -> tuple[Floats, Floats]:
    """Return how much later each ACK came than the work before it takes, and for how long its packet waited behind
    that of the ACK before, at least: since it was sent, until that one left. Negative where it need not have waited, or
    the rate changed."""
    served = np.cumsum(np.where(delivery.lost | delivery.undecided, 0.0, service_ns))[timed]
    acked, sent = delivery.acked_ns[timed].astype(np.float64), delivery.t_ns[timed]
    # No round trip is shorter than that of an empty queue.
    floor = np.minimum.accumulate(acked - sent - service_ns[timed])
    per_byte = service_ns[timed] / delivery.size_bytes[timed]
    same = np.isclose(per_byte[1:], per_byte[:-1], rtol=1e-9)
    slack = np.full(len(timed), -np.inf)
    slack[1:] = np.where(same, acked[:-1] - floor[:-1] - sent[1:], -np.inf)
    return acked - served, slack


def _candidates(phase: Floats) -> list[int]:
    """Return the ACKs that come earlier than all but one of those before."""
    if len(phase) <= 2 * AROUND:
        return []
    before = np.sort(np.lib.stride_tricks.sliding_window_view(phase, AROUND), axis=1)[:, 1]
    ks = np.arange(AROUND, len(phase) - AROUND + 1)
    early: list[int] = ks[phase[ks] < before[ks - AROUND] - SPREAD * MIN_JUMP_NS].tolist()
    return early


def _jump(before: Floats, after: Floats) -> _Jump | None:
    """Return how much earlier than some ACKs the last ones of those that follow come; None if they do not agree."""
    old = _agreeing(before)
    for between in range(len(after) - AROUND + 1):
        new = _agreeing(after[between : between + AROUND])
        fell_ns = float(np.median(old) - np.median(new))
        off_ns = float(max(old[-1] - old[0], new[-1] - new[0]))
        if fell_ns > 0 and off_ns <= SPREAD * fell_ns:
            return _Jump(fell_ns, off_ns, between)
    return None


def _agreeing(phase: Floats) -> Floats:
    """Return the phases of some ACKs in order, without the one that is furthest from the others: it may be late, or
    the first of them may precede a packet that used the link and was lost behind it."""
    ordered = np.sort(phase)
    return ordered[:-1] if ordered[-1] - ordered[1] >= ordered[-2] - ordered[0] else ordered[1:]
