"""What took each lost packet: the channel, the flow's own queue, an outage, or nobody knows.

Weighs two independent pieces of evidence: how full the modelled queue was on arrival, and whether the
packet used the link (the gap that it left in the ACK clock). Knows arrays, not tables. Read
docs/channels/extract.md first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Delivery, Ints
from hindflight.channels.extraction.link import Link, one_way_ns

NONE, CHANNEL, QUEUE, OUTAGE = range(4)
"""Codes of `Verdicts.cause`."""

OUTAGE_PKTS = 10
OUTAGE_NS = 200_000_000
"""An outage: at least so many packets in a row, sent over at least so long and serialised over more than the delay one
way (a link that breaks loses what is under way, too), and every one lost behind the queue. Deviation: no standard says
where a burst ends and an outage begins; bursts of a Gilbert-Elliott channel with a mean of 8 packets stay below one
tenth of a second at the rates at hand."""

SURE = 2.2
"""Log odds beyond which a cause is taken as known: 9 to 1."""

BURST_PKTS = 8
"""A loss this near makes another by the channel likelier."""

MOST = 8.0
"""The most that the level alone is worth in log odds."""

LEVEL_NOISE_PKTS = 0.2
SHARED_NOISE_PKTS = 1.5
"""How well the level at one packet's arrival is known at best: a lone flow's, and one whose queue others
fill too."""

GAP_LIMITS = (1.0, 7.0)
"""Least and most that one clear gap, or its clear absence, is worth in log odds."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One element per transmission: cause, whether it is known, log odds of queue against channel (lost
    packets).

    `outages` are (first, last) packet of each outage, and the packet that ended it (None at the end of the
    trace).
    """

    cause: npt.NDArray[np.int8]
    known: npt.NDArray[np.bool_]
    odds: Floats
    outages: tuple[tuple[int, int, int | None], ...]
    own: npt.NDArray[np.bool_]

    def positions(self) -> Ints:
        """Number of each packet among those that reached the loss stage, -1 for those that the queue
        dropped."""
        reached = (self.cause != QUEUE) & self.own
        return np.where(reached, np.cumsum(reached) - 1, -1)


def verdicts(delivery: Delivery, link: Link) -> Verdicts:
    """Ascribe every loss; what the evidence leaves open is given to the likelier side and marked as not
    known."""
    odds = np.zeros(len(delivery))
    lost = delivery.lost
    odds[lost] = _level_odds(delivery, link)[lost]
    if link.alone:
        odds += _gap_odds(link)
    cause = np.where(lost, np.where(odds > 0, QUEUE, CHANNEL), NONE).astype(np.int8)
    known = delivery.own & ~delivery.undecided & (~lost | (np.abs(odds) >= SURE))
    outages = _outages(delivery, link, cause)
    for first, last, _ in outages:
        within = np.arange(first, last + 1)
        within = within[cause[within] == CHANNEL]
        cause[within], known[within] = OUTAGE, True
    return Verdicts(cause, known, odds, outages, delivery.own)


def _level_odds(delivery: Delivery, link: Link) -> Floats:
    """Log odds of queue against channel from how much waited ahead of each packet.

    A full queue drops for certain; a channel loses with the probability seen below the ceiling, more so in
    a burst.
    """
    level, ceiling = link.replay.level, link.ceiling
    if ceiling is None:
        # No level above which packets were lost: the queue did not fill while we looked, or held next to
        # nothing.
        most = float(np.max(level[~delivery.lost & delivery.own], initial=0.0))
        return np.where((level < 0.8 * most) | (most < 3), -MOST, -1.5)
    noise = max(LEVEL_NOISE_PKTS, 1.4826 * float(np.median(np.abs(_jitter(link))))) if link.alone else SHARED_NOISE_PKTS
    over = level[~delivery.lost & delivery.own & (level > ceiling.limit)] - ceiling.limit
    if len(over):
        noise = max(noise, 1.4826 * float(np.median(over)))
    full = -np.log1p(np.exp(np.clip((ceiling.limit - level) / noise, -50, 50)))
    surely_channel = delivery.lost & (level < ceiling.limit - 3 * max(1.0, noise))
    chance = (surely_channel.sum() + 1) / (np.sum(delivery.own & (level < ceiling.limit - 3 * max(1.0, noise))) + 2)
    nearby = np.convolve(surely_channel, np.ones(2 * BURST_PKTS + 1), mode="same")
    local = (nearby + BURST_PKTS * chance) / (3 * BURST_PKTS)
    return np.asarray(np.clip(full - np.log(np.maximum(local, chance)), -MOST, MOST))


def _gap_odds(link: Link) -> Floats:
    """Log odds from the gaps: the replay says who entered, the residual how many more or fewer really did."""
    replay = link.replay
    odds = np.zeros(len(replay.level))
    jitter = _jitter(link)
    clear = float(np.clip(-np.log((np.sum(np.abs(jitter) > 0.5) + 1) / (len(jitter) + 2)), *GAP_LIMITS))
    for group in _groups(replay.group):
        residual = replay.residual[group[0]]
        if np.isnan(residual):
            continue
        off = round(float(residual))
        weight = clear if abs(residual - off) < 0.35 else 0.3 * clear
        entered = replay.entered[group]
        used = entered.copy()
        order = np.argsort(replay.level[group], kind="stable")
        if off > 0:
            used[[i for i in order if not entered[i]][:off]] = True
        elif off < 0:
            used[[i for i in order[::-1] if entered[i]][:-off]] = False
        odds[group] = np.where(used, -weight, weight)
    return odds


def _jitter(link: Link) -> Floats:
    """Residuals where nothing was lost: what a gap's size may be off by; [0.5] if there are none."""
    residual = link.replay.residual
    plain = residual[(link.replay.group < 0) & ~np.isnan(residual)]
    return plain if len(plain) else np.array([0.5])


def _groups(group: Ints) -> list[Ints]:
    members = np.flatnonzero(group >= 0)
    if not len(members):
        return []
    return np.split(members, np.flatnonzero(np.diff(group[members])) + 1)


def _outages(delivery: Delivery, link: Link, cause: npt.NDArray[np.int8]) -> tuple[tuple[int, int, int | None], ...]:
    """Long runs of losses among the packets that the queue let through."""
    through = np.flatnonzero((cause != QUEUE) & delivery.own)
    edges = np.diff(np.concatenate(([0], (cause[through] == CHANNEL).astype(np.int8), [0])))
    left_ns = delivery.t_ns + link.replay.level * link.full_ns + link.service_ns
    found: list[tuple[int, int, int | None]] = []
    for start, stop in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        first, last = int(through[start]), int(through[stop - 1])
        lasted = left_ns[last] - left_ns[first]
        long = delivery.t_ns[last] - delivery.t_ns[first] >= OUTAGE_NS and lasted > one_way_ns(delivery, link, first)
        if stop - start >= OUTAGE_PKTS and long:
            found.append((first, last, int(through[stop]) if stop < len(through) else None))
    return tuple(found)
