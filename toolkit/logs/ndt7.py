"""ndt7's results (M-Lab): one JSON document per test, with the server's TCP_INFO every 100 ms or so."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from functools import partial

from hindflight.toolkit.logs.addresses import plain_address
from hindflight.toolkit.logs.collector import Collector
from hindflight.toolkit.logs.flat_objects import FlatObject, flat_objects
from hindflight.toolkit.logs.model import UTC, Connection, KernelLog, Numbers
from hindflight.toolkit.logs.octets import LogFile
from hindflight.toolkit.logs.tcp_info import kernel_log, possible
from hindflight.toolkit.logs.tcp_info_jsonl import named_fields
from hindflight.toolkit.logs.times import parse_moment

_HEAD_FIELD = re.compile(rb'"(ServerIP|ClientIP|StartTime|ServerPort|ClientPort)"\s*:\s*"?([^",}\s]{1,64})')
_SECTION = re.compile(rb'"(Download|Upload|ServerMeasurements|ClientMeasurements)"\s*:')
_ROLE = re.compile(rb'"(BBRInfo|TCPInfo|ConnectionInfo)"\s*:\s*$')


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a result."""
    return head.lstrip().startswith(b"{") and b'"ServerIP"' in head and b'"ServerMeasurements"' in head


def read(file: LogFile) -> Iterator[KernelLog]:
    """Yield the parts of the log of the test's connection, as the server saw it."""
    head: dict[str, str] = {}
    place: dict[str, bool] = {}
    bbr: dict[str, int] = {}
    collector: Collector | None = None
    for found in flat_objects(file):
        _follow(found.before, head, place)
        role = _ROLE.search(found.before)
        if role is None or place.get("client", False):
            continue
        if role[1] == b"BBRInfo":
            bbr = _bbr(found)
            continue
        record = _record(found, head, bbr) if role[1] == b"TCPInfo" else None
        bbr = {}
        if record is not None:
            collector = collector or Collector(partial(_built, _connection(head)))
            yield from collector.add("server", record)
        elif role[1] == b"TCPInfo":
            text = "a measurement without whole TCP_INFO, or without the time of the test, was left out"
            file.issues.add(found.record, found.offset, "log_damaged", text)
    if collector is not None:
        yield from collector.rest()


def _follow(text: bytes, head: dict[str, str], place: dict[str, bool]) -> None:
    """Keep addresses and the start of the test, and whether the measurements are the client's."""
    for name, value in _HEAD_FIELD.findall(text):
        head[name.decode()] = value.decode("ascii", "replace")
    for section in _SECTION.findall(text):
        if section.endswith(b"Measurements"):
            place["client"] = section == b"ClientMeasurements"


def _bbr(found: FlatObject) -> dict[str, int]:
    values = {} if found.value is None else found.value
    numbers = {f"BBRInfo.{name}": value for name, value in values.items() if isinstance(value, int)}
    return numbers if possible(numbers) else {}


def _record(found: FlatObject, head: dict[str, str], bbr: dict[str, int]) -> dict[str, int] | None:
    info = found.value
    if info is None:
        return None
    elapsed_us = info.get("ElapsedTime")
    fields = named_fields({name: value for name, value in info.items() if name != "ElapsedTime"})
    start = parse_moment(head.get("StartTime", ""))
    if fields is None or start is None or start.clock != UTC or not isinstance(elapsed_us, int):
        return None
    if not 0 <= elapsed_us < 1 << 50:
        return None
    return fields | bbr | {"ElapsedTime": elapsed_us, "t_ns": start.t_ns + elapsed_us * 1000}


def _connection(head: dict[str, str]) -> Connection | None:
    server, client = plain_address(head.get("ServerIP", "")), plain_address(head.get("ClientIP", ""))
    ports = head.get("ServerPort", ""), head.get("ClientPort", "")
    if server is None or client is None or not all(re.fullmatch(r"\d{1,5}", port, re.ASCII) for port in ports):
        return None
    return Connection(server, int(ports[0]) & 0xFFFF, client, int(ports[1]) & 0xFFFF, opened=False)


def _built(
    connection: Connection | None,
    _key: Hashable,
    numbers: dict[str, Numbers],
    texts: dict[str, list[str]],
    before: KernelLog | None,
) -> KernelLog:
    return kernel_log(numbers, texts, before, connection)
