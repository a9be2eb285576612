"""The digest that a file carries of itself, by which a file that nobody has changed since it was written is known.

A sealed file contains `hindflight-sha256:` and 64 digits: the SHA-256 of its octets with zeros in place of the digits.
Where they are depends on the format: a comment (TOML, SVG, scripts), a `meta` element (HTML), key-value metadata
(Parquet), a tEXt chunk (PNG). Imports nothing of ours.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_NAME = "hindflight-sha256:"
_DIGITS = 64
EMPTY_SEAL = _NAME + "0" * _DIGITS
"""What a writer puts into the content for `sealed` or `seal_file` to fill in."""

SEAL_NOTE = f"{EMPTY_SEAL} (while this digest is right, hindflight may replace the file)"
"""The same with a reason, for a comment that people see."""

PARQUET_KEY = b"hindflight.seal"
"""Key of the Parquet metadata whose value is the seal."""

_SEAL = re.compile(_NAME.encode() + rb"([0-9a-f]{64})")
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER_BYTES = 33
"""Signature and IHDR chunk."""
_CRC_BYTES = 4
_PARQUET = b"PAR1"
_SEARCHED_BYTES = 1 << 16
"""A seal is looked for in as much of the beginning and of the end of a file; in Parquet in all of the footer."""
_CHUNK_BYTES = 1 << 20


def sealed(content: bytes) -> bytes:
    """Return `content` with its digest in place of its last `EMPTY_SEAL`; a PNG gets a chunk for it.

    ValueError: there is no place for the digest.
    """
    if content.startswith(_PNG):
        return _sealed_png(content)
    at = content.rindex(EMPTY_SEAL.encode()) + len(_NAME)
    return content[:at] + _hex(content) + content[at + _DIGITS :]


def _sealed_png(content: bytes) -> bytes:
    head, rest = content[:_PNG_HEADER_BYTES], content[_PNG_HEADER_BYTES:]
    before = b"Comment\0" + _NAME.encode()
    length = struct.pack(">I", len(before) + _DIGITS)
    blank = head + length + b"tEXt" + before + b"0" * _DIGITS + b"0" * _CRC_BYTES + rest
    chunk = b"tEXt" + before + _hex(blank)
    return head + length + chunk + struct.pack(">I", zlib.crc32(chunk)) + rest


def _hex(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def seal_file(path: Path) -> None:
    """Fill in the `EMPTY_SEAL` of a file that is too long to hold in memory. OSError, ValueError: it cannot be."""
    with path.open("r+b") as file:
        at = next((at for at, digits in _seals(file) if not digits.strip(b"0")), None)
        if at is None:
            raise ValueError(f"{path} has no place for its digest")
        digest = _digest(file, at, _DIGITS)
        file.seek(at)
        file.write(digest.encode())


def is_unchanged(path: Path) -> bool:
    """Whether the file carries a seal and nothing of it has changed since. OSError: it cannot be read."""
    with path.open("rb") as file:
        is_png = file.read(len(_PNG)) == _PNG
        # The CRC of the chunk depends on the digest, so the digest cannot cover it.
        blank_bytes = _DIGITS + (_CRC_BYTES if is_png else 0)
        return any(digits.decode() == _digest(file, at, blank_bytes) for at, digits in _seals(file))


def _seals(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Where the digits of each seal of the file begin, and the digits; the last one first."""
    found: dict[int, bytes] = {}
    size = file.seek(0, 2)
    for start, length in ((0, _SEARCHED_BYTES), (_tail(file, size), size)):
        file.seek(start)
        for match in _SEAL.finditer(file.read(length)):
            found[start + match.start(1)] = match[1]
    return iter(sorted(found.items(), reverse=True))


def _tail(file: BinaryIO, size: int) -> int:
    """Where the end of the file begins that may hold a seal."""
    searched = _SEARCHED_BYTES
    file.seek(max(0, size - 8))
    end = file.read()
    if len(end) == 8 and end.endswith(_PARQUET):
        searched = max(searched, 8 + struct.unpack_from("<I", end)[0])
    return max(0, size - searched)


def _digest(file: BinaryIO, at: int, blank_bytes: int) -> str:
    """The SHA-256 of the file with zeros (the digit) for `blank_bytes` octets from `at`."""
    digest = hashlib.sha256()
    file.seek(0)
    for start in range(0, at, _CHUNK_BYTES):
        digest.update(file.read(min(_CHUNK_BYTES, at - start)))
    digest.update(b"0" * blank_bytes)
    file.seek(at + blank_bytes)
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()
