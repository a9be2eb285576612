"""Groups records that come one by one into parts of logs, one connection each. Knows no file format."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Protocol

import numpy as np

from hindflight.toolkit.logs.model import BATCH_ROWS, KernelLog, Numbers


class Build(Protocol):
    """Makes a part of a log; `before` is the part before it of the same key, reduced to its last row."""

    def __call__(  # noqa: D102 - the class says it
        self, key: Hashable, numbers: dict[str, Numbers], texts: dict[str, list[str]], before: KernelLog | None
    ) -> KernelLog: ...


class Collector:
    """Records by key. A number that a record lacks and others of its part have is 0, or its value in `absent`.

    The numbers of `absent` are in every part.
    """

    def __init__(self, build: Build, absent: Mapping[str, int] | None = None) -> None:
        self._build = build
        self._absent = absent or {}
        self._rows: dict[Hashable, list[tuple[Mapping[str, int], Mapping[str, str]]]] = {}
        self._before: dict[Hashable, KernelLog] = {}
        self._count = 0

    def add(
        self, key: Hashable, numbers: Mapping[str, int], texts: Mapping[str, str] | None = None
    ) -> Iterator[KernelLog]:
        """Add a record of connection `key`; yield the parts if there are enough records for them."""
        self._rows.setdefault(key, []).append((numbers, texts or {}))
        self._count += 1
        if self._count >= BATCH_ROWS:
            yield from self.rest()

    def rest(self) -> Iterator[KernelLog]:
        """Yield the parts of all records that are still here."""
        rows, self._rows, self._count = self._rows, {}, 0
        for key, records in rows.items():
            names = dict.fromkeys(self._absent) | dict.fromkeys(name for numbers, _ in records for name in numbers)
            labels = dict.fromkeys(name for _, texts in records for name in texts)
            columns = {
                name: np.array([numbers.get(name, self._absent.get(name, 0)) for numbers, _ in records], np.int64)
                for name in names
            }
            log = self._build(
                key,
                columns,
                {name: [texts.get(name, "") for _, texts in records] for name in labels},
                self._before.get(key),
            )
            log.key = key
            self._before[key] = log.last()
            yield log
