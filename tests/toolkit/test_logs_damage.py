"""Damaged logs of every kind: whole records are kept, the rest is listed, and nothing ends with an internal error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path

import pytest
from backports import zstd

from fixtures.fuzz_logs import outcomes, read_whole
from fixtures.make_flight_logs import flight_seeds
from fixtures.make_logs import seeds
from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.flight import FLIGHT_KINDS
from hindflight.toolkit.logs import KINDS, log_kind
from hindflight.toolkit.logs.octets import MAX_RATIO, RATIO_FREE_BYTES, LogFile
from hindflight.toolkit.recognition import kind_of
from tests.toolkit.logs import open_log, read_log

SEEDS = seeds() | flight_seeds()
MUTANTS = 25
CUTS = 20
"""Each log is cut at so many places and in its last octets; `python -m fixtures.fuzz_logs cuts` cuts at each octet."""
MEMORY_BYTES = 100 << 20


@pytest.mark.parametrize("name", SEEDS)
def test_every_seed_is_recognised_and_read(tmp_path: Path, name: str) -> None:
    kind, content = SEEDS[name]
    file = tmp_path / "some.name"
    file.write_bytes(content)
    assert kind_of(file) == kind
    assert read_whole(file, kind) > 0


@pytest.mark.parametrize("kind", [*KINDS, *FLIGHT_KINDS])
def test_mutants_are_read_or_refused(kind: str) -> None:
    found = Counter(outcome for _, outcome in outcomes(kind, MUTANTS))
    assert set(found) <= {"read", "refused"}, f"python -m fixtures.fuzz_logs 4000 {kind} writes the mutant"
    assert found["read"], "the harness is meant to leave something to read"


@pytest.mark.parametrize("name", SEEDS)
def test_a_log_cut_anywhere_is_read_or_refused(tmp_path: Path, name: str) -> None:
    kind, content = SEEDS[name]
    file = tmp_path / "cut"
    places = {
        *random.Random(name).sample(range(len(content)), min(CUTS, len(content))),
        *range(len(content) - 3, len(content)),
    }
    rows = {}
    for length in sorted(places):
        file.write_bytes(content[:length])
        try:
            rows[length] = read_whole(file, kind)
        except HindflightError:
            rows[length] = 0
    assert list(rows.values()) == sorted(rows.values()), "a longer log has no fewer rows"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, zstd.compress])
def test_packed_logs_are_unpacked(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    for number, (name, (kind, content)) in enumerate(SEEDS.items()):
        file = tmp_path / str(number)
        file.write_bytes(pack(content))
        assert kind_of(file) == kind, name


def _bzip2_in_small_blocks(content: bytes) -> bytes:
    return bz2.compress(content, 1)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, _bzip2_in_small_blocks, zstd.compress])
def test_an_archive_that_is_cut_or_damaged_keeps_what_came_before(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    chance = random.Random(5)
    names, *rows = SEEDS["tcp_info"][1].splitlines()
    lines = [b"%d" % (i * 10**9) + row[row.index(b",") :] for i, row in enumerate(rows * 1000)]
    lines = [line[: line.rindex(b",") + 1] + b"%d" % chance.randrange(10**9) for line in lines]
    packed = pack(b"\n".join([names, *lines, b""]))
    file = tmp_path / "log"
    for content in (packed[: len(packed) * 4 // 5], packed[: len(packed) * 4 // 5] + b"\0" * 20 + packed[-400:]):
        file.write_bytes(content)
        parts = read_log(file)
        assert sum(part.rows for part in parts) > len(lines) // 3
        assert any(issue.kind == "archive_damaged" for issue in parts[0].issues)


def _peak_bytes(code: str, *arguments: str) -> tuple[int, str]:
    """Run `code` in a new process; return its peak memory and what it printed."""
    tail = "\nprint(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    done = subprocess.run([sys.executable, "-c", code + tail, *arguments], capture_output=True, text=True, check=True)
    *said, peak_kb = done.stdout.splitlines()
    return int(peak_kb) * 1024, "\n".join(said)


READ = """
import sys
from pathlib import Path
from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.logs import LogReading, log_kind
rows, path = 0, Path(sys.argv[1])
try:
    for part in LogReading(path, log_kind(path)).parts():
        rows += part.rows
    print(rows)
except HindflightError as error:
    print(error)
"""


@pytest.mark.parametrize("body", ["rows", "one line"])
def test_an_archive_bomb_stops_with_a_clear_error(tmp_path: Path, body: str) -> None:
    head, row, *_ = SEEDS["tcp_info"][1].splitlines(keepends=True)
    block = row * 4000 if body == "rows" else b"0" * (1 << 20)
    packer = zlib.compressobj(9, wbits=31)
    file = tmp_path / "bomb.gz"
    with file.open("wb") as archive:
        archive.write(packer.compress(head))
        for _ in range(2 * RATIO_FREE_BYTES // len(block)):
            archive.write(packer.compress(block))
        archive.write(packer.flush())
    assert file.stat().st_size * MAX_RATIO < 2 * RATIO_FREE_BYTES
    peak, said = _peak_bytes(READ, str(file))
    assert f"unpacks to more than {MAX_RATIO} times its size" in said
    assert peak < MEMORY_BYTES


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    kind, content = SEEDS["snaplog 2.5.27"]
    body = content.index(b"----Begin-Snap-Data----")
    file = tmp_path / "long"
    with file.open("wb") as log:
        log.write(content[:body])
        for _ in range(200):
            log.write(content[body:] * 100)
    assert file.stat().st_size > 28 << 20
    peak, said = _peak_bytes(READ, str(file))
    assert said == "200000", kind
    assert peak < MEMORY_BYTES


def test_parts_of_a_long_log_continue_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hindflight.toolkit.logs.octets.CHUNK_BYTES", 700)
    for name, (kind, content) in seeds().items():
        file = tmp_path / "log"
        file.write_bytes(content)
        whole = read_log(file)
        with monkeypatch.context() as short:
            for module in ("collector", "tcp_info_csv", "web100"):
                short.setattr(f"hindflight.toolkit.logs.{module}.BATCH_ROWS", 4)
            parts = read_log(file)
        assert len(parts) > len(whole) or sum(part.rows for part in whole) <= 4, name
        for log in whole:
            mine = [part for part in parts if part.key == log.key]
            split = [row for part in mine for row in part.instruments(1).to_pylist()]
            assert [{k: v for k, v in row.items() if k not in _LOOKS_AHEAD} for row in split] == [
                {k: v for k, v in row.items() if k not in _LOOKS_AHEAD} for row in log.instruments(1).to_pylist()
            ], (name, kind)
            if kind != "ss":  # Which fields ss prints differs from poll to poll.
                split = [row for part in mine for row in part.variables(1).to_pylist()]
                assert split == log.variables(1).to_pylist(), (name, kind)


_LOOKS_AHEAD = {"phase", "app_limited"}
"""What limits the sender of a snaplog is known at the next movement of its counters, which may be in the next part."""


def test_the_refusal_of_other_files_names_what_they_look_like(tmp_path: Path) -> None:
    from hindflight.toolkit.capture import CaptureStream
    from hindflight.toolkit.errors import CaptureError

    looks = {
        b"a,b\n1,2\n": "CSV of another kind (first line: a,b)",
        b"hello, world\n": "text (first line: hello, world)",
        b'{"a": 1}': 'JSON of another kind (first line: {"a": 1})',
        b"<html>": "XML or HTML (first line: <html>)",
        b"PK\x03\x04....": "a ZIP archive",
        b"\0" * 64: "octets that are all zero",
        bytes(range(128, 200)): "binary data (first octets 80 81 82 83 84 85 86 87)",
        b"PERFILE2....": "a binary trace of perf; `perf script` prints it as text",
        "t_s,rssi_dbm\n".encode("utf-16"): "text in UTF-16; save it in UTF-8",
    }
    for content, look in looks.items():
        file = tmp_path / "x"
        file.write_bytes(content)
        with pytest.raises(CaptureError) as caught:
            CaptureStream(file)
        assert caught.value.message.endswith(f"it looks like {look}")
        hint = caught.value.hint or ""
        labels = [kind.label for kind in KINDS.values()] + [kind.label for kind in FLIGHT_KINDS.values()]
        assert all(label in hint for label in labels)


def test_a_log_that_is_no_capture_says_what_it_is(tmp_path: Path) -> None:
    from hindflight.toolkit.capture import CaptureStream
    from hindflight.toolkit.errors import CaptureError

    file = tmp_path / "x"
    file.write_bytes(SEEDS["ndt7"][1])
    with pytest.raises(CaptureError, match="is not a capture but a log: ndt7 JSON"):
        CaptureStream(file)


@pytest.mark.parametrize(
    "name", [name for name, (kind, _) in SEEDS.items() if kind not in ("web100", "mavlink", "dataflash", "ulog")]
)
def test_a_byte_order_mark_is_no_content(tmp_path: Path, name: str) -> None:
    kind, content = SEEDS[name]
    file, plain = tmp_path / "x", tmp_path / "plain"
    file.write_bytes(b"\xef\xbb\xbf" + content)
    plain.write_bytes(content)
    assert kind_of(file) == kind
    assert read_whole(file, kind) == read_whole(plain, kind)


def test_places_count_the_byte_order_mark(tmp_path: Path) -> None:
    head, row, *_ = SEEDS["tcp_info"][1].splitlines(keepends=True)
    file = tmp_path / "x"
    file.write_bytes(b"\xef\xbb\xbf" + head + row + b"damaged\n")
    (log,) = read_log(file)
    assert [(issue.record, issue.offset) for issue in log.issues] == [(3, 3 + len(head) + len(row))]


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    head, *rows = SEEDS["tcp_info"][1].splitlines(keepends=True)
    file = tmp_path / "x"
    file.write_bytes(b"".join([head, rows[0], b"1" * (3 << 20) + b"\n", *rows[1:]]))
    (log,) = read_log(file)
    assert log.rows == len(rows)
    assert [(issue.record, issue.offset) for issue in log.issues] == [(3, len(head) + len(rows[0]))]


def test_issues_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    head, row, *_ = SEEDS["tcp_info"][1].splitlines(keepends=True)
    file = tmp_path / "x"
    file.write_bytes(head + row + b"damaged\n" * 1000)
    reading = open_log(file)
    assert sum(part.rows for part in reading.parts()) == 1
    assert len(reading.issues()) == 101
    assert reading.issues()[-1].text == "900 more of this kind"
    assert reading.file.issues.count() == 1000


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for content in (b"", b"\0" * 100, b"a,b\n1,2\n", b"\x1f\x8b", b"t_s,goodput_bps\n1,2\n"):
        file.write_bytes(content)
        assert log_kind(file) is None
        assert kind_of(file) is None
    assert LogFile(file).head() == b"t_s,goodput_bps\n1,2\n"


def test_the_harness_sees_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise KeyError("meant")

    monkeypatch.setattr("fixtures.fuzz_logs.read_whole", broken)
    assert {outcome for _, outcome in outcomes("ss", 3)} == {"KeyError: 'meant'"}
