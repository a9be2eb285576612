"""Where a full queue refuses packets at a higher level than before, the path or the queue has changed."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import limit_steps
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Bools, Delivery
from hindflight.channels.extraction.limit_steps import Moves, moves_of_limit
from hindflight.channels.extraction.link import Link, base_rtt_ns, of_delivery
from hindflight.channels.extraction.path_steps import Stretch
from tests.channels.extraction.packets import packets

MS = 1_000_000
PACKET, QUEUE = 10 * MS, 8


def _flow(path_ms: int, step_ms: int, seconds: int = 40, grown: int = 0) -> Delivery:
    """A flow whose window grows by a packet per round trip and is halved by a loss, through a queue of eight packets of
    10 ms. Half-way its path of `path_ms` becomes longer by `step_ms`, and the queue larger by `grown` packets. From
    then on it never runs empty."""
    sent, acked, acks, lost_ns = list[int](), list[int](), deque[tuple[int, bool]](), -1
    window, t, leaves, queue, half_ns = 4.0, 0, 0, deque[int](), seconds * 500 * MS
    while t < seconds * 1000 * MS:
        while len(acks) < int(window):
            while queue and queue[0] <= t:
                queue.popleft()
            # One packet is in service.
            refused = len(queue) > QUEUE + (grown if t >= half_ns else 0)
            arrives = leaves = leaves if refused else max(leaves, t) + PACKET
            if not refused:
                queue.append(leaves)
            base = path_ms * MS + (step_ms * MS if t >= half_ns else 0)
            sent.append(t)
            acked.append(-1 if refused else arrives + base)
            acks.append((arrives + base + (refused * PACKET), refused))
            t += MS // 10
        due, refused = acks.popleft()
        t = max(t, due)
        if refused and sent[-1] > lost_ns:
            window, lost_ns = max(window / 2, 7.0), t
        elif not refused:
            window += 1 / window
    return packets(np.array(sent), np.array(acked))


def _levels(delivery: Delivery, link: Link) -> list[float]:
    """The base round trips in ms of the levels that are known."""
    shown = zip(link.base.spans, link.base.error_ns, strict=True)
    return [base_rtt_ns(delivery, link, (first + after) // 2) / MS for (first, after, _), off in shown if off < MS]


@pytest.mark.parametrize(("path_ms", "step_ms"), [(57, 5), (58, 5)])
def test_a_busy_queue_that_refuses_later_shows_a_longer_path_and_the_acks_by_how_much(
    path_ms: int, step_ms: int
) -> None:
    # ACKs clock the packets, so that each finds the same part of one in service: 0.3 or 0.2, then 0.8 or 0.7. The
    # latter look like 0.3 or 0.2 of one more packet.
    delivery = _flow(path_ms, step_ms)
    link = of_delivery(delivery)
    assert _levels(delivery, link) == pytest.approx([path_ms, path_ms + step_ms], abs=0.5)
    (moved_ns,) = (delivery.t_ns[first] for first, _, _ in link.base.spans[1:])
    assert moved_ns == pytest.approx(20_000 * MS, abs=200 * MS)


def test_a_queue_that_refuses_at_one_level_shows_one_path() -> None:
    assert len(of_delivery(_flow(57, 0)).base.spans) == 1


@pytest.mark.parametrize("grown", [1, 3, -2])
def test_a_queue_that_becomes_larger_or_smaller_shows_no_other_path(grown: int) -> None:
    delivery = _flow(58, 0, grown=grown)
    link = of_delivery(delivery)
    assert [held for _, _, held in link.base.spans] == pytest.approx([58 * MS])
    assert link.base.error_ns == (0.0,)


N, SERVICE = 400, np.full(400, 10.0 * MS)
WHOLE = (Stretch(0, N, 110.0 * MS),)
ALL = np.ones(N, dtype=np.bool_)


def _busy(later_ms: float) -> Delivery:
    """A link that serves a packet in 10 ms and never runs empty. From packet 200 on, ACKs come later by `later_ms`.
    Every tenth packet is refused."""
    index = np.arange(N)
    refused = index % 10 == 9
    left = 10 * MS * (1 + np.cumsum(~refused))
    acked = left + 100 * MS + np.where(index >= 200, round(later_ms * MS), 0)
    return packets(np.maximum(0, left - 60 * MS), np.where(refused, -1, acked))


def _heights(moved_pkts: float) -> Floats:
    index = np.arange(N)
    return np.where(index % 10 == 9, 8.3, 7.3) + np.where(index >= 200, moved_pkts, 0.0)


def _moves(delivery: Delivery, level: Floats, paths: tuple[Stretch, ...] = WHOLE, usable: Bools = ALL) -> Moves:
    return moves_of_limit(delivery, paths, level, usable, (SERVICE, SERVICE))


NONE = Moves(WHOLE, (), ())


def test_the_acks_of_a_busy_link_show_by_how_much_the_path_is_longer() -> None:
    found = _moves(_busy(13), _heights(1.0))
    assert [(part.first, part.fell_ns, part.fell_off_ns) for part in found.paths[1:]] == [(200, -13 * MS, 0.0)]
    assert found.unclear == ()


def test_acks_that_keep_time_show_a_larger_queue() -> None:
    assert _moves(_busy(0), _heights(1.0)) == NONE


def test_acks_that_show_neither_leave_it_unclear() -> None:
    for delivery in (_busy(23), _paused(13)):
        found = _moves(delivery, _heights(1.0))
        assert found.paths == WHOLE
        ((first, after, off_ns),) = found.unclear
        assert 190 <= first <= 200
        assert (after, off_ns) == (N, 20 * MS)


def _paused(later_ms: float) -> Delivery:
    """The same where the sender pauses before packet 200, so that the link runs empty."""
    delivery = _busy(later_ms)
    later = np.where(np.arange(N) >= 199, 80 * MS, 0)
    return packets(delivery.t_ns + later, np.where(delivery.lost, -1, delivery.acked_ns + later))


def test_two_places_where_acks_come_later_leave_it_unclear() -> None:
    delivery = _busy(13)
    again = np.where(np.arange(N) >= 190, 13 * MS, 0)
    level = np.where((np.arange(N) >= 175) & (np.arange(N) < 215), 5.0, _heights(1.0))
    both = packets(delivery.t_ns, np.where(delivery.lost, -1, delivery.acked_ns + again))
    assert [part.first for part in _moves(delivery, level).paths] == [0, 200]
    assert _moves(both, level).paths == WHOLE


def test_what_is_unclear_is_known_less_exactly() -> None:
    base = of_delivery(_flow(57, 0)).base
    assert base.less_exact([]) == base
    n = len(base.per_packet_ns)
    less = base.less_exact([(100, n, 20.0 * MS)])
    assert [(first, after) for first, after, _ in less.spans] == [(0, 100), (100, n)]
    assert less.error_ns == (base.error_ns[0], 20.0 * MS)
    assert less.least_ns == base.least_ns * 2
    assert less.changes == (), "the delay is not said to change there"
    levels = (0, 100, 1.0), (100, n, 2.0)
    two = replace(base, spans=levels, error_ns=(0.0, 0.0), least_ns=(1.0, 2.0), shown_by=(0, 100))
    assert two.less_exact([(50, 100, 20.0 * MS)]).changes == (100,), "a change where such a part ends is one"


def test_a_few_levels_that_are_wrong_do_not_show_another_path() -> None:
    level = _heights(0.0)
    level[[220, 240, 260, 280]] = 8.9
    assert _moves(_busy(13), level) == NONE
    assert _moves(_busy(13), _heights(0.4)) == NONE
    assert _moves(_busy(13), _heights(-1.0)) == NONE
    late = np.where(np.arange(N) >= 390, 1.0, 0.0)
    assert _moves(_busy(13), _heights(0.0) + late) == NONE
    assert _moves(_busy(13), _heights(1.0), usable=np.arange(N) < 200) == NONE


def test_a_step_needs_one_rate_and_one_size() -> None:
    smaller = np.where(np.arange(N) >= 200, 750, 1500)
    delivery = replace(_busy(13), size_bytes=smaller)
    assert _moves(delivery, _heights(1.0)) == NONE
    faster = np.where(np.arange(N) >= 200, 9.0 * MS, 10.0 * MS)
    assert moves_of_limit(_busy(13), WHOLE, _heights(1.0), ALL, (faster, faster)) == NONE


def test_a_step_of_less_than_a_path_jumps_is_none() -> None:
    tenth = SERVICE / 10
    assert moves_of_limit(_busy(13), WHOLE, _heights(1.0), ALL, (tenth, tenth)) == NONE


def test_each_path_has_its_own_limit() -> None:
    halves = (Stretch(0, 200, 110.0 * MS), Stretch(200, N, 110.0 * MS))
    assert _moves(_busy(13), _heights(1.0), halves) == Moves(halves, (), ())


def test_the_highest_of_many_limits_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_steps, "MAX_CELLS", 1)
    spread = np.where(np.arange(N) % 50 == 49, np.arange(N) / 200, 0.0)
    found = _moves(_busy(13), _heights(1.0) + 6 - spread)
    assert [part.first for part in found.paths] == [0, 200]
