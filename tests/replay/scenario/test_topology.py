"""Links beside the path: the tree that they make, the ways over it, and one line for each mistake."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hindflight.replay.experiment.engine_inputs import engine_config, plan_comparison
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.replay.scenario.topology import grow
from hindflight.toolkit.errors import ScenarioError

KNOWN = ("newreno", "cubic")
HOP = {"rate": "1 Mbit/s", "delay": "10 ms"}
FILE: dict[str, Any] = {
    "name": "swarm",
    "duration": "60 s",
    "path": ["uav-1", "gateway", "ground"],
    "links": [
        {"name": "radio-1", **HOP},
        {"name": "trunk", **HOP},
        {"name": "radio-2", "from": "uav-2", "to": "gateway", **HOP},
        {"name": "lan", "from": "ground", "to": "pc", **HOP},
    ],
    "flows": [{"name": "second", "variant": "cubic", "from": "uav-2", "to": "pc", "proxies": ["gateway", "ground"]}],
    "compare": {"variants": ["newreno"], "seeds": 1},
}


def _scenario(**changed: Any) -> Scenario:
    return parse_scenario(copy.deepcopy(FILE) | changed, "swarm.toml", KNOWN)


def _refused(**changed: Any) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        _scenario(**changed)
    return [line.removeprefix("swarm.toml: ") for line in str(caught.value).splitlines()]


def _links(*ends: tuple[str, str]) -> list[dict[str, Any]]:
    own = [{"name": f"own-{i}", "from": begin, "to": end, **HOP} for i, (begin, end) in enumerate(ends)]
    return [*FILE["links"][:2], *own]


def test_there_is_one_way_between_any_two_nodes() -> None:
    tree, wrong = grow(("a", "b", "c"), (None, None, ("d", "b"), ("c", "e"), ("f", "d")))
    assert (wrong, tree.nodes) == ([], ("a", "b", "c", "d", "e", "f"))
    assert tree.way("a", "c") == ("a", "b", "c")
    assert tree.way("f", "e") == ("f", "d", "b", "c", "e") == tree.way("e", "f")[::-1]
    assert tree.way("a", "f") == ("a", "b", "d", "f")
    assert tree.links(tree.way("f", "e")) == {4, 2, 1, 3} == tree.links(tree.way("e", "f"))
    assert (tree.way("b", "b"), tree.links(("b",))) == (("b",), set())


def test_the_engine_gets_the_nodes_and_the_ends_of_each_link() -> None:
    scenario = _scenario()
    (job,) = plan_comparison(scenario, ("newreno",))
    config = engine_config(scenario, job, {})
    assert config["path"]["nodes"] == ["uav-1", "gateway", "ground", "uav-2", "pc"]
    ends = [(link.get("from"), link.get("to")) for link in config["path"]["links"]]
    assert ends == [(None, None), (None, None), ("uav-2", "gateway"), ("ground", "pc")]
    second = config["flows"][1]
    assert (second["from"], second["to"]) == ("uav-2", "pc")
    assert [proxy["node"] for proxy in second["proxies"]] == ["gateway", "ground"]


def test_proxies_are_in_the_order_of_the_way_of_their_flow() -> None:
    back = {"name": "back", "variant": "cubic", "from": "pc", "to": "uav-2", "proxies": ["gateway", "ground"]}
    scenario = _scenario(flows=[back])
    (job,) = plan_comparison(scenario, ("newreno",))
    assert [proxy["node"] for proxy in engine_config(scenario, job, {})["flows"][1]["proxies"]] == ["ground", "gateway"]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"links": _links(("uav-2", "gatway"))},
            "links[2]: neither 'uav-2' nor 'gatway' is a node of the links before it; did you mean 'uav-1'?",
        ),
        (
            {"links": _links(("uav-2", "gateway"), ("uav-2", "ground"))},
            "links[3]: 'uav-2' and 'ground' are joined already by way of gateway; links form a tree",
        ),
        ({"links": _links(("gateway", "ground"))}, "links[2]: 'gateway' and 'ground' are joined already; links form a"),
        ({"links": FILE["links"][:1]}, "links: 1 given, 2 needed between 3 nodes"),
        (
            {"links": [FILE["links"][2], *FILE["links"][:2]], "flows": []},
            "links[1]: the links of the path come before those with from and to",
        ),
        ({"links": [*FILE["links"][:2], {"name": "x", "from": "y", **HOP}]}, "links[2]: from and to belong together"),
        (
            {"flows": [{"name": "second", "variant": "cubic", "from": "uav-2"}]},
            "links[3]: no flow uses it; let one of [[flows]] begin or end at 'pc', or leave it out",
        ),
        (
            {"flows": [{"name": "second", "variant": "cubic", "from": "uav-3", "to": "pc"}]},
            "flows[0].from: 'uav-3' is not a node of the path; did you mean 'uav-1' or 'uav-2'?",
        ),
        (
            {"proxy": [{"name": "p", "node": "pc"}]},
            "proxy[0].node: 'pc' is an end of the path; a proxy needs a node between its ends: gateway, ground",
        ),
        (
            {"compare": {"variants": ["newreno"], "proxies": ["p"]}, "proxy": [{"name": "p", "node": "ground"}]},
            "compare.proxies[0]: 'ground' is not a node between its ends; allowed: gateway",
        ),
    ],
)
def test_a_mistake_is_one_line(changed: dict[str, Any], says: str) -> None:
    assert _refused(**changed)[0].startswith(says)
