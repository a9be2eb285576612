"""The figures of the hybrid handover paper with its axes: sequence numbers and throughput over time."""

from __future__ import annotations

from functools import partial

import numpy as np

from hindflight.replay.papers.hybrid_handover.cells import (
    CTCP,
    CUBIC,
    DELAYS,
    END_S,
    HYBLA,
    LAST_S,
    LONG_BREAK_S,
    NAMES,
    PEPSAL,
    RATES_SATELLITE_FIRST,
    RATES_WIRED_FIRST,
    RENO,
    SHORT_BREAK_S,
    WESTWOOD,
    handovers,
    satellite,
    sequence_at,
    traces,
)
from hindflight.replay.papers.lab import Lab
from hindflight.replay.papers.model import Change, Figure, Point

STEP_S = 0.25
MSS_BYTES = 1448
LATER = (CUBIC, CTCP, "bbr", "bbr3")
VERSIONS = (HYBLA, CUBIC, CTCP)
ALL = (HYBLA, CUBIC, CTCP, RENO, WESTWOOD)
WITH_PROXY = (HYBLA, CUBIC, CTCP, RENO, PEPSAL)


def _sequence(path: tuple[Change, ...], flows: tuple[str, ...], lab: Lab) -> list[Point]:
    points = []
    for flow, found in traces(lab, flows, path, maximum=1).items():
        for at_s in np.arange(0.0, END_S + STEP_S, STEP_S):
            name = NAMES.get(flow, flow)
            points.append(Point(name, float(at_s), sequence_at(lab, float(at_s))(found[0])))
    return points


def _throughput(lab: Lab) -> list[Point]:
    points = []
    for flow, found in traces(lab, VERSIONS, satellite(), maximum=1).items():
        for at_s in np.arange(0.0, LAST_S):
            new_mb = found[0].sent_at(at_s + 1.0) - found[0].sent_at(at_s)
            again_mb = found[0].resent(at_s, at_s + 1.0) * MSS_BYTES / 1e6
            points.append(Point(NAMES[flow], float(at_s) + 1.0, 8e3 * (new_mb + again_mb)))
    return points


def _figure(key: str, title: str, path: tuple[Change, ...], flows: tuple[str, ...]) -> Figure:
    return Figure(key, title, "Time [s]", "Sequence number [MB]", "line", partial(_sequence, path, flows))


FIGURES = (
    _figure("fig2a", "Figure 2 (a): TCP versions over the satellite", satellite(), VERSIONS),
    Figure(
        "fig2b",
        "Figure 2 (b): data sent per second, retransmissions included",
        "Time [s]",
        "Throughput [kbit/s]",
        "line",
        _throughput,
    ),
    _figure("fig3a", "Figure 3 (a): handovers that change the delay", handovers(DELAYS), ALL),
    _figure("fig3b", "Figure 3 (b): handovers that change the rate", handovers(RATES_WIRED_FIRST), ALL),
    _figure("fig4", "Figure 4 (first): with PEPsal over the satellite", satellite(), WITH_PROXY),
    _figure("fig4a", "Figure 4 (a): with PEPsal, delay", handovers(DELAYS), WITH_PROXY),
    _figure("fig4b", "Figure 4 (b): with PEPsal, rate", handovers(RATES_SATELLITE_FIRST), WITH_PROXY),
    _figure("fig5a", "Figure 5 (a): delay, break of 0.5 s", handovers(DELAYS, SHORT_BREAK_S), WITH_PROXY),
    _figure("fig5b", "Figure 5 (b): delay, break of 1 s", handovers(DELAYS, LONG_BREAK_S), WITH_PROXY),
    _figure("fig6a", "Figure 6 (a): rate, break of 0.5 s", handovers(RATES_SATELLITE_FIRST, SHORT_BREAK_S), WITH_PROXY),
    _figure("fig6b", "Figure 6 (b): rate, break of 1 s", handovers(RATES_SATELLITE_FIRST, LONG_BREAK_S), WITH_PROXY),
)
EXTRAS = (
    _figure("later", "What came later: BBR over the satellite", satellite(), LATER),
    _figure("later-delay", "What came later: delay, break of 1 s", handovers(DELAYS, LONG_BREAK_S), LATER),
    _figure("later-rate", "What came later: rate, break of 1 s", handovers(RATES_SATELLITE_FIRST, LONG_BREAK_S), LATER),
)
