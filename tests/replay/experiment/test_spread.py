"""Spread of goodput and delay over the seeds."""

from __future__ import annotations

from typing import Any

import pytest

from hindflight.replay.experiment.spread import spread_findings


def run(seed: int, goodput: float, delay: int | None, **given: Any) -> dict[str, Any]:
    row = {"purpose": "what_if", "role": "under_test", "channel_mode": "resampled", "reset_ns": None}
    key = {"variant": "reno", "proxy": "none"}
    return {**row, **key, "seed": seed, "goodput_bps": goodput, "one_way_delay_p95_ns": delay, **given}


def values(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {str(row["metric"]): float(row["value"]) for row in rows}


def test_means_deviations_and_correlation_are_those_of_the_seeds() -> None:
    runs = [run(seed, goodput, delay) for seed, (goodput, delay) in enumerate([(1, 9), (2, 7), (3, 5), (4, 3), (5, 1)])]
    found = values(spread_findings(runs))
    assert found["one_way_delay_p95"] == 5
    assert found["goodput_mean"] == 3
    assert found["goodput_sd"] == pytest.approx(2.5**0.5)
    assert found["one_way_delay_p95_sd"] == pytest.approx(10**0.5)
    assert found["correlation"] == pytest.approx(-1)


def test_few_seeds_resets_and_the_channel_as_captured_give_no_spread() -> None:
    runs = [run(seed, seed + 1.0, seed + 1) for seed in range(4)]
    left_out = [
        run(9, 50.0, 50, channel_mode="replayed"),
        run(10, 50.0, 50, reset_ns=7),
        run(11, 50.0, None),
        run(12, 50.0, 50, role="cross"),
        run(13, 50.0, 50, purpose="self_check"),
    ]
    assert set(values(spread_findings([*runs, *left_out]))) == {"one_way_delay_p95"}
    alike = [run(seed, 1.0, seed + 1) for seed in range(8)]
    assert set(values(spread_findings(alike))) == {"one_way_delay_p95"}
