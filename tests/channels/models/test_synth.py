"""Synthesis: valid traces, equal for equal seeds; UAV links and handovers follow their parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hindflight.channels.intervals import State, combine, read_states
from hindflight.channels.models.handover import Handover
from hindflight.channels.models.parameters import parse
from hindflight.channels.models.synth import MODELS, Extent, model_states, read_model, synthesise
from hindflight.channels.models.uav import Uav
from hindflight.channels.trace import read_trace
from hindflight.toolkit.errors import ChannelError

SECOND = 10**9
SMALL: dict[str, dict[str, Any]] = {
    "none": {},
    "bernoulli": {"per": 0.1},
    "ber": {"ber": 1e-5},
    "gilbert_elliott": {"mean_loss": 0.05, "mean_burst": 3.0},
    "four_state": {"p13": 0.02},
    "markov": {"transitions": [[0.9, 0.1], [0.5, 0.5]], "loss": [0.0, 0.5]},
    "gilbert_elliott_time": {"mean_good": "1 s", "mean_bad": "100 ms", "loss_good": 0.01},
    "markov_time": {"stays": ["1 s", "100 ms"], "jumps": [[0.0, 1.0], [1.0, 0.0]], "ber": [0.0, 1e-5]},
    "street": {"satellite": {"azimuth": 60.0, "elevation": 40.0}},
    "arq": {"over": {"model": "bernoulli", "per": 0.3}},
    "fec": {"over": {"model": "gilbert_elliott", "p": 0.1, "r": 0.5}},
    "lms": {
        "states": [
            {"mean_length": "8 m", "direct_db": 0.0, "multipath_db": -10.0},
            {"mean_length": "4 m", "multipath_db": -12.0, "multipath_sigma_db": 3.0},
        ],
        "margin_db": 8.0,
    },
    "signal": {"ebn0_db": 9.0, "rain": {"median_db": 2.0, "sigma": 1.0}},
    "track": {"near": {"latitude": 40.0, "longitude": 0.0}, "far": {"geo": 10.0}},
    "uav": {},
    "handover": {"steps": [{"at": "0 s", "rate": "1 Mbit/s"}, {"at": "10 s", "delay": "5 ms", "gap": "1 s"}]},
    "slots": {"gap": "50 ms"},
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_a_valid_trace_equal_for_equal_seeds(tmp_path: Path, name: str) -> None:
    model = read_model(name, SMALL[name])
    traces = []
    for number, seed in enumerate((1, 1, 2)):
        path = tmp_path / f"{number}.parquet"
        tally = synthesise(model, path, seed=seed, extent=Extent(span_ns=120 * SECOND, packets=20_000))
        trace = read_trace(path)
        assert trace.channel.num_rows == tally.rows > 0
        assert trace.source["seed"] == str(seed)
        traces.append(trace.channel)
    assert traces[0].equals(traces[1])
    if name not in ("handover", "track"):
        assert not traces[0].equals(traces[2])


def test_both_directions_are_equal_and_cover_the_time(tmp_path: Path) -> None:
    path = tmp_path / "u.parquet"
    synthesise(read_model("uav"), path, seed=3, extent=Extent(span_ns=300 * SECOND))
    channel = read_trace(path).channel
    forward, backward = (read_states(channel, way, "it") for way in ("a2b", "b2a"))
    assert forward == backward == list(model_states(read_model("uav"), 300 * SECOND, 3))  # type: ignore[arg-type]
    assert forward[-1].end_ns == 300 * SECOND


def test_overlapping_links_round_trip_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    model = read_model("slots", {"overlap": "500 ms"})
    synthesise(model, path, seed=2, extent=Extent(span_ns=60 * SECOND))
    states = read_states(read_trace(path).channel, "a2b", "it")
    assert states == list(model_states(model, 60 * SECOND, 2))  # type: ignore[arg-type]
    assert [s.overlap_ns for s in states] == [None, *[SECOND // 2] * 4]


def per_second(states: list[State], seconds: int, rate_bps: float) -> np.ndarray[Any, Any]:
    """Return the delivered share of the full rate in each second."""
    got = np.zeros(seconds)
    for s in states:
        if s.lost or not s.rate_bps:
            continue
        for second in range(s.start_ns // SECOND, min(seconds, -(-s.end_ns // SECOND))):
            overlap = min(s.end_ns, (second + 1) * SECOND) - max(s.start_ns, second * SECOND)
            got[second] += overlap / SECOND * s.rate_bps / rate_bps
    return got


@pytest.mark.parametrize("queued", ["lost", "late"])
def test_uav_shares_are_those_of_paper_002(queued: str) -> None:
    model = parse(Uav, {"model": "uav", "queued": queued}, "uav")
    hours = 48
    shares = per_second(list(model.states(hours * 3600 * SECOND, 1)), hours * 3600, 1e6)
    assert np.mean(shares == 0) == pytest.approx(0.19, abs=0.01)
    assert 0.40 < np.mean(shares == 1) < 0.50
    assert set(np.unique(shares)) == {0.0, 0.5, 1.0}


def test_uav_shares_and_sojourn_times_follow_their_parameters() -> None:
    data = {"model": "uav", "share_zero": 0.3, "share_full": 0.2, "mean_full": "10 s", "route_changes": 0.0}
    states = list(parse(Uav, data, "uav").states(48 * 3600 * SECOND, 2))
    shares = per_second(states, 48 * 3600, 1e6)
    assert np.mean(shares == 0) == pytest.approx(0.3, abs=0.015)
    assert np.mean(shares == 1) == pytest.approx(0.2, abs=0.015)
    full = [(s.end_ns - s.start_ns) / SECOND for s in states if s.rate_bps == 1e6]
    assert np.mean(full) == pytest.approx(10, rel=0.06)
    assert {s.delay_ns for s in states} == {4_000_000}


def test_route_change_is_an_outage_followed_by_another_path() -> None:
    states = list(parse(Uav, {"model": "uav", "route_changes": 1.0}, "uav").states(3600 * SECOND, 1))
    for before, outage, after in zip(states, states[1:], states[2:], strict=False):
        if outage.lost:
            assert after.delay_ns != before.delay_ns
            assert {before.delay_ns, after.delay_ns} == {4_000_000, 6_000_000}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"share_zero": 0.6, "share_full": 0.5}, "must be less than 1"),
        ({"share_zero": 0.49, "share_full": 0.49, "mean_full": "1 s"}, "less than a slot"),
        ({"mean_outage": "10 ms"}, "shorter than a slot"),
        ({"hops": []}, "at least 1"),
        ({"queued": "kept"}, "allowed"),
    ],
)
def test_invalid_uav_parameters_give_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ChannelError, match=says):
        parse(Uav, {"model": "uav", **changes}, "uav")


STEPS = [
    {"at": "0 s", "rate": "2 Mbit/s", "delay": "250 ms", "per": 1e-5},
    {"at": "20 s", "delay": "25 ms", "gap": "500 ms"},
    {"at": "40 s", "rate": "512 kbit/s", "per": 0.0},
]


def test_handover_breaks_before_make_and_keeps_unchanged_values() -> None:
    model = parse(Handover, {"model": "handover", "steps": STEPS}, "h")
    states = list(model.states(60 * SECOND, 1))
    times = [(s.start_ns / SECOND, s.end_ns / SECOND) for s in states]
    assert times == [(0, 20), (20, 20.5), (20.5, 40), (40, 60)]
    assert [(s.rate_bps, s.delay_ns, s.per) for s in states if not s.outage] == [
        (2e6, 250_000_000, 1e-5),
        (2e6, 25_000_000, 1e-5),
        (512e3, 25_000_000, 0.0),
    ]
    held = parse(Handover, {"model": "handover", "steps": STEPS, "queued": "held"}, "h")
    assert [s.rate_bps for s in held.states(60 * SECOND, 1)][1] == 0


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([], "at least 1"),
        ([{"at": "1 s"}], "first step must be at 0"),
        ([{"at": "0 s"}, {"at": "2 s", "gap": "3 s"}, {"at": "4 s"}], r"steps\[2\].at is before"),
        ([{"at": "0 s", "per": 0.1, "ber": 0.1}], "not both"),
        ([{"at": "-1 s"}], "cannot be negative"),
    ],
)
def test_invalid_schedule_gives_one_line(steps: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(ChannelError, match=says):
        parse(Handover, {"model": "handover", "steps": steps}, "h")


def test_slots_change_at_their_times_within_their_bounds() -> None:
    model = read_model("slots", {"gap": "100 ms", "rate_low": "10 Mbit/s", "rate_high": "20 Mbit/s"})
    states = list(model_states(model, 600 * SECOND, 1))  # type: ignore[arg-type]
    gaps = [s for s in states if s.rate_bps == 0]
    assert [g.start_ns / SECOND for g in gaps] == [12 + 15 * i for i in range(40)]
    rates = [s.rate_bps for s in states if s.rate_bps]
    assert all(10e6 <= rate <= 20e6 for rate in rates)
    assert np.mean(rates) == pytest.approx(15e6, rel=0.1)


def test_combined_links_have_both_impairments() -> None:
    one = [State(0, 10, rate_bps=5.0, per=0.5), State(10, 20, per=1.0)]
    other = [State(0, 5, rate_bps=3.0, delay_ns=2), State(5, 20, delay_ns=3, per=0.5)]
    assert list(combine(one, other)) == [
        State(0, 5, 3.0, 2, 0.5),
        State(5, 10, 5.0, 3, 0.75),
        State(10, 20, None, 3, 1.0),
    ]


def test_models_are_given_by_name_or_file(tmp_path: Path) -> None:
    path = tmp_path / "burst.toml"
    path.write_text('model = "gilbert_elliott"\nmean_loss = 0.02\nmean_burst = 4.0\n')
    model = read_model(str(path))
    assert model.model == "gilbert_elliott"
    assert read_model(str(path), {"mean_loss": 0.03}) == model.model_copy(update={"mean_loss": 0.03})
    path.write_text('model = "gilbert_elliott\n')
    with pytest.raises(ChannelError, match=r"burst\.toml: not a TOML file"):
        read_model(str(path))
    with pytest.raises(ChannelError, match="no such file"):
        read_model(str(tmp_path / "none.toml"))
    with pytest.raises(ChannelError, match="did you mean 'street'"):
        read_model("stret")
