"""IP packets in frames of link layers that the native decoder does not go through: dpkt's, or else Scapy's.

The native reader calls this module for each frame of such a link type, which is some thousand times slower than what it
decodes itself; the issue `slow_path` counts them. A frame in which neither library finds an IP packet is counted as one
that is not IP.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_IPV4, _IPV6 = 4, 6
_IPV4_HEADER_BYTES, _IPV6_HEADER_BYTES = 20, 40
_WITHOUT_IP = frozenset({18, 187, 201, 251, 254, 256})
"""Link types that dpkt or Scapy knows without a way to IP packets: PFSYNC, and those of Bluetooth."""

_SETTING = Lock()
"""Scapy's settings are those of the process."""


def knows(link_number: int) -> bool:
    """Return whether dpkt or Scapy goes through the link layer with this number (tcpdump.org/linktypes.html)."""
    return link_number in _dpkt_offsets() or _scapy_layer(link_number) is not None


def ip_packet(link_number: int, frame: bytes) -> bytes | None:
    """Return the IP packet in `frame`, and what follows it; None if neither library finds one."""
    offset = _dpkt_offsets().get(link_number)
    if offset is not None and _is_ip(frame[offset:]):
        return frame[offset:]
    layer = _scapy_layer(link_number)
    return None if layer is None else _found_by_scapy(layer, frame)


def _is_ip(packet: bytes) -> bool:
    """Return whether `packet` starts with an IP header; the length of a link header may differ from dpkt's."""
    from dpkt.dpkt import in_cksum

    version = packet[0] >> 4 if packet else 0
    if version == _IPV4 and len(packet) >= _IPV4_HEADER_BYTES:
        header_bytes, total_bytes = (packet[0] & 0xF) * 4, int.from_bytes(packet[2:4])
        return _IPV4_HEADER_BYTES <= header_bytes <= total_bytes and in_cksum(packet[:header_bytes]) == 0
    return version == _IPV6 and len(packet) >= _IPV6_HEADER_BYTES


@cache
def _dpkt_offsets() -> dict[int, int]:
    """Return the lengths of the link headers that dpkt knows, by link type, in octets."""
    from dpkt.pcap import dltoff

    return {number: octets for number, octets in dltoff.items() if number not in _WITHOUT_IP}


@cache
def _scapy_layer(link_number: int) -> Any:
    """Return Scapy's class of the link layer with this number; None if it has none."""
    from scapy.config import conf
    from scapy.layers import all as _layers  # noqa: F401 -- registers their link types

    return None if link_number in _WITHOUT_IP else conf.l2types.num2layer.get(link_number)


def _found_by_scapy(layer: Any, frame: bytes) -> bytes | None:
    from scapy.layers.inet import IP
    from scapy.layers.inet6 import IPv6

    try:
        with _SETTING, _six_lowpan():
            found: Any = layer(frame)
            while found and not isinstance(found, IP | IPv6):
                found = found.payload
            if not found:
                return None
            # What 6LoWPAN compressed does not stand in the frame.
            return bytes(found.original) if frame.endswith(found.original or b"-") else bytes(found)
    except Exception:  # A damaged frame makes Scapy's dissectors raise anything.
        return None


@contextmanager
def _six_lowpan() -> Iterator[None]:
    """Let Scapy take the payload of IEEE 802.15.4 for IPv6 (RFC 4944), and put back what the user had set."""
    from scapy.config import conf as scapy_conf

    conf: Any = scapy_conf
    before = conf.dot15d4_protocol
    conf.dot15d4_protocol = "sixlowpan"
    try:
        yield
    finally:
        conf.dot15d4_protocol = before
