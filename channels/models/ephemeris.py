"""Positions of satellites and platforms: geostationary by longitude, moving ones by TLE, tracks.

Earth is the rotating WGS 84 ellipsoid; refraction is ignored. See docs/channels/sky.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hindflight.channels.models.parameters import read_text
from hindflight.channels.portable import atan2, cos, hypot, sin
from hindflight.toolkit.errors import ChannelError

LIGHT_MPS = 299_792_458.0
GEO_RADIUS_M = 42_164_172.0
"""Radius of the geostationary orbit: cube root of GM / omega^2, GM 3.986004418e14 m3/s2, one sidereal day."""
MAJOR_M = 6_378_137.0
"""Equatorial radius of the WGS 84 ellipsoid."""
_FLATTENING = 1 / 298.257223563
MINOR_M = MAJOR_M * (1 - _FLATTENING)
"""Polar radius of the WGS 84 ellipsoid."""
_ECCENTRICITY_2 = _FLATTENING * (2 - _FLATTENING)
_DIGITS = 12
"""Angles are rounded to this many decimals: SGP4 uses the platform's sines, which differ in the last place."""

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Place:
    """A place: latitude and longitude in degrees, altitude above the ellipsoid in m."""

    latitude: float
    longitude: float
    altitude_m: float = 0.0


@dataclass(frozen=True, slots=True)
class Look:
    """Direction and distance of a target: azimuth clockwise from north and elevation in radians, slant range in m."""

    azimuth: float
    elevation: float
    range_m: float

    @property
    def delay_ns(self) -> int:
        """Propagation delay at the speed of light."""
        return round(self.range_m / LIGHT_MPS * 1e9)


def earth_fixed(place: Place) -> Vector:
    """Return the Earth-centred, Earth-fixed coordinates of a place in m (WGS 84)."""
    latitude, longitude = math.radians(place.latitude), math.radians(place.longitude)
    normal = MAJOR_M / math.sqrt(1 - _ECCENTRICITY_2 * sin(latitude) * sin(latitude))
    across = (normal + place.altitude_m) * cos(latitude)
    up = (normal * (1 - _ECCENTRICITY_2) + place.altitude_m) * sin(latitude)
    return across * cos(longitude), across * sin(longitude), up


def geostationary(longitude: float) -> Vector:
    """Return the coordinates of a geostationary satellite by its longitude in degrees east."""
    angle = math.radians(longitude)
    return GEO_RADIUS_M * cos(angle), GEO_RADIUS_M * sin(angle), 0.0


def look(observer: Place, target: Vector) -> Look:
    """Return the direction and distance of `target` from `observer`."""
    here = earth_fixed(observer)
    x, y, z = (there - own for there, own in zip(target, here, strict=True))
    latitude, longitude = math.radians(observer.latitude), math.radians(observer.longitude)
    east = -sin(longitude) * x + cos(longitude) * y
    out = cos(longitude) * x + sin(longitude) * y
    north = -sin(latitude) * out + cos(latitude) * z
    up = cos(latitude) * out + sin(latitude) * z
    flat = hypot(east, north)
    return Look(
        round(atan2(east, north) % math.tau, _DIGITS),
        round(atan2(up, flat), _DIGITS),
        hypot(flat, up),
    )


class Orbit:
    """The orbit of a satellite from two-line elements, by SGP4 (Vallado et al., "Revisiting Spacetrack Report #3",
    2006).
    """

    def __init__(self, lines: tuple[str, str], where: str) -> None:
        from sgp4.api import Satrec
        from sgp4.conveniences import check_satrec, sat_epoch_datetime

        self._where = where
        try:
            _check_lines(lines)
            self._satrec = Satrec.twoline2rv(*lines)
            check_satrec(self._satrec)
        except (ValueError, IndexError) as error:
            raise ChannelError(f"{where}: these are no two-line elements: {str(error).splitlines()[0]}") from None
        self.epoch: datetime = sat_epoch_datetime(self._satrec)

    def check_age(self, time: datetime, longest: timedelta) -> None:
        """Raise ChannelError if `time` is more than `longest` from the epoch, where SGP4 is inaccurate."""
        age = abs(time - self.epoch)
        if age > longest:
            raise ChannelError(
                f"{self._where}: the elements are of {self.epoch:%Y-%m-%d} and {age / timedelta(days=1):.0f} days from "
                f"{time:%Y-%m-%d}, which is out of date: at most {longest / timedelta(days=1):g} days",
                "take fresher elements, another time `at`, or a longer `max_age`",
            )

    def position(self, time: datetime) -> Vector:
        """Return Earth-fixed coordinates at `time` in m."""
        from sgp4.api import SGP4_ERRORS, jday

        utc = time.astimezone(UTC)
        second = utc.second + utc.microsecond / 1e6
        day, part = jday(utc.year, utc.month, utc.day, utc.hour, utc.minute, second)
        error, (x, y, z), _ = self._satrec.sgp4(day, part)
        if error:
            raise ChannelError(f"{self._where}: {SGP4_ERRORS[error]}")
        angle = _sidereal(day, part)
        # From the true equator and mean equinox to the turning Earth; polar motion (10 m) is left out.
        turned_x = cos(angle) * x + sin(angle) * y
        turned_y = -sin(angle) * x + cos(angle) * y
        return turned_x * 1e3, turned_y * 1e3, z * 1e3


def read_tle(path: Path, name: str | None = None) -> Orbit:
    """Read the first satellite of a TLE file, or the one called `name`. Raises ChannelError in one line."""
    lines = [line.rstrip() for line in read_text(path).splitlines() if line.strip()]
    for i, line in enumerate(lines[:-1]):
        if line.startswith("1 ") and lines[i + 1].startswith("2 "):
            title = lines[i - 1].removeprefix("0 ").strip() if i else ""
            if name is None or title == name:
                return Orbit((line, lines[i + 1]), str(path))
    wanted = f"the satellite {name!r}" if name is not None else "two-line elements"
    raise ChannelError(f"{path}: holds no {wanted.removeprefix('the ')}")


def _check_lines(lines: tuple[str, str]) -> None:
    for line in lines:
        if len(line) < 69 or not line[68].isdigit():
            raise ValueError("a line is shorter than 69 columns")
        total = sum(int(c) if c.isdigit() else c == "-" for c in line[:68])
        if total % 10 != int(line[68]):
            raise ValueError(f"the checksum of line {line[0]} is wrong")


def _sidereal(day: float, part: float) -> float:
    """Return Greenwich mean sidereal time (IAU 1982) in radians, with UTC for UT1."""
    centuries = ((day - 2_451_545.0) + part) / 36_525.0
    seconds = (
        67_310.54841
        + (876_600.0 * 3600 + 8_640_184.812866) * centuries
        + 0.093104 * centuries * centuries
        - 6.2e-6 * centuries * centuries * centuries
    )
    return math.radians(seconds / 240.0) % math.tau
