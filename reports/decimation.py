"""Fewer marks, the same picture: a million segments must not make a page of a hundred megabytes.

Three ways, all exact to the pixel at the width they are asked for. Lines: M4 (Jugel et al., "M4: A Visualization-
Oriented Time Series Data Aggregation", VLDB 2014): first, last, least and greatest of each column of pixels.
Steps: rows that repeat the value before them. Marks: one per cell of a raster, its extremes kept.
Knows no table, only frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_BIN = "__bin"
_CELL = "__cell"
_INDEX = "__index"


@dataclass(frozen=True, slots=True)
class Thinned:
    """A frame to draw, and how many rows it stands for."""

    frame: pl.DataFrame
    rows: int
    decimated: bool


def _slots(column: str, count: int) -> pl.Expr:
    low, high = pl.col(column).min(), pl.col(column).max()
    span = pl.when(high > low).then(high - low).otherwise(1)
    return (((pl.col(column) - low) / span) * count).floor().clip(0, count - 1).cast(pl.Int32)


def m4(frame: pl.DataFrame, x: str, y: str, bins: int) -> Thinned:
    """Keep first, last, least and greatest `y` of each of `bins` equal slots of `x`.

    Frames of up to 4 x `bins` rows come back whole. Rows must be sorted by `x`; rows with a null `y` are left out.
    """
    whole = frame.drop_nulls([x, y])
    if whole.height <= 4 * bins:
        return Thinned(whole, whole.height, decimated=False)
    indexed = whole.select(x, y).with_row_index(_INDEX).with_columns(_slots(x, bins).alias(_BIN))
    index = pl.col(_INDEX)
    extremes = indexed.group_by(_BIN).agg(
        index.first().alias("first"),
        index.last().alias("last"),
        index.get(pl.col(y).arg_min()).alias("least"),
        index.get(pl.col(y).arg_max()).alias("greatest"),
    )
    kept = pl.concat([extremes[name] for name in ("first", "last", "least", "greatest")]).unique().sort()
    return Thinned(whole[kept], whole.height, decimated=True)


def steps(frame: pl.DataFrame, y: str) -> pl.DataFrame:
    """Drop rows whose `y` equals the row before; the last row stays. Exact for step lines."""
    value = pl.col(y)
    changed = value.ne_missing(value.shift(1))
    last = pl.int_range(pl.len()) == pl.len() - 1
    first = pl.int_range(pl.len()) == 0
    return frame.filter(first | last | changed)


def cells(frame: pl.DataFrame, x: str, low: str, high: str, bins: tuple[int, int]) -> Thinned:
    """Merge marks that reach from `low` to `high` at `x` where they share a cell of a raster of `bins`.

    A merged mark has its cell's first `x`, least `low`, greatest `high`, first of every other column, and the
    number of marks in column `merged`. Frames of up to 4 x bins[0] rows come back whole, with merged = 1.
    """
    if frame.height <= 4 * bins[0]:
        return Thinned(frame.with_columns(merged=pl.lit(1)), frame.height, decimated=False)
    rest = [c for c in frame.columns if c not in {x, low, high}]
    merged = (
        frame.with_columns(_slots(x, bins[0]).alias(_BIN), _slots(low, bins[1]).alias(_CELL))
        .group_by(_BIN, _CELL, maintain_order=True)
        .agg(pl.col(x).first(), pl.col(low).min(), pl.col(high).max(), pl.col(rest).first(), merged=pl.len())
        .select(x, low, high, *rest, "merged")
    )
    return Thinned(merged, frame.height, decimated=True)
