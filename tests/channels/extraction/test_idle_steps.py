"""Where the round trips over an empty queue change, another path begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.idle_steps import split_where_idle
from hindflight.channels.extraction.path_steps import Stretch
from tests.channels.extraction.packets import packets

MS = 1_000_000
BURST, BURSTS = 12, 20
N = BURST * BURSTS


def _delivery(trip_ms: np.ndarray) -> Delivery:
    """Bursts of twelve packets each 500 ms over a link that serves one in 1 ms; `trip_ms` is each packet's path."""
    t = (np.repeat(500 * np.arange(BURSTS), BURST) * MS).astype(np.int64)
    wait_ms = np.tile(np.arange(BURST), BURSTS)
    acked = t + ((trip_ms + wait_ms + 1) * MS).astype(np.int64)
    return packets(t, acked)


def _cuts(delivery: Delivery) -> list[int]:
    wait = (np.tile(np.arange(BURST), BURSTS) * MS).astype(np.float64)
    whole = (Stretch(0, N, float((delivery.acked_ns - delivery.t_ns).min())),)
    return [stretch.first for stretch in split_where_idle(delivery, whole, wait, np.full(N, float(MS)))][1:]


def test_a_longer_and_a_shorter_path_begin_after_a_pause() -> None:
    assert _cuts(_delivery(np.full(N, 20.0))) == []
    assert _cuts(_delivery(np.where(np.arange(N) < 120, 20.0, 40.0))) == [120]
    assert _cuts(_delivery(np.where(np.arange(N) < 120, 40.0, 20.0))) == [120]


def test_a_path_that_becomes_shorter_within_a_burst_begins_there() -> None:
    assert _cuts(_delivery(np.where(np.arange(N) < 118, 80.0, 20.0))) == [118]


def test_a_few_late_answers_are_no_other_path() -> None:
    trip = np.full(N, 20.0)
    trip[120:156] = 60.0
    assert _cuts(_delivery(trip)) == []


def test_two_that_agree_are_another_path_if_none_follows() -> None:
    trip = np.full(N, 20.0)
    trip[216:] = 60.0
    assert _cuts(_delivery(trip)) == [216]
    # They differ by more than a tenth of the step, or each is a single answer.
    assert _cuts(_delivery(trip + np.where(np.arange(N) >= 228, 5.0, 0.0))) == []
    single = replace(_delivery(trip), prompt=(np.arange(N) < 216) | np.isin(np.arange(N), [216, 228]))
    assert _cuts(single) == []


def test_a_last_path_of_too_few_packets_hides_no_other() -> None:
    trip = np.where(np.arange(N) < 120, 20.0, 40.0)
    trip[216:] = 80.0
    assert _cuts(_delivery(trip)) == [120, 216]
    few = replace(_delivery(trip), prompt=(np.arange(N) < 216) | np.isin(np.arange(N), [216, 217, 218, 228, 229, 230]))
    assert _cuts(few) == [120]


def test_other_traffic_hides_the_path() -> None:
    delivery = _delivery(np.where(np.arange(N) < 120, 20.0, 40.0))
    assert _cuts(replace(delivery, from_flow=np.arange(N) != 3, observed=np.arange(N) != 3)) == []
