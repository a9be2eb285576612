"""The functions of `hindflight` that do what commands do on channels, variants and inferred windows."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import hindflight as hf
from hindflight.cli import batch, scenario, whatif
from hindflight.replay.scenario.from_capture import Choice
from tests.e2e.conftest import FLOW, Command

_SOJOURNS: dict[str, Any] = {"mean_good": "200 ms", "mean_bad": "30 ms"}


def as_json(rows: Iterable[Any]) -> Any:
    """Return dataclasses as the documents of `--json` have them."""
    return json.loads(json.dumps([dataclasses.asdict(row) for row in rows]))


def test_a_generated_channel_is_that_of_the_command_and_is_fitted(hindflight: Command, tmp_path: Path) -> None:
    trace = hf.synth("bernoulli", seed=3, packets=20_000, per=0.02)
    assert trace.channel.num_rows == 20_000
    chosen = ("-p", "per=0.02", "--seed", "3", "--packets", "20000")
    assert hindflight("channel", "synth", "bernoulli", *chosen, "-o", "c.parquet").returncode == 0
    assert trace.channel.equals(hf.read_channel(tmp_path / "c.parquet").channel)
    shown = json.loads(hindflight("channel", "show", "c.parquet", "--json").stdout)["statistics"]
    assert as_json(hf.channel_statistics(trace)) == shown
    fitted = json.loads(hindflight("channel", "fit", "c.parquet", "--model", "bernoulli", "--json").stdout)
    assert as_json(hf.fit(trace, "bernoulli").fits)[0]["parameters"] == fitted["fits"][0]["parameters"]
    rate = next(row for row in hf.channel_statistics(trace) if row.name == "loss rate")
    assert rate.value == pytest.approx(0.02, rel=0.2)
    (found,) = hf.fit(trace, "bernoulli").fits
    assert found.parameters[0].value == pytest.approx(0.02, rel=0.2)
    hf.write_channel(trace, tmp_path / "c.csv")
    again = hf.read_channel(tmp_path / "c.csv")
    assert again.channel["lost"].to_pylist() == trace.channel["lost"].to_pylist()
    with pytest.raises(hf.HindflightError, match="bernouli"):
        hf.synth("bernouli")


def test_in_continuous_time_too(hindflight: Command, tmp_path: Path) -> None:
    trace = hf.synth("gilbert_elliott_time", seed=3, span_s=2.5, **_SOJOURNS)
    keys = [text for key, value in _SOJOURNS.items() for text in ("-p", f"{key}={value}")]
    chosen = (*keys, "--seed", "3", "--duration", "2.5 s")
    ended = hindflight("channel", "synth", "gilbert_elliott_time", *chosen, "-o", "c.parquet")
    assert ended.returncode == 0, ended.stderr
    assert trace.channel.equals(hf.read_channel(tmp_path / "c.parquet").channel)


def test_a_misspelt_argument_and_an_unknown_format_name_what_python_has(tmp_path: Path) -> None:
    with pytest.raises(hf.HindflightError) as raised:
        hf.synth("bernoulli", per=0.02, seeds=3)
    assert raised.value.hint == "seeds: did you mean 'seed'?"
    trace = hf.synth("bernoulli", packets=100, per=0.02)
    (tmp_path / "c.xyz").write_text("neither\n")
    for refused in (
        lambda: hf.write_channel(trace, tmp_path / "d.xyz"),
        lambda: hf.write_channel(trace, tmp_path / "c.csv", format="cvs"),
        lambda: hf.read_channel(tmp_path / "c.xyz"),
    ):
        with pytest.raises(hf.HindflightError) as raised:
            refused()
        assert "--" not in f"{raised.value} {raised.value.hint}", "options are of the command line"
        assert "csv" in f"{raised.value} {raised.value.hint}"


def test_variants_and_models_are_those_of_the_commands(hindflight: Command) -> None:
    listed = json.loads(hindflight("variants", "--json").stdout)["variants"]
    assert as_json(hf.variants()) == listed
    models = json.loads(hindflight("channel", "models", "--json").stdout)["models"]
    assert as_json(hf.models()) == models
    assert isinstance(hf.models(), tuple)
    assert isinstance(hf.variants(), tuple)


def test_scores_are_those_of_the_command(hindflight: Command, tmp_path: Path) -> None:
    assert hindflight("ingest", FLOW / "snd.pcap.xz", FLOW / "tcpinfo.csv.xz", "-w", "ws").returncode == 0
    scores = json.loads(hindflight("score", "ws", "--json").stdout)["scores"]
    assert scores
    assert as_json(hf.score(tmp_path / "ws")) == scores


def test_sensitivity_is_that_of_the_command(hindflight: Command, tmp_path: Path) -> None:
    chosen = ("--seeds", "2", "--variants", "cubic", "--proxy", "none")
    assert hindflight("scenario", "init", FLOW / "snd.pcap.xz", "-o", "s.toml", *chosen).returncode == 0
    document = json.loads(hindflight("channel", "sensitivity", "s.toml", "--json").stdout)
    found = hf.sensitivity(tmp_path / "s.toml")
    assert as_json(found.outcomes) == document["outcomes"]
    assert {name: {"model": m, "verdict": v} for name, (m, v) in found.fits.items()} == document["fits"]


def test_functions_and_commands_choose_alike() -> None:
    shared = {"variants": ("newreno", "cubic"), "proxies": ("auto",), "seeds": 40, "captured_variant": "auto"}
    choice = {field.name: field.default for field in dataclasses.fields(Choice)}
    assert choice == shared
    for function in (hf.whatif, hf.batch, hf.draft_scenario):
        defaults = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
        assert {name: defaults[name] for name in shared} == shared
    for command in (whatif.whatif, batch.batch, scenario.init):
        defaults = {name: parameter.default for name, parameter in inspect.signature(command).parameters.items()}
        written = {**shared, "variants": "newreno,cubic", "proxies": "auto"}
        assert {name: defaults[name.replace("proxies", "proxy")] for name in written} == written
