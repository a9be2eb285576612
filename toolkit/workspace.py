"""A workspace: a folder of Parquet parts and the manifest that lists them. A crash leaves its old or its new state.

A transaction writes its parts next to the others, makes them durable, and then replaces manifest.json in one step.
A part that the manifest does not list does not exist; the next transaction removes it. Parts never change. Does not
depend on where rows come from. toolkit/manifest.py describes the manifest.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hindflight.toolkit import manifest as manifests
from hindflight.toolkit.database import connect
from hindflight.toolkit.errors import UnknownTableError, WorkspaceError, did_you_mean
from hindflight.toolkit.files import os_error, plain_os_errors, sha256_of, sync_folder, write_whole
from hindflight.toolkit.manifest import MAKE_AGAIN, PART_NAME, Command, Input, Manifest, Part, read_manifest
from hindflight.toolkit.schema import (
    TABLES,
    arrow_schema,
    conform,
    empty_table,
    has_former_values,
    with_current_values,
)
from hindflight.toolkit.sender_view.mark import is_rebuilt
from hindflight.toolkit.text import name_to_text
from hindflight.toolkit.version import versions

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds

LOCK_NAME = ".lock"
ROWS_PER_GROUP = 1 << 16
"""Rows of a Parquet row group, and so what a writer keeps in memory per table."""
SOUGHT = ("run_id", "flow_id", "leg", "record", "t_ns")
"""Columns with the limits of each row group, by which readers skip groups; for the others, they cost more than they
save."""
_HOW_TO_MAKE = "`hindflight ingest CAPTURE -w FOLDER` makes a workspace"


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
            foreign = [entry.name for entry in folder.iterdir() if not _is_ours(entry.name)] if folder.exists() else []
        if foreign:
            raise WorkspaceError(
                f"{folder} is not a workspace and not empty (it contains {foreign[0]})",
                "choose a new folder for the workspace",
            )
        return cls(folder, Manifest())

    @classmethod
    def open(cls, path: Path | str) -> Workspace:
        """Open the workspace in folder `path`. WorkspaceError: it is not one, is damaged, or newer."""
        folder = Path(path)
        if not folder.exists():
            raise WorkspaceError(f"{folder} does not exist", _HOW_TO_MAKE)
        if not folder.is_dir():
            raise WorkspaceError(f"{folder} is a file, not a workspace", _HOW_TO_MAKE)
        return cls(folder, read_manifest(folder))

    @classmethod
    def open_or_create(cls, path: Path | str) -> Workspace:
        """Open the workspace in folder `path`, or start one there: see `open` and `create`."""
        return cls.open(path) if (Path(path) / manifests.NAME).exists() else cls.create(path)

    @property
    def manifest_path(self) -> Path:
        """The file that lists all others."""
        return self.path / manifests.NAME

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The files that were read."""
        return self.manifest.inputs

    def find_input(self, sha256: str) -> Input | None:
        """Return the input with this SHA-256, if it has been read."""
        return next((entry for entry in self.inputs if entry.sha256 == sha256), None)

    def input(self, input_id: int) -> Input:
        """Return the input with this number. WorkspaceError: the manifest does not list it, though rows name it."""
        found = next((entry for entry in self.inputs if entry.input_id == input_id), None)
        if found is None:
            raise WorkspaceError(f"{self.manifest_path} is damaged: it does not list input {input_id}", MAKE_AGAIN)
        return found

    def rows(self, name: str) -> int:
        """Return the number of rows of table `name`, from the manifest alone."""
        check_table(name)
        return sum(part.rows for part in self.manifest.tables.get(name, ()))

    def parts(self, name: str) -> list[Path]:
        """Return the Parquet files of table `name`. WorkspaceError: one is missing, or is not a plain file."""
        check_table(name)
        parts = self.manifest.tables.get(name, ())
        paths = [self.path / part.file for part in parts]
        for path, part in zip(paths, parts, strict=True):
            if path.is_symlink() or not path.is_file():
                raise WorkspaceError(f"{path} is missing", MAKE_AGAIN)
            _check_part(path, part)
        return paths

    def dataset(self, name: str) -> ds.Dataset:
        """Return table `name` as a pyarrow dataset.

        The dataset is not read yet, except for a table in which values of earlier schema versions are replaced.
        """
        import pyarrow as pa
        import pyarrow.dataset as ds
        import pyarrow.fs as pafs

        paths = self.parts(name)
        if not paths:
            return ds.dataset(empty_table(name))
        try:
            checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
            form = ds.ParquetFileFormat(default_fragment_scan_options=checked)
            fragments = [form.make_fragment(_arrow_file(path), pafs.LocalFileSystem()) for path in paths]
            for fragment in fragments:
                _check_columns(name, fragment.physical_schema)
            stored = ds.FileSystemDataset(fragments, arrow_schema(name), form)
            if has_former_values(name):
                return ds.dataset(conform(name, with_current_values(name, stored.to_table())))
            return stored
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(self.path, name, error) from error

    def table(self, name: str, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
        """Read table `name`: all of it, or some `columns` of the rows where the pyarrow expression `where` is true."""
        import pyarrow as pa

        try:
            data = self.dataset(name).to_table(columns=None if columns is None else list(columns), filter=where)
            return conform(name, data, columns)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(self.path, name, error) from error

    def batches(self, name: str, where: Any = None) -> Iterator[pa.Table]:
        """Yield the rows of table `name` where the pyarrow expression `where` is true, a row group or so at a time."""
        import pyarrow as pa

        try:
            for batch in self.dataset(name).to_batches(filter=where, batch_size=ROWS_PER_GROUP):
                yield conform(name, pa.Table.from_batches([batch]))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(self.path, name, error) from error

    def count(self, name: str, where: Any = None) -> int:
        """Return the number of rows of table `name` where the pyarrow expression `where` is true."""
        import pyarrow as pa

        try:
            return int(self.dataset(name).count_rows(filter=where))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(self.path, name, error) from error

    def scan(self, name: str) -> pl.LazyFrame:
        """Return table `name` as a Polars LazyFrame."""
        import polars as pl

        paths = self.parts(name)
        if paths and has_former_values(name):
            return pl.DataFrame(self.table(name)).lazy()
        if paths and not _is_utf8(self.path):  # Polars opens no such file by its name.
            return pl.scan_pyarrow_dataset(self.dataset(name))
        return pl.scan_parquet(paths) if paths else pl.DataFrame(empty_table(name)).lazy()

    def relation(self, name: str, owner: object = None) -> duckdb.DuckDBPyRelation:
        """Return table `name` as a DuckDB relation; `owner`, of the files perhaps, lives as long as the relation."""
        check_table(name)

        def dataset(name: str) -> ds.Dataset:
            opened = self.dataset(name)
            weakref.finalize(opened, _released, owner)  # DuckDB holds the dataset, and this its owner.
            return opened

        return connect(dataset).table(name)

    def without_replay(self) -> Workspace:
        """Return the workspace as the next replay finds it: without the rows of an earlier one, which that replaces."""
        parts = {name: tuple(p for p in parts if not p.replay) for name, parts in self.manifest.tables.items()}
        return Workspace(self.path, replace(self.manifest, tables=parts))

    @contextmanager
    def transaction(self, command: str, *, replay: bool = False) -> Iterator[Transaction]:
        """Write rows and inputs, all or nothing; `command` is recorded with the time and the versions.

        With `replay` the rows are those of a replay and replace those of an earlier one.

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
        descriptor = None
        try:
            with plain_os_errors(f"writing workspace {self.path}"):
                self.path.mkdir(parents=True, exist_ok=True)
                descriptor = self._open_lock()
            if not self._locked(descriptor):
                raise WorkspaceError(f"another process is writing to {self.path}", "wait until it has ended")
            yield
        finally:
            # Ctrl-C may come between any two of these steps.
            with suppress(OSError):
                self._unlock(self._open_lock() if descriptor is None else descriptor)

    def _open_lock(self) -> int:
        return os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def _unlock(self, descriptor: int) -> None:
        """Release the lock if it is ours, and leave no folder behind where no transaction ever ended."""
        try:
            if self._locked(descriptor):
                self._remove_if_empty()
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
        """Remove what an unfinished transaction left: our files that the manifest does not list."""
        listed: set[str] = set()
        if (self.path / manifests.NAME).exists():
            listed = {part.file for parts in read_manifest(self.path).tables.values() for part in parts}
        for entry in self.path.iterdir():
            if _is_ours(entry.name) and entry.name not in listed | {LOCK_NAME, manifests.NAME}:
                with suppress(FileNotFoundError):
                    entry.unlink()

    def _remove_if_empty(self) -> None:
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

    def add_input(self, path: Path, kind: str, sha256: str | None = None, options: str = "") -> int:
        """Record that `path` was read with `options`, and return its input_id."""
        with plain_os_errors(f"reading {path}"):
            size_bytes = path.stat().st_size
        return self._add_input(path, kind, size_bytes, sha256 or sha256_of(path), options)

    def add_stream(self, path: Path, kind: str, options: str = "") -> int:
        """Record that the pipe `path` is being read, and return its input_id; `complete_stream` says what it was."""
        return self._add_input(path, kind, 0, "", options)

    def complete_stream(self, input_id: int, size_bytes: int, sha256: str) -> None:
        """Record what was read of a pipe."""
        self._change_input(input_id, size_bytes=size_bytes, sha256=sha256)

    def mark_rebuilt(self, files: dict[int, Path]) -> list[int]:
        """Record of `files`, read as one capture, whether one says that it was rebuilt; return the inputs that do.

        These are all files of the capture, or none: a pipe cannot be read again to find out, and is never merged
        (`check_mergeable`). OSError: a file cannot be read.
        """
        rebuilt = [input_id for input_id, path in files.items() if is_rebuilt(path)]
        for input_id in files if rebuilt else ():
            self._change_input(input_id, rebuilt=name_to_text(files[rebuilt[0]].name))
        return rebuilt

    def _change_input(self, input_id: int, **values: Any) -> None:
        """Replace values of an input that this transaction added."""
        index = input_id - len(self._before.inputs) - 1
        self._inputs[index] = replace(self._inputs[index], **values)

    def _add_input(self, path: Path, kind: str, size_bytes: int, sha256: str, options: str) -> int:
        entry = Input(
            input_id=len(self._before.inputs) + len(self._inputs) + 1,
            kind=kind,
            path=name_to_text(path.absolute() if sha256 else path),
            name=name_to_text(path.name),
            size_bytes=size_bytes,
            sha256=sha256,
            options=options,
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
        check_table(name)
        if name not in self._writers:
            number = self._before.next_part + len(self._writers)
            self._writers[name] = PartWriter(name, self._folder / f"{name}-{number:06d}.parquet")
        return self._writers[name]

    def write(self, name: str, data: pa.Table) -> None:
        """Append `data` to table `name`."""
        self.writer(name).write(data)

    def write_all(self, tables: Mapping[str, pa.Table]) -> None:
        """Append to several tables, each on a separate thread: encoding columns takes most of the time. No thread is
        left when this returns or raises."""
        from concurrent.futures import ThreadPoolExecutor

        writers = [self.writer(name) for name in tables]
        pool = ThreadPoolExecutor(os.cpu_count())
        try:
            for _ in pool.map(PartWriter.write, writers, tables.values()):
                pass
        finally:
            pool.shutdown(cancel_futures=True)

    def drop(self, name: str) -> None:
        """Forget the rows that table `name` had before this transaction."""
        check_table(name)
        self._dropped.add(name)

    def _commit(self, command: str) -> Manifest:
        before = self._before.tables
        tables = {name: tuple(p for p in parts if not self._is_replaced(name, p)) for name, parts in before.items()}
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
                    if self._is_replaced(name, old):
                        (self._folder / old.file).unlink()
        return after

    def _is_replaced(self, name: str, part: Part) -> bool:
        """Whether this transaction removes an earlier part."""
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
        self._sink: BinaryIO | None = None

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
                self._sink = self._temporary.open("wb")
                schema = arrow_schema(self._name)
                self._file = pq.ParquetWriter(
                    self._sink,
                    schema,
                    compression="zstd",
                    use_dictionary=[field.name for field in schema if _repeats(field.type)],
                    column_encoding={field.name: "BYTE_STREAM_SPLIT" for field in schema if _splits(field.type)},
                    write_statistics=[name for name in schema.names if name in SOUGHT],
                    write_page_checksum=True,
                )
            self._file.write_table(data, row_group_size=ROWS_PER_GROUP)
        except OSError as error:
            raise os_error(error, f"writing {self._temporary}") from error
        self._rows += data.num_rows

    def _finish(self) -> Part | None:
        if self._pending:
            self._flush()
        if self._file is None or self._sink is None:
            return None
        self._file.close()
        self._sink.flush()
        os.fsync(self._sink.fileno())
        self._sink.close()
        self._temporary.replace(self._path)
        size_bytes = self._path.stat().st_size
        return Part(self._path.name, self._rows, size_bytes, footer_sha256=_footer_sha256(self._path, size_bytes))

    def _abandon(self) -> None:
        self._pending = []
        for each in (self._file, self._sink):
            if each is not None:
                with suppress(OSError):  # Closing writes the footer, and the disk may be full.
                    each.close()


def _repeats(kind: pa.DataType) -> bool:
    """Whether a Parquet dictionary suits a column: of numbers it is longer and slower than the compressed numbers."""
    import pyarrow as pa

    return not (pa.types.is_list(kind) or pa.types.is_primitive(kind))


def _splits(kind: pa.DataType) -> bool:
    """Whether the octets of a column are stored by significance: most numbers share the upper ones with the row before,
    so this is shorter and quicker to compress."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind)) and kind.bit_width >= 16


def _released(_owner: object) -> None:
    """Let go of an owner."""


def _next_key(workspace: Workspace, table: str, column: str) -> int:
    import pyarrow.compute as pc

    if not workspace.rows(table):
        return 1
    return int(pc.max(workspace.table(table, [column])[column]).as_py()) + 1


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _arrow_file(path: Path) -> Any:
    """What pyarrow opens for `path`: the name, or an open file where the name is not UTF-8."""
    import pyarrow as pa

    return str(path) if _is_utf8(path) else pa.OSFile(os.fsencode(path))


def _check_part(path: Path, part: Part) -> None:
    """WorkspaceError if the file is not as long as it was, or its footer has changed; pages carry checksums."""
    with plain_os_errors(f"reading {path}"):
        size_bytes = path.stat().st_size
        whole = size_bytes == part.size_bytes
        if whole and part.footer_sha256:
            whole = _footer_sha256(path, size_bytes) == part.footer_sha256
    if not whole:
        raise WorkspaceError(f"{path} is damaged: it is not the file that was written", MAKE_AGAIN)


def _footer_sha256(path: Path, size_bytes: int) -> str:
    """The SHA-256 of a Parquet file's metadata, their length and the magic number at its end."""
    with path.open("rb") as file:
        file.seek(max(0, size_bytes - 8))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size_bytes - 8 - length))
        return hashlib.sha256(file.read()).hexdigest()


def _check_columns(name: str, schema: pa.Schema) -> None:
    """ValueError if a file lacks a column that is never null: it would be read as nulls."""
    for column in TABLES[name].columns:
        if not column.nullable and column.name not in schema.names:
            raise ValueError(f"column {column.name} is missing")


def check_table(name: str) -> None:
    """UnknownTableError if there is no table `name`."""
    if name not in TABLES:
        guess = did_you_mean(name, TABLES)
        raise UnknownTableError(
            f"there is no table {name!r}{'; ' if guess else ''}{guess}", f"tables: {', '.join(TABLES)}"
        )


def _is_ours(name: str) -> bool:
    part = name.removesuffix(".tmp") + ".parquet" if name.endswith(".tmp") else name
    return name == LOCK_NAME or name.startswith(f".{manifests.NAME}.") or PART_NAME.fullmatch(part) is not None


def _damaged(folder: Path, name: str, error: Exception) -> WorkspaceError:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return WorkspaceError(f"table {name} of workspace {folder} cannot be read: {reason}", MAKE_AGAIN)
