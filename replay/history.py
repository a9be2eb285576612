"""The link over time, from a trace's intervals to the changes of a scenario: rate, delay and outages by the clock.

Losses of the channel have a position in the stream of packets; an outage has a time, whoever sends meanwhile. Knows
traces and drafts. Read docs/channels/extract.md for what an interval is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from replay.draft import RELAY_SHARE, LinkChange

if TYPE_CHECKING:
    from channels.trace import Trace


@dataclass(frozen=True, slots=True)
class History:
    """What held at the start, what changed after it, and what is not known about it. `states` counts levels."""

    rate_bps: float | None
    round_trip_ns: float
    states: int
    changes: Sequence[LinkChange]
    unknowns: Sequence[str]


def history_of(trace: Trace, start_ns: int) -> History:
    """Return the history of the link; times count from `start_ns`, the time of the capture at which a run begins."""
    rows = trace.intervals().to_pylist()
    states = [row for row in rows if row["cause"] != "outage" and row["delay_ns"] is not None]
    changes = []
    for before, after in pairwise(states):
        rate_bps = after["rate_bps"] if after["rate_bps"] != before["rate_bps"] else None
        round_trip_ns = 2.0 * after["delay_ns"] if after["delay_ns"] != before["delay_ns"] else None
        if rate_bps is not None or round_trip_ns is not None:
            changes.append(LinkChange(_clock(after["t_ns"], start_ns), rate_bps, round_trip_ns))
    outages = [row for row in rows if row["cause"] == "outage"]
    for row in outages:
        begin_ns, end_ns = _outage(row, states, start_ns)
        changes += [LinkChange(begin_ns, outage=True, note=row["evidence"] or ""), LinkChange(end_ns, outage=False)]
    first: dict[str, Any] = states[0] if states else {"rate_bps": None, "delay_ns": 0}
    return History(
        rate_bps=first["rate_bps"],
        round_trip_ns=2.0 * first["delay_ns"],
        states=len(states),
        changes=sorted(changes, key=lambda change: change.at_ns),
        unknowns=_unknowns(states, outages),
    )


def _clock(t_ns: int, start_ns: int) -> int:
    return max(0, t_ns - start_ns)


def _outage(row: dict[str, Any], states: list[dict[str, Any]], start_ns: int) -> tuple[int, int]:
    """Return when an outage began and ended on the first hop.

    The trace says when the first lost packet left the queue; what is under way when a link breaks is lost too, so the
    break came up to one delay of that hop later.
    """
    held = [state["delay_ns"] for state in states if state["t_ns"] <= row["t_ns"]]
    hop_ns = round(RELAY_SHARE * held[-1]) if held else 0
    begin_ns = _clock(row["t_ns"], start_ns) + hop_ns
    return begin_ns, max(begin_ns + 1, _clock(row["end_ns"], start_ns))


def _unknowns(states: list[dict[str, Any]], outages: list[dict[str, Any]]) -> list[str]:
    sentences = []
    if len(states) > 1:
        sentences.append(
            "When the rate or the delay changed is known to about a round trip, and whether packets overtook one "
            "another then is not known; a replay lets them."
        )
    if outages:
        sentences.append(
            "An outage is replayed as long as it is proven to have lasted: from the first packet lost to the last."
        )
    return sentences
