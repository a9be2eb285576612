"""Land-mobile satellite, physical-statistical model: line of sight from a street canyon by geometry.

canyon.py has the street; the kernels trace the rays. See docs/channels/street.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import State, combine, merge, truncate
from hindflight.channels.models import ephemeris as sky
from hindflight.channels.models.budget import Modulation, bit_error_rate
from hindflight.channels.models.canyon import Canyon
from hindflight.channels.models.parameters import (
    Decibels,
    Degrees,
    Depth,
    Frequency,
    Grain,
    InputFile,
    Latitude,
    Longitude,
    Metres,
    Parameters,
    Probability,
    Speed,
    Stay,
)
from hindflight.channels.models.skyline import Skyline
from hindflight.toolkit.errors import ChannelError

if TYPE_CHECKING:
    from hindflight.channels._native import StreetCanyon, StreetWalk

SKY_STEP_NS = 1_000_000_000
"""Interval between computed positions of a moving satellite; in between they are interpolated."""
_ROWS = 65_536


class Satellite(Parameters):
    """The position of a satellite: `geo` (longitude), `tle` (a file, from the time `at` on), or fixed angles."""

    geo: Longitude | None = None
    tle: InputFile | None = None
    name: str | None = None
    at: datetime | None = None
    max_age: Stay = 14 * 86_400 * 10**9
    azimuth: Degrees | None = None
    elevation: Annotated[float, Field(le=90, allow_inf_nan=False, strict=True)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [self.geo is not None, self.tle is not None, self.azimuth is not None or self.elevation is not None]
        if ways.count(True) != 1:
            raise ValueError("give geo, or tle, or azimuth and elevation")
        if (self.azimuth is None) != (self.elevation is None):
            raise ValueError("azimuth and elevation belong together")
        if (self.tle is None) != (self.at is None):
            raise ValueError("give at, the UTC time at which the channel begins, with tle, and only with it")
        if self.at is not None and self.at.tzinfo is None:
            raise ValueError("at needs a time zone, as in 2026-05-01T12:00:00Z")
        if self.elevation is not None and self.elevation <= 0:
            raise ValueError(f"the satellite is below the horizon: elevation {self.elevation:g} degrees")
        return self

    def looks(self, place: sky.Place | None, span_ns: int) -> Iterator[tuple[int, sky.Look]]:
        """Yield time and direction of the satellite; once if it does not move."""
        if self.azimuth is not None and self.elevation is not None:
            yield 0, sky.Look(math.radians(self.azimuth), math.radians(self.elevation), math.nan)
            return
        if place is None:
            raise ChannelError("a satellite by geo or tle needs the terminal's latitude and longitude")
        if self.geo is not None:
            seen = sky.look(place, sky.geostationary(self.geo))
            if seen.elevation <= 0:
                raise ChannelError(
                    f"the satellite at {self.geo:g} degrees is below the horizon: elevation "
                    f"{math.degrees(seen.elevation):.1f} degrees"
                )
            yield 0, seen
            return
        yield from self._passes(place, span_ns)

    def _passes(self, place: sky.Place, span_ns: int) -> Iterator[tuple[int, sky.Look]]:
        if self.tle is None or self.at is None:
            return
        orbit = sky.read_tle(Path(self.tle), self.name)
        for time in (self.at, self.at + timedelta(microseconds=span_ns / 1000)):
            orbit.check_age(time.astimezone(UTC), timedelta(microseconds=self.max_age / 1000))
        highest = -math.pi
        for t_ns in range(0, span_ns + SKY_STEP_NS, SKY_STEP_NS):
            seen = sky.look(place, orbit.position(self.at + timedelta(microseconds=t_ns / 1000)))
            highest = max(highest, seen.elevation)
            yield t_ns, seen
        if highest <= 0:
            raise ChannelError(
                f"{self.tle}: the satellite stays below the horizon: highest elevation "
                f"{math.degrees(highest):.1f} degrees"
            )


class Diffraction(Parameters):
    """Knife-edge diffraction (ITU-R P.526): the signal is blocked if the loss exceeds `margin_db`.

    With `ebn0_db` (without diffraction loss) and `modulation`, the loss gives a bit error rate instead.
    """

    frequency: Frequency
    margin_db: Depth | None = None
    ebn0_db: Decibels | None = None
    modulation: Modulation = "qpsk"
    step_db: Grain = 0.5

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.margin_db is None) == (self.ebn0_db is None):
            raise ValueError("give margin_db or ebn0_db")
        return self

    @property
    def level_db(self) -> float:
        """Width of a level of the loss, about `step_db`, such that the margin lies between two levels."""
        if self.margin_db is None:
            return self.step_db
        return self.margin_db / (math.floor(self.margin_db / self.step_db) + 0.5)


class Street(Canyon):
    """A terminal that moves along a street under a satellite."""

    model: Literal["street"]
    satellite: Satellite
    latitude: Latitude | None = None
    longitude: Longitude | None = None
    azimuth: Degrees = 0.0
    speed: Speed = 2.0
    start: Metres = 0.0
    step: Stay = 1_000_000
    blocked_ber: Probability | None = None
    diffraction: Diffraction | None = None
    other: Street | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.diffraction is not None and self.depth > 0:
            raise ValueError("diffraction is computed at the facades: depth must be 0")
        if self.diffraction is not None and self.diffraction.ebn0_db is not None and self.blocked_ber is not None:
            raise ValueError("with ebn0_db the loss gives the bit error rate; leave out blocked_ber")
        return self

    @property
    def place(self) -> sky.Place | None:
        """Position of the terminal on Earth; None if it is not given."""
        if self.latitude is None or self.longitude is None:
            return None
        return sky.Place(self.latitude, self.longitude)

    def skyline_for(self, span_ns: int, seed: int, owner: int = 0) -> Skyline:
        """Return the street, generated by seed or read from its file."""
        return self.buildings(self.start + self.speed * span_ns / 1e9, seed, owner)

    def canyon(self, span_ns: int, seed: int, owner: int = 0) -> StreetCanyon:
        """Return the street with the antenna in it."""
        return self.with_antenna(self.skyline_for(span_ns, seed, owner))

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Return the states from 0 to `span_ns`; with `other`, the signal must pass both streets."""
        own = self._states(span_ns, seed, owner)
        if self.other is None:
            return own
        return combine(own, self.other.states(span_ns, seed, owner + 1))

    def _states(self, span_ns: int, seed: int, owner: int) -> Iterator[State]:
        steps = max(1, -(-span_ns // self.step))
        looks = list(self.satellite.looks(self.place, span_ns))
        ahead = math.radians(self.azimuth)
        azimuths = _unwrapped([seen.azimuth - ahead for _, seen in looks])
        samples = [(t, azimuth, seen.elevation) for (t, seen), azimuth in zip(looks, azimuths, strict=True)]
        knife = None
        if self.diffraction is not None:
            knife = (sky.LIGHT_MPS / self.diffraction.frequency, self.diffraction.level_db)
        canyon = self.canyon(span_ns, seed, owner)
        walk = canyon.walk((self.speed, self.start, self.step, steps), samples, knife)
        return merge(truncate(self._levels(walk), span_ns))

    def _levels(self, walk: StreetWalk) -> Iterator[State]:
        import pyarrow as pa

        for _ in count():
            runs = walk.read(_ROWS)
            if runs is None:
                return
            for start, end, level, is_set in zip(*(c.to_pylist() for c in pa.table(runs).columns), strict=True):
                yield State(start, end, per=1.0) if is_set else self._level(start, end, level)

    def _level(self, start: int, end: int, level: int) -> State:
        soft = self.diffraction
        if soft is not None and soft.ebn0_db is not None:
            return State(start, end, ber=bit_error_rate(soft.modulation, soft.ebn0_db - level * soft.level_db))
        limit = 0.0 if soft is None or soft.margin_db is None else soft.margin_db / soft.level_db
        if level <= limit:
            return State(start, end)
        if self.blocked_ber is not None:
            return State(start, end, ber=self.blocked_ber)
        return State(start, end, per=1.0)


def _unwrapped(angles: list[float]) -> list[float]:
    """Return angles without jumps by a full turn."""
    turned = 0.0
    out: list[float] = []
    for angle in angles:
        if out:
            turned -= math.tau * round((angle + turned - out[-1]) / math.tau)
        out.append(angle + turned)
    return out
