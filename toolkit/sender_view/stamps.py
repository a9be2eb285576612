"""The segments of both directions of a flow captured at the receiver, with what their timestamps say.

RFC 7323 §3.2: TSval is the sender's clock when it made the segment, TSecr the receiver's clock in the last segment that
the sender had processed by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.errors import CaptureError
from hindflight.toolkit.serial import nearest, unwrapped

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

TICKS_NS = (1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000, 500_000_000)
"""Ticks of timestamp clocks in use. RFC 7323 §5.4 asks for 1 ms to 1 s; Linux may count microseconds."""
MAX_TICK_ERROR = 0.1
"""Share by which a measured tick may differ from one of them: delays change while it is measured."""
MIN_TICKS = 20
MIN_STAMPED = 0.98
"""Share of the segments that have to carry timestamps, resets apart: those of Linux have none."""
MAX_DELAY_NS = 60_000_000_000
"""No segment is on its way for longer."""

_ABSENT, _RST = -1, 4


@dataclass(frozen=True, slots=True)
class Stamps:
    """Segments from the sender (`row`, `t_ns`, `ticks`) in the order sent, and to it (`back_row`, `back_t_ns`).

    `row` counts in the flow's table of segments. `ticks` is TSval without wraps. `echoed` and `echoed_last` are the
    indices of the first and the last segment to the sender with the TSval that a segment from it echoes; -1 without
    one. Times are ns since `origin_ns`, so that a float holds them. `rtt_min_ns` is the shortest round trip from the
    receiver.
    """

    origin_ns: int
    tick_ns: int
    row: Ints
    t_ns: Ints
    ticks: Ints
    echoed: Ints
    echoed_last: Ints
    back_row: Ints
    back_t_ns: Ints
    rtt_min_ns: float


def stamps_of(segments: pa.Table, direction: str) -> Stamps:
    """Return the stamps of a flow whose data go in `direction`.

    CaptureError: one of the hosts sends no timestamps, their clock does not show, or nothing echoes the receiver's.
    """
    forward = is_forward(segments, direction)
    t_ns = segments["t_ns"].to_numpy()
    origin_ns = int(t_ns[0])
    ts_val, ts_ecr = _stamp(segments, "ts_val"), _stamp(segments, "ts_ecr")
    stamped = ts_val != _ABSENT
    _check(stamped, forward, (segments["flags"].to_numpy() & _RST) != 0)
    row, back_row = np.flatnonzero(forward & stamped), np.flatnonzero(~forward & stamped)
    ticks, back_ticks = (ts_val[rows[0]] + unwrapped(ts_val[rows], int(ts_val[rows[0]])) for rows in (row, back_row))
    tick_ns = _tick_ns(t_ns[row], ticks)
    # A segment whose clock is off by more than any delay counts as one without a timestamp.
    delay_ns = t_ns[row] - origin_ns - (ticks - ticks[0]) * tick_ns
    plausible = np.abs(delay_ns - np.median(delay_ns)) <= MAX_DELAY_NS
    row, ticks = row[plausible], ticks[plausible]
    # Where the delay of the path falls, segments overtake those before them.
    order = np.argsort(ticks, kind="stable")
    row, ticks = row[order], ticks[order]
    # The segments to the sender that the capture has before each one: the one echoed is one of the last of them.
    latest = np.maximum(np.searchsorted(back_row, row) - 1, 0)
    echoed = _echoed(ts_ecr[row], back_ticks, latest, "left")
    return Stamps(
        origin_ns=origin_ns,
        tick_ns=tick_ns,
        row=row,
        t_ns=t_ns[row] - origin_ns,
        ticks=ticks,
        echoed=echoed,
        echoed_last=_echoed(ts_ecr[row], back_ticks, latest, "right"),
        back_row=back_row,
        back_t_ns=t_ns[back_row] - origin_ns,
        rtt_min_ns=_shortest_ns(t_ns[row], t_ns[back_row], echoed),
    )


def is_forward(segments: pa.Table, direction: str) -> Bools:
    """Mark the segments that go in `direction`."""
    import pyarrow.compute as pc

    return np.asarray(pc.equal(segments["direction"].cast("string"), direction).to_numpy(), dtype=np.bool_)


def _check(stamped: Bools, forward: Bools, reset: Bools) -> None:
    """CaptureError if one of the two hosts sends nothing, or no timestamps."""
    why = "without which a capture at the receiver does not show when the sender sent"
    for rows, who in ((forward & ~reset, "sender"), (~forward & ~reset, "receiver")):
        if not rows.any():
            raise CaptureError(f"the capture has no segment of the {who}, {why}", "capture both directions")
        share = float(stamped[rows].mean())
        if share < MIN_STAMPED:
            has = "no timestamps" if share == 0 else f"timestamps in only {100 * share:.0f} % of its segments"
            raise CaptureError(
                f"the {who} sends {has}, {why}",
                "use a capture taken at the data sender, or enable TCP timestamps on both hosts",
            )


def _stamp(segments: pa.Table, name: str) -> Ints:
    return np.asarray(segments[name].cast("int64").fill_null(_ABSENT).to_numpy(), dtype=np.int64)


def _tick_ns(t_ns: Ints, ticks: Ints) -> int:
    """Return the tick of the sender's clock. CaptureError if it is not one of those in use."""
    span = int(ticks[-1] - ticks[0])
    if span < MIN_TICKS:
        raise CaptureError(
            f"the sender's timestamps count {span} ticks in this flow, too few to show when it sent",
            "use a longer capture, or one taken at the data sender",
        )
    measured = float(t_ns[-1] - t_ns[0]) / span
    tick = min(TICKS_NS, key=lambda tick: abs(np.log(measured / tick)) if measured > 0 else np.inf)
    if not abs(measured / tick - 1) <= MAX_TICK_ERROR:
        raise CaptureError(
            f"a tick of the sender's timestamps takes {measured / 1e6:.3g} ms, which no clock in use has",
            "use a capture taken at the data sender",
        )
    return tick


def _shortest_ns(t_ns: Ints, back_t_ns: Ints, echoed: Ints) -> float:
    """Return the shortest round trip from the receiver. CaptureError if no segment echoes one that the capture has."""
    answered = echoed >= 0
    if not answered.any():
        raise CaptureError(
            "no segment from the sender echoes a timestamp of the receiver that the capture has, so that it does not "
            "show when the sender sent",
            "use a capture taken at the data sender",
        )
    return float((t_ns[answered] - back_t_ns[echoed[answered]]).min())


def _echoed(ts_ecr: Ints, back_ticks: Ints, latest: Ints, side: Literal["left", "right"]) -> Ints:
    """Return the index of the first or last segment with the TSval that each of `ts_ecr` echoes; -1 without one.

    `latest` is the index of the last segment to the sender that the capture has before.
    """
    highest = np.maximum.accumulate(back_ticks)
    wanted = highest[latest] + nearest(ts_ecr - highest[latest])
    at = np.searchsorted(highest, wanted, side=side) - (side == "right")
    matches = highest[np.clip(at, 0, len(highest) - 1)] == wanted
    return np.where(matches & (ts_ecr > 0), at, -1)
