"""Queries see the tables and nothing else, and change nothing."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from hindflight.toolkit.errors import MachineError, QueryError
from hindflight.toolkit.query import plain_rows, query
from hindflight.toolkit.schema import TABLES, table_from_rows
from hindflight.toolkit.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.create(tmp_path / "ws")
    entries: list[dict[str, object]] = [
        {"flow_id": 1, "t_ns": t, "source": "web100", "name": "CurCwnd", "value": t} for t in (1, 2)
    ]
    with made.transaction("first") as transaction:
        transaction.write("variables", table_from_rows("variables", entries))
    return made


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM variables",
        "WITH v AS (SELECT * FROM variables) SELECT count(*) AS n FROM v;",
        "FROM variables SELECT count(*) AS n",
        "(SELECT 2 AS n)",
        "-- a comment\nSELECT 2 AS n",
    ],
)
def test_one_select_in_its_forms(workspace: Workspace, sql: str) -> None:
    assert plain_rows(query(workspace, sql)) == [{"n": 2}]


def test_every_table_is_a_view_also_the_empty_ones(workspace: Workspace) -> None:
    for name, table in TABLES.items():
        assert query(workspace, f"FROM {name}").column_names == [c.name for c in table.columns]


def test_values_in_jsons_own_types(workspace: Workspace) -> None:
    sql = """SELECT sum(value) AS s, 'ab'::BLOB AS b, 'nan'::DOUBLE AS x, 1.5::DECIMAL(4,2) AS d, [1, NULL] AS l,
        {'k': 'v'} AS o, TIMESTAMP '2026-01-02 03:04:05' AS t, 1 AS a, 2 AS a FROM variables"""
    assert plain_rows(query(workspace, sql)) == [
        {
            "s": 3,
            "b": "6162",
            "x": None,
            "d": 1.5,
            "l": [1, None],
            "o": {"k": "v"},
            "t": "2026-01-02T03:04:05",
            "a": 1,
            "a_1": 2,
        }
    ]


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("COPY variables TO '{inside}'", "COPY"),
        ("INSERT INTO variables SELECT * FROM variables", "INSERT"),
        ("DELETE FROM variables", "DELETE"),
        ("UPDATE variables SET value = 1", "UPDATE"),
        ("DROP VIEW variables", "DROP"),
        ("CREATE TABLE t AS SELECT 1", "CREATE"),
        ("ATTACH '{inside}' AS other", "ATTACH"),
        ("INSTALL httpfs", "LOAD"),
        ("LOAD httpfs", "LOAD"),
        ("PRAGMA version", "PRAGMA"),
        ("SET enable_external_access = true", "SET"),
        ("EXPLAIN SELECT 1", "EXPLAIN"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "0 statements"),
        ("-- nothing", "0 statements"),
    ],
)
def test_anything_but_one_select_is_refused(workspace: Workspace, sql: str, what: str) -> None:
    with pytest.raises(QueryError, match=f"one SELECT; this is {what}"):
        query(workspace, sql.format(inside=workspace.path / "x.parquet"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '{part}'",
        "SELECT * FROM read_parquet('{part}')",
        "SELECT * FROM read_csv('{manifest}')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_blob('{manifest}')",
        "SELECT * FROM glob('/*')",
        "WITH w AS (COPY (SELECT 1) TO '{part}' (USE_TMP_FILE false)) SELECT * FROM w",
        "WITH w AS (COPY (SELECT 1) TO '{manifest}.csv') SELECT * FROM w",
    ],
)
def test_no_file_is_within_reach(workspace: Workspace, sql: str) -> None:
    manifest = workspace.path / "manifest.json"
    before = {entry.name: entry.read_bytes() for entry in workspace.path.iterdir()}
    with pytest.raises(QueryError, match="no file"):
        query(workspace, sql.format(part=workspace.parts("variables")[0], manifest=manifest))
    assert {entry.name: entry.read_bytes() for entry in workspace.path.iterdir()} == before


@pytest.mark.parametrize(
    "sql",
    [
        "WITH w AS (INSERT INTO variables SELECT * FROM variables RETURNING *) SELECT * FROM w",
        "WITH w AS (DELETE FROM variables RETURNING *) SELECT * FROM w",
        "FROM query('COPY (SELECT 1) TO ''x.csv''')",
    ],
)
def test_writes_inside_a_select_are_refused(workspace: Workspace, sql: str) -> None:
    with pytest.raises(QueryError):
        query(workspace, sql)
    assert workspace.table("variables").num_rows == 2


def test_python_variables_are_no_tables(workspace: Workspace) -> None:
    secret = workspace.table("variables")
    assert secret.num_rows == 2
    with pytest.raises(QueryError, match="secret does not exist"):
        query(workspace, "SELECT * FROM secret")


def test_errors_are_one_line_with_a_hint(workspace: Workspace) -> None:
    with pytest.raises(QueryError, match="Referenced column") as caught:
        query(workspace, "SELECT flowid FROM variables")
    assert "\n" not in str(caught.value)
    assert caught.value.hint is not None
    assert "flow_id" in caught.value.hint


def test_ctrl_c_stops_a_query(workspace: Workspace) -> None:
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        query(workspace, "SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range * b.range = 7")
    assert time.monotonic() - start < 5
    timer.join()
    assert not [thread for thread in threading.enumerate() if thread.name == "query" and thread.is_alive()]


def test_duckdb_has_a_memory_limit(workspace: Workspace) -> None:
    sql = "SELECT value FROM duckdb_settings() WHERE name = 'memory_limit'"
    assert plain_rows(query(workspace, sql, memory=100 << 20)) == [{"value": "100.0 MiB"}]
    with pytest.raises(MachineError, match="memory"):
        query(workspace, "SELECT a.range AS n FROM range(50000000) a ORDER BY hash(n)", memory=100 << 20)
