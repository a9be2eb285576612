"""WEB100 binary snaplogs: the file's layout, by the header that each kernel wrote into its own log.

Layout and its traps: docs/logs.md. Knows octets and offsets; what the variables mean is in
toolkit/logs/web100_variables.py.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.model import Connection, KernelLog, LogIssue
from hindflight.toolkit.logs.web100_variables import kernel_log

END_OF_HEADER = b"----End-Of-Header---- -1 -1\n"
BEGIN_RECORD = b"----Begin-Snap-Data----\n"
GROUP_BYTES = 32
SPEC_BYTES = 16
_VERSION = re.compile(rb"\d+\.\d+(\.\d+)? \d{6,} \S+\n")
_PLAUSIBLE_TIMES = range(946_684_800, 4_102_444_800)  # 2000-01-01 to 2100-01-01

Order = Literal["<", ">"]

# Type number -> numpy format without byte order, octets (web100's WEB100_TYPE_*; 32-bit ones by their sign).
_FORMATS = {
    0: "i4",  # INTEGER
    1: "i4",  # INTEGER32
    2: "V4",  # INET_ADDRESS_IPV4
    3: "u4",  # COUNTER32
    4: "u4",  # GAUGE32
    5: "u4",  # UNSIGNED32
    6: "u4",  # TIME_TICKS
    7: "u8",  # COUNTER64
    8: "u2",  # INET_PORT_NUMBER
    9: "V17",  # INET_ADDRESS
    10: "V17",  # INET_ADDRESS_IPV6
    11: "S32",  # STR32
    12: "u1",  # OCTET
}


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    offset: int
    type: int


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is a snaplog."""
    return _VERSION.match(head) is not None and b"\n/" in head


def read(content: bytes, name: str) -> list[KernelLog]:
    """Read the snaplog `content` of file `name`. LogError: its header is not whole, or no record is."""
    end = content.find(b"\0")
    start = end + 1 + len(END_OF_HEADER)
    if end < 0 or content[end + 1 : start] != END_OF_HEADER:
        raise LogError(f"{name} is cut off or damaged in the header of the snaplog")
    groups = _groups(content[:end].decode("ascii", "replace"), name)
    body = content.find(BEGIN_RECORD, start)
    if body < 0:
        raise LogError(f"{name} holds no snapshot")
    order = _byte_order(content[start:body], name)
    group = content[body - SPEC_BYTES - GROUP_BYTES : body - SPEC_BYTES].split(b"\0")[0].decode("ascii", "replace")
    if group not in groups:
        raise LogError(f"{name} holds snapshots of a group {group!r} that its header does not describe")
    records, issues = _records(content, body, _record_type(groups[group], order), name)
    log = kernel_log(*_variables(records), name)
    log.issues.extend(issues)
    if log.connection is None:
        log.connection = _spec(content[body - SPEC_BYTES : body], order)
    return [log]


def _groups(header: str, name: str) -> dict[str, list[_Variable]]:
    """Parse the header: group name -> variables. Lines have 4 fields, in versions 1.x 3 (no length)."""
    groups: dict[str, list[_Variable]] = {}
    variables: list[_Variable] = []
    for line in header.splitlines()[1:]:
        fields = line.split()
        if len(fields) == 1 and fields[0].startswith("/"):
            variables = groups.setdefault(fields[0][1:], [])
        elif len(fields) in (3, 4) and fields[1].isdecimal() and fields[2].isdecimal():
            variables.append(_Variable(fields[0], int(fields[1]), int(fields[2])))
        elif fields:
            raise LogError(f"{name} has a header line that is none of a snaplog: {line[:60]!r}")
    return groups


def _byte_order(preamble: bytes, name: str) -> Order:
    """The order of octets, by the log's time: 4 or 8 octets of C `time_t`, whatever the writer's machine had."""
    time = preamble[: len(preamble) - GROUP_BYTES - SPEC_BYTES]
    if len(time) in (4, 8):
        if int.from_bytes(time, "little") in _PLAUSIBLE_TIMES:
            return "<"
        if int.from_bytes(time, "big") in _PLAUSIBLE_TIMES:
            return ">"
    raise LogError(f"{name} has {len(preamble)} octets between header and snapshots that are none of a snaplog")


def _record_type(variables: list[_Variable], order: Order) -> np.dtype[Any]:
    """One record: the marker, then the variables at the offsets that this kernel's header gives."""
    known = [variable for variable in variables if variable.type in _FORMATS]
    formats = [order + _FORMATS[variable.type] for variable in known]
    ends = [variable.offset + np.dtype(form).itemsize for variable, form in zip(known, formats, strict=True)]
    return np.dtype(
        {
            "names": ["", *(variable.name for variable in known)],
            "formats": [f"V{len(BEGIN_RECORD)}", *formats],
            "offsets": [0, *(len(BEGIN_RECORD) + variable.offset for variable in known)],
            "itemsize": len(BEGIN_RECORD) + max(ends, default=0),
        }
    )


def _records(content: bytes, body: int, record: np.dtype[Any], name: str) -> tuple[npt.NDArray[Any], list[LogIssue]]:
    """Every whole record, by step and not by search: a marker may also stand in the data."""
    issues = []
    count, tail = divmod(len(content) - body, record.itemsize)
    records = np.frombuffer(content, record, count, body)
    if tail:
        text = f"the last snapshot has {tail} of {record.itemsize} octets and was left out"
        issues.append(LogIssue(count + 1, body + count * record.itemsize, "log_truncated", text))
    marker = np.void(BEGIN_RECORD)
    whole = records[record.names[0]] == marker if record.names and count else np.zeros(0, np.bool_)
    if not whole.all():
        first = int(np.flatnonzero(~whole)[0])
        text = f"{int((~whole).sum())} of {count} snapshots do not begin with their marker and were left out"
        issues.append(LogIssue(first + 1, body + first * record.itemsize, "log_damaged", text))
    if not whole.any():
        raise LogError(f"{name} holds no whole snapshot")
    return records[whole], issues


def _variables(records: npt.NDArray[Any]) -> tuple[dict[str, npt.NDArray[np.int64]], dict[str, list[str]]]:
    """The records' columns: numbers as signed 64-bit, addresses and strings as text."""
    numbers: dict[str, npt.NDArray[np.int64]] = {}
    texts: dict[str, list[str]] = {}
    for name in records.dtype.names[1:] if records.dtype.names else ():
        column = records[name]
        if column.dtype.kind in "iu":
            numbers[name] = column.astype(np.int64)
        elif column.dtype.kind == "V":
            texts[name] = [_address(bytes(value)) for value in column]
        else:
            texts[name] = [value.decode("ascii", "replace") for value in column]
    return numbers, texts


def _address(octets: bytes) -> str:
    """An address of 4 octets, or 16 and a type: 1 = IPv4 in the first four, 2 = IPv6."""
    if len(octets) == 17 and octets[16] == 2:
        return str(ipaddress.IPv6Address(octets[:16]))
    return str(ipaddress.IPv4Address(octets[:4]))


def _spec(octets: bytes, order: Order) -> Connection:
    """The connection as the file names it: remote port, address, local port, address; IPv4 only."""
    remote_port = np.frombuffer(octets, f"{order}u2", 1, 0)[0]
    local_port = np.frombuffer(octets, f"{order}u2", 1, 8)[0]
    return Connection(_address(octets[12:16]), int(local_port), _address(octets[4:8]), int(remote_port))
