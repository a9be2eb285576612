"""The random phases of BBR in a recorded run: the phase in which each PROBE_BW state began, read from TCP_INFO.

Depends on the columns of TCP_INFO, not on the engine. Linux begins each cycle at a random phase; the gain shows when
the first probing phase came, and each phase before it lasted about the minimum round-trip time.
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


def first_phases(info: Mapping[str, Integers]) -> int:
    """Return the parameter `first_phases` of `bbr`: a digit for each stay in PROBE_BW, 8 where it began by probing."""
    t_us = info["t_ns"] // 1000
    probing_bw = info["bbr_cwnd_gain"] == PROBE_BW_CWND_GAIN
    entries = np.flatnonzero(probing_bw & ~np.append(False, probing_bw[:-1]))
    ends = [*entries[1:], len(t_us)] if len(entries) else []
    digits = [_first_phase(info, t_us, slice(entry, end)) for entry, end in zip(entries, ends, strict=True)]
    return int("".join(map(str, digits[:MAX_DIGITS])) or "0")


def _first_phase(info: Mapping[str, Integers], t_us: Integers, stay: slice) -> int:
    probing = np.flatnonzero(info["bbr_pacing_gain"][stay] == PROBING_GAIN)
    if not len(probing):
        return MAX_CRUISES
    first = stay.start + int(probing[0])
    waited = int(t_us[first] - t_us[stay.start])
    min_rtt = int(info["bbr_min_rtt"][stay.start])
    cruised = min(round(waited / max(min_rtt, 1)), CYCLE_LENGTH - 2)
    return CYCLE_LENGTH - cruised
