"""What the link of a captured flow carries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hindflight.replay.experiment.circumstances import ceiling_of

SECOND = 1_000_000_000


def _asked(rate: Any, changes: list[Any]) -> float | None:
    link = SimpleNamespace(forward=SimpleNamespace(rate=8e6), changes=changes)
    scenario: Any = SimpleNamespace(
        captured=SimpleNamespace(transfer=10 * SECOND), links=[link], duration=10 * SECOND,
        flow=SimpleNamespace(mss=1448, headers=52),
    )  # fmt: skip
    traces: Any = {"trace": SimpleNamespace(open=SimpleNamespace(rate=rate))}
    return ceiling_of(scenario, traces)


def _change(at_s: int, rate: float | None = None, outage: bool | None = None) -> Any:
    return SimpleNamespace(at=at_s * SECOND, rate=rate, outage=outage)


def test_a_link_carries_its_rates_while_it_is_up() -> None:
    rate = SimpleNamespace(value=8e6, high=8.08e6)
    changes = [_change(2, rate=4e6), _change(6, outage=True), _change(8, outage=False)]
    # 2 s of 8, 4 s of 4, 2 s of nothing, 2 s of 4 Mbit/s; the rate is known to 1 %.
    assert _asked(rate, changes) == pytest.approx(4e6 * 1.01 * 1448 / 1500)


@pytest.mark.parametrize("rate", [None, SimpleNamespace(value=None, high=None)])
def test_a_lower_bound_of_the_rate_bounds_no_flight(rate: Any) -> None:
    assert _asked(rate, []) is None
