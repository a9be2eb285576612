"""What the engine refuses is told in the file's words: its name, its table and key, its units."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from replay.jobs import Job, plan_comparison
from replay.refusal import in_file_words
from replay.run import check_jobs, variant_names
from replay.scenario import Scenario, parse_scenario
from replay.study import Execution, replay_scenario
from tests.replay.test_scenario import GOOD
from toolkit.errors import ScenarioError

JOB = Job("mine", "relay", "what_if", "model", 1, False)
LINKS: list[dict[str, Any]] = [
    {"name": "up", "rate": "2 Mbit/s", "delay": "20 ms", "queue": "20 pkts"},
    {"name": "down", "rate": "2 Mbit/s", "delay": "20 ms", "reverse": {"rate": "1 Mbit/s", "delay": "20 ms"}},
]


def _scenario(**changes: Any) -> Scenario:
    data = {**copy.deepcopy(GOOD), "links": LINKS, **changes}
    return parse_scenario(data, "s.toml", variant_names())


def _refusal(**changes: Any) -> str:
    scenario = _scenario(**changes)
    with pytest.raises(ScenarioError) as caught:
        check_jobs(scenario, plan_comparison(scenario, scenario.compare.variants), {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("flow", "says"),
    [
        ({"min_rto": "300 s"}, "flow.min_rto: 300 s is more than max_rto, which is 60 s (rfc)"),
        (
            {"max_rto": "100 ms", "profile": "linux"},
            "flow.max_rto: 100 ms is less than min_rto, which is 200 ms (linux)",
        ),
        (
            {"receive_buffer_max": "64 KiB"},
            "flow.receive_buffer_max: 64 KiB is less than receive_buffer, which is 16 MiB (rfc)",
        ),
        ({"send_buffer": "2 B"}, "flow.send_buffer: 2 B is less than two segments of 1448 B"),
    ],
)
def test_a_value_at_odds_with_the_profile_is_told_by_its_key_and_unit(flow: dict[str, Any], says: str) -> None:
    assert _refusal(flow=flow) == f"s.toml: {says}"


def test_each_flow_is_told_by_its_own_table() -> None:
    wrong = {"recovery": "prr"}
    assert _refusal(flow=wrong, compare={"variants": ["cubic", "sack"]}).startswith("s.toml: flow.recovery: ")
    flows = [{"name": "a", "variant": "cubic"}, {"name": "b", "variant": "sack", **wrong}]
    assert _refusal(flows=flows).startswith("s.toml: flows[1].recovery: ")


@pytest.mark.parametrize(
    ("flow", "heeding", "deaf", "says"),
    [
        ({"slow_start": "hystart"}, "cubic", "bbr", 'slow_start: variant "bbr" has a start of its own'),
        ({"slow_start_limit": "8 pkts"}, "cubic", "vegas", 'slow_start_limit: variant "vegas" has a start of its own'),
        ({"min_rto": "3 s"}, "sack", "aerotcp", 'min_rto: variant "aerotcp" has a timer of its own'),
        (
            {"limited_transmit": False},
            "newreno",
            "cubic",
            "limited_transmit: needs a recovery that counts duplicate ACKs; "
            'variant "cubic" has sack, which counts what is in flight',
        ),
    ],
)
def test_an_option_is_refused_where_no_variant_compared_heeds_it(
    flow: dict[str, Any], heeding: str, deaf: str, says: str
) -> None:
    assert _refusal(flow=flow, compare={"variants": [deaf]}) == f"s.toml: flow.{says}"
    for variants in ([heeding, deaf], [deaf, heeding]):
        scenario = _scenario(flow=flow, compare={"variants": variants})
        check_jobs(scenario, plan_comparison(scenario, scenario.compare.variants), {})
    flows = [{"name": "a", "variant": heeding}, {"name": "b", "variant": deaf, **flow}]
    assert _refusal(flows=flows) == f"s.toml: flows[1].{says}"


@pytest.mark.parametrize(
    ("changes", "flow", "says"),
    [
        (
            [{"at": "1 s", "outage": True, "hold": True}],
            {},
            "links[0].changes[0]: outage and hold contradict each other",
        ),
        ([{"at": "1 s", "hold": True}, {"at": "9 h", "hold": False}], {}, "links[0].changes[1].at: not before the end"),
        ([], {"handover_adaptation": "jump"}, "flow.handover_adaptation: means nothing without a link that changes"),
    ],
)
def test_what_no_run_would_meet_is_refused(changes: list[dict[str, Any]], flow: dict[str, Any], says: str) -> None:
    links = [{**LINKS[0], "changes": changes}, LINKS[1]]
    with pytest.raises(ScenarioError) as caught:
        _scenario(links=links, flow=flow)
    assert says in str(caught.value)
    _scenario(links=[{**LINKS[0], "changes": [{"at": "1 s", "rate": "1 Mbit/s"}]}, LINKS[1]], flow=flow)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("duration_ns", "duration"),
        ("path.nodes[1]", "path[1]"),
        ("path.links[0].forward.rate_bps", "links[0].rate"),
        ("path.links[0].reverse.delay_ns", "links[0].delay"),
        ("path.links[1].reverse.delay_ns", "links[1].reverse.delay"),
        ("path.links[1].forward.queue.target_ns", "links[1].queue.target"),
        ("path.links[1].reverse.schedule[2].rate_bps", "links[1].changes[2].rate"),
        ("path.links[1]", "links[1]"),
        ("flows[0].stack.smss_bytes", "flow.mss"),
        ("flows[0].start_ns", "flow.start"),
        ("flows[0].application.bytes[3]", "flow.application.sizes[3]"),
        ("flows[0].params.beta", "variants.mine.beta"),
        ("flows[0].proxies[0].params.beta", "variants.other.beta"),
        ("flows[0].proxies[0].buffer_pkts", "proxy.buffer"),
        ("flows[0].proxies[0].node", "compare.proxies"),
        ("flows[0].proxies[0].variant", "proxy.variant"),
        ("flows[1].proxies[0].variant", "flows[0].variant"),
        ("flows[1].proxies[0].advertise", "proxy.advertise"),
        ("flows[0].variant", "compare.variants"),
        ("flows[1].params.beta", "variants.third.beta"),
        ("flows[1].stack.min_rto_ns", "flows[0].min_rto"),
        ("flows[1].variant", "flows[0].variant"),
        ("flows[1].proxies[0].node", "flows[0].proxies"),
        ("datagrams[2].bursts.on_ns", "datagrams[2].on"),
        ("datagrams[2].packet_bytes", "datagrams[2].packet"),
    ],
)
def test_every_kind_of_key_is_the_files(key: str, told: str) -> None:
    scenario = _scenario(
        variants={name: {"variant": "scalable", "a": 0.01} for name in ("mine", "other", "third")},
        proxy={"variant": "other"},
        flows=[{"name": "beside", "variant": "third"}],
        compare={"variants": ["mine"], "proxies": ["relay"]},
    )
    problem = "must be less than smss_bytes and max_rto_ns"
    assert in_file_words(scenario, JOB, key, problem) == f"s.toml: {told}: must be less than mss and max_rto"


def test_a_good_scenario_is_refused_nothing() -> None:
    scenario = _scenario()
    check_jobs(scenario, plan_comparison(scenario, scenario.compare.variants), {})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"flow": {"recovery": "prr"}, "compare": {"variants": ["cubic", "sack"], "seeds": 40}},
            'flow.recovery: variant "sack" fixes its own recovery',
        ),
        (
            {"variants": {"unused": {"variant": "cubic", "beta": 2}}},
            "variants.unused.beta: 2 is not between 0.1 and 0.99 (cubic under rfc)",
        ),
    ],
)
def test_a_slip_is_told_before_anything_runs(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    ran: list[int] = []
    execution = Execution(threads=1, on_progress=lambda done, _all: ran.append(done))
    with pytest.raises(ScenarioError) as caught:
        replay_scenario(_scenario(**changes), tmp_path, None, execution)
    assert str(caught.value) == f"s.toml: {says}"
    assert not ran
