"""Interval rows of a channel table: rate and delay over time, and outages.

Times are those at the link: when packets that are served then meet the state. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hindflight.channels.extraction.attribution import NONE, QUEUE, Attribution
from hindflight.channels.extraction.bottleneck import full_size
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Delivery
from hindflight.channels.extraction.link import (
    Link,
    left_behind_breaks_ns,
    left_queue_ns,
    one_way_ns,
    shown_left_ns,
)
from hindflight.channels.extraction.outage_runs import lost_acks_due_ns
from hindflight.channels.extraction.shown import Part, shown_delays

HOP = "bottleneck"
"""Name of the link that a capture shows."""


@dataclass(frozen=True, slots=True)
class _Outage:
    """The link passed packets until `last_up_ns` and from `next_up_ns` on (None: the capture ends in the outage).

    It lost all packets from `first_ns` to `last_ns`. The state in between is not known.
    """

    last_up_ns: int
    first_ns: int
    last_ns: int
    next_up_ns: int | None

    @property
    def begin_ns(self) -> int:
        """Assumed start: the middle of the unknown time."""
        return (self.last_up_ns + self.first_ns) // 2

    @property
    def end_ns(self) -> int:
        """Assumed end: the middle of the unknown time."""
        return self.last_ns if self.next_up_ns is None else (self.last_ns + self.next_up_ns) // 2

    @property
    def over_ns(self) -> int:
        """Time at which the outage is known to be over; its end if the capture ends in it."""
        return self.last_ns if self.next_up_ns is None else self.next_up_ns


@dataclass(frozen=True, slots=True)
class Steps:
    """When the rate and the delay of the link changed, and its outages, in order of time at the link.

    `left_ns` is when each packet left the queue; `end_ns` ends the last state. `unseen` are the times (start, end) in
    which the delay changed but nothing met the link for a round trip or longer.
    """

    left_ns: Floats
    rate_cuts: Sequence[int]
    delay_cuts: Sequence[int]
    outages: Sequence[_Outage]
    end_ns: int
    unseen: Sequence[tuple[int, int]] = ()

    def spans(self, origin_ns: int, edges: Sequence[int] = ()) -> list[tuple[int, int]]:
        """Return the times (start, end) between changes, from `origin_ns` on, divided at `edges`, too."""
        inner = {cut for cut in (*self.rate_cuts, *self.delay_cuts, *edges) if origin_ns < cut < self.end_ns}
        return list(pairwise(sorted({origin_ns, self.end_ns, *inner})))

    def part(self, t_ns: int) -> Part:
        """Return the level of the delay and the state of the rate at a time."""
        return _passed(self.delay_cuts, t_ns), _passed(self.rate_cuts, t_ns)


def steps_of(delivery: Delivery, link: Link, verdicts: Attribution) -> Steps:
    """Return the changes of the link at its own clock."""
    left_ns = left_queue_ns(delivery, link)
    outages = _outages(delivery, link, verdicts, left_ns)
    # The last loss may have left the queue after the last packet was sent.
    end = max([int(delivery.t_ns[-1]) + 1, *(outage.over_ns for outage in outages)])
    rate_cuts = _rate_cuts(delivery, link, left_ns, outages)
    delay_cuts = _delay_cuts(delivery, link, left_ns, outages)
    return Steps(left_ns, rate_cuts, delay_cuts, outages, end, _unseen(delivery, link, left_ns, outages))


def is_sure(link: Link) -> bool:
    """Return whether rate and delay are those of the link, and not of what else may have used it."""
    return link.unshared and link.rate.known and link.rate.steady


def interval_rows(delivery: Delivery, link: Link, verdicts: Attribution, origin_ns: int) -> list[dict[str, object]]:
    """Return rows of kind interval in order of time from `origin_ns` on: one per state, plus outages."""
    steps = steps_of(delivery, link, verdicts)
    # What the link was in an outage, and in a pause in which its delay changed, is not known.
    hidden = [*((outage.last_up_ns, outage.over_ns) for outage in steps.outages), *steps.unseen]
    rows: list[dict[str, object]] = []
    spans = steps.spans(origin_ns, [edge for span in hidden for edge in span])
    parts = [steps.part(t) for t, _ in spans]
    shown = shown_delays(delivery, link, parts)
    for (t, until), (level, state) in zip(spans, parts, strict=True):
        begun_ns, _, rate = link.rate.states[state]
        first, _, _ = link.base.spans[level]
        passing = not any(start <= t < end for start, end in hidden)
        rows.append(
            {
                "kind": "interval", "hop": HOP, "direction": delivery.direction, "t_ns": t, "end_ns": until,
                "lost": False, "cause": "none", "rate_bps": rate if link.rate.known else None,
                "delay_ns": round(one_way_ns(delivery, link, first)),
                "known": passing and is_sure(link) and begun_ns not in link.rate.bounds and (level, state) in shown,
            }
        )  # fmt: skip
    for outage in steps.outages:
        rows.extend(_outage_rows(delivery.direction, outage))
    return sorted(rows, key=lambda row: int(str(row["t_ns"])))


def _passed(cuts: Sequence[int], t_ns: int) -> int:
    return int(np.searchsorted(cuts, t_ns, side="right"))


def _rate_cuts(delivery: Delivery, link: Link, left_ns: Floats, outages: Sequence[_Outage]) -> list[int]:
    """Return when the first packet of each later rate state was served."""
    cuts = []
    for start, _, _ in link.rate.states[1:]:
        packet = int(np.argmax(delivery.acked_ns >= start))
        served = int(start - link.base.per_packet_ns[packet])
        cuts.append(_with_outage(delivery, packet, left_ns, outages, served))
    return cuts


def _delay_cuts(delivery: Delivery, link: Link, left_ns: Floats, outages: Sequence[_Outage]) -> list[int]:
    """Return when the first packet of each later delay level left the queue."""
    firsts = [first for first, _, _ in link.base.spans[1:]]
    return [_with_outage(delivery, first, left_ns, outages, int(left_ns[first])) for first in firsts]


def _unseen(delivery: Delivery, link: Link, left_ns: Floats, outages: Sequence[_Outage]) -> list[tuple[int, int]]:
    """Return the times from the arrival of the last packet timed before each change of the delay until the first one
    timed behind it left the queue, if that is a round trip or longer: the change may lie anywhere in it, unless it came
    with an outage."""
    found = []
    for first in link.base.changes:
        timed = np.flatnonzero(delivery.prompt[:first])
        if len(timed):
            before = int(timed[-1])
            way_ns = one_way_ns(delivery, link, before)
            since_ns = int(left_ns[before] + way_ns)
            until_ns = int(left_ns[first])
            broken = _outage_at(delivery, first, left_ns, outages, until_ns)
            if until_ns - since_ns >= 2 * way_ns and broken is None:
                found.append((since_ns, until_ns))
    return found


def _with_outage(delivery: Delivery, packet: int, left_ns: Floats, outages: Sequence[_Outage], at_ns: int) -> int:
    """Return when a path changed that was first seen at `packet`: at `at_ns`, or with an outage."""
    broken = _outage_at(delivery, packet, left_ns, outages, at_ns)
    return at_ns if broken is None else broken.begin_ns


def _outage_at(
    delivery: Delivery, packet: int, left_ns: Floats, outages: Sequence[_Outage], at_ns: int
) -> _Outage | None:
    """Return the outage with which a path changed that was first seen at `packet`: it began by `at_ns`, and since the
    packet timed before that one left the queue. A handover interrupts the link."""
    before = np.flatnonzero(delivery.prompt[:packet])
    since = left_ns[before[-1]] if len(before) else -np.inf
    return next((o for o in outages if since < o.begin_ns <= at_ns), None)


def _outages(delivery: Delivery, link: Link, verdicts: Attribution, left_ns: Floats) -> list[_Outage]:
    """Return the outages at the link's clock: the link breaks one delay after its first lost packet left the queue.

    Only a packet that is known to have arrived shows the link up before it, and behind it. Where the base round trip
    is not exact, no edge is: with a shorter one packets left the queue as much later, and arrived half as much later.
    """
    delivered = np.flatnonzero(_has_arrived(delivery, verdicts))
    behind_ns = left_behind_breaks_ns(delivery, link) if verdicts.outages else left_ns
    between_ns = np.minimum(left_ns, behind_ns), np.maximum(left_ns, behind_ns)
    found: list[_Outage] = []
    for first, last, following in verdicts.outages:
        way_before = _way_from_ns(delivery, link, left_ns, first)
        delay = _way_of_losses_ns(delivery, link, left_ns, (first, last, following))
        # What arrived over a longer way than that, past the break, shows the link up when it left the queue only.
        shown_after = delay if delay == way_before else 0
        before = delivered[delivered < first]
        # The queue level is an estimate, but outages cannot overlap.
        earlier = found[-1].over_ns if found else 0
        first_left_ns = _first_left_ns(delivery, link, (left_ns, verdicts), first)
        arrives_ns = first_left_ns + delay + _base_error_ns(link, first) / 2
        # The ACKs of what arrived before are lost, too, so the link was broken when they were due.
        due_ns = lost_acks_due_ns(delivery, link, left_ns, before) + _base_error_ns(link, first)
        if way_before > one_way_ns(delivery, link, first):
            # Those of packets that were under way when the path changed are due by neither path.
            due_ns = np.inf
        first_ns = max(earlier, int(min(arrives_ns, due_ns)))
        after = delivered[delivered > last]
        up = following if following is None or not len(after) else int(after[0])
        last_left_ns = _last_left_ns(delivery, link, (*between_ns, verdicts), (last, up))
        # What left it in a shorter time than the way takes was lost on the way: the outage ended with its arrival.
        arrives = delay if max(left_ns[last], last_left_ns) < first_ns else 0
        last_ns = max(first_ns, int(last_left_ns + arrives))
        last_up_ns = first_ns
        if len(before):
            off_ns = _base_error_ns(link, int(before[-1])) / 2 if shown_after else _left_error_ns(link, int(before[-1]))
            last_up_ns = int(left_ns[before[-1]] + shown_after - off_ns)
        last_up_ns = min(first_ns, max(earlier, last_up_ns, _last_answer_ns(delivery, first_ns, last_ns)))
        next_up_ns = None
        if up is not None:
            # What waited in the break may have left at the rate behind it: the ACK shows when the first one had left.
            # That one found the link up then if it left behind the break, and when it arrived if it was under way.
            up_after = arrives if left_ns[up] < last_ns else 0
            next_up_ns = max(last_ns, int(_latest_left_ns(delivery, link, (left_ns, behind_ns), up) + up_after))
        found.append(_over_either_way(_Outage(last_up_ns, first_ns, last_ns, next_up_ns), way_before - delay))
    return found


def _way_of_losses_ns(delivery: Delivery, link: Link, left_ns: Floats, run: tuple[int, int, int | None]) -> float:
    """Return the one-way delay by which an outage is timed, given its first and last loss and the packet behind.

    Behind a handover to a shorter way, what was lost in less time than the former one takes was sent into the break and
    has either way, or was under way on the former one. It was if the ACKs say so: some came after the break, by the
    shorter way, and none after it by the former one, and a link that is broken passes none.
    """
    first, last, following = run
    way_ns = _way_from_ns(delivery, link, left_ns, first)
    if following is None or left_ns[last] - left_ns[first] >= way_ns:
        return way_ns
    shorter_ns = min(way_ns, one_way_ns(delivery, link, following))
    begins_ns = (left_ns[first] + shorter_ns + _base_error_ns(link, first), left_ns[first] + way_ns)
    since, until, over = np.searchsorted(delivery.ack_t_ns, (*begins_ns, left_ns[last] + way_ns), side="right")
    return way_ns if since < until == over else shorter_ns


def _way_from_ns(delivery: Delivery, link: Link, left_ns: Floats, packet: int) -> float:
    """Return the one-way delay of what left the queue just before `packet`. The first ones timed on a shorter path may
    have been under way on the former one when it changed: then their round trip has the way of each, or more."""
    way_ns = one_way_ns(delivery, link, packet)
    level = link.base.level_of(packet)
    begun = link.base.spans[level][0]
    timed = begun + np.flatnonzero(delivery.prompt[begun:packet])
    if not level or not len(timed):
        return way_ns
    former_ns = one_way_ns(delivery, link, begun - 1)
    trips_ns = delivery.acked_ns[timed] - left_ns[timed]
    # Half of the difference between the way of each and twice the shorter one divides them.
    return former_ns if trips_ns.min() > (former_ns + 3 * way_ns) / 2 and former_ns > way_ns else way_ns


def _base_error_ns(link: Link, packet: int) -> float:
    """Return by how much the base round trip at `packet` may be off, at most by all of itself."""
    return min(link.base.error_ns[link.base.level_of(packet)], float(link.base.per_packet_ns[packet]))


def _left_error_ns(link: Link, packet: int) -> float:
    """Return by how much the time at which `packet` left the queue may be off: not at all if nothing waited."""
    return _base_error_ns(link, packet) if link.replay.wait_ns[packet] > 0 else 0.0


def _last_answer_ns(delivery: Delivery, first_ns: int, last_ns: int) -> int:
    """Return when the last ACK came before an outage, which passes none: then the link was up. 0 if one came while it
    was down, because then it broke in one direction only."""
    begin, end = np.searchsorted(delivery.ack_t_ns, (first_ns, last_ns), side="right")
    return int(delivery.ack_t_ns[begin - 1]) if 0 < begin == end else 0


def _over_either_way(outage: _Outage, longer_ns: float) -> _Outage:
    """Return an outage whose losses may have been under way for `longer_ns` more than assumed when the link broke: it
    may have begun as much later, unless the link was up again by then."""
    if outage.next_up_ns is None or outage.first_ns + longer_ns >= outage.next_up_ns:
        return outage
    first_ns = outage.first_ns + int(longer_ns)
    middle_ns = (outage.last_ns + first_ns) // 2
    # Where it may have begun later than it may have ended, no time is known to be in it.
    edges = (first_ns, outage.last_ns) if first_ns <= outage.last_ns else (middle_ns, middle_ns)
    return _Outage(outage.last_up_ns, *edges, outage.next_up_ns)


def _has_arrived(delivery: Delivery, verdicts: Attribution) -> Bools:
    """Mark the packets that are known to have arrived."""
    return np.asarray((verdicts.cause == NONE) & delivery.observed & ~delivery.undecided)


def _first_left_ns(delivery: Delivery, link: Link, found: tuple[Floats, Attribution], first: int) -> float:
    """Return when the first packet that an outage lost left the queue: behind the one before it, if that was delivered,
    at the rate of that time. Behind the outage the rate may be another one."""
    left_ns, verdicts = found
    entered = np.flatnonzero(verdicts.cause[:first] != QUEUE)
    if not len(entered) or not _has_arrived(delivery, verdicts)[entered[-1]]:
        return float(left_ns[first])
    last = int(entered[-1])
    service_ns = link.full_ns[last] * delivery.size_bytes[first] / full_size(delivery)
    return float(max(left_ns[last], delivery.t_ns[first]) + service_ns)


def _last_left_ns(
    delivery: Delivery, link: Link, found: tuple[Floats, Floats, Attribution], around: tuple[int, int | None]
) -> float:
    """Return from when on the last packet that an outage lost had left the queue, given it and the next one up.

    As modelled, at the rate before the outage or behind it, whichever is faster; or as an ACK shows: if the next one up
    waited, by the model at one of these rates and by the first ACK that times it, it did for the packet before it.
    """
    earliest_ns, latest_ns, verdicts = found
    last, up = around
    modelled_ns = float(earliest_ns[last]) - _left_error_ns(link, last)
    if up is None or not (link.unshared and delivery.observed.all()):
        return modelled_ns
    if np.any(verdicts.cause[last + 1 : up] != QUEUE) or latest_ns[up] - delivery.t_ns[up] < 2 * link.full_ns[up]:
        return modelled_ns
    return max(modelled_ns, _begun_ns(delivery, link, (earliest_ns, verdicts), up))


def _begun_ns(delivery: Delivery, link: Link, found: tuple[Floats, Attribution], up: int) -> float:
    """Return from when on the link served `up`, which waited, as the ACK of the first packet timed from it on shows, if
    all up to that one waited, too: each was served behind the one before. Minus infinity if the ACK does not show it.

    Where the path became shorter, they may have waited on the way instead, for what was sent over the former one.
    """
    earliest_ns, verdicts = found
    timed = up + np.flatnonzero(delivery.prompt[up:])[:1]
    if not len(timed) or not _has_arrived(delivery, verdicts)[up : timed[0] + 1].all():
        return -np.inf
    shown_by = int(timed[0])
    if shown_by >= link.base.spans[link.base.level_of(shown_by)][1]:
        return -np.inf  # Between two levels the base is not known.
    served = slice(up, shown_by + 1)
    left_ns = float(delivery.acked_ns[shown_by] - link.base.per_packet_ns[shown_by]) - _base_error_ns(link, shown_by)
    begun_ns = left_ns - np.cumsum(link.service_ns[served][::-1])[::-1]
    if np.any(begun_ns - delivery.t_ns[served] < link.full_ns[served]):
        return -np.inf
    arrived = np.flatnonzero(_has_arrived(delivery, verdicts)[:up])
    if len(arrived):
        before = int(arrived[-1])
        way_ns = one_way_ns(delivery, link, before)
        if link.base.level_of(before) == link.base.level_of(before + 1):
            way_ns = _way_from_ns(delivery, link, earliest_ns, before + 1)
        if earliest_ns[before] + way_ns > begun_ns[0] + one_way_ns(delivery, link, up):
            return -np.inf
    return float(begun_ns[0])


def _latest_left_ns(delivery: Delivery, link: Link, left_ns: tuple[Floats, Floats], packet: int) -> float:
    """Return by when a packet had left the queue: as modelled, at the rate before a break or behind it, or as its ACK
    shows, if that is later. That of the first packet behind a handover shows it, too, by the path behind."""
    modelled_ns, behind_ns = left_ns
    shown_left = shown_left_ns(delivery, link)[packet]
    latest_ns = max(modelled_ns[packet], min(behind_ns[packet], shown_left)) + _left_error_ns(link, packet)
    before = np.flatnonzero(delivery.prompt[:packet])
    if not delivery.prompt[packet] and len(before):
        # What waited before it may have left at the rate before, but had left when the next ACK came.
        waited_ns = (link.replay.level[packet] + 1) * link.full_ns[before[-1]]
        behind_wait_ns = behind_ns[packet] - delivery.t_ns[packet]
        slower = behind_ns[packet] > modelled_ns[packet]
        if np.isfinite(shown_left) and slower and behind_wait_ns >= 2 * link.full_ns[before[-1]]:
            # How much waited at a lower rate behind, the model does not show: that rate held from the break on.
            waited_ns = np.inf
        latest_ns = max(latest_ns, min(delivery.t_ns[packet] + waited_ns, shown_left))
    shown_ns = link.departed_ns[packet] + float(delivery.t_ns[0])
    if np.isnan(shown_ns) and delivery.prompt[packet]:
        shown_ns = float(delivery.acked_ns[packet] - link.base.per_packet_ns[packet]) + _base_error_ns(link, packet)
    return float(np.fmax(latest_ns, shown_ns))


def _outage_rows(direction: str, outage: _Outage) -> Iterator[dict[str, object]]:
    lasted = f"the outage lasted at least {(outage.last_ns - outage.first_ns) / 1e9:.3f} s"
    if outage.next_up_ns is None:
        lasted += "; the capture ends in it"
    else:
        lasted += f", at most {(outage.next_up_ns - outage.last_up_ns) / 1e9:.3f} s"
    for t, until, known, evidence in (
        (outage.begin_ns, outage.first_ns, False, "between the last packet delivered and the first one lost"),
        (
            outage.first_ns,
            outage.last_ns,
            True,
            f"all packets behind the queue were lost; {lasted}",
        ),
        (outage.last_ns, outage.end_ns, False, "between the last packet lost and the next one delivered"),
    ):
        if t < until:
            yield {
                "kind": "interval", "hop": HOP, "direction": direction, "t_ns": t, "end_ns": until,
                "lost": True, "cause": "outage", "known": known,
                "evidence": evidence if known else f"{evidence}: outage is assumed for half of that time",
            }  # fmt: skip
