"""The interval of one flight: never without width, wider with the draws and with the misfit of the self-check."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hindflight.replay.experiment.circumstances import circumstance_of
from hindflight.replay.experiment.prediction import FACTORS, FLOORS, predict
from hindflight.replay.scenario.model import parse_scenario
from tests.replay.losses import lost
from tests.replay.scenario.test_scenario import GOOD, VARIANTS


def test_equal_draws_leave_the_error_that_is_always_there() -> None:
    found = predict([1e6] * 20, 0.0, "steady")
    assert found is not None
    assert found.value == 1e6
    assert found.high / 1e6 == pytest.approx(1 + FLOORS["steady"] * FACTORS["steady"], rel=0.001)
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
