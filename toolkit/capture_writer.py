"""Writes the rows of a capture into a workspace, batch by batch.

Separate from toolkit/ingest.py, so that reading a capture does not load the readers of logs.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
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
    """Write the rows of a capture for those `tables` batch by batch, and return how many rows each table has.

    A second thread reads the next batch while this one writes.
    """
    rows = dict.fromkeys(CAPTURE_TABLES, 0)
    for part in _read_ahead(stream):
        for name, data in part.items():
            rows[name] += data.num_rows
            if data.num_rows and name in tables:
                transaction.writer(name).write(data)
        done, total = stream.progress()
        progress(stream.path, done / total if total else 0.0)
    progress(stream.path, 1.0)
    return rows


_Part = dict[str, "pa.Table | pa.RecordBatch"]

_WAIT_S = 0.1
"""Time after which a wait looks for signals, or for a reader or a writer that has gone."""

_END_S = 0.5
"""Time in which a reader ends that is not needed any more, unless it waits for a pipe."""


def _read_ahead(stream: CaptureStream) -> Iterator[_Part]:
    """Yield the new rows of each table, batch by batch, while a thread reads the batch after it."""
    parts: queue.Queue[_Part | BaseException | None] = queue.Queue(maxsize=1)
    gone = threading.Event()

    def put(part: _Part | BaseException | None) -> None:
        while not gone.is_set():
            with suppress(queue.Full):
                parts.put(part, timeout=_WAIT_S)
                return

    def read() -> None:
        try:
            for part in _parts(stream):
                put(part)
                if gone.is_set():
                    return
            put(None)
        except BaseException as error:  # Raised again by the thread that writes.
            put(error)

    reader = threading.Thread(target=read, name="reader", daemon=True)
    reader.start()
    try:
        while True:
            try:
                part = parts.get(timeout=_WAIT_S)
            except queue.Empty:
                continue
            if part is None:
                return
            if isinstance(part, BaseException):
                raise part
            yield part
    finally:
        gone.set()
        # A reader that outlives the interpreter fails in the middle of its batch.
        reader.join(_END_S)


def _parts(stream: CaptureStream) -> Iterator[_Part]:
    sources = {
        "flows": stream.flows,
        "events": stream.events,
        "instruments": stream.instruments,
        "others": stream.others,
        "issues": stream.issues,
    }
    for batch in stream.batches():
        yield {"segments": batch, **{name: source() for name, source in sources.items()}}
    yield {name: source() for name, source in sources.items()}
