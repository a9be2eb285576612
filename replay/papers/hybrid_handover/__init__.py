"""PSATS 2012: real TCP stacks and PEPsal over handovers between a satellite and a wired network.

The path and its sources are in data/scenarios/hybrid-handover.toml, the claims in data/claims-001.toml.
"""

from __future__ import annotations

from hindflight.replay.papers.hybrid_handover.cells import MAX_QUICK_RUNS, MAX_RUNS
from hindflight.replay.papers.hybrid_handover.figures import EXTRAS, FIGURES
from hindflight.replay.papers.hybrid_handover.judges import judge
from hindflight.replay.papers.hybrid_handover.readings import CHOICES, EXPERIMENTS, READINGS
from hindflight.replay.papers.model import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    number="001",
    name="hybrid-handover",
    title="Which Transport Protocol for Hybrid Terrestrial and Satellite Systems?",
    citation="PSATS 2012; a testbed with netem, iperf, PEPsal and WEB100",
    scenarios=("hybrid-handover",),
    choices=CHOICES,
    readings=READINGS,
    judges=judge,
    figures=FIGURES,
    experiments=EXPERIMENTS,
    extras=EXTRAS,
    max_runs=MAX_RUNS,
    max_quick_runs=MAX_QUICK_RUNS,
)
