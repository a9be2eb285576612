"""The figures of Shang, Hadjitheodosiou and Baras 2005 with the paper's axes."""

from __future__ import annotations

from functools import partial

from hindflight.replay.papers.aerotcp.cells import BERS, SCHEMES, response_s, ten, utilisation
from hindflight.replay.papers.aerotcp.units import aerotcp_example
from hindflight.replay.papers.lab import Lab, Metric, mean_point
from hindflight.replay.papers.model import Figure, Point


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
