"""Why a claim is not reproduced, in sentences that are made of the figures of its experiment.

Runs nothing. `judge.py` runs the experiments.
"""

from __future__ import annotations

from collections.abc import Sequence

from hindflight.replay.papers.model import Experiment, Judged, Part, Verdict

MAX_SHOWN = 4
"""Parts that a reason lists."""
OUTCOMES: dict[str, tuple[Verdict, ...]] = {
    "reproduced with": ("reproduced",),
    "not reproduced, or in part, with": ("not_reproduced", "partly"),
    "undecided with": ("too_few_runs",),
}
"""Outcomes of an experiment as a reason names them."""


def failed_parts(parts: Sequence[Part], verdict: str) -> str:
    """Return the parts that keep a claim from being reproduced, with what was measured."""
    if verdict == "reproduced":
        return ""
    failed = [f"{part.name}: {part.note or _measured(part)}" for part in parts if part.state != "yes" and part.name]
    more = [f"{len(failed) - MAX_SHOWN} more parts"] if len(failed) > MAX_SHOWN else []
    return "; ".join([*failed[:MAX_SHOWN], *more])


def _measured(part: Part) -> str:
    if part.value is None or part.low is None or part.high is None:
        return part.state
    return f"{part.value:.4g} ({part.low:.4g} to {part.high:.4g})"


def reason_of(judged: Judged, experiment: Experiment, outcomes: Sequence[Judged]) -> str:
    """Return the measured reason: the verdict under each reading of the experiment, how far the readings move what does
    not hold, what its mechanism shows, and what we take for the cause.
    """
    found = []
    for words, verdicts in OUTCOMES.items():
        names = [_named(each) for each in outcomes if each.verdict in verdicts]
        if names:
            found.append(f"{words} {', '.join(names)}")
    runs = max((each.runs for each in outcomes), default=0)
    varied = f"Varied (at most {runs} runs each): {experiment.assumption}; {'; '.join(found)}" if outcomes else ""
    cause = f"Supposed cause: {experiment.text}" if experiment.text else ""
    moved = _moved(judged, outcomes)
    return sentences(
        judged.reason, varied, moved, _nothing_moves(judged, outcomes), _shown(judged, experiment, outcomes), cause
    )


def _named(outcome: Judged) -> str:
    """Return the reading of an outcome with the number of a claim or, where it has several parts, how many hold."""
    parts = outcome.parts
    if len(parts) == 1 and parts[0].value is not None:
        return f"{outcome.reading} ({parts[0].value:.4g})"
    if len(parts) < 2 or outcome.verdict == "reproduced":
        return outcome.reading
    return f"{outcome.reading} ({sum(part.state == 'yes' for part in parts)} of {len(parts)} parts)"


def _moved(judged: Judged, outcomes: Sequence[Judged]) -> str:
    """Return between which values the readings move each of several parts that do not hold, and which readings do."""
    ranges = []
    for part in judged.parts if len(judged.parts) > 1 else ():
        values = [(each.value, outcome.reading) for outcome in outcomes for each in outcome.parts if _is(each, part)]
        if part.state != "yes" and len(values) > 1:
            (low, lowest), (high, highest) = min(values), max(values)
            ranges.append(f"{part.name}: {low:.4g} ({lowest}) to {high:.4g} ({highest})")
    more = [f"{len(ranges) - MAX_SHOWN} more parts"] if len(ranges) > MAX_SHOWN else []
    return f"The readings move what does not hold: {'; '.join([*ranges[:MAX_SHOWN], *more])}" if ranges else ""


def _is(each: Part, part: Part) -> bool:
    return each.name == part.name and each.value is not None


def _nothing_moves(judged: Judged, outcomes: Sequence[Judged]) -> str:
    """Return what to say where no reading reproduces the claim: how far its number moved, or its parts."""
    if not outcomes or any(each.verdict == "reproduced" for each in outcomes):
        return ""
    values = [each.parts[0].value for each in (judged, *outcomes) if len(each.parts) == 1]
    numbers = [value for value in values if value is not None]
    if numbers:
        moved = f"it lies between {min(numbers):.4g} and {max(numbers):.4g}, and {judged.claim.expected} is expected"
    else:
        held = [sum(part.state == "yes" for part in each.parts) for each in outcomes]
        moved = f"between {min(held)} and {max(held)} of {len(judged.parts)} parts hold"
    return f"None of these {len(outcomes)} readings reproduces it: {moved}"


def _shown(judged: Judged, experiment: Experiment, outcomes: Sequence[Judged]) -> str:
    """Return what the mechanism of the experiment showed with the defaults and under each reading."""
    if experiment.mechanism is None:
        return ""
    found = [
        f"{each.reading}: {', '.join(f'{name} {value:.3g}' for name, value in each.measured.items())}"
        for each in (judged, *outcomes)
    ]
    return f"Measured, {experiment.mechanism.name}: {'; '.join(found)}"


def sentences(*texts: str) -> str:
    """Return texts as sentences, without those that are empty."""
    return " ".join(text.rstrip(".") + "." for text in texts if text)
