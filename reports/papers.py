"""The report on a reproduced paper: verdicts, figures, claims, readings and what was chosen, as sections.

Reads the tables `claims` and `points`; computes nothing but how many rows there are of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from hindflight.reports.charts.paper import experiment_chart, figure_chart
from hindflight.reports.findings import Cell, Grid
from hindflight.reports.numbers import short_exponents, with_minus_signs
from hindflight.reports.sections import Figure, Section

VERDICTS = {
    "reproduced": "reproduced",
    "partly": "partly reproduced",
    "not_reproduced": "not reproduced",
    "too_few_runs": "too few runs",
    "not_testable": "not testable",
}
"""Verdicts as a report says them, in the order of its tables."""
DEFAULT = "default"
HOLDS = "holds"
"""How a part of a claim that holds ends in `claims.parts`."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DrawnFigure:
    """A figure of a paper: key of its points, title, axes, and how it is drawn."""

    key: str
    title: str
    x: str
    y: str
    mark: Literal["line", "bar", "step"]


@dataclass(frozen=True, slots=True)
class Experiment:
    """The experiment on a claim: key of its points, the claim, and what is varied."""

    key: str
    claim_id: str
    assumption: str


@dataclass(frozen=True, slots=True)
class PaperPage:
    """What a report on a paper says besides its tables.

    `literal` names the reading that takes everything stated literally; empty if it was not run. `choices` are name,
    value and reason of each default, `readings` name and text. `effort` says how many runs were made, `command` makes
    them, and writes the points of all charts.
    """

    citation: str
    effort: str
    literal: str
    choices: Sequence[tuple[str, str, str]]
    readings: Sequence[tuple[str, str]]
    figures: Sequence[DrawnFigure]
    experiments: Sequence[Experiment]
    command: str
    scenarios: Sequence[str] = ()


def _said(text: str) -> str:
    """Return a text with the numbers as a report writes them."""
    return with_minus_signs(short_exponents(text))


def paper_sections(claims: Sequence[Row], points: pl.DataFrame, page: PaperPage) -> list[Section]:
    """Return the sections of the report on one paper from the rows of `claims` and the table `points`."""
    own = [row for row in claims if row["reading"] == DEFAULT]
    sections = [
        _summary(own, claims, page),
        _figures(points, page),
        Section("claims", "Claims", _HOW_JUDGED, [_claims(own), _all_parts(own)]),
    ]
    if any(row["reason"] for row in own):
        sections.append(_why_not(own, points, page))
    if page.readings:
        sections.append(_readings(claims, page))
    return [*sections, _chosen(page)]


_HOW_JUDGED = [
    "A number is reproduced if its 95 % interval lies inside the tolerance, partly if it overlaps it. An ordering is "
    "reproduced if the 95 % interval of the difference, paired by seed, excludes 0.",
    "A claim about several configurations is reproduced if it holds in all, partly if it holds in some.",
]


def _summary(own: Sequence[Row], claims: Sequence[Row], page: PaperPage) -> Section:
    sentences = [_sentence("With our defaults", own)]
    if page.literal:
        literal = [row for row in claims if row["reading"] == page.literal]
        sentences.append(_sentence("With everything that the text states taken literally", literal))
    sentences += [f"Paper: {page.citation}.", page.effort]
    return Section("summary", "Verdicts", sentences, [_tally(own)])


def _sentence(how: str, rows: Sequence[Row]) -> str:
    by = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
    found = ", ".join(f"{number} {VERDICTS[verdict]}" for verdict, number in by.items() if number)
    return f"{how}, of {len(rows)} claims: {found}."


def _tally(rows: Sequence[Row]) -> Grid:
    grid = Grid("Claims by origin and verdict", ("Origin", *VERDICTS.values()))
    for origin in ("stated", "inferred"):
        mine = [row for row in rows if row["origin"] == origin]
        counts = [sum(row["verdict"] == verdict for row in mine) for verdict in VERDICTS]
        grid.rows.append((Cell(origin), *(Cell(str(number), number=True) for number in counts)))
    return grid


def _figures(points: pl.DataFrame, page: PaperPage) -> Section:
    section = Section("figures", "Figures", ["Marks are means over the runs, bars their 95 % intervals."])
    for figure in page.figures:
        mine = points.filter(pl.col("figure") == figure.key)
        if mine.height:
            chart = figure_chart(mine, figure.title, figure.x, figure.y, figure.mark)
            section.parts.append(Figure(chart, figure.key, commands=(page.command,)))
    return section


def _claims(rows: Sequence[Row]) -> Grid:
    grid = Grid("All claims", ("Claim", "What the paper says", "Expected", "Measured", "Verdict"))
    for row in rows:
        expected = _said(f"{row['expected']}")
        tolerance = "" if row["tolerance"] in {"strict", "exact"} else _said(row["tolerance"])
        grid.rows.append(
            (
                Cell(row["claim_id"], small=row["figure"]),
                Cell(row["text"], small=_said(f"{row['scenario']}: {row['metric']}; {row['origin']}, by {row['by']}")),
                Cell(expected, small=tolerance),
                Cell(_measured(row), small=f"{row['runs']} runs" if row["runs"] else ""),
                Cell("", verdict=VERDICTS[row["verdict"]]),
            )
        )
    return grid


def _measured(row: Row) -> str:
    """Return the number of a claim about one, or how many of its parts hold."""
    parts = _parts(row)
    if len(parts) > 1:
        return f"{sum(part.endswith(HOLDS) for part in parts)} of {len(parts)} parts hold"
    if row["value"] is None:
        return _said(parts[0]) if parts else "–"
    return quantity_with_interval(row)


def quantity_with_interval(row: Row) -> str:
    """Return the value of a claim with its unit and interval."""
    unit = f" {row['unit']}" if row["unit"] else ""
    text = f"{row['value']:.4g}{unit}"
    if row["low"] != row["high"]:
        text += f" ({row['low']:.4g} to {row['high']:.4g})"
    return _said(text)


def _parts(row: Row) -> list[str]:
    return str(row["parts"]).split("; ") if row["parts"] else []


def _all_parts(rows: Sequence[Row]) -> Grid:
    grid = Grid("Every part of the claims that have several", ("Claim", "Part"), folded=True)
    for row in rows:
        parts = _parts(row)
        if len(parts) > 1:
            grid.rows.extend((Cell(row["claim_id"]), Cell(_said(part))) for part in parts)
    return grid


def _why_not(rows: Sequence[Row], points: pl.DataFrame, page: PaperPage) -> Section:
    """Return the reasons of the claims that are not reproduced, each with the chart of its experiment, if any."""
    section = Section("why", "Why not", ["What was measured where a claim is not reproduced, and what moves it."])
    experiments = {experiment.claim_id: experiment for experiment in page.experiments}
    for row in rows:
        if not row["reason"]:
            continue
        part = Section(f"why-{row['claim_id']}", f"{row['claim_id']}: {VERDICTS[row['verdict']]}")
        part.sentences += [row["text"], _said(row["reason"])]
        experiment = experiments.get(row["claim_id"])
        if experiment is not None:
            mine = points.filter(pl.col("figure") == experiment.key)
            title = f"{row['claim_id']}: what varying the assumption does"
            part.parts.append(_said(f"Varied: {experiment.assumption}."))
            chart = experiment_chart(mine, title, row["metric"])
            part.parts.append(Figure(chart, f"chart-{experiment.key}", commands=(page.command,)))
        section.parts.append(part)
    return section


def _readings(claims: Sequence[Row], page: PaperPage) -> Section:
    section = Section("readings", "Readings", ["Other readings of the text are shown here and counted nowhere."])
    listed = Grid("Readings", ("Reading", "What it changes"))
    listed.rows.extend((Cell(name), Cell(text)) for name, text in page.readings)
    names = [name for name, _ in page.readings]
    found = {(row["claim_id"], row["reading"]): row["verdict"] for row in claims}
    grid = Grid("Verdicts by reading", ("Claim", DEFAULT, *names))
    for row in claims:
        if row["reading"] == DEFAULT:
            keys = [found.get((row["claim_id"], name)) for name in (DEFAULT, *names)]
            grid.rows.append(
                (Cell(row["claim_id"]), *(Cell("", verdict=VERDICTS[key]) if key else Cell("–") for key in keys))
            )
    section.parts += [listed, grid]
    return section


def _chosen(page: PaperPage) -> Section:
    grid = Grid("Defaults that the text does not fix", ("Choice", "Value", "Why"))
    grid.rows.extend(tuple(Cell(text) for text in choice) for choice in page.choices)
    sentences = [f"Scenario files with the source of every value: {', '.join(page.scenarios)}."]
    return Section("choices", "What was chosen", sentences, [grid])
