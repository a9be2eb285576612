"""Runs of losses that belong to a time of the link as much as to packets: breaks too short for an outage, runs of which
the extraction cannot say whether they were a burst or an outage, and bursts that outlasted a round trip.

Depends on traces, not on configurations of the engine. Read docs/channels/extract.md for what an outage loses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hindflight.channels.extraction.outage_runs import MIN_OUTAGE_PKTS

if TYPE_CHECKING:
    import numpy.typing as npt

    from hindflight.channels.trace import Trace

    Bools = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

RARE_BURST = 0.01
"""A burst that the lengths of all others make less likely than this is a break of the link: it lasts a time, not a
number of packets, and belongs to its time as an outage does."""

OTHER_BURST_PKTS = 3
"""Length of the burst that few bursts are compared with."""

PRIOR_SHARE = 0.5
"""Both shapes of the prior of a share, such as that of the bursts that go on with the next packet: Jeffreys'."""

NEAR_PKTS = 200
"""Packets before a break whose smallest round trip tells how long its first packet waited in the queue."""

DOUBTFUL = 0.5
"""Probability of a break where the extraction cannot say whether a run of losses was a burst or an outage, and where
the other bursts are too few to say that it was none of them."""


@dataclass(frozen=True, slots=True)
class Break:
    """A time in which the link was down, in ns since the start of the run: it ended at `end_ns` or up to `unknown_ns`
    later, when the next packet was delivered, whose ACK came at `seen_ns`. `chance` is the probability that it would
    have been down for another flow, too: 0 for a burst, whose losses, `packets` in number, belong to packets."""

    begin_ns: int
    end_ns: int
    unknown_ns: int
    seen_ns: int
    packets: int
    chance: float


@dataclass(frozen=True, slots=True)
class Runs:
    """The losses of a trace: `positions` and `bursts`, their lengths, of those that belong to packets only, and
    breaks. `unknown` marks the bursts of which the extraction does not know whether the channel or the queue made
    them; one that was a burst or an outage is not among them."""

    positions: Ints
    bursts: Ints
    breaks: tuple[Break, ...]
    unknown: Bools


def runs_of(trace: Trace, lost: Ints) -> Runs:
    """Divide the losses of `trace`, at the positions `lost`, into bursts and breaks.

    After a round trip without an ACK a sender sends single packets at its timeouts. Had the replay one packet more or
    less on the way, the same number of losses would take another number of timeouts, so a run that long has a time
    where the captured flow is replayed, whatever its cause.
    """
    if not len(lost):
        return Runs(lost, np.zeros(0, np.int64), (), np.zeros(0, bool))
    ends = np.append(np.flatnonzero(np.diff(lost) != 1), len(lost) - 1)
    lengths = np.diff(ends, prepend=-1)
    rare = _rare(lengths)
    doubtful = _doubtful(lengths, rare)
    packets = _Packets.of(trace)
    if packets is None:
        return Runs(lost, lengths[~rare], (), np.zeros(int((~rare).sum()), bool))
    firsts = lost[ends - lengths + 1]
    long, unknown = packets.outlasting(firsts, lengths), packets.all_of(~packets.known, firsts, lengths)
    broken = rare | long
    found: list[Break] = []
    for i in np.flatnonzero(broken):
        first = int(firsts[i])
        chance = DOUBTFUL if (doubtful if rare[i] else unknown)[i] else float(rare[i])
        if found and packets.left_ns(first) <= found[-1].end_ns:
            found[-1] = packets.prolonged(found[-1], first, int(lengths[i]), chance)
            continue
        found.append(packets.break_at(first, int(lengths[i]), chance))
    by_queue = packets.all_of(~packets.known & ~packets.burst_or_outage, firsts, lengths)
    return Runs(lost[~np.repeat(broken, lengths)], lengths[~broken], tuple(found), by_queue[~broken])


def _rare(lengths: Ints) -> Bools:
    """Mark the bursts that are too long for a geometric distribution with the mean of the others, longest first.

    One burst of OTHER_BURST_PKTS more stands for what few bursts cannot show.
    """
    rare = np.zeros(len(lengths), bool)
    for longest in np.argsort(-lengths, kind="stable"):
        left = int((~rare).sum())
        mean = (int(lengths[~rare].sum() - lengths[longest]) + OTHER_BURST_PKTS) / left
        # The chance that one of so many bursts is as long or longer.
        chance = 1 - (1 - (1 - 1 / mean) ** int(lengths[longest] - 1)) ** left
        if chance >= RARE_BURST:
            break
        rare[longest] = True
    return rare


def _doubtful(lengths: Ints, rare: Bools) -> Bools:
    """Mark the rare bursts that may be bursts nevertheless: the mean of the others is too uncertain to say.

    The probability that a burst goes on has a Beta distribution then, and the chance of one so long is RARE_BURST or
    more. Where no other loss goes on with the next packet, nothing shows that the channel has bursts at all.
    """
    n, went_on = int((~rare).sum()), int((lengths[~rare] - 1).sum())
    if not went_on:
        return np.zeros(len(lengths), bool)
    ends, on = n + PRIOR_SHARE, went_on + PRIOR_SHARE
    packets = np.arange(int(lengths.max()))
    goes_on = (on + packets) / (on + ends + packets)
    longer = np.concatenate(([1.0], np.cumprod(goes_on)))[lengths - 1]
    return np.asarray(rare & (1 - (1 - longer) ** (n + 1) >= RARE_BURST))


@dataclass(frozen=True, slots=True)
class _Packets:
    """The packets of a trace by position: send times since the start of the run, round trips (NaN: none), whether
    the extraction knows their fate, and whether it knows no more of it than that a burst or an outage lost them."""

    position: Ints
    sent_ns: Ints
    trip_ns: npt.NDArray[np.float64]
    known: Bools
    burst_or_outage: Bools

    @classmethod
    def of(cls, trace: Trace) -> _Packets | None:
        """Read them; None for a trace that does not say when its run began."""
        import pyarrow.compute as pc

        intervals = trace.intervals()
        if intervals.num_rows == 0:
            return None
        packets = trace.packets()
        packets = packets.filter(pc.is_valid(packets["position"])).sort_by("position")
        position = packets["position"].to_numpy()
        burst_or_outage = np.zeros(len(position), bool)
        for first, last in trace.bursts_or_outages:
            burst_or_outage[(position >= first) & (position <= last)] = True
        return cls(
            position,
            packets["t_ns"].to_numpy() - pc.min(intervals["t_ns"]).as_py(),
            packets["delay_ns"].cast("float64").to_numpy(zero_copy_only=False),
            packets["known"].to_numpy(zero_copy_only=False).astype(bool),
            burst_or_outage,
        )

    def outlasting(self, firsts: Ints, lengths: Ints) -> Bools:
        """Mark the runs that outlast a round trip."""
        at, last = self._ends(firsts, lengths)
        trips_ns = np.array([self._near(int(first))[1] for first in at])
        long = (trips_ns > 0) & (self.sent_ns[last] - self.sent_ns[at] > trips_ns)
        return np.asarray((lengths >= MIN_OUTAGE_PKTS) & long)

    def all_of(self, marked: Bools, firsts: Ints, lengths: Ints) -> Bools:
        """Mark the runs of which all packets are `marked`."""
        at, last = self._ends(firsts, lengths)
        before = np.concatenate(([0], np.cumsum(marked)))
        return np.asarray(before[last + 1] - before[at] == last + 1 - at)

    def _ends(self, firsts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """Return the indices of the first and the last packet of runs; the trace may end within one."""
        at = np.searchsorted(self.position, firsts)
        return at, np.minimum(at + lengths, len(self.position)) - 1

    def _near(self, at: int) -> tuple[int, int]:
        """Return the wait in the queue just before a packet, and the round trip without it; zeros where none shows."""
        near = self.trip_ns[max(0, at - NEAR_PKTS) : at]
        near = near[~np.isnan(near)]
        return (int(near[-1] - near.min()), int(near.min())) if len(near) else (0, 0)

    def left_ns(self, first: int) -> int:
        """Return when the packet at position `first` left the queue: it waited as long as the one before it."""
        at = int(np.searchsorted(self.position, first))
        return int(self.sent_ns[at]) + self._near(at)[0]

    def break_at(self, first: int, length: int, chance: float) -> Break:
        """Return when the link was down so that it lost `length` packets from position `first` on.

        A break loses what leaves the queue while it lasts and what would arrive then. One shorter than the path
        therefore shows two bursts, a one-way delay apart, of which the first had left before it; a longer one shows
        one burst.
        """
        left_ns, (one_way_ns, last_ns, unknown_ns, seen_ns) = self.left_ns(first), self._edges(first, length)
        lasts_ns = max(1, last_ns - left_ns)
        begin_ns = left_ns + one_way_ns
        end_ns = left_ns + lasts_ns if lasts_ns >= 2 * one_way_ns else begin_ns + lasts_ns
        return Break(begin_ns, end_ns, unknown_ns, max(seen_ns, end_ns + unknown_ns), length, chance)

    def prolonged(self, before: Break, first: int, length: int, chance: float) -> Break:
        """Return a break that has also lost `length` packets from position `first` on, which left the queue in it: it
        lasted until the last of them did, or longer."""
        both, chance = before.packets + length, max(before.chance, chance)
        _, last_ns, unknown_ns, seen_ns = self._edges(first, length)
        if last_ns <= before.end_ns:
            return replace(before, packets=both, chance=chance)
        return Break(before.begin_ns, last_ns, unknown_ns, max(seen_ns, last_ns + unknown_ns), both, chance)

    def _edges(self, first: int, length: int) -> tuple[int, int, int, int]:
        """Return the one-way delay before a run of losses, when its last packet left the queue, how much later the next
        one did, and when the ACK of that came; the trace may end with the run."""
        at = int(np.searchsorted(self.position, first))
        last = min(at + length, len(self.position)) - 1
        wait_ns, trip_ns = self._near(at)
        left_ns = self.left_ns(first)

        def left(k: int) -> int:
            # After a round trip without deliveries nothing waits.
            sent_ns = int(self.sent_ns[k])
            return max(left_ns, sent_ns + (wait_ns if sent_ns - self.sent_ns[at] <= trip_ns else 0))

        if last + 1 == len(self.position):
            return trip_ns // 2, left(last), 0, 0
        next_trip_ns = self.trip_ns[last + 1]
        seen_ns = int(self.sent_ns[last + 1] + (trip_ns if np.isnan(next_trip_ns) else next_trip_ns))
        return trip_ns // 2, left(last), left(last + 1) - left(last), seen_ns
