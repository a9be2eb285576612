"""The figures of Lee et al. 2020 with the paper's axes."""

from __future__ import annotations

from functools import partial

from hindflight.replay.papers.asran import model
from hindflight.replay.papers.asran.cells import (
    ASRAN_NEWRENO,
    CUBIC,
    FLOWS,
    HEAVY,
    INSTABILITY,
    NEWRENO,
    break_of,
    exchange,
    goodput_of,
    per_second,
)
from hindflight.replay.papers.asran.judges import spans_of
from hindflight.replay.papers.lab import Lab, mean_point
from hindflight.replay.papers.model import Cell, Figure, Point, table

SHOWN_S = 120
"""Seconds of a run that a figure shows."""


OFFERED = INSTABILITY.but(("links.adhoc.channel", table(model="uav", rate="1 Mbit/s")))
"""Section 3.1 offers 1000 kbit/s, which the full rate of the path carries."""


def _distribution(lab: Lab) -> list[Point]:
    spans = [span for seed in lab.seeds for span in spans_of(lab.read(OFFERED), seed)]
    whole = sum(length for _, length in spans)
    rates = sorted({rate for rate, _ in spans})
    shares = [sum(length for rate, length in spans if rate <= limit) / whole for limit in rates]
    return [Point("unstable path", rate / 1e6, share) for rate, share in zip(rates, shares, strict=True)]


def _curves(_lab: Lab) -> list[Point]:
    xs = [0.0, *model.times()]
    curves = {"ASRAN": model.asran_window, "CUBIC": model.cubic_window}
    return [Point(name, x, curve(x)) for name, curve in curves.items() for x in xs]


def _shared(cell: Cell, lab: Lab) -> list[Point]:
    run = per_second(lab, cell)[0]
    return [
        Point(name, float(at), float(value))
        for flow, name in FLOWS.items()
        for at, value in enumerate(run.per_second[flow][:SHOWN_S])
    ]


def _exchanged(lab: Lab) -> list[Point]:
    names = {NEWRENO: "NewReno", ASRAN_NEWRENO: "ASRAN"}
    return [
        Point(name, float(at), float(value))
        for variant, name in names.items()
        for at, value in enumerate(per_second(lab, exchange(variant))[0].per_second[CUBIC])
    ]


ROUTING_S = (5.0, 10.0, 15.0, 30.0)
"""Intervals of the routing protocol, after which it finds the new path."""


def _routing(lab: Lab) -> list[Point]:
    names = {NEWRENO: "NewReno", ASRAN_NEWRENO: "ASRAN", "cubic": "CUBIC", "bbr": "BBR"}
    points = []
    for variant, name in names.items():
        for interval_s in ROUTING_S:
            found = lab.sample(exchange(variant, *break_of(interval_s)), "goodput_bps")
            points.append(mean_point(name, interval_s, found / 1e6))
    return points


def _means(lab: Lab) -> list[Point]:
    cells = {"instability only": INSTABILITY, "heavy traffic": HEAVY}
    return [
        mean_point(name, None, goodput_of(flow, lab, cell), label=label)
        for label, cell in cells.items()
        for flow, name in FLOWS.items()
    ]


_TIME, _MBPS = "Time [s]", "Throughput [Mbit/s]"
FIGURES = (
    Figure(
        "fig1",
        "Figure 1: distribution of the throughput of a second",
        _MBPS,
        "Share of the seconds",
        "step",
        _distribution,
    ),
    Figure("fig3", "Figure 3: model of the window after a loss", "x", "Window", "line", _curves),
    Figure("fig5", "Figure 5: two flows over an unstable path", _TIME, _MBPS, "step", partial(_shared, INSTABILITY)),
    Figure("fig6", "Figure 6: with a heavy third flow", _TIME, _MBPS, "step", partial(_shared, HEAVY)),
    Figure("fig8", "Figure 8: two relays exchange their places", _TIME, _MBPS, "step", _exchanged),
    Figure("tables", "Tables 1 and 2: mean throughput", "", _MBPS, "bar", _means),
)
EXTRAS = (
    Figure("routing", "Break by the interval of the routing protocol", "Routing interval [s]", _MBPS, "line", _routing),
)
