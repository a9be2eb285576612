"""TCP_INFO over time as CSV: a header of Linux's field names, then integers; a row where anything changed.

Units are the kernel's: microseconds, packets, octets, octets per second. Columns and mapping: docs/logs.md.
"""

from __future__ import annotations

import io
import re

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.model import KernelLog, LogIssue, Masked, Numbers, null_where
from hindflight.toolkit.schema import PHASES

REQUIRED = ("t_ns", "ca_state", "snd_mss", "snd_cwnd", "snd_ssthresh")
UNSET_PKTS = 0x7FFFFFFF
"""Linux TCP_INFINITE_SSTHRESH."""

_UNLIMITED_RATE = b"18446744073709551615"
_US = 1000
_TIMES = {"srtt_ns": "rtt", "rttvar_ns": "rttvar", "rto_ns": "rto", "min_rtt_ns": "min_rtt"}
_COUNTERS = {
    "smss_bytes": "snd_mss",
    "snd_wnd_bytes": "snd_wnd",
    "segments_out": "data_segs_out",
    "retransmissions": "total_retrans",
    "rtos": "total_rto",
}
_RATES = {"pacing_rate_bps": "pacing_rate", "delivery_rate_bps": "delivery_rate"}

# Linux tcp_ca_state. Deviation: CWR (2), a window decrease without loss, counts as recovery: cwnd falls the same way.
_OPEN, _DISORDER, _CWR, _RECOVERY, _LOSS = range(5)
_ESTABLISHED, _SYN_SENT, _SYN_RECV = 1, 2, 3


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a CSV."""
    names = head.split(b"\n")[0].strip().split(b",")
    return b"t_ns" in names and b"snd_cwnd" in names


def read(content: bytes, name: str) -> list[KernelLog]:
    """Read the series `content` of file `name`. LogError: a needed column is missing, or no row is whole."""
    header, _, body = content.partition(b"\n")
    names = header.decode("ascii", "replace").strip().split(",")
    missing = [column for column in REQUIRED if column not in names]
    if missing:
        raise LogError(f"{name} is a TCP_INFO series without {', '.join(missing)}")
    if len(set(names)) != len(names):
        raise LogError(f"{name} names a column twice")
    rows, issues = _whole_rows(body, len(names), len(header) + 1)
    if not rows:
        raise LogError(f"{name} holds no whole row of TCP_INFO")
    numbers = _numbers(names, rows)
    log = KernelLog("tcp_info", numbers["t_ns"], _columns(numbers), _phase(numbers), _logged(numbers), {})
    log.issues.extend(issues)
    return [log.in_order()]


def _whole_rows(body: bytes, fields: int, offset: int) -> tuple[list[bytes], list[LogIssue]]:
    """The lines that hold as many integers as the header has names; a last line without its end may be cut."""
    whole = re.compile(rb"-?\d{1,20}(?:,-?\d{1,20}){%d}\r?\n" % (fields - 1))
    rows: list[bytes] = []
    first: tuple[int, int] | None = None
    lines = body.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if whole.fullmatch(line):
            rows.append(line)
        elif first is None:
            first = number, offset
        offset += len(line)
    if first is None:
        return rows, []
    text = f"{len(lines) - len(rows)} of {len(lines)} rows are not {fields} integers and were left out"
    return rows, [LogIssue(*first, "log_damaged", text)]


def _numbers(names: list[str], rows: list[bytes]) -> dict[str, Numbers]:
    import pyarrow as pa
    from pyarrow import csv

    content = b"".join(rows).replace(_UNLIMITED_RATE, b"-1")
    table = csv.read_csv(
        io.BytesIO(content),
        read_options=csv.ReadOptions(column_names=names),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.int64())),
    )
    return {name: table[name].to_numpy() for name in names}


def _logged(numbers: dict[str, Numbers]) -> dict[str, Numbers]:
    return {name: values for name, values in numbers.items() if name != "t_ns"}


def _columns(numbers: dict[str, Numbers]) -> dict[str, Masked]:
    never = np.zeros(len(numbers["t_ns"]), np.bool_)
    columns = {column: null_where(numbers[n], never) for column, n in _COUNTERS.items() if n in numbers}
    columns |= {c: null_where(numbers[n] * _US, numbers[n] <= 0) for c, n in _TIMES.items() if n in numbers}
    columns |= {c: null_where(numbers[n] * 8, numbers[n] < 0) for c, n in _RATES.items() if n in numbers}
    mss = numbers["snd_mss"]
    columns["cwnd_bytes"] = null_where(numbers["snd_cwnd"] * mss, never)
    columns["ssthresh_bytes"] = null_where(numbers["snd_ssthresh"] * mss, numbers["snd_ssthresh"] >= UNSET_PKTS)
    if {"unacked", "sacked"} <= numbers.keys():
        columns["flight_bytes"] = null_where((numbers["unacked"] - numbers["sacked"]) * mss, never)
    if "app_limited" in numbers:
        columns["app_limited"] = np.ma.MaskedArray(numbers["app_limited"] != 0)
    return columns | _sequence(numbers, never)


def _sequence(numbers: dict[str, Numbers], never: npt.NDArray[np.bool_]) -> dict[str, Masked]:
    """snd_una and snd_nxt with SYN = 0. `bytes_acked` counts the SYN on the end that opened the connection only."""
    if "bytes_acked" not in numbers:
        return {}
    snd_una = numbers["bytes_acked"]
    if not {"bytes_sent", "bytes_retrans", "unacked"} <= numbers.keys():
        return {"snd_una": null_where(snd_una, never)}
    sent = numbers["bytes_sent"] - numbers["bytes_retrans"]
    settled = numbers["unacked"] == 0
    if "state" in numbers:
        settled &= numbers["state"] == _ESTABLISHED
    if settled.any():
        at = int(np.flatnonzero(settled)[0])
        snd_una = snd_una + (int(sent[at]) + 1 - int(snd_una[at]))
    return {"snd_una": null_where(snd_una, never), "snd_nxt": null_where(sent + 1, never)}


def _phase(numbers: dict[str, Numbers]) -> Numbers:
    ca_state, state = numbers["ca_state"], numbers.get("state", np.full(len(numbers["t_ns"]), _ESTABLISHED))
    phase = np.where(
        numbers["snd_cwnd"] < numbers["snd_ssthresh"],
        PHASES.index("slow_start"),
        PHASES.index("congestion_avoidance"),
    )
    if "rwnd_limited" in numbers:
        limited = np.diff(numbers["rwnd_limited"], prepend=numbers["rwnd_limited"][0]) > 0
        phase = np.where(limited, PHASES.index("limited"), phase)
    phase = np.where((ca_state == _CWR) | (ca_state == _RECOVERY), PHASES.index("recovery"), phase)
    phase = np.where(ca_state == _LOSS, PHASES.index("loss"), phase)
    opening = (state == _SYN_SENT) | (state == _SYN_RECV)
    return np.where(opening, PHASES.index("handshake"), phase).astype(np.int64)
