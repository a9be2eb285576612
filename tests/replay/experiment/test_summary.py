"""The sentences at the top of a report without a capture, and which of them claim a gain."""

from __future__ import annotations

from typing import Any

import pytest

from hindflight.replay.experiment.compare import compare_runs
from hindflight.replay.experiment.summary import summary_without_capture


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
    assert _setup_row(runs)[-1].startswith("Best of those tried: cubic: 20 % more goodput than newreno")


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
