"""Which flow of a workspace a kernel log belongs to: by its addresses and time, or by how far it had got when.

Most logs name their connection; a TCP_INFO series does not, so its `snd_una` is compared with what each capture saw
acknowledged. The same comparison gives the offset of a clock that does not count from 1970. Reads `flows` and
`segments`; writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.clock import Clock
from hindflight.toolkit.logs.model import UTC, Connection, Numbers
from hindflight.toolkit.logs.survey import Survey

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
    *("data_direction", "a2b_acked_bytes", "b2a_acked_bytes", "a2b_max_segment_bytes", "b2a_max_segment_bytes"),
)
_GIVE_OFFSET = "give the offset of its clock: --clock-offset SECONDS (to be added to the times of the log)"
_GIVE_FLOW = "say which flow it is: --flow ID (`hindflight flows WORKSPACE` lists them)"
MIN_ACKNOWLEDGEMENTS = 3
"""So many acknowledgements give the offset of a clock."""


@dataclass(frozen=True, slots=True)
class Match:
    """The flow of a log and why. `sender`: the logging host is the one that sends the flow's data.

    `offset_ns` is to be added to the times of the log. `iss` is the sequence number of the SYN of the logging host,
    `smss_bytes` the payload of its largest segment; None where the capture does not show them.
    """

    flow_id: int
    sender: bool
    evidence: str
    offset_ns: int = 0
    iss: int | None = None
    smss_bytes: int | None = None


class Flows:
    """The captured flows of a workspace, as logs look for them."""

    def __init__(self, workspace: Workspace) -> None:
        import pyarrow.compute as pc

        self._workspace = workspace
        self.rows: list[dict[str, Any]] = workspace.table("flows", _FLOW_COLUMNS, pc.field("run_id") == 0).to_pylist()
        self.by_id: dict[int, dict[str, Any]] = {int(flow["flow_id"]): flow for flow in self.rows}
        self._by_ends: defaultdict[frozenset[tuple[str, int]], list[dict[str, Any]]] = defaultdict(list)
        for flow in self.rows:
            self._by_ends[frozenset(_ends(flow))].append(flow)

    def between(self, connection: Connection) -> list[dict[str, Any]]:
        """Return the flows with the addresses and ports of `connection`."""
        return self._by_ends[frozenset((_local(connection), _remote(connection)))]

    def captured_una(self, flow: dict[str, Any], direction: str) -> tuple[Numbers, Numbers]:
        """Return when the capture saw how much of the data of `direction` acknowledged."""
        import pyarrow.compute as pc

        other = "b2a" if direction == "a2b" else "a2b"
        mine = (pc.field("run_id") == 0) & (pc.field("flow_id") == flow["flow_id"]) & pc.field("ack").is_valid()
        acks = self._workspace.table("segments", ["t_ns", "ack", "direction"], mine)
        acks = acks.filter(pc.equal(acks["direction"].cast("string"), other))
        return acks["t_ns"].to_numpy(), np.maximum.accumulate(acks["ack"].to_numpy())

    def iss(self, flow: dict[str, Any], direction: str) -> int | None:
        """Return the sequence number of the SYN of `direction`; None if it was not captured."""
        import pyarrow.compute as pc

        if not flow["syn"]:
            return None
        mine = (pc.field("run_id") == 0) & (pc.field("flow_id") == flow["flow_id"])
        segments = self._workspace.table("segments", ["direction", "seq", "seq_raw"], mine)
        segments = segments.filter(pc.equal(segments["direction"].cast("string"), direction))
        if not segments.num_rows:
            return None
        return int(segments["seq_raw"][0].as_py() - segments["seq"][0].as_py()) & 0xFFFFFFFF


def find_flow(
    log: Survey, flows: Flows, flow_id: int | None = None, clock_offset_ns: int | None = None
) -> Match | None:
    """Return the flow that `log` belongs to; None where a log names a connection that no capture holds.

    `flow_id` says it instead; `clock_offset_ns` is to be added to the times of the log. LogError: there is no such
    flow, no flow fits, or several do; or the times of the log say nothing without the offset.
    """
    known = log.clock == UTC or clock_offset_ns is not None
    offset_ns = clock_offset_ns or 0
    if flow_id is not None:
        match = _given(log, flows, flow_id)
    elif log.connection is not None:
        found = _by_connection(log, log.connection, flows, offset_ns if known else None)
        if found is None:
            return None
        match = found
    elif known:
        match = _by_progress(log, flows, offset_ns)
    else:
        raise LogError(f"the log names no connection, and its times count from {log.clock}", _GIVE_FLOW)
    if not known:
        raise LogError(f"the times of the log count from {log.clock}, and no capture shows the offset", _GIVE_OFFSET)
    flow = flows.by_id[match.flow_id]
    direction = _direction(flow, match)
    match = replace(match, offset_ns=offset_ns, smss_bytes=flow[f"{direction}_max_segment_bytes"] or None)
    return match if log.first_una is None else replace(match, iss=flows.iss(flow, direction))


def estimate_clock(logs: Iterable[Survey], flows: Flows, flow_id: int | None = None) -> Clock | None:
    """Return the offset of the clock of `logs`, of one file, from the connection with the most acknowledgements.

    None: no capture shows enough of them. LogError: a log could be of several flows.
    """
    clocks = []
    for log in logs:
        if flow_id is not None:
            match: Match | None = _given(log, flows, flow_id)
        else:
            match = None if log.connection is None else _by_connection(log, log.connection, flows, None)
        if match is not None:
            flow = flows.by_id[match.flow_id]
            clocks.append(_clock(log, flow, _direction(flow, match), flows))
    return max((clock for clock in clocks if clock is not None), key=lambda clock: clock.samples, default=None)


def own_flow(log: Survey, connection: Connection, flow_id: int, input_id: int) -> dict[str, object]:
    """Return a row of `flows` for a log without a capture: who and when, and no packets."""
    from hindflight.toolkit.schema import TABLES

    row: dict[str, object] = {
        c.name: False if c.type == "bool" else 0 for c in TABLES["flows"].columns if not c.nullable
    }
    opened = connection.opened is not False
    row["a_addr"], row["a_port"] = _local(connection) if opened else _remote(connection)
    row["b_addr"], row["b_port"] = _remote(connection) if opened else _local(connection)
    row |= {"flow_id": flow_id, "input_id": input_id, "start_ns": log.start_ns, "end_ns": log.end_ns}
    row["data_direction"] = "a2b" if opened == log.sends else "b2a"
    row["vantage"] = "sender" if log.sends else "receiver"
    return row


def _given(log: Survey, flows: Flows, flow_id: int) -> Match:
    flow = flows.by_id.get(flow_id)
    if flow is None:
        raise LogError(f"there is no flow {flow_id} to join the log to", "`hindflight flows WORKSPACE` lists them")
    local_sends = log.connection is None or _ends(flow)[0] == _local(log.connection)
    return Match(flow_id, local_sends, "as given")


def _by_connection(log: Survey, connection: Connection, flows: Flows, offset_ns: int | None) -> Match | None:
    """The flow with the log's addresses that overlaps most with it; without a clock there may be one only."""
    candidates = flows.between(connection)
    if offset_ns is None:
        if len(candidates) > 1:
            raise LogError(
                f"{len(candidates)} flows have the addresses of the log, whose clock is not known", _GIVE_FLOW
            )
        overlaps = [(0, flow) for flow in candidates]
    else:
        start_ns, end_ns = log.start_ns + offset_ns, log.end_ns + offset_ns
        overlaps = [(min(end_ns, flow["end_ns"]) - max(start_ns, flow["start_ns"]), flow) for flow in candidates]
        overlaps = [(overlap, flow) for overlap, flow in overlaps if overlap > -CLOCK_SLACK_NS]
    if not overlaps:
        return None
    overlap, flow = max(overlaps, key=lambda each: each[0])
    common = "" if offset_ns is None else f", {max(overlap, 0) / 1e9:.1f} s in common"
    return Match(flow["flow_id"], _ends(flow)[0] == _local(connection), f"same addresses and ports{common}")


def _direction(flow: dict[str, Any], match: Match) -> str:
    """The direction in which the logging host sends."""
    way = str(flow["data_direction"])
    return way if match.sender else {"a2b": "b2a", "b2a": "a2b"}[way]


def _clock(log: Survey, flow: dict[str, Any], direction: str, flows: Flows) -> Clock | None:
    """The offset of the log's clock: each `snd_una` held from the ACK that gave it to the next that moved it.

    A capture that was taken elsewhere than at the logging host adds the time to there.
    """
    at_ns, una = log.progress()
    if log.first_una is not None:
        iss = flows.iss(flow, direction)
        if iss is None:
            return None
        una = una + ((log.first_una - iss) & 0xFFFFFFFF)
    times, acked = flows.captured_una(flow, direction)
    since = np.searchsorted(acked, una, side="left")
    until = np.searchsorted(acked, una, side="right")
    usable = (until < len(acked)) & (since < until)
    if usable.sum() < MIN_ACKNOWLEDGEMENTS:
        return None
    earliest = float(np.quantile(times[since[usable]] - at_ns[usable], 0.95))
    latest = float(np.quantile(times[until[usable]] - at_ns[usable], 0.05))
    return Clock(
        round((earliest + latest) / 2),
        round(abs(latest - earliest) / 2),
        int(usable.sum()),
        f"acknowledgements of flow {flow['flow_id']}",
    )


def _by_progress(log: Survey, flows: Flows, offset_ns: int) -> Match:
    mismatches = sorted(
        (_mismatch(log, flows, flow, offset_ns), int(flow["flow_id"]))
        for flow in flows.rows
        if min(log.end_ns + offset_ns, flow["end_ns"]) > max(log.start_ns + offset_ns, flow["start_ns"])
    )
    if not mismatches:
        raise LogError("no flow here is of the log's time", "ingest the capture of the same transfer first")
    best, flow_id = mismatches[0]
    if best > MAX_MISMATCH:
        raise LogError("no flow here progresses as the log says", _GIVE_FLOW)
    evidence = f"acknowledged octets over time agree within {100 * best:.2f} %"
    if len(mismatches) > 1:
        second, other = mismatches[1]
        if second <= MIN_LEAD * best:
            raise LogError(f"flows {flow_id} and {other} both progress as the log says", _GIVE_FLOW)
        if second < float("inf"):
            evidence += f" (next, flow {other}: {100 * second:.1f} %)"
    return Match(flow_id, True, evidence)


def _mismatch(log: Survey, flows: Flows, flow: dict[str, Any], offset_ns: int) -> float:
    """Typical distance between the log's and the capture's snd_una, over the log's progress; infinite without data."""
    at_ns, logged = log.progress()
    progress = int(logged[-1] - logged[0]) if len(logged) else 0
    # A flow of another size cannot fit; this spares reading the segments of thousands of flows.
    acked = max(flow["a2b_acked_bytes"], flow["b2a_acked_bytes"])
    if progress <= 0 or not 0.5 < acked / progress < (2 if flow["syn"] else float("inf")):
        return float("inf")
    times, una = flows.captured_una(flow, flow["data_direction"])
    at_ns = at_ns + offset_ns
    # Equally spaced in time: the log's own rows may lie anywhere.
    spaced = np.linspace(at_ns[0], at_ns[-1], _SAMPLES).astype(np.int64)
    spaced = spaced[(spaced >= times[0]) & (spaced <= times[-1])] if len(times) else spaced[:0]
    if not len(spaced):
        return float("inf")
    held = una[np.searchsorted(times, spaced, side="right") - 1]
    apart = logged[np.searchsorted(at_ns, spaced, side="right") - 1] - held
    if not flow["syn"]:  # Relative to the first octet captured, not to the connection's.
        apart = apart - np.int64(np.median(apart))
    return float(np.median(np.abs(apart))) / progress


def _ends(flow: dict[str, Any]) -> tuple[tuple[str, int], tuple[str, int]]:
    """The end that sends the flow's data, and the other."""
    a, b = (flow["a_addr"], flow["a_port"]), (flow["b_addr"], flow["b_port"])
    return (a, b) if flow["data_direction"] == "a2b" else (b, a)


def _local(connection: Connection) -> tuple[str, int]:
    return connection.local_addr, connection.local_port


def _remote(connection: Connection) -> tuple[str, int]:
    return connection.remote_addr, connection.remote_port
