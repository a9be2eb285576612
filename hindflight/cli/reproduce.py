"""`hindflight reproduce PAPER|all -o DIR`: recompute a published study and judge each of its claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.layout import Wide, paragraph, print_fitting
from hindflight.cli.output import AsJson, Force, print_json, progress_on_stderr, say
from hindflight.cli.replay import Threads

if TYPE_CHECKING:
    from hindflight.reproduction import Reproduction

_COLUMNS = ("claim", "verdict", "measured", "expected", "figure")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce")(reproduce)


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="haps-split, hybrid-handover, asran, onboard-split, aerotcp or all; or claims, as 000-C29,000-C30."
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for a report per paper, scenarios and claims.json.")],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All readings, and runs until the intervals are narrow.")
    ] = False,
    extra: Annotated[bool, typer.Option("--extra", help="Also what goes beyond the figures.")] = False,
    threads: Threads = None,
    force: Force = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce a paper: its figures, and a verdict on each of its claims.

    A claim is reproduced, partly, not reproduced, not testable, or has too few runs to decide.
    """
    from hindflight.reproduction import Request, reproduce_papers

    request = Request(paper, full, extra, threads, force)
    with progress_on_stderr() as report:
        done = reproduce_papers(request, out, lambda name, share: report(Path(name), share))
    if as_json:
        print_json(done.claims)
    else:
        _show(done, wide)
    for path in done.files:
        if path.suffix != ".toml":
            say(f"written: {path}")


def _show(done: Reproduction, wide: bool) -> None:
    for name, seconds in done.seconds.items():
        own = [row for row in done.claims if row["paper"] == name and row["reading"] == "default"]
        rows = [
            {
                "claim": row["claim_id"],
                "figure": row["figure"],
                "expected": row["expected"],
                "measured": "-" if row["value"] is None else f"{row['value']:.4g}",
                "verdict": row["verdict"].replace("_", " "),
            }
            for row in own
        ]
        print_fitting(_COLUMNS, rows, wide, name)
        paragraph(f"{name}: {len(rows)} claims in {seconds:.0f} s: {_counts(own)}.")
        if name in done.literal:
            literal = [row for row in done.claims if row["paper"] == name and row["reading"] == done.literal[name]]
            paragraph(f"{name}, with everything stated taken literally: {_counts(literal)}.")


def _counts(rows: list[dict[str, Any]]) -> str:
    verdicts = [row["verdict"].replace("_", " ") for row in rows]
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
