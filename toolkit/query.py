"""SQL over a workspace: one SELECT, every table a view of the same name, and no access to files.

Read docs/tables.md for the tables.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.database import connect
from hindflight.toolkit.errors import MachineError, QueryError
from hindflight.toolkit.schema import TABLES, arrow_schema, conform

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from hindflight.toolkit.workspace import Workspace


BATCH_ROWS = 65_536
"""Rows of a batch of what `choose` returns."""
_INTERRUPT_S = 0.05
"""Time between two looks at a query, and between two requests to stop it."""
_GIVE_UP_S = 0.8
"""Time after which a query that does not stop is left to its thread."""


def query(workspace: Workspace, sql: str, memory: int | None = None) -> pa.Table:
    """Run one SELECT over the tables of `workspace` and return its result; Ctrl-C stops it.

    `memory` limits DuckDB's buffers (octets); by default they take half of what this process may use.
    QueryError: not one SELECT, or DuckDB refuses it. MachineError: it needs more memory than that.
    """
    import duckdb

    _one_select(sql)
    connection = connect(workspace.dataset, memory)
    try:
        return _distinct_names(_interruptible(connection, lambda: connection.sql(sql).to_arrow_table()))
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        hint = "select fewer rows or columns, or aggregate; `hindflight query --memory` sets the limit"
        raise MachineError("the query needs more memory than it may use", hint) from error
    except duckdb.PermissionException as error:
        raise QueryError("a query reaches the tables of its workspace and no file", _TABLES_HINT) from error
    except duckdb.Error as error:
        raise _refused(error) from error


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table, read once and in the order of the table; errors as those of `choose`."""

    name: str
    relation: duckdb.DuckDBPyRelation
    connection: duckdb.DuckDBPyConnection

    def batches(self, max_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows as the schema declares them, at most `max_rows` at a time; one empty batch without any."""
        import pyarrow as pa

        yielded = False
        with _plain_errors(self.name):
            for batch in self.relation.to_arrow_reader(max_rows):
                for rows in conform(self.name, pa.table(batch)).to_batches():
                    yield rows
                    yielded = True
        if not yielded:
            schema = arrow_schema(self.name)
            yield pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)

    def table(self) -> pa.Table:
        """Return all rows."""
        import pyarrow as pa

        return pa.Table.from_batches(self.batches(), arrow_schema(self.name))


def choose(workspace: Workspace, name: str, conditions: Sequence[str], where: str = "") -> Rows:
    """Return the rows of table `name` that meet `conditions` and the user's expression `where`, in order.

    `conditions` are SQL of ours, `where` may be any one boolean expression; a subquery reaches the other tables.
    `events` are in order of time, as far as the rows of a time go in that of the table.
    QueryError: `where` is not an expression, or names no column.
    """
    connection = connect(workspace.dataset)
    with _plain_errors(name):
        relation = connection.table(name)
        for condition in [*conditions, *([where] if where.strip() else [])]:
            relation = relation.filter(condition)
        if name == "events":
            relation = relation.order("t_ns")
    return Rows(name, relation, connection)


@contextmanager
def _plain_errors(name: str) -> Iterator[None]:
    """Turn errors of DuckDB over an expression on table `name` into ours."""
    import duckdb

    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise MachineError("the selection needs more memory than it may use", "select fewer rows") from error
    except duckdb.PermissionException as error:
        raise QueryError("an expression reaches the tables of its source and no file", _columns_hint(name)) from error
    except duckdb.Error as error:
        found = _refused(error)
        bindings = found.hint if found.hint != _TABLES_HINT else None
        raise QueryError(f"--where: {found.message}", bindings or _columns_hint(name)) from error


EXAMPLES = {
    "flows": "a2b_payload_bytes + b2a_payload_bytes > 0",
    "segments": "payload_bytes > 0",
    "events": "kind = 'loss'",
}
"""An expression over the columns of each table that is selected from; `flows` has those of both directions."""


def _columns_hint(name: str) -> str:
    return f'an expression is as in SQL: "{EXAMPLES[name]}"; `hindflight explain {name}` lists columns'


def _interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], pa.Table]) -> pa.Table:
    """Do `work` in a thread, so that this one can receive signals while DuckDB computes.

    DuckDB looks at a request to stop between two vectors and not within one: a query that still runs after
    `_GIVE_UP_S` is abandoned. The command line runs queries in a process that it can end (hindflight/cli/watch.py).
    """
    results: list[pa.Table] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # Raised again by the thread that waits.
            errors.append(error)

    thread = threading.Thread(target=run, name="query", daemon=True)
    thread.start()
    try:
        while thread.is_alive():  # A signal that another thread takes does not end a wait without a limit.
            thread.join(_INTERRUPT_S)
    except BaseException:
        for _ in range(round(_GIVE_UP_S / _INTERRUPT_S)):  # A request before DuckDB begins is lost.
            connection.interrupt()
            thread.join(_INTERRUPT_S)
            if not thread.is_alive():
                break
        raise
    if errors:
        raise errors[0]
    return results[0]


_TABLES_HINT = f"tables: {', '.join(TABLES)}; `hindflight explain TABLE` lists columns"


def _one_select(sql: str) -> None:
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _refused(error) from error
    if len(statements) != 1:
        raise QueryError(f"a query is one SELECT; this is {len(statements)} statements", _TABLES_HINT)
    kind = statements[0].type
    if kind != duckdb.StatementType.SELECT:
        raise QueryError(f"a query is one SELECT; this is {kind.name.replace('_', ' ')}", _TABLES_HINT)


def _refused(error: Exception) -> QueryError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    hint = next((line for line in lines if line.startswith(("Did you mean", "Candidate bindings"))), _TABLES_HINT)
    return QueryError(lines[0], hint)


def _distinct_names(data: pa.Table) -> pa.Table:
    """Number the repeats of a column name, so that a row can be an object."""
    names: list[str] = []
    for name in data.column_names:
        repeats = (f"{name}_{number}" for number in count(1))
        names.append(name if name not in names else next(other for other in repeats if other not in names))
    return data.rename_columns(names)


def plain_rows(data: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of `data` in types of JSON: octets in hexadecimal, times in ISO 8601, NaN as null."""
    return [{name: _plain(value) for name, value in row.items()} for row in data.to_pylist()]


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return value.hex()
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case _:
            return _plain_other(value)


def _plain_other(value: Any) -> Any:
    from datetime import date, time
    from decimal import Decimal

    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.isoformat() if isinstance(value, date | time) else str(value)
