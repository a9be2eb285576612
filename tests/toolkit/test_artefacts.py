"""What a capture adds to the traffic: copies of records, a clock that was set, one direction only, forged segments."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import pytest

from fixtures.make_captures import DST4, SRC4, START_S, TCP, Record, Variant, checksum, ethernet
from hindflight.toolkit.capture import Capture, load_capture
from hindflight.toolkit.captured_flow import read_flow
from hindflight.toolkit.errors import CaptureError
from hindflight.toolkit.source import open_source

MSS, RTT_US = 1448, 20_000
SYN, RST, ACK = 2, 4, 16


def segment(
    t_us: int, forward: bool, seq: int, ack: int, flags: int = ACK, payload: int = 0, *, options: bytes = b""
) -> Record:
    """Return one segment of the connection; the SYNs announce an MSS of 1460 octets."""
    options = (struct.pack("!BBH", 2, 4, 1460) if flags & SYN else b"") + options
    ports = (40_000, 5001) if forward else (5001, 40_000)
    offset_flags = (5 + len(options) // 4) << 12 | flags
    body = struct.pack("!HHIIHHHH", *ports, seq, ack, offset_flags, 512, 0, 0) + options + bytes(payload)
    ends = SRC4 + DST4 if forward else DST4 + SRC4
    total = checksum(ends + struct.pack("!II", TCP, len(body)) + body)
    body = body[:16] + struct.pack("!H", total) + body[18:]
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 61, TCP, 0) + ends
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return Record(ethernet(0x0800, header + body), second=START_S + t_us // 10**6, fraction=t_us % 10**6)


def bulk(count: int = 60, copies: int = 1, copied_acks: int = 1) -> list[Record]:
    """Return a transfer of `count` segments without a loss, each stored `copies` times within 3 µs."""
    records = [segment(n, True, 99, 0, SYN) for n in range(copies)]
    records.append(segment(RTT_US, False, 999, 100, SYN | ACK))
    records.append(segment(RTT_US + 100, True, 100, 1000))
    for number in range(count):
        t_us, seq = RTT_US + 200 + 1000 * number, 100 + number * MSS
        records += [segment(t_us + n, True, seq, 1000, payload=MSS) for n in range(copies)]
        acked = t_us + RTT_US + 500
        records += [segment(acked + n, False, 1000, seq + MSS) for n in range(copied_acks)]
    return sorted(records, key=lambda record: (record.second or 0, record.fraction or 0))


def load(records: list[Record], folder: Path) -> Capture:
    path = folder / "capture.pcap"
    path.write_bytes(Variant("artefact", tuple(records), len(records)).octets())
    return load_capture(path)


def only(capture: Capture) -> dict[str, Any]:
    (flow,) = capture.flows.to_pylist()
    return dict(flow)


SAME = ("data_segments", "payload_bytes", "unique_bytes", "retransmitted_segments", "rtt_samples", "flight_max_bytes")


def test_records_stored_four_times_change_no_count(tmp_path: Path) -> None:
    plain = load(bulk(), tmp_path)
    copied = load(bulk(copies=4, copied_acks=4), tmp_path)
    assert copied.segments.num_rows > 3 * plain.segments.num_rows
    for name in SAME:
        assert only(copied)[f"a2b_{name}"] == only(plain)[f"a2b_{name}"], name
    assert only(copied)["b2a_dup_acks"] == 0
    assert copied.events["kind"].to_pylist() == plain.events["kind"].to_pylist()
    assert not any(copied.segments["retransmission"].to_pylist())


def test_equal_acks_are_duplicates_where_nothing_else_is_stored_twice(tmp_path: Path) -> None:
    capture = load(bulk(copied_acks=3), tmp_path)
    assert only(capture)["b2a_dup_acks"] > 60


def test_a_retransmission_after_a_millisecond_is_no_copy(tmp_path: Path) -> None:
    records = bulk()
    records.insert(21, dataclasses.replace(records[20], fraction=(records[20].fraction or 0) + 1000))
    capture = load(sorted(records, key=lambda record: (record.second or 0, record.fraction or 0)), tmp_path)
    assert only(capture)["a2b_segments"] + only(capture)["b2a_segments"] == len(records)
    kinds = capture.events["kind"].to_pylist()
    assert only(capture)["a2b_retransmitted_segments"] + only(capture)["b2a_dup_acks"] + kinds.count("reordering") > 0


def test_one_direction_does_not_show_what_was_in_flight(tmp_path: Path) -> None:
    sent = [record for record in bulk() if record.data[34:36] == struct.pack("!H", 40_000)]
    flow = only(load(sent, tmp_path))
    assert flow["a2b_payload_bytes"] == 60 * MSS
    assert flow["a2b_flight_max_bytes"] is None
    assert flow["a2b_rtt_min_ns"] is None


def test_payload_of_a_reset_is_counted(tmp_path: Path) -> None:
    end = 100 + 60 * MSS
    flow = only(load([*bulk(), segment(200_000, True, end, 1000, RST | ACK, payload=100)], tmp_path))
    assert (flow["a2b_data_segments"], flow["a2b_payload_bytes"]) == (61, 60 * MSS + 100)
    assert flow["a2b_retransmitted_segments"] == 0


@pytest.mark.parametrize("ahead", [2**26 + 2**20, 2**29, 2**30 + 2**29])
def test_a_stray_segment_far_ahead_disturbs_nothing(ahead: int, tmp_path: Path) -> None:
    plain = only(load(bulk(), tmp_path))
    records = bulk()
    at = records[40]
    stray = segment(0, True, 100 + ahead, 1000, payload=MSS)
    records.insert(41, dataclasses.replace(stray, second=at.second, fraction=at.fraction))
    capture = load(records, tmp_path)
    found = only(capture)
    assert found["a2b_data_segments"] == plain["a2b_data_segments"] + 1
    for name in ("retransmitted_segments", "rtt_samples", "flight_max_bytes", "rtos", "recoveries"):
        assert found[f"a2b_{name}"] == plain[f"a2b_{name}"], name
    assert "loss" not in capture.events["kind"].to_pylist()


def test_a_capture_that_lost_much_goes_on_after_the_hole(tmp_path: Path) -> None:
    records = bulk()
    far = 100 + 2**28
    records += [segment(300_000 + 1000 * n, True, far + n * MSS, 1000, payload=MSS) for n in range(10)]
    records += [segment(350_000 + 1000 * n, False, 1000, far + (n + 1) * MSS) for n in range(10)]
    flow = only(load(records, tmp_path))
    assert flow["a2b_data_segments"] == 70
    assert flow["a2b_rtt_samples"] > 65


def test_a_reset_with_number_0_sets_no_initial_sequence_number(tmp_path: Path) -> None:
    refused = segment(0, False, 0, 100, RST | ACK)
    capture = load([refused, segment(10, False, 5_000_000, 100, payload=10)], tmp_path)
    assert capture.segments["seq"].to_pylist() == [1, 1]


@pytest.mark.parametrize("step_s", [-(10**9), -3600, 10**9])
def test_a_clock_that_was_set_is_an_issue_and_ends_an_extraction(step_s: int, tmp_path: Path) -> None:
    records = bulk()
    records[50:] = [dataclasses.replace(record, second=(record.second or 0) + step_s) for record in records[50:]]
    capture = load(records, tmp_path)
    assert [(row["record"], row["kind"]) for row in capture.issues.to_pylist()] == [(51, "clock")]
    assert only(capture)["a2b_unique_bytes"] == 60 * MSS
    with open_source(tmp_path / "capture.pcap") as tables, pytest.raises(CaptureError, match=r"clock .* at record 51"):
        read_flow(tables.workspace, None)


def test_steps_back_of_less_than_a_second_are_no_issue(tmp_path: Path) -> None:
    records = bulk()
    records[50], records[51] = records[51], records[50]
    assert load(records, tmp_path).issues.num_rows == 0
