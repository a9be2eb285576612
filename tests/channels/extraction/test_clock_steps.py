"""Where all ACKs of a busy link come earlier than it serves packets, a shorter path begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction.base_rtt import stretch_base
from hindflight.channels.extraction.bottleneck import Served
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.clock_steps import split_where_acks_come_earlier
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.path_steps import Stretch
from tests.channels.extraction.packets import packets

MS = 1_000_000
N, WAITING = 400, 6
SERVICE = np.full(N, 10.0 * MS)


def _delivery(earlier_ms: float, lost: tuple[int, ...] = ()) -> Delivery:
    """A link that serves a packet in 10 ms and never runs empty, but before the first one; each ACK brings the next
    packet. From packet 200 on the path, of 100 ms, is shorter by `earlier_ms`."""
    left = 10 * MS * (1 + np.arange(N))
    acked = left + 100 * MS - np.where(np.arange(N) >= 200, round(earlier_ms * MS), 0)
    t = np.maximum(0, left - 10 * MS * WAITING)
    return packets(t, np.where(np.isin(np.arange(N), lost), -1, acked))


def _split(delivery: Delivery, service: Floats = SERVICE) -> tuple[Stretch, ...]:
    return split_where_acks_come_earlier(delivery, (Stretch(0, N, 110.0 * MS),), service)


def _cuts(delivery: Delivery, service: Floats = SERVICE) -> list[int]:
    return [part.first for part in _split(delivery, service)][1:]


def test_acks_that_come_earlier_show_a_shorter_path_and_by_how_much() -> None:
    _, shorter = _split(_delivery(30))
    assert (shorter.first, shorter.fell_ns, shorter.fell_off_ns) == (200, 30 * MS, 0.0)
    # A loss behind the queue delays all ACKs behind it by a service time; another ACK is late.
    delivery = _delivery(30, lost=(192,))
    late = replace(delivery, acked_ns=delivery.acked_ns + np.where(np.arange(N) == 203, 9 * MS, 0))
    assert _cuts(late) == [200]
    assert _cuts(_delivery(0)) == _cuts(_delivery(-30)) == _cuts(_delivery(3)) == []


def test_acks_that_do_not_agree_show_none() -> None:
    assert _cuts(_delivery(30, lost=(195, 198))) == []
    # A rate that is off by 20 % lets all ACKs come earlier and earlier.
    assert _cuts(_delivery(0), np.full(N, 12.0 * MS)) == []
    # The rate changes there.
    assert _cuts(_delivery(30), np.where(np.arange(N) < 200, 10.0 * MS, 10.1 * MS)) == []


def test_a_link_that_may_have_run_empty_shows_none() -> None:
    # Packet 196 is sent 60 ms later, when the one before it has left.
    delivery = _delivery(30)
    paused = replace(delivery, t_ns=delivery.t_ns + np.where(np.arange(N) == 196, 60 * MS, 0))
    assert _cuts(paused) == []
    foreign = np.arange(N) == 3
    assert _cuts(replace(delivery, from_flow=~foreign, observed=~foreign)) == []


def test_the_path_before_shows_how_long_the_shorter_one_is() -> None:
    delivery = _delivery(30)
    served = Served(SERVICE, SERVICE, SERVICE, np.ones(N, dtype=np.bool_), np.zeros(N, dtype=np.bool_))
    base = stretch_base(delivery, _split(delivery), served)
    assert [held for _, _, held in base.spans] == pytest.approx([100 * MS, 70 * MS])
    assert base.clocked == (False, True)
    assert np.isfinite(base.error_ns).all()
    # As a lower bound it does not.
    bound = [replace(part, fell_off_ns=np.inf) for part in _split(delivery)]
    assert not stretch_base(delivery, bound, served).emptied[1]
