"""The rules that every variant keeps, played on a controller in Python: the engine's own contract, in Python's words.

Knows the events and the rules, not the network. Sequences are drawn from seeds, so that a finding can be repeated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from replay.controller import Controller

SEQUENCES = 40
EVENTS = 200
INITIAL_WINDOW_PKTS = 10.0
SMSS_BYTES = 1448


@dataclass(frozen=True, slots=True)
class DrawnAck:
    """An ACK as the engine would tell of it."""

    now_s: float
    delivered_pkts: int
    rtt_s: float
    flight_pkts: int
    snd_una: int
    cwnd_limited: bool
    repair: str = "none"
    ecn_echo: bool = False
    lost_pkts: int = 0

    @property
    def acked_bytes(self) -> int:
        """All that it delivers."""
        return self.delivered_pkts * SMSS_BYTES

    @property
    def srtt_s(self) -> float:
        """As the sample."""
        return self.rtt_s

    @property
    def min_rtt_s(self) -> float:
        """As the sample."""
        return self.rtt_s

    @property
    def snd_nxt(self) -> int:
        """A flight beyond."""
        return self.snd_una + self.flight_pkts * SMSS_BYTES

    @property
    def prior_flight_pkts(self) -> int:
        """Before it delivered."""
        return self.flight_pkts + self.delivered_pkts


@dataclass(frozen=True, slots=True)
class DrawnCongestion:
    """A signal as the engine would tell of it."""

    now_s: float
    flight_pkts: float
    kind: str
    lost_pkts: int = 1


def check_controller(make: Callable[[float, float], Controller]) -> list[str]:
    """Return what `make(cwnd, ssthresh)`'s controllers do against the rules, a sentence each; none is as it should be.

    Windows are finite and at least one segment; a loss, a timeout and idleness raise nothing; a window that is not used
    does not grow, one that is used and loses nothing does; equal events give equal windows.
    """
    found: dict[str, None] = {}
    for seed in range(SEQUENCES):
        problems, windows = _play(make, seed)
        found |= dict.fromkeys(problems)
        if _play(make, seed)[1] != windows:
            found["equal events give different windows"] = None
    used = make(INITIAL_WINDOW_PKTS, math.inf)
    for n in range(100):
        used.on_ack(_ack(n, 0.1 * n, used.cwnd, limited=True))
    if used.cwnd <= INITIAL_WINDOW_PKTS:
        found["a window that is used and loses nothing does not grow"] = None
    return list(found)


def _ack(number: int, now_s: float, cwnd: float, *, limited: bool, delivered: int = 1, rtt_s: float = 0.1) -> DrawnAck:
    flight = max(1, int(min(cwnd, 1e6)))
    return DrawnAck(now_s, delivered, rtt_s, flight if limited else flight // 4, 1 + number * SMSS_BYTES, limited)


def _play(make: Callable[[float, float], Controller], seed: int) -> tuple[list[str], list[float]]:
    draw = random.Random(seed)  # noqa: S311 - no secret
    controller = make(INITIAL_WINDOW_PKTS, math.inf)
    problems, windows, now_s = [], [], 0.0
    for number in range(EVENTS):
        before = controller.cwnd
        now_s += draw.uniform(0.001, 0.5)
        kind = draw.choices(("used", "unused", "loss", "timeout", "idle", "exit"), (70, 10, 8, 3, 3, 6))[0]
        rises = _happen(controller, kind, number, now_s, draw)
        if not (math.isfinite(controller.cwnd) and controller.cwnd >= 1 and controller.ssthresh >= 1):
            problems.append(f"cwnd {controller.cwnd} and ssthresh {controller.ssthresh} after: {kind}")
            break
        if rises is not None and controller.cwnd > max(before, 2.0):
            problems.append(rises)
        windows.append(controller.cwnd)
    return problems, windows


def _happen(controller: Controller, kind: str, number: int, now_s: float, draw: random.Random) -> str | None:
    """Let it happen; return what would be wrong with a window that rose by it."""
    delivered, rtt_s = draw.randint(1, 8), draw.uniform(0.001, 2.0)
    limited = kind != "unused"
    ack = _ack(number, now_s, controller.cwnd, limited=limited, delivered=delivered, rtt_s=rtt_s)
    if kind in ("used", "unused"):
        controller.observe(ack)
        controller.on_ack(ack)
        return None if limited else "a window that is not used grows"
    if kind == "exit":
        controller.on_recovery_exit(ack)
        return None
    if kind == "idle":
        controller.on_idle(INITIAL_WINDOW_PKTS, 5.0)
        return "idleness raises the window"
    signal = DrawnCongestion(now_s, float(ack.flight_pkts), kind)
    if kind == "loss":
        controller.on_congestion(signal)
        return "a loss raises the window"
    controller.on_timeout(signal)
    return "a timeout raises the window"
