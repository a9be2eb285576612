"""Addresses and ports as logs print them."""

from __future__ import annotations

import ipaddress


def plain_address(text: str) -> str | None:
    """Return an address as captures show it, an IPv4 address mapped into IPv6 as IPv4; None if it is not an address."""
    try:
        address = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def endpoint(text: str) -> tuple[str, int] | None:
    """Return address and port of `10.0.0.1:80`, `[2001:db8::1]:80` or `10.0.0.1%eth0:80`; None if it is neither."""
    host, _, port = text.rpartition(":")
    address = plain_address(host)
    if address is None or not port.isascii() or not port.isdecimal() or len(port) > 5 or int(port) > 0xFFFF:
        return None
    return address, int(port)
