"""`hf.open`: a capture and a workspace give the same tables in three forms."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import hindflight as hf
from hindflight.toolkit.ingest import Ingest
from hindflight.toolkit.schema import TABLES, arrow_schema
from hindflight.toolkit.workspace import Workspace

FLOW = Path(__file__).resolve().parents[2] / "fixtures" / "kernel" / "S2-reno"
CAPTURE = FLOW / "snd.pcap.xz"


def test_three_forms_of_the_same_rows(scratch: Path) -> None:
    with hf.open(CAPTURE) as tables:
        assert isinstance(tables.flows, pl.LazyFrame)
        arrow = tables.arrow("segments")
        assert isinstance(arrow, pa.Table)
        assert arrow.schema.equals(arrow_schema("segments"), check_metadata=True)
        assert isinstance(tables.duckdb("segments"), duckdb.DuckDBPyRelation)
        assert tables.duckdb("segments").count("*").fetchall() == [(arrow.num_rows,)]
        assert tables.segments.select(pl.len()).collect().item() == arrow.num_rows
        assert tables.sql("SELECT count(*) AS n FROM segments").to_pylist() == [{"n": arrow.num_rows}]
        assert list(scratch.iterdir())
    assert not list(scratch.iterdir())


def test_a_workspace_gives_what_its_capture_gives(tmp_path: Path) -> None:
    Ingest(Workspace.create(tmp_path / "ws"), "test")([CAPTURE])
    with hf.open(CAPTURE) as of_capture, hf.open(tmp_path / "ws") as of_workspace:
        for name in TABLES:
            assert of_capture.arrow(name).equals(of_workspace.arrow(name)), name


def test_the_temporary_folder_goes_with_the_object(scratch: Path) -> None:
    tables = hf.open(CAPTURE)
    assert list(scratch.iterdir())
    del tables
    assert not list(scratch.iterdir())


def test_a_failure_leaves_no_folder(scratch: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no capture")
    with pytest.raises(hf.HindflightError, match="not a capture"):
        hf.open(tmp_path / "x")
    with pytest.raises(hf.HindflightError, match="does not exist"):
        hf.open(tmp_path / "nix")
    assert not list(scratch.iterdir())


def test_tables_are_named_and_nothing_else_is(scratch: Path) -> None:
    with hf.open(CAPTURE) as tables:
        assert set(TABLES) <= set(dir(tables))
        with pytest.raises(AttributeError, match="no table 'flow'; did you mean 'flows'"):
            _ = tables.flow
        with pytest.raises(KeyError, match="no table 'nix'"):
            tables.arrow("nix")
    assert scratch.is_dir()
