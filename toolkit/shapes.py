"""Shapes that experts look for in a capture: receiver pauses, repeated timeouts, bursts, compressed ACKs, thinned ACKs.

Reads `segments` and `events` of one flow. Each shape follows from a definition, so it has evidence but no probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.serial import unwrapped

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BACK_TO_BACK_NS = 100_000
"""Longest time between two segments that the host sent in one go."""

MIN_BURST_PKTS = 11
"""Segments of a burst: more than an initial window (RFC 6928 §2)."""

COMPRESSED = 0.75
"""Time between ACKs on arrival, as a share of that when they were sent, below which they were compressed.

Paxson, End-to-End Internet Packet Dynamics (1999), on ACK timing compression.
"""

COMPRESSED_ACKS = 3
"""ACKs that are compared at a time, as there."""

MIN_TICKS = 4
"""Ticks of the timestamp clock that the ACKs span, so that its resolution does not decide."""

STRETCHED_SEGMENTS = 2
"""Full-sized segments that one ACK may report (RFC 5681 §4.2)."""

SYN_FIN_RST = 7
"""TCP flags."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape: its name, the packets from the first to the last as numbered in the capture, its time, and evidence."""

    name: str
    first_record: int
    last_record: int
    t_ns: int
    evidence: str


@dataclass(frozen=True, slots=True)
class _Acks:
    """Segments against the direction of the data, without SYN, FIN and RST; `ts_val` is -1 without the option."""

    record: Ints
    t_ns: Ints
    ack: Ints
    window: Ints
    ts_val: Ints
    blocks: Ints


def shapes(segments: pa.Table, events: pa.Table, direction: str, mss_bytes: int, vantage: str) -> list[Shape]:
    """Return the shapes of one flow in order of time; `direction` is that of its data.

    Bursts and the times of ACKs on arrival show at the data sender only.
    """
    acks = _acks(segments, direction)
    found = [*_receiver_pauses(acks), *_repeated_timeouts(events, direction)]
    if vantage == "sender":
        found += [*_bursts(segments, direction), *_compressed(acks), *_stretched(acks, mss_bytes)]
    return sorted(found, key=lambda shape: shape.t_ns)


def _acks(segments: pa.Table, direction: str) -> _Acks:
    import pyarrow.compute as pc

    back = segments.filter(pc.not_equal(segments["direction"].cast("string"), direction))
    plain = pc.equal(pc.bit_wise_and(back["flags"].cast("int32"), SYN_FIN_RST), 0)
    back = back.filter(pc.and_(plain, pc.is_valid(back["ack"])))
    return _Acks(
        record=_column(back, "record"),
        t_ns=_column(back, "t_ns"),
        ack=_column(back, "ack"),
        window=_column(back, "window"),
        ts_val=_column(back, "ts_val"),
        blocks=np.asarray(pc.list_value_length(back["sack"]).to_numpy(), dtype=np.int64),
    )


def _column(table: pa.Table, name: str) -> Ints:
    return np.asarray(table[name].cast("int64").fill_null(-1).to_numpy(), dtype=np.int64)


def _runs(marks: Bools) -> Iterator[tuple[int, int]]:
    """Return (first, last) of each run of marks."""
    edges = np.diff(np.concatenate(([0], marks.astype(np.int8), [0])))
    yield from zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True)


def _receiver_pauses(acks: _Acks) -> Iterator[Shape]:
    for first, last in _runs(acks.window == 0):
        opened = last + 1 < len(acks.t_ns)
        end = last + 1 if opened else last
        lasted = (acks.t_ns[end] - acks.t_ns[first]) / 1e9
        until = "until it opened" if opened else "up to the end of the capture"
        evidence = f"the receiver's window was zero for {lasted:.3f} s, {until}"
        yield Shape("receiver pause", int(acks.record[first]), int(acks.record[end]), int(acks.t_ns[first]), evidence)


def _repeated_timeouts(events: pa.Table, direction: str) -> Iterator[Shape]:
    import pyarrow.compute as pc

    mine = pc.and_(
        pc.equal(events["direction"].cast("string"), direction), pc.equal(events["kind"].cast("string"), "rto")
    )
    rows: list[dict[str, Any]] = events.filter(mine).sort_by("t_ns").to_pylist()
    for _, group in groupby(rows, key=lambda row: row["seq_start"]):
        run = list(group)
        if len(run) < 2:
            continue
        waits = [(after["t_ns"] - before["t_ns"]) / 1e9 for before, after in pairwise(run)]
        listed = ", ".join(f"{wait:.2f}" for wait in waits)
        evidence = f"{len(run)} timeouts in a row of the same segment, after {listed} s more"
        yield Shape("repeated timeout", run[0]["record"], run[-1]["record"], run[0]["t_ns"], evidence)


def _bursts(segments: pa.Table, direction: str) -> Iterator[Shape]:
    import pyarrow.compute as pc

    ours = pc.equal(segments["direction"].cast("string"), direction)
    data = segments.filter(pc.and_(ours, pc.greater(segments["payload_bytes"], 0)))
    t_ns, record = _column(data, "t_ns"), _column(data, "record")
    for first, last in _runs(np.diff(t_ns) <= BACK_TO_BACK_NS):
        count = last - first + 2
        if count >= MIN_BURST_PKTS:
            lasted = (t_ns[last + 1] - t_ns[first]) / 1e6
            evidence = f"{count} data segments left within {lasted:.2f} ms"
            yield Shape("burst", int(record[first]), int(record[last + 1]), int(t_ns[first]), evidence)


def _compressed(acks: _Acks) -> Iterator[Shape]:
    """ACKs that arrived closer together than the receiver's timestamps say that they were sent."""
    stamped = np.flatnonzero(acks.ts_val >= 0)
    if len(stamped) < COMPRESSED_ACKS:
        return
    t_ns, ticks = acks.t_ns[stamped], unwrapped(acks.ts_val[stamped], int(acks.ts_val[stamped[0]]))
    if ticks[-1] <= ticks[0]:
        return
    tick_ns = float(t_ns[-1] - t_ns[0]) / float(ticks[-1] - ticks[0])
    ahead = COMPRESSED_ACKS - 1
    sent, arrived = ticks[ahead:] - ticks[:-ahead], t_ns[ahead:] - t_ns[:-ahead]
    close = (sent >= MIN_TICKS) & (arrived < COMPRESSED * (sent - 1) * tick_ns)
    for first, start in _runs(close):
        last = start + ahead
        evidence = (
            f"{last - first + 1} ACKs arrived within {(t_ns[last] - t_ns[first]) / 1e6:.2f} ms; by the receiver's "
            f"timestamps it sent them within {(ticks[last] - ticks[first]) * tick_ns / 1e6:.1f} ms"
        )
        from_record, to_record = acks.record[stamped[[first, last]]].tolist()
        yield Shape("compressed ACKs", from_record, to_record, int(t_ns[first]), evidence)


def _stretched(acks: _Acks, mss_bytes: int) -> Iterator[Shape]:
    """One shape for the flow: ACKs of new data that report more segments than a receiver may leave out."""
    highest = np.maximum.accumulate(acks.ack)
    new = np.diff(highest, prepend=highest[:1])
    # The ACK that fills a hole reports what had arrived long before.
    in_order = np.concatenate(([True], acks.blocks[:-1] == 0)) & (acks.blocks == 0)
    counted = (new > 0) & in_order
    long = counted & (new > STRETCHED_SEGMENTS * mss_bytes)
    if not long.any():
        return
    index = np.flatnonzero(long)
    largest = index[int(np.argmax(new[index]))]
    evidence = (
        f"{len(index)} of {int(counted.sum())} ACKs of new data report more than {STRETCHED_SEGMENTS} full segments: "
        f"ACKs were lost or thinned out, or the receiver joins segments; packet {int(acks.record[largest])} reports "
        f"{new[largest] / mss_bytes:.1f}"
    )
    first, last = acks.record[index[[0, -1]]].tolist()
    yield Shape("stretched ACKs", first, last, int(acks.t_ns[index[0]]), evidence)
