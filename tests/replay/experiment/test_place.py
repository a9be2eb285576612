"""The search for places of proxies: what helps is found, and the knee is where the rule of the window puts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hindflight as hf
from hindflight.cli.app import build
from hindflight.replay.experiment.place import Space
from hindflight.replay.experiment.place import place as search
from hindflight.toolkit.errors import ScenarioError
from hindflight.workflow import read_scenario

FILE = """
name = "two-hops"
duration = "30 s"
path = ["a", "near", "far", "b"]
links = [
  {{ name = "one", rate = "2 Mbit/s", delay = "20 ms"{loss} }},
  {{ name = "two", rate = "2 Mbit/s", delay = "{delay}" }},
  {{ name = "three", rate = "2 Mbit/s", delay = "20 ms" }},
]
flow = {{ profile = "rfc", mss = "1210 B", headers = "40 B", timestamps = false, receive_buffer = "4 MiB" }}
compare = {{ variants = ["sack"], seeds = {seeds} }}
"""


def _file(folder: Path, *, loss: str = "", delay: str = "100 ms", seeds: int = 5) -> Path:
    path = folder / "hops.toml"
    path.write_text(FILE.format(loss=loss, delay=delay, seeds=seeds), encoding="utf-8")
    return path


def test_losses_before_a_long_hop_call_for_a_proxy_between_them(tmp_path: Path) -> None:
    scenario = _file(tmp_path, loss=', loss = { model = "bernoulli", per = 0.01 }')
    found = hf.place(scenario, cache=200, proxies=1, threads=1)
    best = found.best[0]
    assert best.placement.nodes == ("near",)
    assert (best.gain_bps.low or 0) > 0
    assert best.goodput_bps.mean == pytest.approx(found.baseline_bps.mean + best.gain_bps.mean)
    # Two nodes and four caches; what is fine repeats nothing of what was coarse.
    assert found.candidates == 8


def test_the_knee_is_twice_the_pipe_and_what_is_on_its_way_onward(tmp_path: Path) -> None:
    # 2 Mbit/s and 100 ms each way: with the time of a packet, 41 packets of 1250 octets. Goodput is that of half of
    # what is free per round trip, so 95 % of the rate need 1.9 times the pipe; 9 packets are on their way over 20 ms.
    scenario = _file(tmp_path, delay="100 ms", seeds=1)
    scenario.write_text(
        scenario.read_text(encoding="utf-8")
        .replace('path = ["a", "near", "far", "b"]', 'path = ["near", "far", "b"]')
        .replace('  { name = "one", rate = "2 Mbit/s", delay = "20 ms" },\n', ""),
        encoding="utf-8",
    )
    (best,) = hf.place(scenario, cache=400, threads=1).best
    assert best.placement.nodes == ("far",)
    assert best.knee_pkts == pytest.approx(1.9 * 41 + 9, rel=0.1)
    assert best.gain_bps.low is None


def test_a_path_without_inner_nodes_has_no_place(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="'moon': no node between the ends for a proxy; allowed: near, far"):
        hf.place(_file(tmp_path, seeds=1), nodes=["moon"])


def test_the_command_prints_one_document(tmp_path: Path) -> None:
    scenario = _file(tmp_path, seeds=1)
    command = ["place", str(scenario), "--nodes", "far", "--cache", "60", "--variants", "cubic", "--threads", "1"]
    result = CliRunner().invoke(build(), [*command, "--json"])
    document = json.loads(result.stdout)
    assert document["best"][0]["placement"] == {"nodes": ["far"], "variants": ["cubic"], "cache_pkts": 60}
    text = CliRunner().invoke(build(), command).stdout
    assert "far:cubic" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_search_of_too_many_placements_is_refused_and_a_search_reports_its_runs(tmp_path: Path) -> None:
    scenario = read_scenario(_file(tmp_path, seeds=1))
    many = tuple(f"variant-{n}" for n in range(40))
    with pytest.raises(ScenarioError, match="6720 placements of 2 nodes and 40 variants; at most 4000"):
        search(scenario, tmp_path, Space(variants=many))
    seen: list[tuple[int, int]] = []
    found = search(scenario, tmp_path, Space(("near",), (), 100), report=lambda *counts: seen.append(counts))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == found.runs
    assert all(done <= total for done, total in seen)
