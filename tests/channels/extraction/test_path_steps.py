"""Stretches of one path in constructed round trips: handovers up and down, queues that are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hindflight.channels.extraction.base_rtt import stretch_base
from hindflight.channels.extraction.bottleneck import Served
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.path_steps import stretches

MS = 1_000_000


def _delivery(sent_ms: list[float], trips_ms: list[float]) -> Delivery:
    n = len(sent_ms)
    t = (np.array(sent_ms) * MS).astype(np.int64)
    no, yes = np.zeros(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    acked = t + (np.array(trips_ms) * MS).astype(np.int64)
    return Delivery(
        direction="a2b", record=np.arange(n), t_ns=t, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n), lost=no, acked_ns=acked, prompt=yes, undecided=no, covered_ns=acked, from_flow=yes,
        observed=yes, ack_t_ns=acked, ack_bytes=40, handshake=None,
    )  # fmt: skip


def _floors(delivery: Delivery) -> list[tuple[int, float]]:
    return [(stretch.first, stretch.floor_ns / MS) for stretch in stretches(delivery)]


def test_handovers_up_and_down_begin_new_stretches() -> None:
    sent = [10.0 * i for i in range(300)]
    assert _floors(_delivery(sent, [50.0] * 100 + [250.0] * 100 + [30.0] * 100)) == [
        (0, 50.0),
        (100, 250.0),
        (200, 30.0),
    ]


def test_a_queue_that_fills_and_drains_is_one_path() -> None:
    # Ten milliseconds of service each, sent every eight: the wait grows by two a packet, then falls.
    filling = [50.0 + 2 * i for i in range(100)]
    draining = [248.0 - 2 * i for i in range(100)]
    sent = [8.0 * i for i in range(100)] + [800.0 + 12 * i for i in range(100)]
    assert len(_floors(_delivery(sent, filling + draining))) == 1


def test_two_round_trips_below_all_before_show_a_shorter_path() -> None:
    # Behind the two 39 packets wait that no ACK times, and behind those the ones that follow, for 10 ms each.
    sent = [600.0 * i for i in range(20)] + [12_000.0, 12_010.0] + [12_010.1 + 0.1 * i for i in range(39)]
    sent += [12_020.0 + 10 * i for i in range(100)]
    for trips, begins in (((250.0, 250.0), [0, 20]), ((250.0, 550.0), [0])):
        whole = _delivery(sent, [550.0] * 20 + [*trips] + [0.0] * 39 + [630.0] * 100)
        timed = whole.acked_ns > whole.t_ns
        waiting = replace(whole, prompt=timed, acked_ns=np.where(timed, whole.acked_ns, -1))
        assert [stretch.first for stretch in stretches(waiting)] == begins


def test_what_a_pause_drains_is_no_handover() -> None:
    sent = [8.0 * i for i in range(50)] + [2000.0 + 8 * i for i in range(50)]
    trips = [50.0 + 2 * i for i in range(50)] * 2
    assert len(_floors(_delivery(sent, trips))) == 1


def test_a_longer_path_after_a_pause_is_one() -> None:
    sent = [10.0 * i for i in range(50)] + [2000.0 + 10 * i for i in range(50)]
    assert _floors(_delivery(sent, [50.0] * 50 + [90.0] * 50)) == [(0, 50.0), (50, 90.0)]


def test_a_path_that_got_shorter_in_an_interruption_is_another_one() -> None:
    # A queue that always holds 150 ms or more: after the break round trips could be those of a shorter queue.
    sent = [10.0 * i for i in range(220)] + [2300.0 + 10 * i for i in range(100)]
    whole = _delivery(sent, [100.0] + [250.0] * 219 + [150.0] * 100)
    lost = np.zeros(320, dtype=np.bool_)
    lost[100:220] = True
    broken = replace(
        whole, lost=lost, prompt=~lost, acked_ns=np.where(lost, -1, whole.acked_ns), ack_t_ns=whole.acked_ns[~lost]
    )
    assert _floors(broken) == [(0, 100.0), (220, 150.0)]
    assert _floors(whole) == [(0, 100.0)]
    # Without SACK it may not be known of every other packet of the break whether it arrived.
    undecided = lost & (np.arange(320) % 2 == 1)
    unclear = replace(broken, lost=lost & ~undecided, undecided=undecided)
    assert _floors(unclear) == [(0, 100.0), (220, 150.0)]
    # An ACK that came when they were due shows a link that passes packets, such as one whose queue is full.
    answered = replace(unclear, ack_t_ns=np.sort(np.append(unclear.ack_t_ns, 1300 * MS)))
    assert _floors(answered) == [(0, 100.0)]


SENT = [0.0] + [30.0 + 10 * i for i in range(199)] + [2400.0] + [2440.0 + 10 * i for i in range(99)]
"""Times of packets of which an interruption may lose the last of the first 200."""


def _interrupted(trips_ms: list[float]) -> Delivery:
    whole = _delivery(SENT, trips_ms)
    lost = np.isin(np.arange(300), range(180, 200))
    return replace(
        whole, lost=lost, prompt=~lost, acked_ns=np.where(lost, -1, whole.acked_ns), ack_t_ns=whole.acked_ns[~lost]
    )


def _assert_begins(delivery: Delivery, begins: list[int]) -> None:
    """Compare where paths begin, in round trips and in those without serialisation."""
    assert [first for first, _ in _floors(delivery)] == begins
    base = stretch_base(delivery, stretches(delivery), _unqueued(300))
    assert [first for first, _, _ in base.spans] == begins


def test_a_small_step_of_the_delay_shows_at_an_interruption_only() -> None:
    for step, interrupted, begins in ((3.0, True, [0, 200]), (0.7, True, [0]), (3.0, False, [0])):
        trips = [20.0] * 200 + [20.0 - step] * 100
        _assert_begins(_interrupted(trips) if interrupted else _delivery(SENT, trips), begins)


def test_at_an_interruption_a_step_is_larger_than_the_lowest_round_trips_scatter() -> None:
    # The lowest five scatter by 1.6 ms on both sides.
    spread = [0.4 * (k % 40) for k in range(300)]
    for step, begins in ((3.8, [0, 200]), (3.0, [0])):
        trips = [20.0 + (0.0 if k < 200 else -step) + over for k, over in enumerate(spread)]
        _assert_begins(_interrupted(trips), begins)
    # 5 ms are more than round trips jitter by, whatever these scatter by.
    wide = [20.0 + (0.0 if k < 200 else -5.0) + 3 * over for k, over in enumerate(spread)]
    _assert_begins(_interrupted(wide), [0, 200])


def test_at_an_interruption_a_small_step_counts_between_empty_queues_only() -> None:
    flow = _interrupted([20.0] * 200 + [17.0] * 100)
    _assert_begins(flow, [0, 200])
    # What waits in the queue of a broken link is there when the link is up again: without the pause behind packet 200
    # none was sent when the one before had been acknowledged.
    waiting = np.where(np.arange(300) == 200, 10 * MS, 0) + np.where(np.arange(300) > 200, -20 * MS, 0)
    queued = replace(
        flow, t_ns=flow.t_ns + waiting, acked_ns=flow.acked_ns + waiting * (flow.acked_ns >= 0),
        covered_ns=flow.covered_ns + waiting, ack_t_ns=np.sort(flow.ack_t_ns + waiting[~flow.lost]),
    )  # fmt: skip
    _assert_begins(queued, [0])
    # Where it was, and took longer than all that waited, the minimum may be that of waiting packets.
    late = _interrupted([34.0] + [20.0] * 199 + [17.0] * 100)
    _assert_begins(late, [0])


def _unqueued(n: int) -> Served:
    """Packets of 1 ms work each."""
    service = np.full(n, 1.0 * MS)
    return Served(service, service, service, np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_))


def test_packets_that_met_both_paths_give_no_minimum() -> None:
    # The first packets of the longer path were on their way when it came: they met half of it.
    sent = [10.0 * i for i in range(200)]
    trips = [50.0] * 100 + [150.0] * 5 + [250.0] * 95
    assert _floors(_delivery(sent, trips)) == [(0, 50.0), (100, 250.0)]


def test_a_step_shows_although_as_much_work_entered_the_queue() -> None:
    # Two packets each 20 ms, 10 ms of service each: the wait is constant, and the path grows by 15 ms at packet 200.
    sent = [20.0 * (i // 2) for i in range(400)]
    trips = [(75.0 if i >= 200 else 60.0) + 10.0 * (i % 2) for i in range(400)]
    assert len(_floors(_delivery(sent, trips))) == 2
    # A delayed ACK at the end of a burst, behind which ACKs seem to come at once, is no step.
    late = [60.0 + 10.0 * (i % 2) + (40.0 if i == 201 else 0.0) for i in range(400)]
    assert _floors(_delivery(sent, late)) == [(0, 60.0)]


def test_a_shorter_path_shows_where_what_was_sent_meanwhile_has_no_round_trip() -> None:
    # While the path got shorter by 60 ms, ten packets were delivered whose round trips are ambiguous, with 10 ms of
    # work each: over 100 ms the queue could have drained by none of it.
    n = 200
    sent = [10.0 * i for i in range(n)]
    whole = _delivery(sent, [100.0] + [200.0] * 104 + [140.0] * 95)
    unclear = np.isin(np.arange(n), range(100, 110))
    acked = np.where(unclear, -1, whole.acked_ns)
    delivery = replace(whole, acked_ns=acked, prompt=~unclear, ack_t_ns=np.sort(acked[~unclear]))
    # The second stretch begins with the first packet that shows it.
    assert _floors(delivery) == [(0, 100.0), (110, 140.0)]
    # Had they been lost one by one, they would have waited in the queue, or it was full all the time.
    lost = replace(delivery, lost=unclear)
    assert _floors(lost) == [(0, 100.0), (110, 140.0)]
    # Had it dropped the ten at once, it may have drained since.
    together = np.where(unclear, lost.t_ns[99] + 1, lost.t_ns)
    assert len(_floors(replace(lost, t_ns=together))) == 1


def test_one_delayed_ack_before_a_draining_queue_is_no_shorter_path() -> None:
    # The queue drains by 5 ms in a pause; the ACK before it came 40 ms late.
    sent = [10.0 * i for i in range(100)] + [1010.0 + 10 * i for i in range(100)]
    trips = [30.0] + [60.0] * 98 + [100.0] + [50.0] * 100
    assert len(_floors(_delivery(sent, trips))) == 1


def test_delayed_acks_at_both_edges_of_a_clock_make_no_longer_path() -> None:
    # 10 ms of work each. Packets 150 to 153 leave at once; the ACKs of 141 and of 150 come 40 ms late.
    sent = [10.0 * i for i in range(150)] + [1490.0] * 4 + [1500.0 + 10 * i for i in range(100)]
    trips = [30.0] + [60.0] * 140 + [100.0] + [60.0] * 8 + [110.0, 80.0, 90.0, 100.0] + [100.0] * 100
    assert len(_floors(_delivery(sent, trips))) == 1


def test_a_path_that_got_shorter_behind_a_queue_that_never_emptied_is_another_one() -> None:
    # Over 100 ms wait 100 ms. Behind the losses 100 to 109 the path is shorter by 60 ms, and the queue drains to 60 ms.
    n = 300
    trips = [100.0] + [200.0] * 99 + [0.0] * 10 + [140.0] * 90 + [139.0 - k for k in range(40)] + [100.0] * 60
    whole, lost = _delivery([10.0 * i for i in range(n)], trips), np.isin(np.arange(n), range(100, 110))
    acked = np.where(lost, -1, whole.acked_ns)
    moved = replace(whole, lost=lost, prompt=~lost, acked_ns=acked, ack_t_ns=np.sort(acked[~lost]))
    paths = stretches(moved)
    assert [path.first for path in paths] == [0, 110]
    # At 9 ms a packet or more, as ACKs come, the queue drained by 20 ms at most since packet 98: by 10 ms until it was
    # full again, and by 1 ms for each packet since.
    assert paths[1].fell_ns == 40.0 * MS
    # The minimum round trips are the same, so that of the second is none of an empty queue, whatever the model says.
    base = stretch_base(moved, paths, _unqueued(n))
    assert base.emptied == (True, False)
    assert base.least_ns[1] == base.spans[0][2] - 40.0 * MS
    # Where nothing is lost, round trips may jitter.
    kept = np.flatnonzero(~lost)
    steady = _delivery((moved.t_ns[kept] / MS).tolist(), [trips[k] for k in kept])
    assert [path.first for path in stretches(steady)] == [0]


def test_a_queue_that_may_have_been_served_more_slowly_in_a_break_may_never_have_run_empty() -> None:
    flow = _interrupted([20.0] * 200 + [40.0] * 100)
    served, paths = _unqueued(300), stretches(flow)
    assert stretch_base(flow, paths, served).emptied == (True, True)
    # At 40 ms each what the break lost, and all behind it, waits for what came before until the end.
    behind = replace(served, most_ns=np.where(np.arange(300) < 180, 1.0 * MS, 40.0 * MS))
    assert stretch_base(flow, paths, behind).emptied == (True, False)
