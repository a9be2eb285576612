"""Pairs the captures of two places: which flows are one connection, how long each packet took, where it was lost.

Read match.py and clock.py first; docs/pairs.md says what the rows mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.toolkit.errors import CaptureError
from hindflight.toolkit.pairing.clock import Clock, Passages, compare_clocks
from hindflight.toolkit.pairing.match import match
from hindflight.toolkit.pairing.packets import COLUMNS, Packets, packets_of, split_records
from hindflight.toolkit.rows import grouped
from hindflight.toolkit.schema import TABLES, conform, table_from_rows
from hindflight.toolkit.serial import nearest

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from hindflight.toolkit.workspace import Workspace

    Ints = npt.NDArray[np.int64]

_FATES = TABLES["pairs"].column("fate").values
_DELIVERED, _LOST, _NOT_CAPTURED, _OUTSIDE, _APPEARED = range(len(_FATES))
_OPPOSITE = {"a2b": "b2a", "b2a": "a2b"}
_NONE = -1


@dataclass(frozen=True, slots=True)
class Paired:
    """What two captures say together: rows of `pairs` and, if packets of both directions are in both, of `clocks`."""

    pairs: pa.Table
    clocks: pa.Table
    clock: Clock | None
    connections: int


@dataclass(slots=True)
class _Way:
    """One direction of one connection in both captures, and which rows of both are the same packet."""

    flow_id: int
    other_flow_id: int
    direction: str
    first: Packets
    other: Packets
    rows: Ints
    other_rows: Ints
    forward: bool = True


def pair_captures(workspace: Workspace, input_id: int, other_input_id: int, asymmetry_ns: int | None) -> Paired:
    """Pair two captures of the workspace: the first one's clock is the reference.

    `asymmetry_ns` is the minimum delay from the first place to the other less that back; None if it is not known.
    CaptureError: they have no packet in common, or `asymmetry_ns` is more than the minimum round trip.
    """
    found = _connections(workspace, input_id, other_input_id)
    rows = _segments_of(workspace, [flow for one, other, _ in found for flow in (one, other)])
    ways = [way for one, other, flipped in found for way in _matched(rows, one, other, flipped)]
    if not any(len(way.rows) for way in ways):
        names = [entry.name for entry in workspace.inputs if entry.input_id in (input_id, other_input_id)]
        raise CaptureError(
            f"{' and '.join(names)} have no packet in common", "pair captures of the same connections at two places"
        )
    for connection in zip(ways[::2], ways[1::2], strict=True):
        _orient(connection)
    clock = compare_clocks(_passages(ways, forward=True), _passages(ways, forward=False), asymmetry_ns)
    if clock is not None and abs(asymmetry_ns or 0) > clock.min_rtt_ns:
        raise CaptureError(
            f"an asymmetry of {(asymmetry_ns or 0) / 1e6:g} ms is more than the minimum RTT between the two places, "
            f"{clock.min_rtt_ns / 1e6:.3f} ms: one of the delays would be negative",
            "it is the minimum delay there less that back; pair captures one hop at a time if it differs per hop",
        )
    spans = [_span(workspace, one) for one in (input_id, other_input_id)]
    both = [pair for a2b, b2a in zip(ways[::2], ways[1::2], strict=True) for pair in ((a2b, b2a), (b2a, a2b))]
    tables = [_rows(way, clock, spans, _acked(way, back)) for way, back in both]
    return Paired(_table(tables), _clock_rows(clock, ways, (input_id, other_input_id), asymmetry_ns), clock, len(found))


def _connections(workspace: Workspace, input_id: int, other_input_id: int) -> list[tuple[int, int, bool]]:
    """Flows of both captures that are one connection, and whether its ends are the other way round in the other.

    Equal addresses and ports decide, or else (a NAT) equal first sequence numbers of both directions.
    """
    import pyarrow.compute as pc

    flows, others = (
        workspace.table("flows", None, (pc.field("run_id") == 0) & (pc.field("input_id") == one)).to_pylist()
        for one in (input_id, other_input_id)
    )
    isns = _first_numbers(workspace, [row["flow_id"] for row in (*flows, *others)])
    found: list[tuple[int, int, bool]] = []
    for keys_of in (_ends_and_numbers, _numbers, _ends):
        taken, taken_other = {one for one, _, _ in found}, {other for _, other, _ in found}
        known: dict[Any, tuple[int, bool]] = {}
        for row in others:
            if row["flow_id"] not in taken_other:
                for flipped in (True, False):
                    if (key := keys_of(row, isns, flipped)) is not None:
                        known[key] = (row["flow_id"], flipped)
        for row in flows:
            key = keys_of(row, isns, flipped=False)
            if row["flow_id"] not in taken and key in known:
                other, flipped = known.pop(key)
                known = {k: v for k, v in known.items() if v[0] != other} if flipped else known
                found.append((row["flow_id"], other, flipped))
    return sorted(found)


def _ends(row: dict[str, Any], _isns: dict[int, Any], flipped: bool) -> Any:
    a, b = (row["a_addr"], row["a_port"]), (row["b_addr"], row["b_port"])
    return (b, a) if flipped else (a, b)


def _numbers(row: dict[str, Any], isns: dict[int, Any], flipped: bool) -> Any:
    """The first sequence number of each direction; None unless both are known."""
    numbers = isns.get(row["flow_id"], (None, None))
    return None if None in numbers else numbers[::-1] if flipped else numbers


def _ends_and_numbers(row: dict[str, Any], isns: dict[int, Any], flipped: bool) -> Any:
    numbers = _numbers(row, isns, flipped)
    return None if numbers is None else (_ends(row, isns, flipped), numbers)


def _first_numbers(workspace: Workspace, flows: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
    """The initial sequence numbers of both directions of each flow, from its SYNs."""
    import pyarrow.compute as pc

    syn = (pc.field("run_id") == 0) & pc.field("flow_id").isin(list(flows)) & (pc.field("seq") == 0)
    rows = workspace.table("segments", ["flow_id", "direction", "seq_raw", "flags"], syn).to_pylist()
    found: dict[int, dict[str, int]] = {}
    for row in rows:
        if row["flags"] & 2:
            found.setdefault(row["flow_id"], {}).setdefault(row["direction"], row["seq_raw"])
    return {flow: (numbers.get("a2b"), numbers.get("b2a")) for flow, numbers in found.items()}


def _segments_of(workspace: Workspace, flows: Sequence[int]) -> dict[int, pa.Table]:
    """The segments of each of these flows, in order; the table is read once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = (pc.field("run_id") == 0) & pc.field("flow_id").isin(pa.array(flows, pa.uint32()))
    rows = workspace.table("segments", COLUMNS, wanted)
    order, groups = grouped(rows["flow_id"].to_numpy())
    ordered = rows.take(order)
    return {flow: ordered.slice(start, stop - start) for flow, start, stop in groups}


def _matched(segments: dict[int, pa.Table], flow_id: int, other_flow_id: int, flipped: bool) -> list[_Way]:
    """Both directions of a connection, named as in the first capture, with their packets matched."""
    rows, others = segments[flow_id], segments[other_flow_id]
    ways = []
    for direction in ("a2b", "b2a"):
        first, other = packets_of(rows, direction), packets_of(others, _OPPOSITE[direction] if flipped else direction)
        largest = [int(packets.payload_bytes.max(initial=0)) for packets in (first, other) if len(packets)]
        if len(largest) == 2:
            first, other = (split_records(packets, min(largest)) for packets in (first, other))
        ways.append(_Way(flow_id, other_flow_id, direction, first, other, *match(first, other)))
    return ways


def _orient(connection: tuple[_Way, _Way]) -> None:
    """Find the direction that passes the first place first: there the other clock is ahead by a delay, not behind."""
    ahead = [
        float(np.median(way.other.t_ns[way.other_rows] - way.first.t_ns[way.rows])) if len(way.rows) else None
        for way in connection
    ]
    one, two = connection
    if ahead[0] is not None and ahead[1] is not None:
        one.forward = ahead[0] >= ahead[1]
    else:  # Data travel from the first place to the other, which is the order in which captures are given.
        one.forward = one.first.payload_bytes.sum() >= two.first.payload_bytes.sum()
    two.forward = not one.forward


def _passages(ways: Sequence[_Way], *, forward: bool) -> Passages:
    chosen = [way for way in ways if way.forward == forward]
    columns = [
        (way.first.t_ns[way.rows], way.other.t_ns[way.other_rows], way.first.ip_bytes[way.rows]) for way in chosen
    ]
    return Passages(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _span(workspace: Workspace, input_id: int) -> tuple[int, int]:
    """When a capture began and ended, by its connections."""
    import pyarrow.compute as pc

    mine = (pc.field("run_id") == 0) & (pc.field("input_id") == input_id)
    flows = workspace.table("flows", ["start_ns", "end_ns"], mine)
    return int(pc.min(flows["start_ns"]).as_py()), int(pc.max(flows["end_ns"]).as_py())


def _acked(way: _Way, back: _Way) -> int:
    """The highest octet of `way` that its other direction `back` acknowledged."""
    packets = way.first if len(way.first) else way.other
    if not len(packets):
        return _NONE
    base = int(packets.seq[0] - packets.octet[0])
    acked = _NONE
    for one in (back.first, back.other):
        acks = one.ack[(one.flags & 16 != 0) & (one.ack >= 0)]
        if len(acks):
            # Unwrapped around the highest octet sent.
            top = int(packets.octet.max())
            acked = max(acked, top + int(nearest(acks - base - top).max()))
    return acked


def _rows(way: _Way, clock: Clock | None, spans: Sequence[tuple[int, int]], acked: int) -> dict[str, npt.NDArray[Any]]:
    """The rows of `pairs` of one direction: matched packets, and those of one capture alone."""
    first, other = way.first, way.other
    alone, alone_other = _alone(len(first), way.rows), _alone(len(other), way.other_rows)
    at = np.concatenate((way.rows, alone, np.full(len(alone_other), _NONE)))
    at_other = np.concatenate((way.other_rows, np.full(len(alone), _NONE), alone_other))
    t_ns = np.where(at >= 0, _at(first.t_ns, at), 0)
    moved = other.t_ns if clock is None else clock.to_first(other.t_ns)
    other_t_ns = np.where(at_other >= 0, _at(moved, at_other), 0)
    both = (at >= 0) & (at_other >= 0)
    delay = (other_t_ns - t_ns) * (1 if way.forward else -1)
    fate = np.full(len(at), _DELIVERED)
    upstream_alone = (at_other if way.forward else at) < 0
    fate[~both] = np.where(upstream_alone[~both], _LOST, _APPEARED)
    seq = np.where(at >= 0, _at(first.octet, at), _at(other.octet, at_other))
    payload = np.where(at >= 0, _at(first.payload_bytes, at), _at(other.payload_bytes, at_other))
    lost = fate == _LOST
    when = t_ns if way.forward else other_t_ns
    begin, end = _covered(spans[1 if way.forward else 0], clock, forward=way.forward)
    expected = when + (int(np.median(delay[both])) if both.any() else 0)
    fate[lost & ((expected < begin) | (expected > end))] = _OUTSIDE
    inside = np.flatnonzero(fate == _LOST)
    ends = seq[inside] + payload[inside]
    seen = _covers(other if way.forward else first, seq[inside], payload[inside])
    fate[inside[~seen & (payload[inside] > 0) & (ends <= acked)]] = _NOT_CAPTURED
    order = np.argsort(np.where(at >= 0, t_ns, other_t_ns), kind="stable")
    columns: dict[str, npt.NDArray[Any]] = {
        "flow_id": np.full(len(at), way.flow_id),
        "other_flow_id": np.full(len(at), way.other_flow_id),
        "direction": np.full(len(at), ("a2b", "b2a").index(way.direction)),
        "record": np.ma.MaskedArray(_at(first.record, at), at < 0),
        "other_record": np.ma.MaskedArray(_at(other.record, at_other), at_other < 0),
        "t_ns": np.ma.MaskedArray(t_ns, at < 0),
        "other_t_ns": np.ma.MaskedArray(other_t_ns, (at_other < 0) | (clock is None)),
        "seq": seq,
        "payload_bytes": payload,
        "delay_ns": np.ma.MaskedArray(delay, ~both | (clock is None)),
        "fate": fate,
    }
    return {name: values[order] for name, values in columns.items()}


def _alone(count: int, paired: Ints) -> Ints:
    """The rows among `count` that have no counterpart."""
    free = np.ones(count, bool)
    free[paired] = False
    return np.flatnonzero(free)


def _at(values: Ints, rows: Ints) -> Ints:
    """The values of these rows; anything for row -1."""
    return values[rows] if len(values) else np.zeros(len(rows), np.int64)


def _covered(span: tuple[int, int], clock: Clock | None, *, forward: bool) -> tuple[int, int]:
    """When the capture at the second place of a direction began and ended, by the first clock."""
    if not forward or clock is None:
        return span
    begin, end = clock.to_first(np.array(span, np.int64))
    return int(begin), int(end)


def _covers(packets: Packets, seq: Ints, payload: Ints) -> npt.NDArray[np.bool_]:
    """Whether `packets` have any octet of each of these ranges."""
    data = packets.payload_bytes > 0
    order = np.argsort(packets.octet[data], kind="stable")
    starts = packets.octet[data][order]
    ends = np.maximum.accumulate((starts + packets.payload_bytes[data][order]) if len(starts) else starts)
    place = np.searchsorted(starts, seq + payload, side="left") - 1
    return (place >= 0) & (np.append(ends, 0)[place] > seq)


def _table(parts: Sequence[dict[str, npt.NDArray[Any]]]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for column in TABLES["pairs"].columns:
        values = np.concatenate([np.ma.getdata(part[column.name]) for part in parts])
        array = pa.array(values, mask=np.concatenate([np.ma.getmaskarray(part[column.name]) for part in parts]))
        columns[column.name] = (
            pa.DictionaryArray.from_arrays(array.cast(pa.int8()), pa.array(column.values))
            if column.type == "enum"
            else array
        )
    return conform("pairs", pa.table(columns))


def _clock_rows(
    clock: Clock | None, ways: Sequence[_Way], inputs: tuple[int, int], asymmetry_ns: int | None
) -> pa.Table:
    if clock is None:
        return table_from_rows("clocks", [])
    row: dict[str, object] = {
        "input_id": inputs[0],
        "other_input_id": inputs[1],
        "reference_ns": clock.reference_ns,
        "offset_ns": clock.offset_ns,
        "offset_low_ns": clock.offset_low_ns,
        "offset_high_ns": clock.offset_high_ns,
        "drift_ppm": clock.drift_ppm,
        "drift_error_ppm": clock.drift_error_ppm,
        "min_rtt_ns": clock.min_rtt_ns,
        "asymmetry_ns": asymmetry_ns,
        "packets": sum(len(way.rows) for way in ways),
    }
    return table_from_rows("clocks", [row])
