"""Times at which data passed faster than the rate that was measured at others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindflight.channels.extraction import attribution, unmeasured_rate
from hindflight.channels.extraction import delivery as _delivery
from hindflight.channels.extraction.busy_spans import RATE_TOLERANCE
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import Link, of_delivery
from hindflight.channels.extraction.link_stretches import link_stretches

MS = 1_000_000
BASE_NS = 40 * MS
OCTETS = 1500


def _flow(sent_ms: Sequence[float], services_ms: Sequence[float]) -> Delivery:
    """Packets sent at these times, each served for its time behind those before it, and acknowledged one by one."""
    n, busy = len(sent_ms), 0.0
    t = (np.array(sent_ms) * MS).astype(np.int64)
    left = np.zeros(n, dtype=np.int64)
    for k, service in enumerate(services_ms):
        busy = max(busy, float(t[k])) + service * MS
        left[k] = busy
    acked = left + BASE_NS
    return Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t, size_bytes=np.full(n, OCTETS), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=np.zeros(n, dtype=np.bool_), acked_ns=acked,
        prompt=_delivery._prompt(acked, acked), undecided=np.zeros(n, dtype=np.bool_), covered_ns=acked,
        from_flow=np.ones(n, dtype=np.bool_), observed=np.ones(n, dtype=np.bool_), ack_t_ns=np.unique(acked),
        ack_bytes=40, handshake=None,
    )  # fmt: skip


def _pairs(start_ms: float, number: int) -> list[float]:
    """Two packets every 50 ms: what an application writes, which fills no queue."""
    return [start_ms + 50.0 * (k // 2) for k in range(2 * number)]


def _windows(start_ms: float, number: int) -> list[float]:
    """Twelve packets every 100 ms, which wait for each other at 2 and at 4 ms each."""
    return [start_ms + 100.0 * (k // 12) for k in range(12 * number)]


@pytest.mark.parametrize("slow_first", [False, True])
def test_data_that_passed_faster_than_the_measured_rate_has_a_lower_bound_of_it(slow_first: bool) -> None:
    measured, unmeasured = _windows(0.0 if slow_first else 10_000.0, 100), _pairs(11_000.0 if slow_first else 0.0, 180)
    slow, fast = [4.0] * len(measured), [2.0] * len(unmeasured)
    delivery = _flow(*((measured + unmeasured, slow + fast) if slow_first else (unmeasured + measured, fast + slow)))
    link = of_delivery(delivery)
    (bound,) = link.rate.bounds
    assert [start == bound for start, _, _ in link.rate.states] == [not slow_first, slow_first]
    rates = {start == bound: bps for start, _, bps in link.rate.states}
    assert rates[False] == pytest.approx(3e6, rel=0.01)
    # As low as the data admit: only the 8 % are left that a measured rate may be off by.
    assert np.exp(-RATE_TOLERANCE) * 6e6 <= rates[True] <= 6e6
    for stretch in link_stretches(delivery, link, attribution.verdicts(delivery, link), 0):
        rtt = stretch.estimate("base_rtt_ns")
        assert rtt.value == pytest.approx(BASE_NS, rel=0.02)
        assert rtt.low is not None
        assert rtt.high is not None
        assert rtt.low <= BASE_NS <= rtt.high


def test_a_train_whose_first_packet_is_not_timed_shows_a_bound_from_its_first_timed_one_on() -> None:
    # Eight packets every 50 ms, so that each of the last six of them waited for a timed one.
    sent = [12_000.0 + 50.0 * (k // 8) for k in range(8 * 60)]
    measured = _windows(0.0, 100)
    delivery = _flow(measured + sent, [4.0] * len(measured) + [2.0] * len(sent))
    firsts = len(measured) + np.arange(0, len(sent), 8)
    delivery.prompt[firsts] = False
    rate = of_delivery(delivery).rate
    (bound,) = rate.bounds
    (bps,) = (bps for start, _, bps in rate.states if start == bound)
    # The first timed one counts as if it had waited for none, so a packet in eight is missing, besides one step.
    assert np.exp(-2 * RATE_TOLERANCE) * 7 / 8 * 6e6 <= bps <= 6e6


def test_a_rate_does_not_rise_and_fall_again_between_two_measurements_of_it() -> None:
    services = [4.0] * 2400
    services[1206:1209] = [2.0] * 3
    assert not of_delivery(_flow(_windows(0.0, 200), services)).rate.bounds


def _link_of_trains(trains: Sequence[Sequence[float]], steps: int) -> Link:
    """The link of a flow at 4 ms each, then trains with other serialisation times, found in at most `steps` steps."""
    measured = _windows(0.0, 20)
    sent = measured + [2500.0 + 100.0 * k for k, train in enumerate(trains) for _ in train]
    delivery = _flow(sent, [4.0] * len(measured) + [service for train in trains for service in train])
    calls, too_early = 0, unmeasured_rate._too_early

    def counted(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        assert calls <= steps
        return too_early(*args)

    with patch.object(unmeasured_rate, "_too_early", counted):
        return of_delivery(delivery)


def test_a_train_that_becomes_faster_has_the_rate_that_its_packets_took_together() -> None:
    train = [3.6] * 3 + [0.01] * 5
    link = _link_of_trains([train] * 10, 100)
    bounds = [bps for start, _, bps in link.rate.states if start in link.rate.bounds]
    assert bounds
    assert max(bounds) <= 8 * OCTETS * len(train) / (sum(train) / 1000)


_SLOW, _FAST = st.floats(3.0, 4.0), st.sampled_from([1e-6, 0.0005, 0.05, 0.4, 2.0])
_TRAIN = st.tuples(st.lists(_SLOW, min_size=1, max_size=6), st.lists(_FAST, min_size=1, max_size=6))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(_TRAIN, min_size=10, max_size=20))
def test_the_bound_is_found_in_few_steps_and_no_higher_than_acks_show(
    trains: list[tuple[list[float], list[float]]],
) -> None:
    # From 3 Mbit/s to a packet per nanosecond, the clock's resolution, are 190 steps of 8 %.
    link = _link_of_trains([slow + fast for slow, fast in trains], 190 * len(trains))
    assert max(bps for _, _, bps in link.rate.states) <= 8e9 * OCTETS


@pytest.mark.parametrize(
    ("states", "edges_ns", "may"),
    [((1, 1), [], False), ((1, 1), [10], False), ((1, 1), [10, 90], True), ((1, 2), [], True), ((None, 1), [], True)],
)
def test_a_rate_changes_and_changes_back_with_two_changes_of_the_link(
    states: tuple[int | None, int | None], edges_ns: list[int], may: bool
) -> None:
    gap = unmeasured_rate._Gap(0, 100, states, np.array([50, 60]))
    assert unmeasured_rate._may_differ(gap, np.array(edges_ns, dtype=np.int64)) is may


def test_losses_at_a_rate_that_is_higher_than_known_are_not_called_the_queues() -> None:
    measured, unmeasured, burst = _windows(0.0, 100), _pairs(11_000.0, 180), [15_525.0] * 12
    sent = np.array(measured + sorted(unmeasured + burst))
    services = np.where(sent < 10_500.0, 4.0, 2.0)
    lost = np.zeros(len(sent), dtype=np.bool_)
    lost[11:1200:12] = True  # The last of each window: the queue holds ten packets, with one in service.
    last = int(np.flatnonzero(sent == burst[0])[-1])
    lost[last] = True
    delivery = _flow(sent.tolist(), np.where(lost, 0.0, services).tolist())
    delivery.lost[lost], delivery.acked_ns[lost], delivery.prompt[lost] = True, -1, False
    verdicts = attribution.verdicts(delivery, link := of_delivery(delivery))
    assert (verdicts.known & (verdicts.cause == attribution.QUEUE))[11:1188:12].all()
    assert link.bounded[last]
    assert not verdicts.known[last]
