"""A capture at the receiver rebuilt as its sender's: against the sender's own capture, and piece by piece."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hindflight as hf
from hindflight.toolkit.captured_flow import Flow, read_flow
from hindflight.toolkit.errors import CaptureError, HindflightError
from hindflight.toolkit.ingest import Ingest
from hindflight.toolkit.sender_view.losses import AckClock, Arrived, Lost, place_lost
from hindflight.toolkit.sender_view.rebuild import LOST, SenderView, sender_view
from hindflight.toolkit.sender_view.stamps import Stamps, stamps_of
from hindflight.toolkit.sender_view.times import Times, envelope, times_of
from hindflight.toolkit.source import open_source
from hindflight.toolkit.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
RECORDED = [ROOT / "fixtures" / name for name in ("kernel/S2-reno", "recorded/L4101.3-reno", "recorded/L4101.9-cubic")]
RECORDED += [ROOT / "fixtures" / "recorded" / name for name in ("L4101.1-bbr", "L4101.7-bbr", "L4101.11-cubic")]
MS = 1_000_000


def flow_of(capture: Path) -> Flow:
    with open_source(capture) as tables:
        return read_flow(tables.workspace, None)


def view_of(flow: Flow) -> SenderView:
    stamps = stamps_of(flow.tables["segments"], flow.direction)
    return sender_view(flow, stamps, stamps.rtt_min_ns / 2)


def at_sender(stamps: Stamps) -> Times:
    return times_of(stamps, stamps.rtt_min_ns / 2)


def transmissions(segments: pa.Table, direction: str) -> dict[tuple[int, int], list[int]]:
    """The times of the copies of each range of octets, in order."""
    copies = defaultdict(list)
    for row in segments.select(["direction", "seq", "payload_bytes", "t_ns"]).to_pylist():
        if row["direction"] == direction and row["payload_bytes"]:
            copies[row["seq"], row["payload_bytes"]].append(row["t_ns"])
    return copies


def ack_times(segments: pa.Table, direction: str) -> dict[tuple[int, int], int]:
    rows = segments.select(["direction", "ack", "ip_id", "t_ns"]).to_pylist()
    return {(row["ack"], row["ip_id"]): row["t_ns"] for row in rows if row["direction"] != direction}


@pytest.mark.parametrize("run", RECORDED, ids=lambda run: run.name)
def test_a_recorded_flow_is_rebuilt_as_its_sender_saw_it(run: Path) -> None:
    there, here = flow_of(run / "snd.pcap.xz"), flow_of(run / "rcv.pcap.xz")
    view = view_of(here)
    true, ours = (transmissions(table, here.direction) for table in (there.tables["segments"], view.segments))
    assert {octets: len(times) for octets, times in ours.items()} == {k: len(times) for k, times in true.items()}
    off = np.array([a - b for octets in true for a, b in zip(ours[octets], true[octets], strict=True)]) / MS
    # No capture at the receiver shows the difference of the clocks; it is less than half of the shortest round trip.
    assert abs(np.median(off)) < here.row["handshake_rtt_ns"] / 2 / MS
    off -= np.median(off)
    assert np.percentile(np.abs(off), 95) < 2.0
    acks, rebuilt = ack_times(there.tables["segments"], here.direction), ack_times(view.segments, here.direction)
    late = np.array([rebuilt[key] - acks[key] for key in rebuilt.keys() & acks.keys()]) / MS
    assert len(late) > 0.9 * len(rebuilt)
    late -= np.median(late)
    # No segment leaves because of an ACK where a timer of the application lets all go: their delay is a bound then.
    paced = "write" in json.loads((run / "scenario.json").read_text())["params"]
    assert np.percentile(np.abs(late), 80) < (10.0 if paced else 2.5)


def test_lost_segments_are_marked_and_new_data_leave_in_order() -> None:
    flow = flow_of(ROOT / "fixtures" / "recorded" / "L4101.11-cubic" / "rcv.pcap.xz")
    view = view_of(flow)
    rows = view.segments.filter(pa.compute.equal(view.segments["direction"].cast("string"), flow.direction)).to_pylist()
    assert sum(row["comment"] == LOST for row in rows) == view.lost == 105
    end = rows[0]["seq"] + 1
    for row in rows:
        if row["payload_bytes"]:
            assert row["seq"] <= end, "octets are sent before those below them"
        end = max(end, row["seq"] + row["payload_bytes"])
    assert np.all(np.diff(view.segments["t_ns"].to_numpy()) >= 0)


def test_a_clock_that_runs_fast_leaves_the_round_trips_as_they_are() -> None:
    flow = flow_of(RECORDED[0] / "rcv.pcap.xz")
    segments = flow.tables["segments"]
    t_ns = segments["t_ns"].to_numpy()
    at = segments.schema.get_field_index("t_ns")
    fast = pa.array(t_ns[0] + np.rint((t_ns - t_ns[0]) * (1 + 200e-6)).astype(np.int64))
    changed = Flow(flow.flow_id, 1, flow.row, {**flow.tables, "segments": segments.set_column(at, "t_ns", fast)})
    trips = []
    for one in (flow, changed):
        stamps = stamps_of(one.tables["segments"], one.direction)
        times = at_sender(stamps)
        echoed = stamps.echoed >= 0
        trips.append(times.sent_ns[echoed] - times.arrived_ns[stamps.echoed[echoed]])
    # How long the sender waited after the ACK that it echoes does not depend on the receiver's clock: that gains 12 ms.
    assert np.percentile(np.abs(trips[0] - trips[1]), 95) < 4 * MS


def rows_of(times: list[tuple[float, str, int | None, int | None]]) -> pa.Table:
    """Segments at times in ms with TSval and TSecr."""
    return pa.table(
        {
            "t_ns": pa.array([round(t * MS) for t, *_ in times], pa.int64()),
            "direction": pa.array([way for _, way, *_ in times]),
            "flags": pa.array([16] * len(times), pa.uint16()),
            "ts_val": pa.array([val for *_, val, _ in times], pa.uint32()),
            "ts_ecr": pa.array([ecr for *_, ecr in times], pa.uint32()),
        }
    )


def test_an_ack_before_a_pause_does_not_take_as_long_as_the_pause() -> None:
    rows = exchange()
    rows.append((6000.0, "a2b", 5975, 7000 + 10 * 39))
    rows.append((6000.0, "b2a", 13_000, 5975))
    stamps = stamps_of(rows_of(rows), "a2b")
    assert (at_sender(stamps).arrived_ns - stamps.back_t_ns)[30:40] / MS == pytest.approx(25.0, abs=1.5)


def test_a_segment_with_a_clock_of_its_own_moves_no_other() -> None:
    rows = exchange()
    t, way, val, ecr = rows[20]
    assert val is not None
    odd = [*rows[:20], (t, way, val + 1_000_000, ecr), *rows[21:]]
    sent = [at_sender(stamps_of(rows_of(one), "a2b")).sent_ns for one in (rows, odd)]
    assert sent[1] == pytest.approx(np.delete(sent[0], 10), abs=MS)


def test_echoes_are_found_long_after_the_start() -> None:
    # A clock of 1 us at the receiver passes half of its range after 36 minutes.
    rows: list[tuple[float, str, int | None, int | None]] = []
    for k in range(50):
        echo = (60_000_000 * (k - 1) + 1) % 2**32 if k else 0
        rows.append((60_000.0 * k + 25, "a2b", 60_000 * k, echo))
        rows.append((60_000.0 * k + 25, "b2a", (60_000_000 * k + 1) % 2**32, 60_000 * k))
    assert (stamps_of(rows_of(rows), "a2b").echoed[1:] >= 0).all()


def test_the_envelope_follows_steps_and_ignores_what_waits() -> None:
    at_ns = np.arange(0, 60_000, 100) * MS
    upper = np.where(at_ns < 30_000 * MS, 25.0, 31.0) * MS
    upper[::7] += 500 * MS
    found = envelope(at_ns, upper, 2.0 * MS) / MS
    assert found[:300] == pytest.approx(25.0)
    assert found[305:] == pytest.approx(31.0)


def exchange(tick_ms: float = 1.0, n: int = 40) -> list[tuple[float, str, int | None, int | None]]:
    """Data every 10 ms, each acknowledged at once; each echoes the ACK of a round trip of 50 ms before."""
    rows: list[tuple[float, str, int | None, int | None]] = []
    for k in range(n):
        at = 10.0 * k
        rows.append((at + 25, "a2b", round(at / tick_ms), 7000 + 10 * (k - 5) if k >= 5 else 0))
        rows.append((at + 25, "b2a", 7000 + 10 * k, round(at / tick_ms)))
    return rows


def test_times_of_a_plain_exchange() -> None:
    stamps = stamps_of(rows_of(exchange()), "a2b")
    times = at_sender(stamps)
    assert stamps.tick_ns == MS
    assert stamps.rtt_min_ns == 50 * MS
    assert np.diff(times.sent_ns)[6:] == pytest.approx(10 * MS)
    assert times.arrived_ns[:-6] - stamps.back_t_ns[:-6] == pytest.approx(25 * MS, abs=MS)


def test_a_step_of_the_delay_of_acks_is_seen() -> None:
    rows = exchange()
    # From the 20th segment on, ACKs take 30 ms longer: what echoes them does so three segments later.
    later = [
        (t, way, val, ecr if way == "b2a" or val is None or val < 250 or not ecr else ecr - 30)
        for t, way, val, ecr in rows
    ]
    stamps = stamps_of(rows_of(later), "a2b")
    times = at_sender(stamps)
    delay = (times.arrived_ns - stamps.back_t_ns) / MS
    assert delay[:14] == pytest.approx(25.0, abs=1.0)
    assert delay[22:30] == pytest.approx(55.0, abs=1.0)


def test_segments_that_overtake_keep_the_order_sent() -> None:
    rows = exchange()
    rows[20], rows[24] = (rows[24][0], *rows[20][1:]), (rows[20][0], *rows[24][1:])
    rows.sort(key=lambda row: row[0])
    stamps = stamps_of(rows_of(rows), "a2b")
    assert np.all(np.diff(stamps.ticks) > 0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(t, way, None, None) for t, way, *_ in exchange()], "the sender sends no timestamps"),
        ([row for row in exchange() if row[1] == "a2b"], "no segment of the receiver"),
        ([(t, way, val if way == "a2b" else None, ecr) for t, way, val, ecr in exchange()], "the receiver sends no"),
        (exchange(n=2), "count 10 ticks in this flow, too few"),
        (exchange(tick_ms=0.05), "takes 0.05 ms, which no clock in use has"),
    ],
)
def test_what_timestamps_do_not_show_is_refused(
    rows: list[tuple[float, str, int | None, int | None]], message: str
) -> None:
    with pytest.raises(CaptureError, match=message):
        stamps_of(rows_of(rows), "a2b")


def arrivals(numbers: list[int], at_ms: list[float]) -> Arrived:
    sent = np.array(at_ms) * MS
    return Arrived(sent, (sent + 25 * MS).astype(np.int64), np.array(numbers) * 1000, np.full(len(numbers), 1000))


def losses(numbers: list[int], copies: list[int], shown_ms: list[float]) -> Lost:
    n = len(numbers)
    shown = (np.array(shown_ms) * MS).astype(np.int64)
    return Lost(np.array(numbers) * 1000, np.full(n, 1000), np.array(copies), shown)


def test_lost_new_data_leave_as_acks_let_them() -> None:
    # Segments 0 to 4 arrive, 5 to 7 are lost; their ACKs come 50 ms after each was sent. 8 arrives much later.
    arrived = arrivals([0, 1, 2, 3, 4, 8], [0, 10, 20, 30, 40, 500])
    answered = arrived.t_ns[:5]
    clock = AckClock(arrived, answered, (answered + 25 * MS).astype(np.float64))
    placed = place_lost(losses([5, 6, 7], [1, 1, 1], [525] * 3), arrived, clock, 50 * MS)
    assert placed.sent_ns / MS == pytest.approx([50, 60, 70])
    assert placed.after.tolist() == [4, 4, 4]


def test_the_intervals_of_lost_timeouts_double() -> None:
    # The segment and two retransmissions of it are lost; the third, 700 ms after the first copy, arrives.
    arrived = arrivals([0, 1, 3, 2], [0, 10, 20, 710])
    answered = arrived.t_ns[:3]
    clock = AckClock(arrived, answered, (answered + 25 * MS).astype(np.float64))
    placed = place_lost(losses([2, 2, 2], [1, 2, 3], [45, 735, 735]), arrived, clock, 50 * MS)
    # The first copy left between its neighbours, 10 and 20 ms.
    assert placed.sent_ns / MS == pytest.approx([15, 15 + 695 / 7, 15 + 695 * 3 / 7])
    assert placed.after.tolist() == [1, 2, 2]


def test_repetitions_that_no_later_data_show_leave_after_all_data() -> None:
    # The last segment and two retransmissions of it are lost, as the ACK of a FIN shows 700 ms after it was sent.
    arrived = arrivals([0, 1, 2], [0, 10, 20])
    clock = AckClock(arrived, arrived.t_ns, (arrived.t_ns + 25 * MS).astype(np.float64))
    placed = place_lost(losses([3, 3, 3], [1, 2, 3], [755] * 3), arrived, clock, 50 * MS)
    # The ACK left at 730 ms, the first copy as the first ACK let it, at 50 ms.
    assert placed.sent_ns / MS == pytest.approx([50, 50 + 680 / 7, 50 + 680 * 3 / 7])
    assert placed.after.tolist() == [2, 2, 2]


def test_export_writes_the_senders_capture(tmp_path: Path) -> None:
    out = tmp_path / "at-sender.pcapng"
    assert hf.export(RECORDED[0] / "rcv.pcap.xz", out, format="pcapng", at_sender=True) == [out]
    again = flow_of(out)
    assert again.row["vantage"] == "sender"
    assert again.rebuilt.startswith("at-sender.pcapng was rebuilt from a capture at the receiver")
    assert not flow_of(RECORDED[0] / "snd.pcap.xz").rebuilt
    for first, second in ((RECORDED[0] / "snd.pcap.xz", out), (out, RECORDED[0] / "snd.pcap.xz")):
        with open_source([first, second]) as merged:
            assert read_flow(merged.workspace, None).rebuilt == again.rebuilt
    workspace = Workspace.create(tmp_path / "ws")
    Ingest(workspace, "test", merge=True)([RECORDED[0] / "snd.pcap.xz", out])
    assert [entry.rebuilt for entry in Workspace.open(workspace.path).inputs] == [out.name] * 2
    assert read_flow(workspace, None).rebuilt == again.rebuilt
    assert again.row[f"{again.direction}_data_segments"] == 1874
    with pytest.raises(HindflightError, match="was captured at its sender"):
        hf.export(out, tmp_path / "b.pcapng", format="pcapng", at_sender=True)
    with pytest.raises(HindflightError, match="does not go with --format csv"):
        hf.export(RECORDED[0] / "rcv.pcap.xz", tmp_path / "x", format="csv", at_sender=True)
    assert sorted(tmp_path.iterdir()) == [out, workspace.path]
