"""Claims of Luglio et al. 2004 on the street model, by calls into it."""

from __future__ import annotations

import math

from hindflight.channels.models.street import Street
from hindflight.replay.papers.model import Part
from hindflight.replay.papers.verdicts import holds

HEIGHT_M, ANTENNA_M, WIDTH_M = 20.0, 1.5, 20.0
NEAR_DEGREES = 0.1
"""Elevations so far below and above the masking angle are checked."""
AZIMUTHS = (10.0, 30.0, 60.0, 90.0, 120.0, 250.0, 330.0)
SECOND_NS = 1_000_000_000
ROUTE_NS = 31 * SECOND_NS


def _street(azimuth: float, elevation: float, speed: str = "2 m/s", *, crossroads: bool = False) -> Street:
    """Return a street with buildings of one height, without crossroads unless asked for."""
    blocks = {"law": "constant", "value": "60 m" if crossroads else "1000 km"}
    constant = {"law": "constant", "value": f"{HEIGHT_M} m"}
    return Street.model_validate(
        {
            "model": "street",
            "satellite": {"azimuth": azimuth, "elevation": elevation},
            "heights": constant,
            "width": {"law": "constant", "value": f"{WIDTH_M} m"},
            "blocks": blocks,
            "speed": speed,
        }
    )


def masking_degrees(azimuth: float) -> float:
    """Return the masking angle of the street masking function (ITU-R P.681 section 4.4) in degrees."""
    across = abs(math.sin(math.radians(azimuth)))
    return math.degrees(math.atan((HEIGHT_M - ANTENNA_M) * across / (WIDTH_M / 2)))


def _shares(street: Street) -> float:
    """Return the share of the route on which the satellite is blocked."""
    states = list(street.states(ROUTE_NS, seed=1))
    blocked = sum(state.end_ns - state.start_ns for state in states if state.per == 1.0)
    return blocked / ROUTE_NS


def masking_parts() -> list[Part]:
    """Return whether the satellite is blocked right below the masking angle, visible above it and at crossroads."""
    parts = []
    for azimuth in AZIMUTHS:
        mask = masking_degrees(azimuth)
        below, above = (_shares(_street(azimuth, mask + side * NEAR_DEGREES)) for side in (-1, 1))
        parts.append(holds(f"azimuth {azimuth:g} degrees", below == 1.0 and above == 0.0, mask))
    visible = _shares(_street(90.0, masking_degrees(90.0) - NEAR_DEGREES, "10 m/s", crossroads=True))
    parts.append(holds("visible at crossroads", 0.0 < visible < 1.0, visible))
    return parts


def fixed_parts() -> list[Part]:
    """Return whether the channel of a terminal that does not move has one state throughout."""
    parts = []
    for elevation in (20.0, 80.0):
        states = list(_street(90.0, elevation, "0 m/s").states(ROUTE_NS, seed=1))
        parts.append(holds(f"elevation {elevation:g} degrees", len(states) == 1, float(len(states))))
    return parts
