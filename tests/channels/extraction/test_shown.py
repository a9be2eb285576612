"""Which delays count as known: what a queue shows that ran empty or that filled, in each state of the rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import bottleneck
from hindflight.channels.extraction import queue as _queue
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import Link, of_delivery
from hindflight.channels.extraction.shown import shown_delays
from tests.channels.extraction.test_outages import _delivery

MS = 1_000_000
SERVICE_MS = 10


def _two_rates(second_trip_ms: float, fills_at: float | None = None) -> tuple[Delivery, Link]:
    """A flow that meets an empty queue in a first state of the rate, and in a second one the trip that is given; the
    queue drops every tenth packet there at `fills_at` packets waiting, and at 8 before."""
    gone = [*range(20, 300, 20), *(range(320, 600, 20) if fills_at is not None else ())]
    whole = _delivery(gone)
    late = np.arange(600) >= 300
    acked = np.where(whole.prompt, whole.t_ns + np.where(late, round(second_trip_ms * MS), 110 * MS), -1)
    delivery = replace(whole, acked_ns=acked, covered_ns=acked, ack_t_ns=np.sort(acked[acked >= 0]))
    service = np.full(600, SERVICE_MS * MS, dtype=np.float64)
    fitted = of_delivery(delivery)
    states = ((0, int(whole.t_ns[299]), 1.2e6), (int(whole.t_ns[300]) + 105 * MS, int(acked.max()), 1.3e6))
    base = replace(fitted.base, spans=((0, 600, 100.0 * MS),), error_ns=(0.0,), per_packet_ns=np.full(600, 100.0 * MS))
    # The packet before each loss left behind a full queue, the others behind one with a packet less.
    level = np.where(late, fills_at or 1.0, 8.0) - ~np.roll(whole.lost, -1)
    arrivals = replace(
        fitted.arrivals,
        service=service,
        full=service,
        departed=fitted.arrivals.t + np.where(whole.lost, np.nan, (level + 1) * service),
    )
    rate = replace(fitted.rate, states=states, steady=True, known=True)
    fitted = replace(fitted, rate=rate, base=base, service_ns=service, full_ns=service, unshared=False)
    return delivery, replace(fitted, arrivals=arrivals, all_dropped=_queue.replay(arrivals, -np.inf, False))


@pytest.mark.parametrize(("trip_ms", "shown"), [(112.0, True), (150.0, False)])
def test_a_state_of_the_rate_shows_its_delay_by_a_queue_that_ran_empty(trip_ms: float, shown: bool) -> None:
    delivery, link = _two_rates(trip_ms)
    assert ((0, 1) in shown_delays(delivery, link, [(0, 0), (0, 1)])) == shown
    assert (0, 0) in shown_delays(delivery, link, [(0, 0), (0, 1)])
    one = replace(link, rate=replace(link.rate, states=link.rate.states[:1]))
    assert shown_delays(delivery, one, [(0, 0)]) == {(0, 0)}


@pytest.mark.parametrize(("fills_at", "shown"), [(8.2, True), (9.5, False)])
def test_or_by_a_queue_that_filled_to_the_same_limit(fills_at: float, shown: bool) -> None:
    delivery, link = _two_rates(190.0, fills_at)
    assert ((0, 1) in shown_delays(delivery, link, [(0, 0), (0, 1)])) == shown


def test_the_modelled_wait_is_part_of_the_error_of_a_minimum() -> None:
    bare = np.array([100.0, 101.0, 120.0]) * MS
    service = np.full(3, SERVICE_MS * MS, dtype=np.float64)
    assert bottleneck._error_ns(np.array([4.0, 0.0, 0.0]) * MS, bare, service) == 1 * MS
    assert bottleneck._error_ns(np.array([4.0, 4.5, 4.9]) * MS, bare, service) == 4 * MS
    assert bottleneck._error_ns(np.array([6.0, 7.0, 0.0]) * MS, bare, service) == np.inf
