"""tcp_probe: the old module's /proc/net/tcpprobe, and the tracepoint as trace-cmd, ftrace and perf print it.

One line per segment that a traced socket received, with the windows in segments before the segment counted. The
times count from the start of the probe or of the machine, unless the trace used a wall clock.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.logs.addresses import endpoint
from hindflight.toolkit.logs.collector import Collector
from hindflight.toolkit.logs.model import UTC, Connection, KernelLog, Numbers, continued, null_where
from hindflight.toolkit.logs.octets import Line, LogFile
from hindflight.toolkit.schema import PHASES
from hindflight.toolkit.serial import unwrapped

STARTED = "the start of the machine or of the probe"
"""`clock` of times that are not since 1970."""

_MAX_HEADER_BYTES = 60
_UNSET_PKTS = 0x7FFFFFFF
_WALL_CLOCK_S = 946_684_800
"""Times from 2000 on are of a wall clock; no machine runs that long."""
_EVENT = re.compile(rb"\s(\d{1,10})\.(\d{6,9}):\s+(?:tcp:)?tcp_probe:\s+(.*)")
_OTHER_EVENT = re.compile(rb"\s\d{1,10}\.\d{6,9}:\s+(?:\w+:)?\w+:")
_PAIR = re.compile(r"(\w+)=(\S+)", re.ASCII)
_OLD = re.compile(
    rb"(\d{1,10})\.(\d{9}) (\S+:\d{1,5}) (\S+:\d{1,5}) (\d{1,6}) 0x([0-9a-f]{1,8}) 0x([0-9a-f]{1,8})"
    rb" (\d{1,10}) (\d{1,10}) (\d{1,10}) (\d{1,10})(?: (\d{1,10}))?"
)
_OLD_NAMES = ("length", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt", "rcv_wnd")
_NEEDED = {"snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt"}
_HEX = {"mark", "snd_nxt", "snd_una", "sock_cookie"}
_SKIPPED = {"family", "src", "dest", "sock_cookie", "skbaddr", "skaddr"}


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` holds lines of tcp_probe."""
    lines = head.split(b"\n")
    return _OLD.fullmatch(lines[0].rstrip()) is not None or any(_EVENT.search(line) for line in lines)


def read(file: LogFile) -> Iterator[KernelLog]:
    """Yield the parts of the log, one connection each."""
    collector = Collector(_built)
    for line in file.lines():
        found = _old(line) or _event(line)
        if found is not None and line.ended:
            yield from collector.add(*found)
        elif _is_damaged(line):
            file.issues.add(line.record, line.offset, "log_damaged", "a line that is no whole tcp_probe was left out")
    yield from collector.rest()


def _is_damaged(line: Line) -> bool:
    """Headings, comments and other events are no damage."""
    text = line.text.strip()
    if not text or text.startswith((b"#", b"cpus=", b"version =")):
        return False
    return b"tcp_probe" in text or not line.ended or _OTHER_EVENT.search(text) is None


def _old(line: Line) -> tuple[Connection, dict[str, int]] | None:
    found = _OLD.fullmatch(line.text.rstrip())
    if found is None:
        return None
    values = [
        int(text, 16 if name in _HEX else 10)
        for name, text in zip(_OLD_NAMES, found.groups()[4:], strict=True)
        if text is not None
    ]
    numbers = dict(zip(_OLD_NAMES, values, strict=False))
    return _record(
        found[3].decode("ascii", "replace"), found[4].decode("ascii", "replace"), _t_ns(found[1], found[2]), numbers
    )


def _event(line: Line) -> tuple[Connection, dict[str, int]] | None:
    found = _EVENT.search(line.text)
    if found is None:
        return None
    fields = dict(_PAIR.findall(found[3].decode("ascii", "replace")))
    numbers = {}
    for name, text in fields.items():
        if name not in _SKIPPED:
            try:
                numbers[name] = int(text, 0 if text.startswith("0x") else 10)
            except ValueError:
                return None
    return _record(fields.get("src", ""), fields.get("dest", ""), _t_ns(found[1], found[2]), numbers)


def _t_ns(seconds: bytes, fraction: bytes) -> int:
    return int(seconds) * 10**9 + int(fraction.ljust(9, b"0"))


def _record(source: str, target: str, t_ns: int, numbers: dict[str, int]) -> tuple[Connection, dict[str, int]] | None:
    local, remote = endpoint(source), endpoint(target)
    if local is None or remote is None or not numbers.keys() >= _NEEDED:
        return None
    if not all(0 <= value <= 0xFFFFFFFF for value in numbers.values()):
        return None
    return Connection(*local, *remote), numbers | {"t_ns": t_ns}


def _built(
    key: Hashable, numbers: dict[str, Numbers], texts: dict[str, list[str]], before: KernelLog | None
) -> KernelLog:
    t_ns = numbers.pop("t_ns")
    numbers, texts, lead = continued(numbers, texts, before)
    if before is not None and lead:
        t_ns = np.concatenate((before.t_ns[-1:], t_ns))
    never = np.zeros(len(t_ns), np.bool_)
    una, ahead = numbers["snd_una"], (numbers["snd_nxt"] - numbers["snd_una"]) & 0xFFFFFFFF
    snd_una = unwrapped(una, int(una[0]))
    first = int(una[0])
    if before is not None and lead and before.first_una is not None:
        first, snd_una = before.first_una, snd_una + int(before.columns["snd_una"][-1])
    ssthresh = numbers["ssthresh"]
    columns = {
        "srtt_ns": null_where(numbers["srtt"] * 1000, numbers["srtt"] == 0),
        "snd_wnd_bytes": null_where(numbers["snd_wnd"], never),
        "snd_una": null_where(snd_una, never),
        "snd_nxt": null_where(snd_una + ahead, never),
        "flight_bytes": null_where(ahead, never),
    }
    below = numbers["snd_cwnd"] < ssthresh
    phase = np.where(below, PHASES.index("slow_start"), PHASES.index("congestion_avoidance")).astype(np.int64)
    connection = key if isinstance(key, Connection) else None
    log = KernelLog("tcp_probe", t_ns, columns, phase, numbers, texts, connection, lead=lead, first_una=first)
    log.cwnd_pkts, log.ssthresh_pkts = numbers["snd_cwnd"], null_where(ssthresh, ssthresh >= _UNSET_PKTS)
    log.sends = bool(_without_data(numbers).mean() >= 0.5)
    log.clock = UTC if int(t_ns[0]) >= _WALL_CLOCK_S * 10**9 else STARTED
    return log.in_order()


def _without_data(numbers: dict[str, Numbers]) -> npt.NDArray[np.bool_]:
    """Which of the segments received had no payload; the older `length` counts the TCP header as well."""
    lengths = numbers.get("data_len")
    if lengths is not None:
        return np.equal(lengths, 0)
    return np.less_equal(numbers.get("length", np.zeros(1, np.int64)), _MAX_HEADER_BYTES)
