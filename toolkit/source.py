"""Opens a capture or a workspace: the tables of both have the same names.

A capture becomes a workspace in a temporary folder that is removed with the object.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.schema import TABLES
from hindflight.toolkit.text import name_from_text, name_to_text
from hindflight.toolkit.workspace import Workspace

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    import pyarrow as pa

    from hindflight.toolkit.capture import CaptureStream


class TemporaryFolder:
    """A folder that is removed with the last object that refers to this one, or at the end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remove = weakref.finalize(self, shutil.rmtree, path, True)

    def check(self) -> None:
        """HindflightError if the folder has been removed."""
        if not self.remove.alive:
            raise HindflightError("these tables are closed", "read them before `close` or the end of the `with`")


class Tables(Mapping[str, "pl.LazyFrame"]):
    """The tables of one source, each as Polars, Arrow or DuckDB; `tables.flows` is short for `tables.polars("flows")`.

    As a mapping it gives each table by name as a Polars LazyFrame, which is what charts take.

    What is opened from a capture lives in a temporary folder until `close`, the end of a `with`, or of this object and
    all frames and relations made from it.
    """

    def __init__(self, workspace: Workspace, folder: TemporaryFolder | None = None) -> None:
        self.workspace = workspace
        self._folder = folder

    def __getattr__(self, name: str) -> pl.LazyFrame:
        if name.startswith("_"):
            raise AttributeError(name)  # Of copy, pickle and notebooks, which ask for special names.
        return self.polars(name)

    def __repr__(self) -> str:
        """Say where the tables come from and how many rows each has; empty tables are left out."""
        sources = ", ".join(entry.name for entry in self.workspace.inputs) or "no capture"
        counts = ((name, self.workspace.rows(name)) for name in TABLES)
        rows = [f"{name} {count:,}" for name, count in counts if count]
        return f"<Tables of {sources}: {'; '.join(rows) or 'all empty'}>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TABLES]

    def __getitem__(self, name: str) -> pl.LazyFrame:
        return self.polars(name)

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)

    def polars(self, name: str) -> pl.LazyFrame:
        """Return table `name` as a Polars LazyFrame. UnknownTableError: there is no such table."""
        frame = self.workspace.scan(name)
        return frame if self._folder is None else _owning(frame, self._folder)

    def arrow(self, name: str) -> pa.Table:
        """Return table `name` as a pyarrow Table, with units and meanings in its schema."""
        return self.workspace.table(name)

    def duckdb(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return table `name` as a DuckDB relation."""
        return self.workspace.relation(name, self._folder)

    def sql(self, select: str) -> pa.Table:
        """Run one SELECT over the tables. QueryError: it is not one, or DuckDB refuses it."""
        from hindflight.toolkit.query import query

        return query(self.workspace, select)

    def close(self) -> None:
        """Remove the temporary folder, if there is one."""
        if self._folder is not None:
            self._folder.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def open_source(
    path: Path | str | Sequence[Path | str],
    tables: Collection[str] | None = None,
    span: tuple[int | None, int | None] = (None, None),
    *,
    fix_clock: bool = False,
) -> Tables:
    """Open the capture or workspace at `path`; of a capture keep only `tables`, if given, in `span`.

    Several paths are the files of one capture, merged in the order of time. With `fix_clock`, the times of the
    capture are corrected (docs/captures.md).

    CaptureError, WorkspaceError: it is neither a capture nor a workspace, or cannot be read. MachineError: no space for
    temporary tables.
    """
    sources = [Path(path)] if isinstance(path, Path | str) else [Path(one) for one in path]
    if len(sources) == 1 and sources[0].is_dir():
        if span != (None, None):
            raise HindflightError(
                "a workspace is read as a whole", "select a part of a capture with ingest --from --to"
            )
        if fix_clock:
            raise HindflightError("times are corrected when a capture is read", "ingest it with --fix-clock")
        return Tables(Workspace.open(sources[0]))
    from hindflight.toolkit.capture import CaptureStream, check_mergeable, is_stream

    for source in sources:
        if not source.exists() and not is_stream(source):
            raise HindflightError(f"{source} does not exist", "give a capture or a workspace")
    check_mergeable(sources)
    input_ids = range(1, len(sources) + 1)
    stream = CaptureStream(sources, input_id=input_ids, from_ns=span[0], to_ns=span[1], fix_clock=fix_clock)
    opened = temporary_tables()
    try:
        _write(stream, opened.workspace, tables, fix_clock)
    except BaseException:
        opened.close()
        raise
    return opened


def _write(stream: CaptureStream, workspace: Workspace, tables: Collection[str] | None, fix_clock: bool) -> None:
    """Write `tables` of a capture, all if None, with its files as inputs."""
    from hindflight.toolkit.capture import is_stream
    from hindflight.toolkit.capture_writer import CAPTURE_TABLES, write_capture
    from hindflight.toolkit.sender_view.mark import NOTE

    wanted = CAPTURE_TABLES if tables is None else tables
    names = " ".join(name_to_text(path) for path in stream.paths)
    with workspace.transaction(f"open {names}") as transaction:
        if is_stream(stream.path):
            input_id = transaction.add_stream(stream.path, "capture")
            write_capture(stream, transaction, wanted)
            transaction.complete_stream(input_id, stream.progress()[0], stream.sha256() or "")
        else:
            options = "--fix-clock" if fix_clock else ""
            files = {transaction.add_input(path, "capture", options=options): path for path in stream.paths}
            for input_id in transaction.mark_rebuilt(files):
                transaction.note(input_id, NOTE)
            write_capture(stream, transaction, wanted)


def files_of(source: Path) -> list[Path]:
    """Return the files that a command reads for `source`: of a workspace its files and its inputs.

    WorkspaceError: the folder is not a workspace.
    """
    if not source.is_dir():
        return [source]
    workspace = Workspace.open(source)
    parts = (path for name in TABLES for path in workspace.parts(name))
    return [workspace.manifest_path, *parts, *input_files(workspace)]


def input_files(workspace: Workspace) -> list[Path]:
    """Return where the files were that the workspace was made from."""
    return [Path(name_from_text(entry.path)) for entry in workspace.inputs]


def temporary_tables() -> Tables:
    """Return an empty workspace in a temporary folder. MachineError: there is no space for it."""
    with plain_os_errors("making a temporary folder"):
        folder = Path(tempfile.mkdtemp(prefix="hindflight-"))
    return Tables(Workspace.create(folder / "workspace"), TemporaryFolder(folder))


def _owning(frame: pl.LazyFrame, owner: TemporaryFolder) -> pl.LazyFrame:
    """Return `frame` as one that keeps `owner`, as does every frame made from it."""
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        owner.check()
        wanted = frame if predicate is None else frame.filter(predicate)
        wanted = wanted if columns is None else wanted.select(columns)
        yield (wanted if rows is None else wanted.head(rows)).collect()

    return register_io_source(read, schema=frame.collect_schema())
