"""Paths that become shorter behind a queue that never empties, in a simulated FIFO, and queues that are no path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.path_steps import stretches

MS = 1_000_000


def _delivery(sent_ms: Sequence[float], trips_ms: Sequence[float]) -> Delivery:
    """Packets of 1500 octets; a round trip below 0 is that of a lost one."""
    n = len(sent_ms)
    t, trips = (np.array(sent_ms) * MS).astype(np.int64), np.array(trips_ms)
    lost = trips < 0
    acked = np.where(lost, -1, t + (trips * MS).astype(np.int64))
    return Delivery(
        direction="a2b", record=np.arange(n), t_ns=t, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n), lost=lost, acked_ns=acked, prompt=~lost, undecided=np.zeros(n, dtype=np.bool_),
        covered_ns=acked, from_flow=np.ones(n, dtype=np.bool_), observed=np.ones(n, dtype=np.bool_),
        ack_t_ns=np.sort(acked[~lost]), ack_bytes=40, handshake=None,
    )  # fmt: skip


def _fifo(
    sent_ms: Sequence[float], service_ms: float, limit: int, way_ms: Callable[[float], float], apart_ms: float = 0.0
) -> Delivery:
    """Send packets over a FIFO of `limit` waiting packets and a path that is `way_ms` long in either direction at the
    time at which a packet or an ACK leaves; none overtakes another, and ACKs come `apart_ms` one after the other."""
    trips: list[float] = []
    free = arrived = acked = 0.0
    for t in sent_ms:
        if free - t > (limit + 1) * service_ms:
            trips.append(-1.0)
            continue
        free = max(free, t) + service_ms
        arrived = max(arrived, free + way_ms(free))
        acked = max(acked + apart_ms, arrived + way_ms(arrived))
        trips.append(acked - t)
    return _delivery(sent_ms, trips)


def test_acks_that_come_at_once_show_a_shorter_path() -> None:
    # 60 packets wait all the time; what is sent when the path becomes shorter waits for what is still on the way.
    sent = [0.0] * 60 + [3.0 * i for i in range(1, 900)]
    shorter = _fifo(sent, 3.0, 99, lambda t: 150.0 if t < 1500.0 else 110.0)
    assert [round(stretch.floor_ns / MS) for stretch in stretches(shorter)] == [303, 400]
    assert len(stretches(_fifo(sent, 3.0, 99, lambda _: 150.0))) == 1


@pytest.mark.parametrize(("gap_ms", "begun"), [(4.0, 2), (3.0, 1)])
def test_acks_that_come_at_once_for_long_show_a_shorter_path_if_packets_wait_behind(gap_ms: float, begun: int) -> None:
    # Some 80 ACKs come within 16 ms. Behind them the queue drains, or it does not: then a faster link may have done so.
    sent = [0.0] * 60 + [3.0 * i for i in range(1, 500)] + [1500.0 + gap_ms * i for i in range(400)]
    shorter = _fifo(sent, 3.0, 99, lambda t: 300.0 if t < 1500.0 else 20.0, apart_ms=0.2)
    assert len(stretches(shorter)) == begun


def test_acks_that_came_late_before_they_came_at_once_show_none() -> None:
    # The receiver's host stops for 90 ms, twice.
    flow = _fifo([3.1 * i for i in range(900)], 3.0, 99, lambda _: 150.0)
    stopped = flow.acked_ns.copy()
    for at in (1500 * MS, 2100 * MS):
        stopped[(stopped > at) & (stopped < at + 90 * MS)] = at + 90 * MS
    assert len(stretches(replace(flow, acked_ns=stopped))) == 1


def test_a_full_queue_that_drops_one_packet_and_drains_is_one_path() -> None:
    # Of 28 ms each, one every 22 ms until the full queue drops one, then one every 38 ms.
    sent, trips = [0.0], [38.0]
    for _ in range(10):
        for gap, grows, count in ((22.0, 6.0, 37), (22.0, -1.0, 1), (38.0, -32.0, 1), (38.0, -10.0, 19)):
            for _ in range(count):
                sent.append(sent[-1] + gap)
                trips.append(-1.0 if grows == -1.0 else max(38.0, max(trips[-2:]) + grows))
    assert len(stretches(_delivery(sent, trips))) == 1


@pytest.mark.parametrize("gap_ms", [40.0, 1.5])
def test_a_queue_that_ran_empty_shows_a_shorter_path_later(gap_ms: float) -> None:
    # The path becomes longer, and what comes first over it waits: only the ACKs that pause later show an empty queue.
    first = [10.0 * i for i in range(40)]
    sent, trips = list(first), [50.0] * 40
    for train in range(8):
        begin = 400.0 + 12 * (1.5 if gap_ms < 2 else 22.0) * train
        sent += [begin] * 12
        trips += [250.0 + 1.5 * i for i in range(12)]
    sent += [sent[-1] + 300.0 + 10.0 * i for i in range(60)]
    trips += [120.0] * 60
    floors = [stretch.floor_ns / MS for stretch in stretches(_delivery(sent, trips))]
    assert floors == ([50.0, 250.0, 120.0] if gap_ms > 2 else [50.0, 120.0])


@pytest.mark.parametrize(("small_ms", "begins"), [(43.0, [0, 41]), (56.0, [0]), (60.0, [0])])
def test_a_smaller_packet_may_show_a_shorter_path_with_one_other(small_ms: float, begins: list[int]) -> None:
    # The path is shorter and slower, so that a queue grows at once. 4.2 ms is what the small packet saves.
    sent = [20.0 * i for i in range(140)]
    trips = [60.0] * 40 + [small_ms, 27.0] + [58.0 + 8 * i for i in range(98)]
    flow = _delivery(sent, trips)
    sizes = flow.size_bytes.copy()
    sizes[40] = 1184
    assert [stretch.first for stretch in stretches(replace(flow, size_bytes=sizes))] == begins
