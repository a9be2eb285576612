"""Channel tables out of plain arrays, and what of a table a format leaves out, in words.

Knows the schema, no format.
"""

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
"""Name of the link that a file without names is about."""

DIRECTION = "a2b"
"""Direction of a file that does not say: that of the data."""

LONGEST_NS = 366 * 86_400 * 10**9
"""A year: a trace that goes on beyond it is a slip."""

Ints = npt.NDArray[np.int64]


def table_of(kind: str, columns: dict[str, Any], count: int) -> pa.Table:
    """A channel table of `count` rows of one kind from some of its columns; the others are null or plain."""
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
    """Return words by their numbers: a byte for each row."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(which), pa.array(names))


def _array(values: Any) -> pa.Array:
    import pyarrow as pa

    return values if isinstance(values, pa.Array) else pa.array(values)


MOST_PKTS = 10_000_000
"""Packets of a list of losses, at most: the table has a row for each up to the last one lost."""


def packets_from_losses(lost: Sequence[int], where: str) -> Trace:
    """A trace by position from the numbers of the lost packets, ascending; it ends with the last of them."""
    if not len(lost):
        raise ChannelError(f"{where}: lists no packet, so there is nothing to replay")
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
        "A list of lost packets has no times: all packets stand at time 0.",
        "A list of lost packets ends with its last loss: how many followed it is not known.",
    )
    return Trace(table_of("packet", columns, count), unknowns=unknowns, source={"name": where})


def lost_positions(trace: Trace, where: str) -> Ints:
    """Numbers of the packets that the channel lost, outages included; ChannelError without packets by position."""
    import pyarrow.compute as pc

    packets = trace.packets()
    packets = packets.filter(pc.is_valid(packets["position"]))
    if packets.num_rows == 0:
        raise ChannelError(f"{where}: holds no packets by position, so there is no list of lost ones")
    return np.asarray(packets.filter(packets["lost"])["position"]).astype(np.int64)


def forward_states(trace: Trace, where: str) -> list[State]:
    """Return the same as states without a gap: an outage cuts those over which it stands. ChannelError for a gap."""
    intervals = forward_intervals(trace)
    return read_states(intervals, intervals["direction"][0].as_py(), where) if intervals.num_rows else []


def lacking(trace: Trace, held: set[str]) -> list[str]:
    """A sentence for each thing that the trace says and a format with the columns `held` cannot hold."""
    packets, intervals = trace.packets(), trace.intervals()
    said: list[str] = []
    if packets.num_rows and "packets" not in held:
        count = int(np.asarray(packets["lost"]).sum())
        said.append(f"{packets.num_rows} packets, {count} of them lost, are not in it")
    if intervals.num_rows and "intervals" not in held:
        said.append(f"{intervals.num_rows} intervals of rate, delay and outage are not in it")
    kept = [(packets, "packets"), (intervals, "intervals")]
    for column in ("delay_ns", "added_ns", "overlap_ns", "rate_bps", "per", "ber", "size_bytes", "evidence"):
        count = sum(len(part) - part[column].null_count for part, kind in kept if kind in held)
        if count and column not in held:
            said.append(f"{column} of {count} rows is not in it")
    unsure = sum(int(np.sum(~np.asarray(part["known"]))) for part, kind in kept if kind in held)
    if unsure and "known" not in held:
        said.append(f"that {unsure} rows are not known for certain is not in it")
    if len(set(intervals["direction"].to_pylist())) > 1 and "intervals" in held and "direction" not in held:
        said.append("the other direction's intervals are not in it")
    if (trace.estimates or trace.unknowns or trace.counts) and "notes" not in held:
        said.append("estimates, unknowns, counts and source of the trace are not in it")
    return said
