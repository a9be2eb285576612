"""Luglio et al. 2004: a split proxy on board a GEO satellite, for NewReno and Westwood, with and without shadowing.

The paths and their sources are in data/scenarios/onboard-*.toml, the claims in data/claims-003.toml.
"""

from __future__ import annotations

from hindflight.replay.papers.model import Paper
from hindflight.replay.papers.onboard_split.cells import SCENARIOS
from hindflight.replay.papers.onboard_split.extras import EXTRAS
from hindflight.replay.papers.onboard_split.figures import FIGURES
from hindflight.replay.papers.onboard_split.judges import judge
from hindflight.replay.papers.onboard_split.readings import CHOICES, EXPERIMENTS, READINGS

__all__ = ["PAPER"]

PAPER = Paper(
    number="003",
    name="onboard-split",
    title="On-Board Satellite 'Split TCP' Proxy",
    citation="M. Luglio et al., IEEE JSAC 22(2), 2004; ns-2",
    scenarios=SCENARIOS,
    choices=CHOICES,
    readings=READINGS,
    judges=judge,
    figures=FIGURES,
    experiments=EXPERIMENTS,
    min_runs=100,
    min_runs_of=dict.fromkeys(("003-C23", "003-C24", "003-C26", "003-C27", "003-C35", "003-C36"), 1000),
    extras=EXTRAS,
    beyond=(
        "both terminals shadowed: 003-C27 and C36",
        "bit errors and shadowing on one uplink: every scenario with a street",
        "flows that share one channel and one cache: 003-C10",
        "flows of different round-trip times: 003-C37",
    ),
)
