"""When a satellite is in view: a track without `min_elevation` compared with an independent computation."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sgp4.api import Satrec, jday

from hindflight.channels.models.parameters import parse
from hindflight.channels.models.track import Track
from tests.channels.models.test_ephemeris import EPOCH, elements

SECOND = 10**9
MAJOR_KM, FLATTENING = 6378.137, 1 / 298.257223563
SPAN_S, STEP_S = 24 * 3600, 2
STEP_NS = STEP_S * SECOND
STEPS = SPAN_S // STEP_S
LEO = elements(15.2, inclination=97.0, anomaly=20.0)

Floats = npt.NDArray[np.float64]


def positions() -> Floats:
    """The satellite in Earth-fixed kilometres, step by step from EPOCH on."""
    satellite = Satrec.twoline2rv(*LEO)
    rows = []
    for second in range(0, SPAN_S, STEP_S):
        time = EPOCH + timedelta(seconds=second)
        day, part = jday(time.year, time.month, time.day, time.hour, time.minute, time.second)
        error, teme, _ = satellite.sgp4(day, part)
        assert error == 0
        # Greenwich mean sidereal time, the linear form of the Astronomical Almanac: 0.1 s in a century.
        hours = 18.697374558 + 24.06570982441908 * (day - 2451545.0 + part)
        turn = math.radians(15 * (hours % 24))
        spin = np.array([[math.cos(turn), math.sin(turn), 0], [-math.sin(turn), math.cos(turn), 0], [0, 0, 1]])
        rows.append(spin @ np.array(teme))
    return np.array(rows)


@pytest.fixture(scope="module")
def satellite() -> Floats:
    return positions()


def station(latitude: float, longitude: float, height_km: float) -> tuple[Floats, Floats]:
    """A place in Earth-fixed kilometres, and the vertical there."""
    phi, lam = math.radians(latitude), math.radians(longitude)
    square = FLATTENING * (2 - FLATTENING)
    curvature = MAJOR_KM / math.sqrt(1 - square * math.sin(phi) ** 2)
    vertical = np.array([math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)])
    return vertical * (curvature * np.array([1, 1, 1 - square]) + height_km), vertical


def elevations(satellite: Floats, latitude: float, longitude: float, height_km: float = 0.0) -> Floats:
    place, vertical = station(latitude, longitude, height_km)
    rays = satellite - place
    found: Floats = np.degrees(np.arcsin(rays @ vertical / np.linalg.norm(rays, axis=1)))
    return found


def above_ground(satellite: Floats, latitude: float, longitude: float, height_km: float) -> npt.NDArray[np.bool_]:
    """Whether the whole ray to the satellite runs above the ellipsoid: by points along it."""
    place, _ = station(latitude, longitude, height_km)
    clear = np.ones(len(satellite), dtype=bool)
    for part in np.linspace(0.002, 0.998, 500):
        x, y, z = (place + part * (satellite - place)).T
        clear &= (x * x + y * y) / MAJOR_KM**2 + z * z / (MAJOR_KM * (1 - FLATTENING)) ** 2 > 1
    return clear


def in_view(folder: Path, near: dict[str, Any], **more: Any) -> npt.NDArray[np.bool_]:
    """What the model says, step by step."""
    (folder / "leo.tle").write_text("\n".join(LEO) + "\n")
    far = {"tle": "leo.tle", "at": EPOCH.isoformat()}
    data = {"model": "track", "near": near, "far": far, "step": f"{STEP_S} s", **more}
    model: Track = parse(Track, data, "track", folder)
    view = np.zeros(STEPS, dtype=bool)
    for state in model.states(SPAN_S * SECOND, 1):
        view[state.start_ns // STEP_NS : state.end_ns // STEP_NS] = not state.outage
    return view


def passes(view: npt.NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(np.diff(view.astype(np.int8)) == 1)) + int(view[0])


@pytest.mark.parametrize(("latitude", "height_km"), [(0.0, 0.0), (45.0, 0.0), (-33.0, 1.6), (69.0, 0.0)])
def test_from_the_ground_a_satellite_is_in_view_while_it_is_above_the_horizon(
    tmp_path: Path, satellite: Floats, latitude: float, height_km: float
) -> None:
    near = {"latitude": latitude, "longitude": 11.0, "altitude": f"{height_km} km"}
    expected = elevations(satellite, latitude, 11.0, height_km) >= 0
    seen = in_view(tmp_path, near)
    assert passes(expected) >= 2
    assert passes(seen) == passes(expected)
    # A step at each end of a pass: the two sidereal times are not the same formula.
    assert np.count_nonzero(seen != expected) <= 2 * passes(expected)
    # A mask of -3.4 degrees, the dip of the polar radius at 45 degrees, would be seen.
    assert np.count_nonzero(seen) < 0.95 * np.count_nonzero(elevations(satellite, latitude, 11.0) >= -3.4)


@pytest.mark.parametrize(("latitude", "height_km"), [(0.0, 12.0), (47.0, 20.0)])
def test_from_the_air_a_satellite_is_in_view_down_to_the_ellipsoid(
    tmp_path: Path, satellite: Floats, latitude: float, height_km: float
) -> None:
    (tmp_path / "near.csv").write_text(
        f"t_s,latitude,longitude,altitude_m\n0,{latitude},11,{1000 * height_km}\n1,{latitude},11,{1000 * height_km}\n"
    )
    expected = above_ground(satellite, latitude, 11.0, height_km)
    ends: list[dict[str, Any]] = [{"file": "near.csv"}]
    ends.append({"latitude": latitude, "longitude": 11.0, "altitude": f"{height_km} km"})
    for near in ends:  # A place this high is a platform, not a terminal on the ground.
        seen = in_view(tmp_path, near)
        assert passes(seen) == passes(expected) >= 2
        assert np.count_nonzero(seen != expected) <= 2 * passes(expected)
    level = elevations(satellite, latitude, 11.0, height_km) >= 0
    assert np.count_nonzero(expected) > 1.05 * np.count_nonzero(level)


def test_a_mask_that_is_given_holds(tmp_path: Path, satellite: Floats) -> None:
    near = {"latitude": 45.0, "longitude": 11.0}
    found = elevations(satellite, 45.0, 11.0)
    for mask in (0.0, 10.0):
        seen = in_view(tmp_path, near, min_elevation=mask)
        assert np.count_nonzero(seen != (found >= mask)) <= 2 * passes(found >= mask)
    # On a mountain 2 km above the sea the ellipsoid's horizon lies 1.4 degrees down.
    high = in_view(tmp_path, {**near, "altitude": "2 km"}, min_elevation=-10.0)
    expected = above_ground(satellite, 45.0, 11.0, 2.0)
    assert np.count_nonzero(high != expected) <= 2 * passes(expected)
    assert elevations(satellite, 45.0, 11.0, 2.0)[high].min() == pytest.approx(-1.435, abs=0.06)


def test_ends_near_the_ground_see_each_other(tmp_path: Path) -> None:
    # Heights above the ellipsoid are negative where the sea is below it, as on the east coast of North America.
    # The horizon of 2 m is 5 km away, that of 800 m 101 km.
    for altitude, degrees, seen in (
        (0, 0.01, True), (0, 0.1, True), (0, 0.2, False),
        (-33, 0.01, True), (-33, 0.1, True), (-33, 0.2, False),
        (800, 1.0, True), (800, 2.3, True), (800, 2.5, False),
    ):  # fmt: skip
        header = "t_s,latitude,longitude,altitude_m"
        (tmp_path / "near.csv").write_text(f"{header}\n0,40.7,-74,{altitude}\n")
        (tmp_path / "far.csv").write_text(f"{header}\n0,40.7,{-74 + degrees},{altitude}\n")
        data = {"model": "track", "near": {"file": "near.csv"}, "far": {"file": "far.csv"}}
        model: Track = parse(Track, data, "track", tmp_path)
        assert next(model.geometry(SECOND)).hidden is not seen, (altitude, degrees)
