"""M-Lab's tcp-info snapshots: a JSON object per line, with the kernel's struct as octets or as named fields.

The first line may name the file (Metadata). In the archived form RawIDM is the kernel's inet_diag_msg and Attributes
its netlink attributes by number, both in base64; in the parsed form InetDiagMsg and TCPInfo have named fields.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Hashable, Iterator
from typing import Any

from hindflight.toolkit.logs.collector import Collector
from hindflight.toolkit.logs.model import UTC, Connection, KernelLog, Numbers
from hindflight.toolkit.logs.octets import Line, LogFile
from hindflight.toolkit.logs.tcp_info import STRUCT, UNLIMITED, decoded, kernel_log, possible
from hindflight.toolkit.logs.times import parse_moment

_INFO, _CONGESTION = 2, 4
"""INET_DIAG_INFO and INET_DIAG_CONG of linux/inet_diag.h: places in Attributes."""
_AF_INET, _AF_INET6 = 2, 10
NO_TIME = "0001-01-01T00:00:00"
"""What Go writes for a time that was never set, as in M-Lab's archiveRecords."""
_IDM_BYTES = 72
_NAME = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KERNEL_NAMES = {name.replace("_", ""): name for name in (*(STRUCT.names or ()), "app_limited")}
"""Linux's names by their letters alone: ndt7's SndSsThresh and RWndLimited are snd_ssthresh and rwnd_limited."""


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a log."""
    first = head.split(b"\n")[0]
    return (
        first.startswith(b"{")
        and b'"Timestamp"' in first
        and any(name in head for name in (b'"RawIDM"', b'"InetDiagMsg"', b'"TCPInfo"'))
    )


def kernel_name(name: str) -> str:
    """Return Linux's name of a field that M-Lab writes in Go's way: SndCwnd is snd_cwnd."""
    plain = _NAME.sub("_", name).lower()
    return _KERNEL_NAMES.get(plain.replace("_", ""), plain)


def named_fields(info: dict[str, Any]) -> dict[str, int] | None:
    """Return the numbers of a parsed TCPInfo by Linux's names; None where something is no number."""
    values = {kernel_name(name): value for name, value in info.items() if isinstance(value, int)}
    if len(values) != len(info) or not {"snd_cwnd", "snd_mss", "snd_ssthresh"} <= values.keys():
        return None
    values = {name: UNLIMITED if value == (1 << 64) - 1 else int(value) for name, value in values.items()}
    return values if possible(values) else None


def read(file: LogFile) -> Iterator[KernelLog]:
    """Yield the parts of the log, one connection each."""
    collector = Collector(_built)
    shapes: dict[Hashable, frozenset[str]] = {}
    for line in file.lines():
        document = _object(line)
        if document is not None and "Metadata" in document and "Attributes" not in document:
            continue
        record = None if document is None else _record(document)
        if record is None:
            text = _why_not(document)
            file.issues.add(line.record, line.offset, "log_damaged", f"{text} was left out")
        elif shapes.setdefault(record[0], frozenset(record[1])) != record[1].keys():
            text = "a snapshot with other fields than the first of its connection was left out"
            file.issues.add(line.record, line.offset, "log_damaged", text)
        else:
            yield from collector.add(*record)
    yield from collector.rest()


def _why_not(document: dict[str, Any] | None) -> str:
    if document is not None and str(document.get("Timestamp")).startswith(NO_TIME):
        return f"a snapshot whose Timestamp was never set ({NO_TIME}), without which it has no place on the time axis,"
    return "a line that is no whole snapshot with its time"


def _object(line: Line) -> dict[str, Any] | None:
    if not line.ended:
        return None
    try:
        document = json.loads(line.text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _record(document: dict[str, Any]) -> tuple[Connection, dict[str, int], dict[str, str]] | None:
    """The connection and the fields of one snapshot; None if it lacks either or its time."""
    moment = parse_moment(str(document.get("Timestamp")))
    if moment is None or moment.clock != UTC:
        return None
    try:
        found = _archived(document) if "RawIDM" in document else _parsed(document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
    if found is None:
        return None
    connection, values, texts = found
    values = values | {"t_ns": moment.t_ns}
    return (connection, values, texts) if possible(values) else None


def _archived(document: dict[str, Any]) -> tuple[Connection, dict[str, int], dict[str, str]] | None:
    message = base64.b64decode(document["RawIDM"], validate=True)
    attributes = document["Attributes"]
    values = decoded(base64.b64decode(attributes[_INFO], validate=True))
    if values is None or len(message) < _IDM_BYTES or message[0] not in (_AF_INET, _AF_INET6):
        return None
    octets = 4 if message[0] == _AF_INET else 16
    local, remote = (_address(message[at : at + octets]) for at in (8, 24))
    ports = int.from_bytes(message[4:6], "big"), int.from_bytes(message[6:8], "big")
    name = attributes[_CONGESTION] if len(attributes) > _CONGESTION else None
    congestion = base64.b64decode(name or "").split(b"\0")[0].decode("ascii", "replace")
    return Connection(local, ports[0], remote, ports[1]), values, {"congestion": congestion}


def _address(octets: bytes) -> str:
    address = ipaddress.ip_address(octets)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _parsed(document: dict[str, Any]) -> tuple[Connection, dict[str, int], dict[str, str]] | None:
    where = document["InetDiagMsg"]["ID"]
    values = named_fields(document["TCPInfo"])
    if values is None:
        return None
    local, remote = (_plain(where[name]) for name in ("SrcIP", "DstIP"))
    ports = int(where["SPort"]), int(where["DPort"])
    if not all(0 <= port <= 0xFFFF for port in ports):
        return None
    congestion = document.get("CongestionAlgorithm")
    return Connection(local, ports[0], remote, ports[1]), values, {"congestion": str(congestion)} if congestion else {}


def _plain(text: str) -> str:
    return _address(ipaddress.ip_address(text).packed)


def _built(
    key: Hashable, numbers: dict[str, Numbers], texts: dict[str, list[str]], before: KernelLog | None
) -> KernelLog:
    return kernel_log(numbers, texts, before, key if isinstance(key, Connection) else None)
