"""The random phases of BBR in a recorded run: the phase in which each PROBE_BW state began, read from TCP_INFO.

Depends on the columns of TCP_INFO and on when ACKs came, not on the engine. Linux begins each cycle at a random phase;
the gain shows when the first probing phase came. Each phase before it ended with the first ACK that came more than the
minimum round-trip time after the one that began it (`bbr_is_next_cycle_phase`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

PROBE_BW_CWND_GAIN = 512
PROBING_GAIN = 320
"""Gains of TCP_INFO, in 256ths."""

CYCLE_LENGTH = 8
MAX_CRUISES = 2
"""The phase furthest from the probing one. A stay that ended before it came to probe began far enough from that, and
all phases in between are alike."""

MAX_DIGITS = 15


def first_phases(info: Mapping[str, Integers], acks_ns: Integers) -> int:
    """Return the parameter `first_phases` of `bbr`: a digit for each stay in PROBE_BW, 8 where it began by probing.

    `acks_ns` is when the sender's ACKs came.
    """
    probing_bw = info["bbr_cwnd_gain"] == PROBE_BW_CWND_GAIN
    entries = np.flatnonzero(probing_bw & ~np.append(False, probing_bw[:-1]))
    ends = [*entries[1:], len(probing_bw)] if len(entries) else []
    digits = [_first_phase(info, acks_ns, slice(entry, end)) for entry, end in zip(entries, ends, strict=True)]
    return int("".join(map(str, digits[:MAX_DIGITS])) or "0")


def _first_phase(info: Mapping[str, Integers], acks_ns: Integers, stay: slice) -> int:
    probing = np.flatnonzero(info["bbr_pacing_gain"][stay] == PROBING_GAIN)
    if not len(probing):
        return MAX_CRUISES
    # A row shows what the last ACK before it did.
    shown = np.searchsorted(acks_ns, info["t_ns"][[stay.start, stay.start + int(probing[0])]], side="right") - 1
    began, probed = (int(acks_ns[max(at, 0)]) for at in shown)
    min_rtt_ns = int(info["bbr_min_rtt"][stay.start]) * 1000
    phases = [began]
    while phases[-1] < probed and len(phases) < CYCLE_LENGTH - 1:
        over = np.searchsorted(acks_ns, phases[-1] + min_rtt_ns, side="right")
        phases.append(int(acks_ns[over]) if over < len(acks_ns) else probed)
    cruised = int(np.abs(np.array(phases) - probed).argmin())
    return CYCLE_LENGTH - cruised
