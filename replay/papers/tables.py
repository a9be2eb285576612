"""What reproducing a paper gave, as rows of the tables `claims` and `points`, and the count of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from hindflight.replay.papers.judge import Result
from hindflight.replay.papers.model import Judged, Part, Point

Row: TypeAlias = dict[str, Any]

STATES = {"yes": "holds", "no": "does not hold", "partly": "holds partly", "undecided": "undecided"}


def claim_rows(result: Result) -> list[Row]:
    """Return the rows of `claims` of a paper, the default reading first."""
    return [_claim_row(result.paper.name, judged) for judged in result.judged]


def _claim_row(paper: str, judged: Judged) -> Row:
    claim = judged.claim
    only = judged.parts[0] if len(judged.parts) == 1 else None
    return {
        "claim_id": claim.claim_id,
        "paper": paper,
        "figure": claim.figure,
        "scenario": claim.scenario,
        "metric": claim.metric,
        "kind": claim.kind,
        "expected": claim.expected,
        "tolerance": claim.tolerance,
        "origin": claim.origin,
        "by": claim.by,
        "text": claim.text,
        "reading": judged.reading,
        "value": only.value if only else None,
        "low": only.low if only else None,
        "high": only.high if only else None,
        "unit": claim.unit,
        "parts": "; ".join(part_text(part) for part in judged.parts),
        "runs": judged.runs,
        "verdict": judged.verdict,
        "reason": judged.reason,
    }


def part_text(part: Part) -> str:
    """Return a part in words: name, number with its interval, state."""
    number = "" if part.value is None else f"{part.value:.4g}"
    if part.low is not None and part.high is not None and part.low != part.high:
        number += f" ({part.low:.4g} to {part.high:.4g})"
    words = ", ".join(text for text in (number, part.note, STATES[part.state]) if text)
    return f"{part.name}: {words}" if part.name else words


def point_rows(result: Result) -> list[Row]:
    """Return the rows of `points` of a paper: its figures, then the experiments on its claims."""
    rows = [_point_row(result.paper.name, figure.key, point) for figure, points in result.figures for point in points]
    for judged, _, outcomes in result.experiments:
        key = experiment_key(judged.claim.claim_id)
        rows += [_point_row(result.paper.name, key, point) for point in _experiment_points([judged, *outcomes])]
    return rows


def experiment_key(claim_id: str) -> str:
    """Return the key under which the points of the experiment on a claim are kept."""
    return f"why-{claim_id}"


def _experiment_points(outcomes: Sequence[Judged]) -> Iterator[Point]:
    for outcome in outcomes:
        for part in outcome.parts:
            if part.value is not None:
                yield Point(part.name or outcome.claim.metric, None, part.value, part.low, part.high, outcome.reading)


def _point_row(paper: str, key: str, point: Point) -> Row:
    return {
        "paper": paper,
        "figure": key,
        "series": point.series,
        "label": point.label,
        "x": point.x,
        "y": point.y,
        "low": point.low,
        "high": point.high,
    }


def count(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[str, ...], int]:
    """Return how many rows of `claims` have each combination of `keys`, which are columns."""
    return dict(Counter(tuple(str(row[key]) for key in keys) for row in rows))
