"""What the bottleneck of a captured flow carries at most, where the interval of a prediction ends.

Reads the drafted scenario and its traces.
"""

from __future__ import annotations

from collections.abc import Mapping

from hindflight.channels.estimate import Estimate
from hindflight.replay.experiment.prediction import LINK_MARGIN
from hindflight.replay.scenario.draws import UNKNOWN_RATE_FACTOR
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import Scenario


def capacity_of(
    scenario: Scenario, traces: Mapping[str, LossTrace], transfer_ns: int, captured_bps: float | None
) -> float | None:
    """Return the maximum payload that the traced link carries on average over the last `transfer_ns` of the run, in
    bit/s: at the upper end of the interval of its rate. Outages are not taken off. None if the rate is not known, or
    if the captured flow got more, `captured_bps`, by more than LINK_MARGIN: then it is wrong by an unknown amount."""
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
    capacity_bps = factor * carried / transfer_ns * mss / (mss + headers)
    refuted = captured_bps is not None and captured_bps > (1 + LINK_MARGIN) * capacity_bps
    return None if refuted else capacity_bps


def has_no_upper_bound(traces: Mapping[str, LossTrace]) -> bool:
    """Return whether a rate is known as a lower bound only, or its upper bound is beyond all draws, so that they show
    the low end alone."""
    rates = [trace.open.rate for trace in traces.values() if trace.open is not None and trace.open.rate is not None]
    unknown = [rate for rate in rates if rate.value is None]
    return any(rate.high is None or not rate.low or rate.high > UNKNOWN_RATE_FACTOR * rate.low for rate in unknown)


def _highest(rate: Estimate | None) -> float | None:
    """Return by which factor the rate may exceed its estimate; None if the estimate is a lower bound only."""
    if rate is None:
        return 1.0
    if rate.value is None:
        return None
    return rate.high / rate.value if rate.high is not None and rate.value > 0 else 1.0
