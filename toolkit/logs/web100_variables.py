"""What WEB100's variables mean as columns of `instruments`. Knows no file layout: snaplogs and SideStream share it.

Names and units are those of RFC 4898 where it has the variable; windows are octets, RTTs milliseconds, times
microseconds since the connection's start. Read docs/logs.md for the mapping as a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.logs.model import Connection, KernelLog, Masked, Numbers, continued, null_where
from hindflight.toolkit.schema import PHASES
from hindflight.toolkit.serial import unwrapped

CLOSED, ESTABLISHED = 1, 5
"""tcpConnectionState of RFC 4022, not Linux's numbering: 2 to 4 open the connection, 6 and above close it."""

UNSET_BYTES = (1 << 31) - (1 << 16)
"""Windows from here up are 'infinite' segments times MSS modulo 2^32: (2^31 - 1) * 1448 gives 4294965848."""

_MS = 1_000_000
COUNTERS = {
    "segments_out": "DataPktsOut",
    "retransmissions": "PktsRetrans",
    "rtos": "Timeouts",
    "recoveries": "FastRetran",
    "dup_acks_in": "DupAcksIn",
    "smss_bytes": "CurMSS",
    "snd_wnd_bytes": "CurRwinRcvd",
}
WINDOWS = {"cwnd_bytes": "CurCwnd", "ssthresh_bytes": "CurSsthresh"}
TIMES = {"srtt_ns": "SmoothedRTT", "rttvar_ns": "RTTVar", "rto_ns": "CurRTO", "min_rtt_ns": "MinRTT"}
"""Columns of `instruments` and their variables: counters and sizes, windows, and times in ms."""


REQUIRED = ("StartTimeSec", "StartTimeUsec", "Duration", "CurCwnd", "CurMSS")
_MAX_DURATION_US = 1 << 50

Variables = tuple[dict[str, Numbers], dict[str, list[str]]]
"""Numbers and texts over time, by the names of the log."""


def timed(numbers: dict[str, Numbers]) -> npt.NDArray[np.bool_]:
    """Return which rows have a possible time."""
    start_s, start_us, duration = (numbers[name] for name in ("StartTimeSec", "StartTimeUsec", "Duration"))
    started = (start_s >= 0) & (start_s < 1 << 31) & (start_us >= 0) & (start_us < 1 << 31)
    return started & (duration >= 0) & (duration < _MAX_DURATION_US)


def kernel_log(variables: Variables, before: KernelLog | None = None) -> KernelLog:
    """Build a part of one connection's log from its variables; `before` is the part before it.

    All of REQUIRED are there, and `timed` has looked at the rows.
    """
    numbers, texts, lead = continued(*variables, before)
    t_ns = numbers["StartTimeSec"] * 10**9 + (numbers["StartTimeUsec"] + numbers["Duration"]) * 1000
    columns = {column: _plain(numbers[v]) for column, v in COUNTERS.items() if v in numbers}
    columns |= {column: _window(numbers[v]) for column, v in WINDOWS.items() if v in numbers}
    measured = numbers.get("CountRTT", np.ones_like(t_ns)) > 0
    columns |= {column: _time(numbers[v], measured) for column, v in TIMES.items() if v in numbers}
    columns |= _sequence(numbers, before if lead else None)
    limit = _limit(numbers, lead)
    if limit is not None:
        columns["app_limited"] = np.ma.MaskedArray(limit == 0)
    log = KernelLog("web100", t_ns, columns, _phase(numbers, limit), numbers, texts, lead=lead)
    log.connection = _connection(numbers, texts)
    out, received = _last(numbers, "DataBytesOut", "DataPktsOut"), _last(numbers, "DataBytesIn", "DataPktsIn")
    log.sends = out >= received
    return log.in_order()


def _plain(values: Numbers) -> Masked:
    return null_where(values, np.zeros(len(values), np.bool_))


def _window(values: Numbers) -> Masked:
    return null_where(values, (values >= UNSET_BYTES) | (values < 0))


def _time(values: Numbers, measured: npt.NDArray[np.bool_]) -> Masked:
    """Milliseconds; 2^32 - 1 and times before the first measurement are no times."""
    absent = (values >= 0xFFFFFFFF) | (values < 0) | ~measured
    return null_where(np.where(absent, 0, values) * _MS, absent)


def _sequence(numbers: dict[str, Numbers], before: KernelLog | None) -> dict[str, Masked]:
    """snd_una and snd_nxt from the initial sequence number. Some kernels log SndNxt as signed: taken modulo 2^32."""
    if not {"SndISS", "SndUna", "SndNxt"} <= numbers.keys():
        return {}
    if before is None:
        snd_una = unwrapped(numbers["SndUna"], int(numbers["SndISS"][0]) & 0xFFFFFFFF)
    else:
        snd_una = unwrapped(numbers["SndUna"], int(numbers["SndUna"][0])) + int(before.columns["snd_una"][-1])
    ahead = (numbers["SndNxt"] - numbers["SndUna"]) & 0xFFFFFFFF
    behind = ahead >= 1 << 31  # SND.NXT is never behind SND.UNA (RFC 9293 §3.3.1).
    return {
        "snd_una": _plain(snd_una),
        "snd_nxt": null_where(snd_una + ahead, behind),
        "flight_bytes": null_where(ahead, behind),
    }


def _limit(numbers: dict[str, Numbers], lead: int) -> npt.NDArray[np.intp] | None:
    """What limited the sender at each time: 0 itself (the application), 1 cwnd, 2 the receiver's window.

    The SndLimTime counters move only when the kernel looks at them, so each movement speaks for the time since
    the one before.
    """
    names = ("SndLimTimeSender", "SndLimTimeCwnd", "SndLimTimeRwin")
    if not numbers.keys() >= set(names):
        return None
    grown = np.stack([np.diff(numbers[v], prepend=numbers[v][0] if lead else 0) & 0xFFFFFFFF for v in names])
    moved = np.flatnonzero(grown.any(axis=0))
    if not len(moved):
        return None
    following = np.minimum(np.searchsorted(moved, np.arange(grown.shape[1])), len(moved) - 1)
    return np.asarray(grown.argmax(axis=0)[moved[following]], np.intp)


def _phase(numbers: dict[str, Numbers], limit: npt.NDArray[np.intp] | None) -> Numbers:
    """The phase, as far as WEB100 shows it: it logs how often fast recovery began, not when it ended."""
    cwnd, rows = numbers["CurCwnd"], len(numbers["CurCwnd"])
    ssthresh = numbers.get("CurSsthresh", np.zeros(rows, np.int64))
    state = numbers.get("State", np.full(rows, ESTABLISHED))
    phase = np.where(cwnd < ssthresh, PHASES.index("slow_start"), PHASES.index("congestion_avoidance"))
    if limit is not None:
        phase = np.where(limit != 1, PHASES.index("limited"), phase)
    phase = np.where(numbers.get("CurTimeoutCount", np.zeros(rows, np.int64)) > 0, PHASES.index("loss"), phase)
    phase = np.where((state > CLOSED) & (state < ESTABLISHED), PHASES.index("handshake"), phase)
    return np.where(state == CLOSED, PHASES.index("unknown"), phase).astype(np.int64)


def _connection(numbers: dict[str, Numbers], texts: dict[str, list[str]]) -> Connection | None:
    remote_addr = texts.get("RemAddress") or texts.get("RemoteAddress") or texts.get("_RemoteAddress")
    remote_port = next((numbers[v] for v in ("RemPort", "RemotePort", "_RemotePort") if v in numbers), None)
    local_addr, local_port = texts.get("LocalAddress"), numbers.get("LocalPort")
    if remote_addr is None or local_addr is None or remote_port is None or local_port is None:
        return None
    opened = None if "ActiveOpen" not in numbers else int(numbers["ActiveOpen"][-1]) == 1
    ports = int(local_port[-1]) & 0xFFFF, int(remote_port[-1]) & 0xFFFF
    return Connection(local_addr[-1], ports[0], remote_addr[-1], ports[1], opened)


def _last(numbers: dict[str, Numbers], *names: str) -> int:
    present: Sequence[str] = [name for name in names if name in numbers]
    return int(numbers[present[0]][-1]) if present else 0
