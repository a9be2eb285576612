"""Tunnels that Scapy builds: the inner segments, against what was built and against tshark."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from fixtures.make_captures import Record, Variant
from hindflight.toolkit.capture import load_capture
from tests.toolkit.test_capture_tshark import compare, tshark

logging.getLogger("scapy").setLevel(logging.ERROR)


def frames() -> dict[str, Any]:
    """One Ethernet frame per tunnel, with a segment of 10 octets of payload inside."""
    from scapy.contrib.erspan import ERSPAN_II
    from scapy.contrib.geneve import GENEVE
    from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
    from scapy.contrib.mpls import MPLS, EoMCW
    from scapy.contrib.nsh import NSH
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
        "vxlan-gpe": outer6 / UDP(sport=5, dport=4790) / VXLAN(vni=7, flags=0x0C, NextProtocol=2) / packet6,
        "nsh in vxlan-gpe": outer
        / UDP(sport=5, dport=4790)
        / VXLAN(vni=7, flags=0x0C, NextProtocol=4)
        / NSH(spi=7, nextproto=3)
        / frame,
        "nsh": Ether(**mac, type=0x894F) / NSH(spi=7, nextproto=1) / packet,
        "geneve": outer6 / UDP(sport=5, dport=6081) / GENEVE(vni=7, proto=0x6558) / frame,
        "gtp-u": outer / UDP(sport=2152, dport=2152) / GTP_U_Header(teid=1) / packet,
        "gtp-u with a container": outer
        / UDP(sport=2152, dport=2152)
        / GTP_U_Header(teid=1, E=1, next_ex=0x85)
        / GTPPDUSessionContainer(type=1, QFI=1)
        / packet6,
        "mpls": Ether(**mac, type=0x8847) / MPLS(label=16, s=0) / MPLS(label=17, s=1) / packet,
        "pppoe": Ether(**mac) / PPPoE(sessionid=1) / PPP(proto=0x21) / packet,
        "ethernet in mpls": Ether(**mac, type=0x8847) / MPLS(label=18, s=1) / frame,
        "ethernet in mpls with a control word": Ether(**mac, type=0x8847) / MPLS(label=19, s=1) / EoMCW(seq=9) / frame,
        "gre in ip in ip": outer / IP(src="198.51.100.1", dst="198.51.100.2") / GRE() / packet,
    }


def fragmented() -> dict[str, list[Any]]:
    """The fragments of the outer packet of a tunnel, with a segment of 400 octets of payload inside."""
    from scapy.layers import inet, inet6
    from scapy.layers.inet import IP, TCP, UDP
    from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
    from scapy.layers.l2 import GRE, Ether
    from scapy.layers.vxlan import VXLAN

    cut: Any = inet.fragment
    cut6: Any = inet6.fragment6
    mac: dict[str, Any] = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
    packet = IP(src="10.77.0.1", dst="10.77.0.2") / TCP(sport=40_000, dport=5001, seq=7, ack=9, flags="A") / bytes(400)
    outer = IP(src="192.0.2.1", dst="192.0.2.2", id=7)
    outer6 = IPv6(src="2001:db8:1::1", dst="2001:db8:1::2") / IPv6ExtHdrFragment(id=7)
    v4 = {
        "gre": outer / GRE() / packet,
        "vxlan": outer / UDP(dport=4789) / VXLAN(vni=7, flags=8) / Ether(**mac) / packet,
    }
    parts = {name: cut(whole, fragsize=200) for name, whole in v4.items()}
    parts["4in6"] = cut6(outer6 / packet, 240)
    return {name: [Ether(**mac) / piece for piece in pieces] for name, pieces in parts.items()}


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
    issues = {row["kind"]: row["text"] for row in found.issues.to_pylist()}
    assert issues.keys() == {"pseudowire"}
    assert issues["pseudowire"].startswith("2 MPLS packets hold an Ethernet frame")
    ends = {(flow["a_addr"], flow["b_addr"]) for flow in found.flows.to_pylist()}
    assert ends == {("10.77.0.1", "10.77.0.2"), ("2001:db8::1", "2001:db8::2")}


@pytest.mark.peer
def test_tshark_reads_the_same_fields(capture: Path) -> None:
    labels = ("-d", "mpls.label==18,pwethnocw", "-d", "mpls.label==19,pwethcw")
    assert compare("tunnels", capture, capture.read_bytes(), labels) == len(frames())


@pytest.mark.parametrize("name", ["gre", "vxlan", "4in6"])
def test_a_fragmented_packet_of_a_tunnel_has_one_whole_segment(name: str, tmp_path: Path) -> None:
    pieces = [bytes(piece) for piece in fragmented()[name]]
    assert len(pieces) > 2
    path = tmp_path / "capture.pcap"

    def read(kept: list[bytes]) -> tuple[list[tuple[int, int]], list[str]]:
        path.write_bytes(Variant(name, tuple(map(Record, kept)), len(kept)).octets())
        found = load_capture(path)
        segments = [(row["seq_raw"], row["payload_bytes"]) for row in found.segments.to_pylist()]
        return segments, found.issues["kind"].to_pylist()

    assert read(pieces) == read(pieces[::-1]) == ([(7, 400)], [])
    assert [(int(row["tcp.seq_raw"]), int(row["tcp.len"])) for row in tshark(path.read_bytes())] == [(7, 400)]
    assert read(pieces[:-1]) == ([(7, 400)], ["fragment"])
    assert read(pieces[1:]) == ([], [] if name == "vxlan" else ["skipped"])
