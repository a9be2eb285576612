"""Offload of segmentation and of checksums, damaged packets, packets that the capture lost, two clocks."""

from __future__ import annotations

import dataclasses
import lzma
import random
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from fixtures.make_captures import Record
from hindflight.flow_verdicts import verdicts_on
from hindflight.toolkit.capture import Capture, FlowStream, TcptraceStream, load_capture
from tests.toolkit.test_artefacts import ACK, MSS, RTT_US, SYN, bulk, load, only, segment
from tests.toolkit.test_capture_tshark import FOUND, KERNEL, SHARED

TSHARK = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
FORWARD = struct.pack("!H", 40_000)
STATUS = {"good": "1", "bad": "0", "offload": "0", "not_checked": "2"}
"""Ours, and `ip.checksum.status` and `tcp.checksum.status` of tshark."""
PPPOE_TOO_SHORT = {"pppoe-over-qinq.pcap"}
"""The length of PPPoE ends before that of IP: tshark cuts the segment there, and finds its checksum wrong."""


def statuses(path: Path) -> dict[int, tuple[str, str]]:
    """Return what tshark says of the checksums of each segment of one IP header."""
    fields = ("frame.number", "ip.checksum.status", "tcp.checksum.status")
    options = [word for layer in ("ip", "tcp") for word in ("-o", f"{layer}.check_checksum:TRUE")]
    command = ["tshark", "-n", "-r", str(path), "-Y", "tcp && !icmp", "-T", "fields", *options]
    command += [word for name in fields for word in ("-e", name)]
    # It fails where a file is cut, after all whole records.
    lines = subprocess.run(command, check=False, capture_output=True, text=True).stdout.splitlines()
    rows = (line.split("\t") for line in lines)
    return {int(number): (ip, tcp) for number, ip, tcp in rows if "," not in ip + tcp}


@TSHARK
@SHARED
def test_checksums_are_those_of_tshark() -> None:
    compared: Counter[tuple[str, str]] = Counter()
    for path in FOUND:
        if path.stat().st_size > 2**20 or path.suffix in {".gz", ".xz"}:
            continue
        theirs = statuses(path)
        rows = load_capture(path).segments.select(["record", "ip_version", "ip_checksum", "tcp_checksum"]).to_pylist()
        for row in rows:
            ip, tcp = theirs.get(row["record"], (None, None))
            if row["ip_version"] == 4 and ip:
                compared["ip", row["ip_checksum"]] += 1
                assert STATUS[row["ip_checksum"]] == ip, (path, row)
            if tcp and row["tcp_checksum"] != "not_checked":
                # tshark takes the sum of the pseudo-header alone for right.
                compared["tcp", row["tcp_checksum"]] += 1
                allowed = {STATUS[row["tcp_checksum"]], *("14" if row["tcp_checksum"] == "offload" else "")}
                assert tcp in allowed or path.name in PPPOE_TOO_SHORT, (path, row, tcp)
    assert min(compared["ip", "good"], compared["tcp", "good"]) > 300, compared


def unfilled(record: Record) -> Record:
    """Return the record as the sender captures it: the checksum is the sum of the pseudo-header."""
    body_bytes = len(record.data) - 34
    words = struct.unpack("!6H", record.data[26:34] + struct.pack("!HH", 6, body_bytes))
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    return dataclasses.replace(record, data=record.data[:50] + struct.pack("!H", total) + record.data[52:])


def damaged(record: Record) -> Record:
    """Return the record with its last octet changed."""
    return dataclasses.replace(record, data=record.data[:-1] + bytes([record.data[-1] ^ 0x5A]))


def is_forward(record: Record) -> bool:
    return record.data[34:36] == FORWARD


def data_at(records: list[Record]) -> list[int]:
    return [at for at, record in enumerate(records) if is_forward(record) and len(record.data) > 100]


def kinds(capture: Capture) -> dict[str, str]:
    return {row["kind"]: row["text"] for row in capture.issues.to_pylist()}


def test_the_checksums_of_a_sender_are_offload_and_change_nothing(tmp_path: Path) -> None:
    plain = load(bulk(), tmp_path)
    assert kinds(plain) == {}
    assert set(plain.segments["tcp_checksum"].to_pylist()) == {"good"}
    sent = [unfilled(record) if is_forward(record) else record for record in bulk()]
    capture = load(sent, tmp_path)
    (text,) = kinds(capture).values()
    assert text.startswith(f"{sum(map(is_forward, sent))} segments")
    assert Counter(capture.segments["tcp_checksum"].to_pylist())["offload"] == sum(map(is_forward, sent))
    assert capture.flows.equals(plain.flows)
    # An interface that leaves other values: all are wrong.
    capture = load([damaged(record) if is_forward(record) else record for record in bulk()], tmp_path)
    assert list(kinds(capture)) == ["checksum"]
    assert only(capture)["a2b_corrupted_segments"] == 0
    assert only(capture)["a2b_unique_bytes"] == only(plain)["a2b_unique_bytes"]


def test_a_damaged_segment_is_not_received(tmp_path: Path) -> None:
    records = bulk(30)
    at = data_at(records)[20]
    records[at] = damaged(records[at])
    # The receiver repeats its ACK until the retransmission comes.
    start = 100 + 20 * 1448
    late = [number for number, record in enumerate(records) if number > at and not is_forward(record)]
    for number in late:
        record = records[number]
        ack = struct.unpack("!I", record.data[42:46])[0]
        if ack > start:
            t_us = (record.second or 0) * 10**6 + (record.fraction or 0) - 1_700_000_000 * 10**6
            records[number] = segment(t_us, False, 1000, start)
    end = 100 + 30 * 1448
    records += [segment(200_000, True, start, 1000, payload=1448), segment(220_000, False, 1000, end)]
    capture = load(records, tmp_path)
    flow = only(capture)
    assert flow["a2b_corrupted_segments"] == 1
    assert flow["a2b_unique_bytes"] == 30 * 1448, "the retransmission brings its octets"
    assert flow["a2b_not_captured_bytes"] == 0
    assert "1 of them" in kinds(capture)["checksum"]
    assert capture.segments["tcp_checksum"].to_pylist().count("bad") == 1
    found = [one.verdict for one in verdicts_on(tmp_path / "capture.pcap", None).verdicts if one.about == "capture"]
    assert found == ["damaged segments"]


def large(count: int, segments: int, stamps: bool = False) -> list[Record]:
    """Return a transfer of `count` records, each of which stands for `segments` of 1460 octets less the options."""
    options = struct.pack("!BBBBII", 1, 1, 8, 10, 7, 9) if stamps else b""
    size = 1460 - len(options)
    records = [segment(0, True, 99, 0, SYN), segment(RTT_US, False, 999, 100, SYN | ACK)]
    records.append(segment(RTT_US + 100, True, 100, 1000))
    for n in range(count):
        t_us, seq = RTT_US + 200 + 1000 * n, 100 + n * size * segments
        records.append(segment(t_us, True, seq, 1000, payload=size * segments, options=options))
        records.append(segment(t_us + 500, False, 1000, seq + size * segments))
    return records


@pytest.mark.parametrize("stamps", [False, True])
@pytest.mark.parametrize("segments", [2, 10, 44])
def test_a_record_of_several_segments_counts_as_these(segments: int, stamps: bool, tmp_path: Path) -> None:
    capture = load(large(20, segments, stamps), tmp_path)
    counts = Counter(capture.segments["segments_n"].to_pylist())
    assert counts == {1: 3 + 20, segments: 20}
    flow = only(capture)
    assert flow["a2b_data_segments"] == 20 * segments
    assert flow["a2b_segments"] == 20 * segments + 2
    assert flow["b2a_segments"] == 21
    assert f"counted as the {20 * segments} segments" in kinds(capture)["segmentation_offload"]


def test_segments_of_the_largest_size_are_no_offload(tmp_path: Path) -> None:
    records = [segment(0, True, 99, 0, SYN), segment(10, False, 999, 100, SYN | ACK)]
    records.append(segment(20, True, 100, 1000, payload=1460))
    capture = load(records, tmp_path)
    assert set(capture.segments["segments_n"].to_pylist()) == {1}
    assert kinds(capture) == {}


def test_a_lost_record_of_several_segments_is_a_loss_of_each(tmp_path: Path) -> None:
    size, n = 1460, 10
    records = large(20, n)
    ack_of = [100 + (k + 1) * n * size for k in range(20)]
    # Record 12 is lost: the ACKs stay where they are, until it is sent again as one record.
    stuck = 100 + 12 * n * size
    out = []
    for record in records:
        ack = struct.unpack("!I", record.data[42:46])[0]
        t_us = (record.second or 0) * 10**6 + (record.fraction or 0) - 1_700_000_000 * 10**6
        out.append(segment(t_us, False, 1000, stuck) if not is_forward(record) and ack in ack_of[12:] else record)
    out += [segment(300_000, True, stuck, 1000, payload=n * size), segment(320_000, False, 1000, ack_of[-1])]
    capture = load(out, tmp_path)
    losses = [row for row in capture.events.to_pylist() if row["kind"] == "loss"]
    assert [(row["seq_start"], row["seq_end"]) for row in losses] == [
        (1 + (12 * n + k) * size, 1 + (12 * n + k + 1) * size) for k in range(n)
    ]
    assert only(capture)["a2b_retransmitted_segments"] == n


@TSHARK
def test_profiles_count_records_as_the_peers_do(tmp_path: Path) -> None:
    load(large(20, 10), tmp_path)
    path = tmp_path / "capture.pcap"
    line = subprocess.run(["tshark", "-n", "-r", path, "-q", "-z", "conv,tcp"], check=True, capture_output=True)
    names, row = b"".join(TcptraceStream(path).text()).decode().splitlines()
    found = dict(zip(names.split(","), row.split(","), strict=True))
    assert found["total_packets_a2b"] == "22"
    assert b" 22 " in line.stdout


def test_what_the_capture_lost_is_no_loss_of_the_network(tmp_path: Path) -> None:
    records = bulk()
    lost = data_at(records)[10:13]
    capture = load([record for at, record in enumerate(records) if at not in lost], tmp_path)
    flow = only(capture)
    assert flow["a2b_not_captured_bytes"] == 3 * 1448
    assert flow["a2b_retransmitted_segments"] == 0
    assert "loss" not in capture.events["kind"].to_pylist()
    assert "the capture lost them" in kinds(capture)["capture_drop"]
    found = [one.verdict for one in verdicts_on(tmp_path / "capture.pcap", None).verdicts if one.about == "capture"]
    assert found == ["packets not captured"]
    rows = FlowStream(tmp_path / "capture.pcap")
    names, row = b"".join(rows.text()).decode().splitlines()
    assert dict(zip(names.split(","), row.split(","), strict=True))["a2b_not_captured_bytes"] == str(3 * 1448)
    assert any("the capture lost them" in text for *_, text in rows.issues())


def test_what_was_sent_before_the_capture_began_is_not_lost(tmp_path: Path) -> None:
    records = [record for record in bulk() if not record.data[47] & SYN]
    # It begins with the ACKs of ten segments sent before.
    acks = [segment(1000 * n, False, 1000, 100 + n * 1448) for n in range(10)]
    ahead = [segment(RTT_US + 1000 * n, True, 100 + (n + 20) * 1448, 1000, payload=1448) for n in range(10)]
    end = [segment(80_000, False, 1000, 100 + 30 * 1448)]
    capture = load([*acks, *ahead, *end], tmp_path)
    assert only(capture)["a2b_not_captured_bytes"] in (0, None)
    one_way = load([record for record in records if not is_forward(record)], tmp_path)
    assert [row["a2b_not_captured_bytes"] for row in one_way.flows.to_pylist()] == [None]
    assert [row["b2a_not_captured_bytes"] for row in one_way.flows.to_pylist()] == [None]


@SHARED
@pytest.mark.parametrize("name", ["S3-reno/rcv.pcap.xz", "S10-cubic/rcv.pcap.xz", "S5-bbr/snd.pcap.xz"])
def test_dropped_records_add_no_loss(name: str, tmp_path: Path) -> None:
    """One in a hundred data records is removed from a recording of the kernel; all other losses are found as before."""
    whole = load_capture(KERNEL / name)
    data = [
        row["record"]
        for row in whole.segments.select(["record", "payload_bytes"]).to_pylist()
        if row["payload_bytes"] > 0
    ]
    gone = set(random.Random(1).sample(data, len(data) // 100))
    octets = lzma.decompress((KERNEL / name).read_bytes())
    kept, at, number = [octets[:24]], 24, 0
    while at < len(octets):
        number += 1
        end = at + 16 + struct.unpack("<I", octets[at + 8 : at + 12])[0]
        if number not in gone:
            kept.append(octets[at:end])
        at = end
    path = tmp_path / "kept.pcap"
    path.write_bytes(b"".join(kept))
    cut = load_capture(path)

    def losses(capture: Capture) -> set[tuple[int, int, int]]:
        rows = capture.events.to_pylist()
        return {(row["seq_start"], row["seq_end"], row["copy"]) for row in rows if row["kind"] == "loss"}

    assert len(losses(cut) - losses(whole)) <= len(gone) // 50
    assert only(whole)["a2b_not_captured_bytes"] == 0
    # A segment that was sent twice, or that the capture's end cuts off, is not missing.
    assert 0.8 * len(gone) * 1448 < only(cut)["a2b_not_captured_bytes"] <= len(gone) * 1448


@pytest.mark.parametrize("ms", [-300, -15, 80])
def test_two_clocks_are_an_issue(ms: int, tmp_path: Path) -> None:
    def moved(record: Record) -> Record:
        t_us = (record.second or 0) * 10**6 + (record.fraction or 0) + ms * 1000
        return dataclasses.replace(record, second=t_us // 10**6, fraction=t_us % 10**6)

    # ACKs of other data than before them: the data answer these, 6 ms later.
    def stamps(val: int, ecr: int) -> bytes:
        return struct.pack("!BBBBII", 1, 1, 8, 10, val, ecr)

    records = [segment(0, True, 99, 0, SYN, options=stamps(1, 0))]
    records.append(segment(4000, False, 999, 100, SYN | ACK, options=stamps(1, 1)))
    for n in range(1, 100):
        t_us, seq = 10_000 * n, 100 + 1000 * n
        records.append(segment(t_us, True, seq, 1000, payload=1000, options=stamps(1 + n, n)))
        records.append(segment(t_us + 4000, False, 1000, seq + 1000, options=stamps(1 + n, 1 + n)))
    assert "clock" not in kinds(load(records, tmp_path))
    capture = load([record if is_forward(record) else moved(record) for record in records], tmp_path)
    text = kinds(capture)["clock"]
    early, by_ms = ("b2a", -ms - 4) if ms < 0 else ("a2b", ms - 6)
    assert f"those of {early} by up to {by_ms}.000 ms" in text


def test_wrong_checksums_are_counted_in_segments_as_the_damaged_ones_are(tmp_path: Path) -> None:
    records = bulk(20)
    large = segment(RTT_US + 50_000, True, 100 + 20 * MSS, 1000, payload=2 * MSS)
    damaged = dataclasses.replace(large, data=large.data[:-1] + b"\x55")
    capture = load(sorted([*records, damaged], key=lambda record: (record.second or 0, record.fraction or 0)), tmp_path)
    assert only(capture)["a2b_corrupted_segments"] == 2
    assert "2 segments have a wrong checksum; 2 of them" in kinds(capture)["checksum"]


def test_acks_alone_leave_the_flight_of_the_data_null(tmp_path: Path) -> None:
    acks = [record for record in bulk(20) if not is_forward(record)]
    (flow,) = (capture := load(acks, tmp_path)).flows.to_pylist()
    way, other = ("a2b", "b2a") if flow["a2b_acked_bytes"] else ("b2a", "a2b")
    assert (flow["data_direction"], flow[f"{way}_segments"]) == (way, 0)
    assert flow[f"{way}_flight_max_bytes"] is None
    assert flow[f"{other}_flight_max_bytes"] is None
    rows = capture.segments.to_pylist()
    assert [row["flight_bytes"] for row in rows if not row["flags"] & SYN] == [None] * (len(rows) - 1)
