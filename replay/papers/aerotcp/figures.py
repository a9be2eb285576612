"""The figures of Shang, Hadjitheodosiou and Baras 2005 with the paper's axes."""

from __future__ import annotations

from functools import partial

from hindflight.replay.papers.aerotcp.cells import (
    BERS,
    MEDIA,
    PAGES,
    SCHEMES,
    SPLIT,
    one,
    page_s,
    response_s,
    stalled_s,
    ten,
    utilisation,
)
from hindflight.replay.papers.aerotcp.units import aerotcp_example
from hindflight.replay.papers.lab import Lab, Metric, mean_point
from hindflight.replay.papers.model import Change, Figure, Point


def _over_ber(metric: Metric, lab: Lab) -> list[Point]:
    return [
        mean_point(scheme, None, lab.sample(ten(scheme, ber), metric), label=f"{ber:g}")
        for scheme in SCHEMES
        for ber in BERS
    ]


def _example(_lab: Lab) -> list[Point]:
    return [Point("again" if each.again else "first time", each.at_ms, each.number) for each in aerotcp_example()]


FIGURES = (
    Figure(
        "fig4", "Figure 4: AeroTCP with a window of 8, packets 1 and 2 lost", "Time [ms]", "Packet", "line", _example
    ),
    Figure(
        "fig5",
        "Figure 5: utilisation of the satellite link",
        "Bit error rate",
        "Utilisation",
        "bar",
        partial(_over_ber, utilisation),
    ),
    Figure(
        "fig6",
        "Figure 6: response time of a file of 1.6 MB",
        "Bit error rate",
        "Response time [s]",
        "bar",
        partial(_over_ber, response_s),
    ),
)


def _other_traffic(traffic: tuple[Change, ...], metric: Metric, lab: Lab) -> list[Point]:
    return [
        mean_point(scheme, None, lab.sample(one(scheme, ber).but(*traffic), metric), label=f"{ber:g}")
        for scheme in SCHEMES
        for ber in BERS
    ]


def _later(lab: Lab) -> list[Point]:
    points = []
    for variant in ("cubic", "hybla", "bbr", "bbr3"):
        for ber in BERS:
            cell = ten(SPLIT, ber).but(("proxy.ground.variant", variant))
            points.append(mean_point(f"split, {variant}", None, lab.sample(cell, utilisation), label=f"{ber:g}"))
    return points + _over_ber(utilisation, lab)


_BER = "Bit error rate"
EXTRAS = (
    Figure("pages", "Pages of 50 kB", _BER, "Median time of a page [s]", "bar", partial(_other_traffic, PAGES, page_s)),
    Figure("media", "Media of 300 kbit/s", _BER, "Stalled [s]", "bar", partial(_other_traffic, MEDIA, stalled_s)),
    Figure("later", "What came later on the satellite link", _BER, "Utilisation", "bar", _later),
)
