"""Lee et al. 2020: ASRAN, a threshold that restores the window after losses of an unstable link, between UAVs.

The paths and their sources are in data/scenarios/asran.toml and asran-exchange.toml, the claims in
data/claims-002.toml.
"""

from __future__ import annotations

from hindflight.replay.papers.asran.figures import EXTRAS, FIGURES
from hindflight.replay.papers.asran.judges import judge
from hindflight.replay.papers.asran.readings import CHOICES, EXPERIMENTS, READINGS
from hindflight.replay.papers.model import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    number="002",
    name="asran",
    title="Adaptive TCP Transmission Adjustment for UAV Network Infrastructure",
    citation="J. Y. Lee, W. Lee, H. Kim and H. Kim, Applied Sciences 10(3), 1161, 2020",
    scenarios=("asran", "asran-exchange"),
    choices=CHOICES,
    readings=READINGS,
    judges=judge,
    figures=FIGURES,
    experiments=EXPERIMENTS,
    extras=EXTRAS,
    beyond=(
        "the rate of the path as a distribution: figure 1",
        "what came later (cubic, bbr): in the figure on the routing interval",
    ),
    not_built=(
        "MPTCP with ASRAN and its model: the engine has no MPTCP",
        "the way of each UAV as relays move: the break and the longer way after it stand for the change of the route",
    ),
)
