"""The interval of one flight: never without width, wider with the draws and with the misfit of the self-check."""

from __future__ import annotations

import pytest

from hindflight.replay.experiment.prediction import FACTORS, FLOOR, predict


def test_equal_draws_leave_the_error_that_is_always_there() -> None:
    found = predict([1e6] * 20, 0.0, "steady")
    assert found is not None
    assert found.value == 1e6
    assert found.high / 1e6 == pytest.approx(1 + FLOOR * FACTORS["steady"], rel=0.001)
    assert found.low < 1e6


def test_a_misfit_of_the_self_check_widens_the_interval() -> None:
    close, off = predict([1e6] * 20, 0.0, "steps"), predict([1e6] * 20, 0.1, "steps")
    assert close is not None
    assert off is not None
    assert off.high - off.low > 5 * (close.high - close.low)


def test_a_tail_of_slow_draws_widens_the_lower_side_only() -> None:
    found = predict([1e6] * 17 + [0.5e6] * 3, 0.0, "loss")
    assert found is not None
    assert found.low < 0.8e6
    assert found.high < 1.05e6


def test_nothing_is_predicted_where_nothing_was_delivered() -> None:
    assert predict([0.0, 0.0, 1e6], 0.0, "loss") is None
