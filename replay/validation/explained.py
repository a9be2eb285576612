"""Why a run that misses parts from the kernel: a text per run, which holds for the packet that it names and no other.

Knows what the records show, not how a run is compared. An explanation whose packet is no longer the first that differs
is none: what made that packet differ has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replay.validation.divergence import Divergence


@dataclass(frozen=True, slots=True)
class Explanation:
    """What made `packet` (from 0, retransmissions included) the first one that differs."""

    packet: int
    text: str


EXPLANATIONS: Mapping[str, Explanation] = {
    "S2-bbr": Explanation(
        1265,
        "BBR keeps the greatest of its bandwidth samples, and the emulator's lateness makes some too great: "
        "TCP_INFO has 120,916 B/s where the link carries 120,667, so that the kernel sends every 12.096 ms, the "
        "engine every 12.105. At packet 1265 this has come to 3 ms: the third duplicate ACK, which begins the "
        "recovery, reaches the kernel 0.2 ms after pacing let that packet leave, the engine 0.4 ms before. Which "
        "repairs are lost from there on decides how many timeouts there are.",
    ),
    "S12-cubic+reno flow 2": Explanation(
        609,
        "The first packet that leaves at another time is 224 (at 4.305 s). It answers the delayed ACK of a lone "
        "segment, and the receiver's timer of 40 ms runs in ticks of 4 ms of the "
        "host's clock: it fired 2.3 ms later than the engine's, which is exact. From there on two flows take "
        "turns at a full queue, where less than a packet's 2.4 ms decides whose packet it drops.",
    ),
    "S5-cubic": Explanation(
        886,
        "The first packet that leaves at another time is 92 (at 2.126 s): the emulator stood still and delivered "
        "seven ACKs at one instant, up to 37.7 ms late by its own account, so that 14 packets left at once. At "
        "packet 886 two leave at one instant to a queue that serves one at that time, and the engine's second finds "
        "no room. From several places within a tick the window then lies within 1.1 % of the kernel's.",
    ),
    "S6-cubic": Explanation(
        824,
        "The first packet that leaves at another time is 569 (at 11.729 s): the kernel's window grows from 40 to "
        "41 one ACK sooner. CUBIC reads its curve in ticks of 4 ms, which the engine counts from the first SYN; "
        "begun 1.75 or 2 ms into one its window grows with the same ACK. At packet 824 the window that "
        "grew sooner has filled the queue first.",
    ),
    "S7-cubic": Explanation(
        1637,
        "The first packet that leaves at another time is 1120 (at 6.522 s). When a gap is filled at 6.27 s the "
        "kernel's receive buffer grows by 13 kB, which is what 306 segments read in a round trip behind one of "
        "154 ask for; one segment more in the latter, and the engine's does not grow. The milliseconds in which "
        "the receiver takes the round-trip time decide that. A window that grows is acknowledged at once, which "
        "turns the pairs in which segments are acknowledged: packets leave 6 ms, the time of one on the link, "
        "sooner or later, and the queue overflows at another packet.",
    ),
}


def explanation(subject: str, found: Sequence[Divergence]) -> str | None:
    """Return why `subject` parts from the kernel where it does, or None if nobody has found that out."""
    known = EXPLANATIONS.get(subject)
    if known is None or not found or found[0].index != known.packet:
        return None
    return known.text
