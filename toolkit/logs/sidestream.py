"""SideStream's WEB100 text: one `K:` line of names, then one `C:` line per connection, logged when it ended.

Layout: docs/logs.md. What the variables mean is in toolkit/logs/web100_variables.py.
"""

from __future__ import annotations

import numpy as np

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.model import KernelLog, LogIssue
from hindflight.toolkit.logs.web100_variables import kernel_log

_TEXTS = {"PollTime", "LocalAddress", "RemAddress"}


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is SideStream's."""
    return head.startswith(b"K: ") and b" CurCwnd " in head.split(b"\n")[0]


def read(content: bytes, name: str) -> list[KernelLog]:
    """Read the SideStream log `content` of file `name`. LogError: it holds no whole line."""
    logs: list[KernelLog] = []
    issues: list[LogIssue] = []
    names: list[str] = []
    offset = 0
    for record, raw in enumerate(content.splitlines(keepends=True), 1):
        kind, *fields = raw.decode("ascii", "replace").split()
        if kind == "K:":
            names = fields
        elif kind == "C:" and raw.endswith(b"\n") and len(fields) == len(names) and _all_numbers(names, fields):
            logs.append(_connection(names, fields, name))
        else:
            text = f"a line of {len(fields)} fields where {len(names)} are named was left out"
            issues.append(LogIssue(record, offset, "log_damaged", text))
        offset += len(raw)
    if not logs:
        raise LogError(f"{name} holds no whole connection")
    logs[0].issues.extend(issues)
    return logs


def _all_numbers(names: list[str], fields: list[str]) -> bool:
    return all(field.lstrip("-").isdecimal() for name, field in zip(names, fields, strict=True) if name not in _TEXTS)


def _connection(names: list[str], fields: list[str], name: str) -> KernelLog:
    values = dict(zip(names, fields, strict=True))
    numbers = {n: np.array([int(v)], np.int64) for n, v in values.items() if n not in _TEXTS}
    return kernel_log(numbers, {n: [v] for n, v in values.items() if n in _TEXTS}, name)
