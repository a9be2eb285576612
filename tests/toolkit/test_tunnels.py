"""Tunnels that Scapy builds: the inner segments, against what was built and against tshark."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from fixtures.make_captures import Record, Variant
from hindflight.toolkit.capture import load_capture
from tests.toolkit.test_capture_tshark import compare

logging.getLogger("scapy").setLevel(logging.ERROR)


def frames() -> dict[str, Any]:
    """One Ethernet frame per tunnel, with a segment of 10 octets of payload inside."""
    from scapy.contrib.erspan import ERSPAN_II
    from scapy.contrib.geneve import GENEVE
    from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
    from scapy.contrib.mpls import MPLS
    from scapy.layers.inet import IP, TCP, UDP
    from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
    from scapy.layers.l2 import GRE, Dot1Q, Ether
    from scapy.layers.ppp import PPP, PPPoE
    from scapy.layers.vxlan import VXLAN

    mac: dict[str, Any] = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
    outer = Ether(**mac) / IP(src="192.0.2.1", dst="192.0.2.2")
    outer6 = Ether(**mac) / IPv6(src="2001:db8:1::1", dst="2001:db8:1::2")
    segment = TCP(sport=40_000, dport=5001, seq=7, ack=9, flags="PA", options=[("Timestamp", (1, 2))]) / b"0123456789"
    packet = IP(src="10.77.0.1", dst="10.77.0.2", id=0x1234, ttl=61) / segment
    packet6 = IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=59) / segment
    frame = Ether(**mac) / packet
    return {
        "ip in ip": outer / packet,
        "6in4": outer / packet6,
        "4in6": outer6 / packet,
        "6in6 behind options": outer6 / IPv6ExtHdrDestOpt() / packet6,
        "gre": outer / GRE() / packet,
        "gre with key, checksum and sequence": outer / GRE(key_present=1, chksum_present=1, seqnum_present=1) / packet6,
        "gre with ethernet": outer / GRE(proto=0x6558) / frame,
        "erspan ii": outer / GRE(proto=0x88BE, seqnum_present=1) / ERSPAN_II() / frame,
        "vxlan": outer / UDP(sport=5, dport=4789) / VXLAN(vni=7, flags=8) / frame,
        "vxlan with a tag inside": outer
        / UDP(sport=5, dport=4789)
        / VXLAN(vni=7, flags=8)
        / Ether(**mac)
        / Dot1Q(vlan=5)
        / packet,
        "geneve": outer6 / UDP(sport=5, dport=6081) / GENEVE(vni=7, proto=0x6558) / frame,
        "gtp-u": outer / UDP(sport=2152, dport=2152) / GTP_U_Header(teid=1) / packet,
        "gtp-u with a container": outer
        / UDP(sport=2152, dport=2152)
        / GTP_U_Header(teid=1, E=1, next_ex=0x85)
        / GTPPDUSessionContainer(type=1, QFI=1)
        / packet6,
        "mpls": Ether(**mac, type=0x8847) / MPLS(label=16, s=0) / MPLS(label=17, s=1) / packet,
        "pppoe": Ether(**mac) / PPPoE(sessionid=1) / PPP(proto=0x21) / packet,
        "gre in ip in ip": outer / IP(src="198.51.100.1", dst="198.51.100.2") / GRE() / packet,
    }


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = tuple(Record(bytes(frame)) for frame in frames().values())
    path = tmp_path_factory.mktemp("tunnels") / "capture.pcap"
    path.write_bytes(Variant("tunnels", records, len(records)).octets())
    return path


def test_every_inner_segment_is_read(capture: Path) -> None:
    from scapy.layers.inet import IP, TCP
    from scapy.layers.inet6 import IPv6

    built = frames()
    found = load_capture(capture)
    rows = {row["record"]: row for row in found.segments.to_pylist()}
    for record, (name, frame) in enumerate(built.items(), 1):
        row = rows[record]
        inner = frame[TCP].underlayer
        assert row["ip_version"] == (6 if isinstance(inner, IPv6) else 4), name
        assert row["ttl"] == (61 if isinstance(inner, IP) else 59), name
        assert (row["seq_raw"], row["ack_raw"], row["payload_bytes"], row["ts_val"]) == (7, 9, 10, 1), name
    assert len(rows) == len(built)
    assert found.issues.num_rows == 0
    ends = {(flow["a_addr"], flow["b_addr"]) for flow in found.flows.to_pylist()}
    assert ends == {("10.77.0.1", "10.77.0.2"), ("2001:db8::1", "2001:db8::2")}


@pytest.mark.peer
def test_tshark_reads_the_same_fields(capture: Path) -> None:
    assert compare("tunnels", capture, capture.read_bytes()) == len(frames())
