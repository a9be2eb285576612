"""When the sender sent the segments that were lost before a capture at the receiver.

New data leave in the order of their sequence numbers, as other data leave the network (packet conservation, RFC 5681
§1). A repetition leaves no sooner than a round trip after the copy before it; where no delivery let it leave, a timeout
did, and the intervals of timeouts double (RFC 6298 §5.5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindflight.toolkit.sender_view.stamps import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Arrived:
    """Data segments that arrived, in the order sent: times at the sender and the receiver in ns, and octets."""

    sent_ns: Floats
    t_ns: Ints
    seq: Ints
    payload_bytes: Ints

    def new(self) -> Bools:
        """Mark those that carry data above all that were sent before and arrived."""
        end = self.seq + self.payload_bytes
        highest = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]))
        return np.asarray(self.seq >= highest)


@dataclass(frozen=True, slots=True)
class Lost:
    """Lost segments: their octets, the number of the copy from 1, and when the next segment arrived, in ns."""

    seq: Ints
    payload_bytes: Ints
    copy: Ints
    shown_ns: Ints


class AckClock:
    """What the sender knows to have left the network, over time."""

    def __init__(self, arrived: Arrived, back_t_ns: Ints, back_arrived_ns: Floats) -> None:
        order = np.argsort(arrived.t_ns, kind="stable")
        delivered = np.concatenate(([0], np.cumsum(arrived.payload_bytes[order])))
        self._known = delivered[np.searchsorted(arrived.t_ns[order], back_t_ns, side="right")]
        self._at_ns = np.append(back_arrived_ns, np.inf)

    def known(self, t_ns: Floats) -> Ints:
        """Return how many octets the sender knew to have arrived at each time."""
        at = np.searchsorted(self._at_ns[:-1], t_ns, side="right")
        return np.concatenate(([0], self._known))[at]

    def reaches(self, octets: Ints) -> Floats:
        """Return when the sender knew so many octets to have arrived; infinity if never."""
        return self._at_ns[np.searchsorted(self._known, octets, side="left")]


class _Window:
    """How much the sender had in flight after each new segment that arrived, and so when more may leave."""

    def __init__(self, sent_ns: Floats, end_seq: Ints, clock: AckClock, rtt_min_ns: float) -> None:
        self._clock = clock
        self._known = clock.known(sent_ns)
        self._in_flight = end_seq - self._known
        self._bounds = [np.searchsorted(sent_ns, sent_ns - n * rtt_min_ns, side="right").tolist() for n in (2, 1)]

    def allows(self, end_seq: Ints, after: int) -> Floats:
        """Return when segments up to each octet may leave after new segment number `after`; infinity if never.

        As much may be in flight as in the round trip before, and more as what arrives lets the window grow (RFC 5681
        §3.1): as much for each octet as since the round trip before that. One ACK lets several segments go.
        """
        two, one = (bounds[after] for bounds in self._bounds)
        before = int(np.searchsorted(self._known[: after + 1], self._known[after], side="left"))
        if before <= one:
            return self._clock.reaches(end_seq - int(self._in_flight[after]))
        at = one + int(np.argmax(self._in_flight[one:before]))
        known, in_flight = int(self._known[at]), int(self._in_flight[at])
        growth = 0.0
        if two < one and known > self._known[one - 1]:
            grown = in_flight - int(self._in_flight[two:one].max())
            growth = min(1.0, max(0.0, grown / (known - int(self._known[one - 1]))))
        wanted = (end_seq - in_flight + growth * known) / (1 + growth)
        return self._clock.reaches(np.ceil(wanted).astype(np.int64))


@dataclass(frozen=True, slots=True)
class Placed:
    """Lost segments in the sender's order: when each left, and the index of the arrived segment that it left after.

    -1 before the first. Several may have left after the same one, in the order in which they are given.
    """

    sent_ns: Floats
    after: Ints


def place_lost(lost: Lost, arrived: Arrived, clock: AckClock, rtt_min_ns: float) -> Placed:
    """Return when and after which segment each lost one left; `lost` is in the order of first copies' octets."""
    placed = Placed(np.full(len(lost.seq), np.nan), np.full(len(lost.seq), -1))
    _place_new(placed, lost, arrived, clock, rtt_min_ns)
    _place_repeated(placed, lost, arrived, clock, rtt_min_ns)
    return placed


def _place_new(placed: Placed, lost: Lost, arrived: Arrived, clock: AckClock, rtt_min_ns: float) -> None:
    """Place lost new data: after the new data before them that arrived, and before those after them."""
    (ones,), (new,) = np.nonzero(lost.copy == 1), np.nonzero(arrived.new())
    place = np.searchsorted(arrived.seq[new], lost.seq[ones], side="left")
    window = _Window(arrived.sent_ns[new], arrived.seq[new] + arrived.payload_bytes[new], clock, rtt_min_ns)
    for first, end in _runs(place):
        run, at = ones[first:end], int(place[first])
        low = int(new[at - 1]) if at else -1
        high = int(new[at]) - 1 if at < len(new) else len(arrived.seq) - 1
        before = float(arrived.sent_ns[max(low, 0)])
        after = float(arrived.sent_ns[new[at]]) if at < len(new) else np.inf
        times = window.allows(lost.seq[run] + lost.payload_bytes[run], at - 1) if at else np.full(end - first, np.inf)
        let_go = np.isfinite(times) & (times <= after)
        # What no delivery let go was paced, if the segments around it left close together; else it left with the one
        # before it, as the limited transmit of RFC 3042 does.
        share = np.arange(1, end - first + 1) / (end - first + 1)
        otherwise = before + share * (after - before) if after - before <= rtt_min_ns else before
        times = np.maximum.accumulate(np.where(let_go, np.maximum(times, before), otherwise))
        placed.sent_ns[run] = times
        placed.after[run] = np.clip(np.searchsorted(arrived.sent_ns, times, side="right") - 1, low, high)


def _runs(place: Ints) -> list[tuple[int, int]]:
    """Return the ranges of equal values in a row."""
    edges = (np.flatnonzero(np.diff(place)) + 1).tolist()
    return list(zip([0, *edges], [*edges, len(place)], strict=True)) if len(place) else []


def _place_repeated(placed: Placed, lost: Lost, arrived: Arrived, clock: AckClock, rtt_min_ns: float) -> None:
    """Place lost repetitions: before the segment that shows them, in the order of their octets and copies."""
    repetitions = _Repetitions(arrived, clock, rtt_min_ns)
    order = np.lexsort((lost.copy, lost.shown_ns, lost.seq))
    for first, end in _runs(lost.seq[order]):
        same = order[first:end]
        arrived_ns = repetitions.sent_of(int(lost.seq[same[0]]))
        for place, k in enumerate(same.tolist()):
            if lost.copy[k] > 1:
                copies_ns = placed.sent_ns[same[:place]], arrived_ns
                together = int((lost.shown_ns[same[place:]] == lost.shown_ns[k]).sum())
                shown = int(lost.shown_ns[k]), int(lost.payload_bytes[k])
                placed.sent_ns[k], placed.after[k] = repetitions.place(shown, copies_ns, together)


class _Repetitions:
    """The segments that arrived, by octets and in the order of arrival, between which lost repetitions are placed."""

    def __init__(self, arrived: Arrived, clock: AckClock, rtt_min_ns: float) -> None:
        self._arrived, self._clock, self._rtt_min_ns = arrived, clock, rtt_min_ns
        self._t_ns = np.maximum.accumulate(arrived.t_ns)
        self._by_seq = np.argsort(arrived.seq, kind="stable")
        self._longest_bytes = int(arrived.payload_bytes.max())

    def sent_of(self, seq: int) -> Floats:
        """Return when the copies of octet `seq` that arrived were sent."""
        arrived, by_seq = self._arrived, self._by_seq
        low, high = np.searchsorted(arrived.seq[by_seq], (seq - self._longest_bytes, seq), side="right")
        near = by_seq[low:high]
        return arrived.sent_ns[near[seq < arrived.seq[near] + arrived.payload_bytes[near]]]

    def place(self, shown: tuple[int, int], copies_ns: tuple[Floats, Floats], together: int) -> tuple[float, int]:
        """Return when the first of `together` repetitions left, and after which segment, given when the lost copies
        before it and those that arrived did.

        `shown` are the time of the segment that shows them, with data or without, and their octets.
        """
        (shown_ns, payload_bytes), (lost_ns, arrived_ns) = shown, copies_ns
        sent_ns = self._arrived.sent_ns
        slot = int(np.searchsorted(self._t_ns, shown_ns, side="left"))
        before = float(sent_ns[max(slot - 1, 0)])
        # After the last data, what shows them took as long as these.
        upto = float(sent_ns[slot] if slot < len(sent_ns) else before + shown_ns - self._t_ns[-1])
        last = max([*lost_ns[lost_ns <= upto].tolist(), *arrived_ns[arrived_ns < upto].tolist()], default=before)
        wanted = self._clock.known(sent_ns[[max(slot - 1, 0)]]) + payload_bytes
        clocked = max(before, float(self._clock.reaches(wanted)[0]))
        if last + self._rtt_min_ns <= clocked <= upto:
            left_ns = clocked
        else:
            left_ns = last + (upto - last) / (2.0 ** (together + 1) - 1)  # RFC 6298 §5.5: the intervals double
        return left_ns, min(int(np.searchsorted(sent_ns, left_ns, side="right")), slot) - 1
