"""Two flows at one bottleneck, recorded repeatedly: the recording is read, the engine runs, means are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.record_shared_bottleneck import RECORDING
from hindflight.toolkit.errors import LogError
from validation.page import render_page
from validation.repeated import (
    Goodputs,
    Recording,
    compare,
    configuration,
    configurations,
    engine_runs,
    read_recording,
)
from validation.tables import Results, repeated_table, summary

STEADY = ((3.20e6, 1.60e6), (3.21e6, 1.61e6), (3.19e6, 1.59e6), (3.20e6, 1.60e6))
"""Runs that differ by less than a single run may."""
WILD = ((3.0e6, 1.8e6), (3.4e6, 1.4e6)) * 4
"""Runs that differ by far more."""


@pytest.fixture(scope="module")
def recording() -> Recording:
    return read_recording(RECORDING)


def _verdicts(recording: Recording, kernel: tuple[Goodputs, ...], *shares: float) -> list[str]:
    """Verdicts of runs that are `shares` of those of the kernel, flow by flow."""
    engine = [tuple(own * share for own, share in zip(run, shares, strict=True)) for run in kernel]
    return [check.verdict for check in compare(replace(recording, runs=kernel), engine).checks]


def test_the_recording_is_whole(recording: Recording) -> None:
    assert recording.variants == ("cubic", "reno")
    assert recording.kernel.startswith("6.")
    assert len(recording.runs) == 24
    for run in recording.runs:
        # Both flows have their share of 5 Mbit/s, and together nearly all that headers leave.
        assert 0.85 < sum(run) / 5e6 < 0.97
        assert min(run) > 0.5e6


def test_steady_runs_have_the_bound_of_a_single_run(recording: Recording) -> None:
    assert _verdicts(recording, STEADY, 1.015, 0.985) == ["pass", "pass", "pass"]
    assert _verdicts(recording, STEADY, 1.025, 1.0) == ["fail", "pass", "pass"]
    assert _verdicts(recording, STEADY, 0.975, 1.0) == ["fail", "pass", "pass"]
    assert _verdicts(recording, STEADY, 1.0, 1.025) == ["pass", "fail", "pass"]
    assert _verdicts(recording, STEADY, 1.0, 0.975) == ["pass", "fail", "pass"]
    assert _verdicts(recording, STEADY, 0.9, 1.1) == ["fail", "fail", "fail"]


def test_wild_runs_have_the_joint_interval(recording: Recording) -> None:
    result = compare(replace(recording, runs=WILD), WILD)
    # Eight runs of 0.2 Mbit/s either way on both sides: 1.96 sqrt(2 x 8/7 / 8) x 0.2 = 0.2095.
    for row in result.rows[:2]:
        assert row.joint == pytest.approx(0.20953e6, rel=1e-4)
        assert row.check.allowed == row.joint
    assert _verdicts(recording, WILD, 1.06, 0.88) == ["pass", "pass", "pass"]
    assert _verdicts(recording, WILD, 1.07, 0.86)[:2] == ["fail", "fail"]
    assert _verdicts(recording, WILD, 0.93, 1.16)[:2] == ["fail", "fail"]


def test_pairs_of_recordings_have_the_bounds_of_a_single_run(recording: Recording) -> None:
    assert compare(replace(recording, runs=STEADY), STEADY).pairs_within == 1
    # Of 8 x 7 ordered pairs, 4 x 3 twice are of equal runs.
    assert compare(replace(recording, runs=WILD), WILD).pairs_within == pytest.approx(24 / 56)
    # 2.05 % more than the one, 2.01 % less than the other; and 2.03 % and 1.99 %, which holds one way alone.
    for more, share in ((1.6328e6, 0), (1.6325e6, 0.5)):
        apart = ((3.2e6, 1.6e6), (3.2e6, more))
        assert compare(replace(recording, runs=apart), apart).pairs_within == share


def test_the_configuration_is_the_recorded_link(recording: Recording) -> None:
    config = configuration(recording, 3_000_000)
    link = config["path"]["links"][0]
    assert (link["forward"]["rate_bps"], link["forward"]["delay_ns"]) == (5e6, 40_000_000)
    assert link["forward"]["queue"] == {"kind": "drop_tail", "limit_pkts": 40}
    assert link["reverse"] == {**link["forward"], "queue": {"kind": "drop_tail", "limit_pkts": 1000}}
    assert config["duration_ns"] == 40_000_000_000
    assert [flow["start_ns"] for flow in config["flows"]] == [0, 1_003_000_000]
    assert [flow["variant"] for flow in config["flows"]] == ["cubic", "linux-reno"]
    for flow in config["flows"]:
        assert flow["application"] == {"kind": "greedy", "write_bytes": 65536}
        assert flow["stack"]["smss_bytes"] == 1448
        assert flow["stack"]["receive_buffer_bytes"] == 4194304 * 5 // 8
        assert flow["stack"]["send_buffer_max_bytes"] == 33554432


def test_starts_are_spread_over_a_round_trip_with_a_full_queue(recording: Recording) -> None:
    starts_ns = [[flow["start_ns"] for flow in config["flows"]] for config in configurations(recording)]
    # 80 ms, and 41 packets of 2.4 ms.
    step_ns = 178_400_000 / 24
    assert starts_ns == [[0, 1_000_000_000 + round(place * step_ns)] for place in range(24)]


def test_the_engines_runs_are_as_many_and_differ(recording: Recording) -> None:
    few = replace(recording, runs=recording.runs[:6])
    runs = engine_runs(few, threads=1)
    assert len(runs) == 6
    assert len(set(runs)) >= 5
    for run in runs:
        # The first flow is alone for a while, and each counts over its own time.
        assert 0.85 < sum(run) / 5e6 < 1
    assert runs == engine_runs(few, threads=2)


@pytest.mark.parametrize("queue_pkts", [20, 60])
def test_another_queue_is_distinguished(recording: Recording, queue_pkts: int) -> None:
    other = replace(recording, parameters={**recording.parameters, "queue_pkts": queue_pkts})
    found = compare(recording, engine_runs(other, threads=1))
    assert [check.verdict for check in found.checks] == ["fail", "fail", "fail"]
    # The longer the queue, the more of it is cubic's.
    assert (found.rows[0].difference > 0) == (queue_pkts > 40)


def test_each_flow_counts_from_its_own_start(recording: Recording) -> None:
    # Two flows of one variant, the second only in the second half.
    parameters = {**recording.parameters, "variants": ["reno", "reno"], "stagger_s": 30.0, "duration_s": 60.0}
    first, second = engine_runs(replace(recording, parameters=parameters, runs=recording.runs[:2]), threads=1)[0]
    # 45 of 60 s at the whole rate, 15 of 30 s: two thirds. Over the first flow's time it would be one third.
    assert 0.5 < second / first < 0.85


def test_the_table_shows_the_effect_of_chance(recording: Recording) -> None:
    result = compare(replace(recording, runs=WILD), [(2.8e6, 1.6e6), (2.8e6, 1.7e6)])
    table = repeated_table(result)
    assert "43 % agree within" in table.bounds
    assert [row["verdict"] for row in table.rows] == ["fail", "pass", "fail"]
    assert table.rows[0]["kernel"] == "3200 ± 214 (6.7 %)"
    assert table.rows[0]["engine"] == "2800 ± 0 (0.0 %)"
    assert table.rows[0]["difference"] == "-12.5 %"
    page = render_page(Results(repeated=result), {})
    assert "python -m fixtures.record_shared_bottleneck" in page
    assert "* cubic and reno at one bottleneck, cubic: mean goodput 2.8e+06 bit/s where 3.2e+06 ±" in page
    assert summary(Results(repeated=result)) == ["Two flows at one bottleneck, repeated: 1 of 3 means pass."]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"runs": []}, "0 runs"),
        ({"runs": [{"flows": [{"goodput_bps": 1}, {"goodput_bps": 1}]}] * 9}, "9 runs"),
        ({"runs": [{"flows": [{"goodput_bps": 1}]}] * 10}, "goodput above 0 for each of cubic, reno"),
        ({"runs": [{"flows": [{"goodput_bps": 1}, {"goodput_bps": 0}]}] * 10}, "goodput above 0"),
        ({"runs": [{"flows": [{}, {}]}] * 10}, "not a recording"),
        ({"parameters": {"variants": ["cubic", "vegas"]}}, "no bound for vegas; known: reno, cubic, bbr"),
        ({"parameters": {}}, "not a recording of a shared bottleneck .'variants'"),
        ({"parameters": {"variants": ["cubic", "reno"]}}, "'mtu_bytes'"),
    ],
)
def test_a_damaged_recording_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    path = tmp_path / "recording.json"
    path.write_text(json.dumps({**json.loads(RECORDING.read_text()), **change}))
    with pytest.raises(LogError, match=problem):
        read_recording(path)
