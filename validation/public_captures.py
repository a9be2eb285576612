"""Public captures as we and tshark read them: `python -m validation.public_captures FOLDER`.

One line per capture: packets, issues, and the difference from tshark in packets, TCP segments and streams. Each
difference is explained by a rule that is checked here, or marked with `?`.
"""

from __future__ import annotations

import gzip
import lzma
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hindflight.toolkit.capture import Capture, load_capture
from hindflight.toolkit.errors import HindflightError

SUFFIXES = {".pcap", ".pcapng", ".cap", ".dmp", ".dump", ".ntar", ".snoop", ".erf"}
FIELDS = ("frame.number", "frame.protocols", "tcp.stream")
UNDECODED = {"frame_cut", "ip_header", "tcp_header", "fragment", "link_type"}
"""Issues of records that are not segments."""
DAMAGE = {"cut", "record_header", "compression"}


@dataclass(frozen=True, slots=True)
class Peer:
    """What tshark finds: the number of packets, the records with TCP, and the number of streams."""

    packets: int
    tcp: frozenset[int]
    streams: int


def tshark(path: Path) -> Peer:
    """Return what tshark finds in the capture at `path`. Segments that ICMP quotes are left out."""
    octets = path.read_bytes()
    if octets.startswith(b"\x1f\x8b"):
        octets = gzip.decompress(octets)
    elif octets.startswith(b"\xfd7zXZ"):
        octets = lzma.decompress(octets)
    command = ["tshark", "-n", "-r", "-", "-T", "fields", "-E", "occurrence=l"]
    command += [word for name in FIELDS for word in ("-e", name)]
    done = subprocess.run(command, input=octets, check=False, capture_output=True)
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    found = [row for row in rows if "tcp" in row[1].split(":") and not {"icmp", "icmpv6"} & set(row[1].split(":"))]
    return Peer(len(rows), frozenset(int(row[0]) for row in found), len({row[2] for row in found}))


def explain(found: Capture, peer: Peer) -> list[str]:
    """Return why we and tshark differ: a rule for each difference, `?` where none applies."""
    issues = found.issues.to_pylist()
    kinds = {row["kind"] for row in issues}
    listed = {row["record"] for row in issues if row["kind"] in UNDECODED}
    ours = set(found.segments["record"].to_pylist())
    reasons = []
    if found.summary.packets != peer.packets:
        reasons.append("damaged records" if kinds & DAMAGE else "? packets")
    if peer.tcp - ours:
        reasons.append(_missing(peer.tcp - ours, listed, kinds))
    if ours - peer.tcp:
        zero = {row["record"] for row in issues if row["kind"] == "ip_length_zero"}
        reasons.append("IP length 0 is read" if ours - peer.tcp <= zero else "? segments")
    if found.flows.num_rows != peer.streams:
        reasons.append(_streams(found))
    return reasons


def _missing(records: Collection[int], listed: Collection[int], kinds: Collection[str]) -> str:
    if set(records) <= set(listed):
        return "too little of the header: listed as issues"
    return "protocols listed as skipped" if "skipped" in kinds else "? segments"


def _streams(found: Capture) -> str:
    """Two connections of the same ends: a closed one ends after 60 s, and a SYN with another number opens the next."""
    ends = {
        frozenset([(row["a_addr"], row["a_port"]), (row["b_addr"], row["b_port"])]) for row in found.flows.to_pylist()
    }
    return "ports used again" if len(ends) < found.flows.num_rows else "? streams"


def row_of(path: Path) -> dict[str, Any]:
    """Return the line of one capture."""
    peer = tshark(path)
    try:
        found = load_capture(path)
    except HindflightError as error:
        return {"file": path.name, "packets": None, "reasons": [f"refused: {error.message}"]}
    return {
        "file": path.name,
        "packets": found.summary.packets,
        "issues": found.issues.num_rows,
        "d_packets": found.summary.packets - peer.packets,
        "d_tcp": found.summary.tcp.packets - len(peer.tcp),
        "d_streams": found.flows.num_rows - peer.streams,
        "reasons": explain(found, peer),
    }


def captures_in(folder: Path) -> list[Path]:
    """Return the captures below `folder`, by their names."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and set(path.suffixes) & SUFFIXES and path.suffix != ".long"
    )


def main(folder: Path) -> int:
    """Print the table; return 1 if a difference has no explanation."""
    print(f"{'file':44} {'packets':>8} {'issues':>6} {'packets':>8} {'TCP':>5} {'streams':>7}  why")
    unexplained = 0
    for path in captures_in(folder):
        row = row_of(path)
        why = "; ".join(row["reasons"])
        unexplained += "?" in why
        if row["packets"] is None:
            print(f"{row['file'][:44]:44} {why}")
            continue
        counts = f"{row['packets']:8} {row['issues']:6} {row['d_packets']:+8} {row['d_tcp']:+5} {row['d_streams']:+7}"
        print(f"{row['file'][:44]:44} {counts}  {why}")
    return min(unexplained, 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m validation.public_captures FOLDER")
    sys.exit(main(Path(sys.argv[1])))
