"""Where a full queue refuses packets at another level than before, the path has changed."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import limit_steps
from hindflight.channels.extraction.base_rtt import stretch_base
from hindflight.channels.extraction.bottleneck import Served
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.limit_steps import split_where_limit_moves
from hindflight.channels.extraction.link import Link, base_rtt_ns, of_delivery
from hindflight.channels.extraction.path_steps import Stretch

MS = 1_000_000
PACKET, QUEUE = 10 * MS, 8


def _flow(path_ms: int, step_ms: int, seconds: int = 40) -> Delivery:
    """A flow whose window grows by a packet per round trip and is halved by a loss, through a queue of eight packets of
    10 ms; its path of `path_ms` is longer by `step_ms` half-way. From then on the queue never runs empty."""
    sent, acked, acks, lost_ns = list[int](), list[int](), deque[tuple[int, bool]](), -1
    window, t, leaves, queue = 4.0, 0, 0, deque[int]()
    while t < seconds * 1000 * MS:
        while len(acks) < int(window):
            while queue and queue[0] <= t:
                queue.popleft()
            # One packet is in service.
            refused = len(queue) > QUEUE
            arrives = leaves = leaves if refused else max(leaves, t) + PACKET
            if not refused:
                queue.append(leaves)
            base = path_ms * MS + (step_ms * MS if t >= seconds * 500 * MS else 0)
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
    return _delivery(np.array(sent), np.array(acked))


def _delivery(t: np.ndarray, acked: np.ndarray) -> Delivery:
    n, lost = len(t), acked < 0
    yes = np.ones(n, dtype=np.bool_)
    return Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=lost, acked_ns=acked, prompt=~lost, undecided=~yes, covered_ns=acked,
        from_flow=yes, observed=yes, ack_t_ns=np.sort(acked[~lost]), ack_bytes=40, handshake=None,
    )  # fmt: skip


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
    return _delivery(np.maximum(0, left - 60 * MS), np.where(refused, -1, acked))


def _heights(moved_pkts: float) -> Floats:
    index = np.arange(N)
    return np.where(index % 10 == 9, 8.3, 7.3) + np.where(index >= 200, moved_pkts, 0.0)


def test_the_acks_of_a_busy_link_show_by_how_much_the_path_is_longer() -> None:
    _, longer = split_where_limit_moves(_busy(13), WHOLE, _heights(1.0), ALL, SERVICE)
    assert (longer.first, longer.fell_ns, longer.fell_off_ns, longer.by_limit) == (200, -13 * MS, 0.0, False)


@pytest.mark.parametrize("later_ms", [0.0, 23.0])
def test_without_such_acks_the_limit_shows_it_to_a_packet(later_ms: float) -> None:
    delivery = _busy(later_ms)
    parts = split_where_limit_moves(delivery, WHOLE, _heights(1.0), ALL, SERVICE)
    assert parts[1].by_limit
    assert (parts[1].fell_ns, parts[1].fell_off_ns) == (-10 * MS, 10 * MS)
    assert 190 <= parts[1].first <= 200
    served = Served(SERVICE, SERVICE, SERVICE, np.ones(N, dtype=np.bool_), np.zeros(N, dtype=np.bool_))
    base = stretch_base(delivery, parts, served)
    assert base.error_ns[1] >= 10 * MS


def test_a_few_levels_that_are_wrong_do_not_show_another_path() -> None:
    level = _heights(0.0)
    level[[220, 240, 260, 280]] = 8.9
    assert split_where_limit_moves(_busy(13), WHOLE, level, ALL, SERVICE) == WHOLE
    assert split_where_limit_moves(_busy(13), WHOLE, _heights(0.4), ALL, SERVICE) == WHOLE
    late = np.where(np.arange(N) >= 390, 1.0, 0.0)
    assert split_where_limit_moves(_busy(13), WHOLE, _heights(0.0) + late, ALL, SERVICE) == WHOLE
    unknown = np.arange(N) < 200
    assert split_where_limit_moves(_busy(13), WHOLE, _heights(1.0), unknown, SERVICE) == WHOLE


def test_each_path_has_its_own_limit() -> None:
    halves = (Stretch(0, 200, 110.0 * MS), Stretch(200, N, 110.0 * MS))
    assert split_where_limit_moves(_busy(13), halves, _heights(1.0), ALL, SERVICE) == halves


def test_many_levels_are_tried_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_steps, "MAX_CELLS", 1)
    spread = np.where(np.arange(N) % 50 == 49, np.arange(N) / 200, 0.0)
    parts = split_where_limit_moves(_busy(13), WHOLE, _heights(1.0) + 6 - spread, ALL, SERVICE)
    assert [part.first for part in parts] == [0, 200]
    assert replace(parts[0], after=N).first == 0
