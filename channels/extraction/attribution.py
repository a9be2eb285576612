"""Loss attribution: whether the channel, the flow's queue or an outage caused each loss, or whether it is unknown.

Weighs two independent pieces of evidence: how full the modelled queue was on arrival, and whether the packet used the
link (the gap that it left in the ACK clock). Reads arrays, not tables. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hindflight.channels.extraction import queue as _queue
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Delivery, Ints
from hindflight.channels.extraction.link import Link, served_behind_breaks
from hindflight.channels.extraction.outage_runs import KNOWN_LOG_ODDS, outage_runs

NONE, CHANNEL, QUEUE, OUTAGE = range(4)
"""Codes of `Attribution.cause`."""

BURST_PKTS = 8
"""Distance within which a loss by the channel makes another one more likely."""

MAX_LEVEL_LOG_ODDS = 8.0
"""Maximum log odds that the queue level contributes."""

LEVEL_NOISE_PKTS = 0.2
SHARED_NOISE_PKTS = 1.5
"""Minimum standard error of the queue level at a packet's arrival, for an unshared and a shared queue."""

ONE, BOTH = np.int8(1), np.int8(2)
"""Queues of two that refuse a packet."""

AROUND_GAPS = 100
"""Plain departures before and after a loss that show how exact a gap is there."""

GAP_LIMITS = (0.0, 7.0)
"""Minimum and maximum log odds that a clear gap, or its clear absence, contributes."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The cause of each transmission: code, whether it is known, log odds of queue against channel (lost packets).

    `outages` are the first and the last packet that each outage lost, and the packet that ended it (None at the end of
    the trace). `refusals`: how many of two queues, a little shorter and a little longer than the limit, refuse each
    loss of these runs; 0 for all other packets. `gap_odds` is the part of `odds` that the gaps contribute.
    `burst_or_outage` marks losses that the queue did not make, but whose cause is not known: a burst or an outage.
    """

    cause: npt.NDArray[np.int8]
    known: npt.NDArray[np.bool_]
    odds: Floats
    outages: tuple[tuple[int, int, int | None], ...]
    from_flow: npt.NDArray[np.bool_]
    refusals: npt.NDArray[np.int8]
    gap_odds: Floats
    burst_or_outage: npt.NDArray[np.bool_]

    def positions(self, counted: npt.NDArray[np.bool_]) -> Ints:
        """Return the index of each packet of `counted` among those that reached the loss stage; -1 for all others and
        for those that the queue dropped."""
        reached = (self.cause != QUEUE) & counted
        return np.where(reached, np.cumsum(reached) - 1, -1)


def verdicts(delivery: Delivery, link: Link) -> Attribution:
    """Ascribe every loss; what the evidence leaves open is given to the likelier side and marked as not
    known."""
    odds = np.zeros(len(delivery))
    lost = delivery.lost
    blurred = _queue.blurred(link.arrivals)
    gaps, least = _gap_odds(link, blurred), _least_noise_pkts(link, blurred)
    noise = _noise_pkts(delivery, link, least)
    levels = _level_odds(delivery, link, _noise_by_path(delivery, link, least))
    odds[lost] = _agreeing(levels, gaps, link.replay.group, link.base.spans)[lost]
    odds += gaps
    cause = np.where(lost, np.where(odds > 0, QUEUE, CHANNEL), NONE).astype(np.int8)
    # Where the rate has a lower bound only, the queue was no longer than modelled, so it may not have been full.
    open_levels = lost & link.bounded & (odds > -KNOWN_LOG_ODDS)
    # Where the round trips fit no level of the path's delay, the modelled queue is not the one that they waited in.
    drifting = ~link.base.trusted & (not link.base.sure)
    open_levels |= lost & drifting & (np.abs(gaps) < KNOWN_LOG_ODDS)
    known = delivery.observed & ~delivery.undecided & ~open_levels & (~lost | (np.abs(odds) >= KNOWN_LOG_ODDS))
    outages, doubtful = outage_runs(delivery, link, cause == CHANNEL)
    refused = _refused(delivery, link, gaps, noise) if outages else np.zeros(len(delivery), dtype=np.int8)
    refusals, by_link = np.zeros_like(refused), []
    for first, last, following in outages:
        within = np.arange(first, last + 1)
        within = within[lost[within]]
        # A full queue drops packets whether or not the link behind it is broken.
        refusals[within] = refused[within]
        cause[within] = np.where(refused[within] == BOTH, QUEUE, OUTAGE)
        known[within] = refused[within] != ONE
        # What the queue dropped never left it, so it does not show when the link was down.
        left = within[cause[within] == OUTAGE]
        if len(left):
            by_link.append((int(left[0]), int(left[-1]), following))
    burst_or_outage = np.zeros_like(known)
    for run in doubtful:
        within = np.arange(run.first, run.last + 1)
        within = within[lost[within]]
        # The odds of queue against channel hold, whether the channel's loss was that of a burst or of an outage.
        burst_or_outage[within] = known[within] & (cause[within] == CHANNEL)
        known[within] = False
    return Attribution(cause, known, odds, tuple(by_link), delivery.from_flow, refusals, gaps, burst_or_outage)


def _level_odds(delivery: Delivery, link: Link, noise: Floats) -> Floats:
    """Return the log odds of queue against channel from the queue level that each packet met.

    A full queue always drops; the channel loses with the probability observed below the ceiling, higher within a burst.
    """
    level, ceiling = link.replay.level, link.ceiling
    if ceiling is None:
        # Losses do not depend on the level: the queue never filled, or is very short.
        maximum = float(np.max(level[~delivery.lost & delivery.observed], initial=0.0))
        return np.where((level < 0.8 * maximum) | (maximum < 3), -MAX_LEVEL_LOG_ODDS, -1.5)
    full = -np.log1p(np.exp(np.clip((ceiling.limit - level) / noise, -50, 50)))
    clearly_below = level < ceiling.limit - 3 * np.maximum(1.0, noise)
    below = delivery.lost & clearly_below
    chance = (below.sum() + 1) / (np.sum(delivery.observed & clearly_below) + 2)
    surely_channel = below | _served_in_a_row(delivery, link, ceiling.limit)
    nearby = np.convolve(surely_channel, np.ones(2 * BURST_PKTS + 1), mode="same")
    local = (nearby + BURST_PKTS * chance) / (3 * BURST_PKTS)
    return np.asarray(np.clip(full - np.log(np.maximum(local, chance)), -MAX_LEVEL_LOG_ODDS, MAX_LEVEL_LOG_ODDS))


def _served_in_a_row(delivery: Delivery, link: Link, limit: float) -> npt.NDArray[np.bool_]:
    """Mark the losses in a row for which the queue had room, where it had served one between the first and the last.

    A full queue takes a packet whenever it has served one, so it does not refuse all that comes for longer than that.
    It may have refused one, because levels are not exact.
    """
    own = np.flatnonzero(delivery.observed)
    run = np.cumsum(~delivery.lost[own])
    room = delivery.lost[own] & (link.replay.level[own] <= limit)
    chosen, of_run = own[room], run[room]
    first = np.searchsorted(of_run, of_run, side="left")
    last = np.searchsorted(of_run, of_run, side="right") - 1
    served_ns = delivery.t_ns[chosen[last]] - delivery.t_ns[chosen[first]]
    marked = np.zeros(len(delivery), dtype=np.bool_)
    marked[chosen] = served_ns >= link.full_ns[chosen]
    return marked


def _least_noise_pkts(link: Link, blurred: npt.NDArray[np.bool_]) -> float:
    """Return the standard error of the queue level that a packet met, by the departures without losses in front."""
    if not link.unshared:
        return SHARED_NOISE_PKTS
    return max(LEVEL_NOISE_PKTS, 1.4826 * float(np.median(np.abs(_jitter(link, blurred)))))


def _noise_pkts(delivery: Delivery, link: Link, least: float, within: slice = slice(None)) -> float:
    """Return the standard error of the queue levels, `least` or more, as packets `within` show that arrived although
    they met a level above the limit."""
    if link.ceiling is None:
        return least
    limit, arrived = link.ceiling.limit, ~delivery.lost & ~delivery.undecided & delivery.observed
    # What undecided packets make of a level is no error of measurement, and the limit does not come from such levels.
    shown = arrived & link.all_dropped.exact & (link.replay.level > limit)
    over = link.replay.level[within][shown[within]] - limit
    return max(least, 1.4826 * float(np.median(over))) if len(over) else least


def _noise_by_path(delivery: Delivery, link: Link, least: float) -> Floats:
    """Return the standard error of each level. A base RTT that is wrong makes the levels of its path wrong, and not
    those of another."""
    overall = _noise_pkts(delivery, link, least)
    noise = np.full(len(delivery), overall)
    for first, after, _ in link.base.spans:
        noise[first:after] = min(overall, _noise_pkts(delivery, link, least, slice(first, after)))
    return noise


def _refused(delivery: Delivery, link: Link, gaps: Floats, noise: float) -> npt.NDArray[np.int8]:
    """Return how many of two queues, a little shorter and a little longer than the limit, refuse each packet: 0, 1 or
    2. 1, which is not known, where levels say nothing: the link is shared, gaps contradict them, or the queue may have
    been served at another rate while the link was broken. 0 if the limit is not known, because the queue never
    filled."""
    refusals = np.zeros(len(delivery), dtype=np.int8)
    if link.ceiling is None:
        return refusals
    if not link.unshared:
        return refusals + ONE
    error = KNOWN_LOG_ODDS * noise
    # A packet that finds nothing waiting always enters.
    limits = max(0.0, link.ceiling.limit - error), link.ceiling.limit + error
    queues = [link.arrivals]
    if np.any((behind := served_behind_breaks(delivery, link)).service != link.arrivals.service):
        queues.append(behind)
    refused = [~_queue.replay(queue, limit, unshared=True).entered for queue in queues for limit in limits]
    refusals[np.any(refused, axis=0)] = ONE
    refusals[np.all(refused, axis=0)] = BOTH
    # A full queue that takes every other packet takes the others if its limit is another one.
    refusals[(refusals == BOTH) == link.replay.entered] = ONE
    # What one of the queues takes says nothing about the limit.
    by_level = MAX_LEVEL_LOG_ODDS * (refusals.astype(np.float64) - ONE)
    trusted = _agreeing(by_level, gaps, link.replay.group, link.base.spans)
    return np.where(np.abs(trusted) >= KNOWN_LOG_ODDS, refusals, ONE).astype(np.int8)


def _gap_odds(link: Link, blurred: npt.NDArray[np.bool_]) -> Floats:
    """Log odds from the gaps: the residual tells how many packets more or fewer than modelled used the link. None where
    an undecided packet leaves open which of them did."""
    replay = link.replay
    odds = np.zeros(len(replay.level))
    plain = np.flatnonzero((replay.group < 0) & ~np.isnan(replay.residual) & ~blurred)
    off_by = np.abs(replay.residual[plain])
    for group in _groups(replay.group):
        residual = replay.residual[group[0]]
        if np.isnan(residual) or blurred[group[0]]:
            continue
        off = round(float(residual))
        clear = _clear(off_by, int(np.searchsorted(plain, group[0])))
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


def _clear(off_by: Floats, at: int) -> float:
    """Return the log odds of a clear gap, from the plain departures around it: where other traffic, or a path that
    changed, stretches these gaps, too, a gap says little."""
    near = off_by[max(0, at - AROUND_GAPS) : at + AROUND_GAPS]
    return float(np.clip(-np.log((np.sum(near > 0.5) + 1) / (len(near) + 2)), *GAP_LIMITS))


def _agreeing(level_odds: Floats, gap_odds: Floats, group: Ints, spans: Sequence[tuple[int, int, float]]) -> Floats:
    """Return the log odds of the levels, no larger than the odds that levels and clear gaps agree on the same path.

    Where they disagree, the limit or the base is wrong there. Losses in a row share one gap, which is one case. The
    share of errors has a Beta prior that leaves levels their maximum as long as no gap contradicts them.
    """
    odds = level_odds.copy()
    first_of_gap = np.zeros(len(odds), dtype=np.bool_)
    first_of_gap[np.unique(group, return_index=True)[1]] = True
    judged = first_of_gap & (group >= 0) & (np.abs(gap_odds) >= KNOWN_LOG_ODDS) & (level_odds != 0)
    agree = judged & (np.sign(gap_odds) == np.sign(level_odds))
    for first, after, _ in spans:
        within = slice(first, after)
        wrong = int(np.sum(judged[within] & ~agree[within]))
        most = np.log((int(np.sum(agree[within])) + 1) / (wrong + np.exp(-MAX_LEVEL_LOG_ODDS)))
        odds[within] = np.clip(odds[within], -max(most, 0.0), max(most, 0.0))
    return odds


def _jitter(link: Link, blurred: npt.NDArray[np.bool_]) -> Floats:
    """Residuals at packets without losses in front: the measurement error of a gap. [0.5] if there are none."""
    residual = link.replay.residual
    plain = residual[(link.replay.group < 0) & ~np.isnan(residual) & ~blurred]
    return plain if len(plain) else np.array([0.5])


def _groups(group: Ints) -> list[Ints]:
    members = np.flatnonzero(group >= 0)
    if not len(members):
        return []
    return np.split(members, np.flatnonzero(np.diff(group[members])) + 1)
