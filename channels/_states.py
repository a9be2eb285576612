"""Interval rows of a channel table: rate and delay that held from when to when, and outages.

Knows the link's arrays and builds rows; decides nothing. Read docs/channels/extract.md first.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from channels import _estimates
from channels._ascribe import Verdicts
from channels._delivery import Delivery
from channels._link import Link

HOP = "bottleneck"
"""Name of the one link that a single capture tells of."""


def interval_rows(delivery: Delivery, link: Link, verdicts: Verdicts) -> list[dict[str, object]]:
    """Rows of kind interval in order of time: a row per state of the link, then a row per outage."""
    rows: list[dict[str, object]] = []
    rate_cuts = [int(start - link.base.per_packet_ns[0]) for start, _, _ in link.rate.states[1:]]
    outages = _outage_spans(delivery, link, verdicts)
    # What was lost last may have left the queue after the last packet was sent.
    begin = int(delivery.t_ns[delivery.own][0])
    end = max([int(delivery.t_ns[-1]) + 1, *(until for _, until, _ in outages)])
    delay_cuts = [int(delivery.t_ns[first]) for first, _, _ in link.base.spans[1:]]
    cuts = sorted({begin, end, *(cut for cut in rate_cuts + delay_cuts if begin < cut < end)})
    for t, until in pairwise(cuts):
        middle = min(int(np.searchsorted(delivery.t_ns, (t + until) // 2)), len(delivery) - 1)
        state = int(np.searchsorted(rate_cuts, t, side="right"))
        known = link.alone and link.rate.known and link.rate.steady
        rows.append(
            {
                "kind": "interval", "hop": HOP, "direction": delivery.direction, "t_ns": t, "end_ns": until,
                "lost": False, "cause": "none", "rate_bps": link.rate.states[state][2] if link.rate.known else None,
                "delay_ns": round(_estimates.base_rtt_ns(delivery, link, middle) / 2), "known": known,
            }
        )  # fmt: skip
    rows.extend(_outage_row(delivery.direction, outage) for outage in outages)
    return sorted(rows, key=lambda row: int(str(row["t_ns"])))


def _outage_spans(delivery: Delivery, link: Link, verdicts: Verdicts) -> list[tuple[int, int, str]]:
    """From when the first of the lost packets left the queue until the last one did, and by when it was over."""
    waited = link.replay.level * link.full_ns + link.service_ns
    spans: list[tuple[int, int, str]] = []
    for first, last, following in verdicts.outages:
        t, until = (int(delivery.t_ns[k] + waited[k]) for k in (first, last))
        # The queue's level is an estimate, and an outage begins after the one before it.
        t = max(t, spans[-1][1]) if spans else t
        until = max(t, until)
        latest = "with the capture"
        if following is not None:
            latest = f"{(delivery.t_ns[following] + waited[following] - t) / 1e9:.3f} s after it began"
        spans.append((t, until, latest))
    return spans


def _outage_row(direction: str, outage: tuple[int, int, str]) -> dict[str, object]:
    t, until, latest = outage
    return {
        "kind": "interval", "hop": HOP, "direction": direction, "t_ns": t, "end_ns": until,
        "lost": True, "cause": "outage", "known": True,
        "evidence": f"every packet that left the queue in it was lost; it lasted {(until - t) / 1e9:.3f} s at "
        f"least and ended {latest} at the latest",
    }  # fmt: skip
