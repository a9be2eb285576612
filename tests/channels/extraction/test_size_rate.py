"""Bounds of a rate from packets of two sizes, one of them on the way at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import bottleneck
from hindflight.channels.extraction.delivery import Delivery, Handshake
from hindflight.channels.extraction.estimates import _rate
from hindflight.channels.extraction.link import of_delivery
from hindflight.channels.extraction.path_steps import stretches
from hindflight.channels.extraction.size_rate import with_sizes

MS = 1_000_000
BASE_NS, BPS = 30 * MS, 1e6
SMALL, LARGE = 500, 1500


def _alone(
    sizes: list[int], *, bps: list[float] | None = None, late_ns: dict[int, int] | None = None, every_ms: int = 50
) -> Delivery:
    """Packets each of which leaves `every_ms` after the one before over an idle link with this rate at each; `late_ns`
    is by how much a timer delays the ACKs of a size. Hosts take up to 30 us."""
    n, size = len(sizes), np.array(sizes)
    t = every_ms * MS * np.arange(n)
    hosts = 10_000 * (np.arange(n) % 4)
    late = np.array([(late_ns or {}).get(octets, 0) for octets in sizes])
    rates = np.full(n, BPS) if bps is None else np.array(bps)
    acked = t + BASE_NS + (size * 8e9 / rates).astype(np.int64) + hosts + late
    none = np.zeros(n, dtype=np.bool_)
    return Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t, size_bytes=size, seq=np.cumsum(size) - size,
        seq_end=np.cumsum(size), lost=none, acked_ns=acked, prompt=~none, undecided=none, covered_ns=acked,
        from_flow=~none, observed=~none, ack_t_ns=acked, ack_bytes=52,
        handshake=Handshake(BASE_NS + int(68 * 8e9 / BPS), 60, 60),
    )  # fmt: skip


def _with_sizes(delivery: Delivery) -> bottleneck.Rate:
    paths = stretches(delivery)
    assert bottleneck.rate(delivery, paths) is None
    return with_sizes(delivery, paths, bottleneck.rate_lower_bound(delivery, paths))


def test_two_sizes_that_wait_for_nothing_show_the_rate_and_the_delay() -> None:
    delivery = _alone([LARGE, LARGE, SMALL] * 60)
    rate = _with_sizes(delivery)
    assert rate.known
    assert rate.low < BPS < rate.high
    assert rate.bps == pytest.approx(BPS, rel=0.01)
    estimate = _rate(delivery, of_delivery(delivery))
    assert (estimate.value, estimate.known) == (rate.bps, True)
    assert of_delivery(delivery).base.spans[0][2] == pytest.approx(BASE_NS + 52 * 8e9 / BPS, abs=0.5 * MS)


def test_one_size_and_the_handshake_show_an_upper_bound() -> None:
    delivery = _alone([LARGE] * 180)
    rate, bound = _with_sizes(delivery), bottleneck.rate_lower_bound(delivery, stretches(delivery))
    assert not rate.known
    assert rate.low == rate.bps == bound.low
    assert BPS < rate.high < 1.02 * BPS
    estimate = _rate(delivery, of_delivery(delivery))
    assert (estimate.value, estimate.low, estimate.high) == (None, rate.low, rate.high)


def test_a_slow_handshake_allows_a_faster_link_and_a_slower_one_shows_nothing() -> None:
    delivery = _alone([LARGE] * 180)
    assert delivery.handshake is not None
    rtt_ns = delivery.handshake.rtt_ns
    slow = replace(delivery, handshake=replace(delivery.handshake, rtt_ns=rtt_ns + 4 * MS))
    assert _with_sizes(delivery).high < _with_sizes(slow).high < np.inf
    slower = replace(delivery, handshake=replace(delivery.handshake, rtt_ns=rtt_ns + 20 * MS))
    assert _with_sizes(slower).high == np.inf


def test_a_timer_that_delays_all_acks_of_one_size_is_no_serialisation() -> None:
    # RFC 9293 §3.8.6.3: a receiver may delay the ACK of a full-sized segment, and not that of a pushed one.
    late_ns = {LARGE: 40 * MS}
    assert _with_sizes(_alone([LARGE, LARGE, SMALL] * 60, late_ns=late_ns, every_ms=200)).high == np.inf
    assert _with_sizes(_alone([LARGE] * 60, late_ns=late_ns, every_ms=200)).high == np.inf


def test_a_link_that_changes_between_the_sizes_shows_no_rate() -> None:
    # Each size has its time, so that the later one is faster by its size and by the rate.
    sizes = [LARGE] * 200 + [LARGE, SMALL] * 100
    rate = _with_sizes(_alone(sizes, bps=[BPS] * 200 + [1.5 * BPS] * 200))
    assert (rate.known, rate.high) == (False, np.inf)
    assert _with_sizes(_alone(sizes)).known


def test_a_few_packets_at_long_intervals_show_nothing() -> None:
    assert _with_sizes(_alone([LARGE] * 8, every_ms=4000)).high == np.inf


def test_what_was_acknowledged_in_a_round_trip_may_be_a_packet_more_than_sizes_allow() -> None:
    delivery = _alone([LARGE, LARGE, SMALL] * 60)
    paths = stretches(delivery)
    bound = bottleneck.rate_lower_bound(delivery, paths)
    packet_bps = LARGE * 8e9 / paths[0].floor_ns
    assert with_sizes(delivery, paths, replace(bound, low=BPS + 0.9 * packet_bps)).known
    assert not with_sizes(delivery, paths, replace(bound, low=BPS + 1.1 * packet_bps)).known
