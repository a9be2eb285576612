"""Queues of scenario files: the engine configuration of each kind, and one line per error."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from hindflight.replay.experiment.engine_inputs import Job, engine_config, plan_comparison
from hindflight.replay.experiment.run import run_jobs
from hindflight.replay.scenario.model import parse_scenario
from hindflight.replay.scenario.queues import QUEUES
from hindflight.toolkit.errors import ScenarioError
from tests.replay.losses import lost
from tests.replay.scenario.test_scenario import GOOD, VARIANTS

CONFIG = Path(__file__).parents[3] / "replay" / "engine" / "src" / "config" / "queue.rs"


def _engine_queue(queue: object, **link: Any) -> Any:
    """Return the engine's queue of the first link."""
    data = copy.deepcopy(GOOD)
    data["links"][0].update(queue=queue, **link)
    scenario = parse_scenario(data, "geo.toml", VARIANTS)
    job = plan_comparison(scenario, ("newreno",))[0]
    config = engine_config(scenario, job, {"channel.parquet": lost((3,), 1000)})
    return config["path"]["links"][0]["forward"]["queue"]


def test_a_bare_limit_is_drop_tail_in_packets_or_octets() -> None:
    assert _engine_queue("200 pkts") == {"kind": "drop_tail", "limit_pkts": 200, "limit_bytes": None}
    assert _engine_queue("64 KiB") == {"kind": "drop_tail", "limit_pkts": None, "limit_bytes": 65536}
    assert _engine_queue({"kind": "drop_tail", "limit": "3 kB"})["limit_bytes"] == 3000
    assert _engine_queue({"kind": "drop_tail"})["limit_pkts"] == 1000


def test_each_kind_is_given_in_base_units_and_the_engine_has_the_defaults() -> None:
    assert _engine_queue({"kind": "codel"}) == {"kind": "codel"}
    assert _engine_queue({"kind": "codel", "target": "5 ms", "interval": "0.5 s", "mtu": "1500 B", "ecn": False}) == {
        "kind": "codel",
        "target_ns": 5_000_000,
        "interval_ns": 500_000_000,
        "mtu_bytes": 1500,
        "ecn": False,
    }
    assert _engine_queue(
        {"kind": "red", "min": "5 pkts", "max": "50 pkts", "max_probability": 0.1, "weight": 0.002}
    ) == {
        "kind": "red",
        "min_pkts": 5.0,
        "max_pkts": 50.0,
        "max_probability": 0.1,
        "weight": 0.002,
    }
    assert _engine_queue(
        {"kind": "pie", "update": "15 ms", "max_burst": "0 s", "alpha": 0.125, "limit": "50 pkts"}
    ) == {
        "kind": "pie",
        "limit_pkts": 50,
        "update_ns": 15_000_000,
        "max_burst_ns": 0,
        "alpha": 0.125,
    }
    assert _engine_queue({"kind": "priority", "classes": [[46], [34, 36]]})["classes"] == ((46,), (34, 36))
    assert _engine_queue({"kind": "drr", "quantum": "1500 B"}) == {"kind": "drr", "quantum_bytes": 1500}


def test_every_key_is_one_that_the_engine_knows() -> None:
    source = CONFIG.read_text()
    for kind, table in QUEUES.items():
        name = kind.title().replace("_", "")
        fields = re.search(rf"pub struct {name}Config {{(.*?)\n}}", source, re.DOTALL)
        assert fields is not None, kind
        known = {re.sub(r"_(pkts|bytes|ns)$", "", key) for key in re.findall(r"pub (\w+):", fields[1])}
        assert known == set(table.model_fields) - {"kind"}


MISTAKES: list[tuple[object, str]] = [
    ("200", "links[0].queue: the unit is missing in '200'"),
    ("200 ms", "links[0].queue: unit 'ms' is not known"),
    (200, "links[0].queue: write the"),
    ("900000000 pkts", "links[0].queue: '900000000 pkts' is out of range; at most"),
    ({"kind": "fq"}, "links[0].queue: unknown kind 'fq'; allowed: drop_tail"),
    ({"target": "5 ms"}, "links[0].queue: it needs a kind, as in"),
    ({"kind": "codel", "targt": "5 ms"}, "links[0].queue.targt: unknown key; did you mean 'target'?"),
    ({"kind": "codel", "target": "5"}, "links[0].queue.target: the unit is missing"),
    ({"kind": "codel", "target": "100 s"}, "links[0].queue.target: '100 s' is out of range"),
    ({"kind": "codel", "target": "1 s", "interval": "5 ms"}, "links[0].queue: interval is shorter than target"),
    ({"kind": "red", "min": "9 pkts", "max": "3 pkts"}, "links[0].queue: max = 3 pkts is not above min = 9 pkts"),
    ({"kind": "pie", "ecn_threshold": 2.0}, "links[0].queue.ecn_threshold: "),
    ({"kind": "priority", "classes": [[46], [46]]}, "links[0].queue: classes name DSCP 46 twice"),
    ({"kind": "priority", "classes": [[64]]}, "links[0].queue.classes[0][0]: "),
]


@pytest.mark.parametrize(("queue", "expected"), MISTAKES)
def test_an_error_is_one_line_with_its_key(queue: object, expected: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        _engine_queue(queue)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_managed_queue_needs_a_rate_now_or_later() -> None:
    with pytest.raises(ScenarioError, match=r"links\[0\]: queue = codel has no effect without a rate"):
        _engine_queue({"kind": "codel"}, rate=None)
    later = [{"at": "1 s", "rate": "1 Mbit/s"}]
    assert _engine_queue({"kind": "codel"}, rate=None, changes=later) == {"kind": "codel"}
    with pytest.raises(ScenarioError, match=r"links\[0\]: reverse.queue = pie has no effect"):
        _engine_queue("9 pkts", reverse={"delay": "1 ms", "queue": {"kind": "pie"}})


def test_a_break_before_make_handover_loses_what_is_under_way_or_holds_the_queue() -> None:
    def lost(word: str) -> tuple[int, int, int]:
        link = {
            "name": "up", "rate": "2 Mbit/s", "delay": "100 ms", "queue": "500 pkts",
            "changes": [{"at": "3 s", word: True}, {"at": "3.5 s", word: False, "delay": "20 ms"}],
        }  # fmt: skip
        data = {
            "name": "handover", "duration": "20 s", "path": ["a", "b"], "links": [link],
            "flow": {"receive_buffer": "100 kB"}, "compare": {"variants": ["sack"]},
        }  # fmt: skip
        scenario = parse_scenario(data, "s.toml", VARIANTS)
        runs = run_jobs(scenario, {1: Job("sack", "none", "what_if", "model", 1, False)}, {})["runs"]
        row = runs.to_pylist()[0]
        return row["outage_losses"], row["queue_losses"], row["delivered_bytes"]

    broken, held = lost("outage"), lost("hold")
    # The window is 69 packets; of these, those neither delivered nor reported by an ACK in flight.
    assert 45 <= broken[0] <= 69
    assert held[:2] == (0, 0)
    assert held[2] > broken[2]
