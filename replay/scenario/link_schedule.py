"""The link over time, from a trace's intervals to the changes of a scenario: rate, delay and outages by the clock.

Losses of the channel have a position in the stream of packets; an outage has a time, whichever flow sends. Depends on
traces and drafts. Read docs/channels/extract.md for what an interval is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hindflight.channels.intervals import Direction, State, merge, read_states, truncate
from hindflight.replay.scenario.draft import RELAY_SHARE, LinkChange

if TYPE_CHECKING:
    from hindflight.channels.trace import Trace


@dataclass(frozen=True, slots=True)
class LinkSchedule:
    """What held at the start, what changed after it, and what is not known about it. `states` counts levels."""

    rate_bps: float | None
    round_trip_ns: float
    states: int
    changes: Sequence[LinkChange]
    unknowns: Sequence[str]


def link_schedule_of(
    trace: Trace, direction: Direction, end_ns: int | None = None, share: float = RELAY_SHARE
) -> LinkSchedule:
    """Return the schedule of the link; times count from its first state on, at which a run begins, up to `end_ns`.

    `share` is the part of the delay on the link that breaks. ChannelError if the intervals leave a time open.
    """
    read = list(read_states(trace.intervals(), direction, "the trace"))
    states = list(merge(read if end_ns is None else truncate(read, read[0].start_ns + end_ns)))
    origin_ns = states[0].start_ns
    levels = [(a, b) for a, b in pairwise(states) if (a.rate_bps, a.delay_ns) != (b.rate_bps, b.delay_ns)]
    outages = any(state.outage for state in states)
    notes = [
        (row["t_ns"] - origin_ns, row["evidence"] or "")
        for row in trace.intervals().to_pylist()
        if row["cause"] == "outage" and row["known"]
    ]
    changes = [change for pair in pairwise(states) for change in _changes(*pair, origin_ns, share)]
    return LinkSchedule(
        rate_bps=states[0].rate_bps,
        round_trip_ns=2.0 * (states[0].delay_ns or 0),
        states=len(levels) + 1,
        changes=sorted((_noted(change, notes) for change in changes), key=lambda change: change.at_ns),
        unknowns=_unknowns(steps=bool(levels), outages=outages),
    )


def _changes(before: State, after: State, origin_ns: int, share: float) -> Iterator[LinkChange]:
    at_ns = after.start_ns - origin_ns
    rate_bps = after.rate_bps if after.rate_bps != before.rate_bps else None
    delay_ns = after.delay_ns if after.delay_ns != before.delay_ns else None
    if rate_bps is not None or delay_ns is not None:
        yield LinkChange(at_ns, rate_bps, None if delay_ns is None else 2.0 * delay_ns)
    if after.outage and not before.outage:
        # What is under way when a link breaks is lost: on the trace's one link for its whole delay, on the draft's
        # first hop for its share of that. So that both take the same packets, the hop breaks earlier by the rest.
        rest_ns = round((1 - share) * (before.delay_ns or 0))
        yield LinkChange(max(0, at_ns - rest_ns), outage=True)
    if before.outage and not after.outage:
        yield LinkChange(at_ns, outage=False)


def _noted(change: LinkChange, notes: Sequence[tuple[int, str]]) -> LinkChange:
    """The change with the evidence of the outage that it begins."""
    if not change.outage:
        return change
    note = next((text for at_ns, text in notes if at_ns >= change.at_ns), "")
    return LinkChange(change.at_ns, outage=True, note=note)


def _unknowns(*, steps: bool, outages: bool) -> list[str]:
    sentences = []
    if steps:
        sentences.append(
            "When the rate or the delay changed is known to about a round trip, and whether packets overtook one "
            "another then is not known; a replay lets them."
        )
    if outages:
        sentences.append(
            "An outage is replayed as if it had begun halfway between the last packet delivered and the first one "
            "lost, and ended halfway between the last one lost and the next one delivered."
        )
    return sentences
