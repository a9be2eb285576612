"""The flows of a report: their names, and a table of the largest with the sum of the rest.

Does not depend on HTML or charts.
"""

from __future__ import annotations

import polars as pl

from hindflight.reports.findings import Cell, Grid
from hindflight.reports.frames import Tables, View, lazy, read_flow
from hindflight.reports.numbers import quantity, utc

LISTED_FLOWS = 20
"""Maximum number of flows of the table; the others are one row, summed up."""

_COUNTERS = (
    ("data_segments", "Data segments", ""),
    ("retransmitted_segments", "Retransmitted segments", ""),
    ("unique_bytes", "Payload", "bytes"),
    ("rtt_min_ns", "Minimum RTT", "ns"),
    ("rtos", "RTOs", ""),
)
"""Counter of `flows` in the direction of the data, its heading and its unit."""


def flow_numbers(tables: Tables, views: list[View]) -> Grid | None:
    """Return the counters of the flows with the most payload, and their sum over the others; None without `flows`."""
    names = [name for name, _, _ in _COUNTERS]
    forward = pl.col("data_direction") == "a2b"
    columns = [pl.when(forward).then(f"a2b_{name}").otherwise(f"b2a_{name}").alias(name) for name in names]
    rows = lazy(tables, "flows").filter(pl.col("run_id") == 0).select("flow_id", *columns).collect()
    if rows.is_empty():
        return None
    ranked = rows.sort("unique_bytes", descending=True, maintain_order=True)
    shown, rest = ranked.head(LISTED_FLOWS), ranked[LISTED_FLOWS:]
    by_id = {view.flow_id: view for view in views}
    grid = Grid("Flows, the one with the most payload first", ("Flow", *(title for _, title, _ in _COUNTERS)))
    for row in shown.to_dicts():
        cells = [Cell(quantity(row[name], unit), number=True) for name, _, unit in _COUNTERS]
        grid.rows.append((Cell(flow_name(tables, by_id[row["flow_id"]])), *cells))
    if rest.height:
        sums = {name: rest[name].min() if name == "rtt_min_ns" else rest[name].sum() for name in names}
        cells = [Cell(quantity(sums[name], unit), number=True) for name, _, unit in _COUNTERS]  # type: ignore[arg-type]
        grid.rows.append((Cell(f"{rest.height:,} more flows, summed up"), *cells))
    return grid


def flow_name(tables: Tables, view: View) -> str:
    """Return the number of a flow and its two endpoints, the data sender first."""
    row = read_flow(tables, "flows", view, ["data_direction", "a_addr", "a_port", "b_addr", "b_port"])
    if row.is_empty():
        return str(view.flow_id)
    direction, *ends = row.row(0)
    a, b = _end(ends[0], ends[1]), _end(ends[2], ends[3])
    first, second = (a, b) if direction == "a2b" else (b, a)
    return f"{view.flow_id}: {first} to {second}"


def time_zero(tables: Tables, view: View) -> list[str]:
    """Return the sentence that says when a flow began; none where `flows` does not say so."""
    row = read_flow(tables, "flows", view, ["start_ns"])
    axis = "UTC" if view.utc else "seconds from then"
    return [] if row.is_empty() else [f"It began at {utc(row.item())}; the time axes of its charts show {axis}."]


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
