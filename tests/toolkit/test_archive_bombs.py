"""Archives that ask for much memory or unpack to very much: one clear error, or an end, in less than 100 MB."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from benches.captures import write_bulk

PROGRAM = (
    "import sys; import hindflight.cli.app as app; code = app.main(['flows', sys.argv[1], '--csv']);"
    "status = open('/proc/self/status').read();"  # ru_maxrss counts the parent's memory, too.
    "print(code, int(status.split('VmHWM:')[1].split()[0]) // 1000, file=sys.stderr)"
)
LIMIT_MB = 100


def read(path: Path) -> tuple[int, int, str]:
    """Return the exit code, the peak memory in MB and the messages of `hindflight flows`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, timeout=120, check=True
    )
    *messages, last = done.stderr.splitlines()
    code, peak_mb = map(int, last.split())
    return code, peak_mb, "\n".join(messages)


def with_dictionary(archive: bytes, size_code: int) -> bytes:
    """Return an xz archive whose first block asks for another dictionary (xz file format, sections 3.1 and 5.3.1)."""
    start, length = 12, (archive[12] + 1) * 4
    header = bytearray(archive[start : start + length - 4])
    at = header.index(b"\x21\x01") + 2
    header[at] = size_code
    return archive[:start] + bytes(header) + struct.pack("<I", zlib.crc32(header)) + archive[start + length :]


def capture(folder: Path) -> bytes:
    path = folder / "plain.pcap"
    write_bulk(path, 300)
    return path.read_bytes()


def test_an_xz_header_that_asks_for_gigabytes_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "greedy.pcap.xz"
    path.write_bytes(with_dictionary(lzma.compress(capture(tmp_path), preset=6), 37))
    code, peak_mb, messages = read(path)
    assert code == 2
    assert "needs more than 68 MiB of memory" in messages
    assert "damaged" not in messages
    assert "xz -d" in messages
    assert peak_mb < LIMIT_MB


def test_the_strongest_preset_of_xz_is_read_within_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "strong.pcap.xz"
    path.write_bytes(lzma.compress(capture(tmp_path), preset=9))
    code, peak_mb, _ = read(path)
    assert (code, peak_mb < LIMIT_MB) == (0, True)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_capture_that_unpacks_to_zeros_ends_in_bounded_memory(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    path = tmp_path / "zeros.pcap.packed"
    path.write_bytes(pack(capture(tmp_path) + bytes(64 << 20)))
    assert path.stat().st_size < 1 << 20
    code, peak_mb, _ = read(path)
    assert (code, peak_mb < LIMIT_MB) == (0, True)
