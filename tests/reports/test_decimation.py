from __future__ import annotations

import random

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hindflight.reports.decimation import drop_repeats, m4, merge_marks


def series(count: int, seed: int = 1) -> pl.DataFrame:
    numbers = random.Random(seed)
    values = [numbers.uniform(-1, 1) for _ in range(count)]
    return pl.DataFrame({"t": [float(i) for i in range(count)], "y": values})


def test_m4_returns_short_frames_unchanged() -> None:
    frame = series(400)
    thinned = m4(frame, "t", "y", 100)
    assert thinned.frame.equals(frame)
    assert not thinned.decimated


def test_m4_keeps_first_last_minimum_and_maximum_of_each_bin() -> None:
    frame, bins = series(100_000), 50
    thinned = m4(frame, "t", "y", bins)
    assert thinned.decimated
    assert thinned.rows == 100_000
    assert thinned.frame.height <= 4 * bins
    assert thinned.frame["t"].is_sorted()
    slot = (pl.col("t") / 99_999 * bins).floor().clip(0, bins - 1).alias("slot")
    wanted = [pl.col("y").first().alias("a"), pl.col("y").last().alias("b"), pl.col("y").min().alias("c")]
    wanted.append(pl.col("y").max().alias("d"))
    whole = frame.group_by(slot).agg(wanted).sort("slot")
    kept = thinned.frame.group_by(slot).agg(wanted).sort("slot")
    assert kept.equals(whole)


@given(st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), min_size=1, max_size=300), st.integers(1, 20))
def test_m4_keeps_minimum_and_maximum_of_any_series(values: list[float | None], bins: int) -> None:
    frame = pl.DataFrame({"t": range(len(values)), "y": pl.Series(values, dtype=pl.Float64)})
    kept, whole = m4(frame, "t", "y", bins).frame["y"], frame["y"].drop_nulls()
    assert kept.min() == whole.min()
    assert kept.max() == whole.max()
    assert set(kept.to_list()) <= set(whole.to_list())
    assert kept.len() <= max(4 * bins, whole.len() if whole.len() <= 4 * bins else 0)


def test_drop_repeats_keeps_the_first_and_the_last_row() -> None:
    frame = pl.DataFrame({"t": range(7), "y": [1, 1, 2, None, None, 2, 2]})
    assert drop_repeats(frame, "y").rows() == [(0, 1), (2, 2), (3, None), (5, 2), (6, 2)]
    assert drop_repeats(frame.clear(), "y").is_empty()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_drop_repeats_preserves_the_step_line(values: list[int]) -> None:
    frame = pl.DataFrame({"t": range(len(values)), "y": values})
    kept = drop_repeats(frame, "y")
    drawn = frame.select("t").join(kept, on="t", how="left").with_columns(pl.col("y").forward_fill())
    assert drawn["y"].to_list() == values


def test_merge_marks_merges_marks_of_one_cell() -> None:
    count = 10_000
    frame = pl.DataFrame({"t": [i / count for i in range(count)], "low": range(count), "name": range(count)})
    frame = frame.with_columns(high=pl.col("low") + 3)
    thinned = merge_marks(frame, "t", "low", "high", (100, 50))
    assert thinned.decimated
    assert thinned.frame["merged"].sum() == count
    assert thinned.frame.height <= 100 * 50
    assert thinned.frame.height <= 200
    assert thinned.frame["low"].min() == 0
    assert thinned.frame["high"].max() == count + 2
    first = thinned.frame.row(0, named=True)
    assert first["name"] == 0
    assert first["high"] == first["low"] + first["merged"] + 2


def test_merge_marks_accepts_a_single_instant() -> None:
    frame = pl.DataFrame({"t": [1.0] * 1000, "low": [5] * 1000, "high": [6] * 1000})
    assert merge_marks(frame, "t", "low", "high", (10, 10)).frame.rows() == [(1.0, 5, 6, 1000)]
