"""A slow, readable link and sender that make the tables of a capture with known truth: what took each packet.

One sender (doubling, then one packet per round trip, halving on loss), a drop-tail queue, a loss process, delay, and a
receiver with delayed and selective ACKs. Made for tests of extraction; no protocol is claimed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hindflight.toolkit.schema import TABLES, table_from_rows

PAYLOAD, HEADERS, ACK_BYTES, MSS_IP = 1448, 52, 52, 1500
SYN, ACK = 2, 16


@dataclass(frozen=True, slots=True)
class LinkModel:
    """The link, in bit/s, ns and packets; `loses(position, t_ns)` is the channel."""

    rate_bps: float
    rtt_ns: int
    queue_pkts: int
    duration_ns: int
    loses: Callable[[int, int], bool]
    outage: tuple[int, int] = (0, 0)
    window_pkts: float = 1e9
    jitter_ns: int = 0
    seed: int = 1


@dataclass(slots=True)
class Flown:
    """Tables of the flight, and by record what became of each data packet: delivered, channel, queue or outage."""

    segments: pa.Table
    flows: pa.Table
    events: pa.Table
    fate: dict[int, str] = field(default_factory=dict)


def bernoulli(share: float, seed: int) -> Callable[[int, int], bool]:
    """Independent losses; the same position is lost in every flight."""
    return lambda position, _t_ns: random.Random(seed * 1_000_003 + position).random() < share


def bursts(good_to_bad: float, bad_to_good: float, seed: int) -> Callable[[int, int], bool]:
    """Gilbert's channel: everything is lost in the bad state; the same position is lost in every flight."""
    rng, states = random.Random(seed), [False]

    def loses(position: int, _t_ns: int) -> bool:
        while len(states) <= position:
            states.append(rng.random() >= bad_to_good if states[-1] else rng.random() < good_to_bad)
        return states[position]

    return loses


class _Flight:
    def __init__(self, link: LinkModel) -> None:
        self.link = link
        self.rng = random.Random(link.seed)
        self.rows: list[dict[str, Any]] = []
        self.lost_rows: list[int] = []
        self.fate: dict[int, str] = {}
        self.calls: list[tuple[int, int, Callable[[int], None]]] = []
        self.count = 0
        self.cwnd, self.ssthresh, self.recover = 10.0, 1e9, -1
        self.next_block, self.sent, self.again = 0, 0, list[int]()
        self.in_flight: dict[int, int] = {}
        self.last_ack_ns = 0
        self.departures: list[int] = []
        self.position = 0
        self.got: set[int] = set()
        self.cum, self.unacknowledged, self.timer = 0, 0, 0

    def at(self, t_ns: int, call: Callable[[int], None]) -> None:
        self.count += 1
        heapq.heappush(self.calls, (t_ns, self.count, call))

    def fly(self) -> None:
        self.row(0, "a2b", (0, None, 0), SYN)
        answer = self.link.rtt_ns + 2 * self.serial(60)
        self.row(answer, "b2a", (0, 1, 0), SYN | ACK)
        self.at(answer + 1000, self.send)
        self.at(answer + 1000, self.watch)
        while self.calls:
            t_ns, _, call = heapq.heappop(self.calls)
            call(t_ns)

    def serial(self, size: int) -> int:
        return round(size * 8e9 / self.link.rate_bps)

    def row(
        self, t_ns: int, direction: str, numbers: tuple[int, int | None, int], flags: int, sack: list[int] | None = None
    ) -> int:
        """Write a segment down; `numbers` are seq, ack and payload."""
        seq, ack, payload = numbers
        record = len(self.rows) + 1
        size = payload + HEADERS if payload or not flags & SYN else 60
        self.rows.append(
            {"record": record, "t_ns": t_ns, "direction": direction, "seq": seq, "ack": ack, "payload_bytes": payload,
             "flags": flags, "ip_bytes": size, "sack": sack or []}
        )  # fmt: skip
        return record

    def send(self, t_ns: int) -> None:
        while len(self.in_flight) < min(self.cwnd, self.link.window_pkts):
            if not self.again and t_ns > self.link.duration_ns:
                return
            block = self.again.pop(0) if self.again else self.next_block
            self.next_block += block == self.next_block
            self.sent += 1
            self.in_flight[self.sent] = block
            self.offer(t_ns, self.sent, block)

    def offer(self, t_ns: int, number: int, block: int) -> None:
        record = self.row(t_ns, "a2b", (1 + block * PAYLOAD, 1, PAYLOAD), ACK)
        self.departures = [d for d in self.departures if d > t_ns]
        if len(self.departures) > self.link.queue_pkts:
            self.lose(record, "queue")
            return
        leaves = max([t_ns, *self.departures[-1:]]) + self.serial(MSS_IP)
        self.departures.append(leaves)
        position, self.position = self.position, self.position + 1
        start, end = self.link.outage
        if start <= leaves < end:
            self.lose(record, "outage")
        elif self.link.loses(position, leaves):
            self.lose(record, "channel")
        else:
            self.fate[record] = "delivered"
            self.at(leaves + self.link.rtt_ns // 2, lambda now: self.arrive(now, number, block))

    def lose(self, record: int, fate: str) -> None:
        self.fate[record] = fate
        self.lost_rows.append(record)

    def arrive(self, t_ns: int, number: int, block: int) -> None:
        self.got.add(block)
        in_order = block == self.cum
        while self.cum in self.got:
            self.cum += 1
        self.unacknowledged += 1
        hole = len(self.got) > self.cum
        if not in_order or hole or self.unacknowledged == 2:
            self.acknowledge(t_ns, number, block)
        else:
            timer = self.timer
            self.at(
                t_ns + 40_000_000, lambda now: self.acknowledge(now, number, block) if timer == self.timer else None
            )

    def acknowledge(self, t_ns: int, number: int, block: int) -> None:
        self.unacknowledged, self.timer = 0, self.timer + 1
        left, right = block, block + 1
        while left - 1 in self.got:
            left -= 1
        while right in self.got:
            right += 1
        sack = [1 + left * PAYLOAD, 1 + right * PAYLOAD] if left > self.cum else []
        cum = self.cum
        late = self.rng.randrange(self.link.jitter_ns) if self.link.jitter_ns else 0
        back = t_ns + self.link.rtt_ns // 2 + self.serial(ACK_BYTES) + late
        self.at(back, lambda now: self.hear(now, number, cum, sack))

    def hear(self, t_ns: int, number: int, cum: int, sack: list[int]) -> None:
        self.row(t_ns, "b2a", (1, 1 + cum * PAYLOAD, 0), ACK, sack)
        self.last_ack_ns = t_ns
        for n in [n for n in self.in_flight if n <= number]:
            block = self.in_flight[n]
            if block in self.got and (n > number - 3 or block < cum or n == number):
                self.delivered(n)
            elif n <= number - 3:
                self.missing(n)
        self.send(t_ns)

    def delivered(self, number: int) -> None:
        del self.in_flight[number]
        self.cwnd += 1 if self.cwnd < self.ssthresh else 1 / self.cwnd

    def missing(self, number: int) -> None:
        block = self.in_flight.pop(number)
        if block in self.got:
            return
        self.again.append(block)
        if number > self.recover:
            self.recover = self.sent
            self.ssthresh = self.cwnd = max(2.0, self.cwnd / 2)

    def watch(self, t_ns: int) -> None:
        """A crude timeout: after a second without an ACK everything outstanding is sent again."""
        if t_ns - self.last_ack_ns > 1_000_000_000 and self.in_flight:
            for number in list(self.in_flight):
                self.missing(number)
            self.recover = self.sent
            self.cwnd, self.last_ack_ns = 2.0, t_ns
            self.send(t_ns)
        if t_ns < self.link.duration_ns or self.in_flight or self.again:
            self.at(t_ns + 200_000_000, self.watch)


def fly(link: LinkModel) -> Flown:
    """Run the flow and return its tables, complete and in the order of a capture at the sender."""
    flight = _Flight(link)
    flight.fly()
    plain = {"bool": False, "text": "", "list_i64": [], "enum": None}
    blank = {c.name: plain.get(c.type, 0) for c in TABLES["segments"].columns if not c.nullable}
    unchecked = {"segments_n": 1, "ip_checksum": "not_checked", "tcp_checksum": "not_checked"}
    segments = table_from_rows("segments", [{**blank, **unchecked, "flow_id": 1, **row} for row in flight.rows])
    flow_blank = {c.name: plain.get(c.type, 0) for c in TABLES["flows"].columns if not c.nullable}
    flows = table_from_rows("flows", [{**flow_blank, "flow_id": 1, "data_direction": "a2b", "vantage": "sender"}])
    events = table_from_rows(
        "events",
        [
            {"run_id": 0, "flow_id": 1, "leg": 0, "t_ns": flight.rows[record - 1]["t_ns"], "direction": "a2b",
             "kind": "loss", "cause": "unknown", "record": record}
            for record in sorted(flight.lost_rows)
        ],
    )  # fmt: skip
    return Flown(segments, flows, events, flight.fate)
