"""Channel tables from arrays, and sentences about what a format omits from a table. Does not depend on a format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.channels.intervals import State, read_states
from hindflight.channels.trace import Trace, forward_intervals
from hindflight.toolkit.errors import ChannelError
from hindflight.toolkit.schema import TABLES, conform

if TYPE_CHECKING:
    import pyarrow as pa

HOP = "link"
"""Name of the link in a file that does not name it."""

DIRECTION = "a2b"
"""Direction in a file that does not state it: that of the data."""

LONGEST_NS = 366 * 86_400 * 10**9
"""Maximum duration of a trace: one year."""

Ints = npt.NDArray[np.int64]


def table_of(kind: str, columns: dict[str, Any], count: int) -> pa.Table:
    """Return a channel table of `count` rows of one kind from `columns`; others get defaults or null."""
    import pyarrow as pa

    nothing = np.zeros(count, dtype=np.int8)
    filled: dict[str, Any] = {
        "kind": named(nothing, [kind]),
        "hop": named(nothing, [HOP]),
        "direction": named(nothing, [DIRECTION]),
        "lost": np.zeros(count, dtype=np.bool_),
        "cause": named(nothing, ["none"]),
        "known": np.ones(count, dtype=np.bool_),
        **columns,
    }
    names = [column.name for column in TABLES["channel"].columns]
    arrays = {name: _array(filled[name]) if name in filled else pa.nulls(count) for name in names}
    return conform("channel", pa.table(arrays))


def named(which: npt.NDArray[np.int8], names: list[str]) -> pa.DictionaryArray:
    """Return a dictionary array of `names` by their indices."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(which), pa.array(names))


def _array(values: Any) -> pa.Array:
    import pyarrow as pa

    return values if isinstance(values, pa.Array) else pa.array(values)


MAX_PKTS = 10_000_000
"""Maximum length of a list of losses: the table has one row per packet up to the last loss."""


def packets_from_losses(lost: Sequence[int], where: str) -> Trace:
    """Return a trace of packets from the ascending indices of the lost ones; it ends with the last loss."""
    if not len(lost):
        raise ChannelError(f"{where}: the list of lost packets is empty")
    count = int(lost[-1]) + 1
    gone = np.zeros(count, dtype=np.bool_)
    gone[np.asarray(lost, dtype=np.int64)] = True
    columns = {
        "position": np.arange(count, dtype=np.uint64),
        "t_ns": np.zeros(count, dtype=np.int64),
        "lost": gone,
        "cause": named(gone.astype(np.int8), ["none", "channel"]),
    }
    unknowns = (
        "A list of lost packets has no times: all packets are at time 0.",
        "A list of lost packets ends with its last loss: the number of packets after it is not known.",
    )
    return Trace(table_of("packet", columns, count), unknowns=unknowns, source={"name": where})


def lost_positions(trace: Trace, where: str) -> Ints:
    """Return the indices of lost packets, outages included. Raises ChannelError without packets."""
    import pyarrow.compute as pc

    packets = trace.packets()
    packets = packets.filter(pc.is_valid(packets["position"]))
    if packets.num_rows == 0:
        raise ChannelError(f"{where}: has no packets by position, so there is no list of lost packets")
    return np.asarray(packets.filter(packets["lost"])["position"]).astype(np.int64)


def forward_states(trace: Trace, where: str) -> list[State]:
    """Return the intervals of the data direction as contiguous states. Raises ChannelError for a gap."""
    intervals = forward_intervals(trace)
    return read_states(intervals, intervals["direction"][0].as_py(), where) if intervals.num_rows else []


def omissions(trace: Trace, held: set[str]) -> list[str]:
    """Return one sentence per property of the trace that a format with the columns `held` cannot represent."""
    packets, intervals = trace.packets(), trace.intervals()
    omitted: list[str] = []
    if packets.num_rows and "packets" not in held:
        count = int(np.asarray(packets["lost"]).sum())
        omitted.append(f"{packets.num_rows} packets, {count} of them lost, are omitted")
    if intervals.num_rows and "intervals" not in held:
        omitted.append(f"{intervals.num_rows} intervals of rate, delay and outage are omitted")
    kept = [(packets, "packets"), (intervals, "intervals")]
    for column in ("delay_ns", "added_ns", "overlap_ns", "rate_bps", "per", "ber", "size_bytes", "evidence"):
        count = sum(len(part) - part[column].null_count for part, kind in kept if kind in held)
        if count and column not in held:
            omitted.append(f"{column} of {count} rows is omitted")
    uncertain = sum(int(np.sum(~np.asarray(part["known"]))) for part, kind in kept if kind in held)
    if uncertain and "known" not in held:
        omitted.append(f"the mark of {uncertain} rows as uncertain is omitted")
    if len(set(intervals["direction"].to_pylist())) > 1 and "intervals" in held and "direction" not in held:
        omitted.append("the intervals of the other direction are omitted")
    if (trace.estimates or trace.unknowns or trace.counts) and "notes" not in held:
        omitted.append("estimates, unknowns, counts and source of the trace are omitted")
    return omitted
