"""What is known about each connection of a log before its rows are written: who, when, and how far it had got when.

Memory is bounded per connection: progress is kept in at most a few thousand points.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from hindflight.toolkit.logs.issues import Issues
from hindflight.toolkit.logs.model import UTC, Connection, KernelLog, Numbers

MAX_POINTS = 4096


@dataclass(slots=True)
class Survey:
    """One connection of a log. Times are as logged; `clock` says what they count from."""

    connection: Connection | None
    clock: str = UTC
    sends: bool = True
    start_ns: int = 0
    end_ns: int = 0
    rows: int = 0
    first_una: int | None = None
    issues: Issues = field(default_factory=Issues)
    _t_ns: list[Numbers] = field(default_factory=list)
    _una: list[Numbers] = field(default_factory=list)

    def add(self, part: KernelLog) -> None:
        """Take in the next part."""
        self.start_ns = part.start_ns if not self.rows else min(self.start_ns, part.start_ns)
        self.end_ns = max(self.end_ns, part.end_ns)
        self.rows += part.rows
        self.clock, self.sends, self.first_una = part.clock, part.sends, part.first_una
        for issue in part.issues:
            self.issues.add(issue.record, issue.offset, issue.kind, issue.text)
        if "snd_una" in part.columns:
            una = part.columns["snd_una"].data[part.lead :]
            moved = np.flatnonzero(np.diff(una, prepend=una[0] - 1))
            moved = np.union1d(moved, [len(una) - 1])
            self._t_ns.append(part.t_ns[part.lead :][moved])
            self._una.append(una[moved])
            if sum(map(len, self._una)) > 2 * MAX_POINTS:
                t_ns, una = self.progress()
                self._t_ns, self._una = [t_ns[::2]], [una[::2]]

    def progress(self) -> tuple[Numbers, Numbers]:
        """Return when the log had how much acknowledged, at times when that changed; as `snd_una` of its parts."""
        if not self._una:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate(self._t_ns), np.concatenate(self._una)


def survey(parts: Iterable[KernelLog]) -> dict[Hashable, Survey]:
    """Read `parts` and return what they say about each connection, by its key."""
    found: dict[Hashable, Survey] = {}
    for part in parts:
        found.setdefault(part.key, Survey(part.connection)).add(part)
    return found
