"""Flows of a scenario: every stack parameter, applications, traffic next to the flow under test, contradictions."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from hindflight.replay.experiment.engine_inputs import Job, engine_config
from hindflight.replay.experiment.run import Configuration, run_configurations, run_jobs
from hindflight.replay.scenario.flows import STACK, Stack
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.errors import ScenarioError
from tests.replay.scenario.test_scenario import GOOD, VARIANTS

ENGINE = Path(__file__).parents[3] / "replay/engine/src/config/stack.rs"
LINKS = [
    {"name": "up", "rate": "2 Mbit/s", "delay": "20 ms", "queue": "20 pkts"},
    {"name": "down", "rate": "2 Mbit/s", "delay": "20 ms"},
]
JOB = Job("newreno", "none", "what_if", "model", 1, False)


def _scenario(**changes: Any) -> Scenario:
    data = {**copy.deepcopy(GOOD), "links": LINKS, "duration": "10 s", "flow": {}, **changes}
    return parse_scenario(data, "s.toml", VARIANTS)


def _refused(**changes: Any) -> str:
    with pytest.raises(ScenarioError) as caught:
        _scenario(**changes)
    return str(caught.value)


def test_every_parameter_of_the_engine_has_a_key() -> None:
    block = re.search(r"^stack_params! \{(.*?)^    ;", ENGINE.read_text(), re.DOTALL | re.MULTILINE)
    assert block is not None
    assert set(STACK.values()) == set(re.findall(r"^    (\w+): ", block[1], re.MULTILINE))
    assert set(STACK) <= set(Stack.model_fields)


def test_every_override_reaches_the_engine_in_base_units() -> None:
    given = {
        "handshake": True, "close": False, "user_timeout": "30 s", "retry_limit": 9, "syn_retry_limit": 3,
        "fast_open": True, "timestamps": False, "mss": "1000 B", "headers": "40 B", "initial_window": "4 pkts",
        "initial_ssthresh": "64 pkts", "slow_start_limit": "2 pkts", "slow_start": "hystart",
        "limited_transmit": False, "sack": True, "recovery": "rack_prr", "rto_rule": "linux", "min_rto": "300 ms",
        "initial_rto": "3 s", "max_rto": "60 s", "clock_granularity": "100 ms", "delayed_ack": True,
        "delayed_ack_timeout": "100 ms", "delayed_ack_after_slow_start": True, "quickack_segments": 3, "dsack": True,
        "receive_buffer": "64 KiB",
        "receive_buffer_max": "1 MB",
        "receive_window_growth": True,
        "read_rate": "1 Mbit/s", "reset_timer_on_each_partial_ack": True, "tail_loss_probe": True,
        "undo": True, "frto": False, "pacing": True,
        "nagle": "off", "send_buffer": "100 kB", "send_buffer_max": "1 MB", "notsent_lowat": "16 KiB",
        "ecn": True, "ecn_beta": 0.85, "freeze_warning": "300 ms", "handover_adaptation": "jump",
        "quick_start": "1 Mbit/s",
    }  # fmt: skip
    held = _scenario(flow={"fixed_window": "20 pkts", "size": "1 MB", "pacing": True})
    assert engine_config(held, JOB, {})["flows"][0]["stack"] == {"fixed_window_pkts": 20, "pacing": True}
    assert run_jobs(held, {1: JOB}, {})["runs"]["completed"][0].as_py()
    changing = [{**LINKS[0], "changes": [{"at": "9 s", "hold": True}]}, LINKS[1]]
    scenario = _scenario(flow=given, links=changing, compare={"variants": ["cubic"]})
    flow = engine_config(scenario, Job("cubic", "none", "what_if", "model", 1, False), {})["flows"][0]
    assert set(flow["stack"]) == set(STACK.values()) - {"fixed_window_pkts"}
    assert (flow["stack"]["min_rto_ns"], flow["stack"]["send_buffer_bytes"]) == (300_000_000, 100_000)
    assert list(scenario.flow.overrides()) == list(given)
    runs = run_jobs(scenario, {1: Job("cubic", "none", "what_if", "model", 1, False)}, {})["runs"]
    assert runs["delivered_bytes"][0].as_py() > 0


@pytest.mark.parametrize("profile", ["rfc", "linux"])
def test_without_sack_the_engine_gets_the_option(profile: str) -> None:
    job = Job("cubic", "none", "what_if", "model", 1, False)
    scenario = _scenario(flow={"profile": profile, "sack": False}, compare={"variants": ["cubic"]})
    assert engine_config(scenario, job, {})["flows"][0]["stack"] == {"sack": False}
    runs = run_jobs(scenario, {1: job}, {})["runs"]
    assert runs["delivered_bytes"][0].as_py() > 0


CONTRADICTIONS = [
    ({"sack": False, "recovery": "sack"}, "flow: sack = false contradicts recovery = 'sack'"),
    ({"sack": False, "dsack": True}, "flow: sack = false contradicts dsack"),
    ({"sack": True, "recovery": "newreno"}, "flow: sack = true contradicts recovery = 'newreno'"),
    ({"recovery": "sack", "tail_loss_probe": True}, "flow: tail_loss_probe = true needs recovery"),
    ({"size": "1 MB", "application": {"kind": "stream", "rate": "1 Mbit/s"}}, "flow: size contradicts"),
    ({"read_rate": "1 Mbit/s", "application": {"kind": "stream", "rate": "1 Mbit/s"}}, "flow: read_rate contradicts"),
    ({"application": {"kind": "greedy", "write": "64 KiB"}}, "flow: application.write has no effect without send"),
    ({"send_buffer_max": "1 MB"}, "flow: send_buffer_max has no effect without a send_buffer"),
    ({"notsent_lowat": "16 KiB"}, "flow: notsent_lowat has no effect without send_buffer"),
    ({"min_rto": "2 s", "max_rto": "1 s"}, "flow: max_rto is less than min_rto"),
    ({"delayed_ack": False, "quickack_segments": 4}, "flow: delayed_ack = false contradicts"),
    (
        {"delayed_ack": False, "delayed_ack_after_slow_start": True},
        "flow: delayed_ack = false contradicts delayed_ack_a",
    ),
    ({"handshake": False, "fast_open": True}, "flow: handshake = false contradicts fast_open"),
    ({"handshake": False, "quick_start": "1 Mbit/s"}, "flow: handshake = false contradicts quick_start"),
    ({"handover_adaptation": "leap"}, "flow.handover_adaptation: 'leap' is not allowed; allowed: 'off', 'slow_start'"),
    ({"freeze_warning": "1 ps"}, "flow.freeze_warning: unit 'ps' is not known"),
    ({"freeze_warning": "0 s"}, "flow.freeze_warning: '0 s' is out of range"),
    ({"quick_start": "79 kbit/s"}, "flow.quick_start: '79 kbit/s' is out of range"),
    ({"close": True}, "flow: close has no effect on a flow without end"),
    ({"close": True, "application": {"kind": "stream", "rate": "1 Mbit/s"}}, "flow: close has no effect on a flow"),
    ({"user_timeout": "0.5 ms"}, "flow.user_timeout: '0.5 ms' is out of range"),
    ({"retry_limit": 0}, "flow.retry_limit: 0 is out of range"),
    ({"ecn_beta": 0.85}, "flow: ecn_beta has no effect without ecn = true"),
    ({"dscp": 64}, "flow.dscp: 64 is out of range; at most 63"),
    ({"min_rtt": "1 s"}, "flow.min_rtt: unknown key; did you mean 'min_rto'?"),
    ({"application": {"rate": "1 Mbit/s"}}, "flow.application: it needs a kind"),
    ({"application": {"kind": "pages", "page": "1 MB", "thinks": "1 s"}}, "flow.application.thinks: unknown key; did"),
    ({"application": {"kind": "writes", "at": ["0 s"], "sizes": []}}, "flow.application: 1 times in `at` and 0 sizes"),
]


@pytest.mark.parametrize(("flow", "says"), CONTRADICTIONS, ids=[says[:50] for _, says in CONTRADICTIONS])
def test_contradictions_are_refused(flow: dict[str, Any], says: str) -> None:
    assert says in _refused(flow=flow)


def test_others_on_the_path_are_checked_too() -> None:
    other = {"name": "bulk", "variant": "cubic"}
    voice = {"name": "voice", "packet": "200 B", "rate": "64 kbit/s"}
    assert "flows[0].variant: unknown variant 'cubik'; did you mean" in _refused(flows=[{**other, "variant": "cubik"}])
    assert "flows[0].from: 'rely' is not a node of the path; did you mean 'relay'?" in _refused(
        flows=[{**other, "from": "rely"}]
    )
    assert "flows[0].to: 'relay' is the node that sends" in _refused(flows=[{**other, "from": "relay", "to": "relay"}])
    assert "flows[0].proxies: 'relay' is neither a [[proxy]] nor a node between" in _refused(
        flows=[{**other, "from": "relay", "proxies": ["relay"]}]
    )
    assert "datagrams[0].name: 'bulk' is there twice" in _refused(flows=[other], datagrams=[{**voice, "name": "bulk"}])
    assert "datagrams[0].stop is" not in _refused(datagrams=[{**voice, "on": "1 s"}])
    assert "datagrams[0]: stop is not later than start" in _refused(datagrams=[{**voice, "stop": "0 s"}])
    assert "datagrams[0].start: not before the end" in _refused(datagrams=[{**voice, "start": "11 s"}])


def test_each_flow_has_its_row_and_only_one_is_under_test() -> None:
    scenario = _scenario(
        flow={"application": {"kind": "pages", "page": "50 kB", "think": "200 ms", "spread": "exponential"}},
        flows=[{"name": "bulk", "variant": "cubic", "start": "1 s", "from": "relay", "profile": "linux"}],
        datagrams=[
            {"name": "voice", "packet": "200 B", "rate": "64 kbit/s", "dscp": 46, "from": "receiver", "to": "sender"}
        ],
    )
    rows = run_jobs(scenario, {1: JOB}, {})["runs"].to_pylist()
    assert [(r["flow"], r["role"], r["variant"]) for r in rows] == [
        ("flow", "under_test", "newreno"),
        ("bulk", "cross", "cubic"),
        ("voice", "cross", "udp"),
    ]
    pages, bulk, voice = rows
    assert 3 <= pages["pages"] <= 20
    assert pages["page_load_p50_ns"] < pages["page_load_p95_ns"]
    assert bulk["goodput_bps"] > 1e6
    assert bulk["pages"] is None
    # 40 packets per second for ten seconds, and the last of them on their way.
    assert voice["segments_out"] in {400, 401}
    assert voice["app_delay_p50_ns"] == pytest.approx(41.6e6, rel=0.02)
    assert voice["jitter_ns"] is not None


def test_one_way_delays_are_those_from_end_to_end() -> None:
    rows = run_jobs(
        _scenario(
            flows=[{"name": "split", "variant": "cubic", "proxies": ["relay"]}],
            datagrams=[{"name": "voice", "packet": "200 B", "rate": "64 kbit/s"}],
        ),
        {1: JOB},
        {},
    )["runs"].to_pylist()
    whole, split, voice = rows
    # The split flow's round trips are those of its first link: of 20 ms.
    assert split["srtt_mean_ns"] < split["one_way_delay_p50_ns"]
    for row in (whole, split):
        assert 40e6 < row["one_way_delay_p50_ns"] <= row["one_way_delay_p95_ns"] <= row["app_delay_max_ns"]
        assert row["one_way_delay_p95_ns"] <= 1.01 * row["app_delay_p95_ns"]
    assert (voice["one_way_delay_p50_ns"], voice["one_way_delay_p95_ns"]) == (
        voice["app_delay_p50_ns"],
        voice["app_delay_p95_ns"],
    )


def test_a_stream_says_how_it_stalled() -> None:
    def stalled(rate: str) -> dict[str, Any]:
        scenario = _scenario(flow={"application": {"kind": "stream", "rate": rate}})
        row: dict[str, Any] = run_jobs(scenario, {1: JOB}, {})["runs"].to_pylist()[0]
        return row

    assert stalled("1 Mbit/s")["stalls"] == 0
    over = stalled("4 Mbit/s")
    assert over["stalls"] > 0
    assert 0 < over["stalled_ns"] < 10e9


def test_sequence_numbers_wrap_on_the_wire_and_nowhere_else() -> None:
    size = 5 * 2**30
    hop = {"rate_bps": 1e10, "delay_ns": 1_000_000}
    config = {
        "duration_ns": 60_000_000_000,
        "path": {"nodes": ["a", "b"], "links": [{"name": "ab", "forward": hop, "reverse": hop}]},
        "flows": [{"name": "f", "variant": "cubic", "size_bytes": size, "stack": {"smss_bytes": 60_000}}],
    }
    tables = run_configurations([Configuration(config, 1, recorded=True)])
    assert tables["runs"]["delivered_bytes"].to_pylist() == [size]
    data = tables["segments"].filter(pc.greater(tables["segments"]["payload_bytes"], 0))
    seq, raw = data["seq"].to_numpy(), data["seq_raw"].to_numpy().astype(np.int64)
    assert seq[-1] > 2**32
    wraps = np.flatnonzero(np.diff(raw) < 0)
    assert len(wraps) in {1, 2}, "five GiB go round once or twice"
    start = raw[0] - seq[0]
    assert np.array_equal((start + seq) % 2**32, raw)
    flow = tables["flows"].to_pylist()[0]
    assert flow["a2b_unique_bytes"] == size
