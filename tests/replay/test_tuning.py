"""`[variants.NAME]`: a variant with other parameters under a name of one's own, in every place that names variants."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from replay.jobs import engine_config, plan_comparison
from replay.run import run_jobs, variant_names
from replay.scenario import Scenario, parse_scenario
from tests.replay.test_scenario import GOOD
from toolkit.errors import ScenarioError


def _scenario(**changes: Any) -> Scenario:
    data = copy.deepcopy(GOOD)
    data["links"][0]["loss"] = {"model": "bernoulli", "per": 0.01}
    return parse_scenario({**data, **changes}, "geo.toml", variant_names())


SCALABLE = {"tame": {"variant": "scalable", "a": 0.001, "b": 0.5}, "asran-cubic": {"variant": "asran", "base": "cubic"}}


def test_a_tuned_variant_runs_with_its_parameters_and_is_told_of_by_its_own_name() -> None:
    scenario = _scenario(
        variants=SCALABLE,
        compare={"variants": ["scalable", "tame", "asran-cubic"], "seeds": 1},
        flows=[{"name": "beside", "variant": "tame", "start": "1 s"}],
    )
    jobs = plan_comparison(scenario, scenario.compare.variants)
    config = engine_config(scenario, jobs[1], {})["flows"]
    assert (config[0]["variant"], config[0]["params"]) == ("scalable", {"a": 0.001, "b": 0.5})
    assert (config[1]["variant"], config[1]["params"]) == ("scalable", {"a": 0.001, "b": 0.5})
    assert engine_config(scenario, jobs[2], {})["flows"][0]["params"] == {"base": "cubic"}
    assert "params" not in engine_config(scenario, jobs[0], {})["flows"][0]
    runs = run_jobs(scenario, dict(enumerate(jobs, 1)), {})["runs"].to_pylist()
    assert [run["variant"] for run in runs] == ["scalable", "tame", "tame", "tame", "asran-cubic", "tame"]
    assert len({run["delivered_bytes"] for run in runs if run["role"] == "studied"}) == 3


def test_a_proxy_may_be_tuned() -> None:
    scenario = _scenario(
        variants=SCALABLE,
        proxy={"variant": "tame"},
        compare={"variants": ["cubic"], "proxies": ["relay"], "seeds": 1},
    )
    (job,) = plan_comparison(scenario, ("cubic",))
    flow = engine_config(scenario, job, {})["flows"][0]
    assert flow["variant"] == "cubic"
    assert flow["proxies"][0]["params"] == {"a": 0.001, "b": 0.5}


@pytest.mark.parametrize(
    ("variants", "says"),
    [
        ({"mine": {"a": 0.1}}, "variants.mine.variant: this key is missing"),
        (
            {"mine": {"variant": "scalabel"}},
            "variants.mine.variant: unknown variant 'scalabel'; did you mean",
        ),
        ({"cubic": {"variant": "scalable"}}, "variants.cubic: there is a variant of that name"),
    ],
)
def test_slips_name_the_key(variants: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        _scenario(variants=variants)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"bse": "cubic"}, 'no such parameter; did you mean "base"?'),
        ({"base": "kubic"}, '"kubic" is none of newreno, cubic'),
        ({"base": 1}, "must be one of newreno, cubic"),
    ],
)
def test_the_engine_refuses_what_the_variant_does_not_have(params: dict[str, Any], says: str) -> None:
    tuned = {"mine": {"variant": "asran", **params}}
    scenario = _scenario(variants=tuned, compare={"variants": ["mine"], "seeds": 1})
    with pytest.raises(ScenarioError) as caught:
        run_jobs(scenario, dict(enumerate(plan_comparison(scenario, ("mine",)), 1)), {})
    assert says in str(caught.value)
    assert "flows[0].params" in str(caught.value)
