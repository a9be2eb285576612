"""The connections of an export with their graphs drawn, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.export.graphs import Connection
from hindflight.toolkit.text import endpoint

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.export.chosen import Chosen

_COLUMNS = (
    *("t_ns", "direction", "seq", "ack", "seq_raw", "ack_raw", "payload_bytes", "flags", "wnd_bytes", "sack"),
    *("dscp_ecn", "retransmission", "rtt_ns"),
)


def connections(chosen: Chosen) -> Iterator[tuple[str, Connection]]:
    """Yield the name and the graphs of each connection: FLOW, or FLOW.LEG behind a split proxy."""
    import pyarrow.compute as pc

    segments = chosen.table("segments")
    for flow in chosen.table("flows").sort_by("flow_id").to_pylist():
        ends = endpoint(flow["a_addr"], flow["a_port"]), endpoint(flow["b_addr"], flow["b_port"])
        mine = segments.filter(pc.equal(segments["flow_id"], flow["flow_id"]))
        for leg in sorted(mine["leg"].unique().to_pylist()):
            rows = mine.filter(pc.equal(mine["leg"], leg)).select(_COLUMNS)
            name = f"{flow['flow_id']}.{leg}" if leg else str(flow["flow_id"])
            yield name, _drawn(rows, *ends)


def _drawn(rows: pa.Table, a: str, b: str) -> Connection:
    listed = rows.to_pylist()
    connection = Connection(a, b, (_first(listed, "a2b"), _first(listed, "b2a")))
    for row in listed:
        connection.add(row)
    return connection


def _first(rows: list[dict[str, Any]], direction: str) -> int:
    """The number to which the relative sequence numbers of `direction` are added."""
    for row in rows:
        if row["direction"] == direction:
            return int(row["seq_raw"] - row["seq"])
        if row["ack"] is not None:
            return int(row["ack_raw"] - row["ack"])
    return 0
