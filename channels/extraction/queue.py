"""The bottleneck's drop-tail queue, replayed over the actual send times and held to the departures that
ACKs show.

Knows arrays in packets' order, not the tables. Read docs/channels/extract.md first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Ints

GIVE = 0.1
"""Serialisation times by which one departure may exceed the model: a rate that is a hair too high must not
pile up."""


FOLLOWERS = 8
"""Observations that bound a departure from above; ACKs delayed by the hosts come in shorter runs."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What the modelled queue did, one element per transmission.

    `level` is the work waiting on arrival, in full-sized packets; `entered` whether the packet found room;
    `residual` how many more serialisation times than modelled passed before it was seen to leave (a lost
    packet: before the next one that was), NaN where the link was idle in between and so cannot tell;
    `group` numbers the losses that share one residual, -1 for the others.
    """

    level: Floats
    entered: Bools
    residual: Floats
    group: Ints
    late: float
    """Share of the departures that were seen later than a lone flow's queue can explain."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Input of the replay: send times, service times and observed departures (NaN where none), in ns from
    the first.

    `full` is the service time of a full-sized packet at each packet's time; `slack` how late a departure may seem;
    `anchor` marks departures that the model takes over as they are, as it lost its hold on the queue before them.
    """

    t: Floats
    service: Floats
    departed: Floats
    lost: Bools
    full: Floats
    slack: float
    anchor: Bools
    give: float = GIVE


def no_later_than_followers(departed: Floats, service: Floats, lost: Bools) -> Floats:
    """Take off departures what only their ACKs were late by.

    A FIFO serves one packet after the other: a packet has left before its follower's departure less the
    follower's serialisation. Looks FOLLOWERS observations ahead, so that an error of the rate does not add
    up.
    """
    seen = np.flatnonzero(~np.isnan(departed))
    if len(seen) == 0:
        return departed
    work = np.cumsum(np.where(lost, 0.0, service))[seen]
    ahead = np.concatenate((departed[seen] - work, np.full(FOLLOWERS, np.inf)))
    earliest = np.lib.stride_tricks.sliding_window_view(ahead, FOLLOWERS + 1).min(axis=1)
    bounded = departed.copy()
    bounded[seen] = earliest + work
    return bounded


def replay(arrivals: Arrivals, limit: float, alone: bool) -> Replay:
    """Run the FIFO; a lost packet enters if at most `limit` full-sized packets wait, a delivered one always
    did.

    An observed departure corrects the model downwards at any time, and upwards only by what losses may have
    added: later than that was the ACK's delay, not the queue's (unless the flow is not `alone` in it).
    """
    n = len(arrivals.t)
    level, entered, residual, group = [0.0] * n, [True] * n, [np.nan] * n, [-1] * n
    busy_until, members, groups, late, seen = -np.inf, list[int](), 0, 0, 0
    columns = (arrivals.t, arrivals.service, arrivals.departed, arrivals.lost, arrivals.full, arrivals.anchor)
    for k, (t, service, departed, lost, full, anchor) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        idle = busy_until <= t
        level[k] = waiting = 0.0 if idle else (busy_until - t) / full
        begins = t if idle else busy_until
        if lost:
            entered[k] = waiting <= limit
            members.append(k)
            if entered[k]:
                busy_until = begins + service
            continue
        modelled = begins + service
        if departed != departed:  # NaN: not seen to leave  # noqa: PLR0124
            busy_until = modelled
            continue
        refused = sum(1 for m in members if not entered[m]) if members else 0
        off = (departed - modelled) / full if waiting > 0.7 else np.nan
        for m in members or (k,):
            residual[m] = off
        if members:
            for m in members:
                group[m] = groups
            groups, members = groups + 1, []
        latest = modelled + (refused + arrivals.give) * full
        seen += 1
        late += not anchor and departed > latest + arrivals.slack
        if anchor or not alone:
            latest = departed
        busy_until = departed if departed < latest else latest
        busy_until = max(busy_until, t + 0.5 * service)
    return Replay(np.array(level), np.array(entered), np.array(residual), np.array(group), late / max(seen, 1))


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The level above which packets were lost: the limit of the queue, in packets waiting besides the one
    in service."""

    limit: float
    low: float
    high: float
    losses_above: int
    packets_above: int
    gain: float


def ceiling(level: Floats, lost: Bools, gap: Floats, usable: Bools) -> Ceiling | None:
    """Find the level above which losses set in; None if losses do not depend on it.

    Maximum likelihood of two loss rates, below and above the level, with the gaps' evidence added: `gap` is
    the log likelihood ratio of queue against channel for each lost packet (0: says nothing).
    """
    order = np.flatnonzero(usable)[np.argsort(level[usable], kind="stable")]
    if not lost[order].any():
        return None
    flags, heights = lost[order].astype(np.float64), level[order]
    n, total = len(order), float(flags.sum())
    below_losses = np.insert(np.cumsum(flags), 0, 0.0)[:-1]
    below = np.arange(n, dtype=np.float64)
    above_losses, above = total - below_losses, n - below
    score = _binomial(below_losses, below) + _binomial(above_losses, above) - _binomial(total, float(n))
    told = np.where(lost[order], gap[order], 0.0)
    score = score + np.cumsum(told[::-1])[::-1]
    candidates = np.flatnonzero((flags > 0) & (above_losses / above > 2 * total / n))
    candidates = candidates[above_losses[candidates] >= 0.2 * above[candidates]]
    if not len(candidates):
        return None
    best = int(candidates[np.argmax(score[candidates])])
    if score[best] < MIN_GAIN:
        return None
    delivered_below = heights[:best][flags[:best] == 0]
    under = float(delivered_below.max()) if len(delivered_below) else 0.0
    near = heights[best]
    return Ceiling(
        limit=float(near - min(0.25, 0.5 * max(0.0, near - under))),
        low=min(under, float(near)),
        high=float(np.median(heights[best:][flags[best:] > 0])),
        losses_above=int(above_losses[best]),
        packets_above=int(above[best]),
        gain=float(score[best]),
    )


MIN_GAIN = 6.0
"""Least gain in log likelihood for which a ceiling is believed: odds of 400 to 1."""


def _binomial(hits: Floats | float, trials: Floats | float) -> Floats:
    """Log likelihood of `hits` in `trials` at their own rate."""
    hits, trials = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    rate = np.clip(hits / np.maximum(trials, 1.0), 1e-12, 1 - 1e-12)
    return np.asarray(hits * np.log(rate) + (trials - hits) * np.log1p(-rate))
