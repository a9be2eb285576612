"""A scenario drafted from a captured flow and the channel extracted from it.

Depends on the flow's tables and the channel trace, not on a workspace or a capture file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hindflight.channels.intervals import Direction
from hindflight.channels.trace import Trace
from hindflight.replay.controllers.base import variant_names
from hindflight.replay.scenario.captured_application import (
    CapturedWrites,
    SentData,
    captured_writes,
    first_end_ns,
    first_recovery_flights,
    transfer_end_ns,
)
from hindflight.replay.scenario.draft import RELAY_SHARE, Draft, OtherFlow, SendBuffer, Stack, Value, draft_scenario
from hindflight.replay.scenario.link_schedule import LinkSchedule, link_schedule_of
from hindflight.replay.scenario.loss_trace import default_block_pkts, loss_trace
from hindflight.replay.scenario.model import check_variant
from hindflight.replay.scenario.presets import PRESETS
from hindflight.replay.scenario.proposals import AUTO, CHOICES, PathFacts, propose
from hindflight.replay.scenario.proxies import JOIN
from hindflight.replay.scenario.validation_errors import suggestion
from hindflight.toolkit.errors import HindflightError, ScenarioError
from hindflight.toolkit.units import counted

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class CapturedSender:
    """The captured flow that a draft replays: its row of `flows`, the direction of its data, its sender's parameters,
    what was sent, and where it is: flow `flow_id` of the workspace, `number` as the user gives it, `place` among the
    flows of its input. `variant` is its congestion control as its packets show it, "auto" where they do not, with the
    probability of each candidate. `proxy_signs` is the evidence of a proxy on the captured path, by its kind,
    `receiver_share` the share of the time in which the receiver's window limited the sender."""

    flow_id: int
    number: int
    place: int
    direction: str
    row: Mapping[str, Any]
    stack: Stack
    sent: SentData
    input_name: str
    input_sha256: str
    variant: str = "auto"
    probability: float | None = None
    candidates: Mapping[str, float] = field(default_factory=dict)
    proxy_signs: Mapping[str, str] = field(default_factory=dict)
    receiver_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person may choose of a drafted scenario; the rest comes from the capture, and with AUTO the proxies do."""

    variants: tuple[str, ...] = ("newreno", "cubic")
    proxies: tuple[str, ...] = (AUTO,)
    seeds: int = 40
    captured_variant: str = "auto"


def check_choice(choice: Choice) -> None:
    """Refuse an unknown variant or proxy on the command line, with the most similar name, and what a capture cannot
    have. ScenarioError."""

    known = variant_names()
    for name in choice.variants:
        check_variant("--variants", name, known)
    if choice.captured_variant != "auto":
        check_variant("--captured-variant", choice.captured_variant, known)
    for name in choice.proxies:
        if any(part in PRESETS and PRESETS[part].tunnels for part in name.split(JOIN)):
            raise ScenarioError(
                f"--proxy: {name!r} protects a link by its loss model, and a captured link replays its losses",
                "fit a model to them (hindflight channel fit) and write it into the scenario",
            )
        for part in name.split(JOIN):
            if part not in CHOICES:
                raise ScenarioError(f"--proxy: {part!r} is neither a proposal nor a preset{suggestion(part, CHOICES)}")


def draft_from_capture(
    flow: CapturedSender, trace: Trace, trace_file: str, choice: Choice, others: Sequence[CapturedSender] = ()
) -> str:
    """Return the text of a scenario drafted from the capture; the trace is in `trace_file` next to it.

    `others` are flows of the same capture that share the path, which are replayed too.
    """

    if choice.captured_variant != "auto":
        flow = replace(flow, variant=choice.captured_variant, probability=None, candidates={})
    span, end_ns = _span(flow), transfer_end_ns(flow.sent)
    base = _base_round_trip(flow, trace)
    # A run begins with the SYN; goodput counts from the first data packet, as in the capture.
    # Without the SYN a run begins a round trip before the first data packet, as the channel does.
    start_ns = _start_ns(flow, span) if flow.row["syn"] else span[0] - round(base.value)
    proxied = any(proxy != "none" for proxy in choice.proxies)
    path = _path(flow, trace, base, end_ns - start_ns, RELAY_SHARE if proxied else 1.0)
    writes = captured_writes(flow.sent)
    stopped_ns = end_ns if writes is not None else min(end_ns, first_end_ns(flow.sent))
    facts = _facts(flow, trace, path)
    return draft_scenario(
        Draft(
            name=f"{flow.input_name}, flow {flow.number}",
            duration_ns=end_ns - start_ns,
            transfer_ns=end_ns - span[0],
            application=writes,
            trace_file=trace_file,
            block_pkts=default_block_pkts(loss_trace(trace, trace_file)),
            rate=path.rate,
            round_trip=path.round_trip,
            queue=path.queue,
            stack=_within_queue(_with_send_buffer(flow), path.queue),
            input_name=flow.input_name,
            input_sha256=flow.input_sha256,
            flow_id=flow.place,
            variant=flow.variant,
            probability=flow.probability,
            candidates=flow.candidates,
            others=[found for other in others if (found := _other(other, (start_ns, end_ns), stopped_ns)) is not None],
            variants=choice.variants,
            proxies=_chosen_proxies(choice, facts),
            facts=facts,
            seeds=choice.seeds,
            changes=path.schedule.changes,
            unknowns=(
                *trace.unknowns,
                *_assumptions(writes, proxied=proxied),
                *_proxied_already(flow.proxy_signs, changed=path.schedule.states > 1),
                *path.schedule.unknowns,
            ),
        )
    )


@dataclass(frozen=True, slots=True)
class _Path:
    """The path as the draft has it: what held at first, and what changed later. `rate` and `queue` are None where the
    capture does not show them."""

    rate: Value | None
    round_trip: Value
    queue: Value | None
    schedule: LinkSchedule


def _base_round_trip(flow: CapturedSender, trace: Trace) -> Value:
    """Return the round trip of the path without a queue."""
    round_trip = known_value(trace, "base_rtt_ns") or known_value(trace, "min_rtt_ns")
    if round_trip is None:
        raise HindflightError(f"flow {flow.flow_id} has no round-trip time, so its path cannot be drafted")
    return round_trip


def _path(flow: CapturedSender, trace: Trace, round_trip: Value, duration_ns: int, share: float) -> _Path:
    """Return the path of a run of `duration_ns`, whose relay is at `share` of its delay."""
    rate = known_value(trace, "rate_bps")
    direction: Direction = "a2b" if flow.direction == "a2b" else "b2a"
    schedule = link_schedule_of(trace, direction, duration_ns, share)
    if schedule.states > 1:
        first = "what held at first; it changed later, see changes"
        round_trip = Value(schedule.round_trip_ns, None, None, first)
        rate = None if schedule.rate_bps is None else Value(schedule.rate_bps, None, None, first)
    return _Path(rate or rate_lower_bound(trace), round_trip, known_value(trace, "queue_limit_pkts"), schedule)


PROXY_MIDWAY = (
    "The capture does not show where on the path a proxy could stand. Assumed is that all losses and the queue are "
    "before a proxy midway and before one in the receiver's network, and behind one in the sender's network."
)
NOT_SPLIT = "QUIC, and TCP inside IPsec, cannot be split: a proxy gains nothing for such traffic."
PROXIED_ALREADY = (
    "The capture already went through a proxy: {evidence}. The path that is replayed ends at that proxy, and a proxy "
    "of the comparison comes in addition."
)
ALWAYS_DATA = "The captured sender practically always had data to send, and so has the replayed one."
WAITED = (
    "The captured sender waited for data in {share:.0f} % of the time. Its application is replayed as it wrote: what "
    "left in one go was written at once{steady}. Whether it would have written more over a faster path is not known."
)
AT_ITS_RATE = (
    "The captured application wrote at a constant rate. It is replayed as if it had kept that rate while the network "
    "limited the flow, so that it wrote {unsent} kB more than was sent. Whether it adapts to the path is not known."
)
SYN = 2
"""TCP flag."""


def _facts(flow: CapturedSender, trace: Trace, path: _Path) -> PathFacts:
    """Return what decides where a proxy may help: the maximum of what held over time, and what limited the flow."""
    rates = [change.rate_bps for change in path.schedule.changes if change.rate_bps is not None]
    trips = [change.round_trip_ns for change in path.schedule.changes if change.round_trip_ns is not None]
    losses = known_value(trace, "channel_loss_share")
    return PathFacts(
        rate_bps=None if path.rate is None else max([path.rate.value, *rates]),
        round_trip_ns=max([path.round_trip.value, *trips]),
        packet_bytes=flow.stack.mss_bytes + flow.stack.header_bytes,
        loss_share=0.0 if losses is None else losses.value,
        receiver_share=flow.receiver_share,
        window_bytes=flow.stack.receive_buffer_bytes,
    )


def _chosen_proxies(choice: Choice, facts: PathFacts) -> tuple[str, ...]:
    """Return the chains of the choice, with the proposals in place of AUTO."""
    chains = [(propose(facts) if name == AUTO else (name,)) for name in choice.proxies]
    return tuple(dict.fromkeys(chain for part in chains for chain in part))


def _span(flow: CapturedSender) -> tuple[int, int]:
    """Return the times of the first and of the last new data segment."""
    t_ns = flow.sent.t_ns
    if not len(t_ns):
        raise HindflightError(f"flow {flow.flow_id} carries no data, so there is nothing to replay")
    return int(t_ns.min()), int(t_ns.max())


def _start_ns(flow: CapturedSender, span: tuple[int, int]) -> int:
    """Return when a flow starts: at its SYN, or with its first data packet where the capture lacks it."""
    return int(flow.row["start_ns"]) if flow.row["syn"] else span[0]


LATE_END_NS = 2_000_000_000
"""Time before the first end of the flow under test within which another flow counts as lasting as long: no flight shows
what is not sent yet."""


def _other(flow: CapturedSender, run_ns: tuple[int, int], stopped_ns: int) -> OtherFlow | None:
    """Describe a flow that shares the path of a run, given its begin and end, whose flow under test had data until
    `stopped_ns` at least. One that began before starts then; one that may have lasted as long has no other end. None if
    it sends nothing before the end of the run."""
    span, sent = _span(flow), flow.sent
    start_ns, (origin_ns, end_ns) = _start_ns(flow, span), run_ns
    if max(start_ns, span[0]) >= end_ns:
        return None
    writes, first_write_ns = captured_writes(sent), span[0] - start_ns
    if writes is not None:
        writes = writes.before(end_ns - max(origin_ns, start_ns) - first_write_ns)
    return OtherFlow(
        name=f"flow-{flow.number}",
        variant=next(iter(flow.candidates), "cubic") if flow.variant == "auto" else flow.variant,
        start_ns=max(0, start_ns - origin_ns),
        stack=_with_send_buffer(flow),
        application=writes,
        first_write_ns=first_write_ns,
        size_bytes=None if span[1] >= stopped_ns - LATE_END_NS else int(sent.seq_end[-1] - sent.seq[0]),
    )


SEND_BUFFER = SendBuffer(first_bytes=46_080, max_bytes=4_194_304)
"""The send buffer of Linux: the memory of two initial windows of Ethernet frames (`tcp_sndbuf_expand`), and the third
number of its `tcp_wmem`."""

PIECE_BYTES = 832
"""Memory that Linux accounts for a segment in addition to its octets: see the engine (`app/send_buffer.rs`)."""

AUTOTUNED_WINDOWS = {"bbr": 3, "bbr3": 3}
AUTOTUNED_WINDOWS_OF_OTHERS = 2
"""Windows that the buffer of Linux grows to (`tcp_sndbuf_expand`, `bbr_sndbuf_expand`)."""


def _with_send_buffer(flow: CapturedSender) -> Stack:
    """Return the stack of a sender with its send buffer, if it agreed on no SACK.

    It decides how long a recovery goes on: RFC 6582 repairs one hole in each round trip, and every duplicate ACK lets a
    new segment leave while the application can write. With SACK a recovery is over before the buffer is full. The
    buffer grows with cwnd, so that what was in flight does not show what another variant would have had; that is
    only its lower bound. In the first recovery cwnd grows no more: a flight beyond what the window before it explains
    shows a buffer that was larger from the start.
    """
    if flow.stack.sack is not False:
        return flow.stack
    per_octet = (flow.stack.mss_bytes + PIECE_BYTES) / flow.stack.mss_bytes
    most = round(per_octet * (flow.row[f"{flow.direction}_flight_max_bytes"] or 0))
    first, flights = SEND_BUFFER.first_bytes, first_recovery_flights(flow.sent)
    windows = AUTOTUNED_WINDOWS.get(flow.variant, AUTOTUNED_WINDOWS_OF_OTHERS)
    if flights is not None and flights[1] > windows * flights[0]:
        first = max(first, round(per_octet * flights[1]))
    return replace(flow.stack, send_buffer=SendBuffer(first, max(SEND_BUFFER.max_bytes, first, most)))


def _within_queue(stack: Stack, queue: Value | None) -> Stack:
    """Return the stack with a first flight that the queue holds: it leaves at once; the captured one was spread."""
    if stack.flight_pkts is None or queue is None:
        return stack
    return replace(stack, flight_pkts=min(stack.flight_pkts, max(1, round(queue.value))))


def _assumptions(writes: CapturedWrites | None, *, proxied: bool) -> tuple[str, ...]:
    """Say what the draft assumes beyond what the extraction says it does not know."""
    return (*((PROXY_MIDWAY, NOT_SPLIT) if proxied else ()), _application_assumption(writes))


def _application_assumption(writes: CapturedWrites | None) -> str:
    if writes is None:
        return ALWAYS_DATA
    if writes.unsent_bytes:
        return AT_ITS_RATE.format(unsent=f"{writes.unsent_bytes / 1000:.0f}")
    steady = ", and at a constant rate while the network limited the flow" if writes.steady else ""
    return WAITED.format(share=100 * writes.wait_share, steady=steady)


def _proxied_already(signs: Mapping[str, str], *, changed: bool) -> Iterator[str]:
    """Say that the capture shows a proxy. A path that changed has such signs without one."""
    evidence = next(iter(signs.values()), None)
    if evidence is not None and not changed:
        yield PROXIED_ALREADY.format(evidence=evidence)


def about_proxies(sentences: Iterable[str]) -> list[str]:
    """Return what a reader of the comparison has to know of proxies: that the path has one, and what none can split."""
    beginning = PROXIED_ALREADY.partition("{")[0]
    return [sentence for sentence in sentences if sentence == NOT_SPLIT or sentence.startswith(beginning)]


def known_value(trace: Trace, name: str) -> Value | None:
    """Return an estimate as the draft wants it; None where the capture gives no value."""

    estimate = trace.estimate(name)
    if estimate is None or estimate.value is None:
        return None
    return Value(estimate.value, estimate.low, estimate.high, estimate.how)


def rate_lower_bound(trace: Trace) -> Value | None:
    """Return the lower bound of a rate that is not known, where the queue dropped packets: a link without a rate would
    drop none. None where it dropped none, or where the rate has no bound."""
    estimate, dropped = trace.estimate("rate_bps"), trace.counts.get("queue", 0)
    if estimate is None or estimate.value is not None or not estimate.low or not dropped:
        return None
    how = f"a lower bound, as the rate is not known, but the queue dropped {counted(dropped, 'packet')}; {estimate.how}"
    return Value(estimate.low, None, None, how)


def stack_of(segments: pa.Table, direction: str, row: Mapping[str, Any]) -> Stack:
    """Read a sender's parameters off its captured segments and its row of `flows`: sizes, initial window, the
    receiver's buffer."""
    import pyarrow.compute as pc

    ours = pc.equal(segments["direction"].cast("string"), direction)
    data = segments.filter(pc.and_(ours, pc.greater(segments["payload_bytes"], 0)))
    acks = segments.filter(pc.invert(ours))
    headers = pc.mode(pc.subtract(data["ip_bytes"], data["payload_bytes"]), 1)[0]["mode"].as_py()
    from_the_start = row["syn"] or row["syn_ack"]
    # A request acknowledges what came before, as do the first ACKs in mid-flow: it answers the data if it advances.
    advances = pc.greater(acks["ack"], pc.min(data["seq"]))
    pure = pc.and_(pc.is_valid(acks["ack"]), pc.equal(acks["payload_bytes"], 0))
    answers = pc.or_(pure, advances) if from_the_start else advances
    first_flight = _first_flight_pkts(segments.filter(ours), data["t_ns"], acks.filter(answers)["t_ns"])
    window = pc.max(acks["wnd_bytes"]).as_py()
    options = _handshake_options(segments)
    longest_bytes = int(row[f"{direction}_max_segment_bytes"])
    mss_bytes = longest_bytes if options is None else options.mss_bytes
    shown = from_the_start and _window_shown(data, first_flight, min(mss_bytes, longest_bytes))
    return Stack(
        mss_bytes=mss_bytes,
        header_bytes=int(headers),
        initial_window_pkts=first_flight if shown else None,
        flight_pkts=None if from_the_start else first_flight,
        receive_buffer_bytes=None if window is None else int(window),
        sack=None if options is None else options.sack,
        timestamps=None if options is None else options.timestamps,
    )


DEFAULT_WINDOW_PKTS = 10
"""Initial window of a scenario that gives none, as that of Linux (TCP_INIT_CWND); RFC 6928 §2 allows no larger one."""

PROBE_TRIPS = 2
"""Round trips without an ACK after which Linux sends a tail loss probe (RFC 8985 §7.2), new data if it has some: the
initial window does not allow it."""


def _first_flight_pkts(sent: pa.Table, data_ns: pa.ChunkedArray, acks_ns: pa.ChunkedArray) -> int:
    """Return how many data segments left before the receiver answered the first one, with or without an advance of its
    cumulative ACK, and before a probe. `sent` are all segments of the sender, `data_ns` when it sent data."""
    import numpy as np

    data, acks = np.sort(data_ns.to_numpy()), np.sort(acks_ns.to_numpy())
    after = acks[acks > data[0]]
    flight = data[data < after[0]] if len(after) else data
    syns = np.sort(sent.filter(_has_syn(sent))["t_ns"].to_numpy())
    answers = acks[acks > syns[0]] if len(syns) else acks[:0]
    if not len(answers):
        return len(flight)
    trip_ns = answers[0] - syns[syns < answers[0]][-1]
    pauses = np.flatnonzero(np.diff(flight) >= PROBE_TRIPS * trip_ns)
    return int(pauses[0]) + 1 if len(pauses) else len(flight)


def _window_shown(data: pa.Table, first_flight_pkts: int, full_bytes: int) -> bool:
    """Return whether the first flight shows the initial window: that ended it, or the default is too small.

    A sender with more data sends segments of `full_bytes` (RFC 9293 §3.8.6.2.1), so a shorter one ends what the
    application wrote, and the window may be larger than the flight. A flight above the default nevertheless shows that
    the default is too small, and is the better lower bound of the two.
    """
    import pyarrow.compute as pc

    if first_flight_pkts > DEFAULT_WINDOW_PKTS:
        return True
    flight = data.sort_by("t_ns").slice(0, first_flight_pkts)
    return bool(pc.min(flight["payload_bytes"]).as_py() >= full_bytes)


def _has_syn(segments: pa.Table) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.not_equal(pc.bit_wise_and(segments["flags"].cast("int32"), SYN), 0)


@dataclass(frozen=True, slots=True)
class _Options:
    """What both ends agreed on: each option counts if SYN and SYN/ACK carry it."""

    mss_bytes: int
    sack: bool
    timestamps: bool


TIMESTAMP_BYTES = 12
"""Octets that the timestamp option takes from each segment, with its padding (RFC 7323 appendix A)."""


def _handshake_options(segments: pa.Table) -> _Options | None:
    """Read the options off the two segments with SYN; None if the capture lacks one of them, or its MSS."""
    syns = segments.filter(_has_syn(segments)).to_pylist()
    ends = {row["direction"]: row for row in syns}
    if len(ends) < 2 or any(row["mss"] is None for row in ends.values()):
        return None
    timestamps = all(row["ts_val"] is not None for row in ends.values())
    return _Options(
        mss_bytes=min(row["mss"] for row in ends.values()) - TIMESTAMP_BYTES * timestamps,
        sack=all(row["sack_permitted"] for row in ends.values()),
        timestamps=timestamps,
    )
