"""The rate of a link over time, from a channel file in any format: what the engine plays in place of one rate.

Depends on channel traces and the engine's `RateTraceConfig`, not on a scenario. Read docs/channels/interop.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hindflight.channels.formats import read_channel
from hindflight.channels.intervals import Direction, read_states
from hindflight.toolkit.errors import ChannelError


@dataclass(frozen=True, slots=True)
class RateTrace:
    """From each start on its rate holds; at `end_ns` the trace starts again."""

    starts_ns: tuple[int, ...]
    rates_bps: tuple[float, ...]
    end_ns: int

    def config(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {"starts_ns": self.starts_ns, "rates_bps": self.rates_bps, "end_ns": self.end_ns}


def read_rates(path: Path, direction: Direction = "a2b") -> RateTrace:
    """Read the rate over time of `direction`; or of the only one there is. It is 0 where all is lost.

    Outages may overlap the states. ChannelError if the file gives no rate, or leaves gaps.
    """
    intervals = read_channel(path).intervals()
    directions = sorted(set(intervals["direction"].to_pylist()))
    if not directions or intervals["rate_bps"].null_count == intervals.num_rows:
        raise ChannelError(f"{path}: gives no rate over time", "`hindflight channel show` lists its contents")
    way: Direction = direction if direction in directions else directions[0]
    states = read_states(intervals, way, str(path))
    rates = [0.0 if state.lost else state.rate_bps for state in states]
    for state, rate in zip(states, rates, strict=True):
        if rate is None:
            where = f"from {state.start_ns / 1e9:g} s to {state.end_ns / 1e9:g} s"
            raise ChannelError(f"{path}: gives no rate {where}", "a row without a rate must be an outage")
    if not any(rates):
        raise ChannelError(f"{path}: the rate is 0 throughout, so nothing would ever arrive")
    origin_ns = states[0].start_ns
    return RateTrace(
        tuple(state.start_ns - origin_ns for state in states),
        tuple(float(rate or 0.0) for rate in rates),
        states[-1].end_ns - origin_ns,
    )
