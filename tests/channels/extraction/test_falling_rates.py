"""When the rate of a link changed, as the ACKs between two states show it."""

from __future__ import annotations

import numpy as np
import pytest

from hindflight.channels.extraction import attribution, bottleneck
from hindflight.channels.extraction import change_points as _change_points
from hindflight.channels.extraction import delivery as _delivery
from hindflight.channels.extraction.attribution import QUEUE
from hindflight.channels.extraction.busy_spans import RATE_TOLERANCE, STEADY_SHARE, BusySpans, joined_until_exact
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import of_delivery

MS = 1_000_000
BASE_NS = 40 * MS
FAST_MS, SLOW_MS = 2.0, 8.0


def _falling(steps: int, pause_ms: float = 0.0) -> tuple[Delivery, int]:
    """A full queue of 20 packets at 2 ms each, then, after a pause of the link, at 8 ms, when it first refuses every
    second packet. Return the flow, and when the first packet was acknowledged that took 8 ms."""
    sent = [0.0] * 20 + [FAST_MS * k for k in range(400)]
    services = [FAST_MS] * len(sent)
    for _ in range(steps):
        sent += [sent[-1] + SLOW_MS / 2, sent[-1] + SLOW_MS]
        services += [0.0, SLOW_MS]
    sent += [sent[-1] + SLOW_MS * k for k in range(1, 301)]
    services += [SLOW_MS] * 300
    n, busy = len(sent), 0.0
    t = (np.array(sent) * MS).astype(np.int64)
    acked = np.full(n, -1, dtype=np.int64)
    for k, service in enumerate(services):
        if service:
            pause = pause_ms if service == SLOW_MS and services[k - 2] == FAST_MS else 0.0
            busy = max(busy, float(t[k])) + (pause + service) * MS
            acked[k] = busy + BASE_NS
    lost = acked < 0
    delivery = Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=lost, acked_ns=acked, prompt=~lost, undecided=np.zeros(n, dtype=np.bool_),
        covered_ns=acked, from_flow=np.ones(n, dtype=np.bool_), observed=np.ones(n, dtype=np.bool_),
        ack_t_ns=np.unique(acked[~lost]), ack_bytes=40, handshake=None,
    )  # fmt: skip
    assert _delivery._prompt(acked[~lost], acked[~lost]).all()
    return delivery, int(acked[np.flatnonzero(np.array(services) == SLOW_MS)[0]])


@pytest.mark.parametrize("steps", [8, 40])
def test_a_rate_that_falls_where_losses_part_the_intervals_begins_where_acks_come_at_it(steps: int) -> None:
    delivery, slower_ns = _falling(steps)
    link = of_delivery(delivery)
    (_, _, fast), (since_ns, _, slow) = link.rate.states
    assert fast == pytest.approx(6e6, rel=0.01)
    assert slow == pytest.approx(1.5e6, rel=0.01)
    assert since_ns == pytest.approx(slower_ns, abs=2 * SLOW_MS * MS)
    # The wait behind the slow packets is one of the queue, so the path is one, and the queue made all losses.
    assert len(link.base.spans) == 1
    assert (attribution.verdicts(delivery, link).cause[delivery.lost] == QUEUE).all()


def test_what_a_link_that_paused_delivered_does_not_show_when_its_rate_fell() -> None:
    delivery, slower_ns = _falling(8, pause_ms := 150.0)
    begin_ns, end_ns = slower_ns - int((SLOW_MS + pause_ms) * MS), slower_ns + int(7 * SLOW_MS * MS)
    assert bottleneck._slower_since(delivery, (begin_ns, end_ns), (6e6, 1.5e6)) == pytest.approx(end_ns, abs=MS)


def test_a_state_with_few_spans_that_agree_stands_beside_many_that_do_not() -> None:
    # A fast link whose ACKs come late by up to a half of the time between them, but for the first and the last of them.
    late = np.concatenate((np.zeros(60), np.random.default_rng(5).uniform(0, 3e6, 380), np.zeros(60)))
    at = np.concatenate((6e6 * np.arange(500) + late, 499 * 6e6 + 40e6 * np.arange(1, 150)))
    span = np.diff(at).astype(np.int64)
    pairs = BusySpans(at[1:].astype(np.int64), span, np.full(len(span), 1500))
    joined = joined_until_exact(pairs, np.ones(len(span), dtype=bool))
    levels = _change_points.fit(np.log(joined.served_bytes * 8e3 / joined.span_ns), RATE_TOLERANCE)
    assert [round(float(np.exp(level)), 1) for _, _, level in levels.spans] == [2.0, 0.3]


def test_what_is_joined_apart_must_explain_more_than_all_together() -> None:
    # One rate, but for the last spans; too few apart to be joined until the lateness of their ACKs does not matter.
    late = np.concatenate((np.zeros(50), np.random.default_rng(5).uniform(0, 1.2e6, 300), np.zeros(51)))
    at = np.cumsum(np.concatenate(([0.0], np.full(350, 3e6), np.full(50, 3.3e6)))) + late
    span = np.diff(at).astype(np.int64)
    pairs = BusySpans(at[1:].astype(np.int64), span, np.full(len(span), 1500))
    single = _change_points.fit(np.log(1500 * 8e3 / span), RATE_TOLERANCE)
    assert (len(single.spans), single.coverage < STEADY_SHARE) == (2, True)
    joined = joined_until_exact(pairs, np.ones(len(span), dtype=bool))
    levels = _change_points.fit(np.log(joined.served_bytes * 8e3 / joined.span_ns), RATE_TOLERANCE)
    assert levels.coverage > 0.8
