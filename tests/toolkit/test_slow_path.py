"""Link layers that dpkt and Scapy go through: octets written by hand from the specifications, and tshark."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from fixtures.make_captures import Record, Variant, tcp4
from hindflight.toolkit.capture import load_capture
from hindflight.toolkit.errors import CaptureError
from hindflight.toolkit.slow_path import ip_packet, knows
from tests.toolkit.test_capture_tshark import compare

PACKET = tcp4()[14:]
"""An IPv4 packet."""

# tcpdump.org/linktypes.html: the direction and the compressed header, 16 octets.
SLIP = bytes([0]) + bytes(15)
# IEEE 802.3br §99.3: preamble and start of frame; then Ethernet with its checksum.
ETHERNET = bytes.fromhex("020000000001020000000002") + b"\x08\x00" + PACKET
MPACKET = b"\x55" * 7 + b"\xd5" + ETHERNET + struct.pack("<I", zlib.crc32(ETHERNET))
# IEEE 802.15.4: a data frame with short addresses of one network; then RFC 4944 §5.1, uncompressed IPv6.
SIX_LOWPAN = bytes.fromhex("418801cdab02000100") + b"\x41"
SEGMENT6 = struct.pack(">HHIIBBHHH", 40_000, 5001, 7, 9, 5 << 4, 0x18, 1000, 0, 0) + b"0123456789"
PACKET6 = struct.pack(">IHBB", 6 << 28, len(SEGMENT6), 6, 59) + bytes(15) + b"\1" + bytes(15) + b"\2" + SEGMENT6

FRAMES = {
    "slip": (8, SLIP + PACKET),
    "mpacket": (274, MPACKET),
    "6lowpan": (230, SIX_LOWPAN + PACKET6),
}


def capture_of(tmp_path: Path, link: int, *frames: bytes) -> Path:
    path = tmp_path / "slow.pcap"
    records = tuple(Record(frame) for frame in frames)
    path.write_bytes(Variant("slow", records, 0, (), link=link).octets())
    return path


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_the_segment_inside(tmp_path: Path, name: str) -> None:
    link, frame = FRAMES[name]
    found = load_capture(capture_of(tmp_path, link, frame, frame[:5]))
    (row,) = found.segments.select(["record", "payload_bytes", "frame_bytes", "captured_bytes"]).to_pylist()
    assert row == {"record": 1, "payload_bytes": 10, "frame_bytes": len(frame), "captured_bytes": len(frame)}
    (issue,) = (row for row in found.issues.to_pylist() if row["kind"] == "slow_path")
    assert issue["text"].startswith(f"2 frames of link type {link} (")
    assert issue["text"].endswith("on the slow path; 1 of them hold no IP packet that it finds")


@pytest.mark.peer
@pytest.mark.parametrize("name", ["mpacket", "6lowpan"])
def test_tshark_finds_the_same_segment(tmp_path: Path, name: str) -> None:
    path = capture_of(tmp_path, *FRAMES[name])
    assert compare("slow path", path, path.read_bytes()) == 1


def test_damaged_frames_hold_no_packet() -> None:
    for link, frame in FRAMES.values():
        assert knows(link)
        for length in range(len(frame)):
            ip_packet(link, frame[:length])
        assert ip_packet(link, bytes(range(200))) is None


def test_what_neither_knows_is_refused(tmp_path: Path) -> None:
    assert not knows(143)
    assert not knows(187)
    with pytest.raises(CaptureError, match=r"has link type 143 \(DOCSIS\), which is not supported"):
        load_capture(capture_of(tmp_path, 143, b"abc"))
