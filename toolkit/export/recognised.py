"""What `hindflight export` wrote, recognised by content: tables as CSV, JSON lines or SQLite, and xplot's graphs.

Does not read the rows into tables; Parquet names its table in its metadata.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.schema import TABLES

_HEAD_BYTES = 1 << 16
_SQLITE = b"SQLite format 3\x00"
_AXES = frozenset({"timeval", "unsigned", "signed", "double", "dtime"})
"""Types of xplot's axes, with which a graph begins."""


def exported_rows(path: Path) -> dict[str, int] | None:
    """Return the number of rows of each table that `path` holds; None if export wrote no tables to it.

    HindflightError: a database that cannot be read.
    """
    head = _head(path)
    if head.startswith(_SQLITE):
        return _rows_of_database(path)
    first = head.split(b"\n")[0].decode("utf-8", "replace").strip()
    table = _table_of(first.split(",")) or _table_of(_keys(first))
    if table is None:
        return None
    with plain_os_errors(f"reading {path}"), path.open(encoding="utf-8", errors="replace", newline="") as file:
        if first.startswith("{"):
            return {table: sum(1 for line in file if line.strip())}
        return {table: sum(1 for _ in csv.reader(file)) - 1}


def graph_title(path: Path) -> str | None:
    """Return the title of a graph for xplot; None if the file is not one."""
    lines = _head(path).decode("utf-8", "replace").splitlines()
    if len(lines) < 3 or lines[1] != "title":
        return None
    axes = lines[0].split()
    return lines[2] if axes and _AXES.issuperset(axes) else None


def _head(path: Path) -> bytes:
    with plain_os_errors(f"reading {path}"), path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def _table_of(names: list[str]) -> str | None:
    """The table with these columns; a channel has formats of its own."""
    return next(
        (name for name, table in TABLES.items() if name != "channel" and [c.name for c in table.columns] == names), None
    )


def _keys(line: str) -> list[str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return list(row) if isinstance(row, dict) else []


def _rows_of_database(path: Path) -> dict[str, int] | None:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            names = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "columns" not in names or not names & TABLES.keys():
                return None
            counts = {}
            for name in TABLES:
                if name in names:
                    # `name` is one of ours.
                    counts[name] = int(database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0])  # noqa: S608
            return counts
    except sqlite3.Error as error:
        raise HindflightError(f"{path} cannot be read: {error}", "export it again") from error
