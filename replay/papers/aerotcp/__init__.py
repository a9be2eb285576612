"""Shang, Hadjitheodosiou and Baras 2005: AeroTCP between a ground and an aircraft gateway over GEO.

The paths and their sources are in data/scenarios/aerotcp.toml and aerotcp-one.toml, the claims in data/claims-004.toml.
"""

from __future__ import annotations

from hindflight.replay.papers.aerotcp.figures import EXTRAS, FIGURES
from hindflight.replay.papers.aerotcp.judges import judge
from hindflight.replay.papers.aerotcp.readings import CHOICES, EXPERIMENTS, READINGS
from hindflight.replay.papers.model import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    number="004",
    name="aerotcp",
    title="AeroTCP: a Splitting Transport Protocol for an IP-based Satellite Network",
    citation="Y. Shang, M. Hadjitheodosiou and J. S. Baras, AIAA ICSSC, 2005",
    scenarios=("aerotcp", "aerotcp-one"),
    choices=CHOICES,
    readings=READINGS,
    judges=judge,
    figures=FIGURES,
    experiments=EXPERIMENTS,
    extras=EXTRAS,
    not_built=(
        "a central scheduler and rate-based flow control between gateways: future work of the paper, without a rule",
        "T/TCP: the engine sends no data before the handshake is over",
        "a priority queue for safety traffic: `priority` of docs/queues.md, but the paper gives no traffic for it",
    ),
)
