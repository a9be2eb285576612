"""Beyond the figures of Luglio et al. 2004: the proxy on the ground or on board, and what came later.

`hindflight reproduce onboard-split --extra` draws them.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from hindflight.replay.papers.lab import Lab, Rows, mean_point
from hindflight.replay.papers.model import Cell, Change, Figure, Point, table
from hindflight.replay.papers.onboard_split.cells import (
    BERS,
    FAST,
    GATEWAY,
    LARGE,
    NEWRENO,
    NONE,
    POOL,
    SINGLE,
    SLOW,
    SPLIT,
    VARIANTS,
    WORST,
    at_ber,
    cell,
    divided,
    goodputs,
    name_of,
    with_flows,
)

_PLACES = {NONE: "end to end", "gateway": "gateway", SPLIT: "on board", f"gateway+{SPLIT}": "gateway and on board"}
SHARING_FLOWS = (2, 5, 10)
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


def _jain(rows: Rows) -> float:
    goodputs = [float(row["goodput_bps"]) for row in rows]
    return sum(goodputs) ** 2 / (len(goodputs) * sum(each**2 for each in goodputs))


def _fair(lab: Lab) -> list[Point]:
    points = []
    for variant, flows in product(VARIANTS, SHARING_FLOWS):
        shared = with_flows(variant, flows, LARGE[SINGLE, SLOW])
        apart = tuple(table(**{**dict(other), "proxies": ()}) for other in shared.get("flows"))
        ways = {
            "end to end": shared.but(("flows", apart), (POOL, None), proxy=NONE),
            "on board, one cache": shared,
            "on board, cache divided": shared.but(*divided(shared)),
        }
        for way, each in ways.items():
            points.append(mean_point(f"{name_of(variant)}, {way}", flows, lab.sample(each, _jain)))
    return points


def _later(lab: Lab) -> list[Point]:
    points = []
    cases: dict[str, tuple[str, tuple[Change, ...]]] = {f"{name_of(each)}, ns-2": (each, ()) for each in VARIANTS}
    cases |= {f"{each}, Linux": (each, _LINUX) for each in LATER}
    cases["cubic with HyStart++, Linux"] = ("cubic", (*_LINUX, ("flow.slow_start", "hystartpp")))
    for (name, (variant, changes)), proxy in product(cases.items(), (NONE, SPLIT)):
        each = cell(SINGLE, NEWRENO, proxy, FAST, WORST).but(*changes, variant=variant)
        points.append(mean_point(_PLACES[proxy], None, goodputs(lab, each), name))
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
    Figure("extra-fair", "Fair sharing of one channel, 1 Mbit/s, BER 1e-6", "Flows", "Jain's index", "line", _fair),
    Figure("extra-later", "What came later, 20 Mbit/s, BER 1e-6", "", _KBPS, "bar", _later),
)
