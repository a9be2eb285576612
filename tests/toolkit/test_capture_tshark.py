"""Each field of each segment against tshark: the fixtures, public captures and the kernel's own."""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures.make_captures import captures
from hindflight.toolkit.capture import load_capture
from tests.toolkit.test_capture_peers import read_records

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
PUBLIC = DATA / "public"
KERNEL = DATA / "kernel"

# Of damaged headers tshark shows what it can.
FIXTURES = {name: variant for name, variant in captures().items() if not variant.damaged}

FOUND = sorted(path for path in PUBLIC.glob("*/*") if {".pcap", ".pcapng", ".dmp", ".dump"} & set(path.suffixes))
SHARED = pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here")

FIELDS = (
    *("frame.number", "frame.len", "frame.cap_len", "frame.protocols"),
    *("ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport"),
    *("ip.id", "ip.ttl", "ipv6.hlim", "ip.dsfield", "ipv6.tclass", "ip.len", "ipv6.plen"),
    *("tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.window_size_value", "tcp.len"),
    *("tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.options.sack_perm"),
    *("tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr"),
    *("tcp.options.sack_le", "tcp.options.sack_re", "ip.frag_offset", "ipv6.fraghdr.offset"),
)
PREFERENCES = ("ip.defragment:TRUE", "ipv6.defragment:TRUE", "tcp.relative_sequence_numbers:FALSE")
QUOTES = {"icmp", "icmpv6"}
"""Their messages quote the start of a packet, which is not a segment."""


def tshark(octets: bytes, options: Sequence[str] = ()) -> list[dict[str, str]]:
    """What tshark says of each TCP segment, of the innermost IP header in a tunnel, with more `options` if given."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    command = [
        "tshark",
        "-n",
        "-r",
        "-",
        "-Y",
        "tcp",
        "-T",
        "fields",
        "-E",
        "occurrence=a",
        "-E",
        "separator=;",
        *options,
    ]
    command += [word for preference in PREFERENCES for word in ("-o", preference)]
    command += [word for name in FIELDS for word in ("-e", name)]
    done = subprocess.run(command, input=octets, check=False, capture_output=True)
    assert done.returncode == 0 or b"cut short" in done.stderr, done.stderr
    output = done.stdout.decode()
    rows = [dict(zip(FIELDS, line.split(";"), strict=True)) for line in output.splitlines()]
    return [innermost(row) for row in rows if not QUOTES & set(row["frame.protocols"].split(":"))]


def innermost(row: dict[str, str]) -> dict[str, str]:
    """Of each field the value of the innermost header; of the SACK blocks the first."""
    before = row["frame.protocols"].split(":tcp")[0].split(":")
    version = next(name for name in reversed(before) if name in {"ip", "ipv6"})
    other = "ipv6." if version == "ip" else "ip."
    first = {"tcp.options.sack_le", "tcp.options.sack_re"}
    found = {}
    for name, text in row.items():
        values = text.split(",")
        found[name] = "" if name.startswith(other) else values[0 if name in first else -1]
    return found


def number(text: str) -> int | None:
    return int(text, 0) if text else None


def expected(row: dict[str, str]) -> dict[str, Any]:
    v4 = bool(row["ip.src"])
    sack = row["tcp.options.sack_le"], row["tcp.options.sack_re"]
    ack = number(row["tcp.flags"] or "0") or 0
    ip_bytes = number(row["ip.len"]) if v4 else 40 + (number(row["ipv6.plen"]) or 0)
    found = {
        "record": number(row["frame.number"]),
        "frame_bytes": number(row["frame.len"]),
        "captured_bytes": number(row["frame.cap_len"]),
        "src": (row["ip.src"] or row["ipv6.src"], number(row["tcp.srcport"])),
        "dst": (row["ip.dst"] or row["ipv6.dst"], number(row["tcp.dstport"])),
        "ip_version": 4 if v4 else 6,
        "ip_id": number(row["ip.id"]) if v4 else None,
        "ttl": number(row["ip.ttl"] or row["ipv6.hlim"]),
        "dscp_ecn": number(row["ip.dsfield"] or row["ipv6.tclass"]),
        "seq_raw": number(row["tcp.seq_raw"]),
        "ack_raw": number(row["tcp.ack_raw"]) if ack & 0x10 else 0,
        "flags": number(row["tcp.flags"]),
        "window": number(row["tcp.window_size_value"]),
        "payload_bytes": number(row["tcp.len"]),
        "mss": number(row["tcp.options.mss_val"]),
        "wscale": number(row["tcp.options.wscale.shift"]),
        "ts_val": number(row["tcp.options.timestamp.tsval"]),
        "ts_ecr": number(row["tcp.options.timestamp.tsecr"]),
        "first_sack": tuple(number(edge) for edge in sack) if all(sack) else None,
    }
    # Without a length tshark took it from the frame; of a packet in fragments it gives the lengths of the last one.
    if ip_bytes:
        found["ip_bytes"] = ip_bytes
    if number(row["ip.frag_offset"]) or number(row["ipv6.fraghdr.offset"]):
        for name in ("ip_bytes", "frame_bytes", "captured_bytes"):
            del found[name]
    return found


def ours(path: Path) -> tuple[list[dict[str, Any]], set[int]]:
    """Our segments, and the records whose IP length goes beyond the frame."""
    found = load_capture(path)
    flows = {flow["flow_id"]: flow for flow in found.flows.to_pylist()}
    rows = []
    for row in found.segments.to_pylist():
        flow = flows[row["flow_id"]]
        ends = [(flow["a_addr"], flow["a_port"]), (flow["b_addr"], flow["b_port"])]
        row["src"], row["dst"] = ends if row["direction"] == "a2b" else ends[::-1]
        shift = row["ack_raw"] - (row["ack"] or 0)
        row["first_sack"] = tuple(edge + shift & 0xFFFFFFFF for edge in row["sack"][:2]) or None
        rows.append(row)
    beyond = {issue["record"] for issue in found.issues.to_pylist() if issue["kind"] == "ip_length"}
    return rows, beyond


# Segments in which tshark and we differ on purpose. It finds no TCP behind IPv6 length 0, and shows what little there
# is of a header that the capture cut; where PPPoE and IP give different lengths it believes PPPoE, we IP.
WE_ONLY = {"ip_length_zero": {2}}
TSHARK_ONLY = {"snaplen_40": {1}}
PAYLOAD_BY_PPPOE = {"pppoe-over-qinq.pcap": {19, 33, 41, 47, 63, 81}}


def compare(name: str, path: Path, octets: bytes, options: Sequence[str] = (), without: Sequence[str] = ()) -> int:
    """Compare all fields of all segments of `path`, except those `without`, with tshark's; return their number."""
    rows, beyond_frame = ours(path)
    found = [expected(row) for row in tshark(octets, options)]
    peers = {peer["record"]: {key: peer[key] for key in peer.keys() - set(without)} for peer in found}
    records = {row["record"] for row in rows}
    assert records - peers.keys() == WE_ONLY.get(name, set())
    assert peers.keys() - records == TSHARK_ONLY.get(name, set())
    for row in rows:
        peer = peers.get(row["record"], {})
        # The IP length goes beyond the frame: we keep it and say so, tshark cuts the payload.
        if row["record"] in beyond_frame | PAYLOAD_BY_PPPOE.get(name, set()):
            assert peer.pop("payload_bytes") < row["payload_bytes"]
        assert {key: row[key] for key in peer} == peer
    return len(rows)


def plain(path: Path) -> bytes:
    octets = path.read_bytes()
    if octets.startswith(b"\x1f\x8b"):
        return gzip.decompress(octets)
    return lzma.decompress(octets) if octets.startswith(b"\xfd7zXZ") else octets


@pytest.mark.peer
@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures(name: str, tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(FIXTURES[name].octets())
    assert compare(name, path, path.read_bytes()) == FIXTURES[name].segments


@pytest.mark.peer
@SHARED
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_public_captures(path: Path) -> None:
    compare(path.name, path, plain(path))


@pytest.mark.peer
@SHARED
@pytest.mark.parametrize("run", ["S1-reno", "S9-cubic", "S12-cubic+reno"])
def test_kernel_captures_in_every_field(run: str) -> None:
    path = KERNEL / run / "snd.pcap.xz"
    assert compare(run, path, plain(path)) > 1000


@SHARED
def test_all_kernel_captures_record_by_record() -> None:
    paths = sorted(KERNEL.glob("*/*.pcap.xz"))
    assert len(paths) >= 70
    for path in paths:
        records = read_records(plain(path))
        found = load_capture(path)
        assert found.issues.num_rows == 0, path
        # Nothing but TCP and the neighbours' ARP was on the wire.
        kinds = Counter("tcp" if data[12:14] == b"\x08\0" and data[23] == 6 else "other" for *_, data in records)
        assert found.summary.packets == len(records), path
        assert found.summary.tcp.packets == kinds["tcp"] == found.segments.num_rows, path
        times = [t_ns for _, t_ns, _, data in records if data[12:14] == b"\x08\0" and data[23] == 6]
        assert found.segments["t_ns"].to_pylist() == times, path
