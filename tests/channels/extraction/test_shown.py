"""Which delays count as known: what a queue shows that ran empty or that filled, in each state of the rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import base_rtt
from hindflight.channels.extraction import link as link_module
from hindflight.channels.extraction.base_rtt import Base
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import AllDropped, Link, base_rtt_ns, of_delivery
from hindflight.channels.extraction.path_steps import Stretch
from hindflight.channels.extraction.queue import Ceiling
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
    return delivery, replace(fitted, arrivals=arrivals, all_dropped=AllDropped.of(arrivals, False))


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
    assert base_rtt._error_ns(np.array([4.0, 0.0, 0.0]) * MS, bare, service) == 1 * MS
    assert base_rtt._error_ns(np.array([4.0, 4.5, 4.9]) * MS, bare, service) == 4 * MS
    assert base_rtt._error_ns(np.array([6.0, 7.0, 0.0]) * MS, bare, service) == np.inf


def test_a_packet_that_agrees_with_those_on_one_path_met_it_too() -> None:
    rest, service = np.array([50.1, 70.0, 50.0, 50.2]) * MS, np.full(4, 6.0 * MS)
    late = np.array([False, False, True, True])
    assert base_rtt._settled(late, rest, service).tolist() == [True, False, True, True]
    assert not base_rtt._settled(np.zeros(4, dtype=bool), rest, service).any()


def test_a_path_is_settled_once_its_first_packet_is_acknowledged() -> None:
    delivery = _delivery([])
    # Sent at 3 s and acknowledged 100 ms later, where the path before took 40 ms or 500 ms.
    assert base_rtt._settled_ns(delivery, Stretch(300, 600, 1e8), 500.0 * MS) == 3100 * MS
    assert base_rtt._settled_ns(delivery, Stretch(300, 600, 1e8), 40.0 * MS) == 3040 * MS
    assert base_rtt._settled_ns(delivery, Stretch(0, 600, 1e8), 500.0 * MS) == 0


def test_a_queue_that_goes_on_over_a_change_of_path_shows_the_delay_to_its_error() -> None:
    whole = _delivery([])
    link = of_delivery(whole)
    full = np.full(600, SERVICE_MS * MS, dtype=np.float64)
    levels = ((0, 300, 100.0 * MS), (300, 600, 200.0 * MS))
    base = Base(
        np.full(600, 100.0 * MS), np.ones(600, dtype=bool), levels, (0.0, np.inf), (100.0 * MS, 230.0 * MS), sure=True,
        carried=(False, True),
    )  # fmt: skip
    found = link_module._with_one_limit(whole, base, link.all_dropped, full)
    assert found.error_ns == (0.0, base_rtt.WAIT_ERROR * SERVICE_MS * MS)
    lost = link_module._with_one_limit(whole, replace(base, carried=(False, False)), link.all_dropped, full)
    assert lost.error_ns == (0.0, np.inf)


def test_an_interval_may_be_wider_than_a_delay_that_counts_as_known() -> None:
    delivery, link = _two_rates(112.0)
    rough = replace(link, base=replace(link.base, error_ns=(20.0 * MS,)))
    assert shown_delays(delivery, rough, [(0, 0)]) == frozenset()
    assert shown_delays(delivery, rough, [(0, 0)], share=None) == {(0, 0)}
    never = replace(link, base=replace(link.base, error_ns=(np.inf,)))
    assert shown_delays(delivery, never, [(0, 0)], share=None) == frozenset()


@pytest.mark.parametrize(
    ("taken", "second", "held_ms"), [(9.0, 7.0, 130.0), (9.0, 8.0, 150.0), (5.0, 7.0, 150.0), (20.0, 2.0, 0.0)]
)
def test_a_queue_that_took_more_elsewhere_is_as_much_longer_where_it_never_ran_empty(
    taken: float, second: float, held_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where the first level saw the queue empty, it was never full: it took a packet on top of `taken` of 10 ms.
    limits = {0: None, 310: Ceiling(second, second - 0.2, second, 9.0, 5, 5, 9.0)}
    monkeypatch.setattr(
        link_module, "limit_within", lambda _delivery, _modelled, within: limits[int(np.argmax(within))]
    )
    whole = _delivery([])
    dropped = of_delivery(whole).all_dropped
    # A single level above may be wrong.
    levels = np.where(np.arange(600) < 300, taken, 0.0)
    levels[:5], levels[300:] = 50.0, 40.0
    spans, least = ((0, 290, 100.0 * MS), (310, 600, 150.0 * MS)), (100.0 * MS, 200.0 * MS)
    base = Base(np.full(600, 1e8), np.ones(600, dtype=bool), spans, (0.0, np.inf), least, sure=True)
    full = np.full(600, SERVICE_MS * MS, dtype=np.float64)
    found = link_module._with_one_limit(whole, base, replace(dropped, level=levels), full)
    assert found.spans[1] == (310, 600, held_ms * MS)
    # That is a bound, so the delay stays unknown.
    assert found.error_ns == (0.0, np.inf)
    # What lies between the two has the later one, too.
    assert found.per_packet_ns[[289, 290, 309, 310]].tolist() == [100.0 * MS, *[held_ms * MS] * 3]


@pytest.mark.parametrize(("packets", "held_ms"), [(39, 150.0), (40, 130.0)])
def test_fewer_levels_than_one_wrong_one_among_them_may_be_left_out_of_show_nothing(
    packets: int, held_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As above: the queue took packets at a level of 9, and its limit in the second level is 7.
    limits = {0: None, packets: Ceiling(7.0, 6.8, 7.0, 9.0, 5, 5, 9.0)}
    monkeypatch.setattr(
        link_module, "limit_within", lambda _delivery, _modelled, within: limits[int(np.argmax(within))]
    )
    whole = _delivery([])
    levels = np.full(600, 9.0)
    levels[0] = 50.0
    spans, least = ((0, packets, 100.0 * MS), (packets, 600, 150.0 * MS)), (100.0 * MS, 200.0 * MS)
    base = Base(np.full(600, 1e8), np.ones(600, dtype=bool), spans, (0.0, np.inf), least, sure=True)
    full = np.full(600, SERVICE_MS * MS, dtype=np.float64)
    dropped = replace(of_delivery(whole).all_dropped, level=levels)
    found = link_module._with_one_limit(whole, base, dropped, full)
    assert found.spans[1] == (packets, 600, held_ms * MS)


@pytest.mark.parametrize(("second", "error_ms"), [(7.0, 10.0), (8.0, 3.0), (20.0, 175.0)])
def test_a_delay_from_the_limit_is_as_exact_as_the_limits(
    second: float, error_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit in the first level is 8 packets of 10 ms. No round trip of the second was longer than 98 ms.
    limits = {0: Ceiling(8.0, 7.9, 8.0, 9.0, 5, 5, 9.0), 300: Ceiling(second, second - 0.2, second, 9.0, 5, 5, 9.0)}
    monkeypatch.setattr(
        link_module, "limit_within", lambda _delivery, _modelled, within: limits[int(np.argmax(within))]
    )
    whole = _delivery([])
    levels, errors, least = ((0, 300, 100.0 * MS), (300, 600, 150.0 * MS)), (0.0, np.inf), (100.0 * MS, 98.0 * MS)
    base = Base(np.full(600, 1e8), np.ones(600, dtype=bool), levels, errors, least, sure=True)
    full = np.full(600, SERVICE_MS * MS, dtype=np.float64)
    found = link_module._with_one_limit(whole, base, of_delivery(whole).all_dropped, full)
    # Where the round trips contradict the limits, it is off by as much.
    assert found.error_ns[1] == pytest.approx(error_ms * MS)


def test_the_ack_that_shows_a_delay_was_serialised_at_the_rate_of_its_time() -> None:
    # 1,500 bytes take 10 ms, and 40 ms from packet 300 on; an ACK has 40 bytes.
    delivery, link = _two_rates(112.0)
    full_ns = np.where(np.arange(600) < 300, 10.0 * MS, 40.0 * MS)
    for shown_by, packet_ms in ((5, 10), (400, 40)):
        base = replace(link.base, shown_by=(shown_by,))
        delay_ns = base_rtt_ns(delivery, replace(link, full_ns=full_ns, base=base), 350)
        assert delay_ns == pytest.approx(100 * MS - 40 / 1500 * packet_ms * MS)
    assert len(of_delivery(_delivery([])).base.shown_by) == 1


def test_a_level_below_one_that_is_shown_is_shown_by_how_much_earlier_acks_came() -> None:
    delivery, link = _two_rates(112.0)
    spans, parts = ((0, 450, 100.0 * MS), (450, 600, 60.0 * MS)), [(0, 0), (0, 1), (1, 1)]
    for clocked in (False, True):
        base = replace(link.base, spans=spans, error_ns=(0.0, 0.0), clocked=(False, clocked))
        assert ((1, 1) in shown_delays(delivery, replace(link, base=base), parts)) == clocked


def test_a_state_of_the_rate_in_which_nothing_is_timed_shows_no_delay() -> None:
    delivery, link = _two_rates(112.0)
    parts = [(0, 0), (0, 1)]
    assert shown_delays(delivery, link, parts) == set(parts)
    untimed = replace(delivery, prompt=delivery.prompt & (np.arange(600) < 300))
    assert shown_delays(untimed, link, parts) == {(0, 0)}
    # As in the state behind it, if the same delay is shown there.
    later = replace(link.rate, states=(*link.rate.states[:1], (1, 2, 1.5e6), *link.rate.states[1:]))
    assert (0, 1) in shown_delays(delivery, replace(link, rate=later), [*parts, (0, 2)])


def test_a_wait_at_a_rate_that_is_a_lower_bound_shows_no_delay() -> None:
    spans, errors = ((0, 300, 100.0 * MS), (300, 600, 90.0 * MS)), (2.0 * MS, 1.0 * MS)
    base = Base(np.full(600, 1e8), np.ones(600, dtype=bool), spans, errors, (100.0 * MS, 200.0 * MS), sure=True)
    seen = replace(base, error_ns=(0.0, np.inf))
    bounded = np.isin(np.arange(600), [5, 450])
    assert link_module._only_at_a_rate(seen, base, bounded).error_ns == (2.0 * MS, np.inf)
    assert link_module._only_at_a_rate(seen, base, bounded & (np.arange(600) < 300)).error_ns == errors
