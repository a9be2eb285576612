"""Draws of what a capture leaves open: the same for a seed, within the intervals, with as many losses as captured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hindflight.channels.estimate import Estimate
from hindflight.replay.scenario.draws import REPEATS, Open, draw

SECOND = 1_000_000_000


def _estimate(name: str, value: float | None, low: float, high: float | None) -> Estimate:
    return Estimate(name, value, low, high, "", known=value is not None, how="")


def _open(bursts: list[int], **changes: Any) -> Open:
    given: dict[str, Any] = {
        "bursts": np.array(bursts, dtype=np.int64), "packets": 10_000,
        "rate": _estimate("rate_bps", 1e6, 0.98e6, 1.02e6),
        "base_rtt": _estimate("base_rtt_ns", 1e8, 0.99e8, 1.01e8),
        "min_rtt": _estimate("min_rtt_ns", 1.1e8, 1.1e8, 1.11e8),
        "queue": _estimate("queue_limit_pkts", 20.0, 18.0, 22.0), "edges": {},
    }  # fmt: skip
    return Open(**{**given, **changes})


def _config() -> dict[str, Any]:
    way = {
        "rate_bps": 1e6, "delay_ns": 50_000_000, "queue": {"kind": "drop_tail", "limit_pkts": 20},
        "loss": {"kind": "none"},
        "schedule": [{"at_ns": SECOND, "rate_bps": 2e6, "delay_ns": None, "outage": None, "hold": None}],
    }  # fmt: skip
    links = [{"name": "path", "forward": way, "reverse": way}]
    return {"duration_ns": 10 * SECOND, "path": {"links": links}, "flows": [{"start_ns": 0}]}


def _forward(open_: Open, seed: int) -> dict[str, Any]:
    forward: dict[str, Any] = draw(_config(), open_, seed)["path"]["links"][0]["forward"]
    return forward


def test_a_seed_gives_one_draw_and_another_seed_another() -> None:
    open_ = _open([1, 3, 2])
    assert draw(_config(), open_, 1) == draw(_config(), open_, 1)
    assert draw(_config(), open_, 1) != draw(_config(), open_, 2)


def test_losses_come_in_the_captured_bursts_and_number() -> None:
    counts = []
    for seed in range(200):
        positions = np.array(_forward(_open([4] * 25), seed)["loss"]["positions"])
        assert np.all(np.diff(positions) > 0)
        counts.append(len(positions) / REPEATS)
    assert np.mean(counts) == pytest.approx(100, rel=0.1)
    assert np.std(counts) > 10  # of 25 bursts the rate is known to a fifth


def test_a_flight_without_losses_leaves_some_possible() -> None:
    lost = [len(_forward(_open([]), seed)["loss"]["positions"]) > 0 for seed in range(300)]
    assert 0.02 < np.mean(lost) < 0.5


def test_rate_delay_and_queue_stay_near_their_intervals() -> None:
    drawn = [_forward(_open([]), seed) for seed in range(200)]
    rates = np.array([way["rate_bps"] for way in drawn])
    assert np.std(rates) == pytest.approx(1e6 * 0.02 / 1.96, rel=0.2)
    assert {way["queue"]["limit_pkts"] for way in drawn} <= set(range(15, 26))
    steps = np.array([way["schedule"][0]["rate_bps"] for way in drawn])
    assert np.allclose(steps / rates, 2.0)


def test_a_rate_that_is_a_lower_bound_is_drawn_above_it() -> None:
    rates = [_forward(_open([], rate=_estimate("rate_bps", None, 1e6, None)), seed)["rate_bps"] for seed in range(50)]
    assert min(rates) >= 1e6
    assert max(rates) > 2e6


def test_a_queue_that_the_user_chose_stays() -> None:
    chosen = _open([], queue=_estimate("queue_limit_pkts", 50.0, 40.0, 60.0))
    assert {_forward(chosen, seed)["queue"]["limit_pkts"] for seed in range(20)} == {20}


def test_a_large_write_lasts_a_time_in_half_of_the_draws() -> None:
    timed = {"kind": "bursts", "from_ns": [0], "until_ns": [SECOND]}
    drawn = [draw(_config(), _open([]), seed, {0: timed})["flows"][0].get("application") for seed in range(200)]
    assert all(application in (None, timed) for application in drawn)
    assert 0.35 < np.mean([application is not None for application in drawn]) < 0.65
