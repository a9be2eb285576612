"""A DuckDB connection that sees the tables of a workspace and nothing else.

DuckDB gets the tables as Arrow datasets, and no access to the file system at all. That is stricter than
`allowed_directories`: since DuckDB 2.0 a SELECT may contain a COPY TO in its WITH clause, which could overwrite a
part of the workspace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hindflight.toolkit.machine import QUERY_SHARE, memory_bytes
from hindflight.toolkit.schema import TABLES

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

_SETTINGS = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


def connect(dataset: Callable[[str], ds.Dataset], memory: int | None = None) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection with a view per table, empty tables included; `dataset` opens a table by its name.

    DuckDB's buffers take at most `memory` octets, by default half of what this process may use.
    """
    import duckdb

    limit = round(QUERY_SHARE * memory_bytes()) if memory is None else memory
    connection = duckdb.connect(":memory:")
    connection.execute(f"SET memory_limit = '{limit} B'")
    for name in TABLES:
        connection.register(name, dataset(name))
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection
