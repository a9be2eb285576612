"""The octets of a log file in chunks, unpacked by their first octets (gzip, xz, zstd, bzip2), and its lines.

Memory is constant in the size of the file: an archive is unpacked a chunk at a time, and one that unpacks to far more
than any log does is an error. What a cut or damaged archive still gives is kept. Knows no log format.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.logs.issues import Issues

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""U+FEFF in UTF-8, with which programs on Windows begin a text."""
HEAD_BYTES = 1 << 16
CHUNK_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 20
MAX_RATIO = 250
"""An archive may unpack to so many times its size; real logs reach 60."""
RATIO_FREE_BYTES = 1 << 24
"""Up to this size the ratio does not matter."""
_XZ_MEMORY_BYTES = 96 << 20
"""What `xz -9` needs, and some more."""


class Line(NamedTuple):
    """One line without its end. `record` counts from 1, `offset` is in the unpacked file; a cut line lacks its end."""

    record: int
    offset: int
    text: bytes
    ended: bool


class LogFile:
    """A log that is read front to back, any number of times; `issues` collects what was wrong with it.

    A byte order mark is not content; `skipped_bytes` is its length, once the reading has begun.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.skipped_bytes = 0
        self.issues = Issues()

    def head(self) -> bytes:
        """Return the first octets of the content; empty where not even the archive's start can be read."""
        head = b""
        for chunk in self._unpacked(HEAD_BYTES):
            head += chunk
            if len(head) >= HEAD_BYTES:
                break
        self.issues = Issues()
        return head[:HEAD_BYTES].removeprefix(BYTE_ORDER_MARK)

    def chunks(self) -> Iterator[bytes]:
        """Yield the content, unpacked; never an empty chunk. LogError: the archive unpacks to far too much."""
        content = self._unpacked(CHUNK_BYTES)
        head = b""
        for chunk in content:
            head += chunk
            if len(head) >= len(BYTE_ORDER_MARK):
                break
        if head.startswith(BYTE_ORDER_MARK):
            self.skipped_bytes = len(BYTE_ORDER_MARK)
            head = head.removeprefix(BYTE_ORDER_MARK)
        if head:
            yield head
        yield from content

    def lines(self) -> Iterator[Line]:
        """Yield the lines; one that is too long for any log becomes an issue."""
        rest, record, offset, dropped = b"", 1, 0, 0
        for chunk in self.chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            for text in whole:
                if len(text) > MAX_LINE_BYTES:
                    self._too_long(record, offset)
                else:
                    yield Line(record, offset + self.skipped_bytes, text.removesuffix(b"\r"), True)
                record, offset, dropped = record + 1, offset + dropped + len(text) + 1, 0
            if len(rest) > 2 * MAX_LINE_BYTES:  # The line is too long already; it is read to its end and dropped.
                dropped += len(rest) - MAX_LINE_BYTES - 1
                rest = rest[: MAX_LINE_BYTES + 1]
        if len(rest) > MAX_LINE_BYTES:
            self._too_long(record, offset)
        elif rest:
            yield Line(record, offset + self.skipped_bytes, rest, False)

    def _too_long(self, record: int, offset: int) -> None:
        offset += self.skipped_bytes
        self.issues.add(record, offset, "log_damaged", f"a line longer than {MAX_LINE_BYTES} octets was left out")

    def _unpacked(self, step: int) -> Iterator[bytes]:
        with plain_os_errors(f"reading {self.path}"), self.path.open("rb") as file:
            packed = file.read(step)
            packing = next((p for p in _PACKINGS if packed.startswith(p.magic)), None)
            if packing is None:
                while packed:
                    yield packed
                    packed = file.read(step)
                return
            read_bytes, given_bytes = len(packed), 0
            archive = _Archive(packing)
            while packed:
                try:
                    for content in archive.feed(packed, step):
                        given_bytes += len(content)
                        self._check_ratio(given_bytes, read_bytes)
                        yield content
                except _DAMAGE as error:
                    self._damaged(given_bytes, f"the {packing.name} archive is damaged: {error}")
                    return
                packed = file.read(step)
                read_bytes += len(packed)
            if not archive.at_end:
                self._damaged(given_bytes, f"the {packing.name} archive is cut off")

    def _check_ratio(self, given_bytes: int, read_bytes: int) -> None:
        if given_bytes > max(RATIO_FREE_BYTES, MAX_RATIO * read_bytes):
            raise LogError(
                f"{self.name} unpacks to more than {MAX_RATIO} times its size, which no log does",
                "unpack it and give the unpacked file, if it is a log all the same",
            )

    def _damaged(self, offset: int, text: str) -> None:
        self.issues.add(0, offset, "archive_damaged", f"{text}; what came before it was kept")


class _Decompressor(Protocol):
    """What gzip's, xz's, bzip2's and zstd's have in common."""

    @property
    def unused_data(self) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        content = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self.needs_input = not self._zlib.unconsumed_tail and len(content) < max_length
        return content


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


class _ZstdDamageError(Exception):
    """zstd's error under a name that can be caught without importing zstd."""


class _Zstd:
    """zstd's decompressor, imported when it is needed."""

    def __init__(self) -> None:
        self._module = _zstd()
        self._zstd = self._module.ZstdDecompressor()

    @property
    def unused_data(self) -> bytes:
        return bytes(self._zstd.unused_data)

    @property
    def eof(self) -> bool:
        return bool(self._zstd.eof)

    @property
    def needs_input(self) -> bool:
        return bool(self._zstd.needs_input)

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        try:
            return bytes(self._zstd.decompress(data, max_length))
        except self._module.ZstdError as error:
            raise _ZstdDamageError(str(error)) from error


_DAMAGE = (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError, _ZstdDamageError)


class _Packing(NamedTuple):
    name: str
    magic: bytes
    start: Any


_PACKINGS = (
    _Packing("gzip", b"\x1f\x8b", _Gzip),
    _Packing("xz", b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)),
    _Packing("zstd", b"\x28\xb5\x2f\xfd", _Zstd),
    _Packing("bzip2", b"BZh", bz2.BZ2Decompressor),
)


class _Archive:
    """One member after another; octets of zero between members are padding."""

    def __init__(self, packing: _Packing) -> None:
        self._packing = packing
        self._member: _Decompressor | None = None

    @property
    def at_end(self) -> bool:
        """Whether no member is open."""
        return self._member is None

    def feed(self, packed: bytes, step: int) -> Iterator[bytes]:
        """Yield what `packed` adds, at most `step` octets at a time."""
        while True:
            if self._member is None:
                packed = packed.lstrip(b"\0")
                if not packed:
                    return
                self._member = self._packing.start()
            content = self._member.decompress(packed, step)
            packed = b""
            if content:
                yield content
            if self._member.eof:
                packed, self._member = self._member.unused_data, None
            elif self._member.needs_input:
                return
