"""Kernel logs: what the sender's kernel said about a connection becomes `instruments` and `variables`.

`open_log` recognises a file by its content, never by its name, unpacking it on the way. Its parts come one by one, in
constant memory; they name no flow yet, `join` finds it. Each kind is a module with `recognises` (the first octets of a
file) and `read` (the parts); what the values mean is shared: web100_variables, tcp_info.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs import (
    iperf3,
    ndt7,
    sidestream,
    ss,
    tcp_info_csv,
    tcp_info_jsonl,
    tcp_probe,
    web100,
)
from hindflight.toolkit.logs.issues import LogIssue
from hindflight.toolkit.logs.model import Connection, KernelLog
from hindflight.toolkit.logs.octets import LogFile

__all__ = ["KINDS", "Connection", "KernelLog", "LogIssue", "LogKind", "LogReading", "log_kind", "open_log"]


class LogKind(NamedTuple):
    """A kind of log: its label, whether a file begins like one, and how it is read."""

    label: str
    recognises: Callable[[bytes], bool]
    read: Callable[[LogFile], Iterator[KernelLog]]


KINDS = {
    "web100": LogKind("WEB100 snaplog", web100.recognises, web100.read),
    "sidestream": LogKind("SideStream", sidestream.recognises, sidestream.read),
    "tcp_info": LogKind("TCP_INFO as CSV", tcp_info_csv.recognises, tcp_info_csv.read),
    "tcp_info_jsonl": LogKind("M-Lab tcp-info JSONL", tcp_info_jsonl.recognises, tcp_info_jsonl.read),
    "ndt7": LogKind("ndt7 JSON", ndt7.recognises, ndt7.read),
    "iperf3": LogKind("iperf3 JSON", iperf3.recognises, iperf3.read),
    "tcp_probe": LogKind("tcp_probe", tcp_probe.recognises, tcp_probe.read),
    "ss": LogKind("ss -ti", ss.recognises, ss.read),
}
"""Every kind by the name that `hindflight ingest` prints; the first that recognises a file reads it."""


class LogReading:
    """A recognised log; `parts` can be read any number of times."""

    def __init__(self, path: Path, kind: str) -> None:
        self.kind = kind
        self.file = LogFile(path)

    def parts(self) -> Iterator[KernelLog]:
        """Yield the parts of the log in the order of the file. LogError: it holds no whole record."""
        self.file = LogFile(self.file.path)
        found = False
        for part in KINDS[self.kind].read(self.file):
            found = True
            yield part
        if not found:
            reasons = "; ".join(f"record {i.record}, octet {i.offset}: {i.text}" for i in self.file.issues.rows()[:1])
            raise LogError(f"{self.file.name} holds no whole record of {KINDS[self.kind].label}", reasons or None)

    def issues(self) -> list[LogIssue]:
        """Return what was wrong with the file, as far as it has been read; that of a part is in the part."""
        return self.file.issues.rows()


def log_kind(path: Path) -> str | None:
    """Return the kind of the log in `path`, a key of KINDS; None if it is no log of these."""
    head = LogFile(path).head()
    return next((name for name, kind in KINDS.items() if kind.recognises(head)), None)


def open_log(path: Path) -> LogReading:
    """Open the log in `path`. LogError: it is no log of KINDS."""
    kind = log_kind(path)
    if kind is None:
        raise LogError(
            f"{path.name} is no kernel log that we know", f"known: {', '.join(k.label for k in KINDS.values())}"
        )
    return LogReading(path, kind)
