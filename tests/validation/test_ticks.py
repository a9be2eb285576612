"""Where the recorded hosts' clock stood, by what their timers sent."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from validation.recorded import read_run
from validation.ticks import TICK_NS, place_in_step, since_step_ns, timeouts, unexplained

RUNS = Path(__file__).resolve().parents[2] / "fixtures" / "kernel"
MS = 1_000_000
NONE = np.empty(0, np.int64)


def test_acks_of_the_timer_show_the_tick() -> None:
    timer = np.array([2 * MS + 40_000 + TICK_NS * n for n in (10, 33, 58, 90)])
    others = np.array([700_000, 41 * MS, 63 * MS + 300_000])
    assert place_in_step(np.append(others, timer), TICK_NS) == 2 * MS + 40_000
    assert since_step_ns(NONE, NONE, np.append(timer, others)) == 2 * MS - 40_000


def test_times_that_may_gather_by_chance_show_nothing() -> None:
    assert place_in_step(NONE, TICK_NS) is None
    assert place_in_step(np.array([5 * MS]), TICK_NS) is None
    assert place_in_step(np.array([5 * MS, 9 * MS]), TICK_NS) is None, "one pair of a hundred lies so close"
    assert place_in_step(np.arange(0, 400 * MS, 1_900_000), TICK_NS) is None
    assert since_step_ns(NONE, NONE, NONE) == 0


def test_a_recording_of_many_acks_shows_the_tick() -> None:
    # 2,000 of them can be chosen in more ways than a float holds.
    anywhere = 1_900_000 * np.arange(2000)
    assert place_in_step(anywhere, TICK_NS) is None
    timer = 2 * MS + 40_000 + TICK_NS * np.arange(1000)
    assert place_in_step(np.append(anywhere[:1000], timer), TICK_NS) == 2 * MS + 40_000
    assert place_in_step(np.append(timer, timer), TICK_NS) == 2 * MS + 40_000


def test_timeouts_show_the_steps_of_the_wheel() -> None:
    at_ns = np.array([32 * MS * n + 7 * MS for n in (9, 40, 81)])
    rtos = np.full(3, 300 * MS)
    assert since_step_ns(at_ns, rtos, NONE) == 25 * MS
    # Shorter ones fire at any tick.
    assert since_step_ns(at_ns, np.full(3, 248 * MS), NONE) == MS
    assert since_step_ns(np.array([256 * MS * n + 7 * MS for n in (9, 40)]), np.full(2, 3000 * MS), NONE) == 249 * MS


def test_a_timer_is_late_by_a_tick_and_never_early() -> None:
    on_time = [32 * MS * n + 7 * MS for n in (3, 9)]
    late = [32 * MS * n + 7 * MS + TICK_NS for n in (5, 12, 14)]
    assert place_in_step(np.array(on_time + late), 8 * TICK_NS) == 7 * MS


def test_an_ack_near_an_arrival_needs_no_timer() -> None:
    arrivals = np.array([10 * MS, 20 * MS])
    acks = np.array([9 * MS + 200_000, 10 * MS + 50_000, 11 * MS + 400_000, 15 * MS, 60 * MS])
    assert list(unexplained(acks, arrivals)) == [15 * MS, 60 * MS]
    assert list(unexplained(acks, NONE)) == []


def test_a_timeout_is_the_first_retransmission_between_the_polls_that_show_it() -> None:
    info = {
        "t_ns": np.array([0, 5, 10, 15, 20]) * MS,
        "total_rto": np.array([0, 0, 1, 1, 2]),
        "rto": np.array([300, 300, 600, 600, 1200]) * 1000,
    }
    at_ns, rtos = timeouts(info, np.array([3, 7, 8, 30]) * MS)
    assert (list(at_ns), list(rtos)) == ([7 * MS], [300 * MS])


def test_the_delayed_acks_of_a_recording_show_its_tick() -> None:
    """Of 68 that no arrival explains, 66 come within 0.1 ms of one another in a tick."""
    assert abs(read_run(RUNS / "S2-reno").since_step_ns - 2_680_000) < 50_000
