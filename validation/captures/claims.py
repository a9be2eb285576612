"""What the analysis says of the captures of a run, in the terms of `truth`: losses, causes, cwnd and bytes in flight.

Depends on the tables of hindflight.toolkit.schema. A loss claimed at the receiver has no record: it names a copy of a
segment, which is one more than the copies that arrived before and those called lost before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.capture import Capture

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LossClaim:
    """A transmission that is called lost: copy number `copy`, from 1, of the segment at `seq` (octets; SYN = 0).

    `record` names it instead where the capture holds it.
    """

    record: int | None
    seq: int
    copy: int


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
    """What one capture says of one flow."""

    flow_id: int
    vantage: str
    losses: Sequence[LossClaim]
    causes: Sequence[CauseClaim]
    windows: Sequence[WindowClaim]


def claims_of(capture: Capture, ports: tuple[int, int], sack: bool) -> FlowClaims | None:
    """Return what a capture says of the flow between two ports; None if it lists no such flow."""
    flow = next((row for row in capture.flows.to_pylist() if (row["a_port"], row["b_port"]) == ports), None)
    if flow is None:
        return None
    events = [row for row in _of(capture.events, flow["flow_id"]) if row["direction"] == "a2b"]
    timeouts = {row["record"] for row in events if row["kind"] == "rto"}
    losses = [row for row in events if row["kind"] == "loss"]
    at_sender = flow["vantage"] == "sender"
    return FlowClaims(
        flow_id=flow["flow_id"],
        vantage=flow["vantage"],
        losses=_losses_at_sender(losses)
        if at_sender
        else _losses_behind(losses, _of(capture.segments, flow["flow_id"])),
        causes=[_cause(row, timeouts, sack) for row in events if row["kind"] == "retransmission"],
        windows=[_window(row) for row in _of(capture.instruments, flow["flow_id"]) if row["source"] == "inferred"],
    )


def _of(table: pa.Table, flow_id: int) -> list[dict[str, Any]]:
    import pyarrow.compute as pc

    rows: list[dict[str, Any]] = table.filter(pc.equal(table["flow_id"], flow_id)).to_pylist()
    return rows


def _losses_at_sender(events: Sequence[Mapping[str, Any]]) -> list[LossClaim]:
    return [LossClaim(row["record"], row["seq_start"], 1) for row in events]


def _losses_behind(events: Sequence[Mapping[str, Any]], segments: Sequence[Mapping[str, Any]]) -> list[LossClaim]:
    """Name the copies that did not reach the capture point, in order of time."""
    arrived = [
        (row["t_ns"], row["seq"], False) for row in segments if row["direction"] == "a2b" and row["payload_bytes"]
    ]
    claimed = [(row["t_ns"], row["seq_start"], True) for row in events]
    copies: Counter[int] = Counter()
    found = []
    for _, seq, is_lost in sorted(arrived + claimed, key=lambda one: one[0]):
        copies[seq] += 1
        if is_lost:
            found.append(LossClaim(None, seq, copies[seq]))
    return found


def _cause(row: Mapping[str, Any], timeouts: set[int], sack: bool) -> CauseClaim:
    """Name the mechanism as `truth` does: the retransmission that a timeout sends is rto, those behind it after_rto."""
    cause = str(row["cause"])
    named = {"fast": "sack/rack" if sack else "fast", "probe": "tlp"}.get(cause, UNKNOWN)
    if cause == "rto" or row["record"] in timeouts:
        named = "rto" if row["record"] in timeouts else "after_rto"
    return CauseClaim(row["record"], named, cause == "spurious")


def _window(row: Mapping[str, Any]) -> WindowClaim:
    return WindowClaim(
        row["t_ns"], row["cwnd_bytes"], row["flight_bytes"], row.get("cwnd_low_bytes"), row.get("cwnd_high_bytes")
    )
