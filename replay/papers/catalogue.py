"""The papers by name, each imported when it is reproduced."""

from __future__ import annotations

from importlib import import_module

from hindflight.replay.papers.model import Paper
from hindflight.toolkit.errors import HindflightError

PAPERS = {
    "haps-split": "hindflight.replay.papers.haps_split",
    "hybrid-handover": "hindflight.replay.papers.hybrid_handover",
    "asran": "hindflight.replay.papers.asran",
    "onboard-split": "hindflight.replay.papers.onboard_split",
    "aerotcp": "hindflight.replay.papers.aerotcp",
}
"""Module of each paper, in the order of their numbers."""


def paper_of(name: str) -> Paper:
    """Return the paper called `name`; HindflightError if there is none."""
    if name not in PAPERS:
        raise HindflightError(f"no paper is called {name!r}; choose one of {', '.join(PAPERS)}, all")
    paper: Paper = import_module(PAPERS[name]).PAPER
    return paper
