"""How far Linux itself varies over recordings of one run: the same link and flows, other random losses.

Depends on recordings only. The recorder's `repeat` writes LINK.1-reno, LINK.2-reno, … for a run LINK-reno.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev

from scipy.special import stdtrit

from validation.captures.report import disturbed
from validation.judge import Check
from validation.measured import QUANTILES, measure_kernel
from validation.recorded import find_runs, read_run

RECORDINGS = 5
"""Recordings of a run from which its spread counts, that which is judged among them."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What the repeated recordings of a flow gave, by the metric of a check: goodput in bit/s, quartiles of cwnd in
    packets."""

    measured: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def holds(self, check: Check) -> bool:
        """Whether a value lies within what Linux's recordings gave; never within that of too few of them."""
        linux = self._recorded(check)
        return check.value is not None and len(linux) >= RECORDINGS and min(linux) <= check.value <= max(linux)

    def predicts(self, check: Check) -> bool:
        """Whether a value lies within Student's 95 % prediction interval of one more recording, from those that there
        are; never within that of too few of them. The range of five holds a sixth in 4 of 6 cases only."""
        linux = self._recorded(check)
        if check.value is None or len(linux) < RECORDINGS:
            return False
        count = len(linux)
        half = stdtrit(count - 1, 0.975) * stdev(linux) * math.sqrt(1 + 1 / count)
        return bool(abs(check.value - mean(linux)) <= half)

    def _recorded(self, check: Check) -> list[float]:
        """Return what Linux gave: the recording that is judged, then its repetitions."""
        return [check.reference, *self.measured.get(check.metric, [])]


def spreads_of(folder: Path) -> Mapping[tuple[str, int], Spread]:
    """Return the spread of each flow that `folder` has repeated recordings of, by name of the run and number of the
    flow. Disturbed recordings are left out. LogError if there is none."""
    spreads: dict[tuple[str, int], Spread] = defaultdict(Spread)
    for path in find_runs(folder):
        if disturbed(path):
            continue
        link, _, control = path.name.rpartition("-")
        run = f"{link.rpartition('.')[0]}-{control}"
        for number, flow in enumerate(read_run(path).flows):
            kernel, found = measure_kernel(flow), spreads[run, number].measured
            found["goodput"].append(kernel.goodput_bps)
            for q, window in zip(QUANTILES, kernel.cwnd_quantiles or (), strict=False):
                found[f"cwnd_p{100 * q:.0f}"].append(window)
    return spreads
