"""Losses of a captured channel by position among its data packets, as a scenario replays and resamples them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hindflight.channels.trace import Trace
from hindflight.replay.scenario.draws import Open, open_of
from hindflight.toolkit.errors import ChannelError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class LossTrace:
    """Losses of a captured channel among the `length` data packets that reached it, as Arrow arrays.

    `lost` has the ascending positions (uint64) of the lost packets. `late` has a row of position and added_ns (uint64)
    for each packet that a retransmission by the link layer delayed. `open` is what the capture leaves open about the
    channel; None where the trace was not extracted from one.
    """

    lost: pa.Array
    length: int
    late: pa.Array
    open: Open | None = None


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


def default_block_pkts(trace: LossTrace) -> int:
    """Return the block length for resampling: ten times the longest burst, at least 50, at most a quarter trace.

    Blocks must be longer than the bursts, or resampling tears them apart, and many, or all resamples are alike.
    """
    breaks = np.flatnonzero(np.diff(trace.lost.to_numpy()) != 1)
    edges = np.concatenate(([-1], breaks, [len(trace.lost) - 1]))
    longest = int(np.diff(edges).max())
    return max(1, min(max(50, 10 * longest), trace.length // 4))
