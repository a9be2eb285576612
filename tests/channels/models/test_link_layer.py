"""ARQ and FEC over a loss model: residual loss and added delay compared with closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hindflight.channels.models.link_layer import Arq, Fec
from hindflight.channels.models.parameters import parse
from hindflight.toolkit.errors import ChannelError

MS = 1_000_000
PER = {"model": "bernoulli", "per": 0.3}


def outcomes(kind: type[Arq | Fec], packets: int = 200_000, spacing_ns: int = 100 * MS, **data: Any) -> tuple[Any, Any]:
    name = "arq" if kind is Arq else "fec"
    batches = list(
        parse(kind, {"model": name, **data}, name).outcomes(packets, 1, size_bytes=1500, spacing_ns=spacing_ns)
    )
    return np.concatenate([b.lost for b in batches]), np.concatenate([b.added_ns for b in batches])


def test_arq_residual_loss_and_delay_match_the_closed_form() -> None:
    lost, added = outcomes(Arq, over=PER, retries=2, try_time="5 ms")
    assert lost.mean() == pytest.approx(0.3**3, rel=0.05)
    tries = added[~lost] / (5 * MS)
    for failures, share in ((0, 0.7), (1, 0.21), (2, 0.063)):
        assert np.mean(tries == failures) == pytest.approx(share / (1 - 0.027), rel=0.05)


def test_arq_in_order_delays_later_packets() -> None:
    _, apart = outcomes(Arq, over=PER, retries=7, try_time="5 ms", in_order=False, spacing_ns=2 * MS)
    gone, queued = outcomes(Arq, over=PER, retries=7, try_time="5 ms", in_order=True, spacing_ns=4 * MS)
    assert apart.mean() == pytest.approx(5 * MS * 0.3 / 0.7, rel=0.03)
    assert queued.mean() > 1.3 * apart.mean()
    arrivals = np.arange(len(queued)) * 4 * MS + queued
    assert np.all(np.diff(arrivals[~gone]) >= 0)


def test_arq_does_not_recover_long_bursts() -> None:
    burst = {"model": "gilbert_elliott", "mean_loss": 0.3, "mean_burst": 20.0}
    assert outcomes(Arq, over=burst, retries=2)[0].mean() > 3 * outcomes(Arq, over=PER, retries=2)[0].mean()


def test_fec_residual_loss_matches_the_binomial_distribution() -> None:
    from math import comb

    block, repair, per = 12, 3, 0.1
    code: dict[str, Any] = {"block": block, "repair": repair, "packet_time": "100 ms"}
    lost, added = outcomes(Fec, over={"model": "bernoulli", "per": per}, packets=900_000, **code)
    # Lost, and at least `repair` of the others of its block too.
    others = sum(comb(block - 1, k) * per**k * (1 - per) ** (block - 1 - k) for k in range(repair, block))
    assert lost.mean() == pytest.approx(per * others, rel=0.04)
    assert np.all(added[lost] == 0)
    assert set(np.unique(added // (100 * MS))) == {0, *range(3, 12)}


def test_arq_over_a_street_retries_in_real_time() -> None:
    street = {"model": "street", "satellite": {"azimuth": 60.0, "elevation": 40.0}, "speed": "20 m/s"}
    bare = outcomes(Arq, over=street, retries=0, spacing_ns=5 * MS, packets=20_000)[0]
    lost, added = outcomes(Arq, over=street, retries=2, try_time="1 ms", spacing_ns=5 * MS, packets=20_000)
    assert 0.1 < bare.mean() < 0.9
    # A building hides for seconds: a try 1 or 2 ms later helps at its far edge only.
    assert 0 < np.sum(bare & ~lost) <= np.sum(np.diff(bare.astype(int)) == -1)
    assert set(np.unique(added[~lost])) <= {0, MS, 2 * MS}
    long = outcomes(Arq, over=street, retries=255, try_time="1 s", in_order=False, spacing_ns=5 * MS, packets=20_000)
    assert not long[0].any()
    assert long[1].max() > 1000 * MS


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        (Arq, {"over": PER, "retries": -1}, "at least 0"),
        (Arq, {"over": {"model": "stret"}}, "no model 'stret'; did you mean 'street'"),
        (Arq, {"over": {"model": "street"}}, "over.street.satellite: this key is missing"),
        (Arq, {}, "over: this key is missing"),
        (Fec, {"over": PER, "block": 4, "repair": 4}, "must be less than block"),
    ],
)
def test_invalid_parameters_give_one_line(kind: type[Arq | Fec], data: dict[str, Any], says: str) -> None:
    with pytest.raises(ChannelError, match=says):
        outcomes(kind, **data)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("kind", [Arq, Fec])
def test_incremental_link_states_give_the_same_losses(
    kind: type[Arq | Fec], in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"mean_length": "20 m", "direct_db": 0.0, "multipath_db": -6.0}
    fading = {"model": "lms", "margin_db": 5.0, "speed": "20 m/s", "states": [state]}
    code: dict[str, Any] = {"retries": 1} if kind is Arq else {}
    drawn = []
    for spans in (1_000_000, 3):
        monkeypatch.setattr("hindflight.channels.models.link_layer.SPANS", spans)
        drawn.append(outcomes(kind, 5000, 2 * MS, over=fading, in_order=in_order, **code))
    (lost, added), (lost_too, added_too) = drawn
    assert 20 < lost.sum() < 3000
    assert lost.tolist() == lost_too.tolist()
    assert added.tolist() == added_too.tolist()
