"""Two captures or workspaces compared: what changed, and whether conditions on it fire.

Puts the packages together; hindflight.replay.experiment.change has the statistics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.replay.experiment.change import (
    UNITS,
    Change,
    Condition,
    Outcome,
    compare_flights,
    compare_run_sets,
    flight_samples,
    run_samples,
)
from hindflight.toolkit.errors import HindflightError, did_you_mean

if TYPE_CHECKING:
    from hindflight.toolkit.workspace import Workspace

FIRED, TOO_LITTLE = 4, 5
"""Exit codes of `hindflight compare`: a condition fires; a condition (or all of the comparison) has too little data."""

_CONDITION = re.compile(
    r"\s*(?:(?P<subject>.+?):)?\s*(?P<metric>\w+)\s*(?P<sign>[<>])\s*(?P<bound>[-+−]?\d+(\.\d+)?)\s*%\s*"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one condition on one change."""

    condition: str
    subject: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Comparison:
    """All changes from A to B, and the verdicts of the conditions on them."""

    changes: tuple[Change, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def exit_code(self) -> int:
        """Return FIRED if a condition fires, TOO_LITTLE if one (or every change) has too little data, else 0."""
        outcomes = {verdict.outcome for verdict in self.verdicts}
        if "fires" in outcomes:
            return FIRED
        if "too little data" in outcomes or not any(change.known for change in self.changes):
            return TOO_LITTLE
        return 0


def compare_sources(before: Path, after: Path, fail_if: Sequence[str] = ()) -> Comparison:
    """Compare two captures or workspaces: the flow with the most data of each, and the runs that both have.

    HindflightError: a condition is wrong, or the two have nothing to compare. CaptureError, WorkspaceError: a source is
    wrong.
    """
    from hindflight.toolkit.source import open_source

    conditions = [parse_condition(text) for text in fail_if]
    with open_source(before) as one, open_source(after) as other:
        changes = changes_between(one.workspace, other.workspace)
    if not changes:
        raise HindflightError(
            f"{before} and {after} have nothing to compare: neither a captured flow each, nor runs of the same variant"
        )
    verdicts = []
    for condition in conditions:
        subjects = [change for change in changes if condition.applies(change)]
        if not subjects:
            raise HindflightError(
                f"--fail-if {condition.text!r}: nothing to compare has this metric",
                "compared are: " + ", ".join(dict.fromkeys(f"{c.subject}: {c.metric}" for c in changes)),
            )
        verdicts += [Verdict(condition.text, change.subject, condition.judge(change)) for change in subjects]
    return Comparison(tuple(changes), tuple(verdicts))


def parse_condition(text: str) -> Condition:
    """Return a condition such as "goodput < -5%" or "cubic: rtt_p95 > 10 %". HindflightError if it is none."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise HindflightError(
            f"--fail-if {text!r} is not a condition", 'write METRIC < BOUND% or METRIC > BOUND%, as in "goodput < -5%"'
        )
    if match["metric"] not in UNITS:
        raise HindflightError(
            f"--fail-if {text!r}: {match['metric']} is not compared", did_you_mean(match["metric"], UNITS)
        )
    bound = float(match["bound"].replace("\N{MINUS SIGN}", "-"))
    return Condition(text, match["metric"], match["sign"] == "<", bound, (match["subject"] or "").strip())


def changes_between(before: Workspace, after: Workspace) -> list[Change]:
    """Return what changed between the captured flows with the most data, and between runs of the same subject."""
    flights = [_flight(workspace) for workspace in (before, after)]
    runs = [run_samples(workspace.table("runs").to_pylist()) for workspace in (before, after)]
    return [*compare_flights(*flights), *compare_run_sets(*runs)]


def _flight(workspace: Workspace) -> dict[str, list[float]]:
    """Return the samples of the captured flow with the most data; none without a captured flow."""
    from hindflight.toolkit.captured_flow import read_flow

    try:
        flow = read_flow(workspace, None)
    except HindflightError:
        return {}
    return flight_samples(flow.tables["segments"], flow.direction)
