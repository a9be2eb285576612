"""Kernel logs: WEB100 snaplogs, SideStream lines and TCP_INFO series become `instruments` and `variables`.

`read_log` turns a file into `KernelLog`s, one per connection, that name no flow yet; `join` finds the flow.
The formats are recognised by content, never by name; gzip and xz are unpacked on the way.
"""

from __future__ import annotations

from pathlib import Path

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs import sidestream, tcp_info, web100
from hindflight.toolkit.logs.model import Connection, KernelLog, LogIssue
from hindflight.toolkit.logs.octets import head_of, unpacked

__all__ = ["Connection", "KernelLog", "LogIssue", "log_kind", "read_log"]

_RECOGNISE = {"web100": web100.recognises, "sidestream": sidestream.recognises, "tcp_info": tcp_info.recognises}
_READ = {"web100": web100.read, "sidestream": sidestream.read, "tcp_info": tcp_info.read}


def log_kind(path: Path) -> str | None:
    """Return "web100", "sidestream" or "tcp_info" by the file's first octets; None if it is no log of these."""
    head = head_of(path)
    return next((kind for kind, recognises in _RECOGNISE.items() if recognises(head)), None)


def read_log(path: Path) -> list[KernelLog]:
    """Read the log in `path`, one KernelLog per connection; damaged records are skipped and listed in `issues`.

    LogError: the file is no log of the three kinds, or holds no whole record.
    """
    kind = log_kind(path)
    if kind is None:
        raise LogError(
            f"{path.name} is no kernel log that we know", "known: WEB100 snaplog, SideStream, TCP_INFO as CSV"
        )
    content, damage = unpacked(path)
    logs = _READ[kind](content, path.name)
    if damage is not None:
        logs[0].issues.append(damage)
    return logs
