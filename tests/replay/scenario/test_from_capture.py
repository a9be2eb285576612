"""What a draft reads off the captured segments of a sender."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hindflight.channels.estimate import Estimate
from hindflight.channels.trace import Trace
from hindflight.replay.scenario.captured_application import SentData
from hindflight.replay.scenario.draft import SendBuffer, Stack
from hindflight.replay.scenario.from_capture import (
    CapturedSender,
    _other,
    _with_send_buffer,
    rate_lower_bound,
    stack_of,
)

MS = 1_000_000
SYN, ACK = 2, 16
ROW = {"a2b_max_segment_bytes": 1448, "syn": True, "syn_ack": True}


def _segment(t_ms: float, direction: str, **fields: Any) -> dict[str, Any]:
    empty = {
        "flags": ACK, "seq": 1, "payload_bytes": 0, "ip_bytes": 52, "ack": 1, "wnd_bytes": 65_535, "mss": None,
        "ts_val": None, "sack_permitted": False,
    }  # fmt: skip
    return {**empty, "t_ns": round(t_ms * MS), "direction": direction, **fields}


def _data(t_ms: float, number: int) -> dict[str, Any]:
    return _segment(t_ms, "a2b", seq=1 + 1448 * number, payload_bytes=1448, ip_bytes=1500)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    """A flow of 20 ms: its handshake, then these rows."""
    syn = _segment(0, "a2b", flags=SYN, seq=0, ack=None, mss=1460, sack_permitted=True)
    answer = _segment(20, "b2a", flags=SYN | ACK, seq=0, mss=1460, sack_permitted=True)
    return pa.Table.from_pylist([syn, answer, _segment(20, "a2b"), *rows])


FLIGHT = [_data(21, number) for number in range(10)]


@pytest.mark.parametrize(
    "later",
    [
        pytest.param([_segment(45, "b2a", ack=2897), _data(45, 10)], id="acknowledged"),
        pytest.param([_segment(45, "b2a"), _data(45, 10), _segment(70, "b2a", ack=2897)], id="first segment lost"),
        pytest.param([_data(62, 10), _segment(64, "b2a", ack=2897)], id="probe before the first ACK"),
    ],
)
def test_the_initial_window_is_what_left_before_any_answer_and_before_a_probe(later: list[dict[str, Any]]) -> None:
    assert stack_of(_table([*FLIGHT, *later]), "a2b", ROW).initial_window_pkts == 10


def test_a_paced_initial_window_is_one_window() -> None:
    paced = [_data(21 + 2 * number, number) for number in range(10)]
    assert stack_of(_table([*paced, _segment(45, "b2a", ack=2897)]), "a2b", ROW).initial_window_pkts == 10


def test_a_short_segment_ends_what_the_application_wrote_and_not_the_initial_window() -> None:
    short = {**_data(21, 3), "payload_bytes": 350, "ip_bytes": 402}
    answered = _segment(45, "b2a", ack=2897)
    assert stack_of(_table([*FLIGHT[:3], short, answered, _data(60, 4)]), "a2b", ROW).initial_window_pkts is None
    assert stack_of(_table([*FLIGHT[:4], answered, _data(45, 4)]), "a2b", ROW).initial_window_pkts == 4
    tenth = {**_data(21, 9), "payload_bytes": 350, "ip_bytes": 402}
    assert stack_of(_table([*FLIGHT[:9], tenth, answered]), "a2b", ROW).initial_window_pkts is None
    last = {**_data(21, 10), "payload_bytes": 350, "ip_bytes": 402}
    assert stack_of(_table([*FLIGHT, last, answered]), "a2b", ROW).initial_window_pkts == 11, "10 would be too small"


def test_a_request_that_crosses_the_first_response_does_not_answer_it() -> None:
    request = _segment(25, "b2a", payload_bytes=300, ip_bytes=352)
    rows = [*FLIGHT[:4], request, *(_data(25, number) for number in range(4, 10)), _segment(45, "b2a", ack=2897)]
    assert stack_of(_table(rows), "a2b", ROW).initial_window_pkts == 10
    piggybacked = _segment(45, "b2a", ack=2897, payload_bytes=300, ip_bytes=352)
    assert stack_of(_table([*FLIGHT, piggybacked, _data(45, 10)]), "a2b", ROW).initial_window_pkts == 10


def test_in_mid_flow_the_flight_reaches_to_the_first_ack_of_captured_data() -> None:
    rows = [*FLIGHT[:4], _segment(25, "b2a", ack=1), *FLIGHT[4:], _segment(45, "b2a", ack=2897)]
    stack = stack_of(pa.Table.from_pylist(rows), "a2b", {**ROW, "syn": False, "syn_ack": False})
    assert (stack.initial_window_pkts, stack.flight_pkts) == (None, 10)


@pytest.mark.parametrize(
    ("value", "low", "dropped", "drafted"),
    [(None, 8e5, 3, 8e5), (None, 8e5, 0, None), (None, None, 3, None), (1e6, 8e5, 3, None)],
)
def test_a_link_whose_queue_dropped_packets_has_at_least_the_lower_bound_of_its_rate(
    value: float | None, low: float | None, dropped: int, drafted: float | None
) -> None:
    rate = Estimate("rate_bps", value, low, None, "bit/s", known=value is not None, how="the most that passed")
    found = rate_lower_bound(Trace(pa.table({}), (rate,), counts={"queue": dropped}))
    assert (found and found.value) == drafted
    assert found is None or "a lower bound, as the rate is not known, but the queue dropped 3 packets" in found.how


def _recovering(in_recovery: int) -> SentData:
    """A window of 20 segments, a retransmission, this many more without an ACK, then the ACK of the first 20, and a
    window of 200."""
    numbers = np.arange(20 + in_recovery + 200, dtype=np.int64)
    t_ns = np.where(numbers < 20, 0, np.where(numbers < 20 + in_recovery, 200, 400)) * MS
    edges = 1 + 1448 * np.arange(len(numbers) + 1, dtype=np.int64)
    return SentData(
        t_ns, edges[:-1], edges[1:], np.zeros(len(numbers), bool), np.array([300 * MS]), edges[[20]], 1448,
        retransmitted_ns=np.array([100 * MS]),
    )  # fmt: skip


def _captured(stack: Stack, sent: SentData, variant: str, flight_bytes: int | None = 300_000) -> CapturedSender:
    row = {"syn": True, "start_ns": 0, "a2b_flight_max_bytes": flight_bytes}
    return CapturedSender(2, 2, 2, "a2b", row, stack, sent, "x.pcap", "0" * 64, variant=variant)


@pytest.mark.parametrize(
    ("variant", "in_recovery", "shown"),
    [("cubic", 20, False), ("cubic", 21, True), ("bbr", 40, False), ("bbr", 41, True), ("auto", 21, True)],
)
def test_without_sack_the_send_buffer_is_that_of_linux_or_what_the_first_recovery_shows(
    variant: str, in_recovery: int, shown: bool
) -> None:
    captured = _captured(Stack(1448, 52, 10, None, sack=False), _recovering(in_recovery), variant)
    memory_bytes = (20 + in_recovery) * (1448 + 832)
    assert _with_send_buffer(captured).send_buffer == SendBuffer(memory_bytes if shown else 46_080, 4_194_304)


def test_a_send_buffer_is_drafted_without_sack_alone_and_holds_what_was_in_flight() -> None:
    sent = _recovering(20)
    for sack in (True, None):
        assert _with_send_buffer(_captured(Stack(1448, 52, 10, None, sack=sack), sent, "cubic")).send_buffer is None
    bare = Stack(1448, 52, 10, None, sack=False)
    for flight_bytes, max_bytes in ((3_000 * 1448, 3_000 * 2280), (None, 4_194_304)):
        buffer = _with_send_buffer(_captured(bare, sent, "cubic", flight_bytes)).send_buffer
        assert buffer == SendBuffer(46_080, max_bytes)
    without_losses = replace(sent, retransmitted_ns=sent.retransmitted_ns[:0])
    assert _with_send_buffer(_captured(bare, without_losses, "cubic")).send_buffer == SendBuffer(46_080, 4_194_304)


@pytest.mark.parametrize(("stopped_s", "size_bytes"), [(10, 100 * 1448), (7, None), (5, None)])
def test_another_flow_lasts_to_the_end_if_both_may_have_stopped_writing_together(
    stopped_s: int, size_bytes: int | None
) -> None:
    t_ns = np.arange(100, dtype=np.int64) * 50 * MS
    edges = 1 + 1448 * np.arange(101, dtype=np.int64)
    sent = SentData(t_ns, edges[:-1], edges[1:], np.zeros(100, bool), t_ns + 50 * MS, edges[1:], 1448)
    flow = _captured(Stack(1448, 52, 10, None), sent, "cubic")
    assert sent.t_ns[-1] == 4_950 * MS, "2 s before the end at 7 s, and 5 s before that at 10 s"
    stopped_ns = stopped_s * 1000 * MS - 50 * MS
    found = _other(flow, (0, stopped_ns), stopped_ns)
    assert found is not None
    assert found.size_bytes == size_bytes


def test_another_flow_writes_nothing_after_the_end_of_the_run() -> None:
    # One segment per second, acknowledged before the next.
    t_ns = np.arange(10, dtype=np.int64) * 1000 * MS
    edges = 1 + 700 * np.arange(11, dtype=np.int64)
    sent = SentData(t_ns, edges[:-1], edges[1:], np.ones(10, bool), t_ns + 50 * MS, edges[1:], 1448)
    flow = _captured(Stack(1448, 52, 10, None), sent, "cubic")
    whole, short = (_other(flow, (0, end_s * 1000 * MS), end_s * 1000 * MS) for end_s in (20, 5))
    assert whole is not None
    assert short is not None
    assert whole.application is not None
    assert short.application is not None
    before = sum(at < 5000 * MS for at in whole.application.at_ns)
    assert 0 < before < len(whole.application.at_ns)
    assert short.application.at_ns == whole.application.at_ns[:before]
    assert short.application.sizes == whole.application.sizes[:before]


@pytest.mark.parametrize("paused", [True, False])
def test_a_flow_that_sends_only_after_the_end_of_the_run_is_no_part_of_it(paused: bool) -> None:
    t_ns = 5000 * MS + np.arange(10, dtype=np.int64) * (1000 if paused else 50) * MS
    edges = 1 + 1448 * np.arange(11, dtype=np.int64)
    sent = SentData(t_ns, edges[:-1], edges[1:], np.ones(10, bool), t_ns + 50 * MS, edges[1:], 1448)
    flow = _captured(Stack(1448, 52, 10, None), sent, "cubic")
    assert _other(flow, (0, 4000 * MS), 4000 * MS) is None
    assert _other(flow, (0, 5000 * MS), 5000 * MS) is None
    assert _other(flow, (0, 5001 * MS), 5001 * MS) is not None
