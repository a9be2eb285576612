"""A capture or a workspace, opened alike: the tables of both under the same names.

A capture becomes a workspace in a temporary folder that goes away with the object. Knows no command line.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.schema import TABLES
from hindflight.toolkit.workspace import Workspace

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    import pyarrow as pa


class Tables(Mapping[str, "pl.LazyFrame"]):
    """The tables of one source, each as Polars, Arrow or DuckDB; `tables.flows` is short for `tables.polars("flows")`.

    As a mapping it gives each table by name as a Polars LazyFrame, which is what charts take.

    What is opened from a capture lives in a temporary folder until `close`, the end of a `with`, or of the object.
    """

    def __init__(self, workspace: Workspace, temporary: Path | None = None) -> None:
        self.workspace = workspace
        self._remove = weakref.finalize(self, shutil.rmtree, temporary, True) if temporary is not None else None

    def __getattr__(self, name: str) -> pl.LazyFrame:
        if name not in TABLES:
            raise AttributeError(f"no table {name}; tables are {', '.join(TABLES)}")
        return self.polars(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TABLES]

    def __getitem__(self, name: str) -> pl.LazyFrame:
        return self.polars(name)

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)

    def polars(self, name: str) -> pl.LazyFrame:
        """Return table `name` as a Polars LazyFrame; KeyError if there is no such table."""
        return self.workspace.scan(name)

    def arrow(self, name: str) -> pa.Table:
        """Return table `name` as a pyarrow Table, with units and meanings in its schema."""
        return self.workspace.table(name)

    def duckdb(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return table `name` as a DuckDB relation."""
        return self.workspace.relation(name)

    def sql(self, select: str) -> pa.Table:
        """Run one SELECT over the tables. QueryError: it is not one, or DuckDB refuses it."""
        from hindflight.toolkit.query import query

        return query(self.workspace, select)

    def close(self) -> None:
        """Remove the temporary folder, if there is one."""
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def open_source(
    path: Path | str, tables: Collection[str] | None = None, span: tuple[int | None, int | None] = (None, None)
) -> Tables:
    """Open the capture or workspace at `path`; of a capture keep only `tables`, if given, in `span`.

    CaptureError, WorkspaceError: it is neither, or cannot be read. MachineError: no room for the temporary tables.
    """
    source = Path(path)
    if source.is_dir():
        if span != (None, None):
            raise HindflightError("a workspace is taken as it is", "cut a capture when it is read: ingest --from --to")
        return Tables(Workspace.open(source))
    if not source.exists():
        raise HindflightError(f"{source} does not exist", "give a capture or a workspace")
    from hindflight.toolkit.capture import CaptureStream
    from hindflight.toolkit.capture_writer import CAPTURE_TABLES, write_capture

    stream = CaptureStream(source, input_id=1, from_ns=span[0], to_ns=span[1])
    opened = temporary_tables()
    try:
        with opened.workspace.transaction(f"open {source}") as transaction:
            transaction.add_input(source, "capture")
            write_capture(stream, transaction, CAPTURE_TABLES if tables is None else tables)
    except BaseException:
        opened.close()
        raise
    return opened


def temporary_tables() -> Tables:
    """Return an empty workspace in a temporary folder. MachineError: there is no room for one."""
    with plain_os_errors("making a temporary folder"):
        folder = Path(tempfile.mkdtemp(prefix="hindflight-"))
    return Tables(Workspace.create(folder / "workspace"), folder)
