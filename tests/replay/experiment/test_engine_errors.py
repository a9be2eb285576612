"""What the engine refuses is reported with the file, the table, the key and its units."""

from __future__ import annotations

import copy
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from hindflight.replay.controllers.base import variant_names
from hindflight.replay.experiment.engine_errors import EngineError, in_scenario_terms
from hindflight.replay.experiment.engine_inputs import Job, plan_comparison, plan_self_check
from hindflight.replay.experiment.engine_wording import kinds
from hindflight.replay.experiment.experiment import Execution, replay_scenario
from hindflight.replay.experiment.run import check_jobs, runnable
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.errors import ScenarioError
from tests.replay.scenario.test_scenario import GOOD

ROOT = Path(__file__).parents[3]
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
def test_a_value_that_contradicts_the_profile_is_reported_with_key_and_unit(flow: dict[str, Any], says: str) -> None:
    assert _refusal(flow=flow) == f"s.toml: {says}"


def test_each_flow_is_named_by_its_table() -> None:
    wrong = {"recovery": "prr"}
    assert _refusal(flow=wrong, compare={"variants": ["cubic", "sack"]}).startswith("s.toml: flow.recovery: ")
    flows = [{"name": "a", "variant": "cubic"}, {"name": "b", "variant": "sack", **wrong}]
    assert _refusal(flows=flows).startswith("s.toml: flows[1].recovery: ")


def test_variants_that_the_flow_excludes_are_no_candidates() -> None:
    names = ("newreno", "sack", "fack", "linux-reno")

    def left(**flow: Any) -> list[str]:
        scenario = _scenario(flow=flow)
        return [job.variant for job in runnable(scenario, plan_self_check(scenario, names), {})]

    assert left() == list(names)
    assert left(sack=False) == ["newreno", "linux-reno"]
    # What is wrong with all of them is for the check of the scenario to say.
    assert left(min_rto="300 s") == list(names)


@pytest.mark.parametrize(
    ("flow", "heeding", "deaf", "says"),
    [
        ({"slow_start": "hystart"}, "cubic", "bbr", 'slow_start: variant "bbr" has its own slow start'),
        ({"slow_start_limit": "8 pkts"}, "cubic", "vegas", 'slow_start_limit: variant "vegas" has its own slow start'),
        ({"min_rto": "3 s"}, "sack", "aerotcp", 'min_rto: variant "aerotcp" has its own retransmission timer'),
        (
            {"limited_transmit": False},
            "newreno",
            "cubic",
            'limited_transmit: needs a recovery that counts duplicate ACKs; variant "cubic" has sack',
        ),
    ],
)
def test_an_option_is_refused_where_no_variant_compared_heeds_it(
    flow: dict[str, Any], heeding: str, deaf: str, says: str
) -> None:
    assert _refusal(flow=flow, compare={"variants": [deaf]}).splitlines()[0] == f"s.toml: flow.{says}"
    for variants in ([heeding, deaf], [deaf, heeding]):
        scenario = _scenario(flow=flow, compare={"variants": variants})
        check_jobs(scenario, plan_comparison(scenario, scenario.compare.variants), {})
    flows = [{"name": "a", "variant": heeding}, {"name": "b", "variant": deaf, **flow}]
    assert _refusal(flows=flows).splitlines()[0] == f"s.toml: flows[1].{says}"


@pytest.mark.parametrize(
    ("changes", "flow", "says"),
    [
        (
            [{"at": "1 s", "outage": True, "hold": True}],
            {},
            "links[0].changes[0]: outage and hold contradict each other",
        ),
        ([{"at": "1 s", "hold": True}, {"at": "9 h", "hold": False}], {}, "links[0].changes[1].at: not before the end"),
        ([], {"handover_adaptation": "jump"}, "flow.handover_adaptation: has no effect without a link that changes"),
        (
            [{"at": "1 s", "rate": "2 Mbit/s"}],
            {"freeze_warning": "300 ms"},
            "flow.freeze_warning: there is no outage to warn of; give a link changes with outage or hold",
        ),
    ],
)
def test_what_no_run_would_meet_is_refused(changes: list[dict[str, Any]], flow: dict[str, Any], says: str) -> None:
    links = [{**LINKS[0], "changes": changes}, LINKS[1]]
    with pytest.raises(ScenarioError) as caught:
        _scenario(links=links, flow=flow)
    assert says in str(caught.value)
    for change in ("outage", "hold"):
        _scenario(links=[{**LINKS[0], "changes": [{"at": "1 s", change: True}]}, LINKS[1]], flow=flow)


def test_what_is_written_after_the_end_of_the_run_is_refused_by_its_place() -> None:
    def flow(last: str) -> dict[str, Any]:
        return {"start": "1 s", "application": {"kind": "writes", "at": ["0 s", last], "sizes": ["1 kB", "1 kB"]}}

    # The run lasts 60 s, and times count from the flow's start.
    _scenario(flow=flow("58.999 s"))
    said = r"application\.at\[1\]: not before the end of the run, counted from the flow's start"
    with pytest.raises(ScenarioError, match=rf"s\.toml: flow\.{said}"):
        _scenario(flow=flow("59 s"))
    with pytest.raises(ScenarioError, match=rf"s\.toml: flows\[0\]\.{said}"):
        _scenario(flows=[{"name": "other", "variant": "cubic", **flow("1 min")}])


def test_a_greedy_application_begins_within_the_run() -> None:
    _scenario(flow={"start": "1 s", "application": {"kind": "greedy", "first": "58.999 s"}})
    with pytest.raises(ScenarioError, match=r"flow\.application\.first: not before the end of the run"):
        _scenario(flow={"start": "1 s", "application": {"kind": "greedy", "first": "59 s"}})


def test_order_is_kept_only_where_something_overtakes() -> None:
    def link(**keys: Any) -> list[dict[str, Any]]:
        return [{**LINKS[0], "in_order": True, **keys}, LINKS[1]]

    arq = {"model": "arq", "over": {"model": "bernoulli", "per": 0.1}, "in_order": False}
    jitter = {"kind": "uniform", "spread": "1 ms"}
    for overtaking in (
        {"jitter": jitter},
        {"loss": arq},
        {"changes": [{"at": "1 s", "delay": "1 ms"}]},
        {"channel": {"model": "handover", "steps": [{"at": "0 s", "rate": "1 Mbit/s", "delay": "20 ms"}]}},
        {"reverse": {"delay": "20 ms", "jitter": jitter}},
    ):
        _scenario(links=link(**overtaking))
    for steady in ({}, {"changes": [{"at": "1 s", "rate": "1 Mbit/s"}]}, {"loss": {"model": "bernoulli", "per": 0.1}}):
        with pytest.raises(ScenarioError, match=r"s\.toml: links\[0\]\.in_order: nothing overtakes where no delay"):
            _scenario(links=link(**steady))


def test_a_variant_of_ones_own_that_nothing_runs_is_refused() -> None:
    mine = {"mine": {"variant": "scalable", "a": 0.01}}
    with pytest.raises(ScenarioError) as caught:
        _scenario(variants=mine)
    by = "compare.variants or the variant of one of [[proxy]] or [[flows]]"
    assert str(caught.value) == f"s.toml: variants.mine: nothing runs it; name it in {by}, or leave it out"
    captured = {"input": "x", "sha256": "0" * 64, "flow_id": 1, "variant": "mine"}
    for naming in (
        {"compare": {"variants": ["mine"]}},
        {"proxy": [{"name": "relay", "node": "relay", "variant": "mine"}]},
        {"flows": [{"name": "other", "variant": "mine"}]},
        {"captured": captured},
    ):
        _scenario(variants=mine, **naming)


@pytest.mark.parametrize(
    ("key", "expected"),
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
        ("flows[0].proxies[0].receive_buffer.bytes", "proxy[0].receive_buffer"),
        ("flows[0].proxies[0].node", "compare.proxies"),
        ("flows[0].proxies[0].variant", "proxy[0].variant"),
        ("flows[0].proxies[0].handshake", "proxy[0].handshake"),
        ("flows[0].proxies[0].faults[1].at_ns", "proxy[0].faults[1].at"),
        ("flows[0].proxies[0].stack.overrides.min_rto_ns", "proxy[0].stack.min_rto"),
        ("flows[0].proxies[0].stack.overrides.max_rto_ns", "flow.max_rto"),
        ("flows[0].proxies[0].stack.overrides.recovery", "proxy[0].stack.sack"),
        ("flows[0].stack.initial_rto_ns", "variants.mine.stack.initial_rto"),
        ("flows[1].proxies[0].variant", "proxy[0].variant"),
        ("flows[1].proxies[0].advertise", "proxy[0].advertise"),
        ("flows[0].variant", "compare.variants"),
        ("flows[1].params.beta", "variants.third.beta"),
        ("flows[1].stack.min_rto_ns", "flows[0].min_rto"),
        ("flows[1].variant", "flows[0].variant"),
        ("flows[1].proxies[0].node", "flows[0].proxies"),
        ("datagrams[2].bursts.on_ns", "datagrams[2].on"),
        ("datagrams[2].packet_bytes", "datagrams[2].packet"),
    ],
)
def test_every_kind_of_key_is_the_files(key: str, expected: str) -> None:
    scenario = _scenario(
        variants={
            "mine": {"variant": "scalable", "a": 0.01, "stack": {"initial_rto": "2 s"}},
            **{name: {"variant": "scalable", "a": 0.01} for name in ("other", "third")},
        },
        proxy=[{"name": "T", "node": "relay", "variant": "other", "stack": {"min_rto": "300 ms", "sack": False}}],
        flows=[{"name": "other", "variant": "third", "proxies": ["T"]}],
        compare={"variants": ["mine"], "proxies": ["T"]},
    )
    path = tuple(int(step) if step.isdigit() else step for step in re.findall(r"\w+", key))
    error = EngineError(path, "requires", {"key": "smss_bytes"})
    job = dataclasses.replace(JOB, proxy="T")
    assert in_scenario_terms(scenario, [(job, error)]) == [f"{expected}: has no effect without mss"]


def test_every_kind_of_error_of_the_engine_has_a_text() -> None:
    source = (ROOT / "replay/engine/src/config/error.rs").read_text(encoding="utf-8")
    body = source.split("pub enum ConfigErrorKind {")[1].split("\n}")[0]
    names = re.findall(r"^    ([A-Z]\w+)", body, re.MULTILINE)
    assert kinds() == {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names}


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("min_rto_ns", 300e9, "300 s"),
        ("min_rto_ns", 2_592_000e9, "720 h"),
        ("min_rto_ns", 3_601e9, "3601 s"),
        ("min_rto_ns", 0, "0 ns"),
        ("min_rto_ns", 1_500_000, "1.5 ms"),
        ("rate_bps", 8.0, "8 bit/s"),
        ("rate_bps", 1e13, "10000 Gbit/s"),
        ("rate_bps", -1.0, "-1 bit/s"),
        ("rate_bps", None, "nan"),
        ("smss_bytes", 1448, "1448 B"),
        ("receive_buffer_bytes", 65_536, "64 KiB"),
        ("receive_buffer_bytes", 1_073_741_824, "1 GiB"),
        ("send_buffer_bytes", 100_000, "100 kB"),
        ("initial_window_pkts", 1, "1 pkt"),
        ("initial_window_pkts", 2, "2 pkts"),
        ("dscp", 64, "64"),
    ],
)
def test_a_number_has_the_unit_of_its_key(key: str, value: float | None, says: str) -> None:
    error = EngineError(("flows", 0, key), "not_ascending", {"value": value})
    assert error.problem() == f"{says} is not greater than the value before it"


def test_all_errors_are_shown() -> None:
    lines = _refusal(flow={"min_rto": "300 s", "receive_buffer_max": "64 KiB"}).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["flow.min_rto", "flow.receive_buffer_max"]


def test_a_good_scenario_is_refused_nothing() -> None:
    scenario = _scenario()
    check_jobs(scenario, plan_comparison(scenario, scenario.compare.variants), {})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"flow": {"recovery": "prr"}, "compare": {"variants": ["cubic", "sack"], "seeds": 40}},
            'flow.recovery: variant "sack" determines its own recovery',
        ),
        (
            {"variants": {"last": {"variant": "cubic", "beta": 2}}, "compare": {"variants": ["cubic", "last"]}},
            "variants.last.beta: 2 is not between 0.1 and 0.99 (cubic under rfc)",
        ),
    ],
)
def test_an_error_is_reported_before_anything_runs(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    ran: list[int] = []
    execution = Execution(threads=1, on_progress=lambda done, _all: ran.append(done))
    with pytest.raises(ScenarioError) as caught:
        replay_scenario(_scenario(**changes), tmp_path, None, execution)
    assert str(caught.value) == f"s.toml: {says}"
    assert not ran


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"flow": {"profile": "windows"}}, "flow.profile: {}, and this profile sets another"),
        (
            {"proxy": [{"name": "relay", "node": "relay", "stack": {"profile": "windows"}}]},
            "proxy[0].stack.profile: {}, and this profile sets another",
        ),
        (
            {
                "proxy": [{"name": "relay", "node": "relay", "variant": "mine"}],
                "variants": {"mine": {"variant": "newreno", "stack": {"profile": "windows"}}},
            },
            "variants.mine.stack.profile: {}, and this profile sets another",
        ),
    ],
)
def test_a_recovery_that_a_profile_sets_is_reported_at_the_profile(changes: dict[str, Any], says: str) -> None:
    said = _refusal(**{"compare": {"variants": ["newreno"], "proxies": ["relay"], "seeds": 1}, **changes})
    assert said == f"s.toml: {says.format(_NEWRENO)}"


@pytest.mark.parametrize("profile", ["linux", "rfc"])
def test_a_variant_that_reads_sack_blocks_is_refused_without_them(profile: str) -> None:
    flow = {"profile": profile, "sack": False}
    own = 'variant "fack" determines its own recovery, and sack = false sets another'
    assert _refusal(flow=flow, compare={"variants": ["fack"], "seeds": 1}) == f"s.toml: flow.sack: {own}"
    relay = {"name": "relay", "node": "relay", "variant": "fack"}
    compare = {"variants": ["reno"], "proxies": ["relay"], "seeds": 1}
    assert _refusal(flow=flow, proxy=[relay], compare=compare) == f"s.toml: flow.sack: {own}"
    scenario = _scenario(flow=flow, compare={"variants": ["reno", "newreno", "cubic"], "seeds": 1})
    check_jobs(scenario, plan_comparison(scenario, scenario.compare.variants), {})


_NEWRENO = 'variant "newreno" determines its own recovery'


def test_a_buffer_without_a_full_segment_is_reported_in_octets() -> None:
    said = _refusal(proxy=[{"name": "relay", "node": "relay", "receive_buffer": "10 B"}])
    assert "proxy[0].receive_buffer: 10 B is not between 1448 B and " in said
