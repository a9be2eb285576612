"""The knee of the cache of a chain that a report recommends."""

from __future__ import annotations

from typing import Any

import pytest

from hindflight.replay.experiment import cache_knee as module
from hindflight.replay.experiment.cache_knee import STEPS, cache_knee
from hindflight.replay.experiment.compare import known_goodputs
from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.experiment.place import Space, place
from hindflight.replay.experiment.run import Configuration, run_configurations, run_jobs
from hindflight.replay.scenario.model import Scenario, parse_scenario

LINK = {"rate": "1 Mbit/s", "delay": "100 ms", "queue": "100 pkts"}


def _scenario(**proxy: Any) -> Scenario:
    data = {
        "name": "knee", "duration": "40 s", "path": ["a", "m", "b"],
        "links": [{"name": "up", **LINK}, {"name": "down", **LINK}],
        "flow": {"profile": "rfc", "size": "greedy"},
        "proxy": [{"name": "box", "node": "m", **proxy}],
        "compare": {"variants": ["newreno"], "proxies": ["none", "box"], "seeds": 2},
    }  # fmt: skip
    return parse_scenario(data, "knee.toml", ("newreno", "hybla"))


def test_it_is_the_knee_that_a_search_finds(tmp_path: Any) -> None:
    scenario = _scenario(receive_buffer="128 pkts")
    knee = cache_knee(scenario, "newreno", "box", {}, threads=1)
    assert knee is not None
    (found,) = place(scenario, tmp_path, Space(max_cache_pkts=128, max_proxies=1), threads=1).best
    assert found.knee_pkts is not None
    assert knee.whole_bytes == pytest.approx(128 / found.knee_pkts * knee.knee_bytes, rel=0.1)


def test_caches_in_octets_are_scaled_down_to_a_full_segment() -> None:
    knee = cache_knee(_scenario(receive_buffer="300 kB", advertise="free"), "newreno", "box", {}, threads=1)
    assert knee is not None
    assert knee.whole_bytes == 300_000
    # One pipe of a leg: 1 Mbit/s over 200 ms, and what is on its way onward.
    assert 25_000 <= knee.knee_bytes <= 75_000


@pytest.mark.parametrize("chain", ["none", "box"])
def test_without_a_cache_there_is_no_knee(chain: str) -> None:
    assert cache_knee(_scenario(advertise="sockets"), "newreno", chain, {}, threads=1) is None


def test_runs_of_the_comparison_are_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = _scenario(receive_buffer="128 pkts")
    jobs = {seed: Job("newreno", "box", "what_if", "model", seed, True) for seed in (1, 2)}
    known = known_goodputs(run_jobs(scenario, jobs, {}, threads=1)["runs"].to_pylist())
    expected = cache_knee(scenario, "newreno", "box", {}, threads=1)
    made: list[int] = []

    def counted(configurations: list[Configuration], **options: Any) -> Any:
        made.append(len(configurations))
        return run_configurations(configurations, **options)

    monkeypatch.setattr(module, "run_configurations", counted)
    assert cache_knee(scenario, "newreno", "box", {}, threads=1, known=known) == expected
    assert made == [2] * STEPS  # Not those of the whole cache, which the comparison has.
    made.clear()
    one = {key: value for key, value in known.items() if key[-1] == 1}
    assert cache_knee(scenario, "newreno", "box", {}, threads=1, known=one) == expected
    assert made == [1, *[2] * STEPS]
