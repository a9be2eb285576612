"""Jobs: the runs of a scenario, and the configuration of the engine."""

from __future__ import annotations

import copy
from typing import Any

from hindflight.replay.experiment.engine_inputs import engine_config, plan_comparison, plan_self_check, trace_files
from hindflight.replay.scenario.loss_trace import default_block_pkts
from hindflight.replay.scenario.model import Scenario, parse_scenario
from tests.replay.losses import lost
from tests.replay.scenario.test_scenario import GOOD, VARIANTS

TRACES = {"channel.parquet": lost((3, 4, 5, 90), 1000)}


def _scenario(**changes: Any) -> Scenario:
    return parse_scenario({**copy.deepcopy(GOOD), **changes}, "geo.toml", VARIANTS)


def test_a_trace_is_replayed_once_and_resampled_by_seed() -> None:
    scenario = _scenario(compare={"variants": ["newreno", "cubic"], "proxies": ["none", "relay"], "seeds": 3})
    jobs = plan_comparison(scenario, ("newreno", "cubic"))
    assert len(jobs) == 2 * 2 * (1 + 3)
    assert [(j.mode, j.seed, j.recorded) for j in jobs[:4]] == [
        ("replayed", 1, True),
        ("resampled", 1, False),
        ("resampled", 2, False),
        ("resampled", 3, False),
    ]
    seeds = {key: [j.seed for j in jobs if (j.variant, j.proxy) == key] for key in {(j.variant, j.proxy) for j in jobs}}
    assert len({tuple(s) for s in seeds.values()}) == 1


def test_a_model_has_seeded_runs_only_and_the_first_is_recorded() -> None:
    links = copy.deepcopy(GOOD["links"])
    links[0]["loss"] = {"model": "bernoulli", "per": 0.01}
    jobs = plan_comparison(_scenario(links=links), ("newreno",))
    assert {job.mode for job in jobs} == {"model"}
    assert [job.recorded for job in jobs if job.proxy == "none"] == [True, False, False]


def test_what_is_kept_decides_which_runs_are_recorded() -> None:
    links = copy.deepcopy(GOOD["links"])
    links[0]["loss"] = {"model": "bernoulli", "per": 0.01}
    compare = {**GOOD["compare"], "proxies": ["none"]}
    for keep, drawn, traced in (
        ({}, [True, False, False], [True, False, False, False]),
        ({"series": "states"}, [True, False, False], [True, False, False, False]),
        ({"runs": "all"}, [True, True, True], [True, True, True, True]),
        ({"series": "none"}, [False, False, False], [False, False, False, False]),
    ):
        for expected, changes in ((drawn, {"links": links}), (traced, {})):
            scenario = _scenario(keep=keep, compare=compare, **changes)
            assert [job.recorded for job in plan_comparison(scenario, ("newreno",))] == expected
    as_captured = plan_comparison(_scenario(compare={**compare, "seeds": 0}), ("newreno",))
    assert [job.mode for job in as_captured] == ["replayed"]
    assert all(job.recorded for job in plan_self_check(_scenario(keep={"series": "none"}), VARIANTS))


def test_the_self_check_tries_every_candidate_without_a_proxy() -> None:
    jobs = plan_self_check(_scenario(), VARIANTS)
    assert [(j.variant, j.proxy, j.mode) for j in jobs] == [(v, "none", "replayed") for v in VARIANTS]


def test_the_engine_gets_base_units_and_the_trace() -> None:
    scenario = _scenario()
    assert [key for key, _ in trace_files(scenario)] == ["links[0].loss.file"]
    job = next(j for j in plan_comparison(scenario, ("newreno",)) if j.proxy == "relay" and j.mode == "resampled")
    config = engine_config(scenario, job, TRACES)
    up = config["path"]["links"][0]
    assert up["forward"]["rate_bps"] == 4e6
    loss = up["forward"]["loss"]
    assert {**loss, "positions": loss["positions"].to_pylist(), "late": loss["late"].to_pylist()} == {
        "kind": "trace",
        "mode": "resampled",
        "positions": [3, 4, 5, 90],
        "late": [],
        "known_pkts": 1000,
        "block_pkts": 100,
    }
    assert up["reverse"]["loss"] == {"kind": "none"}
    (flow,) = config["flows"]
    assert flow["proxies"] == [
        {
            "node": "relay",
            "receive_buffer": None,
            "send_buffer": None,
            "acknowledge": "on_receipt",
            "advertise": "half_free",
            "forward_window": "unlimited",
            "handshake": "accept",
            "faults": [],
            "variant": "newreno",
        }
    ]


def test_blocks_are_longer_than_bursts_and_shorter_than_the_trace() -> None:
    assert default_block_pkts(lost((3, 4, 5, 90), 1000)) == 50
    assert default_block_pkts(lost(range(20), 1000)) == 200
    assert default_block_pkts(lost(range(90), 1000)) == 250
    assert default_block_pkts(lost((), 2)) == 1


def test_every_proxy_has_the_variant_of_its_table() -> None:
    shared = [{"name": "other", "variant": "cubic", "proxies": ["relay"]}]
    for given, expected in (({"variant": "sack"}, "sack"), ({}, "cubic")):
        scenario = _scenario(proxy=[{"name": "relay", "node": "relay", **given}], flows=shared)
        job = plan_comparison(scenario, ("newreno",))[0]
        flow, other = engine_config(scenario, job, TRACES)["flows"]
        assert other["variant"] == "cubic"
        assert [proxy["variant"] for proxy in other["proxies"]] == [expected]
        assert flow["variant"] == "newreno"
