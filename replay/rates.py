"""The rate of a link over time, from a channel file in any format: what the engine plays in place of one rate.

Knows channel traces and the engine's words (`RateTraceConfig`), no scenario. Read docs/channels/interop.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from channels.interop import read_channel
from toolkit.errors import ChannelError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RateTrace:
    """From each start on its rate holds; at `end_ns` the trace starts again."""

    starts_ns: tuple[int, ...]
    rates_bps: tuple[float, ...]
    end_ns: int

    def config(self) -> dict[str, Any]:
        """The engine's words."""
        return {"starts_ns": list(self.starts_ns), "rates_bps": list(self.rates_bps), "end_ns": self.end_ns}


def read_rates(path: Path, direction: str = "a2b") -> RateTrace:
    """Read the rate over time of `direction`; of the only one there is if the file holds one. Outages have rate 0.

    ChannelError if the file gives no rate, or leaves gaps.
    """
    intervals = _of_direction(read_channel(path).intervals(), direction)
    if intervals.num_rows == 0 or intervals["rate_bps"].null_count == intervals.num_rows:
        raise ChannelError(f"{path}: gives no rate over time", "`hindflight channel show` tells what it holds")
    start, end = (np.asarray(intervals[name]) for name in ("t_ns", "end_ns"))
    lost = np.asarray(intervals["lost"]).tolist()
    rates = [0.0 if out else rate for rate, out in zip(intervals["rate_bps"].to_pylist(), lost, strict=True)]
    lasting = np.flatnonzero(end > start)
    for before, after in pairwise(lasting.tolist()):
        if start[after] != end[before]:
            how = "overlap" if start[after] < end[before] else "leave a gap"
            raise ChannelError(f"{path}: intervals {before + 1} and {after + 1} {how}, so the rate is not told")
    for i in lasting:
        if rates[i] is None:
            raise ChannelError(f"{path}: interval {i + 1} has no rate")
    if not any(rates[i] for i in lasting):
        raise ChannelError(f"{path}: the rate is 0 throughout, so nothing would ever arrive")
    origin = start[lasting[0]]
    return RateTrace(
        tuple((start[lasting] - origin).tolist()),
        tuple(float(rates[i]) for i in lasting),
        int(end[lasting[-1]] - origin),
    )


def _of_direction(intervals: pa.Table, direction: str) -> pa.Table:
    import pyarrow.compute as pc

    held = intervals["direction"].cast("string")
    if len(set(held.to_pylist())) < 2:
        return intervals
    return intervals.filter(pc.equal(held, direction))
