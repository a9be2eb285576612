"""Cross traffic: other packets of a capture that share the link with a flow's data.

Reads `segments`, `flows`, `events` and `others`. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]

SEGMENT_COLUMNS = ("run_id", "flow_id", "t_ns", "direction", "ip_bytes", "record")
"""Columns of `segments` that are read."""

OPPOSITE = {"a2b": "b2a", "b2a": "a2b"}


@dataclass(frozen=True, slots=True)
class CrossTraffic:
    """Packets of other traffic by time: capture time and IP length. `kinds` counts them by protocol.

    `observed` are the flows (flow_ids) that were left out because their packets are known one by one.
    """

    t_ns: Ints
    size_bytes: Ints
    kinds: dict[str, int]
    observed: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def octets(self) -> int:
        """Sum of the IP lengths in bytes."""
        return int(self.size_bytes.sum())


def no_cross_traffic(observed: Sequence[int] = ()) -> CrossTraffic:
    """Return an empty CrossTraffic, from which the flows `observed` were left out."""
    return CrossTraffic(np.zeros(0, np.int64), np.zeros(0, np.int64), {}, frozenset(observed))


def cross_traffic_of(
    flow: dict[str, Any],
    segments: pa.Table,
    flows: pa.Table,
    events: pa.Table,
    others: pa.Table | None = None,
    *,
    observed: Sequence[int] = (),
) -> CrossTraffic:
    """Return the traffic that shares the path of the flow's data (`flow` is its row of `flows`).

    These are packets from the same host or to the same receiver: data and ACKs of other flows, without those reported
    lost, and packets of `others`. Flows `observed` (flow_ids) are left out: their packets are known one by one.
    """
    import pyarrow.compute as pc

    forward = str(flow["data_direction"])
    ends = (flow["a_addr"], flow["b_addr"])
    sender, receiver = ends if forward == "a2b" else ends[::-1]
    times: list[Ints] = []
    sizes: list[Ints] = []
    kinds: dict[str, int] = {}

    def add(kind: str, rows: pa.Table) -> None:
        if rows.num_rows:
            times.append(np.asarray(rows["t_ns"]).astype(np.int64))
            sizes.append(np.asarray(rows["ip_bytes"]).astype(np.int64))
            kinds[kind] = kinds.get(kind, 0) + rows.num_rows

    add("tcp", _of_other_flows((flow, observed), (sender, receiver), segments, flows, events))
    if others is not None and others.num_rows:
        same = pc.equal(others["input_id"], flow["input_id"])
        there = pc.or_(pc.equal(others["src_addr"], sender), pc.equal(others["dst_addr"], receiver))
        mine = others.filter(pc.and_(same, there))
        for kind in sorted(set(mine["kind"].to_pylist())):
            add(kind, mine.filter(pc.equal(mine["kind"], kind)))
    if not times:
        return no_cross_traffic(observed)
    t_ns, size_bytes = np.concatenate(times), np.concatenate(sizes)
    order = np.argsort(t_ns, kind="stable")
    return CrossTraffic(t_ns[order], size_bytes[order], kinds, frozenset(observed))


def _of_other_flows(
    known: tuple[dict[str, Any], Sequence[int]],
    way: tuple[str, str],
    segments: pa.Table,
    flows: pa.Table,
    events: pa.Table,
) -> pa.Table:
    """Return the segments of other flows from or to these hosts, without losses, in one pass over the table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    (flow, observed), (sender, receiver) = known, way
    sharing: dict[str, list[int]] = {"a2b": [], "b2a": []}
    for row in flows.to_pylist():
        if row["flow_id"] in (flow["flow_id"], *observed) or row["run_id"] != 0 or row["input_id"] != flow["input_id"]:
            continue
        ends = (row["a_addr"], row["b_addr"])
        for direction, (src, dst) in (("a2b", ends), ("b2a", ends[::-1])):
            if src == sender or dst == receiver:
                sharing[direction].append(row["flow_id"])
    direction = segments["direction"].cast("string")
    wanted = [
        pc.and_(pc.equal(direction, name), pc.is_in(segments["flow_id"], pa.array(ids, segments["flow_id"].type)))
        for name, ids in sharing.items()
    ]
    captured = segments.filter(pc.and_(pc.equal(segments["run_id"], 0), pc.or_(*wanted)))
    lost = events.filter(pc.equal(events["kind"].cast("string"), "loss"))["record"].drop_null()
    return captured.filter(pc.invert(pc.is_in(captured["record"], lost.combine_chunks())))
