"""Data packets of one flow in the order sent, and when the sender learnt of each arrival.

Reads `segments` and `events`. Does not depend on rates, queues or causes of losses. See docs/channels/extract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.channels.extraction.arrivals import Arrivals
from hindflight.channels.extraction.cross_traffic import CrossTraffic
from hindflight.toolkit.errors import ChannelError

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BEFORE_NS = 5_000_000_000
"""How long before a flow cross traffic is included: longer than any queue."""

NEVER = np.iinfo(np.int64).max
SYN = 2

PER_PACKET = (
    "record", "t_ns", "size_bytes", "seq", "seq_end", "lost", "acked_ns", "prompt", "undecided", "covered_ns",
    "observed",
)  # fmt: skip
"""Arrays of Delivery with one element per transmission, but for `from_flow`."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """The first round trip, from SYN to SYN/ACK, and the IP lengths of both."""

    rtt_ns: int
    syn_bytes: int
    syn_ack_bytes: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """Data packets (payload > 0) in the order sent; every array has one element per transmission.

    `acked_ns` is when an ACK or SACK block first covered the transmission; -1 if it was lost, never acknowledged, or
    ambiguous among several copies. `prompt` marks transmissions whose arrival triggered that ACK, so that acked_ns -
    t_ns is a round trip without the delay of a delayed ACK. `covered_ns` is when octets of the transmission were first
    acknowledged, whichever copy of them; -1 if never. `undecided` marks packets of which the capture does not show
    whether they arrived: it ended before, or without SACK any of several copies may have caused an ACK.

    Other traffic is interleaved in the order sent, with `from_flow` false. `observed` marks packets of the flow and of
    its parallel flows: ACKs show their arrival. Other cross traffic occupies the link, and its arrival is not known.
    """

    direction: str
    record: Ints
    t_ns: Ints
    size_bytes: Ints
    seq: Ints
    seq_end: Ints
    lost: Bools
    acked_ns: Ints
    prompt: Bools
    undecided: Bools
    covered_ns: Ints
    from_flow: Bools
    observed: Bools
    ack_t_ns: Ints
    ack_bytes: int
    handshake: Handshake | None

    def __len__(self) -> int:
        return len(self.t_ns)


def _column(table: pa.Table, name: str) -> Ints:
    return np.asarray(table[name].to_numpy(), dtype=np.int64)


def _text_equals(table: pa.Table, name: str, value: str) -> Bools:
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = pc.equal(table[name].cast(pa.string()), value)
    return np.asarray(pc.fill_null(mask, False).to_numpy(), dtype=np.bool_)


def of_flow(segments: pa.Table, events: pa.Table, flow_id: int, direction: str) -> Delivery:
    """Pair each data packet of `direction` with the ACK that reported it. Raises ChannelError if there is no data."""
    rows = segments.filter((_column(segments, "flow_id") == flow_id) & (_column(segments, "run_id") == 0))
    forward = _text_equals(rows, "direction", direction)
    data = rows.filter(forward & (_column(rows, "payload_bytes") > 0))
    if not len(data):
        raise ChannelError(
            f"flow {flow_id} carries no data {direction}",
            "`hindflight flows` lists the flows and their directions",
        )
    acks = rows.filter(~forward).filter(rows.filter(~forward)["ack"].is_valid())
    seq, seq_end = _column(data, "seq"), _column(data, "seq") + _column(data, "payload_bytes")
    record, t_ns = _column(data, "record"), _column(data, "t_ns")
    lost = np.isin(record, _records_of("loss", events, flow_id, direction))
    unclear = np.isin(record, _records_of("undecided", events, flow_id, direction))
    covered = _first_cover(seq, seq_end, acks)
    answered = _answered(t_ns, lost, covered)
    acked = _assign_copies(seq_end, answered)
    prompt = _prompt(acked, answered)
    if not _has_sack(acks):
        # Without SACK a loss is inferred from the retransmission, so it cannot show which copy an ACK answers.
        prompt &= ~_sent_again(seq_end) | _echoed(data, acks)
    ack_sizes = _column(acks, "ip_bytes")[_column(acks, "payload_bytes") == 0]
    return Delivery(
        direction=direction,
        record=record,
        t_ns=t_ns,
        size_bytes=_column(data, "ip_bytes"),
        seq=seq,
        seq_end=seq_end,
        lost=lost,
        acked_ns=acked,
        prompt=prompt,
        undecided=~lost & (unclear | (covered == NEVER)),
        covered_ns=np.where(covered == NEVER, -1, covered),
        from_flow=np.ones(len(seq), dtype=np.bool_),
        observed=np.ones(len(seq), dtype=np.bool_),
        ack_t_ns=_column(acks, "t_ns"),
        ack_bytes=int(np.median(ack_sizes)) if len(ack_sizes) else 40,
        handshake=_handshake(rows, forward),
    )


def runs_of(marks: Bools) -> tuple[Ints, Ints]:
    """Return the first index of each run of marks, and one past the last."""
    edges = np.diff(np.concatenate(([0], marks.astype(np.int8), [0])))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def with_arrivals(delivery: Delivery, arrivals: Arrivals) -> Delivery:
    """Mark as lost the packets that the receiver's capture lacks, up to the last packet that it contains."""
    lost = ~np.isin(delivery.record, arrivals.arrived) & (delivery.record <= arrivals.last_sent)
    covered = np.where(delivery.covered_ns < 0, NEVER, delivery.covered_ns)
    answered = _answered(delivery.t_ns, lost, covered)
    acked = _assign_copies(delivery.seq_end, answered)
    undecided = ~lost & (covered == NEVER) & (delivery.record > arrivals.last_sent)
    return replace(delivery, lost=lost, acked_ns=acked, prompt=_prompt(acked, answered), undecided=undecided)


def with_parallel_flows(delivery: Delivery, parallel: Sequence[Delivery]) -> Delivery:
    """Interleave the packets of parallel flows up to the last packet.

    Those long before the flow count, too: from when on the queue was never empty, and how full it was at the first
    packet of the flow, shows only since it was empty for all.
    """
    everyone = (delivery, *parallel)
    within = [one.t_ns <= delivery.t_ns[-1] for one in everyone]
    order = np.argsort(
        np.concatenate([one.t_ns[inside] for one, inside in zip(everyone, within, strict=True)]), kind="stable"
    )
    own = np.concatenate(
        [np.full(int(inside.sum()), one is delivery) for one, inside in zip(everyone, within, strict=True)]
    )
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(one, name)[inside] for one, inside in zip(everyone, within, strict=True)])[order]
        for name in PER_PACKET
    }
    ack_t_ns = np.sort(np.concatenate([one.ack_t_ns for one in everyone]), kind="stable")
    return replace(delivery, **arrays, from_flow=own[order], ack_t_ns=ack_t_ns)


def with_cross_traffic(delivery: Delivery, cross_traffic: CrossTraffic) -> Delivery:
    """Interleave cross traffic that was sent up to the last packet, or that may still queue at the first."""
    within = (cross_traffic.t_ns >= delivery.t_ns[0] - BEFORE_NS) & (cross_traffic.t_ns <= delivery.t_ns[-1])
    if not within.any():
        return delivery
    t_ns, size_bytes = cross_traffic.t_ns[within], cross_traffic.size_bytes[within]
    n = len(t_ns)
    order = np.argsort(np.concatenate((delivery.t_ns, t_ns)), kind="stable")

    def insert(values: Any, filler: Any) -> Any:
        return np.concatenate((values, np.full(n, filler, dtype=values.dtype)))[order]

    return replace(
        delivery,
        record=insert(delivery.record, 0),
        t_ns=np.concatenate((delivery.t_ns, t_ns))[order],
        size_bytes=np.concatenate((delivery.size_bytes, size_bytes))[order],
        seq=insert(delivery.seq, -1),
        seq_end=insert(delivery.seq_end, -1),
        lost=insert(delivery.lost, False),
        acked_ns=insert(delivery.acked_ns, -1),
        prompt=insert(delivery.prompt, False),
        undecided=insert(delivery.undecided, False),
        covered_ns=insert(delivery.covered_ns, -1),
        from_flow=insert(delivery.from_flow, False),
        observed=insert(delivery.observed, False),
    )


def _records_of(kind: str, events: pa.Table, flow_id: int, direction: str) -> Ints:
    """Return the records of the transmissions that events of one kind name."""
    mask = (_column(events, "flow_id") == flow_id) & (_column(events, "run_id") == 0)
    mask &= _text_equals(events, "kind", kind) & _text_equals(events, "direction", direction)
    return _column(events.filter(mask).filter(events.filter(mask)["record"].is_valid()), "record")


def _first_cover(seq: Ints, seq_end: Ints, acks: pa.Table) -> Ints:
    """When each [seq, seq_end) was first acknowledged, cumulatively or by SACK; NEVER if it was not."""
    if not len(acks):
        return np.full(len(seq), NEVER)
    t_ack = _column(acks, "t_ns")
    una = np.maximum.accumulate(_column(acks, "ack"))
    at = np.searchsorted(una, seq_end, side="left")
    covered = np.where(at < len(una), t_ack[np.minimum(at, len(una) - 1)], NEVER)
    left, right, t_block = _new_blocks(acks, t_ack, una)
    order = np.argsort(seq, kind="stable")
    starts, ends, first = seq[order], seq_end[order].tolist(), covered[order].tolist()
    lo, hi = (
        np.searchsorted(starts, left, side="left").tolist(),
        np.searchsorted(starts, right, side="left").tolist(),
    )
    # `skip` jumps over packets that an earlier block has covered, so that each packet is visited once.
    skip = list(range(len(seq) + 1))
    for i, stop, edge, t in zip(lo, hi, right.tolist(), t_block.tolist(), strict=True):
        while True:
            while skip[i] != i:
                skip[i] = skip[skip[i]]
                i = skip[i]  # noqa: PLW2901
            if i >= stop:
                break
            if ends[i] <= edge and t < first[i]:
                first[i] = t
            skip[i] = i + 1
    covered[order] = first
    return covered


def _new_blocks(acks: pa.Table, t_ack: Ints, una: Ints) -> tuple[Ints, Ints, Ints]:
    """Return SACK blocks above the cumulative ACK, each distinct block once, in order of appearance."""
    sack = acks["sack"].combine_chunks()
    offsets: Ints = np.asarray(sack.offsets.to_numpy(), dtype=np.int64)
    lengths = (offsets[1:] - offsets[:-1]) // 2
    edges = np.asarray(sack.flatten().to_numpy(zero_copy_only=False), dtype=np.int64)
    left, right = edges[0::2], edges[1::2]
    row = np.repeat(np.arange(len(acks)), lengths)
    above = right > una[row]
    left, right, row = left[above], right[above], row[above]
    order = np.lexsort((row, right, left))
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (np.diff(left[order]) != 0) | (np.diff(right[order]) != 0)
    keep = np.sort(order[fresh])
    return left[keep], right[keep], t_ack[row[keep]]


def _answered(t_ns: Ints, lost: Bools, covered: Ints) -> Ints:
    """Return when each transmission that was not lost was first acknowledged after it was sent; -1 if never."""
    return np.where(lost | (covered == NEVER) | (covered <= t_ns), -1, covered)


def _assign_copies(seq_end: Ints, answered: Ints) -> Ints:
    """Give each ACK to the one copy that was not lost; if several were sent before it, to none.

    RFC 6298 §3 (Karn): the copy that an ACK answers is ambiguous.
    """
    acked = answered.copy()
    candidates = np.flatnonzero(acked >= 0)
    order = candidates[np.argsort(seq_end[candidates], kind="stable")]
    same = np.diff(seq_end[order]) == 0
    several = np.zeros(len(order), dtype=np.bool_)
    several[1:] |= same
    several[:-1] |= same
    acked[order[several]] = -1
    return acked


def _has_sack(acks: pa.Table) -> bool:
    """Return whether any ACK has SACK blocks."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.greater(pc.list_value_length(acks["sack"]), 0)).as_py())


def _echoed(data: pa.Table, acks: pa.Table) -> Bools:
    """Mark the transmissions that advanced the cumulative ACK, by the timestamp that the ACK echoes.

    RFC 7323 §4.3: a receiver echoes the timestamp of the segment that covers the last octet that it acknowledged
    before, so that of the copy that arrived. It echoes no other copy of the same data, unless both left within one
    tick.
    """
    seq, seq_end = _column(data, "seq"), _column(data, "seq") + _column(data, "payload_bytes")
    sent = np.asarray(data["ts_val"].cast("int64").fill_null(-1).to_numpy(), dtype=np.int64)
    echo = np.asarray(acks["ts_ecr"].cast("int64").fill_null(-2).to_numpy(), dtype=np.int64)
    una = np.maximum.accumulate(_column(acks, "ack"))
    at = np.searchsorted(una, seq_end, side="left")
    before = np.concatenate(([seq[0]], una))[at]
    echo = np.append(echo, -2)[at]
    return np.asarray((sent == echo) & (seq <= before) & (before < seq_end))


def _sent_again(seq_end: Ints) -> Bools:
    """Mark the transmissions of data that was sent more than once."""
    _, number, counts = np.unique(seq_end, return_inverse=True, return_counts=True)
    return np.asarray(counts[number] > 1)


def _prompt(acked: Ints, answered: Ints) -> Bools:
    """Mark the last packet sent of all that one ACK reported: its arrival triggered the ACK.

    `answered` is when each transmission was first acknowledged, also where another copy may have been the one that
    arrived: if such a one was the last, it is not known which arrival triggered the ACK.
    """
    prompt = np.zeros(len(acked), dtype=np.bool_)
    index = np.flatnonzero(answered >= 0)
    order = index[np.lexsort((index, answered[index]))]
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = np.diff(answered[order]) != 0
    prompt[order[last]] = True
    return prompt & (acked >= 0)


def _handshake(rows: pa.Table, forward: Bools) -> Handshake | None:
    """Return the data sender's SYN (or SYN/ACK) and the first segment that acknowledges it; None unless sent once."""
    t_ns, size = _column(rows, "t_ns"), _column(rows, "ip_bytes")
    syn = np.flatnonzero(((_column(rows, "flags") & SYN) != 0) & forward)
    ack = np.asarray(rows["ack"].fill_null(0).to_numpy(), dtype=np.int64)
    if len(syn) != 1:
        return None
    answer = np.flatnonzero(~forward & (ack >= 1) & (t_ns > t_ns[syn[0]]))
    if not len(answer):
        return None
    return Handshake(int(t_ns[answer[0]] - t_ns[syn[0]]), int(size[syn[0]]), int(size[answer[0]]))
