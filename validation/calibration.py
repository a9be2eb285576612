"""How wide an interval of a prediction has to be: every variant of a recorded link predicted from the captures of the
others, compared with its own recording.

`python -m validation.calibration DIR...` prints the factors of `hindflight.replay.experiment.prediction`, by split
conformal prediction. DIR holds runs named LINK-reno, LINK-cubic, LINK-bbr. The recordings used here must not be those
on which the coverage of intervals is quoted.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from hindflight.replay.experiment.prediction import FACTORS, Circumstance
from validation.captures.whatif import Pair, ask_all

COVERAGE = 0.95
"""Share of intervals that shall hold what was recorded."""

MIN_PAIRS = 19
"""Pairs from which a quantile of 95 % exists: (n + 1) 0.95 <= n."""


def calibrate(pairs: Sequence[Pair]) -> dict[Circumstance, float]:
    """Return the factor of each circumstance: the conformal quantile of its distances."""
    distances = [(pair.circumstance, distance) for pair in pairs if (distance := deviations(pair)) is not None]
    by = {name: sorted(distance for other, distance in distances if other == name) for name in FACTORS}
    known = {name: _quantile(values) for name, values in by.items() if len(values) >= MIN_PAIRS}
    widest = max(known.values(), default=_quantile(sorted(distance for _, distance in distances)))
    return {name: round(known.get(name, widest), 1) for name in FACTORS}


def deviations(pair: Pair) -> float | None:
    """Return the distance of what was recorded, in units of the deviation of the prediction; None without one."""
    if pair.circumstance is None or pair.mean is None or pair.low is None or pair.high is None:
        return None
    distance = math.log(pair.recorded / pair.mean)
    half_width = abs(math.log((pair.high if distance > 0 else pair.low) / pair.mean))
    return abs(distance) * FACTORS[pair.circumstance] / half_width


def _quantile(values: Sequence[float]) -> float:
    """Return the conformal quantile: the ceil((n + 1) 0.95)-th smallest, at most the largest."""
    return values[min(len(values), math.ceil((len(values) + 1) * COVERAGE)) - 1]


def _all_pairs(folder: Path) -> Iterator[Pair]:
    _, pairs = ask_all(folder, lambda done, of: print(f"{folder}: {done} of {of}", file=sys.stderr, flush=True))
    for pair in pairs:
        print(json.dumps(asdict(pair)), flush=True)
        yield pair


if __name__ == "__main__":
    print(json.dumps(calibrate([pair for folder in sys.argv[1:] for pair in _all_pairs(Path(folder))])))
