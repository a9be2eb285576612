"""How wide an interval of a prediction has to be: every variant of a recorded link predicted from the captures of the
others, compared with its own recording.

`python -m validation.calibration DIR...` prints the factor of `hindflight.replay.experiment.prediction`, by split
conformal prediction. DIR holds runs named LINK-reno, LINK-cubic, LINK-bbr. The recordings used here must not be those
on which the coverage of intervals is quoted.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hindflight.replay.experiment.prediction import LINK_MARGIN
from hindflight.toolkit.errors import HindflightError
from validation.captures.whatif import Pair, ask_all

COVERAGE = 0.95
"""Share of intervals that shall hold what was recorded."""

MIN_PAIRS = 19
"""Pairs from which a quantile of 95 % exists: (n + 1) 0.95 <= n."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factor, and the number of pairs of each class of links that it comes from."""

    factor: float
    pairs: dict[str, int]


def calibrate(pairs: Sequence[Pair]) -> Calibration:
    """Return the factor: the conformal quantile of the distances of all pairs.

    HindflightError if there are fewer than MIN_PAIRS: their largest distance bounds no 95 %.
    """
    found = [(pair.group, distance) for pair in pairs if (distance := deviations(pair)) is not None]
    if len(found) < MIN_PAIRS:
        raise HindflightError(f"{len(found)} pairs with a prediction; a quantile of 95 % takes {MIN_PAIRS} or more")
    groups = [group for group, _ in found]
    return Calibration(
        factor=round(_quantile(sorted(distance for _, distance in found)), 1),
        pairs={name: groups.count(name) for name in sorted(set(groups))},
    )


def deviations(pair: Pair) -> float | None:
    """Return the distance of what was recorded, in units of the deviation of the prediction; None without one.

    It is infinite beyond the capacity of the link, where the interval ends: no factor moves that. An interval may end
    nearer than the factor says, behind its outermost draw: how many hold what was recorded is counted elsewhere.
    """
    if pair.mean is None or pair.deviations is None:
        return None
    distance = math.log(pair.recorded / pair.mean)
    above = distance > 0
    if pair.capacity is not None and pair.recorded > max(pair.capacity, pair.mean) * math.exp(LINK_MARGIN):
        return math.inf
    return abs(distance) / pair.deviations[above]


def _quantile(values: Sequence[float]) -> float:
    """Return the conformal quantile of MIN_PAIRS values or more: the ceil((n + 1) 0.95)-th smallest."""
    return values[math.ceil((len(values) + 1) * COVERAGE) - 1]


def held_out(folders: Mapping[str, Sequence[Pair]]) -> dict[str, float]:
    """Return for each folder the share of its pairs that the factor of all others holds.

    HindflightError if the others have fewer than MIN_PAIRS.
    """
    shares = {}
    for name, pairs in folders.items():
        factor = calibrate([pair for other in folders if other != name for pair in folders[other]]).factor
        distances = [distance for pair in pairs if (distance := deviations(pair)) is not None]
        if distances:
            shares[name] = sum(distance <= factor for distance in distances) / len(distances)
    return shares


def _all_pairs(folder: Path, links: int | None) -> list[Pair]:
    _, pairs = ask_all(folder, lambda done, of: print(f"{folder}: {done} of {of}", file=sys.stderr, flush=True), links)
    for pair in pairs:
        print(json.dumps(asdict(pair)), flush=True)
    return pairs


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the factor of all pairs of some folders, and the share of the pairs of each that the factor of the others
    holds; return the exit code, 2 for too few pairs."""
    parser = argparse.ArgumentParser(prog="python -m validation.calibration")
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--links", type=int, help="the first links of each folder only")
    chosen = parser.parse_args(arguments)
    folders = {str(folder): _all_pairs(folder, chosen.links) for folder in chosen.folders}
    try:
        found = asdict(calibrate([pair for pairs in folders.values() for pair in pairs]))
        if len(folders) > 1:
            found["held_out"] = held_out(folders)
    except HindflightError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
