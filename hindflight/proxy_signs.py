"""Signs in a capture that a proxy splits its path: another host answers the data than the handshake.

Depends on the tables of a flow, not on verdicts or drafts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hindflight.toolkit.captured_flow import Flow

NEARER = 0.5
"""Minimum round trip of data, as a share of that of the handshake, below which another host answers the data."""


@dataclass(frozen=True, slots=True)
class ProxySign:
    """One sign: its name, the packets that show it, when, and the evidence."""

    name: str
    packets: tuple[int | None, int | None]
    t_ns: int
    evidence: str


def proxy_signs(flow: Flow, *, shortened: bool) -> Iterator[ProxySign]:
    """Yield the signs in one flow. `shortened`: the path changed, which shortens round trips, too."""
    import pyarrow.compute as pc

    row, segments = flow.row, flow.tables["segments"]
    back = segments.filter(pc.not_equal(segments["direction"].cast("string"), flow.direction))
    syns = pc.not_equal(pc.bit_wise_and(back["flags"].cast("int32"), 2), 0)
    answers, later = back.filter(syns), back.filter(pc.and_(pc.invert(syns), pc.greater(back["ack"], 1)))
    if answers.num_rows and later.num_rows:
        there = int(answers["ttl"][0].as_py())
        others = later.filter(pc.not_equal(later["ttl"], there))
        if others.num_rows:
            evidence = (
                f"the handshake's answer has TTL {there}, {others.num_rows} of {later.num_rows} later ones another: "
                f"{others['ttl'][0].as_py()} in packet {others['record'][0].as_py()}"
            )
            packets = answers["record"][0].as_py(), others["record"][0].as_py()
            yield ProxySign("another TTL", packets, int(others["t_ns"][0].as_py()), evidence)
    handshake_ns, least_ns = row["handshake_rtt_ns"], row[f"{flow.direction}_rtt_min_ns"]
    if shortened or row["vantage"] != "sender" or not handshake_ns or not least_ns:
        return
    if least_ns < NEARER * handshake_ns:
        timed = back.filter(pc.equal(back["rtt_ns"], least_ns))
        packet = timed["record"][0].as_py() if timed.num_rows else None
        evidence = (
            f"the handshake took {handshake_ns / 1e6:.1f} ms, the fastest round trip of data "
            f"{least_ns / 1e6:.1f} ms: a host on the way answers the data"
        )
        at = int(timed["t_ns"][0].as_py()) if timed.num_rows else int(row["start_ns"])
        yield ProxySign("local ACKs", (packet, packet), at, evidence)
