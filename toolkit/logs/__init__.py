"""Kernel logs: what the sender's kernel said about a connection becomes `instruments` and `variables`.

`log_kind` recognises a file by its content, never by its name, unpacking it on the way. Its parts come one by one, in
constant memory; they name no flow yet, `join` finds it. Each kind is a module with `recognises` (the first octets of a
file) and `read` (the parts); what the values mean is shared: web100_variables, tcp_info.
"""

from __future__ import annotations

from pathlib import Path

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
from hindflight.toolkit.logs.reading import Kind, Reading, kind_in

__all__ = ["KINDS", "Connection", "KernelLog", "LogIssue", "LogReading", "log_kind"]


KINDS: dict[str, Kind[KernelLog]] = {
    "web100": Kind("WEB100 snaplog", web100.recognises, web100.read),
    "sidestream": Kind("SideStream", sidestream.recognises, sidestream.read),
    "tcp_info": Kind("TCP_INFO as CSV", tcp_info_csv.recognises, tcp_info_csv.read),
    "tcp_info_jsonl": Kind("M-Lab tcp-info JSONL", tcp_info_jsonl.recognises, tcp_info_jsonl.read),
    "ndt7": Kind("ndt7 JSON", ndt7.recognises, ndt7.read),
    "iperf3": Kind("iperf3 JSON", iperf3.recognises, iperf3.read),
    "tcp_probe": Kind("tcp_probe", tcp_probe.recognises, tcp_probe.read),
    "ss": Kind("ss -ti", ss.recognises, ss.read),
}
"""Every kind by the name that `hindflight ingest` prints; the first that recognises a file reads it."""


class LogReading(Reading[KernelLog]):
    """A kernel log of a kind of KINDS."""

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(path, kind, KINDS)


def log_kind(path: Path) -> str | None:
    """Return the kind of the log in `path`, a key of KINDS; None if it is no log of these."""
    return kind_in(KINDS, path)
