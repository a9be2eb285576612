"""A file's digest of itself: right as long as no octet changes, whatever the format."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hindflight.toolkit.seal import EMPTY_SEAL, PARQUET_KEY, SEAL_NOTE, is_unchanged, seal_file, sealed

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(13 + 4) + b"\0\0\0\0IEND\xaeB`\x82"
TEXT = f"a = 1\n# {SEAL_NOTE}\n".encode()


def parquet(path: Path) -> None:
    table = pa.table({"x": list(range(5000))}).replace_schema_metadata({PARQUET_KEY: EMPTY_SEAL})
    pq.write_table(table, path)


@pytest.mark.parametrize("content", [TEXT, PNG, b"<html>" + EMPTY_SEAL.encode() + bytes(200_000)])
def test_any_change_breaks_the_seal(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    whole = sealed(content)
    path.write_bytes(whole)
    assert is_unchanged(path)
    for at in {*range(0, min(len(whole), 400), 3), len(whole) - 1}:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert is_unchanged(path) == (at in crc_of(whole)), at
    for other in (whole[:-1], whole + b"\n", b""):
        path.write_bytes(other)
        assert not is_unchanged(path)


def crc_of(whole: bytes) -> range:
    """Where the CRC of a PNG's chunk is, which the digest cannot cover."""
    if not whole.startswith(b"\x89PNG"):
        return range(0)
    end = 33 + 8 + struct.unpack_from(">I", whole, 33)[0]
    return range(end, end + 4)


def test_a_sealed_png_is_sound() -> None:
    whole = sealed(PNG)
    length = struct.unpack_from(">I", whole, 33)[0]
    chunk = whole[37 : 41 + length]
    assert chunk.startswith(b"tEXtComment\0hindflight-sha256:")
    assert struct.unpack_from(">I", whole, 41 + length)[0] == zlib.crc32(chunk)
    assert whole[:33] + whole[45 + length :] == PNG


def test_parquet_is_sealed_on_disk_and_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet(path)
    in_memory = sealed(path.read_bytes())
    seal_file(path)
    assert path.read_bytes() == in_memory
    assert is_unchanged(path)
    read = pq.read_table(path)
    assert read["x"].to_pylist() == list(range(5000))
    pq.write_table(read, path)
    assert not is_unchanged(path), "a file that somebody wrote again is theirs"


def test_a_digest_of_something_else_is_no_seal(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(TEXT)
    assert not is_unchanged(path)
    path.write_bytes(b"nothing")
    assert not is_unchanged(path)
    with pytest.raises(ValueError, match="no place"):
        seal_file(path)
    with pytest.raises(ValueError, match="not found"):
        sealed(b"nothing")
