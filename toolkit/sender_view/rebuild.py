"""Rebuilds the segments of a flow captured at the receiver as a capture at its sender would have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hindflight.toolkit.sender_view.losses import AckClock, Arrived, Lost, place_lost
from hindflight.toolkit.sender_view.stamps import Bools, Floats, Ints, Stamps, is_forward
from hindflight.toolkit.sender_view.times import Times, times_of

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.captured_flow import Flow

ARRIVED = "record {} of the capture at the receiver"
LOST = "lost before the capture at the receiver"

_FIN, _SYN, _WORD = 1, 2, 1 << 32


@dataclass(frozen=True, slots=True)
class SenderView:
    """The rows of `segments` at the sender in order of time, with a column `comment`: where each comes from.

    `tick_ns` is what the times of sending are good to. `lost` counts the segments that the receiver's capture lacks.
    """

    segments: pa.Table
    tick_ns: int
    lost: int


def sender_view(flow: Flow, stamps: Stamps, ack_delay_ns: float) -> SenderView:
    """Rebuild the segments of `flow`, which was captured at the receiver, at its sender.

    `stamps` are its timestamps, `ack_delay_ns` the part of the shortest round trip that ACKs take.
    """
    import pyarrow as pa

    segments = flow.tables["segments"]
    times = times_of(stamps, ack_delay_ns)
    forward = is_forward(segments, flow.direction)
    t_ns, rank = _all_times(segments["t_ns"].to_numpy() - stamps.origin_ns, forward, stamps, times)
    comments = [ARRIVED.format(record) for record in segments["record"].to_pylist()]
    lost = _lost(flow, stamps)
    if len(lost.seq):
        arrived, data_rows = _arrived(segments, stamps, times)
        clock = AckClock(arrived, stamps.back_t_ns, times.arrived_ns)
        placed = place_lost(lost, arrived, clock, stamps.rtt_min_ns)
        like = np.minimum(placed.after + 1, len(data_rows) - 1)
        segments = pa.concat_tables(
            [segments, _like(segments.take(data_rows[like]), lost, arrived.sent_ns[like] - placed.sent_ns, stamps)]
        )
        behind = np.where(placed.after < 0, -1.0, rank[data_rows[np.maximum(placed.after, 0)]])
        rank = np.concatenate((rank, behind + np.arange(1, len(lost.seq) + 1) / (2 * len(lost.seq) + 2)))
        t_ns = np.concatenate((t_ns, placed.sent_ns))
        forward = np.concatenate((forward, np.ones(len(lost.seq), dtype=np.bool_)))
        comments += [LOST] * len(lost.seq)
    rows = segments.append_column("comment", pa.array(comments, pa.string()))
    t_ns, order = _in_order(t_ns, rank, forward)
    at_ns = pa.array(np.rint(t_ns).astype(np.int64) + stamps.origin_ns)
    return SenderView(_with(rows, "t_ns", at_ns).take(pa.array(order)), stamps.tick_ns, len(lost.seq))


def _all_times(t_ns: Ints, forward: Bools, stamps: Stamps, times: Times) -> tuple[Floats, Floats]:
    """Return the times at the sender of all segments, and the place of those from it in the order sent.

    A segment without a timestamp moves as the one before it in its direction.
    """
    shift, rank = np.full(len(t_ns), np.nan), np.full(len(t_ns), -1.0)
    shift[stamps.row] = times.sent_ns - stamps.t_ns
    shift[stamps.back_row] = times.arrived_ns - stamps.back_t_ns
    rank[stamps.row] = np.arange(len(stamps.row))
    for way, rows in ((forward, stamps.row), (~forward, stamps.back_row)):
        bare, stamped = np.flatnonzero(way & np.isnan(shift)), np.sort(rows)
        before = stamped[np.maximum(np.searchsorted(stamped, bare) - 1, 0)]
        shift[bare], rank[bare] = shift[before], rank[before] + 0.5
    return np.asarray(t_ns + shift), rank


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), values.cast(table.schema.field(at).type))


def _arrived(segments: pa.Table, stamps: Stamps, times: Times) -> tuple[Arrived, Ints]:
    """Return the data segments that arrived, and their rows."""
    payload = segments["payload_bytes"].to_numpy().astype(np.int64)[stamps.row]
    data = payload > 0
    seq = segments["seq"].to_numpy()[stamps.row][data]
    return Arrived(times.sent_ns[data], stamps.t_ns[data], seq, payload[data]), stamps.row[data]


def _lost(flow: Flow, stamps: Stamps) -> Lost:
    """Return the segments that were lost before the capture, in the order of their octets and copies."""
    losses = [
        row
        for row in flow.tables["events"].to_pylist()
        if row["kind"] == "loss" and row["direction"] == flow.direction and row["record"] is None
    ]
    losses.sort(key=lambda row: (row["seq_start"], row["copy"]))
    return Lost(
        np.array([row["seq_start"] for row in losses], dtype=np.int64),
        np.array([row["seq_end"] - row["seq_start"] for row in losses], dtype=np.int64),
        np.array([row["copy"] for row in losses], dtype=np.int64),
        np.array([row["t_ns"] for row in losses], dtype=np.int64) - stamps.origin_ns,
    )


def _like(others: pa.Table, lost: Lost, before_ns: Floats, stamps: Stamps) -> pa.Table:
    """Return lost segments with the headers of `others`, before each of which one left by `before_ns`."""
    import pyarrow as pa

    moved = lost.seq - others["seq"].to_numpy()
    longer = lost.payload_bytes - others["payload_bytes"].to_numpy().astype(np.int64)
    ticks = np.rint(before_ns / stamps.tick_ns).astype(np.int64)
    rows = _with(others, "seq", pa.array(lost.seq))
    rows = _with(rows, "payload_bytes", pa.array(lost.payload_bytes))
    rows = _with(rows, "flags", pa.array(others["flags"].to_numpy() & ~np.uint16(_FIN | _SYN)))
    for name, change in (("seq_raw", moved), ("ts_val", -ticks)):
        rows = _with(rows, name, pa.array((others[name].to_numpy().astype(np.int64) + change) % _WORD))
    for name in ("ip_bytes", "frame_bytes"):
        rows = _with(rows, name, pa.array(others[name].to_numpy().astype(np.int64) + longer))
    return rows


def _in_order(t_ns: Floats, rank: Floats, forward: Bools) -> tuple[Floats, Ints]:
    """Return times that rise with the order sent, `rank`, and the order of all rows.

    What arrives when a segment leaves comes first: it let the segment leave.
    """
    sent = np.flatnonzero(forward)
    sent = sent[np.argsort(rank[sent], kind="stable")]
    t_ns[sent] = np.maximum.accumulate(t_ns[sent])
    return t_ns, np.lexsort((rank, forward, t_ns))
