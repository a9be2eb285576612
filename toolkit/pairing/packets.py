"""The packets of one direction of a connection in one capture, as columns for matching.

A record that holds several segments (TSO, GRO) counts as the segments on the wire, as far as their size shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Ints = npt.NDArray[np.int64]

COLUMNS = (
    *(
        "flow_id",
        "record",
        "t_ns",
        "direction",
        "seq",
        "seq_raw",
        "ack_raw",
        "payload_bytes",
        "flags",
        "ts_val",
        "ts_ecr",
    ),
    *("ip_id", "ip_bytes"),
)
"""Columns of `segments` that matching needs."""

_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_KEY_FLAGS = _FIN | _SYN | _RST | _ACK
_WORD = 1 << 32
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class Packets:
    """Columns of equal length in the order of the capture; -1 where a packet lacks the field.

    `octet` is the sequence number as in `segments.seq`, `seq` the one on the wire.
    """

    record: Ints
    t_ns: Ints
    octet: Ints
    seq: Ints
    ack: Ints
    payload_bytes: Ints
    flags: Ints
    ts_val: Ints
    ts_ecr: Ints
    ip_id: Ints
    ip_bytes: Ints

    def __len__(self) -> int:
        return len(self.record)

    def take(self, rows: Any) -> Packets:
        """Return these rows."""
        return Packets(*(getattr(self, name)[rows] for name in self.__slots__))

    def key(self, fields: tuple[str, ...]) -> npt.NDArray[np.uint64]:
        """Return a number of 64 bits that is equal for packets with equal `fields`, and hardly for others."""
        mixed = np.zeros(len(self), np.uint64)
        for name in fields:
            mixed = (mixed ^ getattr(self, name).astype(np.uint64)) * np.uint64(0x9E37_79B9_7F4A_7C15)
            mixed ^= mixed >> np.uint64(29)
        return mixed


def packets_of(segments: pa.Table, direction: str) -> Packets:
    """Return the packets of `direction` among the rows of one flow (COLUMNS)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = segments.filter(pc.equal(segments["direction"].cast(pa.string()), direction))

    def column(name: str) -> Ints:
        values = rows[name].cast(pa.int64())
        return np.array(pc.fill_null(values, _ABSENT).combine_chunks().to_numpy(zero_copy_only=False), np.int64)

    names = (
        "record",
        "t_ns",
        "seq",
        "seq_raw",
        "ack_raw",
        "payload_bytes",
        "flags",
        "ts_val",
        "ts_ecr",
        "ip_id",
        "ip_bytes",
    )
    found = Packets(*map(column, names))
    found.flags[:] = found.flags & _KEY_FLAGS
    return found


def split_records(packets: Packets, segment_bytes: int) -> Packets:
    """Return `packets` with each record of more than `segment_bytes` of payload as segments of that size.

    Their IP IDs count up, as hosts number segments that their interface cuts; FIN is in the last.
    """
    parts = np.maximum(-(-packets.payload_bytes // max(segment_bytes, 1)), 1)
    if (parts == 1).all():
        return packets
    rows = np.repeat(np.arange(len(packets)), parts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(parts) - parts, parts)
    found = packets.take(rows)
    many, last = parts[rows] > 1, place == parts[rows] - 1
    payload = np.where(last, found.payload_bytes - place * segment_bytes, segment_bytes)
    return Packets(
        found.record,
        found.t_ns,
        np.where(many, found.octet + place * segment_bytes, found.octet),
        np.where(many, (found.seq + place * segment_bytes) % _WORD, found.seq),
        found.ack,
        np.where(many, payload, found.payload_bytes),
        np.where(many & ~last, found.flags & ~_FIN, found.flags),
        found.ts_val,
        found.ts_ecr,
        np.where(many & (found.ip_id >= 0), (found.ip_id + place) % (1 << 16), found.ip_id),
        np.where(many, found.ip_bytes - found.payload_bytes + payload, found.ip_bytes),
    )
