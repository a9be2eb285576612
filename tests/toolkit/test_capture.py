"""Captures into tables: every variant, every kind of bad input, and the bounds of what is read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import socket
import stat
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from fixtures.make_captures import UDP, Record, Variant, captures, ethernet, ipv4, tcp4
from hindflight.toolkit.capture import CaptureStream, Traffic, load_capture
from hindflight.toolkit.errors import CaptureError, HindflightError, MachineError

DEMO = Path(__file__).parents[2] / "toolkit/demo/geo-burst-loss.pcap.xz"
VARIANTS = captures()


def write(folder: Path, octets: bytes) -> Path:
    path = folder / "input"
    path.write_bytes(octets)
    return path


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_each_variant_gives_its_segments_and_issues(variant: Variant, tmp_path: Path) -> None:
    found = load_capture(write(tmp_path, variant.octets()))
    assert found.segments.num_rows == variant.segments
    assert tuple(found.issues["kind"].to_pylist()) == variant.issues
    assert found.summary.tcp.packets == variant.segments
    others = sum(count.packets for count in found.summary.other.values())
    assert found.summary.packets == variant.segments + others
    assert found.summary.snaplen_bytes == variant.snaplen
    assert found.summary.resolution_ns == (1 if variant.nanosecond else 1000)


def test_byte_order_resolution_and_compression_do_not_change_the_tables(tmp_path: Path) -> None:
    plain = VARIANTS["little_us"].octets()
    expected = load_capture(write(tmp_path, plain))
    same = [lzma.compress(plain), gzip.compress(plain), bz2.compress(plain), VARIANTS["big_us"].octets()]
    for octets in same:
        found = load_capture(write(tmp_path, octets))
        for name in ("segments", "flows", "events", "instruments", "others", "issues"):
            assert getattr(found, name).equals(getattr(expected, name)), name
    names = []
    for octets in (plain, *same[:3]):
        names.append(load_capture(write(tmp_path, octets)).summary.compression)
    assert names == ["none", "xz", "gzip", "bzip2"]


def test_options_without_a_column_stay_on_the_wire(tmp_path: Path) -> None:
    found = load_capture(write(tmp_path, VARIANTS["tcp_options"].octets())).segments
    others = found["options_other"].to_pylist()
    assert others[8] == bytes([34, 10, *range(8), 30, 4, 0x20, 0, 254, 4, 0xF9, 0x89, 28, 4, 0, 0x1E])
    assert others[11] == bytes([254, 4, 0xF9, 0x89, 30, 4, 0x20, 0])
    assert all(other is None for at, other in enumerate(others) if at not in {8, 11})
    assert [len(blocks) for blocks in found["sack"].to_pylist()] == [0, 0, 0, 2, 4, 6, 8, 6, 0, 0, 0, 0]


def test_other_packets_are_rows_with_their_ends(tmp_path: Path) -> None:
    found = load_capture(write(tmp_path, VARIANTS["other_traffic"].octets()))
    rows = found.others.to_pylist()
    counts = {kind: sum(row["kind"] == kind for row in rows) for kind in found.summary.other}
    with_ip = {kind: n.packets for kind, n in found.summary.other.items() if kind not in {"arp", "not_ip", "undecoded"}}
    assert {kind: counts[kind] for kind in with_ip} == with_ip
    assert sum(counts.values()) == len(rows) == sum(with_ip.values()) > 0
    assert [row["record"] for row in rows] == sorted(row["record"] for row in rows)
    assert all(row["src_addr"] and row["dst_addr"] and row["ip_bytes"] >= 20 for row in rows)


def test_other_traffic_is_counted_by_kind(tmp_path: Path) -> None:
    summary = load_capture(write(tmp_path, VARIANTS["other_traffic"].octets())).summary
    frames = [len(record.data) for record in VARIANTS["other_traffic"].records]
    assert summary.other == {
        "udp": Traffic(2, frames[0] + frames[1]),
        "icmp": Traffic(2, frames[2] + frames[3]),
        "arp": Traffic(1, frames[4]),
        "tcp_fragment": Traffic(0, 0),
        "other_ip": Traffic(1, frames[6]),
        "not_ip": Traffic(1, frames[5]),
        "undecoded": Traffic(0, 0),
    }
    assert summary.tcp == Traffic(1, frames[7])


def test_cut_at_every_octet_keeps_all_whole_records(tmp_path: Path) -> None:
    variant = VARIANTS["little_ns"]
    parts = list(variant.parts())
    octets = b"".join(parts)
    ends = [sum(map(len, parts[: n + 1])) for n in range(1, len(parts))]
    for length in range(24, len(octets)):
        found = load_capture(write(tmp_path, octets[:length]))
        whole = sum(end <= length for end in ends)
        assert found.segments["record"].to_pylist() == list(range(1, whole + 1)), length
        cut = length != 24 and length not in ends
        assert found.issues["kind"].to_pylist() == ["cut"] * cut, length


def test_an_issue_says_where_and_what(tmp_path: Path) -> None:
    octets = VARIANTS["little_us"].octets()
    row = load_capture(write(tmp_path, octets[:-3]), input_id=4).issues.to_pylist()[0]
    last = len(octets) - len(list(VARIANTS["little_us"].parts())[-1])
    assert (row["input_id"], row["record"], row["offset"], row["kind"]) == (4, 7, last, "cut")
    assert "after 51 of 54 octets" in row["text"]


def test_a_cut_compressed_capture_keeps_what_came_out(tmp_path: Path) -> None:
    whole = DEMO.read_bytes()
    found = load_capture(write(tmp_path, whole[: len(whole) // 2]))
    total = load_capture(DEMO).segments
    assert 0.3 * total.num_rows < found.segments.num_rows < 0.7 * total.num_rows
    same = total.slice(0, found.segments.num_rows)
    assert found.segments["seq_raw"].equals(same["seq_raw"])
    assert found.issues["kind"].to_pylist() == ["compression"]


BAD = {
    "empty": (b"", "is empty"),
    "text": (b"not a capture, just some text in a file\n", "is not a capture: it starts with the octets 6e 6f 74 20"),
    "cut_in_header": (VARIANTS["little_us"].octets()[:17], "ends within the file header, after 17 of 24 octets"),
    "pcapng": (
        bytes.fromhex("0a0d0d0a1c0000004d3c2b1a01000000") + bytes(16),
        "is not a capture: it starts like a pcapng file, but a block of 28 octets ends with the length 0",
    ),
    "cable": (VARIANTS["little_us"].octets()[:20] + bytes([143, 0, 0, 0]), "link type 143 (DOCSIS"),
    "empty_xz": (lzma.compress(b""), "is empty"),
    "cut_xz": (lzma.compress(VARIANTS["little_us"].octets())[:30], "is a damaged xz stream"),
    "text_in_gzip": (gzip.compress(b"still no capture, only text\n"), "is not a capture"),
}


@pytest.mark.parametrize(("octets", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_no_capture_is_one_clear_line_with_a_hint(octets: bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, octets)
    with pytest.raises(CaptureError) as caught:
        load_capture(path)
    assert str(caught.value).startswith(f"{path} ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="does not exist"):
        load_capture(tmp_path / "nothing.pcap")
    with pytest.raises(CaptureError, match="is a folder"):
        load_capture(tmp_path)


def test_a_socket_is_the_users_mistake(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        with pytest.raises(CaptureError, match="is a socket"):
            load_capture(path)


def test_an_unreadable_file_is_the_machines_fault(tmp_path: Path) -> None:
    path = write(tmp_path, VARIANTS["little_us"].octets())
    path.chmod(0)
    assert _as_nobody(lambda: _message(path)) == f"MachineError 3 {path} may not be read"


def _message(path: Path) -> str:
    try:
        load_capture(path)
    except HindflightError as error:
        return f"{type(error).__name__} {error.exit_code} {error}"
    return "no error"


def _as_nobody(run: Callable[[], str]) -> str:
    """What `run` says in a process that is not root, who may read everything."""
    if os.geteuid() != 0:
        return run()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Arrow's threads are idle and not used in the child
        child = os.fork()
    if child == 0:
        try:
            os.setuid(65_534)
            os.write(writing, run().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, encoding="utf-8") as answer:
        return answer.read()


def test_what_the_system_cannot_read_is_the_machines_fault() -> None:
    # Readable by its mode, but reading its first octet is an error of the system.
    path = Path("/proc/self/mem")
    if not path.exists() or not stat.S_ISREG(path.stat().st_mode):
        pytest.skip("no /proc/self/mem here")
    with pytest.raises(MachineError, match="cannot be read"):
        load_capture(path)


def test_long_traffic_without_tcp_comes_in_bounded_pieces(tmp_path: Path) -> None:
    datagram = ethernet(0x0800, ipv4(UDP, bytes(8)))
    records = (Record(datagram),) * 150_000 + (Record(tcp4()),)
    path = write(tmp_path, Variant("udp", records, 1).octets())
    stream = CaptureStream(path)
    pieces = [(batch.num_rows, stream.others().num_rows) for batch in stream.batches()]
    assert pieces == [(0, 65_536), (0, 65_536), (1, 150_000 - 2 * 65_536)]
    assert CaptureStream(path).first_time_ns() is not None
    assert load_capture(path).others.num_rows == 150_000


def test_batches_are_as_asked_and_add_up() -> None:
    whole = load_capture(DEMO)
    stream = CaptureStream(DEMO, first_flow_id=9, input_id=3)
    batches = list(stream.batches(1000))
    assert [batch.num_rows for batch in batches[:-1]] == [1000] * (len(batches) - 1)
    assert 0 < batches[-1].num_rows <= 1000
    table = pa.Table.from_batches(batches)
    assert table.drop(["flow_id"]).equals(whole.segments.drop(["flow_id"]))
    flows = stream.flows()
    assert flows["flow_id"].to_pylist() == [9]
    assert flows["input_id"].to_pylist() == [3]
    assert set(table["flow_id"].to_pylist()) == {9}
    assert list(stream.batches()) == []


@pytest.mark.parametrize("max_rows", [0, 2**24 + 1])
def test_a_batch_size_out_of_bounds_is_refused(max_rows: int) -> None:
    with pytest.raises(ValueError, match="max_rows"):
        next(CaptureStream(DEMO).batches(max_rows))


def test_rows_are_given_once_and_none_is_lost() -> None:
    whole = load_capture(DEMO)
    stream = CaptureStream(DEMO)
    parts: dict[str, list[pa.Table]] = {"events": [], "flows": [], "instruments": [], "others": [], "issues": []}
    for _ in stream.batches(500):
        for name, tables in parts.items():
            tables.append(getattr(stream, name)())
    for name, tables in parts.items():
        tables.append(getattr(stream, name)())
        assert pa.concat_tables(tables).equals(getattr(whole, name)), name
        assert getattr(stream, name)().num_rows == 0


def test_times_cut_out_a_part() -> None:
    whole = load_capture(DEMO)
    times = whole.segments["t_ns"].to_pylist()
    from_ns, to_ns = times[1000], times[3000]
    part = load_capture(DEMO, from_ns=from_ns, to_ns=to_ns)
    inside = [t for t in times if from_ns <= t < to_ns]
    assert part.segments["t_ns"].to_pylist() == inside
    assert part.summary.outside_window_packets == len(times) - len(inside)
    assert (part.summary.start_ns, part.summary.end_ns) == (inside[0], inside[-1])
    assert load_capture(DEMO, from_ns=times[-1] + 1).segments.num_rows == 0


def test_several_captures_are_read_at_once() -> None:
    whole = load_capture(DEMO)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(load_capture, [DEMO] * 8):
            assert found.segments.equals(whole.segments)
            assert found.flows.equals(whole.flows)


def test_progress_ends_at_the_length_of_the_file() -> None:
    stream = CaptureStream(DEMO)
    seen = [stream.progress()[0] for _ in stream.batches(2000)]
    assert seen == sorted(seen)
    assert stream.progress() == (DEMO.stat().st_size, DEMO.stat().st_size)


def test_a_flaw_in_every_record_does_not_fill_the_table(tmp_path: Path) -> None:
    variant = VARIANTS["ip_length_zero"]
    octets = b"".join([*variant.parts()][:1] + [*variant.parts()][1:] * 500)
    issues = load_capture(write(tmp_path, octets)).issues
    # The time goes back at each repetition.
    assert Counter(issues["kind"].to_pylist()) == {"ip_length_zero": 101, "clock": 101, "segmentation_offload": 1}
    texts = [row["text"] for row in issues.to_pylist() if row["kind"] == "ip_length_zero"]
    assert texts[-1] == "900 more like the 100 listed"


def test_a_capture_of_other_traffic_only_has_no_rows(tmp_path: Path) -> None:
    frame = ethernet(0x88CC, bytes(46))
    variant = Variant("lldp", (VARIANTS["other_traffic"].records[5],) * 3, 0)
    found = load_capture(write(tmp_path, variant.octets()))
    assert found.segments.num_rows == found.flows.num_rows == 0
    assert found.summary.other["not_ip"] == Traffic(3, 3 * len(frame))
