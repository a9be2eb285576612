"""`hindflight query WORKSPACE "SELECT …"`: SQL over the tables; see toolkit/query.py for what it may reach."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsCsv, AsJson, print_csv, print_json, print_table
from hindflight.toolkit.errors import HindflightError

MIN_MEMORY = 64 * 1024**2
"""Smallest --memory."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("query")(query)


def query(
    workspace: Annotated[Path, typer.Argument(help="Workspace.")],
    sql: Annotated[str, typer.Argument(help="One SELECT statement; each table is a view of the same name.")],
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help='Stop the query after this time, as in "30 s".')
    ] = "",
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help='Memory limit, as in "2 GB" [default: half of the memory].')
    ] = "",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Query the tables of a workspace with SQL (DuckDB)."""
    from hindflight.cli.watch import watched

    limit = _memory(memory)
    timeout_s = _timeout_s(timeout)
    watched(lambda: _print(workspace, sql, limit, as_json, as_csv), timeout_s)


def _timeout_s(text: str) -> float | None:
    from hindflight.toolkit.units import TIME

    if not text:
        return None
    try:
        seconds = TIME.parse(text) / 1e9
    except ValueError as error:
        raise HindflightError(f"--timeout: {error}") from None
    if not 0 < seconds <= 1e6:
        raise HindflightError(f"--timeout: {text!r} is not between 1 ns and 1e6 s", 'as in --timeout "30 s"')
    return seconds


def _memory(text: str) -> int:
    from hindflight.toolkit.machine import QUERY_SHARE, memory_bytes
    from hindflight.toolkit.units import SIZE

    if not text:
        return max(round(QUERY_SHARE * memory_bytes()), MIN_MEMORY)
    try:
        limit = round(SIZE.parse(text))
    except ValueError as error:
        raise HindflightError(f"--memory: {error}") from None
    if limit < MIN_MEMORY:
        raise HindflightError(f"--memory: a query needs at least {MIN_MEMORY >> 20} MiB")
    return limit


def _print(workspace: Path, sql: str, memory: int, as_json: bool, as_csv: bool) -> None:
    import duckdb  # noqa: F401 - what the libraries take does not count against the limit
    import pyarrow.dataset  # noqa: F401

    from hindflight.cli.watch import limit_data
    from hindflight.toolkit.query import plain_rows
    from hindflight.toolkit.query import query as run
    from hindflight.toolkit.workspace import Workspace

    opened = Workspace.open(workspace)
    limit_data(memory)
    result = run(opened, sql, memory)
    rows = plain_rows(result)
    if as_json:
        print_json({"columns": result.column_names, "rows": rows})
    elif as_csv:
        print_csv(result.column_names, rows)
    else:
        print_table(result.column_names, rows)
