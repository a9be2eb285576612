"""What Linux's `struct tcp_info` means as columns of `instruments`. Knows no file format.

Units are the kernel's: microseconds, packets, octets, octets per second. Several kinds of log hold these values: the
CSV series, M-Lab's snapshots, ndt7's results and what `ss -ti` prints. Mapping: docs/logs.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.logs.model import (
    MAX_T_NS,
    Connection,
    KernelLog,
    Masked,
    Numbers,
    continued,
    null_where,
    product,
)
from hindflight.toolkit.schema import PHASES

UNSET_PKTS = 0x7FFFFFFF
"""Linux TCP_INFINITE_SSTHRESH."""
UNLIMITED = -1
"""A rate without limit, ~0 in the kernel."""

STRUCT = np.dtype(
    [
        *((name, "u1") for name in ("state", "ca_state", "retransmits", "probes", "backoff", "options")),
        *((name, "u1") for name in ("wscale", "bits")),
        *((name, "<u4") for name in ("rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans")),
        *((name, "<u4") for name in ("fackets", "last_data_sent", "last_ack_sent", "last_data_recv", "last_ack_recv")),
        *((name, "<u4") for name in ("pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh", "snd_cwnd", "advmss")),
        *((name, "<u4") for name in ("reordering", "rcv_rtt", "rcv_space", "total_retrans")),
        *((name, "<u8") for name in ("pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received")),
        *((name, "<u4") for name in ("segs_out", "segs_in", "notsent_bytes", "min_rtt", "data_segs_in")),
        *(("data_segs_out", "<u4"), ("delivery_rate", "<u8"), ("busy_time", "<u8"), ("rwnd_limited", "<u8")),
        *(("sndbuf_limited", "<u8"), ("delivered", "<u4"), ("delivered_ce", "<u4"), ("bytes_sent", "<u8")),
        *(("bytes_retrans", "<u8"), ("dsack_dups", "<u4"), ("reord_seen", "<u4"), ("rcv_ooopack", "<u4")),
        *((name, "<u4") for name in ("snd_wnd", "rcv_wnd", "rehash")),
        *(("total_rto", "<u2"), ("total_rto_recoveries", "<u2"), ("total_rto_time", "<u4")),
    ]
)
"""linux/tcp.h, in order. Older kernels fill less of it. `bits`: the lowest is delivery_rate_app_limited."""

_LIMITS = {name: (1 << 8 * STRUCT[name].itemsize) - 1 for name in STRUCT.names or () if STRUCT[name].itemsize < 8}
_LIMITS |= {"snd_mss": 0xFFFF, "t_ns": MAX_T_NS - 1}
_MAX_OTHER = (1 << 62) - 1
_RATES = {"pacing_rate_bps": "pacing_rate", "delivery_rate_bps": "delivery_rate"}
_US = 1000
_TIMES = {"srtt_ns": "rtt", "rttvar_ns": "rttvar", "rto_ns": "rto", "min_rtt_ns": "min_rtt"}
_COUNTERS = {
    "smss_bytes": "snd_mss",
    "snd_wnd_bytes": "snd_wnd",
    "segments_out": "data_segs_out",
    "retransmissions": "total_retrans",
    "rtos": "total_rto",
}

# Linux tcp_ca_state. Deviation: CWR (2), a window decrease without loss, counts as recovery: cwnd falls the same way.
_OPEN, _DISORDER, _CWR, _RECOVERY, _LOSS = range(5)
_ESTABLISHED, _SYN_SENT, _SYN_RECV = 1, 2, 3


def limit_of(name: str) -> int:
    """Return the greatest value that the variable can have."""
    return _LIMITS.get(name, _MAX_OTHER)


def possible(values: Mapping[str, int]) -> bool:
    """Return whether all values are such as the kernel reports; -1 stands for a rate without limit."""
    return all(UNLIMITED <= value <= limit_of(name) for name, value in values.items()) and values.get("t_ns", 0) >= 0


def decoded(octets: bytes) -> dict[str, int] | None:
    """Return the fields of a `struct tcp_info`, as many as are there; None if not even snd_cwnd is."""
    values: dict[str, int] = {}
    offset = 0
    for name in STRUCT.names or ():
        end = offset + STRUCT[name].itemsize
        if end > len(octets):
            break
        values[name] = int.from_bytes(octets[offset:end], "little")
        offset = end
    if "snd_cwnd" not in values:
        return None
    values["app_limited"] = values.pop("bits") & 1
    unlimited = {name: UNLIMITED for name, value in values.items() if value == (1 << 64) - 1}
    return values | unlimited


def kernel_log(
    numbers: dict[str, Numbers],
    texts: dict[str, list[str]],
    before: KernelLog | None = None,
    connection: Connection | None = None,
) -> KernelLog:
    """Build a part of one connection's log from its variables, t_ns among them; `before` is the part before it.

    t_ns, snd_mss, snd_cwnd and snd_ssthresh are there, and all rows are `possible`.
    """
    t_ns = numbers["t_ns"]
    known = {name: values for name, values in numbers.items() if name != "t_ns"}
    known, texts, lead = continued(known, texts, before)
    if before is not None and lead:
        t_ns = np.concatenate((before.t_ns[-1:], t_ns))
    columns = _columns(known, t_ns)
    sequence, shift = _sequence(known, len(t_ns), before.una_shift if before is not None and lead else None)
    log = KernelLog("tcp_info", t_ns, columns | sequence, _phase(known, t_ns), known, texts, connection, lead=lead)
    log.sends = _last(known, "bytes_acked", "bytes_sent") >= _last(known, "bytes_received")
    log.una_shift = shift
    return log.in_order()


def _last(numbers: dict[str, Numbers], *names: str) -> int:
    return next((int(numbers[name][-1]) for name in names if name in numbers), 0)


def _columns(numbers: dict[str, Numbers], t_ns: Numbers) -> dict[str, Masked]:
    never = np.zeros(len(t_ns), np.bool_)
    columns = {column: null_where(numbers[n], never) for column, n in _COUNTERS.items() if n in numbers}
    columns |= {c: _scaled(numbers[n], _US, numbers[n] <= 0) for c, n in _TIMES.items() if n in numbers}
    columns |= {c: _scaled(numbers[n], 8, numbers[n] < 0) for c, n in _RATES.items() if n in numbers}
    mss = numbers["snd_mss"]
    columns["cwnd_bytes"] = product(numbers["snd_cwnd"], mss)
    unset = numbers["snd_ssthresh"] >= UNSET_PKTS
    columns["ssthresh_bytes"] = _scaled(numbers["snd_ssthresh"], mss, unset)
    if {"unacked", "sacked"} <= numbers.keys():
        columns["flight_bytes"] = product(numbers["unacked"] - numbers["sacked"], mss)
    if "app_limited" in numbers:
        columns["app_limited"] = np.ma.MaskedArray(numbers["app_limited"] != 0)
    return columns


def _scaled(values: Numbers, factor: Numbers | int, absent: npt.NDArray[np.bool_]) -> Masked:
    """`values` times `factor`; null where `absent`, and where a damaged value has no product."""
    result = product(np.where(absent, 0, values), np.broadcast_to(np.asarray(factor, np.int64), values.shape))
    return null_where(result.data, absent | np.ma.getmaskarray(result))


def _sequence(numbers: dict[str, Numbers], rows: int, shift: int | None) -> tuple[dict[str, Masked], int | None]:
    """snd_una and snd_nxt with SYN = 0, and what was added to bytes_acked for that.

    `bytes_acked` counts the SYN on the end that opened the connection only. `shift` is that of the part before.
    """
    never = np.zeros(rows, np.bool_)
    if "bytes_acked" not in numbers:
        return {}, None
    snd_una = numbers["bytes_acked"]
    if not {"bytes_sent", "bytes_retrans", "unacked"} <= numbers.keys():
        return {"snd_una": null_where(snd_una, never)}, None
    sent = numbers["bytes_sent"] - numbers["bytes_retrans"]
    settled = numbers["unacked"] == 0
    if "state" in numbers:
        settled &= numbers["state"] == _ESTABLISHED
    if shift is None and settled.any():
        at = int(np.flatnonzero(settled)[0])
        shift = int(sent[at]) + 1 - int(snd_una[at])
    snd_una = snd_una + (shift or 0)
    # bytes_acked counts the FIN and bytes_sent does not: what is acknowledged has been sent (RFC 9293 §3.3.1).
    snd_nxt = np.maximum(sent + 1, snd_una)
    return {"snd_una": null_where(snd_una, never), "snd_nxt": null_where(snd_nxt, never)}, shift


def _phase(numbers: dict[str, Numbers], t_ns: Numbers) -> Numbers:
    ca_state = numbers.get("ca_state", np.full(len(t_ns), _OPEN))
    state = numbers.get("state", np.full(len(t_ns), _ESTABLISHED))
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
