"""What kernel logs and flight logs share: a kind recognised by the first octets of a file, and the reading of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.issues import LogIssue
from hindflight.toolkit.logs.octets import LogFile

Part = TypeVar("Part")


class Kind(NamedTuple, Generic[Part]):
    """A kind of log: its label, whether a file begins like one, and how it is read."""

    label: str
    recognises: Callable[[bytes], bool]
    read: Callable[[LogFile], Iterator[Part]]
    has_record: Callable[[Part], bool] = lambda _: True
    """Whether a part holds a whole record."""


class Reading(Generic[Part]):
    """A log of a known kind; `parts` can be read any number of times."""

    def __init__(self, path: Path, kind: str, kinds: Mapping[str, Kind[Part]]) -> None:
        self.kind = kind
        self.file = LogFile(path)
        self._kind = kinds[kind]

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the log in the order of the file. LogError: it holds no whole record."""
        self.file = LogFile(self.file.path)
        found = False
        for part in self._kind.read(self.file):
            found |= self._kind.has_record(part)
            yield part
        if not found:
            reasons = "; ".join(f"record {i.record}, octet {i.offset}: {i.text}" for i in self.file.issues.rows()[:1])
            raise LogError(f"{self.file.name} holds no whole record of {self._kind.label}", reasons or None)

    def issues(self) -> list[LogIssue]:
        """Return what was wrong with the file, as far as it has been read; that of a part is in the part."""
        return self.file.issues.rows()


def kind_in(kinds: Mapping[str, Kind[Part]], path: Path) -> str | None:
    """Return the key of the first of `kinds` that recognises the file in `path`; None if none does."""
    head = LogFile(path).head()
    return next((name for name, kind in kinds.items() if kind.recognises(head)), None)
