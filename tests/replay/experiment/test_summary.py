"""The sentences at the top of a report without a capture, and which of them claim a gain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hindflight.channels.estimate import Estimate, LinkStretch
from hindflight.channels.trace import Trace
from hindflight.replay.experiment.compare import compare_runs
from hindflight.replay.experiment.summary import (
    CapturedSentences,
    goodput_of_capture,
    summary,
    summary_without_capture,
)
from hindflight.replay.outcome import Outcome
from hindflight.toolkit.schema import table_from_rows


def _run(variant: str, seed: int, goodput_bps: float, **given: Any) -> dict[str, Any]:
    labels = {"purpose": "what_if", "role": "under_test", "proxy": "none", "channel_mode": "model"}
    counts = {"reset_ns": None, "trace_beyond_pkts": None, "segments_out": 100}
    return {**labels, **counts, "variant": variant, "seed": seed, "goodput_bps": goodput_bps, **given}


def _setup_row(runs: list[dict[str, Any]]) -> list[str]:
    rows = summary_without_capture(compare_runs(runs, ("newreno", "none")), runs)
    assert {row["section"] for row in rows} == {"summary"}
    return [row["text"] for row in rows]


@pytest.mark.parametrize(
    ("mode", "channel"),
    [("model", "a channel generated from its model"), ("resampled", "a captured channel, whose capture")],
)
def test_what_was_replayed_over_what_and_how_fast(mode: str, channel: str) -> None:
    runs = [_run(variant, 1, 1e6 * n, channel_mode=mode) for n, variant in enumerate(("newreno", "cubic", "bbr"), 1)]
    first, goodput, better = _setup_row(runs)
    assert "3 choices of variant and proxy" in first
    assert f"over {channel}" in first
    assert first.endswith("3 runs in all.")
    assert goodput == "Goodput from 1 Mbit/s (newreno) to 3 Mbit/s (bbr)."
    assert better == "No variant or proxy that was tried is significantly better."


def test_a_single_choice_is_not_compared() -> None:
    first, goodput = _setup_row([_run("newreno", 1, 1.5e6)])
    assert "1 choice of variant and proxy" in first
    assert first.endswith("1 run in all.")
    assert goodput == "Goodput of 1.5 Mbit/s (newreno)."


def test_the_best_is_the_best_of_the_sure_ones() -> None:
    runs = [_run("newreno", s, 1e6 + s) for s in range(8)]
    runs += [_run("cubic", s, 1.2e6 + 2 * s) for s in range(8)]
    runs += [_run("bbr", s, 2e6 + 3e6 * (-1) ** s) for s in range(8)]
    assert _setup_row(runs)[-1].startswith("The best of those tried is cubic: 20 % more goodput than newreno")


@pytest.mark.parametrize("dead", [1, 3])
def test_resets_are_said_one_by_one_or_counted(dead: int) -> None:
    names = ("newreno", "cubic", "bbr")
    runs = [
        _run(v, s, 1e6 * n + s, reset_ns=10**9 if n <= dead else None) for n, v in enumerate(names, 1) for s in (1, 2)
    ]
    said = _setup_row(runs)
    one = "newreno: the connection was reset in 2 of 2 runs, the first after 1.0 s; goodput counts until then."
    many = "With 3 of the choices tried, connections were reset; the section What if counts them."
    assert (one in said, many in said) == (dead == 1, dead == 3)


def _rate(value: float | None, *, known: bool = True) -> Estimate:
    return Estimate("rate_bps", value, value, value, "bit/s", known, "")


def _stretch(start_s: int, end_s: int, rate: Estimate) -> LinkStretch:
    return LinkStretch(start_s * 10**9, end_s * 10**9, 100, (rate,))


def _outcome(seconds: float, goodput_bps: float) -> Outcome:
    delivered = round(goodput_bps * seconds / 8)
    return Outcome(0, round(seconds * 1e9), delivered, 1000, 0, 0, np.zeros(0), "inferred")


def test_goodput_is_compared_with_the_mean_rate_of_a_link_whose_rate_has_steps() -> None:
    """The rate of the last stretch alone gave more than 100 %."""
    stretches = [_stretch(0, 10, _rate(6e6)), _stretch(10, 40, _rate(2e6))]
    said = goodput_of_capture(_outcome(40, 2.7e6), _rate(2e6), stretches)
    assert said.endswith(", 90 % of what its bottleneck carries, whose rate changed: 3 Mbit/s on average.")
    steps_of_delay = [_stretch(0, 10, _rate(4e6)), _stretch(10, 40, _rate(4e6))]
    said = goodput_of_capture(_outcome(40, 2e6), _rate(4e6), steps_of_delay)
    assert said == (
        "In 40 s the captured flow delivered 10.0 MB: 2 Mbit/s of payload, 50 % of the 4 Mbit/s that its bottleneck "
        "carries."
    )


def test_rates_whose_intervals_overlap_are_no_steps() -> None:
    """Two estimates of one rate differ by noise; the summary said that the rate had changed."""
    near = [Estimate("rate_bps", value, 1.99e6, 2.01e6, "bit/s", True, "") for value in (2.000e6, 2.001e6)]
    said = goodput_of_capture(_outcome(40, 1e6), near[0], [_stretch(0, 10, near[0]), _stretch(10, 40, near[1])])
    assert "changed" not in said
    assert "50 % of the 2 Mbit/s" in said


def test_no_share_is_given_of_a_rate_that_is_not_known_throughout() -> None:
    stretches = [_stretch(0, 10, _rate(6e6)), _stretch(10, 40, _rate(2e6, known=False))]
    said = goodput_of_capture(_outcome(40, 2.7e6), _rate(6e6), stretches)
    assert "%" not in said
    assert "this capture does not show all of its values" in said


def test_what_is_not_known_of_the_flight_stands_behind_the_summary() -> None:
    def row(section: str, text: str) -> dict[str, Any]:
        return {"section": section, "subject": "capture", "metric": "", "unit": "", "verdict": "info", "text": text}

    flight = [row("summary", "first"), row("unknown", "open"), row("summary", "second")]
    trace = Trace(table_from_rows("channel", []))
    rows = summary(_outcome(40, 2e6), trace, [], [], [], CapturedSentences(flight))
    assert [one["section"] for one in rows][-1] == "unknown"
    assert {one["section"] for one in rows[:-1]} == {"summary"}
    assert [one["text"] for one in rows if one["metric"] == ""] == ["first", "second", "open"]


def test_a_short_flow_has_a_duration() -> None:
    assert goodput_of_capture(_outcome(0.28, 5.6e6), None).startswith("In 0.28 s the captured flow delivered 0.2 MB")
