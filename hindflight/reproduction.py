"""Reproduces published studies: runs, claims judged, a report per paper, and one JSON document of all claims.

Puts `replay.papers` and `reports` together.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import HindflightError

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.replay.papers.judge import Effort, Result
    from hindflight.replay.papers.model import Claim, Paper

ALL = "all"
CLAIM_ID = re.compile(r"\d{3}-C\d{2}")
DOCUMENT = "claims.json"
OnStep = Callable[[str, float], None]
"""Called with a paper's name and the share of its claims that are judged."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was reproduced: rows of `claims` and `points`, the time in s of each paper, and the files written.

    `literal` names, per paper, the reading that takes everything stated literally, where it was run.
    """

    claims: list[dict[str, Any]]
    points: list[dict[str, Any]]
    seconds: dict[str, float]
    literal: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def arrow(self) -> dict[str, pa.Table]:
        """Return the tables `claims` and `points`."""
        from hindflight.toolkit.schema import table_from_rows

        return {"claims": table_from_rows("claims", self.claims), "points": table_from_rows("points", self.points)}


@dataclass(frozen=True, slots=True)
class Request:
    """What to reproduce and how: `full` judges with as many runs as it takes, `extra` adds what no figure shows.

    `name` is a paper, `all`, or a list of claims, as "000-C29,000-C30": then only these are judged, and no figure is
    drawn.
    """

    name: str
    full: bool = False
    extra: bool = False
    threads: int | None = None
    force: bool = False

    @property
    def claims(self) -> tuple[str, ...]:
        """The ids of claims that the name lists; none if it is that of a paper."""
        listed = tuple(self.name.split(","))
        return listed if all(CLAIM_ID.fullmatch(each) for each in listed) else ()


def reproduce_papers(request: Request, out: Path | None, on_step: OnStep = lambda _paper, _share: None) -> Reproduction:
    """Reproduce papers; with `out` write NAME.html, NAME's scenario files and claims.json into that folder.

    HindflightError: there is no such paper, or a file that may not be replaced. MachineError: disk or memory.
    """
    from hindflight.replay.papers.catalogue import paper_of
    from hindflight.replay.papers.judge import FULL, QUICK, reproduce_paper
    from hindflight.replay.papers.lab import Bench
    from hindflight.replay.papers.tables import claim_rows, point_rows
    from hindflight.toolkit.files import check_outputs

    chosen = _chosen(request)
    if out is not None:
        check_outputs([out / DOCUMENT, *(out / f"{name}.html" for name in chosen)], [], force=request.force)
    effort = FULL if request.full else QUICK
    done = Reproduction([], [], {})
    for name, claims in chosen.items():
        begun = time.monotonic()
        paper = paper_of(name)
        if request.claims:
            paper = replace(paper, figures=(), extras=())
        steps = _Steps(name, _steps(paper, len(claims), effort), on_step)
        result = reproduce_paper(paper, claims, effort, Bench(request.threads), steps.next, extra=request.extra)
        done.seconds[name] = time.monotonic() - begun
        done.claims.extend(claim_rows(result))
        done.points.extend(point_rows(result))
        if request.full:
            done.literal.update((name, reading.name) for reading in paper.readings if reading.literal)
        if out is not None:
            done.files.extend(_write(result, out, request))
    if out is not None:
        done.files.append(_write_document(done, out, request))
    return done


def _chosen(request: Request) -> dict[str, tuple[Claim, ...]]:
    """Return the claims to judge by paper. HindflightError if there is no such paper, or no such claim."""
    from hindflight.replay.papers.catalogue import PAPERS, paper_of
    from hindflight.replay.papers.claims import claims_of

    if not request.claims:
        papers = PAPERS if request.name == ALL else (paper_of(request.name).name,)
        return {paper: tuple(claims_of(paper_of(paper).number)) for paper in papers}
    numbers = {claim.partition("-")[0] for claim in request.claims}
    known = {paper: claims_of(paper_of(paper).number) for paper in PAPERS if paper_of(paper).number in numbers}
    unknown = set(request.claims) - {claim.claim_id for claims in known.values() for claim in claims}
    if unknown:
        name = min(unknown)
        ranges = [f"choose from {claims[0].claim_id} to {claims[-1].claim_id}" for claims in known.values()]
        raise HindflightError(f"no claim is called {name!r}", ", ".join(ranges) or f"papers: {', '.join(PAPERS)}")
    return {
        paper: tuple(claim for claim in claims if claim.claim_id in request.claims) for paper, claims in known.items()
    }


def _steps(paper: Any, claims: int, effort: Effort) -> int:
    readings = 0 if effort.quick else len(paper.readings)
    return claims * (1 + readings) + len(paper.figures)


@dataclass(slots=True)
class _Steps:
    """Counts the steps of one paper for a progress bar."""

    name: str
    total: int
    report: OnStep
    done: int = 0

    def next(self, _what: str) -> None:
        """Report one more step."""
        self.done = min(self.done + 1, self.total)
        self.report(self.name, self.done / self.total)


def _write(result: Result, out: Path, request: Request) -> list[Path]:
    import polars as pl

    from hindflight.replay.papers.lab import scenario_text
    from hindflight.replay.papers.tables import claim_rows, point_rows
    from hindflight.reports.document import ReportMeta, page_of
    from hindflight.reports.papers import paper_sections
    from hindflight.toolkit.files import plain_os_errors, write_whole
    from hindflight.toolkit.schema import table_from_rows
    from hindflight.toolkit.seal import SEAL_NOTE, sealed

    points = pl.DataFrame(table_from_rows("points", point_rows(result)))
    sections = paper_sections(claim_rows(result), points, _page(result, request))
    target = out / f"{result.paper.name}.html"
    with plain_os_errors(f"writing {out}"):
        (out / "scenarios").mkdir(parents=True, exist_ok=True)
    write_whole(target, page_of(ReportMeta(result.paper.title), sections), force=request.force)
    files = [target]
    for name in result.paper.scenarios:
        path = out / "scenarios" / f"{name}.toml"
        content = sealed(f"{scenario_text(name)}\n# {SEAL_NOTE}\n".encode())
        write_whole(path, content, force=request.force)
        files.append(path)
    return files


def _page(result: Result, request: Request) -> Any:
    from hindflight.replay.papers.tables import experiment_key
    from hindflight.reports.papers import DrawnFigure, Experiment, PaperPage

    paper = result.paper
    literal = next((reading.name for reading in paper.readings if reading.literal), "")
    return PaperPage(
        citation=paper.citation,
        effort=_effort(paper, full=request.full),
        literal=literal if request.full else "",
        choices=[(choice.name, choice.value, choice.why) for choice in paper.choices],
        readings=[(reading.name, reading.text) for reading in paper.readings] if request.full else [],
        figures=[DrawnFigure(each.key, each.title, each.x, each.y, each.mark) for each, _ in result.figures],
        experiments=[
            Experiment(experiment_key(each.claim.claim_id), each.claim.claim_id, experiment.assumption)
            for each, experiment, _ in result.experiments
        ],
        command=_command(paper.name, request),
        scenarios=[f"scenarios/{name}.toml" for name in paper.scenarios],
    )


def _command(name: str, request: Request) -> str:
    """Return the command that makes the report of a paper; its claims.json has the points of all charts."""
    effort = "--full" if request.full else "--quick"
    return " ".join(
        [
            "hindflight reproduce",
            ",".join(request.claims) or name,
            effort,
            *(["--extra"] if request.extra else []),
            "-o DIR",
        ]
    )


def _effort(paper: Paper, *, full: bool) -> str:
    from hindflight.replay.papers.judge import FULL, QUICK

    if full:
        maximum = min(FULL.maximum, paper.max_runs)
        first = min(max(FULL.first, paper.min_runs), maximum)
        return (
            f"Runs per configuration: {first} to {maximum}, until an interval is narrower than half the tolerance and "
            "the 99.9 % interval contains no bound, or decides an ordering."
        )
    return (
        f"Runs per configuration: {min(QUICK.first, paper.max_quick_runs)} to "
        f"{min(QUICK.maximum, paper.max_quick_runs)} (--quick). A verdict on numbers and orderings is "
        "given only if the 99.9 % interval says the same; --full decides the rest."
    )


def _write_document(done: Reproduction, out: Path, request: Request) -> Path:
    from hindflight.toolkit.files import write_whole
    from hindflight.toolkit.seal import EMPTY_SEAL, sealed
    from hindflight.toolkit.text import escape_json

    document = {
        "full": request.full,
        "seconds": {name: round(seconds, 1) for name, seconds in done.seconds.items()},
        "claims": done.claims,
        "points": done.points,
        "seal": EMPTY_SEAL,
    }
    text = escape_json(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"
    path = out / DOCUMENT
    write_whole(path, sealed(text.encode()), force=request.force)
    return path
