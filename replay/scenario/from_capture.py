"""A scenario drafted from a captured flow and the channel extracted from it.

Depends on the flow's tables and the channel trace, not on a workspace or a capture file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindflight.channels.trace import Trace
from hindflight.replay.controllers.base import variant_names
from hindflight.replay.outcome import transfer_span
from hindflight.replay.scenario.draft import Draft, Stack, Value, draft_scenario
from hindflight.replay.scenario.link_schedule import link_schedule_of
from hindflight.replay.scenario.loss_trace import default_block_pkts, loss_trace
from hindflight.replay.scenario.model import check_variant
from hindflight.toolkit.errors import HindflightError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class CapturedSender:
    """The captured flow that a draft replays: its row of `flows`, its segments, the direction of its data, and where it
    is: flow `flow_id` of the workspace, `number` as the user gives it, `place` among the flows of its input."""

    flow_id: int
    number: int
    place: int
    direction: str
    row: Mapping[str, Any]
    segments: pa.Table
    input_name: str
    input_sha256: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person may choose of a drafted scenario; the rest comes from the capture."""

    variants: tuple[str, ...] = ("newreno", "cubic")
    proxies: tuple[str, ...] = ("none", "relay")
    seeds: int = 20
    captured_variant: str = "auto"


def check_choice(choice: Choice) -> None:
    """Refuse an unknown variant on the command line, with the most similar name. ScenarioError."""

    known = variant_names()
    for name in choice.variants:
        check_variant("--variants", name, known)
    if choice.captured_variant != "auto":
        check_variant("--captured-variant", choice.captured_variant, known)


def draft_from_capture(flow: CapturedSender, trace: Trace, trace_file: str, choice: Choice) -> str:
    """Return the text of a scenario drafted from the capture; the trace is in `trace_file` next to it."""

    span = transfer_span(flow.segments, flow.direction)
    if span is None:
        raise HindflightError(f"flow {flow.flow_id} carries no data, so there is nothing to replay")
    stack = sender_of(flow)
    round_trip = known_value(trace, "base_rtt_ns") or known_value(trace, "min_rtt_ns")
    if round_trip is None:
        raise HindflightError(f"flow {flow.flow_id} has no round-trip time, so its path cannot be drafted")
    rate = known_value(trace, "rate_bps")
    schedule = link_schedule_of(trace, "a2b" if flow.direction == "a2b" else "b2a")
    if schedule.states > 1:
        first = "what held at first; it changed later, see changes"
        round_trip = Value(schedule.round_trip_ns, None, None, first)
        rate = None if schedule.rate_bps is None else Value(schedule.rate_bps, None, None, first)
    return draft_scenario(
        Draft(
            name=f"{flow.input_name}, flow {flow.number}",
            duration_ns=span[1] - span[0],
            trace_file=trace_file,
            block_pkts=default_block_pkts(loss_trace(trace, trace_file)),
            rate=rate,
            round_trip=round_trip,
            queue=known_value(trace, "queue_limit_pkts"),
            stack=stack,
            input_name=flow.input_name,
            input_sha256=flow.input_sha256,
            flow_id=flow.place,
            variant=choice.captured_variant,
            variants=choice.variants,
            proxies=choice.proxies,
            seeds=choice.seeds,
            changes=schedule.changes,
            unknowns=(*trace.unknowns, *ASSUMED, *schedule.unknowns),
        )
    )


ASSUMED = (
    "Where a proxy could stand is not in the capture: it is put midway, and all losses and the queue before it.",
    "The replayed sender always has data to send; pauses of the captured application are not replayed.",
)
"""What a drafted scenario assumes beyond what the extraction says it does not know."""


def known_value(trace: Trace, name: str) -> Value | None:
    """Return an estimate as the draft wants it; None where the capture gives no value."""

    estimate = trace.estimate(name)
    if estimate is None or estimate.value is None:
        return None
    return Value(estimate.value, estimate.low, estimate.high, estimate.how)


def sender_of(flow: CapturedSender) -> Stack:
    """Read the sender's parameters off the captured segments: sizes, initial window, the receiver's buffer."""
    import pyarrow.compute as pc

    segments = flow.segments
    ours = pc.equal(segments["direction"].cast("string"), flow.direction)
    data = segments.filter(pc.and_(ours, pc.greater(segments["payload_bytes"], 0)))
    acks = segments.filter(pc.invert(ours))
    headers = pc.mode(pc.subtract(data["ip_bytes"], data["payload_bytes"]), 1)[0]["mode"].as_py()
    first_octet = pc.min(data["seq"]).as_py()
    answers = acks.filter(pc.greater(acks["ack"], first_octet))["t_ns"]
    answered_ns = pc.min(answers).as_py() if len(answers) else None
    before = data if answered_ns is None else data.filter(pc.less(data["t_ns"], answered_ns))
    from_the_start = flow.row["syn"] or flow.row["syn_ack"]
    window = pc.max(acks["wnd_bytes"]).as_py()
    return Stack(
        mss_bytes=int(flow.row[f"{flow.direction}_max_segment_bytes"]),
        header_bytes=int(headers),
        initial_window_pkts=max(1, before.num_rows) if from_the_start else None,
        receive_buffer_bytes=None if window is None else int(window),
    )
