"""Replays the bottleneck's drop-tail queue over the captured send times, corrected by the departures that ACKs show.

Reads arrays in packet order, not tables. See docs/channels/extract.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Ints

LEEWAY = 0.1
"""Serialisation times by which a departure may exceed the model, so that the error of a rate does not accumulate. It
moves the model; `Arrivals.slack` says when a departure is late, and moves nothing."""


FOLLOWERS = 8
"""Number of later observations that bound a departure from above; hosts delay shorter runs of ACKs."""


LATE_ACK_NS = 50_000_000
"""Time that a receiver may wait with an ACK (40 ms in Linux), and some of its host."""


@dataclass(frozen=True, slots=True)
class Replay:
    """State of the modelled queue, one element per transmission.

    `level` is the work waiting on arrival, in full-sized packets, and `wait_ns` the time that it takes; `entered` is
    whether the packet entered the queue;
    `residual` is how many more serialisation times than modelled passed before its departure was observed (for a lost
    packet: that of the next observed packet), NaN if the link was idle in between; `group` numbers losses that share
    one residual, -1 for the others.
    """

    level: Floats
    wait_ns: Floats
    entered: Bools
    residual: Floats
    group: Ints
    late: float
    """Share of departures observed later than an unshared queue explains."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Input of the replay: send times, service times and observed departures (NaN: none), in ns from the first.

    `full` is the service time of a full-sized packet at each time; `slack` is the tolerance of a departure; `anchor`
    marks departures that reset the model, because it lost track of the queue before them. `undecided` marks packets of
    which it is not known whether they arrived. `most` is the longest service time: what waited when the link broke may
    have been served at the rate behind the break.
    """

    t: Floats
    service: Floats
    departed: Floats
    lost: Bools
    undecided: Bools
    full: Floats
    slack: float
    anchor: Bools
    most: Floats
    leeway: float = LEEWAY


def bound_by_followers(departed: Floats, service: Floats, absent: Bools) -> Floats:
    """Reduce observed departures by the delay of their ACKs.

    A FIFO serves packets in order: a packet left before its follower's departure minus the follower's serialisation.
    `absent` marks the packets that need not have been served in between: those lost and those undecided.
    Looks FOLLOWERS observations ahead, so that an error of the rate does not accumulate.
    """
    seen = np.flatnonzero(~np.isnan(departed))
    if len(seen) == 0:
        return departed
    work = np.cumsum(np.where(absent, 0.0, service))[seen]
    ahead = np.concatenate((departed[seen] - work, np.full(FOLLOWERS, np.inf)))
    earliest = np.lib.stride_tricks.sliding_window_view(ahead, FOLLOWERS + 1).min(axis=1)
    bounded = departed.copy()
    bounded[seen] = earliest + work
    return bounded


def blurred(arrivals: Arrivals) -> Bools:
    """Mark the packets between two departures between which an undecided packet was sent: it may have used the link."""
    n, seen = len(arrivals.t), np.flatnonzero(~np.isnan(arrivals.departed))
    edges = np.concatenate(([-1], seen, [n - 1]))
    place = np.searchsorted(seen, np.arange(n))
    sent = np.concatenate(([0], np.cumsum(arrivals.undecided)))
    return np.asarray(sent[edges[place + 1] + 1] > sent[edges[place] + 1])


def replay(arrivals: Arrivals, limit: float, unshared: bool) -> Replay:
    """Simulate the FIFO. A lost packet enters if at most `limit` full-sized packets wait, so does an undecided one as
    long as the limit is not below 0; a delivered one always entered.

    Behind a packet that nothing follows while the link is busy, the receiver may have waited with its ACK: nothing
    after it shows when it really left. A rate that changes changes the time that the waiting packets take, not their
    number. An observed departure corrects the model downwards at any time, and upwards only
    by the service of losses that may have entered, and by how much longer that of those which entered may have taken: a
    later one is due to a delayed ACK, unless the queue is shared (`unshared` is false).
    """
    n = len(arrivals.t)
    level, entered, residual, group = [0.0] * n, [True] * n, [np.nan] * n, [-1] * n
    busy_until, members, groups, late, seen = -np.inf, list[int](), 0, 0, 0
    wait_ns = [0.0] * n
    # The rates that the queue is served at, as service times of a full-sized packet: that of the newest packets, of
    # which `work_ns` have entered, and the one before.
    full_ns = before_ns = work_ns = 0.0
    undecided = arrivals.undecided & np.isnan(arrivals.departed) & (limit >= 0)
    columns = (
        arrivals.t,
        arrivals.service,
        arrivals.departed,
        arrivals.lost,
        undecided,
        arrivals.full,
        arrivals.anchor,
        np.maximum(arrivals.most - arrivals.service, 0.0),
    )
    rows = [column.tolist() for column in columns]
    sent, slower = rows[0], rows[-1]
    for k, (t, service, departed, lost, unclear, full, anchor, _) in enumerate(zip(*rows, strict=True)):
        if full != full_ns:
            before_ns, full_ns, work_ns = full_ns or full, full, 0.0
        if busy_until <= t:
            waiting, begins = 0.0, t
        else:
            begins = busy_until
            wait_ns[k] = wait = busy_until - t
            newer_ns = min(wait, work_ns)
            level[k] = waiting = newer_ns / full_ns + (wait - newer_ns) / before_ns
        if lost:
            entered[k] = waiting <= limit
            members.append(k)
            if entered[k]:
                busy_until = begins + service
                work_ns += service
            continue
        if unclear and waiting > limit:
            entered[k] = False
            continue
        modelled = begins + service
        work_ns += service
        if departed != departed:  # NaN: not seen to leave  # noqa: PLR0124
            busy_until = modelled
            continue
        refused, longer_ns, off = 0, 0.0, (departed - modelled) / full if waiting > 0.7 else np.nan
        if members:
            for m in members:
                residual[m], group[m] = off, groups
                refused += not entered[m]
                longer_ns += slower[m] if entered[m] else 0.0
            groups, members = groups + 1, []
        else:
            residual[k] = off
        latest = modelled + (refused + arrivals.leeway) * full + longer_ns
        seen += 1
        followed = k + 1 < n and sent[k + 1] <= modelled
        late += not anchor and departed > latest + arrivals.slack + (0.0 if followed else LATE_ACK_NS)
        if anchor or not unshared:
            latest = departed
        busy_until = departed if departed < latest else latest
        busy_until = max(busy_until, t + 0.5 * service)
    return Replay(
        np.array(level),
        np.array(wait_ns),
        np.array(entered),
        np.array(residual),
        np.array(group),
        late / max(seen, 1),
    )


LEVEL_ERROR_PKTS = 0.5
"""Error of a level: a queue counts whole packets, and of the one in service a part is left."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The level above which packets were lost: the queue limit, in packets waiting, without the one in service.

    It lies between `low`, the fullest queue below that took a packet, and `refused`, the emptiest that did not; `high`
    is the median of the levels at which packets were lost. Where emptier queues refused packets, too, and fuller
    ones took some, levels are not exact: `contradicted` are the emptiest and the fullest such (infinite: none).
    """

    limit: float
    low: float
    refused: float
    high: float
    losses_above: int
    packets_above: int
    gain: float
    contradicted: tuple[float, float] = (np.inf, -np.inf)

    def interval(self, rate_share: float) -> tuple[float, float]:
        """Return the 95 % interval of the limit, given that of the rate as a share of it, which scales all levels."""
        error = LEVEL_ERROR_PKTS + self.limit * rate_share
        least, most = self.contradicted
        return max(0.0, min(self.low, least) - error), max(self.refused, most) + error


def ceiling(level: Floats, lost: Bools, gap: Floats, usable: Bools) -> Ceiling | None:
    """Return the level above which losses start; None if losses do not depend on the level.

    Maximum likelihood of two loss rates, below and above the level, with the evidence of the gaps added: `gap` is the
    log likelihood ratio of queue against channel for each lost packet (0: no evidence).
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
    known = np.where(lost[order], gap[order], 0.0)
    score = score + np.cumsum(known[::-1])[::-1]
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
        refused=float(near),
        high=float(np.median(heights[best:][flags[best:] > 0])),
        losses_above=int(above_losses[best]),
        packets_above=int(above[best]),
        gain=float(score[best]),
        contradicted=_contradicted(heights, flags > 0, known, best),
    )


def _contradicted(heights: Floats, lost: Bools, gap: Floats, best: int) -> tuple[float, float]:
    """Return the lowest level below `best` at which gaps show that the queue refused a packet, and the highest one at
    which it took one; infinite, the wrong way round, where none did.

    A queue refuses none below its limit and all above. As many as levels and gaps may be wrong about are left out: gaps
    about one loss by the channel in GAP_ODDS, levels about a packet at either end of a 95 % interval.
    """
    below, above = heights[:best], heights[best:]
    refused, taken = below[lost[:best] & (gap[:best] > 0)], above[~lost[best:]]
    spare = int(lost[:best].sum() / (1 + GAP_ODDS)), int(0.025 * len(above))
    least = float(refused[spare[0]]) if len(refused) > spare[0] else np.inf
    most = float(taken[-1 - spare[1]]) if len(taken) > spare[1] else -np.inf
    return least, most


GAP_ODDS = 20
"""Odds that a clear gap, or its clear absence, is right: those of a 95 % interval, rounded."""

MIN_GAIN = 6.0
"""Minimum gain in log likelihood of a ceiling: odds of 400 to 1."""


def _binomial(hits: Floats | float, trials: Floats | float) -> Floats:
    """Return the log likelihood of `hits` in `trials` at their own rate."""
    hits, trials = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    rate = np.clip(hits / np.maximum(trials, 1.0), 1e-12, 1 - 1e-12)
    return np.asarray(hits * np.log(rate) + (trials - hits) * np.log1p(-rate))
