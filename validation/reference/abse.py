"""Westwood with ABSE over one link with a queue: filter and window as a recursion, one ACK per step.

Depends on the equations in docs/variants/westwood-abse.md and the link's rate, delay and losses, not on the engine's
code. Every packet is acknowledged; the third later arrival reports a loss on the link, and the packet is retransmitted
at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import takewhile

WEIGHT, BETA, SAMPLES = 10, 0.6, 10
"""Of the adaptive time constant: N, beta, and the number of samples for the maximum instability."""
FIXED_S = 0.5
DUP_THRESH = 3
SAMPLES_EVERY_RTT = 0.2
"""Interval between two windows, in round trips."""


@dataclass(slots=True)
class Abse:
    """The estimate, in packets per second; times in seconds."""

    adaptive: bool
    rate: float = 0.0
    sample: float = 0.0
    last_s: float = 0.0
    min_rtt_s: float = float("inf")
    unrest: float = 0.0
    lately: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    arrivals: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))

    def take(self, now_s: float, rtt_s: float, cwnd: float) -> None:
        """One packet has arrived."""
        self.min_rtt_s = min(self.min_rtt_s, rtt_s)
        self.arrivals.append(now_s)
        spacing_s, self.last_s = now_s - self.last_s, now_s
        if len(self.arrivals) < 2:
            return
        room = cwnd - self.rate * self.min_rtt_s
        interval_s = min(max(rtt_s * room / cwnd if room > 0 else 0.0, spacing_s, 0.001), rtt_s)
        # What came within the interval: its beginning is not of it.
        recent = takewhile(lambda at_s: at_s > now_s - interval_s + 1e-9, reversed(self.arrivals))
        sample = sum(1 for _ in recent) / interval_s
        self.unrest = BETA * self.unrest + (1 - BETA) * abs(sample - self.sample)
        self.lately.append(self.unrest)
        tau_s = rtt_s * (1 + WEIGHT * self.unrest / max(self.lately)) if self.adaptive else FIXED_S
        gain = max((2 * tau_s - spacing_s) / (2 * tau_s + spacing_s), 0.0)
        self.rate, self.sample = gain * self.rate + (1 - gain) * sample, sample


@dataclass(slots=True)
class Sender:
    """Reno's window and what is on the way."""

    abse: Abse
    rate: float
    rtt_s: float
    losses: Collection[int]
    cwnd: float
    ssthresh: float
    free_s: float = 0.0
    sent: int = 0
    outstanding: int = 0
    count: float = 0.0
    way: deque[tuple[float, float, bool, bool]] = field(default_factory=deque)
    """When each is known to have arrived, when it was sent, whether it is lost, whether it is a retransmission."""
    missing: bool = False
    later: int = 0
    recovering: bool = False

    def send(self, now_s: float, *, retransmission: bool = False) -> None:
        """Let one packet leave."""
        self.free_s = max(self.free_s, now_s) + 1 / self.rate
        self.way.append((self.free_s + self.rtt_s, now_s, self.sent in self.losses, retransmission))
        self.sent += 1
        self.outstanding += 1

    def increase(self) -> None:
        """Slow start to ssthresh, then a packet per window."""
        if self.cwnd < self.ssthresh:
            self.cwnd = min(self.cwnd + 1, self.ssthresh)
            return
        self.count += 1
        if self.count >= self.cwnd:
            self.count, self.cwnd = self.count - self.cwnd, self.cwnd + 1

    def arrived(self, now_s: float, left_s: float, *, retransmission: bool) -> None:
        """Update the state for an acknowledgement."""
        self.outstanding -= 1
        self.abse.take(now_s, now_s - left_s, self.cwnd)
        if retransmission:
            self.recovering = False
        elif self.missing:
            self.later += 1
            if self.later == DUP_THRESH:
                self.missing, self.recovering, self.count = False, True, 0.0
                self.ssthresh = max(self.abse.rate * self.abse.min_rtt_s, 2.0)
                self.cwnd = min(self.cwnd, self.ssthresh)
                self.outstanding -= 1
                self.send(now_s, retransmission=True)
        elif not self.recovering:
            self.increase()


def windows(sender: Sender, duration_s: float) -> list[tuple[int, float]]:
    """Return packets sent and the window of `sender`, which has not begun."""
    points: list[tuple[int, float]] = []
    now_s = next_s = 0.0
    while now_s < duration_s:
        while sender.outstanding + 1 <= sender.cwnd:
            sender.send(now_s)
        at_s = sender.way[0][0]
        now_s = min(at_s, next_s)
        if next_s < at_s:
            points.append((sender.sent, sender.cwnd))
            next_s += SAMPLES_EVERY_RTT * sender.rtt_s
            continue
        at_s, left_s, lost, retransmission = sender.way.popleft()
        if lost:
            sender.missing, sender.later = True, 0
        else:
            sender.arrived(now_s, left_s, retransmission=retransmission)
    return points
