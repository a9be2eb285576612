"""Tables as files of other tools: CSV, JSON lines, Parquet, SQLite.

CSV and JSON lines have the form of the commands that read (toolkit/rows.py). In SQLite a list is JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.rows import csv_of, json_lines_of
from hindflight.toolkit.schema import TABLES, Column
from hindflight.toolkit.seal import EMPTY_SEAL, PARQUET_KEY, seal_file

if TYPE_CHECKING:
    import pyarrow as pa


def write_csv(rows: Iterable[pa.Table], path: Path) -> None:
    """Write batches of rows, the first perhaps empty, as CSV with a header. OSError: the system refuses."""
    with path.open("w", encoding="utf-8") as file:
        for at, batch in enumerate(rows):
            file.write(csv_of(batch, header=at == 0))


def write_jsonl(rows: Iterable[pa.Table], path: Path) -> None:
    """Write batches of rows as JSON lines. OSError: the system refuses."""
    with path.open("w", encoding="utf-8") as file:
        for batch in rows:
            file.write(json_lines_of(batch))


def write_parquet(rows: Iterable[pa.Table], path: Path) -> None:
    """Write batches of rows as sealed Parquet, units and meanings in the metadata. OSError: the system refuses."""
    import pyarrow.parquet as pq

    batches = iter(rows)
    first = next(batches)
    schema = first.schema.with_metadata({**(first.schema.metadata or {}), PARQUET_KEY: EMPTY_SEAL.encode()})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in chain([first], batches):
            writer.write_table(batch.replace_schema_metadata(schema.metadata))
    seal_file(path)


def write_sqlite(tables: Mapping[str, Iterable[pa.Table]], path: Path) -> None:
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


def _insert(database: sqlite3.Connection, name: str, rows: Iterable[pa.Table]) -> None:
    columns = TABLES[name].columns
    declared = ", ".join(f'"{column.name}" {_sqlite_type(column)}' for column in columns)
    database.execute(f'CREATE TABLE "{name}" ({declared})')
    places = ", ".join("?" * len(columns))
    changes: list[Callable[[Any], Any]] = [json.dumps if c.type == "list_i64" else _same for c in columns]
    for batch in rows:
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
