"""Base round-trip time of a path: what is left of its round trips without waiting and serialisation.

Reads arrays of `delivery`, not tables. Does not depend on the causes of losses. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from hindflight.channels.extraction import change_points as _change_points
from hindflight.channels.extraction.bottleneck import SPREAD, Served, lindley_wait, rtt_ns
from hindflight.channels.extraction.change_points import Floats, PiecewiseConstant
from hindflight.channels.extraction.delivery import Bools, Delivery, Ints
from hindflight.channels.extraction.path_steps import Stretch, is_jump, on_one_path

AGREEING_SHARE = 0.8
"""Share of round trips that must agree on a base where the queue never ran empty."""

WAIT_ERROR = 2.5
"""Error of the wait in a modelled queue that never ran empty, in packets: what was lost, and a rate that is not exact,
add up."""

TRANSITION_NS = 1e9
"""Maximum time after a change of path in which packets may have met both."""

Level = TypeVar("Level")


@dataclass(frozen=True, slots=True)
class Base:
    """Base round-trip time of acknowledged packets: delay of both directions and serialisation of the ACK, not of the
    packet.

    `per_packet_ns` is its value at each transmission; `trusted` is false while it changes; `spans` are its levels as
    (first packet, one past the last, ns). `sure` marks levels whose steps no queue makes: each is a minimum. Without
    it, round trips between two levels fit neither.
    `error_ns` says for each level by how much it may be off: by nothing where a packet met an empty queue, infinite
    where the queue never ran empty and nothing else shows the level; `least_ns` is the minimum round trip without
    serialisation. `waits_pkts` is the wait that was subtracted for each level: an error of the rate scales it.
    `carried` marks levels at whose beginning nothing was lost, so that the queue went on as it was, and whose round
    trips agree on what is left without its modelled wait. `clocked` marks levels that differ from the one before by
    how much earlier or later ACKs came. `shown_by` is the packet whose round trip shows each level:
    the rate may have changed since, and with it the serialisation of the ACK. `inexact_from` are the first packets of
    levels that `less_exact` made.
    """

    per_packet_ns: Floats
    trusted: Bools
    spans: tuple[tuple[int, int, float], ...]
    error_ns: tuple[float, ...]
    least_ns: tuple[float, ...]
    sure: bool = False
    carried: tuple[bool, ...] = ()
    waits_pkts: tuple[float, ...] = ()
    shown_by: tuple[int, ...] = ()
    clocked: tuple[bool, ...] = ()
    inexact_from: tuple[int, ...] = ()

    @property
    def changes(self) -> tuple[int, ...]:
        """The first packet of each later level, but where only less is known of the same one."""
        return tuple(first for first, _, _ in self.spans[1:] if first not in self.inexact_from)

    @property
    def emptied(self) -> tuple[bool, ...]:
        """Whether each level is shown at all."""
        return tuple(bool(np.isfinite(error)) for error in self.error_ns)

    def level_of(self, packet: int) -> int:
        """Return the last level that begins at or before a packet."""
        return int(self._levels(np.array([packet]))[0])

    def before_ns(self) -> Floats:
        """Return the base of each packet by the last level that begins at or before it: between two levels, that of the
        path before."""
        held = np.array([held for _, _, held in self.spans])
        return np.asarray(held[self._levels(np.arange(len(self.per_packet_ns)))])

    def least_per_packet_ns(self) -> Floats:
        """Return the least that the base of each packet may be: between two levels the shorter one, less its error.
        What was on the way when the path changed met both."""
        held = np.array([held for _, _, held in self.spans])
        levels = self._levels(np.arange(len(self.per_packet_ns)))
        around = np.minimum(held[np.maximum(levels - 1, 0)], held[np.minimum(levels + 1, len(held) - 1)])
        shorter = np.minimum(self.per_packet_ns, held[levels])
        shorter = np.where(self.trusted, shorter, np.minimum(shorter, around))
        return np.asarray(shorter - np.minimum(np.array(self.error_ns)[levels], shorter))

    def less_exact(self, parts: Sequence[tuple[int, int, float]]) -> Base:
        """Return the base with what is known less exactly as levels of their own: each part is (first packet, one past
        the last, by how many ns it may be off)."""
        cuts = np.unique([edge for first, after, _ in parts for edge in (first, after)])
        spans: list[tuple[int, int, float]] = []
        owners: list[int] = []
        errors: list[float] = []
        for i, (begin, end, held) in enumerate(self.spans):
            for one, other in pairwise([begin, *cuts[(cuts > begin) & (cuts < end)].tolist(), end]):
                spans.append((one, other, held))
                owners.append(i)
                off_ns = [ns for first, after, ns in parts if first < other and one < after]
                errors.append(max([self.error_ns[i], *off_ns]))
        return replace(
            self, spans=tuple(spans), error_ns=tuple(errors), least_ns=_of(self.least_ns, owners),
            carried=_of(self.carried, owners), waits_pkts=_of(self.waits_pkts, owners),
            shown_by=_of(self.shown_by, owners), clocked=_of(self.clocked, owners),
            inexact_from=tuple(np.setdiff1d(cuts, [first for first, _, _ in self.spans]).tolist()),
        )  # fmt: skip

    def _levels(self, packets: Ints) -> Ints:
        firsts = [first for first, _, _ in self.spans]
        return np.maximum(np.searchsorted(firsts, packets, side="right") - 1, 0)


def _of(levels: tuple[Level, ...], owners: Sequence[int]) -> tuple[Level, ...]:
    """Return the elements of some levels, if there are any."""
    return tuple(levels[i] for i in owners) if levels else ()


def _bare_ns(delivery: Delivery, served: Served, packets: Ints) -> Floats:
    """Return the round trips of timed packets without their serialisation. Where the rate has a lower bound only,
    nothing is subtracted, unless it has everywhere: such a round trip shows what the base is at most."""
    subtracted = served.ns[packets]
    if not served.bounded[packets].all():
        subtracted = np.where(served.bounded[packets], 0.0, subtracted)
    return np.asarray(rtt_ns(delivery)[packets] - subtracted)


def constant_base(delivery: Delivery, served: Served) -> Base:
    """Return one base for the whole flow: the minimum round trip without the serialisation of the packet.

    The handshake counts too, corrected for the different serialisation of the SYN/ACK and an ACK, at the rate of the
    flow's first packet.
    """
    service_ns = served.ns
    wait = lindley_wait(delivery, service_ns, served.entered)
    timed = np.flatnonzero(delivery.prompt)
    bare = _bare_ns(delivery, served, timed)
    error = _error_ns(wait[delivery.prompt], bare, service_ns[delivery.prompt])
    n = len(delivery)
    floor, shown_by = max(0.0, float(bare.min())), int(timed[np.argmin(bare)])
    if delivery.handshake is not None:
        octets = delivery.handshake.syn_bytes + delivery.handshake.syn_ack_bytes - delivery.ack_bytes
        first = int(np.argmax(delivery.from_flow))
        ns_per_byte = float(service_ns[first] / delivery.size_bytes[first])
        handshake = max(0.0, delivery.handshake.rtt_ns - octets * ns_per_byte)
        if handshake <= floor:
            floor, error, shown_by = handshake, 0.0, first
    all_trusted = np.ones(n, dtype=np.bool_)
    return Base(np.full(n, floor), all_trusted, ((0, n, floor),), (error,), (floor,), shown_by=(shown_by,))


def stretch_base(delivery: Delivery, paths: Sequence[Stretch], served: Served) -> Base:
    """Return a base that is constant in each stretch of one path: its minimum round trip without serialisation, or what
    is left without the wait in the queue, where the queue never ran empty."""
    base = np.empty(len(delivery))
    spans: list[tuple[int, int, float]] = []
    errors: list[float] = []
    seen: list[float] = []
    carried: list[bool] = []
    shown_by: list[tuple[int, bool]] = []
    trusted = np.ones(len(delivery), dtype=np.bool_)
    service_ns, wait = served.ns, lindley_wait(delivery, served.ns, served.entered)
    longest = lindley_wait(delivery, served.most_ns, served.entered)
    for before, stretch in zip((paths[0], *paths), paths, strict=False):
        within = slice(stretch.first, stretch.after)
        index = stretch.timed(delivery)
        before_ns = spans[-1][2] if spans else 0.0
        settled_ns = _settled_ns(delivery, stretch, before_ns)
        if len(index):
            index = index[on_one_path(delivery, index, (stretch.first, stretch.after), before_ns)]
        bare, waited = _bare_ns(delivery, served, index), wait[index]
        floor = max(0.0, float(bare.min())) if len(bare) else (spans[-1][2] if spans else stretch.floor_ns)
        shown = int(index[np.argmin(bare)]) if len(bare) else (shown_by[-1][0] if spans else stretch.first)
        settled = _settled(delivery.t_ns[index] >= settled_ns, bare - waited, service_ns[index])
        error = _error_ns(longest[index][settled], bare[settled], service_ns[index][settled])
        # On a path that is shorter by more than its minimum round trip, the queue never ran empty.
        most = max(0.0, spans[-1][2] - stretch.fell_ns) if spans and stretch.fell_ns else np.inf
        if most < floor and is_jump(floor, most):
            error = np.inf
        empty = bool(np.isfinite(error))
        least = min(floor, most)
        rest = _without_wait(bare - waited, service_ns[within], floor) if not empty and len(bare) else np.inf
        if not empty and len(bare):
            floor = min(least, max(0.0, _less_wait(floor, rest, service_ns)))
        by_clock = not empty and len(spans) > 0 and np.isfinite(stretch.fell_off_ns) and np.isfinite(errors[-1])
        if by_clock:
            # How much earlier the ACKs of a busy link come shows the path by that before.
            floor, error, empty = min(least, most), errors[-1] + stretch.fell_off_ns, True
        if (
            spans
            and not is_jump(floor, spans[-1][2], stretch.min_jump_ns(before))
            and empty
            and np.isfinite(errors[-1])
        ):
            # The round trips differed by the serialisation at another rate.
            first, _, held = spans.pop()
            shown = min((floor, shown), (held, shown_by.pop()[0]))[1]
            floor, error, least = min(floor, held), min(errors.pop(), error), min(least, seen.pop())
            carried.pop()
        else:
            first = stretch.first
        base[first : stretch.after] = floor
        spans.append((first, stretch.after, floor))
        errors.append(error)
        seen.append(least)
        shown_by.append((shown, bool(by_clock)))
        carried.append(bool(np.isfinite(rest)) and not delivery.lost[_timed_before(delivery, first) : first].any())
        # Packets on the way when the path changed met both.
        trusted[:first] &= delivery.acked_ns[:first] <= delivery.t_ns[first]
        if len(spans) > 1 and first == stretch.first:
            trusted[first:] &= delivery.t_ns[first:] >= delivery.t_ns[first] + min(spans[-2][2], TRANSITION_NS)
    return Base(
        base, trusted, tuple(spans), tuple(errors), tuple(seen), sure=True, carried=tuple(carried),
        shown_by=tuple(packet for packet, _ in shown_by), clocked=tuple(by_clock for _, by_clock in shown_by),
    )  # fmt: skip


def _timed_before(delivery: Delivery, packet: int) -> int:
    """Return the last timed packet before one; the first packet if there is none."""
    before = np.flatnonzero(delivery.prompt[:packet])
    return int(before[-1]) if len(before) else 0


def _settled(late: Bools, rest_ns: Floats, service_ns: Floats) -> Bools:
    """Mark the packets that met one path only: those sent late enough, and those whose round trip without wait and
    serialisation is that of these."""
    if not late.any():
        return late
    return np.asarray(late | (np.abs(rest_ns - np.median(rest_ns[late])) <= SPREAD * service_ns))


def _settled_ns(delivery: Delivery, stretch: Stretch, before_ns: float) -> float:
    """Return from when on packets meet the path of a stretch only: when its first packet, which shows the change, was
    acknowledged, or by when its ACK would have come over the path before, whose round trip is `before_ns`."""
    sent_ns = float(delivery.t_ns[stretch.first])
    if not stretch.first:
        return sent_ns
    answered_ns = delivery.acked_ns[stretch.first]
    return min(sent_ns + before_ns, float(answered_ns)) if answered_ns >= 0 else sent_ns + before_ns


def _error_ns(wait_ns: Floats, bare_ns: Floats, service_ns: Floats) -> float:
    """Return by how much the minimum round trip may exceed that of an empty queue: how much nearer it is than that of
    the packets for which the modelled queue was empty; infinite beyond one serialisation."""
    empty = wait_ns < SPREAD * service_ns
    if not np.any(empty):
        return float(np.inf)
    above = (bare_ns - bare_ns.min() + wait_ns)[empty]
    nearest = int(np.argmin(above))
    return float(above[nearest]) if above[nearest] <= service_ns[empty][nearest] else float(np.inf)


def _less_wait(least_ns: float, level_ns: float, service_ns: Floats) -> float:
    """Return the base where the queue never ran empty: `level_ns`, unless the minimum round trip is as near as the
    modelled wait is exact."""
    return least_ns if least_ns - level_ns <= WAIT_ERROR * float(np.median(service_ns)) else level_ns


def _without_wait(rest_ns: Floats, service_ns: Floats, floor_ns: float) -> float:
    """Return the base that most round trips agree on once their modelled wait is subtracted; infinite if they do
    not."""
    tolerance = rtt_tolerance_ns(service_ns, floor_ns)
    level = float(np.median(rest_ns))
    near = np.abs(rest_ns - level) <= tolerance
    return float(np.quantile(rest_ns[near], 0.1)) if np.mean(near) >= AGREEING_SHARE else np.inf


def rtt_tolerance_ns(service_ns: Floats, floor_ns: float) -> float:
    """Return by how much a round trip may exceed its expectation (jitter, hosts, rounding) on the same path."""
    return max(4 * float(np.median(service_ns)), 3e6, 0.03 * floor_ns)


def piecewise_base(delivery: Delivery, served: Served) -> Base:
    """Return a base that changes in steps: levels of the round trips without queueing and serialisation.

    The base of a level is its minimum round trip if the queue ran empty, or else the lower decile of what remains.
    """
    service_ns, wait = served.ns, lindley_wait(delivery, served.ns, served.entered)
    prompt = np.flatnonzero(delivery.prompt)
    trip = rtt_ns(delivery)[prompt] - service_ns[prompt]
    tolerance = rtt_tolerance_ns(service_ns, float(trip.min()))
    levels = _change_points.fit(trip - wait[prompt], tolerance)
    spans: list[tuple[int, int, float]] = []
    errors: list[float] = []
    seen: list[float] = []
    shown_by: list[int] = []
    for start, stop, level in levels.spans:
        rest = (trip - wait[prompt])[start:stop]
        near = np.abs(rest - level) <= tolerance
        after = int(prompt[stop]) if stop < len(prompt) else len(delivery)
        whole = on_one_path(delivery, prompt[start:stop], (int(prompt[start]), after), spans[-1][2] if spans else 0.0)
        near = near & whole if np.any(near & whole) else near
        least = float(np.min(trip[start:stop][near]))
        errors.append(
            _error_ns(wait[prompt][start:stop][near], trip[start:stop][near], service_ns[prompt][start:stop][near])
        )
        seen.append(least)
        shown_by.append(int(prompt[start + int(np.argmin(np.where(near, trip[start:stop], np.inf)))]))
        if not np.isfinite(errors[-1]):
            lower = float(np.quantile(rest[near], 0.1))
            least = min(least, _less_wait(least, lower, service_ns[prompt][start:stop]))
        spans.append((start, stop, max(0.0, least)))
    level_of, inside = PiecewiseConstant(tuple(spans), levels.coverage).at(len(prompt))
    owner = np.minimum(np.searchsorted(prompt, np.arange(len(delivery))), len(prompt) - 1)
    packets = tuple(
        (int(prompt[a]) if i else 0, int(prompt[b - 1]) + 1 if i + 1 < len(spans) else len(delivery), v)
        for i, (a, b, v) in enumerate(spans)
    )
    return Base(level_of[owner], inside[owner], packets, tuple(errors), tuple(seen), shown_by=tuple(shown_by))
