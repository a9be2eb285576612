"""Rows of a table as text, a batch at a time: CSV and JSON lines, in one form for all commands that print or export.

In CSV null is an empty field, a list is JSON, octets are hexadecimal, and a text that begins as a formula has an
apostrophe (toolkit/text.py). Does not depend on the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hindflight.toolkit.text import csv_cell, escape_json, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import numpy.typing as npt
    import polars as pl
    import pyarrow as pa

_ROWS = 16_384
"""Rows that are in memory as Python's objects at once."""


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of `table` as dictionaries, of which only some are in memory at a time."""
    for batch in table.to_batches(_ROWS):
        yield from batch.to_pylist()


def grouped(keys: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], list[tuple[int, int, int]]]:
    """Return the order that puts equal `keys` together, and where in it the rows of each key start and stop."""
    import numpy as np

    order = np.argsort(keys, kind="stable")
    known, starts = np.unique(keys[order], return_index=True)
    stops = [*starts.tolist(), len(keys)][1:]
    return order, list(zip(known.tolist(), starts.tolist(), stops, strict=True))


def csv_of(rows: pa.RecordBatch | pa.Table, *, header: bool) -> str:
    """Return `rows` as CSV, with a line of column names if `header`."""
    import polars as pl

    frame = _frame(rows, lambda text: csv_cell(printable(text, keep="\n\t")))
    lists = [name for name, type_ in frame.schema.items() if isinstance(type_, pl.List)]
    texts = [_list_text(name) for name in lists]
    return frame.with_columns(texts).write_csv(include_header=header)


def json_lines_of(rows: pa.RecordBatch | pa.Table) -> str:
    """Return `rows` as JSON lines, one object a row; NaN is null."""
    return escape_json(_frame(rows, str).fill_nan(None).write_ndjson())


def _frame(rows: pa.RecordBatch | pa.Table, clean: Callable[[str], str]) -> pl.DataFrame:
    """The rows with octets in hexadecimal, and each text as `clean` makes it."""
    import polars as pl
    import pyarrow as pa

    frame = pl.from_arrow(pa.table(rows))
    if isinstance(frame, pl.Series):
        raise TypeError("a batch of rows has columns")
    changed: list[pl.Expr | pl.Series] = []
    for name, type_ in frame.schema.items():
        column = pl.col(name)
        if type_ == pl.Binary:
            changed.append(column.bin.encode("hex"))
        elif type_ in (pl.String, pl.Categorical, pl.Enum):
            texts = frame[name].cast(pl.String)
            different = {text: clean(text) for text in texts.unique() if text is not None and clean(text) != text}
            changed.append((texts.replace(different) if different else texts).alias(name))
    return frame.with_columns(changed)


def _list_text(name: str) -> pl.Expr:
    import polars as pl

    numbers = pl.col(name).cast(pl.List(pl.String)).list.join(", ")
    return pl.format("[{}]", numbers).alias(name)
