"""Flights over the true link: their losses are drawn from its model, and they are as many as an interval needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hindflight.toolkit.errors import HindflightError
from validation.captures.lines import true_link_lines
from validation.captures.true_link import FLIGHTS, Flights, fly_all, random_losses

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "kernel"


def test_the_loss_models_of_the_recorder_are_those_of_the_engine() -> None:
    assert random_losses("none") == {"kind": "none"}
    assert random_losses("bern:0.004") == {"kind": "bernoulli", "per": 0.004}
    burst = {"kind": "gilbert_elliott", "p": 0.001, "r": 0.25, "h": 0.0, "k": 1.0}
    assert random_losses("ge:0.001,0.25,0,1") == burst
    with pytest.raises(ValueError, match="unknown model 'list:1,2'"):
        random_losses("list:1,2")


def test_flights_differ_where_losses_are_random_and_only_the_links_asked_for_are_flown() -> None:
    done: list[tuple[int, int]] = []
    flown = fly_all(FIXTURES, lambda *counts: done.append(counts))
    assert [run.run for run in flown] == ["S2-reno", "S9-reno"]
    assert done == [(1, 2), (2, 2)]
    assert all(len(run.goodput_bps) == FLIGHTS for run in flown)
    assert all(0.5 < run.goodput_bps[0] / run.recorded_bps < 2 for run in flown)
    assert max(run.width for run in flown) > 0.02, "random losses make flights differ"
    (first,) = fly_all(FIXTURES, lambda *_: None, 1)
    assert first == flown[0], "equal seeds give equal flights"


def test_the_range_is_judged_by_its_width_and_by_what_it_holds() -> None:
    flights = [Flights("A-reno", [9.0, 10.0, 11.0], 10.5), Flights("B-reno", [10.0, 10.0, 10.0], 10.5)]
    holds, width, widest = true_link_lines(flights)
    assert (holds.value, holds.of) == (0.5, 2)
    assert width.value == pytest.approx(0.1)
    assert widest.value == pytest.approx(0.18)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HindflightError, match="no recorded run"):
        fly_all(tmp_path, lambda *_: None)
