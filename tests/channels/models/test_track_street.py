"""A track through a street, compared with brute force and with the street model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from hindflight.channels.models.parameters import parse
from hindflight.channels.models.skyline import read_skyline
from hindflight.channels.models.street import Street
from hindflight.channels.models.synth import model_states
from hindflight.channels.models.track import Track
from hindflight.toolkit.errors import ChannelError
from tests.reference.street import boxes, hidden

SECOND = 10**9
LATITUDE, LONGITUDE = 45.0, 13.0
EAST_M = 78_846.8
"""Metres of a degree of longitude at 45 degrees north on the WGS 84 ellipsoid; of latitude there are 111 132 m."""
NORTH_M = 111_132.0
GEO = 40.0


def walked(folder: Path, corners: list[tuple[float, float, float]]) -> dict[str, Any]:
    """Return an end that moves around corners: time in s, metres east, metres north."""
    rows = [f"{t},{LATITUDE + north / NORTH_M!r},{LONGITUDE + east / EAST_M!r},0" for t, east, north in corners]
    (folder / "walk.csv").write_text("\n".join(["t_s,latitude,longitude,altitude_m", *rows]) + "\n")
    return {"file": "walk.csv"}


def track(folder: Path, near: dict[str, Any], street: dict[str, Any], **more: Any) -> Track:
    data = {"model": "track", "near": near, "far": {"geo": GEO}, "street": street, **more}
    made: Track = parse(Track, data, "track", folder)
    return made


def test_straight_track_equals_the_street_model(tmp_path: Path) -> None:
    near = walked(tmp_path, [(0, 0.0, 0.0), (400, 800.0, 0.0)])
    along = track(tmp_path, near, {"antenna": "1.5 m", "start": "30 m"})
    place = {"latitude": LATITUDE, "longitude": LONGITUDE, "azimuth": 90.0, "satellite": {"geo": GEO}}
    street: Street = parse(Street, {"model": "street", "start": "30 m", "step": "100 ms", **place}, "street")
    for seed in (1, 2, 3):
        one = [(s.start_ns, s.lost) for s in model_states(street, 400 * SECOND, seed)]
        other = [(s.start_ns, s.lost) for s in along.states(400 * SECOND, seed)]
        # Delays change along the track as well: only changes from clear to hidden are compared.
        turns = [state for i, state in enumerate(other) if i == 0 or state[1] != other[i - 1][1]]
        assert len(one) > 6
        assert [lost for _, lost in one] == [lost for _, lost in turns]
        # Half a metre on the way, and a tenth of a second: the earth is round, and the track has its own step.
        assert all(abs(a - b) <= 0.35 * SECOND for (a, _), (b, _) in zip(one, turns, strict=True))


def test_track_around_a_corner_of_a_loaded_skyline_matches_brute_force(tmp_path: Path) -> None:
    rows = [
        "side,start_m,end_m,height_m",
        "left,0,25,18",
        "left,40,80,9",
        "right,5,30,22",
        "right,33,60,14",
        "right,70,95,40",
    ]
    (tmp_path / "sky.csv").write_text("\n".join(rows) + "\n")
    near = walked(tmp_path, [(0, 0.0, 0.0), (50, 0.0, 100.0), (100, 100.0, 100.0)])
    street = {"skyline": "sky.csv", "width": {"law": "constant", "value": "16 m"}, "lateral": 0.25}
    model = track(tmp_path, near, street, step="500 ms")
    walls = boxes(read_skyline(tmp_path / "sky.csv", width_m=16.0, lateral=0.25), 0.0, -100.0, 400.0)
    seen = []
    for at in model.geometry(100 * SECOND):
        t_s = at.t_ns / 1e9
        ahead = 0.0 if t_s < 50 else math.pi / 2
        expected = hidden(2.0 * t_s, 1.5, at.azimuth - ahead, at.elevation, walls)
        if expected != at.shadowed:  # Metres of degrees and the ellipsoid differ by less than a centimetre.
            edges = {hidden(2.0 * t_s + off, 1.5, at.azimuth - ahead, at.elevation, walls) for off in (-0.02, 0.02)}
            assert edges == {False, True}, t_s
        seen.append(at.shadowed)
    for half in (seen[:100], seen[100:]):
        assert 5 < sum(half) < 95
    # Round the corner the same buildings would hide other places.
    assert seen[:100] != seen[100:]


def test_shadow_loses_all_packets_or_gives_bit_errors(tmp_path: Path) -> None:
    (tmp_path / "sky.csv").write_text("side,start_m,end_m,height_m\nright,0,50,30\nleft,90,100,1\n")
    near = walked(tmp_path, [(0, 0.0, 0.0), (50, 100.0, 0.0)])
    street = {"skyline": "sky.csv"}
    for said, shadow in (({}, (1.0, None)), ({"blocked_ber": 0.01}, (None, 0.01))):
        states = list(track(tmp_path, near, {**street, **said}).states(50 * SECOND, 1))
        assert {(s.per, s.ber) for s in states} == {shadow, (None, None)}
        assert (states[0].per, states[0].ber) == shadow
        assert not any(s.outage for s in states)
        assert all(s.delay_ns is not None and s.delay_ns > 120_000_000 for s in states)


def test_street_of_a_standing_end_has_its_given_azimuth(tmp_path: Path) -> None:
    (tmp_path / "sky.csv").write_text("side,start_m,end_m,height_m\nleft,0,500,60\nright,480,500,1\n")
    place = {"latitude": LATITUDE, "longitude": LONGITUDE}
    for azimuth, lost in ((90.0, False), (270.0, True)):
        model = track(tmp_path, place, {"skyline": "sky.csv", "start": "250 m", "azimuth": azimuth})
        (state,) = model.states(20 * SECOND, 1)
        assert state.lost is lost


@pytest.mark.parametrize(
    ("street", "says"),
    [
        ({"skyline": "none.csv"}, "none.csv: cannot be read: No such file"),
        ({"skyline": "walk.csv"}, "a skyline has the columns side, start_m, end_m, height_m"),
        ({"height": {"law": "constant", "value": "5 m"}}, "street.height: unknown key"),
        ({"start": "-5 m"}, "street.start:"),
        ({"blocked_ber": 2.0}, "street.blocked_ber: 2.0 is out of range; at most 1"),
        ({"azimuth": float("nan")}, "street.azimuth"),
    ],
)
def test_invalid_streets_give_one_line(tmp_path: Path, street: dict[str, Any], says: str) -> None:
    near = walked(tmp_path, [(0, 0.0, 0.0), (50, 100.0, 0.0)])
    with pytest.raises(ChannelError) as caught:
        list(track(tmp_path, near, street).states(SECOND, 1))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
