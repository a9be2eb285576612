"""Whether a building hides a satellite, by brute force: every building, and every copy of it, against the whole ray.

Buildings are boxes behind their facades (without depth: walls). The street is stretched by reversing and concatenating.
"""

from __future__ import annotations

import math

from hindflight.channels.models.skyline import Skyline

Box = tuple[float, float, float, float, float]
"""x from, x to, y from, y to, height."""


def boxes(street: Skyline, depth_m: float, low_m: float, high_m: float) -> list[Box]:
    """All buildings of the stretched street between two places along it; y grows to the right of the route."""
    out: list[Box] = []
    length = street.length_m
    for copy in range(math.floor(low_m / length) - 1, math.ceil(high_m / length) + 1):
        for start, end, height, sign, distance in [
            *((*b, -1, street.distance_m[0]) for b in street.left),
            *((*b, 1, street.distance_m[1]) for b in street.right),
        ]:
            ends = (start, end) if copy % 2 == 0 else (length - end, length - start)
            sides = sorted((sign * distance, sign * (distance + depth_m)))
            out.append((copy * length + ends[0], copy * length + ends[1], sides[0], sides[1], height))
    return out


def hidden(x_m: float, antenna_m: float, phi: float, elevation: float, walls: list[Box]) -> bool:
    """Whether the ray from the terminal meets any box below its roof."""
    step = (math.cos(phi), math.sin(phi))
    for x0, x1, y0, y1, height in walls:
        # On the ground the ray is inside the box between these two distances.
        first, last = 0.0, math.inf
        for origin, along, low, high in ((x_m, step[0], x0, x1), (0.0, step[1], y0, y1)):
            if along == 0:
                if not low <= origin <= high:
                    first, last = math.inf, 0.0
                continue
            enter, leave = sorted(((low - origin) / along, (high - origin) / along))
            first, last = max(first, enter), min(last, leave)
        # It climbs, so it is lowest where it enters.
        if first <= last and antenna_m + first * math.tan(elevation) < height:
            return True
    return False
