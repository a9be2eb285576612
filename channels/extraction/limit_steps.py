"""Changes that a full queue shows: from one packet on, it refuses packets at another level than before.

Complements `clock_steps`: a round trip that becomes longer while the queue is full looks like more packets that wait.
Either the path is longer, or the queue holds more. Reads arrays of `delivery`. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.clock_steps import acks_keep_time, later_near
from hindflight.channels.extraction.delivery import Bools, Delivery
from hindflight.channels.extraction.path_steps import MIN_JUMP_NS, MIN_JUMP_SHARE, Stretch, divided

MIN_MOVE_PKTS, MIN_MOVE_SHARE = 0.5, 0.02
"""Minimum move of the limit, in packets and as a share of it: levels count whole packets, and a rate that is not exact
scales them."""

MIN_EXPLAINED = 5
"""Packets taken above the limit, or refused below it, that two limits must explain and one does not."""

MIN_FULL = 3
"""Packets that each of two limits must have refused."""

STEP_PKTS, MAX_LIMITS, MAX_CELLS = 0.25, 64, 10_000_000
"""Distance of the limits that are tried, their number, and that of packets times limits."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What the moves of a queue's limit show: `paths`, divided where the path became longer, with those parts in
    `longer`, and where either the path or the queue did: `unclear`. Each is (first packet, one past the last, by how
    many ns at most)."""

    paths: tuple[Stretch, ...]
    longer: tuple[tuple[int, int, float], ...]
    unclear: tuple[tuple[int, int, float], ...]


def moves_of_limit(
    delivery: Delivery, paths: Sequence[Stretch], level: Floats, usable: Bools, rate_ns: tuple[Floats, Floats]
) -> Moves:
    """Return what it shows that the level at which packets are lost rises for good: `level` is that of each packet, in
    full-sized packets, if the path does not change, and `usable` marks those for which it is known. `rate_ns` has the
    service times of the packets and those of full-sized ones.

    The ACKs of the busy link come later from there on if the path is longer: by the move of the limit to one packet, as
    a queue counts whole packets. If they keep time, the queue holds more.
    """
    service_ns, full_ns = rate_ns
    found: list[Stretch] = []
    longer_ns: list[tuple[int, int, float]] = []
    unclear: list[tuple[int, int, float]] = []
    for stretch in paths:
        found.append(stretch)
        step = _step_of(delivery, stretch, level, usable, full_ns)
        if step is None:
            continue
        between, packet_ns = (step.last, step.first), float(full_ns[step.first])
        bounds_ns = (step.moved_pkts - 1) * packet_ns, (step.moved_pkts + 1) * packet_ns
        shown = later_near(delivery, stretch, service_ns, between, bounds_ns)
        if shown is not None:
            before, longer = divided(delivery, stretch, [shown.first])
            found[-1:] = [before, replace(longer, fell_ns=-shown.later_ns, fell_off_ns=shown.off_ns)]
            longer_ns.append((shown.first, stretch.after, shown.later_ns + shown.off_ns))
        elif not acks_keep_time(delivery, stretch, service_ns, between):
            unclear.append((step.last + 1, stretch.after, bounds_ns[1]))
    return Moves(tuple(found), tuple(longer_ns), tuple(unclear))


@dataclass(frozen=True, slots=True)
class _Step:
    """The last packet that shows the limit before, the first that shows the one behind, and by how many packets it
    moves."""

    last: int
    first: int
    moved_pkts: float


def _step_of(delivery: Delivery, stretch: Stretch, level: Floats, usable: Bools, full_ns: Floats) -> _Step | None:
    """Return where the limit rises in a stretch by as much as a path jumps, at one rate and size of the packets."""
    within = np.zeros(len(delivery), dtype=np.bool_)
    within[stretch.first : stretch.after] = usable[stretch.first : stretch.after]
    step = _step(level, delivery.lost, within)
    if step is None:
        return None
    parts = slice(stretch.first, step.last + 1), slice(step.first, stretch.after)
    sizes = [float(np.median(delivery.size_bytes[part])) for part in parts]
    moved_ns = step.moved_pkts * full_ns[step.first]
    alike = sizes[0] == sizes[1] and np.ptp(full_ns[stretch.first : stretch.after]) == 0
    return step if alike and moved_ns > max(MIN_JUMP_NS, MIN_JUMP_SHARE * stretch.floor_ns) else None


def _step(level: Floats, lost: Bools, usable: Bools) -> _Step | None:
    """Return where the limit rises; None if one limit explains the losses as well as two."""
    heights, refused = level[usable], lost[usable]
    limits = np.unique(np.round(heights[refused & (heights > 0)] / STEP_PKTS)) * STEP_PKTS - STEP_PKTS / 2
    limits = limits[-MAX_LIMITS:]
    if not len(limits):
        return None
    rows = np.flatnonzero(refused | (heights > limits[0]))
    limits = limits[-max(8, MAX_CELLS // max(len(rows), 1)) :]
    above, refused = heights[rows, None] > limits, refused[rows, None]
    wrong = np.cumsum(above != refused, axis=0, dtype=np.int32)
    left = wrong[-1] - wrong
    explained = (wrong[-1].min() - wrong.min(axis=1) - left.min(axis=1))[:-1]
    if not len(explained) or explained.max() < MIN_EXPLAINED:
        return None
    best = np.flatnonzero(explained == explained.max())
    last, first = int(best[0]), int(best[-1]) + 1
    old, new = int(np.argmin(wrong[last])), int(np.argmin(left[last]))
    moved_pkts = float(limits[new] - limits[old])
    full = int((above & refused)[: last + 1, old].sum()), int((above & refused)[first:, new].sum())
    if moved_pkts <= max(MIN_MOVE_PKTS, MIN_MOVE_SHARE * float(limits[old])) or min(full) < MIN_FULL:
        return None
    packets = np.flatnonzero(usable)[rows]
    return _Step(int(packets[last]), int(packets[first]), moved_pkts)
