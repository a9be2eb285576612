"""Which flow of a workspace a kernel log belongs to: by its addresses and time, or by how far it had got when.

A WEB100 log names its connection; a TCP_INFO series does not, so its `snd_una` is compared with what each capture saw
acknowledged. Reads `flows` and `segments`; writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.model import Connection, KernelLog, Numbers

if TYPE_CHECKING:
    from hindflight.toolkit.workspace import Workspace

CLOCK_SLACK_NS = 60 * 10**9
"""How far the clocks of the logging host and of the capture may differ, for logs that name their connection."""

MAX_MISMATCH = 0.1
"""Maximum typical distance between log and capture, as a share of what the log saw acknowledged."""

MIN_LEAD = 3.0
"""The second-best flow must be this many times worse than the best."""

_SAMPLES = 500
_FLOW_COLUMNS = (
    *("flow_id", "a_addr", "a_port", "b_addr", "b_port", "start_ns", "end_ns", "syn"),
    *("data_direction", "a2b_acked_bytes", "b2a_acked_bytes"),
)


@dataclass(frozen=True, slots=True)
class Match:
    """The flow of a log and why. `sender`: the logging host is the one that sends the flow's data."""

    flow_id: int
    sender: bool
    evidence: str


def find_flow(log: KernelLog, workspace: Workspace, flow_id: int | None = None) -> Match | None:
    """Return the flow that `log` belongs to; None where a log names a connection that no capture holds.

    `flow_id` says it instead. LogError: there is no such flow, no flow fits, or several do.
    """
    import pyarrow.compute as pc

    flows = workspace.table("flows", _FLOW_COLUMNS, pc.field("run_id") == 0).to_pylist()
    if flow_id is not None:
        return _given(log, flows, flow_id)
    if log.connection is not None:
        return _by_connection(log, log.connection, flows)
    return _by_progress(log, workspace, flows)


def own_flow(log: KernelLog, connection: Connection, flow_id: int, input_id: int) -> dict[str, object]:
    """Return a row of `flows` for a log without a capture: who and when, and no packets."""
    from hindflight.toolkit.schema import TABLES

    row: dict[str, object] = {
        c.name: False if c.type == "bool" else 0 for c in TABLES["flows"].columns if not c.nullable
    }
    opened = connection.opened is not False
    local = connection.local_addr, connection.local_port
    remote = connection.remote_addr, connection.remote_port
    row["a_addr"], row["a_port"] = local if opened else remote
    row["b_addr"], row["b_port"] = remote if opened else local
    row |= {"flow_id": flow_id, "input_id": input_id, "start_ns": log.start_ns, "end_ns": log.end_ns}
    row["data_direction"] = "a2b" if opened == log.sends else "b2a"
    row["vantage"] = "sender" if log.sends else "receiver"
    return row


def _given(log: KernelLog, flows: list[dict[str, Any]], flow_id: int) -> Match:
    for flow in flows:
        if flow["flow_id"] == flow_id:
            local_sends = log.connection is None or _ends(flow)[0] == _local(log.connection)
            return Match(flow_id, local_sends, "as given")
    raise LogError(f"there is no flow {flow_id} to join the log to", "`hindflight flows WORKSPACE` lists them")


def _by_connection(log: KernelLog, connection: Connection, flows: list[dict[str, Any]]) -> Match | None:
    local = _local(connection)
    remote = connection.remote_addr, connection.remote_port
    best: tuple[int, dict[str, Any]] | None = None
    for flow in flows:
        if {*_ends(flow)} == {local, remote}:
            overlap = min(log.end_ns, flow["end_ns"]) - max(log.start_ns, flow["start_ns"])
            if overlap > -CLOCK_SLACK_NS and (best is None or overlap > best[0]):
                best = overlap, flow
    if best is None:
        return None
    overlap, flow = best
    evidence = f"same addresses and ports, {max(overlap, 0) / 1e9:.1f} s in common"
    return Match(flow["flow_id"], _ends(flow)[0] == local, evidence)


def _by_progress(log: KernelLog, workspace: Workspace, flows: list[dict[str, Any]]) -> Match:
    mismatches = sorted(
        (_mismatch(log, workspace, flow), int(flow["flow_id"]))
        for flow in flows
        if min(log.end_ns, flow["end_ns"]) > max(log.start_ns, flow["start_ns"])
    )
    hint = "say which flow it is: --flow ID (`hindflight flows WORKSPACE` lists them)"
    if not mismatches:
        raise LogError("no flow here is of the log's time", "ingest the capture of the same transfer first")
    best, flow_id = mismatches[0]
    if best > MAX_MISMATCH:
        raise LogError("no flow here progresses as the log says", hint)
    evidence = f"acknowledged octets over time agree within {100 * best:.2f} %"
    if len(mismatches) > 1:
        second, other = mismatches[1]
        if second <= MIN_LEAD * best:
            raise LogError(f"flows {flow_id} and {other} both progress as the log says", hint)
        if second < float("inf"):
            evidence += f" (next, flow {other}: {100 * second:.1f} %)"
    return Match(flow_id, True, evidence)


def _mismatch(log: KernelLog, workspace: Workspace, flow: dict[str, Any]) -> float:
    """Typical distance between the log's and the capture's snd_una, over the log's progress; infinite without data."""
    if "snd_una" not in log.columns:
        return float("inf")
    logged: Numbers = log.columns["snd_una"].data
    progress = int(logged[-1] - logged[0])
    # A flow of another size cannot fit; this spares reading the segments of thousands of flows.
    acked = max(flow["a2b_acked_bytes"], flow["b2a_acked_bytes"])
    if progress <= 0 or not 0.5 < acked / progress < (2 if flow["syn"] else float("inf")):
        return float("inf")
    times, una = _captured_una(workspace, flow)
    at = np.unique(np.linspace(0, len(logged) - 1, min(_SAMPLES, len(logged))).astype(np.intp))
    at = at[(log.t_ns[at] >= times[0]) & (log.t_ns[at] <= times[-1])] if len(times) else at[:0]
    if not len(at):
        return float("inf")
    held = una[np.searchsorted(times, log.t_ns[at], side="right") - 1]
    apart = logged[at] - held
    if not flow["syn"]:  # Relative to the first octet captured, not to the connection's.
        apart = apart - np.int64(np.median(apart))
    return float(np.median(np.abs(apart))) / progress


def _captured_una(workspace: Workspace, flow: dict[str, Any]) -> tuple[Numbers, Numbers]:
    """When the capture saw how much of the flow's data acknowledged."""
    import pyarrow.compute as pc

    other = "b2a" if flow["data_direction"] == "a2b" else "a2b"
    mine = (pc.field("run_id") == 0) & (pc.field("flow_id") == flow["flow_id"]) & pc.field("ack").is_valid()
    acks = workspace.table("segments", ["t_ns", "ack", "direction"], mine)
    acks = acks.filter(pc.equal(acks["direction"].cast("string"), other))
    return acks["t_ns"].to_numpy(), np.maximum.accumulate(acks["ack"].to_numpy())


def _ends(flow: dict[str, Any]) -> tuple[tuple[str, int], tuple[str, int]]:
    """The end that sends the flow's data, and the other."""
    a, b = (flow["a_addr"], flow["a_port"]), (flow["b_addr"], flow["b_port"])
    return (a, b) if flow["data_direction"] == "a2b" else (b, a)


def _local(connection: Connection) -> tuple[str, int]:
    return connection.local_addr, connection.local_port
