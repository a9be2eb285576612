"""TCP_INFO over time as CSV: a header of Linux's field names, then integers; a row where anything changed.

Columns: docs/logs.md; what they mean is in toolkit/logs/tcp_info.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.model import BATCH_ROWS, KernelLog, Numbers
from hindflight.toolkit.logs.octets import Line, LogFile
from hindflight.toolkit.logs.tcp_info import UNLIMITED, kernel_log, limit_of

REQUIRED = ("t_ns", "ca_state", "snd_mss", "snd_cwnd", "snd_ssthresh")
_UNLIMITED_RATE = b"18446744073709551615"


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a CSV."""
    names = head.split(b"\n")[0].strip().split(b",")
    return b"t_ns" in names and b"snd_cwnd" in names


def read(file: LogFile) -> Iterator[KernelLog]:
    """Yield the parts of the series. LogError: a needed column is missing."""
    lines = file.lines()
    header = next(lines, Line(1, 0, b"", False))
    names = header.text.decode("ascii", "replace").strip().split(",")
    missing = [column for column in REQUIRED if column not in names]
    if missing:
        raise LogError(f"{file.name} is a TCP_INFO series without {', '.join(missing)}")
    if len(set(names)) != len(names):
        raise LogError(f"{file.name} names a column twice")
    before: KernelLog | None = None
    for rows in _whole_rows(file, lines, len(names)):
        numbers = _numbers(file, names, rows)
        if len(numbers["t_ns"]):
            before = kernel_log(numbers, {}, before)
            yield before
            before = before.last()


def _whole_rows(file: LogFile, lines: Iterator[Line], fields: int) -> Iterator[list[Line]]:
    """The lines that hold as many integers as the header has names; a last line without its end may be cut."""
    number = rb"(?:-?[0-8]?\d{1,18}|" + _UNLIMITED_RATE + rb")"
    whole = re.compile(number + rb"(?:," + number + rb"){%d}" % (fields - 1))
    rows: list[Line] = []
    for line in lines:
        if line.ended and whole.fullmatch(line.text):
            rows.append(line)
        else:
            text = f"a row that is not {fields} integers was left out"
            file.issues.add(line.record, line.offset, "log_damaged", text)
        if len(rows) == BATCH_ROWS:
            yield rows
            rows = []
    if rows:
        yield rows


def _numbers(file: LogFile, names: list[str], rows: list[Line]) -> dict[str, Numbers]:
    """The rows as columns, without those that hold a number that the kernel cannot report."""
    import pyarrow as pa
    from pyarrow import csv

    content = b"".join(row.text + b"\n" for row in rows).replace(_UNLIMITED_RATE, b"%d" % UNLIMITED)
    table = csv.read_csv(
        pa.BufferReader(content),
        # A thread of Arrow that is still there when Python ends aborts the process.
        read_options=csv.ReadOptions(column_names=names, use_threads=False),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.int64())),
    )
    numbers = {name: table[name].to_numpy() for name in names}
    possible = np.ones(len(rows), np.bool_)
    for name, values in numbers.items():
        possible &= (values >= (0 if name == "t_ns" else UNLIMITED)) & (values <= limit_of(name))
    for at in np.flatnonzero(~possible):
        text = "a row with a number that no kernel reports was left out"
        file.issues.add(rows[at].record, rows[at].offset, "log_damaged", text)
    return {name: values[possible] for name, values in numbers.items()}
