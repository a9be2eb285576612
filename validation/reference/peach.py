"""TCP-Peach over one link without a queue: its rules as a recursion, a packet a step.

Knows the rules of Akyildiz, Morabito and Palazzo 2001 §III as docs/variants/peach.md has them, the link's rate, delay
and losses, and nothing of our code. A packet is acknowledged by itself, a round-trip time after its last bit has left;
a loss on the link is reported by the third later arrival, and the segment is retransmitted at once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

SUDDEN_START_PKTS = 64
DUP_THRESH = 3
"""Later arrivals that report a loss."""
SAMPLES_EVERY_RTT = 0.1
"""Interval between two windows, in round trips: a recovery lasts one or two."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet in flight."""

    number: int
    dummy: bool
    lost: bool
    retransmission: bool


@dataclass(slots=True)
class Peach:
    """State of the sender and the packets in flight; times in seconds."""

    rate: float
    rtt_s: float
    losses: Collection[int]
    cwnd: float
    free_s: float = 0.0
    sent: int = 0
    outstanding: int = 0
    way: list[tuple[float, Packet]] = field(default_factory=list)
    """Packets with the time at which each is known to have arrived, in that order."""
    missing: list[int] = field(default_factory=list)
    """Packets lost and not yet reported, with …"""
    later: int = 0
    """… how many later ones have arrived."""
    recovering: bool = False
    awaited: int = 0
    dummy_segments: int = 0
    """That Rapid Recovery may still send."""
    count: int = 0
    """ACKs towards the next segment of avoidance."""

    def send(self, now_s: float, *, dummy: bool = False, retransmission: bool = False) -> None:
        """Send one packet."""
        self.free_s = max(self.free_s, now_s) + 1 / self.rate
        lost = self.sent in self.losses
        self.way.append((self.free_s + self.rtt_s, Packet(self.sent, dummy, lost, retransmission)))
        self.sent += 1
        if not dummy:
            self.outstanding += 1

    def fill(self, now_s: float) -> None:
        """Send data while the window allows it."""
        while self.outstanding + 1 <= self.cwnd:
            self.send(now_s)

    def answered(self) -> None:
        """Take the answer to a dummy: half of the window before a loss does not count, each further one adds 1."""
        if self.awaited > 0:
            self.awaited -= 1
        else:
            self.cwnd += 1

    def on_loss(self, now_s: float) -> None:
        """Start Rapid Recovery: half the window, and a full window of dummy segments, one per packet that arrives."""
        before = self.cwnd
        self.cwnd = before / 2
        self.awaited, self.dummy_segments = int(before / 2), int(before)
        self.recovering, self.count, self.later = True, 0, 0
        self.missing.clear()
        self.outstanding -= 1
        self.send(now_s, retransmission=True)

    def arrived(self, packet: Packet, now_s: float) -> None:
        """Update the state for an acknowledgement, or an answer to a dummy."""
        if packet.dummy:
            self.answered()
            return
        self.outstanding -= 1
        if packet.retransmission:
            self.recovering, self.dummy_segments = False, 0
        elif self.recovering:
            if self.dummy_segments > 0:
                self.dummy_segments -= 1
                self.send(now_s, dummy=True)
        elif self.missing:
            self.later += 1
            if self.later == DUP_THRESH:
                self.on_loss(now_s)
        else:
            self.count += 1
            if self.count >= self.cwnd:
                self.count, self.cwnd = self.count - int(self.cwnd), self.cwnd + 1


def windows(
    rate: float, rtt_s: float, losses: Collection[int], duration_s: float, initial_pkts: int
) -> list[tuple[int, float]]:
    """Return packets sent and the window. `rate` is in packets per second, and losses lie two round trips apart."""
    peach = Peach(rate, rtt_s, losses, float(initial_pkts))
    peach.fill(0.0)
    spread = [rtt_s + n * rtt_s / SUDDEN_START_PKTS for n in range(1, SUDDEN_START_PKTS)]
    """Sudden Start: behind the first packet that is acknowledged, one per share of the round trip."""
    points: list[tuple[int, float]] = []
    next_s = 0.0
    while peach.way:
        at_s, packet = peach.way[0]
        now_s = min([at_s, next_s, *spread[:1]])
        if now_s > duration_s:
            break
        if now_s == next_s:
            points.append((peach.sent, peach.cwnd))
            next_s += SAMPLES_EVERY_RTT * rtt_s
        elif spread and now_s == spread[0]:
            peach.send(spread.pop(0), dummy=True)
        else:
            peach.way.pop(0)
            if packet.lost:
                peach.missing.append(packet.number)
            else:
                peach.arrived(packet, now_s)
            peach.fill(now_s)
    return points
