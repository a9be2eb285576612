"""A log in memory, as tests look at it, and its rows as a snaplog is written from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs import KernelLog, LogReading, log_kind
from hindflight.toolkit.logs.web100_writer import Row


def open_log(path: Path) -> LogReading:
    """Open the log in `path`. LogError: it is no log of KINDS."""
    kind = log_kind(path)
    if kind is None:
        raise LogError(f"{path} is no log")
    return LogReading(path, kind)


def read_log(path: Path) -> list[KernelLog]:
    """Return all parts of the log in `path`; the first also has the issues of the file."""
    reading = open_log(path)
    parts = list(reading.parts())
    parts[0].issues.extend(reading.issues())
    return parts


def rows_of_log(log: KernelLog) -> Iterator[Row]:
    """Yield the snapshots of a log that was read from a snaplog."""
    for at in range(log.lead, len(log.t_ns)):
        numbers = {name: int(values[at]) for name, values in log.numbers.items()}
        yield numbers | {name: texts[at] for name, texts in log.texts.items()}
