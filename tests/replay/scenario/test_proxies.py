"""`[[proxy]]` tables: names, chains, the stack of each connection, and one line for each mistake."""

from __future__ import annotations

import copy
import tomllib
from typing import Any

import pytest

import hindflight as hf
from hindflight.replay.experiment.engine_inputs import engine_config, plan_comparison
from hindflight.replay.experiment.run import run_jobs
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.replay.scenario.presets import PRESETS
from hindflight.toolkit.errors import HindflightError, ScenarioError

KNOWN = ("newreno", "cubic", "hybla", "sack", "compound", "aerotcp", "scps-tp", "linux-reno")
HOP = {"name": "hop", "rate": "1 Mbit/s", "delay": "10 ms"}
FILE: dict[str, Any] = {
    "name": "haps",
    "duration": "60 s",
    "path": ["W", "T", "S", "G"],
    "links": [{**HOP, "name": name} for name in ("wt", "ts", "sg")],
    "flow": {"profile": "ns2", "mss": "1460 B", "min_rto": "300 ms"},
    "compare": {"variants": ["newreno"], "proxies": ["none"], "seeds": 1},
}


def _scenario(*proxies: dict[str, Any], **changed: Any) -> Scenario:
    """FILE with these proxies, all of which the comparison names as one chain unless `changed` says otherwise."""
    data = copy.deepcopy(FILE) | {"proxy": list(proxies)}
    data["compare"]["proxies"] = ["+".join(str(proxy["name"]) for proxy in proxies) or "none"]
    for key, value in changed.items():
        data[key] = {**data[key], **value} if isinstance(value, dict) and key in data else value
    return parse_scenario(data, "haps.toml", KNOWN)


LOSSY: list[dict[str, Any]] = [{**HOP, "name": name} for name in ("wt", "ts", "sg")]
LOSSY[1] = {**LOSSY[1], "loss": {"model": "bernoulli", "per": 1e-3}}


def _links_of(preset: str) -> dict[str, Any]:
    """What a preset needs of the links: something to protect between two gateways."""
    return {"links": LOSSY} if PRESETS[preset].tunnels else {}


def _chain(scenario: Scenario, variant: str = "newreno", flow: int = 0) -> list[dict[str, Any]]:
    """The proxies of a flow, as the engine gets them."""
    (job,) = plan_comparison(scenario, (variant,))
    found: list[dict[str, Any]] = engine_config(scenario, job, {})["flows"][flow]["proxies"]
    return found


def _refused(*proxies: dict[str, Any], **changed: Any) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        _scenario(*proxies, **changed)
    return [line.removeprefix("haps.toml: ") for line in str(caught.value).splitlines()]


def test_a_chain_is_in_the_order_of_the_path_whatever_the_order_of_the_names() -> None:
    tables = ({"name": "sat", "node": "S"}, {"name": "truck", "node": "T", "receive_buffer": "84 pkts"})
    for text, named in (("sat+truck", tables), ("truck+sat", tables), ("S+truck", tables[1:])):
        chain = _chain(_scenario(*named, compare={"proxies": [text], "seeds": 1}))
        assert [proxy["node"] for proxy in chain] == ["T", "S"]
        assert [proxy["receive_buffer"] for proxy in chain] == [{"pkts": 84}, None]


def test_a_plain_node_has_the_forwarding_agent_of_the_paper() -> None:
    (proxy,) = _chain(_scenario(compare={"proxies": ["T"]}))
    policies = ("receive_buffer", "send_buffer", "acknowledge", "advertise", "forward_window", "handshake")
    assert [proxy[key] for key in policies] == [None, None, "on_receipt", "half_free", "unlimited", "accept"]


def test_every_policy_reaches_the_engine() -> None:
    table = {
        "name": "T",
        "node": "T",
        "receive_buffer": "64 KiB",
        "send_buffer": "30 pkts",
        "acknowledge": "on_delivery",
        "advertise": "third",
        "forward_window": "third",
        "handshake": "hold",
        "faults": [{"at": "10 s", "kind": "restart"}],
    }
    (proxy,) = _chain(_scenario(table))
    assert proxy == {
        "node": "T",
        "variant": "newreno",
        "receive_buffer": {"bytes": 65_536},
        "send_buffer": {"pkts": 30},
        "acknowledge": "on_delivery",
        "advertise": "third",
        "forward_window": "third",
        "handshake": "hold",
        "faults": [{"at_ns": 10_000_000_000, "kind": "restart"}],
    }


def test_limits_and_faults_reach_the_engine() -> None:
    table = {
        "name": "truck",
        "node": "T",
        "stack": {"profile": "linux"},
        "max_connections": 20,
        "resume_connections": 18,
        "beyond": "pass",
        "idle_timeout": "2 min",
        "pending_timeout": "30 s",
        "faults": [{"at": "1 s", "kind": "corruption"}, {"at": "2 s", "kind": "move", "transfer": "200 ms"}],
    }
    (proxy,) = _chain(_scenario(table))
    assert proxy["limit"] == {"name": "truck", "max_connections": 20, "resume_connections": 18, "beyond": "pass"}
    assert (proxy["idle_timeout_ns"], proxy["pending_timeout_ns"]) == (120_000_000_000, 30_000_000_000)
    assert proxy["faults"] == [
        {"at_ns": 1_000_000_000, "kind": "corruption"},
        {"at_ns": 2_000_000_000, "kind": "move", "transfer_ns": 200_000_000},
    ]


def test_an_agent_that_does_not_split_has_no_connection_of_its_own() -> None:
    table = {"name": "T", "node": "T", "kind": "snoop", "receive_buffer": "64 pkts"}
    (agent,) = _chain(_scenario(table))
    assert agent == {"node": "T", "kind": "snoop", "receive_buffer": {"pkts": 64}, "faults": []}
    (agent,) = _chain(_scenario({"name": "T", "node": "T", "preset": "ack-filter"}))
    assert agent == {"node": "T", "kind": "ack_filter", "faults": []}


def test_acks_are_filtered_in_a_drop_tail_queue_only() -> None:
    back = {"rate": "1 Mbit/s", "delay": "10 ms", "queue": {"kind": "codel"}}
    links = [{**HOP, "name": name, "reverse": back} for name in ("wt", "ts", "sg")]
    scenario = _scenario({"name": "T", "node": "T", "kind": "ack_filter"}, links=links)
    with pytest.raises(ScenarioError, match=r"proxy\[0\].kind: ACKs are filtered in a drop-tail queue"):
        run_jobs(scenario, dict(enumerate(plan_comparison(scenario, ("newreno",)), 1)), {})


def test_shared_memory_is_named_after_its_table() -> None:
    table = {"name": "truck", "node": "T", "pool": "shared"}
    flows = [{"name": "other", "variant": "cubic", "proxies": ["truck"], "start": "1 s"}]
    scenario = _scenario(table, flows=flows)
    assert [_chain(scenario, flow=flow)[0]["pool"] for flow in (0, 1)] == ["truck", "truck"]
    assert "pool" not in _chain(_scenario({"name": "truck", "node": "T"}))[0]
    sockets = 'proxy[0].pool: has no effect with advertise = "sockets", whose memory is that of the sockets'
    assert _refused({**table, "advertise": "sockets"})[0] == sockets


def test_no_socket_waits_for_delivery() -> None:
    table = {"name": "truck", "node": "T", "advertise": "sockets"}
    assert not _scenario({**table, "acknowledge": "on_receipt"}).proxy[0].faults
    refused = 'proxy[0].acknowledge: sockets acknowledge on receipt; "on_delivery" contradicts advertise = "sockets"'
    assert _refused({**table, "acknowledge": "on_delivery"}) == [refused]


def test_a_connection_has_the_stack_of_the_flow_then_of_its_variant_then_of_its_proxy() -> None:
    variants = {"mine": {"variant": "hybla", "stack": {"min_rto": "400 ms", "initial_window": "4 pkts"}}}
    flows = [{"name": "other", "variant": "mine", "profile": "linux", "start": "1 s"}]
    table = {"name": "T", "node": "T", "variant": "mine", "stack": {"min_rto": "500 ms"}}
    scenario = _scenario(table, variants=variants, flows=flows)
    (proxy,) = _chain(scenario)
    own = {"smss_bytes": 1460, "min_rto_ns": 500_000_000, "initial_window_pkts": 4}
    assert (proxy["variant"], proxy["stack"]) == ("hybla", {"profile": "ns2", "overrides": own})
    (job,) = plan_comparison(scenario, ("newreno",))
    other = engine_config(scenario, job, {})["flows"][1]
    assert (other["variant"], other["profile"]) == ("hybla", "linux")
    assert other["stack"] == {"min_rto_ns": 400_000_000, "initial_window_pkts": 4}
    # A profile leaves nothing of the flow's keys.
    linux = {"name": "T", "node": "T", "stack": {"profile": "linux", "dsack": False}}
    (proxy,) = _chain(_scenario(linux))
    assert proxy["stack"] == {"profile": "linux", "overrides": {"dsack": False}}
    # With nothing of its own it has the flow's.
    assert "stack" not in _chain(_scenario({"name": "T", "node": "T"}))[0]


def test_a_flow_that_shares_the_path_names_its_proxies_too() -> None:
    table = {"name": "truck", "node": "T", "variant": "sack"}
    flows = [{"name": "other", "variant": "cubic", "proxies": ["S", "truck"], "start": "1 s", "stop": "9 s"}]
    scenario = _scenario(table, compare={"proxies": ["none"]}, flows=flows)
    assert [(proxy["node"], proxy["variant"]) for proxy in _chain(scenario, flow=1)] == [("T", "sack"), ("S", "cubic")]
    assert _chain(scenario) == []
    assert scenario.flows[0].engine_flow()["stop_ns"] == 9_000_000_000


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"node": "W"}, "proxy[0].node: 'W' is an end of the path; a proxy needs a node between its ends: T, S"),
        ({"node": "M"}, "proxy[0].node: 'M' is not a node of the path; allowed: W, T, S, G"),
        ({"receive_buffer": "0 pkts"}, "proxy[0].receive_buffer: '0 pkts' holds nothing; at least 1 pkt, or the"),
        ({"send_buffer": "0 B"}, "proxy[0].send_buffer: '0 B' holds nothing; at least 1 pkt, or the"),
        ({"advertise": "half"}, "proxy[0].advertise: 'half' is not allowed; did you mean 'half_free'?"),
        ({"acknowledge": "later"}, "proxy[0].acknowledge: 'later' is not allowed; allowed: "),
        ({"variant": "cubik"}, "proxy[0].variant: unknown variant 'cubik'; did you mean 'cubic'?"),
        ({"stack": {"mn_rto": "1 s"}}, "proxy[0].stack.mn_rto: unknown key; did you mean 'min_rto'?"),
        ({"stack": {"close": True}}, "proxy[0].stack.close: whether connections close is a key of the flow"),
        ({"stack": {"max_rto": "200 ms"}}, "proxy[0].stack: max_rto is less than min_rto"),
        ({"faults": [{"at": "60 s", "kind": "restart"}]}, "proxy[0].faults[0].at: not before the end of the run"),
        (
            {"faults": [{"at": "9 s", "kind": "restart"}, {"at": "5 s", "kind": "failure"}]},
            "proxy[0].faults[1].at: earlier than the one before it",
        ),
        (
            {"kind": "snoop", "variant": "cubic"},
            'proxy[0].variant: has no effect with kind = "snoop", which does not split the connection',
        ),
        (
            {"kind": "ack_filter", "receive_buffer": "9 pkts"},
            'proxy[0].receive_buffer: has no effect with kind = "ack_filter", which does not',
        ),
        (
            {"kind": "spoofing", "faults": [{"at": "1 s", "kind": "corruption"}]},
            'proxy[0].faults[0].kind: with kind = "spoofing" the checksum of the sender shows',
        ),
        (
            {"faults": [{"at": "5 s", "kind": "failure"}, {"at": "9 s", "kind": "restart"}]},
            "proxy[0].faults[1]: has no effect, because the proxy has failed; leave it out",
        ),
        ({"max_connections": 0}, "proxy[0].max_connections: "),
        ({"max_connections": "20"}, "proxy[0].max_connections: '20' is not a whole number"),
        ({"max_connections": True}, "proxy[0].max_connections: True is not a whole number"),
        (
            {"max_connections": 3, "resume_connections": "2"},
            "proxy[0].resume_connections: '2' is not a whole number",
        ),
        ({"beyond": "pass"}, "proxy[0].beyond: has no effect without max_connections"),
        ({"resume_connections": 3}, "proxy[0].resume_connections: has no effect without max_connections"),
        (
            {"max_connections": 3, "resume_connections": 3},
            "proxy[0].resume_connections: must be below max_connections = 3",
        ),
        (
            {"faults": [{"at": "9 s", "kind": "restart", "transfer": "1 s"}]},
            'proxy[0].faults[0].transfer: only a fault of kind "move" transfers the state',
        ),
        ({"name": "S", "node": "T"}, "proxy[0].name: 'S' is a node, and this proxy is at another; choose another"),
    ],
)
def test_a_mistake_in_a_table_is_one_line(table: dict[str, Any], says: str) -> None:
    assert _refused({"name": "P", "node": "T", **table})[0].startswith(says)


def test_two_proxies_at_one_node_or_of_one_name_are_refused() -> None:
    one, two = {"name": "one", "node": "T"}, {"name": "two", "node": "T"}
    assert _refused(one, two) == ["compare.proxies[0]: 'one' and 'two' are both at node 'T'"]
    assert _refused(one, one)[0] == "proxy[1].name: 'one' is there twice"
    assert "both at node 'T'" in _refused(one, compare={"proxies": ["one+T"]})[0]


@pytest.mark.parametrize(
    ("chains", "says"),
    [
        (["one+one"], "compare.proxies[0]: 'one' is there twice"),
        (["none+one"], "compare.proxies[0]: 'none' is the path without a proxy, and stands alone"),
        (
            ["one+S", "S+one"],
            "compare.proxies[1]: 'S+one' is the same chain as 'one+S'; it is in the order of the path",
        ),
    ],
)
def test_a_chain_that_says_a_thing_twice_is_refused(chains: list[str], says: str) -> None:
    assert _refused({"name": "one", "node": "T"}, compare={"proxies": chains})[0] == says


def test_a_proxy_that_no_flow_uses_is_refused() -> None:
    where = "compare.proxies or in the proxies of one of [[flows]]"
    says = f"proxy[0]: no flow uses 'one'; name it in {where}, or leave it out"
    assert _refused({"name": "one", "node": "T"}, compare={"proxies": ["none", "S"]}) == [says]


def test_the_table_of_old_files_is_refused_with_the_new_text() -> None:
    data = copy.deepcopy(FILE) | {"proxy": {"buffer": "63 pkts", "advertise": "third"}}
    data["compare"]["proxies"] = ["none", "S"]
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(data, "old.toml", KNOWN)
    first, *new = str(caught.value).splitlines()
    assert first == "old.toml: proxy: [proxy] has become [[proxy]], a table for each proxy; write instead:"
    assert new == [
        "[[proxy]]",
        'name = "S"',
        'node = "S"',
        'receive_buffer = "63 pkts"',
        'advertise = "third"',
        'forward_window = "third"',
    ]
    tables = tomllib.loads("\n".join(new))["proxy"]
    assert parse_scenario({**data, "proxy": tables}, "new.toml", KNOWN).proxy[0].forward_window == "third"


@pytest.mark.parametrize("named", [3, "S", None, [3, ["S"]]])
def test_an_old_file_that_names_no_nodes_is_refused_alike(named: Any) -> None:
    data = {**FILE, "proxy": {}, "compare": {**FILE["compare"], "proxies": named}, "flows": [{"proxies": named}]}
    with pytest.raises(ScenarioError, match="has become"):
        parse_scenario(data, "old.toml", KNOWN)


def test_a_flow_stops_after_it_starts_and_before_the_run_ends() -> None:
    assert _refused(flow={"start": "2 s", "stop": "2 s"})[0] == "flow: stop is not later than start"
    assert _refused(flow={"stop": "60 s"})[0] == "flow.stop: not before the end of the run"


def test_presets_fill_tables_in_the_order_of_the_path_and_a_table_overrides_them() -> None:
    ground = {"name": "ground", "node": "T", "preset": "aerotcp-gateways", "advertise": "half_free"}
    aircraft = {"name": "air", "node": "S", "preset": "aerotcp-gateways", "send_buffer": "9 pkts"}
    one, two = _chain(_scenario(aircraft, ground, compare={"variants": ["newreno"]}, variants={}), "newreno")
    # 400 kbit/s times 480 ms are 24 kB; twice that for a low error rate.
    assert (one["node"], one["variant"], one["advertise"]) == ("T", "aerotcp", "half_free")
    assert (one["receive_buffer"], one["send_buffer"]) == ({"bytes": 8000}, {"bytes": 48_000})
    assert (two["node"], two["variant"], two["send_buffer"]) == ("S", "newreno", {"pkts": 9})
    assert two["receive_buffer"] == {"bytes": 48_000}
    table = {"name": "P", "node": "T", "preset": "pepsal", "stack": {"nagle": "off"}}
    (box,) = _chain(_scenario(table))
    assert (box["variant"], box["advertise"], box["receive_buffer"]) == ("hybla", "sockets", None)
    assert box["stack"] == {"profile": "linux", "overrides": {"nagle": "off"}}
    alike = [{"name": name, "node": name, "preset": "haps-split"} for name in ("T", "S")]
    assert [proxy["receive_buffer"] for proxy in _chain(_scenario(*alike))] == [{"pkts": 200}] * 2


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_text_of_a_preset_is_what_it_fills_in(name: str) -> None:
    preset = PRESETS[name]
    text = preset.text().replace("NODE1", "T").replace("NODE2", "S")
    written = tomllib.loads(text)["proxy"]
    placed = [{key: table[key] for key in ("name", "node", "peer") if key in table} for table in written]
    named = [{**table, "preset": name} for table in placed]
    links = _links_of(name)
    assert _chain(_scenario(*written, **links)) == _chain(_scenario(*named, **links))
    assert _scenario(*written, **links).proxy == _scenario(*named, **links).proxy


def test_presets_are_there_from_python() -> None:
    assert [preset.name for preset in hf.presets()] == list(PRESETS)
    (pepsal,) = hf.presets("pepsal")
    assert 'variant = "hybla"' in pepsal.text()
    with pytest.raises(HindflightError, match="there is no preset pepsa"):
        hf.presets("pepsa")


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_transfer_passes_the_proxies_of_a_preset_whole(name: str) -> None:
    boxes = zip(PRESETS[name].boxes, ("T", "S"), strict=False)
    tables = [{"name": f"box-{node}", "node": node, "preset": name} for _, node in boxes]
    if PRESETS[name].tunnels:
        tables[0]["peer"] = "S"
    flow = {"profile": "ns2", "size": "300 kB", "receive_buffer": "64 KiB"}
    scenario = _scenario(*tables, flow=flow, **_links_of(name))
    (job,) = plan_comparison(scenario, ("newreno",))
    (run,) = run_jobs(scenario, {1: job}, {})["runs"].to_pylist()
    kinds = [box.get("kind", "split") for box in PRESETS[name].boxes]
    # Nothing is kept where ACKs are filtered, and by a code.
    lost = None if kinds in (["ack_filter"], ["fec"]) else 0
    assert (run["completed"], run["delivered_bytes"], run["proxy_lost_bytes"]) == (True, 300_000, lost)
    # Every connection carries all of it.
    assert run["segments_out"] >= (kinds.count("split") + 1) * 300_000 // 1460


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ([{"preset": "pepsa"}], "proxy: unknown preset 'pepsa'; did you mean 'pepsal'?"),
        ([{"preset": ["pepsal"]}], "proxy[0].preset: ['pepsal'] is not a string"),
        (
            [{"preset": "pepsal", "kind": "snoop"}],
            "proxy[0].kind: preset 'pepsal' has kind = \"split\"; leave out one of the two",
        ),
        (
            [{"preset": "pepsal", "node": "W"}],
            "proxy[0].node: 'W': preset 'pepsal' needs a node between the ends of the path: T, S",
        ),
        ([{"preset": "pepsal", "node": None}], "proxy[0].node: preset 'pepsal' needs a node between the ends"),
        ([{"preset": "aerotcp-gateways"}], "proxy: preset 'aerotcp-gateways' is 2 proxies on one path; 1 have it"),
        (
            [{"preset": "pepsal", "receive_buffer": "9 pkts"}],
            'proxy[0].receive_buffer: has no effect with advertise = "sockets", whose buffers are keys of the stacks',
        ),
        ([{"receive_buffer": {"rate": "1 Mbit/s"}}], "proxy[0].receive_buffer: a buffer by rule is { rate = "),
        (
            [{"receive_buffer": {"rate": "8 bit/s", "rtt": "1 ms"}}],
            "proxy[0].receive_buffer: rate times rtt is less than an octet; a buffer has at least",
        ),
        (
            [{"receive_buffer": {"rate": "1 Mbit/s", "rtt": "1 s", "errors": ["low"]}}],
            "proxy[0].receive_buffer: errors = ['low'] is not allowed; allowed: none, low, high",
        ),
    ],
)
def test_a_mistake_in_a_preset_is_one_line(tables: list[dict[str, Any]], says: str) -> None:
    assert _refused(*({"name": "P", "node": "T", **table} for table in tables))[0].startswith(says)
