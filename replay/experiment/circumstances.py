"""The circumstances of a captured flow, by which the interval of a prediction is calibrated, and what its link carries.

Reads the drafted scenario and its traces.
"""

from __future__ import annotations

from collections.abc import Mapping

from hindflight.replay.experiment.prediction import Circumstance
from hindflight.replay.scenario.applications import Greedy
from hindflight.replay.scenario.draws import UNKNOWN_QUEUE_PKTS
from hindflight.replay.scenario.flows import USUAL_HEADERS_BYTES, USUAL_PACKET_BYTES
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import Scenario


def circumstance_of(scenario: Scenario, traces: Mapping[str, LossTrace]) -> Circumstance:
    """Return what the capture shows of its flow."""
    if scenario.flows or scenario.datagrams:
        return "shared"
    if not isinstance(scenario.flow.application, Greedy) or _receiver_limits(scenario):
        return "limited"
    if any(link.changes for link in scenario.links):
        return "steps"
    return "loss" if any(len(trace.lost) for trace in traces.values()) else "steady"


def ceiling_of(scenario: Scenario, traces: Mapping[str, LossTrace]) -> float | None:
    """Return the largest goodput that the link of a captured transfer carries, in bit/s; None where its rate is not
    known, or known as a lower bound only.

    All octets of the link's time, without those of headers, in the time of the transfer.
    """
    open_ = next((trace.open for trace in traces.values() if trace.open is not None), None)
    captured, link = scenario.captured, scenario.links[0]
    if captured is None or captured.transfer is None or open_ is None or open_.rate is None:
        return None
    rate, rates = link.forward.rate, open_.rate
    if rate is None or not rates.value or rates.high is None or len(scenario.links) > 1:
        return None
    carried, since, up = 0.0, 0, True
    for change in sorted(link.changes, key=lambda change: change.at):
        carried += rate * (change.at - since) * up
        since = change.at
        rate = change.rate or rate
        up = up if change.outage is None else not change.outage
    carried += rate * (scenario.duration - since) * up
    headers = USUAL_HEADERS_BYTES if scenario.flow.headers is None else scenario.flow.headers
    payload = scenario.flow.mss or USUAL_PACKET_BYTES - headers
    share = payload / (payload + headers)
    return carried * share * (rates.high / rates.value) / captured.transfer


def _receiver_limits(scenario: Scenario) -> bool:
    """Return whether the receiver's window holds less than the path and its queue do."""
    window = scenario.flow.receive_buffer
    if window is None:
        return False
    link = scenario.links[0]
    rates = [link.forward.rate, *(change.rate for change in link.changes)]
    delays = [link.forward.delay, *(change.delay for change in link.changes)]
    highest = max((rate for rate in rates if rate is not None), default=None)
    longest_ns = 2 * max(delay for delay in delays if delay is not None)
    if highest is None:
        return True
    limit = link.forward.queue.engine().get("limit_pkts") or 0
    queued = 0 if limit >= UNKNOWN_QUEUE_PKTS else limit * (scenario.flow.mss or USUAL_PACKET_BYTES)
    return window < highest * longest_ns / 8e9 + queued
