"""Options that choose rows, and the rows that they chose: a table for people, CSV or one JSON document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.layout import print_fitting
from hindflight.cli.output import SHOWN_ROWS, Row, print_csv_rows, print_json_rows, say

if TYPE_CHECKING:
    from hindflight.selection import Selected

Sources = Annotated[
    list[Path],
    typer.Argument(metavar="SOURCE...", help="Capture (several files are merged in time order) or workspace."),
]
Flow = Annotated[int | None, typer.Option("--flow", help="Flow, as `hindflight flows` numbers them.")]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address of an end, or a network (10.0.0.0/8).")]
Port = Annotated[int | None, typer.Option("--port", help="Port of an end.")]
Where = Annotated[
    str, typer.Option("--where", metavar="EXPRESSION", help="Condition over the columns, as in SQL (see explain).")
]
Run = Annotated[int, typer.Option("--run", help="Replay run; 0 is the capture and its logs.")]


def names(sources: Sequence[Path]) -> str:
    """Return `sources` as messages name them."""
    from hindflight.toolkit.capture import shown

    return ", ".join(shown(source) for source in sources)


_HEAD_ROWS = 4096
"""Rows of a batch for people: more than a table shows."""


def _print_rows(found: Selected, shown: Callable[[Row], dict[str, Any]], wide: bool) -> bool:
    """Print the first rows as a table of the columns that `shown` makes; false if there is no row."""
    rows: list[Row] = []
    left = 0
    for batch in found.rows.batches(_HEAD_ROWS):
        head = batch.slice(0, max(SHOWN_ROWS - len(rows), 0)).to_pylist()
        rows += [shown(row) for row in head]
        left += batch.num_rows - len(head)
    if not rows:
        return False
    print_fitting(list(rows[0]), rows, wide)
    if left:
        say(f"the first {len(rows)} of {len(rows) + left} rows; --csv or --json gives all")
    return True


def print_selected(
    name: str, found: Selected, shown: Callable[[Row], dict[str, Any]], form: tuple[bool, bool], wide: bool
) -> bool:
    """Print the rows of the table `name` as JSON or CSV, as `form` says, or as a table; false if that has no row."""
    as_json, as_csv = form
    if as_json:
        print_json_rows(name, found)
    elif as_csv:
        print_csv_rows(found)
    else:
        return _print_rows(found, shown, wide)
    return True
