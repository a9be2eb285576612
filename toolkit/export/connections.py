"""The connections of an export, to be drawn one after the other: a flow, and behind split proxies each leg of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.toolkit.export.graphs import GRAPHS, Connection
from hindflight.toolkit.rows import grouped, rows_of
from hindflight.toolkit.text import endpoint

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.export.chosen import Chosen
    from hindflight.toolkit.export.xplot import Plot

_COLUMNS = (
    *("t_ns", "direction", "seq", "ack", "seq_raw", "ack_raw", "payload_bytes", "flags", "wnd_bytes", "sack"),
    *("dscp_ecn", "retransmission", "rtt_ns"),
)


@dataclass(frozen=True, slots=True)
class Drawable:
    """One connection: its name (FLOW, or FLOW.LEG behind a proxy), its ends and its segments in order."""

    name: str
    ends: tuple[str, str]
    segments: pa.Table

    def files(self) -> list[str]:
        """Return the names of its graphs' files."""
        ways = [f"{self.name}-{way}-{graph}.xpl" for way in ("a2b", "b2a") for graph in GRAPHS[:-1]]
        return [*ways, f"{self.name}-{GRAPHS[-1]}.xpl"]

    def plots(self) -> Iterator[tuple[str, Plot]]:
        """Draw it; yield each graph with the name of its file."""
        first = (_first(rows_of(self.segments), "a2b"), _first(rows_of(self.segments), "b2a"))
        connection = Connection(*self.ends, first)
        for row in rows_of(self.segments):
            connection.add(row)
        for way, graph, plot in connection.plots():
            yield "-".join(filter(None, (self.name, way, graph))) + ".xpl", plot


def connections(chosen: Chosen) -> list[Drawable]:
    """Return the connections of an export, in order of their numbers; nothing is drawn yet."""
    segments = chosen.table("segments")
    keys = segments["flow_id"].to_numpy().astype(np.int64) * 256 + segments["leg"].to_numpy()
    order, groups = grouped(keys)
    ordered = segments.select(_COLUMNS).take(order)
    ends = {
        flow["flow_id"]: (endpoint(flow["a_addr"], flow["a_port"]), endpoint(flow["b_addr"], flow["b_port"]))
        for flow in chosen.table("flows").to_pylist()
    }
    found = []
    for key, start, stop in groups:
        flow, leg = divmod(key, 256)
        found.append(Drawable(f"{flow}.{leg}" if leg else str(flow), ends[flow], ordered.slice(start, stop - start)))
    return found


def _first(rows: Iterator[dict[str, Any]], direction: str) -> int:
    """The number to which the relative sequence numbers of `direction` are added."""
    for row in rows:
        if row["direction"] == direction:
            return int(row["seq_raw"] - row["seq"])
        if row["ack"] is not None:
            return int(row["ack_raw"] - row["ack"])
    return 0
