"""Polls of `ss -ti` with the time of each poll: what iproute2 prints of a socket's TCP_INFO.

A poll is a line with the time (`date` in the usual forms, seconds since 1970), then the sockets, on one line each
(`ss -O`) or on two, with or without the heading. The time may also begin or end the lines themselves. iproute2 leaves
out what is zero, and ssthresh from 65535 on.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from hindflight.toolkit.logs.addresses import endpoint
from hindflight.toolkit.logs.collector import Collector
from hindflight.toolkit.logs.model import UTC, Connection, KernelLog, Numbers
from hindflight.toolkit.logs.octets import Line, LogFile
from hindflight.toolkit.logs.tcp_info import STRUCT, UNSET_PKTS, kernel_log, possible
from hindflight.toolkit.logs.times import DAY_NS, TIME_OF_DAY, Moment, moment_at_end, moment_at_start
from hindflight.toolkit.schema import PHASES

_STATES = {
    "ESTAB": 1,
    "SYN-SENT": 2,
    "SYN-RECV": 3,
    "FIN-WAIT-1": 4,
    "FIN-WAIT-2": 5,
    "TIME-WAIT": 6,
    "CLOSE": 7,
    "UNCONN": 7,
    "CLOSE-WAIT": 8,
    "LAST-ACK": 9,
    "LISTEN": 10,
    "CLOSING": 11,
}
"""Linux's numbers of the states."""
_SOCKET = re.compile(rf"(?:tcp\s+)?({'|'.join(_STATES)})\s+\d+\s+\d+\s+(\S+)\s+(\S+)(?:\s+(.*))?")
_HEADING = re.compile(r"(?:Netid\s+)?State\s+Recv-Q\s")
_INFO = re.compile(r"(?:^|\s)cwnd:\d")
_COUNTS = {
    "mss": "snd_mss",
    "rcvmss": "rcv_mss",
    "cwnd": "snd_cwnd",
    "ssthresh": "snd_ssthresh",
    "minrtt": "min_rtt",
    "lastsnd": "last_data_sent",
    "lastrcv": "last_data_recv",
    "lastack": "last_ack_recv",
    "busy": "busy_time",
    "notsent": "notsent_bytes",
    "total_rto": "total_rto",
}
"""ss's name of a field where the kernel's differs; all others have the kernel's."""
_MILLISECONDS = {"rto", "ato", "min_rtt", "busy_time", "rwnd_limited", "sndbuf_limited", "rcv_rtt"}
"""ss prints these in ms; the kernel's unit is the microsecond."""
_RATES = {"pacing_rate": "pacing_rate", "delivery_rate": "delivery_rate"}
_RATE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMGT]?)bps(?:/\S+)?", re.ASCII)
_VALUE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(?:ms)?(?:\(\d+(?:\.\d+)?%\))?", re.ASCII)
_PAIR = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)/(\d{1,18}(?:\.\d{1,9})?)", re.ASCII)
_SCALES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_NAME = re.compile(r"[a-z0-9_-]{1,16}", re.ASCII)
_FLAGS = {"ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited", "send"}
_NUMERIC = frozenset(STRUCT.names or ()) - {"wscale"}
"""Fields, in the kernel's names, whose values are numbers; ss prints `wscale` as a pair with a comma."""
_MAX_NAMELESS = 1000
_ABSENT = {"snd_ssthresh": UNSET_PKTS, "unacked": 0, "sacked": 0, "lost": 0, "retrans": 0, "total_retrans": 0}
"""What a field is that every iproute2 prints and leaves out at this value."""


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` holds what ss prints of TCP sockets."""
    text = head.decode("utf-8", "replace")
    return any(" mss:" in line and " rto:" in line and _INFO.search(line) for line in text.split("\n"))


@dataclass
class _Poll:
    """Where the reading stands: the time of the poll, and the socket whose second line follows."""

    file: LogFile
    moment: Moment | None = None
    clock: str = UTC
    days: int = 0
    last_day_ns: int = 0
    socket: tuple[int, Connection] | None = None
    nameless: list[int] = field(default_factory=list)
    """Octets acknowledged so far of each socket that is logged without its addresses."""

    def at(self, moment: Moment) -> None:
        """A poll at `moment`; times of day go on after midnight."""
        if moment.clock == TIME_OF_DAY:
            self.days += moment.t_ns < self.last_day_ns - DAY_NS // 2
            self.last_day_ns = moment.t_ns
            moment = Moment(moment.t_ns + self.days * DAY_NS, TIME_OF_DAY)
        self.moment, self.clock = moment, moment.clock


def read(file: LogFile) -> Iterator[KernelLog]:
    """Yield the parts of the log, one connection each."""
    poll = _Poll(file)
    collector = Collector(lambda *part: _built(poll, *part), _ABSENT)
    for line in file.lines():
        text = line.text.decode("utf-8", "replace")
        moment, text = moment_at_start(text)
        if moment is not None:
            poll.at(moment)
            text = text.lstrip()
        if not text.strip() or _HEADING.match(text):
            continue
        socket = _SOCKET.match(text)
        if socket is not None:
            poll.socket = _socket(socket)
            text = socket[4] or ""
        if not _INFO.search(text):
            if socket is None and " rto:" in text:
                _left_out(poll, line, "that is no whole socket")
            continue
        moment, text = moment_at_end(text)
        if moment is not None:
            poll.at(moment)
        yield from _record(poll, collector, line, text)
    yield from collector.rest()


def _socket(found: re.Match[str]) -> tuple[int, Connection] | None:
    local, remote = endpoint(found[2]), endpoint(found[3])
    if local is None or remote is None:
        return None
    return _STATES[found[1]], Connection(*local, *remote)


def _record(poll: _Poll, collector: Collector, line: Line, text: str) -> Iterator[KernelLog]:
    values, texts, damaged = _fields(text)
    if poll.moment is None:
        return _left_out(poll, line, "without the time of a poll before it")
    values["t_ns"] = poll.moment.t_ns
    if "bytes_sent" in values:
        values.setdefault("bytes_retrans", 0)
    if damaged:
        return _left_out(poll, line, f"with a {damaged} that is no number")
    if not line.ended or not {"snd_mss", "snd_cwnd", "rto"} <= values.keys() or not possible(values):
        return _left_out(poll, line, "that is no whole socket")
    key: Hashable
    if poll.socket is not None:
        values["state"], key = poll.socket
        poll.socket = None
    else:
        key = _nameless(poll, values.get("bytes_acked", 0))
        if key is None:
            return _left_out(poll, line, "without addresses, which fits no socket before it")
    return collector.add(key, values, texts)


def _nameless(poll: _Poll, acked: int) -> int | None:
    """Which socket without addresses this is: that which has got furthest without being ahead."""
    behind = [(seen, index) for index, seen in enumerate(poll.nameless) if seen <= acked]
    if behind:
        index = max(behind)[1]
        poll.nameless[index] = acked
        return index
    if len(poll.nameless) == _MAX_NAMELESS:
        return None
    poll.nameless.append(acked)
    return len(poll.nameless) - 1


def _fields(text: str) -> tuple[dict[str, int], dict[str, str], str]:
    """The fields of a socket in the kernel's names and units, and the name of one that cannot be read, or nothing."""
    values: dict[str, int] = {}
    texts: dict[str, str] = {}
    damaged = ""
    words = text.split()
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, _, value = word.partition(":")
        if not value:
            rate = _RATE.fullmatch(following) if name in _RATES else None
            if name in _RATES and rate is None:
                damaged = damaged or name
            elif rate is not None:
                values[_RATES[name]] = round(float(rate[1]) * _SCALES[rate[2]] / 8)
            elif name == "app_limited":
                values[name] = 1
            elif "congestion" not in texts and name not in _FLAGS and _NAME.fullmatch(name):
                texts["congestion"] = name
        elif name in ("rtt", "retrans", "rcv_rtt"):
            pair = _pair(name, value)
            damaged = damaged or ("" if pair else name)
            values |= pair
        elif (number := _VALUE.fullmatch(value)) is not None:
            kernel = _COUNTS.get(name, name)
            values[kernel] = round(float(number[1]) * 1000) if kernel in _MILLISECONDS else int(float(number[1]))
        elif _COUNTS.get(name, name) in _NUMERIC:
            damaged = damaged or name
    return values, texts, damaged


def _pair(name: str, value: str) -> dict[str, int]:
    pair = _PAIR.fullmatch(value)
    if pair is not None and name == "rtt":
        return {"rtt": round(float(pair[1]) * 1000), "rttvar": round(float(pair[2]) * 1000)}
    if pair is not None and name == "retrans":
        return {"retrans": int(float(pair[1])), "total_retrans": int(float(pair[2]))}
    number = _VALUE.fullmatch(value)
    return {} if number is None else {name: round(float(number[1]) * 1000)}


def _left_out(poll: _Poll, line: Line, what: str) -> Iterator[KernelLog]:
    poll.file.issues.add(line.record, line.offset, "log_damaged", f"a line {what} was left out")
    return iter(())


def _built(
    poll: _Poll, key: Hashable, numbers: dict[str, Numbers], texts: dict[str, list[str]], before: KernelLog | None
) -> KernelLog:
    """ss prints no ca_state: retransmissions that are outstanding show recovery, a backed-off timer shows loss."""
    connection = key if isinstance(key, Connection) else None
    log = kernel_log(numbers, texts, before, connection)
    retrans, backoff = log.numbers.get("retrans"), log.numbers.get("backoff")
    if retrans is not None:
        log.phase[retrans > 0] = PHASES.index("recovery")
    if backoff is not None:
        log.phase[backoff > 0] = PHASES.index("loss")
    log.clock = poll.clock
    return log
