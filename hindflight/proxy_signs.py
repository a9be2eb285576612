"""Signs in a capture that a proxy splits its path: another host answers the data than the handshake.

Depends on the tables of a flow, not on verdicts or drafts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.captured_flow import Flow

SYN, RST = 2, 4

NEARER = 0.5
"""Minimum round trip of data, as a share of that of the handshake, below which another host answers the data."""

FIRST_ANSWERS = 3
"""So many of the first ACKs of data must have the other TTL: a path that changes later does not change these."""

NEARLY_ALL = 0.95
"""Share of the ACKs of data that must have it: a single packet can have come another way."""


@dataclass(frozen=True, slots=True)
class ProxySign:
    """One sign: its name, the packets that show it, when, and the evidence."""

    name: str
    packets: tuple[int | None, int | None]
    t_ns: int
    evidence: str


def proxy_signs(flow: Flow, *, changed: bool) -> Iterator[ProxySign]:
    """Yield the signs in one flow. `changed`: the path changed, which explains another TTL and shorter round trips."""
    if changed:
        return
    import pyarrow.compute as pc

    row, segments = flow.row, flow.tables["segments"]
    back = segments.filter(pc.not_equal(segments["direction"].cast("string"), flow.direction))
    yield from _another_ttl(back)
    handshake_ns, min_rtt_ns = row["handshake_rtt_ns"], row[f"{flow.direction}_rtt_min_ns"]
    if row["vantage"] != "sender" or not handshake_ns or not min_rtt_ns:
        return
    if min_rtt_ns < NEARER * handshake_ns:
        timed = back.filter(pc.equal(back["rtt_ns"], min_rtt_ns))
        packet = timed["record"][0].as_py() if timed.num_rows else None
        evidence = (
            f"the handshake took {handshake_ns / 1e6:.1f} ms, the fastest round trip of data "
            f"{min_rtt_ns / 1e6:.1f} ms: a host on the way answers the data"
        )
        at = int(timed["t_ns"][0].as_py()) if timed.num_rows else int(row["start_ns"])
        yield ProxySign("local ACKs", (packet, packet), at, evidence)


def _another_ttl(back: pa.Table) -> Iterator[ProxySign]:
    """The ACKs of data come from another host than the answer of the handshake: from the first one on, with one TTL.

    A reset does not count, which a host on the way may have sent in the name of another.
    """
    import pyarrow.compute as pc

    def has(flag: int) -> pa.ChunkedArray:
        return pc.not_equal(pc.bit_wise_and(back["flags"].cast("int32"), flag), 0)

    answers = back.filter(has(SYN))
    later = back.filter(pc.and_(pc.invert(has(SYN | RST)), pc.greater(back["ack"], 1)))
    if not answers.num_rows or later.num_rows < FIRST_ANSWERS:
        return
    there, other = (int(table["ttl"][0].as_py()) for table in (answers, later))
    others = later.filter(pc.equal(later["ttl"], other))
    first = set(later["ttl"][:FIRST_ANSWERS].to_pylist())
    if other == there or first != {other} or others.num_rows < NEARLY_ALL * later.num_rows:
        return
    record, at = others["record"][0].as_py(), int(others["t_ns"][0].as_py())
    evidence = (
        f"the handshake's answer has TTL {there}, {others.num_rows} of {later.num_rows} later ones have {other}, "
        f"from packet {record} on"
    )
    yield ProxySign("another TTL", (answers["record"][0].as_py(), record), at, evidence)
