"""The interval of one flight: never without width, wider with the draws and with the misfit of the self-check."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hindflight.channels.estimate import Estimate
from hindflight.replay.experiment.circumstances import capacity_of, circumstance_of
from hindflight.replay.experiment.prediction import FACTOR, FLOORS, LINK_MARGIN, Circumstance, predict
from hindflight.replay.scenario.draws import Open
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import parse_scenario
from tests.replay.losses import lost
from tests.replay.scenario.test_scenario import GOOD, VARIANTS


def test_equal_draws_leave_the_error_that_is_always_there() -> None:
    found = predict([1e6] * 20, 0.0, "steady")
    assert found is not None
    assert found.value == 1e6
    assert found.high / 1e6 == pytest.approx(1 + FLOORS["steady"] * FACTOR, rel=0.001)
    assert found.low < 1e6


def test_a_misfit_of_the_self_check_widens_the_interval() -> None:
    close, off = predict([1e6] * 20, 0.0, "steps"), predict([1e6] * 20, 0.1, "steps")
    assert close is not None
    assert off is not None
    assert off.high - off.low > 2 * (close.high - close.low)


def test_another_flight_differs_more_where_losses_or_timing_matter() -> None:
    steady, loss = predict([1e6] * 20, 0.0, "steady"), predict([1e6] * 20, 0.0, "loss")
    assert steady is not None
    assert loss is not None
    assert loss.high - loss.low > 3 * (steady.high - steady.low)


def test_a_tail_of_slow_draws_widens_the_lower_side_only() -> None:
    found, even = predict([1e6] * 17 + [0.5e6] * 3, 0.0, "loss"), predict([1e6] * 20, 0.0, "loss")
    assert found is not None
    assert even is not None
    assert found.low < 0.8 * even.low
    assert found.high == even.high


def test_losses_on_a_link_that_the_flow_fills_leave_little_open() -> None:
    full, half_empty = (predict([1e6] * 20, 0.0, "loss", capacity) for capacity in (1e6 / 0.97, 2e6))
    assert full is not None
    assert half_empty is not None
    assert full.floor == pytest.approx(0.015)
    assert half_empty.floor == FLOORS["loss"]
    assert full.low == pytest.approx(1e6 * math.exp(-0.015 * FACTOR))


@pytest.mark.parametrize("circumstance", ["shared", "limited", "steps", "loss"])
def test_no_flight_exceeds_what_the_link_carries(circumstance: Circumstance) -> None:
    draws = [0.8e6, 0.9e6, 1e6, 1.1e6, 1.2e6]
    free, capped = (predict(draws, 0.0, circumstance, capacity) for capacity in (None, 1.05e6))
    assert free is not None
    assert capped is not None
    assert capped.high == pytest.approx(1.05e6 * math.exp(LINK_MARGIN))
    assert free.high > 1.1 * capped.high
    assert capped.low == free.low or circumstance == "loss"


def test_a_middle_above_the_capacity_keeps_an_interval() -> None:
    found = predict([1e6] * 20, 0.0, "steps", 0.9e6)
    assert found is not None
    assert found.high == pytest.approx(1e6 * math.exp(LINK_MARGIN))


def test_a_link_carries_its_rates_for_as_long_as_they_hold() -> None:
    draft = copy.deepcopy(GOOD)
    draft |= {"flow": {"mss": "1448 B", "headers": "52 B"}, "duration": "12 s"}
    rate_bps = parse_scenario(draft, "geo.toml", VARIANTS).links[0].forward.rate
    assert rate_bps is not None
    draft["links"][0]["changes"] = [
        {"at": "1 s", "rate": "8 Mbit/s"},
        {"at": "4 s", "delay": "3 ms"},
        {"at": "6 s", "rate": "1 Mbit/s"},
    ]
    scenario = parse_scenario(draft, "geo.toml", VARIANTS)
    # The transfer is the last 10 s: 4 s of 8 Mbit/s, 6 s of 1 Mbit/s.
    for rate, factor in ((None, 1.0), (_estimate(2e6, 2.4e6), 1.2)):
        expected = factor * 3.8e6 * 1448 / 1500
        assert capacity_of(scenario, _traces(rate), 10 * 10**9) == pytest.approx(expected)
    assert capacity_of(scenario, _traces(_estimate(None, None)), 10 * 10**9) is None


def _estimate(value: float | None, high: float | None) -> Estimate:
    return Estimate("rate_bps", value, 1e6, high, "bit/s", True, "")


def _traces(rate: Estimate | None) -> dict[str, LossTrace]:
    left_open = Open(np.array([3]), np.array([1]), (), 1000, rate, None, None, None, {})
    return {"channel.parquet": replace(lost((3,), 1000), open=left_open)}


def test_nothing_is_predicted_where_nothing_was_delivered() -> None:
    assert predict([0.0, 0.0, 1e6], 0.0, "loss") is None


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (None, "loss"),
        ({"kind": "writes", "at": ["0 s", "2 s"], "sizes": ["100 kB", "200 kB"]}, "application"),
        ({"kind": "writes", "at": ["0 s"], "sizes": ["100 kB"], "until": ["1 s"]}, "limited"),
    ],
)
def test_only_what_was_written_over_any_path_is_a_limit_by_the_application(
    application: dict[str, Any] | None, expected: str
) -> None:
    flow: dict[str, Any] = {"receive_buffer": "100 MB"}
    if application is not None:
        flow["application"] = application
    scenario = parse_scenario({**copy.deepcopy(GOOD), "flow": flow}, "geo.toml", VARIANTS)
    assert circumstance_of(scenario, {"channel.parquet": lost((3,), 1000)}) == expected
