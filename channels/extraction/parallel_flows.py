"""Parallel flows of a flow: others of the capture that carry data from the same sender to the same receiver.

They cross the same links, and their ACKs show when each of their packets arrived. Reads `flows`. See
docs/channels/extract.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MIN_SHARE = 0.01
"""Data of a parallel flow as a share of the flow's, below which it is cross traffic like any other."""

MAX_FLOWS = 8
"""Maximum number of parallel flows; the time that an extraction takes grows with them."""


def parallel_flows_of(flow: dict[str, Any], flows: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of `flows` of the parallel flows of `flow` (its row), those with most data first.

    Data must have been acknowledged: without an ACK nothing shows when it arrived.
    """
    found = [row for row in flows.to_pylist() if _is_parallel(row, flow)]
    return sorted(found, key=lambda row: (-_data_bytes(row), row["flow_id"]))[:MAX_FLOWS]


def _is_parallel(row: dict[str, Any], flow: dict[str, Any]) -> bool:
    return (
        row["flow_id"] != flow["flow_id"]
        and row["run_id"] == flow["run_id"]
        and row["input_id"] == flow["input_id"]
        and row["vantage"] == flow["vantage"]
        and _ends(row) == _ends(flow)
        and _data_bytes(row) >= max(1, MIN_SHARE * _data_bytes(flow))
        and bool(row[f"{row['data_direction']}_acked_bytes"])
    )


def _ends(row: dict[str, Any]) -> tuple[str, str]:
    """Return the addresses of the data sender and of the receiver."""
    return (row["a_addr"], row["b_addr"]) if row["data_direction"] == "a2b" else (row["b_addr"], row["a_addr"])


def _data_bytes(row: dict[str, Any]) -> int:
    return int(row[f"{row['data_direction']}_payload_bytes"] or 0)
