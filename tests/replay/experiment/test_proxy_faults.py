from __future__ import annotations

import tomllib
from pathlib import Path

from hindflight.replay.controllers.base import variant_names
from hindflight.replay.experiment.experiment import Execution, replay_scenario
from hindflight.replay.experiment.proxy_faults import fault_rows
from hindflight.replay.scenario.model import parse_scenario

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
    scenario = parse_scenario(tomllib.loads(SCENARIO.replace("{faults}", faults)), "scenario", variant_names())
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


def test_without_a_fault_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert rows_of("", tmp_path)[0] == []
