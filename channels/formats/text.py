"""A text file in lines, plain or compressed, as CSV where it is one, and errors that name the line.

Knows no format. What is read here is small enough to be held whole: a trace of ten million packets is 200 MB.
"""

from __future__ import annotations

import csv
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hindflight.toolkit.errors import ChannelError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.text import name_to_text

INT64_MAX = 2**63 - 1
"""What our tables hold of times and of counts."""


_WHOLE = re.compile(r"[-+]?[0-9]{1,40}")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text and where it came from."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The file's name, for the source of a trace."""
        return name_to_text(self.path.name)

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


def csv_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line with its number, the header first; ChannelError for a line that does not match it."""
    lines = list(source.lines())
    reader = csv.reader((line for _, line in lines), strict=True)
    names: list[str] = []
    for at, (number, _) in enumerate(lines, 1):
        try:
            fields = [field.strip() for field in next(reader)]
        except csv.Error as error:
            raise source.wrong(number, f"is no CSV: {error}") from None
        if reader.line_num != at:
            raise source.wrong(number, "a quoted field goes on past the end of the line")
        names = names or fields
        if len(fields) != len(names):
            raise source.wrong(number, f"{len(fields)} fields, {len(names)} in the header")
        yield number, fields


def whole(source: Source, line: int, word: str, what: str, most: int = INT64_MAX) -> int:
    """A whole number that is not negative and at most `most`."""
    if _WHOLE.fullmatch(word) is None:
        raise source.wrong(line, f"{what} is {word[:40]!r}, not a whole number")
    value = int(word)
    if value < 0:
        raise source.wrong(line, f"{what} is {value}; it cannot be negative")
    if value > most:
        raise source.wrong(line, f"{what} is {value}; at most {most}")
    return value
