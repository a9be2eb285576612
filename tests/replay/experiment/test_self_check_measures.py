"""The self-check measures its candidates while they run: the numbers of recorded tables, without the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindflight.channels.trace import Trace
from hindflight.replay.catalogue import engine_variant_names
from hindflight.replay.experiment.engine_inputs import (
    SELF_CHECK_REPEATS,
    Job,
    engine_config,
    plan_repeats,
    plan_self_check,
)
from hindflight.replay.experiment.experiment import (
    CapturedFlow,
    Execution,
    _carried_difference,
    _Counter,
    _repeats,
    replay_scenario,
)
from hindflight.replay.experiment.run import measure_jobs, run_jobs
from hindflight.replay.experiment.selfcheck import Candidate, Evidence, suspects_of
from hindflight.replay.outcome import Outcome, measure
from hindflight.replay.scenario.draws import HOST_NS
from hindflight.replay.scenario.model import Scenario, parse_scenario
from tests.replay.losses import lost

_HERE = Path()
VARIANTS = engine_variant_names()
SPAN_NS = 9_000_000_000
LINK = {"name": "sky", "rate": "2 Mbit/s", "delay": "60 ms", "queue": "25 pkts"}


def _scenario(**more: Any) -> Scenario:
    data = {
        "name": "s",
        "duration": "12 s",
        "path": ["a", "b"],
        "links": [{**LINK, "loss": {"model": "bernoulli", "per": 0.01}}],
        "flow": {"profile": "linux", "start": "1 s"},
        "compare": {"variants": ["cubic"], "seeds": 1},
    }
    return parse_scenario({**data, **more}, "s.toml", VARIANTS)


@pytest.mark.parametrize("profile", ["rfc", "linux"])
def test_every_variant_measures_as_its_tables_do(profile: str) -> None:
    shared = [{"name": "other", "variant": "newreno", "start": "3 s"}]
    scenario = _scenario(flow={"profile": profile, "start": "1 s"}, flows=shared)
    jobs = {i: Job(variant, "none", "self_check", "model", 1, recorded=True) for i, variant in enumerate(VARIANTS, 1)}
    measured: dict[int, Outcome] = {}
    for runs, outcomes in measure_jobs(scenario, jobs, {}, SPAN_NS):
        assert set(runs["purpose"].cast("string").to_pylist()) == {"self_check"}
        measured.update(outcomes)
    assert list(measured) == list(jobs)
    recorded = run_jobs(scenario, jobs, {})
    for run_id, job in jobs.items():
        tables = [
            table.filter((pc.field("run_id") == run_id) & (pc.field("flow_id") == 1) & (pc.field("leg") == 0))
            for table in (recorded[name] for name in ("segments", "events", "instruments"))
        ]
        segments, events, instruments = tables
        expected = measure(segments, events, instruments, "a2b", SPAN_NS)
        assert expected is not None
        ours = measured[run_id]
        named = [(o.start_ns, o.data_segments, o.retransmissions, o.rtos) for o in (ours, expected)]
        assert named[0] == named[1], job.variant
        (run,) = (
            recorded["runs"].filter((pc.field("run_id") == run_id) & (pc.field("role") == "under_test")).to_pylist()
        )
        assert (ours.delivered_bytes, ours.duration_ns) == (run["delivered_bytes"], run["duration_ns"])
        assert np.array_equal(ours.cwnd_bytes, expected.cwnd_bytes), job.variant
        assert ours.cwnd_source == expected.cwnd_source


def test_only_the_best_match_keeps_its_series() -> None:
    scenario = _scenario(captured={"input": "x", "sha256": "0" * 64, "flow_id": 1})
    flown = run_jobs(scenario, {1: Job("linux-reno", "none", "self_check", "model", 1, recorded=True)}, {})
    captured = CapturedFlow(flown["segments"], flown["events"], flown["instruments"], "a2b")
    done: list[tuple[int, int]] = []
    result = replay_scenario(scenario, _HERE, captured, Execution(on_progress=lambda *count: done.append(count)))
    assert len(result.candidates) > 20
    assert done[-1][0] == done[-1][1]
    runs = result.tables["runs"]
    checks = runs.filter(pc.equal(runs["purpose"].cast("string"), "self_check"))
    assert checks.num_rows == len(result.candidates)
    best = checks.filter(pc.equal(checks["variant"], result.candidates[0].variant))["run_id"].to_pylist()
    for name in ("segments", "flows", "instruments"):
        kept = set(result.tables[name]["run_id"].to_pylist()) & set(checks["run_id"].to_pylist())
        assert kept == set(best), name
    # A capture shows octets when they are acknowledged, `runs` when they are delivered.
    assert abs(result.candidates[0].goodput_difference) < 0.01


def test_rows_of_every_flow_name_the_compared_variant() -> None:
    shared = [{"name": "other", "variant": "newreno"}]
    scenario = _scenario(flows=shared, datagrams=[{"name": "u", "packet": "200 B", "rate": "64 kbit/s"}])
    jobs = {i: Job(name, "none", "what_if", "model", 1, recorded=False) for i, name in enumerate(("cubic", "bbr"), 1)}
    runs = run_jobs(scenario, jobs, {})["runs"].to_pylist()
    assert [(run["flow"], run["variant"], run["compared_variant"]) for run in runs] == [
        ("flow", "cubic", "cubic"),
        ("other", "newreno", "cubic"),
        ("u", "udp", "cubic"),
        ("flow", "bbr", "bbr"),
        ("other", "newreno", "bbr"),
        ("u", "udp", "bbr"),
    ]


@pytest.mark.parametrize(
    ("shared", "carried_difference", "said"),
    [
        (True, 0.02, "share the link differently, for together they sent as many packets over it (+2.0 %)"),
        (True, 0.2, "the replay has more timeouts"),
        (False, None, "the replay has more timeouts"),
    ],
)
def test_timeouts_blame_the_channel_only_where_all_flows_did_not_send_as_much(
    shared: bool, carried_difference: float | None, said: str
) -> None:
    flows = [{"name": "other", "variant": "newreno", "start": "3 s"}] if shared else []
    best = Candidate("cubic", -0.2, 900, 600, 12, None)
    assert said in suspects_of(_scenario(flows=flows), best, Evidence(carried_difference))


def test_packets_of_all_flows_behind_the_queue_are_compared_with_those_captured_in_the_same_time() -> None:
    shared = [{"name": "other", "variant": "newreno", "start": "3 s"}]
    loss = {"model": "trace", "file": "t.parquet", "block": "50 pkts"}
    scenario = _scenario(flows=shared, links=[{**LINK, "loss": loss}])
    # 1200 packets, one every 12.5 ms since the start: 960 in the 12 s of the run. The queue dropped the last one.
    packets = [{"kind": "packet", "t_ns": k * 12_500_000, "position": k} for k in range(1200)]
    rows = [{"kind": "interval", "t_ns": 0, "position": None}, *packets, {**packets[0], "position": None}]
    trace = Trace(pa.Table.from_pylist(rows))
    runs = pa.Table.from_pylist(
        [
            {"run_id": run, "variant": variant, "role": role, "segments_out": sent, "queue_losses": 40}
            for run, variant, role, sent in (
                (1, "cubic", "under_test", 700), (1, "newreno", "cross", 436),
                (2, "bbr", "under_test", 900), (2, "newreno", "cross", 90),
            )
        ]
    )  # fmt: skip
    assert _carried_difference(scenario, {"t.parquet": trace}, runs, "cubic") == pytest.approx(0.1)
    assert _carried_difference(_scenario(), {}, runs, "cubic") is None


@pytest.mark.parametrize(("repeats", "chance"), [((-0.22, -0.1), False), ((-0.22, 0.01), True), ((), False)])
def test_a_captured_flow_among_repeats_of_its_replay_blames_no_channel(
    repeats: tuple[float, ...], chance: bool
) -> None:
    best = Candidate("cubic", -0.2, 900, 600, 12, None)
    said = suspects_of(_scenario(), best, Evidence(repeats=repeats))
    assert said.startswith("a small difference grew" if chance else "the replay has more timeouts")
    assert ("-22.0 to +1.0 %" in said) == chance
    assert ("its timers ticking up to 4 ms later and with other random numbers" in said) == chance


TRACED = {"model": "trace", "file": "t.parquet", "block": "50 pkts"}
TRACES = {"t.parquet": lost((3, 4, 90), 1000)}


def test_repeats_of_a_self_check_differ_in_the_phase_of_the_timer_alone() -> None:
    scenario = _scenario(links=[{**LINK, "loss": TRACED}])
    (check,) = plan_self_check(scenario, ("cubic",))
    repeats = plan_repeats(scenario, "cubic")
    configs = [engine_config(scenario, job, TRACES) for job in (check, *repeats)]
    assert len(repeats) == SELF_CHECK_REPEATS
    starts = [config["flows"][0].pop("start_ns") for config in configs]
    assert len(set(starts)) == len(starts)
    assert all(starts[0] <= start < starts[0] + HOST_NS for start in starts)
    assert all(config == configs[0] for config in configs)


BERNOULLI = {"model": "bernoulli", "per": 0.01}
JITTER = {"kind": "uniform", "spread": "1 ms"}
RED = {"kind": "red", "limit": "25 pkts"}


@pytest.mark.parametrize(
    ("links", "repeated"),
    [
        ([{**LINK, "loss": TRACED}], True),
        ([{**LINK, "loss": BERNOULLI}], False),
        ([{**LINK, "loss": TRACED}, {"name": "next", "delay": "5 ms"}], True),
        ([{**LINK, "loss": TRACED}, {"name": "next", "delay": "5 ms", "loss": BERNOULLI}], False),
        ([{**LINK, "loss": TRACED, "reverse": {"delay": "60 ms", "loss": BERNOULLI}}], False),
        ([{**LINK, "loss": TRACED, "jitter": JITTER}], False),
        ([{**LINK, "loss": TRACED, "queue": RED}], False),
    ],
)
def test_a_self_check_is_repeated_only_over_the_same_channel(links: list[dict[str, Any]], repeated: bool) -> None:
    scenario = _scenario(links=links, path=["a", "b", "c"][: len(links) + 1])
    assert len(plan_repeats(scenario, "cubic")) == (SELF_CHECK_REPEATS if repeated else 0)


@pytest.mark.parametrize(("spread", "repeated"), [("fixed", True), ("exponential", False)])
def test_a_self_check_is_repeated_only_next_to_the_same_traffic(spread: str, repeated: bool) -> None:
    links = [{**LINK, "loss": TRACED}]
    bursts = {"on": "1 s", "off": "1 s", "spread": spread}
    datagrams = [{"name": "voice", "packet": "200 B", "rate": "64 kbit/s", **bursts}]
    on_off = {"kind": "on_off", "rate": "1 Mbit/s", **bursts}
    for scenario in (
        _scenario(links=links, datagrams=datagrams),
        _scenario(links=links, flow={"application": on_off}),
    ):
        assert len(plan_repeats(scenario, "cubic")) == (SELF_CHECK_REPEATS if repeated else 0)


def test_repeats_count_as_progress() -> None:
    scenario = _scenario(links=[{**LINK, "loss": TRACED}])
    happened = Outcome(0, SPAN_NS, 1_500_000, 1000, 0, 0, np.zeros(0), "inferred")
    done: list[tuple[int, int]] = []
    counter = _Counter(5, lambda *count: done.append(count))
    best = Candidate("cubic", -0.2, 0, 0, 0, None)
    repeats = _repeats(scenario, best, TRACES, happened, Execution(), counter)
    assert len(repeats) == SELF_CHECK_REPEATS
    assert done[-1] == (SELF_CHECK_REPEATS, 5 + SELF_CHECK_REPEATS)
