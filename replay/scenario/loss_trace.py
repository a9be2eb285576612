"""Losses of a captured channel by position among its data packets, as a scenario replays and resamples them."""

from __future__ import annotations

from dataclasses import dataclass

from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError


@dataclass(frozen=True, slots=True)
class LossTrace:
    """Losses of a captured channel: sorted positions among the `length` data packets that reached it, and those that
    the link layer's repair made late, with what it added (ns)."""

    lost: tuple[int, ...]
    length: int
    late: tuple[tuple[int, int], ...] = ()


def loss_trace(trace: Trace, where: str) -> LossTrace:
    """Return the losses by position of a trace, without those of outages: outages have a time, not a position.

    ChannelError if it holds no packets.
    """
    import pyarrow.compute as pc

    packets = trace.packets()
    packets = packets.filter(pc.is_valid(packets["position"]))
    if packets.num_rows == 0:
        raise ChannelError(f"{where}: holds no packets, so there is nothing to replay by position")
    outage = pc.equal(packets["cause"].cast("string"), "outage")
    lost = packets.filter(pc.and_(packets["lost"], pc.invert(outage)))["position"].to_pylist()
    late = packets.filter(pc.and_(pc.greater(packets["added_ns"], 0), pc.invert(packets["lost"])))
    added = zip(late["position"].to_pylist(), late["added_ns"].to_pylist(), strict=True)
    return LossTrace(tuple(lost), packets.num_rows, tuple(added))


def default_block_pkts(trace: LossTrace) -> int:
    """Return the block length for resampling: ten times the longest burst, at least 50, at most a quarter trace.

    Blocks must be long beside the bursts, else resampling tears them apart, and many, else every resample is alike.
    """
    longest = run = 0
    previous = -2
    for position in trace.lost:
        run = run + 1 if position == previous + 1 else 1
        longest = max(longest, run)
        previous = position
    return max(1, min(max(50, 10 * longest), trace.length // 4))
