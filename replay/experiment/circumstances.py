"""The circumstances of a captured flow, by which the interval of a prediction is calibrated, and what its bottleneck
carries.

Reads the drafted scenario and its traces.
"""

from __future__ import annotations

from collections.abc import Mapping

from hindflight.channels.estimate import Estimate
from hindflight.replay.experiment.prediction import Circumstance
from hindflight.replay.scenario.applications import Greedy, Writes
from hindflight.replay.scenario.draws import UNKNOWN_QUEUE_PKTS
from hindflight.replay.scenario.flows import USUAL_PACKET_BYTES
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import Link, Scenario


def circumstance_of(scenario: Scenario, traces: Mapping[str, LossTrace]) -> Circumstance:
    """Return what the capture shows of its flow."""
    if scenario.flows or scenario.datagrams:
        return "shared"
    if isinstance(scenario.flow.application, Writes) and scenario.flow.application.until is None:
        return "application"
    if not isinstance(scenario.flow.application, Greedy) or _receiver_limits(scenario):
        return "limited"
    if any(link.changes for link in scenario.links):
        return "steps"
    return "loss" if any(len(trace.lost) for trace in traces.values()) else "steady"


def capacity_of(scenario: Scenario, traces: Mapping[str, LossTrace], transfer_ns: int) -> float | None:
    """Return the maximum payload that the traced link carries on average over the last `transfer_ns` of the run, in
    bit/s: at the upper end of the interval of its rate, None if the rate is not known. Outages are not taken off."""
    link = scenario.links[scenario.traced_link]
    highest = [_highest(trace.open.rate) for trace in traces.values() if trace.open is not None]
    if link.forward.rate is None or None in highest:
        return None
    begin_ns = scenario.duration - transfer_ns
    rate_bps, since_ns, carried = link.forward.rate, begin_ns, 0.0
    for change in link.changes:
        if change.rate is not None:
            at_ns = max(change.at, begin_ns)
            carried += rate_bps * (at_ns - since_ns)
            rate_bps, since_ns = change.rate, at_ns
    carried += rate_bps * (scenario.duration - since_ns)
    mss, headers = scenario.flow.packet_bytes()
    factor = max((known for known in highest if known is not None), default=1.0)
    return factor * carried / transfer_ns * mss / (mss + headers)


def _highest(rate: Estimate | None) -> float | None:
    """Return by which factor the rate may exceed its estimate; None if the estimate is a lower bound only."""
    if rate is None:
        return 1.0
    if rate.value is None:
        return None
    return rate.high / rate.value if rate.high is not None and rate.value > 0 else 1.0


def _receiver_limits(scenario: Scenario) -> bool:
    """Return whether the receiver's window holds less than the path and its queue do."""
    window = scenario.flow.receive_buffer
    if window is None:
        return False
    link = scenario.links[scenario.traced_link]
    rates = [link.forward.rate, *(change.rate for change in link.changes)]
    highest = max((rate for rate in rates if rate is not None), default=None)
    longest_ns = 2 * sum(_longest_ns(each) for each in scenario.links)
    if highest is None:
        return True
    limit = link.forward.queue.engine().get("limit_pkts") or 0
    queued = 0 if limit >= UNKNOWN_QUEUE_PKTS else limit * (scenario.flow.mss or USUAL_PACKET_BYTES)
    return window < highest * longest_ns / 8e9 + queued


def _longest_ns(link: Link) -> float:
    """Return the maximum delay of a link over time. Those of a drafted path change together."""
    return max([link.forward.delay, *(change.delay for change in link.changes if change.delay is not None)])
