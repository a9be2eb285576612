"""`hindflight report WORKSPACE -o FILE.html`: one page that opens without a network; charts and table as files too."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsJson, print_json, say
from hindflight.cli.times import Utc


class Form(StrEnum):
    """Kinds of pictures."""

    png = "png"
    svg = "svg"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(
    workspace: Annotated[Path, typer.Argument(help="Workspace.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="HTML file to write.")],
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "",
    utc: Utc = False,
    charts: Annotated[Path | None, typer.Option("--charts", help="Folder to write every chart into as well.")] = None,
    form: Annotated[Form, typer.Option("--format", help="Kind of those charts.")] = Form.png,
    csv: Annotated[Path | None, typer.Option("--csv", help="File to write the what-if runs to as well.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report on all that a workspace holds."""
    from hindflight.reports.exports import write_charts, write_what_if_csv
    from hindflight.toolkit.schema import TABLES
    from hindflight.toolkit.workspace import Workspace
    from hindflight.workflow import write_report_of

    kept = Workspace.open(workspace)
    tables = {name: kept.table(name) for name in TABLES} if charts or csv else {}
    if csv is not None:
        write_what_if_csv(tables, csv)
    drawn = [] if charts is None else write_charts(tables, charts, form.value)
    write_report_of(kept, out, title or f"Hindflight report: {workspace.name}", utc)
    if as_json:
        print_json(
            {"report": str(out), "charts": [str(path) for path in drawn], "csv": None if csv is None else str(csv)}
        )
        return
    if csv is not None:
        say(f"wrote {csv}")
    if drawn:
        say(f"wrote {len(drawn)} charts into {charts}")
    say(f"wrote {out}")
