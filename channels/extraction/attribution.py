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
from hindflight.channels.extraction.bottleneck import behind_a_hole
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Delivery, Ints
from hindflight.channels.extraction.link import Link, left_queue_ns, one_way_ns, served_behind_breaks

NONE, CHANNEL, QUEUE, OUTAGE = range(4)
"""Codes of `Attribution.cause`."""

MIN_OUTAGE_PKTS = 3
MANY_PKTS = 10
MIN_OUTAGE_NS = 200_000_000
"""Minimum length of an outage, in packets and in time; two packets are enough where the path changed across them.

A link that breaks also loses packets in flight, so the serialisation of what it loses takes longer than the one-way
delay; fewer than MANY_PKTS must spread over a round trip. A full queue delivers what it holds, so it does not lose
every packet for that long. Deviation: no standard separates a burst of losses from an outage; bursts of a
Gilbert-Elliott channel with a mean of 8 packets stay below 0.1 s at the rates of interest.
"""

PASSING_SHARE = 0.2
"""Packets of other traffic that pass during a run of losses, per loss, from which the link is not broken: some of them
may be lost unseen."""

SILENT_ACKS = 2
"""ACKs in a row that were lost with the data behind them, from which the link lost both: it was broken. One may be lost
alone, or wait for a timer. Behind a queue that was not full fewer are enough, where so few are missing elsewhere that
fewer than UNLIKELY runs of losses would meet them."""

ACK_EVERY = 2
"""Full-sized packets for which a receiver sends at least one ACK (RFC 1122 §4.2.3.2); one that reports more follows one
that was lost, or is a stretch ACK."""

ONE_WAY_RUNS = 2
"""Length of a run of losses, in those that no burst has, from which the link broke although ACKs came through: it may
have broken in one direction only."""

UNLIKELY = 0.02
"""Expected number of bursts below which a run of losses is none."""

KNOWN_LOG_ODDS = 2.2
"""Log odds above which a cause counts as known: 9 to 1."""

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
    gaps, noise = _gap_odds(link, blurred), _noise_pkts(delivery, link, blurred)
    odds[lost] = _agreeing(_level_odds(delivery, link, noise), gaps, link.replay.group, link.base.spans)[lost]
    odds += gaps
    cause = np.where(lost, np.where(odds > 0, QUEUE, CHANNEL), NONE).astype(np.int8)
    # Where the rate has a lower bound only, the queue was no longer than modelled, so it may not have been full.
    open_levels = lost & link.bounded & (odds > -KNOWN_LOG_ODDS)
    known = delivery.observed & ~delivery.undecided & ~open_levels & (~lost | (np.abs(odds) >= KNOWN_LOG_ODDS))
    outages, doubtful = _outages(delivery, link, cause)
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


def _level_odds(delivery: Delivery, link: Link, noise: float) -> Floats:
    """Return the log odds of queue against channel from the queue level that each packet met.

    A full queue always drops; the channel loses with the probability observed below the ceiling, higher within a burst.
    """
    level, ceiling = link.replay.level, link.ceiling
    if ceiling is None:
        # Losses do not depend on the level: the queue never filled, or is very short.
        maximum = float(np.max(level[~delivery.lost & delivery.observed], initial=0.0))
        return np.where((level < 0.8 * maximum) | (maximum < 3), -MAX_LEVEL_LOG_ODDS, -1.5)
    full = -np.log1p(np.exp(np.clip((ceiling.limit - level) / noise, -50, 50)))
    clearly_below = level < ceiling.limit - 3 * max(1.0, noise)
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


def _noise_pkts(delivery: Delivery, link: Link, blurred: npt.NDArray[np.bool_]) -> float:
    """Return the standard error of the queue level that a packet met."""
    noise = SHARED_NOISE_PKTS
    if link.unshared:
        noise = max(LEVEL_NOISE_PKTS, 1.4826 * float(np.median(np.abs(_jitter(link, blurred)))))
    if link.ceiling is None:
        return noise
    limit, arrived = link.ceiling.limit, ~delivery.lost & ~delivery.undecided & delivery.observed
    # What undecided packets make of a level is no error of measurement, and the limit does not come from such levels.
    over = link.replay.level[arrived & link.all_dropped.exact & (link.replay.level > limit)] - limit
    return max(noise, 1.4826 * float(np.median(over))) if len(over) else noise


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


@dataclass(frozen=True, slots=True)
class _Run:
    """Losses in a row: first and last packet, how many, and the packet delivered next (None: none was).

    `behind`: most of them were not the queue's; `passed`: packets of other traffic that were sent meanwhile. `up_ns`,
    `first_ns`, `last_ns`, `next_ns`: when the last packet before, the first and the last of the run, and the next one
    left the queue; `way_ns` is the one-way delay, `next_way_ns` that of the next one. `answers` are the ACKs that came
    from the time on at which the first loss would have arrived until that at which the last one left, `answers_later`
    until that at which it would have arrived: a link that is broken passes none. `silent`: whether the ACKs of the
    packets before the run were lost, too; `unanswered`: whether those were that were to come while what the run lost
    was to arrive. `moved`: rate or delay of the link changed between the packets timed before and after it: a handover
    interrupts a link, and a burst would meet one by chance only.
    """

    first: int
    last: int
    count: int
    following: int | None
    behind: bool
    passed: int
    up_ns: float
    first_ns: float
    last_ns: float
    next_ns: float
    way_ns: float
    next_way_ns: float
    service_ns: float
    answers: int
    answers_later: int
    silent: bool
    unanswered: bool
    moved: bool


def _outages(
    delivery: Delivery, link: Link, cause: npt.NDArray[np.int8]
) -> tuple[tuple[tuple[int, int, int | None], ...], list[_Run]]:
    """Return runs of losses without a delivery that last longer than a queue or a burst can, and those that last as
    long but that a burst may have, too."""
    left_ns = left_queue_ns(delivery, link)
    unanswered = _unanswered(delivery, link, left_ns)
    passing_ns = np.sort(left_ns[~delivery.lost & ~unanswered & (delivery.size_bytes > delivery.ack_bytes)])
    every = _runs(delivery, link, left_ns, (cause, unanswered))
    # Other traffic that passed meanwhile shows that the link did.
    runs = [run for run in every if run.count > 1 and run.passed <= PASSING_SHARE * run.count]
    bursts = _bursts(every)
    least = _least_run([run.count for run in bursts])
    found: list[tuple[int, int, int | None]] = []
    doubtful: list[_Run] = []
    for i, run in enumerate(runs):
        following = runs[i + 1] if i + 1 < len(runs) else None
        if found and run.first <= found[-1][1]:
            continue
        possible = _is_outage(delivery, run, run.count) or _unwatched(run)
        if following is not None and _one_break(run, following) and _is_too_long((run, following), bursts):
            found.append((run.first, following.last, following.following))
        elif _is_outage(delivery, run, least) or _arrived_in_outage(run, least, passing_ns) or (possible and run.moved):
            found.append((run.first, run.last, run.following))
        elif possible:
            doubtful.append(run)
    return tuple(found), doubtful


def _is_too_long(parts: Sequence[_Run], bursts: Sequence[_Run]) -> bool:
    """Return whether runs of losses are too long together for a burst, by the bursts that they are not."""
    others = [burst.count for burst in bursts if burst not in parts]
    return sum(part.count for part in parts) >= _least_run(others)


def _bursts(every: Sequence[_Run]) -> list[_Run]:
    """Return the runs of losses that bursts of the channel make, whose lengths are taken as geometric.

    Runs whose ACKs were lost, too, and those across which the path changed are none; nor is the longest as long as it
    is too long for the others.
    """
    left = sorted((run for run in every if run.behind and not run.silent and not run.moved), key=lambda run: run.count)
    while left and left[-1].count >= _least_run([run.count for run in left[:-1]]):
        left.pop()
    return left


def _runs(
    delivery: Delivery, link: Link, left_ns: Floats, judged_so_far: tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]
) -> list[_Run]:
    """Return all losses in a row; given their causes so far, and the packets that are `_unanswered`."""
    cause, unanswered = judged_so_far
    own = np.flatnonzero(delivery.observed & ~unanswered)
    edges = np.diff(np.concatenate(([0], delivery.lost[own].astype(np.int8), [0])))
    passed = np.cumsum(~delivery.observed & (delivery.size_bytes > delivery.ack_bytes))
    minimum_acks = SILENT_ACKS * _packets_per_ack(delivery)
    timed = np.flatnonzero(delivery.prompt)
    spans = list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))
    behind = [bool(np.mean(cause[own[start:stop]] == CHANNEL) >= 0.5) for start, stop in spans]
    duplicates = _with_duplicates(delivery, link, left_ns)
    silences = [
        _silent(delivery, own[:start], (left_ns, one_way_ns(delivery, link, int(own[start]))), duplicates)
        for start, _ in spans
    ]
    judged = [
        (count, own[max(start - 1, 0) : stop + 1])
        for (start, stop), one, count in zip(spans, behind, silences, strict=True)
        if one and stop - start >= MIN_OUTAGE_PKTS
    ]
    minimum = _minimum_silent(delivery, link, left_ns, judged)
    found = []
    for (start, stop), is_behind, silent in zip(spans, behind, silences, strict=True):
        first, last = int(own[start]), int(own[stop - 1])
        following = int(own[stop]) if stop < len(own) else None
        way_ns = one_way_ns(delivery, link, first)
        # The first loss left no sooner than its serialisation after the packet before, as its ACK shows.
        shown_ns = link.departed_ns[own[max(start - 1, 0)]] + float(delivery.t_ns[0]) + link.service_ns[first]
        arrives_ns = float(np.fmax(left_ns[first], shown_ns) + way_ns + link.full_ns[first] / 2)
        during = arrives_ns, float(left_ns[last] + way_ns)
        later = _answers(delivery, *during)
        found.append(
            _Run(
                first,
                last,
                stop - start,
                following,
                behind=is_behind,
                passed=int(passed[last] - passed[first]),
                up_ns=float(left_ns[own[start - 1]] if start else left_ns[first]),
                first_ns=float(left_ns[first]),
                last_ns=float(left_ns[last]),
                next_ns=float(left_ns[last] if following is None else left_ns[following]),
                way_ns=way_ns,
                next_way_ns=way_ns if following is None else one_way_ns(delivery, link, following),
                service_ns=float(link.full_ns[first]),
                answers=_answers(delivery, arrives_ns, left_ns[last]),
                answers_later=later,
                silent=silent >= (minimum if is_behind else minimum_acks),
                unanswered=later == 0 and _due(delivery, own[:start], left_ns + 2 * way_ns, during) >= minimum_acks,
                moved=_moved(delivery, link, timed, (first, last)),
            )
        )
    return found


def _moved(delivery: Delivery, link: Link, timed: Ints, ends: tuple[int, int]) -> bool:
    """Return whether a level of the delay or a state of the rate begins behind the packet timed before a run of losses,
    and no later than the next one timed behind it, in so short a time that no step would lie there by chance.

    `timed` are the packets that are timed, `ends` the first and the last loss of the run.
    """
    begin, end = np.searchsorted(timed, ends)
    if not begin or end == len(timed):
        return False
    before, after = int(timed[begin - 1]), int(timed[end])
    share = (delivery.t_ns[after] - delivery.t_ns[before]) / (delivery.t_ns[-1] - delivery.t_ns[0])
    levels, states = link.base.spans[1:], link.rate.states[1:]
    if share * max(len(levels), len(states)) > np.exp(-KNOWN_LOG_ODDS):
        return False
    acked_ns = delivery.acked_ns[[before, after]]
    moved = any(before < start <= after for start, _, _ in levels)
    return moved or any(acked_ns[0] < start <= acked_ns[1] for start, _, _ in states)


def _unanswered(delivery: Delivery, link: Link, left_ns: Floats) -> npt.NDArray[np.bool_]:
    """Mark the undecided packets that no ACK answers: their octets were not acknowledged before the capture ended, or
    no ACK at all came when theirs was due. Others may have arrived, so no run of losses goes on over them."""
    due_ns = left_ns + link.base.per_packet_ns
    edges = np.searchsorted(delivery.ack_t_ns, (due_ns - link.full_ns, due_ns + link.full_ns + _queue.LATE_ACK_NS))
    return np.asarray(delivery.undecided & ((delivery.covered_ns < 0) | (edges[1] == edges[0])))


def _one_break(early: _Run, late: _Run) -> bool:
    """Return whether one outage, shorter than the path, made two runs of losses: it lost what arrived in it, and then
    what left in it; what was on the way all the time arrived between them."""
    slack_ns = 2 * early.service_ns
    begins = max(early.up_ns + early.way_ns, late.up_ns), min(early.first_ns + early.way_ns, late.first_ns)
    ends = max(early.last_ns + early.way_ns, late.last_ns), min(early.next_ns + early.way_ns, late.next_ns)
    lasted_ns = (sum(ends) - sum(begins)) / 2
    return begins[0] <= begins[1] + slack_ns and ends[0] <= ends[1] + slack_ns and lasted_ns >= MIN_OUTAGE_NS


def _packets_per_ack(delivery: Delivery) -> float:
    """Return how many packets an ACK usually reports."""
    own = delivery.observed & ~delivery.lost & ~delivery.undecided
    return max(1.0, float(np.ceil(own.sum() / max(np.sum(delivery.prompt), 1) - 0.5)))


def _answers(delivery: Delivery, since_ns: float, until_ns: float) -> int:
    """Return how many ACKs arrived within a time."""
    begin, end = np.searchsorted(delivery.ack_t_ns, (since_ns, until_ns))
    return max(0, int(end - begin))


def _due(delivery: Delivery, before: Ints, due_ns: Floats, span_ns: tuple[float, float]) -> int:
    """Return how many packets of `before` were delivered and had their ACKs due within a time."""
    answered = before[~delivery.lost[before] & (due_ns[before] >= span_ns[0]) & (due_ns[before] < span_ns[1])]
    return len(answered)


def _with_duplicates(delivery: Delivery, link: Link, left_ns: Floats) -> npt.NDArray[np.bool_]:
    """Mark the packets behind a hole for which an ACK came when it was due. Without SACK it is a duplicate, which
    covers nothing."""
    due_ns = left_ns + link.base.per_packet_ns
    edges = np.searchsorted(delivery.ack_t_ns, (due_ns - link.full_ns / 2, due_ns + link.full_ns / 2))
    return np.asarray(behind_a_hole(delivery) & (edges[1] > edges[0]))


def _silent(delivery: Delivery, before: Ints, timing: tuple[Floats, float], duplicates: npt.NDArray[np.bool_]) -> int:
    """Return how many packets in a row, the last ones that were delivered before a run of losses, have no ACK of their
    own: it came later than one round trip after the next packet left, and no duplicate came in time."""
    left_ns, way_ns = timing
    count = 0
    for k in before[::-1].tolist():
        covered = delivery.covered_ns[k] < left_ns[k] + 3 * way_ns + _queue.LATE_ACK_NS
        if delivery.lost[k] or covered or duplicates[k]:
            break
        count += 1
    return count


def _minimum_silent(delivery: Delivery, link: Link, left_ns: Floats, runs: Sequence[tuple[int, Ints]]) -> float:
    """Return how many packets in a row without an ACK of their own show that a link lost the ACKs, too, with the losses
    behind them: as many as fewer than UNLIKELY runs would meet by chance.

    `runs` are the number of them before each run, and the run with the packet before it and the next one.
    """
    per_ack = _packets_per_ack(delivery)
    sure = SILENT_ACKS * per_ack
    open_runs = sum(count < sure for count, _ in runs)
    around = np.concatenate([np.empty(0, dtype=np.int64), *(packets for _, packets in runs)])
    missing = _missing_share(delivery, link, left_ns, around)
    return next((1 + (acks - 1) * per_ack for acks in (1, 2) if open_runs * missing**acks < UNLIKELY), sure)


def _missing_share(delivery: Delivery, link: Link, left_ns: Floats, around: Ints) -> float:
    """Return the share of ACKs that are missing: those after which one reports more than a receiver waits for, and
    those that came as late as `_silent` counts although nothing was lost meanwhile. One more is assumed.

    The ACKs of the packets `around` runs of losses are left out: a break makes them report more, or come late.
    """
    elsewhere = ~np.isin(delivery.covered_ns, delivery.covered_ns[around])
    arrived = np.flatnonzero(delivery.observed & ~delivery.lost & (delivery.covered_ns >= 0) & elsewhere)
    covered_ns = delivery.covered_ns[arrived]
    _, reported = np.unique(covered_ns, return_counts=True)
    skipped = np.sum(reported > max(ACK_EVERY, _packets_per_ack(delivery)))
    losses = np.concatenate(([0], np.cumsum(delivery.lost)))
    alone = losses[np.searchsorted(delivery.t_ns, covered_ns)] == losses[arrived]
    late = np.sum(alone & (covered_ns >= (left_ns + 1.5 * link.base.per_packet_ns)[arrived] + _queue.LATE_ACK_NS))
    return float((skipped + late + 1) / (len(reported) + 2))


def _is_outage(delivery: Delivery, run: _Run, least: int) -> bool:
    """Return whether a run of losses is neither a burst nor a full queue; `least` is the length that no burst has."""
    sent_ns = int(delivery.t_ns[run.last] - delivery.t_ns[run.first])
    # The path may be another one behind a break.
    way_ns = min(run.way_ns, run.next_way_ns)
    lasted_ns = (run.last_ns + run.next_ns - run.up_ns - run.first_ns) / 2 - way_ns
    passes = run.answers and run.behind and run.count < ONE_WAY_RUNS * least
    if run.count < MIN_OUTAGE_PKTS or passes or run.last_ns - run.first_ns <= way_ns:
        return False
    if run.silent or run.count < least:
        return run.silent and lasted_ns > 0
    few = run.count < MANY_PKTS
    if lasted_ns >= MIN_OUTAGE_NS and sent_ns >= (max(MIN_OUTAGE_NS, 2 * way_ns) if few else MIN_OUTAGE_NS):
        return True
    return run.behind and not few and lasted_ns >= MIN_OUTAGE_NS / 2


def _unwatched(run: _Run) -> bool:
    """Return whether a run of losses may be an outage for all that the capture shows: nothing was sent for so long
    before it or within it that the link may have been down, and nothing arrived since."""
    before_ns = run.first_ns - run.up_ns - run.way_ns if run.count >= MIN_OUTAGE_PKTS else 0.0
    return run.behind and max(before_ns, run.last_ns - run.first_ns - run.way_ns) >= MIN_OUTAGE_NS and not run.answers


def _arrived_in_outage(run: _Run, least: int, passing_ns: Floats) -> bool:
    """Return whether a run of losses was on the way when the link broke, for less time than the way takes.

    Nothing that left the queue then passed, nor any ACK that was due while the losses would have arrived, unless the
    run is so long that the link broke in one direction. The run is longer than a burst, or ACKs are missing: those of
    the packets before it, or some that were due.
    """
    passes = run.answers_later and run.count < ONE_WAY_RUNS * least
    if run.count < MIN_OUTAGE_PKTS or passes:
        return False
    lasted_ns = (run.last_ns + run.next_ns - run.up_ns - run.first_ns) / 2
    edges = np.searchsorted(passing_ns, (run.first_ns + run.way_ns, run.last_ns + run.way_ns))
    long = run.unanswered or run.silent or run.count >= least
    return bool(run.behind and long and lasted_ns >= MIN_OUTAGE_NS and edges[0] == edges[1])


def _least_run(bursts: Sequence[int]) -> int:
    """Return the length that fewer than UNLIKELY of as many runs reach whose lengths are geometric as `bursts`.

    The probability that a burst goes on has a Beta distribution, before any is seen with a mean of 1/3.
    """
    goes_on, ends = 1 + sum(bursts) - len(bursts), 2 + len(bursts)
    length, share = 1, float(len(bursts) + 1)
    while share >= UNLIKELY:
        share *= (goes_on + length - 1) / (goes_on + ends + length - 1)
        length += 1
    return length
