"""Writes a flight log into a workspace: its samples on the time axis of the captures."""

from __future__ import annotations

from dataclasses import asdict

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.flight import FlightReading
from hindflight.toolkit.flight.overview import Overview, overview
from hindflight.toolkit.logs.model import UTC
from hindflight.toolkit.schema import table_from_rows
from hindflight.toolkit.units import counted
from hindflight.toolkit.workspace import Transaction, Workspace

_NAMES = 6
"""So many names are listed in a note."""


def write_flight_log(
    reading: FlightReading,
    workspace: Workspace,
    transaction: Transaction,
    input_id: int,
    clock_offset_ns: int | None,
) -> tuple[str, int]:
    """Write all of the log as input `input_id`; return a note of what was done, and the number of issues.

    LogError: the log holds no whole record, or nothing says when its times begin.
    """
    found = overview(reading.parts())
    offset_ns, clock = _offset(reading, found, clock_offset_ns)
    rows = 0
    for part in reading.parts():
        table = part.telemetry(input_id, reading.kind, offset_ns)
        rows += table.num_rows
        transaction.write("telemetry", table)
    apart = _apart(workspace, found.start_ns + offset_ns, found.end_ns + offset_ns)
    if apart:
        reading.file.issues.add(0, 0, "log_apart", apart)
    issues = [asdict(issue) | {"input_id": input_id} for issue in reading.issues()]
    transaction.write("issues", table_from_rows("issues", issues))
    names = [*found.ranges, *found.texts]
    shown = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
    return f"{counted(rows, 'value')} of {shown}; {clock}", reading.file.issues.count()


def _offset(reading: FlightReading, found: Overview, given_ns: int | None) -> tuple[int, str]:
    """What to add to the times of the log, and the basis of it."""
    if given_ns is not None:
        return given_ns, f"clock offset {given_ns / 1e9:+.6f} s, as given"
    if found.clock == UTC:
        return 0, "times are UTC as logged"
    clock = found.clock_estimate()
    if clock is None:
        raise LogError(
            f"the times of {reading.file.name} count from {found.clock}",
            "say when that was: --clock-offset SECONDS since 1970-01-01 UTC",
        )
    return clock.offset_ns, str(clock)


def _apart(workspace: Workspace, start_ns: int, end_ns: int) -> str | None:
    """What is wrong where captures are here and none is of the log's time."""
    import pyarrow.compute as pc

    flows = workspace.table("flows", ["start_ns", "end_ns"], pc.field("run_id") == 0)
    if not flows.num_rows:
        return None
    if pc.min(flows["start_ns"]).as_py() <= end_ns and pc.max(flows["end_ns"]).as_py() >= start_ns:
        return None
    return "no captured flow is of the log's time; give the offset of its clock (--clock-offset) if that is wrong"
