"""Changes between flights and run sets: intervals that cover, pairing, and what has none."""

from __future__ import annotations

import numpy as np
import pytest

from hindflight.documents import sentence_of
from hindflight.replay.experiment.change import (
    Condition,
    _blocks,
    _mean_of_blocks,
    compare_flights,
    compare_run_sets,
    flight_intervals,
)
from hindflight.toolkit.schema import table_from_rows
from tests.channels.extraction.test_interruptions import steady


def test_interval_covers_the_true_change_nineteen_times_in_twenty() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(400):
        one, other = random.normal(100, 10, 20), random.normal(110, 15, 15)
        change = compare_flights({"goodput": list(one)}, {"goodput": list(other)})[0]
        low, high = change.difference
        assert low is not None
        assert high is not None
        covered += low <= 10 <= high
    assert 0.92 <= covered / 400 <= 0.985


def test_blocks_that_depend_on_each_other_widen_the_interval() -> None:
    random = np.random.default_rng(1)
    steps = random.normal(0, 1, 30)
    walk = 100 + np.cumsum(steps)
    mixed = random.permutation(walk)

    def width(samples: np.ndarray) -> float:
        low, high = compare_flights({"rtt": list(samples)}, {"rtt": list(mixed)})[0].difference
        assert low is not None
        assert high is not None
        return high - low

    assert width(walk) > 1.5 * width(mixed)


def test_the_interval_of_a_flight_covers_its_mean_nineteen_times_in_twenty() -> None:
    random = np.random.default_rng(11)
    covered = 0
    for _ in range(600):
        found = _mean_of_blocks(list(random.normal(100, 10, 20)))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 100 <= found.high
    assert 0.93 <= covered / 600 <= 0.985


def test_a_flight_has_intervals_if_it_has_enough_blocks() -> None:
    segments = table_from_rows("segments", steady(stalled=(8, 9)))
    found = flight_intervals(segments, "a2b")
    assert set(found) == {"goodput", "rtt"}
    assert found["goodput"].low is not None
    assert found["goodput"].low < found["goodput"].mean
    assert flight_intervals(segments.slice(0, 12), "a2b") == {}


def test_a_flight_whose_rtt_has_a_step_has_no_interval_of_its_mean() -> None:
    rows = steady(stalled=(30, 30))
    for row in rows:
        if "rtt_ns" in row and row["t_ns"] > 10e9:
            row["rtt_ns"] = 500_000_000
    assert "rtt" not in flight_intervals(table_from_rows("segments", rows), "a2b")


@pytest.mark.parametrize("count", [8, 10, 30])
@pytest.mark.parametrize("correlation", [0.3, 0.6])
def test_intervals_of_few_blocks_that_depend_on_each_other_cover(count: int, correlation: float) -> None:
    random = np.random.default_rng(5)

    def flight() -> list[float]:
        values = random.normal(0, 1, count)
        for at in range(1, count):
            values[at] = correlation * values[at - 1] + np.sqrt(1 - correlation**2) * values[at]
        return list(100 + values)

    covered = 0
    for _ in range(600):
        low, high = compare_flights({"rtt": flight()}, {"rtt": flight()})[0].difference
        assert low is not None
        assert high is not None
        covered += low <= 0 <= high
    assert covered / 600 > 0.93


@pytest.mark.parametrize(("trips", "blocks"), [(1, 0), (5, 2), (16, 8), (21, 10), (70, 10), (120, 12), (900, 30)])
def test_short_flights_have_shorter_blocks(trips: int, blocks: int) -> None:
    assert _blocks(trips * 5e8, 5e8) == blocks


def test_runs_with_the_same_seeds_are_paired() -> None:
    noise = dict(enumerate(np.random.default_rng(3).normal(1000, 200, 10)))
    moved = {seed: 1.1 * value for seed, value in noise.items()}
    key = ("cubic", "goodput")
    paired = compare_run_sets({key: noise}, {key: moved})[0]
    other = compare_run_sets({key: noise}, {key: {seed + 1: value for seed, value in moved.items()}})[0]
    assert paired.paired
    assert not other.paired
    assert paired.percent == pytest.approx(10)
    fires = Condition("", "goodput", False, 5.0)
    assert (fires.judge(paired), fires.judge(other)) == ("fires", "undecided")


def test_few_samples_have_no_interval() -> None:
    few = compare_run_sets({("reno", "rtt"): {1: 1.0, 2: 2.0}}, {("reno", "rtt"): {1: 1.0, 2: 2.5}})[0]
    assert not few.known
    assert Condition("", "rtt", True, 0.0).judge(few) == "too little data"
    assert not compare_flights({"goodput": [1.0] * 7}, {"goodput": [2.0] * 7})[0].known


def test_nothing_falls_by_more_than_all_of_it() -> None:
    """Flights whose blocks depend on each other had intervals such as -730 to +831 %."""
    rising = [float(n) for n in range(1, 11)]
    change = compare_flights({"goodput": rising}, {"goodput": rising[::-1]})[0]
    low, high = change.percent_interval
    assert low is not None
    assert high is not None
    assert low == -100 < 100 < high
    assert change.difference[0] == -change.before


def test_a_change_has_a_sentence_that_says_whether_chance_explains_it() -> None:
    steady = [100.0, 101, 99, 100, 102, 98, 100, 100, 101, 99]
    less, more = ([value * factor for value in steady] for factor in (0.5, 1.004))
    lower = compare_flights({"goodput": steady}, {"goodput": less})[0]
    said = sentence_of(lower, "a", "b")
    assert said.startswith("Goodput of the flight is 50 % lower in b than in a (95 % interval -5")
    same = compare_flights({"goodput": steady}, {"goodput": more})[0]
    said = sentence_of(same, "a", "b")
    assert said.startswith(
        "Goodput of the flight is 0.4 % higher in b than in a, which may be chance (95 % interval -0."
    )
    short = compare_flights({"goodput": steady[:3]}, {"goodput": steady[:3]})[0]
    assert "too little data" in sentence_of(short, "a", "b")
