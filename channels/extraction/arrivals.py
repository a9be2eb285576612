"""Matches a sender's capture with one at the receiver: which data packets arrived, which ACKs were lost.

Reads `segments` and `flows` of two captures of one connection. Their clocks may differ: times are not compared. See
docs/channels/extract.md.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.errors import ChannelError

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
OPPOSITE = {"a2b": "b2a", "b2a": "a2b"}
ENDS = ("a_addr", "a_port", "b_addr", "b_port")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Packets of a flow that both captures contain, by their record number in the sender's capture.

    `arrived` are the data packets that the receiver's capture contains, `last_sent` is the last of them: whether later
    packets arrived is not known. For each segment that the receiver sent while both captures ran, `answered` is the
    last data packet that had arrived (0 before the first), and `answer_lost` is whether the sender's capture lacks it.
    """

    arrived: Ints
    last_sent: int
    answered: Ints
    answer_lost: Bools

    @property
    def acks(self) -> int:
        """Number of segments that the receiver sent while both captures ran."""
        return len(self.answered)

    @property
    def acks_lost(self) -> int:
        """Number of these that the sender's capture lacks."""
        return int(self.answer_lost.sum())


def arrivals_of(
    flow: dict[str, Any], sent: pa.Table, receiver_flows: pa.Table, receiver_segments: pa.Table
) -> Arrivals:
    """Match the packets of `flow` (its row of `flows`) in `sent` with those of the receiver's capture.

    Raises ChannelError if the receiver's capture lacks the connection or all of its data.
    """
    there, turned = _same_connection(flow, receiver_flows)
    direction = str(flow["data_direction"])
    far = OPPOSITE[direction] if turned else direction
    got = _rows(receiver_segments, there, far)
    data = [row for row in _rows(sent, flow["flow_id"], direction) if row["payload_bytes"]]
    arrived = _matched(data, [row for row in got if row["payload_bytes"]])
    if not arrived:
        raise ChannelError(
            "the receiver's capture contains none of the flow's data packets",
            "check that the capture is complete and that no middlebox rewrites the packets",
        )
    answers = _rows(receiver_segments, there, OPPOSITE[far])
    received = _rows(sent, flow["flow_id"], OPPOSITE[direction])
    back = _matched(answers, received)
    # The sender's capture may end before later answers arrived.
    known = [row["record"] for row in answers if row["record"] <= max(back, default=0)]
    order = sorted((there, here) for here, there in arrived.items())
    came = np.array([there for there, _ in order])
    last = np.array([0, *(here for _, here in order)])
    return Arrivals(
        arrived=np.array(sorted(arrived), dtype=np.int64),
        last_sent=max(arrived),
        answered=last[np.searchsorted(came, np.array(known, dtype=np.int64))],
        answer_lost=np.array([record not in back for record in known], dtype=np.bool_),
    )


def _same_connection(flow: dict[str, Any], flows: pa.Table) -> tuple[int, bool]:
    """Return the flow_id of the connection in the other capture, and whether its endpoints are swapped there."""
    ends = tuple(flow[name] for name in ENDS)
    for row in flows.to_pylist():
        there = tuple(row[name] for name in ENDS)
        if row["run_id"] == 0 and there in (ends, ends[2:] + ends[:2]):
            return int(row["flow_id"]), there != ends
    raise ChannelError(
        f"the receiver's capture does not contain the connection {ends[0]}:{ends[1]} to {ends[2]}:{ends[3]}",
        "both captures must show the same addresses and ports",
    )


def _rows(segments: pa.Table, flow_id: int, direction: str) -> list[dict[str, Any]]:
    import pyarrow.compute as pc

    mine = pc.and_(pc.equal(segments["flow_id"], flow_id), pc.equal(segments["direction"].cast("string"), direction))
    columns = ["record", "seq", "ack", "payload_bytes", "ip_id", "ts_val"]
    rows: list[dict[str, Any]] = segments.filter(mine).select(columns).to_pylist()
    return rows


def _matched(sent: list[dict[str, Any]], got: list[dict[str, Any]]) -> dict[int, int]:
    """Return the records of `sent` found in `got`, mapped to the matching records.

    Packets match by the fields that a path does not change; equal packets match in order.
    """
    waiting: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in reversed(sent):
        waiting[_key(row)].append(row["record"])
    found: dict[int, int] = {}
    for row in got:
        if queue := waiting.get(_key(row)):
            found[queue.pop()] = row["record"]
    return found


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["seq"], row["ack"], row["payload_bytes"], row["ip_id"], row["ts_val"]
