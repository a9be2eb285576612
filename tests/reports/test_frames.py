"""Reads of the tables that charts share."""

from __future__ import annotations

import polars as pl
import pytest

from hindflight.reports import frames
from hindflight.reports.frames import KeptTables, once, read


@pytest.fixture
def kept() -> KeptTables:
    return KeptTables({"flows": pl.DataFrame({"flow_id": [1, 2, 3], "run_id": [0, 0, 1]})})


def test_the_same_rows_are_read_once(kept: KeptTables) -> None:
    first = read(kept, "flows", ["flow_id"], pl.col("run_id") == 0)
    assert first["flow_id"].to_list() == [1, 2]
    assert read(kept, "flows", ["flow_id"], pl.col("run_id") == 0) is first


def test_other_rows_or_columns_are_read_by_themselves(kept: KeptTables) -> None:
    read(kept, "flows", ["flow_id"], pl.col("run_id") == 0)
    assert read(kept, "flows", ["flow_id"], pl.col("run_id") == 1)["flow_id"].to_list() == [3]
    assert read(kept, "flows", ["flow_id"])["flow_id"].to_list() == [1, 2, 3]
    assert read(kept, "flows", ["run_id"], pl.col("run_id") == 0).columns == ["run_id"]


def test_what_is_large_is_read_again(kept: KeptTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "KEPT_BYTES", 8)
    first = read(kept, "flows", ["flow_id"])
    again = read(kept, "flows", ["flow_id"])
    assert again is not first
    assert again.equals(first)
    assert not kept.frames


def test_the_oldest_of_too_many_is_read_and_found_again(kept: KeptTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_KEPT", 2)
    first = read(kept, "flows", ["flow_id"])
    for run_id in (0, 1):
        read(kept, "flows", ["flow_id"], pl.col("run_id") == run_id)
    assert len(kept.frames) == 2
    assert read(kept, "flows", ["flow_id"]) is not first
    assert [once(kept, key, object) is once(kept, key, object) for key in range(3)] == [True] * 3
    assert list(kept.found) == [1, 2]
