"""Whether a recorded flow shows its congestion control, by the kernel's own account of it.

Reads tcp_info polls, not captures: a flow that the network did not limit long enough may be called unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from validation.captures.truth import LOSS, RECOVERY

MIN_REDUCTIONS = 5
"""Reductions by loss from which reno and cubic show."""

MIN_LIMITED_NS = 10_000_000_000
"""Time limited by the network from which bbr shows."""


def is_identifiable(info: Mapping[str, Sequence[int]], congestion_control: str) -> bool:
    """Return whether the network reduced the window of a flow often enough or, for bbr, limited it long enough."""
    if congestion_control == "bbr":
        return limited_ns(info) >= MIN_LIMITED_NS
    return reductions(info) >= MIN_REDUCTIONS


def reductions(info: Mapping[str, Sequence[int]]) -> int:
    """Return how often a fast recovery or a loss state began."""
    return sum(after in (RECOVERY, LOSS) and after > before for before, after in pairwise(info["ca_state"]))


def limited_ns(info: Mapping[str, Sequence[int]]) -> int:
    """Return the time in which neither the application, the receiver nor the send buffer limited the flow."""
    total = 0
    for i, (begin, end) in enumerate(pairwise(info["t_ns"])):
        counted_us = sum(info[name][i + 1] - info[name][i] for name in ("rwnd_limited", "sndbuf_limited"))
        if not info["app_limited"][i]:
            total += max(0, end - begin - 1000 * counted_us)
    return total
