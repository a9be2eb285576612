"""The processes of a recorded run: a sender, a relay of two sockets, a receiver. Each runs in a namespace of its own.

    python ends.py '{"role": "send", ...}'

Depends on the kernel alone, so that it starts fast. A process prints `ready`, reads start and end of the run (ns of the
real-time clock) from its standard input, and prints what it saw as JSON. TCP_INFO is polled every 5 ms into a CSV file.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import struct
import sys
import termios
import threading
import time
from contextlib import suppress
from typing import Any

POLL_NS = 5_000_000
KEEP_NS = 100_000_000
"""A row at least this often; others only if a column changed."""
WRITE_BYTES = 65536
NOTSENT_LOWAT_BYTES = 131072
SPLICE_BYTES = 65536
SETTLE_S = 0.5
TCP_INFO, TCP_NOTSENT_LOWAT, TCP_CC_INFO = 11, 25, 26
SIOCINQ, SIOCOUTQ = termios.FIONREAD, termios.TIOCOUTQ
SO_SNDBUF, SO_RCVBUF = socket.SO_SNDBUF, socket.SO_RCVBUF

# Linux, include/uapi/linux/tcp.h: struct tcp_info.
_FIELDS = (
    ("BBBBBBBB", "state ca_state retransmits probes backoff options wscale flags"),
    (
        "24I",
        "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv "
        "last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space "
        "total_retrans",
    ),
    ("4Q", "pacing_rate max_pacing_rate bytes_acked bytes_received"),
    ("6I", "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out"),
    ("4Q", "delivery_rate busy_time rwnd_limited sndbuf_limited"),
    ("2I", "delivered delivered_ce"),
    ("2Q", "bytes_sent bytes_retrans"),
    ("6I", "dsack_dups reord_seen rcv_ooopack snd_wnd rcv_wnd rehash"),
    ("2HI", "total_rto total_rto_recoveries total_rto_time"),
)
_FORMAT = "=" + "".join(kind for kind, _ in _FIELDS)
_NAMES = [name for _, names in _FIELDS for name in names.split()]
_BYTES = struct.calcsize(_FORMAT)
_KEPT = """ca_state rto unacked sacked lost retrans rtt snd_ssthresh snd_cwnd total_retrans bytes_acked notsent_bytes
data_segs_out rwnd_limited sndbuf_limited bytes_sent bytes_retrans snd_wnd total_rto snd_mss"""
_KEPT_NAMES = tuple(_KEPT.split())
_COLUMNS = [_NAMES.index(name) for name in _KEPT_NAMES]
BUFFERS = ("sndbuf", "outq", "in_rcvbuf", "inq", "pipe")
"""Columns beside TCP_INFO: memory of the sending socket, what it, the relay's receiving one and the pipe hold."""


def tcp_info(connection: socket.socket) -> dict[str, int]:
    """Return all of TCP_INFO by name."""
    octets = connection.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 512)
    return dict(zip(_NAMES, struct.unpack_from(_FORMAT, octets.ljust(_BYTES, b"\0")), strict=True))


def _asked(descriptor: int, request: int) -> int:
    (octets,) = struct.unpack("i", fcntl.ioctl(descriptor, request, bytes(4)))
    return int(octets)


class Poller(threading.Thread):
    """Writes TCP_INFO of `sending` and the memory around it to `path` until stopped."""

    def __init__(
        self, path: str, sending: socket.socket, receiving: socket.socket | None = None, pipe: int = -1
    ) -> None:
        """`receiving` and `pipe`: where the octets of a relay come from."""
        super().__init__(daemon=True)
        self._path, self._sending, self._receiving, self._pipe = path, sending, receiving, pipe
        self._bbr = _congestion_control(sending) == "bbr"
        self.ended = threading.Event()
        self.late = self.samples = 0

    def run(self) -> None:
        """Poll until `ended` is set."""
        names = ["t_ns", *_KEPT_NAMES, *BUFFERS]
        if self._bbr:
            names += ["bbr_bw", "bbr_min_rtt", "bbr_pacing_gain", "bbr_cwnd_gain"]
        last, last_ns, due_ns = None, 0, time.monotonic_ns()
        with open(self._path, "w", buffering=1 << 20) as file:
            file.write(",".join(names) + "\n")
            while not self.ended.is_set():
                t_ns, row = time.time_ns(), self._row()
                self.samples += 1
                if row != last or t_ns - last_ns >= KEEP_NS:
                    file.write(",".join(map(str, (t_ns, *row))) + "\n")
                    last, last_ns = row, t_ns
                due_ns += POLL_NS
                wait_ns = due_ns - time.monotonic_ns()
                if wait_ns <= 0:
                    self.late, due_ns = self.late + 1, time.monotonic_ns()
                else:
                    time.sleep(wait_ns / 1e9)

    def _row(self) -> list[int]:
        sending, receiving = self._sending, self._receiving
        octets = sending.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 512).ljust(_BYTES, b"\0")
        values = struct.unpack_from(_FORMAT, octets)
        row = [values[at] for at in _COLUMNS]
        row += [sending.getsockopt(socket.SOL_SOCKET, SO_SNDBUF), _asked(sending.fileno(), SIOCOUTQ)]
        if receiving is None:
            row += [0, 0, 0]
        else:
            row += [receiving.getsockopt(socket.SOL_SOCKET, SO_RCVBUF), _asked(receiving.fileno(), SIOCINQ)]
            row.append(_asked(self._pipe, termios.FIONREAD))
        if self._bbr:
            row += struct.unpack_from("=Q3I", sending.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 64))
        return row


def _congestion_control(connection: socket.socket) -> str:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0].decode()


def _with_priority() -> None:
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))


def _span() -> tuple[int, int]:
    print("ready", flush=True)
    begin_ns, end_ns = map(int, sys.stdin.readline().split())
    return begin_ns, end_ns


def _open(task: dict[str, Any]) -> tuple[socket.socket, int]:
    """Connect as the task says; return the connection and the time of its SYN."""
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, task["variant"].encode())
    if task.get("sndbuf"):
        connection.setsockopt(socket.SOL_SOCKET, SO_SNDBUF, task["sndbuf"])
    connection.bind((task["source"], task["sport"]))
    syn_ns = time.time_ns()
    connection.connect((task["to"], task["dport"]))
    return connection, syn_ns


def _listener(task: dict[str, Any]) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if task.get("rcvbuf"):
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUF, task["rcvbuf"])
    listener.bind((task["at"], task["listen"]))
    listener.listen(1)
    return listener


def _ended(connection: socket.socket, poller: Poller) -> dict[str, Any]:
    poller.ended.set()
    poller.join()
    info = tcp_info(connection)
    known = {"snd_mss": info["snd_mss"], "retransmits": info["total_retrans"], "rto_count": info["total_rto"]}
    return {**known, "cc": _congestion_control(connection), "samples": poller.samples, "late_samples": poller.late}


def _abort(*connections: socket.socket) -> None:
    """End connections without a drain, once all processes have seen the end of the run."""
    time.sleep(SETTLE_S)
    for connection in connections:
        _reset(connection)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def send(task: dict[str, Any]) -> dict[str, Any]:
    """Write pieces of 64 KiB from the start to the end, whenever the socket takes one."""
    begin_ns, end_ns = _span()
    time.sleep(max(0, begin_ns - time.time_ns()) / 1e9)
    connection, syn_ns = _open(task)
    start_ns = time.time_ns()
    connection.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_LOWAT_BYTES)
    poller = Poller(task["csv"], connection)
    poller.start()
    piece = bytes(WRITE_BYTES)
    while (left_ns := end_ns - time.time_ns()) > 0:
        connection.settimeout(left_ns / 1e9)
        with suppress(TimeoutError):
            connection.send(piece)
    result = _ended(connection, poller)
    _abort(connection)
    return {"t_syn_ns": syn_ns, "t_start_ns": start_ns, **result}


def relay(task: dict[str, Any]) -> dict[str, Any]:
    """Accept one connection, open the one onward, and splice octets through a pipe until the end."""
    listener = _listener(task)
    _, end_ns = _span()
    incoming, _ = listener.accept()
    outgoing, syn_ns = _open(task)
    start_ns = time.time_ns()
    read_end, write_end = os.pipe()
    for descriptor in (read_end, write_end):
        os.set_blocking(descriptor, False)
    incoming.setblocking(False)
    outgoing.setblocking(False)
    first = {
        "rcvbuf": incoming.getsockopt(socket.SOL_SOCKET, SO_RCVBUF),
        "sndbuf": outgoing.getsockopt(socket.SOL_SOCKET, SO_SNDBUF),
    }
    poller = Poller(task["csv"], outgoing, incoming, read_end)
    poller.start()
    pipe_max = _splice(incoming.fileno(), (read_end, write_end), outgoing.fileno(), end_ns)
    result = _ended(outgoing, poller)
    _abort(incoming, outgoing)
    return {"t_syn_ns": syn_ns, "t_start_ns": start_ns, "first": first, "pipe_max_bytes": pipe_max, **result}


def _splice(source: int, pipe: tuple[int, int], sink: int, end_ns: int) -> int:
    """Move octets until the end; return the maximum that the pipe held.

    The relay waits for octets to arrive. Once the socket onward has refused some, it waits for room there instead
    (`EPOLLOUT`), and does not try before.
    """
    held = max_held = 0
    awaits_room = False
    poll = select.epoll()
    poll.register(source, select.EPOLLIN)
    while (left_ns := end_ns - time.time_ns()) > 0:
        if not poll.poll(left_ns / 1e9):
            continue
        refused = False
        while not refused:
            came = _spliced(source, pipe[1], SPLICE_BYTES)
            if came == 0:
                return max_held
            held += came or 0
            max_held = max(max_held, held)
            left = _spliced(pipe[0], sink, held) if held else 0
            refused = left is None
            held -= left or 0
            if came is None and not held:
                break
        poll.unregister(sink if awaits_room else source)
        awaits_room = refused
        poll.register(sink if refused else source, select.EPOLLOUT if refused else select.EPOLLIN)
    return max_held


def _spliced(source: int, sink: int, octets: int) -> int | None:
    """Return the octets that moved; None where a side would block."""
    with suppress(BlockingIOError):
        return os.splice(source, sink, octets, flags=os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE)
    return None


def receive(task: dict[str, Any]) -> dict[str, Any]:
    """Read until the end; return the octets that had been read by then."""
    listener = _listener(task)
    _, end_ns = _span()
    connection, _ = listener.accept()
    octets, room = 0, bytearray(1 << 18)
    while (left_ns := end_ns - time.time_ns()) > 0:
        connection.settimeout(left_ns / 1e9)
        with suppress(TimeoutError):
            came = connection.recv_into(room)
            if came == 0:
                break
            octets += came
    _abort(connection)
    return {"octets": octets}


def main() -> None:
    """Run the task of the command line."""
    task = json.loads(sys.argv[1])
    _with_priority()
    print(json.dumps({"send": send, "relay": relay, "receive": receive}[task["role"]](task)), flush=True)


if __name__ == "__main__":
    main()
