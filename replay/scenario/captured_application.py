"""What a captured application wrote, and when, as far as the sender's packets show it.

Depends on arrays of sent segments and received ACKs, not on captures or the engine. An octet was written no later than
it was first sent; it was written no earlier than the sender ran out of data before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

FIN, PSH = 1, 8
"""TCP flags."""

PUSHED_SHARE = 0.5
"""Share of segments with PSH from which writes are that short: then a segment with it may have been the last of all
that was written. A bulk sender sets it once in a large write."""

MIN_WAIT_SHARE = 0.02
"""Share of the transfer that the sender waits for data from which its application is replayed: less cannot change the
goodput by more than that."""

RESPONSE_NS = 1_000_000
"""Time within which a host answers an ACK with the data that it releases; later sending has another reason."""

HOST_NS = 100_000
"""Assumed: by how much the times differ in which a host answers ACKs."""

RELEASED_PARTS = 4
"""Assumed: what an ACK released leaves within the first part of so many between two ACKs, counted from the time in
which the host answers at least. A timer's departures are in any part."""

FAST_SHARE = 0.1
"""Share of the departures that show the time in which the host answers at least."""

NEVER = np.iinfo(np.int64).max

BURST_NS = 100_000
"""Time within which segments belong to one burst of the host."""

MAX_UNEVEN = 0.03
"""Deviation from a constant rate, as a share of all octets, up to which an application writes at that rate."""

MAX_RATE_ERROR = 0.01
"""Deviation from a constant rate, as a share of what was written by the last wait, up to which it holds from then on:
the rate is known to about as much, half of the error that a goodput may have."""

LARGE_WRITE_BYTES = 65_536
"""Size from which what was written in one go took the network some time to carry."""

EVEN_SHARE = 0.1
"""Deviation of what was sent between two waits from a line over time, as a share of it, up to which it left evenly: ten
writes or more, each at once."""

UNRELEASED_SHARE = 0.5
"""Share of the bursts that no ACK released from which the application timed them."""

AHEAD_BYTES = 49_152
"""Octets that the engine's application that writes for a time is ahead of what was sent: it writes 64 KiB, and again
once half of it is left, and all of it is sent. With an end that many octets before the last one, a replay of the
captured flow sends what was captured."""

MIN_PAUSES = 3
"""Pauses from which their mean tells how long another may be: 5 times as long. Of two it is 7 times, of one 19."""

MIN_BURST_NS = 1_000
"""Shortest time of writing that a draft distinguishes from none."""

TIME_STEP_NS = 1_000
"""Step of the times of writes in a draft."""

EVEN_WRITE_NS = 20_000_000
"""Interval between the writes of an application that writes at a constant rate while the network limits it."""


@dataclass(frozen=True, slots=True)
class CapturedWrites:
    """Writes of a captured application: times in ns since its first one, and octets. `wait_share` is the share of the
    transfer in which the sender had nothing to send; `steady` marks a constant rate, and `unsent_bytes` are what it had
    written at that rate and not sent when the transfer ended. `until_ns` is when each may have ended, had the
    application written for a time; None where a write is too small for that."""

    at_ns: tuple[int, ...]
    sizes: tuple[int, ...]
    wait_share: float
    steady: bool
    until_ns: tuple[int, ...] | None
    unsent_bytes: int = 0

    def before(self, end_ns: int) -> CapturedWrites:
        """Return the writes before `end_ns` alone, by as much as a draft rounds times."""
        kept = sum(at + TIME_STEP_NS <= end_ns for at in self.at_ns)
        until_ns = None if self.until_ns is None else self.until_ns[:kept]
        return replace(self, at_ns=self.at_ns[:kept], sizes=self.sizes[:kept], until_ns=until_ns)

    @property
    def times_departures(self) -> bool:
        """Whether departures that no ACK triggered are those of a timer of the application."""
        return self.steady and self.wait_share >= MIN_WAIT_SHARE


@dataclass(frozen=True, slots=True)
class SentData:
    """New data in the order sent (time, first octet, one past the last, whether a write ended in it), the ACKs that
    the sender received, when it sent its FIN (None if the capture has none) and when it sent something again."""

    t_ns: Ints
    seq: Ints
    seq_end: Ints
    pushed: Bools
    ack_t_ns: Ints
    ack: Ints
    mss_bytes: int
    fin_ns: int | None = None
    retransmitted_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


def sent_data(segments: pa.Table, direction: str, mss_bytes: int) -> SentData:
    """Read the new data and the ACKs off the rows of one flow of `segments`."""
    import pyarrow.compute as pc

    ours = pc.equal(segments["direction"].cast("string"), direction)
    closing = pc.not_equal(pc.bit_wise_and(segments["flags"].cast("int32"), FIN), 0)
    data = segments.filter(pc.and_(ours, pc.greater(segments["payload_bytes"], 0)))
    again = data.filter(data["retransmission"])
    data = data.filter(pc.invert(data["retransmission"]))
    acks = segments.filter(pc.invert(ours))
    acks = acks.filter(acks["ack"].is_valid())
    seq = data["seq"].to_numpy().astype(np.int64)
    return SentData(
        t_ns=data["t_ns"].to_numpy().astype(np.int64),
        seq=seq,
        seq_end=seq + data["payload_bytes"].to_numpy().astype(np.int64),
        pushed=(data["flags"].to_numpy() & PSH) != 0,
        ack_t_ns=acks["t_ns"].to_numpy().astype(np.int64),
        ack=np.maximum.accumulate(acks["ack"].to_numpy().astype(np.int64)) if acks.num_rows else np.zeros(0, np.int64),
        mss_bytes=mss_bytes,
        fin_ns=pc.min(segments.filter(pc.and_(ours, closing))["t_ns"]).as_py(),
        retransmitted_ns=np.sort(again["t_ns"].to_numpy().astype(np.int64)),
    )


def response_ns(ack_t_ns: Ints, sent_t_ns: Ints) -> tuple[Ints, Bools]:
    """Return within what time after each ACK a departure counts as released by it, and whether that can be decided.

    It is RESPONSE_NS, or less where ACKs come so often that a timer's departures, too, follow one within that: the time
    in which the host answers at least, and a part of the time to the next ACK. If that part is below HOST_NS, nothing
    distinguishes the two, and RESPONSE_NS stands.
    """
    parts_ns = np.diff(ack_t_ns, append=NEVER) // RELEASED_PARTS
    before = np.searchsorted(ack_t_ns, sent_t_ns, side="right") - 1
    answers_ns = (sent_t_ns - ack_t_ns[np.maximum(before, 0)])[before >= 0] if len(ack_t_ns) else parts_ns
    answers_ns = answers_ns[answers_ns <= RESPONSE_NS]
    least_ns = int(np.quantile(answers_ns, FAST_SHARE)) if len(answers_ns) else 0
    decided = parts_ns >= HOST_NS
    within_ns = np.where(decided, np.minimum(RESPONSE_NS - least_ns, parts_ns) + least_ns, RESPONSE_NS)
    return np.asarray(within_ns, dtype=np.int64), np.asarray(decided, dtype=np.bool_)


def transfer_end_ns(sent: SentData) -> int:
    """Return when the transfer ended: with the last new segment, or with the FIN of an application that paused before.

    An application that pauses between its writes pauses after its last one, too, before it closes: its goodput
    includes both. A longer pause than those before it make likely is another one: the connection was kept for later.
    """
    last_ns = int(sent.t_ns.max())
    acknowledged = int(np.searchsorted(sent.ack, sent.seq_end.max(), side="left"))
    if sent.fin_ns is None or acknowledged >= len(sent.ack) or captured_writes(sent) is None:
        return last_ns
    longest_ns = _longest_pause_ns([end - begin for begin, end, _ in waits_of(sent)])
    return sent.fin_ns if 0 < sent.fin_ns - int(sent.ack_t_ns[acknowledged]) <= longest_ns else last_ns


def first_end_ns(sent: SentData) -> int:
    """Return when an application that always had data may have stopped writing at the earliest: when no more was left
    to acknowledge than was once in flight. What it wrote last waited in its send buffer for as long as that took: a
    flow with many losses, or on a path that became slow, sends for many seconds after that.
    """
    if not len(sent.ack):
        return int(sent.t_ns.max())
    held = int((sent.seq_end - _acknowledged(sent)).max())
    reached = int(np.searchsorted(sent.ack, sent.seq_end.max() - held, side="left"))
    return int(sent.ack_t_ns[min(reached, len(sent.ack) - 1)])


def _acknowledged(sent: SentData) -> Ints:
    """Return the cumulative ACK when each segment left."""
    before = np.searchsorted(sent.ack_t_ns, sent.t_ns, side="right") - 1
    return np.where(before >= 0, np.append(sent.ack, sent.seq[0])[before], sent.seq[0])


def first_recovery_flights(sent: SentData) -> tuple[int, int] | None:
    """Return the maximum of the octets in flight before the first retransmission, and until the recovery that it begins
    is over, with the last octet acknowledged that was sent before it; None without a retransmission or before it."""
    if not len(sent.retransmitted_ns) or not len(sent.ack):
        return None
    flight, begun = sent.seq_end - _acknowledged(sent), sent.t_ns <= sent.retransmitted_ns[0]
    if not begun.any():
        return None
    over = int(np.searchsorted(sent.ack, sent.seq_end[begun].max(), side="left"))
    until_ns = sent.ack_t_ns[over] if over < len(sent.ack) else NEVER
    return int(flight[begun].max()), int(flight[sent.t_ns <= until_ns].max())


def _longest_pause_ns(pauses_ns: list[int]) -> float:
    """Return how long the pause after some others may be: as long as the longest of them, or, where they are MIN_PAUSES
    or more, as 95 % of those that end at random; 0 after none.

    The next of exponential times over the mean of n before it has an F distribution with 2 and 2 n degrees of freedom,
    whose quantile is below.
    """
    n, longest_ns = len(pauses_ns), max(pauses_ns, default=0)
    if n < MIN_PAUSES:
        return longest_ns
    return max(longest_ns, sum(pauses_ns) * float(0.05 ** (-1 / n) - 1))


def captured_writes(sent: SentData) -> CapturedWrites | None:
    """Return what the application wrote; None if the sender practically always had data, and no rate of it shows.

    The sender waits for data after a segment that is not full, because it would have filled it, after the end of a
    short write, and once everything that it sent is acknowledged. The wait ends with the next new segment, unless an
    ACK released that one. It ends with a retransmission, if not all was acknowledged before new data: what is lost is
    sent first (RFC 6675 §4, NextSeg), so that nothing shows when the sender had new data again.

    An application whose waits show a constant rate keeps it while the network limits the flow, until the transfer ends:
    a faster variant would send more.
    """
    if len(sent.t_ns) < 2 or not len(sent.ack_t_ns):
        return None
    waits = waits_of(sent, held=True)
    span_ns = int(sent.t_ns[-1] - sent.t_ns[0])
    share = sum(end - begin for begin, end, _ in waits) / max(span_ns, 1)
    busy = _busy_periods(sent, waits)
    small = bool(np.median([octets for _, _, octets in busy]) <= LARGE_WRITE_BYTES)
    rate = _constant_rate(waits, sent) if small or _left_evenly(sent, waits, busy) else None
    steady = rate is not None
    if share < MIN_WAIT_SHARE and not (rate and rate.lasts):
        return None
    # At a constant rate it went on while a segment was held.
    busy = _busy_periods(sent, waits_of(sent)) if steady else busy
    unsent = rate.unsent_bytes if rate and rate.lasts else 0
    busy[-1] = (*busy[-1][:2], busy[-1][2] + unsent)
    at: list[int] = []
    sizes: list[int] = []
    until: list[int] = []
    written = int(sent.seq[0])
    for begin, end, octets in busy:
        if begin >= sent.t_ns[-1]:
            break  # the last segment itself: what it carries belongs to the write before
        pieces = max(1, int((end - begin) // EVEN_WRITE_NS)) if steady else 1
        pieces = min(pieces, octets)
        edges = [octets * k // pieces for k in range(pieces + 1)]
        at += [begin - int(sent.t_ns[0]) + k * (end - begin) // pieces for k in range(pieces)]
        sizes += [after - before for before, after in pairwise(edges)]
        # At least one write, however short.
        ahead = max(written + 1, written + octets - AHEAD_BYTES)
        until.append(max(begin + MIN_BURST_NS, _last_sent_ns(sent, ahead)) - int(sent.t_ns[0]))
        written += octets
    # What was written at once may have taken the network a while; a burst of the host did not.
    long = not steady and sum(size for size in sizes if size > LARGE_WRITE_BYTES) > sum(sizes) / 2
    return CapturedWrites(tuple(at), tuple(sizes), share, steady, tuple(until) if long else None, unsent)


def waits_of(sent: SentData, *, held: bool = False) -> list[tuple[int, int, int]]:
    """Return (begin, end, octet) of each wait for data: `octet` is one past the last written before it.

    With `held`, also those that an ACK ended because Nagle's algorithm (RFC 9293 §3.7.4; Linux's tcp_nagle_test) had
    held the end of a write back: it released a short segment behind another one, the last on the way. When that one
    left, the sender had no more, and when the next one left, less than a full segment: no window limited it. When the
    held octets were written is not known: between the two.
    """
    t, following = sent.t_ns[:-1], sent.t_ns[1:]
    before = np.searchsorted(sent.ack_t_ns, following, side="left") - 1
    last_ack_ns = sent.ack_t_ns[np.maximum(before, 0)]
    last_ack = np.where(before >= 0, sent.ack[np.maximum(before, 0)], -1)
    released = (before >= 0) & (following - last_ack_ns <= RESPONSE_NS)
    short = sent.seq_end[:-1] - sent.seq[:-1] < sent.mss_bytes
    # Linux sets PSH on the last segment of every burst of a segmentation offload; a segment alone has it from a write.
    alone = sent.pushed & (np.diff(sent.t_ns, prepend=sent.t_ns[0] - RESPONSE_NS) > BURST_NS)
    if np.mean(alone) >= PUSHED_SHARE:
        short |= alone[:-1]
    # The first ACK of everything: from then on an open window had no data.
    emptied = np.searchsorted(sent.ack, sent.seq_end[:-1], side="left")
    emptied_ns = np.where(emptied < len(sent.ack), sent.ack_t_ns[np.minimum(emptied, len(sent.ack) - 1)], following)
    idle = (last_ack >= sent.seq_end[:-1]) & (following - emptied_ns > RESPONSE_NS)
    begin = np.where(short, t, np.maximum(t, emptied_ns))
    again = np.append(sent.retransmitted_ns, NEVER)[np.searchsorted(sent.retransmitted_ns, begin, side="right")]
    end = np.where(idle, following, np.minimum(following, again))
    partial = sent.seq_end - sent.seq < sent.mss_bytes
    by_nagle = partial[:-1] & partial[1:] & released & (last_ack >= sent.seq_end[:-1])
    waiting = ((short & ~released) | idle | (by_nagle & held)) & (end - begin > RESPONSE_NS)
    return [(int(begin[i]), int(end[i]), int(sent.seq_end[i])) for i in np.flatnonzero(waiting).tolist()]


def _busy_periods(sent: SentData, waits: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return (begin, end, octets) of each time between two waits in which the sender had data."""
    begins = [int(sent.t_ns[0]), *(end for _, end, _ in waits)]
    ends = [*(begin for begin, _, _ in waits), int(sent.t_ns[-1])]
    octets = [int(sent.seq[0]), *(octet for _, _, octet in waits), int(sent.seq_end[-1])]
    return [
        (begin, max(begin, end), after - before)
        for begin, end, (before, after) in zip(begins, ends, pairwise(octets), strict=True)
        if after > before
    ]


def _left_evenly(sent: SentData, waits: list[tuple[int, int, int]], busy: list[tuple[int, int, int]]) -> bool:
    """Return whether most of what was written between two waits left evenly in small bursts, no ACK released them, and
    the waits are no longer than the time between two bursts: then each burst is a write, and a wait shows only where
    one ended with a full segment or let its end leave. A large write leaves as fast as the network allows, with the
    ACKs, or, where the sender paces, evenly, and what follows it is longer than the time between two segments.
    """
    starts = np.flatnonzero(np.diff(sent.t_ns, prepend=-NEVER // 2) > RESPONSE_NS)
    if not waits or len(starts) < 2:
        return False
    if np.median([end - begin for begin, end, _ in waits]) > np.median(np.diff(sent.t_ns[starts])):
        return False
    before = np.searchsorted(sent.ack_t_ns, sent.t_ns[starts], side="right") - 1
    since_ns = sent.t_ns[starts] - np.where(before >= 0, sent.ack_t_ns[np.maximum(before, 0)], -NEVER // 2)
    if np.mean(since_ns > RESPONSE_NS) < UNRELEASED_SHARE:
        return False
    off = []
    for begin, end, octets in busy:
        first, after = np.searchsorted(sent.t_ns, (begin, end + 1))
        if end > begin and after > first:
            gone = sent.seq_end[first:after] - sent.seq[first]
            line = octets * (sent.t_ns[first:after] - begin) / (end - begin)
            off.append(float(np.max(np.abs(gone - line))) / octets)
    return bool(off) and float(np.median(off)) <= EVEN_SHARE


def _last_sent_ns(sent: SentData, octet: int) -> int:
    """Return when the last octet before `octet` was first sent: it was written no later, and its ACK came later."""
    return int(sent.t_ns[min(int(np.searchsorted(sent.seq_end, octet)), len(sent.t_ns) - 1)])


@dataclass(frozen=True, slots=True)
class _ConstantRate:
    """A constant rate that the waits show: whether it `lasts` until the transfer ends, and how much more it comes to
    than was sent."""

    lasts: bool
    unsent_bytes: int


def _constant_rate(waits: list[tuple[int, int, int]], sent: SentData) -> _ConstantRate | None:
    """Return the rate at which the octets written by each wait lie near a line over time; None if they do not.

    So do those of large writes at equal intervals, whose waits all have the same phase.
    """
    t = np.array([begin for begin, _, _ in waits], dtype=np.float64) - float(sent.t_ns[0])
    written = np.array([octet for _, _, octet in waits], dtype=np.float64) - float(sent.seq[0])
    total = float(sent.seq_end[-1] - sent.seq[0])
    if len(t) < 3 or t[-1] <= t[0]:
        return None
    slope, level = np.polyfit(t, written, 1)
    off = float(np.max(np.abs(written - (slope * t + level))))
    if off > MAX_UNEVEN * total:
        return None
    at_end = float(slope * float(sent.t_ns[-1] - sent.t_ns[0]) + level)
    # What was sent beyond that rate, the application wrote, so that it wrote faster than the waits show.
    lasts = off <= MAX_RATE_ERROR * written[-1] and total <= (1 + MAX_RATE_ERROR) * at_end
    return _ConstantRate(bool(lasts), max(0, round(at_end - total)))
