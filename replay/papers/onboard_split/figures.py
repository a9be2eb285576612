"""The figures of Luglio et al. 2004 with the paper's axes, as far as they are known."""

from __future__ import annotations

from functools import partial
from itertools import product

from hindflight.replay.papers.lab import Lab, mean_point
from hindflight.replay.papers.model import Figure, Point
from hindflight.replay.papers.onboard_split.cells import (
    BERS,
    FAST,
    NONE,
    PACKET_BITS,
    RATES,
    SECOND,
    SHADOWED,
    SINGLE,
    SLOW,
    SPLIT,
    VARIANTS,
    WORST,
    cell,
    describe,
    goodputs,
    sweep,
)
from hindflight.replay.papers.onboard_split.judges import RATES_BPS, ROUND_TRIPS_S, slow_start_s


def _slow_start(_lab: Lab) -> list[Point]:
    return [
        Point(f"{rate / 1e6:g} Mbit/s", round_trip, slow_start_s(rate, round_trip))
        for rate, round_trip in product(RATES_BPS, ROUND_TRIPS_S)
    ]


def _pipe(_lab: Lab) -> list[Point]:
    return [
        Point(f"{rate / 1e6:g} Mbit/s", round_trip, rate * round_trip / PACKET_BITS)
        for rate, round_trip in product(RATES_BPS, ROUND_TRIPS_S)
    ]


def _over_cache(scenario: str, rate: int, lab: Lab) -> list[Point]:
    points = []
    for variant in VARIANTS:
        base = cell(scenario, variant, SPLIT, rate, WORST)
        caches, found = sweep(lab, base, rate)
        points += [mean_point(describe(base), cache, values) for cache, values in zip(caches, found, strict=True)]
        plain = cell(scenario, variant, NONE, rate, WORST)
        flat = goodputs(lab, plain)
        points += [mean_point(describe(plain), cache, flat) for cache in (caches[0], caches[-1])]
    return points


def _summary(scenario: str, lab: Lab) -> list[Point]:
    points = []
    bers = (WORST,) if scenario == SHADOWED else BERS
    for variant, proxy, rate, ber in product(VARIANTS, (NONE, SPLIT), RATES, bers):
        each = cell(scenario, variant, proxy, rate, ber)
        share = goodputs(lab, each) / (1e3 * rate)
        points.append(mean_point(", ".join(describe(each).split(", ")[:2]), None, share, f"{rate} Mbit/s, BER {ber:g}"))
    return points


_CACHE, _KBPS, _SHARE = "Cache [pkts]", "Goodput [kbit/s]", "Goodput / rate"
_RTT = "Round-trip time [s]"
FIGURES = (
    Figure("fig1", "Figure 1: duration of slow start", _RTT, "Time [s]", "line", _slow_start),
    Figure("fig2", "Figure 2: pipe", _RTT, "Pipe [pkts]", "line", _pipe),
    *(
        Figure(
            f"fig{number}",
            f"Figure {number}: goodput over the cache, {where}, {rate} Mbit/s, BER 1e-6",
            _CACHE,
            _KBPS,
            "line",
            partial(_over_cache, scenario, rate),
        )
        for number, scenario, rate, where in (
            (6, SINGLE, SLOW, "one satellite"),
            (7, SINGLE, FAST, "one satellite"),
            (9, SECOND, SLOW, "two satellites"),
            (10, SECOND, FAST, "two satellites"),
            (12, SHADOWED, SLOW, "sender shadowed"),
            (13, SHADOWED, FAST, "sender shadowed"),
        )
    ),
    *(
        Figure(f"fig{number}", f"Figure {number}: summary, {where}", "", _SHARE, "bar", partial(_summary, scenario))
        for number, scenario, where in (
            (8, SINGLE, "one satellite"),
            (11, SECOND, "two satellites"),
            (14, SHADOWED, "sender shadowed"),
        )
    ),
)
