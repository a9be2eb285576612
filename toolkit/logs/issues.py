"""What was wrong with a log: the first of each kind one by one, the rest counted, so that memory stays bounded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

LISTED = 100
"""So many issues of one kind are listed one by one."""


@dataclass(frozen=True, slots=True)
class LogIssue:
    """A row of `issues` that lacks only its input."""

    record: int
    offset: int
    kind: str
    text: str


class Issues:
    """Issues of one file in the order in which they were found."""

    def __init__(self) -> None:
        self._listed: list[LogIssue] = []
        self._found: Counter[str] = Counter()

    def add(self, record: int, offset: int, kind: str, text: str) -> None:
        """Note that `record` (from 1; 0 is the file) at `offset` (octets, unpacked) is damaged or suspect."""
        self._found[kind] += 1
        if self._found[kind] <= LISTED:
            self._listed.append(LogIssue(record, offset, kind, text))

    def count(self) -> int:
        """Return how many were found."""
        return self._found.total()

    def counts(self) -> dict[str, int]:
        """Return how many were found of each kind."""
        return dict(self._found)

    def rows(self) -> list[LogIssue]:
        """Return the issues; the last ones count those that are not listed."""
        more = [
            LogIssue(0, 0, kind, f"{count - LISTED} more of this kind")
            for kind, count in self._found.items()
            if count > LISTED
        ]
        return self._listed + more
