"""SideStream's WEB100 text: one `K:` line of names, then one `C:` line per connection, logged when it ended.

Layout: docs/logs.md. What the variables mean is in toolkit/logs/web100_variables.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hindflight.toolkit.logs.model import KernelLog
from hindflight.toolkit.logs.octets import Line, LogFile
from hindflight.toolkit.logs.web100_variables import REQUIRED, kernel_log, timed

_TEXTS = {"PollTime", "LocalAddress", "RemAddress"}
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is SideStream's."""
    return head.startswith(b"K: ") and b" CurCwnd " in head.split(b"\n")[0]


def read(file: LogFile) -> Iterator[KernelLog]:
    """Yield one log per connection."""
    names: list[str] = []
    for line in file.lines():
        kind, *fields = line.text.decode("ascii", "replace").split() or [""]
        if kind == "K:" and line.ended and len(set(fields)) == len(fields) and set(REQUIRED) <= set(fields):
            names = fields
            continue
        log = _connection(names, fields) if kind == "C:" and line.ended else None
        if log is None:
            _left_out(file, line, len(fields), len(names))
        else:
            log.key = line.record
            yield log


def _connection(names: list[str], fields: list[str]) -> KernelLog | None:
    """The connection of a line; None if a field is missing, no number where one has to be, or its time impossible."""
    if not names or len(fields) != len(names):
        return None
    values = dict(zip(names, fields, strict=True))
    if not all(_NUMBER.fullmatch(value) for name, value in values.items() if name not in _TEXTS):
        return None
    numbers = {n: np.array([int(v)], np.int64) for n, v in values.items() if n not in _TEXTS}
    if not timed(numbers).all():
        return None
    return kernel_log((numbers, {n: [v] for n, v in values.items() if n in _TEXTS}))


def _left_out(file: LogFile, line: Line, fields: int, names: int) -> None:
    text = f"a line of {fields} fields where {names} are named was left out"
    file.issues.add(line.record, line.offset, "log_damaged", text)
