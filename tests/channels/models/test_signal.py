"""Signals, link budgets, rain, shadowing and moving ends: closed forms, geometry, invalid input."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hindflight.channels.intervals import State
from hindflight.channels.models.budget import bit_error_rate, free_space_db
from hindflight.channels.models.lms import Lms, fades_below, lutz
from hindflight.channels.models.parameters import parse
from hindflight.channels.models.signal import Budget, Rain, Signal, held, interpolated
from hindflight.channels.models.synth import read_model
from hindflight.channels.models.track import End, Track
from hindflight.toolkit.errors import ChannelError

SECOND = 10**9


def share_lost(states: list[State]) -> float:
    return sum(s.end_ns - s.start_ns for s in states if s.lost) / states[-1].end_ns


@pytest.mark.parametrize(
    ("modulation", "ebn0_db", "ber"),
    [
        ("bpsk", 9.6, 9.7e-6),  # Proakis, 4th ed., fig. 5.2-4 and tables of Q
        ("qpsk", 0.0, 0.0786),
        ("8psk", 13.0, 8.9e-6),
        ("16qam", 13.4, 1.2e-5),
        ("fsk", 13.35, 1e-5),
        ("dbpsk", 10.3, 1.1e-5),
    ],
)
def test_bit_error_rates_match_published_values(modulation: Any, ebn0_db: float, ber: float) -> None:
    assert bit_error_rate(modulation, ebn0_db) == pytest.approx(ber, rel=0.12)
    assert bit_error_rate(modulation, ebn0_db + 1) < ber < bit_error_rate(modulation, ebn0_db - 1)


def test_free_space_loss_and_link_budget_match_hand_calculation() -> None:
    # ITU-R P.525: 92.45 + 20 log f_GHz + 20 log d_km.
    assert free_space_db(38_000e3, 12e9) == pytest.approx(
        92.45 + 20 * math.log10(12) + 20 * math.log10(38_000), abs=0.01
    )
    data = {"eirp_dbw": 50.0, "g_over_t_dbk": 10.0, "frequency": "12 GHz", "bit_rate": "10 Mbit/s", "losses_db": 2.0}
    budget: Budget = parse(Budget, data, "b")
    expected = 50 + 10 - free_space_db(38_000e3, 12e9) - 2 + 228.6 - 70
    assert budget.ebn0_db(38_000e3) == pytest.approx(expected, abs=0.01)


def test_link_budget_refuses_a_range_of_zero(tmp_path: Path) -> None:
    budget = {"eirp_dbw": 0.0, "g_over_t_dbk": 0.0, "frequency": "2 GHz", "bit_rate": "1 Mbit/s"}
    signal: Signal = parse(Signal, {"model": "signal", "budget": budget, "range": "0 m"}, "s")
    here = {"latitude": 10.0, "longitude": 20.0}
    for model in (signal, track(tmp_path, here, here, budget=budget)):
        with pytest.raises(ChannelError, match="the range of a link budget is"):
            list(model.states(SECOND, 1))
    near: Signal = parse(Signal, {"model": "signal", "budget": budget, "range": "1 mm"}, "s")
    assert len(list(near.states(SECOND, 1))) == 1


def test_constant_signal_is_one_state_and_a_file_gives_steps(tmp_path: Path) -> None:
    steady: Signal = parse(Signal, {"model": "signal", "cn0_dbhz": 79.6, "bit_rate": "10 Mbit/s"}, "s")
    (state,) = steady.states(60 * SECOND, 1)
    assert state.ber == pytest.approx(bit_error_rate("qpsk", 9.6), rel=1e-6)
    (tmp_path / "s.csv").write_text("t_s,ebn0_db\n0,10\n2.5,4\n5,10\n")
    (tmp_path / "c.csv").write_text("ebn0_db,ber\n4,1e-2\n10,1e-6\n")
    filed: Signal = parse(
        Signal, {"model": "signal", "file": "s.csv", "curve": "c.csv", "step": "500 ms"}, "s", tmp_path
    )
    states = list(filed.states(8 * SECOND, 1))
    assert [s.start_ns / SECOND for s in states] == [0, 2.5, 5]
    assert [s.ber for s in states] == pytest.approx([1e-6, 1e-2, 1e-6])
    assert interpolated([(4.0, 1e-2), (10.0, 1e-6)], 7.0) == pytest.approx(1e-4)


def test_series_keeps_its_last_value_and_uses_binary_search() -> None:
    series = [(10, 1.0), (20, 2.0), (30, 3.0)]
    assert [held(series, t) for t in (0, 9, 10, 19, 20, 29, 30, 99)] == [1, 1, 1, 1, 2, 2, 3, 3]
    looked_at: list[int] = []

    class Watched(list[tuple[int, float]]):
        def __getitem__(self, index: Any) -> Any:
            looked_at.append(index)
            return super().__getitem__(index)

        def __iter__(self) -> Any:
            raise AssertionError("the whole series was read")

    assert held(Watched((t, float(t)) for t in range(100_000)), 70_000) == 70_000
    assert len(looked_at) <= 20


def test_rain_attenuation_is_log_normal_and_correlated() -> None:
    rain: Rain = parse(Rain, {"median_db": 3.0, "sigma": 0.8, "beta": 1e-3}, "r")
    drawn = rain.attenuation_db(100.0, 1, 0)
    values = np.array([next(drawn) for _ in range(60_000)])
    assert np.median(values) == pytest.approx(3.0, rel=0.05)
    assert np.std(np.log(values)) == pytest.approx(0.8, rel=0.04)
    logs = np.log(values) - np.mean(np.log(values))
    assert np.mean(logs[1:] * logs[:-1]) / np.mean(logs**2) == pytest.approx(math.exp(-0.1), rel=0.02)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "give one of"),
        ({"ebn0_db": 3.0, "cn0_dbhz": 60.0}, "give one of"),
        ({"cn0_dbhz": 60.0}, "give bit_rate with cn0_dbhz"),
        ({"ebn0_db": float("nan")}, "nan is not a finite number"),
        ({"ebn0_db": 3.0, "rain": {"median_db": -1.0, "sigma": 1.0}}, "more than 0"),
    ],
)
def test_invalid_signals_give_one_line(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ChannelError, match=says):
        parse(Signal, {"model": "signal", **data}, "s")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("t_s,x\n", "lacks the column ebn0_db"),
        ("t_s,ebn0_db\n", "has no rows"),
        ("t_s,ebn0_db\n0,1\n0,2\n", "line 3: t_s must ascend"),
        ("t_s,ebn0_db\n-1,1\n", "line 2: t_s is -1; allowed: 0 to"),
        ("t_s,ebn0_db\n0,nan\n", "line 2: a number is not finite"),
        ("t_s,ebn0_db\n0,a\n", "must be numbers"),
    ],
)
def test_invalid_series_give_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    model: Signal = parse(Signal, {"model": "signal", "file": "s.csv"}, "s", tmp_path)
    with pytest.raises(ChannelError, match=says):
        list(model.states(SECOND, 1))


def two_states(**changes: Any) -> Lms:
    good, bad = lutz(0.3, rice_db=10.0, mean_db=-10.0, sigma_db=0.0, bad_length_m=6.0)
    made: Lms = parse(Lms, {"model": "lms", "states": [good, bad], "margin_db": 6.0, "speed": "10 m/s", **changes}, "l")
    return made


def rayleigh_below(power_db: float, mean_db: float) -> float:
    """Return the share of time that a Rayleigh signal of mean power `mean_db` is below `power_db`."""
    return 1 - math.exp(-(10 ** ((power_db - mean_db) / 10)))


@pytest.mark.parametrize("level_db", [0.1, 0.5, 3.0])
def test_lutz_availability_matches_the_closed_form(level_db: float) -> None:
    model = two_states(step="10 ms", level_db=level_db)
    assert model.shares() == pytest.approx([0.7, 0.3], abs=1e-9)
    # Rayleigh in the bad state; in the good one (K = 10 dB) fades of 6 dB are 0.7 % of the time.
    bad_lost = rayleigh_below(-6.0, -10.0)
    shares = [share_lost(list(model.states(600 * SECOND, seed))) for seed in range(3)]
    assert np.mean(shares) == pytest.approx(0.3 * bad_lost + 0.7 * 0.007, rel=0.05)


@pytest.mark.parametrize("margin_db", [0.0, 3.0, 10.0])
def test_margin_is_exact_for_any_level_width(margin_db: float) -> None:
    rayleigh = [{"mean_length": "10 m", "multipath_db": 0.0}]
    lost = [
        share_lost(list(two_states(states=rayleigh, margin_db=margin_db, level_db=level).states(60 * SECOND, 5)))
        for level in (0.05, 2.0)
    ]
    assert lost[0] == lost[1]
    assert lost[0] == pytest.approx(rayleigh_below(-margin_db, 0.0), rel=0.06)


def test_shadowing_states_have_their_mean_length() -> None:
    model = two_states(step="50 ms", level_db=20.0)
    stays: list[list[int]] = [[], []]
    state, begin = -1, 0
    for start, _, now, _ in model.fades(6000 * SECOND, 4):
        if now != state:
            if state >= 0:
                stays[state].append(start - begin)
            state, begin = now, start
    assert np.mean(stays[0]) / SECOND * 10 == pytest.approx(14.0, rel=0.06)
    assert np.mean(stays[1]) / SECOND * 10 == pytest.approx(6.0, rel=0.06)
    # Exponential: the standard deviation is the mean.
    assert np.std(stays[1]) == pytest.approx(np.mean(stays[1]), rel=0.1)


def test_shares_of_a_rarely_jumping_chain_satisfy_the_balance_equations() -> None:
    states = [{"mean_length": "1 m", "multipath_db": -10.0}] * 3
    rare = 1e-5
    jumps = [[1 - rare, rare, 0.0], [rare, 1 - 2 * rare, rare], [0.0, 2 * rare, 1 - 2 * rare]]
    assert two_states(states=states, jumps=jumps).shares() == pytest.approx([0.4, 0.4, 0.2], rel=1e-6)


def test_three_states_have_the_steady_state_shares() -> None:
    states = [
        {"mean_length": "20 m", "direct_db": 0.0, "multipath_db": -15.0},
        {"mean_length": "10 m", "direct_db": -8.0, "direct_sigma_db": 3.0, "multipath_db": -18.0},
        {"mean_length": "5 m", "direct_db": -18.0, "direct_sigma_db": 4.0, "multipath_db": -20.0},
    ]
    jumps = [[0.0, 0.8, 0.2], [0.6, 0.0, 0.4], [0.5, 0.5, 0.0]]
    model = two_states(states=states, jumps=jumps, step="50 ms", level_db=20.0)
    passed = np.zeros(3)
    for start, end, state, _ in model.fades(3000 * SECOND, 1):
        passed[state] += end - start
    assert passed / passed.sum() == pytest.approx(model.shares(), abs=0.02)


@pytest.mark.parametrize(
    ("power_db", "direct_db", "mean_db"), [(-10.0, None, 0.0), (-6.0, 0.0, -10.0), (3.0, 0.0, -32.0)]
)
def test_fades_have_the_rates_and_shares_of_rice(power_db: float, direct_db: float | None, mean_db: float) -> None:
    power, mean = (10 ** (db / 10) for db in (power_db, mean_db))
    direct = 0.0 if direct_db is None else 10 ** (direct_db / 10)
    below, rate = fades_below(power, direct, mean, 30.0)
    if direct_db is None:
        assert below == pytest.approx(1 - math.exp(-power / mean), rel=1e-4)
        assert rate == pytest.approx(math.sqrt(2 * math.pi * power / mean) * 30 * math.exp(-power / mean), rel=1e-9)
        return
    # Bit by bit: two independent quadratures, and their slopes, which have the variance (2 pi f_d)^2 mean / 4.
    rng = np.random.default_rng(7)
    parts = rng.normal(scale=math.sqrt(mean / 2), size=(2, 400_000)) + np.array([[math.sqrt(direct)], [0.0]])
    assert np.mean((parts**2).sum(axis=0) < power) == pytest.approx(below, rel=0.04)
    width = 0.02 * power
    near = np.mean(np.abs((parts**2).sum(axis=0) - power) < width) / (2 * width)
    slope = math.tau * 30 * math.sqrt(mean) / 2 / math.sqrt(math.tau)
    assert 2 * math.sqrt(power) * near * slope == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize(
    ("changes", "step_us"),
    [
        ({}, 1000),  # 50 Hz, 6 dB: fades of a few ms
        ({"margin_db": 20.0}, 250),
        ({"margin_db": 40.0, "speed": "2 m/s"}, 125),  # the shortest
        ({"margin_db": 20.0, "step": "3 ms"}, 3000),
        ({"margin_db": None, "ebn0_db": 9.0}, 1000),
        ({"margin_db": None, "ebn0_db": 9.0, "frequency": "12 GHz"}, 125),
    ],
)
def test_the_step_follows_from_the_doppler_shift_and_the_margin(changes: dict[str, Any], step_us: int) -> None:
    assert two_states(**changes).step_ns() == step_us * 1000


def test_few_fades_fall_between_two_steps() -> None:
    rayleigh = [{"mean_length": "10 m", "multipath_db": 0.0}]
    below, rate = fades_below(0.01, 0.0, 1.0, 2 * 1.5e9 / 299_792_458)
    found = []
    for step in ({}, {"step": "4 ms"}):
        model = two_states(states=rayleigh, margin_db=20.0, speed="2 m/s", level_db=10.0, **step)
        fades = [s for seed in range(3) for s in model.states(200 * SECOND, seed) if s.lost]
        assert sum(s.end_ns - s.start_ns for s in fades) / SECOND == pytest.approx(600 * below, rel=0.1)
        found.append(len(fades) / (600 * rate))
    # 1490 fades of 4 ms are expected; of those shorter than the step many are missed.
    assert found[0] == pytest.approx(1.0, abs=0.06)
    assert found[1] < 0.85


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ebn0_db": 9.0}, "give margin_db or ebn0_db"),
        ({"speed": "0 m/s"}, "more than 0"),
        ({"jumps": [[0.0, 0.9], [1.0, 0.0]]}, "sum to 1"),
        ({"states": []}, "at least 1"),
    ],
)
def test_invalid_shadowing_gives_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ChannelError, match=says):
        two_states(**changes)


def test_documented_shadowing_file_has_its_documented_shares(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "channels" / "lms.md").read_text()
    (tmp_path / "mine.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    model = read_model(str(tmp_path / "mine.toml"))
    assert isinstance(model, Lms)
    # Share of time proportional to v_i L_i, v = v J: (I - J transposed) v = 0 with v_1 = 1.
    jumps = np.array(model.jumps)
    rest = np.linalg.solve((np.eye(3) - jumps.T)[1:, 1:], jumps.T[1:, 0])
    lengths = np.array([1.0, *rest]) * np.array([60.0, 25.0, 15.0])
    shares = lengths / lengths.sum()
    assert model.shares() == pytest.approx(shares.tolist())
    spent = np.zeros(3)
    for start, end, state, _ in model.fades(3000 * SECOND, 1):
        spent[state] += end - start
    assert spent / spent.sum() == pytest.approx(shares, abs=0.03)


def track(folder: Path, near: dict[str, Any], far: dict[str, Any], **changes: Any) -> Track:
    made: Track = parse(Track, {"model": "track", "near": near, "far": far, **changes}, "t", folder)
    return made


def test_delay_follows_a_passing_uav(tmp_path: Path) -> None:
    rows = "\n".join(f"{t},0.0,{-0.01 + 0.0002 * t},1000" for t in range(101))
    (tmp_path / "uav.csv").write_text(f"t_s,latitude,longitude,altitude_m\n{rows}\n")
    model = track(tmp_path, {"latitude": 0.0, "longitude": 0.0}, {"file": "uav.csv"}, min_elevation=60.0)
    path = list(model.geometry(100 * SECOND))
    overhead = min(path, key=lambda at: at.range_m)
    assert overhead.t_ns == 50 * SECOND
    assert overhead.range_m == pytest.approx(1000, abs=1)
    assert math.degrees(path[0].azimuth) == pytest.approx(270, abs=0.5)
    assert math.degrees(path[-1].azimuth) == pytest.approx(90, abs=0.5)
    assert path[0].delay_ns == pytest.approx(math.hypot(1113.2, 1000) / 0.299792458, rel=2e-3)
    states = list(model.states(100 * SECOND, 1))
    # Above 60 degrees while within 577 m, at 22.26 m/s.
    assert sum(s.end_ns - s.start_ns for s in states if not s.outage) / SECOND == pytest.approx(
        2 * 577.35 / 22.26, abs=0.3
    )


def test_antenna_tilts_with_the_aircraft(tmp_path: Path) -> None:
    header = "t_s,latitude,longitude,altitude_m,roll,pitch,heading\n"
    for roll, hidden in ((0, False), (30, True), (-30, False)):
        (tmp_path / "a.csv").write_text(f"{header}0,0,0,10000,{roll},0,0\n")
        # The satellite stands in the west at 40 degrees; flying north, a right bank turns the antenna away.
        model = track(tmp_path, {"file": "a.csv"}, {"geo": -43.0}, field_of_view=60.0)
        (at, *_) = model.geometry(SECOND)
        assert math.degrees(at.elevation) == pytest.approx(40, abs=1.5)
        assert at.hidden is hidden


def test_angles_are_interpolated_along_the_shorter_way(tmp_path: Path) -> None:
    header = "t_s,latitude,longitude,altitude_m,roll,pitch,heading\n"
    (tmp_path / "a.csv").write_text(f"{header}0,0,179,0,-10,5,350\n10,2,-179,1000,10,-5,10\n")
    end: End = parse(End, {"file": "a.csv"}, "t", tmp_path)
    poses = [end.poses(10 * SECOND)(t * SECOND) for t in (0, 4, 5, 8, 10)]
    assert [pose.heading for pose in poses] == pytest.approx([350, 358, 360, 366, 10])
    assert [pose.roll for pose in poses] == pytest.approx([-10, -2, 0, 6, 10])
    assert [pose.pitch for pose in poses] == pytest.approx([5, 1, 0, -3, -5])
    places = [pose.place for pose in poses if pose.place is not None]
    assert [place.longitude for place in places] == pytest.approx([179, 179.8, 180, 180.6, -179])
    assert [place.altitude_m for place in places] == pytest.approx([0, 400, 500, 800, 1000])


def test_earth_obstructs_the_line_of_sight(tmp_path: Path) -> None:
    near = {"latitude": 0.0, "longitude": 0.0, "altitude": "1 km"}
    for longitude, hidden in ((1.0, False), (10.0, True)):
        model = track(tmp_path, near, {"latitude": 0.0, "longitude": longitude, "altitude": "1 km"})
        assert next(model.geometry(SECOND)).hidden is hidden


def test_fixed_link_to_a_geo_satellite_is_constant(tmp_path: Path) -> None:
    (state,) = track(tmp_path, {"latitude": 40.7, "longitude": -74.0}, {"geo": -96.0}).states(3600 * SECOND, 1)
    assert state.delay_ns == pytest.approx(126.6e6, abs=0.15e6)


def test_far_end_that_is_never_visible_is_an_error(tmp_path: Path) -> None:
    place = {"latitude": 40.7, "longitude": -74.0}
    with pytest.raises(ChannelError, match=r"never sees the far one in 60 s: highest elevation -\d+\.\d degrees"):
        list(track(tmp_path, place, {"geo": 100.0}).states(60 * SECOND, 1))
    with pytest.raises(ChannelError, match=r"highest elevation 3\d\.\d degrees"):
        list(track(tmp_path, place, {"geo": -96.0}, min_elevation=50.0).states(60 * SECOND, 1))
    # Seen in its last step alone, which the span cuts, it is a link.
    (tmp_path / "far.csv").write_text("t_s,latitude,longitude,altitude_m\n0,40.7,-84,1000\n5,40.7,-74,1000\n")
    states = list(track(tmp_path, place, {"file": "far.csv"}, step="6 s", min_elevation=0.0).states(10 * SECOND, 1))
    assert [(state.start_ns, state.end_ns, state.outage) for state in states] == [
        (0, 6 * SECOND, True),
        (6 * SECOND, 10 * SECOND, False),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("t_s,latitude,longitude\n0,0,0\n", "lacks the column altitude_m"),
        ("t_s,latitude,longitude,altitude_m\n1,0,0,0\n0,0,0,0\n", "must ascend"),
        ("t_s,latitude,longitude,altitude_m\n0,99,0,0\n", "out of range"),
        ("t_s,latitude,longitude,altitude_m,roll\n0,0,0,0,0\n", "not all of roll, pitch, heading"),
    ],
)
def test_invalid_tracks_give_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ChannelError, match=says):
        list(track(tmp_path, {"file": "x.csv"}, {"geo": 0.0}).states(SECOND, 1))


def test_fade_shorter_than_a_step_counts(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("t_s,ebn0_db\n0,12\n0.2,-10\n0.9,12\n")
    model: Signal = parse(Signal, {"model": "signal", "file": "s.csv"}, "s", tmp_path)
    states = list(model.states(5 * SECOND, 1))
    assert [(s.start_ns, s.end_ns) for s in states] == [
        (0, SECOND // 5), (SECOND // 5, 9 * SECOND // 10), (9 * SECOND // 10, 5 * SECOND),
    ]  # fmt: skip
    assert states[1].ber == bit_error_rate("qpsk", -10.0)
    assert states[0].ber == states[2].ber == bit_error_rate("qpsk", 12.0)
