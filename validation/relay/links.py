"""The paths that are recorded, drawn from a seed: two legs joined by a relay, one long and one short.

Depends on nothing. Of every three paths one has a steady rate and no loss, one random losses on its long leg, and one a
step of the rate of its bottleneck; every other path has socket buffers of a given size at the relay.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

DURATION_S = 30
VARIANTS = ("reno", "cubic", "bbr")
LONG_MS, SHORT_MS = (150.0, 600.0), (6.0, 60.0)
"""Round-trip times."""
PACKET_BITS = 12_000


@dataclass(frozen=True, slots=True)
class Leg:
    """One leg: rate, round-trip time, packets that may wait beside the one in service, losses, changes of the rate.

    `loss` is a word of the emulator; `events` are (s after the leg's first SYN, `rate`, bit/s).
    """

    variant: str
    rate_bps: float
    rtt_ms: float
    queue_pkts: int
    loss: str = "none"
    events: tuple[tuple[float, str, float], ...] = ()

    def params(self) -> dict[str, Any]:
        """Return it in the words of a recorded run."""
        return {
            "rate": self.rate_bps,
            "rtt_ms": self.rtt_ms,
            "queue": self.queue_pkts,
            "loss": self.loss,
            "events": [list(event) for event in self.events],
        }


@dataclass(frozen=True, slots=True)
class Path:
    """Two legs; `buffers` are the values of SO_RCVBUF and SO_SNDBUF that the relay sets, none where they grow."""

    name: str
    legs: tuple[Leg, Leg]
    buffers: dict[str, int] = field(default_factory=dict)
    duration_s: int = DURATION_S


def draw(seed: int, number: int) -> Path:
    """Return path `number`, from 0, of `seed`."""
    generator = random.Random(f"relay {seed}/{number}")  # noqa: S311 - no cryptography

    def between(low: float, high: float) -> float:
        return math.exp(generator.uniform(math.log(low), math.log(high)))

    kind = ("steady", "loss", "step")[number % 3]
    long_leg = generator.randrange(2)
    bottleneck = generator.randrange(2)
    rate_bps = round(between(0.6e6, 6e6), -3)
    rates = [round(rate_bps * between(1.3, 4)) for _ in range(2)]
    rates[bottleneck] = round(rate_bps)
    legs = []
    for at in range(2):
        rtt_ms = round(between(*(LONG_MS if at == long_leg else SHORT_MS)), 1)
        queue_pkts = max(8, round(rates[at] * rtt_ms / 1e3 / PACKET_BITS * between(0.4, 2.5)))
        loss = f"bern:{between(5e-4, 1e-2):.5g}" if kind == "loss" and at == long_leg else "none"
        events: tuple[tuple[float, str, float], ...] = ()
        if kind == "step" and at == bottleneck:
            after = round(rate_bps * generator.choice([between(0.3, 0.7), between(1.4, 3)]))
            events = ((round(generator.uniform(8, 18), 2), "rate", float(after)),)
        variant = generator.choice(VARIANTS)
        legs.append(Leg(variant, float(rates[at]), rtt_ms, queue_pkts, loss, events))
    buffers = {}
    if number % 2:
        for name, leg in (("rcvbuf", legs[0]), ("sndbuf", legs[1])):
            pipe = leg.rate_bps * leg.rtt_ms / 8e3
            buffers[name] = max(32_768, round(pipe * between(0.6, 3)))
    return Path(f"R{seed}.{number}", (legs[0], legs[1]), buffers)
