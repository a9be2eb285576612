"""Satellite positions: published geometry, rotation of Earth, and one line for invalid elements."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hindflight.channels.models.ephemeris import Orbit, Place, _sidereal, earth_fixed, geostationary, look, read_tle
from hindflight.channels.models.parameters import parse
from hindflight.channels.models.street import Street
from hindflight.toolkit.errors import ChannelError

EPOCH = datetime(2026, 3, 1, tzinfo=UTC)


def elements(mean_motion: float, *, inclination: float = 0.001, anomaly: float = 0.0) -> tuple[str, str]:
    """Return two-line elements of a circular orbit at EPOCH, with checksums."""
    lines = [
        "1 99999U 26001A   26060.00000000  .00000000  00000-0  00000-0 0  999",
        f"2 99999 {inclination:8.4f}   0.0000 0000001   0.0000 {anomaly:8.4f} {mean_motion:11.8f}    0",
    ]
    return tuple(  # type: ignore[return-value]
        line.ljust(68)[:68] + str(sum(int(c) if c.isdigit() else c == "-" for c in line.ljust(68)[:68]) % 10)
        for line in lines
    )


@pytest.mark.parametrize(
    ("place", "longitude", "elevation", "delay_ms"),
    [
        (Place(40.7, -74.0), -96.0, 37.8, 126.6),  # New York
        (Place(37.8, -122.4), -96.0, 38.2, 126.5),  # San Francisco
        (Place(34.05, -118.25), -95.0, 43.3, 125.2),  # Los Angeles
        (Place(41.9, 12.5), 0.0, 40.0, 126.0),  # Rome
    ],
)
def test_geostationary_satellites_of_paper_003(
    place: Place, longitude: float, elevation: float, delay_ms: float
) -> None:
    seen = look(place, geostationary(longitude))
    assert math.degrees(seen.elevation) == pytest.approx(elevation, abs=0.3)
    assert seen.delay_ns / 1e6 == pytest.approx(delay_ms, abs=0.15)


def test_azimuth_counts_clockwise_from_north() -> None:
    here = Place(0.0, 10.0)
    for place, azimuth in ((Place(1.0, 10.0), 0), (Place(0.0, 11.0), 90), (Place(-1.0, 10.0), 180), (Place(0, 9), 270)):
        seen = look(here, earth_fixed(Place(place.latitude, place.longitude, 50_000)))
        assert math.cos(seen.azimuth - math.radians(azimuth)) == pytest.approx(1)
        assert 0 < seen.elevation < math.pi / 2
    up = look(here, earth_fixed(Place(0.0, 10.0, 1000.0)))
    assert math.degrees(up.elevation) == pytest.approx(90)
    assert up.range_m == pytest.approx(1000.0)


def test_sidereal_time_of_the_standard_epoch() -> None:
    assert math.degrees(_sidereal(2_451_545.0, 0.0)) == pytest.approx(280.46062, abs=1e-4)


def test_geostationary_elements_keep_their_longitude() -> None:
    orbit = Orbit(elements(1.00273791), "made")
    angles = []
    for hours in range(0, 24, 3):
        x, y, z = orbit.position(EPOCH + timedelta(hours=hours))
        assert math.hypot(x, y) == pytest.approx(42_165_000, rel=2e-4)
        assert abs(z) < 20_000
        angles.append(math.degrees(math.atan2(y, x)))
    assert max(angles) - min(angles) < 0.1
    # Right ascension 0 at the epoch: the longitude is minus the sidereal time.
    expected = -math.degrees(_sidereal(2_451_544.5 + (EPOCH - datetime(2000, 1, 1, tzinfo=UTC)).days, 0.0)) % 360
    assert angles[0] % 360 == pytest.approx(expected, abs=0.1)


def test_leo_satellite_rises_and_sets_over_a_street(tmp_path: Path) -> None:
    line1, line2 = elements(15.2, inclination=53.0, anomaly=20.0)
    (tmp_path / "leo.tle").write_text(f"PASSER\n{line1}\n{line2}\n")
    satellite = {"tle": "leo.tle", "name": "PASSER", "at": "2026-03-01T00:00:00Z"}
    place = _under(read_tle(tmp_path / "leo.tle"))
    table = {"model": "street", "satellite": satellite, **place, "speed": "0 m/s", "step": "100 ms", "width": WIDE}
    model: Street = parse(Street, table, "x", tmp_path)
    states = list(model.states(1500 * 10**9, 1))
    assert states[0].lost  # below the horizon
    assert any(not s.lost for s in states)
    assert states[-1].lost
    gone = {**table, "latitude": -80.0}
    with pytest.raises(ChannelError, match="stays below the horizon"):
        list(parse(Street, gone, "x", tmp_path).states(600 * 10**9, 1))


WIDE = {"law": "constant", "value": "400 m"}


def _under(orbit: Orbit) -> dict[str, float]:
    """Return the place below the satellite 12 minutes after EPOCH."""
    x, y, z = orbit.position(EPOCH + timedelta(minutes=12))
    return {"latitude": math.degrees(math.atan2(z, math.hypot(x, y))), "longitude": math.degrees(math.atan2(y, x))}


def test_invalid_elements_give_one_line(tmp_path: Path) -> None:
    line1, line2 = elements(15.2)
    path = tmp_path / "x.tle"
    for text, says in [
        ("", "holds no two-line elements"),
        (f"OTHER\n{line1}\n{line2}\n", "holds no satellite 'MINE'"),
        (f"MINE\n{line1[:-1]}{(int(line1[-1]) + 1) % 10}\n{line2}\n", "checksum of line 1"),
        (f"MINE\n{line1[:50]}\n{line2}\n", "shorter than 69"),
    ]:
        path.write_text(text)
        with pytest.raises(ChannelError, match=says):
            read_tle(path, "MINE" if text else None)
    with pytest.raises(ChannelError, match="cannot be read"):
        read_tle(tmp_path / "none.tle")
    path.write_text(f"{line1}\n{line2}\n")
    late = {"model": "street", "satellite": {"tle": "x.tle", "at": "2026-06-01T00:00:00Z"}, "latitude": 0.0}
    with pytest.raises(ChannelError, match="out of date: at most 14 days"):
        list(parse(Street, {**late, "longitude": 0.0}, "x", tmp_path).states(10**9, 1))
