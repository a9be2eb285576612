"""The functions of `hindflight` that do what commands do on channels, variants and inferred windows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hindflight as hf
from tests.e2e.conftest import FLOW, Command


def test_a_generated_channel_is_that_of_the_command_and_is_fitted(tmp_path: Path) -> None:
    trace = hf.synth("bernoulli", seed=3, packets=20_000, per=0.02)
    assert trace.channel.num_rows == 20_000
    assert trace.channel.equals(hf.synth("bernoulli", seed=3, packets=20_000, per=0.02).channel)
    rate = next(row for row in hf.channel_statistics(trace) if row.name == "loss rate")
    assert rate.value == pytest.approx(0.02, rel=0.2)
    (found,) = hf.fit(trace, "bernoulli").fits
    assert found.parameters[0].value == pytest.approx(0.02, rel=0.2)
    hf.write_channel(trace, tmp_path / "c.csv")
    again = hf.read_channel(tmp_path / "c.csv")
    assert again.channel["lost"].to_pylist() == trace.channel["lost"].to_pylist()
    with pytest.raises(hf.HindflightError, match="bernouli"):
        hf.synth("bernouli")


def test_variants_and_models_are_those_of_the_commands(hindflight: Command) -> None:
    listed = json.loads(hindflight("variants", "--json").stdout)["variants"]
    assert [one.name for one in hf.variants()] == [one["name"] for one in listed]
    models = json.loads(hindflight("channel", "models", "--json").stdout)["models"]
    assert [one.name for one in hf.models()] == [one["name"] for one in models]


def test_scores_are_those_of_the_command(hindflight: Command, tmp_path: Path) -> None:
    assert hindflight("ingest", FLOW / "snd.pcap.xz", FLOW / "tcpinfo.csv.xz", "-w", "ws").returncode == 0
    scores = json.loads(hindflight("score", "ws", "--json").stdout)["scores"]
    assert [one.median_error for one in hf.score(tmp_path / "ws")] == [one["median_error"] for one in scores]


def test_sensitivity_is_that_of_the_command(hindflight: Command, tmp_path: Path) -> None:
    chosen = ("--seeds", "2", "--variants", "cubic", "--proxy", "none")
    assert hindflight("scenario", "init", FLOW / "snd.pcap.xz", "-o", "s.toml", *chosen).returncode == 0
    outcomes = json.loads(hindflight("channel", "sensitivity", "s.toml", "--json").stdout)["outcomes"]
    found = hf.sensitivity(tmp_path / "s.toml").outcomes
    assert [(one.variant, one.way) for one in found] == [(one["variant"], one["way"]) for one in outcomes]
