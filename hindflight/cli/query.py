"""`hindflight query WORKSPACE "SELECT …"`: SQL over the tables; see toolkit/query.py for what it may reach."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsCsv, AsJson, print_csv, print_json, print_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("query")(query)


def query(
    workspace: Annotated[Path, typer.Argument(help="Workspace.")],
    sql: Annotated[str, typer.Argument(help="One SELECT; every table is a view of its name.")],
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Ask a workspace in SQL (DuckDB)."""
    from hindflight.toolkit.query import plain_rows
    from hindflight.toolkit.query import query as run
    from hindflight.toolkit.workspace import Workspace

    result = run(Workspace.open(workspace), sql)
    rows = plain_rows(result)
    if as_json:
        print_json({"columns": result.column_names, "rows": rows})
    elif as_csv:
        print_csv(result.column_names, rows)
    else:
        print_table(result.column_names, rows)
