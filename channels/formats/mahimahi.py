"""Mahimahi's packet-delivery traces: a line per opportunity to deliver a packet of 1500 bytes, its time in ms.

According to mm-link(1), times ascend, several opportunities may share a millisecond, and the trace repeats after the
last one, whose time is the length of the trace. An opportunity at s belongs to the interval from s - 1 to s, one at 0
to the last interval. See docs/channels/interop.md.
"""

from __future__ import annotations

import numpy as np

from hindflight.channels.formats.rows import LONGEST_NS, Ints, forward_states, omissions, table_of
from hindflight.channels.formats.text import Source, parse_integer
from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError

PACKET_BYTES = 1500
"""Bytes delivered per opportunity (mm-link: packets of the MTU)."""

MAX_OPPORTUNITIES = 100_000_000

MS = 1_000_000
SECOND = 1_000_000_000


def read(source: Source) -> Trace:
    """Read opportunities into intervals of constant rate. Raises ChannelError with the line."""
    stamps = []
    before = 0
    for number, line in source.lines():
        stamp = parse_integer(source, number, line, "the time")
        if stamp < before:
            raise source.error_at(
                number, f"{stamp} ms is earlier than the previous line ({before} ms): the trace is not sorted"
            )
        if stamp * MS > LONGEST_NS:
            raise source.error_at(number, f"{stamp} ms is more than a year")
        stamps.append(stamp)
        before = stamp
    if before == 0:
        raise ChannelError(f"{source.path}: all delivery opportunities are at 0 ms: the trace has no duration")
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
    unknowns = ("A Mahimahi trace contains delivery opportunities, but neither delays nor losses.",)
    return Trace(table_of("interval", columns, len(first)), unknowns=unknowns, source={"name": source.name})


def write(trace: Trace, where: str) -> tuple[str, list[str]]:
    """Return the delivery opportunities, and what the text omits. Time 0 is the start of the first interval."""
    states = forward_states(trace, where)
    if all(state.rate_bps is None for state in states):
        raise ChannelError(
            f"{where}: the trace has no rate over time, which is all that a Mahimahi trace contains",
            "a list of lost packets can be written as ns2 or ns3",
        )
    for number, state in enumerate(states, 1):
        if state.rate_bps is None and not state.lost:
            raise ChannelError(f"{where}: interval {number} has no rate, which a Mahimahi trace requires")
    start, ends = (np.array([getattr(state, name) for state in states]) for name in ("start_ns", "end_ns"))
    lost = np.array([state.lost for state in states])
    rates = np.array([0.0 if state.lost else state.rate_bps or 0.0 for state in states])
    omitted = omissions(trace, {"intervals", "rate_bps"})
    if start[0] != 0:
        omitted.append(f"the start of the trace at {start[0]} ns is omitted: a Mahimahi trace starts at 0")
    if lost.any():
        omitted.append(f"{int(lost.sum())} outages are written as times without delivery opportunities")
    stamps = _stamps(start - start[0], ends - start[0], rates, where)
    if not len(stamps):
        raise ChannelError(f"{where}: the trace has no delivery opportunity for a packet of {PACKET_BYTES} bytes")
    silent_ns = int(ends[-1] - ends[rates > 0][-1])
    if silent_ns:
        omitted.append(
            f"the last {silent_ns / SECOND:g} s, in which nothing is sent, are omitted: a Mahimahi trace ends with "
            "its last delivery opportunity and repeats from there"
        )
    return "\n".join(map(str, stamps.tolist())) + "\n", omitted


def _stamps(start: Ints, end: Ints, rate_bps: np.ndarray[tuple[int, ...], np.dtype[np.float64]], where: str) -> Ints:
    """Return the millisecond in which the link could have sent the n-th packet, for each n."""
    sent = np.concatenate(([0.0], np.cumsum(rate_bps * (end - start) / (8 * SECOND))))
    # The millibyte absorbs rounding errors of the sum.
    count = int((sent[-1] + 1e-3) // PACKET_BYTES)
    if count > MAX_OPPORTUNITIES:
        raise ChannelError(f"{where}: the trace has {count} delivery opportunities; the maximum is {MAX_OPPORTUNITIES}")
    times = np.interp(np.arange(1, count + 1) * float(PACKET_BYTES) - 1e-3, sent, np.append(start, end[-1]))
    return np.asarray(times // MS + 1, dtype=np.int64)
