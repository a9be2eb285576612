"""Palazzi et al. 2005: Westwood and split proxies between a user, a HAPS or UAV, a truck and a GEO satellite.

The path and its sources are in data/scenarios/haps-split.toml, the claims in data/claims-000.toml.
"""

from __future__ import annotations

from hindflight.replay.papers.haps_split.cells import DIRECTIONS
from hindflight.replay.papers.haps_split.extras import EXTRAS
from hindflight.replay.papers.haps_split.figures import FIGURES
from hindflight.replay.papers.haps_split.judges import judge
from hindflight.replay.papers.haps_split.readings import CHOICES, EXPERIMENTS, READINGS
from hindflight.replay.papers.model import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    number="000",
    name="haps-split",
    title="Enhancing Transport Layer Capability in HAPS-Satellite Integrated Architecture",
    citation="C. E. Palazzi et al., 2005; ns-2.1b8a",
    scenarios=DIRECTIONS,
    choices=CHOICES,
    readings=READINGS,
    judges=judge,
    figures=FIGURES,
    experiments=EXPERIMENTS,
    extras=EXTRAS,
    not_built=(
        "several HAPS or UAVs and links between them: more links in series, on which the text gives no loss or delay",
        "path diversity: the engine sends each flow over one path",
        "multicast behind a splitter: the engine has no multicast",
    ),
)
