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
    MIN_BLOCKS,
    MIN_ROUND_TRIPS,
    UNITS,
    Change,
    Condition,
    Flight,
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
    """All changes from A to B, the verdicts of the conditions on them, and what a flight lacks for an interval."""

    changes: tuple[Change, ...]
    verdicts: tuple[Verdict, ...]
    missing: tuple[str, ...] = ()

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
        flights = [_flight(source.workspace) for source in (one, other)]
        changes = _changes(flights, one.workspace, other.workspace)
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
    missing = [text for name, flight in zip("AB", flights, strict=True) if (text := _missing(name, flight))]
    return Comparison(tuple(changes), tuple(verdicts), tuple(missing))


def parse_condition(text: str) -> Condition:
    """Return a condition such as "goodput < -5%" or "cubic: rtt_p95 > 10 %". HindflightError if the text is not one."""
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
    return _changes([_flight(workspace) for workspace in (before, after)], before, after)


def _changes(flights: Sequence[Flight], before: Workspace, after: Workspace) -> list[Change]:
    runs = [run_samples(workspace.table("runs").to_pylist()) for workspace in (before, after)]
    return [*compare_flights(*(flight.samples for flight in flights)), *compare_run_sets(*runs)]


def _missing(name: str, flight: Flight) -> str:
    """Return what a flight lacks for an interval; empty if it lacks nothing or there is no flight."""
    blocks = len(flight.samples.get("goodput", ()))
    if not flight.length_ns or blocks >= MIN_BLOCKS:
        return ""
    return (
        f"{name} has {blocks} block{'' if blocks == 1 else 's'} of at least {MIN_ROUND_TRIPS} round trips of "
        f"{flight.round_trip_ns / 1e6:.4g} ms, and {MIN_BLOCKS} are needed: {flight.needed_ns / 1e9:.3g} s of data, "
        f"not {flight.length_ns / 1e9:.3g} s"
    )


def _flight(workspace: Workspace) -> Flight:
    """Return the samples of the captured flow with the most data; none without a captured flow."""
    from hindflight.toolkit.captured_flow import read_flow

    try:
        flow = read_flow(workspace, None)
    except HindflightError:
        return Flight({})
    return flight_samples(flow.tables["segments"], flow.direction)
