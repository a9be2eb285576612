"""The octets of a log file, unpacked from gzip or xz by their first octets; what a cut archive still gives is kept.

Knows no log format.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.logs.model import LogIssue

HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"


class _Decompressor(Protocol):
    @property
    def unused_data(self) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def head_of(path: Path) -> bytes:
    """Return the first octets of the content of `path`; empty where not even the archive's start can be read."""
    with plain_os_errors(f"reading {path}"), path.open("rb") as file:
        packed = file.read(HEAD_BYTES)
    return _unpack(packed)[0][:HEAD_BYTES]


def unpacked(path: Path) -> tuple[bytes, LogIssue | None]:
    """Return the content of `path`, and the issue if its archive is cut or damaged."""
    with plain_os_errors(f"reading {path}"):
        packed = path.read_bytes()
    return _unpack(packed)


def _unpack(packed: bytes) -> tuple[bytes, LogIssue | None]:
    if packed.startswith(_GZIP):
        return _members(packed, lambda: zlib.decompressobj(wbits=31), "gzip")
    if packed.startswith(_XZ):
        return _members(packed, lzma.LZMADecompressor, "xz")
    return packed, None


def _members(packed: bytes, start: Callable[[], _Decompressor], name: str) -> tuple[bytes, LogIssue | None]:
    """Unpack one archive member after another, in steps, so that damage affects only what follows it."""
    content = bytearray()
    rest = packed
    while rest.strip(b"\0"):
        member = start()
        for at in range(0, len(rest), HEAD_BYTES):
            try:
                content += member.decompress(rest[at : at + HEAD_BYTES])
            except (zlib.error, lzma.LZMAError) as error:
                return bytes(content), _damage(content, f"the {name} archive is damaged: {error}")
            if member.eof:
                rest = member.unused_data + rest[at + HEAD_BYTES :]
                break
        else:
            return bytes(content), _damage(content, f"the {name} archive is cut off")
    return bytes(content), None


def _damage(content: bytearray, text: str) -> LogIssue:
    return LogIssue(0, len(content), "archive_damaged", f"{text}; what came before it was kept")
