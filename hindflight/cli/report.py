"""`hindflight report WORKSPACE... -o FILE`: one page that opens without a network, or Markdown, PDF, JSON; charts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsJson, Force, print_json, say
from hindflight.cli.times import Utc


class Form(StrEnum):
    """Formats of a report."""

    html = "html"
    md = "md"
    pdf = "pdf"
    json = "json"


class ChartsForm(StrEnum):
    """Formats of charts."""

    png = "png"
    svg = "svg"
    html = "html"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(
    workspaces: Annotated[list[Path], typer.Argument(metavar="WORKSPACE...", help="Workspaces; several are compared.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write.")],
    form: Annotated[
        Form | None, typer.Option("--format", help="Format [default: by the name of the file, else html].")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Title of the report.")] = "",
    utc: Utc = False,
    charts: Annotated[Path | None, typer.Option("--charts", help="Also write every chart into this folder.")] = None,
    charts_form: Annotated[
        ChartsForm, typer.Option("--charts-format", help="Format of those charts.")
    ] = ChartsForm.png,
    csv: Annotated[Path | None, typer.Option("--csv", help="Also write the what-if runs to this CSV file.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a report on a workspace, or on several and what changed from the first to the others."""
    from hindflight.documents import Wanted, write_documents
    from hindflight.reports.exports import write_what_if_csv
    from hindflight.toolkit.errors import HindflightError
    from hindflight.toolkit.files import check_outputs
    from hindflight.toolkit.schema import TABLES
    from hindflight.toolkit.source import files_of
    from hindflight.toolkit.text import name_to_text
    from hindflight.toolkit.workspace import Workspace

    kept = [Workspace.open(workspace) for workspace in workspaces]
    if csv is not None and len(kept) > 1:
        raise HindflightError("--csv takes one workspace", "write one CSV file for each")
    inputs = [file for workspace in workspaces for file in files_of(workspace)]
    check_outputs([out], inputs, force=force)
    check_outputs([out, csv, *([] if charts is None else charts.glob(f"*.{charts_form.value}"))], inputs, force=True)
    if csv is not None:
        write_what_if_csv({name: kept[0].scan(name) for name in TABLES}, csv, force=force)
    wanted = Wanted(out, None if form is None else form.value, title, utc, charts, charts_form.value, force)
    drawn = write_documents(kept, wanted)
    if as_json:
        print_json(
            {
                "report": name_to_text(out),
                "format": wanted.written_form,
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
