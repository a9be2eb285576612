"""Replays of one captured channel by position, time and model, and how far they lie apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hindflight.channels.fitting.fit import fit_models
from hindflight.channels.fitting.loss_sequence import LossSequence
from hindflight.channels.trace import Trace, write_trace
from hindflight.replay.experiment.experiment import load_traces
from hindflight.replay.experiment.sensitivity import (
    WAYS,
    Outcome,
    Sensitivity,
    losses_by_time,
    measure_sensitivity,
    model_config,
    sensitivity_findings,
)
from hindflight.replay.scenario.loss_trace import loss_trace
from hindflight.replay.scenario.model import Scenario, load_scenario
from hindflight.toolkit.errors import ChannelError, ScenarioError
from hindflight.toolkit.schema import table_from_rows
from tests.channels.formats.test_formats import packets

MS = 1_000_000
VARIANTS = ("reno", "cubic")

SCENARIO = """
name = "bursts"
duration = "20 s"
path = ["sender", "receiver"]

[[links]]
name = "link"
rate = "1 Mbit/s"
delay = "50 ms"
queue = "50 pkts"
LOSS
reverse = { rate = "1 Mbit/s", delay = "50 ms" }

[compare]
variants = ["reno", "cubic"]
seeds = 4
"""
TRACED = SCENARIO.replace("LOSS", 'loss = { model = "trace", file = "channel.parquet" }')


def bursts() -> Trace:
    rng = np.random.default_rng(7)
    lost: set[int] = set()
    bad = False
    for i in range(2000):
        bad = rng.random() < (0.8 if bad else 0.01)
        if bad:
            lost.add(i)
    return packets(lost, 2000)


def findings_over(scenario: Scenario, folder: Path, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    traces = load_traces(scenario, folder)
    losses = {name: loss_trace(trace, name) for name, trace in traces.items()}
    return sensitivity_findings(scenario, traces, losses, runs, VARIANTS, threads=1)


def test_every_way_is_replayed_and_the_spread_is_theirs(tmp_path: Path) -> None:
    write_trace(bursts(), tmp_path / "channel.parquet")
    (tmp_path / "a.toml").write_text(TRACED)
    found = measure_sensitivity(load_scenario(tmp_path / "a.toml", VARIANTS), tmp_path, threads=1)
    assert {(o.variant, o.way) for o in found.outcomes} == {(v, way) for v in VARIANTS for way in WAYS}
    for outcome in found.outcomes:
        assert 50e3 < outcome.goodput_bps < 1e6
        seeded = outcome.way in {"resampled", "model"}
        assert (outcome.low_bps is not None) == seeded
        if outcome.low_bps is not None and outcome.high_bps is not None:
            assert outcome.low_bps <= outcome.goodput_bps <= outcome.high_bps
    reno = [outcome.goodput_bps for outcome in found.outcomes if outcome.variant == "reno"]
    assert max(reno) > min(reno)
    assert found.of("reno", "none") == pytest.approx((max(reno) - min(reno)) / np.mean(reno))
    assert found.fits["channel.parquet"] == ("gilbert_elliott", "fits")


def test_a_report_gets_the_spread_or_why_there_is_none(tmp_path: Path) -> None:
    write_trace(bursts(), tmp_path / "channel.parquet")
    (tmp_path / "a.toml").write_text(TRACED)
    scenario = load_scenario(tmp_path / "a.toml", VARIANTS)
    rows = table_from_rows("findings", findings_over(scenario, tmp_path, [])).to_pylist()
    found = measure_sensitivity(scenario, tmp_path, threads=1)
    assert {row["section"] for row in rows} == {"sensitivity"}
    numbers = {(row["subject"], row["metric"]): row["value"] for row in rows if row["metric"]}
    assert len(numbers) == 2 * (len(WAYS) + 1)
    assert numbers["reno", "spread"] == 100 * found.of("reno", "none")
    widest = max(numbers[variant, "spread"] for variant in VARIANTS)
    assert f"differs by up to {widest:.0f} %" in rows[0]["text"]
    assert ("does not decide" in rows[0]["text"]) == (not found.same_order())
    write_trace(packets(set(), 100), tmp_path / "channel.parquet")
    (row,) = findings_over(scenario, tmp_path, [])
    assert row["verdict"] == "unknown"
    assert "nothing to fit" in row["text"]


def test_runs_of_the_comparison_are_not_made_again(tmp_path: Path) -> None:
    write_trace(bursts(), tmp_path / "channel.parquet")
    (tmp_path / "a.toml").write_text(TRACED)
    scenario = load_scenario(tmp_path / "a.toml", VARIANTS)
    labels = {"purpose": "what_if", "role": "under_test", "proxy": "none", "variant": "reno"}
    first = scenario.compare.first_seed
    runs = [{**labels, "channel_mode": "replayed", "seed": first, "goodput_bps": 7.0}]
    runs += [
        {**labels, "channel_mode": "resampled", "seed": first + i, "goodput_bps": 3.0 + i}
        for i in range(max(2, scenario.compare.seeds))
    ]
    whole = {(row["subject"], row["metric"]): row for row in findings_over(scenario, tmp_path, [])}
    rows = {(row["subject"], row["metric"]): row for row in findings_over(scenario, tmp_path, runs)}
    assert rows["reno", "by_position"]["value"] == 7.0
    assert rows["reno", "by_resampled"]["value"] == np.mean([run["goodput_bps"] for run in runs[1:]])
    for key in (("reno", "by_time"), ("reno", "by_model"), ("cubic", "by_position"), ("cubic", "by_resampled")):
        assert rows[key] == whole[key]


def test_spread_and_order_are_worked_out_from_the_outcomes() -> None:
    def at(variant: str, way: str, goodput: float) -> Outcome:
        return Outcome(variant, "none", way, goodput, None, None)  # type: ignore[arg-type]

    ways = zip(WAYS, (100.0, 80.0, 120.0, 100.0), (90.0, 90.0, 90.0, 90.0), strict=True)
    found = Sensitivity(tuple(o for way, a, b in ways for o in (at("a", way, a), at("b", way, b))), {})
    assert found.of("a", "none") == pytest.approx(0.4)
    assert found.of("b", "none") == 0.0
    assert found.orders()["position"] == [("a", "none"), ("b", "none")]
    assert found.orders()["resampled"] == [("b", "none"), ("a", "none")]


def test_losses_by_time_reach_halfway_to_their_neighbours() -> None:
    # A packet per ms; 3 and 4 lost, and the last.
    words = losses_by_time(packets({3, 4, 9}, 10), "x")
    assert words["spans"] == [
        {"start_ns": 0, "per": 0.0},
        {"start_ns": 2_500_000, "per": 1.0},
        {"start_ns": 4_500_000, "per": 0.0},
        {"start_ns": 8_500_000, "per": 1.0},
        {"start_ns": 9_000_001, "per": 0.0},
    ]


def test_a_list_without_times_has_no_replay_by_time() -> None:
    trace = packets({3}, 10)
    column = trace.channel.column_names.index("t_ns")
    zeros = trace.channel.set_column(column, trace.channel.schema.field(column), [np.zeros(10, dtype=np.int64)])
    with pytest.raises(ChannelError, match="no times"):
        losses_by_time(Trace(zeros), "x")


@pytest.mark.parametrize("model", ["bernoulli", "gilbert_elliott", "four_state", "markov3"])
def test_fitted_models_are_written_in_the_engines_words(model: str) -> None:
    lost = np.asarray(bursts().packets()["lost"]).astype(np.uint8)
    fit = fit_models(LossSequence(lost, np.arange(2000), 0, 0), (model,)).fits[0]
    words = model_config(fit)
    assert words["kind"] in {"bernoulli", "gilbert_elliott", "chain"}
    if model == "gilbert_elliott":
        assert words["p"] == fit.parameter("p").value


def test_probabilities_of_a_row_that_exceed_1_by_rounding_are_a_model() -> None:
    lost = np.asarray(bursts().packets()["lost"]).astype(np.uint8)
    fit = fit_models(LossSequence(lost, np.arange(2000), 0, 0), ("four_state",)).fits[0]
    values = {"p13": 0.1, "p31": 0.7, "p32": 0.3 + 4e-16, "p23": 1.0, "p14": 0.0}
    assert values["p31"] + values["p32"] > 1
    rounded = replace(fit, parameters=tuple(replace(one, value=values[one.name]) for one in fit.parameters))
    assert model_config(rounded)["kind"] == "chain"


def test_without_a_trace_there_is_one_way(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SCENARIO.replace("LOSS", ""))
    with pytest.raises(ScenarioError, match="no link has a loss trace"):
        measure_sensitivity(load_scenario(tmp_path / "a.toml", VARIANTS), tmp_path)
