"""Beyond the figures of Luglio et al. 2004: the proxy on the ground or on board, and what came later.

`hindflight reproduce onboard-split --extra` draws them.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from hindflight.replay.papers.lab import Lab, mean_point
from hindflight.replay.papers.model import Cell, Change, Figure, Point
from hindflight.replay.papers.onboard_split.cells import (
    BERS,
    FAST,
    GATEWAY,
    NEWRENO,
    NONE,
    SINGLE,
    SPLIT,
    VARIANTS,
    WORST,
    at_ber,
    cell,
    goodputs,
    name_of,
)

_PLACES = {NONE: "end to end", "gateway": "gateway", SPLIT: "on board", f"gateway+{SPLIT}": "gateway and on board"}
LATER = ("cubic", "bbr", "bbr3")
_LINUX: tuple[Change, ...] = (
    ("flow.profile", "linux"),
    ("flow.mss", None),
    ("flow.initial_ssthresh", None),
    ("flow.receive_buffer_max", "64 MiB"),
)
"""The stack of today's Linux (RACK, PRR, HyStart); the ends limit no window, as in the paper."""


def _places(variant: str, lab: Lab) -> list[Point]:
    points = []
    for (proxy, place), ber in product(_PLACES.items(), BERS):
        samples = goodputs(lab, Cell(GATEWAY, variant, proxy, at_ber(ber)))
        points.append(mean_point(place, None, samples, f"{ber:g}"))
    return points


def _later(lab: Lab) -> list[Point]:
    points = []
    for variant, proxy in product((*VARIANTS, *LATER), (NONE, SPLIT)):
        base = cell(SINGLE, NEWRENO, proxy, FAST, WORST).but(variant=variant)
        samples = goodputs(lab, base.but(*_LINUX) if variant in LATER else base)
        name = f"{variant}, Linux" if variant in LATER else f"{name_of(variant)}, ns-2"
        points.append(mean_point(_PLACES[proxy], None, samples, name))
    return points


_BER, _KBPS = "Bit error rate", "Goodput [kbit/s]"
EXTRAS = (
    *(
        Figure(
            f"extra-gateway-{variant}",
            f"Proxy on the ground or on board, {name_of(variant)}, 1 Mbit/s",
            _BER,
            _KBPS,
            "bar",
            partial(_places, variant),
        )
        for variant in VARIANTS
    ),
    Figure("extra-later", "What came later, 20 Mbit/s, BER 1e-6", "", _KBPS, "bar", _later),
)
