from __future__ import annotations

import tomllib
from pathlib import Path

from hindflight.replay.controllers.base import variant_names
from hindflight.replay.experiment.experiment import Execution, replay_scenario
from hindflight.replay.experiment.proxy_faults import fault_rows
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import required, run_row

SCENARIO = """
name = "faults"
duration = "12 s"
path = ["s", "m", "r"]
[[links]]
name = "fast"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "100 pkts"
[[links]]
name = "slow"
rate = "1 Mbit/s"
delay = "120 ms"
queue = "100 pkts"
[flow]
profile = "linux"
[[proxy]]
name = "p"
node = "m"
receive_buffer = "200 pkts"
advertise = "free"
faults = [{faults}]
[compare]
variants = ["newreno"]
proxies = ["none", "p"]
seeds = 2
"""


def rows_of(faults: str, folder: Path) -> tuple[list[dict[str, object]], float]:
    """Return the rows of a replay, and the most octets that one run lost."""
    return replayed(scenario_of(faults), folder)


def scenario_of(faults: str, *changes: tuple[str, str]) -> Scenario:
    """Return the scenario with these faults, and with texts replaced."""
    text = SCENARIO.replace("{faults}", faults)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return parse_scenario(tomllib.loads(text), "scenario", variant_names())


def replayed(scenario: Scenario, folder: Path) -> tuple[list[dict[str, object]], float]:
    tables = replay_scenario(scenario, folder, None, Execution(threads=1)).tables
    runs = tables["runs"].to_pylist()
    return fault_rows(scenario, runs, tables["instruments"]), max(run["proxy_lost_bytes"] or 0 for run in runs)


def test_one_fault_lost_what_the_run_lost(tmp_path: Path) -> None:
    rows, lost = rows_of('{at = "6 s", kind = "failure"}', tmp_path)
    assert {row["subject"] for row in rows} == {"newreno, through p: failure of p at 6 s"}
    found = {row["metric"]: row["value"] for row in rows}
    assert found["lost_bytes"] == lost > 0
    pending = found["acknowledged_not_yet_onward_bytes"]
    assert isinstance(pending, float)
    assert pending >= lost, "what it had not seen acknowledged onward is the most that it can lose"
    assert found["damaged_bytes"] == 0


def test_several_faults_share_what_the_run_lost(tmp_path: Path) -> None:
    rows, lost = rows_of('{at = "3 s", kind = "corruption"}, {at = "6 s", kind = "failure"}', tmp_path)
    shares = [row for row in rows if row["metric"] == "lost_bytes"]
    assert len(shares) == 2
    for row in shares:
        assert row["value"] is None
        assert row["low"] == 0
        assert 0 < float(str(row["high"])) <= lost
        assert row["verdict"] == "info", "the range is what the data say"


GATEWAY = """
[[proxy]]
name = "arq"
node = "m"
peer = "r"
kind = "arq"
layer = { retries = 3, in_order = true }
[compare]"""


def test_a_gateway_of_the_chain_takes_no_leg(tmp_path: Path) -> None:
    fault = '{at = "6 s", kind = "failure"}'
    alone, _ = rows_of(fault, tmp_path / "alone")
    lossy = 'name = "slow"\nloss = { model = "bernoulli", per = 0.001 }'
    both = scenario_of(
        fault, ("\n[compare]", GATEWAY), ('["none", "p"]', '["none", "arq+p"]'), ('name = "slow"', lossy)
    )
    rows, _ = replayed(both, tmp_path / "both")
    assert [row["metric"] for row in rows] == [row["metric"] for row in alone]
    (pending,) = (row["value"] for row in rows if row["metric"] == "acknowledged_not_yet_onward_bytes")
    assert isinstance(pending, float)
    assert pending > 0
    assert [row["verdict"] for row in rows] == ["info"] * 3


def test_what_is_pending_is_that_of_the_flow_under_test() -> None:
    """Another flow through the same proxy has the later row."""
    memory = [
        required(
            "instruments",
            run_id=run_id,
            flow_id=flow_id,
            leg=1,
            t_ns=t_ns,
            proxy_stored_bytes=0,
            proxy_undelivered_bytes=octets,
        )
        for run_id, flow_id, t_ns, octets in ((1, 1, 1000, 7000), (1, 2, 2000, 99_000), (2, 1, 3000, 99_000))
    ]
    runs = [run_row(1, "newreno", "p", proxy_lost_bytes=500, proxy_corrupted_bytes=0)]
    rows = fault_rows(scenario_of('{at = "6 s", kind = "failure"}'), runs, table_from_rows("instruments", memory))
    assert rows[0]["metric"] == "acknowledged_not_yet_onward_bytes"
    assert rows[0]["value"] == 7000


def test_without_a_fault_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert rows_of("", tmp_path)[0] == []
