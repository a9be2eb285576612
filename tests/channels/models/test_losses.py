"""Loss models: loss rates and bursts, invalid parameters, models per packet and in time."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import Field

from hindflight.channels._native import LossStream
from hindflight.channels.models import losses
from hindflight.channels.models.parameters import parse
from hindflight.toolkit.errors import ChannelError

ANY = Annotated[losses.PacketLoss | losses.TimeLoss, Field(discriminator="model")]


def lost(data: dict[str, Any], packets: int, *, seed: int = 1, spacing_ns: int = 1_000_000) -> np.ndarray[Any, Any]:
    stream = LossStream(json.dumps(parse(ANY, data, "loss").config()), seed=seed)
    return np.asarray(pa.table(stream.read(packets, 1500, spacing_ns))["position"])


def bursts(positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the lengths of runs of consecutive losses."""
    cuts = np.flatnonzero(np.diff(positions) != 1)
    return np.diff(np.concatenate([[-1], cuts, [len(positions) - 1]]))


def test_mean_loss_and_mean_burst_match_the_parameters() -> None:
    positions = lost({"model": "gilbert_elliott", "mean_loss": 0.02, "mean_burst": 8.0}, 5_000_000)
    assert len(positions) / 5e6 == pytest.approx(0.02, rel=0.03)
    assert bursts(positions).mean() == pytest.approx(8.0, rel=0.03)


def test_bursts_grow_with_the_packet_rate_only_in_time_models() -> None:
    in_time = {"model": "gilbert_elliott_time", "mean_good": "990 ms", "mean_bad": "10 ms"}
    per_packet = {"model": "gilbert_elliott", "mean_loss": 0.01, "mean_burst": 10.0}
    for spacing_ns, expected in ((1_000_000, 10.5), (100_000, 100.5)):
        got = lost(in_time, 20_000_000, spacing_ns=spacing_ns)
        assert len(got) / 2e7 == pytest.approx(0.01, rel=0.15)
        assert bursts(got).mean() == pytest.approx(expected, rel=0.12)
        assert bursts(lost(per_packet, 4_000_000, spacing_ns=spacing_ns)).mean() == pytest.approx(10.0, rel=0.06)


def test_four_state_model_has_bursts_and_isolated_losses() -> None:
    # p32 and p23 make bursts with packets that pass inside, p14 losses that stand alone.
    data = {"model": "four_state", "p13": 0.01, "p31": 0.2, "p32": 0.1, "p23": 0.5, "p14": 0.02}
    positions = lost(data, 3_000_000)
    rows = np.array([[0.97, 0, 0.01, 0.02], [0, 0.5, 0.5, 0], [0.2, 0.1, 0.7, 0], [1, 0, 0, 0]])
    steady = np.linalg.matrix_power(rows, 1000)[0]
    assert len(positions) / 3e6 == pytest.approx(steady[2] + steady[3], rel=0.02)
    # A single loss ends at once; one of a burst continues with probability 0.7.
    following = float(np.mean(np.diff(positions) == 1))
    assert following == pytest.approx(steady[2] * 0.7 / (steady[2] + steady[3]), rel=0.02)


def test_netem_defaults_of_four_states_give_independent_losses() -> None:
    positions = lost({"model": "four_state", "p13": 0.05}, 2_000_000)
    assert len(positions) / 2e6 == pytest.approx(0.05, rel=0.02)
    assert float(np.mean(np.diff(positions) == 1)) == pytest.approx(0.05, rel=0.05)


def test_markov_chain_of_three_states_has_its_steady_state() -> None:
    rows = [[0.98, 0.02, 0.0], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]]
    data = {"model": "markov", "transitions": rows, "loss": [0.0, 0.1, 0.9]}
    steady = np.linalg.matrix_power(np.array(rows), 10_000)[0]
    expected = float(steady @ [0.0, 0.1, 0.9])
    assert len(lost(data, 4_000_000)) / 4e6 == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("law", [{}, {"law": "log_normal", "sigma": 0.8}])
def test_sojourn_times_have_their_mean_for_every_law(law: dict[str, Any]) -> None:
    data = {
        "model": "markov_time",
        "stays": ["300 ms", "50 ms"],
        "jumps": [[0.0, 1.0], [1.0, 0.0]],
        "loss": [0.0, 1.0],
    }
    positions = lost({**data, **law}, 10_000_000)
    assert len(positions) / 1e7 == pytest.approx(50 / 350, rel=0.03)
    assert bursts(positions).mean() == pytest.approx(50, rel=0.04)


def test_bit_error_rate_of_a_state_depends_on_packet_size() -> None:
    data = {"model": "gilbert_elliott", "p": 0.01, "r": 0.04, "ber_good": 1e-7, "ber_bad": 2e-5}
    stream = LossStream(json.dumps(parse(ANY, data, "loss").config()), seed=4)
    for size in (1500, 40):
        share = len(stream.read(4_000_000, size, 0)) / 4e6
        expected = sum(part * -math.expm1(8 * size * math.log1p(-ber)) for part, ber in ((0.8, 1e-7), (0.2, 2e-5)))
        assert share == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"model": "bernoulli", "per": 1.5}, "loss: bernoulli.per: 1.5 is out of range; at most 1"),
        ({"model": "bernoulli", "per": float("nan")}, "nan is not a finite number"),
        ({"model": "ber", "ber": -1e-9}, "out of range; at least 0"),
        ({"model": "gilbert_eliott"}, "no model 'gilbert_eliott'; did you mean 'gilbert_elliott'?"),
        ({"model": "gilbert_elliott", "p": 0.1}, "give p and r, or mean_loss and mean_burst"),
        ({"model": "gilbert_elliott", "p": 0.1, "r": 0.1, "mean_loss": 0.2}, "give p and r, or mean_loss and"),
        ({"model": "gilbert_elliott", "p": 0.1, "r": 0.1, "mean_burst": 2.0}, "give p and r, or mean_loss and"),
        ({"model": "gilbert_elliott", "mean_loss": 0.1, "mean_burst": 2.0, "r": 0.0}, "give p and r, or mean_loss"),
        ({"model": "gilbert_elliott", "mean_loss": 0.9, "mean_burst": 2.0}, "lengthen mean_burst"),
        ({"model": "gilbert_elliott", "p": 0.1, "r": 0.1, "ber_good": 0.0}, "both ber_good and ber_bad"),
        ({"model": "gilbert_elliott", "p": 0.1, "r": 0.1, "q": 0.1}, "q: unknown key"),
        ({"model": "gilbert_elliott_time", "mean_good": "-1 s", "mean_bad": "1 s"}, "cannot be negative"),
        ({"model": "gilbert_elliott_time", "mean_good": "0 s", "mean_bad": "1 s"}, "at least 1"),
        ({"model": "gilbert_elliott_time", "mean_good": 1.0, "mean_bad": "1 s"}, "with its unit"),
        ({"model": "four_state", "p13": 0.6, "p14": 0.6}, "more than 1"),
        ({"model": "markov", "transitions": [[0.5, 0.4]], "loss": [0.0]}, "2 values for 1 states"),
        ({"model": "markov", "transitions": [[0.9]], "loss": [0.0]}, "sums to 0.9"),
        ({"model": "markov", "transitions": [[1.0]], "loss": [0.0, 1.0]}, "2 values of loss or ber"),
        (
            {"model": "markov_time", "stays": ["1 s"], "jumps": [[1.0]], "loss": [0.0], "sigma": 1.0},
            "give sigma with law",
        ),
    ],
)
def test_invalid_loss_models_give_one_line(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ChannelError) as caught:
        parse(ANY, data, "loss")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
