"""Losses at a queue that is full or nearly so: what it had room for in a row, it did not drop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import link as link_module
from hindflight.channels.extraction.attribution import (
    CHANNEL,
    LEVEL_NOISE_PKTS,
    QUEUE,
    Attribution,
    _noise_by_path,
    _noise_pkts,
    _served_in_a_row,
    verdicts,
)
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import AllDropped, of_delivery
from hindflight.channels.extraction.queue import Arrivals, Ceiling, replay
from tests.channels.extraction.test_outages import MS, _delivery

LIMIT = Ceiling(limit=8.0, low=7.9, refused=8.1, high=8.5, losses_above=9, packets_above=9, gain=30.0)


def _judged(lost: list[int], every_ms: float) -> Attribution:
    """One packet each `every_ms`, of 20 ms work. In the first half every other packet met a queue with room, a third of
    a packet below its limit, the others met a full one; in the second half the queue was nearly empty."""
    n = 600
    gone = [k for k in range(1, n // 2, 2) if k % 20 == 1 or k - 1 in lost] + lost
    delivery = _delivery(gone, every_ms=every_ms)
    link = of_delivery(delivery)
    level = np.where(np.arange(n) % 2, 8.5, 8.0 - 1 / 3)
    level[n // 2 :] = 1.0
    silent = np.full(n, np.nan)
    replayed = replace(
        link.replay, level=level, wait_ns=level * 1e6, entered=level <= 8, residual=silent, group=np.full(n, -1)
    )
    full = np.full(n, 20e6)
    return verdicts(
        delivery, replace(link, unshared=True, ceiling=LIMIT, replay=replayed, full_ns=full, bounded=np.zeros(n, bool))
    )


def test_a_full_queue_does_not_refuse_what_comes_while_it_serves() -> None:
    room = list(range(200, 216, 2))
    found = _judged(room, every_ms=10.0)
    assert not np.any(found.known[room] & (found.cause[room] == QUEUE))
    # What comes at once may have met a queue that was a little longer than modelled.
    burst = _judged(room, every_ms=1.0)
    assert (burst.cause[room] == QUEUE).all()
    assert burst.known[room].all()
    # One alone is an error of the level, as long as the channel loses little.
    single = _judged([200], every_ms=10.0)
    assert single.cause[200] == QUEUE
    assert single.cause[101] == QUEUE
    assert not np.any(single.cause == CHANNEL)


def _through_a_queue(burst: range) -> tuple[Delivery, list[int]]:
    """Packets through a queue of eight that is hardly ever less than full, and those that it dropped: one each 9.5 ms,
    of 10 ms work, and at times four at once. Behind it the channel loses `burst`."""
    work_ms, base_ms = 10.0, 100.0
    sent_ms = np.sort(np.concatenate((9.5 * np.arange(600), np.repeat(950.0 * np.arange(1, 6) + 1, 3))))
    busy_until_ms, dropped, left_ms = 0.0, list[int](), list[float]()
    for k, t_ms in enumerate(sent_ms.tolist()):
        if (busy_until_ms - t_ms) / work_ms > LIMIT.limit:
            dropped.append(k)
        else:
            busy_until_ms = max(busy_until_ms, t_ms) + work_ms
        left_ms.append(busy_until_ms)
    n, t_ns = len(sent_ms), (sent_ms * 1e6).astype(np.int64)
    lost = np.isin(np.arange(n), [*dropped, *burst])
    acked = np.where(lost, -1, ((np.array(left_ms) + base_ms) * 1e6).astype(np.int64))
    delivery = Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t_ns, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=lost, acked_ns=acked, prompt=~lost, undecided=np.zeros(n, dtype=np.bool_),
        covered_ns=acked, from_flow=np.ones(n, dtype=np.bool_), observed=np.ones(n, dtype=np.bool_),
        ack_t_ns=acked[~lost], ack_bytes=40, handshake=None,
    )  # fmt: skip
    return delivery, dropped


def test_what_a_simulated_queue_served_meanwhile_it_did_not_drop() -> None:
    _, at_any_time = _through_a_queue(range(0))
    first = next(k for k in range(400, 500) if not set(range(k, k + 8)) & set(at_any_time))
    burst = range(first, first + 8)
    delivery, dropped = _through_a_queue(burst)
    link = of_delivery(delivery)
    assert link.ceiling is not None
    assert link.ceiling.limit == pytest.approx(LIMIT.limit, abs=1.0)
    level = link.replay.level
    assert level[list(burst)].min() > link.ceiling.limit - 2, "nearly full"
    marked = np.flatnonzero(_served_in_a_row(delivery, link, link.ceiling.limit))
    assert marked.tolist() == list(burst)
    found = verdicts(delivery, link)
    assert (found.cause[dropped] == QUEUE).all()
    assert not np.any(found.known[burst] & (found.cause[burst] == QUEUE))


def test_levels_that_undecided_packets_make_do_not_show_how_exact_a_level_is() -> None:
    n = 600
    delivery = _delivery([101, 301], every_ms=10.0)
    link = of_delivery(delivery)
    level = np.where(np.arange(n) % 50, 2.0, 11.0)
    replayed = replace(link.replay, level=level, residual=np.zeros(n), group=np.full(n, -1))
    noise = []
    for exact in (level < 8, np.ones(n, bool)):
        dropped = replace(link.all_dropped, exact=exact)
        whole = replace(link, unshared=True, ceiling=LIMIT, replay=replayed, all_dropped=dropped)
        noise.append(_noise_pkts(delivery, whole, LEVEL_NOISE_PKTS))
    assert noise[0] == LEVEL_NOISE_PKTS
    assert noise[1] > 3


def test_levels_that_are_wrong_on_one_path_say_nothing_about_those_of_another() -> None:
    n = 600
    delivery = _delivery([101, 301], every_ms=10.0)
    link = of_delivery(delivery)
    level = np.where(np.arange(n) < n // 2, 8.5, 200.0)
    replayed = replace(link.replay, level=level)
    base = replace(link.base, spans=((0, n // 2, 100e6), (n // 2, n, 150e6)))
    dropped = replace(link.all_dropped, exact=np.ones(n, bool))
    whole = replace(link, unshared=True, ceiling=LIMIT, replay=replayed, base=base, all_dropped=dropped)
    noise = _noise_by_path(delivery, whole, LEVEL_NOISE_PKTS)
    assert noise[: n // 2].max() < 1
    assert noise[n // 2 :].min() > 1


def test_what_the_channel_lost_waited_in_the_queue_too() -> None:
    # Bursts of 14 packets, each served in 1 ms, at a queue that takes twelve; in three of four the channel loses three
    # behind the queue. No ACK is timed but those of the first packets, which meet an empty queue.
    bursts, of_burst = 60, np.tile(np.arange(14), 60)
    burst = np.repeat(np.arange(bursts), 14)
    channel = (burst % 4 != 0) & (of_burst >= 2) & (of_burst < 5)
    refused = of_burst > 11
    t = np.asarray(100.0 * MS * burst, dtype=np.float64)
    n, lost = len(t), channel | refused
    acked = np.where(lost, -1, t.astype(np.int64) + 50 * MS)
    none, ms = np.zeros(n, dtype=np.bool_), np.full(n, 1.0 * MS)
    delivery = Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t.astype(np.int64), size_bytes=np.full(n, 1500),
        seq=np.arange(n), seq_end=np.arange(n) + 1, lost=lost, acked_ns=acked, prompt=of_burst == 0, undecided=none,
        covered_ns=acked, from_flow=~none, observed=~none, ack_t_ns=np.unique(acked[acked >= 0]), ack_bytes=40,
        handshake=None,
    )  # fmt: skip
    departed = np.where(of_burst == 0, t + MS, np.nan)
    arrivals = Arrivals(t, ms, departed, lost, none, ms, 1.0 * MS, none, ms)
    dropped = AllDropped.of(arrivals, unshared=True)
    low = link_module._limit(delivery, dropped, none)
    assert low is not None
    assert low.limit < 10
    found, queue = link_module._with_what_entered(delivery, arrivals, dropped, low, none)
    assert found.limit == pytest.approx(11.75, abs=0.01)
    assert queue.level.tolist() == replay(arrivals, found.limit, unshared=True).level.tolist()
    # Where that does not explain the losses better, the limit stays.
    sure = replace(low, gain=1e6)
    found, queue = link_module._with_what_entered(delivery, arrivals, dropped, sure, none)
    assert found is sure
    assert queue.level.tolist() == replay(arrivals, sure.limit, unshared=True).level.tolist()
