"""The random phases of BBR in a recorded run: the phase in which each cycle of PROBE_BW began, read from TCP_INFO.

Depends on the columns of TCP_INFO and on when ACKs came, not on the engine. Linux begins a cycle at a random phase
(`bbr_reset_probe_bw_mode`); the gain shows when the first probing phase came. Each phase before it ended with the first
ACK that came more than the minimum round-trip time after the one that began it (`bbr_is_next_cycle_phase`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

PROBE_BW_CWND_GAIN = 512
PROBING_GAIN = 320
UNIT_GAIN = 256
DRAIN_GAIN = 88
"""Gains of TCP_INFO, in 256ths."""

CYCLE_LENGTH = 8
MAX_CRUISES = 2
"""The phase furthest from the probing one. A stay that ended before it came to probe began far enough from that, and
all phases in between are alike."""

MAX_DIGITS = 15

LONG_TERM_ROUNDS = 48
"""Rounds that the long-term rate is kept (`bbr_lt_bw_max_rtts`); another cycle begins behind them."""


def first_phases(info: Mapping[str, Integers], acks_ns: Integers) -> int:
    """Return the parameter `first_phases` of `bbr`: a digit for each draw, 8 where the cycle began by probing.

    `acks_ns` is when the sender's ACKs came. Without BBR's rate, which old recordings of relays lack, only the cycles
    count that begin with PROBE_BW.
    """
    rows = len(info["t_ns"])
    probes_bw = info["bbr_cwnd_gain"] == PROBE_BW_CWND_GAIN
    entries = np.flatnonzero(probes_bw & ~np.append(False, probes_bw[:-1]))
    unseen = [*_drained_into_probe_rtt(info), *_ends_of_long_term(info, probes_bw)] if "bbr_bw" in info else []
    draws = np.unique([*entries, *unseen]).astype(int)
    ends = [*draws[1:], rows] if len(draws) else []
    digits = [_first_phase(info, acks_ns, slice(draw, end)) for draw, end in zip(draws, ends, strict=True)]
    return int("".join(map(str, digits[:MAX_DIGITS])) or "0")


def _drained_into_probe_rtt(info: Mapping[str, Integers]) -> Integers:
    """Return the rows that show a change from DRAIN to PROBE_RTT with the queue drained: one ACK did both.

    It ended DRAIN and drew a phase (`bbr_check_drain`) before it began PROBE_RTT (`bbr_update_min_rtt`).
    """
    gain = info["bbr_pacing_gain"]
    drains = gain == DRAIN_GAIN
    leaves = np.append(False, drains[:-1]) & (gain == UNIT_GAIN) & (info["bbr_cwnd_gain"] == UNIT_GAIN)
    flight = info["unacked"] - info["sacked"] - info["lost"] + info["retrans"]
    bdp_bytes = info["bbr_bw"] * info["bbr_min_rtt"] / 1e6
    return np.flatnonzero(leaves & (flight * info["snd_mss"] <= bdp_bytes))


def _ends_of_long_term(info: Mapping[str, Integers], probes_bw: npt.NDArray[np.bool_]) -> Iterator[int]:
    """Yield the rows by which the long-term rate was given up for another cycle.

    It is kept for 48 rounds, with a gain of one (`bbr_lt_bw_sampling`). No cycle cruises for as long at one rate.
    """
    t_ns, min_rtt_ns = info["t_ns"], info["bbr_min_rtt"] * 1000
    unit = info["bbr_pacing_gain"] == UNIT_GAIN
    begins = np.append(True, (np.diff(info["bbr_bw"]) != 0) | (np.diff(unit) != 0))
    starts = np.flatnonzero(begins)
    for start, end in pairwise(starts):
        if not unit[start] or not probes_bw[end]:
            continue
        held_ns = np.diff(t_ns[start : end + 1])[probes_bw[start:end]].sum()
        if held_ns >= LONG_TERM_ROUNDS * min_rtt_ns[start:end].min():
            yield int(end)


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
