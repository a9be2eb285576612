"""Intervals and paired differences against hand-computed values."""

from __future__ import annotations

from typing import Any

import pytest

from hindflight.replay.experiment.compare import Forecast, compare_runs, mean_interval, t_quantile_975
from hindflight.replay.experiment.prediction import RANKED, predict
from hindflight.toolkit.schema import DAMAGE_METRICS


@pytest.mark.parametrize(
    ("degrees", "table"),
    [(1, 12.706205), (2, 4.302653), (4, 2.776445), (5, 2.570582), (9, 2.262157), (19, 2.093024), (99, 1.984217)],
)
def test_t_quantile_matches_the_printed_table(degrees: int, table: float) -> None:
    assert t_quantile_975(degrees) == pytest.approx(table, rel=1e-6)


def test_interval_of_a_mean() -> None:
    interval = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval.mean == 3.0
    assert interval.low is not None
    assert interval.high is not None
    half = 2.776445 * (2.5**0.5) / 5**0.5
    assert interval.high - interval.mean == pytest.approx(half, rel=1e-3)
    assert interval.mean - interval.low == pytest.approx(half, rel=1e-3)


def test_too_few_values_give_no_interval_and_none_give_an_error() -> None:
    assert mean_interval([1.0, 2.0]).low is None
    with pytest.raises(ValueError, match="no values"):
        mean_interval([])


def _run(variant: str, seed: int, goodput_bps: float, mode: str = "resampled", **given: Any) -> dict[str, Any]:
    return {
        "purpose": "what_if",
        "role": "under_test",
        "variant": variant,
        "proxy": "none",
        "channel_mode": mode,
        "seed": seed,
        "goodput_bps": goodput_bps,
        "reset_ns": None,
        **given,
    }


def _gain(runs: list[dict[str, Any]]) -> dict[str, Any]:
    rows = compare_runs(runs, ("newreno", "none"))
    (gain,) = [row for row in rows if row["metric"] == "goodput_gain"]
    return gain


def test_pairing_by_seed_sees_a_gain_that_the_spread_between_seeds_hides() -> None:
    base = {seed: 1e6 + 1e5 * seed for seed in range(8)}
    runs = [_run("newreno", s, g) for s, g in base.items()]
    runs += [_run("cubic", s, g + 2e4 + 100 * (s % 2)) for s, g in base.items()]
    gain = _gain(runs)
    assert gain["verdict"] == "info"
    assert gain["low"] > 0
    assert "more goodput" in gain["text"]
    assert gain["value"] == pytest.approx(100 * 20050 / 1.35e6)
    assert gain["low"] < gain["value"] < gain["high"]


def test_no_difference_and_too_few_seeds_are_said() -> None:
    same = [_run(v, s, 1e6 + (-1) ** s * (1e4 if v == "cubic" else 0)) for v in ("newreno", "cubic") for s in range(8)]
    assert _gain(same)["verdict"] == "unknown"
    few = [_run(v, s, 1e6 * (1 + s + (v == "cubic"))) for v in ("newreno", "cubic") for s in range(2)]
    gain = _gain(few)
    assert gain["verdict"] == "unknown"
    assert "over 2 seeds, too few" in gain["text"]


def test_seeds_that_change_nothing_give_no_interval() -> None:
    alike = [_run(v, s, 1e6 * (1 + (v == "cubic"))) for v in ("newreno", "cubic") for s in range(8)]
    gain = _gain(alike)
    assert (gain["low"], gain["high"], gain["verdict"]) == (None, None, "unknown")
    assert "every seed alike" in gain["text"]


def test_nothing_is_no_base_for_a_gain() -> None:
    rows = compare_runs(
        [_run("newreno", s, 0.0) for s in range(8)] + [_run("cubic", s, 1e6) for s in range(8)], ("newreno", "none")
    )
    assert [row["metric"] for row in rows] == ["goodput", "goodput", "goodput_difference"]


def test_a_decrease_is_stated_and_replayed_values_have_no_interval() -> None:
    runs = [_run("newreno", s, 1e6 + s) for s in range(8)] + [_run("cubic", s, 5e5 + 2 * s) for s in range(8)]
    assert _gain(runs)["high"] < 0
    assert "less goodput" in _gain(runs)["text"]
    rows = compare_runs([_run("newreno", 1, 7e5, mode="replayed")], ("newreno", "none"))
    assert [(row["metric"], row["value"]) for row in rows] == [("goodput_as_captured", 7e5)]


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (12.4, "12 % more goodput than newreno over 1 seed, too few"),
        (-0.4, "0.4 % less goodput than newreno over 1 seed, too few"),
        (0.04, "the goodput of newreno to 0.1 % over 1 seed, too few"),
    ],
)
def test_a_gain_is_said_in_words_that_fit_its_size(gain: float, words: str) -> None:
    said = _gain([_run("newreno", 1, 1e6), _run("cubic", 1, 1e6 * (1 + gain / 100))])["text"]
    assert said.startswith(f"cubic: {words}")


@pytest.mark.parametrize("dead", ["newreno", "cubic"])
def test_no_gain_is_given_for_connections_that_were_reset(dead: str) -> None:
    def rows(reset_ns: int | None) -> list[dict[str, Any]]:
        runs = [_run("newreno", s, 1e6 + s) for s in range(8)] + [_run("cubic", s, 2e6 + 3 * s) for s in range(8)]
        next(run for run in runs if run["variant"] == dead and run["seed"] == 3)["reset_ns"] = reset_ns
        return compare_runs(runs, ("newreno", "none"))

    alive, died = ({(r["subject"], r["metric"]): r for r in rows(t)} for t in (None, 12_200_000_000))
    assert alive["cubic", "goodput_gain"]["verdict"] == "info"
    assert {metric for _, metric in alive} == {"goodput", "goodput_difference", "goodput_gain"}
    gain, resets = died["cubic", "goodput_gain"], died[dead, "resets"]
    assert (gain["verdict"], gain["value"], died["cubic", "goodput_difference"]["value"]) == ("unknown", None, None)
    counts = "1 here, 0 there" if dead == "cubic" else "0 here, 1 there"
    said = f"cubic: no gain over newreno can be given: connections were reset ({counts}, in 8 runs each)"
    assert gain["text"].startswith(said)
    assert resets["value"] == 1
    assert resets["text"] == (
        f"{dead}: the connection was reset in 1 of 8 runs, after 12.2 s; goodput counts until then."
    )
    assert [subject for subject, metric in died if metric == "resets"] == [dead]


def test_the_reset_of_the_trace_as_captured_counts_as_well() -> None:
    runs = [_run("newreno", 1, 1e6, mode="replayed", reset_ns=2_000_000_000), _run("newreno", 1, 1e6, reset_ns=10**9)]
    (resets,) = [row for row in compare_runs(runs, ("newreno", "none")) if row["metric"] == "resets"]
    assert "in 2 of 2 runs, the first after 1.0 s" in resets["text"]


@pytest.mark.parametrize(
    ("as_captured", "drawn_bps", "misfit"),
    [(-0.4, 1.02e6, 0.0), (0.01, 0.5e6, 0.0), (-0.4, 0.5e6, -0.4), (0.3, 1.1e6, 0.1), (None, 1.3e6, 0.0)],
)
def test_the_misfit_of_a_forecast_is_what_the_replays_of_the_captured_variant_share(
    as_captured: float | None, drawn_bps: float, misfit: float
) -> None:
    runs = [_run(name, seed, drawn_bps, duration_ns=10**9) for name in ("cubic", "bbr") for seed in range(5)]
    rows = compare_runs(runs, ("cubic", "none"), Forecast(10**9, 1e6, as_captured))
    (row,) = [row for row in rows if row["subject"] == "bbr" and row["metric"] == "goodput"]
    expected = predict([drawn_bps] * 5, misfit)
    assert expected is not None
    assert (row["value"], row["low"], row["high"]) == pytest.approx((expected.value, expected.low, expected.high))
    ends = {row["metric"]: (row["low"], row["high"]) for row in rows if row["subject"] == "bbr"}
    assert ends["interval_deviation"] == pytest.approx(expected.deviations)


@pytest.mark.parametrize(
    ("drawn_bps", "seeds", "misfit"),
    [((0.4e6, 0.5e6), RANKED, -0.5), ((1.6e6, 1.5e6), RANKED, 0.5), ((0.4e6, 1.1e6), RANKED, 0.0),
     ((0.4e6, 0.5e6), RANKED - 1, 0.0)],
)  # fmt: skip
def test_a_captured_flow_beyond_all_draws_is_a_misfit_that_the_replay_as_captured_need_not_share(
    drawn_bps: tuple[float, float], seeds: int, misfit: float
) -> None:
    runs = [_run("cubic", seed, drawn_bps[seed % 2], duration_ns=10**9) for seed in range(seeds)]
    runs += [_run("bbr", seed, 0.4e6, duration_ns=10**9) for seed in range(seeds)]
    rows = compare_runs(runs, ("cubic", "none"), Forecast(10**9, 1e6, 0.0))
    (row,) = [row for row in rows if row["subject"] == "bbr" and row["metric"] == "goodput"]
    expected = predict([0.4e6] * seeds, misfit)
    assert expected is not None
    assert (row["value"], row["low"], row["high"]) == pytest.approx((expected.value, expected.low, expected.high))
    # The self-check shows none of it: the text names what the interval is made of.
    assert f"the misfit that replays of the captured variant share, {100 * misfit:+.1f} %" in row["text"]


@pytest.mark.parametrize("bounded", [True, False])
def test_a_prediction_over_a_rate_of_which_only_a_lower_bound_is_known_is_one(bounded: bool) -> None:
    runs = [_run("cubic", seed, 1e6, duration_ns=10**9) for seed in range(5)]
    rows = compare_runs(runs, ("cubic", "none"), Forecast(10**9, 1e6, 0.0, bounded=bounded))
    (row,) = [row for row in rows if row["metric"] == "goodput"]
    assert row["verdict"] == ("unknown" if bounded else "info")
    assert ("is not known, only a lower bound of it" in row["text"]) == bounded
    # A link whose queue dropped packets has a lower bound, too, and was full.
    assert "never filled" not in row["text"]


def test_what_a_fault_of_a_proxy_took_is_said_in_octets() -> None:
    lost = enumerate((0, 1448, 221_544))
    runs = [_run("newreno", seed, 1e6, proxy="p", proxy_lost_bytes=octets) for seed, octets in lost]
    runs += [_run("cubic", seed, 1e6, proxy="p", proxy_corrupted_bytes=2896) for seed in range(2)]
    rows = compare_runs(runs, ("newreno", "none"))
    said = {row["metric"]: (row["value"], row["text"]) for row in rows if row["metric"] in DAMAGE_METRICS}
    assert said == {
        "acknowledged_lost": (
            221_544,
            "newreno, through p: up to 221,544 octets that a proxy had acknowledged never reached the receiver, in 2 "
            "of 3 runs.",
        ),
        "damaged": (
            2896,
            "cubic, through p: 2,896 octets that a proxy had damaged were read as if they were whole, in 2 of 2 runs.",
        ),
    }
