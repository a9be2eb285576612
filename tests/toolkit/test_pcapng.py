"""pcapng files written by hand, against what they hold, against dpkt, Scapy and tshark, and against pcap."""

from __future__ import annotations

import io
import logging
import lzma
import shutil
import subprocess
from pathlib import Path
from typing import Any

import dpkt
import pytest

from fixtures.make_captures import captures
from fixtures.make_pcapng import File, pcapng_files
from hindflight.toolkit.capture import load_capture

logging.getLogger("scapy").setLevel(logging.ERROR)

FILES = pcapng_files()
EVERY_FILE = pytest.mark.parametrize("file", FILES.values(), ids=FILES.keys())

DPKT_LACKS = {"interfaces", "sections", "other_blocks", "binary_little", "binary_big"}
"""dpkt reads one interface of one section, and of the blocks with packets only the enhanced one."""


def write(folder: Path, octets: bytes) -> Path:
    path = folder / "input"
    path.write_bytes(octets)
    return path


@EVERY_FILE
def test_every_packet_with_its_time_and_lengths(file: File, tmp_path: Path) -> None:
    found = load_capture(write(tmp_path, file.octets))
    rows = found.segments.select(["t_ns", "captured_bytes", "frame_bytes"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(t_ns, len(data), frame) for t_ns, data, frame in file.packets]
    assert found.segments["record"].to_pylist() == list(range(1, len(file.packets) + 1))
    assert found.issues.num_rows == 0


@pytest.mark.parametrize("name", sorted(FILES.keys() - DPKT_LACKS))
def test_dpkt_reads_the_same_packets(name: str) -> None:
    reader: Any = dpkt.pcapng.Reader(io.BytesIO(FILES[name].octets))
    read = [(round(time * 1e6), data) for time, data in reader]
    assert read == [(t_ns // 1000, data) for t_ns, data, _ in FILES[name].packets]


@EVERY_FILE
def test_scapy_reads_the_same_packets(file: File, tmp_path: Path) -> None:
    from scapy.utils import RawPcapNgReader

    with RawPcapNgReader(str(write(tmp_path, file.octets))) as reader:
        read: list[tuple[bytes, Any]] = list(reader)
    assert [(data, meta.wirelen) for data, meta in read] == [(data, frame) for _, data, frame in file.packets]


@pytest.mark.peer
@EVERY_FILE
def test_tshark_reads_the_same_packets(file: File, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = write(tmp_path, file.octets)
    fields = ("-e", "frame.number", "-e", "frame.time_epoch", "-e", "frame.cap_len", "-e", "frame.len")
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=;", *fields]
    rows = [
        line.split(";") for line in subprocess.run(command, check=True, capture_output=True).stdout.decode().split()
    ]
    # tshark counts a custom block as a frame without a time.
    read = [(_ns(time), int(captured), int(frame)) for _, time, captured, frame in rows if time]
    assert read == [(t_ns, len(data), frame) for t_ns, data, frame in file.packets]


def _ns(text: str) -> int:
    second, fraction = text.split(".")
    return int(second) * 10**9 + int(fraction.ljust(9, "0"))


@pytest.mark.peer
@pytest.mark.parametrize("name", sorted(n for n, v in captures().items() if not v.damaged))
def test_a_capture_that_editcap_converts_gives_the_same_tables(name: str, tmp_path: Path) -> None:
    if shutil.which("editcap") is None:
        pytest.skip("editcap is not installed")
    classic = write(tmp_path, captures()[name].octets())
    converted = tmp_path / "converted"
    subprocess.run(["editcap", "-F", "pcapng", classic, converted], check=True, capture_output=True)
    one, other = load_capture(classic), load_capture(converted)
    for table in ("segments", "flows", "events", "instruments", "others"):
        assert getattr(one, table).equals(getattr(other, table)), table
    assert one.issues["kind"].equals(other.issues["kind"])
    assert one.summary.resolution_ns == other.summary.resolution_ns


def test_compressed_and_cut(tmp_path: Path) -> None:
    file = FILES["us_little"]
    found = load_capture(write(tmp_path, lzma.compress(file.octets[:-5])))
    assert found.segments.num_rows == len(file.packets) - 1
    assert found.issues["kind"].to_pylist() == ["cut"]
    assert found.summary.compression == "xz"


def test_the_summary_names_every_link_type(tmp_path: Path) -> None:
    summary = load_capture(write(tmp_path, FILES["interfaces"].octets)).summary
    assert (summary.link_type, summary.resolution_ns) == ("EN10MB, RAW", 1000)
    summary = load_capture(write(tmp_path, FILES["100ns_big"].octets)).summary
    assert (summary.link_type, summary.resolution_ns) == ("EN10MB", 100)
