"""How far the goodput of Linux itself varies over recordings of one run: the same link and flows, other random losses.

Depends on recordings only. The recorder's `repeat` writes LINK.1-reno, LINK.2-reno, … for a run LINK-reno.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from validation.captures.report import disturbed
from validation.measured import measure_kernel
from validation.recorded import find_runs, read_run

REPEATS = 5
"""Recordings of a run from which its spread counts."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The lowest and the highest goodput of a flow over `recordings` of its run, in bit/s."""

    low_bps: float
    high_bps: float
    recordings: int

    def holds(self, goodput_bps: float) -> bool:
        """Whether a goodput lies within the spread; never within that of too few recordings."""
        return self.recordings >= REPEATS and self.low_bps <= goodput_bps <= self.high_bps


def spreads_of(folder: Path) -> Mapping[tuple[str, int], Spread]:
    """Return the spread of each flow that `folder` has repeated recordings of, by name of the run and number of the
    flow. Disturbed recordings are left out. LogError if there is none."""
    goodputs: dict[tuple[str, int], list[float]] = defaultdict(list)
    for path in find_runs(folder):
        if disturbed(path):
            continue
        link, _, control = path.name.rpartition("-")
        run = f"{link.rpartition('.')[0]}-{control}"
        for number, flow in enumerate(read_run(path).flows):
            goodputs[run, number].append(measure_kernel(flow).goodput_bps)
    return {key: Spread(min(found), max(found), len(found)) for key, found in goodputs.items()}
