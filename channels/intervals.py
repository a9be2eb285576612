"""The state of a link over time, and its rows of kind interval in the table `channel`.

States are iterated one by one, so memory does not grow with the time that they cover. Does not depend on any model. See
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
    """The state of a link from `start_ns` to `end_ns`. None means that the model does not determine the value.

    `per` and `ber` are loss by the channel. In an `outage` the link is down and loses every packet. At a rate of 0
    nothing is sent and queued packets wait. `overlap_ns`: at the start of this state a second link with a separate
    queue takes over, and the previous link keeps draining its queue for that long.
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


def merge(states: Iterable[State]) -> Iterator[State]:
    """Merge adjacent states with equal values; drop states of zero duration."""
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
    """Return whether `state` continues `held` unchanged. A state with a handover always starts a new one."""
    begun = replace(state, start_ns=held.start_ns, overlap_ns=held.overlap_ns)
    return state.overlap_ns is None and begun == replace(held, end_ns=state.end_ns)


def truncate(states: Iterable[State], end_ns: int) -> Iterator[State]:
    """Truncate states, which may be endless, at `end_ns`."""
    for state in states:
        if state.start_ns >= end_ns:
            return
        yield state if state.end_ns <= end_ns else replace(state, end_ns=end_ns)
        if state.end_ns >= end_ns:
            return


def combine(one: Iterable[State], other: Iterable[State]) -> Iterator[State]:
    """Return the states of two links in series: the lower rate, the sum of the delays, the losses of both."""
    return merge(_combine(iter(one), iter(other)))


def _combine(one: Iterator[State], other: Iterator[State]) -> Iterator[State]:
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
    """Return the probability that at least one of two independent events occurs."""
    if a is None or b is None:
        return a if b is None else b
    return a + b - a * b


def tables(
    states: Iterable[State], *, hop: str = "link", directions: Sequence[Direction] = ("a2b", "b2a")
) -> Iterator[pa.Table]:
    """Return rows of kind interval in batches of tables; each state has one row per direction."""
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
    """Return the interval rows of one direction as contiguous states.

    An outage may overlap other rows, as in an extracted trace: it interrupts them, and they continue after it. Raises
    ChannelError, which names `where`, if there is a gap between the rows or if they belong to several hops.
    """
    rows = [row for row in channel.to_pylist() if row["kind"] == "interval" and row["direction"] == direction]
    hops = sorted({row["hop"] for row in rows})
    if len(hops) > 1:
        names = ", ".join(hop if hop.isprintable() else repr(hop) for hop in hops)
        raise ChannelError(
            f"{where}: the intervals belong to several hops ({names}); a link is one hop",
            "write one file per hop",
        )
    rows_as_states = [_state(row) for row in rows]
    states: list[State] = []
    for state in _apply_outages(rows_as_states):
        if states and state.start_ns > states[-1].end_ns:
            end_ns = states[-1].end_ns
            number = 1 + sum(other.start_ns < state.start_ns for other in rows_as_states)
            raise ChannelError(
                f"{where}: interval {number} of {direction} begins at {state.start_ns} ns, the previous one ends at "
                f"{end_ns} ns: the link is undefined for {(state.start_ns - end_ns) / 1e9:g} s",
                "add a row for that time, or extend the previous row",
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


def _apply_outages(rows: Sequence[State]) -> Iterator[State]:
    """Split the states at the edges of outages. A value that an outage leaves open is that of the state below."""
    lasting = [row for row in rows if row.end_ns > row.start_ns]
    above, below = (_Cursor([row for row in lasting if row.outage is down]) for down in (True, False))
    edges = sorted({edge for row in lasting for edge in (row.start_ns, row.end_ns)})
    for start_ns, end_ns in pairwise(edges):
        held = [row for row in (above.at(start_ns), below.at(start_ns)) if row is not None]
        if held:
            yield _piece(start_ns, end_ns, held)


def _piece(start_ns: int, end_ns: int, held: Sequence[State]) -> State:
    if len(held) == 1 and (held[0].start_ns, held[0].end_ns) == (start_ns, end_ns):
        return held[0]

    def first_value(name: str, rows: Sequence[State] = held) -> Any:
        return next((value for row in rows if (value := getattr(row, name)) is not None), None)

    return State(
        start_ns,
        end_ns,
        rate_bps=first_value("rate_bps"),
        delay_ns=first_value("delay_ns"),
        per=first_value("per"),
        ber=first_value("ber"),
        outage=held[0].outage,
        # A handover happens at the start of its row only, not again after an outage.
        overlap_ns=first_value("overlap_ns", [row for row in held if row.start_ns == start_ns]),
    )


class _Cursor:
    """States in order of time, looked up by non-decreasing times."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states
        self._next = 0

    def at(self, t_ns: int) -> State | None:
        """Return the state at `t_ns`; None if there is none."""
        while self._next < len(self._states) and self._states[self._next].end_ns <= t_ns:
            self._next += 1
        held = self._states[self._next] if self._next < len(self._states) else None
        return held if held is not None and held.start_ns <= t_ns else None


def loss_config(states: Iterable[State], *, outages: bool) -> dict[str, Any]:
    """Return the losses of states as a loss process in the syntax of the kernels.

    With `outages`, packets sent in an outage are lost by the process; otherwise the link itself applies outages.
    """
    spans = list(loss_spans(states, outages=outages))
    return {"kind": "timeline", "spans": spans} if spans else {"kind": "none"}


def loss_spans(states: Iterable[State], *, outages: bool) -> Iterator[dict[str, Any]]:
    """Yield the spans of `loss_config`."""
    last: tuple[float | None, float | None] = (None, None)
    for state in states:
        per = 1.0 if outages and state.outage else state.per
        loss = (None, state.ber) if state.ber is not None and per != 1 else (per or None, None)
        if loss != last:
            yield {"start_ns": state.start_ns, "per": loss[0], "ber": loss[1]}
            last = loss
