"""What a link is like over time: states that follow one another, and their rows of the `channel` table.

Knows no model. States are handed on one by one, so that memory does not grow with the time they cover. Read
docs/channels/synth.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Literal

from hindflight.toolkit.errors import ChannelError
from hindflight.toolkit.schema import table_from_rows

if TYPE_CHECKING:
    import pyarrow as pa

Direction = Literal["a2b", "b2a"]
BATCH_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class State:
    """What holds from `start_ns` to `end_ns`; None where the model says nothing.

    `per` and `ber` are losses by the channel. `outage`: the link is down, and what meets it is lost. A rate of 0:
    nothing is sent, and what is queued waits. `overlap_ns`: with this state a second link takes over, with a queue of
    its own, and the one before serves what it has for so long.
    """

    start_ns: int
    end_ns: int
    rate_bps: float | None = None
    delay_ns: int | None = None
    per: float | None = None
    ber: float | None = None
    outage: bool = False
    overlap_ns: int | None = None

    @property
    def lost(self) -> bool:
        """Whether every packet is lost."""
        return self.outage or self.per == 1


def merged(states: Iterable[State]) -> Iterator[State]:
    """Join neighbours that say the same; leave out what lasts no time."""
    held: State | None = None
    for state in states:
        if state.end_ns <= state.start_ns:
            continue
        if held is not None and _continues(held, state):
            held = replace(held, end_ns=state.end_ns)
            continue
        if held is not None:
            yield held
        held = state
    if held is not None:
        yield held


def _continues(held: State, state: State) -> bool:
    """Whether `state` says what the one before it did; a link that takes over begins anew."""
    begun = replace(state, start_ns=held.start_ns, overlap_ns=held.overlap_ns)
    return state.overlap_ns is None and begun == replace(held, end_ns=state.end_ns)


def until(states: Iterable[State], end_ns: int) -> Iterator[State]:
    """Cut a walk that goes on for ever at `end_ns`."""
    for state in states:
        if state.start_ns >= end_ns:
            return
        yield state if state.end_ns <= end_ns else replace(state, end_ns=end_ns)
        if state.end_ns >= end_ns:
            return


def both(one: Iterable[State], other: Iterable[State]) -> Iterator[State]:
    """A link that suffers what both say: lost where either loses, the lesser rate, the sum of the delays."""
    return merged(_both(iter(one), iter(other)))


def _both(one: Iterator[State], other: Iterator[State]) -> Iterator[State]:
    a, b = next(one, None), next(other, None)
    while a is not None and b is not None:
        start_ns, end_ns = max(a.start_ns, b.start_ns), min(a.end_ns, b.end_ns)
        taken_over = [x.overlap_ns for x in (a, b) if x.start_ns == start_ns and x.overlap_ns is not None]
        yield State(
            start_ns,
            end_ns,
            rate_bps=_lesser(a.rate_bps, b.rate_bps),
            delay_ns=a.delay_ns if b.delay_ns is None else b.delay_ns + (a.delay_ns or 0),
            per=_either(a.per, b.per),
            ber=_either(a.ber, b.ber),
            outage=a.outage or b.outage,
            overlap_ns=max(taken_over, default=None),
        )
        if a.end_ns == end_ns:
            a = next(one, None)
        if b is not None and b.end_ns == end_ns:
            b = next(other, None)


def _lesser(a: float | None, b: float | None) -> float | None:
    return min((value for value in (a, b) if value is not None), default=None)


def _either(a: float | None, b: float | None) -> float | None:
    """The probability that at least one of two independent things happens."""
    if a is None or b is None:
        return a if b is None else b
    return a + b - a * b


def tables(
    states: Iterable[State], *, hop: str = "link", directions: Sequence[Direction] = ("a2b", "b2a")
) -> Iterator[pa.Table]:
    """Rows of kind interval, in batches; each state once per direction."""
    walk = iter(states)
    while chunk := list(islice(walk, BATCH_ROWS)):
        yield table_from_rows("channel", [_row(state, hop, way) for state in chunk for way in directions])


def _row(state: State, hop: str, direction: Direction) -> dict[str, object]:
    cause = "outage" if state.outage else "channel" if state.lost else "none"
    return {
        "kind": "interval", "hop": hop, "direction": direction, "t_ns": state.start_ns, "end_ns": state.end_ns,
        "lost": state.lost, "cause": cause, "rate_bps": state.rate_bps, "delay_ns": state.delay_ns,
        "per": None if state.lost else state.per, "ber": state.ber, "overlap_ns": state.overlap_ns, "known": True,
    }  # fmt: skip


def read_states(channel: pa.Table, direction: Direction, where: str) -> list[State]:
    """Return the states that interval rows of one direction say, one after the other without a gap.

    An outage may stand over other rows, as in an extracted trace: it cuts them, and they hold again after it.
    ChannelError, with `where`, if nothing is said of some time between the first row and the last, or rows are of
    several hops.
    """
    rows = [row for row in channel.to_pylist() if row["kind"] == "interval" and row["direction"] == direction]
    hops = sorted({row["hop"] for row in rows})
    if len(hops) > 1:
        names = ", ".join(hop if hop.isprintable() else repr(hop) for hop in hops)
        raise ChannelError(
            f"{where}: its intervals are of several hops ({names}), and a link is one",
            "one file for each hop",
        )
    said = [_state(row) for row in rows]
    states: list[State] = []
    for state in _overlaid(said):
        if states and state.start_ns > states[-1].end_ns:
            end_ns = states[-1].end_ns
            number = 1 + sum(other.start_ns < state.start_ns for other in said)
            raise ChannelError(
                f"{where}: interval {number} of {direction} begins at {state.start_ns} ns, the one before ends at "
                f"{end_ns} ns: what the link is like in between ({(state.start_ns - end_ns) / 1e9:g} s) is not told",
                "give a row for that time, or let the row before it last longer",
            )
        states.append(state)
    return states


def _state(row: dict[str, Any]) -> State:
    down = row["lost"] and row["cause"] == "outage"
    return State(
        row["t_ns"],
        row["end_ns"],
        rate_bps=row["rate_bps"],
        delay_ns=row["delay_ns"],
        per=1.0 if row["lost"] and not down else row["per"],
        ber=row["ber"],
        outage=down,
        overlap_ns=row["overlap_ns"],
    )


def _overlaid(rows: Sequence[State]) -> Iterator[State]:
    """Cut the states where an outage begins or ends; in it holds what it says, and what it leaves open as below it."""
    lasting = [row for row in rows if row.end_ns > row.start_ns]
    above, below = (_Walk([row for row in lasting if row.outage is down]) for down in (True, False))
    edges = sorted({edge for row in lasting for edge in (row.start_ns, row.end_ns)})
    for start_ns, end_ns in pairwise(edges):
        held = [row for row in (above.at(start_ns), below.at(start_ns)) if row is not None]
        if held:
            yield _piece(start_ns, end_ns, held)


def _piece(start_ns: int, end_ns: int, held: Sequence[State]) -> State:
    if len(held) == 1 and (held[0].start_ns, held[0].end_ns) == (start_ns, end_ns):
        return held[0]

    def said(name: str, rows: Sequence[State] = held) -> Any:
        return next((value for row in rows if (value := getattr(row, name)) is not None), None)

    return State(
        start_ns,
        end_ns,
        rate_bps=said("rate_bps"),
        delay_ns=said("delay_ns"),
        per=said("per"),
        ber=said("ber"),
        outage=held[0].outage,
        # A link takes over where its row begins, not again after an outage.
        overlap_ns=said("overlap_ns", [row for row in held if row.start_ns == start_ns]),
    )


class _Walk:
    """States in order of time, asked for later and later times."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states
        self._next = 0

    def at(self, t_ns: int) -> State | None:
        """The state that holds from `t_ns` on; None where there is none."""
        while self._next < len(self._states) and self._states[self._next].end_ns <= t_ns:
            self._next += 1
        held = self._states[self._next] if self._next < len(self._states) else None
        return held if held is not None and held.start_ns <= t_ns else None


def loss_words(states: Iterable[State], *, outages: bool) -> dict[str, Any]:
    """Return what states lose by the clock, as a loss process in the kernel's words; `outages` too where that is asked.

    (Elsewhere an outage is the link's, not the loss process's.)
    """
    spans = list(loss_spans(states, outages=outages))
    return {"kind": "timeline", "spans": spans} if spans else {"kind": "none"}


def loss_spans(states: Iterable[State], *, outages: bool) -> Iterator[dict[str, Any]]:
    """Return the spans of `loss_words` one by one."""
    last: tuple[float | None, float | None] = (None, None)
    for state in states:
        per = 1.0 if outages and state.outage else state.per
        loss = (None, state.ber) if state.ber is not None and per != 1 else (per or None, None)
        if loss != last:
            yield {"start_ns": state.start_ns, "per": loss[0], "ber": loss[1]}
            last = loss
