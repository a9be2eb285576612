"""Findings about applications, about what shares a path, and about what differs from a profile."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from hindflight.replay.catalogue import profile_parameters
from hindflight.replay.experiment.traffic import KINDS, jain_index, setup_findings, traffic_findings
from hindflight.replay.scenario.model import Scenario, load_scenario, parse_scenario
from hindflight.replay.scenario.proxies import Proxy
from hindflight.toolkit.errors import ScenarioError
from hindflight.toolkit.schema import TABLES
from tests.replay.scenario.test_rate_file import SCENARIO as RATES
from tests.replay.scenario.test_scenario import GOOD, VARIANTS


def _run(run_id: int, flow: str, variant: str, goodput_bps: float, **given: Any) -> dict[str, Any]:
    row: dict[str, Any] = {column.name: None if column.nullable else 0 for column in TABLES["runs"].columns}
    labels = {"purpose": "what_if", "channel_mode": "model", "proxy": "none", "seed": run_id}
    role = "under_test" if flow == "flow" else "cross"
    row.update(labels, run_id=run_id, flow=flow, role=role, variant=variant, goodput_bps=goodput_bps, **given)
    return row


def _values(rows: list[dict[str, Any]], section: str) -> dict[tuple[str, str], float]:
    return {(row["subject"], row["metric"]): row["value"] for row in rows if row["section"] == section}


@pytest.mark.parametrize(
    ("shares", "index"),
    [([1.0, 1.0, 1.0], 1.0), ([1.0, 0.0, 0.0, 0.0], 0.25), ([3.0, 1.0], 0.8), ([5.0], None), ([0.0, 0.0], None)],
)
def test_jain_index(shares: list[float], index: float | None) -> None:
    assert jain_index(shares) == (None if index is None else pytest.approx(index))


def test_each_flow_speaks_for_itself_and_tcp_flows_share() -> None:
    runs = []
    for seed in (1, 2):
        runs.append(_run(seed, "flow", "newreno", 3e6, app_delay_p50_ns=50_000_000 * seed, stalls=seed))
        runs.append(_run(seed, "bulk", "cubic", 1e6))
        runs.append(_run(seed, "voice", "udp", 64e3, segments_out=200, queue_losses=3, aqm_losses=1, jitter_ns=7))
    rows = traffic_findings(runs)
    what_if, sharing = _values(rows, "what_if"), _values(rows, "sharing")
    assert what_if["newreno", "application_delay_p50"] == 75_000_000
    assert what_if["newreno", "stalls"] == 1.5
    assert what_if["newreno", "jain_index"] == pytest.approx(0.8), "datagrams do not count"
    assert sharing["newreno: bulk (cubic)", "goodput"] == 1e6
    assert sharing["newreno: voice (udp)", "lost_packets"] == 2.0
    assert sharing["newreno: voice (udp)", "jitter"] == 7
    assert ("newreno: flow (newreno)", "goodput") in sharing


def test_marks_and_resets_of_cross_traffic_are_reported() -> None:
    runs = []
    for seed in (1, 2):
        runs.append(_run(seed, "flow", "newreno", 3e6))
        runs.append(_run(seed, "bulk", "cubic", 1e6, ecn_marks=3 * seed, reset_ns=10**9 if seed == 2 else None))
    sharing = _values(traffic_findings(runs), "sharing")
    assert sharing["newreno: bulk (cubic)", "ecn_marks"] == 4.5
    assert sharing["newreno: bulk (cubic)", "resets"] == 1
    assert not {metric for subject, metric in sharing if "flow" in subject} & {"ecn_marks", "resets"}


def test_a_rate_over_time_counts_by_what_its_file_holds(tmp_path: Path) -> None:
    def of(name: str, opportunities: str) -> str:
        (tmp_path / name).write_text(opportunities)
        (tmp_path / "s.toml").write_text(RATES.replace("link.down", name))
        return fingerprint_of(load_scenario(tmp_path / "s.toml", ("cubic",)))

    one = of("link.down", "0\n1\n2\n")
    assert of("same.down", "0\n1\n2\n") == one
    assert of("link.down", "0\n1\n4\n") != one


def test_a_single_flow_has_no_sharing() -> None:
    rows = traffic_findings([_run(1, "flow", "newreno", 3e6, app_delay_max_ns=9)])
    assert _values(rows, "what_if") == {("newreno", "application_delay_max"): 9}
    assert not _values(rows, "sharing")


def fingerprint_of(scenario: Scenario) -> str:
    rows = setup_findings(scenario, {name: profile_parameters(name) for name in ("rfc", "linux")})
    (found,) = (row["text"] for row in rows if row["metric"] == "fingerprint_without_losses")
    return str(found)


def test_only_losses_name_and_seeds_leave_the_fingerprint_as_it_is() -> None:
    def parsed(change: Callable[[dict[str, Any]], object]) -> str:
        document = copy.deepcopy(GOOD)
        change(document)
        return fingerprint_of(parse_scenario(document, "s.toml", VARIANTS))

    loss = {"model": "bernoulli", "per": 0.01}
    same = parsed(lambda _: None)
    assert parsed(lambda given: given["links"][0].update(loss=loss)) == same
    reverse = {"delay": "120 ms"}
    one_way, both_ways = (
        parsed(lambda given, more=more: given["links"][1].update(reverse={**reverse, **more}))  # type: ignore[misc]
        for more in ({}, {"loss": loss})
    )
    assert one_way == both_ways != same
    assert parsed(lambda given: given.update(name="another")) == same
    assert parsed(lambda given: given["compare"].update(seeds=7)) == same
    assert parsed(lambda given: given["links"][1].update(delay="121 ms")) != same
    assert parsed(lambda given: given.update(flow={"profile": "linux"})) != same


def test_the_setup_names_what_differs_from_the_profile_and_no_more() -> None:
    flow = {"profile": "linux", "min_rto": "300 ms", "dsack": True, "send_buffer": "100 kB"}
    flows = [{"name": "bulk", "variant": "cubic"}]
    scenario = parse_scenario({**copy.deepcopy(GOOD), "flow": flow, "flows": flows}, "s.toml", VARIANTS)
    profiles = {name: profile_parameters(name) for name in ("rfc", "linux")}
    said = [(row["subject"], row["metric"], row["text"]) for row in setup_findings(scenario, profiles)]
    assert said == [
        ("flow", "profile", "linux"),
        ("flow", "min_rto", "300 ms instead of 200 ms"),
        ("flow", "send_buffer", "100 kB instead of none"),
        ("bulk", "profile", "rfc"),
        ("up", "loss", "model = trace, file = channel.parquet, block = 100 pkts"),
        ("scenario", "fingerprint_without_losses", fingerprint_of(scenario)),
    ]


def test_the_setup_has_losses_of_both_directions_and_the_cache_of_a_proxy() -> None:
    given = copy.deepcopy(GOOD)
    loss = {"model": "bernoulli", "per": 0.01}
    given["compare"]["proxies"] = ["none", "relay", "large"]
    given["links"][1].update(reverse={"delay": "120 ms", "loss": loss})
    proxies = [
        {"name": "relay", "node": "relay", "receive_buffer": "84 pkts", "advertise": "free"},
        {"name": "large", "node": "relay", "receive_buffer": "1 MB"},
    ]
    scenario = parse_scenario({**given, "proxy": proxies}, "s.toml", VARIANTS)
    rows = setup_findings(scenario, {"rfc": profile_parameters("rfc")})
    said = [(row["subject"], row["metric"], row["text"]) for row in rows]
    assert said[2:] == [
        ("down", "reverse_loss", "model = bernoulli, per = 0.01"),
        ("scenario", "fingerprint_without_losses", fingerprint_of(scenario)),
        ("relay", "node", "relay"),
        ("relay", "kind", "splits the connection"),
        ("relay", "cache", "84 pkts"),
        ("relay", "policy", "advertise = free"),
        ("large", "node", "relay"),
        ("large", "kind", "splits the connection"),
        ("large", "cache", "1 MB"),
    ]
    assert [(row["value"], row["unit"]) for row in rows if row["metric"] == "cache"] == [(84, "pkts"), (1e6, "B")]


def test_the_setup_names_the_proxies_where_legs_begin_if_a_chain_does_not() -> None:
    given = copy.deepcopy(GOOD)
    given["compare"]["proxies"] = ["none", "relay", "guard", "guard+relay"]
    ends = given["path"][1], given["path"][-1]
    given["links"][1]["loss"] = {"model": "bernoulli", "per": 0.01}
    guard = {"name": "guard", "node": ends[0], "peer": ends[1], "kind": "arq", "layer": {"retries": 3}}
    scenario = parse_scenario({**given, "proxy": [guard]}, "s.toml", VARIANTS)
    rows = setup_findings(scenario, {"rfc": profile_parameters("rfc")})
    legs = [(row["subject"], row["metric"], row["text"]) for row in rows if row["metric"].startswith("leg_")]
    assert legs == [("guard+relay", "leg_1_begins_at", "relay")]


def test_every_kind_of_proxy_has_its_words() -> None:
    assert set(KINDS) == set(get_args(Proxy.model_fields["kind"].annotation))


def test_the_setup_writes_values_as_a_file_has_them() -> None:
    given = copy.deepcopy(GOOD)
    given["compare"]["proxies"] = ["none", "relay"]
    proxy = {
        "name": "relay",
        "node": "relay",
        "stack": {"receive_buffer": "256 KiB", "min_rto": "300 ms", "sack": False},
        "send_buffer": "64 KiB",
        "idle_timeout": "2 s",
        "faults": [{"at": "12 s", "kind": "move", "transfer": "50 ms"}, {"at": "20 s", "kind": "restart"}],
    }
    scenario = parse_scenario({**given, "proxy": [proxy]}, "s.toml", VARIANTS)
    rows = setup_findings(scenario, {"rfc": profile_parameters("rfc")})
    policy = next(row["text"] for row in rows if row["metric"] == "policy")
    assert policy == (
        "stack = { sack = false, min_rto = 300 ms, receive_buffer = 256 KiB }, send_buffer = 64 KiB, "
        "idle_timeout = 2 s, faults = [{ at = 12 s, kind = move, transfer = 50 ms }, { at = 20 s, kind = restart }]"
    )


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown variant `bsd`"):
        profile_parameters("bsd")
    with pytest.raises(ScenarioError, match=r"flow\.profile: 'bsd' is not allowed"):
        parse_scenario({**copy.deepcopy(GOOD), "flow": {"profile": "bsd"}}, "s.toml", VARIANTS)


def test_a_flow_that_a_proxy_refused_says_so() -> None:
    runs = []
    for seed in (1, 2):
        runs.append(_run(seed, "flow", "newreno", 3e6, proxy_refused=0))
        runs.append(_run(seed, "late", "cubic", 0.0, proxy_refused=1, reset_ns=1_000_000_000))
    said = {row["subject"]: row["text"] for row in traffic_findings(runs) if row["metric"] == "refused"}
    name = "newreno: late (cubic)"
    assert said == {name: f"{name}: a proxy that was at its limit refused it in 2 of 2 runs."}
