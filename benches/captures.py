"""Captures of known shape and any size, written with numpy: bulk flows, short connections and single SYNs.

Ethernet, IPv4, nanosecond pcap, 100 octets captured of each frame, time stamps as Linux sends them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SNAPLEN = 100
MSS = 1448
HEADER_BYTES = 66
START_NS = 1_700_000_000_000_000_000
RTT_NS = 100_000_000
SERVER_PORT = 5001
CLIENT, SERVER = 0x0A4D0001, 0x0A4D0002
CHUNK = 1 << 18
"""Records that are built at once."""

ACK, PSH_ACK, SYN, SYN_ACK, FIN_ACK = 0x10, 0x18, 0x02, 0x12, 0x11


def _record(captured: int) -> np.dtype[Any]:
    return np.dtype(
        [
            *(("second", "<u4"), ("fraction", "<u4"), ("captured", "<u4"), ("length", "<u4")),
            *(("mac", "S12"), ("ethertype", ">u2"), ("version", "u1"), ("tos", "u1"), ("ip_bytes", ">u2")),
            *(("ip_id", ">u2"), ("fragment", ">u2"), ("ttl", "u1"), ("protocol", "u1"), ("ip_sum", ">u2")),
            *(("src", ">u4"), ("dst", ">u4"), ("src_port", ">u2"), ("dst_port", ">u2"), ("seq", ">u4"), ("ack", ">u4")),
            *(("offset", "u1"), ("flags", "u1"), ("window", ">u2"), ("tcp_sum", ">u2"), ("urgent", ">u2")),
            *(("nops", ">u2"), ("kind", "u1"), ("size", "u1"), ("stamp", ">u4"), ("echo", ">u4")),
            ("payload", f"V{captured - HEADER_BYTES}"),
        ]
    )


SMALL = _record(HEADER_BYTES)
LARGE = _record(SNAPLEN)
Records = NDArray[Any]


def _fill(records: Records, t_ns: Any, payload: int, **fields: Any) -> None:
    """Set all fields of `records`, whose payload has `payload` octets; `fields` as in `_record`."""
    records["second"], records["fraction"] = np.divmod(t_ns, 1_000_000_000)
    records["captured"] = HEADER_BYTES + min(payload, SNAPLEN - HEADER_BYTES)
    records["length"] = HEADER_BYTES + payload
    records["mac"] = b"\x02\0\0\0\0\2\x02\0\0\0\0\1"
    constants = {"ethertype": 0x0800, "version": 0x45, "fragment": 0x4000, "ttl": 64, "protocol": 6, "offset": 0x80}
    options = {"nops": 0x0101, "kind": 8, "size": 10, "window": 2048, "ip_bytes": 52 + payload}
    for name, value in {**constants, **options, **fields}.items():
        records[name] = value
    records["stamp"] = t_ns // 1_000_000 & 0xFFFFFFFF
    records["echo"] = (t_ns // 1_000_000 - 100) & 0xFFFFFFFF


def _file_header() -> bytes:
    header = np.zeros(
        1, [("magic", "<u4"), ("version", "<u2", 2), ("zero", "<u4", 2), ("snaplen", "<u4"), ("link", "<u4")]
    )
    header["magic"], header["version"], header["snaplen"], header["link"] = 0xA1B23C4D, (2, 4), SNAPLEN, 1
    return header.tobytes()


def write_bulk(path: Path, packets: int, flows: int = 1, resent_share: float = 0.0) -> int:
    """Write `flows` flows that take turns: two data segments, one ACK a window of 400 segments later.

    A share `resent_share` of the data segments is one from the window that is sent again. Returns the packets.
    """
    rng = np.random.default_rng(7)
    triple = np.dtype([("data", LARGE, 2), ("ack", SMALL)])
    ports = 40_000 + np.arange(flows)
    down = {"src": CLIENT, "dst": SERVER, "dst_port": SERVER_PORT}
    up = {"src": SERVER, "dst": CLIENT, "src_port": SERVER_PORT}
    with path.open("wb", buffering=1 << 20) as file:
        file.write(_file_header())
        shake = np.zeros((3, flows), SMALL)
        at_ns = START_NS + np.arange(flows) * 1000
        _fill(shake[0], at_ns, 0, **down, src_port=ports, seq=1000, ack=0, flags=SYN)
        _fill(shake[1], at_ns + RTT_NS, 0, **up, dst_port=ports, seq=5000, ack=1001, flags=SYN_ACK)
        _fill(shake[2], at_ns + RTT_NS + 1, 0, **down, src_port=ports, seq=1001, ack=5001, flags=ACK)
        file.write(shake.tobytes())
        groups = (packets - 3 * flows) // 3
        for start in range(0, groups, CHUNK):
            group = np.arange(start, min(start + CHUNK, groups), dtype=np.int64)
            step, port = group // flows, ports[group % flows]
            t_ns = START_NS + 2 * RTT_NS + group * 300_000
            records = np.zeros(len(group), triple)
            again = rng.random((len(group), 2)) < resent_share
            for k in (0, 1):
                sent = np.where(again[:, k], np.maximum(2 * step + k - 300, 0), 2 * step + k)
                seq = (1001 + sent * MSS) & 0xFFFFFFFF
                fields = {"src_port": port, "seq": seq, "ack": 5001, "flags": ACK, "ip_id": (3 * group + k) & 0xFFFF}
                _fill(records["data"][:, k], t_ns + k * 100_000, MSS, **down, **fields)
            acked = (1001 + np.maximum(2 * (step - 199), 0) * MSS) & 0xFFFFFFFF
            fields = {"dst_port": port, "seq": 5001, "ack": acked, "flags": ACK, "ip_id": (3 * group + 2) & 0xFFFF}
            _fill(records["ack"], t_ns + 200_000, 0, **up, **fields)
            file.write(records.tobytes())
    return 3 * flows + 3 * groups


def write_short(path: Path, connections: int) -> int:
    """Write connections of seven segments, sixteen at a time. Returns the packets."""
    width = 16
    rounds = -(-connections // width)
    block = np.dtype([("open", SMALL, (3, width)), ("data", LARGE, width), ("close", SMALL, (3, width))])
    with path.open("wb", buffering=1 << 20) as file:
        file.write(_file_header())
        for start in range(0, rounds, CHUNK // 64):
            number = np.arange(start, min(start + CHUNK // 64, rounds), dtype=np.int64)[:, None]
            connection = number * width + np.arange(width)
            port, client = 1024 + connection % 60_000, CLIENT + 256 + connection // 60_000
            isn = connection * 7919 & 0x7FFFFFFF
            down = {"src": client, "dst": SERVER, "src_port": port, "dst_port": SERVER_PORT}
            up = {"src": SERVER, "dst": client, "src_port": SERVER_PORT, "dst_port": port}
            records = np.zeros(len(number), block)
            t_ns = START_NS + (number * 7 * width + np.arange(width)) * 20_000
            stages = (
                (records["open"][:, 0], 0, {**down, "seq": isn, "ack": 0, "flags": SYN}),
                (records["open"][:, 1], 0, {**up, "seq": 77, "ack": isn + 1, "flags": SYN_ACK}),
                (records["open"][:, 2], 0, {**down, "seq": isn + 1, "ack": 78, "flags": ACK}),
                (records["data"], 900, {**down, "seq": isn + 1, "ack": 78, "flags": PSH_ACK}),
                (records["close"][:, 0], 0, {**up, "seq": 78, "ack": isn + 901, "flags": FIN_ACK}),
                (records["close"][:, 1], 0, {**down, "seq": isn + 901, "ack": 79, "flags": FIN_ACK}),
                (records["close"][:, 2], 0, {**up, "seq": 79, "ack": isn + 902, "flags": ACK}),
            )
            for at, (stage, payload, fields) in enumerate(stages):
                _fill(stage, t_ns + at * width * 20_000, payload, **fields)
            file.write(records.tobytes())
    return rounds * width * 7


def write_syns(path: Path, connections: int) -> int:
    """Write single SYNs, each from another end. Returns the packets."""
    with path.open("wb", buffering=1 << 20) as file:
        file.write(_file_header())
        for start in range(0, connections, CHUNK):
            number = np.arange(start, min(start + CHUNK, connections), dtype=np.int64)
            records = np.zeros(len(number), SMALL)
            ends = {"src": CLIENT + 256 + number // 60_000, "src_port": 1024 + number % 60_000}
            fields = {"dst": SERVER, "dst_port": SERVER_PORT, "seq": number * 7919 & 0xFFFFFFFF, "flags": SYN}
            _fill(records, START_NS + number * 20_000, 0, **ends, **fields)
            file.write(records.tobytes())
    return connections
