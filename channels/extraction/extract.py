"""Extracts a channel from the tables of a capture: a `channel` table, estimates, and sentences about what is unknown.

Depends on the table schema only, not on captures or the engine. docs/channels/extract.md describes the method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hindflight.channels.estimate import Estimate, LinkStretch, named
from hindflight.channels.extraction import attribution as _attribution
from hindflight.channels.extraction import bottleneck as _bottleneck
from hindflight.channels.extraction import delivery as _delivery
from hindflight.channels.extraction import estimates as _estimates
from hindflight.channels.extraction import link as _link
from hindflight.channels.extraction import states as _states
from hindflight.channels.extraction.arrivals import Arrivals
from hindflight.channels.extraction.attribution import BOTH, CHANNEL, OUTAGE, QUEUE, Attribution
from hindflight.channels.extraction.cross_traffic import CrossTraffic, cross_traffic_of
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import Link
from hindflight.channels.extraction.link_stretches import link_stretches
from hindflight.channels.extraction.parallel_flows import parallel_flows_of
from hindflight.channels.extraction.states import HOP
from hindflight.toolkit.errors import ChannelError, rebuild_hint
from hindflight.toolkit.schema import conform, table_from_rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Context", "Estimate", "Extraction", "extract"]

CAUSES = ("none", "channel", "queue", "outage")
"""Names of the codes of `attribution`."""


@dataclass(frozen=True, slots=True)
class Context:
    """Data from outside a flow's own segments: cross traffic, and arrivals from a capture at the receiver.

    `whole_link`: the table has the packets of parallel flows, too. A replay of all of them needs the losses of all.
    """

    cross_traffic: CrossTraffic | None = None
    arrivals: Arrivals | None = None
    whole_link: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """The link as one flow shows it.

    `channel` and `findings` are tables of hindflight.toolkit.schema; `counts` numbers data packets by cause; `unknowns`
    has one sentence per property that the capture does not show. `stretches` are the link between its steps,
    `bursts_or_outages` the runs of losses whose cause is one of these two, as in a Trace.
    """

    channel: pa.Table
    estimates: tuple[Estimate, ...]
    unknowns: tuple[str, ...]
    findings: pa.Table
    counts: dict[str, int]
    stretches: tuple[LinkStretch, ...] = ()
    bursts_or_outages: tuple[tuple[int, int], ...] = ()

    def estimate(self, name: str) -> Estimate:
        """Return the estimate called `name`. Raises KeyError if there is none."""
        return named(self.estimates, name)


def extract(
    segments: pa.Table,
    flows: pa.Table,
    events: pa.Table,
    flow_id: int,
    context: Context = Context(),
) -> Extraction:
    """Extract the channel that the data of one captured flow met.

    `segments`, `flows` and `events` are tables of `hindflight.toolkit.schema` from a capture at or near the sender.
    Other flows in them between the same two hosts are parallel to the flow: their packets are evidence, too, unless
    they are in the cross traffic. `context` adds that (without it, that of these tables) and arrivals at the receiver.
    Raises ChannelError if the flow does not exist, carries no data or was never acknowledged, or if the capture was
    taken at the receiver.
    """
    import pyarrow as pa

    flow = flows.filter((np.asarray(flows["flow_id"]) == flow_id) & (np.asarray(flows["run_id"]) == 0)).to_pylist()
    if not flow:
        raise ChannelError(f"there is no flow {flow_id}", "`hindflight flows` lists the flows")
    direction, vantage = str(flow[0]["data_direction"]), str(flow[0]["vantage"])
    if vantage == "receiver":
        raise ChannelError(
            f"the capture of flow {flow_id} was taken at the receiver, so it lacks the packets that were lost",
            rebuild_hint(flow_id),
        )
    parallel = [(int(row["flow_id"]), str(row["data_direction"])) for row in parallel_flows_of(flow[0], flows)]
    cross_traffic = context.cross_traffic
    if cross_traffic is None:
        cross_traffic = cross_traffic_of(flow[0], segments, flows, events, observed=[other for other, _ in parallel])
    delivery = _delivery.of_flow(segments, events, flow_id, direction)
    if context.arrivals is not None:
        delivery = _delivery.with_arrivals(delivery, context.arrivals)
    others = [_delivery.of_flow(segments, events, *one) for one in parallel if one[0] in cross_traffic.observed]
    delivery = _delivery.with_cross_traffic(_delivery.with_parallel_flows(delivery, others), cross_traffic)
    if not delivery.prompt.any():
        raise ChannelError(f"no data packet of flow {flow_id} was acknowledged, so there is no channel to extract")
    link = _link.of_delivery(delivery)
    verdicts = _attribution.verdicts(delivery, link)
    estimates = _estimates.estimates(delivery, link, verdicts, context.arrivals)
    counts = _counts(delivery, verdicts)
    origin_ns = _origin_ns(flow[0], delivery, link)
    shown = delivery.observed & (delivery.t_ns >= origin_ns) if context.whole_link else delivery.from_flow
    return Extraction(
        channel=pa.concat_tables(
            [
                _packet_rows(delivery, link, verdicts, shown),
                table_from_rows("channel", _states.interval_rows(delivery, link, verdicts, origin_ns)),
            ]
        )
        .unify_dictionaries()
        .combine_chunks(),
        estimates=estimates,
        unknowns=_estimates.unknowns(delivery, link, verdicts, (vantage, context.arrivals)),
        findings=_findings(flow_id, estimates, counts),
        counts=counts,
        stretches=link_stretches(delivery, link, verdicts, origin_ns),
        bursts_or_outages=_bursts_or_outages(verdicts, shown),
    )


def _bursts_or_outages(verdicts: Attribution, shown: npt.NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Return the first and the last position of each run of losses that are a burst or an outage."""
    at = verdicts.positions(shown)[verdicts.burst_or_outage & shown]
    runs = np.split(at, np.flatnonzero(np.diff(at) != 1) + 1) if len(at) else []
    return tuple((int(run[0]), int(run[-1])) for run in runs)


def _origin_ns(flow: dict[str, object], delivery: Delivery, link: Link) -> int:
    """Return the start of the flow, time 0 of a replay: its SYN, or a base round trip before its first data packet."""
    if flow["syn"]:
        return int(str(flow["start_ns"]))
    first = int(np.argmax(delivery.from_flow))
    return max(0, int(delivery.t_ns[first]) - round(_link.base_rtt_ns(delivery, link, first)))


def _packet_rows(delivery: Delivery, link: Link, verdicts: Attribution, shown: npt.NDArray[np.bool_]) -> pa.Table:
    """Return the rows of the packets that are `shown`, in the order sent."""
    import pyarrow as pa

    n = len(delivery)
    position = verdicts.positions(shown)
    lost = delivery.lost & (verdicts.cause != QUEUE)
    names = np.array(CAUSES, dtype=object)[verdicts.cause]
    # An outage is replayed by its time, whatever the queue did then: its losses keep the cause.
    names[delivery.lost & ~verdicts.known & (verdicts.cause != OUTAGE)] = "unknown"
    trip = _bottleneck.rtt_ns(delivery)
    packets = pa.table(
        {
            "kind": pa.array(["packet"] * n),
            "hop": pa.array([HOP] * n),
            "direction": pa.array([delivery.direction] * n),
            "position": pa.array(position, pa.uint64(), mask=position < 0, safe=False),
            "t_ns": pa.array(delivery.t_ns),
            "end_ns": pa.nulls(n, pa.int64()),
            "size_bytes": pa.array(delivery.size_bytes, pa.uint32()),
            "lost": pa.array(lost),
            "cause": pa.array(names.tolist(), pa.string()),
            "rate_bps": pa.nulls(n, pa.float64()),
            "delay_ns": pa.array(trip, mask=trip < 0),
            "added_ns": pa.nulls(n, pa.int64()),
            "overlap_ns": pa.nulls(n, pa.int64()),
            "ber": pa.nulls(n, pa.float64()),
            "per": pa.nulls(n, pa.float64()),
            "known": pa.array(verdicts.known),
            "record": pa.array(delivery.record, pa.uint64()),
            "evidence": pa.array(_evidence(delivery, link, verdicts), pa.string()),
        }
    )
    return conform("channel", packets.filter(shown))


def _evidence(delivery: Delivery, link: Link, verdicts: Attribution) -> list[str | None]:
    """Return the reason for the cause of each lost packet."""
    text: list[str | None] = [None] * len(delivery)
    limit = f", whose limit is {link.ceiling.limit:.1f}" if link.ceiling else ", whose limit is not known"
    for k in np.flatnonzero(delivery.lost).tolist():
        words = [f"{link.replay.level[k]:.1f} packets waited in the queue{limit}"]
        gap = float(verdicts.gap_odds[k])
        if gap:
            served = "did not use" if gap > 0 else "used"
            words.append(f"it {served} the link, by the next departure (weight {abs(gap):.1f})")
        if verdicts.refusals[k] == BOTH:
            words.append("in an outage, but queues a little shorter and a little longer both refuse it")
        elif verdicts.cause[k] == OUTAGE:
            words.insert(0, "one of a long run of losses without a delivery")
            if verdicts.refusals[k]:
                words.append("the full queue may have dropped it before")
        else:
            words.append(f"log odds of queue against channel {verdicts.odds[k]:+.1f}")
            if verdicts.burst_or_outage[k]:
                words.append("a burst of the channel or an outage")
        text[k] = "; ".join(words)
    return text


def _counts(delivery: Delivery, verdicts: Attribution) -> dict[str, int]:
    lost = delivery.lost & delivery.from_flow
    known = lost & verdicts.known
    counts = {"data_packets": int(delivery.from_flow.sum()), "lost": int(lost.sum())}
    for code, name in enumerate(CAUSES):
        if code:
            counts[name] = int((known & (verdicts.cause == code)).sum())
    counts["unknown"] = int((lost & ~verdicts.known).sum())
    counts["unknown_taken_as_channel"] = int((lost & ~verdicts.known & (verdicts.cause == CHANNEL)).sum())
    counts["undecided"] = int((delivery.undecided & delivery.from_flow).sum())
    if not delivery.from_flow.all():
        counts["other_traffic"] = int((~delivery.from_flow).sum())
    return counts


def _findings(flow_id: int, estimates: tuple[Estimate, ...], counts: dict[str, int]) -> pa.Table:
    subject = f"flow {flow_id}"
    rows: list[dict[str, object]] = [
        {
            "section": "channel", "subject": subject, "metric": e.name, "value": e.value, "low": e.low, "high": e.high,
            "unit": e.unit, "verdict": "info" if e.known else "unknown", "text": e.how,
        }
        for e in estimates
    ]  # fmt: skip
    sentence = (
        f"{counts['lost']} of {counts['data_packets']} data packets were lost: {counts['channel']} by the channel, "
        f"{counts['queue']} by the full queue, {counts['outage']} in outages, {counts['unknown']} for unknown causes."
    )
    for name in ("lost", "channel", "queue", "outage", "unknown"):
        rows.append(
            {
                "section": "channel", "subject": subject, "metric": f"{name}_losses" if name != "lost" else "losses",
                "value": float(counts[name]), "unit": "pkts", "verdict": "info", "text": sentence,
            }
        )  # fmt: skip
    return table_from_rows("findings", rows)
