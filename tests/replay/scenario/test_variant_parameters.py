"""`[variants.NAME]`: a variant with other parameters under a name of one's own, in every place that names variants."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hindflight.replay.controllers.base import variant_names
from hindflight.replay.experiment.engine_inputs import engine_config, plan_comparison
from hindflight.replay.experiment.run import check_jobs, run_jobs
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.errors import ScenarioError
from tests.replay.scenario.test_scenario import GOOD


def _scenario(**changes: Any) -> Scenario:
    data = copy.deepcopy(GOOD)
    data["links"][0]["loss"] = {"model": "bernoulli", "per": 0.01}
    return parse_scenario({**data, **changes}, "geo.toml", variant_names())


SCALABLE = {"tame": {"variant": "scalable", "a": 0.001, "b": 0.5}, "asran-cubic": {"variant": "asran", "base": "cubic"}}


def test_a_variant_with_other_parameters_runs_under_its_name() -> None:
    scenario = _scenario(
        variants=SCALABLE,
        compare={"variants": ["scalable", "tame", "asran-cubic"], "seeds": 1},
        flows=[{"name": "other", "variant": "tame", "start": "1 s"}],
    )
    jobs = plan_comparison(scenario, scenario.compare.variants)
    config = engine_config(scenario, jobs[1], {})["flows"]
    assert (config[0]["variant"], config[0]["params"]) == ("scalable", {"a": 0.001, "b": 0.5})
    assert (config[1]["variant"], config[1]["params"]) == ("scalable", {"a": 0.001, "b": 0.5})
    assert engine_config(scenario, jobs[2], {})["flows"][0]["params"] == {"base": "cubic"}
    assert "params" not in engine_config(scenario, jobs[0], {})["flows"][0]
    runs = run_jobs(scenario, dict(enumerate(jobs, 1)), {})["runs"].to_pylist()
    assert [run["variant"] for run in runs] == ["scalable", "tame", "tame", "tame", "asran-cubic", "tame"]
    assert len({run["delivered_bytes"] for run in runs if run["role"] == "under_test"}) == 3


def test_a_proxy_may_be_tuned() -> None:
    scenario = _scenario(
        variants={"tame": SCALABLE["tame"]},
        proxy=[{"name": "T", "node": "relay", "variant": "tame"}],
        compare={"variants": ["cubic"], "proxies": ["T"], "seeds": 1},
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
        ({"mine": {"variant": "asran", "bse": "cubic"}}, "variants.mine.bse: no such parameter; did you mean 'base'?"),
        ({"mine": {"variant": "newreno", "beta": 0.5}}, "variants.mine.beta: newreno has no parameters"),
        (
            {"mine": {"variant": "scalable", "a": float("nan")}},
            "variants.mine.a: nan is not between 0.000001 and 1 segments",
        ),
        ({"mine": {"variant": "scalable", "a": [1]}}, "variants.mine.a: [1] is neither a number nor a text"),
        ({"mine": {"variant": "hybla", "rtt_0": 0.025}}, "variants.mine.rtt_0: write the time with its unit, as in"),
        ({"mine": {"variant": "hybla", "rtt_0": "25 kB"}}, "variants.mine.rtt_0: unit 'kB' is not known"),
        ({"mine": {"variant": "hybla", "rtt_0": True}}, "variants.mine.rtt_0: write the time with its unit"),
    ],
)
def test_errors_name_the_key(variants: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        _scenario(variants=variants)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("tuned", "says"),
    [
        ({"variant": "asran", "base": "kubic"}, 'base: "kubic" is not one of newreno, cubic (asran under rfc)'),
        ({"variant": "asran", "base": 1}, "base: must be one of newreno, cubic (asran under rfc)"),
        ({"variant": "hybla", "rtt_0": "2 min"}, "rtt_0: 120 is not between "),
        ({"variant": "vegas", "alpha": 5}, "alpha: must be below beta"),
    ],
)
def test_what_the_engine_refuses_names_the_file_and_its_key(tuned: dict[str, Any], says: str) -> None:
    scenario = _scenario(variants={"mine": tuned}, compare={"variants": ["cubic", "mine"], "seeds": 1})
    with pytest.raises(ScenarioError) as caught:
        run_jobs(scenario, dict(enumerate(plan_comparison(scenario, ("cubic", "mine")), 1)), {})
    assert str(caught.value).startswith(f"geo.toml: variants.mine.{says}")


def test_a_time_reaches_the_engine_in_the_unit_of_its_parameter() -> None:
    scenario = _scenario(variants={"mine": {"variant": "hybla", "rtt_0": "50 ms"}}, compare={"variants": ["mine"]})
    (job, *_) = plan_comparison(scenario, ("mine",))
    assert engine_config(scenario, job, {})["flows"][0]["params"] == {"rtt_0": pytest.approx(0.05, rel=1e-12)}


def test_a_profile_that_fixes_the_parameters_says_which_do_not() -> None:
    scenario = _scenario(
        flow={"profile": "linux"},
        variants={"mine": {"variant": "cubic", "beta": 0.8}},
        compare={"variants": ["mine"], "seeds": 1},
    )
    with pytest.raises(ScenarioError) as caught:
        check_jobs(scenario, plan_comparison(scenario, ("mine",)), {})
    said = "geo.toml: variants.mine.beta: cubic has parameters only under rfc, ns2, none under linux"
    assert str(caught.value) == said
