"""`hindflight explain [TABLE[.COLUMN]]`: what the tables and their columns mean, from the schema alone.

Imports nothing heavy: it answers in the time a person takes to press return.
"""

from __future__ import annotations

import shutil
import textwrap
from typing import Annotated, Any

import typer

from hindflight.cli.output import echo, print_json
from hindflight.toolkit.errors import HindflightError, did_you_mean
from hindflight.toolkit.schema import SCHEMA_VERSION, TABLES, Column, Table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(
    name: Annotated[str, typer.Argument(metavar="[TABLE[.COLUMN]]", help="Table, or column of a table.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Explain the tables and their columns. Shows what a row is, and the type, unit and meaning of each column."""
    if not name:
        tables, columns = list(TABLES.values()), None
    else:
        table_name, _, column_name = name.partition(".")
        table = _table(table_name, column_name)
        tables, columns = [table], [_column(table, column_name)] if column_name else None
    if as_json:
        document = {"schema_version": SCHEMA_VERSION, "tables": [_document(t, columns) for t in tables]}
        print_json(document)
    elif not name:
        echo(*_overview().splitlines())
    else:
        echo(*_text(tables[0], columns).splitlines())


def _table(name: str, column_name: str) -> Table:
    if name in TABLES:
        return TABLES[name]
    of_column = [table.name for table in TABLES.values() if any(c.name == name for c in table.columns)]
    if of_column and not column_name:
        raise HindflightError(f"there is no table {name}; it is a column", f"hindflight explain {of_column[0]}.{name}")
    hint = did_you_mean(name, TABLES) or f"tables: {', '.join(TABLES)}"
    raise HindflightError(f"there is no table {name}", hint)


def _column(table: Table, name: str) -> Column:
    try:
        return table.column(name)
    except KeyError:
        guess = did_you_mean(name, [column.name for column in table.columns])
        hint = guess or f"`hindflight explain {table.name}` lists its columns"
        raise HindflightError(f"table {table.name} has no column {name}", hint) from None


def _overview() -> str:
    widest = max(map(len, TABLES))
    lines = [f"{table.name:<{widest}}  {line}" for table in TABLES.values() for line in [table.row]]
    return "\n".join([*_wrapped(lines, widest + 2), "", "hindflight explain TABLE[.COLUMN] says more."])


def _text(table: Table, columns: list[Column] | None) -> str:
    shown = table.columns if columns is None else columns
    name_width = max(len(column.name) for column in shown)
    kind_width = max(len(_kind(column)) for column in shown)
    lines = [f"{column.name:<{name_width}}  {_kind(column):<{kind_width}}  {_meaning(column)}" for column in shown]
    head = f"{table.name}: {table.row}"
    return "\n".join([*_wrapped([head], 2), "", *_wrapped(lines, name_width + kind_width + 4)])


def _kind(column: Column) -> str:
    return f"{column.type}{', ' + column.unit if column.unit else ''}{'?' if column.nullable else ''}"


def _meaning(column: Column) -> str:
    values = f" One of: {', '.join(column.values)}." if column.values else ""
    return f"{column.meaning.rstrip('.')}.{values}{' May be null.' if column.nullable else ''}"


def _wrapped(lines: list[str], indent: int) -> list[str]:
    width = max(shutil.get_terminal_size((120, 24)).columns, indent + 40)
    return [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent=" " * indent)]


def _document(table: Table, columns: list[Column] | None) -> dict[str, Any]:
    shown = table.columns if columns is None else columns
    return {
        "name": table.name,
        "row": table.row,
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "unit": column.unit,
                "meaning": column.meaning,
                "nullable": column.nullable,
                "values": list(column.values),
            }
            for column in shown
        ],
    }
