"""How far Linux's own numbers vary over recordings of one run: the same path and the same losses.

A path without losses is recorded alike every time; one with losses has a run for each of its seeds. Recordings that are
made again lie in the folder `again`, next to the runs that they repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from hindflight.toolkit.errors import LogError
from validation.judge import Check
from validation.relay.recorded import RelayRun, find_relay_runs, read_relay_run

AGAIN = "again"
RECORDINGS = 5
"""Recordings of a run from which its spread counts."""

Numbers = Mapping[str, float]
"""What is judged of a run, by metric."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The numbers of Linux in each recording of one run."""

    recordings: tuple[Numbers, ...]

    def holds(self, check: Check) -> bool:
        """Whether the value lies between the minimum and the maximum of the recordings; never with too few of them."""
        found = [numbers[check.metric] for numbers in self.recordings]
        return len(found) >= RECORDINGS and check.value is not None and min(found) <= check.value <= max(found)

    def agreement(self, shares: Numbers) -> tuple[int, int]:
        """Return how many pairs of recordings differ by at most these shares of the first, and how many there are."""
        pairs = list(combinations(self.recordings, 2))
        alike = sum(
            all(abs(other[metric] - one[metric]) <= share * one[metric] for metric, share in shares.items())
            for one, other in pairs
        )
        return alike, len(pairs)


def same_run(run: RelayRun) -> str:
    """Return a key that the recordings of one run share."""
    path, _, seed = run.name.rpartition(".")
    lossy = any(leg.params["loss"] != "none" for leg in run.legs)
    return f"{path}.{seed}" if lossy else path


def recorded_again(folder: Path) -> Sequence[RelayRun]:
    """Return the recordings that repeat the runs of `folder`, if there are any."""
    try:
        return [read_relay_run(path) for each in sorted((folder / AGAIN).glob("*")) for path in find_relay_runs(each)]
    except LogError as error:
        raise LogError(f"{folder / AGAIN}: {error.message}", "remove what is no recording from it") from error
