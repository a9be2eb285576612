"""A text file in lines, plain or compressed, and errors that name the line.

Knows no format. What is read here is small enough to be held whole: a trace of ten million packets is 200 MB.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ChannelError
from toolkit.files import plain_os_errors


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text and where it came from."""

    path: Path
    text: str

    def first_line(self) -> str:
        """The first line that is not blank and no comment; empty if there is none."""
        return next((line for _, line in self.lines()), "")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers from 1, without blank ones and comments (`#`)."""
        for number, line in enumerate(self.text.splitlines(), 1):
            stripped = line.strip()
            if stripped and not stripped.startswith("#"):
                yield number, stripped

    def wrong(self, line: int, message: str) -> ChannelError:
        """The error to raise for a line; with a hint if the file was cut off in the midst of it."""
        cut = not self.text.endswith("\n") and line == len(self.text.splitlines())
        hint = "the file ends in the midst of this line: it may have been cut off" if cut else None
        return ChannelError(f"{self.path}: line {line}: {message}", hint)

    def empty(self) -> ChannelError:
        """The error to raise for a file without content."""
        return ChannelError(f"{self.path}: is empty")


def read_source(path: Path) -> Source:
    """Read a text file, unpacked if gzip or xz; ChannelError if it is none."""
    if path.is_dir():
        raise ChannelError(f"{path}: is a folder, not a channel trace")
    if not path.exists():
        raise ChannelError(f"{path}: there is no such file")
    with plain_os_errors(f"reading {path}"):
        octets = path.read_bytes()
    try:
        if octets.startswith(b"\x1f\x8b"):
            octets = gzip.decompress(octets)
        elif octets.startswith(b"\xfd7zXZ\x00"):
            octets = lzma.decompress(octets)
        text = octets.decode()
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError):
        raise ChannelError(f"{path}: is damaged: it cannot be unpacked") from None
    except UnicodeDecodeError:
        raise ChannelError(f"{path}: is no text") from None
    source = Source(path, text)
    if not source.first_line():
        raise source.empty()
    return source


def whole(source: Source, line: int, word: str, what: str) -> int:
    """A whole number that is not negative."""
    try:
        value = int(word)
    except ValueError:
        raise source.wrong(line, f"{what} is {word!r}, not a whole number") from None
    if value < 0:
        raise source.wrong(line, f"{what} is {value}; it cannot be negative")
    return value
