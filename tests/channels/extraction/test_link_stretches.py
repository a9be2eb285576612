"""What the extraction says about each stretch of a link, and how exact a rate is with hosts that jitter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.estimate import LinkStretch
from hindflight.channels.extraction import attribution, bottleneck
from hindflight.channels.extraction import delivery as _delivery
from hindflight.channels.extraction.base_rtt import constant_base
from hindflight.channels.extraction.delivery import Delivery, Handshake
from hindflight.channels.extraction.link import of_delivery
from hindflight.channels.extraction.link_stretches import link_stretches
from hindflight.channels.extraction.path_steps import stretches
from hindflight.channels.extraction.queue import Ceiling, ceiling

MS = 1_000_000
BASE_NS = 40 * MS
OCTETS = 1500


def _busy(services_ms: list[float], jitter_ms: float = 0.0) -> Delivery:
    """A window of 60 packets, each served for its time, with pauses in which the queue runs empty; every second packet
    is acknowledged, late by up to `jitter_ms`."""
    n, rng = len(services_ms), np.random.default_rng(5)
    t, left = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    busy = 0.0
    for k, service in enumerate(services_ms):
        t[k] = 0 if k < 60 else left[k - 60] + BASE_NS + (300 * MS if k % 400 == 1 else 0)
        t[k] = max(t[k], t[k - 1]) if k else 0
        busy = max(busy, float(t[k])) + service * MS
        left[k] = busy
    late = (rng.uniform(0, jitter_ms, n) * MS).astype(np.int64)
    answered = np.maximum.accumulate((left + BASE_NS + late)[np.minimum(np.arange(n) | 1, n - 1)])
    prompt = _delivery._prompt(answered, answered)
    return Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t, size_bytes=np.full(n, OCTETS), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=np.zeros(n, dtype=np.bool_), acked_ns=answered, prompt=prompt,
        undecided=np.zeros(n, dtype=np.bool_), covered_ns=answered, from_flow=np.ones(n, dtype=np.bool_),
        observed=np.ones(n, dtype=np.bool_), ack_t_ns=np.unique(answered), ack_bytes=40, handshake=None,
    )  # fmt: skip


def _stretches(delivery: Delivery) -> tuple[LinkStretch, ...]:
    link = of_delivery(delivery)
    return link_stretches(delivery, link, attribution.verdicts(delivery, link), 0)


def test_each_stretch_has_its_rate_and_the_rtt_with_intervals_that_hold_them() -> None:
    whole = _busy([2.0] * 3200)
    later = np.arange(3200) > 1600
    moved = np.where(later, 50 * MS, 0)  # While nothing was on the way.
    acked, t_ns = whole.acked_ns + 2 * moved, whole.t_ns + moved
    longer = replace(whole, t_ns=t_ns, acked_ns=acked, covered_ns=acked, ack_t_ns=np.unique(acked))
    found = _stretches(longer)
    assert [one.packets for one in found] == [pytest.approx(1600, abs=2), pytest.approx(1600, abs=2)]
    for one, base_ns in zip(found, (BASE_NS, BASE_NS + 50 * MS), strict=True):
        rate, rtt = one.estimate("rate_bps"), one.estimate("base_rtt_ns")
        assert rate.known
        assert rtt.known
        assert rate.low is not None
        assert rate.high is not None
        assert rate.low <= 6e6 <= rate.high
        assert rate.high - rate.low <= 0.01 * 6e6
        assert rtt.low is not None
        assert rtt.high is not None
        assert rtt.low <= base_ns <= rtt.high
        assert rtt.high - rtt.low <= 0.06 * base_ns
        # It never filled, so its limit is not given.
        assert not one.estimate("queue_limit_pkts").known


def test_a_delay_behind_a_full_queue_is_as_exact_as_the_rate() -> None:
    delivery = _busy([2.0] * 1600)
    link = of_delivery(delivery)
    verdicts = attribution.verdicts(delivery, link)
    widths = []
    for waits in ((), (0.0,), (50.0,)):
        based = replace(link, base=replace(link.base, waits_pkts=waits))
        rtt = link_stretches(delivery, based, verdicts, 0)[0].estimate("base_rtt_ns")
        assert rtt.low is not None
        assert rtt.high is not None
        widths.append(rtt.high - rtt.low)
    assert widths[0] == widths[1]
    # A rate is no more exact than the clocks: 50 packets of 2 ms are off by as much, either way.
    assert widths[2] - widths[0] >= 2 * 50 * 2 * MS * bottleneck.CLOCK_SHARE


def test_the_handshake_was_served_at_the_rate_of_the_first_packet() -> None:
    # 6 Mbit/s for 100 packets, then 3: the SYN took 0.08 ms, and so did what the SYN/ACK is longer than an ACK.
    delivery = replace(
        _busy([2.0] * 100 + [4.0] * 900), handshake=Handshake(rtt_ns=BASE_NS + 107_000, syn_bytes=60, syn_ack_bytes=60)
    )
    service = np.where(np.arange(1000) < 100, 2.0, 4.0) * MS
    served = bottleneck.Served(service, service, service, np.ones(1000, bool), np.zeros(1000, bool))
    first = delivery.t_ns + np.where(delivery.prompt, 50 * MS, -1)
    base = constant_base(replace(delivery, acked_ns=first), served)
    assert base.spans[0][2] == pytest.approx(BASE_NS, abs=1000)


def test_hosts_that_jitter_by_a_fifth_of_a_service_time_leave_the_rate_exact() -> None:
    delivery = _busy([1.0] * 4000, jitter_ms=0.8)
    rate = bottleneck.rate(delivery, stretches(delivery))
    assert rate is not None
    assert rate.steady
    assert rate.bps == pytest.approx(12e6, rel=0.002)
    (only,) = _stretches(delivery)
    shown = only.estimate("rate_bps")
    assert shown.low is not None
    assert shown.high is not None
    assert shown.low <= 12e6 <= shown.high


def test_a_stretch_without_a_queue_has_no_rate() -> None:
    delivery = _busy([2.0] * 1600)
    # A second half in which each packet leaves alone, over another path.
    spaced = replace(
        delivery,
        t_ns=np.where(np.arange(1600) < 800, delivery.t_ns, delivery.t_ns[799] + (np.arange(1600) - 798) * 300 * MS),
    )
    trip = np.where(np.arange(1600) < 800, delivery.acked_ns - delivery.t_ns, 2 * MS + 3 * BASE_NS)
    acked = np.maximum.accumulate(spaced.t_ns + trip)
    alone = replace(spaced, acked_ns=acked, covered_ns=acked, ack_t_ns=np.unique(acked))
    alone = replace(alone, prompt=_delivery._prompt(acked, acked))
    first, second = _stretches(alone)
    assert first.estimate("rate_bps").known
    assert not second.estimate("rate_bps").known
    assert second.estimate("rate_bps").low is None


def test_the_last_arrival_that_an_ack_reports_triggered_it_unless_it_was_perhaps_a_copy() -> None:
    # The ACK of the fourth transmission, a copy of the first, reports three that had arrived: their ACKs were lost.
    answered = np.array([900, 900, 900, 900, 950])
    acked = np.array([-1, 900, 900, -1, 950])
    assert _delivery._prompt(acked, answered).tolist() == [False, False, False, False, True]
    assert _delivery._prompt(answered, answered).tolist() == [False, False, False, True, True]


def test_what_an_ack_that_fills_a_hole_reports_did_not_arrive_at_once() -> None:
    # One packet in 10 ms, acknowledged one by one, but for 60 that one ACK reports behind a hole.
    t_ns = np.arange(200) * 10 * MS
    acked = t_ns + BASE_NS
    acked[70:130] = acked[130]
    whole = _busy([10.0] * 200)
    delivery = replace(whole, t_ns=t_ns, acked_ns=acked, covered_ns=acked, ack_t_ns=np.unique(acked))
    delivery = replace(delivery, prompt=_delivery._prompt(acked, acked))
    (only,) = stretches(delivery)
    # The link carried one packet in 10 ms.
    assert bottleneck._most_carried(delivery, only) == pytest.approx(OCTETS * 8 / 0.01)


def test_an_ack_that_reports_many_packets_hides_none_of_the_rate() -> None:
    # One packet in 10 ms, and an ACK for every sixteenth: more packets than a round trip has.
    t_ns = np.arange(320) * 10 * MS
    acked = (t_ns + BASE_NS).reshape(-1, 16)[:, -1].repeat(16)
    whole = _busy([10.0] * 320)
    delivery = replace(whole, t_ns=t_ns, acked_ns=acked, covered_ns=acked, ack_t_ns=np.unique(acked))
    delivery = replace(delivery, prompt=_delivery._prompt(acked, acked))
    (only,) = stretches(delivery)
    assert bottleneck._most_carried(delivery, only) == pytest.approx(OCTETS * 8 / 0.01)


def test_a_rate_that_is_only_bounded_leaves_a_finite_limit_of_the_queue() -> None:
    bounded = bottleneck.Rate(1e6, 1e6, float("inf"), 0, known=False, steady=False, states=((0, 1, 1e6),))
    assert bounded.half_share == 1.0
    assert replace(bounded, low=0.9e6, high=1.1e6, known=True).half_share == pytest.approx(0.1)


def test_the_limit_of_a_queue_lies_between_the_fullest_that_took_and_the_emptiest_that_did_not() -> None:
    level = np.repeat(np.arange(1, 13) - 0.5, 10)
    found = ceiling(level, level > 8, np.zeros(len(level)), np.ones(len(level), dtype=np.bool_))
    assert found is not None
    assert (found.low, found.refused) == (7.5, 8.5)
    assert found.interval(0.0) == (7.0, 9.0)
    low, high = found.interval(0.1)
    assert (low, high) == pytest.approx((7.0 - 0.1 * found.limit, 9.0 + 0.1 * found.limit))
    exact = Ceiling(limit=8.0, low=8.0, refused=8.0, high=8.5, losses_above=9, packets_above=9, gain=30.0)
    assert exact.interval(0.0) == (7.5, 8.5)


def test_the_interval_of_a_limit_holds_the_levels_that_contradict_it() -> None:
    # The limit is 10. The first levels are two packets too high, where the base was wrong.
    rng = np.random.default_rng(5)
    true = rng.uniform(0, 14, 3000)
    lost, early = true >= 10, np.arange(3000) < 1000
    level = np.where(early, true + 2, true)
    gap, everywhere = np.where(lost, 3.0, 0.0), np.ones(3000, dtype=np.bool_)
    found = ceiling(level, lost, gap, everywhere)
    assert found is not None
    low, high = found.interval(0.0)
    assert low <= 10 - 0.4
    assert high >= 11.5
    exact = ceiling(true, lost, gap, everywhere)
    assert exact is not None
    assert np.diff(exact.interval(0.0))[0] < 1.1


def test_one_wrong_gap_of_many_losses_does_not_widen_a_limit() -> None:
    level = np.concatenate((np.linspace(0, 12, 600), np.full(30, 3.0)))
    lost = (level > 10) | (np.arange(630) >= 600)
    # Thirty losses by the channel; one of their gaps seems to be missing.
    gap = np.where(np.arange(630) >= 600, -3.0, np.where(lost, 3.0, 0.0))
    gap[600] = 3.0
    found = ceiling(level, lost, gap, np.ones(630, dtype=np.bool_))
    assert found is not None
    assert found.interval(0.0)[0] > 9
