"""WEB100 binary snaplogs: the file's layout, by the header that each kernel wrote into its own log.

Layout and its traps: docs/logs.md. Knows octets and offsets; what the variables mean is in
toolkit/logs/web100_variables.py.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.model import BATCH_ROWS, Connection, KernelLog
from hindflight.toolkit.logs.octets import LogFile
from hindflight.toolkit.logs.web100_variables import REQUIRED, kernel_log, timed
from hindflight.toolkit.text import printable

END_OF_HEADER = b"----End-Of-Header---- -1 -1\n"
BEGIN_RECORD = b"----Begin-Snap-Data----\n"
GROUP_BYTES = 32
SPEC_BYTES = 16
_VERSION = re.compile(rb"\d+\.\d+(\.\d+)? \d{6,} \S+\n")
MAX_RECORD_BYTES = 1 << 14
"""A snapshot of all variables has some 650 octets."""
_MAX_HEADER_BYTES = 1 << 20
_MARKER = f"V{len(BEGIN_RECORD)}"
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
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


def read(file: LogFile) -> Iterator[KernelLog]:
    """Yield the parts of the snaplog. LogError: its header is not whole, or it does not log what is needed."""
    chunks = file.chunks()
    content = b""
    for chunk in chunks:
        content += chunk
        if content.find(BEGIN_RECORD) >= 0 or len(content) > _MAX_HEADER_BYTES:
            break
    body, record, spec = _head(file, content)
    before: KernelLog | None = None
    for records in _records(file, content[body:], body, chunks, record):
        numbers, texts = _variables(records)
        log = kernel_log((numbers, texts), before)
        log.connection = log.connection or spec
        before = log.last()
        yield log


def _head(file: LogFile, content: bytes) -> tuple[int, np.dtype[Any], Connection]:
    """Where the records begin, what each of them is, and the connection as the file's head names it."""
    name = file.name
    end = content.find(b"\0")
    start = end + 1 + len(END_OF_HEADER)
    if end < 0 or content[end + 1 : start] != END_OF_HEADER:
        raise LogError(f"{name} is cut off or damaged in the header of the snaplog")
    groups, whole = _groups(file, content[:end].decode("ascii", "replace"))
    body = content.find(BEGIN_RECORD, start)
    if body < 0:
        raise LogError(f"{name} holds no snapshot")
    order = _byte_order(content[start:body], name)
    group = content[body - SPEC_BYTES - GROUP_BYTES : body - SPEC_BYTES].split(b"\0")[0].decode("ascii", "replace")
    if group not in groups:
        raise LogError(f"{name} holds snapshots of a group {group!r} that its header does not describe")
    names = {variable.name for variable in groups[group] if variable.type in _FORMATS}
    missing = [variable for variable in REQUIRED if variable not in names]
    if missing:
        raise LogError(f"{name} does not log {', '.join(missing)}")
    record = _record_type(groups[group], order, name)
    if not whole:
        record = _as_long_as_the_first(record, content[body:])
    return body, record, _spec(content[body - SPEC_BYTES : body], order)


def _groups(file: LogFile, header: str) -> tuple[dict[str, list[_Variable]], bool]:
    """Parse the header: group name -> variables, and whether every line is whole.

    Lines have 4 fields, in versions 1.x 3 (no length). A damaged line loses its variable.
    """
    whole = True
    groups: dict[str, list[_Variable]] = {}
    variables: list[_Variable] = []
    for number, line in enumerate(header.splitlines()[1:], 2):
        fields = line.split()
        if len(fields) == 1 and fields[0].startswith("/"):
            variables = groups.setdefault(fields[0][1:], [])
        elif len(fields) in (3, 4) and _NUMBER.fullmatch(fields[1]) and _NUMBER.fullmatch(fields[2]):
            variables.append(_Variable(fields[0], int(fields[1]), int(fields[2])))
        elif fields:
            whole = False
            text = f"line {number} is not a line of a snaplog's header: {printable(line[:60])}"
            file.issues.add(0, 0, "log_damaged", text)
    return groups, whole


def _as_long_as_the_first(record: np.dtype[Any], content: bytes) -> np.dtype[Any]:
    """A record as long as the distance to the second marker: the damaged line may have been the last variable's."""
    distance = content.find(BEGIN_RECORD, 1)
    if not record.itemsize < distance <= MAX_RECORD_BYTES or record.fields is None:
        return record
    names = list(record.names or ())
    forms = [record.fields[name][0] for name in names]
    offsets = [record.fields[name][1] for name in names]
    return np.dtype({"names": names, "formats": forms, "offsets": offsets, "itemsize": distance})


def _byte_order(preamble: bytes, name: str) -> Order:
    """The order of octets, by the log's time: 4 or 8 octets of C `time_t`, whatever the writer's machine had."""
    time = preamble[: len(preamble) - GROUP_BYTES - SPEC_BYTES]
    if len(time) in (4, 8):
        if int.from_bytes(time, "little") in _PLAUSIBLE_TIMES:
            return "<"
        if int.from_bytes(time, "big") in _PLAUSIBLE_TIMES:
            return ">"
    raise LogError(f"{name} has {len(preamble)} octets between header and snapshots that are none of a snaplog")


def _record_type(variables: list[_Variable], order: Order, name: str) -> np.dtype[Any]:
    """One record: the marker, then the variables at the offsets that this kernel's header gives."""
    known = [variable for variable in variables if variable.type in _FORMATS]
    again = [name for name, count in Counter(variable.name for variable in known).items() if count > 1]
    if again:
        raise LogError(f"{name} names a variable twice in the header of the snaplog: {again[0]}")
    beyond = [variable for variable in known if variable.offset > MAX_RECORD_BYTES]
    if beyond:
        raise LogError(f"{name} puts {beyond[0].name} at octet {beyond[0].offset} of a snapshot, which no kernel does")
    formats = [order + _FORMATS[variable.type] for variable in known]
    ends = [variable.offset + np.dtype(form).itemsize for variable, form in zip(known, formats, strict=True)]
    return np.dtype(
        {
            "names": ["", *(variable.name for variable in known)],
            "formats": [_MARKER, *formats],
            "offsets": [0, *(len(BEGIN_RECORD) + variable.offset for variable in known)],
            "itemsize": len(BEGIN_RECORD) + max(ends, default=0),
        }
    )


def _records(
    file: LogFile, content: bytes, offset: int, chunks: Iterator[bytes], record: np.dtype[Any]
) -> Iterator[npt.NDArray[Any]]:
    """Every whole record with a possible time, by step and not by search: a marker may also stand in the data.

    `content` begins with the first record, at `offset` of the file. Only where a record does not begin with its marker
    is the next one searched for, which is then followed by another marker or by the end of the file.
    """
    size = record.itemsize
    number, at, given = 1, 0, False
    more = True
    while more:
        content, at = content[at:], 0
        while more and len(content) < (BATCH_ROWS + 1) * size:
            chunk = next(chunks, b"")
            more, content = bool(chunk), content + chunk
        batch = []
        while len(content) - at >= (2 * size if more else size):
            whole = _run(content, at, size)
            if whole:
                records = np.frombuffer(content, record, whole, at)
                batch.append(records[_usable(file, records, number, offset)])
                number, offset, at = number + whole, offset + whole * size, at + whole * size
            else:
                skip = _next_record(content, at, size) - at
                text = f"{skip} octets that do not begin with a snapshot's marker were left out"
                file.issues.add(number, offset, "log_damaged", text)
                number, offset, at = number + max(1, skip // size), offset + skip, at + skip
        kept = np.frombuffer(b"".join(part.tobytes() for part in batch), record)
        if len(kept):
            given = True
            yield kept
    if len(content) > at:
        text = f"the last snapshot has {len(content) - at} of {size} octets and was left out"
        file.issues.add(number, offset, "log_truncated", text)
    if not given:
        raise LogError(f"{file.name} holds no whole snapshot")


def _run(content: bytes, at: int, size: int) -> int:
    """How many records from octet `at` on begin with their marker, up to BATCH_ROWS."""
    if not content.startswith(BEGIN_RECORD, at):
        return 0
    count = min((len(content) - at) // size, BATCH_ROWS)
    form = np.dtype({"names": ["marker"], "formats": [_MARKER], "itemsize": size})
    markers = np.frombuffer(content, form, count, at)["marker"]
    bad = np.flatnonzero(markers != np.void(BEGIN_RECORD))
    return int(bad[0]) if len(bad) else count


def _next_record(content: bytes, at: int, size: int) -> int:
    """Where the next record begins: at a marker that another follows by step, else where the next step leads."""
    found = content.find(BEGIN_RECORD, at + 1)
    while found >= 0:
        following = content[found + size : found + size + len(BEGIN_RECORD)]
        if BEGIN_RECORD.startswith(following):
            return found
        found = content.find(BEGIN_RECORD, found + 1)
    return min(at + size, len(content))


def _usable(file: LogFile, records: npt.NDArray[Any], number: int, offset: int) -> npt.NDArray[np.bool_]:
    """Which records have a possible time; the others become issues."""
    times = {name: records[name].astype(np.int64) for name in ("StartTimeSec", "StartTimeUsec", "Duration")}
    usable = timed(times)
    for at in np.flatnonzero(~usable):
        text = "a snapshot whose time is impossible was left out"
        file.issues.add(number + int(at), offset + int(at) * records.itemsize, "log_damaged", text)
    return usable


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
