"""The street canyon: closed forms, brute force at every position, satellites, invalid input."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hindflight.channels.models.parameters import parse
from hindflight.channels.models.skyline import Skyline, read_skyline, write_skyline
from hindflight.channels.models.street import Street
from hindflight.toolkit.errors import ChannelError
from tests.reference.street import boxes, hidden

HOUR_NS = 3600 * 10**9
PLAIN = {"model": "street", "satellite": {"azimuth": 60.0, "elevation": 40.0}}


NEW_YORK = {"latitude": 40.7, "longitude": -74.0}


def street(**changes: Any) -> Street:
    made: Street = parse(Street, {**PLAIN, **changes}, "street.toml")
    return made


def blocked_share(model: Street, *, span_ns: int = HOUR_NS, seed: int = 1) -> float:
    return sum(s.end_ns - s.start_ns for s in model.states(span_ns, seed) if s.lost) / span_ns


def phi(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def share_above(threshold_m: float, median_m: float = 20.6) -> float:
    """Return the share of log-normal heights above a threshold."""
    return 1 - phi(math.log(threshold_m / median_m) / 0.44)


def elevation_of(z: float, azimuth: float) -> float:
    """Elevation in degrees, to a tenth, at which heights from `z` standard deviations above the median on hide."""
    rise = 20.6 * math.exp(0.44 * z) - 1.5
    return round(math.degrees(math.atan(rise * math.sin(math.radians(azimuth)) / 10)), 1)


CELLS = [
    (elevation_of(z, azimuth), azimuth) for z in (-1.4, -0.8, -0.3, 0.3, 0.8, 1.4) for azimuth in (15, 30, 45, 70, 90)
]
"""Cells of elevation and azimuth whose shares lie between 0.08 and 0.92: each can be too small and too large."""


def test_blocked_share_of_log_normal_heights_matches_the_closed_form() -> None:
    buildings = 2500
    outside = 0
    for cell, (elevation, azimuth) in enumerate(CELLS):
        model = street(
            satellite={"azimuth": float(azimuth), "elevation": elevation},
            facades={"law": "constant", "value": "10 m"},
            blocks=None,
            speed="10 m/s",
            step="1 s",
        )
        # A position per building: independent heights.
        share = blocked_share(model, span_ns=buildings * 10**9, seed=100 + cell)
        threshold = 1.5 + 10 * math.tan(math.radians(elevation)) / abs(math.sin(math.radians(azimuth)))
        expected = share_above(threshold)
        assert 0.07 < expected < 0.93
        error = math.sqrt(expected * (1 - expected) / buildings)
        outside += abs(share - expected) > 2.576 * error
        where = f"{elevation} {azimuth}: {share} against {expected}"
        assert abs(share - expected) < 4 * error, where
        # Heights a sixth lower or higher would be seen in every cell.
        for median_m in (20.6 * 6 / 7, 20.6 * 7 / 6):
            assert abs(share - share_above(threshold, median_m)) > 4 * error, where
    # Of 30 intervals of 99 % more than 2 miss with probability 0.003.
    assert outside <= 2


def test_blocked_share_depends_on_antenna_height() -> None:
    model = street(
        satellite={"azimuth": 90.0, "elevation": 60.0}, facades={"law": "constant", "value": "10 m"},
        blocks=None, speed="10 m/s", step="1 s", antenna="8 m",
    )  # fmt: skip
    share = blocked_share(model, span_ns=20_000 * 10**9)
    threshold = 10 * math.tan(math.radians(60.0))
    right, wrong = (1 - phi(math.log(h / 20.6) / 0.44) for h in (threshold + 8, threshold))
    assert share == pytest.approx(right, abs=0.01)
    assert abs(share - wrong) > 0.05


def test_rayleigh_heights_match_itu_r_p681() -> None:
    # P.681 §4.3 with clearance at the edge: p = exp(-h1^2 / (2 hb^2)), hb the most common height, d_m = 17.5 m.
    model = street(
        satellite={"azimuth": 45.0, "elevation": 30.0}, heights={"law": "rayleigh", "mode": "15 m"},
        facades={"law": "constant", "value": "10 m"}, width={"law": "constant", "value": "35 m"},
        blocks=None, speed="10 m/s", step="1 s",
    )  # fmt: skip
    h1 = 1.5 + 17.5 * math.tan(math.radians(30)) / math.sin(math.radians(45))
    expected = math.exp(-h1 * h1 / (2 * 15 * 15))
    share = blocked_share(model, span_ns=20_000 * 10**9)
    assert share == pytest.approx(expected, abs=2.576 * math.sqrt(expected * (1 - expected) / 20_000))


@pytest.mark.parametrize("depth", [0.0, 12.0])
@pytest.mark.parametrize("azimuth", [3.0, 90.0, 134.0, 250.0])
def test_line_of_sight_matches_brute_force_at_every_position(depth: float, azimuth: float) -> None:
    model = street(length="180 m", blocks={"law": "uniform", "low": "30 m", "high": "50 m"}, depth=f"{depth} m")
    drawn = model.skyline_for(HOUR_NS, 7)
    walls = boxes(drawn, depth, -400.0, 800.0)
    places = [0.61 * i for i in range(600)]
    angle = math.radians(azimuth)
    for elevation in (12.0, 41.0, 68.0):
        got = model.canyon(HOUR_NS, 7).blocked(places, angle, math.radians(elevation))
        near = [w for w in walls if -450 < w[0] < 900]
        expected = [hidden(x, 1.5, angle, math.radians(elevation), near) for x in places]
        assert got == expected
        if azimuth == 90.0:
            assert 0 < sum(got) < len(got)


def test_masks_match_line_of_sight_in_all_directions() -> None:
    model = street(length="180 m")
    canyon = model.canyon(HOUR_NS, 3)
    azimuths = [math.radians(a) for a in range(360)]
    for place in (0.0, 33.3, 95.1, 200.7):
        for angle, mask in zip(azimuths, canyon.masks(place, azimuths), strict=True):
            assert canyon.blocked([place], angle, mask + 1e-6) == [False]
            if mask > 0.01:
                assert canyon.blocked([place], angle, mask - 1e-6) == [True]


def test_fixed_terminal_under_a_geo_satellite_is_constant() -> None:
    new_york = {"satellite": {"geo": -96.0}, "latitude": 40.7, "longitude": -74.0, "speed": "0 m/s"}
    states = list(street(**new_york, azimuth=140.0).states(24 * HOUR_NS, 1))
    assert [(s.start_ns, s.end_ns) for s in states] == [(0, 24 * HOUR_NS)]


def test_azimuth_of_the_street_changes_visibility() -> None:
    shares = {a: blocked_share(street(azimuth=a), span_ns=600 * 10**9) for a in (60.0, 150.0)}
    assert shares[60.0] == 0  # the satellite stands along the street
    assert shares[150.0] > 0.5


def test_equal_seeds_give_equal_channels_and_different_seeds_do_not() -> None:
    first = list(street().states(300 * 10**9, 5))
    assert first == list(street().states(300 * 10**9, 5))
    assert first != list(street().states(300 * 10**9, 6))


def test_states_cover_the_time_without_gaps() -> None:
    states = list(street().states(600 * 10**9, 2))
    assert states[0].start_ns == 0
    assert states[-1].end_ns == 600 * 10**9
    assert all(a.end_ns == b.start_ns and a.lost != b.lost for a, b in pairwise(states))
    assert len(states) > 20


def test_two_streets_shadow_more_than_one() -> None:
    one = blocked_share(street(), span_ns=HOUR_NS)
    two = blocked_share(street(other=PLAIN), span_ns=HOUR_NS)
    assert two == pytest.approx(1 - (1 - one) ** 2, abs=0.05)
    assert two > one + 0.05


def test_blocked_terminal_may_have_bit_errors_instead_of_losses() -> None:
    states = list(street(blocked_ber=1e-4).states(300 * 10**9, 1))
    assert {s.ber for s in states} == {None, 1e-4}
    assert not any(s.lost for s in states)


def test_diffraction_smooths_the_edges_of_shadows() -> None:
    hard = blocked_share(street())
    soft = blocked_share(street(diffraction={"frequency": "12 GHz", "margin_db": 6.0}))
    tolerant = blocked_share(street(diffraction={"frequency": "12 GHz", "margin_db": 20.0}))
    assert soft == pytest.approx(hard, abs=0.02)  # 6 dB is the loss at grazing
    assert tolerant < soft - 0.02
    coarse = {"frequency": "12 GHz", "margin_db": 6.0, "step_db": 4.0}
    assert blocked_share(street(diffraction=coarse)) == soft  # a margin is a margin, however wide the levels
    levels = {s.ber for s in street(diffraction={"frequency": "12 GHz", "ebn0_db": 10.0}).states(60 * 10**9, 1)}
    assert len(levels) > 10
    assert all(ber is not None and 0 <= ber <= 0.5 for ber in levels)


def test_skyline_round_trips_and_gives_the_same_states(tmp_path: Path) -> None:
    path = tmp_path / "skyline.csv"
    write_skyline(Skyline(100.0, (5.0, 15.0), [(0.0, 40.0, 20.0)], [(10.0, 100.0, 30.0)]), path)
    back = read_skyline(path, width_m=20.0, lateral=0.25)
    assert back == Skyline(100.0, (5.0, 15.0), [(0.0, 40.0, 20.0)], [(10.0, 100.0, 30.0)])
    model: Street = parse(
        Street, {**PLAIN, "skyline": "skyline.csv", "satellite": {"azimuth": 90.0, "elevation": 45.0}}, "x", tmp_path
    )
    states = list(model.states(100 * 10**9, 1))
    # Right-hand buildings from 10 to 100 m, then the reversed copy from 100 to 190 m, at 2 m/s.
    assert [(round(s.start_ns / 1e9, 2), s.lost) for s in states] == [(0, False), (5, True), (95, False)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("left,0,10\n", "columns"),
        ("side,start_m,end_m,height_m\n", "no building"),
        ("side,start_m,end_m,height_m\nmiddle,0,10,5\n", "line 2: side is 'middle'"),
        ("side,start_m,end_m,height_m\nleft,10,5,5\n", "line 2: a building needs"),
        ("side,start_m,end_m,height_m\nleft,0,nan,5\n", "line 2"),
        ("side,start_m,end_m,height_m\nleft,0,10,x\n", "must be numbers"),
        ("side,start_m,end_m,height_m\nleft,0,10,5\nleft,9,12,5\n", "overlap at 9 m"),
    ],
)
def test_invalid_skyline_gives_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text)
    with pytest.raises(ChannelError, match=says):
        read_skyline(path, width_m=20.0, lateral=0.5)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"satellite": {"azimuth": 1.0, "elevation": -3.0}}, "below the horizon"),
        ({"satellite": {"azimuth": 1.0}}, "belong together"),
        ({"satellite": {"geo": 10.0, "azimuth": 1.0, "elevation": 3.0}}, "give geo, or tle"),
        ({"satellite": {"tle": "x.tle"}}, "with tle, and only with it"),
        ({"satellite": {"tle": "x.tle", "at": "2026-01-01T00:00:00"}}, "time zone"),
        ({"heights": {"law": "rayleigh", "median": "3 m"}}, "needs mode, not median"),
        ({"heights": {"law": "gauss"}}, "allowed"),
        ({"speed": "-2 m/s"}, "cannot be negative"),
        ({"speed": float("nan")}, "with its unit"),
        ({"lateral": 1.0}, "less than 1"),
        ({"blocked_ber": 2.0}, "at most 1"),
        ({"hights": {}}, "unknown key"),
        ({"diffraction": {"frequency": "12 GHz"}}, "give margin_db or ebn0_db"),
    ],
)
def test_invalid_parameters_give_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ChannelError, match=says) as caught:
        street(**changes)
    assert "\n" not in str(caught.value)


def test_skyline_requires_a_constant_width(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("side,start_m,end_m,height_m\nleft,0,10,5\n")
    wide = {**PLAIN, "skyline": "s.csv", "width": {"law": "uniform", "low": "10 m", "high": "30 m"}}
    with pytest.raises(ChannelError, match="its law must be 'constant', not 'uniform'") as caught:
        parse(Street, wide, "x", tmp_path)
    assert "\n" not in str(caught.value)
    even: Street = parse(Street, {**wide, "width": {"law": "constant", "value": "30 m"}}, "x", tmp_path)
    assert even.skyline_for(10**9, 1).distance_m == (15.0, 15.0)


def test_geo_satellite_below_the_horizon_is_refused() -> None:
    model = street(satellite={"geo": 100.0}, latitude=40.7, longitude=-74.0)
    with pytest.raises(ChannelError, match="below the horizon: elevation -"):
        list(model.states(10**9, 1))
    with pytest.raises(ChannelError, match="latitude and longitude"):
        list(street(satellite={"geo": 100.0}).states(10**9, 1))
