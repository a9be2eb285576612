"""The states of one sender as a WEB100 snaplog of kernel 2.5.27, for tools that read those.

The layout and its octets are those of toolkit/logs/web100_writer.py; the mapping is the inverse of
toolkit/logs/web100_variables.py. WEB100 has whole milliseconds for round-trip times and microseconds for the clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.logs.model import Connection
from hindflight.toolkit.logs.web100_variables import COUNTERS, ESTABLISHED, TIMES, WINDOWS
from hindflight.toolkit.logs.web100_writer import Snaplog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindflight.toolkit.export.chosen import Chosen
    from hindflight.toolkit.logs.web100_writer import Row

_SOURCES = ("replay", "tcp_info", "tcp_probe", "web100", "inferred")
"""Whose states are written, the first of these that the flow has: the sender's own before inferred ones."""

_UNSET = 0xFFFF_FFFF
_MS = 1_000_000
_FIRST_US = 946_684_800 * 10**6
"""2000-01-01: readers tell the order of octets by the time, so a replay, whose clock begins at 0, begins then."""


def write_web100(chosen: Chosen, path: Path) -> int:
    """Write the states of the only flow of `chosen` to `path`; return how many there are.

    HindflightError: there are several flows, no states, or values that the layout cannot hold.
    """
    flows = chosen.table("flows").to_pylist()
    if len(flows) != 1:
        raise HindflightError(f"a snaplog is of one connection; here are {len(flows)}", "choose one: --flow")
    states = [row for row in chosen.table("instruments").to_pylist() if row["leg"] == 0]
    source = next((one for one in _SOURCES if any(row["source"] == one for row in states)), None)
    kept = [row for row in states if row["source"] == source and row["cwnd_bytes"] is not None]
    if not kept:
        raise HindflightError("the flow has no states of its sender", "a snaplog has the congestion window over time")
    kept.sort(key=lambda row: row["t_ns"])
    flow = flows[0]
    sender, receiver = ("a", "b") if flow["data_direction"] == "a2b" else ("b", "a")
    local, remote = ((flow[f"{end}_addr"], flow[f"{end}_port"]) for end in (sender, receiver))
    connection = Connection(*local, *remote, sender == "a")
    since_us = kept[0]["t_ns"] // 1000
    shift_us = 0 if since_us >= _FIRST_US else _FIRST_US
    try:
        with path.open("wb") as file:
            begun_s = (since_us + shift_us) // 10**6
            file.writelines(Snaplog(connection, begun_s).octets(_snapshots(kept, connection, shift_us)))
    except ValueError as error:
        raise HindflightError(f"no snaplog can hold these states: {error}", "export csv instead") from error
    return len(kept)


def _snapshots(states: list[dict[str, Any]], connection: Connection, shift_us: int) -> Iterator[Row]:
    """The states as snapshots, `shift_us` later; a null counter is 0, a null window or time the kernel's unset."""
    start_us = states[0]["t_ns"] // 1000 + shift_us
    ends: dict[str, int | str] = {
        "LocalAddress": connection.local_addr,
        "RemAddress": connection.remote_addr,
        "RemoteAddress": connection.remote_addr,
        "LocalPort": connection.local_port,
        "RemPort": connection.remote_port,
        "RemotePort": connection.remote_port,
    }
    for state in states:
        row: dict[str, int | str] = {
            **ends,
            "State": ESTABLISHED,
            "StartTimeSec": start_us // 10**6,
            "StartTimeUsec": start_us % 10**6,
            "Duration": state["t_ns"] // 1000 + shift_us - start_us,
            "SndUna": (state["snd_una"] or 0) % (1 << 32),
            "SndNxt": (state["snd_nxt"] or 0) % (1 << 32),
            "CountRTT": int(state["srtt_ns"] is not None),
        }
        row |= {name: state[column] or 0 for column, name in COUNTERS.items()}
        row |= {name: _UNSET if state[column] is None else state[column] for column, name in WINDOWS.items()}
        times = {name: state[column] for column, name in TIMES.items()}
        yield row | {name: _UNSET if value is None else round(value / _MS) for name, value in times.items()}
