"""Runs of losses in a row that only a broken link explains: too long for a full queue, and for the channel's bursts.

Reads arrays, not tables; `attribution` decides what of such a run the outage lost. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hindflight.channels.extraction import queue as _queue
from hindflight.channels.extraction.bottleneck import behind_a_hole
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Delivery, Ints, runs_of
from hindflight.channels.extraction.link import Link, left_queue_ns, one_way_ns

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
"""Expected number of bursts as long as a run of losses below which the run is no burst."""

KNOWN_LOG_ODDS = 2.2
"""Log odds above which a cause counts as known: 9 to 1."""


@dataclass(frozen=True, slots=True)
class Run:
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


def outage_runs(
    delivery: Delivery, link: Link, by_channel: Bools
) -> tuple[tuple[tuple[int, int, int | None], ...], list[Run]]:
    """Return runs of losses without a delivery that last longer than a queue or a burst can, and those that last as
    long but that a burst may have, too. `by_channel` marks the losses that the queue did not make."""
    left_ns = left_queue_ns(delivery, link)
    unanswered = _unanswered(delivery, link, left_ns)
    passing_ns = np.sort(left_ns[~delivery.lost & ~unanswered & (delivery.size_bytes > delivery.ack_bytes)])
    every = _runs(delivery, link, left_ns, (by_channel, unanswered))
    # Other traffic that passed meanwhile shows that the link did.
    runs = [run for run in every if run.count > 1 and run.passed <= PASSING_SHARE * run.count]
    bursts = _bursts(every)
    least = _least_run([run.count for run in bursts])
    found: list[tuple[int, int, int | None]] = []
    doubtful: list[Run] = []
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


def _is_too_long(parts: Sequence[Run], bursts: Sequence[Run]) -> bool:
    """Return whether runs of losses are too long together for a burst, by the bursts that they are not."""
    others = [burst.count for burst in bursts if burst not in parts]
    return sum(part.count for part in parts) >= _least_run(others)


def _bursts(every: Sequence[Run]) -> list[Run]:
    """Return the runs of losses that bursts of the channel make, whose lengths are taken as geometric.

    Runs whose ACKs were lost, too, and those across which the path changed are none; nor is the longest as long as it
    is too long for the others.
    """
    left = sorted((run for run in every if run.behind and not run.silent and not run.moved), key=lambda run: run.count)
    while left and left[-1].count >= _least_run([run.count for run in left[:-1]]):
        left.pop()
    return left


def _runs(delivery: Delivery, link: Link, left_ns: Floats, judged_so_far: tuple[Bools, Bools]) -> list[Run]:
    """Return all losses in a row, given those that the queue did not make, and the packets that are `_unanswered`."""
    by_channel, unanswered = judged_so_far
    own = np.flatnonzero(delivery.observed & ~unanswered)
    passed = np.cumsum(~delivery.observed & (delivery.size_bytes > delivery.ack_bytes))
    minimum_acks = SILENT_ACKS * _packets_per_ack(delivery)
    timed = np.flatnonzero(delivery.prompt)
    starts, stops = runs_of(delivery.lost[own])
    spans = list(zip(starts.tolist(), stops.tolist(), strict=True))
    behind = [bool(np.mean(by_channel[own[start:stop]]) >= 0.5) for start, stop in spans]
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
            Run(
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
    levels, states = link.base.changes, link.rate.states[1:]
    if share * max(len(levels), len(states)) > np.exp(-KNOWN_LOG_ODDS):
        return False
    acked_ns = delivery.acked_ns[[before, after]]
    moved = any(before < start <= after for start in levels)
    return moved or any(acked_ns[0] < start <= acked_ns[1] for start, _, _ in states)


def _unanswered(delivery: Delivery, link: Link, left_ns: Floats) -> Bools:
    """Mark the undecided packets that no ACK answers: their octets were not acknowledged before the capture ended, or
    no ACK at all came when theirs was due. Others may have arrived, so no run of losses goes on over them."""
    due_ns = left_ns + link.base.per_packet_ns
    edges = np.searchsorted(delivery.ack_t_ns, (due_ns - link.full_ns, due_ns + link.full_ns + _queue.LATE_ACK_NS))
    return np.asarray(delivery.undecided & ((delivery.covered_ns < 0) | (edges[1] == edges[0])))


def _one_break(early: Run, late: Run) -> bool:
    """Return whether one outage, shorter than the path, made two runs of losses: it lost what arrived in it, and then
    what left in it; what was on the way all the time arrived between them."""
    slack_ns = 2 * early.service_ns
    begins = max(early.up_ns + early.way_ns, late.up_ns), min(early.first_ns + early.way_ns, late.first_ns)
    ends = max(early.last_ns + early.way_ns, late.last_ns), min(early.next_ns + early.way_ns, late.next_ns)
    lasted_ns = (sum(ends) - sum(begins)) / 2
    many = early.behind and late.behind and early.count + late.count >= MANY_PKTS
    least_ns = MIN_OUTAGE_NS / 2 if many else MIN_OUTAGE_NS
    return begins[0] <= begins[1] + slack_ns and ends[0] <= ends[1] + slack_ns and lasted_ns >= least_ns


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


def _with_duplicates(delivery: Delivery, link: Link, left_ns: Floats) -> Bools:
    """Mark the packets behind a hole for which an ACK came when it was due. Without SACK it is a duplicate, which
    covers nothing."""
    due_ns = left_ns + link.base.before_ns()
    edges = np.searchsorted(delivery.ack_t_ns, (due_ns - link.full_ns / 2, due_ns + link.full_ns / 2))
    return np.asarray(behind_a_hole(delivery) & (edges[1] > edges[0]))


def _silent(delivery: Delivery, before: Ints, timing: tuple[Floats, float], duplicates: Bools) -> int:
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


def lost_acks_due_ns(delivery: Delivery, link: Link, left_ns: Floats, before: Ints) -> float:
    """Return when the last ACK was due of those that are missing, given the packets delivered before a break in both
    directions: it was broken by then. Infinite where fewer than SILENT_ACKS in a row are missing.

    A receiver answers ACK_EVERY packets at once; what comes after these may wait for its timer.
    """
    if not len(before):
        return np.inf
    per_ack = int(max(ACK_EVERY, _packets_per_ack(delivery)))
    way_ns = one_way_ns(delivery, link, int(before[-1]))
    count = _silent(delivery, before, (left_ns, way_ns), _with_duplicates(delivery, link, left_ns))
    if count < SILENT_ACKS * per_ack:
        return np.inf
    last = before[len(before) - count % per_ack - 1]
    # Where the path changed with the break, they were on their way back on the one before.
    return float(left_ns[last] + link.base.before_ns()[last])


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


def _is_outage(delivery: Delivery, run: Run, least: int) -> bool:
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


def _unwatched(run: Run) -> bool:
    """Return whether a run of losses may be an outage for all that the capture shows: nothing was sent for so long
    before it or within it that the link may have been down, and nothing arrived since."""
    before_ns = run.first_ns - run.up_ns - run.way_ns if run.count >= MIN_OUTAGE_PKTS else 0.0
    return run.behind and max(before_ns, run.last_ns - run.first_ns - run.way_ns) >= MIN_OUTAGE_NS and not run.answers


def _arrived_in_outage(run: Run, least: int, passing_ns: Floats) -> bool:
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
