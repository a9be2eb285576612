"""Wireless LAN, uncommon link types, more tunnels, snoop and ERF: against Scapy, which builds them, and tshark."""

from __future__ import annotations

import logging
import lzma
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fixtures.make_captures import Record, Variant, tcp4
from hindflight.toolkit.capture import load_capture
from tests.toolkit.test_capture_tshark import compare

logging.getLogger("scapy").setLevel(logging.ERROR)

DEMO = Path(__file__).parents[2] / "toolkit/demo/geo-burst-loss.pcap.xz"


def frames() -> dict[str, tuple[int, Any]]:
    """One frame per layer with its link type, and a segment of 10 octets of payload inside."""
    from scapy.layers.dot11 import Dot11, Dot11QoS, RadioTap
    from scapy.layers.inet import IP, TCP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.ipsec import ESP, SecurityAssociation
    from scapy.layers.l2 import GRE, LLC, SNAP, Ether
    from scapy.layers.l2tp import L2TP
    from scapy.layers.pflog import PFLog
    from scapy.layers.ppp import HDLC, PPP

    mac: dict[str, Any] = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
    outer = Ether(**mac) / IP(src="192.0.2.1", dst="192.0.2.2")
    segment = TCP(sport=40_000, dport=5001, seq=7, ack=9, flags="PA", options=[("Timestamp", (1, 2))]) / b"0123456789"
    packet = IP(src="10.77.0.1", dst="10.77.0.2", id=0x1234, ttl=61) / segment
    packet6 = IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=59) / segment
    snap = LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=0x0800) / packet
    snap6 = LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=0x86DD) / packet6
    ends: dict[str, Any] = {"addr1": mac["dst"], "addr2": mac["src"], "addr3": mac["dst"]}
    data = Dot11(type=2, subtype=0, FCfield=1, **ends)
    qos = Dot11(type=2, subtype=8, FCfield=2, **ends) / Dot11QoS()
    bridge = Dot11(type=2, subtype=8, FCfield=3, addr4=mac["src"], **ends) / Dot11QoS()

    association_of: Any = SecurityAssociation

    def esp(mode: Any) -> Any:
        association = association_of(ESP, spi=7, crypt_algo="NULL", auth_algo="NULL", tunnel_header=mode)
        return Ether(**mac) / association.encrypt(packet)

    return {
        "wireless lan": (105, data / snap),
        "wireless lan with quality of service": (105, qos / snap6),
        "wireless bridge": (105, bridge / snap),
        "radiotap": (127, RadioTap() / data / snap),
        "radiotap with fields": (
            127,
            RadioTap(present="TSFT+Flags+Rate", mac_timestamp=5, Flags=0, Rate=2) / qos / snap,
        ),
        "l2tp": (1, outer / UDP(sport=1701, dport=1701) / L2TP(tunnel_id=1, session_id=2) / HDLC() / PPP() / packet),
        "teredo": (1, outer / UDP(sport=3544, dport=3544) / packet6),
        "esp without encryption, transport": (1, esp(None)),
        "esp without encryption, tunnel": (1, esp(IP(src="192.0.2.1", dst="192.0.2.2"))),
        "packet filter log": (117, PFLog(hdrlen=100) / packet),
        "wireless lan in gre": (1, outer / GRE(proto=0x8200) / qos / snap),
    }


NAMES = (
    *("wireless lan", "wireless lan with quality of service", "wireless bridge", "radiotap", "radiotap with fields"),
    *("l2tp", "teredo", "esp without encryption, transport", "esp without encryption, tunnel", "wireless lan in gre"),
    "packet filter log",
)
NOT_TSHARK = {"esp without encryption, transport", "esp without encryption, tunnel"}
"""tshark reads ESP without encryption only if it is told to."""


@pytest.mark.parametrize("name", NAMES)
def test_the_segment_that_scapy_built(name: str, tmp_path: Path) -> None:
    link, frame = frames()[name]
    variant = Variant(name, (Record(bytes(frame)),), 1, link=link)
    path = tmp_path / "capture"
    path.write_bytes(variant.octets())
    found = load_capture(path)
    assert found.issues.num_rows == 0
    (row,) = found.segments.select(["seq_raw", "ack_raw", "flags", "payload_bytes", "ts_val", "ts_ecr"]).to_pylist()
    assert tuple(row.values()) == (7, 9, 0x18, 10, 1, 2)
    for length in range(len(bytes(frame))):
        cut = Variant(name, (Record(bytes(frame)[:length], frame_bytes=len(bytes(frame))),), 1, link=link)
        path.write_bytes(cut.octets())
        load_capture(path)


@pytest.mark.peer
def test_tshark_finds_the_same_segments(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    for name in NAMES:
        if name not in NOT_TSHARK:
            link, frame = frames()[name]
            octets = Variant(name, (Record(bytes(frame)),), 1, link=link).octets()
            path = tmp_path / "capture"
            path.write_bytes(octets)
            assert compare(name, path, octets) == 1


@pytest.mark.peer
def test_a_capture_that_editcap_converted_to_snoop_gives_the_same_tables(tmp_path: Path) -> None:
    if shutil.which("editcap") is None:
        pytest.skip("editcap is not installed")
    plain, converted = tmp_path / "plain.pcap", tmp_path / "converted"
    plain.write_bytes(lzma.decompress(DEMO.read_bytes()))
    subprocess.run(
        ["editcap", "-F", "snoop", "-r", str(plain), str(converted), "1-3000"], check=True, capture_output=True
    )
    ours = load_capture(converted)
    whole = load_capture(plain).segments.slice(0, 3000)
    assert ours.issues.num_rows == 0
    same = ["record", "seq", "ack", "flags", "window", "payload_bytes", "sack", "ts_val", "ip_id", "captured_bytes"]
    assert ours.segments.select(same).equals(whole.select(same))
    for one, other in zip(ours.segments["t_ns"].to_pylist(), whole["t_ns"].to_pylist(), strict=True):
        assert one == other // 1000 * 1000


@pytest.mark.peer
def test_tshark_reads_the_same_from_records_of_an_endace_card(tmp_path: Path) -> None:
    frame = tcp4(options=b"\x08\x0a" + bytes(8))
    octets = b"".join(
        struct.pack("<QBBH", 1_700_000_000 + n << 32 | 1 << 31, 2, 4, 0)[:10]
        + struct.pack("!HHH", 18 + len(frame), 0, len(frame))
        + bytes(2)
        + frame
        for n in range(4)
    )
    path = tmp_path / "capture.erf"
    path.write_bytes(octets)
    assert compare("erf", path, octets) == 4
    assert load_capture(path).segments["t_ns"].to_pylist() == [
        (1_700_000_000 + n) * 10**9 + 10**9 // 2 for n in range(4)
    ]


@pytest.mark.parametrize("outer", [False, True])
def test_outer_flows_by_choice(outer: bool, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(Variant("teredo", (Record(bytes(frames()["teredo"][1])),), 1).octets())
    found = load_capture(path, outer=outer)
    assert (found.segments.num_rows, found.others.num_rows) == ((0, 1) if outer else (1, 0))
    assert found.issues["kind"].to_pylist() == ["skipped"] * outer
