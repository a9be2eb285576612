"""Outages and handovers of a link, with what they cost the flow: stalls, and the time until its rate was back.

Reads the intervals of an extracted channel and the segments of its flow. A capture does not tell a handover from any
other step of delay or rate, so every step is a `path change`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Ints = npt.NDArray[np.int64]

STEP_SHARE = 0.01
"""Relative difference of delay or rate between two intervals from which the path changed; the extraction has already
tested that they differ."""

AROUND_RTTS = 8
"""Round trips before and after an interruption over which RTT and rate are taken."""

MIN_AROUND_NS = 1_000_000_000
BACK_SHARE = 0.9
"""Share of the earlier rate at which the flow counts as recovered."""

NAMES = {"outage": "outage", "change": "path change", "both": "outage and path change"}


@dataclass(frozen=True, slots=True)
class Interruption:
    """One outage, path change or both, from `start_ns` to `end_ns` (equal without an outage), Unix time.

    Median round trips and goodput of the flow before and after; `first_new_data_ns` runs from the end to the next
    advance of the cumulative ACK, `back_ns` from the end until two windows in a row carry 90 % of the earlier goodput.
    None where the capture does not show a value. `last_record` is the last data segment sent before, `next_record` the
    ACK that advances.
    """

    kind: str
    start_ns: int
    end_ns: int
    rtt_before_ns: float | None
    rtt_after_ns: float | None
    goodput_before_bps: float | None
    goodput_after_bps: float | None
    first_new_data_ns: int | None
    back_ns: int | None
    last_record: int | None
    next_record: int | None


def interruptions(channel: pa.Table, segments: pa.Table, direction: str) -> list[Interruption]:
    """Return the interruptions of the link in order. `segments` are those of one flow, its data goes to `direction`."""
    rows = channel.filter(
        pc.and_(
            pc.equal(channel["kind"].cast("string"), "interval"),
            pc.equal(channel["direction"].cast("string"), direction),
        )
    )
    columns = rows.select(["t_ns", "end_ns", "lost", "rate_bps", "delay_ns"]).sort_by("t_ns").to_pylist()
    spans = _merged(_outages(columns), _changes(columns))
    flow = _Progress.of(segments, direction)
    edges = [0, *(end for _, _, end in spans)], [*(start for _, start, _ in spans[1:]), 1 << 62]
    return [flow.around(span, edges[0][at], edges[1][at]) for at, span in enumerate(spans)]


Span = tuple[str, int, int]


def _outages(rows: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return the outages; intervals that touch are one."""
    found: list[tuple[int, int]] = []
    for row in rows:
        if not row["lost"]:
            continue
        if found and row["t_ns"] <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], row["end_ns"]))
        else:
            found.append((row["t_ns"], row["end_ns"]))
    return found


def _changes(rows: Iterable[dict[str, Any]]) -> list[int]:
    """Return the times at which delay or rate differ from the interval before."""
    states = [row for row in rows if not row["lost"]]
    return [
        after["t_ns"]
        for before, after in pairwise(states)
        if _differ(before["delay_ns"], after["delay_ns"]) or _differ(before["rate_bps"], after["rate_bps"])
    ]


def _differ(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) > STEP_SHARE * max(abs(one), abs(other))


def _merged(outages: Sequence[tuple[int, int]], changes: Sequence[int]) -> list[Span]:
    """Return outages and changes in order; a change in an outage or at its edge belongs to it."""
    spans: list[Span] = []
    rest = list(changes)
    for start, end in outages:
        inside = [at for at in rest if start <= at <= end]
        rest = [at for at in rest if at not in inside]
        spans.append((NAMES["both"] if inside else NAMES["outage"], start, end))
    return sorted([*spans, *((NAMES["change"], at, at) for at in rest)], key=lambda span: span[1])


@dataclass(frozen=True, slots=True)
class _Progress:
    """A flow's data segments, cumulative ACKs and round-trip times over time."""

    sent_ns: Ints
    sent_record: Ints
    ack_ns: Ints
    ack: Ints
    ack_record: Ints
    rtt_at_ns: Ints
    rtt_ns: Ints

    @classmethod
    def of(cls, segments: pa.Table, direction: str) -> _Progress:
        forward = pc.equal(segments["direction"].cast("string"), direction)
        data = segments.filter(pc.and_(forward, pc.greater(segments["payload_bytes"], 0))).sort_by("t_ns")
        back = pc.and_(pc.invert(forward), pc.is_valid(segments["ack"]))
        acks = segments.filter(back).sort_by("t_ns")
        timed = acks.filter(pc.is_valid(acks["rtt_ns"]))
        highest = np.maximum.accumulate(acks["ack"].to_numpy()) if acks.num_rows else np.zeros(0, np.int64)
        return cls(
            data["t_ns"].to_numpy(), data["record"].to_numpy(), acks["t_ns"].to_numpy(), highest,
            acks["record"].to_numpy(), timed["t_ns"].to_numpy(), timed["rtt_ns"].to_numpy(),
        )  # fmt: skip

    def around(self, span: Span, earliest_ns: int, latest_ns: int) -> Interruption:
        """Measure one interruption, between the one before and the one after it."""
        kind, start, end = span
        last = int(np.searchsorted(self.sent_ns, start)) - 1
        record = int(self.sent_record[last]) if last >= 0 else None
        before = self._rtt(max(earliest_ns, start - 60 * MIN_AROUND_NS), start, newest=True)
        window = max(int(AROUND_RTTS * (before or 0)), MIN_AROUND_NS)
        low = max(earliest_ns, start - window, int(self.sent_ns[0]) if len(self.sent_ns) else 0)
        goodput = self._rate(low, start) if start > low else None
        settled = np.searchsorted(self.ack_ns, end, side="right")
        reached = self.ack[settled - 1] if settled else 0
        later = np.flatnonzero(self.ack[settled:] > reached)
        if not len(later):
            return Interruption(kind, start, end, before, None, goodput, None, None, None, record, None)
        at = settled + int(later[0])
        resumed = int(self.ack_ns[at])
        after = self._rtt(resumed, min(latest_ns, resumed + window), newest=False)
        high = min(latest_ns, resumed + window, int(self.ack_ns[-1]))
        return Interruption(
            kind, start, end, before, after, goodput, self._rate(resumed, high) if high > resumed else None,
            resumed - end, self._back(end, (goodput, after or before), latest_ns), record, int(self.ack_record[at]),
        )  # fmt: skip

    def _rtt(self, low_ns: int, high_ns: int, *, newest: bool) -> float | None:
        """Return the median of the up to AROUND_RTTS x 4 samples nearest to the interruption."""
        first, after = np.searchsorted(self.rtt_at_ns, (low_ns, high_ns))
        samples = self.rtt_ns[first:after]
        near = samples[-4 * AROUND_RTTS :] if newest else samples[: 4 * AROUND_RTTS]
        return float(np.median(near)) if len(near) else None

    def _acked(self, at_ns: Ints | int) -> npt.NDArray[np.int64]:
        index = np.searchsorted(self.ack_ns, at_ns, side="right") - 1
        return np.where(index >= 0, self.ack[np.maximum(index, 0)], 0)

    def _rate(self, low_ns: int, high_ns: int) -> float:
        return float(self._acked(high_ns) - self._acked(low_ns)) * 8e9 / (high_ns - low_ns)

    def _back(self, end_ns: int, earlier: tuple[float | None, float | None], latest_ns: int) -> int | None:
        """Return when the goodput was back. Two windows in a row: a filled hole lifts one only."""
        goodput, rtt = earlier
        if not goodput or not rtt or not len(self.ack_ns):
            return None
        window = max(2 * int(rtt), MIN_AROUND_NS // 2)
        last = min(latest_ns, int(self.ack_ns[-1])) - 2 * window
        if last <= end_ns:
            return None
        starts = np.arange(end_ns, last, window // 4)
        one, two, three = (self._acked(starts + shift) for shift in (0, window, 2 * window))
        enough = BACK_SHARE * goodput * window / 8e9
        back = np.flatnonzero((two - one >= enough) & (three - two >= enough))
        return int(starts[back[0]] - end_ns) if len(back) else None
