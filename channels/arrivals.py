"""What a second capture, at the receiver, tells: which packets of a flow arrived, and which of its answers got back.

Knows the tables `segments` and `flows` of two captures of one connection; nothing of rates or queues. Clocks may
differ: times are not compared. Read docs/channels/extract.md.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from toolkit.errors import ChannelError

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
OPPOSITE = {"a2b": "b2a", "b2a": "a2b"}
ENDS = ("a_addr", "a_port", "b_addr", "b_port")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """`arrived` are the records, in the sender's capture, of data packets that the receiver's capture holds too;
    `last_sent` the last of them to be sent: of what follows the receiver's capture may have ended before it came.

    Of `acks` segments that the receiver sent while both captures ran, `acks_lost` are not in the sender's capture.
    """

    arrived: Ints
    last_sent: int
    acks: int
    acks_lost: int


def arrivals_of(
    flow: dict[str, Any], sent: pa.Table, receiver_flows: pa.Table, receiver_segments: pa.Table
) -> Arrivals:
    """Match the packets of `flow` (its row of `flows`, and its segments) with those of a capture at its receiver.

    ChannelError if that holds no such connection, or none of its data.
    """
    there, turned = _same_connection(flow, receiver_flows)
    direction = str(flow["data_direction"])
    far = OPPOSITE[direction] if turned else direction
    got = _rows(receiver_segments, there, far)
    data = [row for row in _rows(sent, flow["flow_id"], direction) if row["payload_bytes"]]
    arrived = _matched(data, [row for row in got if row["payload_bytes"]])
    if not arrived:
        raise ChannelError("the receiver's capture holds none of the flow's data packets", "was it cut, or rewritten?")
    answers = _rows(receiver_segments, there, OPPOSITE[far])
    heard = _rows(sent, flow["flow_id"], OPPOSITE[direction])
    back = _matched(answers, heard)
    # Of answers behind the last one heard the sender's capture may not hold all.
    known = [row for row in answers if row["record"] <= max(back, default=0)]
    return Arrivals(np.array(sorted(arrived), dtype=np.int64), max(arrived), len(known), len(known) - len(back))


def _same_connection(flow: dict[str, Any], flows: pa.Table) -> tuple[int, bool]:
    """Number of the connection in the other capture, and whether its ends have changed places there."""
    ends = tuple(flow[name] for name in ENDS)
    for row in flows.to_pylist():
        there = tuple(row[name] for name in ENDS)
        if row["run_id"] == 0 and there in (ends, ends[2:] + ends[:2]):
            return int(row["flow_id"]), there != ends
    raise ChannelError(
        f"the receiver's capture does not hold the connection {ends[0]}:{ends[1]} to {ends[2]}:{ends[3]}",
        "both captures must show the same addresses and ports",
    )


def _rows(segments: pa.Table, flow_id: int, direction: str) -> list[dict[str, Any]]:
    import pyarrow.compute as pc

    mine = pc.and_(pc.equal(segments["flow_id"], flow_id), pc.equal(segments["direction"].cast("string"), direction))
    columns = ["record", "seq", "ack", "payload_bytes", "ip_id", "ts_val"]
    rows: list[dict[str, Any]] = segments.filter(mine).select(columns).to_pylist()
    return rows


def _matched(sent: list[dict[str, Any]], got: list[dict[str, Any]]) -> set[int]:
    """Records of `sent` that are among `got`: by what a path leaves alone, equal ones in their order."""
    waiting: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in reversed(sent):
        waiting[_key(row)].append(row["record"])
    found: set[int] = set()
    for row in got:
        if queue := waiting.get(_key(row)):
            found.add(queue.pop())
    return found


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["seq"], row["ack"], row["payload_bytes"], row["ip_id"], row["ts_val"]
