"""Tables as files of other tools: CSV, JSON lines, Parquet, SQLite.

CSV and JSON lines have the form of the commands that read (toolkit/rows.py). In SQLite a list is JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.rows import csv_of, json_lines_of
from hindflight.toolkit.schema import TABLES, Column

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 65_536
"""Rows that are written at once."""


def write_csv(rows: pa.Table, path: Path) -> None:
    """Write `rows` as CSV with a header. OSError: the system refuses."""
    with path.open("w", encoding="utf-8") as file:
        file.write(csv_of(rows.slice(0, 0), header=True))
        for batch in rows.to_batches(ROWS):
            file.write(csv_of(batch, header=False))


def write_jsonl(rows: pa.Table, path: Path) -> None:
    """Write `rows` as JSON lines. OSError: the system refuses."""
    with path.open("w", encoding="utf-8") as file:
        for batch in rows.to_batches(ROWS):
            file.write(json_lines_of(batch))


def write_parquet(rows: pa.Table, path: Path) -> None:
    """Write `rows` as Parquet, units and meanings in the metadata. OSError: the system refuses."""
    import pyarrow.parquet as pq

    pq.write_table(rows, path, compression="zstd")


def write_sqlite(tables: dict[str, pa.Table], path: Path) -> None:
    """Write `tables` as one SQLite database; its table `columns` has units and meanings. OSError: it cannot be."""
    try:
        with closing(sqlite3.connect(path)) as database, database:
            described = [
                (name, column.name, column.unit, column.meaning) for name in tables for column in TABLES[name].columns
            ]
            database.execute("CREATE TABLE columns (table_name TEXT, name TEXT, unit TEXT, meaning TEXT)")
            database.executemany("INSERT INTO columns VALUES (?, ?, ?, ?)", described)
            for name, rows in tables.items():
                _insert(database, name, rows)
    except sqlite3.Error as error:
        raise OSError(str(error)) from error


def _insert(database: sqlite3.Connection, name: str, rows: pa.Table) -> None:
    columns = TABLES[name].columns
    declared = ", ".join(f'"{column.name}" {_sqlite_type(column)}' for column in columns)
    database.execute(f'CREATE TABLE "{name}" ({declared})')
    places = ", ".join("?" * len(columns))
    changes: list[Callable[[Any], Any]] = [json.dumps if c.type == "list_i64" else _same for c in columns]
    for batch in rows.to_batches(ROWS):
        values = [
            [change(value) for value in batch[column.name].to_pylist()]
            for column, change in zip(columns, changes, strict=True)
        ]
        database.executemany(f'INSERT INTO "{name}" VALUES ({places})', zip(*values, strict=True))  # noqa: S608 - our names


def _same(value: Any) -> Any:
    return value


def _sqlite_type(column: Column) -> str:
    match column.type:
        case "f64":
            return "REAL"
        case "text" | "enum" | "list_i64":
            return "TEXT"
        case "bytes":
            return "BLOB"
        case _:
            return "INTEGER"
