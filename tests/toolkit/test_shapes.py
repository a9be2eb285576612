"""Shapes of a flow: each from the packets that its definition names, and none from packets next to it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hindflight.toolkit.shapes import Shape, shapes

MSS = 1000
MS = 1_000_000
EVENTS = pa.table({name: pa.array([], kind) for name, kind in (
    ("direction", pa.string()), ("kind", pa.string()), ("t_ns", pa.int64()), ("seq_start", pa.int64()),
    ("record", pa.uint64()),
)})  # fmt: skip


def _segment(t_ms: float, direction: str = "b2a", **fields: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {"flags": 16, "ack": 1, "window": 1000, "ts_val": None, "sack": [], "payload_bytes": 0}
    return {"t_ns": round(t_ms * MS), "direction": direction, **plain, **fields}


def _shapes(rows: list[dict[str, Any]], events: pa.Table = EVENTS, vantage: str = "sender") -> list[Shape]:
    kinds = {"ack": pa.int64(), "ts_val": pa.uint32(), "sack": pa.list_(pa.int64()), "window": pa.uint16()}
    numbered = [{"record": number, **row} for number, row in enumerate(rows, 1)]
    columns = {name: pa.array([row[name] for row in numbered], kinds.get(name)) for name in numbered[0]}
    return shapes(pa.table(columns), events, "a2b", MSS, vantage)


def test_a_closed_window_is_a_pause_until_it_opens() -> None:
    rows = [_segment(0), _segment(10, window=0), _segment(200, window=0), _segment(500)]
    (pause,) = _shapes(rows)
    assert (pause.name, pause.first_record, pause.last_record) == ("receiver pause", 2, 4)
    assert "0.490 s" in pause.evidence
    assert _shapes(rows, vantage="receiver") == [pause]
    assert "end of the capture" in _shapes(rows[:3])[0].evidence


def test_timeouts_of_one_segment_are_repeated() -> None:
    rows = [("rto", 0, 1, 5), ("rto", 400, 1, 6), ("rto", 1200, 1, 7), ("rto", 9000, 5001, 9)]
    events = pa.table({
        "direction": ["a2b"] * 4, "kind": [kind for kind, *_ in rows], "t_ns": [t * MS for _, t, _, _ in rows],
        "seq_start": [seq for *_, seq, _ in rows], "record": [record for *_, record in rows],
    })  # fmt: skip
    (repeated,) = _shapes([_segment(0)], events)
    assert (repeated.name, repeated.first_record, repeated.last_record) == ("repeated timeout", 5, 7)
    assert "0.40, 0.80 s" in repeated.evidence


def test_a_burst_is_larger_than_an_initial_window() -> None:
    burst = [_segment(0.01 * k, "a2b", payload_bytes=MSS) for k in range(11)]
    (found,) = _shapes(burst)
    assert (found.name, found.first_record, found.last_record) == ("burst", 1, 11)
    assert _shapes(burst[:10]) == []
    assert _shapes(burst, vantage="receiver") == []


def test_acks_are_compressed_by_the_receivers_clock() -> None:
    # The receiver sends an ACK each 10 ms; the path holds five of them and then lets them go together.
    sent = [10 * k for k in range(20)]
    held = [*sent[:8], *(sent[12] + 0.1 * k for k in range(5)), *sent[13:]]
    rows = [_segment(at, ts_val=5 + t, ack=1 + MSS * k) for k, (at, t) in enumerate(zip(held, sent, strict=True))]
    (found,) = _shapes(rows)
    assert (found.name, found.first_record, found.last_record) == ("compressed ACKs", 9, 14)
    assert _shapes([_segment(t, ts_val=5 + t, ack=1 + MSS * k) for k, t in enumerate(sent)]) == []


def test_an_ack_of_more_than_two_segments_is_stretched_unless_it_fills_a_hole() -> None:
    acks = [_segment(k, ack=1 + 2 * MSS * k) for k in range(5)]
    assert _shapes(acks) == []
    (found,) = _shapes([*acks, _segment(9, ack=1 + 15 * MSS)])
    assert (found.name, found.first_record) == ("stretched ACKs", 6)
    assert "1 of 5" in found.evidence
    hole = [*acks, _segment(8, ack=1 + 8 * MSS, sack=[10_000, 12_000]), _segment(9, ack=1 + 15 * MSS)]
    assert _shapes(hole) == []
