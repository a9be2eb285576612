"""Beyond the figures of Palazzi et al. 2005: other places of the proxy, variants per connection, several flows, a
handoff, and what came later. `hindflight reproduce haps-split --extra` draws them."""

from __future__ import annotations

from itertools import product

from hindflight.replay.papers.haps_split.cells import (
    DOUBLE,
    HIGH,
    NEWRENO,
    NONE,
    TRANSFER,
    TRUCK,
    VARIANTS,
    WESTWOOD,
    cell,
    describe,
    goodput_kbps,
    time_s,
)
from hindflight.replay.papers.lab import Lab, Rows, mean_point
from hindflight.replay.papers.model import Cell, Change, Figure, Point, table

HAPS, SATELLITE = "haps", "satellite"
FLOWS = (1, 2, 5, 10)
BREAKS_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Time that the user behind a building has no link, before another HAPS serves."""
LATER = ("cubic", "bbr", "bbr3", "westwood-plus", "hybla")
_NAMES = {NEWRENO: "NewReno", WESTWOOD: "Westwood"}
_PLACES = {NONE: "none", HAPS: "U", TRUCK: "T", SATELLITE: "S", DOUBLE: "T and S"}
_LINUX: tuple[Change, ...] = (
    ("flow.profile", "linux"),
    ("flow.mss", None),
    ("flow.initial_ssthresh", None),
    ("flow.receive_buffer", None),
)
"""The stack of today's Linux: RACK, PRR, and its own buffers."""


def _places(lab: Lab) -> list[Point]:
    points = []
    for variant, (proxy, place) in product(VARIANTS, _PLACES.items()):
        samples = lab.sample(cell(variant, proxy, HIGH, TRANSFER), time_s)
        points.append(mean_point(_NAMES[variant], None, samples, f"proxy: {place}"))
    return points


def _legs(lab: Lab) -> list[Point]:
    points = []
    for first, second in product(VARIANTS, VARIANTS):
        each = cell(first, TRUCK, HIGH, TRANSFER).but(("proxy.truck.variant", second))
        points.append(
            mean_point("W to G", None, lab.sample(each, time_s), f"{_NAMES[first]} to T, {_NAMES[second]} on")
        )
    return points


def _sum_kbps(rows: Rows) -> float:
    return sum(float(row["goodput_bps"]) for row in rows) / 1e3


def with_flows(base: Cell, flows: int) -> Cell:
    """Return `base` with so many equal flows, each with a cache of its own."""
    stack = {"profile": "ns2", "mss": "1460 B", "initial_ssthresh": "42 pkts", "receive_buffer": "1 MiB"}
    chain = {} if base.proxy == NONE else {"proxies": tuple(base.proxy.split("+"))}
    others = tuple(table(name=f"other{n}", variant=base.variant, **chain, **stack) for n in range(1, flows))
    return base.but(("flows", others)) if others else base


def _flows(lab: Lab) -> list[Point]:
    points = []
    for variant, proxy, flows in product(VARIANTS, (NONE, TRUCK), FLOWS):
        base = cell(variant, proxy, HIGH)
        points.append(mean_point(describe(base), flows, lab.sample(with_flows(base, flows), _sum_kbps)))
    return points


def _handoffs(lab: Lab) -> list[Point]:
    points = []
    for variant, proxy, break_s in product(VARIANTS, (NONE, TRUCK), BREAKS_S):
        base = cell(variant, proxy, HIGH, TRANSFER)
        events = (table(at="20 s", outage=True), table(at=f"{20 + break_s:g} s", outage=False)) if break_s else ()
        each = base.but(("links.W-U.changes", events)) if events else base
        points.append(mean_point(describe(base), break_s, lab.sample(each, time_s)))
    return points


def _later(lab: Lab) -> list[Point]:
    points = []
    cases: dict[str, tuple[str, tuple[Change, ...]]] = {f"{each}, ns-2": (each, ()) for each in VARIANTS}
    cases |= {f"{each}, Linux": (each, _LINUX) for each in LATER}
    cases["cubic with HyStart++, Linux"] = ("cubic", (*_LINUX, ("flow.slow_start", "hystartpp")))
    for (name, (variant, changes)), proxy in product(cases.items(), (NONE, TRUCK)):
        each = cell(NEWRENO, proxy, HIGH).but(*changes, variant=variant)
        points.append(mean_point(f"proxy: {_PLACES[proxy]}", None, lab.sample(each, goodput_kbps), name))
    return points


EXTRAS = (
    Figure(
        "extra-places", "Other places of the proxy: time for 5 MB, PER 1 %", "", "Time for 5 MB [s]", "bar", _places
    ),
    Figure("extra-legs", "A variant per connection: time for 5 MB, PER 1 %", "", "Time for 5 MB [s]", "bar", _legs),
    Figure("extra-flows", "Several flows, PER 1 %", "Flows", "Sum of goodputs [kbit/s]", "line", _flows),
    Figure(
        "extra-handoff",
        "Handoff behind a building: time for 5 MB, PER 1 %",
        "Time without a link [s]",
        "Time for 5 MB [s]",
        "line",
        _handoffs,
    ),
    Figure("extra-later", "What came later, PER 1 %", "", "Goodput [kbit/s]", "bar", _later),
)
