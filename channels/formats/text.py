"""Text files: lines, decompression, CSV, and errors with the line number.

Files are read into memory: a trace of ten million packets has 200 MB.
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
"""Maximum of times and counts in the tables."""


_WHOLE = re.compile(r"[-+]?[0-9]{1,40}")


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file, and its path."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The file's name, for the source of a trace."""
        return name_to_text(self.path.name)

    def first_line(self) -> str:
        """Return the first line that is neither blank nor a comment; empty if there is none."""
        return next((line for _, line in self.lines()), "")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield lines with their numbers from 1, without blank lines and comments (`#`)."""
        for number, line in enumerate(self.text.splitlines(), 1):
            stripped = line.strip()
            if stripped and not stripped.startswith("#"):
                yield number, stripped

    def error_at(self, line: int, message: str) -> ChannelError:
        """Return a ChannelError for a line, with a hint if the file ends within that line."""
        cut = not self.text.endswith("\n") and line == len(self.text.splitlines())
        hint = "the file ends within this line: it may be truncated" if cut else None
        return ChannelError(f"{self.path}: line {line}: {message}", hint)

    def empty_error(self) -> ChannelError:
        """Return a ChannelError for a file without content."""
        return ChannelError(f"{self.path}: is empty")


def read_source(path: Path) -> Source:
    """Read a text file, decompressed if it is gzip or xz. Raises ChannelError if it is not text."""
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
        raise ChannelError(f"{path}: is damaged: decompression failed") from None
    except UnicodeDecodeError:
        raise ChannelError(f"{path}: is not a text file") from None
    source = Source(path, text)
    if not source.first_line():
        raise source.empty_error()
    return source


def csv_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each line with its number, the header first. Raises ChannelError if the counts differ."""
    lines = list(source.lines())
    reader = csv.reader((line for _, line in lines), strict=True)
    names: list[str] = []
    for at, (number, _) in enumerate(lines, 1):
        try:
            fields = [field.strip() for field in next(reader)]
        except csv.Error as error:
            raise source.error_at(number, f"is not valid CSV: {error}") from None
        if reader.line_num != at:
            raise source.error_at(number, "a quoted field continues after the end of the line")
        names = names or fields
        if len(fields) != len(names):
            raise source.error_at(number, f"{len(fields)} fields, {len(names)} in the header")
        yield number, fields


def parse_integer(source: Source, line: int, word: str, what: str, max_value: int = INT64_MAX) -> int:
    """Return `word` as an integer from 0 to `max_value`. Raises ChannelError otherwise."""
    if _WHOLE.fullmatch(word) is None:
        raise source.error_at(line, f"{what} is {word[:40]!r}, not a whole number")
    value = int(word)
    if value < 0:
        raise source.error_at(line, f"{what} is {value}; it cannot be negative")
    if value > max_value:
        raise source.error_at(line, f"{what} is {value}; at most {max_value}")
    return value
