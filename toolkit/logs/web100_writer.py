"""Writes WEB100 snaplogs in the layouts of its kernels, byte by byte as web100's library does.

Layout: docs/logs.md. Reading is in toolkit/logs/web100.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from hindflight.toolkit.logs.model import Connection
from hindflight.toolkit.logs.web100 import BEGIN_RECORD, END_OF_HEADER, GROUP_BYTES
from hindflight.toolkit.logs.web100_layouts import LAYOUTS, Field, Layout

SIZES = {0: 4, 1: 4, 2: 4, 3: 4, 4: 4, 5: 4, 6: 4, 7: 8, 8: 2, 9: 17, 10: 17, 11: 32, 12: 1}
"""Octets of each type of variable."""
_IPV4, _ADDRESS, _ADDRESS_V6, _TEXT = 2, 9, 10, 11

Order = Literal["big", "little"]
Row = Mapping[str, int | str]
"""A snapshot: numbers and texts (addresses among them) by the variable's name; those left out are 0."""


@dataclass(frozen=True, slots=True)
class Snaplog:
    """What a snaplog says before its records. `time_s` is when it began, in seconds since 1970."""

    connection: Connection
    time_s: int
    layout: Layout = LAYOUTS["2.5.27"]
    big_endian: bool = False
    time_octets: int = 4
    group: str = "read"

    def octets(self, rows: Iterable[Row]) -> Iterator[bytes]:
        """Yield the log of `rows`: its head, then each record. ValueError: a value that the layout cannot hold."""
        order: Order = "big" if self.big_endian else "little"
        yield _header(self.layout) + b"\0" + END_OF_HEADER
        yield self.time_s.to_bytes(self.time_octets, order)
        yield self.group.encode("ascii").ljust(GROUP_BYTES, b"\0") + self._spec(order)
        fields = self.layout.groups[self.group]
        for row in rows:
            yield BEGIN_RECORD + b"".join(_value(field, row.get(field.name, 0), order) for field in fields)

    def _spec(self, order: Order) -> bytes:
        """The connection in 16 octets, which hold IPv4 alone: with IPv6 the addresses are in the records only."""
        there = self.connection
        ends = ((there.remote_port, there.remote_addr), (there.local_port, there.local_addr))
        return b"".join(_number(port, 2, order) + b"\0\0" + _four_octets(address) for port, address in ends)


def _header(layout: Layout) -> bytes:
    lines = [layout.version]
    for group, fields in layout.groups.items():
        lines += ["", f"/{group}"]
        offset = 0
        for field in fields:
            lines.append(f"{field.name} {offset} {field.type} {SIZES[field.type]}")
            offset += SIZES[field.type]
    return "\n".join([*lines, ""]).encode("ascii")


def _value(field: Field, value: int | str, order: Order) -> bytes:
    size = SIZES[field.type]
    if field.type in (_ADDRESS, _ADDRESS_V6, _IPV4):
        address = str(value or ipaddress.IPv4Address(0))
        return _address(address) if size == 17 else _four_octets(address)
    if field.type == _TEXT:
        return str(value or "").encode("ascii")[:size].ljust(size, b"\0")
    try:
        return _number(int(value), size, order)
    except OverflowError:
        raise ValueError(f"{field.name} = {value} does not fit {size} octets") from None


def _number(value: int, size: int, order: Order) -> bytes:
    return value.to_bytes(size, order, signed=value < 0)


def _address(text: str) -> bytes:
    """16 octets and a type: 1 for IPv4 in the first four, 2 for IPv6."""
    address = ipaddress.ip_address(text)
    return address.packed.ljust(16, b"\0") + (b"\x02" if address.version == 6 else b"\x01")


def _four_octets(text: str) -> bytes:
    address = ipaddress.ip_address(text)
    return address.packed if address.version == 4 else bytes(4)
