"""A log in memory, as tests look at it."""

from __future__ import annotations

from pathlib import Path

from hindflight.toolkit.logs import KernelLog, open_log


def read_log(path: Path) -> list[KernelLog]:
    """Return all parts of the log in `path`; the first also has the issues of the file."""
    reading = open_log(path)
    parts = list(reading.parts())
    parts[0].issues.extend(reading.issues())
    return parts
