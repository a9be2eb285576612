"""Decimation: fewer marks for the same picture, so that a million segments do not make a page of 100 MB.

Three methods, each exact to the pixel at the requested width. `m4` reduces lines to the first, last, minimum and
maximum of each pixel column (Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014).
`drop_repeats` removes rows of a step line that repeat the previous value. `merge_marks` keeps one mark per raster cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_BIN = "__bin"
_CELL = "__cell"
_INDEX = "__index"


@dataclass(frozen=True, slots=True)
class Decimated:
    """A frame to draw, the number of rows that it represents, and whether rows were merged or dropped."""

    frame: pl.DataFrame
    rows: int
    decimated: bool


def _bin_index(column: str, count: int) -> pl.Expr:
    low, high = pl.col(column).min(), pl.col(column).max()
    span = pl.when(high > low).then(high - low).otherwise(1)
    return (((pl.col(column) - low) / span) * count).floor().clip(0, count - 1).cast(pl.Int32)


def m4(frame: pl.DataFrame, x: str, y: str, bins: int) -> Decimated:
    """Keep the first, last, minimum and maximum `y` of each of `bins` equal intervals of `x`.

    `frame` must be sorted by `x`. Rows with a null `x` or `y` are dropped. A frame of up to 4 * `bins` rows is returned
    unchanged otherwise.
    """
    valid = frame.drop_nulls([x, y])
    if valid.height <= 4 * bins:
        return Decimated(valid, valid.height, decimated=False)
    indexed = valid.select(x, y).with_row_index(_INDEX).with_columns(_bin_index(x, bins).alias(_BIN))
    index = pl.col(_INDEX)
    extremes = indexed.group_by(_BIN).agg(
        index.first().alias("first"),
        index.last().alias("last"),
        index.get(pl.col(y).arg_min()).alias("minimum"),
        index.get(pl.col(y).arg_max()).alias("maximum"),
    )
    kept = pl.concat([extremes[name] for name in ("first", "last", "minimum", "maximum")]).unique().sort()
    return Decimated(valid[kept], valid.height, decimated=True)


def drop_repeats(frame: pl.DataFrame, y: str) -> pl.DataFrame:
    """Drop rows whose `y` equals that of the previous row. The last row is kept, so a step line keeps its end."""
    value = pl.col(y)
    changed = value.ne_missing(value.shift(1))
    last = pl.int_range(pl.len()) == pl.len() - 1
    first = pl.int_range(pl.len()) == 0
    return frame.filter(first | last | changed)


def merge_marks(frame: pl.DataFrame, x: str, low: str, high: str, bins: tuple[int, int]) -> Decimated:
    """Merge vertical marks, from `low` to `high` at `x`, that share a cell of a raster of `bins` columns and rows.

    A merged mark has the first `x`, the minimum `low`, the maximum `high` and the first value of every other column of
    its cell; column `merged` counts its marks. A frame of up to 4 * `bins[0]` rows keeps all its rows, with merged = 1.
    """
    if frame.height <= 4 * bins[0]:
        return Decimated(frame.with_columns(merged=pl.lit(1)), frame.height, decimated=False)
    rest = [c for c in frame.columns if c not in {x, low, high}]
    merged = (
        frame.with_columns(_bin_index(x, bins[0]).alias(_BIN), _bin_index(low, bins[1]).alias(_CELL))
        .group_by(_BIN, _CELL, maintain_order=True)
        .agg(pl.col(x).first(), pl.col(low).min(), pl.col(high).max(), pl.col(rest).first(), merged=pl.len())
        .select(x, low, high, *rest, "merged")
    )
    return Decimated(merged, frame.height, decimated=True)
