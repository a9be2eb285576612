"""The Python interface of fits: names, verdicts, refusals. The kernels' tests check the numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hindflight.channels._native import LossStream
from hindflight.channels.fitting.fit import Fits, Period, chart_data, fit_models, models, period_of
from hindflight.channels.fitting.loss_sequence import LossSequence, loss_sequence_of
from hindflight.channels.formats import read_channel
from hindflight.channels.models.synth import read_model
from hindflight.toolkit.errors import ChannelError

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "kernel"
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
LOGS = {
    "reno": FIXTURES / "kernel" / "S9-reno" / "link.csv.xz",
    "cubic": FIXTURES / "links" / "S9-cubic.csv.xz",
    "bbr": FIXTURES / "links" / "S9-bbr.csv.xz",
}
"""Logs of the link, reno's whole, the others reduced to the packets that reached its loss stage."""


def sequence(lost: list[int]) -> LossSequence:
    array = np.array(lost, dtype=np.uint8)
    return LossSequence(array, np.zeros(len(array), dtype=np.int64), outage=0, uncertain=0)


def bursts(count: int = 40, length: int = 8, gap: int = 500) -> LossSequence:
    """Return losses in bursts of constant length, which no Markov chain generates."""
    return sequence(([0] * gap + [1] * length) * count + [0] * gap)


@pytest.mark.parametrize("variant", LOGS)
def test_true_parameters_of_recorded_bursts_are_within_the_intervals(variant: str) -> None:
    trace = read_channel(LOGS[variant])
    fits = fit_models(loss_sequence_of(trace, variant), ("gilbert", "gilbert_elliott", "bernoulli"), 0.99)
    assert_truth(fits)
    assert {fit.model: fit.verdict for fit in fits.fits}["bernoulli"] == "does not fit"
    assert fits.best.model == "gilbert"


@pytest.mark.parametrize("variant", LOGS)
def test_link_logs_contain_the_losses_of_the_recordings(variant: str) -> None:
    log = SHARED / f"S9-{variant}" / "link.csv.xz"
    if not log.exists():
        pytest.skip(f"{log} is not here")
    recorded, held = (loss_sequence_of(read_channel(path), variant) for path in (log, LOGS[variant]))
    assert recorded.lost.tolist() == held.lost.tolist()


def assert_truth(fits: Fits) -> None:
    truth = {"p": 0.0012626263, "r": 0.125, "h": 0.0, "k": 1.0}
    gilbert = next(fit for fit in fits.fits if fit.model == "gilbert")
    assert {parameter.name for parameter in gilbert.parameters} == {"p", "r"}
    for fit in fits.fits:
        for parameter in fit.parameters:
            if parameter.name in truth:
                x = truth[parameter.name]
                assert parameter.high is not None
                assert parameter.low <= x <= parameter.high, f"{fit.model} {parameter}"
                assert parameter.high - parameter.low < 0.5, f"{fit.model} {parameter}: an interval that says nothing"


def test_every_model_is_fitted_and_charts_include_the_trace() -> None:
    untimed = bursts()
    assert {fit.model for fit in fit_models(untimed, ("all",)).fits} == set(models()) - {"gilbert_time"}
    with pytest.raises(ChannelError, match="gilbert_time: the packets have no times"):
        fit_models(untimed, ("gilbert_time",))
    fits = fit_models(replace(untimed, t_ns=np.arange(len(untimed)) * 1_000_000), ("all",))
    assert {fit.model for fit in fits.fits} == set(models())
    assert [fit.bic for fit in fits.fits] == sorted(fit.bic for fit in fits.fits)
    tables = chart_data(fits)
    for name in ("runs", "autocorrelation"):
        assert set(tables[name]["series"].to_pylist()) == {"trace", *models()}
    seen = {
        row["length_pkts"]: row["longer"]
        for row in tables["runs"].to_pylist()
        if row["series"] == "trace" and row["kind"] == "burst"
    }
    assert seen[6] == 1.0
    assert seen[8] == 0.0


def test_time_and_packet_models_agree_at_a_constant_rate() -> None:
    model = read_model("gilbert_elliott_time", {"mean_good": "180 ms", "mean_bad": "20 ms"})
    stream = LossStream(json.dumps(model.config()), seed=2)  # type: ignore[union-attr]
    lost = np.zeros(200_000, dtype=np.uint8)
    lost[np.asarray(pa.table(stream.read(len(lost), 1500, 2_000_000))["position"])] = 1
    fits = fit_models(LossSequence(lost, np.arange(len(lost)) * 2_000_000, 0, 0), ("gilbert", "gilbert_time"), 0.99)
    time, packets = (next(fit for fit in fits.fits if fit.model == name) for name in ("gilbert_time", "gilbert"))
    for name, truth in (("mean_good_s", 0.18), ("mean_bad_s", 0.02)):
        parameter = time.parameter(name)
        assert parameter.high is not None
        assert parameter.low <= truth <= parameter.high <= 1.1 * truth
    # One set of pairs of packets, written in two ways.
    assert time.log_likelihood == pytest.approx(packets.log_likelihood, abs=0.01)
    mixing = 1 - np.exp(-0.002 * (1 / time.parameter("mean_good_s").value + 1 / time.parameter("mean_bad_s").value))
    share = time.parameter("mean_good_s").value / (
        time.parameter("mean_good_s").value + time.parameter("mean_bad_s").value
    )
    assert packets.parameter("r").value == pytest.approx(share * mixing, rel=1e-3)


def test_rejected_fit_names_the_worst_deviation() -> None:
    fits = fit_models(bursts(), ("gilbert",))
    fit = fits.fits[0]
    assert fit.verdict == "does not fit"
    assert abs(fit.parameter("r").value - 1 / 8) < 0.002
    worst = next(test for test in fit.tests if test.name == "runs of losses")
    assert worst.p_value is not None
    assert worst.p_value < 1e-6
    assert re.fullmatch(
        r"of runs of at least [\d to]+ losses, \d+ ended there and [\d.]+ were expected \([+-][\d.]+ deviations\)",
        worst.worst,
    )


def test_no_random_model_fits_periodic_losses() -> None:
    fits = fit_models(sequence(([0] * 49 + [1]) * 40))
    assert fits.period == Period(packets=50, losses=1)
    assert {fit.verdict for fit in fits.fits} == {"does not fit"}


@pytest.mark.parametrize(
    ("lost", "period"),
    [
        (([0, 0, 1, 0, 1, 1, 0, 0, 0, 0]) * 30, Period(10, 3)),
        ([1, 0] * 200, Period(2, 1)),
        ([0, 1, 1] * 100 + [0, 1], Period(3, 2)),  # the last period is cut
        (([0] * 7 + [1]) * 50 + [1], None),  # one loss out of step
        ([0] * 9 + ([0] * 7 + [1]) * 50, None),  # one loss is missing at the beginning
        (([0] * 7 + [1]) * 50 + [0] * 8, None),  # and at the end
        (([0] * 999 + [1]) * 2, None),  # two losses that far apart are no period, three not either
        (([0] * 999 + [1]) * 3, None),
        ([0] * 20 + [1] + [0] * 19 + [1] + [0] * 20, None),
        (([0] * 50 + [1] * 5) * 3, None),
    ],
)
def test_period_is_exact_and_not_by_chance(lost: list[int], period: Period | None) -> None:
    assert period_of(np.array(lost, dtype=np.uint8)) == period


def test_random_losses_have_no_period() -> None:
    # Includes short sequences, of which some repeat by chance.
    rng = np.random.default_rng(11)
    for per in (0.02, 0.2, 0.5, 0.9):
        for packets in (6, 10, 20, 40, 200):
            for _ in range(500):
                assert period_of((rng.random(packets) < per).astype(np.uint8)) is None


def test_few_losses_give_no_verdict() -> None:
    fit = fit_models(sequence([0] * 30 + [1] + [0] * 30), ("gilbert",)).fits[0]
    assert fit.verdict == "too few losses to tell"
    assert all(test.p_value is None for test in fit.tests)


@pytest.mark.parametrize(
    ("lost", "names", "level", "message"),
    [
        ([0] * 100, ["all"], 0.95, "none of 100 packets was lost, so there is nothing to fit"),
        ([1] * 100, ["all"], 0.95, "all of 100 packets were lost, so there is nothing to fit"),
        ([0, 1], ["gilbert-eliott"], 0.95, "unknown model 'gilbert-eliott'; did you mean 'gilbert_elliott'?"),
        ([0, 1], ["all"], 0.2, "level: 0.2 is out of range; allowed: 0.5 to 0.9999"),
        ([0, 1], ["all"], 1.0, "level: 1 is out of range; allowed: 0.5 to 0.9999"),
        ([0, 1], ["all"], float("nan"), "level: nan is out of range; allowed: 0.5 to 0.9999"),
    ],
)
def test_invalid_requests_are_refused(lost: list[int], names: list[str], level: float, message: str) -> None:
    with pytest.raises(ChannelError, match=re.escape(message)):
        fit_models(sequence(lost), names, level)


def test_no_loss_gives_the_binomial_bound() -> None:
    with pytest.raises(ChannelError) as caught:
        fit_models(sequence([0] * 100))
    # 0.95 = 1 - (1 - x)^100
    assert caught.value.hint is not None
    assert "below 0.03 with 95 %" in caught.value.hint
