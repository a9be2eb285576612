"""Links between moving ends: delay, elevation, azimuth and visibility from tracks, places and satellites.

For GEO, LEO, HAPS and UAV links. See docs/channels/track.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import State, merge
from hindflight.channels.models import ephemeris as sky
from hindflight.channels.models.budget import Modulation, bit_error_rate
from hindflight.channels.models.canyon import Canyon
from hindflight.channels.models.parameters import (
    Degrees,
    Gain,
    Grain,
    InputFile,
    Latitude,
    Longitude,
    Metres,
    Parameters,
    Probability,
    Rate,
    Stay,
)
from hindflight.channels.models.signal import Budget, read_columns
from hindflight.channels.portable import acos, cos, dot, hypot, sin
from hindflight.toolkit.errors import ChannelError

HIGHEST_GROUND_M = 9_000.0
"""Above all terrain: a fixed place up to this altitude is a terminal on the ground, a higher one is a platform."""

ANTENNA_M = 2.0
"""Minimum height of either end above the ground."""

MIN_MOVE_M = 1e-3
"""Minimum movement per step that changes the direction of travel."""

MAX_ALTITUDE_M = 1e9
"""Maximum magnitude of an altitude."""

Angle = Annotated[float, Field(ge=-90, le=180, allow_inf_nan=False, strict=True)]


@dataclass(frozen=True, slots=True)
class Pose:
    """Position and attitude of an end; angles in degrees, None if unknown."""

    place: sky.Place | None
    fixed: sky.Vector
    roll: float = 0.0
    pitch: float = 0.0
    heading: float | None = None


class End(Parameters):
    """One end of a link: a place, a track file, or a satellite (`geo` by longitude, `tle` from the time `at` on).

    A track is CSV: t_s, latitude, longitude, altitude_m, and optionally roll, pitch, heading (degrees). The end stands
    still before the first row and after the last.
    """

    latitude: Latitude | None = None
    longitude: Longitude | None = None
    altitude: Metres = 0.0
    file: InputFile | None = None
    geo: Longitude | None = None
    tle: InputFile | None = None
    name: str | None = None
    at: datetime | None = None
    max_age: Stay = 14 * 86_400 * 10**9

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = (self.latitude, self.file, self.geo, self.tle)
        if sum(way is not None for way in ways) != 1 or (self.latitude is None) != (self.longitude is None):
            raise ValueError("give latitude and longitude, or file, or geo, or tle")
        if (self.tle is None) != (self.at is None) or (self.at is not None and self.at.tzinfo is None):
            raise ValueError("tle needs `at` with its time zone, as in 2026-05-01T12:00:00Z, and only it does")
        return self

    def poses(self, span_ns: int) -> Callable[[int], Pose]:
        """Return the pose as a function of time in ns. Raises ChannelError for an invalid file."""
        if self.latitude is not None and self.longitude is not None:
            place = sky.Place(self.latitude, self.longitude, self.altitude)
            standing = Pose(place, sky.earth_fixed(place))
            return lambda _t: standing
        if self.geo is not None:
            high = Pose(None, sky.geostationary(self.geo))
            return lambda _t: high
        if self.tle is not None and self.at is not None:
            orbit, begin = sky.read_tle(Path(self.tle), self.name), self.at.astimezone(UTC)
            for time in (begin, begin + timedelta(microseconds=span_ns / 1000)):
                orbit.check_age(time, timedelta(microseconds=self.max_age / 1000))
            return lambda t: Pose(None, orbit.position(begin + timedelta(microseconds=t / 1000)))
        return _track(Path(self.file or ""))


def _track(path: Path) -> Callable[[int], Pose]:
    columns = ["t_s", "latitude", "longitude", "altitude_m"]
    rows = read_columns(path, tuple(columns))
    if not all(-90 <= row[1] <= 90 and -360 <= row[2] <= 360 for row in rows):
        raise ChannelError(f"{path}: a latitude or longitude is out of range")
    if not all(-MAX_ALTITUDE_M <= row[3] <= MAX_ALTITUDE_M for row in rows):
        raise ChannelError(f"{path}: an altitude is beyond {MAX_ALTITUDE_M:g} m")
    attitude = _attitude(path)
    times = [row[0] for row in rows]

    def at(t_ns: int) -> Pose:
        _, latitude, longitude, altitude = _between(rows, times, t_ns / 1e9, turning=(2,))
        place = sky.Place(latitude, longitude, altitude)
        if attitude is None:
            return Pose(place, sky.earth_fixed(place))
        _, roll, pitch, heading = _between(attitude, times, t_ns / 1e9, turning=(1, 2, 3))
        return Pose(place, sky.earth_fixed(place), roll, pitch, heading)

    return at


def _attitude(path: Path) -> list[list[float]] | None:
    names = ("roll", "pitch", "heading")
    header = path.read_text().splitlines()[0].split(",")
    given = [name for name in names if name in header]
    if not given:
        return None
    if len(given) < len(names):
        raise ChannelError(f"{path}: has {given[0]} but not all of roll, pitch, heading")
    return read_columns(path, ("t_s", *names))


def _between(rows: list[list[float]], times: list[float], t_s: float, turning: tuple[int, ...]) -> list[float]:
    """Interpolate linearly in time; columns in `turning` are angles and take the shorter way."""
    after = bisect_right(times, t_s)
    if after == 0 or after == len(rows):
        return rows[min(after, len(rows) - 1) if after else 0]
    before, following = rows[after - 1], rows[after]
    part = (t_s - before[0]) / (following[0] - before[0])
    steps = [b - a for a, b in zip(before, following, strict=True)]
    turned = [step - 360 * round(step / 360) if i in turning else step for i, step in enumerate(steps)]
    return [a + part * step for a, step in zip(before, turned, strict=True)]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Geometry of the link at a time: range, direction of the far end, and whether it is obstructed."""

    t_ns: int
    range_m: float
    azimuth: float
    elevation: float
    hidden: bool
    shadowed: bool = False
    """Whether a building of the street obstructs the line of sight."""

    @property
    def delay_ns(self) -> int:
        """Propagation delay at the speed of light."""
        return round(self.range_m / sky.LIGHT_MPS * 1e9)


class Lane(Canyon):
    """The street along which the near end moves; it follows the track of the near end.

    `azimuth` is its direction until the near end has moved. A shadow loses all packets, or bits with `blocked_ber`.
    """

    azimuth: Degrees = 0.0
    start: Metres = 0.0
    blocked_ber: Probability | None = None


class Track(Parameters):
    """A link between two ends, each moving or at rest.

    The link is down while the far end is below `min_elevation` as seen from the near end, outside `field_of_view`
    around the near end's upward axis (tilted by roll and pitch), or behind Earth. Without `min_elevation`, the limit is
    the horizon (0 degrees) between a terminal on the ground and a satellite, and only Earth otherwise. With `budget`,
    the range gives a bit error rate. With `street`, the near end moves through a street whose buildings can obstruct
    the line of sight.
    """

    model: Literal["track"]
    near: End
    far: End
    step: Stay = 100_000_000
    rate: Rate | None = None
    min_elevation: Angle | None = None
    field_of_view: Annotated[float, Field(gt=0, le=180, strict=True)] = 180.0
    budget: Budget | None = None
    street: Lane | None = None
    modulation: Modulation = "qpsk"
    coding_gain_db: Gain = 0.0
    level_db: Grain = 0.1

    @model_validator(mode="after")
    def _near_is_near(self) -> Self:
        if self.near.geo is not None or self.near.tle is not None:
            raise ValueError("near must be a place or a track; satellites are far")
        return self

    def geometry(self, span_ns: int, seed: int = 0, owner: int = 0) -> Iterator[Geometry]:
        """Yield the geometry step by step; a street is generated by seed."""
        near, far = self.near.poses(span_ns), self.far.poses(span_ns)
        times = range(0, span_ns, self.step)
        if self.street is None:
            for t_ns in times:
                yield self._at(t_ns, near(t_ns), far(t_ns))
            return
        length_m = max(place_m for _, place_m, _ in _way(near, times, self.street))
        canyon = self.street.with_antenna(self.street.buildings(length_m, seed, owner))
        for t_ns, place_m, ahead in _way(near, times, self.street):
            at = self._at(t_ns, near(t_ns), far(t_ns))
            (shadowed,) = canyon.blocked([place_m], at.azimuth - ahead, at.elevation)
            yield replace(at, shadowed=shadowed)

    @property
    def lowest_elevation(self) -> float:
        """Elevation in degrees below which the far end is hidden: `min_elevation` or its default."""
        if self.min_elevation is not None:
            return self.min_elevation
        on_ground = self.near.latitude is not None and self.near.altitude <= HIGHEST_GROUND_M
        to_satellite = self.far.geo is not None or self.far.tle is not None
        return 0.0 if on_ground and to_satellite else -90.0

    def _at(self, t_ns: int, near: Pose, far: Pose) -> Geometry:
        place = near.place or sky.Place(0.0, 0.0)
        seen = sky.look(place, far.fixed)
        tilt = _off_axis(seen, near)
        low = math.degrees(seen.elevation) < self.lowest_elevation
        hidden = low or tilt > self.field_of_view or _behind_earth(near, far)
        return Geometry(t_ns, seen.range_m, seen.azimuth, seen.elevation, hidden)

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Return delay, outages, shadows and bit error rate over time. Raises ChannelError if the link is never up."""
        return merge(self._states(span_ns, seed, owner))

    def _states(self, span_ns: int, seed: int, owner: int) -> Iterator[State]:
        highest, seen = -math.inf, False
        for at in self.geometry(span_ns, seed, owner):
            highest, seen = max(highest, at.elevation), seen or not at.hidden
            yield self._state(at, min(at.t_ns + self.step, span_ns))
        if not seen:
            raise ChannelError(
                f"track: the near end never sees the far one in {span_ns / 1e9:g} s: highest elevation "
                f"{math.degrees(highest):.1f} degrees",
                "min_elevation, field_of_view or the Earth hides it",
            )

    def _state(self, at: Geometry, end_ns: int) -> State:
        ber, per = None, None
        if at.shadowed and self.street is not None:
            ber = self.street.blocked_ber
            per = 1.0 if ber is None else None
        elif self.budget is not None:
            level = round(self.budget.ebn0_db(at.range_m) / self.level_db) * self.level_db
            ber = bit_error_rate(self.modulation, level + self.coding_gain_db)
        return State(at.t_ns, end_ns, self.rate, at.delay_ns, per=per, ber=ber, outage=at.hidden)


def _way(near: Callable[[int], Pose], times: range, street: Lane) -> Iterator[tuple[int, float, float]]:
    """Yield time, distance of the near end along the street, and its direction of travel (radians from north)."""
    place_m, ahead = street.start, math.radians(street.azimuth)
    for t_ns in times:
        move = sky.look(near(t_ns).place or sky.Place(0.0, 0.0), near(t_ns + times.step).fixed)
        went_m = move.range_m * cos(move.elevation)
        ahead = move.azimuth if went_m >= MIN_MOVE_M else ahead
        yield t_ns, place_m, ahead
        place_m += went_m


def _off_axis(seen: sky.Look, near: Pose) -> float:
    """Return the angle in degrees between the far end and the upward axis of the near end."""
    flat = cos(seen.elevation)
    line = (flat * sin(seen.azimuth), flat * cos(seen.azimuth), sin(seen.elevation))
    roll, pitch, heading = (math.radians(a) for a in (near.roll, near.pitch, near.heading or 0.0))
    # The body's upward axis in east, north, up: nose up is a positive pitch, right wing down a positive roll.
    right, back = sin(roll), -sin(pitch) * cos(roll)
    up = (
        right * cos(heading) + back * sin(heading),
        -right * sin(heading) + back * cos(heading),
        cos(pitch) * cos(roll),
    )
    return math.degrees(acos(max(-1.0, min(1.0, dot(line, up)))))


def _behind_earth(near: Pose, far: Pose) -> bool:
    """Return whether the straight line between two ends goes through the ground, the WGS 84 ellipsoid.

    The ellipsoid is lowered where an end is not `ANTENNA_M` above it: the real ground is up to 106 m lower.
    """
    ends_m = [pose.place.altitude_m for pose in (near, far) if pose.place is not None]
    ground_m = min([0.0, *(altitude_m - ANTENNA_M for altitude_m in ends_m)])
    # Coordinates in which the ellipsoid is the unit sphere.
    across, up = sky.MAJOR_M + ground_m, sky.MINOR_M + ground_m
    one, other = ((x / across, y / across, z / up) for x, y, z in (near.fixed, far.fixed))
    along = [b - a for a, b in zip(one, other, strict=True)]
    square = dot(along, along)
    if square == 0:
        return False
    part = max(0.0, min(1.0, -dot(one, along) / square))
    nearest = [a + part * x for a, x in zip(one, along, strict=True)]
    return 0 < part < 1 and hypot(*nearest) < 1
