"""`hindflight compare A B`: what changed between two flights or runs, with intervals; conditions for CI."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import Wide, paragraph, print_fitting
from hindflight.cli.output import AsJson, print_json

if TYPE_CHECKING:
    from hindflight.replay.experiment.change import Change

_COLUMNS = ("subject", "metric", "change %", "A", "B", "samples")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="Capture or workspace.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Capture or workspace.")],
    fail_if: Annotated[
        list[str] | None, typer.Option("--fail-if", help='Condition, such as "goodput < -5%"; may be given often.')
    ] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Show what changed from A to B, with 95 % intervals from blocks of a flight or from repeated runs.

    Exit code 4 if a condition of --fail-if fires: only where the whole interval lies beyond its bound. Exit code 5 if
    there is too little data for an interval.
    """
    from hindflight.comparison import compare_sources

    result = compare_sources(before, after, fail_if or ())
    if as_json:
        print_json(
            {
                "changes": [asdict(change) for change in result.changes],
                "missing": result.missing,
                "verdicts": [asdict(verdict) for verdict in result.verdicts],
                "exit_code": result.exit_code,
            }
        )
        raise typer.Exit(result.exit_code)
    print_fitting(_COLUMNS, [_row(change) for change in result.changes], wide)
    paragraph(
        "flight: blocks of 10 round trips, in a short flight of 2 at least; others: runs by seed, paired if the seeds "
        "agree."
    )
    for missing in result.missing:
        paragraph(f"too little data: {missing}.")
    for verdict in result.verdicts:
        paragraph(f"{verdict.condition} ({verdict.subject}): {verdict.outcome}")
    raise typer.Exit(result.exit_code)


def _row(change: Change) -> dict[str, object]:
    low, high = change.percent_interval
    interval = "too little data" if not change.known else "" if low is None else f"{low:+.1f} to {high:+.1f}"
    values = (
        change.subject,
        change.metric,
        f"{'-' if change.percent is None else f'{change.percent:+.1f}'}{f' ({interval})' if interval else ''}",
        _value(change.before, change.unit),
        _value(change.after, change.unit),
        f"{change.samples[0]} and {change.samples[1]}",
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _value(value: float, unit: str) -> str:
    from hindflight.toolkit.units import format_rate, format_time

    if unit == "bit/s":
        return format_rate(value)
    return format_time(value) if unit == "ns" else f"{value:.2f} {unit}"
