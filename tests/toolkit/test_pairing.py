"""Two and three captures of one connection: packets, clocks, delays and losses against what is known of them."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hindflight as hf
from hindflight.cli.app import main
from hindflight.toolkit.capture import load_capture, pcapng_head, pcapng_packets
from hindflight.toolkit.pairing.clock import Clock, Passages, compare_clocks
from hindflight.toolkit.pairing.match import match
from hindflight.toolkit.pairing.packets import Packets, split_records
from validation.pairs import score

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "fixtures" / "kernel" / "S2-reno"
SENDER, RECEIVER = RUN / "snd.pcap.xz", RUN / "rcv.pcap.xz"
RECORDED = [RUN, *(ROOT / "fixtures" / "recorded" / name for name in ("L4101.1-bbr", "L4101.3-reno", "L4101.9-cubic"))]
MS = 1_000_000


@pytest.mark.parametrize("run", RECORDED, ids=lambda path: path.name)
def test_a_false_clock_is_found_and_delays_and_losses_are_those_of_the_link(run: Path) -> None:
    found = score(run)
    assert abs(found.offset_error_ns) < 0.1 * MS
    assert abs(found.drift_error_ppm) < 1
    assert found.delays > 500
    assert found.delay_median_ns < 0.1 * MS
    assert found.delay_p99_ns < 0.3 * MS
    assert found.lost > 0
    assert found.lost_wrong <= 1


def write(path: Path, segments: pa.Table, ends: tuple[str, int, str, int]) -> Path:
    """Write `segments` of one connection as a capture, between these ends."""
    a, a_port, b, b_port = ends
    forward = pc.equal(segments["direction"].cast(pa.string()), "a2b")
    for name, one, two, type_ in (
        ("src", ip_address(a).packed, ip_address(b).packed, pa.binary()),
        ("dst", ip_address(b).packed, ip_address(a).packed, pa.binary()),
        ("src_port", a_port, b_port, pa.uint16()),
        ("dst_port", b_port, a_port, pa.uint16()),
    ):
        segments = segments.append_column(name, pc.if_else(forward, pa.scalar(one, type_), pa.scalar(two, type_)))
    segments = segments.append_column("comment", pa.array([""] * segments.num_rows))
    (batch,) = segments.sort_by("t_ns").combine_chunks().to_batches()
    path.write_bytes(pcapng_head("test", "") + pcapng_packets(batch))
    return path


def moved(segments: pa.Table, there_ns: int, back_ns: int) -> pa.Table:
    """Return `segments` as a place further on the way sees them, on a clock that is ahead by a minute."""
    forward = pc.equal(segments["direction"].cast(pa.string()), "a2b")
    shift = pc.if_else(forward, there_ns + 60_000 * MS, 60_000 * MS - back_ns)
    at = segments.column_names.index("t_ns")
    return segments.set_column(at, "t_ns", pc.add(segments["t_ns"], shift.cast(pa.int64())))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture behind a NAT 7 ms from the sender, 5 ms on the way back; the first five losses were before it."""
    with hf.pair(SENDER, RECEIVER) as tables:
        lost = tables.sql("SELECT record FROM pairs WHERE fate = 'lost' ORDER BY record LIMIT 5")["record"]
    segments = load_capture(SENDER).segments
    kept = segments.filter(pc.invert(pc.is_in(segments["record"], lost.combine_chunks())))
    path = tmp_path_factory.mktemp("gateway") / "gw.pcapng"
    return write(path, moved(kept, 7 * MS, 5 * MS), ("192.0.2.9", 61_000, "10.77.0.2", 5001))


def test_three_captures_locate_each_loss_through_a_nat(gateway: Path) -> None:
    with hf.pair(SENDER, gateway, RECEIVER, asymmetry="2 ms") as tables:
        pairs = tables.pairs.collect()
        clocks = tables.arrow("clocks").to_pylist()
    first, second = (pairs.filter(pairs["flow_id"] == flow) for flow in (1, 2))
    for rows, lost in ((first, 5), (second, 12)):
        assert set(rows["fate"].cast(str)) == {"delivered", "lost"}
        assert rows.filter(rows["fate"] == "lost").height == lost
    for way, delay_ms in (("a2b", 7), ("b2a", 5)):
        rows = first.filter((first["direction"] == way) & (first["fate"] == "delivered"))
        assert abs(rows["delay_ns"].median() - delay_ms * MS) < 0.05 * MS  # type: ignore[operator]
    assert abs(clocks[0]["offset_ns"] - 60_000 * MS) < 0.05 * MS
    assert clocks[0]["offset_low_ns"] == clocks[0]["offset_ns"] == clocks[0]["offset_high_ns"]
    # Behind the gateway the way back is 2 ms longer, not shorter: what is given as asymmetry is believed.
    assert abs(clocks[1]["offset_ns"] + 60_002 * MS) < 0.1 * MS


def test_without_the_asymmetry_the_offset_is_known_within_half_a_round_trip(gateway: Path) -> None:
    with hf.pair(SENDER, gateway) as tables:
        (clock,) = tables.arrow("clocks").to_pylist()
    assert clock["asymmetry_ns"] is None
    assert abs(clock["min_rtt_ns"] - 12 * MS) < 0.1 * MS
    assert clock["offset_high_ns"] - clock["offset_low_ns"] == pytest.approx(12 * MS, abs=0.1 * MS)
    assert clock["offset_low_ns"] < 60_000 * MS < clock["offset_high_ns"]
    assert abs(clock["offset_ns"] - 60_001 * MS) < 0.05 * MS


def test_packets_that_the_second_capture_missed_are_not_losses(tmp_path: Path) -> None:
    segments = load_capture(RECEIVER).segments
    gone = segments.filter(pc.greater(segments["payload_bytes"], 0))["record"].take(pa.array([100, 101]))
    kept = segments.filter(pc.invert(pc.is_in(segments["record"], gone.combine_chunks())))
    late = kept.filter(pc.less(kept["t_ns"], pc.add(kept["t_ns"][0], 40_000 * MS)))
    path = write(tmp_path / "rcv.pcapng", late, ("10.77.0.1", 40_103, "10.77.0.2", 5001))
    with hf.pair(SENDER, path, asymmetry="0 ms") as tables:
        pairs = tables.pairs.collect()
    counts = dict(pairs["fate"].cast(str).value_counts().iter_rows())
    assert counts["not_captured"] == 2
    assert counts["outside"] > 300
    assert 0 < counts["lost"] <= 17


def packets(seqs: list[int], t_ns: list[int], **fields: Any) -> Packets:
    def column(name: str, values: int | list[int]) -> np.ndarray[Any, Any]:
        return np.broadcast_to(np.array(fields.get(name, values), np.int64), len(seqs)).copy()

    flags, ts_val, ts_ecr, ip_id = (column(name, 0) for name in ("flags", "ts_val", "ts_ecr", "ip_id"))
    record, payload = np.arange(1, len(seqs) + 1), column("payload_bytes", 100)
    times, seq, ack = column("t_ns", t_ns), column("seq", seqs), column("ack", 1)
    return Packets(record, times, seq, seq, ack, payload, flags, ts_val, ts_ecr, ip_id, payload + 40)


def test_copies_are_matched_in_order_or_by_time() -> None:
    sent = packets([1, 101, 101, 201, 301, 301, 301], [0, 10, 20, 30, 40, 500, 900])
    seen = packets([1, 101, 101, 201, 301, 301], [1000, 1010, 1020, 1030, 1505, 1905])
    rows, others = match(sent, seen)
    assert list(zip(rows.tolist(), others.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 2), (3, 3), (5, 4), (6, 5)]


def test_fields_that_a_middle_box_rewrites_are_left_out() -> None:
    seqs, t_ns = list(range(1, 5000, 100)), list(range(50))
    sent, seen = packets(seqs, t_ns, ip_id=list(range(50))), packets(seqs, t_ns, ip_id=7, ts_val=3)
    rows, others = match(sent, seen)
    assert rows.tolist() == others.tolist() == list(range(50))


def test_records_of_several_segments_are_split() -> None:
    split = split_records(packets([2**32 - 100], [5], payload_bytes=[250], ip_id=[65_535]), 100)
    assert split.seq.tolist() == [2**32 - 100, 0, 100]
    assert split.payload_bytes.tolist() == [100, 100, 50]
    assert split.ip_id.tolist() == [65_535, 0, 1]
    assert split.ip_bytes.tolist() == [140, 140, 90]
    assert split.record.tolist() == [1, 1, 1]


def passages(count: int, delay_ns: int, offset_ns: int, drift: float, sign: int) -> Passages:
    t_ns = 1_700_000_000 * 10**9 + np.arange(count, dtype=np.int64) * 10 * MS
    passed = t_ns + delay_ns
    mine, other = (t_ns, passed) if sign > 0 else (passed, t_ns)
    other = other + offset_ns + np.round((other - t_ns[0]) * drift).astype(np.int64)
    return Passages(mine, other, np.full(count, 100, np.int64))


def test_clocks_are_compared_exactly_where_the_path_is_constant() -> None:
    there, back = (passages(3000, delay, -3 * 10**9, 25e-6, sign) for delay, sign in ((40 * MS, 1), (30 * MS, -1)))
    clock = compare_clocks(there, back, 10 * MS)
    assert clock is not None
    assert clock.offset_ns == pytest.approx(-3 * 10**9, abs=3000)
    assert clock.drift_ppm == pytest.approx(25, abs=0.01)
    assert clock.min_rtt_ns == pytest.approx(70 * MS, abs=3000)
    assert np.abs(clock.to_first(there.other_t_ns) - there.t_ns - 40 * MS).max() < 5000
    symmetric = compare_clocks(there, back, None)
    assert symmetric is not None
    assert symmetric.offset_low_ns < -3 * 10**9 < symmetric.offset_high_ns
    nobody = Passages(*(np.zeros(0, np.int64),) * 3)
    assert compare_clocks(there, nobody, None) is None


def test_times_are_moved_back_without_loss() -> None:
    clock = Clock(1_700_000_000 * 10**9, 37 * 10**9, 0, 0, 40.0, None, 0)
    since = np.array([0, 10**9, 3600 * 10**9], np.int64)
    other = clock.reference_ns + since + clock.offset_ns + np.round(since * 40e-6).astype(np.int64)
    assert np.abs(clock.to_first(other) - clock.reference_ns - since).max() <= 1


def test_the_command_says_clock_delay_and_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["ingest", str(SENDER), str(RECEIVER), "--pair", "-w", str(tmp_path / "ws")]
    for _ in range(2):  # The second time both are there already, and are paired again.
        capsys.readouterr()
        assert main([*command, "--asymmetry", "0 ms", "--json"]) == 0
        (pair,) = json.loads(capsys.readouterr().out)["pairs"]
        assert pair["packets"] == {"delivered": 3113, "lost": 17}
        assert abs(pair["clock"]["offset_ns"]) < 0.1 * MS
    with hf.open(tmp_path / "ws") as tables:
        assert tables.arrow("pairs").num_rows == 3130
        assert tables.arrow("clocks").num_rows == 1
    assert main(command) == 0
    assert "17 lost" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        [str(SENDER), "--pair"],
        [str(SENDER), str(RECEIVER), "--asymmetry", "1 ms"],
        [str(SENDER), str(RECEIVER), "--pair", "--merge"],
        [str(SENDER), str(RECEIVER), "--pair", "--asymmetry", "1"],
        [str(SENDER), str(RECEIVER), "--pair", "--asymmetry", "501 ms"],
        [str(SENDER), str(RECEIVER), "--pair", "--asymmetry", "-501 ms"],
        [str(SENDER), str(SENDER), "--pair"],
        [str(SENDER), str(ROOT / "fixtures" / "recorded" / "L4101.1-bbr" / "rcv.pcap.xz"), "--pair"],
    ],
)
def test_what_cannot_be_paired_is_one_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ingest", *words, "-w", str(tmp_path / "ws")]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("hindflight: ")]
    assert len(said) == 1
