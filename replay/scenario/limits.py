"""What limited a captured sender over time: the network, the receiver, its application or its own pacing.

Depends on arrays of what was sent and acknowledged (`captured_application.SentData`) and on the windows that the
receiver advertised, not on captures or the engine. Each gap between two new segments has one limit, or two where the
sender ran out of data within it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hindflight.replay.scenario.captured_application import SentData, captured_writes, response_ns, waits_of

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]

LIMITS = ("network", "receiver", "application", "pacing")
"""What may limit a sender: cwnd, the receiver's window, data that was not written yet, its own timer."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A time in which one thing limited the sender, in ns as in the capture, and the record of the segment that ended
    it, as in the capture file from 1."""

    limit: str
    start_ns: int
    end_ns: int
    record: int


@dataclass(frozen=True, slots=True)
class Limits:
    """The times between the first and the last new segment, in order, neighbours with the same limit joined."""

    spans: tuple[Limit, ...]

    def shares(self) -> dict[str, float]:
        """Return the share of the time by limit; all zero without a time."""
        total = sum(span.end_ns - span.start_ns for span in self.spans)
        return {
            name: sum(span.end_ns - span.start_ns for span in self.spans if span.limit == name) / max(total, 1)
            for name in LIMITS
        }


def limits_of(sent: SentData, records: Ints, edges: Ints, rtt_ns: float) -> Limits:
    """Return what limited the sender between its new segments.

    `records` are the packet numbers of the segments; `edges` is the right edge of the receiver's window at each ACK,
    the highest so far. In order: it waits for data (see `captured_writes`); the next segment does not fit into the
    window; no ACK released the next segment, which left within `rtt_ns`: a timer of the sender did, or the application
    where it writes at a constant rate (Nagle keeps the end of a write back, so that the sender does not seem to wait);
    else the network, by the ACKs that cwnd waits for or the timeout that no ACK stopped. Where `response_ns` cannot
    decide whether an ACK released a segment that followed one within a millisecond, it did.
    """
    writes = captured_writes(sent)
    clock = "application" if writes is not None and writes.times_departures else "pacing"
    waits = {end: begin for begin, end, _ in waits_of(sent, held=True)}
    t, following = sent.t_ns[:-1], sent.t_ns[1:]
    known = np.searchsorted(sent.ack_t_ns, t, side="right") - 1
    edge = np.where(known >= 0, edges[np.maximum(known, 0)], np.iinfo(np.int64).max)
    closed = sent.seq_end[1:] > edge
    before = np.searchsorted(sent.ack_t_ns, following, side="right") - 1
    within_ns = response_ns(sent.ack_t_ns, sent.t_ns)[0][np.maximum(before, 0)]
    released = (before >= 0) & (following - sent.ack_t_ns[np.maximum(before, 0)] <= within_ns)
    paced = ~released & (following - t <= rtt_ns) & (following - t > within_ns)
    spans: list[Limit] = []
    for begin, end, full, timed, record in zip(
        t.tolist(), following.tolist(), closed.tolist(), paced.tolist(), records[1:].tolist(), strict=True
    ):
        ran_out = waits.get(end, end)
        if ran_out < end:
            _add(spans, "receiver" if full else "network", begin, ran_out, record)
            _add(spans, "application", max(begin, ran_out), end, record)
        else:
            _add(spans, "receiver" if full else clock if timed else "network", begin, end, record)
    return Limits(tuple(spans))


def _add(spans: list[Limit], limit: str, start_ns: int, end_ns: int, record: int) -> None:
    if end_ns <= start_ns:
        return
    if spans and spans[-1].limit == limit:
        start_ns = spans.pop().start_ns
    spans.append(Limit(limit, start_ns, end_ns, record))


def window_edges(segments: pa.Table, direction: str) -> Ints:
    """Return the right edge of the receiver's window at each ACK of the rows of one flow, the highest so far; an ACK
    whose window is not known has none (the largest integer)."""
    import pyarrow.compute as pc

    acks = segments.filter(pc.not_equal(segments["direction"].cast("string"), direction))
    acks = acks.filter(acks["ack"].is_valid())
    window = np.asarray(acks["wnd_bytes"].cast("int64").fill_null(-1).to_numpy(), dtype=np.int64)
    edge = np.asarray(acks["ack"].to_numpy(), dtype=np.int64) + window
    return np.maximum.accumulate(np.where(window < 0, np.iinfo(np.int64).max, edge))


def new_records(segments: pa.Table, direction: str) -> Ints:
    """Return the packet numbers of the new data segments of one flow, in the order sent."""
    import pyarrow.compute as pc

    ours = pc.equal(segments["direction"].cast("string"), direction)
    data = segments.filter(pc.and_(ours, pc.greater(segments["payload_bytes"], 0)))
    return np.asarray(data.filter(pc.invert(data["retransmission"]))["record"].to_numpy(), dtype=np.int64)
