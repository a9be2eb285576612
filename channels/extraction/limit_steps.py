"""Changes of a path that a full queue shows: from one packet on, it refuses packets at another level than before.

Complements `clock_steps`: a round trip that becomes longer while the queue is full looks like more packets that wait.
A queue keeps its limit, so that the path has changed. Reads arrays of `delivery`. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.clock_steps import later_near
from hindflight.channels.extraction.delivery import Bools, Delivery
from hindflight.channels.extraction.path_steps import MIN_STRETCH, Stretch, divided

MIN_MOVE_PKTS, MIN_MOVE_SHARE = 0.5, 0.02
"""Minimum move of the limit, in packets and as a share of it: levels count whole packets, and a rate that is not exact
scales them."""

MIN_EXPLAINED = 5
"""Packets taken above the limit, or refused below it, that two limits must explain: each has odds of 20 to 1, and the
step may be anywhere among thousands of packets."""

MIN_FULL = 3
"""Packets that each of two limits must have refused."""

STEP_PKTS, MAX_LIMITS, MAX_CELLS = 0.25, 64, 10_000_000
"""Distance of the limits that are tried, their number, and that of packets times limits."""


def split_where_limit_moves(
    delivery: Delivery, paths: Sequence[Stretch], level: Floats, usable: Bools, service_ns: Floats
) -> tuple[Stretch, ...]:
    """Return `paths`, each divided where the level at which packets are lost moves for good; `level` is that of each
    packet, in full-sized packets, if the path does not change, and `usable` marks those for which it is known.

    The ACKs of the busy link show by how much the path is longer if they come later from there on, by the move of the
    limit to one packet: a queue counts whole packets.
    """
    found: list[Stretch] = []
    for stretch in paths:
        within = np.zeros(len(delivery), dtype=np.bool_)
        within[stretch.first : stretch.after] = usable[stretch.first : stretch.after]
        step = _step(level, delivery.lost, within)
        if step is None:
            found.append(stretch)
            continue
        packet_ns = float(np.median(service_ns[stretch.first : stretch.after]))
        bounds_ns = (step.moved_pkts - 1) * packet_ns, (step.moved_pkts + 1) * packet_ns
        shown = later_near(delivery, stretch, service_ns, (step.last, step.first), bounds_ns)
        parts = divided(delivery, stretch, [step.last + 1 if shown is None else shown.first])
        if any(len(part.timed(delivery)) < MIN_STRETCH for part in parts):
            found.append(stretch)
            continue
        if shown is not None:
            parts[1] = replace(parts[1], fell_ns=-shown.later_ns, fell_off_ns=shown.off_ns)
        else:
            parts[1] = replace(
                parts[1], fell_ns=-step.moved_pkts * packet_ns, fell_off_ns=packet_ns, by_limit=True
            )  # fmt: skip
        found += parts
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Step:
    """The last packet that shows the limit before, the first that shows the one behind, and by how many packets it
    moves."""

    last: int
    first: int
    moved_pkts: float


def _step(level: Floats, lost: Bools, usable: Bools) -> _Step | None:
    """Return where the limit moves; None if one limit explains the losses as well as two."""
    heights, refused = level[usable], lost[usable]
    limits = np.unique(np.round(heights[refused & (heights > 0)] / STEP_PKTS)) * STEP_PKTS - STEP_PKTS / 2
    if not len(limits):
        return None
    rows = np.flatnonzero(refused | (heights > limits[0]))
    most = int(np.clip(MAX_CELLS // max(len(rows), 1), 8, MAX_LIMITS))
    limits = limits[-most:]
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
    if abs(moved_pkts) <= max(MIN_MOVE_PKTS, MIN_MOVE_SHARE * float(limits[old])) or min(full) < MIN_FULL:
        return None
    packets = np.flatnonzero(usable)[rows]
    return _Step(int(packets[last]), int(packets[first]), moved_pkts)
