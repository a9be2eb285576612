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
    """Data segments that arrived, in the order sent: times at the sender and at the receiver in ns, and their octets."""

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

    def after(self, t_ns: float, payload_bytes: Ints) -> Floats:
        """Return when each of the segments sent after `t_ns` may leave, as many octets having left the network since."""
        at = int(np.searchsorted(self._at_ns[:-1], t_ns, side="right"))
        known = int(self._known[at - 1]) if at else 0
        wanted = known + np.cumsum(payload_bytes)
        return self._at_ns[np.searchsorted(self._known, wanted, side="left")]


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
    _place_new(placed, np.flatnonzero(lost.copy == 1), lost, arrived, clock)
    _place_repeated(placed, lost, arrived, clock, rtt_min_ns)
    return placed


def _place_new(placed: Placed, ones: Ints, lost: Lost, arrived: Arrived, clock: AckClock) -> None:
    """Place lost new data: after the new data before them that arrived, and before those after them."""
    (new,) = np.nonzero(arrived.new())
    place = np.searchsorted(arrived.seq[new], lost.seq[ones], side="left")
    for first, end in _runs(place):
        run, at = ones[first:end], int(place[first])
        low = int(new[at - 1]) if at else -1
        high = int(new[at]) - 1 if at < len(new) else len(arrived.seq) - 1
        after = float(arrived.sent_ns[new[at]]) if at < len(new) else np.inf
        before = float(arrived.sent_ns[max(low, 0)])
        times = clock.after(before, lost.payload_bytes[run])
        # What no delivery let go left with the segment before it, as in slow start and by the limited transmit of RFC 3042.
        let_go = np.isfinite(times) & (times <= after)
        times = np.maximum.accumulate(np.where(let_go, np.maximum(times, before), before))
        placed.sent_ns[run] = times
        placed.after[run] = np.clip(np.searchsorted(arrived.sent_ns, times, side="right") - 1, low, high)


def _runs(place: Ints) -> list[tuple[int, int]]:
    """Return the ranges of equal values in a row."""
    edges = (np.flatnonzero(np.diff(place)) + 1).tolist()
    return list(zip([0, *edges], [*edges, len(place)], strict=True)) if len(place) else []


def _place_repeated(placed: Placed, lost: Lost, arrived: Arrived, clock: AckClock, rtt_min_ns: float) -> None:
    """Place lost repetitions: before the segment whose arrival shows them."""
    arrival = np.maximum.accumulate(arrived.t_ns)
    for seq in np.unique(lost.seq[lost.copy > 1]).tolist():
        (same,) = np.nonzero((arrived.seq <= seq) & (seq < arrived.seq + arrived.payload_bytes))
        (ones,) = np.nonzero(lost.seq == seq)
        ones = ones[np.lexsort((lost.copy[ones], lost.shown_ns[ones]))]
        for place, k in enumerate(ones.tolist()):
            if lost.copy[k] == 1:
                continue
            slot = min(int(np.searchsorted(arrival, lost.shown_ns[k], side="left")), len(arrival) - 1)
            upto, before = float(arrived.sent_ns[slot]), float(arrived.sent_ns[max(slot - 1, 0)])
            earlier = [t for t in placed.sent_ns[ones[:place]].tolist() if t <= upto]
            earlier += [t for t in arrived.sent_ns[same].tolist() if t < upto]
            last = max(earlier, default=before)
            clocked = max(before, float(clock.after(before, lost.payload_bytes[k : k + 1])[0]))
            together = int((lost.shown_ns[ones[place:]] == lost.shown_ns[k]).sum())
            backed_off = last + (upto - last) / (2.0 ** (together + 1) - 1)
            placed.sent_ns[k] = clocked if last + rtt_min_ns <= clocked <= upto else backed_off
            placed.after[k] = min(int(np.searchsorted(arrived.sent_ns, placed.sent_ns[k], side="right")), slot) - 1
