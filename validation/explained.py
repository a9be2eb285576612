"""Why a run that fails differs from the kernel: a text per run, valid only for the packet that it names.

Depends on what the records show, not on how a run is compared. An explanation whose packet is no longer the first that
differs is invalid: the cause of that difference has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validation.divergence import Divergence


@dataclass(frozen=True, slots=True)
class Explanation:
    """What made `packet` (from 0, retransmissions included) the first one that differs."""

    packet: int
    text: str


EXPLANATIONS: Mapping[str, Explanation] = {
    "S2-reno": Explanation(
        1570,
        "With 7 or 8 packets at the lower quartile the bound asks for the very number, and half of the packets are "
        "more than 0.1 ms late by the emulator and the hosts. The first one that is more than 4 ms off is 586 (at "
        "10.308 s): it answers the delayed ACK of a lone segment, which arrived on the other side of a tick, and the "
        "receiver counts the pauses by which it delays in ticks of 4 ms. At packet 1570 the third duplicate ACK "
        "reaches the kernel before the packet that the engine has sent by then.",
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
    "S12-cubic+reno flow 1": Explanation(
        540,
        "The kernel's window grows from 70 to 71 one ACK sooner: its ACKs are 0.25 ms later by the emulator and the "
        "hosts, and one of them falls into the next tick of the 4 ms by which CUBIC reads its curve. Its packet 540 "
        "finds the queue full, the engine's leaves with the next ACK and finds room. From there on two flows take "
        "turns at a full queue, and less than a packet's 2.4 ms decides whose packet it drops.",
    ),
    "S12-cubic+reno flow 2": Explanation(
        800,
        "The other flow parts at its packet 540, at 1.34 s, so that this one finds other queues from there on.",
    ),
}


def explanation(subject: str, found: Sequence[Divergence]) -> str | None:
    """Return why `subject` parts from the kernel where it does, or None if nobody has found that out."""
    known = EXPLANATIONS.get(subject)
    if known is None or not found or found[0].index != known.packet:
        return None
    return known.text
