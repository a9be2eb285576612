"""Each field of each segment against dpkt and scapy, on every fixture that is not damaged."""

from __future__ import annotations

import ipaddress
import logging
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpkt
import pytest

from fixtures import make_captures as make
from fixtures.make_captures import Variant
from hindflight.toolkit.capture import load_capture

logging.getLogger("scapy").setLevel(logging.ERROR)

Row = dict[str, Any]

# What both libraries leave to the caller: cut frames (they parse the whole header or nothing) and PPP's short forms.
VARIANTS = {
    name: variant
    for name, variant in make.captures().items()
    if not variant.damaged and name not in {"snaplen_60", "snaplen_54", "snaplen_40", "ppp"}
}


def read_records(octets: bytes) -> list[tuple[int, int, int, bytes]]:
    """Number, time, frame length and data of each record: pcap, written once more as plainly as can be."""
    order = "<" if octets[0] in {0xD4, 0x4D} else ">"
    nanosecond = 0x3C in octets[1:3]
    found: list[tuple[int, int, int, bytes]] = []
    at = 24
    while at < len(octets):
        second, fraction, captured, frame = struct.unpack_from(f"{order}IIII", octets, at)
        t_ns = second * 10**9 + fraction * (1 if nanosecond else 1000)
        found.append((len(found) + 1, t_ns, frame, octets[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return found


def options_row(options: list[tuple[int, bytes]]) -> Row:
    """The columns of a list of options (kind, data); the schema says what goes where."""
    row: Row = {"mss": None, "wscale": None, "sack_permitted": False, "ts_val": None, "ts_ecr": None}
    row |= {"sack_raw": [], "options_other": b""}
    for kind, data in options:
        if kind == 0:
            break
        if kind == 1:
            continue
        if kind == 2:
            row["mss"] = int.from_bytes(data)
        elif kind == 3:
            row["wscale"] = data[0]
        elif kind == 4:
            row["sack_permitted"] = True
        elif kind == 5:
            row["sack_raw"] = list(struct.unpack(f"!{len(data) // 4}I", data))
        elif kind == 8:
            row["ts_val"], row["ts_ecr"] = struct.unpack("!II", data)
        else:
            row["options_other"] += bytes([kind, len(data) + 2]) + data
    row["options_other"] = row["options_other"] or None
    return row


def ours(variant: Variant, folder: Path) -> list[Row]:
    path = folder / "capture.pcap"
    path.write_bytes(variant.octets())
    found = load_capture(path)
    flows = {flow["flow_id"]: flow for flow in found.flows.to_pylist()}
    rows = []
    for row in found.segments.to_pylist():
        flow = flows[row["flow_id"]]
        ends = [(flow["a_addr"], flow["a_port"]), (flow["b_addr"], flow["b_port"])]
        if row["direction"] == "b2a":
            ends.reverse()
        row["ends"] = ends
        # Unwrapped edges: their low 32 bits less those of the acknowledgement are what they were on the wire.
        shift = row["ack_raw"] - (row["ack"] or 0)
        row["sack_raw"] = [edge + shift & 0xFFFFFFFF for edge in row["sack"]]
        rows.append(row)
    return rows


def by_dpkt(link: int, frame: bytes) -> Row | None:
    packet: Any = {
        make.ETHERNET: dpkt.ethernet.Ethernet,
        make.NULL: dpkt.loopback.Loopback,
        make.LOOP: dpkt.loopback.Loopback,
        make.SLL: dpkt.sll.SLL,
        make.SLL2: dpkt.sll2.SLL2,
        make.RAW: lambda data: dpkt.ip.IP(data) if data[0] >> 4 == 4 else dpkt.ip6.IP6(data),
    }[link](frame)
    ip = packet if link == make.RAW else packet.data
    if not isinstance(ip, dpkt.ip.IP | dpkt.ip6.IP6) or not isinstance(ip.data, dpkt.tcp.TCP):
        return None
    v4 = isinstance(ip, dpkt.ip.IP)
    tcp = ip.data
    row = options_row(dpkt.tcp.parse_opts(tcp.opts) if tcp.opts.strip(b"\0") else [])
    return row | {
        "ends": [(str(ipaddress.ip_address(a)), p) for a, p in ((ip.src, tcp.sport), (ip.dst, tcp.dport))],
        "ip_version": ip.v,
        "ip_id": ip.id if v4 else None,
        "ttl": ip.ttl if v4 else ip.hlim,
        "dscp_ecn": ip.tos if v4 else ip.fc,
        "seq_raw": tcp.seq,
        "ack_raw": tcp.ack,
        "flags": tcp.flags,
        "window": tcp.win,
        "payload_bytes": ip.len - ip.hl * 4 - tcp.off * 4 if v4 and ip.len else len(tcp.data),
    }


def by_scapy(link: int, frame: bytes) -> Row | None:
    from scapy.layers import inet, inet6, l2

    packet: Any = {
        make.ETHERNET: l2.Ether,
        make.NULL: l2.Loopback,
        make.LOOP: l2.Loopback,
        make.SLL: l2.CookedLinux,
        make.SLL2: l2.CookedLinuxV2,
        make.RAW: inet.IP if frame[0] >> 4 == 4 else inet6.IPv6,
    }[link](frame)
    if inet.TCP not in packet:
        return None
    tcp = packet[inet.TCP]
    ip = packet[inet.IP] if inet.IP in packet else packet[inet6.IPv6]
    v4 = ip.version == 4
    # The names that scapy gives are not the wire's: the list is walked here, over scapy's cut of the header.
    options, raw, at = [], bytes(tcp.original)[20 : tcp.dataofs * 4], 0
    while at < len(raw):
        kind = raw[at]
        length = 1 if kind < 2 else raw[at + 1]
        options.append((kind, raw[at + 2 : at + length]))
        at += length
    known = dict(option for option in tcp.options if isinstance(option[0], str))
    row = options_row(options)
    assert row["mss"] == known.get("MSS")
    assert row["wscale"] == known.get("WScale")
    assert (row["ts_val"], row["ts_ecr"]) == known.get("Timestamp", (None, None))
    return row | {
        "ends": [(str(ipaddress.ip_address(a)), p) for a, p in ((ip.src, tcp.sport), (ip.dst, tcp.dport))],
        "ip_version": ip.version,
        "ip_id": ip.id if v4 else None,
        "ttl": ip.ttl if v4 else ip.hlim,
        "dscp_ecn": ip.tos if v4 else ip.tc,
        "seq_raw": tcp.seq,
        "ack_raw": tcp.ack,
        "flags": int(tcp.flags),
        "window": tcp.window,
        "ip_bytes": (ip.len if v4 else ip.plen + 40) or len(ip),
    }


WHOLE = [variant for variant in VARIANTS.values() if variant.name != "fragments"]
"""The peers decode one record at a time; tshark reassembles fragments (test_capture_tshark.py)."""

# Records in which a peer finds no TCP: scapy knows neither BSD's loopback family for IPv6, nor what follows an
# authentication header, nor IPv6 length 0.
BLIND = {"by_scapy null": {2}, "by_scapy ipv6_extensions": {4}, "by_scapy ip_length_zero": {2}}


@pytest.mark.parametrize("peer", [by_dpkt, by_scapy])
@pytest.mark.parametrize("variant", WHOLE, ids=lambda variant: variant.name)
def test_every_field(peer: Callable[[int, bytes], Row | None], variant: Variant, tmp_path: Path) -> None:
    rows = {row["record"]: row for row in ours(variant, tmp_path)}
    assert len(rows) == variant.segments
    compared = set()
    for number, t_ns, frame_bytes, data in read_records(variant.octets()):
        expected = peer(variant.link, data)
        if expected is not None:
            expected |= {"t_ns": t_ns, "frame_bytes": frame_bytes, "captured_bytes": len(data)}
            assert {key: rows[number][key] for key in expected} == expected
            compared.add(number)
    assert compared == rows.keys() - BLIND.get(f"{peer.__name__} {variant.name}", set())
