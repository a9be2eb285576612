"""Mahimahi's packet-delivery traces: a line per chance to deliver one packet of 1500 bytes, its time in milliseconds.

As mm-link(1) has it: times ascend, several chances may share a millisecond, and with the last the trace starts again:
its length is the last time. A chance at s is therefore of the interval from s - 1 to s, and one at 0 of the last one.
Knows the table's schema. Read docs/channels/interop.md.
"""

from __future__ import annotations

import numpy as np

from hindflight.channels.formats.rows import LONGEST_NS, Ints, forward_states, lacking, table_of
from hindflight.channels.formats.text import Source, whole
from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError

PACKET_BYTES = 1500
"""What one chance delivers (mm-link: MTU-sized packets)."""

MOST_CHANCES = 100_000_000

MS = 1_000_000
SECOND = 1_000_000_000


def read(source: Source) -> Trace:
    """Read chances into intervals of rate: those at s make the rate from s - 1 to s. ChannelError names the line."""
    stamps = []
    before = 0
    for number, line in source.lines():
        stamp = whole(source, number, line, "the time")
        if stamp < before:
            raise source.wrong(
                number, f"{stamp} ms is earlier than the line before ({before} ms): the trace is not sorted"
            )
        if stamp * MS > LONGEST_NS:
            raise source.wrong(number, f"{stamp} ms is more than a year")
        stamps.append(stamp)
        before = stamp
    if before == 0:
        raise ChannelError(f"{source.path}: all chances are at 0 ms: the trace has no length")
    slots, chances = np.unique([(stamp or before) - 1 for stamp in stamps], return_counts=True)
    edges = np.unique(np.concatenate(([0], slots, slots + 1)))
    per_ms = np.zeros(len(edges) - 1, dtype=np.int64)
    per_ms[np.searchsorted(edges, slots)] = chances
    first = np.flatnonzero(np.diff(per_ms, prepend=-1) != 0)
    columns = {
        "t_ns": edges[first] * MS,
        "end_ns": np.append(edges[first[1:]], edges[-1]) * MS,
        "rate_bps": per_ms[first] * (PACKET_BYTES * 8 * SECOND / MS),
    }
    unknowns = ("A Mahimahi trace says when packets may leave, not how long they travel nor which are lost.",)
    return Trace(table_of("interval", columns, len(first)), unknowns=unknowns, source={"name": source.name})


def write(trace: Trace, where: str) -> tuple[str, list[str]]:
    """Return the chances, and what is left out; time 0 is where the first interval begins."""
    states = forward_states(trace, where)
    if all(state.rate_bps is None for state in states):
        raise ChannelError(
            f"{where}: the trace has no rate over time, and a Mahimahi trace is nothing else",
            "a list of lost packets can be written as ns2 or ns3",
        )
    for number, state in enumerate(states, 1):
        if state.rate_bps is None and not state.lost:
            raise ChannelError(f"{where}: interval {number} has no rate, and a Mahimahi trace cannot leave it open")
    start, ends = (np.array([getattr(state, name) for state in states]) for name in ("start_ns", "end_ns"))
    lost = np.array([state.lost for state in states])
    rates = np.array([0.0 if state.lost else state.rate_bps or 0.0 for state in states])
    said = lacking(trace, {"intervals", "rate_bps"})
    if start[0] != 0:
        said.append(f"that the trace begins at {start[0]} ns is not in it: a Mahimahi trace begins at 0")
    if lost.any():
        said.append(f"{int(lost.sum())} outages are in it as times without a chance")
    stamps = _stamps(start - start[0], ends - start[0], rates, where)
    if not len(stamps):
        raise ChannelError(f"{where}: in all of the trace not one packet of {PACKET_BYTES} bytes could leave")
    silent_ns = int(ends[-1] - ends[rates > 0][-1])
    if silent_ns:
        said.append(
            f"its last {silent_ns / SECOND:g} s, in which nothing is sent, are not in it: a Mahimahi trace ends with "
            "its last chance and starts again there"
        )
    return "\n".join(map(str, stamps.tolist())) + "\n", said


def _stamps(start: Ints, end: Ints, rate_bps: np.ndarray[tuple[int, ...], np.dtype[np.float64]], where: str) -> Ints:
    """The end of the millisecond in which each packet has been paid for: the n-th when the link could have sent n."""
    sent = np.concatenate(([0.0], np.cumsum(rate_bps * (end - start) / (8 * SECOND))))
    # A hair is added: what a float leaves a millionth of a byte short has been sent.
    count = int((sent[-1] + 1e-3) // PACKET_BYTES)
    if count > MOST_CHANCES:
        raise ChannelError(
            f"{where}: has {count} chances to deliver a packet; a Mahimahi trace of ours at most {MOST_CHANCES}"
        )
    times = np.interp(np.arange(1, count + 1) * float(PACKET_BYTES) - 1e-3, sent, np.append(start, end[-1]))
    return np.asarray(times // MS + 1, dtype=np.int64)
