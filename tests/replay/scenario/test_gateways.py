"""Gateways that protect the links between them: what they do to a scenario, what it costs, and what is refused."""

from __future__ import annotations

import tomllib
from math import comb
from pathlib import Path
from typing import Any

import pytest

from hindflight.replay.experiment.engine_inputs import Job, engine_config, plan_comparison
from hindflight.replay.experiment.run import run_jobs
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.replay.scenario.presets import find_preset
from hindflight.toolkit.errors import ScenarioError

LINKS = (
    {"name": "up", "rate": "10 Mbit/s", "delay": "10 ms"},
    {
        "name": "sky", "rate": "1 Mbit/s", "delay": "100 ms", "queue": "80 pkts",
        "loss": {"model": "bernoulli", "per": 0.1},
        "changes": [{"at": "10 s", "rate": "2 Mbit/s"}],
    },
    {"name": "down", "rate": "10 Mbit/s", "delay": "1 ms"},
)  # fmt: skip


def _scenario(box: dict[str, Any], links: Any = LINKS, **given: Any) -> Scenario:
    data = {
        "name": "g", "duration": "60 s", "path": ["a", "g", "h", "b"], "links": [dict(link) for link in links],
        "flow": {"profile": "rfc", "size": "1460 B"},
        "datagrams": [{"name": "voice", "packet": "1500 B", "rate": "400 kbit/s", "start": "1 s"}],
        "proxy": [{"name": "box", "node": "g", **box}],
        "compare": {"variants": ["newreno"], "proxies": ["none", "box"], "seeds": 4}, "keep": {"series": "none"},
        **given,
    }  # fmt: skip
    return parse_scenario(data, "g.toml", ("newreno",))


def _links(scenario: Scenario, proxy: str) -> list[dict[str, Any]]:
    config = engine_config(scenario, Job("newreno", proxy, "what_if", "model", 1, False), {})
    assert config["flows"][0]["proxies"] == []
    links: list[dict[str, Any]] = config["path"]["links"]
    return links


def test_arq_lies_over_the_losses_and_a_try_takes_the_round_trip_of_the_link() -> None:
    scenario = _scenario({"kind": "arq", "peer": "h", "layer": {"retries": 2}})
    plain, links = _links(scenario, "none"), _links(scenario, "box")
    assert links[0] == plain[0]
    assert links[2] == plain[2]
    below = plain[1]["forward"]["loss"]
    assert links[1]["forward"] == {
        **plain[1]["forward"],
        "loss": {"kind": "arq", "over": below, "retries": 2, "try_ns": 200_000_000, "in_order": False},
        "in_order": True,
    }
    unordered = _scenario({"kind": "arq", "peer": "h", "layer": {"try_time": "7 ms", "in_order": False}})
    forward = _links(unordered, "box")[1]["forward"]
    assert (forward["loss"]["try_ns"], forward["in_order"]) == (7_000_000, False)


def test_a_code_has_its_share_of_the_rate_of_every_link_of_the_tunnel() -> None:
    scenario = _scenario({"preset": "fec-tunnel", "node": "a", "peer": "h"})
    plain, links = _links(scenario, "none"), _links(scenario, "box")
    assert links[2] == plain[2]
    assert [link["forward"]["rate_bps"] for link in links] == pytest.approx([9e6, 0.9e6, 10e6])
    assert links[1]["forward"]["schedule"][0]["rate_bps"] == pytest.approx(1.8e6)
    assert [link["reverse"] for link in links[::2]] == [link["reverse"] for link in plain[::2]]
    code = links[1]["forward"]["loss"]
    assert (code["kind"], code["block"], code["repair"], code["packet_ns"]) == ("fec", 20, 2, 12_000_000)
    assert code["over"] == plain[1]["forward"]["loss"]


def test_both_ways_of_a_link_are_repeated_on_and_a_channel_as_a_whole() -> None:
    back = {"rate": "1 Mbit/s", "delay": "100 ms", "loss": {"model": "bernoulli", "per": 0.2}}
    lossy = _scenario({"kind": "arq", "peer": "h"}, (LINKS[0], {**LINKS[1], "reverse": back}, LINKS[2]))
    link = _links(lossy, "box")[1]
    assert [link[way]["loss"]["over"]["per"] for way in ("forward", "reverse")] == [0.1, 0.2]
    sky = {"name": "sky", "rate": "1 Mbit/s", "delay": "100 ms", "channel": {"model": "uav"}}
    whole = _scenario({"kind": "arq", "peer": "h"}, (LINKS[0], sky, LINKS[2]))
    assert _links(whole, "box")[1]["forward"]["loss"]["kind"] == "arq"
    assert _links(whole, "none")[1]["forward"]["loss"]["kind"] != "arq"


def test_gateways_and_a_proxy_share_a_node() -> None:
    tables = [
        {"name": "tunnel", "node": "g", "peer": "h", "preset": "fec-tunnel"},
        {"name": "split", "node": "g", "receive_buffer": "50 pkts"},
    ]
    compare = {"variants": ["newreno"], "proxies": ["tunnel+split"], "seeds": 1}
    scenario = _scenario({}, proxy=tables, compare=compare)
    config = engine_config(scenario, Job("newreno", "tunnel+split", "what_if", "model", 1, False), {})
    assert [proxy["node"] for proxy in config["flows"][0]["proxies"]] == ["g"]
    assert config["path"]["links"][1]["forward"]["loss"]["kind"] == "fec"


def _voice(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    jobs = dict(enumerate(plan_comparison(scenario, ("newreno",)), 1))
    runs = [run for run in run_jobs(scenario, jobs, {}, threads=1)["runs"].to_pylist() if run["variant"] == "udp"]
    return {proxy: [run for run in runs if run["proxy"] == proxy] for proxy in ("none", "box")}


def _lost(runs: list[dict[str, Any]]) -> float:
    lost, sent = (sum(int(run[name]) for run in runs) for name in ("channel_losses", "segments_out"))
    return lost / sent


def test_arq_costs_a_stream_of_datagrams_delay_and_saves_it_losses() -> None:
    sent = 4 * 59 * 400e3 / 12e3
    found = _voice(_scenario({"kind": "arq", "peer": "h", "layer": {"retries": 2}}))
    assert _lost(found["none"]) == pytest.approx(0.1, abs=4 * (0.1 * 0.9 / sent) ** 0.5)
    assert _lost(found["box"]) == pytest.approx(1e-3, abs=4 * (1e-3 / sent) ** 0.5)
    for run in found["none"]:
        assert run["app_delay_p99_ns"] < 150e6
    for run in found["box"]:
        # One packet in ten waits for a try, and in order all behind it do; one in a hundred for two.
        assert 200e6 < run["app_delay_p95_ns"] - found["none"][0]["app_delay_p95_ns"] < 400e6


def test_a_code_leaves_what_its_redundancy_does_not_cover() -> None:
    sent = 4 * 59 * 400e3 / 12e3
    found = _voice(_scenario({"preset": "fec-tunnel", "peer": "h", "layer": {"block": 10, "repair": 2}}))
    others = 1 - sum(comb(9, k) * 0.1**k * 0.9 ** (9 - k) for k in range(2))
    # Losses come in blocks: the deviation is that of the share of blocks.
    assert _lost(found["box"]) == pytest.approx(0.1 * others, abs=6 * (0.1 * others / sent) ** 0.5)
    assert max(run["app_delay_max_ns"] for run in found["box"]) < 150e6 + 10 * 12e6


def _refused(proxy: dict[str, Any], links: Any = LINKS, **given: Any) -> str:
    with pytest.raises(ScenarioError) as error:
        _scenario(proxy, links, **given)
    return str(error.value)


PLAIN = tuple({key: value for key, value in link.items() if key != "loss"} for link in LINKS)
TRACE = ({**LINKS[1], "loss": {"model": "trace", "file": "x.parquet"}}, LINKS[0], LINKS[2])


@pytest.mark.parametrize(
    ("proxy", "links", "message"),
    [
        ({"kind": "fec"}, LINKS, "proxy[0].peer: this key is missing"),
        ({"kind": "fec", "peer": "H"}, LINKS, "proxy[0].peer: 'H' is not a node of the path"),
        ({"kind": "fec", "peer": "g"}, LINKS, "proxy[0].peer: 'g' is the node of this gateway"),
        ({"kind": "arq", "peer": "h"}, PLAIN, "proxy[0].peer: no link between 'g' and 'h' loses packets"),
        ({"kind": "fec", "peer": "b"}, (*LINKS[:2], {**LINKS[1], "name": "x"}), "2 links between 'g' and 'b' lose"),
        ({"kind": "arq", "peer": "h", "node": "a"}, TRACE, "link 'sky' replays a recording or is protected already"),
        (
            {"kind": "arq", "peer": "h", "layer": {"block": 3}},
            LINKS,
            "proxy[0].layer.block: unknown key; allowed: retries",
        ),
        ({"kind": "fec", "peer": "h", "layer": {"repair": 20}}, LINKS, "repair must be less than block"),
        ({"kind": "arq", "peer": "h", "advertise": "free"}, LINKS, 'advertise: has no effect with kind = "arq"'),
        ({"peer": "h"}, LINKS, 'proxy[0].peer: is a key of kind = "arq" and "fec"'),
        ({"kind": "snoop", "layer": {}}, LINKS, 'layer: has no effect with kind = "snoop"'),
        ({"kind": "fec", "peer": "h", "node": "G"}, LINKS, "proxy[0].node: 'G' is not a node of the path"),
    ],
)
def test_what_no_gateway_can_be_is_refused_with_its_key(proxy: dict[str, Any], links: Any, message: str) -> None:
    assert message in _refused(proxy, links)


def test_a_code_needs_a_rate_or_the_time_of_a_packet_and_no_recorded_rates() -> None:
    bare = {"name": "sky", "delay": "100 ms", "loss": {"model": "bernoulli", "per": 0.1}}
    links = (LINKS[0], bare, LINKS[2])
    assert "layer.packet_time: this key is missing" in _refused({"kind": "fec", "peer": "h"}, links)
    _scenario({"kind": "fec", "peer": "h", "layer": {"packet_time": "1 ms"}}, links)
    recorded = (LINKS[0], {**bare, "rate_file": "x.trace"}, LINKS[2])
    layer = {"packet_time": "1 ms"}
    assert "which the redundancy cannot share" in _refused({"kind": "fec", "peer": "h", "layer": layer}, recorded)


def test_gateways_belong_to_the_comparison_not_to_one_flow() -> None:
    flows = [{"name": "other", "variant": "newreno", "profile": "rfc", "proxies": ["box"]}]
    message = "protects links, which all flows share; name it in compare.proxies only"
    assert message in _refused({"kind": "arq", "peer": "h"}, flows=flows)


def test_the_scenario_of_the_documents_has_a_plan_for_each_choice() -> None:
    path = Path(__file__).parents[3] / "docs" / "scenarios" / "below-or-split.toml"
    scenario = parse_scenario(tomllib.loads(path.read_text()), path.name, ("cubic", "bbr"))
    losses = {}
    for proxy in scenario.compare.proxies:
        config = engine_config(scenario, Job("cubic", proxy, "what_if", "model", 1, False), {})
        losses[proxy] = config["path"]["links"][1]["forward"]["loss"]["kind"], len(config["flows"][0]["proxies"])
    assert losses == {
        "none": ("ber", 0), "split": ("ber", 1), "split-bbr": ("ber", 1),
        "arq": ("arq", 0), "arq-unordered": ("arq", 0), "fec": ("fec", 0), "split+fec": ("fec", 1),
    }  # fmt: skip


def test_the_preset_prints_a_whole_table() -> None:
    (table,) = tomllib.loads(find_preset("fec-tunnel").text())["proxy"]
    assert table == {
        "name": "fec-tunnel", "node": "NODE1", "peer": "NODE2", "kind": "fec", "layer": {"block": 20, "repair": 2}
    }  # fmt: skip


def test_one_gateway_protects_a_link() -> None:
    tables = [{"name": name, "kind": "arq", "node": node, "peer": "h"} for name, node in (("box", "f"), ("near", "g"))]
    data = {
        "name": "g", "duration": "60 s", "path": ["a", "f", "g", "h", "b"],
        "links": [{**LINKS[0], "name": "first"}, *(dict(link) for link in LINKS)],
        "flow": {"profile": "rfc", "size": "1460 B"}, "proxy": tables,
        "compare": {"variants": ["newreno"], "proxies": ["box", "near", "box+near"], "seeds": 4},
    }  # fmt: skip
    with pytest.raises(ScenarioError) as error:
        parse_scenario(data, "g.toml", ("newreno",))
    assert "compare.proxies[2]: 'box' and 'near' both protect link 'sky'; it takes one of them" in str(error.value)
