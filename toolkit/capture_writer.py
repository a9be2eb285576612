"""Writes the rows of a capture into a workspace, batch by batch.

Separate from toolkit/ingest.py, so that reading a capture does not load the readers of logs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.toolkit.capture import CaptureStream
from hindflight.toolkit.workspace import Transaction

if TYPE_CHECKING:
    import pyarrow as pa

CAPTURE_TABLES = ("segments", "flows", "events", "instruments", "others", "issues")

Progress = Callable[[Path, float], None]
"""Called with the input and the share of it that has been read, from 0 to 1."""


def silent(_path: Path, _share: float) -> None:
    """Report no progress."""


def write_capture(
    stream: CaptureStream, transaction: Transaction, tables: Collection[str], progress: Progress = silent
) -> dict[str, int]:
    """Write the rows of a capture for those `tables` batch by batch, and return how many rows each table has."""
    sources = {
        "flows": stream.flows,
        "events": stream.events,
        "instruments": stream.instruments,
        "others": stream.others,
        "issues": stream.issues,
    }
    rows = dict.fromkeys(CAPTURE_TABLES, 0)
    for batch in stream.batches():
        rows["segments"] += batch.num_rows
        if "segments" in tables and batch.num_rows:
            transaction.writer("segments").write(batch)
        for name, source in sources.items():
            rows[name] += _write(transaction, name, source, tables)
        done, total = stream.progress()
        progress(stream.path, done / total if total else 0.0)
    for name, source in sources.items():
        rows[name] += _write(transaction, name, source, tables)
    progress(stream.path, 1.0)
    return rows


def _write(transaction: Transaction, name: str, source: Callable[[], pa.Table], tables: Collection[str]) -> int:
    data = source()
    if data.num_rows and name in tables:
        transaction.write(name, data)
    return int(data.num_rows)
