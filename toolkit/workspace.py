"""A workspace: a folder of Parquet parts and the manifest that lists them. Killed at any moment it is old or new.

A transaction writes its parts beside the others, makes them durable, and then replaces manifest.json in one step;
what the manifest does not list does not exist, and the next transaction sweeps it away. Parts never change. Knows
tables and files, not where the rows come from. Read toolkit/manifest.py for what the manifest holds.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit import manifest as manifests
from hindflight.toolkit.database import connect
from hindflight.toolkit.errors import WorkspaceError
from hindflight.toolkit.files import os_error, plain_os_errors, sha256_of, sync_folder, write_whole
from hindflight.toolkit.manifest import PART_NAME, Command, Input, Manifest, Part, read_manifest
from hindflight.toolkit.schema import TABLES, arrow_schema, conform, empty_table
from hindflight.toolkit.version import versions

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds

LOCK_NAME = ".lock"
ROWS_PER_GROUP = 1 << 16
"""Rows of a Parquet row group, and so what a writer holds in memory per table."""


class Workspace:
    """Tables on disk. Make one with `create`, `open` or `open_or_create`; write in a `transaction`."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def create(cls, path: Path | str) -> Workspace:
        """Start a workspace in a new or empty folder; it appears on disk with its first transaction.

        WorkspaceError: the path is a file, a folder with something else in it, or a workspace already.
        """
        folder = Path(path)
        if (folder / manifests.NAME).exists():
            raise WorkspaceError(f"{folder} is a workspace already")
        if folder.exists() and not folder.is_dir():
            raise WorkspaceError(f"{folder} is a file, not a folder for a workspace")
        with plain_os_errors(f"reading {folder}"):
            strangers = (
                [entry.name for entry in folder.iterdir() if not _is_ours(entry.name)] if folder.exists() else []
            )
        if strangers:
            raise WorkspaceError(
                f"{folder} is not a workspace and not empty (it holds {strangers[0]})",
                "choose a new folder for the workspace",
            )
        return cls(folder, Manifest())

    @classmethod
    def open(cls, path: Path | str) -> Workspace:
        """Open the workspace in folder `path`. WorkspaceError: it is none, or is damaged, or newer than we are."""
        folder = Path(path)
        if not folder.exists():
            raise WorkspaceError(f"{folder} does not exist", "`hindflight ingest CAPTURE -w FOLDER` makes a workspace")
        if not folder.is_dir():
            raise WorkspaceError(f"{folder} is a file, not a workspace")
        return cls(folder, read_manifest(folder))

    @classmethod
    def open_or_create(cls, path: Path | str) -> Workspace:
        """Open the workspace in folder `path`, or start one there: see `open` and `create`."""
        return cls.open(path) if (Path(path) / manifests.NAME).exists() else cls.create(path)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The files that were read."""
        return self.manifest.inputs

    def find_input(self, sha256: str) -> Input | None:
        """Return the input with this SHA-256, if it has been read."""
        return next((entry for entry in self.inputs if entry.sha256 == sha256), None)

    def rows(self, name: str) -> int:
        """Return the number of rows of table `name`, from the manifest alone."""
        _known(name)
        return sum(part.rows for part in self.manifest.tables.get(name, ()))

    def parts(self, name: str) -> list[Path]:
        """Return the Parquet files of table `name`. WorkspaceError: one is missing, or is not a plain file."""
        _known(name)
        paths = [self.path / part.file for part in self.manifest.tables.get(name, ())]
        for path in paths:
            if path.is_symlink() or not path.is_file():
                raise WorkspaceError(f"{path} is missing", "make the workspace anew from its inputs")
        return paths

    def dataset(self, name: str) -> ds.Dataset:
        """Return table `name` as a pyarrow dataset, not read yet."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        paths = self.parts(name)
        if not paths:
            return ds.dataset(empty_table(name))
        try:
            return ds.dataset([str(path) for path in paths], schema=arrow_schema(name), format="parquet")
        except (pa.ArrowInvalid, OSError) as error:
            raise _damaged(self.path, name, error) from error

    def table(self, name: str, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
        """Read table `name`: all of it, or some `columns` of the rows `where` a pyarrow expression holds."""
        import pyarrow as pa

        try:
            data = self.dataset(name).to_table(columns=None if columns is None else list(columns), filter=where)
        except (pa.ArrowInvalid, OSError) as error:
            raise _damaged(self.path, name, error) from error
        return conform(name, data, columns)

    def scan(self, name: str) -> pl.LazyFrame:
        """Return table `name` as a Polars LazyFrame."""
        import polars as pl

        paths = self.parts(name)
        return pl.scan_parquet(paths) if paths else pl.DataFrame(empty_table(name)).lazy()

    def relation(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return table `name` as a DuckDB relation."""
        _known(name)
        return connect(self.dataset).table(name)

    @contextmanager
    def transaction(self, command: str, *, replay: bool = False) -> Iterator[Transaction]:
        """Write rows and inputs, all or nothing; `command` is recorded with the time and the versions.

        With `replay` the rows are those of a replay and take the place of an earlier replay's.

        WorkspaceError: another process is writing. MachineError: disk full or no permission; nothing has changed.
        """
        with self._lock():
            # Another process may have written since this object was made.
            if (self.path / manifests.NAME).exists():
                self.manifest = read_manifest(self.path)
            self._sweep()
            transaction = Transaction(self, replay)
            try:
                yield transaction
                self.manifest = transaction._commit(command)
            except BaseException:
                transaction._abandon()
                self._sweep()
                raise

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with plain_os_errors(f"writing workspace {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if not self._locked(descriptor):
                raise WorkspaceError(f"another process is writing to {self.path}", "wait until it has ended")
            try:
                yield
            finally:
                self._unmake()
        finally:
            os.close(descriptor)

    def _locked(self, descriptor: int) -> bool:
        """Take the lock; false where another process holds it, or has just removed the folder it made."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(descriptor), (self.path / LOCK_NAME).stat())
        except (BlockingIOError, FileNotFoundError):
            return False

    def _sweep(self) -> None:
        """Remove what an unfinished transaction left behind: our own files that the manifest does not list."""
        listed: set[str] = set()
        if (self.path / manifests.NAME).exists():
            listed = {part.file for parts in read_manifest(self.path).tables.values() for part in parts}
        for entry in self.path.iterdir():
            if _is_ours(entry.name) and entry.name not in listed | {LOCK_NAME, manifests.NAME}:
                with suppress(FileNotFoundError):
                    entry.unlink()

    def _unmake(self) -> None:
        """Leave no folder behind where no transaction ever ended."""
        if not (self.path / manifests.NAME).exists():
            with suppress(OSError):
                (self.path / LOCK_NAME).unlink()
                self.path.rmdir()


class Transaction:
    """What one command adds to a workspace. Only `Workspace.transaction` makes one."""

    def __init__(self, workspace: Workspace, replay: bool = False) -> None:
        self._folder = workspace.path
        self._before = workspace.manifest
        self._replay = replay
        self._inputs: list[Input] = []
        self._notes: dict[int, str] = {}
        self._dropped: set[str] = set()
        self._writers: dict[str, PartWriter] = {}
        self.next_flow_id = _next_key(workspace, "flows", "flow_id")
        self.next_run_id = 1 if replay else _next_key(workspace, "runs", "run_id")

    def add_input(self, path: Path, kind: str, sha256: str | None = None) -> int:
        """Record that `path` was read, and return its input_id."""
        with plain_os_errors(f"reading {path}"):
            size_bytes = path.stat().st_size
        entry = Input(
            input_id=len(self._before.inputs) + len(self._inputs) + 1,
            kind=kind,
            path=str(path.absolute()),
            name=path.name,
            size_bytes=size_bytes,
            sha256=sha256 or sha256_of(path),
        )
        self._inputs.append(entry)
        return entry.input_id

    def note(self, input_id: int, text: str) -> None:
        """Say in the manifest what was made of an input."""
        self._notes[input_id] = text

    def new_flow_id(self) -> int:
        """Return a flow_id that no flow has yet."""
        self.next_flow_id += 1
        return self.next_flow_id - 1

    def writer(self, name: str) -> PartWriter:
        """Return the writer that appends to table `name`; the same one each time."""
        _known(name)
        if name not in self._writers:
            number = self._before.next_part + len(self._writers)
            self._writers[name] = PartWriter(name, self._folder / f"{name}-{number:06d}.parquet")
        return self._writers[name]

    def write(self, name: str, data: pa.Table) -> None:
        """Append `data` to table `name`."""
        self.writer(name).write(data)

    def drop(self, name: str) -> None:
        """Forget the rows that table `name` had before this transaction."""
        _known(name)
        self._dropped.add(name)

    def _commit(self, command: str) -> Manifest:
        before = self._before.tables
        tables = {name: tuple(p for p in parts if not self._leaves(name, p)) for name, parts in before.items()}
        with plain_os_errors(f"writing workspace {self._folder}"):
            for name, writer in self._writers.items():
                part = writer._finish()
                if part is not None:
                    tables[name] = (*tables.get(name, ()), replace(part, replay=self._replay))
            sync_folder(self._folder)
        record = Command(command, datetime.now(UTC).isoformat(timespec="seconds"), versions())
        after = replace(
            self._before,
            inputs=(*self._before.inputs, *self._inputs),
            commands=(*self._before.commands, record),
            tables=tables,
            next_part=self._before.next_part + len(self._writers),
        )
        for input_id, text in self._notes.items():
            after = after.with_note(input_id, text)
        write_whole(self._folder / manifests.NAME, after.to_json())
        with suppress(OSError):  # The next transaction sweeps what cannot be removed now.
            for name, parts in before.items():
                for old in parts:
                    if self._leaves(name, old):
                        (self._folder / old.file).unlink()
        return after

    def _leaves(self, name: str, part: Part) -> bool:
        """Whether an earlier part goes with this transaction."""
        return name in self._dropped or (self._replay and part.replay)

    def _abandon(self) -> None:
        for writer in self._writers.values():
            writer._abandon()


class PartWriter:
    """Appends batches to one new part of a table, a row group at a time."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._temporary = path.with_suffix(".tmp")
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._rows = 0
        self._file: Any = None

    def write(self, batch: Any) -> None:
        """Append a pyarrow Table, RecordBatch or anything with `__arrow_c_array__`; columns as the schema says.

        ValueError: a column is missing or a value does not fit. MachineError: disk full or no permission.
        """
        import pyarrow as pa

        data = conform(self._name, batch if isinstance(batch, pa.Table) else pa.table(batch))
        self._pending.append(data)
        self._pending_rows += data.num_rows
        if self._pending_rows >= ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = pa.concat_tables(self._pending)
        self._pending, self._pending_rows = [], 0
        if not data.num_rows:
            return
        try:
            if self._file is None:
                self._file = pq.ParquetWriter(self._temporary, arrow_schema(self._name), compression="zstd")
            self._file.write_table(data, row_group_size=ROWS_PER_GROUP)
        except OSError as error:
            raise os_error(error, f"writing {self._temporary}") from error
        self._rows += data.num_rows

    def _finish(self) -> Part | None:
        if self._pending:
            self._flush()
        if self._file is None:
            return None
        self._file.close()
        with self._temporary.open("rb") as file:
            os.fsync(file.fileno())
        self._temporary.replace(self._path)
        return Part(self._path.name, self._rows, self._path.stat().st_size)

    def _abandon(self) -> None:
        self._pending = []
        if self._file is not None:
            with suppress(OSError):  # Closing writes the footer, and the disk may be full.
                self._file.close()


def _next_key(workspace: Workspace, table: str, column: str) -> int:
    import pyarrow.compute as pc

    if not workspace.rows(table):
        return 1
    return int(pc.max(workspace.table(table, [column])[column]).as_py()) + 1


def _known(name: str) -> None:
    if name not in TABLES:
        raise KeyError(f"no table {name}; tables are {', '.join(TABLES)}")


def _is_ours(name: str) -> bool:
    part = name.removesuffix(".tmp") + ".parquet" if name.endswith(".tmp") else name
    return name == LOCK_NAME or name.startswith(f".{manifests.NAME}.") or PART_NAME.fullmatch(part) is not None


def _damaged(folder: Path, name: str, error: Exception) -> WorkspaceError:
    reason = str(error).splitlines()[0]
    return WorkspaceError(
        f"table {name} of workspace {folder} cannot be read: {reason}", "make the workspace anew from its inputs"
    )
