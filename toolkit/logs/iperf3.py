"""iperf3's JSON output (`--json`, `--json-stream`): a sample of each stream per interval, as one end saw it.

iperf3 reports cwnd in bytes and whole seconds of the start of the test, newer versions milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from hindflight.toolkit.logs.addresses import plain_address
from hindflight.toolkit.logs.collector import Collector
from hindflight.toolkit.logs.flat_objects import FlatObject, flat_objects
from hindflight.toolkit.logs.model import Connection, KernelLog, Masked, Numbers, continued, null_where
from hindflight.toolkit.logs.octets import LogFile
from hindflight.toolkit.logs.tcp_info import possible
from hindflight.toolkit.schema import PHASES

_US = 1000
_MAX_END_S = 10**8
_LIMIT = (1 << 52) - 1


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is such an output."""
    start = head.lstrip()
    return start.startswith(b"{") and b'"connected"' in start and b'"local_port"' in start


class _Test:
    """What the head of the output says: when the test began, and which socket is which connection."""

    def __init__(self) -> None:
        self.start_ns: int | None = None
        self.connections: dict[int, Connection] = {}
        self.retransmits: dict[int, int] = {}

    def follow(self, value: dict[str, Any]) -> None:
        """Keep what an object of the head says."""
        seconds, ms = value.get("timesecs"), value.get("timemillisecs")
        if self.start_ns is None and isinstance(seconds, int) and 0 < seconds < 1 << 31:
            exact = isinstance(ms, int) and ms // 1000 == seconds
            self.start_ns = int(ms) * 10**6 if exact and isinstance(ms, int) else seconds * 10**9
        local, remote = (plain_address(str(value.get(name))) for name in ("local_host", "remote_host"))
        numbers = [value.get(name) for name in ("socket", "local_port", "remote_port")]
        if local is not None and remote is not None and all(isinstance(n, int) and 0 <= n <= 0xFFFF for n in numbers):
            socket, local_port, remote_port = (int(n or 0) for n in numbers)
            self.connections.setdefault(socket, Connection(local, local_port, remote, remote_port))


def read(file: LogFile) -> Iterator[KernelLog]:
    """Yield the parts of the log, one connection each; UDP tests have none."""
    test = _Test()
    collector = Collector(_built)
    for found in flat_objects(file):
        if b'"server_output_json"' in found.before:
            break
        if found.value is None:
            if b'"end"' not in found.before:
                _left_out(file, found)
        elif "socket" in found.value and "start" in found.value and "seconds" in found.value:
            record = _record(test, found.value)
            if record is not None:
                yield from collector.add(*record)
            elif "snd_cwnd" in found.value:
                _left_out(file, found)
        else:
            test.follow(found.value)
    yield from collector.rest()


def _left_out(file: LogFile, found: FlatObject) -> None:
    file.issues.add(found.record, found.offset, "log_damaged", "an interval that is not whole was left out")


def _record(test: _Test, sample: dict[str, Any]) -> tuple[Connection, dict[str, int]] | None:
    """A sample at the end of its interval; None if it has no cwnd (a receiver's), or is damaged."""
    end_s, socket = sample.get("end"), sample.get("socket")
    connection = test.connections.get(socket) if isinstance(socket, int) else None
    if connection is None or test.start_ns is None or not isinstance(end_s, int | float) or not 0 <= end_s < _MAX_END_S:
        return None
    numbers = {
        name: value
        for name, value in sample.items()
        if isinstance(value, int) and not isinstance(value, bool) and name not in ("socket", "start", "end", "seconds")
    }
    if "snd_cwnd" not in numbers or not all(0 <= value <= _LIMIT for value in numbers.values()):
        return None
    numbers["t_ns"] = test.start_ns + round(end_s * 1e9)
    if "retransmits" in numbers and isinstance(socket, int):
        test.retransmits[socket] = test.retransmits.get(socket, 0) + numbers["retransmits"]
        numbers["total_retransmits"] = test.retransmits[socket]
    return (connection, numbers) if possible({"t_ns": numbers["t_ns"]}) else None


def _built(
    key: Hashable, numbers: dict[str, Numbers], texts: dict[str, list[str]], before: KernelLog | None
) -> KernelLog:
    t_ns = numbers.pop("t_ns")
    numbers, texts, lead = continued(numbers, texts, before)
    if before is not None and lead:
        t_ns = np.concatenate((before.t_ns[-1:], t_ns))
    columns: dict[str, Masked] = {"cwnd_bytes": _column(numbers["snd_cwnd"])}
    for column, name, unit in (("srtt_ns", "rtt", _US), ("rttvar_ns", "rttvar", _US)):
        if name in numbers:
            columns[column] = null_where(numbers[name] * unit, numbers[name] == 0)
    if "snd_wnd" in numbers:
        columns["snd_wnd_bytes"] = _column(numbers["snd_wnd"])
    if "total_retransmits" in numbers:
        columns["retransmissions"] = _column(numbers["total_retransmits"])
    phase = np.full(len(t_ns), PHASES.index("unknown"), np.int64)
    connection = key if isinstance(key, Connection) else None
    return KernelLog("tcp_info", t_ns, columns, phase, numbers, texts, connection, lead=lead).in_order()


def _column(values: Numbers) -> Masked:
    return null_where(values, np.zeros(len(values), np.bool_))
