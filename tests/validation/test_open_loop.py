"""The controller in open loop: a recorded flow is read and followed, and the windows are compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hindflight.replay.experiment.run import Event, replay_controller
from hindflight.toolkit.capture import load_capture
from hindflight.toolkit.errors import LogError
from validation.open_loop import CAPTURE, LEAD_NS, OpenLoopResult, Record, _Clock, compare, follow_run, read_record
from validation.rebuild import rebuild
from validation.recorded import KernelRun, read_run
from validation.ticks import TICK_NS

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "fixtures" / "kernel"


def read_segments(path: Path) -> pa.Table:
    return load_capture(path).segments


@pytest.fixture(scope="module")
def s9() -> KernelRun:
    return read_run(RUNS / "S9-reno")


@pytest.fixture(scope="module")
def s9_segments() -> pa.Table:
    return read_segments(RUNS / "S9-reno" / CAPTURE)


@pytest.mark.parametrize("name", ["S2-reno", "S9-reno"])
def test_reno_led_through_the_kernels_acks_has_the_kernels_window_after_each(name: str) -> None:
    (result,) = follow_run(read_run(RUNS / name), RUNS / name / CAPTURE, read_segments)
    assert result.check.verdict == "pass"
    assert (result.check.value, result.equal, result.divergence) == (0.0, 1.0, None)
    assert result.compared > 1000


def test_another_controller_misses(s9: KernelRun, s9_segments: pa.Table) -> None:
    wrong = replace(s9, flows=(replace(s9.flows[0], variant="cubic"),))
    (result,) = follow_run(wrong, RUNS / "S9-reno" / CAPTURE, lambda _: s9_segments)
    assert result.check.verdict == "fail"
    assert result.divergence is not None
    assert result.divergence.engine_cwnd != result.divergence.kernel_cwnd


def test_a_run_without_a_capture_or_tcp_info_is_not_left_out_in_silence(s9: KernelRun, s9_segments: pa.Table) -> None:
    (no_capture,) = follow_run(s9, RUNS / "nowhere", read_segments)
    bare = replace(s9, flows=(replace(s9.flows[0], tcp_info=None),))
    (no_info,) = follow_run(bare, RUNS / "S9-reno" / CAPTURE, lambda _: s9_segments)
    assert [no_capture.check.verdict, no_info.check.verdict] == ["unknown", "unknown"]
    assert [no_capture.check.text, no_info.check.text] == [
        "no snd.pcap.xz next to this run",
        "no TCP_INFO next to this run, so the kernel's window is not known",
    ]


def test_the_record_holds_what_left_and_what_came(s9: KernelRun, s9_segments: pa.Table) -> None:
    flow = s9.flows[0]
    assert flow.tcp_info is not None
    record = read_record(s9_segments, 1, flow, flow.tcp_info)
    kinds = [kind for _, kind, *_ in record.events]
    assert kinds[:2] == ["syn", "syn_ack"]
    assert 0 <= record.events[0][0] - LEAD_NS < TICK_NS
    assert record.sent[-1] == kinds.count("data") == np.searchsorted(flow.packets.t_ns, flow.end_ns, side="right")
    assert record.acks[-1] == kinds.count("ack") + 1
    assert "timeout" not in kinds
    echoed = [(at // 1_000_000, stamp) for at, kind, _, _, stamp, _ in record.events if kind == "ack"]
    assert all(480 <= at - stamp < 2500 for at, stamp in echoed)
    with pytest.raises(LogError, match="no connection number 2"):
        read_record(s9_segments, 2, flow, flow.tcp_info)


def test_a_clock_that_is_set_during_the_capture_leaves_the_handshake_as_it_was(
    s9: KernelRun, s9_segments: pa.Table
) -> None:
    flow = s9.flows[0]
    assert flow.tcp_info is not None
    times = s9_segments["t_ns"].to_numpy()
    times = times - np.where(np.arange(len(times)) > len(times) // 2, 6_000_000, 0)
    place = s9_segments.schema.get_field_index("t_ns")
    back = s9_segments.set_column(place, "t_ns", pa.array(times, s9_segments.schema.field(place).type))
    as_it_ran, set_back = (read_record(segments, 1, flow, flow.tcp_info) for segments in (s9_segments, back))
    took = [record.events[1][0] - record.events[0][0] for record in (as_it_ran, set_back)]
    assert took[0] == took[1]
    assert abs(as_it_ran.events[-1][0] - set_back.events[-1][0]) < 1_000_000, "as its timestamps say"


@pytest.mark.parametrize("every_ms", [1, 200])
def test_a_clock_that_drifts_leaves_times_as_the_timestamps_say_however_seldom_segments_are_sent(every_ms: int) -> None:
    ran_ms = np.arange(0, 60_000, every_ms)
    captured_ns = np.rint(ran_ms * 1e6 * (1 + 500e-6)).astype(np.int64)
    clock = _Clock([
        {"t_ns": t_ns, "ts_val": 7000 + stamp, "is_sent": True}
        for t_ns, stamp in zip(captured_ns.tolist(), ran_ms.tolist(), strict=True)
    ])  # fmt: skip
    off_ns = clock.at(captured_ns) - LEAD_NS - ran_ms * 1_000_000
    assert np.abs(off_ns).max() <= 1_000_000


def test_a_timeout_precedes_its_retransmissions(s9: KernelRun, s9_segments: pa.Table) -> None:
    flow = s9.flows[0]
    assert flow.tcp_info is not None
    record = read_record(s9_segments, 1, flow, flow.tcp_info)
    highest, again = 0, []
    for number, (_, kind, octet, size, *_) in enumerate(record.events):
        if kind == "data":
            again += [number] if octet < highest else []
            highest = max(highest, octet + size)
    at_ns = record.events[again[5]][0] - record.events[0][0] + flow.syn_ns
    info = {**flow.tcp_info, "total_rto": (flow.tcp_info["t_ns"] > at_ns).astype(np.int64)}
    timed_out = read_record(s9_segments, 1, flow, info)
    places = [number for number, (_, kind, *_) in enumerate(timed_out.events) if kind == "timeout"]
    assert len(places) == 1
    assert timed_out.events[places[0] + 1 :] == record.events[places[0] :]
    assert places[0] <= again[5] < places[0] + 50


def test_what_a_timeout_sends_again_does_not_fill_the_window(s9: KernelRun) -> None:
    millisecond = 1_000_000
    first: list[Event] = [(1100 * millisecond, "data", 1 + 1448 * n, 1448, 0, []) for n in range(4)]
    events: list[Event] = [
        (1000 * millisecond, "syn", 0, 0, 0, []),
        (1100 * millisecond, "syn_ack", 0, 65535, 1000, []),
        *first,
        (1500 * millisecond, "timeout", 0, 0, 0, []),
        (1500 * millisecond, "data", 1, 1448, 0, []),
        # The echo shows that they were only late: the window is again the one of ten, less than half of which was used.
        (1510 * millisecond, "ack", 1 + 4 * 1448, 65535, 1100, []),
    ]
    windows = replay_controller(rebuild(s9, 10_000 * millisecond), 0, events)["cwnd_pkts"].to_pylist()
    assert windows[-2:] == [1.0, 10.0]


def test_only_rows_with_equal_counts_are_compared(s9: KernelRun) -> None:
    record = Record([], np.array([0, 1, 1, 2, 3]), np.array([0, 0, 1, 1, 1]))
    states = pa.table(
        {
            "cwnd_pkts": [10.0, 10.0, 10.0, 11.9, 12.0],
            **{name: [0] * 5 for name in ("outstanding_pkts", "sacked_pkts", "lost_pkts", "retransmitted_pkts")},
        }
    )

    def against(*cwnd: int) -> OpenLoopResult:
        info = {
            "t_ns": np.array([1, 2, 3, 4]),
            "segs_in": np.array([1, 2, 3, 4]),
            "data_segs_out": np.array([1, 1, 1, 1]),
            "snd_cwnd": np.array(cwnd),
            **{name: np.zeros(4, np.int64) for name in ("unacked", "sacked", "lost", "retrans")},
        }
        return compare("x", s9.flows[0], info, record, states)

    # Rows 2 and 3 fit; row 1 is the handshake's, row 4 has an ACK that the record has not.
    same, low, high = against(9, 11, 12, 9), against(9, 10, 12, 9), against(9, 11, 13, 9)
    assert (same.compared, same.equal, same.check.value, same.divergence) == (2, 1.0, 0.0, None)
    assert low.check.value == pytest.approx(100 * (0.1 + 0.0) / 2)
    assert high.check.value == pytest.approx(100 * (0.0 + 1 / 13) / 2)
    assert low.check.verdict == high.check.verdict == "fail"
    assert low.divergence is not None
    assert high.divergence is not None
    assert (low.divergence.ack, high.divergence.ack) == (2, 3)
    assert str(high.divergence).startswith("ACK 3 at 0.0000 s: cwnd 12 / 13")


def test_a_record_that_leaves_octets_out_is_refused(s9: KernelRun) -> None:
    config = rebuild(s9, 1)
    start: list[Event] = [(1, "syn", 0, 0, 0, []), (2, "syn_ack", 0, 65535, 0, [])]
    with pytest.raises(LogError, match="event 2 of the record sends octet 1449, but nothing sent octet 1 before"):
        replay_controller(config, 0, [*start, (3, "data", 1449, 1448, 0, [])])
    with pytest.raises(LogError, match="syn, data, write, timeout, syn_ack or ack"):
        replay_controller(config, 0, [(1, "fin", 0, 0, 0, [])])
    with pytest.raises(LogError, match="flows: UnknownFlow"):
        replay_controller(config, 1, start)
