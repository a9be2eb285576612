"""Ingest compared with its peers: packets per second from a pcap to tables, against tcptrace and tshark in the same
run.

Run by hand on an idle machine: `python -m benches.bench_ingest [--packets N]`. Three captures of known shape are
written to a temporary folder: one bulk flow, the same with 5 % of its segments sent again, and many short
connections. Ratios within one run can be compared; absolute figures of different runs cannot.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hindflight.toolkit.capture import CaptureStream

SNAPLEN = 100
MSS = 1448
RTT_NS = 100_000_000
RUNS = 5

CLIENT, SERVER = b"\x0a\x4d\x00\x01", b"\x0a\x4d\x00\x02"
Row = tuple[bool, int, int, int, int]
"""A segment: from the client (who sends the data) or not, seq, ack, flags, octets of payload."""

ACK, PSH_ACK, SYN, SYN_ACK, FIN_ACK = 0x10, 0x18, 0x02, 0x12, 0x11


class Writer:
    """Writes a nanosecond pcap of TCP segments over Ethernet, with time stamps as Linux sends them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=1 << 20)
        self._file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, 1))
        self.packets = 0

    def segment(self, t_ns: int, port: int, row: Row) -> None:
        """Write one segment of the connection from the client's `port`."""
        forward, seq, ack, flags, payload = row
        src, dst = (CLIENT, SERVER) if forward else (SERVER, CLIENT)
        ports = (port, 5001) if forward else (5001, port)
        stamp = t_ns // 1_000_000 & 0xFFFFFFFF
        packet = struct.pack(
            "!12sHBBHHHBBH4s4sHHIIBBHHHHBBII",
            *(b"\x02\0\0\0\0\2\x02\0\0\0\0\1", 0x0800),
            *(0x45, 0, 52 + payload, self.packets & 0xFFFF, 0x4000, 64, 6, 0, src, dst),
            *(*ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x80, flags, 2048, 0, 0),
            *(0x0101, 8, 10, stamp, stamp - 100 & 0xFFFFFFFF),
        )
        packet += bytes(min(payload, SNAPLEN - len(packet)))
        second, fraction = divmod(t_ns, 1_000_000_000)
        self._file.write(struct.pack("<IIII", second, fraction, len(packet), 66 + payload) + packet)
        self.packets += 1

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def _bulk(writer: Writer, packets: int, resent_share: float) -> None:
    """One flow: two data segments, one ACK a round trip later; some segments are sent once more."""
    rng = random.Random(7)  # noqa: S311 -- a shape, not a secret
    t_ns, seq = 1_700_000_000_000_000_000, 1001
    writer.segment(t_ns, 40000, (True, 1000, 0, SYN, 0))
    writer.segment(t_ns + RTT_NS, 40000, (False, 5000, 1001, SYN_ACK, 0))
    writer.segment(t_ns + RTT_NS + 1, 40000, (True, 1001, 5001, ACK, 0))
    t_ns += 2 * RTT_NS
    window: list[int] = []
    while writer.packets < packets:
        for _ in range(2):
            t_ns += 100_000
            writer.segment(t_ns, 40000, (True, seq, 5001, ACK, MSS))
            seq += MSS
            window.append(seq)
        if rng.random() < 2 * resent_share:
            writer.segment(t_ns + 10_000, 40000, (True, window[0] - MSS, 5001, ACK, MSS))
        if len(window) > 400:
            writer.segment(t_ns + 20_000, 40000, (False, 5001, window[1], ACK, 0))
            del window[:2]


def _short(writer: Writer, packets: int) -> None:
    """Many connections of seven segments each, sixteen at a time."""
    t_ns, port = 1_700_000_000_000_000_000, 1024

    def connection(isn: int) -> tuple[Row, ...]:
        return (
            (True, isn, 0, SYN, 0),
            (False, 77, isn + 1, SYN_ACK, 0),
            (True, isn + 1, 78, ACK, 0),
            (True, isn + 1, 78, PSH_ACK, 900),
            (False, 78, isn + 901, FIN_ACK, 0),
            (True, isn + 901, 79, FIN_ACK, 0),
            (False, 79, isn + 902, ACK, 0),
        )

    while writer.packets < packets:
        ports = range(port, port + 16)
        for rows in zip(*(connection(port * 7919) for port in ports), strict=True):
            for number, row in zip(ports, rows, strict=True):
                t_ns += 20_000
                writer.segment(t_ns, number, row)
        port = 1024 if port > 65_000 else port + 16


def _ours(path: Path) -> None:
    stream = CaptureStream(path)
    rows = sum(batch.num_rows for batch in stream.batches())
    flows = stream.flows().num_rows
    stream.events()
    stream.instruments()
    if not rows or not flows:
        raise RuntimeError(f"no rows from {path}")


def _command(*words: str) -> Callable[[Path], None] | None:
    if shutil.which(words[0]) is None:
        return None

    def run(path: Path) -> None:
        subprocess.run([*words, str(path)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return run


def _seconds(run: Callable[[Path], None], path: Path, runs: int) -> float:
    took = []
    for _ in range(runs):
        start = time.perf_counter()
        run(path)
        took.append(time.perf_counter() - start)
    return min(took)


def main(arguments: list[str] | None = None) -> None:
    """Write the captures, time everyone on each, print packets per second and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=600_000)
    packets = parser.parse_args(arguments).packets
    fields = ("frame.time_epoch", "tcp.stream", "tcp.seq", "tcp.ack", "tcp.len", "tcp.window_size")
    peers = {
        "tcptrace": (_command("tcptrace", "-n", "-l", "-r", "-W"), RUNS),
        "tshark": (_command("tshark", "-n", "-T", "fields", *(f"-e{f}" for f in fields), "-r"), 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in ("bulk flow", "5 % sent again", "short connections"):
            path = Path(folder, "bench.pcap")
            writer = Writer(path)
            if name == "short connections":
                _short(writer, packets // 2)
            else:
                _bulk(writer, packets, 0.05 if "again" in name else 0.0)
            writer.close()
            ours = writer.packets / _seconds(_ours, path, RUNS)
            print(f"{name}: {writer.packets} packets, {os.path.getsize(path) / 1e6:.0f} MB")
            print(f"  hindflight  {ours / 1e6:7.3f} M packets/s, all tables in Arrow")
            for peer, (run, runs) in peers.items():
                if run is None:
                    print(f"  {peer:<10} is not installed")
                    continue
                theirs = writer.packets / _seconds(run, path, runs)
                print(f"  {peer:<10}  {theirs / 1e6:7.3f} M packets/s; hindflight / {peer} = {ours / theirs:.2f}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
