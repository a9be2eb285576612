"""`hindflight report WORKSPACE -o FILE.html`: one page that opens without a network; charts and table as files too."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsJson, Force, print_json, say
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
    charts: Annotated[Path | None, typer.Option("--charts", help="Also write every chart into this folder.")] = None,
    form: Annotated[Form, typer.Option("--format", help="Format of those charts.")] = Form.png,
    csv: Annotated[Path | None, typer.Option("--csv", help="Also write the what-if runs to this CSV file.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write an HTML report on a workspace."""
    from hindflight.reports.exports import write_charts, write_what_if_csv
    from hindflight.toolkit.files import check_outputs
    from hindflight.toolkit.schema import TABLES
    from hindflight.toolkit.source import files_of
    from hindflight.toolkit.text import name_to_text
    from hindflight.toolkit.workspace import Workspace
    from hindflight.workflow import write_report_of

    kept = Workspace.open(workspace)
    inputs = files_of(workspace)
    check_outputs([out], inputs, force=force)
    check_outputs([out, csv, *([] if charts is None else charts.glob(f"*.{form.value}"))], inputs, force=True)
    tables = {name: kept.scan(name) for name in TABLES} if charts or csv else {}
    if csv is not None:
        write_what_if_csv(tables, csv, force=force)
    drawn = [] if charts is None else write_charts(tables, charts, form.value, force=force)
    write_report_of(kept, out, title or f"Hindflight report: {name_to_text(workspace.name)}", utc, force=force)
    if as_json:
        print_json(
            {
                "report": name_to_text(out),
                "charts": [name_to_text(path) for path in drawn],
                "csv": None if csv is None else name_to_text(csv),
            }
        )
        return
    if csv is not None:
        say(f"wrote {csv}")
    if drawn:
        say(f"wrote {len(drawn)} charts into {charts}")
    say(f"wrote {out}")
