"""Losses of a captured channel by position among its data packets, as a scenario replays and resamples them, and the
packets of other flows, as the self-check replays them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.channels.trace import Trace
from hindflight.replay.scenario.draws import Open, open_of
from hindflight.toolkit.errors import ChannelError

if TYPE_CHECKING:
    import pyarrow as pa


MIN_RATE_BPS = 1000.0
"""Rate of recorded packets for the engine, which refuses a rate of next to nothing."""


@dataclass(frozen=True, slots=True)
class RecordedPackets:
    """Data packets of a capture by time: `at_ns` since the start of the run (uint64, ascending), octets (uint32)."""

    at_ns: pa.Array
    bytes: pa.Array

    def engine(self, duration_ns: int) -> dict[str, Any]:
        """Return a stream of datagrams that leave as these packets did; the engine bounds what is in flight by its
        mean rate."""
        import pyarrow.compute as pc

        return {
            "name": "recorded",
            "packet_bytes": pc.max(self.bytes).as_py(),
            "rate_bps": max(MIN_RATE_BPS, pc.sum(self.bytes).as_py() * 8e9 / duration_ns),
            "recorded": {"at_ns": self.at_ns, "bytes": self.bytes},
        }


@dataclass(frozen=True, slots=True)
class LossTrace:
    """Losses of a captured channel among the `length` data packets that reached it, as Arrow arrays.

    `lost` has the ascending positions (uint64) of the lost packets. `late` has a row of position and added_ns (uint64)
    for each packet that a retransmission by the link layer delayed. `open` is what the capture leaves open about the
    channel; None where the trace was not extracted from one. `others` are the packets of other flows of the capture,
    with which a self-check replays the flow under test; without them it replays those flows as TCP.
    """

    lost: pa.Array
    length: int
    late: pa.Array
    open: Open | None = None
    others: RecordedPackets | None = None


def loss_trace(trace: Trace, where: str) -> LossTrace:
    """Return the losses by position of a trace, without those of outages: outages have a time, not a position.

    ChannelError if it holds no packets.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    packets = trace.packets()
    packets = packets.filter(pc.is_valid(packets["position"]))
    if packets.num_rows == 0:
        raise ChannelError(f"{where}: holds no packets, so there is nothing to replay by position")
    outage = pc.equal(packets["cause"].cast("string"), "outage")
    lost = packets.filter(pc.and_(packets["lost"], pc.invert(outage)))["position"]
    late = packets.filter(pc.and_(pc.greater(packets["added_ns"], 0), pc.invert(packets["lost"])))
    columns = [late["position"].cast(pa.uint64()), late["added_ns"].cast(pa.uint64())]
    added = pa.StructArray.from_arrays([column.combine_chunks() for column in columns], ["position", "added_ns"])
    positions = lost.cast(pa.uint64()).combine_chunks()
    open_ = open_of(trace, positions.to_numpy().astype(np.int64), packets.num_rows) if trace.estimates else None
    return LossTrace(positions, packets.num_rows, added, open_)


def recorded_others(trace: Trace, own: pa.ChunkedArray, duration_ns: int) -> RecordedPackets | None:
    """Return the packets of `trace` that are not in the records `own`, within `duration_ns` from its first state on, at
    which a run begins; None if there are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    packets, begin_ns = trace.packets(), pc.min(trace.intervals()["t_ns"]).as_py() or 0
    since_ns = pc.subtract(packets["t_ns"], begin_ns)
    within = pc.and_(pc.greater_equal(since_ns, 0), pc.less(since_ns, duration_ns))
    record = packets["record"]
    ours = pc.is_in(record, value_set=own.combine_chunks().cast(record.type))
    wanted = pc.and_(within, pc.and_(pc.is_valid(record), pc.invert(ours)))
    at_ns, sizes = since_ns.filter(wanted), packets["size_bytes"].filter(wanted)
    if not len(at_ns):
        return None
    order = pc.array_sort_indices(at_ns.combine_chunks())
    return RecordedPackets(
        at_ns.combine_chunks().take(order).cast(pa.uint64()), sizes.combine_chunks().take(order).cast(pa.uint32())
    )


def default_block_pkts(trace: LossTrace) -> int:
    """Return the block length for resampling: ten times the longest burst, at least 50, at most a quarter trace.

    Blocks must be longer than the bursts, or resampling tears them apart, and many, or all resamples are alike.
    """
    breaks = np.flatnonzero(np.diff(trace.lost.to_numpy()) != 1)
    edges = np.concatenate(([-1], breaks, [len(trace.lost) - 1]))
    longest = int(np.diff(edges).max())
    return max(1, min(max(50, 10 * longest), trace.length // 4))
