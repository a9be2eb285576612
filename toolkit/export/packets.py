"""The packets of a workspace as pcapng: headers alone, with what the analysis says of each as its comment.

The native core writes the octets. Checksums take the payload as zeros, and Ethernet addresses are made of IP addresses.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.toolkit.capture import BATCH_ROWS, pcapng_head, pcapng_packets
from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.export.comments import comments_of
from hindflight.toolkit.seal import SEAL_NOTE, seal_file
from hindflight.toolkit.version import hindflight_version

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.export.chosen import Chosen

_STATES = ("inferred", "replay")
"""Sources of the states that are said: what hindflight found, and what its engine did."""


def write_pcapng(chosen: Chosen, path: Path) -> int:
    """Write the packets of `chosen` to `path`, in order of time; return how many there are.

    HindflightError: a packet has addresses or lengths that a capture cannot represent.
    """
    import pyarrow.compute as pc

    segments = chosen.table("segments").sort_by([("t_ns", "ascending"), ("record", "ascending")])
    states = chosen.table("instruments")
    states = states.filter(pc.is_in(states["source"].cast("string"), pc_set(_STATES)))
    rows = segments.append_column("comment", comments_of(segments, chosen.table("events"), states))
    what = f"packets of replay run {chosen.run}, headers alone" if chosen.run else "packets of a capture, headers alone"
    return write_packets(rows, chosen.table("flows"), what, path)


def write_packets(segments: pa.Table, flows: pa.Table, what: str, path: Path) -> int:
    """Write `segments`, with a column `comment`, of `flows` to `path`; the file's own comment says `what` they are.

    Return how many there are. HindflightError: a packet has addresses or lengths that a capture cannot represent.
    """
    rows = _with_ends(segments, flows)
    with path.open("wb") as file:
        file.write(pcapng_head(f"hindflight {hindflight_version()}", f"{what}; {SEAL_NOTE}"))
        for batch in rows.combine_chunks().to_batches(BATCH_ROWS):
            try:
                file.write(pcapng_packets(batch))
            except ValueError as error:
                raise HindflightError(f"no capture can hold {error}", "export other flows: --flow") from error
    seal_file(path)
    return int(rows.num_rows)


def pc_set(values: tuple[str, ...]) -> pa.Array:
    """Return `values` as Arrow's functions take a set."""
    import pyarrow as pa

    return pa.array(values, pa.string())


def _with_ends(segments: pa.Table, flows: pa.Table) -> pa.Table:
    """Add `src`, `dst`, `src_port` and `dst_port` to each segment.

    The table of flows has the connection that leaves the data sender. Behind a split proxy, leg 1 goes from the other
    end of that connection to the next address, and so on: as the nodes of a replay are numbered.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    ends: list[tuple[bytes, int, bytes, int]] = []
    index: dict[tuple[int, int], int] = {}
    rows = {row["flow_id"]: row for row in flows.to_pylist()}
    pairs = segments.select(["flow_id", "leg"]).group_by(["flow_id", "leg"]).aggregate([]).to_pylist()
    for pair in pairs:
        row, leg = rows[pair["flow_id"]], pair["leg"]
        index[pair["flow_id"], leg] = len(ends)
        ends.append(_ends_of(row, leg))
    keys = segments["flow_id"].to_numpy().astype(np.int64) * 256 + segments["leg"].to_numpy()
    known = np.array(sorted(flow * 256 + leg for flow, leg in index))
    places = np.array([index[divmod(int(key), 256)] for key in known], dtype=np.int64)
    at = places[np.searchsorted(known, keys)] if len(known) else np.zeros(0, np.int64)
    forward = pc.equal(segments["direction"].cast("string"), "a2b").to_numpy()
    both = [*ends, *((b, b_port, a, a_port) for a, a_port, b, b_port in ends)]
    at = np.where(forward, at, at + len(ends))
    columns = zip(("src", "src_port", "dst", "dst_port"), (0, 1, 2, 3), strict=True)
    for name, place in columns:
        type_ = pa.uint16() if name.endswith("port") else pa.binary()
        segments = segments.append_column(name, pa.array([end[place] for end in both], type_).take(pa.array(at)))
    return segments


def _ends_of(row: dict[str, object], leg: int) -> tuple[bytes, int, bytes, int]:
    a, b = ip_address(str(row["a_addr"])), ip_address(str(row["b_addr"]))
    if leg:
        a, b = b + (leg - 1), b + leg
    return a.packed, int(str(row["a_port"])), b.packed, int(str(row["b_port"]))
