"""Delay that varies: from the file to the engine, what it does to packets, what is refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from hindflight.replay.experiment.engine_inputs import Job, engine_config
from hindflight.replay.experiment.run import run_jobs
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.errors import ScenarioError
from tests.replay.scenario.test_scenario import GOOD, VARIANTS

JOB = Job("newreno", "none", "what_if", "model", 1, False)


def _scenario(link: dict[str, Any]) -> Scenario:
    links = [{"name": "up", "delay": "50 ms", **link}, {"name": "down", "delay": "5 ms"}]
    data = {**copy.deepcopy(GOOD), "links": links, "duration": "10 s", "flow": {"size": "1 MB"}}
    return parse_scenario(data, "s.toml", VARIANTS)


def _duplicates(link: dict[str, Any]) -> tuple[int, float]:
    runs = run_jobs(_scenario(link), {1: JOB}, {})["runs"]
    return runs["retransmissions"][0].as_py(), runs["rtt_p95_ns"][0].as_py() / 1e6


def test_jitter_reaches_the_engine_direction_by_direction() -> None:
    forward = {"kind": "exponential", "spread": "3 ms"}
    back = {"delay": "50 ms", "jitter": {"kind": "half_normal", "spread": "1 ms"}}
    links = engine_config(_scenario({"jitter": forward, "reverse": back}), JOB, {})["path"]["links"]
    assert links[0]["forward"]["jitter"] == {"kind": "exponential", "spread_ns": 3_000_000}
    assert links[0]["reverse"]["jitter"] == {"kind": "half_normal", "spread_ns": 1_000_000}
    assert links[1]["forward"]["jitter"] is None
    only_forward = engine_config(_scenario({"jitter": forward}), JOB, {})["path"]["links"][0]
    assert only_forward["reverse"]["jitter"] is None


def test_overtaking_leads_to_retransmissions_and_order_does_not() -> None:
    jitter = {"kind": "uniform", "spread": "40 ms"}
    steady, overtaking = _duplicates({}), _duplicates({"jitter": jitter})
    ordered = _duplicates({"jitter": jitter, "in_order": True})
    assert (steady[0], ordered[0]) == (0, 0)
    assert overtaking[0] > 0
    assert np.isclose(steady[1], 110, atol=2)
    assert 120 < ordered[1] <= 152


@pytest.mark.parametrize(
    ("jitter", "says"),
    [
        ({"kind": "normal", "spread": "1 ms"}, "links[0].jitter.kind"),
        ({"kind": "uniform", "spread": "0 s"}, "links[0].jitter.spread"),
        ({"kind": "uniform"}, "links[0].jitter.spread"),
    ],
)
def test_what_makes_no_sense_is_refused(jitter: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        _scenario({"jitter": jitter})
    assert says in str(caught.value)
