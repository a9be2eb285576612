"""`hindflight report WORKSPACE -o FILE.html`: one page that opens without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.output import say
from toolkit.cli.times import Utc


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(
    workspace: Annotated[Path, typer.Argument(help="Workspace.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="HTML file to write.")],
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "",
    utc: Utc = False,
) -> None:
    """Write the report on all that a workspace holds."""
    from toolkit.cli.steps import write_report_of
    from toolkit.workspace import Workspace

    kept = Workspace.open(workspace)
    write_report_of(kept, out, title or f"Hindflight report: {workspace.name}", utc)
    say(f"wrote {out}")
