"""Claims of Lee et al. 2020 about Algorithm 1, each answered by one run that loses chosen packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hindflight.replay.papers.asran.cells import ASRAN_NEWRENO, exchange
from hindflight.replay.papers.losses import run_with_losses
from hindflight.replay.papers.model import Part
from hindflight.replay.papers.verdicts import holds

FIRST_LINK = 0
MSS_BYTES = 1448
ONE = 1.0
"""Windows are compared to one segment."""
STEADY = (
    ("links.relays.changes", None),
    ("links.relays.queue", "10000 pkts"),
    ("flow.receive_buffer", "16 MiB"),
    ("flow.delayed_ack", False),
    ("duration", "20 s"),
)
"""A path without a break and without a full queue, so that the chosen losses are the only ones."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss event: the window before it and ssthresh after it in segments, and what the sender does next.

    `phase` is that at the end of the recovery, `switched_at` the window with which congestion avoidance began.
    """

    before: float
    ssthresh: float
    phase: str
    switched_at: float


def _losses(initial_ssthresh: int, positions: tuple[int, ...]) -> list[Loss]:
    changes = (*STEADY, ("flow.initial_ssthresh", f"{initial_ssthresh} pkts"))
    tables = run_with_losses(exchange(ASRAN_NEWRENO, *changes), FIRST_LINK, positions)
    rows: list[dict[str, Any]] = tables["instruments"].to_pylist()
    states = [row for row in rows if row["source"] == "replay" and row["cwnd_bytes"] is not None]
    phases = [row["phase"] for row in states]
    found = []
    for at in range(1, len(states)):
        if phases[at] == "recovery" != phases[at - 1]:
            end = next(n for n in range(at, len(states)) if phases[n] != "recovery")
            switch = next(n for n in range(end, len(states)) if phases[n] == "congestion_avoidance")
            found.append(
                Loss(
                    states[at - 1]["cwnd_bytes"] / MSS_BYTES,
                    states[at]["ssthresh_bytes"] / MSS_BYTES,
                    phases[end],
                    states[switch]["cwnd_bytes"] / MSS_BYTES,
                )
            )
    return found


def sequence_parts() -> list[Part]:
    """Return whether ssthresh after a loss is the larger of half the window and the window before the previous loss."""
    parts = []
    last_max = 0.0
    for number, loss in enumerate(_losses(40, (200, 700, 1500, 4000)), 1):
        expected = max(loss.before / 2, last_max)
        last_max = loss.before
        note = f"{loss.ssthresh:.1f}, expected {expected:.1f} segments"
        parts.append(holds(f"loss {number}", abs(loss.ssthresh - expected) <= ONE, loss.ssthresh, note))
    first = _losses(40, (200,))[0]
    parts.append(holds("congestion avoidance after the first loss", first.phase == "congestion_avoidance"))
    return parts


def restored_parts() -> list[Part]:
    """Return whether a second loss at a smaller window is followed by slow start up to the window before the first."""
    first, second = _losses(40, (200, 700))[:2]
    return [
        holds("the second window is below the first", second.before < first.before, second.before),
        holds("slow start follows", second.phase == "slow_start", note=second.phase),
        holds("up to the first window", abs(second.switched_at - first.before) <= ONE, second.switched_at),
    ]


def avoidance_parts() -> list[Part]:
    """Return whether a second loss at more than twice the first window is followed by congestion avoidance at once."""
    first, second = _losses(1000, (5, 1500))[:2]
    return [
        holds("the second window is more than twice the first", second.before > 2 * first.before, second.before),
        holds("congestion avoidance follows", second.phase == "congestion_avoidance", note=second.phase),
    ]
