"""The first data packet at which the engine and the kernel differ: where to look when a run fails.

Depends on two measured flows, packet by packet. Everything after the first difference may be its consequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from validation.measured import Measured

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]

Reason = Literal["fate", "segment", "cwnd", "retransmissions"]

CWND_SHARE = 0.05
CWND_PKTS = 2.0
CWND_RUN = 20
"""Windows part where they differ by more than the larger of the two for so many packets on end."""

RETRANSMISSIONS = 5
"""Counts of retransmissions part where they differ by more."""

WHAT: dict[Reason, str] = {
    "fate": "the link treats it differently",
    "segment": "another segment",
    "cwnd": "the windows part",
    "retransmissions": "the counts of retransmissions part",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """One packet on one side: when it left, its segment's number, what became of it, the window and state behind it."""

    t_ns: int
    segment: int
    fate: str
    cwnd_pkts: float | None
    state: str | None

    def __str__(self) -> str:
        cwnd = "" if self.cwnd_pkts is None else f", cwnd {self.cwnd_pkts:.1f}"
        state = f" in {self.state}" if self.state else ""
        return f"at {self.t_ns / 1e9:.4f} s segment {self.segment} ({self.fate}){cwnd}{state}"


@dataclass(frozen=True, slots=True)
class Divergence:
    """Packet `index` (from 0) is the first that differs by `reason`."""

    reason: Reason
    index: int
    kernel: Moment
    engine: Moment

    def __str__(self) -> str:
        return f"packet {self.index}: {WHAT[self.reason]}; kernel {self.kernel}; engine {self.engine}"


def divergences(kernel: Measured, engine: Measured) -> list[Divergence]:
    """Return the first divergence of each kind, earliest packet first."""
    n = min(len(kernel.segment), len(engine.segment))
    pairs = zip(kernel.fate[:n], engine.fate[:n], strict=True)
    differ: dict[Reason, Flags] = {
        "fate": np.array([a != b for a, b in pairs], bool),
        "segment": np.asarray(kernel.segment[:n] != engine.segment[:n], bool),
        "retransmissions": np.abs(_resent(kernel)[:n] - _resent(engine)[:n]) > RETRANSMISSIONS,
    }
    if kernel.cwnd_pkts is not None and engine.cwnd_pkts is not None:
        theirs, ours = kernel.cwnd_pkts[:n], engine.cwnd_pkts[:n]
        apart = np.abs(ours - theirs) > np.maximum(CWND_SHARE * theirs, CWND_PKTS)
        differ["cwnd"] = _starts_of_runs(apart)
    found = [
        Divergence(reason, first, _moment(kernel, first), _moment(engine, first))
        for reason, where in differ.items()
        if where.any()
        for first in [int(where.argmax())]
    ]
    return sorted(found, key=lambda divergence: divergence.index)


def _resent(measured: Measured) -> npt.NDArray[np.int64]:
    """Count retransmissions up to and including each packet."""
    segment = measured.segment
    highest = np.maximum.accumulate(np.concatenate([[-1], segment]))[:-1]
    return np.cumsum(segment <= highest)


def _starts_of_runs(apart: Flags) -> Flags:
    """Mark where CWND_RUN true values on end begin."""
    sums = np.concatenate([[0], np.cumsum(apart)])
    return np.asarray(sums[CWND_RUN:] - sums[:-CWND_RUN] == CWND_RUN, bool)


def _moment(measured: Measured, index: int) -> Moment:
    cwnd = None if measured.cwnd_pkts is None else float(measured.cwnd_pkts[index])
    return Moment(
        t_ns=int(measured.t_ns[index]),
        segment=int(measured.segment[index]),
        fate=measured.fate[index],
        cwnd_pkts=None if cwnd is None or np.isnan(cwnd) else cwnd,
        state=None if measured.state is None else measured.state[index],
    )
