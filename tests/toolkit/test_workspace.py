"""A workspace is old or new and never between, whatever stops the writer."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hindflight.toolkit.errors import MachineError, WorkspaceError
from hindflight.toolkit.schema import SCHEMA_VERSION, TABLES, arrow_schema, empty_table, table_from_rows
from hindflight.toolkit.workspace import ROWS_PER_GROUP, Workspace


def rows(*times: int) -> pa.Table:
    return table_from_rows(
        "variables", [{"flow_id": 1, "t_ns": t, "source": "web100", "name": "CurCwnd", "value": t} for t in times]
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.create(tmp_path / "ws")
    with made.transaction("first") as transaction:
        transaction.write("variables", rows(1, 2))
    return made


def files(workspace: Workspace) -> set[str]:
    return {entry.name for entry in workspace.path.iterdir()}


def test_what_is_written_is_read_back_with_units_and_meanings(workspace: Workspace) -> None:
    read = Workspace.open(workspace.path)
    assert read.table("variables").equals(rows(1, 2))
    assert read.table("variables").schema.equals(arrow_schema("variables"), check_metadata=True)
    assert read.scan("variables").select(pl.col("value").sum()).collect().item() == 3
    assert read.relation("variables").filter("t_ns = 2").fetchall() == [(1, 2, "web100", "CurCwnd", 2, None)]
    part = pq.read_schema(read.parts("variables")[0])
    assert part.field("t_ns").metadata[b"unit"] == b"ns"
    assert part.metadata[b"hindflight.schema_version"] == str(SCHEMA_VERSION).encode()


def _with_schema_1(tmp_path: Path, name: str, column: str, former: str) -> Workspace:
    """A workspace with one row of table `name`, as schema version 1 wrote it."""
    row = {
        c.name: {"text": "", "enum": (c.values or ("",))[0], "bool": False}.get(c.type, 0) for c in TABLES[name].columns
    }
    data = table_from_rows(name, [row])
    position = data.column_names.index(column)
    field = data.schema.field(column)
    values = pa.array([former]).cast(pa.string())
    stored = values.dictionary_encode().cast(field.type) if pa.types.is_dictionary(field.type) else values
    workspace = Workspace.create(tmp_path / "old")
    with workspace.transaction("first") as transaction:
        transaction.write(name, data)
    path = workspace.parts(name)[0]
    pq.write_table(data.set_column(position, field, stored), path)
    manifest = json.loads(workspace.manifest_path.read_text())
    manifest |= {"schema_version": 1, "format_version": 1}
    (part,) = manifest["tables"][name]
    part |= {"size_bytes": path.stat().st_size, "footer_sha256": ""}
    workspace.manifest_path.write_text(json.dumps(manifest))
    return Workspace.open(workspace.path)


@pytest.mark.parametrize(
    ("table", "column", "former", "current"),
    [
        ("runs", "role", "studied", "under_test"),
        ("findings", "verdict", "miss", "fail"),
        ("findings", "section", "what_was", "what_happened"),
        ("findings", "section", "spread", "sensitivity"),
    ],
)
def test_values_of_schema_1_are_read_as_todays(
    tmp_path: Path, table: str, column: str, former: str, current: str
) -> None:
    workspace = _with_schema_1(tmp_path, table, column, former)
    assert pq.read_table(workspace.parts(table)[0])[column].to_pylist() == [former]
    assert workspace.table(table)[column].to_pylist() == [current]
    assert workspace.table(table, [column], pc.field(column) == current).num_rows == 1
    assert workspace.scan(table).filter(pl.col(column) == current).collect().height == 1
    assert workspace.relation(table).filter(f"{column} = '{current}'").count("*").fetchall() == [(1,)]


def test_tables_without_rows_have_their_columns(workspace: Workspace) -> None:
    for name in set(TABLES) - {"variables"}:
        assert workspace.rows(name) == 0
        assert workspace.table(name).schema.equals(arrow_schema(name))
        assert workspace.scan(name).collect_schema().names() == arrow_schema(name).names
        assert workspace.relation(name).columns == arrow_schema(name).names


def test_columns_and_rows_can_be_chosen(workspace: Workspace) -> None:
    chosen = workspace.table("variables", ["source", "t_ns"], pc.field("t_ns") > 1)
    assert chosen.to_pylist() == [{"source": "web100", "t_ns": 2}]


def test_a_second_transaction_appends_and_the_manifest_lists_both(workspace: Workspace) -> None:
    with workspace.transaction("second") as transaction:
        for t in (3, 4):
            transaction.writer("variables").write(rows(t).to_batches()[0])
    read = Workspace.open(workspace.path)
    assert read.table("variables")["t_ns"].to_pylist() == [1, 2, 3, 4]
    assert [command.command for command in read.manifest.commands] == ["first", "second"]
    assert set(read.manifest.commands[0].versions) == {"hindflight", "python", "pyarrow"}


def test_writers_hold_no_more_than_a_row_group(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    batch = rows(*range(ROWS_PER_GROUP // 4))
    with workspace.transaction("x") as transaction:
        for _ in range(9):
            transaction.write("variables", batch)
    part = pq.ParquetFile(workspace.parts("variables")[0])
    assert [part.metadata.row_group(i).num_rows for i in range(part.metadata.num_row_groups)] == [
        ROWS_PER_GROUP,
        ROWS_PER_GROUP,
        ROWS_PER_GROUP // 4,
    ]


def test_numbers_are_stored_by_significance_and_every_reader_reads_them(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    times = [7, 2**62, 10**18 + 1]
    with workspace.transaction("x") as transaction:
        transaction.write("variables", rows(*times))
    part = pq.ParquetFile(workspace.parts("variables")[0]).metadata.row_group(0)
    encodings = {part.column(i).path_in_schema: part.column(i).encodings for i in range(part.num_columns)}
    assert all("BYTE_STREAM_SPLIT" in encodings[name] for name in ("flow_id", "t_ns", "value"))
    assert "BYTE_STREAM_SPLIT" not in encodings["name"]
    assert workspace.table("variables")["t_ns"].to_pylist() == times
    assert workspace.scan("variables").collect()["t_ns"].to_list() == times
    assert workspace.relation("variables").select("t_ns").fetchall() == [(t,) for t in times]


def test_dropping_a_table_forgets_its_old_rows_and_files(workspace: Workspace) -> None:
    old = workspace.parts("variables")[0]
    with workspace.transaction("again") as transaction:
        transaction.drop("variables")
        transaction.write("variables", rows(9))
    assert workspace.table("variables")["t_ns"].to_pylist() == [9]
    assert not old.exists()


def test_inputs_are_known_by_their_content(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes(b"abc")
    with workspace.transaction("ingest") as transaction:
        input_id = transaction.add_input(file, "capture")
        transaction.note(input_id, "2 flows")
    entry = Workspace.open(workspace.path).inputs[0]
    assert (entry.input_id, entry.name, entry.size_bytes, entry.note) == (1, "a.pcap", 3, "2 flows")
    assert entry.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert workspace.find_input(entry.sha256) == entry
    assert workspace.find_input("0" * 64) is None


def write_and_fail(workspace: Workspace) -> None:
    with workspace.transaction("bad") as transaction:
        transaction.write("variables", rows(*range(ROWS_PER_GROUP)))
        raise ZeroDivisionError


def test_an_error_leaves_everything_as_it_was(workspace: Workspace) -> None:
    before = files(workspace), (workspace.path / "manifest.json").read_bytes()
    with pytest.raises(ZeroDivisionError):
        write_and_fail(workspace)
    assert (files(workspace), (workspace.path / "manifest.json").read_bytes()) == before


def test_tables_written_at_once_are_as_if_one_after_another(workspace: Workspace) -> None:
    numbers = workspace.manifest.next_part
    with workspace.transaction("x") as transaction:
        transaction.write_all({"issues": empty_table("issues"), "variables": rows(*range(ROWS_PER_GROUP + 1))})
    assert workspace.rows("issues") == 0
    assert workspace.table("variables")["t_ns"].to_pylist()[-ROWS_PER_GROUP - 1 :] == [*range(ROWS_PER_GROUP + 1)]
    assert workspace.parts("variables")[-1].name == f"variables-{numbers + 1:06d}.parquet"


def test_an_error_in_one_of_several_tables_abandons_all(workspace: Workspace) -> None:
    before = workspace.manifest
    with pytest.raises(ValueError, match="t_ns"), workspace.transaction("x") as transaction:
        transaction.write_all({"issues": empty_table("issues"), "variables": rows(1).drop_columns("t_ns")})
    assert workspace.manifest == before


def test_an_error_in_the_first_transaction_leaves_no_folder(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(workspace)
    assert not workspace.path.exists()


@pytest.mark.parametrize(("owner", "step"), [(Path, "mkdir"), (os, "open"), (fcntl, "flock")])
def test_an_interrupt_while_the_folder_is_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str
) -> None:
    done = getattr(owner, step)

    def interrupted(*arguments: Any, **options: Any) -> None:
        done(*arguments, **options)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, step, interrupted)
    workspace = Workspace.create(tmp_path / "ws")
    with pytest.raises(KeyboardInterrupt), workspace.transaction("made"):
        pass
    assert not workspace.path.exists()


def test_rows_that_do_not_fit_the_schema_are_refused(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="lacks column flow_id"), workspace.transaction("bad") as transaction:
        transaction.write("variables", pa.table({"t_ns": [1]}))
    with pytest.raises(KeyError, match="no table 'nix'"), workspace.transaction("bad") as transaction:
        transaction.write("nix", rows(1))


KILLED = """
    import os, signal, sys
    sys.path.insert(0, {root!r})
    from tests.toolkit.test_workspace import rows
    from hindflight.toolkit import workspace as w
    from hindflight.toolkit.files import write_whole
    step = {step!r}
    def die(*_args):
        os.kill(os.getpid(), signal.SIGKILL)
    if step == "before the parts are renamed":
        w.PartWriter._finish = die
    elif step == "before the manifest is replaced":
        w.write_whole = die
    elif step == "after the manifest is replaced":
        w.write_whole = lambda path, content: (write_whole(path, content), die())
    with w.Workspace.open_or_create({path!r}).transaction("killed") as transaction:
        transaction.write("variables", rows(*range(w.ROWS_PER_GROUP)))
        if step == "while writing":
            die()
"""


@pytest.mark.parametrize(
    ("step", "expected_rows"),
    [
        ("while writing", 2),
        ("before the parts are renamed", 2),
        ("before the manifest is replaced", 2),
        ("after the manifest is replaced", 2 + ROWS_PER_GROUP),
    ],
)
def test_killed_at_any_moment_it_is_old_or_new(workspace: Workspace, step: str, expected_rows: int) -> None:
    root = str(Path(__file__).resolve().parents[2])
    script = textwrap.dedent(KILLED).format(root=root, step=step, path=str(workspace.path))
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -signal.SIGKILL
    survivor = Workspace.open(workspace.path)
    assert survivor.rows("variables") == survivor.table("variables").num_rows == expected_rows
    with survivor.transaction("next") as transaction:
        transaction.write("variables", rows(3))
    listed = {part.file for parts in survivor.manifest.tables.values() for part in parts}
    assert files(survivor) == listed | {"manifest.json", ".lock"}
    assert survivor.table("variables").num_rows == expected_rows + 1


def test_killed_in_the_first_transaction_the_folder_can_be_used(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    path = tmp_path / "ws"
    script = textwrap.dedent(KILLED).format(root=root, step="before the manifest is replaced", path=str(path))
    subprocess.run([sys.executable, "-c", script], check=False)
    assert path.exists()
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        Workspace.open(path)
    with Workspace.open_or_create(path).transaction("again") as transaction:
        transaction.write("variables", rows(1))
    assert Workspace.open(path).rows("variables") == 1


def test_only_one_process_writes(workspace: Workspace) -> None:
    other = Workspace.open(workspace.path)
    with (
        workspace.transaction("one"),
        pytest.raises(WorkspaceError, match="another process is writing"),
        other.transaction("two"),
    ):
        pass
    with other.transaction("two"):
        pass


def test_folders_that_are_no_workspace_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for attempt in (Workspace.open, Workspace.create, Workspace.open_or_create):
        with pytest.raises(WorkspaceError, match="not a workspace"):
            attempt(tmp_path)
    with pytest.raises(WorkspaceError, match="does not exist"):
        Workspace.open(tmp_path / "nix")
    with pytest.raises(WorkspaceError, match="is a file"):
        Workspace.open(tmp_path / "notes.txt")
    with pytest.raises(WorkspaceError, match="is a file"):
        Workspace.create(tmp_path / "notes.txt")
    assert {entry.name for entry in tmp_path.iterdir()} == {"notes.txt"}


def test_a_workspace_is_not_made_over(workspace: Workspace) -> None:
    with pytest.raises(WorkspaceError, match="is a workspace already"):
        Workspace.create(workspace.path)


def test_a_newer_or_damaged_manifest_is_refused(workspace: Workspace) -> None:
    path = workspace.path / "manifest.json"
    good = json.loads(path.read_text())
    for change, message in (
        ({"schema_version": SCHEMA_VERSION + 1}, "newer hindflight"),
        ({"format_version": 99}, "newer hindflight"),
        ({"format": "other"}, "not the manifest"),
        ({"inputs": [{}]}, "damaged"),
        ({"tables": {"flows": [{"file": "../../etc/passwd", "rows": 1, "size_bytes": 1}]}}, "damaged"),
    ):
        path.write_text(json.dumps(good | change))
        with pytest.raises(WorkspaceError, match=message):
            Workspace.open(workspace.path)
    for text in ("", "{", "[]", "null"):
        path.write_text(text)
        with pytest.raises(WorkspaceError, match="damaged"):
            Workspace.open(workspace.path)


def test_missing_linked_and_damaged_parts_are_named(workspace: Workspace, tmp_path: Path) -> None:
    part = workspace.parts("variables")[0]
    content = part.read_bytes()
    part.write_bytes(content[: len(content) // 2])
    with pytest.raises(WorkspaceError, match=r"variables-000001.parquet is damaged"):
        workspace.table("variables")
    part.rename(tmp_path / "elsewhere.parquet")
    with pytest.raises(WorkspaceError, match="is missing"):
        workspace.table("variables")
    part.symlink_to(tmp_path / "elsewhere.parquet")
    with pytest.raises(WorkspaceError, match="is missing"):
        workspace.table("variables")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_the_machines_fault(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(MachineError, match="no permission"), Workspace.create(locked / "ws").transaction("x"):
        pass


def test_a_replay_takes_the_place_of_the_one_before_and_of_nothing_else(tmp_path: Path) -> None:
    def finding(text: str) -> pa.Table:
        row: dict[str, object] = {
            "section": "what_if",
            "subject": "",
            "metric": "",
            "unit": "",
            "verdict": "info",
            "text": text,
        }
        return table_from_rows("findings", [row])

    workspace = Workspace.create(tmp_path / "ws")
    with workspace.transaction("ingest") as transaction:
        transaction.write("findings", finding("captured"))
    for text in ("first replay", "second replay"):
        with workspace.transaction("replay", replay=True) as transaction:
            assert transaction.next_run_id == 1
            transaction.write("findings", finding(text))
    again = Workspace.open(tmp_path / "ws")
    assert again.table("findings")["text"].to_pylist() == ["captured", "second replay"]
    assert len(list((tmp_path / "ws").glob("findings-*.parquet"))) == 2
    assert again.without_replay().table("findings")["text"].to_pylist() == ["captured"]
    assert again.rows("findings") == 2


def test_a_capture_in_place_of_a_workspace_has_a_hint(tmp_path: Path) -> None:
    capture = tmp_path / "flight.pcap"
    capture.write_bytes(b"")
    with pytest.raises(WorkspaceError, match="is a file, not a workspace") as refused:
        Workspace.open(capture)
    assert refused.value.hint == "`hindflight ingest CAPTURE -w FOLDER` makes a workspace"
