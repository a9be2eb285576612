"""The interval of one flight: never without width, wider with the draws and with the misfit of the captured variant."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from hindflight.channels.estimate import Estimate
from hindflight.replay.experiment.capacity import capacity_of, has_no_upper_bound
from hindflight.replay.experiment.prediction import (
    FACTOR,
    FLOOR,
    LINK_MARGIN,
    common_misfit,
    predict,
)
from hindflight.replay.scenario.draws import Open
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import parse_scenario
from tests.replay.losses import lost
from tests.replay.scenario.test_scenario import GOOD, VARIANTS


def test_equal_draws_leave_the_error_that_is_always_there() -> None:
    found = predict([1e6] * 20)
    assert found is not None
    assert found.value == 1e6
    assert found.high / 1e6 == pytest.approx(math.exp(FLOOR * FACTOR))
    assert found.low / 1e6 == pytest.approx(math.exp(-FLOOR * FACTOR))


def test_half_of_the_misfit_is_corrected_and_the_other_half_left_open() -> None:
    for misfit in (0.1, -0.1):
        found = predict([1e6] * 20, misfit)
        assert found is not None
        assert found.value == pytest.approx(1e6 / math.sqrt(1 + misfit))
        half = FACTOR * math.hypot(math.log1p(misfit) / 2, FLOOR)
        assert found.high / found.value == pytest.approx(math.exp(half))
        assert found.low / found.value == pytest.approx(math.exp(-half))


@pytest.mark.parametrize(
    ("differences", "common"),
    [([], 0.0), ([0.1], 0.1), ([0.1, 0.3], 0.1), ([-0.1, -0.3], -0.1), ([-0.1, 0.3], 0.0), ([0.0, 0.3], 0.0)],
)
def test_what_replays_of_the_captured_variant_share_is_their_misfit(differences: list[float], common: float) -> None:
    assert common_misfit(differences) == common


def test_a_tail_of_slow_draws_widens_the_lower_side_only() -> None:
    found, even = predict([1e6] * 17 + [0.5e6] * 3), predict([1e6] * 20)
    assert found is not None
    assert even is not None
    assert found.low < 0.5 * even.low
    assert found.high == even.high


def test_one_flight_that_broke_down_does_not_widen_the_interval() -> None:
    found, even = predict([1e6] * 19 + [0.1e6]), predict([1e6] * 20)
    assert found == even


def test_a_few_flights_that_broke_down_count_as_much_as_they_reach() -> None:
    found, fast = predict([1e6] * 18 + [0.6e6, 0.1e6]), predict([1e6] * 18 + [1.6e6, 5e6])
    assert found is not None
    assert fast is not None
    # The next flight is slower than the second of 20 with a probability of 2 in 21.
    away = NormalDist().inv_cdf(19 / 21)
    assert found.deviations == pytest.approx((math.hypot(math.log(1 / 0.6) / away, FLOOR), FLOOR))
    assert fast.deviations == pytest.approx((FLOOR, math.hypot(math.log(1.6) / away, FLOOR)))


def test_an_interval_ends_with_the_outermost_draw_but_for_what_no_draw_shows() -> None:
    rest = math.exp(FACTOR * FLOOR)
    found = predict([1e6] * 30 + [0.3e6] * 10 + [1.8e6] * 10)
    assert found is not None
    assert found.low == pytest.approx(0.3e6 / rest)
    assert found.high == pytest.approx(1.8e6 * rest)
    # Fewer draws do not show where the end is.
    few = predict([1e6] * 12 + [0.3e6] * 4 + [1.8e6] * 4)
    assert few is not None
    assert few.low < 0.9 * found.low
    assert few.high > 1.1 * found.high


def test_an_interval_is_made_of_its_deviations() -> None:
    found = predict([1e6] * 18 + [0.6e6, 0.1e6], 0.1)
    assert found is not None
    rest = math.hypot(math.log(1.1) / 2, FLOOR)
    assert found.deviations[1] == pytest.approx(rest)
    assert found.low / found.value == pytest.approx(math.exp(-FACTOR * found.deviations[0]))
    assert found.high / found.value == pytest.approx(math.exp(FACTOR * rest))


@pytest.mark.parametrize("count", [5, 20, 100, 1001])
def test_the_deviation_does_not_depend_on_the_number_of_draws(count: int) -> None:
    normal = NormalDist(0.0, 0.1)
    found = predict([1e6 * math.exp(normal.inv_cdf(k / (count + 1))) for k in range(1, count + 1)])
    assert found is not None
    assert found.drawn == pytest.approx(0.1)


def test_no_flight_exceeds_what_the_link_carries() -> None:
    draws = [0.8e6, 0.9e6, 1e6, 1.1e6, 1.2e6]
    free, capped = (predict(draws, 0.0, capacity) for capacity in (None, 1.05e6))
    assert free is not None
    assert capped is not None
    assert capped.high == pytest.approx(1.05e6 * math.exp(LINK_MARGIN))
    assert free.high > 1.1 * capped.high
    assert capped.low == free.low


def test_the_misfit_moves_no_prediction_above_what_the_link_carries() -> None:
    found = predict([1e6] * 20, -0.3, 1.05e6)
    assert found is not None
    assert found.value == pytest.approx(1.05e6)
    assert found.high <= 1.05e6 * math.exp(LINK_MARGIN) * (1 + 1e-9)


@pytest.mark.parametrize("misfit", [-0.4, -0.1, 0.1, 0.6])
def test_an_interval_reaches_to_the_draws_without_all_of_the_misfit(misfit: float) -> None:
    # A replay that is as far from the captured flow as this: all of it may be an error of the scenario.
    found = predict([0.98e6, *[1e6] * 48, 1.02e6], misfit)
    assert found is not None
    assert found.low < 1e6 / (1 + misfit) < found.high


def test_a_middle_above_the_capacity_keeps_an_interval() -> None:
    found = predict([1e6] * 20, 0.0, 0.9e6)
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
        traces = _traces(rate)
        assert capacity_of(scenario, traces, 10 * 10**9, None) == pytest.approx(expected)
        # A flow that got more refutes the rate.
        assert capacity_of(scenario, traces, 10 * 10**9, 1.01 * expected) == pytest.approx(expected)
        assert capacity_of(scenario, traces, 10 * 10**9, 1.03 * expected) is None
    assert capacity_of(scenario, _traces(_estimate(None, None)), 10 * 10**9, None) is None


def test_a_rate_between_two_bounds_has_an_upper_one() -> None:
    assert has_no_upper_bound(_traces(_estimate(None, None)))
    for rate in (_estimate(None, 2e6), _estimate(2e6, 2.4e6), None):
        assert not has_no_upper_bound(_traces(rate))
    # Draws reach four times the lower bound.
    assert has_no_upper_bound(_traces(_estimate(None, 10e6)))


def _estimate(value: float | None, high: float | None) -> Estimate:
    return Estimate("rate_bps", value, 1e6, high, "bit/s", True, "")


def _traces(rate: Estimate | None) -> dict[str, LossTrace]:
    left_open = Open(np.array([3]), np.array([1]), (), 1000, rate, None, None, None, {})
    return {"channel.parquet": replace(lost((3,), 1000), open=left_open)}


def test_nothing_is_predicted_where_nothing_was_delivered() -> None:
    assert predict([0.0, 0.0, 1e6]) is None
