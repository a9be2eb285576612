"""What the analysis says of the captures of a run, in the terms of `truth`: losses, causes, cwnd and bytes in flight.

Depends on the tables of hindflight.toolkit.schema. A loss claimed at the receiver has no record: it names a copy of a
segment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.capture import Capture
    from validation.captures.truth import FlowTruth

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LossClaim:
    """A transmission that is called lost: copy number `copy`, from 1, of the segment at `seq` (octets; SYN = 0).

    `record` names it instead where the capture holds it. Without either, what is undecided is every transmission from
    `seq` to before `end`: it is not known in which segments the octets were sent. A loss without either names none.
    """

    record: int | None
    seq: int
    copy: int | None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class CauseClaim:
    """The mechanism of a retransmission as `truth` names it, or unknown; None of `spurious`: not said."""

    record: int
    cause: str
    spurious: bool | None


@dataclass(frozen=True, slots=True)
class WindowClaim:
    """cwnd and in-flight from `t_ns` on, in bytes; `low` and `high` bound cwnd with 95 %, where they are given."""

    t_ns: int
    cwnd_bytes: float | None
    inflight_bytes: float | None
    low_bytes: float | None
    high_bytes: float | None


@dataclass(frozen=True, slots=True)
class FlowClaims:
    """What one capture says of one flow; of a transmission that is `undecided` it does not show whether it arrived."""

    flow_id: int
    vantage: str
    losses: Sequence[LossClaim]
    undecided: Sequence[LossClaim]
    causes: Sequence[CauseClaim]
    windows: Sequence[WindowClaim]


def claims_of(capture: Capture, ports: tuple[int, int]) -> FlowClaims | None:
    """Return what a capture says of the flow between two ports; None if it lists no such flow.

    The truth has the fate of packets with payload, so a lost SYN is no claim.
    """
    flow = next((row for row in capture.flows.to_pylist() if (row["a_port"], row["b_port"]) == ports), None)
    if flow is None:
        return None
    events = [row for row in _of(capture.events, flow["flow_id"]) if row["direction"] == "a2b"]
    return FlowClaims(
        flow_id=flow["flow_id"],
        vantage=flow["vantage"],
        losses=[_loss(row) for row in events if row["kind"] == "loss" and row["seq_end"] > 1],
        undecided=[_loss(row) for row in events if row["kind"] == "undecided"],
        causes=[_cause(row) for row in events if row["kind"] == "retransmission"],
        windows=[_window(row) for row in _of(capture.instruments, flow["flow_id"]) if row["source"] == "inferred"],
    )


def when_sent(flow: FlowTruth, windows: Sequence[WindowClaim]) -> list[WindowClaim]:
    """Return claims of a capture at the receiver at the time at which the packet left that shows them. Between two
    packets, a claim is of the time at which one would have left that took as long as the one before."""
    arrived = sorted((packet.arrived_ns, packet.t_ns) for packet in flow.transmissions if packet.fate == "delivered")
    times = [at for at, _ in arrived]
    moved = []
    for claim in windows:
        after = bisect_right(times, claim.t_ns)
        if after:
            at, sent = arrived[after - 1]
            until = arrived[after][1] if after < len(arrived) else flow.end_ns
            moved.append(replace(claim, t_ns=max(sent, min(sent + claim.t_ns - at, until))))
    return moved


def _of(table: pa.Table, flow_id: int) -> list[dict[str, Any]]:
    import pyarrow.compute as pc

    rows: list[dict[str, Any]] = table.filter(pc.equal(table["flow_id"], flow_id)).to_pylist()
    return rows


def _loss(row: Mapping[str, Any]) -> LossClaim:
    return LossClaim(row["record"], row["seq_start"], row["copy"], row["seq_end"])


def _cause(row: Mapping[str, Any]) -> CauseClaim:
    """Name the mechanism as `truth` does, which tells SACK and RACK apart from neither."""
    mechanism = str(row["mechanism"])
    return CauseClaim(row["record"], "sack/rack" if mechanism == "sack" else mechanism, row["spurious"])


def _window(row: Mapping[str, Any]) -> WindowClaim:
    return WindowClaim(row["t_ns"], row["cwnd_bytes"], row["pipe_bytes"], row["cwnd_low_bytes"], row["cwnd_high_bytes"])
