"""Judges the claims of a paper: more and more runs until the verdict is certain, then the experiments that explain it.

A judge is a function of the runs alone, so the same seeds give the same verdict on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hindflight.replay.papers.lab import DEFAULT, Bench, Lab
from hindflight.replay.papers.model import Claim, Experiment, Figure, Judged, Paper, Part, Point, Reading, Verdict
from hindflight.replay.papers.reasons import failed_parts, reason_of, sentences
from hindflight.replay.papers.verdicts import holds, settled, verdict_of

NOT_TESTABLE = "not testable"
MAX_AT_ONCE = 8.0
"""Times as many runs as before are made at once: fewer runs say badly how many are needed."""
EXPLAINED: tuple[Verdict, ...] = ("reproduced", "not_testable")
"""Verdicts that need no experiment."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How many runs a claim takes: `first` to begin with, more until its intervals are narrow, and `maximum` at most.

    A reading that does not count takes at most `readings`, a figure exactly `figures`. A `quick` verdict must hold at
    99.9 %.
    """

    first: int
    maximum: int
    readings: int
    figures: int
    quick: bool


QUICK = Effort(first=10, maximum=40, readings=0, figures=10, quick=True)
FULL = Effort(first=20, maximum=1000, readings=40, figures=20, quick=False)


@dataclass(slots=True)
class Result:
    """What reproducing a paper gave: every claim under every reading, figures with their points, experiments.

    `figures` and `experiments` map keys to points; `experiments` has one key per claim that was looked into.
    """

    paper: Paper
    judged: list[Judged] = field(default_factory=list)
    figures: list[tuple[Figure, list[Point]]] = field(default_factory=list)
    experiments: list[tuple[Judged, Experiment, list[Judged]]] = field(default_factory=list)

    def under(self, reading: str) -> list[Judged]:
        """Return the claims as judged under `reading`."""
        return [judged for judged in self.judged if judged.reading == reading]


def reproduce_paper(
    paper: Paper,
    claims: Sequence[Claim],
    effort: Effort,
    bench: Bench,
    on_step: Callable[[str], None] = lambda _: None,
    *,
    extra: bool = False,
) -> Result:
    """Judge `claims`, draw the figures and, with full effort, run all readings and the experiments that explain.

    With `extra` also draw what goes beyond the paper's figures.
    """
    result = Result(paper)
    for claim in claims:
        on_step(claim.claim_id)
        judged = judge_claim(paper, claim, effort, bench)
        result.judged.append(judged if _is_explained(paper, judged) else _without_experiment(judged))
    if not effort.quick:
        _explain(result, effort, bench, on_step)
        for reading in paper.readings:
            shown = effort if reading.literal else _shown(effort)
            for claim in claims:
                on_step(f"{claim.claim_id}, {reading.name}")
                result.judged.append(judge_claim(paper, claim, shown, bench, reading))
    for figure in (*paper.figures, *(paper.extras if extra else ())):
        on_step(figure.title)
        result.figures.append((figure, figure.draw(Lab(bench, effort.figures, effort.quick))))
    return result


def _shown(effort: Effort) -> Effort:
    """Return the effort of a reading that is shown and not counted."""
    return replace(effort, maximum=effort.readings)


def judge_claim(paper: Paper, claim: Claim, effort: Effort, bench: Bench, reading: Reading = DEFAULT) -> Judged:
    """Judge one claim under one reading. A judge that takes fewer runs than it may is asked once."""
    if claim.by == NOT_TESTABLE:
        return Judged(claim, reading.name, (), "not_testable", 0, claim.untestable)
    if claim.claim_id not in paper.judges:
        raise ValueError(f"{claim.claim_id} has no judge")
    effort = _within_paper(effort, paper, claim.claim_id)
    runs = effort.first
    while True:
        lab = Lab(bench, runs, effort.quick, reading)
        try:
            parts = paper.judges[claim.claim_id](lab, claim)
        except ZeroDivisionError:
            parts = [holds("a ratio", None, note="no data arrived in the runs that it divides by")]
        taken = max(lab.taken, default=0)
        if taken < runs or runs >= effort.maximum or settled(parts, strict=effort.quick):
            break
        runs = _next(runs, parts, effort)
    verdict = verdict_of(parts, strict=effort.quick)
    return Judged(claim, reading.name, tuple(parts), verdict, taken, failed_parts(parts, verdict))


def _within_paper(effort: Effort, paper: Paper, claim_id: str) -> Effort:
    """Return `effort` with no more runs than the paper's configurations take, and with full effort no fewer than the
    paper has."""
    maximum = min(effort.maximum, paper.max_quick_runs if effort.quick else paper.max_runs)
    own = 0 if effort.quick else paper.min_runs_of.get(claim_id, paper.min_runs)
    return replace(effort, first=min(max(effort.first, own), maximum), maximum=maximum)


def _next(runs: int, parts: Sequence[Part], effort: Effort) -> int:
    """Return how many runs to make next: as many as the parts seem to need, at least half as many again, doubled for
    quick verdicts, which do not know what 99.9 % needs."""
    needed = 2.0 if effort.quick else min(MAX_AT_ONCE, 1.1 * max(part.more for part in parts))
    return int(min(effort.maximum, max(1.5, needed) * runs))


def _explain(result: Result, effort: Effort, bench: Bench, on_step: Callable[[str], None]) -> None:
    """Run the experiments of the claims that are not reproduced, and add what they showed to the reasons."""
    for at, judged in enumerate(result.judged):
        experiment = result.paper.experiments.get(judged.claim.claim_id)
        if experiment is None or judged.verdict in EXPLAINED:
            continue
        outcomes = []
        for reading in experiment.readings:
            on_step(f"{judged.claim.claim_id}, {experiment.assumption}: {reading.name}")
            outcome = judge_claim(result.paper, judged.claim, _shown(effort), bench, reading)
            outcomes.append(_with_mechanism(outcome, experiment, Lab(bench, effort.first, effort.quick, reading)))
        measured = _with_mechanism(judged, experiment, Lab(bench, effort.first, effort.quick))
        result.experiments.append((measured, experiment, outcomes))
        result.judged[at] = replace(judged, reason=reason_of(measured, experiment, outcomes))


def _with_mechanism(judged: Judged, experiment: Experiment, lab: Lab) -> Judged:
    """Return `judged` with what the mechanism of the experiment, if it has one, shows in the runs of `lab`."""
    return replace(judged, measured=experiment.mechanism.measure(lab)) if experiment.mechanism else judged


def _is_explained(paper: Paper, judged: Judged) -> bool:
    """Return whether a claim has an experiment or needs none: too few runs need more runs."""
    needs = judged.claim.by == "engine" and judged.verdict in {"partly", "not_reproduced"}
    return not needs or judged.claim.claim_id in paper.experiments


def _without_experiment(judged: Judged) -> Judged:
    return replace(judged, reason=sentences(judged.reason, "No experiment on it yet"))
