"""Writes docs/papers.md from the claims.json of `hindflight reproduce all --full -o DIR`:

    python -m docs.scripts.make_papers_page DIR [DIR...]

Several folders are read where papers or claims were run one by one; the last one that has a claim counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hindflight.replay.papers.catalogue import PAPERS, paper_of
from hindflight.replay.papers.model import Paper
from hindflight.replay.papers.tables import count

PAGE = Path(__file__).resolve().parents[1] / "papers.md"
VERDICTS = ("reproduced", "partly", "not_reproduced", "too_few_runs", "not_testable")
KINDS = ("value", "ratio", "range", "ordering", "shape", "knee")
Row = Mapping[str, Any]


def main(arguments: Sequence[str]) -> None:
    """Write the page from the documents in folders; what follows `--note` says how these runs differ from `--full`."""
    folders, _, note = " ".join(arguments).partition(" --note ")
    documents = [json.loads((Path(folder) / "claims.json").read_text()) for folder in folders.split()]
    PAGE.write_text(page(documents, note))


def page(documents: Sequence[Mapping[str, Any]], note: str = "") -> str:
    """Return the page; `documents` are contents of claims.json, `note` is a sentence about how they were made."""
    found: dict[str, tuple[list[Row], bool]] = {}
    for document in documents:
        for name in document["seconds"]:
            rows = [row for row in document["claims"] if row["paper"] == name]
            before, full = found.get(name, ([], True))
            found[name] = (_with_later(before, rows), full and document["full"])
    lines = [_HEAD, *([f"**This page:** {note}", ""] if note else [])]
    lines += _totals([row for name in PAPERS if name in found for row in _default(found[name][0])], "With our defaults")
    literal = [row for name in PAPERS if name in found for row in _literal(paper_of(name), found[name][0])]
    title = "With everything that the texts state taken literally"
    lines += _totals(literal, title) if literal else [f"## {title}", "", "This reading was not run.", ""]
    for name in PAPERS:
        if name in found:
            lines += _paper(paper_of(name), *found[name])
    missing = [name for name in PAPERS if name not in found]
    if missing:
        lines += [f"Not run: {', '.join(missing)}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _with_later(rows: Sequence[Row], later: Sequence[Row]) -> list[Row]:
    """Return the rows of a paper with those of a later run of all or some of its claims in their place."""
    found = {(row["reading"], row["claim_id"]): row for row in (*rows, *later)}
    claims = sorted({row["claim_id"] for row in later})
    readings = {row["reading"] for row in later}
    kept = [row for key, row in found.items() if key[1] not in claims or key[0] in readings]
    return sorted(kept, key=lambda row: str(row["claim_id"]))


_HEAD = """# Five papers reproduced

    hindflight reproduce haps-split -o reproduced            # or hybrid-handover, asran, onboard-split, aerotcp, all
    hindflight reproduce all --full -o reproduced
    python -m docs.scripts.make_papers_page reproduced       # writes this page

computes the figures of a paper again and judges each of its claims. The folder gets a report per paper (HTML), the
scenario files, with the source of every value, and `claims.json`. `--json` prints the claims, `hf.reproduce` returns
them.

## How claims are judged

* A **value, ratio, range or knee** is reproduced if its 95 % interval lies inside the tolerance, partly if it
  overlaps the tolerance, and not if it lies outside. Exact numbers need no interval.
* An **ordering** is reproduced if the 95 % interval of the difference, paired by seed, excludes 0. Before the last
  look only the 99.9 % interval ends the runs, so that several looks do not make up an ordering.
* A **shape** is a predicate in code. It has no interval and is judged by the runs that were made.
* A claim about several configurations is reproduced if it holds in all, partly if it holds in some.
* Where the intervals do not decide, the verdict is *too few runs*.
* *Not testable* are claims without an experiment in the paper, and numbers that depend on what it does not describe.

`--full` takes 20 runs per configuration, and more until an interval is narrower than half the tolerance and the 99.9 %
interval contains no bound, or decides an ordering, at most 1000. `--quick` takes 10 to 40 runs, and gives a verdict on
numbers and orderings only if the 99.9 % interval says the same. Claims about recorded packets take fewer: at most 100
(quick: 4) runs of hybrid-handover and 40 (10) of asran. Readings and experiments that do not count take 20 to 40 runs.
`--full` takes at least as many runs as the paper: 100 of onboard-split, and 1000 for its claims about the street that
sweep no cache. The interval of a knee is a bootstrap over the seeds. `claims.json` has the number of runs that each
claim took.

Where a text leaves something open, one set of defaults counts, which was chosen before the first full run. Other
readings are run and shown, and never counted. One of them takes everything that the text states literally; it is
counted separately. Claims are *stated* by the paper or *inferred* from it.

A reading that was *chosen after the first runs* is one of about 1000 that were tried with a few runs each, most of them
combinations of queue, buffers, slow start, breaks and measures of hybrid-handover, and was kept because it moves a
verdict. It shows what could explain a claim, not what does.

Two rules of judging were changed after the first full runs, for all claims alike. An interval that was narrow and lay
across a bound ended the runs long before the 1000 that are allowed: now it takes more. The spread of means that are to
be alike ("no significant difference can be observed", "quite identical") had 1 as its lower bound, which only its own
symmetric interval could miss: now it has none.
"""


def _default(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["reading"] == "default"]


def _literal(paper: Paper, rows: list[Row]) -> list[Row]:
    """Return the rows under the reading that takes everything literally; none where it was not run."""
    name = next(reading.name for reading in paper.readings if reading.literal)
    return [row for row in rows if row["reading"] == name]


def _totals(rows: list[Row], title: str) -> list[str]:
    lines = [
        f"## {title}",
        "",
        f"| | claims | {' | '.join(map(_words, VERDICTS))} |",
        "|---" * (len(VERDICTS) + 2) + "|",
    ]

    def line(name: str, mine: list[Row]) -> str:
        by = count(mine, "verdict")
        return f"| {name} | {len(mine)} | " + " | ".join(str(by.get((verdict,), 0)) for verdict in VERDICTS) + " |"

    for paper in dict.fromkeys(row["paper"] for row in rows):
        lines.append(line(f"[{paper}](#{paper})", [row for row in rows if row["paper"] == paper]))
    for key, names in (("origin", ("stated", "inferred")), ("by", ("engine", "unit", "arithmetic")), ("kind", KINDS)):
        for name in names:
            mine = [row for row in rows if row[key] == name]
            if mine:
                lines.append(line(f"{name}", mine))
    lines.append(line("**all**", rows))
    return [*lines, ""]


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")


def _paper(paper: Paper, rows: list[Row], full: bool) -> list[str]:
    ran = {row["reading"] for row in rows}
    how = "as `--full` judges them" if full else "as `--quick` judges them; a full run was not made"
    lines = [f"## {paper.name}", "", f"*{paper.title}*. {paper.citation}. Verdicts are {how}.", ""]
    lines += ["| chosen | value | why |", "|---|---|---|"]
    lines += [f"| {choice.name} | {choice.value} | {choice.why} |" for choice in paper.choices]
    lines += ["", "| claim | origin, by | expected | measured | verdict | literally |", "|---|---|---|---|---|---|"]
    literal = {row["claim_id"]: row["verdict"] for row in _literal(paper, rows)}
    for row in _default(rows):
        tolerance = "" if row["tolerance"] in {"strict", "exact", "none"} else f"; {row['tolerance']}"
        cells = (
            row["claim_id"],
            f"{row['origin']}, {row['by']}" if row["by"] != "not testable" else row["origin"],
            row["expected"] + tolerance,
            _measured(row),
            _words(row["verdict"]),
            _words(literal.get(row["claim_id"], "not run")),
        )
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    lines.append("")
    reasons = [row for row in _default(rows) if row["reason"]]
    lines += [f"* **{row['claim_id']}**, {_words(row['verdict'])}: {row['text']} {row['reason']}" for row in reasons]
    lines += ["", "Readings, and how many claims are reproduced under each:", ""]
    for reading in paper.readings:
        mine = [row for row in rows if row["reading"] == reading.name]
        reproduced = sum(row["verdict"] == "reproduced" for row in mine)
        result = f"{reproduced} of {len(mine)}" if reading.name in ran else "not run for this page"
        lines.append(f"* {reading.name}: {reading.text}. {result}.")
    if paper.beyond:
        lines += ["", f"Beyond the figures, in every run: {'; '.join(paper.beyond)}."]
    if paper.not_built:
        lines += ["", f"Beyond the paper, and not built: {'; '.join(paper.not_built)}."]
    if paper.extras:
        lines += ["", "Beyond the paper, with `--extra`:", "", *(f"* {figure.title}" for figure in paper.extras)]
    return [*lines, ""]


def _measured(row: Row) -> str:
    if row["value"] is None:
        parts = row["parts"].split("; ") if row["parts"] else []
        return f"{sum(part.endswith('holds') for part in parts)} of {len(parts)} parts hold" if len(parts) > 1 else "-"
    unit = f" {row['unit']}" if row["unit"] else ""
    interval = "" if row["low"] == row["high"] else f" ({row['low']:.4g} to {row['high']:.4g})"
    return f"{row['value']:.4g}{unit}{interval}"


if __name__ == "__main__":
    main(sys.argv[1:])
