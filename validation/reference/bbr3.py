"""BBR, version 3, over one link that loses nothing: the draft's rules as a recursion, a packet a step.

Knows draft-ietf-ccwg-bbr-05, whose sections the rules name, and the link's rate and delay, nothing of our code.
The draft randomises the time between probes; here it is the minimum. Rates in packets per second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf

STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT = range(7)
PACING_GAIN = (2.77, 0.5, 0.9, 1.0, 1.0, 1.25, 1.0)
CWND_GAIN = (2.0, 2.0, 2.0, 2.0, 2.0, 2.25, 0.5)
"""By state, §5.6.1."""
PACING_MARGIN = 0.99
FULL_BW_GROWTH, FULL_BW_ROUNDS = 1.25, 3
PROBE_WAIT_S, RENO_ROUNDS = 2.0, 63
MIN_RTT_S, PROBE_RTT_INTERVAL_S, PROBE_RTT_S = 10.0, 5.0, 0.2
MIN_CWND_PKTS, UP_ROOM_PKTS = 4, 2
QUANTA, MIN_QUANTUM_PKTS, QUANTUM_S = 3, 2, 0.001
EXTRA_ACKED_ROUNDS = 10
UNPACED_PKTS = 10
"""Linux's sender, not the draft: the first packets of a connection."""
PARAMS = {"drain_gain": 128, "down_pacing_gain": 0.9, "probe_rand_s": 0.0, "probe_rand_rounds": 1}
"""What makes the engine's variant the draft's, without its draws: Linux drains at 88/256 and 0.91."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet in flight; what the sender knew when it left, §4.1."""

    sent_s: float
    acked_s: float
    delivered: int
    delivered_s: float
    first_sent_s: float
    app_limited: bool


@dataclass(slots=True)
class Sample:
    """Evidence of an ACK: delivery rate, round-trip time, and whether the sender was limited."""

    rate: float
    rtt_s: float
    app_limited: bool


@dataclass(slots=True)
class Bbr3:
    """State of the sender; times in seconds since the first packet."""

    cwnd: float
    now_s: float = 0.0
    state: int = STARTUP
    pacing: float = inf
    delivered: int = 0
    inflight: int = 0
    held_back_until: int = 0
    round_end: int = 0
    round_starts: bool = False
    rounds: int = 0
    max_bw: list[float] = field(default_factory=lambda: [0.0, 0.0])
    min_rtt_s: float = inf
    min_rtt_at_s: float = 0.0
    probe_min_s: float = inf
    probe_min_at_s: float = 0.0
    full_bw: float = 0.0
    full_rounds: int = 0
    full_now: bool = False
    full: bool = False
    cycle_s: float = 0.0
    probe_stops: bool = False
    prior_cwnd: float = 0.0
    probe_rtt_end_s: float = 0.0
    probe_rtt_round: bool = False
    round_count: int = 0
    burst_from_s: float = 0.0
    burst_pkts: float = 0.0
    extra_acked: dict[int, float] = field(default_factory=dict)

    @property
    def bw(self) -> float:
        """Without losses nothing bounds it."""
        return max(self.max_bw)

    @property
    def quantum(self) -> int:
        """§5.6.3."""
        return max(int(self.pacing * QUANTUM_S), MIN_QUANTUM_PKTS) if self.pacing < inf else MIN_QUANTUM_PKTS

    def max_inflight(self, gain: float, extra: float = 0.0) -> float:
        """§5.6.4.2, with §5.6.3 and §5.5.8.1."""
        room = UP_ROOM_PKTS if self.state == UP else 0
        return max(gain * self.bw * self.min_rtt_s + extra, QUANTA * self.quantum, MIN_CWND_PKTS) + room

    def on_ack(self, sample: Sample) -> None:
        """§5.2.3, in its order; with the first of all, §5.6.2's first pacing rate."""
        if self.pacing == inf:
            self.pacing = PACING_GAIN[STARTUP] * self.cwnd / sample.rtt_s
        self._update_round_and_bw(sample)
        self._update_aggregation()
        self._check_full_pipe(sample)
        if self.state == STARTUP and self.full:
            self.state = DRAIN
        if self.state == DRAIN and self.inflight <= self.max_inflight(1.0):
            self._start_down()
        if self.full:
            self._update_cycle(sample)
        expired = self._update_min_rtt(sample)
        if expired and self.state != PROBE_RTT:
            self.state, self.prior_cwnd, self.probe_rtt_end_s = PROBE_RTT, self.cwnd, 0.0
            self.probe_stops = True
            self.round_end = self.delivered
        if self.state == PROBE_RTT:
            self._stay_in_probe_rtt()
        self._set_pacing_and_cwnd()

    def _update_round_and_bw(self, sample: Sample) -> None:
        """§5.5.1, §5.5.5."""
        if self.round_starts:
            self.round_end = self.delivered
            self.rounds += 1
            self.round_count += 1
        if sample.rate >= self.bw or not sample.app_limited:
            self.max_bw[1] = max(self.max_bw[1], sample.rate)

    def _update_aggregation(self) -> None:
        """§5.5.9."""
        expected = self.bw * (self.now_s - self.burst_from_s)
        if self.burst_pkts <= expected:
            self.burst_pkts, self.burst_from_s, expected = 0.0, self.now_s, 0.0
        self.burst_pkts += 1
        extra = min(self.burst_pkts - expected, self.cwnd)
        self.extra_acked[self.round_count] = max(self.extra_acked.get(self.round_count, 0.0), extra)
        if self.round_starts:
            oldest = self.round_count - (EXTRA_ACKED_ROUNDS if self.full else 1)
            self.extra_acked = {at: pkts for at, pkts in self.extra_acked.items() if at >= oldest}

    def _check_full_pipe(self, sample: Sample) -> None:
        """§5.3.1.2."""
        if self.full_now or sample.app_limited:
            return
        if sample.rate >= FULL_BW_GROWTH * self.full_bw:
            self._search_full_pipe(sample.rate)
        elif self.round_starts:
            self.full_rounds += 1
            self.full_now = self.full_rounds >= FULL_BW_ROUNDS
            self.full |= self.full_now

    def _search_full_pipe(self, rate: float) -> None:
        self.full_bw, self.full_rounds, self.full_now = rate, 0, False

    def _start_down(self) -> None:
        """§5.3.3.6, without the random part of the wait."""
        self.state, self.cycle_s, self.rounds = DOWN, self.now_s, 0
        self.probe_stops = True
        self.round_end = self.delivered

    def _update_cycle(self, sample: Sample) -> None:
        """§5.3.3.6."""
        if self.probe_stops and self.round_starts:
            self.probe_stops = False
            if DOWN <= self.state <= UP and not sample.app_limited:
                self.max_bw = [self.max_bw[1], 0.0]
        due = self.now_s > self.cycle_s + PROBE_WAIT_S or self.rounds >= min(
            RENO_ROUNDS, self.max_inflight(1.0), self.cwnd
        )
        if self.state in (DOWN, CRUISE) and due:
            self.state, self.round_end = REFILL, self.delivered
        elif self.state == DOWN and self.inflight <= self.max_inflight(1.0):
            self.state = CRUISE
        elif self.state == REFILL and self.round_starts:
            self.state, self.round_end = UP, self.delivered
            self._search_full_pipe(sample.rate)
        elif self.state == UP and self.full_now:
            self._start_down()

    def _update_min_rtt(self, sample: Sample) -> bool:
        """§5.3.4.3."""
        expired = self.now_s > self.probe_min_at_s + PROBE_RTT_INTERVAL_S
        if sample.rtt_s < self.probe_min_s or expired:
            self.probe_min_s, self.probe_min_at_s = sample.rtt_s, self.now_s
        if self.probe_min_s < self.min_rtt_s or self.now_s > self.min_rtt_at_s + MIN_RTT_S:
            self.min_rtt_s, self.min_rtt_at_s = self.probe_min_s, self.probe_min_at_s
        return expired

    def _stay_in_probe_rtt(self) -> None:
        """§5.3.4.3."""
        self.held_back_until = self.delivered + self.inflight
        if not self.probe_rtt_end_s:
            if self.inflight <= self._probe_rtt_cwnd():
                self.probe_rtt_end_s, self.probe_rtt_round = self.now_s + PROBE_RTT_S, False
                self.round_end = self.delivered
            return
        self.probe_rtt_round |= self.round_starts
        if self.probe_rtt_round and self.now_s > self.probe_rtt_end_s:
            self.probe_min_at_s = self.now_s
            self.cwnd = max(self.cwnd, self.prior_cwnd)
            self._start_down()
            self.state = CRUISE

    def _set_pacing_and_cwnd(self) -> None:
        """§5.6.2, §5.6.4.6."""
        rate = PACING_GAIN[self.state] * self.bw * PACING_MARGIN
        if self.full or rate > self.pacing:
            self.pacing = rate
        max_inflight = self.max_inflight(CWND_GAIN[self.state], max(self.extra_acked.values()))
        if self.full:
            self.cwnd = min(self.cwnd + 1, max_inflight)
        elif self.cwnd < max_inflight:
            self.cwnd += 1
        self.cwnd = max(self.cwnd, MIN_CWND_PKTS)
        if self.state == PROBE_RTT:
            self.cwnd = min(self.cwnd, self._probe_rtt_cwnd())

    def _probe_rtt_cwnd(self) -> float:
        """§5.6.4.5."""
        return max(CWND_GAIN[PROBE_RTT] * self.bw * self.min_rtt_s, MIN_CWND_PKTS)


def windows(rate: float, rtt_s: float, duration_s: float, initial_pkts: int) -> list[tuple[int, float]]:
    """Return packets sent and the window that let the last of them leave, once per `rtt_s`.

    The link's `rate` is in packets per second; its queue never overflows.
    """
    sender = Bbr3(cwnd=float(initial_pkts))
    flying: deque[Packet] = deque()
    sent, next_s, served_s, delivered_s, first_sent_s = 0, 0.0, 0.0, 0.0, 0.0
    points: list[tuple[int, float]] = []
    while sender.now_s < duration_s:
        while len(flying) < sender.cwnd:
            # The packets of a quantum leave back to back.
            at_s = max(sender.now_s, next_s if sent % sender.quantum == 0 else 0.0)
            if flying and at_s > flying[0].acked_s:
                break
            served_s = max(served_s, at_s) + 1 / rate
            next_s = max(at_s, next_s) + (1 / sender.pacing if sent >= UNPACED_PKTS else 0.0)
            held_back = sender.delivered < sender.held_back_until
            packet = Packet(at_s, served_s + rtt_s, sender.delivered, delivered_s, first_sent_s, held_back)
            flying.append(packet)
            sent += 1
            if at_s >= len(points) * rtt_s:
                points.append((sent, sender.cwnd))
        packet = flying.popleft()
        sender.now_s = delivered_s = packet.acked_s
        sender.delivered += 1
        sender.inflight = len(flying)
        sender.round_starts = packet.delivered >= sender.round_end
        interval_s = max(sender.now_s - packet.delivered_s, packet.sent_s - packet.first_sent_s)
        first_sent_s = packet.sent_s
        rate_seen = (sender.delivered - packet.delivered) / interval_s
        # To the nanosecond: what is left of a sum of fractions is no lesser round-trip time.
        sender.on_ack(Sample(rate_seen, round(sender.now_s - packet.sent_s, 9), packet.app_limited))
    return points
