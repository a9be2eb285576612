"""The profile `windows`: what Microsoft publishes of Windows 10 and Windows Server 2019; the rest is as in `rfc`.

Depends on the keys of `[flow]`, not on how a stack uses them. Read docs/profiles.md, "Windows".
"""

from __future__ import annotations

from typing import Any

TEMPLATES = 'Havey, "TCP Templates for Windows Server 2019", Microsoft 2018, template InternetCustom'
TRANSPORTS = "Microsoft Networking Blog, July 2016: transports of the Windows 10 Anniversary Update"

WINDOWS: dict[str, tuple[Any, str]] = {
    "retry_limit": (5, "Microsoft KB 170359: TcpMaxDataRetransmissions"),
    "syn_retry_limit": (2, "Microsoft, TcpInitialRTT: the request is repeated twice"),
    "timestamps": (False, "Microsoft KB 224829: not sent unless asked for"),
    "initial_window": ("10 pkts", f"{TEMPLATES}; {TRANSPORTS}"),
    "recovery": ("rack_prr", f"{TRANSPORTS}: RACK"),
    "tail_loss_probe": (True, f"{TRANSPORTS}: tail loss probe"),
    "min_rto": ("300 ms", TEMPLATES),
    "initial_rto": ("3 s", "Microsoft KB 170359 and TcpInitialRTT: 3 s"),
    "delayed_ack": (True, f"{TEMPLATES}: an ACK for every second segment"),
    "delayed_ack_timeout": ("40 ms", TEMPLATES),
    "receive_buffer": ("64 KiB", "Davies, TechNet Magazine 2007: receive window auto-tuning, from 64 KiB"),
    "receive_buffer_max": ("16 MiB", "Davies, TechNet Magazine 2007: up to 16 MiB"),
}
"""Value, as a scenario writes it, and source of each key."""

BASE = "rfc"
"""The engine's profile that has all other values."""
