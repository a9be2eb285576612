"""Layers written by hand from their specification, octet by octet, against tshark: two witnesses that are not ours.

What dpkt and Scapy write or read is in test_capture_peers.py, test_tunnels.py and test_uncommon.py. With those, every
layer that docs/captures.md lists has two; fixtures/PROVENANCE.md has the table.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from fixtures.make_captures import DST4, NOP, SRC4, STAMPS, TCP, Record, Variant, ethernet, ipv4, ipv6, tcp
from hindflight.toolkit.capture import load_capture
from tests.toolkit.test_capture_tshark import compare
from tests.toolkit.test_uncommon import NOT_TSHARK
from tests.toolkit.test_uncommon import frames as by_scapy

MAC, MAC2 = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
PACKET = ipv4(TCP, tcp(0x18, NOP + NOP + STAMPS))
PACKET6 = ipv6(TCP, tcp(0x18, NOP + NOP + STAMPS, ipv6=True))
FRAME = ethernet(0x0800, PACKET)
SNAP, SNAP6 = b"\xaa\xaa\x03\0\0\0\x08\0", b"\xaa\xaa\x03\0\0\0\x86\xdd"
BRIDGED = b"\xaa\xaa\x03\0\0\xf8\x08\0"
"""IEEE 802.1H."""
DATA = b"\x08\x02\0\0" + MAC + MAC2 + MAC + b"\x10\0"
"""IEEE 802.11 §9.2: a data frame from the distribution system."""
QOS_AMSDU = b"\x88\x02\0\0" + MAC + MAC2 + MAC + b"\x10\0" + b"\x80\0"
"""With quality of service and the A-MSDU bit."""
GRE, ETHERIP, L2TP3, MPLS_IN_IP, UDP = 47, 97, 115, 137, 17


def subframe(packet: bytes, last: bool) -> bytes:
    """A subframe of an A-MSDU, filled to four octets unless it is the last (IEEE 802.11 §9.3.2.2.2)."""
    body = SNAP + packet
    whole = MAC + MAC2 + struct.pack("!H", len(body)) + body
    return whole if last else whole + bytes(-len(whole) % 4)


def prism() -> bytes:
    """The header of wlan-ng: message code, length, device, and ten items of 12 octets."""
    items = b"".join(struct.pack("<IHHI", 0x00010044 + n * 0x10000, 0, 4, 0) for n in range(10))
    return struct.pack("<II16s", 0x44, 144, b"wlan0") + items


def avs() -> bytes:
    """The AVS header, version 1, of 64 octets in network order."""
    return struct.pack("!IIQQIIIIIIiiII", 0x80211001, 64, 0, 0, 4, 1, 110, 0, 0, 0, -50, -90, 0, 0)[:64]


def ppi(link: int) -> bytes:
    """PPI: version, flags, length, and the link type of what follows; no fields."""
    return struct.pack("<BBHI", 0, 0, 8, link)


def nflog() -> bytes:
    """Linux netfilter log: family, version, group; the attributes prefix (10) and payload (9), of whole words."""
    prefix = struct.pack("<HH", 4 + 6, 10) + b"a log\0" + bytes(2)
    return struct.pack("!BBH", 2, 0, 0) + prefix + struct.pack("<HH", 4 + len(PACKET), 9) + PACKET


def erf() -> bytes:
    """A record of an Endace card: time, Ethernet (2), flags, length, losses, length on the wire, padding."""
    head = struct.pack("<Q", 1_700_000_000 << 32) + struct.pack("!BBHHH", 2, 4, 18 + len(FRAME), 0, len(FRAME))
    return head + bytes(2) + FRAME


def over_ip(protocol: int, payload: bytes) -> bytes:
    return ethernet(0x0800, ipv4(protocol, payload))


def over_udp(port: int, payload: bytes) -> bytes:
    return over_ip(UDP, struct.pack("!HHHH", 40_001, port, 8 + len(payload), 0) + payload)


def erspan(version: int, head: bytes) -> bytes:
    """ERSPAN type II (version 1) and III (version 2) in GRE with a sequence number."""
    kind = {1: 0x88BE, 2: 0x22EB}[version]
    return over_ip(GRE, struct.pack("!HHI", 0x1000, kind, 7) + head + FRAME)


LAYERS: dict[str, tuple[int, bytes]] = {
    "raw, number 12": (12, PACKET),
    "raw, number 14": (14, PACKET6),
    "raw IPv4": (228, PACKET),
    "raw IPv6": (229, PACKET6),
    "PPP with HDLC framing": (50, b"\xff\x03\x00\x21" + PACKET),
    "PPP, protocol field compressed": (9, b"\x21" + PACKET),
    "PPP over Ethernet without it": (51, b"\x11\0" + struct.pack("!HH", 1, 2 + len(PACKET)) + b"\x00\x21" + PACKET),
    "PPP of pppd": (166, b"\x01\0\x00\x21" + PACKET),
    "PPP with direction": (204, b"\x01\xff\x03\x00\x57" + PACKET6),
    "PPP with MPLS": (9, b"\xff\x03\x02\x81" + struct.pack("!I", 16 << 12 | 0x100 | 64) + PACKET),
    "Cisco HDLC": (104, b"\x0f\0\x08\0" + PACKET),
    "token ring": (6, b"\x10\x40" + MAC + MAC2 + SNAP + PACKET),
    "token ring with a route": (6, b"\x10\x40" + MAC + b"\x82" + MAC2[1:] + b"\x06\x10\0\x11\0\x20" + SNAP + PACKET),
    "FDDI": (10, b"\x50" + MAC + MAC2 + SNAP6 + PACKET6),
    "frame relay": (107, b"\x18\x41\x03\xcc" + PACKET),
    "frame relay, SNAP": (107, b"\x18\x41\x03\0\x80\0\0\0\x08\0" + PACKET),
    "frame relay, Cisco": (107, b"\x18\x41\x08\0" + PACKET),
    "IP over Fibre Channel": (122, bytes(2) + MAC + bytes(2) + MAC2 + SNAP + PACKET),
    "wireless LAN, aggregate of one": (105, QOS_AMSDU + subframe(PACKET, last=True)),
    "wireless LAN, IEEE 802.1H": (105, DATA + BRIDGED + PACKET),
    "Prism": (119, prism() + DATA + SNAP + PACKET),
    "AVS": (163, avs() + DATA + SNAP + PACKET),
    "PPI with wireless LAN": (192, ppi(105) + DATA + SNAP6 + PACKET6),
    "NFLOG": (239, nflog()),
    "ERF": (197, erf()),
    "LLC with SNAP in Ethernet": (1, MAC + MAC2 + struct.pack("!H", 8 + len(PACKET)) + SNAP + PACKET),
    "LLC with IP in Ethernet": (1, MAC + MAC2 + struct.pack("!H", 3 + len(PACKET)) + b"\x06\x06\x03" + PACKET),
    "VLAN of old switches": (1, MAC + MAC2 + b"\x91\0\0\x05\x81\0\0\x06\x08\0" + PACKET),
    "MPLS multicast": (1, ethernet(0x8848, struct.pack("!I", 16 << 12 | 0x100 | 64) + PACKET)),
    "authentication header": (1, over_ip(51, bytes([TCP, 4, 0, 0]) + bytes(20) + PACKET[20:])),
    "MPLS in IP": (1, over_ip(MPLS_IN_IP, struct.pack("!I", 16 << 12 | 0x100 | 64) + PACKET)),
    "MPLS in GRE": (1, over_ip(GRE, struct.pack("!HHI", 0, 0x8847, 16 << 12 | 0x100 | 64) + PACKET)),
    "Ethernet in IP": (1, over_ip(ETHERIP, b"\x30\0" + FRAME)),
    "PPTP": (1, over_ip(GRE, struct.pack("!HHHHI", 0x3001, 0x880B, 2 + len(PACKET), 1, 7) + b"\x00\x21" + PACKET)),
    "ERSPAN I": (1, over_ip(GRE, struct.pack("!HH", 0, 0x88BE) + FRAME)),
    "ERSPAN II": (1, erspan(1, struct.pack("!HHI", 0x1000, 5, 0))),
    "ERSPAN III": (1, erspan(2, struct.pack("!HHIHH", 0x2000, 5, 0, 0, 0))),
    "L2TP 3 over IP": (1, over_ip(L2TP3, struct.pack("!I", 9) + FRAME)),
    "VXLAN of Linux": (1, over_udp(8472, b"\x08\0\0\0\0\0\x07\0" + FRAME)),
    "Geneve with options": (1, over_udp(6081, struct.pack("!BBHI", 1, 0, 0x6558, 7 << 8) + bytes(4) + FRAME)),
    "GTP-U with a sequence number": (
        1,
        over_udp(2152, struct.pack("!BBHIHBB", 0x32, 255, 4 + len(PACKET), 1, 7, 0, 0) + PACKET),
    ),
    "Teredo with an origin": (1, over_udp(3544, b"\0\0" + struct.pack("!H", 1234 ^ 0xFFFF) + bytes(4) + PACKET6)),
}
LABEL = struct.pack("!I", 16 << 12 | 0x100 | 64)


def gpe(next_protocol: int, packet: bytes) -> bytes:
    """VXLAN-GPE: flags (the identifier is valid, a next protocol is given), the next protocol, the identifier."""
    return over_udp(4790, struct.pack("!BHBI", 0x0C, 0, next_protocol, 7 << 8) + packet)


def nsh(next_protocol: int, packet: bytes) -> bytes:
    """Network service header: time to live 63, metadata of type 1 in 16 octets, service path 7, index 255."""
    return struct.pack("!HBBI", 0x0FC6, 1, next_protocol, 7 << 8 | 255) + bytes(16) + packet


LAYERS |= {
    "IP over InfiniBand": (242, bytes(40) + b"\x08\0\0\0" + PACKET),
    "IP over InfiniBand, IPv6": (242, b"\x60" + bytes(39) + b"\x86\xdd\0\0" + PACKET6),
    "VXLAN-GPE, IPv4": (1, gpe(1, PACKET)),
    "VXLAN-GPE, IPv6": (1, gpe(2, PACKET6)),
    "VXLAN-GPE, Ethernet": (1, gpe(3, FRAME)),
    "VXLAN-GPE, NSH": (1, gpe(4, nsh(1, PACKET))),
    "VXLAN-GPE, NSH, Ethernet": (1, gpe(4, nsh(3, FRAME))),
    "NSH": (1, ethernet(0x894F, nsh(1, PACKET))),
    "NSH, IPv6": (1, ethernet(0x894F, nsh(2, PACKET6))),
    "NSH, Ethernet": (1, ethernet(0x894F, nsh(3, FRAME))),
    "Ethernet in MPLS": (1, ethernet(0x8847, LABEL + FRAME)),
    "Ethernet in MPLS with a control word": (1, ethernet(0x8847, LABEL + struct.pack("!I", 9) + FRAME)),
    "Ethernet in MPLS, IPv6": (1, ethernet(0x8847, LABEL + ethernet(0x86DD, PACKET6))),
}
PSEUDOWIRES = {name for name in LAYERS if name.startswith("Ethernet in MPLS")}
"""No header says that they are Ethernet: an issue does."""
NO_ENCRYPTION = 'uat:esp_sa:"IPv4","*","*","*","NULL","","NULL",""'
LENGTHS = ("frame_bytes", "captured_bytes")
OTHER_LENGTHS = {"PPP with direction", "ERF", "wireless LAN, aggregate of one"}
"""tshark does not count the direction and the head of an ERF record; of an aggregate we count the subframe."""
SETTINGS = {
    "VXLAN of Linux": ("-d", "udp.port==8472,vxlan"),
    "L2TP 3 over IP": ("-d", "l2tp.pw_type==0,eth", "-o", "l2tp.cookie_size:None", "-o", "l2tp.l2_specific:None"),
    **dict.fromkeys(PSEUDOWIRES, ("-d", "mpls.label==16,pwethnocw")),
    "Ethernet in MPLS with a control word": ("-d", "mpls.label==16,pwethcw"),
    **dict.fromkeys(NOT_TSHARK, ("-o", "esp.enable_encryption_decode:TRUE", "-o", NO_ENCRYPTION)),
}
"""What tshark needs for a layer."""
PPPD = "PPP of pppd"
"""tshark 4.0 does not know the number of this link type; libpcap does."""


def written(name: str, folder: Path) -> Path:
    link, frame = LAYERS[name]
    path = folder / "capture.pcap"
    path.write_bytes(Variant(name, (Record(frame),), 1, link=link).octets())
    return path


@pytest.mark.parametrize("name", LAYERS)
def test_the_segment_that_the_octets_hold(name: str, tmp_path: Path) -> None:
    path = written(name, tmp_path)
    found = load_capture(path)
    (row,) = found.segments.to_pylist()
    want = PACKET6 if row["ip_version"] == 6 else PACKET
    header = want[40:] if row["ip_version"] == 6 else want[20:]
    seq, ack = struct.unpack_from("!II", header, 4)
    assert (row["seq_raw"], row["ack_raw"], row["flags"], row["payload_bytes"]) == (seq, ack, 0x18, 10)
    assert found.issues["kind"].to_pylist() == ["pseudowire"] * (name in PSEUDOWIRES)
    if row["ip_version"] == 4:
        (flow,) = found.flows.to_pylist()
        assert bytes(map(int, flow["a_addr"].split("."))) == SRC4
        assert bytes(map(int, flow["b_addr"].split("."))) == DST4


@pytest.mark.peer
@pytest.mark.parametrize("name", sorted(LAYERS.keys() - {PPPD}))
def test_tshark_finds_the_same_segment(name: str, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = written(name, tmp_path)
    without = LENGTHS if name in OTHER_LENGTHS else ()
    assert compare(name, path, path.read_bytes(), SETTINGS.get(name, ()), without) == 1


@pytest.mark.peer
@pytest.mark.parametrize("name", sorted(NOT_TSHARK))
def test_tshark_finds_what_scapy_wrote_with_esp(name: str, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    link, frame = by_scapy()[name]
    path = tmp_path / "capture.pcap"
    path.write_bytes(Variant(name, (Record(bytes(frame)),), 1, link=link).octets())
    # We do not count the trailer of ESP as part of the packet.
    assert compare(name, path, path.read_bytes(), SETTINGS[name], ["ip_bytes"]) == 1


@pytest.mark.peer
def test_libpcap_finds_the_segment_of_pppd(tmp_path: Path) -> None:
    """The filter that libpcap compiles for the link type matches the ports and a flag."""
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    path = written(PPPD, tmp_path)
    for expression, count in (("tcp port 5001 and tcp[tcpflags] & tcp-push != 0", 1), ("tcp port 5002", 0)):
        command = ["tcpdump", "-n", "-r", str(path), expression]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert bool(done.stdout) == bool(count)


def old_pcap(version: tuple[int, int]) -> bytes:
    """A file of a version that stores the length on the wire first; each record is cut to 60 octets of 76."""
    head = struct.pack("<IHHIIII", 0xA1B2C3D4, *version, 0, 0, 60, 1)
    frame = FRAME.ljust(76, b"\0")
    return head + b"".join(struct.pack("<IIII", 1_700_000_000 + n, n, 76, 60) + frame[:60] for n in range(3))


def modified_pcap() -> bytes:
    """The format of Kuznetsov's patches: records with interface, protocol, packet type and padding."""
    head = struct.pack("<IHHIIII", 0xA1B2CD34, 2, 4, 0, 0, 65_535, 1)
    extra = struct.pack("<IHBB", 2, 0x0008, 0, 0)
    sizes = (len(FRAME), len(FRAME))
    return head + b"".join(struct.pack("<IIII", 1_700_000_000 + n, n, *sizes) + extra + FRAME for n in range(3))


FILES = {"version 2.2": old_pcap((2, 2)), "version 2.0": old_pcap((2, 0)), "modified": modified_pcap()}


@pytest.mark.peer
@pytest.mark.parametrize("name", FILES)
def test_tshark_reads_the_same_from_old_files(name: str, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = tmp_path / "capture.pcap"
    path.write_bytes(FILES[name])
    # tshark tells the modified format only where it can go back in the file.
    assert compare(name, path, path.read_bytes(), ("-r", str(path))) == 3
