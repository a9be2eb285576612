"""What a flight log holds as a whole: its span, its names with their ranges, and the offset of its clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from hindflight.toolkit.flight.model import Samples
from hindflight.toolkit.logs.clock import Clock
from hindflight.toolkit.logs.model import UTC, Numbers

_MAX_PAIRS = 1 << 16


@dataclass(slots=True)
class Range:
    """How many numbers a name has, and between which limits."""

    rows: int = 0
    minimum: float = float("inf")
    maximum: float = float("-inf")


@dataclass(slots=True)
class Overview:
    """Times are as logged."""

    rows: int = 0
    start_ns: int = 0
    end_ns: int = 0
    clock: str = UTC
    ranges: dict[str, Range] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    _differences: list[Numbers] = field(default_factory=list)
    _basis: str = ""

    def add(self, part: Samples) -> None:
        """Take in the next samples."""
        if not len(part.t_ns):
            return
        first, last = int(part.t_ns.min()), int(part.t_ns.max())
        self.start_ns = first if not self.rows else min(first, self.start_ns)
        self.end_ns = max(last, self.end_ns)
        self.rows += len(part.t_ns)
        self.clock = part.clock
        for name, values in part.values.items():
            known = values[np.isfinite(values)]
            if len(known):
                found = self.ranges.setdefault(name, Range())
                found.rows += len(known)
                found.minimum = min(found.minimum, float(known.min()))
                found.maximum = max(found.maximum, float(known.max()))
        for name, texts in part.texts.items():
            self.texts[name] = self.texts.get(name, 0) + sum(text is not None for text in texts)
        if part.utc_ns is not None and sum(map(len, self._differences)) < _MAX_PAIRS:
            known_at = part.utc_ns > 0
            self._differences.append(part.utc_ns[known_at] - part.t_ns[known_at])
            self._basis = part.utc_basis

    def clock_estimate(self) -> Clock | None:
        """Return the offset by the times since 1970 that the log itself knows: their median, and half their spread."""
        differences = np.concatenate([np.zeros(0, np.int64), *self._differences])
        if not len(differences):
            return None
        low, middle, high = np.quantile((differences - differences[0]).astype(np.float64), [0.25, 0.5, 0.75])
        return Clock(
            int(differences[0]) + round(middle), round((high - low) / 2), len(differences), f"{self._basis} in the log"
        )


def overview(parts: Iterable[Samples]) -> Overview:
    """Read `parts` and return what they hold."""
    found = Overview()
    for part in parts:
        found.add(part)
    return found
